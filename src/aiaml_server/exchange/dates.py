"""Dates in the forms that people and programs write: `24.12.2024`, `March 3, 2024`, 1710428400."""

from __future__ import annotations

import re

from aiaml_server.timestamps import parse_timestamp

_MAX = 80  # characters of a date
_COUNTED = re.compile(r"(\d{9,10}|\d{13}|\d{16}|\d{19})(?:\.\d{1,9})?")  # since 1970
_RUN = re.compile(r"(\d{4})(\d\d)(\d\d)(?:[T_-]?(\d\d)(\d\d)(\d\d)?)?")
_WEEKDAY = r"(?:[a-z]{2,9}\.?,? )?"
_NAME = r"(?P<name>[^\W\d_]{3,10})"
_YEAR = r"\.?,?[ -](?:de )?(?P<year>\d{4})"
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})",
        r"(?P<day>\d{1,2})\. ?(?P<month>\d{1,2})\. ?(?P<year>\d{4})",
        r"(?P<first>\d{1,2})[/-](?P<second>\d{1,2})[/-](?P<year>\d{4})",
        _WEEKDAY + r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?[ -](?:of |de )?" + _NAME + _YEAR,
        _WEEKDAY + _NAME + r"\.? (?P<day>\d{1,2})(?:st|nd|rd|th)?,? (?P<year>\d{4})",
    )
)
_TIME = re.compile(
    r"(?:,|T)? ?(?:at )?(\d{1,2}):(\d\d)(?::(\d\d))?(?:\.\d{1,9})?"
    r" ?(am|pm)? ?(Z|UTC|GMT|[+-]\d\d:?\d\d)?",
    re.IGNORECASE,
)
_MONTHS = (
    "jan january januar janvier enero gennaio", "feb february februar février febrero febbraio",
    "mar march märz mars marzo", "apr april avril abril aprile", "may mai mayo maggio",
    "jun june juni juin junio giugno", "jul july juli juillet julio luglio",
    "aug august août agosto", "sep sept september septembre septiembre settembre",
    "oct october okt oktober octobre octubre ottobre", "nov november novembre noviembre",
    "dec december dez dezember décembre diciembre dicembre",
)  # fmt: skip
_MONTH = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}


def moment_in(text: str) -> int | None:
    """Return the moment that a text names, in microseconds since 1970; None where it names none.

    A date that may be two days (`03/04/2024`) names none. Without an offset it is local time.
    """
    text = text.strip()
    if len(text) > _MAX:
        return None
    if (moment := parse_timestamp(text)) is not None:
        return moment
    if counted := _COUNTED.fullmatch(text):
        return int(float(text) * 1e6 / 10 ** (max(len(counted[1]), 10) - 10))
    if run := _RUN.fullmatch(text):
        year, month, day, hour, minute, second = run.groups()
        return parse_timestamp(
            f"{year}-{month}-{day} {hour or '00'}:{minute or '00'}:{second or '00'}"
        )
    return next((each for form in _FORMS if (each := _read(form, text)) is not None), None)


def _read(form: re.Pattern[str], text: str) -> int | None:
    found = form.match(text)
    time = _time(text[found.end() :]) if found else None
    if not found or time is None:
        return None
    parts = found.groupdict()
    if "first" in parts:
        first, second = int(parts["first"]), int(parts["second"])
        if first <= 12 and second <= 12 and first != second:
            return None
        month, day = sorted((first, second))
    else:
        day = int(parts["day"])
        month = _MONTH.get(parts["name"].lower(), 0) if "name" in parts else int(parts["month"])
    return parse_timestamp(f"{parts['year']}-{month:02}-{day:02} {time}")


def _time(text: str) -> str | None:
    """Return the time of day that follows a date, as ISO has it; None for other words."""
    if not text.strip():
        return "00:00:00"
    found = _TIME.fullmatch(text.rstrip())
    if not found:
        return None
    hour, half, zone = int(found[1]), (found[4] or "").lower(), (found[5] or "").upper()
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    return f"{hour:02}:{found[2]}:{found[3] or '00'}{'Z' if zone in ('UTC', 'GMT') else zone}"
