"""A command does not wait for libraries that only a server needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from paths import TESTS

SERVER_ONLY = {"mcp", "pydantic", "starlette", "uvicorn"}


def test_commands_import_nothing_that_only_servers_need(tmp_path: Path) -> None:
    """Importing the MCP SDK would double the time that a command takes."""
    shutil.copytree(TESTS / "transcripts" / "store", tmp_path / "store")
    script = (
        "import sys; from aiaml_server.cli import main; code = main(sys.argv[1:]); "
        "print(code, *sys.modules, file=sys.stderr)"
    )
    for line in ("--help", "list", "search dog", "remember x -t y", "status"):
        done = subprocess.run(
            [sys.executable, "-c", script, *line.split()],
            env={**os.environ, "AIAML_MEMORY_DIR": str(tmp_path / "store"), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        code, *modules = done.stderr.splitlines()[-1].split()
        assert code in {"0", "1"}, line
        assert not SERVER_ONLY & set(modules), line


def test_a_server_imports_git_yaml_and_locks_only_when_they_are_used() -> None:
    """A client waits for a server's first answer."""
    script = (
        "import sys, aiaml_server.server.protocol; "
        "print([name for name in ('git', 'yaml', 'portalocker') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
