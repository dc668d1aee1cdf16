"""A server, started in a throw-away directory as clients start it, and asked in raw lines."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from aiaml_server.errors import AiamlError

_SECONDS = 30.0  # for everything; a cold disk takes its time
_HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "aiaml", "version": "1"},
}


class NoAnswer(AiamlError):  # noqa: N818
    """The server said something else than it should, or nothing."""


class Conversation:
    """JSON-RPC in lines, one question at a time.

    Attributes:
        version: the server's.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """Shake hands."""
        assert process.stdin  # noqa: S101
        assert process.stdout  # noqa: S101
        self._to: IO[bytes] = process.stdin
        self._from: IO[bytes] = process.stdout
        self._id = 0
        with _answered("initialize"):
            self.version: str = self._ask("initialize", _HELLO)["serverInfo"]["version"]
            self._send({"method": "notifications/initialized"})

    def tools(self) -> list[str]:
        """Return the names of the tools.

        Raises:
            NoAnswer: see there.
        """
        with _answered("tools/list"):
            return [tool["name"] for tool in self._ask("tools/list", {})["tools"]]

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool and return its value.

        Raises:
            NoAnswer: see there; or the tool failed.
        """
        with _answered(tool):
            result = self._ask("tools/call", {"name": tool, "arguments": arguments})
            if result.get("isError"):
                raise NoAnswer(f"{tool}: {result['content'][0]['text']}")
            return json.loads(result["content"][0]["text"])

    def _ask(self, method: str, params: Mapping[str, Any]) -> Any:
        self._id += 1
        self._send({"id": self._id, "method": method, "params": params})
        while line := self._from.readline():
            message = json.loads(line)
            if message.get("id") == self._id:
                if "result" not in message:
                    raise NoAnswer(f"{method}: {message.get('error')}")
                return message["result"]
        raise NoAnswer(f"it ended, or did not answer {method} in {_SECONDS:.0f} s")

    def _send(self, message: Mapping[str, Any]) -> None:
        self._to.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._to.flush()


@contextmanager
def _answered(what: str) -> Iterator[None]:
    """Turn whatever a wrong answer, or none, leads to into `NoAnswer`."""
    try:
        yield
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise NoAnswer(f"{what}: {error!r}") from error


@contextmanager
def begun(
    command: Sequence[str], environ: Mapping[str, str], place: Path
) -> Iterator[Conversation]:
    """Talk with a server on the memories of `place / "base"`, without sync, for `_SECONDS` at most.

    Of `environ` it gets no settings, and `place` is for nothing else.

    Raises:
        NoAnswer: the server did not say what was expected; with what its log says last.
    """
    outer = {key: value for key, value in environ.items() if not key.startswith("AIAML_")}
    own = {"AIAML_MEMORY_DIR": str(place / "base"), "AIAML_ENABLE_SYNC": "false"}
    log = place / "log"
    try:
        with _started(command, {**outer, **own}, place, log) as process:
            yield Conversation(process)
    except NoAnswer as error:
        lines = log.read_text("utf-8", "replace").splitlines() if log.exists() else []
        said = " / ".join(line.strip() for line in lines[-5:])
        found = f"`{' '.join(command)}` does not serve: {error}"
        raise NoAnswer(f"{found}; it said: {said}" if said else found) from error


@contextmanager
def _started(
    command: Sequence[str], environ: Mapping[str, str], place: Path, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as stream, _answered("it cannot be started"):
        process = subprocess.Popen(  # noqa: S603 (this installation)
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stream,
            cwd=place,
            env=environ,
        )
    limit = threading.Timer(_SECONDS, process.kill)
    limit.start()
    try:
        yield process
    finally:
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                assert pipe  # noqa: S101
                pipe.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(2.0)
        limit.cancel()
        process.kill()
        process.wait()
