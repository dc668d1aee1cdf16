"""What secrets look like: forms.toml, read once."""

from __future__ import annotations

import sys
from functools import cache
from pkgutil import get_data
from typing import Any, NamedTuple


class Form(NamedTuple):
    """One form of secret.

    Attributes:
        name: what it is, as a person is told: "a GitHub token".
        anchors: texts of which every such secret has one.
        pattern: the form, as a regular expression.
        source: the title of the issuer's page.
        back: how many characters before the anchor the form begins.
        beside: the anchor is the secret's name, in lower case though it may stand in any: "name"
            and "noun" say what may stand between them, and the form is the value alone; "after"
            is a form that begins behind the name. Empty where the secret is known by itself.
        left: whether the character before must not be a letter or digit.
        judge: how examples are told from secrets: a key of `judging.JUDGES`.
    """

    name: str
    anchors: tuple[str, ...]
    pattern: str
    source: str
    back: int = 0
    beside: str = ""
    left: bool = True
    judge: str = "random"


@cache
def forms() -> tuple[Form, ...]:
    """Return all rows of the table."""
    pieces = _loaded()["pieces"]
    found = []
    for row in _loaded()["form"]:
        for name, piece in pieces.items():
            row["pattern"] = row["pattern"].replace(f"<{name}>", piece)
        found.append(Form(**row | {"anchors": tuple(row["anchors"])}))
    return tuple(found)


@cache
def pairs() -> frozenset[bytes]:
    """Return the pairs of letters that words are made of, in lower case."""
    followers: dict[str, str] = _loaded()["followers"]
    return frozenset(f"{a}{b}".encode() for a in followers for b in followers[a])


@cache
def _loaded() -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415 (only where a text may hold a secret)
    else:
        import tomli as tomllib  # noqa: PLC0415
    data = get_data(__package__, "forms.toml")  # also from a zip file
    return tomllib.loads((data or b"").decode())
