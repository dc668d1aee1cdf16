"""The settings of this toolset."""

from __future__ import annotations

import os

from aiaml_server.errors import InvalidSetting, ToolError
from aiaml_server.settings import CHECK_SECRETS, Setting


def _parse_agent(name: str, value: str) -> str:
    from aiaml_server.toolsets.sessions.paths import check_agent_name  # noqa: PLC0415 (if it is set)

    try:
        return check_agent_name(value) if value else ""
    except ToolError as error:
        raise InvalidSetting(name, f"is {value!r}: {error}") from error


def _parse_repository(name: str, value: str) -> str:
    path = os.path.expanduser(value)  # noqa: PTH111
    if path and not os.path.isabs(path):  # noqa: PTH117
        raise InvalidSetting(name, f"is {value!r}; it must be an absolute path")
    return path


AGENT = Setting(
    "AIAML_SESSIONS_AGENT", "", _parse_agent, "the agent's name where a call gives none"
)
REPOSITORY = Setting(
    "AIAML_SESSIONS_REPO", "", _parse_repository, "the repository where a call gives none"
)
SETTINGS = (AGENT, REPOSITORY, CHECK_SECRETS)
