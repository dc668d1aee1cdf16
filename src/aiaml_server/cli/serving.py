"""`serve` and `demo`: the two verbs that speak MCP."""

from __future__ import annotations

import gc
import logging
import os
import sys

import click

from aiaml_server.errors import InvalidSetting
from aiaml_server.settings import Settings
from aiaml_server.wire import Wire

WAITING = """\
aiaml-server is waiting for an MCP client on standard input; a client starts it by itself.
To see what it does, type `aiaml-server demo`; for settings and more, `aiaml-server --help`.
Ctrl-C ends it."""


def serve() -> int:
    """Serve until the client leaves; return the exit code."""
    try:
        settings = Settings.from_environ(os.environ)
    except InvalidSetting as error:
        return _fail(str(error))
    if sys.stdin is not None and sys.stdin.isatty():
        print(WAITING, file=sys.stderr)
    try:
        wire = Wire.claim()
    except OSError:
        return _fail("standard input or output is closed; an MCP client must be at the other end")
    logging.basicConfig(
        level=settings.log_level,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    # What is allocated while importing is not garbage: without the collector start and exit are
    # faster, and later collections skip it.
    gc.disable()
    from aiaml_server import server  # noqa: PLC0415 (half a second; only serving pays for the SDK)

    built = server.build(settings)
    gc.freeze()
    gc.enable()
    return server.run(built, wire)


@click.command("serve")
def serve_verb() -> int:
    """Serve one MCP client on standard input and output.

    Clients start it so; `aiaml-server` without a word does the same.
    """
    return serve()


@click.command("demo")
def demo_verb() -> int:
    """Watch the three tools at work, in a throw-away place."""
    from .demo import demo as play  # noqa: PLC0415 (imports the SDK's client)

    return play()


def _fail(sentence: str) -> int:
    print(f"aiaml-server: {sentence}", file=sys.stderr)
    return 2
