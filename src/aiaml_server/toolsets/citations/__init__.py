"""`citations`: memories of a code base that cite its lines, and know when they are stale.

from aiaml_server.toolsets.citations import Citation, MemoryService

memories = MemoryService("/home/ada/shop")
memories.save("Prices are in cents", "**Fact**: …", [Citation("shop/prices.py", 12)])
"""

from typing import TYPE_CHECKING

from aiaml_server.settings import Setting, parse_text
from aiaml_server.toolset import Manifest, lazy_attributes
from aiaml_server.toolsets.warning import CHECK_SECRETS

if TYPE_CHECKING:
    from aiaml_server.toolsets.citations.index import MemoryIndex
    from aiaml_server.toolsets.citations.models import Citation, Link, Memory
    from aiaml_server.toolsets.citations.service import MemoryService

__all__ = [
    "MANIFEST",
    "Citation",
    "Link",
    "Memory",
    "MemoryIndex",
    "MemoryService",
]

MANIFEST = Manifest(
    name="citations",
    summary="memories of a code base that cite its lines, and know when they are stale",
    tools=(
        "memory_search",
        "memory_save",
        "memory_get",
        "memory_verify",
        "memory_list",
        "memory_graph_traverse",
        "memory_graph_related",
        "memory_delete",
        "memory_batch_verify",
        "memory_sync_index",
    ),
    settings=(
        Setting(
            "AIAML_CITATIONS_REPO",
            "",
            parse_text,
            "the repository whose memories are served; else it is found upwards from the working"
            " directory",
        ),
        Setting(
            "AIAML_CITATIONS_FORGETFUL",
            "",
            parse_text,
            "the address of your Forgetful server, which a repository's configuration may use",
        ),
        CHECK_SECRETS,
    ),
    build="aiaml_server.toolsets.citations.tools:build",
    commands="aiaml_server.toolsets.citations.command:citations",
    hooks={
        "before_edit": "aiaml_server.toolsets.citations.hooks:before_edit",
        "after_edit": "aiaml_server.toolsets.citations.hooks:after_edit",
    },
)

__getattr__ = lazy_attributes(
    __name__,
    {
        "Citation": "models",
        "Link": "models",
        "Memory": "models",
        "MemoryIndex": "index",
        "MemoryService": "service",
    },
)
