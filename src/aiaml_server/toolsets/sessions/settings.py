"""The settings: one table of variables, and how each is read."""

from __future__ import annotations

import os

from aiaml_server.errors import InvalidSetting, ToolError
from aiaml_server.toolset import Setting
from aiaml_server.toolsets.warning import CHECK_SECRETS


def _roots(variable: str, value: str) -> tuple[str, ...]:
    """Read directories, separated as in PATH; an empty value allows every repository."""
    roots = [os.path.expanduser(each) for each in value.split(os.pathsep) if each]  # noqa: PTH111
    if value and not roots:
        raise InvalidSetting(variable, f"is {value!r}, which names no directory")
    for root in roots:
        if not os.path.isabs(root):  # noqa: PTH117 (cheap to import)
            raise InvalidSetting(variable, f"holds {root!r}; each must be an absolute path")
    return tuple(roots)


def _agent(variable: str, value: str) -> str:
    from aiaml_server.toolsets.sessions.place import check_agent  # noqa: PLC0415 (only where it is set)

    try:
        return check_agent(value) if value else ""
    except ToolError as error:
        raise InvalidSetting(variable, f"is {value!r}: {error}") from error


def _root(variable: str, value: str) -> str:
    root = os.path.expanduser(value)  # noqa: PTH111
    if root and not os.path.isabs(root):  # noqa: PTH117
        raise InvalidSetting(variable, f"is {value!r}; it must be an absolute path")
    return root


VARIABLES = (
    Setting(
        "AIAML_REPOSITORIES",
        "",
        _roots,
        "the only directories below which repositories are touched, separated as in PATH",
    ),
    Setting(
        "AIAML_SESSIONS_AGENT",
        "",
        _agent,
        "the agent's name, where a call names none",
        changes_tools=True,
    ),
    Setting(
        "AIAML_SESSIONS_REPO",
        "",
        _root,
        "the repository, where a call names none",
        changes_tools=True,
    ),
    CHECK_SECRETS,
)
