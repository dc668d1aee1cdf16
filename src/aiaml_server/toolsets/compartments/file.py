"""The JSON file: read when it has changed, written whole, by one process at a time.

    {"format": 1,
     "runs": {"<run>": {"run": [entry, …], "plan": [entry, …]}},
     "sessions": {"<session>": {"session": [entry, …], "plan": [entry, …]}}}

A run is known to live while its process holds the lock on a file of its own, which the system
releases when the process dies. So what a killed run left is cleared by whoever opens next, and
nothing of a living one.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from aiaml_server.errors import MalformedFile
from aiaml_server.files import Lock, make_directory, read_regular, replace_atomic
from aiaml_server.timestamps import now_micros
from aiaml_server.toolsets.compartments.entries import COMPARTMENTS, Entry
from aiaml_server.toolsets.compartments.failures import Busy, DiskError
from aiaml_server.toolsets.failures import disk_error

log = logging.getLogger(__name__)

FORMAT = 1
MAX_FILE = 5 * 1024 * 1024  # bytes; it is read whole, and written whole by each change
LOCK_SECONDS = 10.0
_BEGINS = re.compile(rb'(?:\xef\xbb\xbf)?\{\s*"format"\s*:\s*[0-9]')  # as `Content.data` does
_SAME = 1000  # entries of one id in a compartment, as a person may write them
_RUN = re.compile(r"[0-9a-f]{16}")
Stamp = tuple[int, int, int, int]
Place = tuple[str, str, str]
"""A compartment: "runs" or "sessions", whose, and "run", "session" or "plan"."""


class Content:
    """What the file holds. Keys that we do not know are kept."""

    def __init__(self, value: dict[str, Any]) -> None:
        """Read it.

        Raises:
            ValueError: it is not what we have written.
        """
        self.value = value
        self.entries: dict[Place, dict[str, Entry]] = {}
        for kind in ("runs", "sessions"):
            for owner, parts in self._owners(kind).items():
                for part, listed in parts.items():
                    if part in COMPARTMENTS:
                        entries = self.entries[kind, owner, part] = {}
                        times = Counter[str]()
                        for entry in map(Entry.from_json, listed):
                            name = entry.id
                            while name in entries:  # written by hand
                                times[entry.id] += 1
                                if times[entry.id] > _SAME:
                                    raise ValueError(f"an id stands there more than {_SAME} times")
                                name = f"{entry.id}-{times[entry.id] + 1}"
                            entries[name] = entry if name == entry.id else entry.changed(id=name)

    def _owners(self, kind: str) -> dict[str, Any]:
        owners: dict[str, Any] = self.value.setdefault(kind, {})
        if not isinstance(owners, dict) or not all(isinstance(e, dict) for e in owners.values()):
            raise ValueError(f"{kind!r} must be an object of objects")
        if kind == "runs" and not all(map(_RUN.fullmatch, owners)):  # they are parts of file names
            raise ValueError("'runs' must be named by 16 hexadecimal digits")
        return owners

    def ids(self) -> set[str]:
        """Return every id in the file."""
        return {entry for entries in self.entries.values() for entry in entries}

    def put(self, place: Place, entries: dict[str, Entry]) -> None:
        """Have other entries in a compartment."""
        kind, owner, name = place
        self.entries[place] = entries
        parts = self.value[kind].setdefault(owner, {})
        parts[name] = [{**each.extra, **each.as_json()} for each in entries.values()]

    def forget_expired(self) -> None:
        """Forget the entries whose time is over."""
        now = now_micros()
        for place, entries in self.entries.items():
            left = {name: each for name, each in entries.items() if not each.has_expired(now)}
            if len(left) < len(entries):
                self.put(place, left)

    def remove_run(self, run: str) -> None:
        """Forget a run that has ended."""
        self.value["runs"].pop(run, None)
        for place in [each for each in self.entries if each[:2] == ("runs", run)]:
            del self.entries[place]

    def data(self) -> bytes:
        """Return the file's bytes: a line for each entry, for people and for `git diff`."""
        return f"{_lines(self.value)}\n".encode("utf-8", "replace")


