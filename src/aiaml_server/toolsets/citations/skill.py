"""The skill for Claude Code: a text that says when these tools are worth using."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from aiaml_server.files import replace_atomic
from aiaml_server.toolsets.citations.errors import DiskError, InvalidInput


def install_skill(root: Path | None, *, force: bool = False) -> Path:
    """Write the skill where Claude Code looks for it, and return where.

    Args:
        root: a repository's top; None for the user's own skills.
        force: also over a file with another text.

    Raises:
        InvalidInput: there is a file with another text.
        DiskError: it lies behind a link that leads out of the repository.
        OSError: it cannot be written.
    """
    skill = files(__package__).joinpath("SKILL.md").read_bytes()
    own = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
    path = (root / ".claude" if root else own) / "skills/code-memories/SKILL.md"
    if root and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise DiskError(f"{path} lies behind a link that leads out of the repository")
    if path.exists() and path.read_bytes() != skill and not force:
        raise InvalidInput(f"{path} has another text; --force overwrites it")
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_atomic(path, skill, 0o644)
    return path
