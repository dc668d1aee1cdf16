"""The toolsets: our own, and those that other packages offer by an entry point.

Asking for entry points reads the metadata of every installed package, some 100 ms. It is done for a
name that is not ours, and to list all that there is; never on the way to serve one of our own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from aiaml_server.errors import AiamlError, InvalidSetting
from aiaml_server.toolset import PLACES, Manifest, Variable, at

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

from aiaml_server.toolsets.owners import SAFE

DEFAULT = "aiaml"
OWN = {
    DEFAULT: "aiaml_server.toolsets.aiaml:MANIFEST",
    "sessions": "aiaml_server.toolsets.sessions:MANIFEST",
    "compartments": "aiaml_server.toolsets.compartments:MANIFEST",
    "citations": "aiaml_server.toolsets.citations:MANIFEST",
    "semantic": "aiaml_server.toolsets.semantic:MANIFEST",
}
"""The place of each of our manifests, in the order in which they are listed and served."""

GROUP = "aiaml.toolsets"
"""The group of entry points in which a package offers its manifest, by the toolset's name."""

OPTION = "--toolset"


class UnusableToolset(AiamlError):  # noqa: N818
    """A toolset that another package offers and that cannot be used; the sentence says why."""


class Others(NamedTuple):
    """What other packages offer.

    Attributes:
        manifests: of the toolsets that can be used.
        unusable: a sentence for each that cannot.
    """

    manifests: list[Manifest]
    unusable: list[str]


def manifest(name: str) -> Manifest:
    """Return the manifest of a toolset that is ours, or that another package offers.

    Raises:
        UnusableToolset: another package offers it, and it cannot be used.
        LookupError: there is no such toolset.
    """
    if name not in OWN:
        return _offered(name)
    found: Manifest = at(OWN[name])
    return found


def others() -> Others:
    """Return what other packages offer."""
    found = Others([], [])
    for name in _entries():
        try:
            found.manifests.append(_offered(name))
        except UnusableToolset as error:
            found.unusable.append(str(error))
    return found


def packages(names: Iterable[str]) -> list[str]:
    """Return the packages that offer toolsets, but for this one."""
    entries = (each for name in names if name not in OWN for each in _entries().get(name, ()))
    return [each.dist.name for each in entries if each.dist]


def missing(chosen: Manifest) -> list[str]:
    """Return the modules that a toolset needs and that are not installed."""
    return [module for module in chosen.needs if not _is_installed(module)]


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:  # the package that it is in is not there
        return False


def known(said_by: str, value: str) -> tuple[str, ...]:
    """Read toolsets' names, separated by commas, each once: ours first, in the order of `OWN`.

    Args:
        said_by: the variable or the option, for the sentence.
        value: the names.

    Raises:
        InvalidSetting: there is no such toolset.
    """
    wanted = [word for word in (each.strip().lower() for each in value.split(",")) if word]
    for word in wanted:
        if word not in OWN and word not in _entries():
            from difflib import get_close_matches  # noqa: PLC0415 (hardly ever needed)

            there = [*OWN, *_entries()]
            near = get_close_matches(word, there, 1)
            hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(there)}"
            raise InvalidSetting(said_by, f"names {word!r}, and there is no such toolset{hint}")
    if not wanted:
        raise InvalidSetting(said_by, f"must name a toolset; there are {', '.join(OWN)}")
    own = [name for name in OWN if name in wanted]
    return tuple(dict.fromkeys([*own, *wanted]))


VARIABLE = Variable("AIAML_TOOLSETS", DEFAULT, known, "the toolsets to serve, separated by commas")
VARIABLES = (VARIABLE, SAFE)
"""What is said of all toolsets."""


def chosen(words: Sequence[str], environ: Mapping[str, str]) -> list[Manifest]:
    """Return the manifests of the toolsets to serve.

    Args:
        words: what `--toolset` names; where it does, the variable counts for nothing.
        environ: the environment variables.

    Raises:
        InvalidSetting: there is no such toolset, it cannot be used, or what it needs is not
            installed.
    """
    said_by = OPTION if words else VARIABLE.name
    names = known(OPTION, ",".join(words)) if words else VARIABLE.value(environ)
    try:
        found = [manifest(name) for name in names]
    except UnusableToolset as error:
        raise InvalidSetting(said_by, f"names what cannot be served: {error}") from error
    for each in found:
        if missing(each):
            remedy = f"install it: pip install '{each.install}'"
            raise InvalidSetting(
                said_by, f"names {each.name}, and what it needs is not installed; {remedy}"
            )
    return found


@cache
def _entries() -> dict[str, list[EntryPoint]]:
    """Return what installed packages offer, by name; more than one where packages disagree."""
    from importlib.metadata import entry_points  # noqa: PLC0415 (50 ms, for what is not ours)

    found: dict[str, list[EntryPoint]] = {}
    for each in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        found.setdefault(each.name, []).append(each)
    return found


def _offered(name: str) -> Manifest:
    """Load the manifest that another package offers.

    Raises:
        UnusableToolset: it cannot be used.
        LookupError: none does.
    """
    entries = _entries()[name]
    packages = " and ".join(each.dist.name for each in entries if each.dist)
    problem = _problem(name, entries)
    if not problem:
        try:
            found = entries[0].load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 (whatever another's module does)
            problem = f"{entries[0].value} cannot be imported: {type(error).__name__}: {error}"
        else:
            problem = _malformed(found, name)
            if not problem:
                return found  # type: ignore[no-any-return]
            problem = f"{entries[0].value} {problem}"
    raise UnusableToolset(f"the toolset {name!r} of the package {packages} is left out: {problem}")


def _malformed(found: Any, name: str) -> str:
    """Say what another package's manifest is not; empty where it is one."""
    if not isinstance(found, Manifest) or found.name != name:
        return "is no Manifest of that name"
    if not _are(found.tools, str):
        return "has tools that are no tuple of names"
    if not _are(found.variables, Variable):
        return "has variables that are no tuple of Variable"
    for kind in PLACES:
        place = getattr(found, kind)
        if place and not re.fullmatch(r"[\w.]+:\w+", str(place)):
            return f"has {place!r} for its {kind}, and a place is module:name"
    return ""


def _are(values: Any, kind: type) -> bool:
    return isinstance(values, (tuple, list)) and all(isinstance(each, kind) for each in values)


def _problem(name: str, entries: Sequence[EntryPoint]) -> str:
    """Say why a name cannot be used; empty where it can."""
    if name in OWN:
        return "the name is one of ours"
    if not re.fullmatch("[a-z][a-z0-9-]*", name):
        return "a name has lower-case letters, digits and hyphens"
    if len(entries) > 1:
        return "two cannot have one name"
    return ""
