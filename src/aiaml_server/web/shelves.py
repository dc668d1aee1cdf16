"""What toolsets keep, to be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from aiaml_server.errors import AiamlError
from aiaml_server.format.scorer import clean
from aiaml_server.rendering import MAX_RENDERED
from aiaml_server.toolset import Note
from aiaml_server.web.asked import question
from aiaml_server.web.pages import Json
from aiaml_server.web.shown import excerpt, title

_MOST = 200  # notes that are listed; a search finds the others

Read: TypeAlias = Callable[[], Iterable[Note]]


class Shelves:
    """The toolsets that have something for the person, by name."""

    def __init__(self, shelves: Mapping[str, Read]) -> None:
        self._shelves = shelves

    def routes(self) -> list[Route]:
        """Return where each question is asked."""
        return [
            Route("/api/shelves", self._named, methods=["GET"]),
            Route("/api/shelves/{name}", self._listed, methods=["GET"]),
        ]

    def _named(self, _: Request) -> Response:
        """Tell which have something; what cannot be read counts, and says why when it is."""
        return Json([name for name, read in self._shelves.items() if _holds(read)])

    def _listed(self, request: Request) -> Response:
        """Tell what one has: all of it, or what holds all words of a question."""
        read = self._shelves.get(request.path_params["name"])
        if not read:
            raise HTTPException(404, "there is no such toolset")
        question(request)  # which may be too long
        words = clean(request.query_params.get("q", "").split())
        found = [each for each in read() if _says(each, words)]
        rows = [_row(each, words) for each in found[:_MOST]]
        return Json({"memories": rows, "total": len(found)})


def _holds(read: Read) -> bool:
    with suppress(AiamlError, OSError):
        return any(True for _ in read())
    return True


def _says(note: Note, words: Iterable[str]) -> bool:
    told = " ".join((note.id, note.text, *note.topics, *(value for _, value in note.facts)))
    return all(each in told.casefold() for each in words)


def _row(note: Note, words: Iterable[str]) -> dict[str, Any]:
    """Return what the list shows of a note, and the reader too."""
    return {
        "file": note.id,
        "title": title(note.text),
        "excerpt": excerpt(note.text, [*words]),
        "keywords": [*words],
        "timestamp": note.made,
        "agent": note.facts[0][1] if note.facts else "",
        "user": "",
        "topics": [*note.topics],
        "facts": [*note.facts],
        "text": note.text[:MAX_RENDERED],
    }
