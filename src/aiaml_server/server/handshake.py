"""The cached handshake: the SDK's answers to a client's first requests, given while it is imported.

Importing the SDK takes most of the time of a start, and some hosts do not wait for it: Codex omits
the tools of a server that needs more than a second. The answers to these requests depend only on
the installed versions, the toolsets, their settings and the protocol version that a client asks
for. They are stored in the user's cache directory. `write_in_background` makes them in a process of
its own, so that a client that leaves early does not prevent them from being there the next time.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from aiaml_server import __version__
from aiaml_server.errors import AiamlError
from aiaml_server.files import check_own, make_own_directory, read_own, replace_atomic
from aiaml_server.identity import cache_directory
from aiaml_server.toolset import Manifest
from aiaml_server.toolsets import DEFAULT, manifest

LIST_METHODS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list", "ping")
"""What clients ask besides the handshake, and what does not depend on stored data."""
_META = "io.modelcontextprotocol/"
_MAX_BYTES = 1 << 20  # all toolsets in all protocol versions take 300 kB
_MAX_LINE = 1 << 16
_CLIENT = {"name": "aiaml", "version": __version__}


class Handshake:
    """The answers to one client's first lines, from the cache.

    Attributes:
        path: the file; None where there is no cache directory.
        is_cached: whether the file has answers.
        handled: ids of the requests that were answered, but that the SDK has to see as well.
    """

    def __init__(self, manifests: Sequence[Manifest]) -> None:
        """Read the file for these toolsets, if it is there."""
        self.path: Path | None = None
        self._results: dict[str, str] = {}
        self._version = ""  # that the client chose with `initialize`
        self._is_initialized = False
        self._is_over = False
        self.handled = set[object]()
        with suppress(AiamlError, OSError, ValueError):
            self.path = cache_directory() / f"handshake-{_key(manifests)}.json"
            if check_own(self.path.parent, directory=True):
                self._results = json.loads(read_own(self.path, _MAX_BYTES))
        self.is_cached = bool(self._results)

    def answer(self, line: bytes) -> tuple[str, bool]:
        """Return the answer to the next line, with its end, and whether the SDK need not see it.

        After the first line that has no cached answer, none is answered any more.
        """
        if not self._is_over:
            with suppress(ValueError, LookupError, TypeError, AttributeError, RecursionError):
                return self._answer(json.loads(line[:_MAX_LINE]))
        self._is_over = True
        return "", False

    def _answer(self, message: Mapping[str, Any]) -> tuple[str, bool]:
        """Answer one message; raises an exception where there is no answer."""
        method, params = message["method"], message.get("params", {})
        if method == "notifications/initialized" and self._version:
            self._is_initialized = True
            return "", False
        request_id = message["id"]
        if method == "initialize" and not self._version:
            answer = self._format(request_id, method, params["protocolVersion"])
            self._version = params["protocolVersion"]
            self.handled.add(request_id)
            return answer, False
        version = params.get("_meta", {}).get(f"{_META}protocolVersion", "")
        is_expected = not self._version if version else self._is_initialized
        if params.keys() - {"_meta"} or not is_expected:
            raise ValueError(method)
        return self._format(request_id, method, version or self._version), True

    def _format(self, request_id: object, method: str, version: str) -> str:
        result = self._results[f"{method} {version}"]
        return f'{{"jsonrpc":"2.0","id":{json.dumps(request_id)},"result":{result}}}\n'


def write_in_background(manifests: Sequence[Manifest]) -> None:
    """Start a process that writes the file for these toolsets; do not wait for it."""
    import subprocess  # noqa: PLC0415 (slow; with a cached handshake it is not needed)

    with suppress(OSError):
        process = subprocess.Popen(  # noqa: S603 (the running Python)
            [
                sys.executable,
                "-m",
                "aiaml_server.server.handshake",
                *(each.name for each in manifests),
            ],
            cwd=sys.prefix,  # with -m, Python also imports from the working directory
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        threading.Thread(target=process.wait, daemon=True).start()  # it leaves no zombie


def write(manifests: Sequence[Manifest]) -> None:
    """Write the file for these toolsets.

    Raises:
        AiamlError: there is no cache directory, or something else is in the way.
        OSError: it cannot be written.
    """
    import asyncio  # noqa: PLC0415 (as above)

    handshake = Handshake(manifests)
    if handshake.path and not handshake.is_cached:
        results = asyncio.run(_record(manifests))
        make_own_directory(handshake.path.parent)
        replace_atomic(handshake.path, json.dumps(results).encode())


def _key(manifests: Sequence[Manifest]) -> str:
    """Return a digest of everything that determines the answers."""
    parts = [__version__, sys.version, *(each.name for each in manifests)]
    parts += [f"{name}={value}" for name, value in _environ(manifests).items()]
    sdk = find_spec("mcp")
    for location in (sdk and sdk.submodule_search_locations) or ():
        parts += sorted(path.name for path in Path(location).parent.glob("mcp*-info"))
    for directory, _, names in os.walk(Path(__file__).parent.parent):
        stamps = [os.stat(f"{directory}/{name}") for name in names if name.endswith(".py")]  # noqa: PTH116
        parts += [f"{directory} {stamp.st_size} {stamp.st_mtime_ns}" for stamp in stamps]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _environ(manifests: Sequence[Manifest]) -> dict[str, str]:
    """Return the variables that may change the tools: all of the toolsets but the default one."""
    settings = [setting for each in manifests if each.name != DEFAULT for setting in each.settings]
    names = {setting.name for setting in settings} & os.environ.keys()
    return {name: os.environ[name] for name in sorted(names)}


async def _record(manifests: Sequence[Manifest]) -> dict[str, str]:
    """Return the SDK's results in JSON, by method and protocol version. Nothing is opened."""
    from mcp.types.version import (  # noqa: PLC0415 (the SDK)
        HANDSHAKE_PROTOCOL_VERSIONS,
        MODERN_PROTOCOL_VERSIONS,
    )

    from aiaml_server.server.protocol import Server  # noqa: PLC0415 (the SDK)

    environ = _environ(manifests)
    toolsets = [
        resolve_name(each.build)(each.read_settings(environ))._replace(lifespan=nullcontext)
        for each in manifests
    ]
    results: dict[str, str] = {}
    for version in (*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS):
        answers = _Answers()
        lines = _requests(version, version in MODERN_PROTOCOL_VERSIONS)
        await Server(toolsets).converse(lines, answers)
        for message in map(json.loads, answers.lines):
            if "result" in message:  # an error is left to the SDK
                result = json.dumps(message["result"], ensure_ascii=False, separators=(",", ":"))
                results[f"{message['id']} {version}"] = result
    return results


class _Answers:
    """What the server writes."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    async def write(self, text: str) -> None:
        self.lines.append(text)

    async def flush(self) -> None:
        pass


async def _requests(version: str, is_modern: bool) -> AsyncIterator[bytes]:
    """Yield the lines of a client; a modern one describes itself in each request."""
    client = {"protocolVersion": version, "clientInfo": _CLIENT}
    if is_modern:
        meta = {f"{_META}{key}": value for key, value in client.items()}
        params = {"_meta": {**meta, f"{_META}clientCapabilities": {}}}
        yield _request("server/discover", params)
    else:
        params = {}
        yield _request("initialize", {**client, "capabilities": {}})
        yield b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    for method in LIST_METHODS:
        yield _request(method, params)


def _request(method: str, params: Mapping[str, Any]) -> bytes:
    message = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
    return json.dumps(message).encode()


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(19)
    write([manifest(name) for name in sys.argv[1:]])
