"""What hosts say to a hook, and how they want to be answered: docs/hooks.md has the sources."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

EVENTS = {
    "SessionStart": "session_start",
    "sessionStart": "session_start",
    "UserPromptSubmit": "prompt",
    "BeforeAgent": "prompt",
    "PreToolUse": "before_edit",
    "PostToolUse": "after_edit",
}
"""What hosts call the events that we know. Claude Code, Codex and Copilot CLI have the same names;
`BeforeAgent` is Gemini's, `sessionStart` is Cursor's."""

_TOLD = re.compile(r"\A<hook_context>[^<]*</hook_context>\s*")
"""What Gemini CLI puts before the first prompt, as if a person had typed it: what a start told."""

PLAIN = ("copilot", "opencode")
"""Hosts that say by our own option which they are, and are answered in one way at all events."""


class Said(NamedTuple):
    """What a host says.

    Attributes:
        name: the event, as the host calls it.
        event: one of `toolset.HOOK_EVENTS`.
        place: the directory in which the host works.
        prompt: what the person typed.
        file: the file that is edited; empty where none is.
        host: which it is, where our own option says so.
    """

    name: str
    event: str
    place: str
    prompt: str
    file: str = ""
    host: str = ""

    @classmethod
    def parsed(cls, data: bytes, host: str = "") -> Said | None:
        """Read what a host says; None where it is nothing that we know."""
        try:
            said = json.loads(data)
        except (ValueError, RecursionError):
            return None
        name = said.get("hook_event_name") if isinstance(said, dict) else None
        if not isinstance(name, str) or name not in EVENTS:
            return None
        given = said.get("tool_input")
        return cls(
            name,
            EVENTS[name],
            _place(said),
            _TOLD.sub("", _text(said, "prompt"), count=1),
            _text(given, "file_path") if isinstance(given, dict) else "",
            host,
        )

    def answer(self, text: str) -> bytes:
        """Say a text to the agent, in the way of its host."""
        answer: dict[str, Any]
        if self.host in PLAIN:
            answer = {"additionalContext": text}
        elif self.name == "sessionStart":
            answer = {"additional_context": text}
        else:
            told = {"hookEventName": self.name, "additionalContext": text}
            answer = {"hookSpecificOutput": told}
        return json.dumps(answer).encode() + b"\n"


def _text(said: Mapping[str, Any], name: str) -> str:
    value = said.get(name)
    return value if isinstance(value, str) else ""


def _place(said: Mapping[str, Any]) -> str:
    roots = said.get("workspace_roots")
    first = roots[0] if isinstance(roots, list) and roots else None
    return first if isinstance(first, str) else _text(said, "cwd")


def project(place: str) -> str:
    """Return the name of the repository that a directory is in, or else its own; empty for none."""
    path = Path(place)
    if not place or not path.is_absolute():
        return ""
    for each in (path, *path.parents):
        if (each / ".git").exists():
            return each.name
    return path.name
