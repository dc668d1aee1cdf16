"""`demo`: a memory is remembered, found and recalled, by a real client from a real server."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from aiaml_server.clients import snippet
from aiaml_server.clients.entry import ENTRY
from aiaml_server.clients.launch import command
from aiaml_server.doctor.conversation import Conversation, begun
from aiaml_server.terminal import out, wrapped

MEMORY: dict[str, Any] = {
    "agent": "claude",
    "user": "marco",
    "topics": ["food", "preferences", "restaurant"],
    "content": "Marco is vegetarian, lives in San Francisco and likes small, quiet restaurants.",
}
KEYWORDS = ["dinner", "restaurant", "food", "eat", "vegetarian", "diet", "marco"]


def demo() -> int:
    """Play the three tools once against a server of its own; return the exit code."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="aiaml-demo-") as directory:
        place = Path(directory)
        with begun([sys.executable, "-m", "aiaml_server"], os.environ, place) as server:
            tools = ", ".join(server.tools())
            what = f"a server of version {server.version} with the tools {tools}"
            out(wrapped(f"Connected to {what}."))
            out("\nToday, one agent remembers:")
            stored = _call(server, "remember", MEMORY)
            asked = "Next week, another agent is asked for a place for dinner, and thinks first:"
            out(wrapped(f"\n{asked}"))
            found = _call(server, "think", {"keywords": KEYWORDS})
            out("\nThen it recalls what it found:")
            _call(server, "recall", {"memory_ids": [hit["id"] for hit in found]})
        (path,) = (place / "base" / "files").glob(f"*_{stored['memory_id']}.md")
        out(wrapped(f"\nAll there is on disk is files/{path.name}:\n"))
        out(wrapped(_indented(path.read_text(encoding="utf-8"))))
    took = time.perf_counter() - started
    out(wrapped(f"\nDone in {took:.1f} s; the throw-away directory is gone.\n"))
    out(_how_to_connect())
    return 0


def _call(server: Conversation, tool: str, arguments: dict[str, Any]) -> Any:
    given = ", ".join(f"{key}={json.dumps(value)}" for key, value in arguments.items())
    out(wrapped(_indented(f"{tool}({given})"), 2))
    value = server.call(tool, arguments)
    out(wrapped(_indented(f"-> {json.dumps(value)}"), 2))
    return value


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.rstrip("\n").split("\n"))


def _how_to_connect() -> str:
    """Show the entry for a client's configuration that starts this very installation."""
    return f"""\
{wrapped("To connect your clients, one or all of them:")}

  {_typed("install --all")}
  {_typed("install --list")}

{wrapped("For a client that it does not know, this goes into the client's configuration:")}

{_indented(snippet(ENTRY, None, command(), {}))}"""


def _typed(words: str) -> str:
    """Return what a person types to run this installation with other words."""
    return shlex.join([*command(), words]).replace(f"'{words}'", words)
