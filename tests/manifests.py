"""The scripts beside the package, loaded from their files."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent


def script(name: str = "manifests") -> ModuleType:
    """Load one, by default that which writes the manifests."""
    spec = importlib.util.spec_from_file_location(f"_{name}", ROOT / f"scripts/{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
