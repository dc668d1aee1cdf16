"""The settings: one table of variables, and how each is read."""

from __future__ import annotations

import os
from pathlib import Path

from aiaml_server.errors import InvalidSetting
from aiaml_server.toolset import Setting
from aiaml_server.toolsets.compartments.entries import (
    ARGUMENTS,
    FILE,
    LIMIT,
    SCOPES,
    is_limit,
    is_session,
)
from aiaml_server.toolsets.owners import foreign_owner, leaves_directory
from aiaml_server.toolsets.warning import CHECK_SECRETS


def _file(variable: str, value: str) -> Path:
    """Read the file's path; a relative one is below the working directory."""
    path = Path(os.path.expanduser(value))  # noqa: PTH111 (a missing home is no traceback)
    if "\0" in value:
        raise InvalidSetting(variable, "holds a character that no path has")
    here = Path.cwd()
    if not path.is_absolute() and here == Path(here.anchor):
        raise InvalidSetting(
            variable,
            f"is {value!r} in the working directory {here}, which is no agent's; set it to an "
            "absolute path, or start the server elsewhere",
        )
    if not path.is_absolute():  # it is found there; one that is absolute was named
        whose = foreign_owner((here / path).parent, (path.name, f"{path.name}.lock"))
        if found := whose or leaves_directory(str(path)):
            raise InvalidSetting(variable, f"is {value!r}: {found}")
    path = Path(os.path.realpath(here / path))
    there = path.parent  # or what is above it, where it will be made
    while not os.path.lexists(there) and there != there.parent:
        there = there.parent
    if not (os.path.isdir(there) and os.access(there, os.W_OK)):  # noqa: PTH112 (raises nothing)
        raise InvalidSetting(
            variable, f"leads to {there}, which cannot be written; set it to a path that can"
        )
    return path


def _limit(variable: str, value: str) -> int | None:
    """Read a number of characters; empty for the general limit."""
    if not value:
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= 12 and is_limit(int(value))):
        raise InvalidSetting(variable, f"is {value!r}; it must be a number of characters, from 1")
    return int(value)


def _minutes(variable: str, value: str) -> int | None:
    if value and not (value.isascii() and value.isdigit() and 0 < int(value[:7]) < 10**6):
        raise InvalidSetting(variable, f"is {value!r}; it must be a number of minutes, from 1")
    return int(value) if value else None


def _session(variable: str, value: str) -> str:
    if not is_session(value):
        raise InvalidSetting(variable, f"must be {ARGUMENTS['session']}")
    return value


def _scope(variable: str, value: str) -> str:
    if value not in SCOPES:
        raise InvalidSetting(variable, f"is {value!r}; it must be session or run")
    return value


VARIABLES = (
    Setting(
        "AIAML_COMPARTMENTS_FILE",
        FILE,
        _file,
        "the JSON file that holds all compartments; relative to the working directory",
    ),
    Setting("AIAML_SESSION", "default", _session, "the session that is shared by its name"),
    Setting("AIAML_PLAN_SCOPE", "session", _scope, "whose the plan is: session or run"),
    Setting(
        "AIAML_COMPARTMENT_LIMIT", str(LIMIT), _limit, "characters that each compartment holds"
    ),
    Setting("AIAML_COMPARTMENT_LIMIT_RUN", "", _limit, "the same, for the run alone"),
    Setting("AIAML_COMPARTMENT_LIMIT_SESSION", "", _limit, "the same, for the session alone"),
    Setting("AIAML_COMPARTMENT_LIMIT_PLAN", "", _limit, "the same, for the plan alone"),
    Setting(
        "AIAML_RUN_MINUTES", "", _minutes, "minutes without a call after which another run begins"
    ),
    CHECK_SECRETS,
)
