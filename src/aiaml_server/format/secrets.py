"""Find passwords and keys in a text, so that they are not committed or stored unnoticed.

Two things are recognised: the forms that issuers give their keys (`secrets.txt`), and a name such
as "password", "PIN" or "API key" beside a value with a digit or a symbol. Ordinary text is not.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from aiaml_server.format.invisible import INVISIBLE

__all__ = ["Secret", "find_secret", "reason_to_skip"]

_HIDDEN = re.compile(f"[{INVISIBLE}]")

_EXAMPLE = re.compile(
    r"(?i)example|sample|dummy|placeholder|change[-_]?me|redacted|xxxx|\*\*\*|\.\.\.|insert|foobar"
    r"|your[-_ ]|my[-_]?(?:secret|password|token|key)|not[-_]?a?[-_]?real|fake[-_]|deadbeef"
    r"|0123456|1234567|abcdef|000000|qwerty"
)
"""Words of values that documentation shows as examples."""

_NAME = (
    r"(?P<name>pass(?:word|phrase|wd|code)|pwd|pin(?:-?code)?|secret|token|key)s?"
    r"|Passwort|Kennwort|mot[ ]de[ ]passe|contraseña|senha|пароль|密码|密碼|パスワード|비밀번호"
)
_OTHER_NAME = rf"(?:{_NAME.replace('?P<name>', '?:')}) (?![^\W_])"
_NAMED_VALUE = re.compile(
    rf"""(?ix)
    (?<![^\W_]) (?:{_NAME}) (?![^\W_])
    (?: [ \t] (?!{_OTHER_NAME}) [\w'/-]{{1,24}} ){{0,4}}?   # "PIN of my card"
    ["'`)\]*:]{{0,3}}
    (?:
        \s{{0,4}} (?: := | => | -> | [:=|] {{1,2}} ) \s{{0,4}}
      | [ \t]{{1,4}} (?:is|was|ist|es|est) [ \t]{{1,4}}
    )
    ["'`*(\[]{{0,3}}
    (?P<value> [^\s"'`<>{{}}$%\\;,()\[\]] [^\s"'`<>{{}}\\;,()\[\]]{{2,200}} )
    """
)
_CAMEL_CASE_NAME = re.compile(r"(?<=[a-z])(?=(?:Password|Passphrase|Secret|Token|Key)\b)")
_SECRET_KEY_NAME = re.compile(
    r"(?i)(?:api|access|auth|secret|private|encryption|signing|master|admin|service|client|consumer"
    r"|app|account|github|deploy|shared|storage|session|webhook|bearer|refresh|bot|license)"
    r"[ _.-]?(?:key|token)"
)
_RANDOM_VALUE = re.compile(r"(?=\D*\d)(?=[^A-Za-z]*[A-Za-z])(?!.*[a-z]{5})[\w+/=.~-]{12,200}")
_IDENTIFIER = re.compile(
    r"(?i)[0-9a-f-]{1,64}|[a-z]{1,10}[-_.]?\d{1,10}|[\w.]{1,20}-[\d-]{1,20}\w?|0x[0-9a-f]*"
)
_PLAIN_WORDS = re.compile(r"[^\W\d_]+[.!?:]?")
_REFERENCE = re.compile(
    r"(?i)https?://|!vault|ghcr\.io|\w+@\d|arn:|file:|~?/[\w.-]+/|\./|ssh-(?:rsa|ed25519) |sha\d"
    r"|\w{1,40}\.\w{1,40}\.\w"
    r"|(?:os|process|env|config|settings|self|this|vault|secrets?|request|args|options)\."
    r"|\w*(?:env|secret|password|passwd|passphrase|token|_key)\w*$"
)
"""Values that say where a secret is, not what it is."""


class Secret(NamedTuple):
    """A secret in a text.

    Attributes:
        kind: what it is, such as "a GitHub token"; never the value itself.
        line: the line on which it begins, counted from 1.
    """

    kind: str
    line: int


def find_secret(text: str | bytes) -> Secret | None:
    """Return the first secret of a text, or None.

    The text is read as a person sees it: without invisible characters, and with full-width letters
    as plain ones. Bytes that are not UTF-8 are ignored.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "ignore")
    if not text.isascii():
        text = _HIDDEN.sub("", unicodedata.normalize("NFKC", text))
    for kind, pattern in _rules():
        for match in pattern.finditer(text):
            if not _EXAMPLE.search(match[0][:80]):
                return _secret(kind, text, match.start())
    named = _CAMEL_CASE_NAME.sub("_", text)
    for match in _NAMED_VALUE.finditer(named):
        before_value = named[max(0, match.start() - 20) : match.start("value")]
        is_call = named[match.end() : match.end() + 1] == "("
        if not is_call and _looks_secret(match["name"] or "password", before_value, match["value"]):
            return _secret("a password or key", named, match.start())
    return None


def reason_to_skip(name: str, data: bytes) -> str:
    """Return why a file must not be committed, or an empty text.

    Args:
        name: of the file; it may hold a secret as well.
        data: the content of the file.
    """
    if secret := find_secret(data):
        return f"it seems to hold {secret.kind}"
    if secret := find_secret(name):
        return f"its name seems to hold {secret.kind}"
    return ""


@cache
def _rules() -> list[tuple[str, re.Pattern[str]]]:
    """Return the kind and the pattern of each rule of the data file."""
    rules = []
    kind = ""
    for line in files(__package__).joinpath("secrets.txt").read_text("utf-8").splitlines():
        if line.startswith("    "):
            rules.append((kind, re.compile(line.strip(), re.ASCII)))
        elif not line.startswith("#"):
            kind = line
    return rules


def _secret(kind: str, text: str, start: int) -> Secret:
    return Secret(kind, text.count("\n", 0, start) + 1)


def _looks_secret(name: str, before_value: str, value: str) -> bool:
    """Return whether a value beside a name may be a secret: it has a digit or a symbol.

    "Key" and "token" are also names of what is no secret ("primary key: user_2"). Unless the name
    says more, such as "API key", the value has to look drawn at random.
    """
    value = value.rstrip(".!?:*_")
    if _EXAMPLE.search(value) or _REFERENCE.match(value) or _PLAIN_WORDS.fullmatch(value):
        return False
    if name.lower().startswith("pin"):
        return bool(re.fullmatch(r"\d[\d -]{2,10}\d", value))
    if name.lower() in ("key", "token") and not _SECRET_KEY_NAME.search(before_value):
        return bool(_RANDOM_VALUE.fullmatch(value)) and not _IDENTIFIER.fullmatch(value)
    if name.lower() in ("key", "token"):
        return bool(re.fullmatch(r"(?=\D*\d)(?=[^A-Za-z]*[A-Za-z]).{8,}", value))
    return len(value) >= 4
