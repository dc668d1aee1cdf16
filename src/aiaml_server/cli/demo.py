"""The command demo: a client stores, finds and recalls a memory with a real server."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from pathlib import Path
from textwrap import indent
from typing import Any

import click

from aiaml_server.clients.launch import command
from aiaml_server.terminal import bold, dim, echo, styled, wrap

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
        for line in anyio.run(_converse, directory):
            echo(line)
        (path,) = Path(directory).glob("files/*.md")
        echo(f"\nThe memory is one file, {path.name}:")
        echo(dim(wrap(indent(path.read_text(encoding="utf-8").rstrip("\n"), "  "))))
    echo(f"\nConnect the AI clients on this computer:\n  {shlex.join(command())} install --all")


async def _converse(directory: str) -> list[str]:
    """Return the lines to print. Printing inside the client could end it with a traceback."""
    from mcp import Client, StdioServerParameters  # noqa: PLC0415 (the SDK)

    environ = {name: value for name, value in os.environ.items() if "AIAML_" not in name}
    environ |= {"AIAML_MEMORY_DIR": directory, "AIAML_ENABLE_SYNC": "false"}
    environ |= {"XDG_STATE_HOME": directory, "XDG_CACHE_HOME": directory}  # nothing of it stays
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "aiaml_server"], env=environ, cwd=directory
    )
    async with Client(server) as client:

        async def call(tool: str, **arguments: Any) -> Any:
            words = ", ".join(f"{name}={json.dumps(value)}" for name, value in arguments.items())
            result = await client.call_tool(tool, arguments)
            answer = getattr(result.content[0], "text", "")
            lines.append(wrap(f"  {bold(tool)}({words})", 4))
            lines.append(wrap(f"  {styled('->', 'green')} {' '.join(answer.split())}", 3))
            return json.loads(answer)

        tools = ", ".join(tool.name for tool in (await client.list_tools()).tools)
        lines = [f"Connected to aiaml-server with the tools {tools}."]
        lines.append("\nToday, one agent remembers something:")
        await call("remember", **MEMORY)
        lines.append("\nNext week, another agent is asked for a place for dinner. It thinks first:")
        (hit,) = await call("think", keywords=KEYWORDS)
        lines.append("\nThen it recalls what it found:")
        await call("recall", memory_ids=[hit["id"]])
    return lines
