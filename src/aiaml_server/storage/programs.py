"""Find programs in the absolute directories of PATH, never in the current directory.

A client starts the server in the directory that its user has opened, which may be somebody else's.
A bare name would be found there too: on Windows before PATH, on POSIX if PATH has an empty or
relative entry. So no program is started by a bare name. For programs that others start (git,
editors, the standard library), `variables` removes such entries from the PATH.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def find(program: str, path: str | None = None) -> str | None:
    """Return the absolute path of a program, or None where there is none.

    Args:
        program: its name or absolute path; a relative path is never found.
        path: used instead of the environment's PATH.
    """
    if Path(program).name == program:
        places = _places(path)
    else:
        places = [""] if Path(program).is_absolute() else []
    endings = [""]
    if sys.platform == "win32":  # PATHEXT lists the suffixes of programs
        known = os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").lower().split(";")
        endings = known if Path(program).suffix.lower() not in known else endings
    for place in places:
        for ending in endings:
            found = os.path.join(place, program) + ending  # noqa: PTH118 ("" leaves it as it is)
            if os.path.isfile(found) and os.access(found, os.X_OK):  # noqa: PTH113 (never raises)
                return found
    return None


def variables() -> dict[str, str]:
    """Return environment variables that keep others from searching the current directory."""
    nowhere = {"NoDefaultCurrentDirectoryInExePath": "1"} if sys.platform == "win32" else {}
    # An empty PATH would be the current directory again.
    return {"PATH": os.pathsep.join(_places(None)) or sys.exec_prefix, **nowhere}


def _places(path: str | None) -> list[str]:
    """Return the absolute directories of a PATH."""
    if path is None:
        path = os.environ.get("PATH", os.defpath)
    if sys.platform == "win32":
        path = path.replace('"', "")
    return [entry for entry in path.split(os.pathsep) if Path(entry).is_absolute()]
