"""What the disk held when it was last in sync: the base of the three-way comparison.

A file that the record has and the disk has not was deleted, but only if the record is about this
very directory. A file that an unmounted disk, a broken copy or an old backup lacks does not count
as deleted. Losing the record does no harm: then nothing counts as deleted, and every file is read
once.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from aiaml_server.errors import MalformedFile
from aiaml_server.files import read_regular, replace_atomic
from aiaml_server.sync.repository import Repository

MARKER = ".aiaml-directory"
_MARKER_TEXT = b"AIAML recognises this directory by this file. Deleting it does no harm.\n%s\n"
RACY_NS = 2_500_000_000  # a change this soon after another may not show in the time stamps
_NOTE = "last-sync.json"


class Stamp(NamedTuple):
    """What changes when a file changes. Times are in nanoseconds since 1970."""

    modified: int
    changed: int
    size: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        """Take the stamp from what the system says of a file."""
        return cls(status.st_mtime_ns, status.st_ctime_ns, status.st_size)


class FileState(NamedTuple):
    """The version that a file had, and its stamp; None if a later change might not show in it."""

    name: str
    stamp: Stamp | None


@dataclass
class LastSync:
    """The record of one memory directory.

    Attributes:
        directory: the identity of the directory of files.
        files: what each file was, by path.
        waiting: deletions that wait for confirmation.
        person_index: when the person's own git had last written its index.
    """

    directory: str = ""
    files: dict[str, FileState] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    person_index: int = 0

    @classmethod
    def load(cls, repository: Repository, directory: Path) -> LastSync:
        """Read the record; nothing is known of the files where this is another directory."""
        try:
            values = json.loads(repository.read_note(_NOTE))
            for path, (name, stamp) in values["files"].items():
                values["files"][path] = FileState(name, Stamp(*stamp) if stamp else None)
            record = cls(**values)
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls()
        if record.directory != directory_identity(directory):
            return cls(person_index=record.person_index)
        return record

    def save(self, repository: Repository) -> None:
        """Write the record, unless it is written already."""
        data = json.dumps(vars(self), sort_keys=True, separators=(",", ":")).encode()
        if repository.read_note(_NOTE) != data:
            replace_atomic(repository.notes / _NOTE, data)


def mark_directory(directory: Path) -> str:
    """Mark a directory of files, so that it is recognised; return its identity."""
    if identity := directory_identity(directory):
        return identity
    replace_atomic(directory / MARKER, _MARKER_TEXT % os.urandom(16).hex().encode())
    return directory_identity(directory)


def directory_identity(directory: Path) -> str:
    """Return what tells a directory from every other one, also from a copy; empty if unmarked.

    A copy of the marker has another time of change, which no program can set.
    """
    path = directory / MARKER
    try:
        text = read_regular(str(path), 1024)
        return f"{text.split()[-1].decode()} {path.lstat().st_ctime_ns}"
    except (OSError, MalformedFile, ValueError, IndexError):
        return ""


def settled(stamp: Stamp) -> Stamp | None:
    """Return a stamp if every later change is sure to give another one, else None."""
    newest = max(stamp.modified, stamp.changed)
    return stamp if time.time_ns() - newest > RACY_NS else None
