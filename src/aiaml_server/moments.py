"""Moments: what a text names as one, and how one is shown to people.

A moment is a number of microseconds since 1970 in UTC.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone

__all__ = [
    "age",
    "ago",
    "in_local",
    "in_utc",
    "instant",
    "is_iso",
    "now",
    "present",
    "span",
    "timestamp",
]

_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)"
    r"(?:[T ](\d\d:\d\d)(:\d\d)?(?:[.,](\d{1,9}))?[ ]?(Z|z|[+-]\d\d(?::?\d\d)?)?)?"
)
_WRITTEN = re.compile(
    r"(\d{4})(?:-(\d\d)-(\d\d)|(\d\d)(\d\d)|-?(\d{3})|-?W(\d\d)(?:-?([1-7]))?)"
    r"(?:[Tt ](\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d{1,9}))?)?)?[ ]?(Z|z|[+-]\d\d(?::?\d\d)?)?)?"
)
_PERIOD = re.compile(r"(\d{4})(?:-(\d\d))?")
_AGO = re.compile(r"(\d{1,5})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def now() -> datetime:
    """Return the present time, in UTC."""
    return datetime.now(timezone.utc)


def present() -> int:
    """Return the present moment."""
    return (now() - EPOCH) // timedelta(microseconds=1)


def is_iso(text: str) -> bool:
    """Say whether a text has the form of an ISO 8601 date or time."""
    return bool(_ISO.fullmatch(text))


def instant(timestamp: str) -> int | None:
    """Return the moment that an ISO 8601 text names; None where it names none.

    A text without an offset is local time, a date without a time its first moment. The same texts
    are understood on every Python (`datetime.fromisoformat` takes more of them with each version).
    """
    match = _ISO.fullmatch(timestamp.strip())
    if not match:
        return None
    day, minute, second, fraction, offset = match.groups()
    zone = {None: "", "Z": "+00:00", "z": "+00:00"}.get(offset)
    if zone is None:
        digits = offset[1:].replace(":", "").ljust(4, "0")
        zone = f"{offset[0]}{digits[:2]}:{digits[2:]}"
    micros = (fraction or "").ljust(6, "0")[:6]
    try:
        moment = datetime.fromisoformat(
            f"{day}T{minute or '00:00'}{second or ':00'}.{micros}{zone}"
        )
        if moment.tzinfo is None:
            moment = moment.astimezone(timezone.utc)
        return (moment - EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError, OSError):
        return None


def span(text: str) -> tuple[int, int] | None:
    """Return the first and the last moment of what an ISO 8601 text names; None where it is none.

    A date is its whole day, a week its seven, and so for a month and a year, in local time where
    there is no offset. More is understood than by `instant`, which is what files are written in:
    also days of the year (2026-326), and the forms without hyphens, colons, minutes or seconds; on
    every Python what `datetime.fromisoformat` takes since 3.11, but for offsets of seconds.
    """
    try:
        if period := _PERIOD.fullmatch(text.strip()):
            from calendar import monthrange  # noqa: PLC0415 (3 ms, which no hook needs)

            year, month = int(period[1]), int(period[2] or 12)
            begin = date(year, int(period[2] or 1), 1)
            return _days(begin, date(year, month, monthrange(year, month)[1]))
        match = _WRITTEN.fullmatch(text.strip())
        if not match:
            return None
        of, *days, ordinal, week, weekday, hour, minute, second, fraction, offset = match.groups()
        if week:
            day = date.fromisocalendar(int(of), int(week), int(weekday or 1))
        elif ordinal:
            day = date(int(of), 1, 1) + timedelta(int(ordinal) - 1)
            if day.year != int(of):
                return None
        else:
            day = date(int(of), *(int(each) for each in days if each))
        if not hour:
            return _days(day, day + timedelta(6 if week and not weekday else 0))
    except (ValueError, OverflowError):
        return None
    time = f"{hour}:{minute or '00'}:{second or '00'}.{fraction or '0'}{offset or ''}"
    moment = instant(f"{day.isoformat()}T{time}")
    return None if moment is None else (moment, moment)


def _days(first: date, last: date) -> tuple[int, int] | None:
    begin, end = _local(f"{first}T00:00"), _local(f"{last}T23:59:59.999999")
    return None if begin is None or end is None else (begin, end)


def last_moment(text: str) -> int | None:
    """Return the last moment of what an ISO 8601 date or time names: of a date, of its day.

    It is None for what `instant` takes for none.
    """
    named = span(text) if is_iso(text.strip()) else None
    return named[1] if named else None


def _local(text: str) -> int | None:
    """Return the moment of a local time; of one at the calendar's edges as if it were in UTC."""
    moment = instant(text)
    return instant(f"{text}Z") if moment is None else moment


def instant_or_ago(text: str) -> int | None:
    """Return the moment that a person names, also as "90m", "12h", "7d" or "2w" ago."""
    ago = _AGO.fullmatch(text.strip())
    if ago:
        text = (now() - timedelta(**{_UNITS[ago[2]]: int(ago[1])})).isoformat()
    return instant(text)


def in_utc(moment: int) -> datetime | None:
    """Return a moment as a time in UTC; None beyond the years 1 to 9999."""
    try:
        return EPOCH + timedelta(microseconds=moment)
    except OverflowError:
        return None


def in_local(moment: int) -> datetime | None:
    """Return a moment as a time of this machine's zone; None beyond what a calendar has."""
    try:
        made = in_utc(moment)
        return made and made.astimezone()
    except (OverflowError, ValueError, OSError):  # OSError: Windows, before 1970
        return None


def timestamp(moment: int, to: str = "microseconds") -> str:
    """Return a moment as our format has it; the first one of 1970 for what no calendar has.

    Args:
        moment: the moment.
        to: the unit to which it is told; what is less is dropped.
    """
    return (in_utc(moment) or EPOCH).isoformat(timespec=to)


def minute(timestamp: str) -> str:
    """Return a timestamp to the minute, in local time; whatever else stands there, whole."""
    moment = instant(timestamp)
    local = None if moment is None else in_local(moment)
    return local.isoformat(" ")[:16] if local else timestamp


def age(timestamp: str) -> str:
    """Return how old what was made then is, in at most 10 characters: "3 h ago".

    From 30 days on it is the day in local time; of what names no moment, the text itself.
    """
    moment = instant(timestamp)
    if moment is None:
        return timestamp
    seconds = now().timestamp() - moment / 1e6
    if not 0 <= seconds < 30 * 86400:
        return minute(timestamp)[:10]
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f} {unit} ago"
    return "now"


def ago(moment: int | None) -> str:
    """Return how long ago a moment was: "3 minutes ago"; "never" where there is none."""
    if moment is None:
        return "never"
    seconds = now().timestamp() - moment / 1e6
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            number = int(seconds // length)
            return f"{number:,} {unit}{'' if number == 1 else 's'} ago"
    return "a moment ago"
