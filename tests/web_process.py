"""A real `aiaml web`, and a client that sends exactly the given bytes."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from typing_extensions import Self

from printed import inherited

SECONDS = 60.0
HEADER = "X-AIAML-Token"


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        """Return the body, which is JSON."""
        assert self.headers["content-type"] == "application/json", self.body
        return json.loads(self.body)


class Web:
    """`aiaml web` on a directory of memories. Leaving the `with` ends it.

    Attributes:
        address: the address that it printed.
        port: its port.
        token: its token.
    """

    def __init__(
        self, base: Path, *options: str, before: Sequence[str] = (), **environ: str
    ) -> None:
        """Start it, without a browser and without sync, and read the address.

        Args:
            base: the directory.
            options: further words of the command line.
            before: words in front of it.
            environ: variables; with BROWSER among them, that one is opened; without a home, no
                other directory is known.
        """
        nobody = str(base.parent / "nobody")
        settings = {"AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "false"}
        settings |= {"HOME": nobody, "USERPROFILE": nobody}
        group = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
        without = [] if "BROWSER" in environ else ["--no-browser"]
        self.process = subprocess.Popen(
            [*before, sys.executable, "-m", "aiaml_server", "web", *without, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**inherited(), **settings, "PYTHONFAULTHANDLER": "1", **environ},
            creationflags=group,
        )
        self._log: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        assert self.process.stdout
        self.address = self.process.stdout.readline().strip()
        page, _, self.token = self.address.partition("#token=")
        self.port = int(page.rstrip("/").rpartition(":")[2])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self, number: int = getattr(signal, "CTRL_BREAK_EVENT", signal.SIGINT)) -> int:
        """Send a signal, and return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        """Wait for the end; return the exit code. If it hangs, its log says where."""
        try:
            return self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            self._reader.join()
            raise AssertionError(self.log) from None
        finally:
            self.process.kill()
            self._reader.join()
            assert self.process.stdout and self.process.stderr
            self.process.stdout.close()
            self.process.stderr.close()

    @property
    def log(self) -> str:
        """Return what it has printed on stderr."""
        return "".join(self._log)

    def _read(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self._log.append(line)

    def ask(
        self,
        path: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> Answer:
        """Send a request with the token; headers may be changed, and left out by None.

        Args:
            path: where, already quoted.
            method: any word.
            body: what is sent.
            headers: those that differ from the page's own.
        """
        wanted: dict[str, str | None] = {
            "Host": f"127.0.0.1:{self.port}",
            HEADER: self.token,
            **(headers or {}),
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            for name, value in wanted.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """Return the JSON that is answered with 200."""
        answer = self.ask(path)
        assert answer.status == 200, answer
        return answer.json()


def path_of(name: str) -> str:
    """Return the path of one memory."""
    return f"/api/memories/{quote(name, safe='')}"
