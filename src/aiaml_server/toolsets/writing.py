"""Write whole files into a directory that a person may share, and preserve their modes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from aiaml_server.files import remove_stale_temporaries, replace_atomic


def replace(path: Path, data: bytes) -> None:
    """Write a whole file durably. Its mode stays; a new file gets that of its directory.

    Raises:
        OSError: the disk refused; the old file is there.
    """
    mode = path.stat().st_mode if path.exists() else path.parent.stat().st_mode & 0o666
    replace_atomic(path, data, stat.S_IMODE(mode))


def clear_unfinished(directory: Path) -> None:
    """Delete temporary files of killed writers. The caller must be the only writer."""
    try:
        names = os.listdir(directory)  # noqa: PTH208 (four times as fast)
    except OSError:  # the next write reports it
        return
    remove_stale_temporaries(directory, names, 0)
