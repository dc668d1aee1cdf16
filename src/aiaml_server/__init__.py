"""AI Agnostic Memory Layer: one memory, in plain files, for every AI agent that a person uses.

The names are imported when they are first used, so that a part of the package can be imported
without the others.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiaml_server.bank import MemoryBank
    from aiaml_server.errors import (
        AiamlError,
        InvalidInput,
        InvalidSetting,
        MalformedFile,
        StoreError,
    )
    from aiaml_server.format.memory import Memory
    from aiaml_server.format.scorer import Hit
    from aiaml_server.settings import Settings

__version__ = "0.1.0"

__all__ = [
    "AiamlError",
    "Hit",
    "InvalidInput",
    "InvalidSetting",
    "MalformedFile",
    "Memory",
    "MemoryBank",
    "Settings",
    "StoreError",
    "__version__",
]

_PLACES = {
    "AiamlError": "errors",
    "Hit": "format.scorer",
    "InvalidInput": "errors",
    "InvalidSetting": "errors",
    "MalformedFile": "errors",
    "Memory": "format.memory",
    "MemoryBank": "bank",
    "Settings": "settings",
    "StoreError": "errors",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_PLACES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
