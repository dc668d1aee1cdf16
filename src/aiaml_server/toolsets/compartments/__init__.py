"""`compartments`: run, session and plan memory, as tools and as a Python API.

from aiaml_server.toolsets.compartments import Compartments

with Compartments("memory.json") as memory:  # a run
    memory.save("session", "The customer wants invoices in euros.", tags=["invoice"])
"""

from typing import TYPE_CHECKING

from aiaml_server.errors import InvalidInput
from aiaml_server.toolset import Manifest, lazy_attributes
from aiaml_server.toolsets.compartments.settings import VARIABLES

if TYPE_CHECKING:
    from aiaml_server.toolsets.compartments.entries import Entry
    from aiaml_server.toolsets.compartments.failures import Busy, DiskError, LimitExceeded, NotFound
    from aiaml_server.toolsets.compartments.memory import Compartments, Found, Saved

__all__ = [
    "MANIFEST",
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


MANIFEST = Manifest(
    name="compartments",
    summary="working memory in three compartments: of the run, the session and the plan",
    tools=("save_memory", "get_memory", "clear_memory"),
    settings=VARIABLES,
    build="aiaml_server.toolsets.compartments.tools:build",
    commands="aiaml_server.toolsets.compartments.verbs:compartments",
    checks="aiaml_server.toolsets.compartments.verbs:checks",
)

_PLACES = {
    "Busy": "failures",
    "Compartments": "memory",
    "DiskError": "failures",
    "Entry": "entries",
    "Found": "memory",
    "LimitExceeded": "failures",
    "NotFound": "failures",
    "Saved": "memory",
}


__getattr__ = lazy_attributes(__name__, _PLACES)
