"""`~/.memory/logs`: which calls failed and where in the code, without any text of memories."""

from __future__ import annotations

import os
import traceback
from contextlib import suppress
from datetime import datetime
from io import FileIO
from pathlib import Path

from aiaml_server.files import make_own_directory, open_own

FILE_NAME = "semantic.log"
MAX_BYTES = 1024 * 1024  # after which the file begins anew


def log_error(home: Path, action: str, error: BaseException) -> None:
    """Record that something failed. Nothing happens if the record cannot be written.

    Args:
        home: the person's `~/.memory`, which is not created for this.
        action: the tool or hook.
        error: its type and its places in the code are written, never its message.
    """
    if not home.is_dir():
        return
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    places = " ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames)
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    line = f"{now} {os.getpid()} {action} {type(error).__name__} {places}\n"
    path = home / "logs" / FILE_NAME
    with suppress(OSError):
        make_own_directory(path.parent)
        with FileIO(open_own(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "a") as stream:
            if stream.tell() > MAX_BYTES:
                stream.truncate(0)
            stream.write(line.encode("utf-8", "backslashreplace"))
