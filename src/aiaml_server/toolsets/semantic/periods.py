"""The days, weeks, months and years that a question names: what was stored then counts more.

Rules in English, and dates in ISO 8601. A month without a year is the last one of that name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta

from aiaml_server.timestamps import parse_range

Period = tuple[int, int]
"""The first and the last moment of what was named."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b{_DAY}[ ](?:of[ ])?{_MONTH}(?:,?[ ]{_YEAR})?\b",
        rf"\b{_MONTH}[ ]{_DAY}\b(?:,?[ ]{_YEAR})?\b",
        rf"\b{_MONTH},?[ ](?:of[ ])?{_YEAR}\b",
        rf"\b(?:in|during|of|since|from|until|by|last|this|early|late|mid)[ -]{_MONTH}",
        rf"\b(?:in|during|of|since|from|year)[ ]{_YEAR}\b",
    )
)
"""Later ones are looked for in what earlier ones have left."""
_ISO = re.compile(r"\b\d{4}-(?:\d\d(?:-\d\d)?|W\d\d)\b")
_NUMBERS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "few": 3}
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(_NUMBERS)})"
_UNIT = r"(?P<unit>day|week|month|year)s?"
_AGO = re.compile(rf"\b{_COUNT}[ ]{_UNIT}[ ]ago\b", re.IGNORECASE)
_LAST = re.compile(rf"\b(?:last|past)[ ](?:{_COUNT}[ ])?{_UNIT}\b", re.IGNORECASE)
_THIS = re.compile(rf"\b(?:this[ ]{_UNIT}|(?P<near>today|yesterday))\b", re.IGNORECASE)
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}


def periods(question: str, today: date) -> list[Period]:
    """Return what a question names, as moments; the same as `moments.span` has it.

    Args:
        question: what is asked, in words.
        today: what "last week" and a month without a year count from.

    "What did we decide in May?", asked on 24 November 2026, names 1 to 31 May 2026.
    """
    found = ((parse_range(first), parse_range(last)) for first, last in _named(question, today))
    return [(first[0], last[1]) for first, last in found if first and last]


def _named(question: str, today: date) -> Iterator[tuple[str, str]]:
    """Yield the first and the last day, week, month or year of each, in ISO 8601."""
    for match in _ISO.finditer(question):
        yield match[0], match[0]
    left = _ISO.sub(" ", question)
    for pattern in _DATES:
        for match in pattern.finditer(left):
            named = _written(match.groupdict(), today)
            yield named, named
        left = pattern.sub(" ", left)
    for match in _AGO.finditer(left):
        days = _days(match)
        about = today - timedelta(days)
        spread = timedelta(0 if match["unit"].lower() == "day" else days // 4)
        yield str(about - spread), str(about + spread)
    for match in _LAST.finditer(_AGO.sub(" ", left)):
        days = _days(match)
        if not match["count"]:  # "last month" may be the one before this one, or the days until now
            days *= 2
        yield str(today - timedelta(days)), str(today)
    for match in _THIS.finditer(left):
        near, unit = match["near"], (match["unit"] or "").lower()
        back = {"today": 0, "yesterday": 1}[near.lower()] if near else _DAYS[unit] - 1
        yield str(today - timedelta(back)), str(today - timedelta(back if near else 0))


def _days(match: re.Match[str]) -> int:
    count = (match["count"] or "1").lower()
    number = int(count) if count.isdigit() else _NUMBERS[count]
    return min(number * _DAYS[match["unit"].lower()], 36_500)


def _written(parts: dict[str, str | None], today: date) -> str:
    """Return a date as ISO 8601 has it; without a year it is the last one that has begun."""
    year, month, day = parts.get("year"), parts.get("month"), parts.get("day")
    if month is None:
        return str(year)
    number = _MONTHS.index(month[:3].lower()) + 1
    if year is None:
        begun = (number, int(day or 1)) <= (today.month, today.day)
        year = str(today.year if begun else today.year - 1)
    return f"{year}-{number:02}" + (f"-{int(day):02}" if day else "")
