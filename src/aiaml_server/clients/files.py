"""Read, back up and atomically replace configuration files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aiaml_server.clients.text import ConfigError, RefusedEdit
from aiaml_server.errors import MalformedFile, os_reason
from aiaml_server.files import make_directory, read_regular, replace_atomic

MAX_BYTES = 16 << 20


def read(path: Path) -> bytes | None:
    """Return the content of a file, following links; None if there is none.

    Raises:
        ConfigError: it is not a regular file, is too large, or cannot be read.
    """
    try:
        return read_regular(os.path.realpath(path), MAX_BYTES)
    except FileNotFoundError:
        return None
    except MalformedFile as error:
        raise ConfigError(f"{path}: {error}") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot read it: {os_reason(error)}") from error


@contextmanager
def opened(path: Path) -> Iterator[tuple[bytes | None, str]]:
    """Yield the content of a file as bytes and as text, to be edited.

    Raises:
        ConfigError: it cannot be read, is not UTF-8, or an edit of the text was refused.
    """
    data = read(path)
    try:
        text = (data or b"").decode()
        yield data, text
    except RefusedEdit as error:
        raise ConfigError(f"{path}: {error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: it is not UTF-8; save it as UTF-8 and try again") from None
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError):
        raise ConfigError(f"{path}: it does not have the expected structure") from None


def replace(path: Path, before: bytes | None, after: bytes | None, backup: Path | None) -> None:
    """Replace a file atomically, following links. Its mode stays.

    A new file is readable by its owner alone, because entries of MCP servers hold passwords.

    Args:
        path: the file, or a link to it.
        before: what it held when it was read; None if it was not there.
        after: what it is to hold; None to delete it.
        backup: where to keep what it held; None for nowhere.

    Raises:
        ConfigError: it has changed since it was read, or cannot be written.
    """
    real = Path(os.path.realpath(path))
    if read(path) != before:
        raise ConfigError(f"{path}: another program has just changed it; try again")
    try:
        if after is None:
            real.unlink(missing_ok=True)
            return
        make_directory(real.parent)
        mode = 0o600 if before is None else stat.S_IMODE(real.stat().st_mode)
        if before is not None and backup:
            replace_atomic(backup, before, mode)
        replace_atomic(real, after, mode)
    except OSError as error:
        raise ConfigError(f"{path}: cannot write it: {os_reason(error)}") from error
