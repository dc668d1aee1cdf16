"""A repository, and an agent with a log in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from aiaml_server.toolsets.sessions.service import AgentMemory
from machine import git
from sessions_case import DAY


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """An empty git repository."""
    path = tmp_path / "shop"
    path.mkdir()
    git(path, "init", "--quiet", "--initial-branch=main")
    return path


@pytest.fixture
def memory(repo: Path) -> AgentMemory:
    """Aristotle's memory in it, with the log of a day."""
    memory = AgentMemory(str(repo), "aristotle")
    memory.start_session(DAY)
    return memory
