"""The yardstick: the least that a memory server can be, on the same SDK."""

from __future__ import annotations

import os
from pathlib import Path

from mcp.server import MCPServer

mcp = MCPServer("plain files")
STORE = Path(os.environ["PLAIN_FILES"])


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    directory = os.open(path, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


@mcp.tool()
def store(name: str, text: str) -> str:
    """Write a file, sync it, rename it and sync the directory."""
    temporary = STORE / f"{name}.tmp"
    with temporary.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(STORE / f"{name}.md")
    sync_directory(STORE)
    return name


@mcp.tool()
def read(name: str) -> str:
    """Read a file."""
    return (STORE / f"{name}.md").read_text(encoding="utf-8")


@mcp.tool()
def search(words: list[str]) -> list[str]:
    """Read all files and return the names of those that contain a word."""
    found = []
    for path in STORE.glob("*.md"):
        text = path.read_text(encoding="utf-8").lower()
        if any(word in text for word in words):
            found.append(path.stem)
    return found[:25]


if __name__ == "__main__":
    STORE.mkdir(exist_ok=True)
    sync_directory(STORE.parent)
    mcp.run()
