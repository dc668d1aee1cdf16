"""The demonstration: two runs of an agent and a sub-agent, in a throw-away place."""

from __future__ import annotations

import tempfile
from pathlib import Path
from textwrap import indent

from aiaml_server.terminal import out, plural
from aiaml_server.toolsets.compartments.failures import LimitExceeded
from aiaml_server.toolsets.compartments.memory import Compartments


def demo() -> int:
    """Show the compartments at work; return the exit code."""
    with tempfile.TemporaryDirectory(prefix="aiaml-compartments-") as directory:
        path = Path(directory) / "memory.json"
        out("The first run saves:")
        with Compartments(path, limit={"run": 60}) as memory:
            memory.save("session", "The customer wants invoices in euros.", tags=["invoice"])
            step = memory.save("plan", "Convert the old orders.", category="step", priority=8).id
            memory.save("run", "12 of 40 orders are read.", category="progress")
            out("  session  The customer wants invoices in euros.")
            out("  plan     Convert the old orders. (category step, priority 8)")
            out("  run      12 of 40 orders are read.")
            out("Into each call of the model goes:")
            text = memory.run_text().replace(memory.get("run").entries[0].id, "<id>")
            out(indent(text, "  "))
            with Compartments(path) as helper:
                out("A sub-agent sees:")
                for name in ("run", "session", "plan"):
                    out(f"  {name:8} {plural(helper.get(name).total, 'entry', 'entries')}")
            try:
                memory.save(
                    "run", "13 of 40 orders are read, and this is longer than there is room."
                )
            except LimitExceeded as error:
                out("A full compartment says:")
                out("  " + str(error).replace(error.oldest[0].id, "<id>"))
            memory.save("plan", id=step, content="Convert the old orders: done.")
        out("The second run finds:")
        with Compartments(path) as memory:
            for name in ("session", "plan"):
                for entry in memory.get(name).entries:
                    out(f"  {name:8} {entry.content}")
            out("  run      nothing: it ended with its run")
    return 0
