"""`web`: a page for the person to see, search, correct and forget memories."""

from __future__ import annotations

import math

import click

from aiaml_server.cli.context import settings


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

    Ctrl-C ends it. So does a closed or forgotten page: see `--idle`.

    \b
    Examples:
      aiaml web
      aiaml web --no-browser --port 8123
    """
    if math.isnan(idle):
        raise click.BadParameter("it must be a number of minutes", param_hint="--idle")
    from aiaml_server.web.service import serve  # noqa: PLC0415 (starlette and uvicorn: 0.3 s)

    return serve(settings(), port, browser=not no_browser, idle=idle * 60)
