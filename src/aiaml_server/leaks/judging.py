"""Whether a value was drawn at random, or written as an example."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from math import log2

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


JUDGES: dict[str, Callable[[re.Match[bytes]], bool]] = {
    "random": lambda match: looks_random(match[match.lastindex or 0]),
    "claims": _has_claims,
    "password": lambda match: (
        not (re.search(_USUAL, match[1], re.IGNORECASE) or re.search(_NO_HOST, match[0]))
    ),
    "": lambda _: True,
}
"""How the match of a form is told from an example, by the name of the way."""
