"""The demonstration: two runs of an agent and a sub-agent, in a throw-away place."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from .failures import LimitExceeded
from .memory import Compartments


def demo() -> int:
    """Show the compartments at work; return the exit code."""

    def say(line: str = "") -> None:
        sys.stdout.write(f"{line}\n")

    with tempfile.TemporaryDirectory(prefix="aiaml-compartments-") as directory:
        path = Path(directory) / "memory.json"
        say("The first run saves:")
        with Compartments(path, limit={"run": 60}) as memory:
            memory.save("session", "The customer wants invoices in euros.", tags=["invoice"])
            step = memory.save("plan", "Convert the old orders.", category="step", priority=8).id
            memory.save("run", "12 of 40 orders are read.", category="progress")
            say("  session  The customer wants invoices in euros.")
            say("  plan     Convert the old orders. (category step, priority 8)")
            say("  run      12 of 40 orders are read.")
            say("Into each call of the model goes:")
            say("  " + memory.run_text().replace(memory.get("run").entries[0].id, "<id>"))
            with Compartments(path) as helper:
                say("A sub-agent sees:")
                for name in ("run", "session", "plan"):
                    say(f"  {name:8} {helper.get(name).total} entries")
            try:
                memory.save(
                    "run", "13 of 40 orders are read, and this is longer than there is room."
                )
            except LimitExceeded as error:
                say("A full compartment says:")
                say("  " + str(error).replace(error.oldest[0].id, "<id>"))
            memory.save("plan", id=step, content="Convert the old orders: done.")
        say("The second run finds:")
        with Compartments(path) as memory:
            for name in ("run", "session", "plan"):
                for entry in memory.get(name).entries:
                    say(f"  {name:8} {entry.content}")
            say(f"  run      {memory.get('run').total} entries: it ended with its run")
    return 0
