"""The plain-files baseline of the laboratory itself, sound or with one of its faults."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..adapter import Adapter, Call, field
from ..client import Client


class Server(Adapter):
    """A text file for each memory, and nothing that a plain program would not do."""

    name = "files"
    title = "plain files (the lab's baseline)"
    files = "store"
    notes = {
        "search": "whole words, ranked by how many of them a text has; answers show texts whole"
    }

    fault = ""
    """Which of the faults of `mutations.py` it has."""

    def command(self) -> list[str]:
        """Run the module beside this one."""
        return [sys.executable, str(Path(__file__).parent.parent / "baseline.py")]

    def environ(self, place: Path) -> Mapping[str, str]:
        """Keep the files in `place`."""
        return {"LAB_STORE": str(place / "store"), "LAB_FAULT": self.fault}

    def store(self, key: str, text: str) -> Call:
        """Store under an id that the server chooses."""
        return "store", {"text": text}

    def stored(self, key: str, answer: str) -> str:
        """Return the id."""
        return field(answer, "id")

    def read(self, client: Client, handle: str) -> str:
        """Read by id."""
        return client.call("read", {"id": handle})

    def search(self, client: Client, question: str, words: Sequence[str]) -> list[str]:
        """Search by the words."""
        return [client.call("search", {"words": list(words)})]

    def syncing(self, place: Path, remote: Path) -> Mapping[str, str]:
        """Exchange with a folder."""
        return {"LAB_REMOTE": str(remote)}
