"""What several toolsets say: of a wrong value, of the disk, and beside a file on GitHub."""

from __future__ import annotations

from aiaml_server.errors import DiskError, os_reason

_MOST_SHOWN = 80  # characters of a wrong value


def shorten(text: str, most: int = _MOST_SHOWN) -> str:
    """Return as much of a text as an error shows, or as is asked for: it may have megabytes."""
    return text if len(text) <= most else f"{text[:most]}…"


def annotation(level: str, text: str, **where: object) -> str:
    """Return, without its `::`, the line that GitHub shows beside a file; it begins no other.

    Args:
        level: `error` or `warning`.
        text: what is said.
        where: `file`, `line` and `title`.
    """

    def escaped(value: str, more: str = "") -> str:
        for each in f"%\r\n{more}":
            value = value.replace(each, f"%{ord(each):02X}")
        return value

    places = (f"{name}={escaped(str(value), ':,')}" for name, value in where.items())
    return f"{level} {','.join(places)}::{escaped(text)}"


def disk_error(what: object, error: OSError) -> DiskError:
    """Return what is raised where the system refused something."""
    return DiskError(f"{what}: {os_reason(error)}")
