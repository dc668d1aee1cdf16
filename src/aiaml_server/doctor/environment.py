"""The settings: each variable by itself, and those that nobody reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches

from aiaml_server import toolsets
from aiaml_server.doctor.context import PREFIX, Context
from aiaml_server.doctor.finding import Finding, unusable
from aiaml_server.errors import InvalidSetting
from aiaml_server.settings import PAGER, SETTINGS

_INTERNAL = ("AIAML_LAUNCHER",)


def settings(context: Context) -> Iterator[Finding]:
    """Name every variable that cannot be used, or that nobody reads."""
    given = sorted(name for name in context.environ if name.upper().startswith(PREFIX))
    wrong = context.wrong | _wrong_of_toolsets(context.environ, given)
    for error in wrong.values():
        context.told.add(str(error))
        yield unusable("settings", error)
    variables = [*SETTINGS, *toolsets.SETTINGS, PAGER]
    for toolset in map(toolsets.manifest, toolsets.OWN):
        variables += toolset.settings
    known = list(dict.fromkeys(each.name for each in variables))
    unknown = [name for name in given if name not in (*known, *_INTERNAL)]
    for name in unknown:
        near = get_close_matches(name.upper(), known, 1)
        remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        yield Finding("settings", "warning", f"{name} is set, but no such setting exists", remedy)
    good = [name for name in given if name in known and name not in wrong]
    if good or not (wrong or unknown):
        yield Finding("settings", "ok", ", ".join(good) or "none set: the defaults are used")


def _wrong_of_toolsets(
    environ: Mapping[str, str], given: Collection[str]
) -> dict[str, InvalidSetting]:
    """Return what cannot be used of the settings that are given to the toolsets served here."""
    wrong = {}
    variables = [*toolsets.SETTINGS]
    try:
        for toolset in toolsets.chosen([], environ):
            variables += toolset.settings
    except InvalidSetting as error:
        wrong[error.variable] = error
    for variable in variables:
        try:
            if variable.name in given:
                variable.value(environ)
        except InvalidSetting as error:
            wrong[variable.name] = error
    return wrong
