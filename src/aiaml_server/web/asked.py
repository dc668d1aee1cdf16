"""What a request says, checked."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request

from aiaml_server.errors import InvalidInput
from aiaml_server.format.filters import Filter, words
from aiaml_server.format.scorer import clean
from aiaml_server.index import Question
from aiaml_server.storage.store import MAX_FILE, SUFFIX

MAX_QUESTION = 1000  # characters
MAX_BODY = 8 * MAX_FILE  # of several memories
BODY_SECONDS = 30.0
STALLED_SECONDS = 5.0  # without a byte; a large body holds up the next large one
_LARGE = MAX_FILE // 4  # bytes of a body; those that say so, or nothing, arrive one after another
_HALVES = re.compile(r"\\u[dD][89a-fA-F]")
_CLOSING = {"connection": "close"}  # what is left of the body is not waited for


def question(request: Request) -> tuple[Filter, Question | None]:
    """Return which memories are meant, and what they are to answer; None for nothing.

    Raises:
        InvalidInput: it is too long, or a field of it cannot be understood.
    """
    asked = request.query_params
    said = asked.get("q", "")
    if len(said) > MAX_QUESTION:
        raise InvalidInput("q", f"a search has at most {MAX_QUESTION} characters")
    by_field = Filter.of(
        agent=asked.get("agent"),
        user=asked.get("user"),
        topic=asked.getlist("topic"),
        since=asked.get("since") or None,
        before=asked.get("until") or None,
    )
    wanted, rest = by_field.and_said(words(said))
    return wanted, Question.parse(rest) if clean(rest) else None


def number(request: Request, field: str) -> int:
    """Return a number that stands in the address; 0 where it does not.

    Raises:
        InvalidInput: something else does.
    """
    text = request.query_params.get(field, "0")
    if not re.fullmatch("[0-9]{1,9}", text):
        raise InvalidInput(field, "must be a number")
    return int(text)


def name_of(name: object) -> str:
    """Return a name, if it is one that a memory may have.

    Raises:
        FileNotFoundError: it is not.
    """
    outside = set("/\\:\0" if os.name == "nt" else "/\0")
    if not isinstance(name, str) or outside & set(name) or not name.endswith(SUFFIX):
        raise FileNotFoundError(name)
    if name[0] == ".":
        raise FileNotFoundError(name)
    return name


def is_large(request: Request) -> bool:
    """Say whether a body may take so much memory that only one is read at a time."""
    length = request.headers.get("content-length", "")
    return not (re.fullmatch("[0-9]{1,9}", length) and int(length) <= _LARGE)


async def body(request: Request, most: int = MAX_FILE) -> str:
    """Read a text of at most so many bytes.

    Raises:
        HTTPException: it is longer, no UTF-8, or does not come to its end.
    """
    data = bytearray()
    try:
        ends = anyio.current_time() + BODY_SECONDS
        with anyio.fail_after(min(STALLED_SECONDS, BODY_SECONDS)) as waiting:
            async for part in request.stream():
                waiting.deadline = min(ends, anyio.current_time() + STALLED_SECONDS)
                data += part
                if len(data) > most:
                    said = f"a memory has at most {MAX_FILE // 1024 // 1024} MiB"
                    raise HTTPException(413, said, _CLOSING)
    except TimeoutError:
        raise HTTPException(408, "the text did not come to its end", _CLOSING) from None
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise HTTPException(400, "the text is not UTF-8") from None


def json_in(text: str, kind: type) -> Any:
    """Return what a body says as JSON.

    Raises:
        HTTPException: it is none, or of another kind.
    """
    try:
        value = json.loads(text)
        if _HALVES.search(text):
            json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, kind):
        raise HTTPException(400, "the body is not the JSON that is asked for here")
    return value
