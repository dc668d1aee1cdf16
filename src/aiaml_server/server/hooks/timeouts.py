"""Counts the hooks that ran out of time, for `aiaml doctor`."""

from __future__ import annotations

import os
from contextlib import suppress

from aiaml_server.errors import AiamlError
from aiaml_server.files import open_own
from aiaml_server.identity import make_state_directory, state_directory

_FILE = "hook-timeouts"


def note_timeout() -> None:
    """Count one more. Without a state directory, do nothing."""
    with suppress(AiamlError, OSError):
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        os.write(open_own(make_state_directory() / _FILE, flags), b".")


def count_timeouts() -> int:
    """Return how many hooks have run out of time so far."""
    with suppress(AiamlError, OSError):
        return (state_directory() / _FILE).stat().st_size
    return 0
