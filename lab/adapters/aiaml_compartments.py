"""AIAML's toolset `compartments`: the working memory of a session, in one JSON file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..adapter import Call, field
from ..client import Client
from .aiaml import Server as Default


class Server(Default):
    """Entries of the compartment `session`."""

    name = "aiaml-compartments"
    title = "AIAML, toolset compartments"
    toolset = "compartments"
    largest = 2_000
    notes = {"search": "working memory of a task, made for few entries"}

    def environ(self, place: Path) -> Mapping[str, str]:
        """Keep the file in `place`, one session for all, and no small limit."""
        return {
            **super().environ(place),
            "AIAML_COMPARTMENTS_FILE": str(place / "memory.json"),
            "AIAML_SESSION": "lab",
            "AIAML_COMPARTMENT_LIMIT_SESSION": "1000000",
        }

    def store(self, key: str, text: str) -> Call:
        """Save into the session's compartment."""
        return "save_memory", {"compartment": "session", "content": text}

    def stored(self, key: str, answer: str) -> str:
        """Return the id."""
        return field(answer, "id")

    def read(self, client: Client, handle: str) -> str:
        """Get by id."""
        return client.call("get_memory", {"compartment": "session", "id": handle})

    def search(self, client: Client, question: str, words: Sequence[str]) -> list[str]:
        """Ask the question, and behind it the words."""
        query = " ".join([question, *words])
        return [client.call("get_memory", {"compartment": "session", "query": query, "limit": 25})]

    def find(self, client: Client, key: str) -> str:
        """Return what the key finds."""
        return client.call("get_memory", {"compartment": "session", "query": key})
