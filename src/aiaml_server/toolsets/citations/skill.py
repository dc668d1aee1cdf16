"""The skill for Claude Code: a text that says when these tools are worth using."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from aiaml_server.errors import MalformedFile
from aiaml_server.files import read_regular, replace_atomic
from aiaml_server.toolsets.citations.failures import DiskError, InvalidInput
from aiaml_server.toolsets.failures import disk_error

NAME = "code-memories"
_MAX_FILE = 1024 * 1024  # bytes


def text() -> bytes:
    """Return the skill."""
    return files(__package__).joinpath("SKILL.md").read_bytes()


def install(root: Path | None, *, force: bool = False) -> tuple[Path, bool]:
    """Put the skill where Claude Code looks for it; return where, and whether it was written.

    Args:
        root: a repository's top directory; None for the user's own skills.
        force: also over a file that says something else.

    Raises:
        InvalidInput: another file is there.
        DiskError: the disk refused.
    """
    own = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")  # noqa: PTH111
    path = (root / ".claude" if root else Path(own)) / "skills" / NAME / "SKILL.md"
    if root and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise DiskError(f"{path} lies behind a link that leads out of the repository")
    try:
        there = read_regular(os.fspath(path), _MAX_FILE)
    except (FileNotFoundError, NotADirectoryError):
        there = b""
    except (OSError, MalformedFile) as error:
        raise DiskError(f"{path}: {error}") from error
    if there == text():
        return path, False
    if there and not force:
        raise InvalidInput(f"{path} says something else; --force writes over it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_atomic(path, text(), 0o644)
    except OSError as error:
        raise disk_error(path, error) from error
    return path, True
