"""The command line. Without an argument it serves, which is how clients start it."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Sequence

from aiaml_server import __version__
from aiaml_server.errors import InvalidSetting
from aiaml_server.settings import Settings
from aiaml_server.wire import Wire

USAGE = """\
Usage: aiaml-server [demo]

One memory, in plain files, for every AI agent that you use: an MCP server over stdio.

  aiaml-server          serve one MCP client on standard input and output; clients start it so
  aiaml-server demo     watch a memory being remembered, found and recalled, in a throw-away place
  aiaml-server --help, --version

Settings (environment variables):
  AIAML_MEMORY_DIR      where memories are kept; default ~/.aiaml
  AIAML_ENABLE_SYNC     true (default) keeps memories in git; false: no git at all
  AIAML_GITHUB_REMOTE   a git URL or path to exchange memories with; without it git stays local
  AIAML_SYNC_INTERVAL   seconds between two looks at the remote; default 60
  AIAML_CHECK_SECRETS   true (default) keeps memories that hold a known form of key out of git
  AIAML_CHECK_INDEX     true: compare every answer with a scan of all files (slow)
  AIAML_LOG_LEVEL       DEBUG, INFO, WARNING (default), ERROR or CRITICAL; the log goes to stderr

Exit codes: 0 the client left, 2 wrong usage or setting, 130 Ctrl-C."""

WAITING = """\
aiaml-server is waiting for an MCP client on standard input; a client starts it by itself.
To see what it does, type `aiaml-server demo`; for settings and more, `aiaml-server --help`.
Ctrl-C ends it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words in (["--help"], ["-h"], ["help"]):
        print(USAGE)
        return 0
    if words == ["--version"]:
        print(f"aiaml-server {__version__}")
        return 0
    if words == ["demo"]:
        return _demo()
    if words:
        return _fail(f"unknown argument {words[0]!r}; `aiaml-server --help` lists what there is")
    return _serve()


def _demo() -> int:
    try:
        from .demo import demo  # noqa: PLC0415 (imports the SDK's client)

        return demo()
    except KeyboardInterrupt:
        return 130


def _serve() -> int:
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


def _fail(sentence: str) -> int:
    print(f"aiaml-server: {sentence}", file=sys.stderr)
    return 2
