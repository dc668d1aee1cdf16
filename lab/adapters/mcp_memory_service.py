"""mcp-memory-service: SQLite with vectors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..adapter import Adapter, Call
from ..client import Client, RefusedError


class Server(Adapter):
    """A memory for each text."""

    name = "mcp-memory-service"
    title = "mcp-memory-service"
    package = "pip mcp-memory-service"
    python = "__import__('sqlite3').connect(':memory:').enable_load_extension(True) is None"
    notes = {
        "": "made to find by meaning: without a model, which could not be fetched, it makes its "
        "vectors of hashes, and says so",
        "search": "how well it finds is not measured for that reason",
    }

    def command(self) -> list[str]:
        """Run the installed program."""
        return [str(self.home / "bin" / "memory"), "server"]

    def environ(self, place: Path) -> Mapping[str, str]:
        """Keep the database in `place`; allow vectors of hashes, so that it starts again."""
        return {
            "MCP_MEMORY_BASE_DIR": str(place),
            "MCP_MEMORY_SQLITE_PATH": str(place / "memory.db"),
            "MCP_MEMORY_ALLOW_HASH_EMBEDDINGS": "1",
            "HF_HUB_OFFLINE": "1",
        }

    def store(self, key: str, text: str) -> Call:
        """Store; naming a conversation keeps like texts apart, as its description says."""
        return "memory_store", {"content": text, "conversation_id": "lab"}

    def stored(self, key: str, answer: str) -> str:
        """Return the key: exact search finds the text by it."""
        if not re.search(r"stored successfully", answer):
            raise RefusedError(answer[:200])
        return key

    def read(self, client: Client, handle: str) -> str:
        """Search the key exactly."""
        return client.call("memory_search", {"query": handle, "mode": "exact", "limit": 5})

    def search(self, client: Client, question: str, words: Sequence[str]) -> list[str]:
        """Refuse, for want of a model."""
        raise NotImplementedError

    def find(self, client: Client, key: str) -> str:
        """Read by the key."""
        return self.read(client, key)
