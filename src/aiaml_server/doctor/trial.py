"""A server, started in a throw-away directory as clients start it, and asked in raw lines."""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from aiaml_server import launch
from aiaml_server.errors import AiamlError

from .context import PREFIX, Context
from .finding import REPORT, Finding

_SECONDS = 30.0  # for everything; a cold disk takes its time
_PROTOCOL = "2025-11-25"
_TOOLS = {"remember", "think", "recall"}
_NOTE = {"agent": "doctor", "user": "nobody", "topics": ["trial"], "content": "a trial memory"}


class NoAnswer(AiamlError):  # noqa: N818
    """The server said something else than it should, or nothing."""


def server(context: Context) -> Iterator[Finding]:
    """Shake hands, list the tools, remember, think and recall."""
    command = launch.command()
    with tempfile.TemporaryDirectory(prefix="aiaml-doctor-") as place:
        log = Path(place, "log")
        try:
            with _started(command, context.environ, Path(place)) as process:
                found = _converse(process)
        except (NoAnswer, OSError, ValueError, LookupError, TypeError) as error:
            lines = log.read_text("utf-8", "replace").splitlines() if log.exists() else []
            said = " / ".join(line.strip() for line in lines[-5:])
            found = f"`{' '.join(command)}` does not serve: {error or type(error).__name__}"
            yield Finding("server", "error", f"{found}; it said: {said}" if said else found, REPORT)
        else:
            yield Finding("server", "ok", found)


@contextmanager
def _started(
    command: list[str], environ: Mapping[str, str], place: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server that lives `_SECONDS` at most; its log is `place / "log"`."""
    outer = {key: value for key, value in environ.items() if not key.startswith(PREFIX)}
    own = {"AIAML_MEMORY_DIR": str(place / "base"), "AIAML_ENABLE_SYNC": "false"}
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 (this installation)
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=place,
            env={**outer, **own},
        )
    limit = threading.Timer(_SECONDS, process.kill)
    limit.start()
    try:
        yield process
    finally:
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):
                assert stream  # noqa: S101
                stream.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(2.0)
        limit.cancel()
        process.kill()
        process.wait()


def _converse(process: subprocess.Popen[bytes]) -> str:
    """Have the whole conversation; return how long it took."""
    start = time.perf_counter()
    talk = _Talk(process)
    about = {"protocolVersion": _PROTOCOL, "capabilities": {}}
    about["clientInfo"] = {"name": "aiaml doctor", "version": "1"}
    version = talk.ask("initialize", about)["serverInfo"]["version"]
    answered = time.perf_counter() - start
    talk.tell({"method": "notifications/initialized"})
    tools = {tool["name"] for tool in talk.ask("tools/list", {})["tools"]}
    if not tools >= _TOOLS:
        raise NoAnswer(f"it has the tools {sorted(tools)}")
    stored = talk.call("remember", _NOTE)["memory_id"]
    (hit,) = talk.call("think", {"keywords": ["trial"]})
    (recalled,) = talk.call("recall", {"memory_ids": [stored]})
    if hit["id"] != stored or recalled["content"] != _NOTE["content"]:
        raise NoAnswer("what was remembered was not what was found")
    took = time.perf_counter() - start - answered
    return (
        f"version {version} answered in {answered:.1f} s, and the three tools work ({took:.1f} s)"
    )


class _Talk:
    """JSON-RPC in lines, one question at a time."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin  # noqa: S101
        assert process.stdout  # noqa: S101
        self._to: IO[bytes] = process.stdin
        self._from: IO[bytes] = process.stdout
        self._id = 0

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send one message."""
        self._to.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._to.flush()

    def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send a request and return its result."""
        self._id += 1
        self.tell({"id": self._id, "method": method, "params": params})
        while line := self._from.readline():
            message = json.loads(line)
            if message.get("id") == self._id:
                if "result" not in message:
                    raise NoAnswer(f"{method}: {message.get('error')}")
                return message["result"]
        raise NoAnswer(f"it ended, or did not answer {method} in {_SECONDS:.0f} s")

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool and return its value."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        return json.loads(result["content"][0]["text"])
