"""Whether a value was drawn at random, or written as an example."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import pairwise, product
from math import log2

from aiaml_server.format.leaks.table import pairs

_EXAMPLE = re.compile(
    rb"example|sample|dummy|placeholder|changeme|change_me|redacted|xxxxx|your(?:[_-]|key|token"
    rb"|secret|api)|insert|not(?:-?a-?)?-?real|fake(?:key|[_-])|foobar|abcdef|123456|234567|987654"
    rb"|qwerty|deadbeef|0000000|secretkey|api[_-]?key|testtest|goes-?here|-here"
)

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


def looks_random(text: bytes) -> bool:
    """Say whether a text may have been drawn at random, rather than be written as an example."""
    written = _is_example(text) or _repeats(text) or _is_wordy(text) or _is_published(text)
    return not written and _is_mixed(re.sub(rb"\W", b"", text))


def _is_example(text: bytes) -> bool:
    """Whether it has words that examples have."""
    return bool(_EXAMPLE.search(text[:100].lower()))  # in long ones chance writes words, too


def _is_published(text: bytes) -> bool:
    """Whether it is a key that its issuer publishes."""
    from hashlib import sha256  # noqa: PLC0415 (loads OpenSSL; hardly ever needed)

    return sha256(text).hexdigest()[:16] in _PUBLISHED


def _repeats(text: bytes) -> bool:
    """Whether many of its runs of three characters are the same."""
    runs = set(zip(text, text[1:], text[2:], strict=False))
    return len(runs) < 0.8 * min(max(0, len(text) - 2), 400)


def _is_wordy(text: bytes) -> bool:
    """Whether it is of letters alone, and they make words: in capitals known by their vowels."""
    if not text.isalpha():
        return False
    if text.isupper():
        return sum(map(text.count, (b"A", b"E", b"I", b"O", b"U"))) > 0.4 * len(text)
    return len(b"".join(re.findall(rb"[A-Z]?[a-z]{3,}", text))) > 0.7 * len(text)


def _is_mixed(text: bytes, bits: float = 2.75) -> bool:
    """Whether its characters differ as much as chance has it: in bits of entropy for each."""
    if len(text) < 8:
        return False
    shares = [text.count(each) / len(text) for each in set(text)]
    return -sum([share * log2(share) for share in shares]) >= min(bits, 0.8 * log2(len(text)))


def _has_claims(match: re.Match[bytes]) -> bool:
    """Whether a token claims something of somebody, other than the well-known John Doe."""
    payload, _, signature = match[1].partition(b".")
    from base64 import urlsafe_b64decode  # noqa: PLC0415 (hardly ever needed)

    claims = urlsafe_b64decode(payload[: len(payload) // 4 * 4])
    return not re.search(rb"John Doe|1234567890|example", claims) and looks_random(signature)


# --- values of no known form ----------------------------------------------------------------------
#
# How the numbers were chosen: on one half of 267 near misses that were written before the rule
# (tests/fixtures/named_no_secrets.txt), on 1,053 files of Django 5.2 and Python 3.11, and on 2,700
# drawn values of nine alphabets; the other half of the near misses judged the result.

_ODD_SHARE = 0.35  # less, and an alarm in code; 0.4 misses twice as many, 0.5 seven times
_ODD_SHARE_IN_LOWER_CASE = 0.6  # 0.5 takes two names in code for secrets, 0.4 four
_ODD_PAIRS = 4  # with 3, an alarm; 5 misses twice as many
_BITS = 2.5  # for each character; with 2.75, fewer than 48 of 50 are found

_ELSEWHERE = re.compile(  # paths, variables, addresses, digests, and what is public by its form
    rb"\$\w*$|%\w*%$|[~.]?/?[a-z]{3,}/[\w.-]{3,}/|https?:|arn:|urn:|data:|sha\d|SHA\d|md5"
    rb"|\$2[aby]\$|\$?argon2|pk[._](?:live|test|eyJ)|0x(?:[0-9a-fA-F]{16}|[0-9a-fA-F]{40})$"
    rb"|(?:[0-9A-Fa-f]{2}:){4}"
)
_MADE = re.compile(rb"[$%][{(]|\{\{|://|::")  # by a template, or a place
_DIGEST = re.compile(rb"(?:[\w.-]{0,60}[_.-])?[0-9a-f]{32,64}$|[0-9a-fA-F-]+$")
_NAMES_KEY = re.compile(rb"key|clave|chave|chiave|ssel")  # of names in lower case, as the next two
_STRONG = re.compile(  # beside any other key, what may be a digest or an id is none of ours
    rb"secret|token|passw|pwd|passphrase|(?:api|access|auth|private|signing|encryption|crypt|master"
    rb"|admin|service|client|consumer|app|account|deploy|shared|storage|session|webhook|licen[cs]e"
    rb"|ssh|x)[ _.-]?(?:key|schl)|(?:clave|chave|chiave)(?: de)? api"
)
_HARMLESS = re.compile(  # names of what is public, or tells where or of what kind a secret is
    rb"\$\{?\w{0,24}(?:key|token|secret|passw|pwd)"
    rb"|(?:public|publishable|pub|primary|foreign|partition|sort|shard|cache|idempotency|host|site"
    rb"|authority|subject|object|measurement|tracking|correlation|page|next|csrf|xsrf|cancellation"
    rb"|vapid|image|contract|spl|device)[ _.-]{0,2}(?:public[ _.-])?(?:key|token)"
    rb"|(?:key|token|secret|passw\w{0,5}|pwd)s?[ _.-]?(?:id|identifier|fingerprint|file|path|url"
    rb"|uri|name|arn|hash|digest|type|size|alg|algorithm|version|count|address|contract|lifetime"
    rb"|endpoint|code|board|word|ring|space|store|policy|error)s?(?![a-z])"
)


@lru_cache(16_384)  # a value may have many names before it, in many forms; `find` forgets it
def looks_drawn(value: bytes) -> bool:
    """Say whether a value of no known form looks random, made of no words, and tells no place."""
    inner = _unpacked(value)
    if _ELSEWHERE.match(inner) or _MADE.search(inner) or not _is_odd(inner):
        return False
    looks_so = not _is_example(inner) and _is_mixed(inner, _BITS) and not _repeats(inner)
    return looks_so and not _is_published(inner)


def may_look_drawn(text: bytes) -> bool:
    """Say at once, of most texts, that no part of them looks drawn.

    In base64, what looks drawn has more odd pairs than it has itself, but for one in thousands.
    """
    return _said(text).count(True) >= _ODD_PAIRS // 2


def _unpacked(value: bytes) -> bytes:
    """Return the text that a value hides in base64; the value itself when it hides none."""
    if len(value) % 4 or not re.fullmatch(rb"[A-Za-z0-9+/]{5,}={0,2}", value):
        return value
    from base64 import b64decode  # noqa: PLC0415 (hardly ever needed)

    inner = b64decode(value)
    return inner.strip() if re.fullmatch(rb"[\t\n\r -~]+", inner) else value


def _is_odd(text: bytes) -> bool:
    """Whether its neighbouring characters are such as words do not have, for the most part.

    Of two letters, a pair that is rare in words is odd; a letter beside a digit, or one of them
    beside a sign that names do not have, always is. Two digits, or a hyphen, say nothing: in
    `user-2024` every pair that counts is usual, and in `x7-Qk2vR` each is odd.
    """
    said = _said(text)
    odd, usual = said.count(True), said.count(False)
    share = _ODD_SHARE_IN_LOWER_CASE if _LOWER.fullmatch(text) else _ODD_SHARE
    return odd >= _ODD_PAIRS and odd >= share * (odd + usual)


def _said(text: bytes) -> list[bool | None]:
    """Return of each pair of neighbours whether it is odd; None where it says nothing."""
    return [*map(_pairs().get, pairwise(text.lower().translate(_KINDS)))]


_LOWER = re.compile(rb"[a-z_.-]+")
_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_DIGIT, _SIGN, _SILENT = b"0!."
_KINDS = bytes(
    each if each in _LETTERS
    else _DIGIT if chr(each).isdigit() and each < 128
    else _SILENT if chr(each) in "-_./:,=+@&" or not 32 < each < 127
    else _SIGN
    for each in range(256)
)  # fmt: skip


@cache
def _pairs() -> dict[tuple[int, int], bool]:
    """Return of each pair that says something whether it is odd."""
    words = pairs()
    found = {(a, b): bytes((a, b)) not in words for a, b in product(_LETTERS, repeat=2)}
    for letter in _LETTERS:
        for other in (_DIGIT, _SIGN):
            found[letter, other] = found[other, letter] = True
    return found | {(_DIGIT, _SIGN): True, (_SIGN, _DIGIT): True}


def _is_named(match: re.Match[bytes]) -> bool:
    """Whether a value beside a name looks drawn, and the name is not one of something public."""
    start, end = match.span(match.lastindex or 0)
    before = match.string[max(0, match.start() - 40) : match.start()].rpartition(b"\n")[2]
    name = (before + match.string[match.start() : start]).lower()
    if _HARMLESS.search(name):
        return False
    is_weak = _NAMES_KEY.search(name) and not _STRONG.search(name)
    value = match.string[start:end]
    return not (is_weak and _DIGEST.match(value)) and looks_drawn(value)


def _is_kubernetes(match: re.Match[bytes]) -> bool:
    """Whether these are the data of a Secret, and one of them looks drawn."""
    around = match.string[max(0, match.start() - 2000) : match.end() + 2000]
    if not re.search(rb"(?m)^[ \t]{0,8}kind:[ \t]{1,4}[\"']?Secret\b", around):
        return False
    values = re.findall(rb":[ \t]{1,4}[\"']?([^\s\"']{10,200})", match[1])
    return any(map(looks_drawn, values))


JUDGES: dict[str, Callable[[re.Match[bytes]], bool]] = {
    "random": lambda match: looks_random(match[match.lastindex or 0]),
    "claims": _has_claims,
    "password": lambda match: (
        not (re.search(_USUAL, match[1], re.IGNORECASE) or re.search(_NO_HOST, match[0]))
    ),
    "named": _is_named,
    "drawn": lambda match: looks_drawn(match[match.lastindex or 0]),
    "kubernetes": _is_kubernetes,
    "words": lambda match: len(set(words := re.findall(rb"[a-z]+", match[1]))) > 0.8 * len(words),
    "": lambda _: True,
}
"""How the match of a form is told from an example, by the name of the way."""
