"""The JSON API of the page."""

from __future__ import annotations

import os
import re
from itertools import islice

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from aiaml_server.bank import MemoryBank
from aiaml_server.errors import FileChanged, InvalidInput
from aiaml_server.format.filters import Filter, words
from aiaml_server.format.memory import parse
from aiaml_server.index import Question
from aiaml_server.settings import Settings
from aiaml_server.storage.store import SUFFIX
from aiaml_server.sync.cycle import current_status
from aiaml_server.sync.history import History
from aiaml_server.web.serialize import (
    Json,
    bars,
    hit,
    summary,
    sync_state,
    sync_warnings,
    version_of,
    version_summary,
    version_whole,
    whole,
)

PAGE_SIZE = 50  # memories
MAX_QUESTION = 1000  # characters
MAX_TOPICS = 40  # that are offered as filters
MAX_VERSIONS = 200
MAX_FORGOTTEN = 50
_COMMIT_SECONDS = 2.0  # to wait for another process that syncs


class Api:
    """The page's view of one memory directory."""

    def __init__(self, bank: MemoryBank, settings: Settings) -> None:
        self._bank = bank
        self._settings = settings

    def routes(self) -> list[Route]:
        """Return all routes. Changes must name the version that they change, by `If-Match`."""
        one = "/api/memories/{name}"
        return [
            Route("/api/status", self._status, methods=["GET"]),
            Route("/api/memories", self._search, methods=["GET"]),
            Route("/api/forgotten", self._forgotten, methods=["GET"]),
            Route(one, self._read, methods=["GET"]),
            Route(one, self._edit, methods=["PUT"]),
            Route(one, self._forget, methods=["DELETE"]),
            Route(f"{one}/restore", self._restore, methods=["POST"]),
            Route(f"{one}/versions", self._versions, methods=["GET"]),
            Route(f"{one}/versions/{{commit}}", self._version, methods=["GET"]),
        ]

    # --- read -------------------------------------------------------------------------------------

    def _status(self, _: Request) -> Response:
        settings = self._settings
        status = current_status(settings)
        warnings = sync_warnings(status)
        if malformed := self._bank.index.counts(Filter()).malformed:
            warnings.append(
                f"Files that are not readable memories: {malformed}. See `aiaml doctor`."
            )
        return Json(
            {
                "base": str(settings.base),
                "sync": sync_state(status, sync=settings.sync),
                "warnings": warnings,
                "replaced": [
                    {**summary(name, memory), "by": by}
                    for name, memory, by in self._bank.replaced()
                ],
            }
        )

    def _search(self, request: Request) -> Response:
        """Return one page of matching memories; the first page also has counts."""
        wanted, question = _question(request)
        start = _number(request, "from")
        part = slice(start, start + PAGE_SIZE)
        found: set[str] = set()
        if question:
            answer = self._bank.index.search(question, wanted, part)
            total = answer.found.total
            names = [row.file_name for row in answer.found.hits]
            found = set(question.phrases).union(*[word.forms for word in answer.words])
        else:
            dated = self._bank.index.dated(wanted)
            total = len(dated)
            names = [name for _, name in dated[part]]
        result = {
            "memories": [hit(name, memory, found) for name, memory in self._bank.scan(names)],
            "total": total,
            "next": part.stop if part.stop < total else None,
        }
        if not start:
            counts = self._bank.index.counts(wanted, question)
            result |= {
                "all": counts.total,
                "topics": counts.topics[:MAX_TOPICS],
                "bars": bars(counts.times),
            }
        return Json(result)

    def _read(self, request: Request) -> Response:
        name = _name(request)
        return self._memory(name, self._bank.text(name))

    def _memory(self, name: str, text: str) -> Response:
        similar = self._bank.similar(parse(text))
        return Json({**whole(name, text), "similar": [summary(*other) for other in similar]})

    # --- history ----------------------------------------------------------------------------------

    def _history(self) -> History:
        return self._bank.history(seconds=_COMMIT_SECONDS)

    def _versions(self, request: Request) -> Response:
        versions = self._history().versions([_name(request)])
        return Json([version_summary(version) for version in islice(versions, MAX_VERSIONS)])

    def _version(self, request: Request) -> Response:
        history = self._history()
        for version in history.versions([_name(request)]):
            if version.commit == request.path_params["commit"]:
                texts = history.texts([version.before, version.after])
                before, after = texts.get(version.before, ""), texts.get(version.after, "")
                return Json(version_whole(version, before, after))
        raise FileNotFoundError

    def _forgotten(self, _: Request) -> Response:
        """Return the memories that were forgotten last."""
        gone = self._bank.forgotten(self._history())[:MAX_FORGOTTEN]
        rows = [
            {**summary(version.name, parse(text)), "version": version_summary(version)}
            for version, text in gone
        ]
        return Json(rows)

    # --- change -----------------------------------------------------------------------------------

    async def _edit(self, request: Request) -> Response:
        text = await _body(request)
        return await run_in_threadpool(self._edit_file, request, text)

    def _edit_file(self, request: Request, text: str) -> Response:
        name = _name(request)
        before = self._current(request, name)
        if text != before:
            self._bank.edit(name, before, text)
        return self._memory(name, text)

    def _forget(self, request: Request) -> Response:
        name = _name(request)
        kept = self._bank.forget({name: self._current(request, name)})
        return Json({"kept": name in (kept or ())})

    async def _restore(self, request: Request) -> Response:
        text = await _body(request)
        return await run_in_threadpool(self._restore_file, request, text)

    def _restore_file(self, request: Request, text: str) -> Response:
        """Give a file a text that it once had. `If-None-Match: *` is for a forgotten one.

        What the file holds is replaced only if git has it.
        """
        name = _name(request)
        parse(text)
        if request.headers.get("if-none-match") == "*":
            self._bank.restore(name, None, text)
        elif text != (before := self._current(request, name)):
            history = self._history()
            newest = [version.after for version in islice(history.versions([name]), 1)]
            self._bank.restore(name, before, text, history.texts(newest).values())
        return self._memory(name, text)

    def _current(self, request: Request, name: str) -> str:
        """Return the text of a file, which must be the version that the request names.

        Raises:
            FileChanged: it is another version.
            HTTPException: the request names none.
        """
        expected = request.headers.get("if-match")
        if not expected:
            raise HTTPException(428, "A change must name the version that it changes (If-Match).")
        text = self._bank.text(name)
        if version_of(text) != expected:
            raise FileChanged(name)
        return text


