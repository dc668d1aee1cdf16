"""YAML, read and shown but not edited: one client has it, and its entry is put in by hand.

PyYAML says what a text means. No library that writes YAML keeps every other byte of a file
(ruamel.yaml 0.19.1 changes indentation and spaces, seen 2026-11-24).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aiaml_server.clients.text import BOM, Refused

MOST = 24 * 1024  # bytes of a file; PyYAML takes some 13 ms a KiB


def entry(text: str, keys: Sequence[str]) -> Any:
    """Return the value under nested keys, None where there is none.

    Raises:
        Refused: the text cannot be read, or something on the way is no mapping.
    """
    value = _load(text)
    for depth, key in enumerate(keys):
        if value is None:
            return None
        if not isinstance(value, dict):
            name = ".".join(keys[:depth]) or "the text"
            raise Refused(0, f"{name} should be a mapping")
        value = value.get(key)
    return value


def put(text: str, keys: Sequence[str], value: Mapping[str, Any]) -> str:
    """Return a text that has a mapping under nested keys, for a person to copy.

    Raises:
        Refused: there is a text already, which would have to be edited.
    """
    import yaml  # noqa: PLC0415 (one client's file is YAML)

    if text:
        raise Refused(0, "a file in YAML is edited by hand")
    whole: Any = dict(value)
    for key in reversed(keys):
        whole = {key: whole}
    return yaml.safe_dump(whole, sort_keys=False, allow_unicode=True)


def remove(text: str, keys: Sequence[str]) -> str:
    """Return the text as it is, where it has nothing under the keys.

    Raises:
        Refused: it has, and would have to be edited.
    """
    if entry(text, keys) is not None:
        raise Refused(0, f"a file in YAML is edited by hand: take {'.'.join(keys)} out of it")
    return text


def _load(text: str) -> Any:
    import yaml  # noqa: PLC0415 (see `put`)

    try:
        return yaml.safe_load(text.removeprefix(BOM))
    except RecursionError:
        raise Refused(0, "its values are nested too deeply") from None
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or "it is no YAML that can be read"
        raise Refused(mark.index if mark else 0, str(reason)) from None
