"""The files in the base directory, as git sees them: read, written and removed without a loss."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast

from aiaml_server.errors import MalformedFile, TooLarge
from aiaml_server.files import (
    make_directory,
    read_regular,
    rename_over,
    sync_directory,
    write_temporary,
)
from aiaml_server.storage.store import MAX_FILE, NEVER, UNREADABLE, Stamp
from aiaml_server.sync.status import CUT, MOVE, Problem

_OWN = "see that the file belongs to you and can be read."
_FOLDED = Problem(
    "name",
    "this disk takes its name for that of another file, which differs in case or in accents",
    "give it another name on the machine that it is from.",
)
_RENAME = "give it a shorter or simpler name on the machine that it is from."
_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE)


def write_all_temporary(files: Sequence[tuple[Path, bytes]]) -> list[Path]:
    """Write a durable temporary file beside each path; return them in the same order.

    Raises:
        OSError: the disk refused; nothing was left.
    """
    written: list[Path] = []
    try:
        for path, data in files:
            written.append(write_temporary(path, data))
    except BaseException:
        for path in written:
            with suppress(OSError):
                path.unlink()
        raise
    return written


class Unfit(Exception):  # noqa: N818
    """Under the name stands something that is no memory: a link, a pipe, a directory, too much.

    Attributes:
        why: what it is, and what to do about it.
    """

    def __init__(self, why: Problem) -> None:
        super().__init__(why.sentence)
        self.why = why


class Changed(Exception):  # noqa: N818
    """The file is not as git knows it; overwriting it would lose what somebody wrote."""


def read(path: Path) -> bytes | None:
    """Return the bytes of a file, or None where there is none.

    Raises:
        Unfit: it is no regular file of a memory's size, or cannot be read.
    """
    try:
        return read_regular(str(path), MAX_FILE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except TooLarge as error:
        raise Unfit(Problem("too-large", str(error), CUT)) from error
    except MalformedFile as error:
        raise Unfit(Problem("no-file", str(error), MOVE)) from error
    except OSError as error:
        reason = f"it cannot be read: {error.strerror or error}"
        raise Unfit(Problem("unreadable", reason, _OWN)) from error


def object_name(data: bytes, like: bytes) -> bytes:
    """Return the name that git gives to a file's bytes; SHA-256 where `like` is that long."""
    algorithm = _algorithm("sha256" if len(like) > 40 else "sha1")
    name: str = algorithm(b"blob %d\0%s" % (len(data), data)).hexdigest()
    return name.encode()


@cache
def _algorithm(name: str) -> Callable[[bytes], Any]:
    """Return SHA-1 or SHA-256, without OpenSSL where Python was built so: that takes 4 ms to load.

    The standard library's `random` takes its own in the same way.
    """
    try:
        module = import_module(f"_{name}")
    except ImportError:
        module = import_module("hashlib")
    return cast("Callable[[bytes], Any]", getattr(module, name))


class Change(NamedTuple):
    """What is to become of a file.

    Attributes:
        path: where it is.
        known: the object name of the version that may be replaced; None for no file.
        data: what it is to hold; None where it is to go.
    """

    path: Path
    known: bytes | None
    data: bytes | None


def bring(directory: Path, changes: Sequence[Change]) -> dict[Path, Problem]:
    """Make changes to files of a directory, each whole, and durable when this returns.

    All new bytes are durable before the first file takes its name: git must never hold a commit of
    which the disk could lose a file.

    Returns:
        The files that stayed as they were, because of what has the name or since the disk refuses
        the name, with the reason.

    Raises:
        Changed: another version stands there.
        OSError: the disk refused.
    """
    make_directory(directory)
    bringing = _Bringing(directory)
    due = [(change, state) for change in changes if (state := bringing.due(change))]
    new = {change.path: change.data for change, _ in due if change.data is not None}
    drafts = dict(zip(new, write_all_temporary([*new.items()]), strict=True))
    try:
        for change, state in due:
            bringing.apply(change, state, drafts.get(change.path))
            if change.path not in bringing.refused:
                drafts.pop(change.path, None)
        sync_directory(directory)
    finally:
        for draft in drafts.values():
            with suppress(OSError):
                draft.unlink()
    return bringing.refused


class _Bringing:
    """The changes that are made to a directory together."""

    def __init__(self, directory: Path) -> None:
        self.refused: dict[Path, Problem] = {}
        self._directory = directory
        self._names: set[bytes] | None = None

    def due(self, change: Change) -> Stamp | None:
        """Return what stands there if the change is to be made; None if not.

        Raises:
            Changed: another version stands there.
        """
        try:
            state = _state(change.path)
            present = None if state == NEVER else read(change.path)
        except Unfit as error:
            self.refused[change.path] = error.why
            return None
        if present is not None and not self._has(change.path.name):
            if change.data is not None:
                self.refused[change.path] = _FOLDED
            return None
        if present == change.data:
            return None
        name = None if present is None else object_name(present, change.known or b"")
        if name != change.known:
            raise Changed(change.path.name)
        return state

    def _has(self, name: str) -> bool:
        """Whether a name stands there exactly so, and not only one that the disk takes for it."""
        if self._names is None:
            self._names = set(os.listdir(os.fsencode(self._directory)))  # noqa: PTH208
        return os.fsencode(name) in self._names

    def apply(self, change: Change, before: Stamp, draft: Path | None) -> None:
        """Make one change.

        Raises:
            Changed: the file was touched since it was looked at.
            OSError: the disk refused, for another reason than the name.
        """
        if _state(change.path) != before:
            raise Changed(change.path.name)
        try:
            if draft:
                rename_over(draft, change.path)
            else:
                change.path.unlink()
        except OSError as error:
            if error.errno in _OF_THE_DISK:
                raise
            reason = f"the disk refuses it: {error.strerror}"
            self.refused[change.path] = Problem("name", reason, _RENAME)


def _state(path: Path) -> Stamp:
    """Return what changes when a file does; the same for every name that nothing has."""
    try:
        return Stamp.of(path.lstat())
    except (FileNotFoundError, NotADirectoryError):
        return NEVER
    except OSError:
        return UNREADABLE
