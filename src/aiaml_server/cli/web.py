"""The command web."""

from __future__ import annotations

import click

from aiaml_server.cli.context import settings


@click.command("web")
@click.option("--port", metavar="N", type=click.IntRange(1, 65535), help="Listen on this port; by default on a free one.")  # fmt: skip  # noqa: E501
@click.option("--no-browser", is_flag=True, help="Print the address instead of opening it.")
@click.option(
    "--idle",
    metavar="MINUTES",
    default=30.0,
    show_default=True,
    type=click.FloatRange(0, 100_000),
    help="Stop after this long without a visit.",
)
def web(port: int | None, no_browser: bool, idle: float) -> int:
    """Search, read, edit and forget memories in the browser.

    Only this computer reaches the page, and only with the token in its address. Treat the address
    as a password: it opens every memory while the program runs. Ctrl-C ends it.

    \b
    Examples:
      aiaml web
      aiaml web --no-browser --port 8123
    """
    from aiaml_server.web.app import serve  # noqa: PLC0415 (starlette and uvicorn: 0.3 s)

    return serve(settings(), port, browser=not no_browser, idle=idle * 60)
