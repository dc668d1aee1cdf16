"""Options and arguments that select memories."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from itertools import islice
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from aiaml_server.cli.context import opened
from aiaml_server.format.filters import WHEN
from aiaml_server.terminal import dim, notify

Command = TypeVar("Command", bound=Callable[..., Any])
_COMPLETED = 200  # of the newest memories
_PLAIN_ID = re.compile(r"[\w.-]+")  # no shell needs quotes for it


class MemoryId(click.ParamType[str]):
    """An id, or its beginning. The Tab key completes ids of the newest memories."""

    name = "id"

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the ids that begin so."""
        with opened() as bank:
            ids = [memory.id for _, memory in islice(bank.newest(), _COMPLETED)]
        plain_ids = filter(_PLAIN_ID.fullmatch, ids)
        return [CompletionItem(text) for text in plain_ids if text.startswith(incomplete)]


def filtered(command: Command) -> Command:
    """Add the options that `Filter.of` takes."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


def limited(command: Command) -> Command:
    """Add the options for `limit`: how many to show."""
    for option in reversed(_LIMITS):
        command = option(command)
    return command


def notify_limit(count: int, total: int) -> None:
    """Print how many of all memories are shown, if there are more."""
    if count < total:
        notify(dim(f"{count:,} of {total:,}; --all shows all."))


_LIMITS = (
    click.option(
        "--limit",
        "-n",
        metavar="N",
        default=25,
        type=click.IntRange(1),
        show_default=True,
        help="How many to show.",
    ),
    click.option("--all", "limit", flag_value=sys.maxsize, help="Show all."),
)
_FILTERS = (
    click.option("--agent", "-a", metavar="NAME", help="Only memories of this agent."),
    click.option("--user", "-u", metavar="NAME", help="Only memories about this person."),
    click.option(
        "--topic", "-t", metavar="WORD", multiple=True, help="Only with this topic; repeatable."
    ),
    click.option("--since", metavar="TIME", help=f"Only made since then: {WHEN}."),
    click.option("--before", metavar="TIME", help="Only made before then."),
)
