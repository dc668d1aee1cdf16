"""Where what is made from the memories may lie: under a name that nobody else can have made.

Whoever hands over a base directory (a clone, an archive, a share) can put anything into it, and
SQLite obeys what lies beside a database: a journal may name any file, which is then deleted
(`pager_delsuper` in SQLite's pager.c, 2026). So the index, and all else that is derived, is in
`<base>/.index/<name>/`. The name is a digest of the base's id and real path, under a key that only
this user has. A copy of the base has another path, so what came with it is never opened.

Where another user may rename the base or what is in it, they could swap `.index` between a look and
the opening, by path, in SQLite. Then the folder is in this user's state directory instead.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from aiaml_server import identity
from aiaml_server.errors import NoStateDirectory, StoreError, UnsafePath
from aiaml_server.files import (
    Lock,
    check_own,
    make_directory,
    make_own_directory,
    read_own,
    remove_own,
    rename_over,
    write_temporary,
)
from aiaml_server.identity import state_directory

INDEX = ".index"
_PROGRAM = "aiaml"
_KEY = "key"
_KEY_BYTES = 32
_LOCK_SECONDS = 5.0  # for another process that makes the key
_STALE_SECONDS = 30 * 86400.0
_NAME = re.compile(r"[0-9a-f]{32}")


def folder(base: Path, *, make: bool = False) -> Path:
    """Return where the things derived from a base are; with `make`, see that it is there.

    Then a folder of this user's that has not been used for a month goes: that of another place
    where this base was.

    Raises:
        Nowhere: this user has no key, so nothing can be kept.
        NotOurs: something else stands there.
        OSError: there is no base, or the disk refuses.
    """
    base = base.resolve()
    place = base / INDEX if is_only_ours(base) else state_directory() / "indexes"
    path = place / name_of(base)
    if make:
        _make(place, path)
    elif check_own(place, directory=True):
        check_own(path, directory=True, strict=True)
    return path


def _make(place: Path, path: Path) -> None:
    if not check_own(place, directory=True):
        make_own_directory(place)
    if not check_own(path, directory=True, strict=True):
        make_directory(path)
    check_own(path, directory=True, strict=True)
    if sys.platform != "win32" and path.stat().st_mode & 0o077:
        path.chmod(0o700)
    _clear(place, path.name)


def is_only_ours(base: Path) -> bool:
    """Say whether nobody but this user and root can rename a directory (without links), or in it.

    Raises:
        OSError: there is none.
    """
    if sys.platform == "win32":  # modes tell nothing there
        return True
    for path in (base, *base.parents):
        status = path.lstat()
        open_to_others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        sticky = status.st_mode & stat.S_ISVTX  # only who owns a name in it can rename it
        if status.st_uid not in (0, os.geteuid()) or (open_to_others and not sticky):
            return False
    return True


def name_of(base: Path) -> str:
    """Return the name of a base's folder for this user: 32 hexadecimal digits.

    Raises:
        Nowhere: this user has no key.
        OSError: there is no base.
    """
    try:
        from _blake2 import blake2b  # noqa: PLC0415 (hashlib's own, without OpenSSL: 4 ms)
    except ImportError:  # no CPython
        from hashlib import blake2b  # noqa: PLC0415 (see above)

    place = os.fsencode(f"{identity.base_id(base)}\0{base.resolve(strict=True)}")
    return blake2b(place, key=key(), digest_size=16).hexdigest()


def others(base: Path) -> tuple[list[str], list[str]]:
    """Return what else lies in a base's `.index`: names of folders like ours, and all other names.

    Raises:
        OSError: that cannot be found out.
    """
    own = name_of(base)
    if not check_own(base / INDEX, directory=True):
        return [], []
    names = sorted(path.name for path in (base / INDEX).iterdir() if path.name != own)
    folders = [name for name in names if _NAME.fullmatch(name)]
    return folders, [name for name in names if not _NAME.fullmatch(name)]


def _clear(place: Path, own: str) -> None:
    """Remove folders out of use, if they are this user's.

    None of it is opened or followed.
    """
    for name in os.listdir(place):  # noqa: PTH208 (names, at the start of each process)
        path = place / name
        with suppress(OSError):
            if name != own and _NAME.fullmatch(name) and _is_out_of_use(path):
                remove_own(path)


def _is_out_of_use(path: Path) -> bool:
    """Say whether a folder of this user's has been left alone for a month.

    Raises:
        NotOurs: it is no folder, or another's.
        OSError: that cannot be found out.
    """
    if not check_own(path, directory=True, strict=True):
        return False
    last = max(each.lstat().st_mtime for each in (path, *path.iterdir()))
    return time.time() - last > _STALE_SECONDS


# --- the key --------------------------------------------------------------------------------------


def key() -> bytes:
    """Return this user's key: 32 bytes by chance, the same in every process.

    Raises:
        Nowhere: there is none, and none can be kept.
    """
    found = _sought()
    if isinstance(found, str):
        raise NoStateDirectory(found)
    return found


def key_file() -> Path:
    """Return where the key is, or would be.

    Raises:
        Nowhere: this user has no directory for what a program keeps.
    """
    return state_directory() / _KEY


@cache
def _sought() -> bytes | str:
    """Return the key, or why there is none; looked for once in a process."""
    try:
        file = key_file()
        return _read(file) or _made(file)
    except NoStateDirectory as error:
        return error.reason
    except UnsafePath as error:
        return str(error)
    except OSError as error:
        return str(StoreError("use", error.filename or _PROGRAM, error))


def _read(file: Path) -> bytes | None:
    """Return the key in a file; None where there is none, it is torn, or others can read it.

    Raises:
        NotOurs: something else stands there.
        OSError: it cannot be read.
    """
    try:
        if not check_own(file, strict=True):
            return None
    except NotADirectoryError:  # `_made` says so
        return None
    status = file.lstat()
    open_to_others = sys.platform != "win32" and status.st_mode & 0o077
    if open_to_others or status.st_size != _KEY_BYTES:
        return None
    found = read_own(file, _KEY_BYTES)
    return found if len(found) == _KEY_BYTES else None


def _made(file: Path) -> bytes:
    """Make a key, or take that of a process which did so at the same time.

    Raises:
        Nowhere: it would lie with another user, or where others can read it.
        OSError: the disk refuses.
    """
    there = next(each for each in file.parents if each.is_dir())
    if sys.platform != "win32" and there.stat().st_uid != os.geteuid():
        raise NoStateDirectory(f"{there} belongs to another user")
    make_directory(file.parent)
    draft = write_temporary(file, os.urandom(_KEY_BYTES))
    try:
        with Lock(file.with_name(f"{_KEY}.lock")).held(_LOCK_SECONDS):
            if not _read(file):  # nobody was quicker
                rename_over(draft, file)
    finally:
        with suppress(OSError):
            draft.unlink()
    if not (found := _read(file)):
        raise NoStateDirectory(f"others can read {file}, on a disk that keeps no permissions")
    return found
