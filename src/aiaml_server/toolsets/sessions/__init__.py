"""The toolset `sessions`: a repository's own record of its agents' sessions."""

from aiaml_server.toolset import Manifest
from aiaml_server.toolsets.sessions.settings import SETTINGS

MANIFEST = Manifest(
    name="sessions",
    summary="session logs and a summary for each agent, in the repository that it works on",
    tools=("start_session", "append_entry", "read_summary", "update_summary", "list_sessions"),
    settings=SETTINGS,
    build="aiaml_server.toolsets.sessions.tools:build",
    commands="aiaml_server.toolsets.sessions.cli:sessions",
    hooks={"session_start": "aiaml_server.toolsets.sessions.hooks:session_start"},
)
