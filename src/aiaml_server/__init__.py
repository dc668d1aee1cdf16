"""AI Agnostic Memory Layer: one memory, in plain files, for every AI agent that a person uses."""

from .bank import MemoryBank
from .errors import AiamlError, InvalidInput, InvalidSetting, MalformedFile, StoreError
from .memory import Memory
from .scorer import Hit
from .settings import Settings

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
