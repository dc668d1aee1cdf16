"""`web`: a page for the person to see, search, correct and forget memories."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from functools import partial

import click

from aiaml_server import toolsets
from aiaml_server.cli.context import settings, settings_of
from aiaml_server.cli.dirs import known
from aiaml_server.toolset import Note, at


@click.command("web")
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(1, 65535),
    help="Listen on this port; otherwise on any that is free.",
)
@click.option("--no-browser", is_flag=True, help="Print the address, and open nothing.")
@click.option(
    "--idle",
    metavar="MINUTES",
    default=30.0,
    show_default=True,
    type=click.FloatRange(0, 100_000),
    help="End after so long without a visit.",
)
def web(port: int | None, no_browser: bool, idle: float) -> int:
    """See, search, edit and forget memories in the browser.

    The page is served to this computer alone, and to nobody without the token in its address. That
    address opens every memory for as long as the program runs: treat it as a password. The browser
    is led there by a file that you alone can read; one that may not read it either (some in a
    flatpak, or on Windows beside WSL) is given the address by you.

    Where you have several memory directories (`aiaml dirs`), the page can show another one; and
    what toolsets keep, to be read: of you, and of the repository around the working directory.

    Ctrl-C ends it. So does a closed or forgotten page: see `--idle`.

    \b
    Examples:
      aiaml web
      aiaml web --no-browser --port 8123
    """
    if math.isnan(idle):
        raise click.BadParameter("it must be a number of minutes", param_hint="--idle")
    from aiaml_server.web.service import serve  # noqa: PLC0415 (starlette and uvicorn: 0.3 s)

    own, *others = known()
    if others:
        pages = [(own.name, settings()), *((each.name, settings_of(each.path)) for each in others)]
    else:
        pages = [("", settings())]
    shelves = {}  # of each toolset of ours that can be used here, what shows what it keeps
    for name in toolsets.OWN:
        manifest = toolsets.manifest(name)
        if manifest.notes and not toolsets.missing(manifest):
            shelves[name] = partial(_notes, manifest.notes)
    return serve(pages, shelves, port, browser=not no_browser, idle=idle * 60)


def _notes(place: str) -> Iterable[Note]:
    found: Iterable[Note] = at(place)(os.environ)
    return found
