"""The first secret in a text: a value of a known form that was not written as an example.

A form alone would also find the examples of documentation, so what was drawn at random must look
so: no words that examples have, no pattern that repeats, and nearly as many different characters as
chance gives (see `judging`).

The work grows with the length of the text and no faster, whatever it holds: literal texts are
looked for first, and at each of them a form is tried that has an upper bound.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from aiaml_server.format.invisible import INVISIBLE
from aiaml_server.format.leaks.judging import JUDGES, looks_drawn, may_look_drawn

if TYPE_CHECKING:
    from aiaml_server.format.leaks.table import Form

_WINDOW = 200  # from a secret's name to its end; what has no upper bound is known by its beginning
_ALL = 1 << 30
_MOST_REJECTED = 5_000  # what looks like a secret at first, and none is: half a second, and …
_BYTES_EACH = 200  # … in a larger text one more for so many: half a second for a megabyte
_TOO_MANY = "more that may be keys or passwords than can be looked through"
_LONGEST = 200  # characters of a value of no known form
_REACH = 300  # from the beginning of its name to its own, at most
_VALUE = re.compile(
    rb"""["'`][^\s"'`<>\\]{10,200}(?=["'`\\])|[^\s"'`<>\\,;|(){}\[\]]{10,1048576}"""
)
_WORD = rb"[\w+/=.~%$:@!,-]"
_LONG_WORD = re.compile(_WORD + rb"{16,}")  # every secret has one, prose hardly ever
_NONE = re.compile(  # but for these, of which each memory of ours has one: its moment, its path
    rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+\d\d:\d\d|files/\d{8}_\d{6}_[0-9a-f]{8}\.md"
)
_NAMES = (  # every name of the table has one of these in it, or a letter of another script
    rb"key|token|secret|pass|pw|mdp|contrase|clave|senha|chave|parol|chiave|kenn|schl|wachtw|senord"
    rb"|adgangsk|kodeord|salasana|has|heslo|jelsz|ifre|lozinka|mysql|mariadb|login|-cli|ldaps"
    rb"|mongosh|sqlcmd"
)
_NAME = re.compile(rb"(?:%s|[\xce-\xdb\xe0\xe1\xe3-\xef])(?s:.{1,60}?)[!-~]{10}" % _NAMES)
_PHRASES = (b"phrase", b"frase", b"mnemonic", b"seed", b"words")  # whose words may be short
_PRINTED = re.compile(rb"[\t\n\r -~]*")
_UNSEEN = re.compile(f"[{INVISIBLE}]")
_LOOKS: dict[int, int | str] = {  # signs, spaces and quotes, as keyboards and typesetters make them
    **{full: full - 0xFEE0 for full in range(0xFF01, 0xFF5F)},
    **dict.fromkeys((0xA0, 0xAB, 0xBB, *range(0x2000, 0x200B), 0x202F, 0x3000), " "),
    **dict.fromkeys((*range(0x201C, 0x2020), *range(0x300C, 0x3010)), '"'),
    **dict.fromkeys(range(0x2018, 0x201C), "'"),
}
_WHOLE = ("random", "claims", "")  # the judges of forms that are one long word
_DRAWN = ("named", "drawn")  # those of values of no known form
_LEFT = rb"(?:(?<![A-Za-z0-9])|(?<=\\[nrtf])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u00[0-9a-f]{2}))"
_SET = (
    rb"""(?:\\?["'`*\])]){0,3}\s{0,4}(?:[:=|,>]{1,3}|->|is|was)?\s{0,4}(?:\\?["'`*(\[<]){0,3}"""
    rb"""(?:bearer |basic )?"""
)
_GAPS = {
    "name": rb"[\w.-]{0,16}(?![\w.-])" + _SET,
    "noun": rb"[\w. -]{0,24}?(?:api|key|token|secret|auth|passw|bearer)\w{0,16}(?!\w)" + _SET,
}


class Leak(NamedTuple):
    """A secret in a text.

    Attributes:
        kind: what it is: "a GitHub token".
        line: on which line it begins, from 1.
    """

    kind: str
    line: int


def find(data: bytes) -> Leak | None:
    """Return the first secret in `data`, in the order of the table; None when there is none.

    It is looked for as the text stands, and as a person sees it: without what is invisible, with
    plain quotes, spaces and signs. (In UTF-16, each letter has a zero byte beside it.)
    """
    try:
        if (found := _find(data)) or _PRINTED.fullmatch(data):
            return found
        seen = _UNSEEN.sub("", data.decode("utf-8", "ignore").translate(_LOOKS)).encode()
        return _find(seen) if seen != data else None
    finally:
        looks_drawn.cache_clear()


def leak(data: bytes) -> str:
    """Name the first secret in `data` ("a GitHub token"); empty when there is none."""
    found = find(data)
    return found.kind if found else ""


def objection(path: bytes, data: bytes) -> str:
    """Say why a file must not travel; empty when it may."""
    if found := leak(data):
        return f"it seems to hold {found}"
    found = leak(path)
    return f"its name seems to hold {found}" if found else ""


def _find(data: bytes) -> Leak | None:
    words = b"\n".join(word for word in _LONG_WORD.findall(data) if not _NONE.fullmatch(word))
    lowered = data.lower()
    if not (words or b"://" in data or _may_name(lowered)):
        return None
    near, left = _near_values(data), max(_MOST_REJECTED, len(data) // _BYTES_EACH)
    in_words, anywhere, drawn, beside, named = _looks()
    for looks, place, text in (
        (in_words, words, data),
        (anywhere, data, data),
        (drawn, near, near),
        (beside, lowered, lowered),
        (named, near.lower(), near.lower()),
    ):
        for look in looks:
            if look.anchor not in place:
                continue
            for match in _matches(look, data, text):
                if look.judge(match):
                    return Leak(look.kind, data.count(b"\n", 0, match.start()) + 1)
                left -= 1
                if left < 0:
                    return Leak(_TOO_MANY, 1)
    return None


def _near_values(data: bytes) -> bytes:
    """Return the text with zeros for all that stands beside no value which may look drawn.

    A value ends where a run of such characters does, or at a quote.
    """
    near = bytearray(len(data))
    for found in _VALUE.finditer(data):
        end = found.end()
        start = max(found.start(), end - _LONGEST)
        if may_look_drawn(data[start:end]):
            begin = max(0, start - _REACH)
            near[begin:end] = data[begin:end]
    return bytes(near)


def _may_name(lowered: bytes) -> bool:
    """Say at once, of most texts, that they name no secret that would not be a long word."""
    if any(each in lowered for each in _PHRASES):
        return True
    is_near = not lowered.isascii() or any(each in lowered for each in _NAMES.split(b"|"))
    return is_near and bool(_NAME.search(lowered))


class _Look(NamedTuple):
    """One anchor of a form, with all that each of its places is asked.

    Attributes:
        anchor: the literal text.
        kind: what the form is.
        match: tries the form at a place; as often as the text says the anchor, so it is at hand.
        judge: whether a match was drawn at random.
        begin: where the form begins, counted from the beginning of the anchor.
        end: how much further it is looked at, at most.
    """

    anchor: bytes
    kind: str
    match: Callable[[bytes, int, int], re.Match[bytes] | None]
    judge: Callable[[re.Match[bytes]], bool]
    begin: int
    end: int


@cache
def _looks() -> tuple[list[_Look], ...]:
    """Return what is looked for inside long words, what elsewhere, and what beside a name.

    Of the last two, first what has a form, and then what looks drawn.
    """
    from aiaml_server.format.leaks.table import forms  # noqa: PLC0415 (`remember` hardly ever needs it)

    found: tuple[list[_Look], ...] = ([], [], [], [], [])
    for form in forms():
        match = re.compile(_expression(form)).match
        end = _WINDOW if form.beside in _GAPS else _ALL
        for anchor in map(str.encode, form.anchors):
            begin = len(anchor) if form.beside else -form.back
            look = _Look(anchor, form.name, match, JUDGES[form.judge], begin, end)
            is_word = form.judge in _WHOLE and re.fullmatch(_WORD + b"+", anchor)
            place = 3 if form.beside else 0 if is_word else 1
            found[place + (form.judge in _DRAWN)].append(look)
    return found


def _expression(form: Form) -> bytes:
    pattern = form.pattern.encode()
    if form.beside in _GAPS:
        value = pattern if re.compile(pattern).groups else b"(%s)" % pattern
        return rb"(?i:%s)(?<![\w/+-])(?:%s)(?![\w/+=-])" % (_GAPS[form.beside], value)
    return pattern if form.beside or not form.left else _LEFT + pattern


def _matches(look: _Look, data: bytes, text: bytes) -> Iterator[re.Match[bytes]]:
    """Yield what is of the form, without overlap."""
    anchor, _, match, _, begin, end = look
    find, size = text.find, len(anchor)
    at = find(anchor, max(0, -begin))
    while at >= 0:
        found = match(data, at + begin, at + begin + end)
        if found:
            yield found
            at = find(anchor, max(at + size, found.end()))
        else:
            at = find(anchor, at + size)
