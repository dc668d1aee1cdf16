"""The JSON file of all sessions: read when it has changed, and written whole.

{"format": 1,
"sessions": {"<name>": {"session": [entry, …], "plan": [entry, …]}}}
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiaml_server.errors import Busy, DiskError, InvalidInput, MalformedFile, os_reason
from aiaml_server.files import hold_lock, make_directory, read_regular, replace_atomic
from aiaml_server.toolsets.compartments.entry import Entry, make_entry
from aiaml_server.toolsets.compartments.settings import FILE

log = logging.getLogger(__name__)

FORMAT = 1
MAX_FILE_BYTES = 5 * 1024 * 1024
LOCK_SECONDS = 10.0
_BEGINNING = b'{"format":'

Entries = dict[str, Entry]
Sessions = dict[str, dict[str, Entries]]
"""By the name of a session and of a compartment, the entries by id."""


class MemoryFile:
    """The file at `path`. Every method may be called from any thread.

    Attributes:
        path: of the file.
        notices: messages for the person, such as that the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notices: list[str] = []
        self._lock = Path(f"{path}.lock")
        self._thread_lock = threading.RLock()
        self._value: dict[str, Any] = {}
        self._sessions: Sessions = {}
        self._stamp: tuple[int, int, int] | None = None

    def read(self) -> Sessions:
        """Return what the file holds; it is read only if it has changed.

        Raises:
            DiskError: it cannot be read, or another program or a later version wrote it.
        """
        with self._thread_lock:
            try:
                stamp = self._current_stamp()
                if stamp is None:
                    if self._stamp is not None:
                        self.notices.append(f"{self.path} was removed; a new file is begun")
                    self._value, self._sessions = {}, {}
                elif stamp != self._stamp:
                    self._load()
                self._stamp = stamp
            except OSError as error:
                raise self._unusable(os_reason(error)) from error
            return self._sessions

    @contextmanager
    def change(self) -> Iterator[Sessions]:
        """Yield what the file holds, to be changed; it is written whole at the end.

        If the body raises an error, nothing is written.

        Raises:
            Busy: another process held the lock for `LOCK_SECONDS`.
            DiskError: the disk refused, or the file cannot be used; it is unchanged.
        """
        with self._thread_lock:
            try:
                if not self.path.parent.is_dir():
                    make_directory(self.path.parent)
                with hold_lock(self._lock, LOCK_SECONDS) as hold:
                    if hold.problem:
                        raise hold.problem
                    if not hold.acquired:
                        raise Busy(f"another process is writing {self.path}; try again")
                    self._set_aside_if_damaged()
                    sessions = self.read()
                    try:
                        yield sessions
                        replace_atomic(self.path, self._to_bytes(), 0o600)
                    finally:
                        self._stamp = None  # read it again: memory may differ from the disk
            except OSError as error:
                raise self._unusable(os_reason(error)) from error

    def _current_stamp(self) -> tuple[int, int, int] | None:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _load(self) -> None:
        """Read the file; a damaged one counts as empty, with a notice, until it is set aside.

        Raises:
            DiskError: another program or a later version wrote it, or an entry is not valid.
        """
        try:
            value = self._parse()
        except ValueError as error:
            value = {}
            self.notices.append(
                f"{self.path} is damaged ({error}) and counts as empty; the next change keeps it"
                " under another name"
            )
        if value.get("format", FORMAT) != FORMAT:
            raise DiskError(
                f"{self.path} has format {value['format']!r}, and this program reads {FORMAT}; "
                "use a later version of it"
            )
        self._value = value
        self._sessions = {}
        try:
            for name, parts in value.get("sessions", {}).items():
                self._sessions[name] = {part: _entries(rows, part) for part, rows in parts.items()}
        except InvalidInput as error:
            raise DiskError(f"{self.path}, session {name!r}, {error}; correct it") from error
        except (AttributeError, TypeError) as error:
            raise DiskError(
                f"{self.path} must hold an object of sessions, each with lists of entries;"
                " correct it"
            ) from error

    def _parse(self) -> dict[str, Any]:
        """Return the JSON object of the file.

        Raises:
            ValueError: the file is ours and damaged.
            DiskError: it is another program's.
        """
        try:
            data = read_regular(str(self.path), MAX_FILE_BYTES)
            value = json.loads(data)
        except MalformedFile as error:
            raise self._unusable(str(error)) from error
        except (ValueError, RecursionError) as error:
            if data and not data.startswith(_BEGINNING):
                raise self._foreign() from error
            raise ValueError(str(error)) from error
        if not isinstance(value, dict) or "format" not in value:
            raise self._foreign()
        return value

    def _unusable(self, reason: str) -> DiskError:
        return DiskError(
            f"{self.path}: {reason}. Free some space, give this user access, or name another file"
            f" in {FILE.name}"
        )

    def _foreign(self) -> DiskError:
        return DiskError(
            f"{self.path} is not a file of compartments, or its beginning is damaged; it is left as"
            f" it is. Move it away, put a copy in its place, or name another file in {FILE.name}"
        )

    def _set_aside_if_damaged(self) -> None:
        """Rename a damaged file, so that a new one can be begun and nothing is lost."""
        try:
            self._parse()
        except FileNotFoundError:
            return
        except ValueError as error:
            number = 1
            while (aside := self.path.with_name(f"{self.path.name}.damaged-{number}")).exists():
                number += 1
            self.path.rename(aside)
            self._stamp = None
            notice = f"{self.path} was damaged ({error}); it is kept as {aside.name}"
            self.notices.append(notice)
            log.warning("%s", notice)

    def _to_bytes(self) -> bytes:
        """Return the file's content, with a line for each entry.

        Raises:
            DiskError: it is larger than what is read.
        """
        sessions = []
        for name, parts in self._sessions.items():
            lists = []
            for part, entries in parts.items():
                rows = ",\n".join(_encode(entry.to_json()) for entry in entries.values())
                lists.append(f"{_encode(part)}: [\n{rows}]" if rows else f"{_encode(part)}: []")
            sessions.append(f"{_encode(name)}: {{{', '.join(lists)}}}")
        other = {key: value for key, value in self._value.items() if key != "sessions"}
        head = _encode({"format": FORMAT, **other})[:-1]
        text = f'{head},\n"sessions": {{{", ".join(sessions)}}}}}\n'
        data = text.encode()
        if len(data) > MAX_FILE_BYTES:
            raise DiskError(
                f"{self.path} would have {len(data):,} bytes, and the limit is "
                f"{MAX_FILE_BYTES:,}; clear what is no longer needed"
            )
        return data


def _entries(rows: list[Any], compartment: str) -> Entries:
    """Return the entries of a list by id; of two with one id, the second gets another.

    Raises:
        InvalidInput: an entry is not valid; the error names it and its field.
        TypeError: it is not a list of objects.
    """
    entries: Entries = {}
    for number, row in enumerate(rows, 1):
        try:
            entry = make_entry(**row)
        except InvalidInput as error:
            raise InvalidInput(
                f"{compartment}, entry {number}, {error.field}", error.reason
            ) from None
        while entry.id in entries:
            entry = entry.model_copy(update={"id": f"{entry.id}-2"})
        entries[entry.id] = entry
    return entries


def _encode(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
