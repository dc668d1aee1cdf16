"""What an agent is told at a session's start: its summary, and what its newest log left open."""

from __future__ import annotations

import os
from collections.abc import Iterator

from aiaml_server.toolset import HookInput
from aiaml_server.toolsets.failures import shorten
from aiaml_server.toolsets.sessions import MANIFEST
from aiaml_server.toolsets.sessions.document import Document
from aiaml_server.toolsets.sessions.memory import AgentMemory
from aiaml_server.toolsets.sessions.place import agents, top_of

OPEN = ("open", "next")
"""Words of the sections that hold what is open: of the schema as specified, and of most others."""

_SUMMARY = 500  # characters
_LEFT = 300  # of each section


def at_start(given: HookInput) -> Iterator[str]:
    """Yield the summary, and each section of the newest log that holds what is open.

    They are of the agent that the settings name, or of the only one that the repository has.
    """
    root = top_of(given.directory)
    values = MANIFEST.read_settings(os.environ)
    named = [values["AIAML_SESSIONS_AGENT"]] if values["AIAML_SESSIONS_AGENT"] else agents(root)
    if len(named) != 1:
        return
    memory = AgentMemory(str(root), named[0], values["AIAML_REPOSITORIES"])
    summary = Document(memory.summary().text.encode())
    said = " ".join(_entries(summary, section.text) for section in summary.sections).strip()
    if said:
        yield f"summary of {named[0]}: {shorten(said, _SUMMARY)}"
    for day in memory.place.dates()[:1]:
        log = Document(memory.place.read(memory.place.log(day)) or b"")
        for section in log.sections:
            left = _entries(log, section.text)
            if left and section.text.casefold().startswith(OPEN):
                yield f"log of {day}, {section.text}: {shorten(left, _LEFT)}"


def _entries(document: Document, name: str) -> str:
    return " ".join(document.entries(name).decode("utf-8", "replace").split())
