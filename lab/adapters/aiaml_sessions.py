"""AIAML's toolset `sessions`: logs of sessions, as markdown in a repository."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..adapter import Call, field
from ..client import Client, texts
from .aiaml import Server as Default

DAY = "2026-01-01"


class Server(Default):
    """Entries of one day's log."""

    name = "aiaml-sessions"
    title = "AIAML, toolset sessions"
    toolset = "sessions"
    largest = 500
    notes = {
        "search": "a log that is read whole: it has no search",
        "start": "with the call that begins a day's log, without which it stores nothing",
    }

    def environ(self, place: Path) -> Mapping[str, str]:
        """Let `place` be the repository, and `lab` the agent."""
        names = {"AIAML_SESSIONS_REPO": str(place), "AIAML_SESSIONS_AGENT": "lab"}
        return {**super().environ(place), **names}

    def prepare(self, place: Path) -> None:
        """Make a repository of it."""
        subprocess.run(["git", "init", "-q", str(place)], check=True)

    def begin(self, client: Client) -> None:
        """Begin the day's log, or open it."""
        client.call("start_session", {"date": DAY})

    def store(self, key: str, text: str) -> Call:
        """Append an entry."""
        return "append_entry", {"section": "Context", "content": text, "date": DAY}

    def stored(self, key: str, answer: str) -> str:
        """Return the log that has it."""
        field(answer, "session_file")
        return f"session-log://lab/{DAY}"

    def read(self, client: Client, handle: str) -> str:
        """Read the whole log."""
        return texts(client.answer(client.request("resources/read", {"uri": handle})))

    def search(self, client: Client, question: str, words: Sequence[str]) -> list[str]:
        """Refuse: there is none."""
        raise NotImplementedError

    def find(self, client: Client, key: str) -> str:
        """Return what the key finds."""
        return self.read(client, f"session-log://lab/{DAY}")
