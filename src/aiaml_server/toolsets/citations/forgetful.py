"""The index of a Forgetful server (package `forgetful-ai`), called through the MCP SDK.

A repository could name any port of this machine, so its own configuration is not enough: the
person must set AIAML_CITATIONS_FORGETFUL to the same address.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from aiaml_server.toolsets.citations.errors import Unavailable
from aiaml_server.toolsets.citations.index import Likeness, MemoryIndex, text_digest
from aiaml_server.toolsets.citations.models import JsonObject, Memory


class ForgetfulIndex(MemoryIndex):
    """Memories on a Forgetful server, marked with a tag of this repository."""

    name = "forgetful"

    def __init__(self, endpoint: str, allowed: str, repository: str) -> None:
        """Take the server's address, the allowed address, and the repository's directory."""
        self._endpoint = endpoint.rstrip("/")
        self._is_allowed = allowed.rstrip("/") == self._endpoint
        self._tag = f"repository-{hashlib.sha256(repository.encode()).hexdigest()[:12]}"

    def add(self, memories: Sequence[Memory]) -> None:
        """Add memories, or replace their texts."""
        self.remove([memory.id for memory in memories])
        for memory in memories:
            self._call(
                "create_memory",
                title=memory.subject,
                content=memory.content[:2000],
                context="a memory of a code base",
                keywords=[],
                tags=[self._tag],
                importance=7,
                source_files=[memory.id],
                encoding_version=text_digest(memory),
            )

    def remove(self, ids: Sequence[str]) -> None:
        """Mark memories as obsolete, which Forgetful never deletes."""
        for entry in self._entries() if ids else ():
            if entry["source_files"][0] in ids:
                reason = "its file was changed or deleted"
                self._call("mark_memory_obsolete", memory_id=entry["id"], reason=reason)

    def digests(self) -> Mapping[str, str]:
        """Return the digest of each memory that the server holds, by id."""
        return {each["source_files"][0]: each["encoding_version"] for each in self._entries()}

    def search(self, query: str, limit: int) -> Likeness:
        """Return ids with a likeness from 0 to 1, best first."""
        context = "memories of this code base"
        answer = self._call("query_memory", query=query, query_context=context, k=limit)
        likeness = {score["memory_id"]: score["similarity"] for score in answer["scores"]}
        return [
            (entry["source_files"][0], likeness.get(entry["id"]) or 0.0)
            for entry in answer["primary_memories"]
            if self._tag in entry["tags"]
        ]

    def _entries(self) -> list[JsonObject]:
        """Return the memories of this repository that the server holds."""
        entries: list[JsonObject] = []
        arguments = {"limit": 100, "offset": 0, "tags": [self._tag]}
        while page := self._call("get_recent_memories", **arguments)["memories"]:
            entries += page
            arguments["offset"] = len(entries)
        return entries

    def _call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool of the server and return its answer.

        Raises:
            Unavailable: the server does not answer, or its address is not allowed.
        """
        if not self._is_allowed:
            raise Unavailable(
                f"this repository names an index at {self._endpoint}; if that is your Forgetful"
                f" server, set AIAML_CITATIONS_FORGETFUL={self._endpoint}"
            )
        try:
            return asyncio.run(asyncio.wait_for(self._execute(tool, arguments), 10))
        except Exception as error:  # the SDK and the network raise many kinds
            raise Unavailable(f"Forgetful at {self._endpoint} does not answer: {error}") from error

    async def _execute(self, tool: str, arguments: JsonObject) -> Any:
        from mcp import Client  # noqa: PLC0415 (only this index needs it)

        given = {"tool_name": tool, "arguments": arguments}
        async with Client(f"{self._endpoint}/mcp") as client:
            result = await client.call_tool("execute_forgetful_tool", given)
        text = "".join(getattr(block, "text", "") for block in result.content)
        if result.is_error:
            raise RuntimeError(text)
        return json.loads(text)
