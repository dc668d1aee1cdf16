"""A configuration file on disk: read whole, kept as it was once, replaced in one step."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from aiaml_server.errors import AiamlError, MalformedFile, StoreError
from aiaml_server.files import make_directory, read_regular, replace_atomic


class ConfigError(AiamlError):
    """A configuration file that cannot be used as it is; nothing was changed.

    Attributes:
        path: the file.
        reason: what is wrong with it, or in its way.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


_MOST = 64 * 1024 * 1024
FIRST = ".aiaml-backup"
LAST = ".aiaml-backup-last"


def read(path: Path) -> bytes | None:
    """Return what a file holds, through links; None where there is none.

    Raises:
        ConfigError: it is not a file.
        StoreError: it cannot be read.
    """
    try:
        return read_regular(os.path.realpath(path), _MOST)
    except FileNotFoundError:
        return None
    except MalformedFile as error:
        raise ConfigError(path, str(error)) from error
    except OSError as error:
        raise StoreError("read", path, error) from error


def save(path: Path, before: bytes | None, after: bytes | None) -> Path | None:
    """Replace a file in one step and return where the old one is kept.

    The first state that was ever replaced stays in FIRST, the latest in LAST, if they differ. A
    link stays a link, a mode stays the mode; a new file is for its owner alone, because entries of
    MCP servers hold keys and passwords.

    Args:
        path: the file, or a link to it.
        before: what it held when it was read; None if it was not there.
        after: what it shall hold; None if it shall not be there.

    Raises:
        ConfigError: it has changed since it was read.
        StoreError: the disk refused; the file is as it was.
    """
    real = Path(os.path.realpath(path))
    if read(path) != before:
        raise ConfigError(path, "another program has just changed it; try again")
    try:
        if after is None:
            real.unlink()
            return None
        if before is None:
            make_directory(real.parent)
            replace_atomic(real, after, 0o600)
            return None
        mode = stat.S_IMODE(real.stat().st_mode)
        if not os.access(real, os.W_OK):
            raise PermissionError(13, "permission denied", str(real))
        kept = _keep(path, before, mode)
        replace_atomic(real, after, mode)
    except OSError as error:
        raise StoreError("write", path, error) from error
    return kept


def _keep(path: Path, data: bytes, mode: int) -> Path:
    first = path.with_name(path.name + FIRST)
    if not first.exists():
        replace_atomic(first, data, mode)
        return first
    if read(first) == data:
        return first
    last = path.with_name(path.name + LAST)
    replace_atomic(last, data, mode)
    return last


def original(path: Path) -> bytes | None:
    """Return the first state that was kept; None where there is none, or it cannot be read."""
    with suppress(ConfigError, StoreError):
        return read(path.with_name(path.name + FIRST))
    return None


def forget_backups(path: Path) -> None:
    """Delete what was kept, when the file is again what it was."""
    for end in (FIRST, LAST):
        with suppress(OSError):
            path.with_name(path.name + end).unlink()
