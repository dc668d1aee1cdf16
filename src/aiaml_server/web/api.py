"""What the page asks for, as JSON."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from aiaml_server.bank import MemoryBank
from aiaml_server.errors import AiamlError, MalformedFile
from aiaml_server.memory import Memory, parse
from aiaml_server.scorer import Hit, explained
from aiaml_server.settings import Settings
from aiaml_server.sync import Status

from .asked import name_in, number, question
from .changes import MOST_STREAMS, Changes
from .choice import Choice
from .overview import overview
from .pages import Json
from .past import Past
from .shown import excerpt, head, title, version_of, whole

PAGE = 50  # memories
TITLES = 8  # of what is chosen as a whole
_PATIENCE_SECONDS = 2.0  # for another process that synchronises


class Api:
    """The page's questions, answered from one bank."""

    def __init__(
        self, bank: MemoryBank, settings: Settings, changes: Changes, choice: Choice
    ) -> None:
        self._bank = bank
        self._choice = choice
        self._settings = settings
        self._changes = changes
        self._past = Past(bank.store)

    def routes(self) -> list[Route]:
        """Return where each question is asked."""
        return [
            Route("/api/memories", self._memories, methods=["GET"]),
            Route("/api/memories/{name}", self._memory, methods=["GET"]),
            Route("/api/memories/{name}/history", self._versions, methods=["GET"]),
            Route("/api/chosen", self._chosen, methods=["GET"]),
            Route("/api/overview", self._overview, methods=["GET"]),
            Route("/api/lately", self._lately, methods=["GET"]),
            Route("/api/forgotten", self._forgotten, methods=["GET"]),
            Route("/api/status", self._status, methods=["GET"]),
            Route("/api/events", self._events, methods=["GET"]),
        ]

    # --- many memories ------------------------------------------------------------------------

    def _memories(self, request: Request) -> Response:
        """Answer `think` when there are words; otherwise the newest; by the page."""
        first = number(request, "from")
        total, some = self._choice.part(request, first, first + PAGE)
        told = [self._found(name, hit) for name, hit in some]
        following = first + PAGE
        return Json(
            {
                "memories": [each for each in told if each],
                "total": total,
                "next": following if following < total else None,
            }
        )

    def _found(self, name: str, hit: Hit | None = None) -> dict[str, Any] | None:
        """Return what a list shows of a memory; None when it went away in this moment."""
        with suppress(FileNotFoundError, MalformedFile):
            text = self._bank.store.text(name)
            memory = parse(text)
            keywords = hit.matching_keywords if hit else ()
            return {
                **head(name, memory),
                **self._known(name, memory),
                "version": version_of(text),
                "excerpt": excerpt(memory.content, keywords),
                "score": hit.relevance_score if hit else None,
                "keywords": list(keywords),
                "why": [asdict(each) for each in explained(memory, keywords)],
            }
        return None

    def _chosen(self, request: Request) -> Response:
        """Tell of all that a question means: how many, the first titles, and a version."""
        names = self._choice.names(request)
        titles = [title(memory.content) for _, memory in self._bank.read(names[:TITLES])]
        version = self._choice.version(request, names)
        return Json({"count": len(names), "titles": titles, "version": version})

    def _known(self, name: str, memory: Memory) -> dict[str, Any]:
        """Return what is noted of a memory beside it: its uses, and whether the person saw it."""
        new = False
        with suppress(OSError):  # then none is marked; who asks for the new ones is told why
            new = self._bank.inbox.kept and self._choice.is_new(name)
        return {"uses": self._uses_of(memory), "new": new}

    def _uses_of(self, memory: Memory) -> dict[str, Any] | None:
        """Return what agents did with a memory; None where nothing is noted of any."""
        with suppress(AiamlError, OSError):  # then nothing is told of its uses
            noted = self._bank.uses.summary()
            return noted.uses_of(memory.id) if noted.tools else None
        return None

    def _overview(self, request: Request) -> Response:
        wanted, _ = question(request)
        return Json(overview(self._bank.index, wanted))

    # --- one memory ---------------------------------------------------------------------------

    def _memory(self, request: Request) -> Response:
        name = name_in(request)
        text = self._bank.store.text(name)
        return Json({**whole(name, text), **self._known(name, parse(text))})

    # --- what was, and what happens -----------------------------------------------------------

    def _versions(self, request: Request) -> Response:
        name = name_in(request)
        self._bank.commit(seconds=_PATIENCE_SECONDS)  # so that git knows of the present version
        return Json(self._past.versions(name))

    def _lately(self, _: Request) -> Response:
        return Json(self._past.lately())

    def _forgotten(self, _: Request) -> Response:
        self._bank.commit(seconds=_PATIENCE_SECONDS)  # and of what was just forgotten
        return Json(self._past.forgotten())

    def _status(self, _: Request) -> Response:
        base = self._settings.base
        status = Status.read(base)
        held_back = {path: why.sentence for path, why in status.kept_out.items()}
        told = {**asdict(status), "held_back": held_back}
        kept = {"sync": self._settings.sync, "inbox": self._settings.inbox}
        return Json({**kept, "base": str(base), **told})

    async def _events(self, _: Request) -> Response:
        if self._changes.streams >= MOST_STREAMS:
            raise HTTPException(503, "the page is seen in too many windows; it looks now and then")
        return StreamingResponse(self._changes.events(), media_type="text/event-stream")
