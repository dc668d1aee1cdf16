"""`demo`: a memory is remembered, found and recalled, by a real client from a real server."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
import time
from pathlib import Path
from textwrap import indent
from typing import Any

import click

from aiaml_server.clients.launch import command
from aiaml_server.doctor.conversation import Conversation, begun
from aiaml_server.terminal import bold, dim, echo, styled, wrap

MEMORY: dict[str, Any] = {
    "agent": "claude",
    "user": "marco",
    "topics": ["food", "preferences", "restaurant"],
    "content": "Marco is vegetarian, lives in San Francisco and likes small, quiet restaurants.",
}
KEYWORDS = ["dinner", "restaurant", "food", "eat", "vegetarian", "diet", "marco"]


@click.command("demo")
def demo() -> int:
    """Watch the tools at work, in a throw-away place."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="aiaml-demo-") as directory:
        place = Path(directory)
        with begun([sys.executable, "-m", "aiaml_server"], os.environ, place) as server:
            tools = ", ".join(server.tools())
            what = f"a server of version {server.version} with the tools {tools}"
            echo(wrap(f"Connected to {what}."))
            echo("\nToday, one agent remembers:")
            stored = _call(server, "remember", MEMORY)
            _answered(stored["message"])
            asked = "Next week, another agent is asked for a place for dinner, and thinks first:"
            echo(wrap(f"\n{asked}"))
            found = _call(server, "think", {"keywords": KEYWORDS})
            for hit in found:
                words = ", ".join(hit["matching_keywords"])
                _answered(f"{hit['id']}, score {hit['relevance_score']}: {words}")
            echo("\nThen it recalls what it found:")
            for each in _call(server, "recall", {"memory_ids": [hit["id"] for hit in found]}):
                _answered(each["content"])
        (path,) = (place / "base" / "files").glob(f"*_{stored['memory_id']}.md")
        echo(wrap(f"\nAll there is on disk is files/{path.name}:"))
        echo(dim(wrap(indent(path.read_text(encoding="utf-8").rstrip("\n"), "  "))))
    took = time.perf_counter() - started
    echo(wrap(f"\nDone in {took:.1f} s; the throw-away directory is gone.\n"))
    echo(wrap(bold("To connect your agents:")))
    echo(f"  {_typed('install --all')}")
    echo(wrap("Which there are, and what goes into any other by hand:"))
    echo(f"  {_typed('install --list')}")
    echo(f"  {_typed('install --print generic')}")
    return 0


def _call(server: Conversation, tool: str, arguments: dict[str, Any]) -> Any:
    given = ", ".join(f"{key}={json.dumps(value)}" for key, value in arguments.items())
    echo(wrap(f"  {bold(tool)}({given})", 4))
    return server.call(tool, arguments)


def _answered(text: str) -> None:
    echo(wrap(f"  {styled('->', 'green')} {text}", 3))


def _typed(words: str) -> str:
    """Return what a person types to run this installation with other words."""
    return shlex.join([*command(), *words.split()])
