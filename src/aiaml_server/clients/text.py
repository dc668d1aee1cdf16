"""Errors and checks that both file formats use."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from aiaml_server.errors import AiamlError

BOM = "\ufeff"


class ConfigError(AiamlError):
    """A configuration file cannot be used. Nothing was changed."""


class RefusedEdit(Exception):  # noqa: N818 (nothing failed: the text stays as it is)
    """A text cannot be parsed or edited safely."""


def has_content(text: str) -> bool:
    """Return whether a file has more than the empty containers that we made."""
    rest = re.sub(r'"(mcpServers|servers|context_servers|hooks)":\{\}', "", "".join(text.split()))
    return rest not in ("", "{}", '{"version":1,}')


def dig(value: Any, keys: Sequence[str]) -> Any:
    """Return the value under nested keys of a parsed document, or None."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def verified(load: Callable[[str], Any], edited: str, expected: Any) -> str:
    """Return an edited text if it means what is expected.

    Raises:
        RefusedEdit: it does not.
    """
    with suppress(RefusedEdit):
        if load(edited) == expected:
            return edited
    raise RefusedEdit("this layout cannot be edited safely")
