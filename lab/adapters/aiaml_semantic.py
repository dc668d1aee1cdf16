"""AIAML's toolset `semantic`: SQLite, found by words and by meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..adapter import Call
from ..client import Client
from .aiaml import Server as Default


class Server(Default):
    """Memories of a project, in one database."""

    name = "aiaml-semantic"
    title = "AIAML, toolset semantic"
    package = "pip ..[semantic]"
    toolset = "semantic"
    notes = {"search": "by words alone: the model could not be fetched where this was measured"}

    def environ(self, place: Path) -> Mapping[str, str]:
        """Let `place` be the project."""
        return {**super().environ(place), "AIAML_SEMANTIC_PROJECT": str(place)}

    def prepare(self, place: Path) -> None:
        """Make the folder that makes a project of it."""
        (place / ".memory").mkdir(mode=0o700)

    def store(self, key: str, text: str) -> Call:
        """Store."""
        return "store_memory", {"content": text}

    def read(self, client: Client, handle: str) -> str:
        """List this id alone, which gives it whole."""
        return client.call("list_memories", {"ids": [handle]})

    def search(self, client: Client, question: str, words: Sequence[str]) -> list[str]:
        """Ask the question, and behind it the words, as the description says."""
        return [client.call("search_memory", {"query": " ".join([question, *words])})]

    def find(self, client: Client, key: str) -> str:
        """Search the key, and have what is found whole."""
        return client.call("search_memory", {"query": key, "explain": True})

    def mark(self, handle: str) -> str:
        """Return the id as it stands in JSON."""
        return f'"{handle}"'
