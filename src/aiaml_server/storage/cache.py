"""Where the file of an index lies: in the user's cache directory, in a folder for each base.

A base directory may come from somebody else, and SQLite obeys what lies beside a database, such as
a journal. So nothing is kept in the base itself.
"""

from __future__ import annotations

import hashlib
import shutil
import unicodedata
from contextlib import suppress
from pathlib import Path

from aiaml_server.files import make_directory, replace_atomic
from aiaml_server.identity import base_id, cache_directory

_BASE = "base"  # the file in each folder that names its base
_FILE = f"1-{unicodedata.unidata_version}.sqlite"
"""The version of the tables, and of the characters by which this Python cuts terms."""


def index_file(base: Path) -> Path:
    """Return the path of the index of a base, whether or not it exists.

    Raises:
        NoStateDirectory: the user has no cache directory.
    """
    named = f"{base.resolve()}\n{base_id(base)}".encode("utf-8", "surrogateescape")
    folder = hashlib.blake2b(named, digest_size=16).hexdigest()
    return cache_directory() / "index" / folder / _FILE


def make_index_file(base: Path) -> Path:
    """Return the path of the index of a base, in a folder that exists.

    A new folder is the occasion to remove those of bases that are gone.

    Raises:
        NoStateDirectory: the user has no cache directory.
        OSError: the disk refuses.
    """
    file = index_file(base)
    if not file.exists():
        make_directory(file.parent)
        named = str(base.resolve()).encode("utf-8", "surrogateescape")
        replace_atomic(file.with_name(_BASE), named, 0o600)
        for other in file.parent.parent.glob(f"*/{_BASE}"):
            with suppress(OSError):
                if not Path(other.read_bytes().decode("utf-8", "surrogateescape")).is_dir():
                    shutil.rmtree(other.parent)
    return file


def delete_index(base: Path) -> None:
    """Delete the index of a base. The next question makes it anew.

    Raises:
        NoStateDirectory: the user has no cache directory.
        OSError: the disk refuses.
    """
    file = index_file(base)
    file.unlink(missing_ok=True)
    file.with_name(f"{file.name}-journal").unlink(missing_ok=True)