def _lines(value: Any, depth: int = 0) -> str:
    """Return JSON with a line for each entry (`json` would indent everything, and slowly)."""
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(_encode(each) for each in value) + "]"
    if isinstance(value, dict) and value and depth < 4:
        pairs = (f"{_encode(name)}: {_lines(each, depth + 1)}" for name, each in value.items())
        return "{" + f",\n{' ' * (depth + 1)}".join(pairs) + "}"
    return _encode(value)


_encode = json.JSONEncoder(ensure_ascii=False).encode


class Damaged(ValueError):  # noqa: N818 (it is the file's state)
    """A file of ours that holds something else than we have written."""


def load(path: Path) -> Content:
    """Read a file, and change nothing.

    Raises:
        Damaged: it is empty, or begins as ours do and is not what we have written.
        DiskError: it is another program's, of a later version, or no file that may be read.
        OSError: it is not there, or cannot be read.
    """
    try:
        data = read_regular(str(path), MAX_FILE)
    except MalformedFile as error:
        raise DiskError(f"{path}: {error}") from error
    try:
        value = json.loads(data)
        if not isinstance(value, dict) or type(value.get("format")) is not int:
            raise Damaged("it has no format version")
        if value["format"] > FORMAT:
            raise DiskError(
                f"{path} is of format {value['format']}, and this program knows {FORMAT};"
                " a later version of it reads the file"
            )
        return Content(value)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        why = str(error).partition("; use sys.")[0]  # what Python tells its programmers
        if data and not _BEGINS.match(data):
            raise DiskError(
                f"{path} is no file of compartments ({why}); move it away, or name another"
            ) from error
        raise Damaged(why) from error


