"""Where programs are: absolute paths, from PATH, and never in the current directory.

A client starts the server in whatever directory its user has opened, and that may be a stranger's.
A bare name is looked for there too: by Windows before PATH, by POSIX where PATH has an empty or a
relative entry. So we start no program by a bare name; and for what others start (git, editors, the
standard library), the process's own PATH has no such entries (`variables`).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def find(program: str, path: str | None = None) -> str | None:
    """Return the absolute path of a program, or None where there is none.

    Args:
        program: its name, or its absolute path; a relative path is not looked for.
        path: what stands for the environment's PATH.
    """
    if Path(program).name == program:
        places = _places(path)
    else:
        places = [""] if Path(program).is_absolute() else []
    endings = [""]
    if sys.platform == "win32":  # which lists what may stand behind a name
        known = os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").lower().split(";")
        endings = known if Path(program).suffix.lower() not in known else endings
    for place in places:
        for ending in endings:
            found = os.path.join(place, program) + ending  # noqa: PTH118 ("" leaves it as it is)
            if os.path.isfile(found) and os.access(found, os.X_OK):  # noqa: PTH113 (never raises)
                return found
    return None


def variables() -> dict[str, str]:
    """Return the environment variables by which others do not look in the current directory."""
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
