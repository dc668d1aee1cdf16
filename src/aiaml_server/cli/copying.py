"""The copy of the first answers, made in a process of its own: `python -m …copying TOOLSET…`.

Whoever finds none begins it: a server at its start, whose client may leave before the SDK is there,
and `install`, before the first session. It opens no memory, takes at most `_PROCESSOR_SECONDS`, and
yields to all else.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pkgutil import resolve_name
from typing import Any

from aiaml_server.errors import NoStateDirectory, UnsafePath
from aiaml_server.files import check_own, make_own_directory, open_own, remove_own
from aiaml_server.identity import cache_directory
from aiaml_server.server.greeting import LISTS, Greeting, begin_of
from aiaml_server.storage.derived import key
from aiaml_server.toolset import Manifest
from aiaml_server.toolsets import OWN, manifest

_PROCESSOR_SECONDS = 10  # one or two are needed
_SECONDS = 60.0  # by the clock, on a busy machine
_ABOUT = {"name": "aiaml", "version": "1"}
_META = "io.modelcontextprotocol/"


def copy_of(manifests: Sequence[Manifest]) -> Greeting | None:
    """Return the copy of what is answered first.

    None where there is no place for it, or another package's toolset is served: what tells our
    files from later ones, and with them a greeting from a stale one, knows nothing of its files.
    """
    names = [each.name for each in manifests]
    if not set(names) <= OWN.keys():
        return None
    settings = [f"{name}={value}" for name, value in sorted(_told(manifests).items())]
    with suppress(NoStateDirectory):
        return Greeting(cache_directory(), key(), [*names, *settings])
    return None


def _told(manifests: Sequence[Manifest]) -> dict[str, str]:
    """Return those settings of the environment that change what is answered first."""
    told = {each.name for one in manifests for each in one.settings if each.changes_tools}
    return {name: os.environ[name] for name in told if os.environ.get(name)}


def begin(greeting: Greeting, names: Sequence[str]) -> None:
    """Have a copy made by a process of its own, if none is at it; nothing is waited for."""
    import subprocess  # noqa: PLC0415 (a start with a copy goes without)

    place = greeting.path.parent
    mark = greeting.path.with_suffix(".making")
    with suppress(OSError, UnsafePath):
        make_own_directory(place)
        check_own(place, directory=True, strict=True)
        if check_own(mark) and time.time() - mark.lstat().st_mtime > _SECONDS:
            remove_own(mark)
        os.close(open_own(mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        apart: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            apart = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.IDLE_PRIORITY_CLASS}
        process = subprocess.Popen(  # noqa: S603 (the running Python)
            [sys.executable, "-m", __spec__.name, *names],
            cwd=place,  # with -m, Python imports what lies there
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **apart,
        )
        process.returncode = 0  # nobody waits for it, and that is no mistake


def main(names: Sequence[str]) -> int:
    """Make the copy for these toolsets; return the exit code."""
    import asyncio  # noqa: PLC0415 (a start with a copy goes without)

    _limit()
    manifests = [manifest(name) for name in names]
    greeting = copy_of(manifests)
    if not greeting:
        return 1
    try:
        if not greeting.known:
            greeting.keep(asyncio.run(_answers(manifests)))
    except OSError:
        return 1
    finally:
        with suppress(OSError, UnsafePath):
            remove_own(greeting.path.with_suffix(".making"))
    return 0


def _limit() -> None:
    """Take what nobody else wants of the processor, and end in any case."""
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 (POSIX has it)

        os.nice(19)
        resource.setrlimit(resource.RLIMIT_CPU, (_PROCESSOR_SECONDS, _PROCESSOR_SECONDS))
    end = threading.Timer(_SECONDS, os._exit, (1,))
    end.daemon = True
    end.start()


async def _answers(manifests: Sequence[Manifest]) -> dict[str, str]:
    """Return what the SDK answers to every greeting, by its place."""
    from mcp.types.version import (  # noqa: PLC0415 (the SDK)
        HANDSHAKE_PROTOCOL_VERSIONS,
        MODERN_PROTOCOL_VERSIONS,
    )

    from aiaml_server.server import stdio  # noqa: PLC0415
    from aiaml_server.server.protocol import Server  # noqa: PLC0415

    told = _told(manifests)
    built = [
        resolve_name(each.build)(each.read_settings(told))._replace(lifespan=nullcontext)
        for each in manifests
    ]
    found: dict[str, str] = {}
    for version in (*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS):
        shaken = version in HANDSHAKE_PROTOCOL_VERSIONS
        played = _Played(_handshake(version) if shaken else _modern(version))
        await stdio.serve(Server(built), played)  # type: ignore[arg-type]
        for number, method in enumerate(played.methods):
            begun = begin_of(number)
            (answer,) = [each for each in played.answers if each.startswith(begun + b",")]
            found[f"{method} {version}"] = answer.removeprefix(begun).decode()
    return found


def _handshake(version: str) -> dict[str, Any]:
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": _ABOUT}
    return {"initialize": hello, **{method: {} for method in LISTS}}


def _modern(version: str) -> dict[str, Any]:
    meta = {"protocolVersion": version, "clientInfo": _ABOUT, "clientCapabilities": {}}
    params = {"_meta": {f"{_META}{name}": value for name, value in meta.items()}}
    return dict.fromkeys(("server/discover", *LISTS), params)


class _Played:
    """A wire with a client that asks all at once and leaves."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.methods = list(asked)
        self.answers: list[bytes] = []
        requests = [
            {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            for number, (method, params) in enumerate(asked.items())
        ]
        self._lines = [json.dumps(each).encode() for each in requests]
        if "initialize" in asked:
            self._lines.insert(1, b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def open(self, received: Any, _broken: object) -> None:
        received(self._lines)
        received(None)

    async def room(self) -> None:
        pass

    def send(self, line: bytes) -> None:
        self.answers.append(line)

    def close(self, seconds: float) -> None:
        pass


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
