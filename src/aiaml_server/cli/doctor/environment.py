"""The settings: each variable by itself, and those that nobody reads."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from .finding import Finding
from .scene import PREFIX, Scene

KNOWN = (
    "AIAML_MEMORY_DIR",
    "AIAML_ENABLE_SYNC",
    "AIAML_GITHUB_REMOTE",
    "AIAML_SYNC_INTERVAL",
    "AIAML_CHECK_SECRETS",
    "AIAML_CHECK_INDEX",
    "AIAML_LOG_LEVEL",
)
_INTERNAL = ("AIAML_LAUNCHER",)


def settings(scene: Scene) -> Iterator[Finding]:
    """Name every variable that cannot be used, or that nobody reads."""
    for error in scene.wrong.values():
        remedy = f"correct {error.variable}, or remove it, where the server's environment is set"
        yield Finding("settings", "error", str(error), remedy)
    given = sorted(name for name in scene.environ if name.upper().startswith(PREFIX))
    unknown = [name for name in given if name not in (*KNOWN, *_INTERNAL)]
    for name in unknown:
        near = get_close_matches(name.upper(), KNOWN, 1)
        remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(KNOWN)}"
        yield Finding("settings", "warning", f"{name} is set, but no such setting exists", remedy)
    good = [name for name in given if name in KNOWN and name not in scene.wrong]
    if good or not (scene.wrong or unknown):
        yield Finding("settings", "ok", ", ".join(good) or "none set: the defaults are used")
