"""`semantic`: memory that is found by meaning, of a project and of a person.

from aiaml_server.toolsets.semantic import Memories

memories = Memories.at("/home/ada/shop")
memories.store("Prices are in cents until they are shown", tags=["billing"])
"""

from typing import TYPE_CHECKING

from aiaml_server.toolset import Manifest, Setting, lazy_attributes, parse_text
from aiaml_server.toolsets.warning import CHECK_SECRETS

if TYPE_CHECKING:
    from aiaml_server.toolsets.semantic.config import Config
    from aiaml_server.toolsets.semantic.failures import Refused
    from aiaml_server.toolsets.semantic.memories import Memories
    from aiaml_server.toolsets.semantic.memory import Memory
    from aiaml_server.toolsets.semantic.model import Embedder, Provider, State

__all__ = ["MANIFEST", "Config", "Embedder", "Memories", "Memory", "Provider", "Refused", "State"]

PROJECT = "AIAML_SEMANTIC_PROJECT"


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
            "the project whose memories are served beside yours; else the directory with a"
            " .memory in it, upwards from the working directory",
        ),
        CHECK_SECRETS,
    ),
    build="aiaml_server.toolsets.semantic.tools:build",
    commands="aiaml_server.toolsets.semantic.verbs:semantic",
    checks="aiaml_server.toolsets.semantic.checking:checks",
    needs=("apsw",),
    install="aiaml-server[semantic]",
)

_PLACES = {
    "Config": "config",
    "Embedder": "model",
    "Memories": "memories",
    "Memory": "memory",
    "Provider": "model",
    "Refused": "failures",
    "State": "model",
}


__getattr__ = lazy_attributes(__name__, _PLACES)
