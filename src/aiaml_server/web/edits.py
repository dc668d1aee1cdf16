"""What the page changes: a memory stored, edited, forgotten, brought back."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from aiaml_server.errors import FileChanged, InvalidInput, MalformedFile, StoreError
from aiaml_server.exchange import export_jsonl
from aiaml_server.format.memory import must_be, parse
from aiaml_server.rendering.html import safe_html
from aiaml_server.settings import MEMORY_DIR, remote_problem
from aiaml_server.storage.store import MAX_FILE, Stamp
from aiaml_server.terminal import EXIT_OK
from aiaml_server.web.asked import MAX_BODY, body, is_large, json_in
from aiaml_server.web.choice import Choice
from aiaml_server.web.pages import Json, problem
from aiaml_server.web.places import File, Place, memories
from aiaml_server.web.shown import whole
from aiaml_server.web.writing import Words, new_memory, with_line_ends, with_words

_UNDONE = 4  # that can be undone, each as a whole
ADDRESS = "must be an address that git takes, or a directory's whole path"

Work = Callable[[Request, str], Response]


class Edits:
    """The page's changes, each checked against the version that it changes."""

    def __init__(self, place: Place, choice: Choice) -> None:
        self._place = place
        self._choice = choice
        self._undone: dict[str, dict[File, str]] = {}  # what each of the last ones deleted
        self._turn = asyncio.Lock()  # a body takes many times its size, until it is answered
        self._large = asyncio.Lock()  # and so does what has arrived of a large one

    def routes(self) -> list[Route]:
        """Return where each change is asked for."""
        one = "/api/memories/{name:path}"
        return [
            self._route("/api/memories", "POST", self._store),
            self._route(one, "PUT", self._edit),
            Route(one, self._forget, methods=["DELETE"]),
            self._route("/api/forget", "POST", self._forget_all, MAX_BODY),
            self._route("/api/restore", "POST", self._restore, MAX_BODY),
            self._route("/api/undo", "POST", self._undo),
            self._route("/api/remote", "POST", self._choose_remote),
            self._route("/api/export", "POST", self._export, MAX_BODY),
            self._route("/api/preview", "POST", lambda _, text: Json({"html": safe_html(text)})),
        ]

    def _route(self, path: str, method: str, work: Work, most: int = MAX_FILE) -> Route:
        """Return a route whose body is read before anything else is done, in a thread."""

        async def answer(request: Request) -> Response:
            async with AsyncExitStack() as held:
                if is_large(request):
                    await held.enter_async_context(self._large)
                text = await body(request, most)
                await held.enter_async_context(self._turn)
                return await run_in_threadpool(work, request, text)

        return Route(path, answer, methods=[method])

    def _store(self, _: Request, text: str) -> Response:
        words = _words(json_in(text, dict))
        bank = self._place.kept()
        memory = bank.add(new_memory(words._asdict()))
        name = bank.find(memory.id)[0][0]
        file = File(self._place, name)
        return Json({**whole(file, file.text), "secret": bank.secret_in(memory)}, 201)

    def _edit(self, request: Request, text: str) -> Response:
        """Take a file's whole text; or, as JSON, the words of a memory."""
        file = self._place.file_in(request)
        before = file.current(request.headers.get("if-match"))
        if request.headers.get("content-type", "").startswith("application/json"):
            after = with_words(before, _words(json_in(text, dict)))
        else:
            after = with_line_ends(before, text)
        if after != before:
            self._place.kept().edit(file.name, before, after)
        return Json(whole(file, after))

    def _forget(self, request: Request) -> Response:
        """Delete a memory, after having git keep what git may keep."""
        file = self._place.file_in(request)
        text = file.current(request.headers.get("if-match"))
        kept = self._forget_files({file: text})
        return Json({"forgotten": file.name, "kept": kept == {file}})

    def _forget_all(self, request: Request, text: str) -> Response:
        """Delete the files that are listed, or meant; what they held is kept for an undo."""
        files = self._choice.said(request, text)
        texts = {file: each for file in files if (each := _present(file)) is not None}
        if text and not texts:
            raise FileNotFoundError
        problem = ""
        kept: set[File] = set()
        try:
            kept = self._forget_files(texts)
        except (FileChanged, StoreError) as error:
            if all(map(_stamp, texts)):
                raise
            problem = str(error)  # and what is gone by then can be undone
        gone = {file: each for file, each in texts.items() if not _stamp(file)}
        undo = secrets.token_urlsafe(8)
        self._undone = dict([*self._undone.items(), (undo, gone)][-_UNDONE:])
        return Json(
            {
                "count": len(gone),
                # All of a filter's would be too much.
                "forgotten": {file.name: each for file, each in gone.items()} if text else None,
                "kept": kept >= set(gone),
                "undo": undo,
                "problem": problem,
            }
        )

    def _forget_files(self, texts: Mapping[File, str]) -> set[File]:
        """Delete files, each with the text that it holds; return those that git's history keeps."""
        kept = self._place.kept().forget({file.name: text for file, text in texts.items()})
        return {File(self._place, name) for name in kept or ()}

    def _undo(self, _: Request, text: str) -> Response:
        """Bring back all that was forgotten together; what stands there by now is not replaced."""
        undo = json_in(text, str)
        if undo not in self._undone:
            raise HTTPException(410, "that was too long ago; `aiaml restore` brings back more")
        back = 0
        for file, before in self._undone[undo].items():
            with suppress(FileChanged):
                file.place.kept().restore(file.name, None, before)
                back += 1
        del self._undone[undo]
        return Json({"restored": back})

    def _restore(self, _: Request, text: str) -> Response:
        """Give files texts that they once had: those that are gone, or an earlier version."""
        wanted = {self._place.file(name): after for name, after in json_in(text, dict).items()}
        for file, after in wanted.items():
            if not isinstance(after, str):
                raise InvalidInput(file.name, "must be a text")
            if len(after.encode()) > MAX_FILE:
                raise MalformedFile([f"it is larger than {MAX_FILE // 1024 // 1024} MiB"])
            parse(after)
        for file, after in wanted.items():
            before = _present(file)
            history: list[str] = []
            bank = file.place.kept()
            if before is not None:
                history = [each["text"] for each in file.place.past.versions(file.name)]
            if after != before:
                bank.restore(file.name, before, after, history)
        return Json({"restored": [file.name for file in wanted]})

    def _choose_remote(self, _: Request, text: str) -> Response:
        """Have `aiaml sync --setup` choose where copies are kept, and return what it says."""
        asked = json_in(text, dict)
        address = asked.get("address")
        if not isinstance(address, str):
            raise InvalidInput("address", ADDRESS)
        address = address.strip()
        whole = ":" in address or os.path.isabs(os.path.expanduser(address))  # noqa: PTH111, PTH117
        if reason := remote_problem(address) or ("" if whole else ADDRESS):
            raise InvalidInput("address", reason)
        words = [sys.executable, "-m", "aiaml_server", "sync", f"--setup={address}"]
        words += ["--yes"] if asked.get("yes") is True else []
        done = subprocess.run(  # noqa: S603 (no shell, and one word)
            words,
            cwd=sys.prefix,  # where nobody has put another `aiaml_server`
            env={**os.environ, MEMORY_DIR: str(self._place.settings.base)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        said = (done.stderr + done.stdout).decode("utf-8", "replace").strip()
        if done.returncode == EXIT_OK:
            return Json({"said": said})
        asks = {"yes": "must be true for that"} if "`--yes`" in said else None
        return problem(409, said.rpartition("aiaml: ")[2], asks)

    def _export(self, request: Request, text: str) -> Response:
        """Return memories as lines of JSON, as `aiaml export` does, and how many are gone."""
        files = dict.fromkeys(self._choice.said(request, text))
        lines = export_jsonl(memories(files)).decode()
        return Json({"lines": lines, "gone": len(files) - lines.count("\n")})


def _present(file: File) -> str | None:
    try:
        return file.text
    except FileNotFoundError:
        return None


def _stamp(file: File) -> Stamp | None:
    return file.place.bank.stamp(file.name)


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
    return Words(said["agent"], said["user"], tuple(said["topics"]), said["content"])
