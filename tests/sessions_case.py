"""What the tests of the toolset `sessions` share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from aiaml_server.errors import ToolError

DAY, NEXT_DAY = "2025-01-20", "2025-01-21"
AGENT_PATH = Path(".github/agent-memory/aristotle")
SECTIONS = ["Context", "Discussion Summary", "Decisions", "Open Questions", "Next Actions"]


def log_path(repo: Path, day: str = DAY) -> Path:
    """Return where a day's log is."""
    return repo / AGENT_PATH / "logs" / f"{day}.md"


def error_code(call: Callable[..., object], *arguments: object) -> str:
    """Return the code of the error that a call raises."""
    with pytest.raises(ToolError) as error:
        call(*arguments)
    assert str(error.value)
    return type(error.value).__name__


def tree(directory: Path) -> dict[str, bytes]:
    """Return all files below a directory with their content, but those of git."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in files
        if ".git" not in path.relative_to(directory).parts
    }
