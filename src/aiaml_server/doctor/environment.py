"""The settings: each variable by itself, and those that nobody reads."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from aiaml_server import toolsets
from aiaml_server.doctor.context import PREFIX, Context
from aiaml_server.doctor.finding import Finding
from aiaml_server.settings import PAGER, VARIABLES

_INTERNAL = ("AIAML_LAUNCHER",)


def settings(context: Context) -> Iterator[Finding]:
    """Name every variable that cannot be used, or that nobody reads."""
    for error in context.wrong.values():
        remedy = f"correct {error.variable}, or remove it, where the server's environment is set"
        yield Finding("settings", "error", str(error), remedy)
    given = sorted(name for name in context.environ if name.upper().startswith(PREFIX))
    variables = [*VARIABLES, *toolsets.VARIABLES, PAGER]
    for toolset in map(toolsets.manifest, toolsets.OWN):
        variables += toolset.variables
    if not {each.name for each in variables}.issuperset(given):
        for toolset in toolsets.others().manifests:
            variables += toolset.variables
    known = list(dict.fromkeys(each.name for each in variables))
    unknown = [name for name in given if name not in (*known, *_INTERNAL)]
    for name in unknown:
        near = get_close_matches(name.upper(), known, 1)
        remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        yield Finding("settings", "warning", f"{name} is set, but no such setting exists", remedy)
    good = [name for name in given if name in known and name not in context.wrong]
    if good or not (context.wrong or unknown):
        yield Finding("settings", "ok", ", ".join(good) or "none set: the defaults are used")
