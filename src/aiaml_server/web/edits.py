"""What the page changes: a memory stored, edited, forgotten, brought back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from aiaml_server.bank import MemoryBank
from aiaml_server.errors import InvalidInput, MalformedFile
from aiaml_server.exchange.jsonl import line_of
from aiaml_server.memory import must_be, parse
from aiaml_server.rendering.html import safe_html
from aiaml_server.store import MAX_FILE

from .asked import MAX_BODY, body, current, json_in, name_in, name_of
from .pages import Json
from .past import Past
from .shown import whole
from .writing import Words, with_line_ends, with_words

Work = Callable[[Request, str], Response]


class Edits:
    """The page's changes, made in one bank."""

    def __init__(self, bank: MemoryBank) -> None:
        self._bank = bank
        self._past = Past(bank.store)

    def routes(self) -> list[Route]:
        """Return where each change is asked for."""
        one = "/api/memories/{name}"
        return [
            _route("/api/memories", "POST", self._store),
            _route(one, "PUT", self._edit),
            Route(one, self._forget, methods=["DELETE"]),
            _route("/api/forget", "POST", self._forget_all, MAX_BODY),
            _route("/api/restore", "POST", self._restore, MAX_BODY),
            _route("/api/export", "POST", self._export),
            _route("/api/preview", "POST", self._preview),
        ]

    def _store(self, _: Request, text: str) -> Response:
        memory = self._bank.remember(**_words(json_in(text, dict))._asdict())
        secret = self._bank.secret_in(memory)
        return Json({**whole(*self._stored(memory.id)), "secret": secret}, 201)

    def _stored(self, memory_id: str) -> tuple[str, str]:
        ((name, _), *_) = self._bank.find(memory_id)
        return name, self._bank.store.text(name)

    def _edit(self, request: Request, text: str) -> Response:
        """Take a file's whole text; or, as JSON, the words of a memory."""
        name = name_in(request)
        before = current(self._bank.store, name, request.headers.get("if-match"))
        if request.headers.get("content-type", "").startswith("application/json"):
            after = with_words(before, _words(json_in(text, dict)))
        else:
            after = with_line_ends(before, text)
        if after != before:
            self._bank.edit(name, before, after)
        return Json(whole(name, after))

    def _forget(self, request: Request) -> Response:
        """Delete a memory, after having git keep what git may keep."""
        name = name_in(request)
        text = current(self._bank.store, name, request.headers.get("if-match"))
        kept = self._bank.forget({name: text})
        return Json({"forgotten": name, "kept": name in (kept or ())})

    def _forget_all(self, _: Request, text: str) -> Response:
        """Delete the files that a list names; return what they held."""
        names = [name_of(each) for each in json_in(text, list)]
        texts = {name: self._bank.store.text(name) for name in names}
        kept = self._bank.forget(texts)
        return Json({"forgotten": texts, "kept": kept is not None and kept >= set(texts)})

    def _restore(self, _: Request, text: str) -> Response:
        """Give files texts that they once had: those that are gone, or an earlier version."""
        wanted = {name_of(name): after for name, after in json_in(text, dict).items()}
        for name, after in wanted.items():
            if not isinstance(after, str):
                raise InvalidInput(name, "must be a text")
            parse(after)
            if len(after.encode()) > MAX_FILE:
                raise MalformedFile([f"it is larger than {MAX_FILE // 1024 // 1024} MiB"])
        for name, after in wanted.items():
            before = self._present(name)
            history: list[str] = []
            if before is not None:
                self._bank.commit()
                history = [each["text"] for each in self._past.versions(name)]
            if after != before:
                self._bank.restore(name, before, after, history)
        return Json({"restored": list(wanted)})

    def _present(self, name: str) -> str | None:
        try:
            return self._bank.store.text(name)
        except FileNotFoundError:
            return None

    def _export(self, _: Request, text: str) -> Response:
        """Return memories as lines of JSON, as `aiaml export` writes them."""
        names = [name_of(each) for each in json_in(text, list)]
        return Json({"lines": "".join(line_of(self._bank.store.read(name)) for name in names)})

    def _preview(self, _: Request, text: str) -> Response:
        return Json({"html": safe_html(text)})


def _route(path: str, method: str, work: Work, most: int = MAX_FILE) -> Route:
    """Return a route whose body is read before anything else is done, in a thread."""

    async def answer(request: Request) -> Response:
        return await run_in_threadpool(work, request, await body(request, most))

    return Route(path, answer, methods=[method])


def _words(said: dict[str, Any]) -> Words:
    """Return what a person says of a memory.

    Raises:
        InvalidInput: it is not said in text.
    """
    for field in Words._fields:
        value = said.get(field)
        texts = value if field == "topics" and isinstance(value, list) else [value]
        if not all(isinstance(each, str) for each in texts):
            raise must_be(field)
    return Words(
        **{**{field: said[field] for field in Words._fields}, "topics": tuple(said["topics"])}
    )
