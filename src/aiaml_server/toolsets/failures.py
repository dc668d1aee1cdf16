"""Messages of several toolsets: about wrong values, the disk, and files on GitHub."""

from __future__ import annotations

from aiaml_server.errors import DiskError, os_reason

_MOST_SHOWN = 80  # characters of a wrong value


def shorten(text: str, most: int = _MOST_SHOWN) -> str:
    """Return the beginning of a text for an error message: the text may have megabytes."""
    return text if len(text) <= most else f"{text[:most]}…"


def annotation(level: str, text: str, **where: object) -> str:
    """Return the line, without its `::`, that GitHub shows beside a file.

    Args:
        level: `error` or `warning`.
        text: the message.
        where: `file`, `line` and `title`.
    """

    def escaped(value: str, more: str = "") -> str:
        for each in f"%\r\n{more}":
            value = value.replace(each, f"%{ord(each):02X}")
        return value

    places = (f"{name}={escaped(str(value), ':,')}" for name, value in where.items())
    return f"{level} {','.join(places)}::{escaped(text)}"


def disk_error(what: object, error: OSError) -> DiskError:
    """Return the error to raise when the system refused something."""
    return DiskError(f"{what}: {os_reason(error)}")
