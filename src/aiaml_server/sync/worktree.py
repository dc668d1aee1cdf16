"""The files in the base directory, as git sees them: read, written and removed without a loss."""

from __future__ import annotations

import hashlib
from pathlib import Path

from aiaml_server.errors import MalformedFile
from aiaml_server.files import (
    make_directory,
    read_regular,
    replace_atomic,
    sync_directory,
    write_atomic,
)

MAX_FILE = 4 * 1024 * 1024  # bytes; what is larger is no memory


class Unfit(Exception):  # noqa: N818
    """Under the name stands something that is no memory: a link, a pipe, a directory, too much."""


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
    except MalformedFile as error:
        raise Unfit(str(error)) from error
    except OSError as error:
        raise Unfit(f"it cannot be read: {error.strerror or error}") from error


def object_name(data: bytes, like: bytes) -> bytes:
    """Return the name that git gives to a file's bytes; SHA-256 where `like` is that long."""
    algorithm = hashlib.sha256 if len(like) > 40 else hashlib.sha1
    return algorithm(b"blob %d\0%s" % (len(data), data)).hexdigest().encode()


def replace(path: Path, known: bytes | None, data: bytes | None) -> None:
    """Put `data` in place of the version that has the object name `known`, or remove that.

    On return it is durable: git must never hold a commit of which the disk could lose a file, since
    the loss would look like a deletion.

    Raises:
        Changed: another version stands there.
        Unfit: something stands there that is no file.
        OSError: the disk refused.
    """
    present = read(path)
    if present == data:
        return
    name = None if present is None else object_name(present, known or b"")
    if name != known:
        raise Changed(path.name)
    if data is None:
        path.unlink()
        sync_directory(path.parent)
        return
    if present is not None:
        replace_atomic(path, data, 0o600)
        return
    make_directory(path.parent)
    write_atomic(path, data)
