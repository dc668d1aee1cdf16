"""The toolsets: their manifests, and which of them a server serves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pkgutil import resolve_name

from aiaml_server.errors import InvalidSetting
from aiaml_server.identity import SAFE_DIRECTORIES
from aiaml_server.settings import Setting
from aiaml_server.toolset import Manifest

DEFAULT = "aiaml"
OPTION = "--toolset"

OWN = {
    DEFAULT: "aiaml_server.toolsets.aiaml:MANIFEST",
    "sessions": "aiaml_server.toolsets.sessions:MANIFEST",
    "compartments": "aiaml_server.toolsets.compartments:MANIFEST",
    "citations": "aiaml_server.toolsets.citations:MANIFEST",
    "semantic": "aiaml_server.toolsets.semantic:MANIFEST",
}
"""The place of each manifest, in the order in which toolsets are listed and served."""


def manifest(name: str) -> Manifest:
    """Return the manifest of a toolset.

    Raises:
        LookupError: there is no such toolset.
    """
    found: Manifest = resolve_name(OWN[name])
    return found


def missing(chosen: Manifest) -> list[str]:
    """Return the modules that a toolset needs and that are not installed."""
    return [module for module in chosen.needs if not _is_installed(module)]


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:  # the package that contains it is not installed
        return False


def known(source: str, value: str) -> tuple[str, ...]:
    """Parse names of toolsets, separated by commas; return each once, in the order of `OWN`.

    Args:
        source: the variable or option that gives them, for the error.
        value: the names.

    Raises:
        InvalidSetting: there is no such toolset.
    """
    words = [word.strip().lower() for word in value.split(",") if word.strip()]
    for word in words:
        if word not in OWN:
            from difflib import get_close_matches  # noqa: PLC0415 (slow, and hooks wait for it)

            near = get_close_matches(word, OWN, 1)
            hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(OWN)}"
            raise InvalidSetting(source, f"names {word!r}, and there is no such toolset{hint}")
    if not words:
        raise InvalidSetting(source, f"must name a toolset; there are {', '.join(OWN)}")
    return tuple(name for name in OWN if name in words)


TOOLSETS = Setting("AIAML_TOOLSETS", DEFAULT, known, "the toolsets to serve, separated by commas")
SETTINGS = (TOOLSETS, SAFE_DIRECTORIES)
"""The settings that concern all toolsets."""


def chosen(words: Sequence[str], environ: Mapping[str, str]) -> list[Manifest]:
    """Return the manifests of the toolsets to serve.

    Args:
        words: the values of `--toolset`; if there are any, the environment variable is ignored.
        environ: the environment variables.

    Raises:
        InvalidSetting: there is no such toolset, or what it needs is not installed.
    """
    source = OPTION if words else TOOLSETS.name
    names = known(OPTION, ",".join(words)) if words else TOOLSETS.value(environ)
    manifests = [manifest(name) for name in names]
    for each in manifests:
        if missing(each):
            remedy = f"install it: pip install '{each.install}'"
            raise InvalidSetting(
                source, f"names {each.name}, and what it needs is not installed; {remedy}"
            )
    return manifests


def split_option(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split `--toolset NAME` and `--toolset=NAME` from the other arguments."""
    names: list[str] = []
    rest: list[str] = []
    remaining = iter(words)
    for word in remaining:
        option, equals, value = word.partition("=")
        if option == OPTION:
            names.append(value if equals else next(remaining, ""))
        else:
            rest.append(word)
    return names, rest
