"""The script that writes the manifests, loaded from its file."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent


def script() -> ModuleType:
    """Load `scripts/manifests.py`."""
    spec = importlib.util.spec_from_file_location("_manifests", ROOT / "scripts/manifests.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
