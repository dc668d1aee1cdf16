"""Show invisible characters, and those that change how others look, as code points (`marked`).

A model reads them like all others. So that a person sees the same as an agent, each is shown as
‹U+202E›. They are the control characters except tab and line feed, Unicode's *default
ignorable* code points (zero-width characters, direction marks, tags, variation selectors, fillers),
separators of lines, and halves of surrogate pairs.

Commands to CI in an output are marked in the same way (`inert`).
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

INVISIBLE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
"""All of them, as a set of a regular expression."""

_FLAG_TAGS = (
    "(?<=\U0001f3f4)[\U000e0061-\U000e007a]{2}[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,3}"
    "\U000e007f"
)
"""The tags of a regional flag, such as that of Wales: a black flag with two letters and a code."""

_INVISIBLE = re.compile(f"\r\n|{_FLAG_TAGS}|[{INVISIBLE}]")
_ON_ONE_LINE = re.compile(f"{_FLAG_TAGS}|[{INVISIBLE}\t\n]")

_STYLED = r"(?:\x1b\[\d+m)*"  # which a stream that is no terminal does not get
_OBEYED = re.compile(
    rf"(?m)^(?:[^\S\n]|\x1b\[\d+m)*:(?={_STYLED}:{_STYLED}[^:\n].*:{_STYLED}:)"
    rf"|#(?={_STYLED}#{_STYLED}(?:\w|\x1b\[\d+m)*\[)"
)
_OBEYED_IN_JSON = re.compile(r"#(?=#\w*\[)")


def marked(text: str) -> str:
    r"""Return a text with its invisible characters as code points.

    Those that are part of a visible character stay: what joins two letters (Persian, Hindi) or two
    emoji, and one selector of an emoji's or an ideograph's form. An end of line is `\n`.
    """
    return text if _is_plain(text) else _INVISIBLE.sub(_mark, text)


def marked_line(text: str) -> str:
    """Return a text on one line: line ends and tabs are marked as well."""
    return text if _is_plain(text) else _ON_ONE_LINE.sub(_mark, text)


def inert(text: str) -> str:
    """Return a text without commands to CI: the first character of each is shown as a code point.

    GitHub takes for a command what begins a line, blanks aside, as `::name key=value::text`, and
    `##[name]text` anywhere in it; Azure and TeamCity `##vso[` and `##teamcity[` (their runners'
    sources and manuals, 2026-11).
    """
    return _OBEYED.sub(lambda found: found[0][:-1] + code_point(found[0][-1]), text)


def inert_json(text: str) -> str:
    """Return the same JSON without such commands."""
    return _OBEYED_IN_JSON.sub(r"\\u0023", text)


def invisible_in(text: str) -> list[str]:
    """Return the different characters that are marked in a text, as code points.

    Ends of lines, of whatever kind, are not among them.
    """
    if _is_plain(text):
        return []
    found = (each for each in _INVISIBLE.finditer(text) if each[0] not in ("\r", "\r\n"))
    return list(dict.fromkeys(shown for each in found if (shown := _mark(each)) != each[0]))


@lru_cache
def code_point(character: str) -> str:
    """Return a character's code point as it is shown."""
    return f"‹U+{ord(character):04X}›"


def _is_plain(text: str) -> bool:
    """Return whether a text certainly has nothing to mark."""
    return text.isascii() and text.isprintable()


def _mark(found: re.Match[str]) -> str:
    if found[0] == "\r\n":
        return "\n"
    if len(found[0]) > 1:  # the tags of a flag
        return found[0]
    if found[0] in _IN_CONTEXT:
        start, end = found.span()
        before, after = found.string[max(start - 1, 0) : start], found.string[end : end + 1]
        if _belongs(found[0], before, after):
            return found[0]
    return code_point(found[0])


_JOINERS = "\u200c\u200d"
_EMOJI_FORMS = "\ufe0e\ufe0f"
_IDEOGRAPH_FORMS = range(0xE0100, 0xE01F0)
_IN_CONTEXT = frozenset([*_JOINERS, *_EMOJI_FORMS, *map(chr, _IDEOGRAPH_FORMS)])


@lru_cache
def _belongs(character: str, before: str, after: str) -> bool:
    """Return whether an invisible character is part of the visible one before it."""
    if not before:
        return False
    if character in _JOINERS:  # RFC 5892, A.1 and A.2, with emoji, and without its tables
        return (before in _EMOJI_FORMS or _is_joined(before)) and _is_joined(after)
    if character in _EMOJI_FORMS:
        return after == "\u20e3" or (before > "\x7f" and unicodedata.category(before)[0] in "SP")
    return unicodedata.category(before) == "Lo" and "CJK" in unicodedata.name(before, "")


def _is_joined(character: str) -> bool:
    """Return whether a character is of a script that joins letters, or an emoji."""
    return (
        character >= "\u0600"
        and unicodedata.category(character)[0] in "LMS"
        and not _INVISIBLE.match(character)
    )
