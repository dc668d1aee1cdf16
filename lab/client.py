"""The smallest MCP client: lines to a server's standard input, lines from its standard output."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

PROTOCOL = "2025-06-18"
SECONDS = 60.0  # how long any answer may take
STARTING = 180.0  # how long the first one may take


class RefusedError(Exception):
    """The server answered with an error: nothing was promised."""


class GoneError(Exception):
    """The server ended, or did not answer in time."""


class Client:
    """A server and the pipes to it. Leaving the `with` ends both.

    Attributes:
        process: the server, or what wraps it.
        greeting: what it answered to `initialize`.
        requests: how many were sent; the last one has this number as its id.
        told: notifications and whatever else was no answer, in order.
        noise: lines on its standard output that were no JSON objects.
    """

    def __init__(
        self, words: Sequence[str], environ: Mapping[str, str], directory: Path, log: Path
    ) -> None:
        """Start the server and shake hands; its standard error goes to the end of `log`."""
        self._log = log.open("ab")
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environ,
            cwd=directory,
            start_new_session=True,  # Ctrl-C is for the laboratory alone
        )
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        self._reader.start()
        self._answers: dict[Any, dict[str, Any]] = {}
        self.requests = 0
        self.told: list[dict[str, Any]] = []
        self.noise: list[bytes] = []
        client = {"name": "lab", "version": "1"}
        hello = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}
        try:
            self.greeting = self.answer(self.request("initialize", hello), STARTING)
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message as a line."""
        self.send_line(json.dumps(message).encode())

    def send_line(self, line: bytes) -> None:
        """Send any line.

        Raises:
            GoneError: the server takes no more.
        """
        assert self.process.stdin
        try:
            self.process.stdin.write(line + b"\n")
            self.process.stdin.flush()
        except OSError as error:
            raise GoneError(str(error)) from None

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request; return its id without waiting."""
        self.requests += 1
        message = {"jsonrpc": "2.0", "id": self.requests, "method": method, "params": params or {}}
        self.send(message)
        return self.requests

    def start(self, tool: str, arguments: Mapping[str, Any]) -> int:
        """Send a call of a tool; return its id without waiting."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def answer(self, request: Any, seconds: float = SECONDS) -> dict[str, Any]:
        """Return the answer to a request.

        Raises:
            GoneError: there is none in that time, or the server ended.
        """
        until = time.monotonic() + seconds
        while request not in self._answers:
            try:
                line = self._lines.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                raise GoneError(f"no answer within {seconds:.1f} s") from None
            if not line:
                self._lines.put(b"")
                raise GoneError("the server ended")
            self._take(line)
        return self._answers.pop(request)

    def call(self, tool: str, arguments: Mapping[str, Any], seconds: float = SECONDS) -> str:
        """Call a tool; return the texts that it answers.

        Raises:
            RefusedError: it answered with an error.
            GoneError: it did not answer.
        """
        return texts(self.answer(self.start(tool, arguments), seconds))

    def tools(self) -> list[dict[str, Any]]:
        """List the server's tools."""
        answer = self.answer(self.request("tools/list"))
        return list(answer.get("result", {}).get("tools", []))

    def kill(self) -> dict[Any, dict[str, Any]]:
        """Kill the server at once; return the answers that it had sent and nobody has taken."""
        self.process.kill()
        return self.drain()

    def drain(self) -> dict[Any, dict[str, Any]]:
        """Wait for the server's end; return the answers that nobody has taken."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(SECONDS)
        self._reader.join(5)
        while True:
            try:
                line = self._lines.get_nowait()
            except queue.Empty:
                break
            if line.endswith(b"\n"):
                self._take(line)
        return self._answers

    def close(self, seconds: float = 10.0) -> int | None:
        """Close the server's input, as clients do; return its exit code, or None after a kill."""
        assert self.process.stdin
        with suppress(OSError):
            self.process.stdin.close()
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None

    def __enter__(self) -> Client:  # noqa: PYI034 (nobody inherits)
        """Return the client itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the server."""
        if self.process.poll() is None:
            self.close(10.0 if kind is None else 1.0)
        self._reader.join(5)
        for stream in (self.process.stdin, self.process.stdout, self._log):
            with suppress(OSError):
                if stream:
                    stream.close()

    def _read(self, stream: IO[bytes]) -> None:
        with suppress(ValueError, OSError):
            for line in stream:
                self._lines.put(line)
        self._lines.put(b"")

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            self.noise.append(line)
        elif "id" in message and "method" not in message:
            self._answers[message["id"]] = message
        else:
            self.told.append(message)


def texts(answer: Mapping[str, Any]) -> str:
    """Return the texts of a tool's answer.

    Raises:
        RefusedError: it is an error.
    """
    result = answer.get("result", {})
    found = [each["text"] for each in result.get("content", []) if "text" in each]
    found += [each["text"] for each in result.get("contents", []) if "text" in each]
    if "error" in answer or result.get("isError"):
        raise RefusedError(
            json.dumps(answer.get("error")) if "error" in answer else " ".join(found)
        )
    return "\n".join(found)
