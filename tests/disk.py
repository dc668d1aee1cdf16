"""What lies in a memory directory, read without the store."""

from __future__ import annotations

from pathlib import Path

from aiaml_server.format.memory import Memory, parse


def memories(base: Path) -> dict[str, Memory]:
    """Return by id what stands under a memory's name; each must be whole, and have its own id."""
    found: dict[str, Memory] = {}
    for path in base.glob("files/[!.]*.md"):
        memory = parse(path.read_bytes().decode())
        assert path.stem.endswith(f"_{memory.id}"), path
        assert memory.id not in found, f"two memories have the id {memory.id}"
        found[memory.id] = memory
    return found


def contents(base: Path) -> list[str]:
    """Return the contents of all memories, sorted."""
    return sorted(memory.content for memory in memories(base).values())


def leftovers(base: Path) -> list[Path]:
    """Return what lies in `files/` under any other name."""
    directory = base / "files"
    return sorted(set(directory.glob("*")) - set(directory.glob("[!.]*.md")))
