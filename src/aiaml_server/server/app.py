"""Start a server: settings, cached handshake, log, toolsets, and then the conversation.

The modules imported here delay the first answer to a client. The MCP SDK takes most of the time, so
it is imported after the cached handshake can answer.
"""

from __future__ import annotations

import atexit
import gc
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pkgutil import resolve_name

from aiaml_server.errors import InvalidSetting
from aiaml_server.server import streams
from aiaml_server.server.handshake import Handshake, write_in_background
from aiaml_server.settings import LOG_LEVEL
from aiaml_server.toolsets import chosen

WAITING = """\
aiaml-server is waiting for an MCP client on standard input. Usually a client starts it.
To see what it does, type `aiaml-server demo`; for settings and more, `aiaml-server --help`.
Ctrl-C ends it."""
_MAX_LOG_RECORDS = 1_000
_FLUSH_SECONDS = 0.5


def serve(toolsets: Sequence[str] = ()) -> int:
    """Serve one client on standard input and output until it leaves; return the exit code.

    Args:
        toolsets: the names of the toolsets; if there are none, those of `AIAML_TOOLSETS`.
    """
    try:
        manifests = chosen(toolsets, os.environ)
        level = LOG_LEVEL.value(os.environ)
        values = [manifest.read_settings(os.environ) for manifest in manifests]
    except InvalidSetting as error:
        return _fail(str(error))
    if sys.stdin is not None and sys.stdin.isatty():
        _print(WAITING)
    try:
        incoming, outgoing = streams.claim()
    except OSError:
        return _fail("standard input or output is closed; an MCP client must be at the other end")
    handshake = Handshake(manifests)
    reader = streams.LineReader(incoming, _answer_from(handshake, outgoing))
    reader.start()
    if not handshake.is_cached:
        write_in_background(manifests)
    flush_log = configure_log(level)
    # What is allocated while importing is not garbage: without the collector, start and exit are
    # faster, and later collections skip it.
    gc.disable()
    from aiaml_server.server.protocol import Server  # noqa: PLC0415 (the SDK)

    try:
        built = [
            resolve_name(manifest.build)(value)
            for manifest, value in zip(manifests, values, strict=True)
        ]
        server = Server(built)
    except ImportError as error:
        return _fail(f"the toolset cannot be served: {error}")
    except InvalidSetting as error:
        return _fail(str(error))
    gc.freeze()
    gc.enable()
    try:
        return server.serve(reader, streams.LineWriter(outgoing), handshake.handled)
    finally:
        flush_log()


def configure_log(level: str) -> Callable[[], None]:
    """Log to stderr; return a function that waits briefly until everything is written.

    A client need not read the server's stderr, and a full pipe blocks its writer. So a thread
    writes, and records for which there is no room are dropped.
    """
    from logging.handlers import QueueHandler, QueueListener  # noqa: PLC0415 (slow)
    from queue import Queue  # noqa: PLC0415

    from aiaml_server.format.logs import LogFormatter  # noqa: PLC0415

    logging.raiseExceptions = False
    records: Queue[logging.LogRecord] = Queue(_MAX_LOG_RECORDS)
    # A stream of its own: Python waits for its locks on sys.stderr and on handlers when it ends.
    target = 2 if sys.stderr else os.devnull
    stream = open(target, "w", encoding="utf-8", closefd=target != 2)  # noqa: SIM115 (for good)
    atexit.unregister(logging.shutdown)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LogFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[QueueHandler(records)])
    QueueListener(records, handler).start()

    def flush() -> None:
        with records.all_tasks_done:
            records.all_tasks_done.wait_for(lambda: not records.unfinished_tasks, _FLUSH_SECONDS)

    return flush


def _answer_from(handshake: Handshake, outgoing: int) -> Callable[[bytes], bool]:
    def handle(line: bytes) -> bool:
        text, is_done = handshake.answer(line)
        if text:
            streams.write_all(outgoing, text.encode())
        return is_done

    return handle


def _fail(sentence: str) -> int:
    _print(f"aiaml-server: {sentence}")
    return 2


def _print(text: str) -> None:
    from aiaml_server.terminal import notify  # noqa: PLC0415 (slow; only a person reads it)

    notify(text)
