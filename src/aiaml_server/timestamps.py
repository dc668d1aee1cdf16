"""Timestamps: read ISO 8601 texts, and format them for files and for people.

A timestamp is a number of microseconds since 1970 in UTC, so that it can be compared and stored.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
# `datetime.fromisoformat` accepts more with each version of Python. Files must read alike on all.
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)"
    r"(?:[T ](\d\d:\d\d)(:\d\d)?(?:[.,](\d{1,9}))?[ ]?(Z|z|[+-]\d\d(?::?\d\d)?)?)?"
)
_AGE = re.compile(r"(\d{1,5})([mhdw])")
_AGE_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(timezone.utc)


def now_micros() -> int:
    """Return the current time in microseconds since 1970."""
    return (now() - EPOCH) // _MICROSECOND


def is_timestamp(text: str) -> bool:
    """Return whether a text has the form of an ISO 8601 date or time."""
    return bool(_ISO.fullmatch(text))


def parse_timestamp(text: str) -> int | None:
    """Parse an ISO 8601 date or time into microseconds; return None if it is none.

    A time without an offset is local time. A date without a time is its first moment.
    """
    match = _ISO.fullmatch(text.strip())
    if not match:
        return None
    day, minute, second, fraction, offset = match.groups()
    micros = (fraction or "").ljust(6, "0")[:6]
    time = f"{minute or '00:00'}{second or ':00'}.{micros}{_format_offset(offset)}"
    try:
        parsed = datetime.fromisoformat(f"{day}T{time}")
        if parsed.tzinfo is None:
            parsed = parsed.astimezone(timezone.utc)
        return (parsed - EPOCH) // _MICROSECOND
    except (ValueError, OverflowError, OSError):
        return None


def _format_offset(offset: str | None) -> str:
    """Write an offset from UTC as Python 3.10 reads it: `+02:00`, or empty for local time."""
    if not offset:
        return ""
    if offset in "Zz":
        return "+00:00"
    digits = offset[1:].replace(":", "").ljust(4, "0")
    return f"{offset[0]}{digits[:2]}:{digits[2:]}"


def parse_timestamp_or_age(text: str) -> int | None:
    """Parse a date or time, or an age such as "90m", "12h", "7d" or "2w"; None for other texts."""
    age = _AGE.fullmatch(text.strip())
    if not age:
        return parse_timestamp(text)
    delta = timedelta(**{_AGE_UNITS[age[2]]: int(age[1])})
    return (now() - delta - EPOCH) // _MICROSECOND


def to_utc(micros: int) -> datetime | None:
    """Return a timestamp as a time in UTC; None outside the years 1 to 9999."""
    try:
        return EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None


def to_local(micros: int) -> datetime | None:
    """Return a timestamp as a local time; None where the system's calendar has none."""
    time = to_utc(micros)
    try:
        return time and time.astimezone()
    except (OverflowError, ValueError, OSError):  # OSError: Windows, before 1970
        return None


def format_timestamp(micros: int, timespec: str = "microseconds") -> str:
    """Format a timestamp as files have it; 1970 for one outside the calendar.

    Args:
        micros: microseconds since 1970.
        timespec: the smallest unit to write, as `datetime.isoformat` names it.
    """
    return (to_utc(micros) or EPOCH).isoformat(timespec=timespec)


def format_minute(text: str) -> str:
    """Format a timestamp in local time to the minute; return other texts unchanged."""
    micros = parse_timestamp(text)
    local = None if micros is None else to_local(micros)
    return local.isoformat(" ")[:16] if local else text


def format_elapsed(micros: int | None) -> str:
    """Format how long ago a timestamp was: "3 minutes ago"; "never" for None."""
    if micros is None:
        return "never"
    seconds = (now_micros() - micros) // 1_000_000
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            count = seconds // length
            return f"{count:,} {unit}{'' if count == 1 else 's'} ago"
    return "a moment ago"
