"""What the page changes: a memory stored, edited, forgotten, brought back."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from aiaml_server.bank import MemoryBank
from aiaml_server.errors import ChangedMeanwhile, InvalidInput, MalformedFile, StoreError
from aiaml_server.exchange.jsonl import line_of
from aiaml_server.memory import must_be, parse
from aiaml_server.rendering.html import safe_html
from aiaml_server.store import MAX_FILE

from .asked import MAX_BODY, body, current, json_in, name_in, name_of
from .choice import Choice
from .pages import Json
from .past import Past
from .shown import whole
from .writing import Words, with_line_ends, with_words

_UNDONE = 4  # that can be undone, each as a whole

Work = Callable[[Request, str], Response]


class Edits:
    """The page's changes, made in one bank."""

    def __init__(self, bank: MemoryBank, choice: Choice) -> None:
        self._bank = bank
        self._choice = choice
        self._undone: dict[str, dict[str, str]] = {}  # what each of the last ones deleted
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
            _route("/api/undo", "POST", self._undo),
            _route("/api/seen", "POST", self._see, MAX_BODY),
            _route("/api/export", "POST", self._export, MAX_BODY),
            _route("/api/preview", "POST", self._preview),
        ]

    def _store(self, _: Request, text: str) -> Response:
        memory = self._bank.remember(**_words(json_in(text, dict))._asdict())
        self._bank.own(memory)
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
            self._bank.own(self._bank.edit(name, before, after))
        return Json(whole(name, after))

    def _forget(self, request: Request) -> Response:
        """Delete a memory, after having git keep what git may keep."""
        name = name_in(request)
        text = current(self._bank.store, name, request.headers.get("if-match"))
        kept = self._bank.forget({name: text})
        return Json({"forgotten": name, "kept": name in (kept or ())})

    def _forget_all(self, request: Request, text: str) -> Response:
        """Delete the files that are listed, or meant; what they held is kept for an undo."""
        names = self._choice.said(request, text)
        if text:
            texts = {name: self._bank.store.text(name) for name in names}
        else:
            texts = {name: each for name in names if (each := self._present(name)) is not None}
        problem = ""
        kept: set[str] | None = None
        try:
            kept = self._bank.forget(texts)
        except (ChangedMeanwhile, StoreError) as error:
            if all(map(self._bank.store.stamp, texts)):
                raise
            problem = str(error)  # and what is gone by then can be undone
        gone = {name: each for name, each in texts.items() if not self._bank.store.stamp(name)}
        undo = secrets.token_urlsafe(8)
        self._undone = dict([*self._undone.items(), (undo, gone)][-_UNDONE:])
        return Json(
            {
                "count": len(gone),
                "forgotten": gone if text else None,  # all of a filter's would be too much
                "kept": kept is not None and kept >= set(gone),
                "undo": undo,
                "problem": problem,
            }
        )

    def _undo(self, _: Request, text: str) -> Response:
        """Bring back all that was forgotten together; what stands there by now is not replaced."""
        undo = json_in(text, str)
        if undo not in self._undone:
            raise HTTPException(410, "that was too long ago; `aiaml restore` brings back more")
        back = 0
        for name, before in self._undone[undo].items():
            with suppress(ChangedMeanwhile):
                self._bank.restore(name, None, before)
                back += 1
        del self._undone[undo]
        return Json({"restored": back})

    def _see(self, request: Request, text: str) -> Response:
        """Note that the person has seen memories in the versions that were shown; or all meant."""
        if text:
            shown = json_in(text, dict)
            pairs = [(name_of(name), version) for name, version in shown.items()]
            texts = [current(self._bank.store, name, version) for name, version in pairs]
            memories = [parse(each) for each in texts]
        else:
            names = self._choice.said(request, text)
            memories = [memory for _, memory in self._bank.read(names)]
        return Json({"seen": self._bank.inbox.see(memories)})

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

    def _export(self, request: Request, text: str) -> Response:
        """Return memories as lines of JSON, as `aiaml export` writes them."""
        names = dict.fromkeys(self._choice.said(request, text))
        return Json({"lines": "".join(line_of(each) for _, each in self._bank.read(names))})

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
