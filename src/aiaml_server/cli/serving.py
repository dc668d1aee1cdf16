"""What a client starts: everything here and above is on its way to the first answer."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from pkgutil import resolve_name

from aiaml_server.cli.copying import begin, copy_of
from aiaml_server.errors import InvalidSetting
from aiaml_server.server.wire import Wire
from aiaml_server.settings import LOG_LEVEL
from aiaml_server.toolsets import chosen

WAITING = """\
aiaml-server is waiting for an MCP client on standard input; a client starts it by itself.
To see what it does, type `aiaml-server demo`; for settings and more, `aiaml-server --help`.
Ctrl-C ends it."""


def serve(toolsets: Sequence[str] = ()) -> int:
    """Serve until the client leaves; return the exit code.

    Args:
        toolsets: the names of the toolsets to serve; else those of `AIAML_TOOLSETS`.
    """
    try:
        manifests = chosen(toolsets, os.environ)
        level = LOG_LEVEL.value(os.environ)
        values = [manifest.read_settings(os.environ) for manifest in manifests]
    except InvalidSetting as error:
        return _fail(str(error))
    if sys.stdin is not None and sys.stdin.isatty():
        _note(WAITING)
    try:
        wire = Wire.claim()
    except OSError:
        return _fail("standard input or output is closed; an MCP client must be at the other end")
    greeting = copy_of(manifests)
    if greeting and greeting.known:
        wire.greet(greeting.answer)
    elif greeting:
        begin(greeting, [manifest.name for manifest in manifests])
    from aiaml_server.format.logs import LogFormatter  # noqa: PLC0415 (not for the first answer)
    from aiaml_server.server import logs  # noqa: PLC0415

    logs.begin(level, LogFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    # What is allocated while importing is not garbage: without the collector start and exit are
    # faster, and later collections skip it.
    gc.disable()
    from aiaml_server.server import protocol as server  # noqa: PLC0415 (half a second; only serving pays for the SDK)

    try:
        built = server.Server(
            [
                resolve_name(manifest.build)(each)
                for manifest, each in zip(manifests, values, strict=True)
            ]
        )
    except (ImportError, AttributeError) as error:  # the second where a place names nothing
        return _fail(f"the toolset cannot be served: {error}")
    except InvalidSetting as error:
        return _fail(str(error))
    gc.freeze()
    gc.enable()
    return server.run(built, wire, greeting)


def _fail(sentence: str) -> int:
    _note(f"aiaml-server: {sentence}")
    return 2


def _note(text: str) -> None:
    from aiaml_server.terminal import notify  # noqa: PLC0415 (what a person reads; a client's start goes without

    notify(text)