class File:
    """The file at `path`, for one run. Every method is safe to call from any thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notices: list[str] = []  # what a person should be told, once
        self._lock = Lock(self.path.with_name(f"{self.path.name}.lock"))
        self._thread = threading.RLock()
        self._content = Content({"format": FORMAT})
        self._stamp: Stamp | None = None
        self._held = ExitStack()
        self._holding = False

    # --- reading ----------------------------------------------------------------------------------

    def read(self) -> Content:
        """Return what the file holds; it is read only where its stamp has changed.

        Raises:
            DiskError: it cannot be read, or is no file of ours, or of a later version.
        """
        with self._thread:
            try:
                stamp = self._stamp_now()
                if stamp is None:
                    if self._stamp is not None:
                        self.notices.append(f"{self.path} is gone; it is begun anew")
                    self._content, self._stamp = Content({"format": FORMAT}), None
                elif stamp != self._stamp:
                    self._content = self._load()
                    self._stamp = self._stamp_now() and stamp  # one that is damaged is set aside
            except OSError as error:
                raise disk_error(error.filename or self.path, error) from error
            return self._content

    def _stamp_now(self) -> Stamp | None:
        try:
            status = os.stat(self.path)  # noqa: PTH116
        except FileNotFoundError:
            return None
        return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)

    def _load(self, *, alone: bool = False) -> Content:
        try:
            return load(self.path)
        except FileNotFoundError:
            return Content({"format": FORMAT})
        except Damaged as error:
            if alone:
                return self._set_aside(error)
            with self._alone():  # another process may have begun it anew meanwhile
                return self._load(alone=True)

    def _set_aside(self, why: Exception) -> Content:
        """Give a damaged file another name, under which it stays."""
        number = 1
        while (aside := self.path.with_name(f"{self.path.name}.damaged-{number}")).exists():
            number += 1
        self.path.rename(aside)
        notice = f"{self.path} was damaged ({why}); it is kept as {aside.name}, and begun anew"
        self.notices.append(notice)
        log.warning("%s", notice)
        return Content({"format": FORMAT})

    # --- writing ----------------------------------------------------------------------------------

    @contextmanager
    def changing(self) -> Iterator[Content]:
        """Change what the file holds, alone; it is written whole at the end of the `with`.

        Where the `with` is left by an exception, nothing is.

        Raises:
            Busy: another process writes for too long.
            DiskError: the disk refused, or the file is none of ours; it is as it was.
        """
        with self._thread:
            try:
                self.read()  # what is refused is refused before a lock is made beside it
                with self._alone():
                    content = self.read()
                    try:
                        yield content
                        content.forget_expired()
                        replace_atomic(self.path, self._fitting(content))
                    except BaseException:
                        self._stamp = None  # what is in memory is not what is on disk
                        raise
                    self._stamp = self._stamp_now()
            except OSError as error:
                raise disk_error(error.filename or self.path, error) from error

    def _fitting(self, content: Content) -> bytes:
        """Return the file's bytes.

        Raises:
            DiskError: they are more than are read.
        """
        data = content.data()
        if len(data) > MAX_FILE:
            raise DiskError(
                f"{self.path} would have {len(data):,} bytes, and at most {MAX_FILE:,} are read; "
                "clear what is no longer needed first"
            )
        return data

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Be the only process that writes; inside of itself it does nothing more.

        A directory that is missing is made.

        Raises:
            Busy: another process writes for too long.
            DiskError: there can be no lock.
            OSError: there can be no directory.
        """
        if self._holding:
            yield
            return
        if not self.path.parent.is_dir():
            make_directory(self.path.parent)
        with self._lock.held(LOCK_SECONDS) as hold:
            if hold.problem:
                raise disk_error(hold.problem.filename or self.path, hold.problem) from hold.problem
            if not hold.acquired:
                raise Busy(f"another process is writing {self.path}; try again")
            self._holding = True
            try:
                yield
            finally:
                self._holding = False

    # --- runs -------------------------------------------------------------------------------------

    def open_run(self, run: str) -> None:
        """Begin a run, and clear what those have left whose process is gone.

        Raises:
            DiskError: the disk refused, or the file is none of ours, or of a later version.
        """
        with self._thread:
            try:
                self.read()  # what is refused is refused before a lock is made beside it
                with self._alone():  # so that nobody takes the new run for one that has ended
                    self._hold_run(run)
                    self._clear_ended(run)
            except Busy:  # whoever opens next clears
                self._hold_run(run)
            except BaseException as error:
                self._end_run(run)
                if isinstance(error, OSError):
                    raise disk_error(error.filename or self.path, error) from error
                raise

    def _hold_run(self, run: str) -> None:
        hold = self._held.enter_context(Lock(self._run_file(run)).held(0))
        if not hold.acquired:
            log.warning("%s cannot be locked; what a killed run leaves stays", self._run_file(run))

    def _clear_ended(self, run: str) -> None:
        names = os.listdir(self.path.parent)  # noqa: PTH208
        prefix = self._run_file("").name
        runs = [each.removeprefix(prefix) for each in names if each.startswith(prefix)]
        others = [each for each in runs if _RUN.fullmatch(each) and each != run]
        ended = [each for each in others if self._is_gone(each)]
        if not self.read().value["runs"].keys().isdisjoint(ended):
            with self.changing() as content:
                for each in ended:
                    content.remove_run(each)
        for each in ended:
            with suppress(OSError):
                self._run_file(each).unlink()

    def close_run(self, run: str) -> None:
        """End a run: nothing of it is left."""
        try:
            if run in self.read().value["runs"]:
                with self.changing() as content:
                    content.remove_run(run)
        except BaseException:
            self._held.close()  # the file stays, so that whoever opens next sees that the run ended
            raise
        self._end_run(run)

    def _end_run(self, run: str) -> None:
        self._held.close()
        with suppress(OSError):
            self._run_file(run).unlink()

    def _run_file(self, run: str) -> Path:
        return self.path.with_name(f"{self.path.name}.run-{run}")

    def _is_gone(self, run: str) -> bool:
        """Say whether a run's process is provably gone: its lock can be had."""
        with Lock(self._run_file(run)).held(0) as hold:
            return hold.acquired
