"""What the page asks for, as JSON."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from itertools import islice
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from aiaml_server.errors import AiamlError, MalformedFile
from aiaml_server.format.memory import parse, usual_user
from aiaml_server.format.scorer import Hit, fields
from aiaml_server.index import Answer
from aiaml_server.sync import current_status, sync_once
from aiaml_server.web.asked import number, question
from aiaml_server.web.changes import MOST_STREAMS, Streams
from aiaml_server.web.choice import Choice
from aiaml_server.web.overview import overview
from aiaml_server.web.pages import Json
from aiaml_server.web.past import LATELY
from aiaml_server.web.places import File, Place, memories
from aiaml_server.web.shown import excerpt, head, title, version_of, whole

PAGE = 50  # memories
TITLES = 8  # of what is chosen as a whole


class Api:
    """The page's questions, answered from the memory directory."""

    def __init__(self, place: Place, choice: Choice, streams: Streams) -> None:
        self._place = place
        self._choice = choice
        self._streams = streams

    def routes(self) -> list[Route]:
        """Return where each question is asked."""
        return [
            Route("/api/memories", self._memories, methods=["GET"]),
            Route("/api/memories/{name:path}/history", self._versions, methods=["GET"]),
            Route("/api/memories/{name:path}", self._memory, methods=["GET"]),
            Route("/api/chosen", self._chosen, methods=["GET"]),
            Route("/api/overview", self._overview, methods=["GET"]),
            Route("/api/lately", self._lately, methods=["GET"]),
            Route("/api/forgotten", self._forgotten, methods=["GET"]),
            Route("/api/status", self._status, methods=["GET"]),
            Route("/api/sync", self._sync, methods=["POST"]),
            Route("/api/events", self._events, methods=["GET"]),
        ]

    # --- many memories ------------------------------------------------------------------------

    def _memories(self, request: Request) -> Response:
        """Answer a question when there are words; otherwise the newest; by the page."""
        first = number(request, "from")
        total, some, answer = self._choice.part(request, first, first + PAGE)
        told = [self._found(file, hit, answer) for file, hit in some]
        following = first + PAGE
        return Json(
            {
                "memories": [each for each in told if each],
                "total": total,
                "apart": answer.apart if answer else 0,
                "next": following if following < total else None,
            }
        )

    def _found(self, file: File, hit: Hit | None, answer: Answer | None) -> dict[str, Any] | None:
        """Return what a list shows of a memory; None when it went away in this moment."""
        with suppress(FileNotFoundError, MalformedFile):
            text = file.text
            memory = parse(text)
            found = (
                [word for word in answer.words if hit and word.text in hit.matching_keywords]
                if answer
                else []
            )
            said = "\n".join(each for _, each in fields(memory))
            words = [form for word in found for form in sorted(word.forms) if form in said]
            words += answer.question.phrases if answer else ()
            return {
                **head(file, memory),
                "version": version_of(text),
                "excerpt": excerpt(memory.content, words),
                "score": hit.relevance_score if hit else None,
                "keywords": words,
                "why": [{"word": word.text, "memories": len(word.files)} for word in found],
            }
        return None

    def _chosen(self, request: Request) -> Response:
        """Tell of all that a question means: how many, the first titles, and a version."""
        files = self._choice.files(request)
        titles = [title(each.content) for each in memories(files[:TITLES])]
        version = self._choice.version(files)
        return Json({"count": len(files), "titles": titles, "version": version})

    def _overview(self, request: Request) -> Response:
        return Json(overview(self._place.bank, *question(request)))

    # --- one memory ---------------------------------------------------------------------------

    def _memory(self, request: Request) -> Response:
        file = self._place.file_in(request)
        return Json(whole(file, file.text))

    # --- what was, and what happens -----------------------------------------------------------

    def _versions(self, request: Request) -> Response:
        file = self._place.file_in(request)
        return Json(self._place.past.versions(file.name))

    def _lately(self, _: Request) -> Response:
        return Json(self._place.past.lately()[:LATELY])

    def _forgotten(self, _: Request) -> Response:
        return Json(self._place.past.forgotten())

    # --- sync ---------------------------------------------------------------------------------

    def _status(self, _: Request) -> Response:
        settings = self._place.settings
        status = current_status(settings)
        told = {**asdict(status), "held_back": {}, "on_one_disk": False}
        told["held_back"] = {name: why.sentence for name, why in status.needs_attention.items()}
        told["problem"] = status.problem.sentence if status.problem else None
        told["what_to_do"] = status.problem.remedy if status.problem else None
        kept = {"sync": settings.sync, "me": self._me()}
        return Json({**kept, "base": str(settings.base), **told})

    def _me(self) -> str:
        """Return whom a new memory is likely about, as `aiaml remember` has it."""
        with suppress(AiamlError):  # who asks for the memories is told why
            newest = self._place.bank.newest()
            return usual_user(memory for _, memory in islice(newest, 25))
        return ""

    def _sync(self, request: Request) -> Response:
        """Do a round of sync now, and tell how it stands after it."""
        settings = self._place.settings
        sync_once(settings)
        return self._status(request)

    async def _events(self, _: Request) -> Response:
        if self._streams.open >= MOST_STREAMS:
            raise HTTPException(503, "the page is seen in too many windows; it looks now and then")
        events = self._streams.events(self._place.changes)
        return StreamingResponse(events, media_type="text/event-stream")
