"""The demonstration: a session, from its start to its summary, in a throw-away repository."""

from __future__ import annotations

import tempfile
from pathlib import Path

from aiaml_server.terminal import echo
from aiaml_server.toolsets.sessions.memory import AgentMemory


def demo() -> int:
    """Show the tools' operations at work; return the exit code."""
    with tempfile.TemporaryDirectory(prefix="aiaml-sessions-") as directory:
        root = Path(directory).resolve()
        (root / ".git").mkdir()
        (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
        memory = AgentMemory(str(root), "aristotle")
        echo('start_session(agent_name="aristotle", date="2025-01-20")')
        started = memory.start("2025-01-20")
        echo(f"  -> created: {started.created}")
        for section, content in (
            ("Context", "- Project: the shop's prices"),
            ("Decisions", "- Prices are kept in cents: rounding lost money twice."),
            ("Next Actions", "- Ada converts the old orders."),
        ):
            echo(f'append_entry(section="{section}", content="{content}")')
            memory.append(section, content, "2025-01-20")
        echo('update_summary(section="Decisions", mode="append", content="- Money is in cents.")')
        memory.update("Decisions", "- Money is in cents.", "append")
        echo()
        for path in (Path(started.file), Path(started.file).parents[1] / "_summary.md"):
            echo(f"{path.relative_to(root).as_posix()}:")
            for line in path.read_text(encoding="utf-8").splitlines():
                echo(f"    {line}".rstrip())
            echo()
        echo(
            "These are files of the repository: git shows each change, and a person decides on it."
        )
    return 0
