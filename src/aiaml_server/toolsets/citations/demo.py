"""The demonstration: a memory, its line moves, then changes, in a throw-away repository."""

from __future__ import annotations

import tempfile
from pathlib import Path

from aiaml_server.terminal import echo
from aiaml_server.toolsets.citations.memories import Memories
from aiaml_server.toolsets.citations.model import Citation
from aiaml_server.toolsets.citations.writing import TIME

CODE = "def price(order):\n    return sum(order)  # in cents\n"


def demo() -> int:
    """Show the tools' operations at work; return the exit code."""
    with tempfile.TemporaryDirectory(prefix="aiaml-citations-") as directory:
        root = Path(directory).resolve()
        file = root / "prices.py"
        file.write_text(CODE, encoding="utf-8")
        memories = Memories(root)
        echo('memory_save("Prices are in cents", citations=[{"path": "prices.py", "line": 2}])')
        content = (
            "**Fact**: `price()` returns cents.\n\n"
            "**Reasoning**: Rounding euros lost money twice.\n\n"
            "**Action**: Divide by 100 only where a price is shown."
        )
        saved = memories.save("Prices are in cents", content, [Citation("prices.py", 2)])
        echo(f"{saved.path}:")
        text = TIME.sub("<now>", (root / saved.path).read_text(encoding="utf-8"))
        for line in text.splitlines():
            echo(f"    {line}".rstrip())
        echo()
        _verify(memories, saved.id, "As it was saved")
        file.write_text(f'"""The shop\'s prices."""\n\n{CODE}', encoding="utf-8")
        _verify(memories, saved.id, "After two lines were put above it")
        file.write_text(CODE.replace("cents", "euros"), encoding="utf-8")
        _verify(memories, saved.id, "After the line was changed")
        echo()
        echo("These are files of the repository: they are reviewed and merged like code.")
    return 0


def _verify(memories: Memories, memory_id: str, when: str) -> None:
    (checked,) = memories.verify(memory_id, update_timestamp=False).checked
    where = f"line {checked.line} today" if checked.line else checked.note
    echo(f"{when}: {checked.verdict}, {where}")
