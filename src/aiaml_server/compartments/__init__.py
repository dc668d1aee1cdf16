"""Working memory for agents that you write: of a run, a session and a plan, in one JSON file.

from aiaml_server.compartments import Compartments

with Compartments("memory.json") as memory:  # a run
    memory.save("session", "The customer wants invoices in euros.", tags=["invoice"])

How frameworks take it: `pydantic_ai`, `smolagents`, `langgraph` and `openai_agents` here, each of
which imports its framework. The page is docs/toolsets/compartments.md.
"""

from typing import TYPE_CHECKING

from aiaml_server.errors import InvalidInput
from aiaml_server.toolset import lazily

if TYPE_CHECKING:
    from aiaml_server.toolsets.compartments.entries import Entry
    from aiaml_server.toolsets.compartments.failures import (
        Busy,
        DiskError,
        LimitExceeded,
        NotFound,
    )
    from aiaml_server.toolsets.compartments.memory import Compartments, Found, Saved

__all__ = [
    "Busy",
    "Compartments",
    "DiskError",
    "Entry",
    "Found",
    "InvalidInput",
    "LimitExceeded",
    "NotFound",
    "Saved",
]

_PLACES = dict.fromkeys(("Busy", "DiskError", "LimitExceeded", "NotFound"), "failures")
_PLACES |= dict.fromkeys(("Compartments", "Found", "Saved"), "memory")
_PLACES["Entry"] = "entries"

__getattr__ = lazily("aiaml_server.toolsets.compartments", _PLACES)
