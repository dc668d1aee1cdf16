"""The first secret in a text: a value of a known form that was not written as an example.

A form alone would also find the examples of documentation, so what was drawn at random must look
so: no words that examples have, no pattern that repeats, and nearly as many different characters as
chance gives (see `judging`).

The work grows with the length of the text and no faster, whatever it holds: literal texts are
looked for first, and at each of them a form is tried that has an upper bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from aiaml_server.format.invisible import INVISIBLE
from aiaml_server.format.leaks.judging import JUDGES

if TYPE_CHECKING:
    from aiaml_server.format.leaks.table import Form

_NEAR = 64  # characters at most between a secret's name and the secret
_WINDOW = 200  # the same, and the secret; what has no upper bound is known by its beginning
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
    if (found := _find(data)) or _PRINTED.fullmatch(data):
        return found
    seen = _UNSEEN.sub("", data.decode("utf-8", "ignore").translate(_LOOKS)).encode()
    return _find(seen) if seen != data else None


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
    in_words, anywhere, beside = _anchored()
    for anchors, place, text in (
        (in_words, words, data),
        (anywhere, data, data),
        (beside, lowered, lowered),
    ):
        for anchor, form in anchors:
            if anchor not in place:
                continue
            for match in _matches(form, anchor, data, text):
                if JUDGES[form.judge](match):
                    return Leak(form.name, data.count(b"\n", 0, match.start()) + 1)
    return None


def _may_name(lowered: bytes) -> bool:
    """Say at once, of most texts, that they name no secret that would not be a long word."""
    if any(each in lowered for each in _PHRASES):
        return True
    is_near = not lowered.isascii() or any(each in lowered for each in _NAMES.split(b"|"))
    return is_near and bool(_NAME.search(lowered))


@cache
def _anchored() -> tuple[list[tuple[bytes, Form]], ...]:
    """Return every anchor with its form: those inside long words, those elsewhere, and names."""
    from aiaml_server.format.leaks.table import forms  # noqa: PLC0415 (`remember` hardly ever needs it)

    in_words: list[tuple[bytes, Form]] = []
    anywhere: list[tuple[bytes, Form]] = []
    beside: list[tuple[bytes, Form]] = []
    for form in forms():
        for anchor in map(str.encode, form.anchors):
            is_word = form.judge in _WHOLE and re.fullmatch(_WORD + b"+", anchor)
            (beside if form.beside else in_words if is_word else anywhere).append((anchor, form))
    return in_words, anywhere, beside


@cache
def _compiled(form: Form) -> re.Pattern[bytes]:
    if form.beside in _GAPS:
        return re.compile(rb"(?<![\w/+-])(?:%s)(?![\w/+=-])" % form.pattern.encode())
    left = _LEFT if form.left and not form.beside else b""
    return re.compile(left + form.pattern.encode())


@cache
def _gap(kind: str) -> re.Pattern[bytes]:
    return re.compile(_GAPS[kind], re.IGNORECASE)


def _matches(form: Form, anchor: bytes, data: bytes, text: bytes) -> Iterator[re.Match[bytes]]:
    """Yield what is of the form, without overlap."""
    find = _beside if form.beside in _GAPS else _at
    start = text.find(anchor)
    while start >= 0:
        end = start + len(anchor)
        if match := find(form, data, start, end):
            yield match
            end = max(end, match.end())
        start = text.find(anchor, end)


def _at(form: Form, data: bytes, start: int, end: int) -> re.Match[bytes] | None:
    begin = end if form.beside else start - form.back
    return _compiled(form).match(data, begin) if begin >= 0 else None


def _beside(form: Form, data: bytes, _: int, end: int) -> re.Match[bytes] | None:
    gap = _gap(form.beside)
    match = gap.match(data, end, end + _NEAR) and _compiled(form).search(data, end, end + _WINDOW)
    if not match or match.start() > end + _NEAR:
        return None
    return match if gap.fullmatch(data, end, match.start()) else None
