"""The demonstration: two runs of an agent and a sub-agent, in a throw-away place."""

from __future__ import annotations

import tempfile
from pathlib import Path
from textwrap import indent

from aiaml_server.terminal import echo, plural
from aiaml_server.toolsets.compartments.failures import LimitExceeded
from aiaml_server.toolsets.compartments.memory import Compartments


def demo() -> int:
    """Show the compartments at work; return the exit code."""
    with tempfile.TemporaryDirectory(prefix="aiaml-compartments-") as directory:
        path = Path(directory) / "memory.json"
        echo("The first run saves:")
        with Compartments(path, limit={"run": 60}) as memory:
            memory.save("session", "The customer wants invoices in euros.", tags=["invoice"])
            step = memory.save("plan", "Convert the old orders.", category="step", priority=8).id
            memory.save("run", "12 of 40 orders are read.", category="progress")
            echo("  session  The customer wants invoices in euros.")
            echo("  plan     Convert the old orders. (category step, priority 8)")
            echo("  run      12 of 40 orders are read.")
            echo("Into each call of the model goes:")
            text = memory.run_text().replace(memory.get("run").entries[0].id, "<id>")
            echo(indent(text, "  "))
            with Compartments(path) as helper:
                echo("A sub-agent sees:")
                for name in ("run", "session", "plan"):
                    echo(f"  {name:8} {plural(helper.get(name).total, 'entry', 'entries')}")
            try:
                memory.save("run", "13 of 40 orders are read; the next has no price.")
            except LimitExceeded as error:
                echo("A full compartment says:")
                echo("  " + str(error).replace(error.oldest[0].id, "<id>"))
            memory.save("plan", id=step, content="Convert the old orders: done.")
        echo("The second run finds:")
        with Compartments(path) as memory:
            for name in ("session", "plan"):
                for entry in memory.get(name).entries:
                    echo(f"  {name:8} {entry.content}")
            echo("  run      nothing: it ended with its run")
    return 0
