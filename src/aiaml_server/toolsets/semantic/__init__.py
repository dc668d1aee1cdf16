"""`semantic`: memories of a project and of a person, found by meaning and by words.

from aiaml_server.toolsets.semantic import MemoryStore

store = MemoryStore.at("/home/ada/shop")
store.store("Prices are in cents until they are shown", tags=["billing"])
"""

from types import MappingProxyType
from typing import TYPE_CHECKING

from aiaml_server.settings import Setting, parse_text
from aiaml_server.toolset import Manifest, lazy_attributes
from aiaml_server.toolsets.warning import CHECK_SECRETS

if TYPE_CHECKING:
    from aiaml_server.toolsets.semantic.config import Config
    from aiaml_server.toolsets.semantic.errors import SemanticError
    from aiaml_server.toolsets.semantic.models import Filters, Memory
    from aiaml_server.toolsets.semantic.store import MemoryStore

__all__ = ["MANIFEST", "Config", "Filters", "Memory", "MemoryStore", "SemanticError"]

PROJECT = "AIAML_SEMANTIC_PROJECT"
_PACKAGE = "aiaml_server.toolsets.semantic"
_EVENTS = (
    "session_start",
    "session_end",
    "prompt",
    "tool_succeeded",
    "tool_failed",
)

MANIFEST = Manifest(
    name="semantic",
    summary="memories of a project and of a person, found by meaning and by words",
    tools=(
        "store_memory",
        "search_memory",
        "list_memories",
        "delete_memory",
        "update_memory",
        "deduplicate_memories",
        "import_markdown_memories",
        "migrate_embeddings",
    ),
    settings=(
        Setting(
            PROJECT,
            "",
            parse_text,
            "the project whose memories are served beside yours; by default the nearest directory"
            " upwards that has a .memory",
        ),
        CHECK_SECRETS,
    ),
    build=f"{_PACKAGE}.tools:build",
    commands=f"{_PACKAGE}.cli:semantic",
    checks=f"{_PACKAGE}.doctor:checks",
    needs=("apsw",),
    install="aiaml-server[semantic]",
    hooks=MappingProxyType({event: f"{_PACKAGE}.hooks:{event}" for event in _EVENTS}),
)

__getattr__ = lazy_attributes(
    __name__,
    {
        "Config": "config",
        "Filters": "models",
        "Memory": "models",
        "MemoryStore": "store",
        "SemanticError": "errors",
    },
)
