"""`sessions`: the memory that a repository keeps of its agents' sessions."""

from aiaml_server.toolset import Manifest
from aiaml_server.toolsets.sessions.settings import VARIABLES

MANIFEST = Manifest(
    name="sessions",
    summary="session logs and a summary for each agent, in the repository that it works on",
    tools=("start_session", "append_entry", "read_summary", "update_summary", "list_sessions"),
    settings=VARIABLES,
    build="aiaml_server.toolsets.sessions.tools:build",
    commands="aiaml_server.toolsets.sessions.verbs:sessions",
    checks="aiaml_server.toolsets.sessions.verbs:checks",
    hooks={"session_start": "aiaml_server.toolsets.sessions.hooks:at_start"},
)
