"""Working memory for agents that you write: of a run, a session and a plan, in one JSON file.

from aiaml_server.compartments import Compartments

with Compartments("memory.json") as memory:  # a run
    memory.save("session", "The customer wants invoices in euros.", tags=["invoice"])

How frameworks take it: `pydantic_ai`, `smolagents`, `langgraph` and `openai_agents` here, each of
which imports its framework. The page is docs/toolsets/compartments.md.
"""

from aiaml_server.toolsets.compartments import (
    Busy,
    Compartments,
    DiskError,
    Entry,
    Found,
    InvalidInput,
    LimitExceeded,
    NotFound,
    Saved,
)

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
