"""What errors of several toolsets show of a wrong value, and say of the disk."""

from __future__ import annotations

from aiaml_server.errors import DiskError, said_by_system

_MOST_SHOWN = 80  # characters of a wrong value


def beginning(text: str) -> str:
    """Return as much of a text as an error shows: it may have megabytes."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def refused(what: object, error: OSError) -> DiskError:
    """Return what is raised where the system refused something."""
    return DiskError(f"{what}: {said_by_system(error)}")
