"""What the two formats share: how an edit is refused, and how it is checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from aiaml_server.errors import AiamlError

BOM = "\ufeff"


class ConfigError(AiamlError):
    """A configuration file that cannot be used as it is. Nothing was changed."""


class RefusedEdit(Exception):  # noqa: N818 (nothing failed: the text stays as it is)
    """A text that cannot be parsed, or not be edited safely."""


def has_content(text: str) -> bool:
    """Return whether a file has more than what is left of one that was made for us."""
    rest = re.sub(r'"(mcpServers|servers|context_servers|hooks)":\{\}', "", "".join(text.split()))
    return rest not in ("", "{}", '{"version":1,}')


def dig(value: Any, keys: Sequence[str]) -> Any:
    """Return what is under nested keys of a parsed document; None if there is nothing."""
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
