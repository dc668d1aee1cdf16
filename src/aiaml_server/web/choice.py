"""Which memories a request means: those that it names, or all that its question does."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request

from aiaml_server.errors import ChangedMeanwhile
from aiaml_server.format.bm25 import Answer
from aiaml_server.format.scorer import Hit
from aiaml_server.storage.inbox import digest
from aiaml_server.storage.store import Stamp
from aiaml_server.web.asked import json_in, question
from aiaml_server.web.places import File, Places


class Chosen(NamedTuple):
    """What a question means.

    Attributes:
        total: how many memories.
        some: the part of them that was asked for, with their hits where there are words.
        answer: to these.
    """

    total: int
    some: list[tuple[File, Hit | None]]
    answer: Answer | None


class Choice:
    """Finds them in one of the person's directories."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._digests: dict[str, tuple[Stamp, bytes]] = {}  # of files that have settled

    def part(self, request: Request, first: int = 0, last: int | None = None) -> Chosen:
        """Return what a question means, and a part of it, in its order.

        Raises:
            InvalidInput: the question cannot be understood.
            StoreError: the directory cannot be read.
        """
        wanted, asked = question(request)
        place = self._places.one(request)
        new = "new" in request.query_params
        some = slice(None) if new else slice(first, last)
        found: list[tuple[File, Hit | None]]
        answer = None
        if asked:
            answer = place.bank.ask(asked, wanted, some)
            total = answer.found.total
            found = [(File(place, hit.file_name), hit) for hit in answer.found.hits]
        else:
            names = [name for _, name in place.bank.dated(wanted)]
            total = len(names)
            found = [(File(place, name), None) for name in names[some]]
        if new:
            found = [each for each in found if self.is_new(each[0])]
            total, found = len(found), found[first:last]
        return Chosen(total, found, answer)

    def files(self, request: Request) -> list[File]:
        """Return the files of all memories that a question means."""
        return [file for file, _ in self.part(request).some]

    def said(self, request: Request, text: str) -> list[File]:
        """Return the files that a body lists; without one, those that the question means.

        Raises:
            ChangedMeanwhile: the question means others by now than those that the page told of.
            FileNotFoundError: no memory may have a name that is listed.
            HTTPException: the body is neither, or it is not said which were told of.
        """
        if text:
            return [self._places.file(each) for each in json_in(text, list)]
        told = request.headers.get("if-match")
        if not told:
            raise HTTPException(428, "it must be said, as If-Match, which memories were told of")
        files = self.files(request)
        if told != self.version(request, files):
            raise ChangedMeanwhile("what was chosen")
        return files

    def version(self, request: Request, files: Iterable[File]) -> str:
        """Return by what the memories that a question means are known.

        Where only new ones were asked for, to what each says as well.
        """
        summed = hashlib.sha256()
        for file in files:
            summed.update(file.path.encode("utf-8", "surrogatepass") + b"\0")
            if "new" in request.query_params:
                summed.update(self._digest(file) or b"")
        return summed.hexdigest()

    def is_new(self, file: File) -> bool:
        """Say whether the person has not seen what this file says now.

        Raises:
            OSError: what was noted cannot be read.
        """
        known = self._digest(file)
        return known is not None and not file.place.bank.inbox.has(known)

    def _digest(self, file: File) -> bytes | None:
        """Return the digest of a memory, read only where its file has changed."""
        stamp = file.place.bank.stamp(file.name)
        if stamp is None:
            self._digests.pop(file.path, None)
            return None
        before = self._digests.get(file.path)
        if before and before[0] == stamp:
            return before[1]
        for _, memory in file.place.bank.read([file.name]):
            found = digest(memory)
            if stamp.settled:
                self._digests[file.path] = stamp, found
            return found
        return None
