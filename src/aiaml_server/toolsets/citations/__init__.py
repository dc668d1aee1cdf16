"""`citations`: memories of a code base that cite its lines, and know when they are stale.

from aiaml_server.toolsets.citations import Citation, Memories

memories = Memories("/home/ada/shop")
memories.save("Prices are in cents", "**Fact**: …", [Citation("shop/prices.py", 12)])
"""

from typing import TYPE_CHECKING

from aiaml_server.toolset import Manifest, Variable, as_given, lazily
from aiaml_server.toolsets.citations.settings import AGENTS, OTHERS, served
from aiaml_server.toolsets.warning import CHECK_SECRETS

if TYPE_CHECKING:
    from aiaml_server.toolsets.citations.failures import Refused
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
    "Refused",
]

REPOSITORY = "AIAML_CITATIONS_REPO"
FORGETFUL = "AIAML_CITATIONS_FORGETFUL"
TOOLS = "AIAML_CITATIONS_TOOLS"


MANIFEST = Manifest(
    name="citations",
    summary="memories of a code base that cite its lines, and know when they are stale",
    tools=(*AGENTS, *OTHERS),
    variables=(
        Variable(
            REPOSITORY,
            "",
            as_given,
            "the repository whose memories are served; else it is found upwards from the working"
            " directory",
        ),
        Variable(
            FORGETFUL,
            "",
            as_given,
            "the address of your index server: the one that a repository's settings may have asked",
        ),
        Variable(
            TOOLS,
            "agent",
            served,
            "the tools that are served: agent for the four of daily work, all, or names of others,"
            " separated by commas",
            told=True,
        ),
        CHECK_SECRETS,
    ),
    build="aiaml_server.toolsets.citations.tools:build",
    verbs="aiaml_server.toolsets.citations.verbs:citations",
    checks="aiaml_server.toolsets.citations.verbs:checks",
    notes="aiaml_server.toolsets.citations.verbs:notes",
    demo="aiaml_server.toolsets.citations.demo:demo",
    hooks={
        "before": "aiaml_server.toolsets.citations.hooks:before",
        "after": "aiaml_server.toolsets.citations.hooks:after",
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
    "Refused": "failures",
}


__getattr__ = lazily(__name__, _PLACES)
