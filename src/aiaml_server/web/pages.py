"""The page's fixed files, and what is answered when something goes wrong."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from aiaml_server.errors import (
    AiamlError,
    FileChanged,
    InvalidArguments,
    InvalidInput,
    MalformedFile,
)

log = logging.getLogger(__name__)

_STATIC = Path(__file__).with_name("static")
_KINDS = {
    ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml",
}  # fmt: skip


def routes() -> list[Route]:
    """Return a route to each file, read once; no other name leads to one.

    Anybody on this machine may read them: they say nothing of anybody.
    """
    return [
        Route(
            "/" if each.name == "index.html" else f"/{each.name}",
            partial(_file, each.read_bytes(), _KINDS[each.suffix]),
            methods=["GET"],
        )
        for each in sorted(_STATIC.iterdir())
    ]


async def _file(data: bytes, kind: str, _: Request) -> Response:
    return Response(data, media_type=kind)


# --- when something goes wrong --------------------------------------------------------------------

_STATUS = {InvalidInput: 400, InvalidArguments: 400, FileChanged: 412, MalformedFile: 422}


class Json(JSONResponse):
    """JSON in ASCII, because a file's name may hold what UTF-8 cannot say."""

    def render(self, content: Any) -> bytes:
        """Return the body."""
        return json.dumps(content).encode()


def problem(status: int, sentence: str, fields: Mapping[str, str] | None = None) -> Response:
    """Answer that something cannot be done, and why; of fields, what each must be."""
    return Json({"error": sentence, **({"fields": fields} if fields else {})}, status)


async def _refused(_: Request, error: Exception) -> Response:
    fields = error.reasons if isinstance(error, InvalidArguments) else {}
    return problem(_STATUS.get(type(error), 503), str(error), fields)


async def _gone(_: Request, __: Exception) -> Response:
    return problem(404, "there is no such memory; it may have been forgotten meanwhile")


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 (starlette's promise)
    answer = problem(error.status_code, error.detail[:1].lower() + error.detail[1:])
    answer.headers.update(error.headers or {})
    return answer


async def _left(_: Request, __: Exception) -> Response:
    return problem(400, "the request broke off")  # nobody reads it


async def _bug(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return problem(500, f"that failed ({type(error).__name__}); the terminal shows more")


PROBLEMS: dict[type[Exception], Callable[[Request, Exception], Awaitable[Response]]] = {
    AiamlError: _refused,
    FileNotFoundError: _gone,
    HTTPException: _http,
    ClientDisconnect: _left,
    Exception: _bug,
}
"""What answers each exception."""
