"""Real processes: an MCP server behind the smallest client, and a bank without a server."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from typing_extensions import Self

from printed import inherited

PYTHON = os.environ.get("TEST_PYTHON", sys.executable)
"""Whose installation of the program is tested; `test_packaging.py` names another."""
SERVER = (PYTHON, "-m", "aiaml_server")
BANK = (sys.executable, str(Path(__file__).with_name("bank_process.py")))
PROTOCOL = "2025-11-25"
SECONDS = 60.0  # how long any answer may take on a busy machine before a test gives up
NOTE = {"agent": "claude", "user": "marco", "topics": ["tests"]}
"""What `remember` wants besides the content."""


class Client:
    """A client and the server that it started. Leaving the `with` ends both.

    Attributes:
        process: the command's process: the server itself when `command` is not a wrapper.
    """

    def __init__(
        self,
        base: Path,
        *,
        command: Sequence[str] = SERVER,
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        """Start `command` on the memories of `base`, without sync, and shake hands.

        Of the caller's environment, no `AIAML_*` variable reaches the server; `environ` is added.
        `cwd` is the directory to start in, where it is another.
        """
        settings = {"AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "false"}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**inherited(), **settings, **(environ or {})},
            cwd=cwd,
        )
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._log: list[bytes] = []
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stdout, self._lines.put)),
            threading.Thread(target=self._read, args=(self.process.stderr, self._log.append)),
        ]
        for reader in self._readers:
            reader.daemon = True
            reader.start()
        self._answers: dict[int, dict[str, Any]] = {}
        self._notifications: list[dict[str, Any]] = []  # not yet returned by `notification`
        self._next_id = 0
        try:
            self._shake_hands()
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request and return its id, without waiting for the answer."""
        self._next_id += 1
        self._send({"id": self._next_id, "method": method, "params": params or {}})
        return self._next_id

    def start(self, tool: str, **arguments: Any) -> int:
        """Send a call of `tool` and return its id, without waiting for the answer."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def answer(self, request_id: int, seconds: float = SECONDS) -> dict[str, Any]:
        """Return the whole answer to a request; other answers are stored for later.

        Raises:
            TimeoutError: `seconds` passed without a line from the server.
            ConnectionError: the server is gone.
        """
        while request_id not in self._answers:
            try:
                line = self._lines.get(timeout=seconds)
            except queue.Empty:
                raise TimeoutError(f"no answer within {seconds} s; {self.log()}") from None
            if not line:
                self._lines.put(b"")  # for whoever asks next
                raise ConnectionError(f"the server is gone; {self.log()}")
            self._note(line)
        return self._answers.pop(request_id)

    def value(self, request_id: int, seconds: float = SECONDS) -> Any:
        """Return what the tool answered: the JSON value in its block of text."""
        return json.loads(self.answer(request_id, seconds)["result"]["content"][0]["text"])

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool and return the value that it answers."""
        return self.value(self.start(tool, **arguments))

    def remember(self, content: str) -> Any:
        """Remember `content` under the usual names."""
        return self.call("remember", **NOTE, content=content)

    def start_remember(self, content: str) -> int:
        """Send what `remember` sends, without waiting for the answer."""
        return self.start("remember", **NOTE, content=content)

    def notification(self, method: str) -> dict[str, Any]:
        """Return the next notification of a kind; others are stored for later."""
        while not (matching := [each for each in self._notifications if each["method"] == method]):
            self._note(self._lines.get(timeout=SECONDS))
        self._notifications.remove(matching[0])
        return matching[0]

    def log(self) -> str:
        """Return what the server has written to its standard error so far."""
        return b"".join(self._log).decode(errors="replace")

    def kill(self) -> dict[int, dict[str, Any]]:
        """Kill the server; return, by id, the answers that it had written and nobody has taken."""
        self.process.kill()
        self.process.wait()
        self._join()
        while line := self._lines.get():
            if line.endswith(b"\n"):
                self._note(line)
        return self._answers

    def close(self) -> int:
        """Leave, as clients do, by closing the server's input; return its exit code."""
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self.process.stdin
        assert self.process.stdout
        assert self.process.stderr
        with suppress(OSError):  # a server that was killed took less than was sent
            self.process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(SECONDS if kind is None else 0)
        self.process.kill()
        self.process.wait()
        self._join()
        self.process.stdout.close()
        self.process.stderr.close()

    def _shake_hands(self) -> None:
        capabilities = {"protocolVersion": PROTOCOL, "capabilities": {}}
        about = {"clientInfo": {"name": "tests", "version": "1"}}
        self.answer(self.request("initialize", {**capabilities, **about}))
        self._send({"method": "notifications/initialized"})

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin
        line = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        self.process.stdin.write(line)
        self.process.stdin.flush()

    @staticmethod
    def _read(stream: IO[bytes], take: Callable[[bytes], None]) -> None:
        for line in stream:
            take(line)
        take(b"")

    def _join(self) -> None:
        for reader in self._readers:
            reader.join(SECONDS)

    def _note(self, line: bytes) -> None:
        message = json.loads(line)
        if "method" in message:
            self._notifications.append(message)
        else:
            self._answers[message["id"]] = message


@contextmanager
def bank_process(*words: str, umask: int = -1) -> Iterator[subprocess.Popen[str]]:
    """Start a bank in a process of its own: see `bank_process.py`."""
    command = [*BANK, *words]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True, umask=umask) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def ask(bank: subprocess.Popen[str], base: Path, content: str) -> dict[str, str]:
    """Let the process remember; empty when it died."""
    assert bank.stdin
    assert bank.stdout
    print(json.dumps([str(base), content]), file=bank.stdin, flush=True)
    line = bank.stdout.readline()
    return dict(json.loads(line)) if line else {}
