"""AIAML's default toolset: one markdown file for each memory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..adapter import Adapter, Call, field
from ..client import Client


class Server(Adapter):
    """Memories of a person, found by keywords."""

    name = "aiaml"
    title = "AIAML"
    package = "pip .."
    toolset = "aiaml"
    files = "store/files"
    notes = {
        "search": "`think` answers with ids: what is read is those and five memories",
        "start": "its first answer is a copy that an earlier process left; its search is not",
    }

    def command(self) -> list[str]:
        """Run the installed program."""
        return [str(self.home / "bin" / "python"), "-m", "aiaml_server"]

    def environ(self, place: Path) -> Mapping[str, str]:
        """Keep memories in `place`, without sync."""
        settings = {"AIAML_TOOLSETS": self.toolset, "AIAML_ENABLE_SYNC": "false"}
        return settings | {"AIAML_MEMORY_DIR": str(place / "store")}

    def store(self, key: str, text: str) -> Call:
        """Remember."""
        return "remember", {"agent": "lab", "user": "lab", "topics": ["lab"], "content": text}

    def stored(self, key: str, answer: str) -> str:
        """Return the id."""
        return field(answer, "memory_id")

    def read(self, client: Client, handle: str) -> str:
        """Recall."""
        return client.call("recall", {"memory_ids": [handle]})

    def search(self, client: Client, question: str, words: Sequence[str]) -> list[str]:
        """Think of the words, as the tool's description asks agents to."""
        return [client.call("think", {"keywords": list(words)})]

    def find(self, client: Client, key: str) -> str:
        """Recall what the key finds."""
        found = json.loads(client.call("think", {"keywords": [key]}))
        return client.call("recall", {"memory_ids": [each["id"] for each in found]})

    def syncing(self, place: Path, remote: Path) -> Mapping[str, str] | None:
        """Exchange through a git repository, which only the default toolset does."""
        often = {"AIAML_ENABLE_SYNC": "true", "AIAML_SYNC_INTERVAL": "1"}
        return often | {"AIAML_GITHUB_REMOTE": str(remote)} if self.toolset == "aiaml" else None
