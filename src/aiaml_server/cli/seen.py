"""`seen`: the person's word that memories need no more looking at."""

from __future__ import annotations

from collections.abc import Sequence

import click

from aiaml_server.cli.context import opened
from aiaml_server.cli.show import found_by
from aiaml_server.terminal import USAGE, Ended, as_json, out, out_json, plural, progress


@click.command("seen")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--all", "everything", is_flag=True, help="All memories that there are now.")
@as_json
def seen(ids: Sequence[str], everything: bool, json: bool) -> None:
    """Say that you have seen memories; what you have not is new.

    `aiaml list --new` shows what is: whatever an agent stored or changed, or came from another
    machine, since you said so. With AIAML_INBOX=true `aiaml list` tells as well how many are, and
    what you write yourself is not. This is noted on this computer alone.

    \b
    Examples:
      aiaml list --new
      aiaml seen 1b2c 3d4e
      aiaml seen --all
    """
    if bool(ids) == everything:
        raise Ended("it needs the ids of what you have seen, or --all", USAGE)
    with opened() as bank:
        if everything:
            memories = [each for _, each in bank.read(progress(bank.names(), "Reading"))]
        else:
            memories = [memory for each in ids for _, memory in found_by(bank, each)]
        count = bank.inbox.see(memories)
    if json:
        out_json({"seen": len(memories), "new": count})
    else:
        out(f"{plural(count, 'memory')} marked as seen.")
