"""What the SDK answered to a client's first lines at an earlier start, for while it is imported.

The SDK takes ten times as long to import as all the rest of a start, and what it answers to a
greeting depends on the program alone. Clients send the very same lines each time. So a copy of the
answers is kept in the user's cache directory, and the wire answers from it; the SDK, once it is
there, is given the same lines, and its answers are compared and dropped. Nothing here knows the
protocol.

The copy carries a sum that only this user can make, and only for this program's files as they are;
without it, it is none. Nor is what a kill or another server has torn.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from io import FileIO
from pathlib import Path

from aiaml_server import __version__
from aiaml_server.files import check_own, open_own, own_directory, read_own, remove_own

log = logging.getLogger(__name__)

NAME = "greeting"
MOST = 1 << 18  # bytes of a copy: the greetings of ten clients
_SUM = 64  # hexadecimal digits
METHODS = {
    "initialize", "notifications/initialized", "server/discover", "ping",
    "tools/list", "resources/list", "resources/templates/list", "prompts/list",
}  # fmt: skip
"""What a greeting consists of: it changes nothing, and nothing stored changes its answers."""


class Greeting:
    """One client's first lines: answered from the copy, if there is one, and compared or noted.

    `known` has the answers by the sum of all lines so far; an empty one is none.
    """

    def __init__(self, directory: Path, secret: bytes, served: object) -> None:
        """Read the copy in a directory of the user's, if there is one.

        Args:
            directory: where it is, or will be.
            secret: what only this user knows, at most 64 bytes.
            served: what is served, and how, as far as the answers depend on it.
        """
        self._path = directory / NAME
        installed = "\n".join(sorted(_installed())).encode()
        self._key = hashlib.blake2b(installed, key=secret).digest()
        self.known = self._read()
        self._heard = self._asked = self._sum(repr(served).encode())  # of all lines so far
        self._given: dict[str, str] = {}
        self._open: dict[object, str] = {}  # by the request's id
        self._noted: dict[str, str] = {}
        self._over = self._done = False
        self._thread: threading.Thread | None = None

    def answer(self, line: bytes) -> bytes | None:
        """Return the answer to the client's next line, empty for none; None if it is not known."""
        self._heard = self._sum(self._heard.encode() + line)
        if (answer := self.known.get(self._heard)) is None:
            return None
        self._given[self._heard] = answer
        return answer.encode()

    def read(self, line: bytes, method: str, request_id: object = None) -> None:
        """Note what the SDK reads: every line, in order; an id of None is no request."""
        self._over = self._over or method not in METHODS or request_id in self._open
        if self._over:
            self._keep()
            return
        self._asked = self._sum(self._asked.encode() + line)
        if request_id is None:
            self._noted[self._asked] = ""
        else:
            self._open[request_id] = self._asked

    def said(self, request_id: object, line: bytes, *, lasting: bool) -> bool:
        """Note what the SDK answers, if that is lasting; say whether the client has an answer."""
        place = self._open.pop(request_id, None)
        if place is None:
            return False
        answer, given = line.decode(), self._given.get(place)
        if lasting:
            self._noted[place] = answer
        if given is not None and given != answer and not self._done:
            log.warning("%s is deleted: what the SDK answers is not what is in it", self._path)
            self._begin(self._delete)
        elif self._over:
            self._keep()
        return given is not None

    def close(self, seconds: float) -> None:
        """Keep what was noted, if that has not been done yet; wait for the disk so long at most."""
        self._open.clear()
        self._keep()
        if self._thread:
            self._thread.join(seconds)

    def _keep(self) -> None:
        if not self._done and not self._open and self._noted.keys() - self.known:
            self._begin(self._write)

    def _begin(self, what: Callable[[], None]) -> None:
        """Do something in a thread: nobody waits for a slow disk."""
        self._done = True
        self._thread = threading.Thread(target=what, name=NAME, daemon=True)
        self._thread.start()

    def _read(self) -> dict[str, str]:
        with suppress(OSError, ValueError, RecursionError):
            if check_own(self._path.parent, directory=True, alone=True):
                check_own(self._path, alone=True)
                data = read_own(self._path, MOST)
                if data[:_SUM].decode() == self._sum(data[_SUM:]):
                    return _answers(json.loads(data[_SUM:]))
        return {}

    def _write(self) -> None:
        text = json.dumps({**self.known, **self._noted}).encode()
        if len(text) > MOST // 2:
            text = json.dumps(self._noted).encode()
        with suppress(OSError):
            own_directory(self._path.parent)
            check_own(self._path.parent, directory=True, alone=True)
            self._delete()
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL  # whoever has come first keeps it
            with FileIO(open_own(self._path, flags), "w") as stream:
                stream.write(self._sum(text).encode() + text)

    def _delete(self) -> None:
        with suppress(OSError):
            if check_own(self._path):
                remove_own(self._path)

    def _sum(self, data: bytes) -> str:
        return hashlib.blake2b(data, key=self._key, digest_size=_SUM // 2).hexdigest()


def _answers(found: object) -> dict[str, str]:
    """Take what a copy holds for answers, if it is such.

    Raises:
        ValueError: it is something else.
    """
    pairs = found.items() if isinstance(found, dict) else [(None, None)]
    if not all(isinstance(each, str) for pair in pairs for each in pair):
        raise ValueError("no answers by their sums")
    return dict(pairs)


def _installed() -> Iterator[str]:
    """Yield what tells this installation from all others: versions, and its files' stamps."""
    yield f"{__version__} {sys.version}"
    sdk = find_spec("mcp")
    for place in (sdk and sdk.submodule_search_locations) or ():
        yield from (each.name for each in Path(place).parent.glob("*-info"))
    for path in Path(__file__).parent.rglob("*.py"):
        status = path.stat()
        yield f"{path} {status.st_ino} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_size}"
