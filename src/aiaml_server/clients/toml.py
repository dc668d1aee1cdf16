"""Edit a table of a TOML file in place. Everything else stays unchanged.

A table that goes is cut out by its lines, and a new one is appended. Each edit is checked: the new
text has to mean what the old one meant, apart from the edit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from aiaml_server.clients.text import BOM, RefusedEdit, dig, verified

_END = re.compile(r"(?:^[ \t\r]*(?:#.*)?(?:\n|\Z))*\Z", re.MULTILINE)  # blank lines and comments


def load(text: str) -> dict[str, Any]:
    """Return the value of a text.

    Raises:
        RefusedEdit: it is not TOML.
    """
    try:
        return tomlkit.parse(text.removeprefix(BOM).replace("\r\n", "\n")).unwrap()
    except (TOMLKitError, ValueError) as error:
        raise RefusedEdit(f"it is not valid TOML: {error}") from None


def put(text: str, keys: Sequence[str], table: Mapping[str, Any]) -> str:
    """Set the table under two nested keys.

    Raises:
        RefusedEdit: the text is not TOML, or cannot be edited safely.
    """
    outer, name = keys
    if dig(load(text), keys) is not None:
        text = remove(text, keys)
    expected = load(text)
    expected.setdefault(outer, {})[name] = table
    new = tomlkit.dumps({outer: {name: table}})
    if text.strip():
        new = ("\n" if text.endswith("\n") else "\n\n") + new
    return verified(load, text + (new.replace("\n", "\r\n") if "\r\n" in text else new), expected)


def remove(text: str, keys: Sequence[str]) -> str:
    """Remove the existing table under two nested keys, with the tables in it.

    Raises:
        RefusedEdit: see `put`.
    """
    outer, name = keys
    expected = load(text)
    del expected[outer][name]
    if not expected[outer]:
        del expected[outer]
    header = rf"[ \t]*\[+[ \t]*[\"']?{outer}[\"']?[ \t]*\.[ \t]*[\"']?{name}[\"']?[ \t]*[\].]"
    table = re.compile(rf"(?:^{header}.*(?:\n(?![ \t]*\[).*)*\n?)+", re.MULTILINE)
    return verified(load, table.sub(_comments_behind, text), expected)


def _comments_behind(table: re.Match[str]) -> str:
    """Return the comments at the end of a table's lines, which belong to what follows."""
    end = _END.search(table[0])
    return end[0] if end and "#" in end[0] else ""
