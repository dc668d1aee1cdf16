"""The time of a note: what it says about itself, or else when its file was changed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from pathlib import Path

from aiaml_server.memory import instant

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def first_time(stated: Iterable[object], path: Path) -> str:
    """Return the first text that names a moment, or when `path` was changed, as our format has it.

    Raises:
        OSError: the file is gone.
    """
    moments = (instant(text) for text in stated if isinstance(text, str))
    micros = next((moment for moment in moments if moment is not None), None)
    if micros is None:
        micros = path.stat().st_mtime_ns // 1000
    return (_EPOCH + timedelta(microseconds=micros)).isoformat(timespec="microseconds")
