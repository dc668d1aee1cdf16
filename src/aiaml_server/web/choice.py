"""Which memories a request means: those that it names, or all that its question does."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress

from starlette.exceptions import HTTPException
from starlette.requests import Request

from aiaml_server.bank import MemoryBank
from aiaml_server.errors import ChangedMeanwhile, MalformedFile
from aiaml_server.inbox import digest
from aiaml_server.scorer import Hit
from aiaml_server.store import Stamp

from .asked import json_in, name_of, question


class Choice:
    """Finds them in one bank."""

    def __init__(self, bank: MemoryBank) -> None:
        self._bank = bank
        self._digests: dict[str, tuple[Stamp, bytes]] = {}  # of files that have settled

    def part(
        self, request: Request, first: int = 0, last: int | None = None
    ) -> tuple[int, list[tuple[str, Hit | None]]]:
        """Return how many memories a question means, and a part of them, in their order.

        Raises:
            InvalidInput: the question cannot be understood.
            StoreError: the directory cannot be read.
        """
        wanted, keywords = question(request)
        new = "new" in request.query_params
        hits: Sequence[tuple[str, Hit | None]]
        if keywords:
            found = self._bank.search(keywords, wanted, *((0, None) if new else (first, last)))
            hits = [(hit.file_name, hit) for hit in found.hits]
            if not new:
                return found.total, list(hits)
            hits = [each for each in hits if self.is_new(each[0])]
            return len(hits), hits[first:last]
        names = self._bank.index.newest(wanted)
        if new:
            names = [name for name in names if self.is_new(name)]
        return len(names), [(name, None) for name in names[first:last]]

    def names(self, request: Request) -> list[str]:
        """Return the names of all memories that a question means."""
        return [name for name, _ in self.part(request)[1]]

    def said(self, request: Request, text: str) -> list[str]:
        """Return the names that a body lists; without one, those that the question means.

        Raises:
            ChangedMeanwhile: the question means others by now than those that the page told of.
            FileNotFoundError: no memory may have a name that is listed.
            HTTPException: the body is neither, or it is not said which were told of.
        """
        if text:
            return [name_of(each) for each in json_in(text, list)]
        told = request.headers.get("if-match")
        if not told:
            raise HTTPException(428, "it must be said, as If-Match, which memories were told of")
        names = self.names(request)
        if told != self.version(request, names):
            raise ChangedMeanwhile("what was chosen")
        return names

    def version(self, request: Request, names: Iterable[str]) -> str:
        """Return by what the memories that a question means are known.

        Where only new ones were asked for, to what each says as well.
        """
        summed = hashlib.sha256()
        for name in names:
            summed.update(name.encode("utf-8", "surrogatepass") + b"\0")
            if "new" in request.query_params:
                summed.update(self._digest(name) or b"")
        return summed.hexdigest()

    def is_new(self, name: str) -> bool:
        """Say whether the person has not seen what this file says now.

        Raises:
            OSError: what was noted cannot be read.
        """
        known = self._digest(name)
        return known is not None and not self._bank.inbox.has(known)

    def _digest(self, name: str) -> bytes | None:
        """Return the digest of a memory, read only where its file has changed."""
        stamp = self._bank.store.stamp(name)
        if stamp is None:
            self._digests.pop(name, None)
            return None
        before = self._digests.get(name)
        if before and before[0] == stamp:
            return before[1]
        with suppress(FileNotFoundError, MalformedFile):
            found = digest(self._bank.store.read(name))
            if stamp.settled:
                self._digests[name] = stamp, found
            return found
        return None
