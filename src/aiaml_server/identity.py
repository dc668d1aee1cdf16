"""The identity of a directory, and which directories this user trusts on this machine.

A directory is identified by a random id in its file `.aiaml-id`. It is trusted if this user's state
directory records that id together with the directory's real path. So a copy, a restored backup on
another machine, an unpacked archive and another stick at the same mount point are not trusted
before the person confirms with `aiaml trust`. Device and inode numbers are not used, because the
system reuses them.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from aiaml_server.errors import InvalidSetting, MalformedFile, NoStateDirectory, UnsafePath
from aiaml_server.files import hold_lock, make_own_directory, read_own, read_regular, replace_atomic
from aiaml_server.settings import Setting

ID_FILE = ".aiaml-id"
REPOSITORIES = (".git", ".aiaml.git")
EVERY = "*"
_PROGRAM = "aiaml"
_RECORDS = "trusted.jsonl"
_ID = re.compile(r"[0-9a-f]{32}\n?")
_MAX_ID_BYTES = 64
_MAX_RECORDS_BYTES = 1024 * 1024
_LOCK_SECONDS = 5.0


class Trusted(NamedTuple):
    """A directory that this user trusts.

    Attributes:
        id: its id; empty for another user's directory, in which none could be written.
        path: its real path.
    """

    id: str
    path: Path


def _parse_directories(name: str, value: str) -> tuple[str, ...]:
    """Parse directories, separated as in PATH; `*` stands for every directory."""
    paths = [os.path.expanduser(path) for path in value.split(os.pathsep) if path]  # noqa: PTH111
    for path in paths:
        if path != EVERY and not Path(path).is_absolute():
            raise InvalidSetting(name, f"holds {path!r}; each must be an absolute path, or *")
    return tuple(path if path == EVERY else os.path.realpath(path) for path in paths)


SAFE_DIRECTORIES = Setting(
    "AIAML_SAFE_DIRECTORIES",
    "",
    _parse_directories,
    "directories that are trusted without `aiaml trust`, separated as in PATH; * for all",
)


# --- directories of this user ---------------------------------------------------------------------


def state_directory() -> Path:
    """Return the directory for this user's state; it may not exist yet.

    Raises:
        NoStateDirectory: this user has none.
    """
    return _user_directory("user_state_path")


def make_state_directory() -> Path:
    """Create the directory for this user's state, and return it.

    Raises:
        NoStateDirectory: there is none, or it would lie with another user.
        OSError: it cannot be created.
    """
    state = state_directory()
    existing = next(path for path in (state, *state.parents) if path.is_dir())
    if sys.platform != "win32" and existing.stat().st_uid != os.geteuid():
        raise NoStateDirectory(f"{existing} belongs to another user")
    make_own_directory(state)
    return state


def cache_directory() -> Path:
    """Return the directory for this user's caches; it may not exist yet.

    Raises:
        NoStateDirectory: this user has none.
    """
    return _user_directory("user_cache_path")


def _user_directory(kind: str) -> Path:
    try:
        # Imported here because `citations` verifies with the standard library alone.
        import platformdirs  # noqa: PLC0415

        path: Path = getattr(platformdirs, kind)(_PROGRAM, appauthor=False)
    except ImportError as error:
        raise NoStateDirectory("platformdirs is not installed") from error
    except RuntimeError as error:
        raise NoStateDirectory("there is no home directory") from error
    if not path.is_absolute():
        raise NoStateDirectory("there is no home directory")
    return path


# --- ids ------------------------------------------------------------------------------------------


def base_id(base: Path) -> str:
    """Return the id of a memory directory; empty if it has none.

    A directory without an id and without a repository is new: it gets an id and is trusted. One
    with a repository and without an id was made elsewhere.
    """
    found = read_id(base)
    has_repository = any(os.path.lexists(base / name) for name in REPOSITORIES)
    if found or has_repository or not base.is_dir():
        return found
    try:
        return trust(base)
    except OSError:  # a read-only disk, or no state directory
        return read_id(base)


def read_id(directory: Path) -> str:
    """Return the id in a directory; empty if there is no valid one."""
    with suppress(OSError, MalformedFile, UnicodeDecodeError):
        text = read_regular(str(directory / ID_FILE), _MAX_ID_BYTES).decode("ascii")
        if _ID.fullmatch(text):
            return text.strip()
    return ""


# --- trust ----------------------------------------------------------------------------------------


def is_trusted(directory: Path, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether this user trusts a directory, or AIAML_SAFE_DIRECTORIES names it.

    Raises:
        InvalidSetting: AIAML_SAFE_DIRECTORIES cannot be used.
    """
    path = os.path.realpath(directory)
    safe = SAFE_DIRECTORIES.value(environ)
    if EVERY in safe or path in safe:
        return True
    return Trusted(read_id(directory), Path(path)) in trusted_directories()


def is_trusted_base(base: Path, remote: str = "") -> bool:
    """Return whether the repository of a memory directory may be used and sent.

    Args:
        base: the directory; a new one becomes trusted.
        remote: the value of AIAML_GITHUB_REMOTE. Whoever sets it confirms the directory.

    Raises:
        InvalidSetting: AIAML_SAFE_DIRECTORIES cannot be used.
    """
    base_id(base)
    return bool(remote) or is_trusted(base)


def trust(directory: Path) -> str:
    """Trust a directory; return its id, which is written if there is none.

    Raises:
        NoStateDirectory: there is nowhere to record it.
        OSError: the directory is missing, or the disk refuses.
    """
    path = directory.resolve(strict=True)
    state = make_state_directory()
    with hold_lock(state / f"{_RECORDS}.lock", _LOCK_SECONDS):
        record = Trusted(read_id(path) or _write_id(path), path)
        records = trusted_directories()
        if record not in records:
            rows = [json.dumps([each.id, str(each.path)]) for each in (*records, record)]
            replace_atomic(state / _RECORDS, "\n".join([*rows, ""]).encode())
    return record.id


def _write_id(path: Path) -> str:
    """Write a new id into a directory, and return the one that is there then.

    It is empty for another user's directory in which this user cannot write.
    """
    data = f"{os.urandom(16).hex()}\n".encode()
    try:
        replace_atomic(path / ID_FILE, data)
    except PermissionError:
        if sys.platform == "win32" or path.stat().st_uid == os.geteuid():
            raise
    return read_id(path)


def trusted_directories() -> list[Trusted]:
    """Return the directories that this user trusts, without lines that a person has damaged."""
    found = []
    with suppress(OSError, UnsafePath):
        for line in read_own(state_directory() / _RECORDS, _MAX_RECORDS_BYTES).splitlines():
            with suppress(ValueError, TypeError):
                directory_id, path = json.loads(line)
                found.append(Trusted(str(directory_id), Path(path)))
    return found
