"""Our own entry in the configuration files of AI clients."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from aiaml_server.clients.places import Machine
from aiaml_server.errors import InvalidSetting

ENTRY = "aiaml"
"""Its name; copies of the files have it in their own, further entries a hyphen behind it."""


def machine() -> Machine:
    """Return this machine.

    Raises:
        InvalidSetting: nothing says where the person's files are.
    """
    try:
        return Machine(sys.platform, Path.home(), os.environ)
    except RuntimeError as error:
        name = "USERPROFILE" if sys.platform == "win32" else "HOME"
        raise InvalidSetting(name, "is not set; it must name your home directory") from error
