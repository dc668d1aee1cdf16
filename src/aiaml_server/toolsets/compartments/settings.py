"""The settings of this toolset."""

from __future__ import annotations

import os
from pathlib import Path

from aiaml_server.errors import InvalidSetting
from aiaml_server.settings import CHECK_SECRETS, Setting
from aiaml_server.toolsets.owners import foreign_owner, leaves_directory

FILE_NAME = ".aiaml-compartments.json"
COMPARTMENTS = ("run", "session", "plan")
PLAN_SCOPES = ("session", "run")
DEFAULT_LIMIT = 10_000
"""Characters that each compartment may hold."""
MAX_SESSION_NAME = 200


def _parse_file(name: str, value: str) -> Path:
    """Read the path of the file; a relative one is below the working directory."""
    path = Path(value).expanduser()
    if not path.is_absolute():
        if Path.cwd() == Path(Path.cwd().anchor):
            raise InvalidSetting(
                name,
                f"is {value!r} in the working directory {Path.cwd()}, which belongs to no agent; "
                "set it to an absolute path, or start the server elsewhere",
            )
        directory = (Path.cwd() / path).parent
        reason = leaves_directory(str(path)) or foreign_owner(directory, (path.name,))
        if reason:
            raise InvalidSetting(name, f"is {value!r}: {reason}")
    return Path(os.path.realpath(path))


def _parse_session(name: str, value: str) -> str:
    if not (1 <= len(value) <= MAX_SESSION_NAME and value.isprintable()):
        rule = f"a name of at most {MAX_SESSION_NAME} printable characters"
        raise InvalidSetting(name, f"must be {rule}")
    return value


def _parse_scope(name: str, value: str) -> str:
    if value not in PLAN_SCOPES:
        raise InvalidSetting(name, f"is {value!r}; it must be session or run")
    return value


def _parse_limits(name: str, value: str) -> dict[str, int]:
    """Read one number for all compartments, or pairs such as `run=2000,plan=5000`."""
    limits = dict.fromkeys(COMPARTMENTS, DEFAULT_LIMIT)
    for part in value.split(","):
        compartment, equals, number = part.strip().rpartition("=")
        is_number = number.isascii() and number.isdigit() and int(number[:12]) > 0
        if not is_number or (equals and compartment not in COMPARTMENTS):
            example = "such as 10000, or run=2000,plan=5000"
            raise InvalidSetting(name, f"is {value!r}; it must be characters, {example}")
        names = (compartment,) if equals else COMPARTMENTS
        limits |= dict.fromkeys(names, int(number[:12]))
    return limits


FILE = Setting(
    "AIAML_COMPARTMENTS_FILE",
    FILE_NAME,
    _parse_file,
    "the JSON file; a relative path is below the working directory",
)
SESSION = Setting(
    "AIAML_SESSION", "default", _parse_session, "the session, which is shared by its name"
)
PLAN_SCOPE = Setting(
    "AIAML_PLAN_SCOPE", "session", _parse_scope, "whether a plan belongs to the session or the run"
)
LIMIT = Setting(
    "AIAML_COMPARTMENT_LIMIT",
    str(DEFAULT_LIMIT),
    _parse_limits,
    "characters that each compartment may hold, or pairs such as run=2000,plan=5000",
)
SETTINGS = (FILE, SESSION, PLAN_SCOPE, LIMIT, CHECK_SECRETS)
