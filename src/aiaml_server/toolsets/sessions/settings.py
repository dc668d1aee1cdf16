"""The settings: one table of variables, and how each is read."""

from __future__ import annotations

import os

from aiaml_server.errors import InvalidSetting
from aiaml_server.toolset import Variable
from aiaml_server.toolsets.warning import CHECK_SECRETS


def _roots(variable: str, value: str) -> tuple[str, ...]:
    """Read directories, separated as in PATH; an empty value allows every repository."""
    roots = [each for each in value.split(os.pathsep) if each]
    if value and not roots:
        raise InvalidSetting(variable, f"is {value!r}, which names no directory")
    for root in roots:
        if not os.path.isabs(os.path.expanduser(root)):  # noqa: PTH111, PTH117 (cheap to import)
            raise InvalidSetting(variable, f"holds {root!r}; each must be an absolute path")
    return tuple(os.path.expanduser(root) for root in roots)  # noqa: PTH111


VARIABLES = (
    Variable(
        "AIAML_REPOSITORIES",
        "",
        _roots,
        "the only directories below which repositories are touched, separated as in PATH",
    ),
    CHECK_SECRETS,
)
