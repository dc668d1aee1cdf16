"""The time of a note: what it says about itself, or else when its file was changed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path

from aiaml_server.memory import in_utc, instant

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def first_time(stated: Iterable[object], path: Path) -> str:
    """Return the first text that names a moment, or when `path` was changed, as our format has it.

    Raises:
        OSError: the file is gone.
    """
    for text in stated:
        moment = instant(text) if isinstance(text, str) else None
        if moment is not None and (made := in_utc(moment)):
            return made.isoformat(timespec="microseconds")
    changed = in_utc(path.stat().st_mtime_ns // 1000) or _EPOCH
    return changed.isoformat(timespec="microseconds")
