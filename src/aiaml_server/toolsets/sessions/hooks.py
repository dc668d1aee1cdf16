"""The hook at the start of a session: the summary, and what the newest log left open."""

from __future__ import annotations

import os

from aiaml_server.toolset import HookInput
from aiaml_server.toolsets.failures import shorten
from aiaml_server.toolsets.sessions.markdown import Document
from aiaml_server.toolsets.sessions.paths import find_repository, list_agents
from aiaml_server.toolsets.sessions.service import AgentMemory
from aiaml_server.toolsets.sessions.settings import AGENT

MAX_CHARACTERS = 500
"""The longest text that is taken from one section."""
OPEN_SECTIONS = ("Open Questions", "Next Actions")


def session_start(event: HookInput) -> list[str]:
    """Return texts of the agent that the settings name, or of the only one in the repository."""
    root = find_repository(event.directory)
    agent = AGENT.value(os.environ)
    names = [agent] if agent else list_agents(root)
    if len(names) != 1:
        return []
    memory = AgentMemory(str(root), names[0])
    summary = Document(memory.read_summary()["summary"].encode())
    texts = [f"{heading.text}: {_one_line(summary, heading.text)}" for heading in summary.sections]
    for day in memory.directory.dates()[:1]:
        log = Document(memory.directory.read(memory.directory.log_name(day)) or b"")
        texts += [f"{name} of {day}: {_one_line(log, name)}" for name in OPEN_SECTIONS]
    return [shorten(text, MAX_CHARACTERS) for text in texts if not text.endswith(": ")]


def _one_line(document: Document, section: str) -> str:
    return " ".join(document.body(section).decode("utf-8", "replace").split())