# --- requests -------------------------------------------------------------------------------------


def _question(request: Request) -> tuple[Filter, Question | None]:
    """Return the filter and the words to look for; None if there are no words.

    Raises:
        InvalidInput: the question cannot be understood, or is too long.
    """
    text = request.query_params.get("q", "")
    if len(text) > MAX_QUESTION:
        raise InvalidInput("q", f"a search has at most {MAX_QUESTION} characters")
    wanted, rest = Filter().with_fields(words(text))
    rest = [word for word in rest if word.strip()]
    return wanted, Question.parse(rest) if rest else None


def _number(request: Request, field: str) -> int:
    text = request.query_params.get(field, "0")
    if not re.fullmatch("[0-9]{1,9}", text):
        raise InvalidInput(field, "must be a number")
    return int(text)


def _name(request: Request) -> str:
    """Return the name of a file from the path of a request.

    Raises:
        FileNotFoundError: no memory may have this name.
    """
    name = str(request.path_params["name"])
    forbidden = set("/\\:\0" if os.name == "nt" else "/\0")
    if forbidden & set(name) or name.startswith(".") or not name.endswith(SUFFIX):
        raise FileNotFoundError(name)
    return name


async def _body(request: Request) -> str:
    try:
        return (await request.body()).decode()
    except UnicodeDecodeError:
        raise HTTPException(400, "The text is not UTF-8.") from None
