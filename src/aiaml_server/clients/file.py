"""A configuration file on disk: read whole, kept as it was once, replaced in one step."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from aiaml_server.errors import os_reason
from aiaml_server.files import format_limit, make_directory, replace_atomic

_SAFELY = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # waits for no pipe
MOST = 16 * 1024 * 1024
_MOST_LINES = 500_000


class ConfigError(Exception):
    """A configuration file that cannot be used as it is; nothing was changed.

    Attributes:
        path: the file.
        reason: what is wrong with it, or in its way.
        remedy: what to do about it, if that is known.
    """

    def __init__(self, path: Path, reason: str, remedy: str = "") -> None:
        super().__init__(f"{path}: {reason}{'; ' if remedy else ''}{remedy}")
        self.path = path
        self.reason = reason
        self.remedy = remedy


class Backups(NamedTuple):
    """Where a file is kept as it was: its first state, and the latest if that is another."""

    first: Path
    last: Path

    @classmethod
    def of(cls, path: Path, name: str) -> Backups:
        """Return those that a name stands for, beside a file."""
        first = path.with_name(f"{path.name}.{name}-backup")
        return cls(first, first.with_name(f"{first.name}-last"))


def read(path: Path, most: int = MOST) -> bytes | None:
    """Return what a file holds, through links; None where there is none.

    Raises:
        ConfigError: it is not a file, or cannot be read.
    """
    try:
        if path.is_dir():
            raise ConfigError(path, "it is a directory")
        with open(os.open(path, os.O_RDONLY | _SAFELY), "rb") as stream:  # noqa: PTH123
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise ConfigError(path, "it is no file")
            data = stream.read(most + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _failed(path, "read", error) from error
    if len(data) > most:
        raise ConfigError(
            path, f"it is larger than {format_limit(most)}, which takes too long to edit in place"
        )
    if data.count(b"\n") > _MOST_LINES:
        raise ConfigError(
            path, f"it has more than {_MOST_LINES:,} lines, too many to edit in place"
        )
    return data


def save(path: Path, before: bytes | None, after: bytes | None, kept: Backups) -> Path | None:
    """Replace a file in one step and return where the old one is kept.

    A link stays a link, a mode stays the mode; a new file is for its owner alone, because entries
    of MCP servers hold keys and passwords.

    Args:
        path: the file, or a link to it.
        before: what it held when it was read; None if it was not there.
        after: what it shall hold; None if it shall not be there.
        kept: where it is kept as it was.

    Raises:
        ConfigError: it has changed since it was read, or the disk refused; it is as it was.
    """
    real = Path(os.path.realpath(path))
    if read(path) != before:
        raise ConfigError(path, "another program has just changed it", "try again")
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
        new = kept.first if read(kept.first) in (None, before) else kept.last
        if read(new) != before:
            replace_atomic(new, before, mode)
        replace_atomic(real, after, mode)
    except OSError as error:
        raise _failed(path, "written", error) from error
    return new


def original(kept: Backups) -> bytes | None:
    """Return the first state that was kept; None where there is none, or it cannot be read."""
    with suppress(ConfigError):
        return read(kept.first)
    return None


def forget(kept: Backups) -> None:
    """Delete what was kept, when the file is again what it was."""
    for path in kept:
        with suppress(OSError):
            path.unlink()


def _failed(path: Path, done: str, error: OSError) -> ConfigError:
    return ConfigError(path, f"it cannot be {done}: {os_reason(error)}")
