"""The input of a hook and the form of its answer, for each host.

`docs/hooks.md` has the sources of this table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from aiaml_server.toolset import HookInput

_GEMINI_PREFIX = re.compile(r"\A<hook_context>[^<]*</hook_context>\s*")
"""Gemini CLI repeats the answer of a session's start in front of the first prompt."""


class Host(NamedTuple):
    """The differences between hosts.

    Attributes:
        directory: the key of the working directory.
        session_id: the key of the session.
        is_flat: whether the answer is `additional_context` alone.
    """

    directory: str = "cwd"
    session_id: str = "session_id"
    is_flat: bool = False


HOSTS = {
    "claude-code": Host(),
    "codex": Host(),
    "gemini": Host(),
    "cursor": Host("workspace_roots", "conversation_id", is_flat=True),
}


def parse_input(data: bytes, host: Host, event: str) -> HookInput:
    """Parse the input of a host. A missing value, or one of a wrong type, is empty.

    Args:
        data: the JSON object from standard input.
        host: the host.
        event: as `toolset.HookInput` names it.

    Raises:
        ValueError: the input is not JSON.
        AttributeError: the input is not an object.
    """
    given = json.loads(data)
    tool_input = given.get("tool_input") or {}
    return HookInput(
        event,
        directory=_text(given.get(host.directory)),
        session_id=_text(given.get(host.session_id)),
        prompt=_GEMINI_PREFIX.sub("", _text(given.get("prompt"))),
        path=_text(tool_input.get("file_path")),
        tool_name=_text(given.get("tool_name")),
        tool_input=json.dumps(tool_input) if tool_input else "",
        tool_output=_output(given),
        transcript_path=_text(given.get("transcript_path")),
    )


def format_answer(text: str, host: Host, data: bytes) -> bytes:
    """Return the answer that gives a text to the agent; `data` is the host's input."""
    answer: dict[str, Any] = {"additional_context": text}
    if not host.is_flat:
        name = json.loads(data).get("hook_event_name")
        output = {"hookEventName": name, "additionalContext": text}
        answer = {"hookSpecificOutput": output}
    return json.dumps(answer).encode() + b"\n"


def _output(given: Mapping[str, Any]) -> str:
    """Return what a tool printed, errors first, or the error it failed with."""
    response = given.get("tool_response")
    if isinstance(response, dict):
        return "\n".join(filter(None, (_text(response.get(key)) for key in ("stderr", "stdout"))))
    return _text(response) or _text(given.get("error"))


def _text(value: object) -> str:
    if isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, str) else ""
