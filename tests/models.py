"""A model on this computer that answers with one word, or uses tools; it keeps what it is sent."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

_MESSAGE = {
    "type": "message", "role": "assistant", "id": "m", "status": "completed",
    "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
}  # fmt: skip
_USED = {
    "input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
    "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
}  # fmt: skip
OPENAI: list[dict[str, Any]] = [
    {"type": "response.created", "response": {"id": "r"}},
    {"type": "response.output_item.done", "output_index": 0, "item": _MESSAGE},
    {"type": "response.completed", "response": {"id": "r", "output": [_MESSAGE], "usage": _USED}},
]
ANTHROPIC: list[dict[str, Any]] = [
    {"type": "message_start", "message": {
        "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Done."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
     "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]  # fmt: skip
GOOGLE: list[dict[str, Any]] = [
    {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": "Done."}]},
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    }
]

CHAT: list[dict[str, Any]] = [
    {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [
        {"index": 0, "delta": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"},
    ]},
]  # fmt: skip


STREAMS = {
    "/responses": OPENAI,
    "/chat/completions": CHAT,
    "/messages": ANTHROPIC,
    ":streamGenerateContent": GOOGLE,
}
"""What each of four kinds of requests is answered with, by the end of its address."""


def using(tool: str, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what Claude Code is answered with, so that it uses a tool."""
    use = {"type": "tool_use", "id": f"t{tool}", "name": tool, "input": {}}
    given = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    end = {"stop_reason": "tool_use", "stop_sequence": None}
    return [
        ANTHROPIC[0],
        {"type": "content_block_start", "index": 0, "content_block": use},
        {"type": "content_block_delta", "index": 0, "delta": given},
        ANTHROPIC[3],
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}},
        ANTHROPIC[5],
    ]


@contextmanager
def model(
    uses: Iterable[Sequence[dict[str, Any]]] = (),
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the model's address, and the requests that it gets, as they come.

    Args:
        uses: what requests that offer tools are answered with, one after the other, before the
            one word.
    """
    sent: list[dict[str, Any]] = []
    waiting = iter(uses)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b'{"data": [], "models": []}', "application/json")

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
            for end, events in STREAMS.items():
                if self.path.partition("?")[0].endswith(end):
                    sent.append(body)
                    self._stream(next(waiting, events) if body.get("tools") else events)
                    return
            self._answer(json.dumps(GOOGLE[0]).encode(), "application/json")

        def _stream(self, events: Sequence[dict[str, Any]]) -> None:
            lines = []
            for each in events:
                lines += [f"event: {each['type']}"] if "type" in each else []
                lines += [f"data: {json.dumps(each)}", ""]
            self._answer("\n".join([*lines, ""]).encode(), "text/event-stream")

        def _answer(self, body: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", sent
        server.shutdown()
