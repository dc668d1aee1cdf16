"""Read from the input what a host says, and print what its agent is told.

Options: `--dir DIRECTORY`, `--host NAME`, and `--toolset NAME` for what that tells instead.

It imports neither click nor the SDK, waits for no other process, and ends with 0 and without a word
where there is nothing to tell, or anything is wrong; that goes to stderr, which hosts log.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiaml_server.server.hooks.hosts import Said
    from aiaml_server.server.hooks.telling import Told

MOST = 1 << 20  # bytes of what a host says
SECONDS = 0.25  # from the start of this program, after which a host is not kept waiting
LONG = 50_000  # bytes of a conversation that may hold something to store
READ = 4 << 20  # of its end, bytes that are looked at
MORE_SECONDS = 2.0  # the same for another toolset, which reads the repository's files
STORED = (b'_remember"', b'-remember"')  # how a use of the tool ends, in the ways of all hosts


def main() -> None:
    """Answer one event of a host."""
    gc.disable()  # with what it finds, and what ends a Python in order, a tenth of the time
    options = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=False))
    toolset = options.get("--toolset", "")
    timer = threading.Timer(MORE_SECONDS if toolset else SECONDS, os._exit, (0,))
    timer.daemon = True
    timer.start()
    try:
        _answer(options, toolset)
    except Exception as error:  # noqa: BLE001 (no hook may end a person's session)
        sys.stderr.write(f"aiaml-hook: {type(error).__name__}: {error}\n")
    sys.stderr.flush()
    os._exit(0)


def _answer(options: Mapping[str, str], toolset: str) -> None:
    from aiaml_server.server.hooks.hosts import Said, project  # noqa: PLC0415 (inside the time and `try`)
    from aiaml_server.settings import BASE, Settings  # noqa: PLC0415

    said = Said.parsed(_input(), options.get("--host", ""))
    there = {BASE: options["--dir"]} if "--dir" in options else {}
    settings = Settings.from_environ({**os.environ, **there})
    if said is None or not settings.hooks:
        return
    from aiaml_server.server.hooks import telling  # noqa: PLC0415
    from aiaml_server.storage.store import Store  # noqa: PLC0415
    from aiaml_server.storage.uses import Uses  # noqa: PLC0415

    store = Store(settings.base)
    uses = Uses(settings.base)
    told = telling.Told()
    asks = False
    if toolset:
        told = _by_toolset(toolset, said)
    elif said.event == "prompt":
        told = telling.at_prompt(store, said.prompt)
    elif said.event in ("start", "end"):
        asks = settings.log_uses and _to_ask(said)
        asks = asks and not any(  # in this session, to store what matters
            use.tool == "asked" and use.keywords == (said.session,) for use in uses.read()
        )
        if said.event == "start":
            told = telling.at_start(store, project(said.place), compacted=asks)
        elif asks:
            told = telling.Told(telling.STORE)
    if told.text:
        os.write(1, said.answer(told.text))
        if settings.log_uses and said.event != "end":
            uses.write(said.client, "shown", told.words, told.ids)
        if asks:
            uses.write(said.client, "asked", (said.session,), ())


def _by_toolset(name: str, said: Said) -> Told:
    """Return what a toolset tells at this event."""
    from aiaml_server.server.hooks import telling  # noqa: PLC0415 (inside the time and `try`)
    from aiaml_server.toolset import at  # noqa: PLC0415
    from aiaml_server.toolsets import manifest  # noqa: PLC0415

    place = manifest(name).hooks.get(said.event)
    lines = list(at(place)(said.place, said.file)) if place else []
    return telling.of_toolset(name, lines)


def _input() -> bytes:
    """Return what stands on the input, up to `MOST` bytes.

    What is beyond is read and dropped, until the time is over: a host that writes to a pipe which
    nobody reads any more gets an error, or a signal that ends it.
    """
    if os.isatty(0):
        return b""
    parts: list[bytes] = []
    size = 0
    while part := os.read(0, 65536):
        parts += [part] if size < MOST else []
        size += len(part)
    return b"".join(parts)


def _to_ask(said: Said) -> bool:
    """Say whether nothing was stored in a conversation that was shortened, or is long and over."""
    if said.event == "start":
        return said.source == "compact" and not _stored(said.transcript)
    path = Path(said.transcript)
    is_long = path.is_file() and path.stat().st_size >= LONG
    return is_long and not said.again and not _stored(said.transcript)


def _stored(transcript: str) -> bool:
    """Say whether the end of a conversation has a use of `remember`; also where nobody can tell."""
    if not transcript or not Path(transcript).is_file():
        return True
    with Path(transcript).open("rb") as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - READ))
        said = stream.read(READ)
        return any(each in said for each in STORED)


if __name__ == "__main__":
    main()
