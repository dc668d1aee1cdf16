"""A minimal MCP client: it measures servers, so nothing of an SDK may be measured with them."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from typing_extensions import Self

PROTOCOL = "2025-06-18"
ANSWER_SECONDS = 60.0
START_SECONDS = 180.0


class ServerError(Exception):
    """The server answered with an error: it promised nothing."""


class ServerGone(Exception):  # noqa: N818 (what happened)
    """The server ended, or did not answer in time."""


class Client:
    """A server process and its only client.

    Attributes:
        process: the server, or the program that runs it.
        started: when it was started, in seconds of `time.perf_counter`.
        start_seconds: how long `initialize` took, with the start of the process.
    """

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], directory: Path) -> None:
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environ,
            cwd=directory,
            start_new_session=True,  # Ctrl-C ends the benchmark, which then ends the server
        )
        assert self.process.stdin
        assert self.process.stdout
        self._stdin = self.process.stdin
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._answers: dict[int, dict[str, Any]] = {}
        self._requests = 0
        threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True).start()
        info = {"name": "benchmark", "version": "1"}
        hello = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": info}
        try:
            self.answer(self.request("initialize", hello), START_SECONDS)
            self.start_seconds = time.perf_counter() - self.started
            self._send({"method": "notifications/initialized"})
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def request(self, method: str, params: Mapping[str, Any]) -> int:
        """Send a request and return its id, without waiting for the answer."""
        self._requests += 1
        self._send({"id": self._requests, "method": method, "params": params})
        return self._requests

    def start_call(self, tool: str, arguments: Mapping[str, Any]) -> int:
        """Send the call of a tool and return its id, without waiting for the answer."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def answer(self, request: int, seconds: float = ANSWER_SECONDS) -> dict[str, Any]:
        """Return the answer to a request.

        Raises:
            ServerGone: there is none.
        """
        deadline = time.monotonic() + seconds
        while request not in self._answers:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise ServerGone(f"no answer within {seconds:.0f} s") from None
            if not line:
                self._lines.put(b"")
                raise ServerGone("the server ended")
            with suppress(ValueError):
                message = json.loads(line)
                if "id" in message and "method" not in message:
                    self._answers[message["id"]] = message
        return self._answers.pop(request)

    def call(self, tool: str, **arguments: Any) -> str:
        """Call a tool and return the texts of its answer.

        Raises:
            ServerError: the answer is an error.
            ServerGone: there is no answer.
        """
        return texts(self.answer(self.start_call(tool, arguments)))

    def close(self) -> float:
        """Close the server's input, as clients do; return the seconds until the process is gone."""
        begun = time.perf_counter()
        with suppress(OSError):
            self._stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        return time.perf_counter() - begun

    def _send(self, message: Mapping[str, Any]) -> None:
        try:
            self._stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self._stdin.flush()
        except (OSError, ValueError) as error:
            raise ServerGone(str(error)) from None

    def _read(self, stream: IO[bytes]) -> None:
        with suppress(ValueError, OSError), stream:
            for line in stream:
                self._lines.put(line)
        self._lines.put(b"")


def texts(answer: Mapping[str, Any]) -> str:
    """Return the texts of a tool's answer.

    Raises:
        ServerError: it is an error.
    """
    result = answer.get("result", {})
    found = "\n".join(each["text"] for each in result.get("content", []) if "text" in each)
    if "error" in answer or result.get("isError"):
        raise ServerError(found or str(answer.get("error")))
    return found
