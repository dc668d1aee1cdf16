"""mcp-memory-libsql: entities in a libSQL database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..adapter import Adapter, Call
from ..client import Client, RefusedError


class Server(Adapter):
    """An entity for each text."""

    name = "libsql"
    title = "mcp-memory-libsql"
    package = "npm mcp-memory-libsql"
    largest = 4_000
    notes = {
        "": "an observation has at most 4,096 characters: its texts are shorter than the others'",
        "search": "asked each word by itself, and ranked by the lab by how many found an entity, "
        "which is more than the server does",
    }

    def command(self) -> list[str]:
        """Run the installed program."""
        return ["node", str(self.home / "node_modules/mcp-memory-libsql/dist/index.js")]

    def environ(self, place: Path) -> Mapping[str, str]:
        """Keep the database in `place`."""
        return {"LIBSQL_URL": f"file:{place / 'memory.db'}"}

    def store(self, key: str, text: str) -> Call:
        """Create an entity with one observation."""
        entity = {"name": key, "entityType": "memory", "observations": [text]}
        return "create_entities", {"entities": [entity]}

    def stored(self, key: str, answer: str) -> str:
        """Return the name."""
        if "Successfully" not in answer:
            raise RefusedError(answer[:200])
        return key

    def read(self, client: Client, handle: str) -> str:
        """Search the name."""
        return client.call("search_nodes", {"query": handle})

    def search(self, client: Client, question: str, words: Sequence[str]) -> list[str]:
        """Search each word: all of them at once find nothing."""
        return [client.call("search_nodes", {"query": word, "limit": 25}) for word in words]

    def mark(self, handle: str) -> str:
        """Return the name as it stands in JSON."""
        return f'"{handle}"'
