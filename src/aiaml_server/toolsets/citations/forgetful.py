"""An index on a server of this machine, by a protocol of five requests.

    GET    /health                                           200 where it is well
    GET    /memories          {"memories": {id: digest}}     what it holds
    PUT    /memories/ID       id, subject, content, tags, digest; it holds this from now on
    DELETE /memories/ID                                      it holds it no more; 404 is as good
    POST   /search            query, limit                   {"results": [{"id": …, "score": …}]}

Bodies are JSON; a score is from 0 to 1, the best come first.

A repository that came from somebody else could name the port of any program on this machine. So its
settings alone have nothing asked: a person says, outside of it, which address may be.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from math import isnan
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from aiaml_server.toolsets.citations import FORGETFUL
from aiaml_server.toolsets.citations.failures import Unavailable
from aiaml_server.toolsets.citations.indexes import MemoryIndex, Synced, digest
from aiaml_server.toolsets.citations.model import Memory

SECONDS = 5.0
_MOST = 64 * 1024 * 1024  # bytes of an answer


class _NoRedirect(HTTPRedirectHandler):
    """Goes nowhere else: what is sent is the repository's."""

    def redirect_request(self, *_args: Any, **_words: Any) -> None:
        """Follow nothing."""


class ForgetfulIndex(MemoryIndex):
    """The index that a server keeps."""

    name = "forgetful"

    def __init__(self, endpoint: str, *, allowed: str | None = None) -> None:
        """Take the server's address, and the one that may be asked: this one, where None."""
        self._endpoint = endpoint.rstrip("/")
        self._is_allowed = allowed is None or allowed.rstrip("/") == self._endpoint
        self._opener = build_opener(ProxyHandler({}), _NoRedirect())

    def add(self, memory: Memory) -> None:
        """Take in a memory, or its new text."""
        body = {
            "id": memory.id,
            "subject": memory.subject,
            "content": memory.content,
            "tags": list(memory.tags),
            "digest": digest(memory),
        }
        self._asked("PUT", f"/memories/{quote(memory.id)}", body)

    def remove(self, memory_id: str) -> None:
        """Take out a memory, if it is there."""
        self._asked("DELETE", f"/memories/{quote(memory_id)}", missing=True)

    def search(self, query: str, limit: int) -> Sequence[tuple[str, float]]:
        """Return the ids of the nearest memories, nearest first, with a likeness from 0 to 1."""
        answer = self._asked("POST", "/search", {"query": query, "limit": limit})
        try:
            found = [(str(each["id"]), float(each["score"])) for each in answer["results"]]
        except (KeyError, TypeError, ValueError) as error:
            raise Unavailable(f"{self._endpoint}/search does not answer as agreed") from error
        return [(name, min(max(score, 0.0), 1.0)) for name, score in found if not isnan(score)]

    def health_check(self) -> bool:
        """Say whether it answers."""
        try:
            self._asked("GET", "/health")
        except Unavailable:
            return False
        return True

    def sync(self, memories: Mapping[str, Memory]) -> Synced:
        """Hold exactly these memories, as they are."""
        answer = self._asked("GET", "/memories")
        held = answer.get("memories") if isinstance(answer, dict) else None
        if not isinstance(held, dict):
            raise Unavailable(f"{self._endpoint}/memories does not answer as agreed")
        new = [each for each in memories.values() if held.get(each.id) != digest(each)]
        gone = [each for each in held if each not in memories]
        for memory in new:
            self.add(memory)
        for memory_id in gone:
            self.remove(memory_id)
        return Synced(self.name, len(memories), len(new), len(gone))

    def _asked(self, method: str, path: str, body: Any = None, *, missing: bool = False) -> Any:
        """Send a request and return its JSON answer; None for none.

        Raises:
            Unavailable: nobody answers, or not with success; or nobody may be asked.
        """
        if not self._is_allowed:
            raise Unavailable(
                f"this repository names an index at {self._endpoint}; if that is your index server,"
                f" set {FORGETFUL}={self._endpoint}"
            )
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        request = Request(self._endpoint + path, data, headers, method=method)  # noqa: S310 (http)
        try:
            with self._opener.open(request, timeout=SECONDS) as response:
                text = response.read(_MOST)
            return json.loads(text) if text.strip() and path != "/health" else None
        except HTTPError as error:
            error.close()
            if missing and error.code == 404:
                return None
            raise Unavailable(f"{self._endpoint}{path} answers {error.code}") from error
        except (OSError, HTTPException, ValueError, RecursionError) as error:
            raise Unavailable(f"the index at {self._endpoint} does not answer: {error}") from error
