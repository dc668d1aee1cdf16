"""The toolsets, each with a manifest that is cheap to import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec

from aiaml_server.errors import InvalidSetting
from aiaml_server.toolset import Embedder, Manifest, Variable, at

DEFAULT = "aiaml"
NAMES: tuple[str, ...] = (DEFAULT, "sessions", "compartments", "citations", "semantic")
"""Every toolset, in the order in which they are listed and served."""

OPTION = "--toolset"


def manifest(name: str) -> Manifest:
    """Return the manifest of one of `NAMES`."""
    found: Manifest = import_module(f".{name}", __package__).MANIFEST
    return found


def missing(chosen: Manifest) -> list[str]:
    """Return the modules that a toolset needs and that are not installed."""
    return [module for module in chosen.needs if find_spec(module) is None]


def embedder() -> Embedder | None:
    """Return the model that a person has for search by meaning, which any toolset may use.

    None where no toolset has one, or it is not on this machine; nothing is fetched.
    """
    for each in map(manifest, NAMES):
        if each.embedder and not missing(each):
            found: Embedder | None = at(each.embedder)()
            return found
    return None


def known(said_by: str, value: str) -> tuple[str, ...]:
    """Read toolsets' names, separated by commas, each once, in the order of `NAMES`.

    Args:
        said_by: the variable or the option, for the sentence.
        value: the names.

    Raises:
        InvalidSetting: there is no such toolset.
    """
    wanted = [word for word in (each.strip().lower() for each in value.split(",")) if word]
    for word in wanted:
        if word not in NAMES:
            from difflib import get_close_matches  # noqa: PLC0415 (hardly ever needed)

            near = get_close_matches(word, NAMES, 1)
            hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(NAMES)}"
            raise InvalidSetting(said_by, f"names {word!r}, and there is no such toolset{hint}")
    if not wanted:
        raise InvalidSetting(said_by, f"must name a toolset; there are {', '.join(NAMES)}")
    return tuple(name for name in NAMES if name in wanted)


VARIABLE = Variable("AIAML_TOOLSETS", DEFAULT, known, "the toolsets to serve, separated by commas")


def chosen(words: Sequence[str], environ: Mapping[str, str]) -> list[Manifest]:
    """Return the manifests of the toolsets to serve.

    Args:
        words: what `--toolset` names; where it does, the variable counts for nothing.
        environ: the environment variables.

    Raises:
        InvalidSetting: there is no such toolset, or what it needs is not installed.
    """
    said_by = OPTION if words else VARIABLE.name
    names = known(OPTION, ",".join(words)) if words else VARIABLE.value(environ)
    found = [manifest(name) for name in names]
    for each in found:
        if missing(each):
            remedy = f"install it: pip install 'aiaml-server[{each.extra}]'"
            raise InvalidSetting(
                said_by, f"names {each.name}, and what it needs is not installed; {remedy}"
            )
    return found
