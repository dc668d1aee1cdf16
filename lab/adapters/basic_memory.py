"""Basic Memory: markdown notes, and a SQLite index beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..adapter import Adapter, Call, field
from ..client import Client


class Server(Adapter):
    """A note for each text."""

    name = "basic-memory"
    title = "Basic Memory"
    package = "pip basic-memory"
    python = "__import__('sys').version_info >= (3, 12, 1) and __import__('sqlite3')"
    notes = {
        "search": "by words: its search by meaning wants a model that could not be fetched",
    }

    def command(self) -> list[str]:
        """Run the installed program."""
        return [str(self.home / "bin" / "basic-memory"), "mcp"]

    def environ(self, place: Path) -> Mapping[str, str]:
        """Keep everything in the home directory, which lies in `place`; ask nobody for updates."""
        return {"BASIC_MEMORY_AUTO_UPDATE": "false", "FASTMCP_CHECK_FOR_UPDATES": "off"}

    def store(self, key: str, text: str) -> Call:
        """Write a note."""
        wanted = {"title": key, "directory": "lab", "output_format": "json"}
        return "write_note", {**wanted, "content": text}

    def stored(self, key: str, answer: str) -> str:
        """Return its permalink."""
        return field(answer, "permalink")

    def read(self, client: Client, handle: str) -> str:
        """Read the note."""
        return client.call("read_note", {"identifier": handle})

    def search(self, client: Client, question: str, words: Sequence[str]) -> list[str]:
        """Search any of the words, by the operator that its description names."""
        query = " OR ".join(words)
        wanted = {"query": query, "page_size": 25, "output_format": "json"}
        return [client.call("search_notes", wanted)]

    def find(self, client: Client, key: str) -> str:
        """Read by title."""
        return self.read(client, key)

    def mark(self, handle: str) -> str:
        """Return the permalink as it stands in JSON."""
        return f'"{handle}"'
