"""What the page asks for, as JSON."""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from aiaml_server.bank import MemoryBank
from aiaml_server.errors import ChangedMeanwhile, InvalidInput, MalformedFile
from aiaml_server.filters import Filter
from aiaml_server.memory import Memory, parse
from aiaml_server.rendering.html import safe_html
from aiaml_server.scorer import Hit, clean, rank
from aiaml_server.settings import Settings
from aiaml_server.store import MAX_FILE, SUFFIX
from aiaml_server.sync import Status

from .library import Library
from .pages import Json

PAGE = 50  # memories
EXCERPT = 240  # characters
MAX_QUESTION = 1000  # characters
_MARKUP = re.compile(r"\*\*|`+|^[ ]{0,3}#{1,6}[ ]", re.MULTILINE)
_WORDS = re.compile(r'"([^"]*)"?|(\S+)')


class Api:
    """The page's questions, answered from one bank."""

    def __init__(self, bank: MemoryBank, settings: Settings) -> None:
        self._bank = bank
        self._settings = settings
        self._library = Library(bank.store)

    def routes(self) -> list[Route]:
        """Return where each question is asked."""
        one = "/api/memories/{name}"
        return [
            Route("/api/memories", self._memories, methods=["GET"]),
            Route(one, self._memory, methods=["GET"]),
            Route(one, self._edit, methods=["PUT"]),
            Route(one, self._forget, methods=["DELETE"]),
            Route("/api/overview", self._overview, methods=["GET"]),
            Route("/api/status", self._status, methods=["GET"]),
        ]

    # --- many memories ------------------------------------------------------------------------

    def _memories(self, request: Request) -> Response:
        """Answer `think` when there are words; otherwise the newest, by the page."""
        wanted = _filter(request)
        if keywords := _keywords(request):
            hits = self._hits(keywords, wanted)
            found = [self._found(hit.file_name, hit) for hit in hits]
            total, following = len(hits), None
        else:
            names, first = self._newest(wanted), _number(request, "from")
            found = [self._found(name) for name in names[first : first + PAGE]]
            total, following = len(names), first + PAGE
        return Json(
            {
                "memories": [each for each in found if each],
                "total": total,
                "next": following if following and following < total else None,
            }
        )

    def _hits(self, keywords: list[str], wanted: Filter) -> list[Hit]:
        if not wanted:
            return self._bank.think(keywords)
        return rank(wanted.among(self._library.newest()), keywords)

    def _newest(self, wanted: Filter) -> list[str]:
        if not wanted:
            return self._bank.index.newest()
        return [name for name, _ in wanted.among(self._library.newest())]

    def _found(self, name: str, hit: Hit | None = None) -> dict[str, Any] | None:
        """Return what a list shows of a memory; None when it went away in this moment."""
        with suppress(FileNotFoundError, MalformedFile):
            memory = self._bank.store.read(name)
            keywords = hit.matching_keywords if hit else ()
            return {
                **_head(name, memory),
                "excerpt": _excerpt(memory.content, keywords),
                "score": hit.relevance_score if hit else None,
                "keywords": list(keywords),
            }
        return None

    def _overview(self, request: Request) -> Response:
        return Json(self._library.overview(_filter(request)))

    def _status(self, _: Request) -> Response:
        base = self._settings.base
        status = Status.read(base)
        held_back = {path: why.sentence for path, why in status.kept_out.items()}
        told = {**asdict(status), "held_back": held_back}
        return Json({"sync": self._settings.sync, "base": str(base), **told})

    # --- one memory ---------------------------------------------------------------------------

    def _memory(self, request: Request) -> Response:
        name = _name(request)
        return Json(_whole(name, self._bank.store.text(name)))

    async def _edit(self, request: Request) -> Response:
        text = await _body(request)
        return await run_in_threadpool(self._edited, request, text)

    def _edited(self, request: Request, text: str) -> Response:
        name = _name(request)
        before = self._current(request, name)
        after = _with_line_ends_of(before, text)
        if after != before:
            self._bank.edit(name, before, after)
        return Json(_whole(name, after))

    def _forget(self, request: Request) -> Response:
        """Delete a memory, after having git keep what git may keep."""
        name = _name(request)
        text = self._current(request, name)
        kept = self._bank.forget({name: text})
        return Json({"forgotten": name, "kept": name in (kept or ())})

    def _current(self, request: Request, name: str) -> str:
        """Return the text of a file that must still be the version that the page has seen."""
        seen = request.headers.get("if-match")
        if not seen:
            raise HTTPException(428, "a change must say, as If-Match, which version it changes")
        text = self._bank.store.text(name)
        if _version(text) != seen:
            raise ChangedMeanwhile(name)
        return text


def _head(name: str, memory: Memory) -> dict[str, Any]:
    return {
        "file": name,
        "id": memory.id,
        "timestamp": memory.timestamp,
        "agent": memory.agent,
        "user": memory.user,
        "topics": list(memory.topics),
    }


def _whole(name: str, text: str) -> dict[str, Any]:
    memory = parse(text)
    html = safe_html(memory.content)
    return {**_head(name, memory), "html": html, "text": text, "version": _version(text)}


def _version(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _excerpt(content: str, keywords: tuple[str, ...]) -> str:
    """Return some words of a memory: its first, or those around the first match."""
    lower = content.lower()
    places = (place for each in keywords if (place := lower.find(each)) >= 0)
    first = min(places, default=0)
    start = first - EXCERPT // 4 if first > EXCERPT // 2 else 0
    words = " ".join(_MARKUP.sub("", content[start : start + 2 * EXCERPT]).split())
    cut = words if len(words) <= EXCERPT else f"{words[: EXCERPT - 1].rstrip()}…"
    return f"…{cut}" if start else cut


def _with_line_ends_of(before: str, text: str) -> str:
    """Undo what a text field of a browser does to the line ends of a file from Windows."""
    windows = before.count("\r\n") == before.count("\n")
    return text.replace("\r\n", "\n").replace("\n", "\r\n") if windows else text


# --- requests -------------------------------------------------------------------------------------


def _keywords(request: Request) -> list[str]:
    """Return the words that are looked for; quotes make several words one."""
    question = request.query_params.get("q", "")
    if len(question) > MAX_QUESTION:
        raise InvalidInput("q", f"a search has at most {MAX_QUESTION} characters")
    return clean(quoted or word for quoted, word in _WORDS.findall(question))


def _filter(request: Request) -> Filter:
    asked = request.query_params
    return Filter.of(
        asked.get("agent"),
        asked.get("user"),
        asked.getlist("topic"),
        asked.get("since") or None,
        asked.get("until") or None,
    )


def _number(request: Request, field: str) -> int:
    text = request.query_params.get(field, "0")
    if not re.fullmatch("[0-9]{1,9}", text):
        raise InvalidInput(field, f"{field} must be a number")
    return int(text)


def _name(request: Request) -> str:
    """Return the name in the path, if it is one that a memory may have."""
    name: str = request.path_params["name"]
    outside = set("/\\:\0" if os.name == "nt" else "/\0")
    if outside & set(name) or not name.endswith(SUFFIX) or name[0] == ".":
        raise FileNotFoundError(name)
    return name


async def _body(request: Request) -> str:
    """Read a text of at most what a memory's file may hold."""
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > MAX_FILE:
            raise HTTPException(413, f"a memory has at most {MAX_FILE // 1024 // 1024} MiB")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise HTTPException(400, "the text is not UTF-8") from None
