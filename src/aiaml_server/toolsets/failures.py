"""What can go wrong in several toolsets. The class's name is the code that agents get."""

from __future__ import annotations

from aiaml_server.errors import Refused, said_by_system

_MOST_SHOWN = 80  # characters of a wrong value


def beginning(text: str) -> str:
    """Return as much of a text as an error shows: it may have megabytes."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


class NotFound(Refused):
    """There is nothing of that id."""


class Busy(Refused):
    """Another process is writing and did not end in time; trying again is right."""


class DiskError(Refused):
    """The disk refused, or something is in the way; what was there is as it was."""


def refused(what: object, error: OSError) -> DiskError:
    """Return what is raised where the system refused something."""
    return DiskError(f"{what}: {said_by_system(error)}")
