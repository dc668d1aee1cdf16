"""AIAML's toolset `citations`: markdown memories of a code base, in its repository."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..adapter import Call, field
from ..client import Client
from .aiaml import Server as Default


class Server(Default):
    """A file for each memory in `memories/`."""

    name = "aiaml-citations"
    title = "AIAML, toolset citations"
    toolset = "citations"
    notes = {"search": "made for memories of a code base, not of conversations"}

    def environ(self, place: Path) -> Mapping[str, str]:
        """Let `place` be the repository."""
        return {**super().environ(place), "AIAML_CITATIONS_REPO": str(place)}

    def prepare(self, place: Path) -> None:
        """Make a repository of it."""
        subprocess.run(["git", "init", "-q", str(place)], check=True)

    def store(self, key: str, text: str) -> Call:
        """Save under a subject."""
        return "memory_save", {"subject": key, "content": text}

    def stored(self, key: str, answer: str) -> str:
        """Return the id."""
        return field(answer, "id")

    def read(self, client: Client, handle: str) -> str:
        """Get by id."""
        return client.call("memory_get", {"memory_id": handle})

    def search(self, client: Client, question: str, words: Sequence[str]) -> list[str]:
        """Ask the question, and behind it the words."""
        return [client.call("memory_search", {"query": " ".join([question, *words])})]

    def find(self, client: Client, key: str) -> str:
        """Return what the key finds."""
        return client.call("memory_search", {"query": key})
