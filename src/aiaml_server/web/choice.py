"""Which memories a request means: those that it names, or all that its question does."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request

from aiaml_server.errors import FileChanged
from aiaml_server.format.scorer import Hit
from aiaml_server.index import Answer
from aiaml_server.web.asked import json_in, question
from aiaml_server.web.places import File, Place


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
    """Finds them in the memory directory."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def part(self, request: Request, first: int = 0, last: int | None = None) -> Chosen:
        """Return what a question means, and a part of it, in its order.

        Raises:
            InvalidInput: the question cannot be understood.
            StoreError: the directory cannot be read.
        """
        wanted, asked = question(request)
        place, some = self._place, slice(first, last)
        if asked:
            answer = place.bank.ask(asked, wanted, some)
            found = answer.found
            return Chosen(
                found.total, [(File(place, hit.file_name), hit) for hit in found.hits], answer
            )
        names = [name for _, name in place.bank.dated(wanted)]
        return Chosen(len(names), [(File(place, name), None) for name in names[some]], None)

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
            return [self._place.file(each) for each in json_in(text, list)]
        told = request.headers.get("if-match")
        if not told:
            raise HTTPException(428, "it must be said, as If-Match, which memories were told of")
        files = self.files(request)
        if told != self.version(files):
            raise FileChanged("what was chosen")
        return files

    @staticmethod
    def version(files: Iterable[File]) -> str:
        """Return by what the memories that a question means are known."""
        summed = hashlib.sha256()
        for file in files:
            summed.update(file.name.encode("utf-8", "surrogatepass") + b"\0")
        return summed.hexdigest()
