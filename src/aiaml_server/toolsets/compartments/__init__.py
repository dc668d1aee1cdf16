"""The toolset `compartments`: run, session and plan memory, as tools and as a Python API.

from aiaml_server.toolsets.compartments import Compartments

with Compartments("memory.json") as memory:  # a run
memory.save("session", "The customer wants invoices in euros.", tags=["invoice"])
"""

from typing import TYPE_CHECKING

from aiaml_server.errors import Busy, DiskError, InvalidInput, NotFound
from aiaml_server.toolset import Manifest, lazy_attributes
from aiaml_server.toolsets.compartments.settings import SETTINGS

if TYPE_CHECKING:
    from aiaml_server.toolsets.compartments.entry import Entry
    from aiaml_server.toolsets.compartments.memory import Compartments, LimitExceeded

__all__ = [
    "MANIFEST",
    "Busy",
    "Compartments",
    "DiskError",
    "Entry",
    "InvalidInput",
    "LimitExceeded",
    "NotFound",
]

MANIFEST = Manifest(
    name="compartments",
    summary="working memory in three compartments: of the run, the session and the plan",
    tools=("save_memory", "get_memory", "clear_memory"),
    settings=SETTINGS,
    build="aiaml_server.toolsets.compartments.tools:build",
    commands="aiaml_server.toolsets.compartments.cli:compartments",
    checks="aiaml_server.toolsets.compartments.cli:doctor_findings",
)

__getattr__ = lazy_attributes(
    __name__, {"Compartments": "memory", "Entry": "entry", "LimitExceeded": "memory"}
)
