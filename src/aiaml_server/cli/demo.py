"""The command demo: a real client remembers, finds and recalls a memory at a real server."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

import click

from aiaml_server.clients.launch import command
from aiaml_server.terminal import bold, dim, echo, styled, wrap

if TYPE_CHECKING:
    from mcp import Client

MEMORY: dict[str, Any] = {
    "agent": "claude",
    "user": "marco",
    "topics": ["food", "preferences", "restaurant"],
    "content": "Marco is vegetarian, lives in San Francisco and likes small, quiet restaurants.",
}
KEYWORDS = ["dinner", "restaurant", "food", "eat", "vegetarian", "diet", "marco"]


@click.command("demo")
def demo() -> None:
    """Show the tools at work in a temporary directory."""
    import anyio  # noqa: PLC0415 (with the SDK, half a second that other commands do not need)

    with tempfile.TemporaryDirectory(prefix="aiaml-demo-") as directory:
        anyio.run(_converse, directory)
        (path,) = Path(directory).glob("files/*.md")
        echo(f"\nThe memory is one file, {path.name}:")
        echo(dim(wrap(indent(path.read_text(encoding="utf-8").rstrip("\n"), "  "))))
    program = shlex.join(command())
    echo(f"\nConnect the AI clients on this computer:\n  {program} install --all")
    echo(f"Print what to add to any other client:\n  {program} install --print generic")


async def _converse(directory: str) -> None:
    from mcp import Client, StdioServerParameters  # noqa: PLC0415 (the SDK)

    environ = {name: value for name, value in os.environ.items() if "AIAML_" not in name}
    environ |= {"AIAML_MEMORY_DIR": directory, "AIAML_ENABLE_SYNC": "false"}
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "aiaml_server"], env=environ, cwd=directory
    )
    async with Client(server) as client:
        tools = ", ".join(tool.name for tool in (await client.list_tools()).tools)
        echo(wrap(f"Connected to aiaml-server with the tools {tools}."))
        echo("\nToday, one agent remembers something:")
        stored = await _call(client, "remember", MEMORY)
        _show_answer(stored["message"])
        echo("\nNext week, another agent is asked for a place for dinner. It thinks first:")
        (hit,) = await _call(client, "think", {"keywords": KEYWORDS})
        _show_answer(f"{hit['id']}, score {hit['relevance_score']}")
        echo("\nThen it recalls what it found:")
        (memory,) = await _call(client, "recall", {"memory_ids": [hit["id"]]})
        _show_answer(memory["content"])


async def _call(client: Client, tool: str, arguments: dict[str, Any]) -> Any:
    words = ", ".join(f"{name}={json.dumps(value)}" for name, value in arguments.items())
    echo(wrap(f"  {bold(tool)}({words})", 4))
    result = await client.call_tool(tool, arguments)
    return json.loads(getattr(result.content[0], "text", ""))


def _show_answer(text: str) -> None:
    echo(wrap(f"  {styled('->', 'green')} {text}", 3))
