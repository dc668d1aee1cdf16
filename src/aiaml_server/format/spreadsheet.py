"""Rows as CSV, for a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

from aiaml_server.format.invisible import inert, marked

_FORMULAS = (*"=+-@\t\r\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last are wide ones
"""What text begins with that spreadsheets take for a formula (OWASP, CSV Injection, 2026-11)."""


def as_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as RFC 4180 has them, below the names of their fields.

    A list of words has commas between them, what else is no text or number is JSON; invisible
    characters are marked, and what CI obeys. Text that would be a formula gets a ' before it:
    anyone may have written it.
    """
    rows = list(rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        return ""
    answer = io.StringIO()
    writer = csv.writer(answer)
    writer.writerow(names)
    writer.writerows([_cell(row.get(name)) for name in names] for row in rows)
    return answer.getvalue()


def _cell(value: Any) -> str | int | float | None:
    if isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value):
        value = ", ".join(value)
    elif isinstance(value, (bool, dict, list, tuple)):
        value = json.dumps(value, ensure_ascii=False)
    if value is None or isinstance(value, (int, float)):
        return value
    text = inert(marked(str(value)))
    return f"'{text}" if text.startswith(_FORMULAS) else text
