"""`sessions`: the memory that a repository keeps of its agents' sessions."""

import os

from aiaml_server.errors import InvalidSetting
from aiaml_server.toolset import Door, Variable


def _roots(variable: str, value: str) -> tuple[str, ...]:
    """Read directories, separated as in PATH; an empty value allows every repository."""
    roots = [each for each in value.split(os.pathsep) if each]
    if value and not roots:
        raise InvalidSetting(variable, f"is {value!r}, which names no directory")
    for root in roots:
        if not os.path.isabs(os.path.expanduser(root)):  # noqa: PTH111, PTH117 (cheap to import)
            raise InvalidSetting(variable, f"holds {root!r}; each must be an absolute path")
    return tuple(os.path.expanduser(root) for root in roots)  # noqa: PTH111


DOOR = Door(
    name="sessions",
    summary="session logs and a summary for each agent, in the repository that it works on",
    tools=("start_session", "append_entry", "read_summary", "update_summary", "list_sessions"),
    variables=(
        Variable(
            "AIAML_REPOSITORIES",
            "",
            _roots,
            "the only directories below which repositories are touched, separated as in PATH",
        ),
    ),
    build="aiaml_server.toolsets.sessions.tools:build",
    verbs="aiaml_server.toolsets.sessions.verbs:sessions",
    checks="aiaml_server.toolsets.sessions.verbs:checks",
    demo="aiaml_server.toolsets.sessions.demo:demo",
)
