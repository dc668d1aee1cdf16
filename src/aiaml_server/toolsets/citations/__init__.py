"""`citations`: memories of a code base that cite its lines, and know when they are stale.

from aiaml_server.toolsets.citations import Citation, Memories

memories = Memories("/home/ada/shop")
memories.save("Prices are in cents", "**Fact**: …", [Citation("shop/prices.py", 12)])
"""

from typing import TYPE_CHECKING

from aiaml_server.toolset import Manifest, Setting, lazy_attributes, parse_text
from aiaml_server.toolsets.citations.settings import AGENTS, OTHERS, served
from aiaml_server.toolsets.warning import CHECK_SECRETS

if TYPE_CHECKING:
    from aiaml_server.toolsets.citations.failures import ToolError
    from aiaml_server.toolsets.citations.indexes import MemoryIndex, NullIndex
    from aiaml_server.toolsets.citations.memories import Memories
    from aiaml_server.toolsets.citations.model import Citation, Link, Memory
    from aiaml_server.toolsets.citations.verify import Checked

__all__ = [
    "MANIFEST",
    "Checked",
    "Citation",
    "Link",
    "Memories",
    "Memory",
    "MemoryIndex",
    "NullIndex",
    "ToolError",
]

REPOSITORY = "AIAML_CITATIONS_REPO"
FORGETFUL = "AIAML_CITATIONS_FORGETFUL"
TOOLS = "AIAML_CITATIONS_TOOLS"


MANIFEST = Manifest(
    name="citations",
    summary="memories of a code base that cite its lines, and know when they are stale",
    tools=(*AGENTS, *OTHERS),
    settings=(
        Setting(
            REPOSITORY,
            "",
            parse_text,
            "the repository whose memories are served; else it is found upwards from the working"
            " directory",
        ),
        Setting(
            FORGETFUL,
            "",
            parse_text,
            "the address of your index server: the one that a repository's settings may have asked",
        ),
        Setting(
            TOOLS,
            "agent",
            served,
            "the tools that are served: agent for the four of daily work, all, or names of others,"
            " separated by commas",
            changes_tools=True,
        ),
        CHECK_SECRETS,
    ),
    build="aiaml_server.toolsets.citations.tools:build",
    commands="aiaml_server.toolsets.citations.verbs:citations",
    checks="aiaml_server.toolsets.citations.verbs:checks",
    hooks={
        "before_edit": "aiaml_server.toolsets.citations.hooks:before",
        "after_edit": "aiaml_server.toolsets.citations.hooks:after",
    },
)

_PLACES = {
    "Checked": "verify",
    "Citation": "model",
    "Link": "model",
    "Memories": "memories",
    "Memory": "model",
    "MemoryIndex": "indexes",
    "NullIndex": "indexes",
    "ToolError": "failures",
}


__getattr__ = lazy_attributes(__name__, _PLACES)
