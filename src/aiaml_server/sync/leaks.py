"""Passwords and keys that are known by their form; a memory that holds one does not travel.

Which forms there are is in `forms`. A form alone would also find the examples of documentation, so
what was drawn at random must look so: no words that examples have, no pattern that repeats, and
nearly as many different characters as chance gives.

The work grows with the length of the text and no faster, whatever it holds: literal texts are
looked for first, and at each of them a form is tried that has an upper bound.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from math import log2
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .forms import Form

_NEAR = 64  # characters at most between a secret's name and the secret
_WINDOW = 200  # the same, and the secret; what has no upper bound is known by its beginning
_WORD = rb"[\w+/=.~%$:@!,-]"
_LONG_WORD = re.compile(_WORD + rb"{16,}")  # every secret has one, prose hardly ever
_NONE = re.compile(  # but for these, of which each memory of ours has one: its moment, its path
    rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+\d\d:\d\d|files/\d{8}_\d{6}_[0-9a-f]{8}\.md"
)
_LEFT = rb"(?:(?<![A-Za-z0-9])|(?<=\\[nrtf])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u00[0-9a-f]{2}))"
_SET = (
    rb"""(?:\\?["'`*\])]){0,3}\s{0,4}(?:[:=|,>]{1,3}|->|is|was)?\s{0,4}(?:\\?["'`*(\[<]){0,3}"""
    rb"""(?:bearer |basic )?"""
)
_GAPS = {
    "name": rb"[\w.-]{0,16}(?![\w.-])" + _SET,
    "noun": rb"[\w. -]{0,24}?(?:api|key|token|secret|auth|passw|bearer)\w{0,16}(?!\w)" + _SET,
}

_EXAMPLES = (
    b"example", b"sample", b"dummy", b"placeholder", b"changeme", b"change_me", b"redacted",
    b"xxxxx", b"yourkey", b"your_", b"your-", b"yourtoken", b"yoursecret", b"yourapi", b"insert",
    b"notreal", b"not-real", b"notareal", b"not-a-real", b"fakekey", b"fake-", b"fake_", b"foobar",
    b"abcdef", b"123456", b"234567", b"987654", b"qwerty", b"deadbeef", b"0000000", b"secretkey",
    b"apikey", b"api-key", b"api_key", b"testtest", b"goes-here", b"goeshere", b"-here",
)  # fmt: skip

# The first 16 digits of the SHA-256 of keys that issuers publish for everyone to try.
_PUBLISHED = frozenset(
    (
        "153a182586451358",  # Stripe, its documentation
        "74e11884b07b1d51",  # Stripe, the same
        "740ff49af25d70c2",  # Stripe, the same
        "7e498f91828a193c",  # GitHub, its documentation
        "0011cc25eb432071",  # Azure, the storage emulator
        "aa6547439583c3a2",  # Azure, the Cosmos emulator
        "511c2249afed266e",  # Telegram, its documentation
        "02f7ce3c263f85c0",  # Discord, its documentation
        "67f4df03c8b092dc",  # 1Password, its documentation
    )
)

_USUAL = (
    rb"passw|example|changeme|your|placeholder|xxx|secret|\.\.\.|^(?:postgres|mysql|mariadb|mongo"
    rb"|mongodb|redis|rabbitmq|root|admin|guest|user|username|token|test|testing|default|foobar"
    rb"|api[-_]?key|x-oauth-basic|x-token-auth|oauth2?|[*.x-]+)\d{0,3}$"
)
_NO_HOST = rb"@(?:[\w.-]{0,200}\.)?(?:example\.?(?:com|org|net)?|invalid|host(?:name)?|test)$"


def leak(data: bytes) -> str:
    """Name the first secret in `data` ("a GitHub token"); empty when there is none.

    In UTF-16, a text has a zero byte beside each of its letters.
    """
    found = _leak(data)
    return _leak(data.replace(b"\0", b"")) if b"\0" in data and not found else found


def _leak(data: bytes) -> str:
    words = b"\n".join(word for word in _LONG_WORD.findall(data) if not _NONE.fullmatch(word))
    if not words and b"://" not in data:
        return ""
    in_words, anywhere, beside = _anchored()
    lowered = data.lower()
    for anchors, place, text in (
        (in_words, words, data),
        (anywhere, data, data),
        (beside, lowered, lowered),
    ):
        for anchor, form in anchors:
            if anchor in place and any(
                map(_JUDGES[form.judge], _matches(form, anchor, data, text))
            ):
                return form.name
    return ""


def objection(path: bytes, data: bytes) -> str:
    """Say why a file must not travel; empty when it may."""
    if found := leak(data):
        return f"it seems to hold {found}"
    found = leak(path)
    return f"its name seems to hold {found}" if found else ""


@cache
def _anchored() -> tuple[list[tuple[bytes, Form]], ...]:
    """Return every anchor with its form: those inside long words, those elsewhere, and names."""
    from .forms import FORMS  # noqa: PLC0415 (4 ms; `remember` hardly ever needs it)

    in_words: list[tuple[bytes, Form]] = []
    anywhere: list[tuple[bytes, Form]] = []
    beside: list[tuple[bytes, Form]] = []
    for form in FORMS:
        for anchor in map(str.encode, form.anchors):
            is_word = form.judge != "password" and re.fullmatch(_WORD + b"+", anchor)
            (beside if form.beside else in_words if is_word else anywhere).append((anchor, form))
    return in_words, anywhere, beside


@cache
def _compiled(form: Form) -> re.Pattern[bytes]:
    if form.beside:
        return re.compile(rb"(?<![\w/+-])(?:%s)(?![\w/+=-])" % form.pattern.encode())
    return re.compile((_LEFT if form.left else b"") + form.pattern.encode())


@cache
def _gap(kind: str) -> re.Pattern[bytes]:
    return re.compile(_GAPS[kind], re.IGNORECASE)


def _matches(form: Form, anchor: bytes, data: bytes, text: bytes) -> Iterator[re.Match[bytes]]:
    """Yield what is of the form, without overlap."""
    find = _beside if form.beside else _at
    start = text.find(anchor)
    while start >= 0:
        end = start + len(anchor)
        if match := find(form, data, start, end):
            yield match
            end = max(end, match.end())
        start = text.find(anchor, end)


def _at(form: Form, data: bytes, start: int, _: int) -> re.Match[bytes] | None:
    begin = start - form.back
    return _compiled(form).match(data, begin) if begin >= 0 else None


def _beside(form: Form, data: bytes, _: int, end: int) -> re.Match[bytes] | None:
    gap = _gap(form.beside)
    match = gap.match(data, end, end + _NEAR) and _compiled(form).search(data, end, end + _WINDOW)
    if not match or match.start() > end + _NEAR:
        return None
    return match if gap.fullmatch(data, end, match.start()) else None


# --- examples are no secrets ----------------------------------------------------------------------


def looks_random(text: bytes) -> bool:
    """Say whether a text may have been drawn at random, rather than be written as an example."""
    lowered = text[:100].lower()  # in long ones chance writes words, too
    if any(word in lowered for word in _EXAMPLES):
        return False
    from hashlib import sha256  # noqa: PLC0415 (loads OpenSSL; hardly ever needed)

    if sha256(text).hexdigest()[:16] in _PUBLISHED:
        return False
    return not (_repeats(text) or _is_wordy(text)) and _is_mixed(re.sub(rb"\W", b"", text))


def _repeats(text: bytes) -> bool:
    """Whether many of its runs of three characters are the same."""
    runs = [text[at : at + 3] for at in range(len(text) - 2)]
    return len(set(runs)) < 0.8 * min(len(runs), 400)


def _is_wordy(text: bytes) -> bool:
    """Whether it is of letters alone, and they make words: in capitals known by their vowels."""
    if not text.isalpha():
        return False
    if text.isupper():
        return sum(map(text.count, (b"A", b"E", b"I", b"O", b"U"))) > 0.4 * len(text)
    return len(b"".join(re.findall(rb"[A-Z]?[a-z]{3,}", text))) > 0.7 * len(text)


def _is_mixed(text: bytes) -> bool:
    """Whether its characters differ as much as chance has it: in bits of entropy for each."""
    if len(text) < 8:
        return False
    entropy = -sum(n / len(text) * log2(n / len(text)) for n in Counter(text).values())
    return entropy >= min(2.75, 0.8 * log2(len(text)))


def _has_claims(match: re.Match[bytes]) -> bool:
    """Whether a token claims something of somebody, other than the well-known John Doe."""
    payload, _, signature = match[1].partition(b".")
    from base64 import urlsafe_b64decode  # noqa: PLC0415 (hardly ever needed)

    claims = urlsafe_b64decode(payload[: len(payload) // 4 * 4])
    return not re.search(rb"John Doe|1234567890|example", claims) and looks_random(signature)


_JUDGES: dict[str, Callable[[re.Match[bytes]], bool]] = {
    "random": lambda match: looks_random(match[match.lastindex or 0]),
    "claims": _has_claims,
    "password": lambda match: (
        not (re.search(_USUAL, match[1], re.IGNORECASE) or re.search(_NO_HOST, match[0]))
    ),
    "": lambda _: True,
}
