"""Dates of notes: in their properties, in their names, or of their files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from aiaml_server.timestamps import format_timestamp, parse_timestamp

_DAY = re.compile(r"^(\d{4})([-_/.]?)(\d{2})\2(\d{2})(?!\d)")


def parse_date(text: str) -> int | None:
    """Return the date or time that a text begins with, in microseconds since 1970, or None.

    Besides ISO 8601, a day may be written as 20240102, 2024_01_02, 2024/01/02 or [[2024-01-02]].
    """
    text = _DAY.sub(r"\1-\3-\4", text.strip("[]\"' \t"))
    return parse_timestamp(text) or parse_timestamp(text[: len("2024-01-02")])


def first_date(texts: Iterable[object], path: Path) -> str:
    """Return the first of some texts that is a date, else that in a file's name, else the file's.

    Raises:
        OSError: the file is gone.
    """
    for text in (*texts, path.stem):
        micros = parse_date(str(text))
        if micros is not None:
            return format_timestamp(micros)
    return format_timestamp(path.stat().st_mtime_ns // 1000)
