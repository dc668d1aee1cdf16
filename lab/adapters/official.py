"""The official memory server: a graph of entities in one file of JSON lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..adapter import Adapter, Call
from ..client import Client, RefusedError


class Server(Adapter):
    """An entity for each text."""

    name = "official"
    title = "the official memory server"
    package = "npm @modelcontextprotocol/server-memory"
    notes = {
        "": "its authors call it a reference, not a product",
        "search": "`search_nodes` finds what holds the query as it stands, unranked: it was asked "
        "each word by itself, and the lab ranked by how many found an entity, which is more than "
        "the server does",
    }

    def command(self) -> list[str]:
        """Run the installed program."""
        package = "node_modules/@modelcontextprotocol/server-memory/dist/index.js"
        return ["node", str(self.home / package)]

    def environ(self, place: Path) -> Mapping[str, str]:
        """Keep the file in `place`."""
        return {"MEMORY_FILE_PATH": str(place / "memory.jsonl")}

    def store(self, key: str, text: str) -> Call:
        """Create an entity with one observation."""
        entity = {"name": key, "entityType": "memory", "observations": [text]}
        return "create_entities", {"entities": [entity]}

    def stored(self, key: str, answer: str) -> str:
        """Return the name, where the answer shows that it was new."""
        if key not in answer:
            raise RefusedError(answer[:200])
        return key

    def read(self, client: Client, handle: str) -> str:
        """Open by name."""
        return client.call("open_nodes", {"names": [handle]})

    def search(self, client: Client, question: str, words: Sequence[str]) -> list[str]:
        """Search each word."""
        return [client.call("search_nodes", {"query": word}) for word in words]

    def mark(self, handle: str) -> str:
        """Return the name as it stands in JSON."""
        return f'"{handle}"'
