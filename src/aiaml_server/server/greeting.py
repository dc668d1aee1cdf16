"""What the SDK answers to a client's first requests, kept for while it is imported.

The SDK takes ten times as long to import as all the rest of a start, and hosts no longer wait for
it: Codex gives a server one second (https://github.com/openai/codex/pull/31641). What it answers to
a greeting depends on the program, on the toolsets that are served, and on the protocol's version
that a client asks for; neither on the client, nor on its version, nor on what it says that it can.
So a copy of all these answers is kept in the user's cache directory, and the wire answers from it.
The SDK, once it is there, is given the same lines, and its answers are compared and dropped.

A copy carries a sum that only this user can make, and only for this program's files as they are;
without it, it is none. Nor is what a kill or another process has torn.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from io import FileIO
from pathlib import Path
from typing import Any

from aiaml_server import __version__
from aiaml_server.files import check_own, make_own_directory, open_own, read_own, remove_own

log = logging.getLogger(__name__)

NAME = "greeting"
PACKAGE = Path(__file__).parent.parent
MOST = 1 << 20  # bytes of a copy: the answers of all our toolsets in all versions are 300 kB
_COPIES = 8  # kept: of installations, and of sets of toolsets
_LONGEST = 1 << 16  # bytes of a line that is looked at
_SUM = 64  # hexadecimal digits
LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list", "ping")
"""What clients ask for behind the handshake, or without one; nothing stored changes an answer."""
_META = "io.modelcontextprotocol/"
_KEYS = {"jsonrpc", "id", "method", "params"}


class Course:
    """How far a client is in its greeting: with its version, that decides what it is answered."""

    def __init__(self) -> None:
        self._era = ""  # not decided; or "asked" and "ready" behind a handshake, or "modern"
        self._version = ""

    def take(self, line: bytes) -> tuple[str, object] | None:
        """Return where the answer to the next line is found, and the request's id.

        The place is empty where no answer is due. None is a line that is no greeting.
        """
        message = _message(line)
        if not message:
            return None
        method, params = message["method"], message.get("params", {})
        version = params.get("_meta", {}).get(f"{_META}protocolVersion")
        if method == "initialize" and not self._era and not version:
            self._era, self._version = "asked", params["protocolVersion"]
            return f"{method} {self._version}", message["id"]
        if method == "notifications/initialized" and self._era == "asked":
            self._era = "ready"
            return "", None
        if version and self._era in ("", "modern"):
            if method != "server/discover":  # which a client may do before a handshake
                self._era = "modern"
            return f"{method} {version}", message["id"]
        if self._era == "ready" and method in LISTS and not version:
            return f"{method} {self._version}", message["id"]
        return None


def _message(line: bytes) -> dict[str, Any] | None:
    """Read a message that may be of a greeting; None for any other."""
    if len(line) > _LONGEST:
        return None
    with suppress(ValueError, LookupError, TypeError, AttributeError, RecursionError):
        message: dict[str, Any] = json.loads(line)
        is_initialized = message["method"] == "notifications/initialized"
        if (is_initialized and message.keys() <= _KEYS - {"id"}) or _is_request(message):
            return message
    return None


def _is_request(message: dict[str, Any]) -> bool:
    """Say whether this is a request that the SDK answers well, with nothing that is not known."""
    if message.keys() - _KEYS or message["jsonrpc"] != "2.0" or not _is_plain(message["id"]):
        return False
    params = message.get("params", {})
    if message["method"] == "initialize":
        about = params["clientInfo"]
        told = (params["protocolVersion"], about["name"], about["version"])
        return isinstance(params["capabilities"], dict) and all(type(each) is str for each in told)
    if message["method"] not in ("server/discover", *LISTS) or params.keys() - {"_meta"}:
        return False
    meta = params.get("_meta", {})
    needed = {f"{_META}clientInfo", f"{_META}clientCapabilities"}
    return f"{_META}protocolVersion" not in meta or needed <= meta.keys()


def _is_plain(request_id: object) -> bool:
    """Say whether an id is written by the SDK as it is by `begin_of`."""
    if isinstance(request_id, str):
        return request_id.isascii() and request_id.isprintable()
    return type(request_id) is int and abs(request_id) < 1 << 53


class Greeting:
    """One client's first lines, answered from the copy, if there is one.

    `known` has the answers by their places, each from behind the request's id on.
    """

    def __init__(self, directory: Path, secret: bytes, served: Sequence[str]) -> None:
        """Read the copy in a directory of the user's, if there is one.

        Args:
            directory: where it is, or will be.
            secret: what only this user knows, at most 64 bytes.
            served: the names of the toolsets that are served.
        """
        installed = "\n".join([*sorted(_installed()), *served]).encode()
        self._key = hashlib.blake2b(installed, key=secret).digest()
        self.path = directory / f"{NAME}-{hashlib.blake2b(self._key, digest_size=8).hexdigest()}"
        self.known = self._read()
        self._course = Course()
        self._given: dict[object, bytes] = {}  # by the request's id
        self._thread: threading.Thread | None = None

    def answer(self, line: bytes) -> bytes | None:
        """Return the answer to the client's next line, empty for none; None if it is not known."""
        asked = self._course.take(line)
        if asked is None or asked[1] in self._given:
            return None
        place, request_id = asked
        if not place:
            return b""
        if place not in self.known:
            return None
        self._given[request_id] = begin_of(request_id) + self.known[place].encode()
        return self._given[request_id]

    def said(self, request_id: object, line: bytes) -> bool:
        """Compare what the SDK answers; say whether the client has an answer."""
        given = self._given.pop(request_id, None)
        if given not in (None, line) and not self._thread:
            log.warning("%s is deleted: what the SDK answers is not what is in it", self.path)
            self._thread = threading.Thread(target=self._delete, name=NAME, daemon=True)
            self._thread.start()
        return given is not None

    def close(self, seconds: float) -> None:
        """Wait for the disk, so long at most."""
        if self._thread:
            self._thread.join(seconds)

    def keep(self, answers: Mapping[str, str]) -> None:
        """Write the copy, and remove the oldest where there are too many.

        Raises:
            OSError: the disk refuses, or something else stands there.
        """
        text = json.dumps(answers).encode()
        make_own_directory(self.path.parent)
        check_own(self.path.parent, directory=True, strict=True)
        self._delete()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL  # whoever has come first keeps it
        with FileIO(open_own(self.path, flags), "w") as stream:
            stream.write(self._sum(text).encode() + text)
        copies = self.path.parent.glob(f"{NAME}*")
        by_age = sorted(copies, key=lambda path: path.lstat().st_mtime, reverse=True)
        for path in by_age[_COPIES:]:
            if check_own(path):
                remove_own(path)

    def _read(self) -> dict[str, str]:
        with suppress(OSError, ValueError, RecursionError):
            if check_own(self.path.parent, directory=True, strict=True):
                check_own(self.path, strict=True)
                data = read_own(self.path, MOST)
                if data[:_SUM].decode() == self._sum(data[_SUM:]):
                    return _answers(json.loads(data[_SUM:]))
        return {}

    def _delete(self) -> None:
        with suppress(OSError):
            if check_own(self.path):
                remove_own(self.path)

    def _sum(self, data: bytes) -> str:
        return hashlib.blake2b(data, key=self._key, digest_size=_SUM // 2).hexdigest()


def begin_of(request_id: object) -> bytes:
    """Return how an answer begins, as the SDK writes it, its id included."""
    return f'{{"jsonrpc":"2.0","id":{json.dumps(request_id, ensure_ascii=False)}'.encode()


def _answers(found: object) -> dict[str, str]:
    """Take what a copy holds for answers, if it is such.

    Raises:
        ValueError: it is something else.
    """
    pairs = found.items() if isinstance(found, dict) else [(None, None)]
    if not all(isinstance(each, str) for pair in pairs for each in pair):
        raise ValueError("no answers by their places")
    return dict(pairs)


def _installed() -> Iterator[str]:
    """Yield what tells this installation from all others: versions, and its files' stamps."""
    yield f"{__version__} {sys.version}"
    sdk = find_spec("mcp")
    for place in (sdk and sdk.submodule_search_locations) or ():
        yield from (each.name for each in Path(place).parent.glob("*-info"))
    waiting = [str(PACKAGE)]
    while waiting:  # with pathlib, this took a fifth of the way to the first answer
        with os.scandir(waiting.pop()) as entries:
            for each in entries:
                if each.is_dir(follow_symlinks=False):
                    waiting.append(each.path)
                elif each.name.endswith(".py"):
                    status = os.stat(each.path)  # noqa: PTH116 (of Windows, the entry's has no inode)
                    stamps = status.st_mtime_ns, status.st_ctime_ns
                    yield f"{each.path} {status.st_ino} {stamps} {status.st_size}"
