"""Without a remote, nothing leaves this computer."""

from __future__ import annotations

from pathlib import Path

from steps import steps

USE = """
import sys
from pathlib import Path
from aiaml_server.bank import MemoryBank
from aiaml_server.settings import Settings
bank = MemoryBank(Settings(Path(sys.argv[1]), sync=False))
memory = bank.remember("claude", "marco", ["food"], "Marco is a vegetarian")
assert bank.think(["vegetarian"]) and bank.recall([memory.id])
bank.close()
"""


def test_nothing_is_sent_and_no_program_runs_without_a_remote(tmp_path: Path) -> None:
    """Remember, think and recall open no connection and start nothing."""
    done = {event for event, _ in steps(USE, tmp_path, [str(tmp_path)])}
    assert "open" in done
    outside = done - {"open", "os.mkdir", "os.rename", "os.remove", "os.truncate", "fsync"}
    assert outside == set()
