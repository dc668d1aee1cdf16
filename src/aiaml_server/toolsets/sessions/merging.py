"""Two versions of a log or a summary brought together, section by section, as git asks a driver.

Git merges by lines: where two branches begin one day's log, its `union` puts sections twice and
entries under the wrong heading. Here each section has what it had, then what ours added, then what
theirs did.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from aiaml_server.errors import MalformedFile
from aiaml_server.files import read_regular
from aiaml_server.toolsets.failures import refused
from aiaml_server.toolsets.sessions.document import Document
from aiaml_server.toolsets.sessions.failures import DiskError
from aiaml_server.toolsets.sessions.history import ask_git
from aiaml_server.toolsets.sessions.place import MAX_FILE
from aiaml_server.toolsets.sessions.remarks import conflicts
from aiaml_server.toolsets.sessions.schema import HEADER
from aiaml_server.toolsets.writing import replace


def bring_together(base: Path, ours: Path, theirs: Path) -> bool:
    """Merge three files into `ours`; say whether it could be done.

    Where it could not, git's own merge puts its marks in.

    Raises:
        DiskError: one cannot be read or written, or there is no git.
    """
    try:
        versions = [read_regular(str(each), MAX_FILE) for each in (base, ours, theirs)]
        if (whole := merged(*versions)) is not None:
            replace(ours, whole)
            return True
    except MalformedFile as error:
        raise DiskError(f"{ours}: {error}") from error
    except OSError as error:
        raise refused(ours, error) from error
    labels = ("-L", "ours", "-L", "base", "-L", "theirs")
    names = (str(each.absolute()) for each in (ours, base, theirs))
    ask_git(Path.cwd(), "merge-file", *labels, *names)
    return False


class _Parts(NamedTuple):
    """A file: what stands before the sections, and of each its heading's lines and its body."""

    head: bytes
    headings: Mapping[str, bytes]
    bodies: Mapping[str, bytes]


def merged(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return a file that has what both versions added to what they had in common.

    Args:
        base: what they had in common; empty where both began the file.
        ours: one version.
        theirs: the other.

    Returns:
        None where a person has to decide: both have changed what was there, or one is not as it
        must be.
    """
    before, mine, other = _parts(base), _parts(ours), _parts(theirs)
    if not (before and mine and other):
        return None
    head = _either(before.head, mine.head, other.head)
    if head is None:
        return None
    names = list(mine.bodies)
    for at, name in enumerate(other.bodies):  # what only theirs has goes behind what it has before
        if name not in names:
            earlier = [names.index(each) for each in list(other.bodies)[:at] if each in names]
            names.insert(max(earlier, default=-1) + 1, name)
    found = [head]
    for name in names:
        body = _body(*(each.bodies.get(name) for each in (before, mine, other)))
        if body is None:
            return None
        found += [{**other.headings, **mine.headings}[name], body]
    return b"".join(found)


def _parts(data: bytes) -> _Parts | None:
    """Return a file in parts; None where its sections cannot be told."""
    document = Document(data)
    sections = document.sections
    first = next((each for each in sections if each.text != HEADER), None)
    names = [each.text for each in sections]
    if document.problem or len(names) != len({*names}) or any(conflicts(document)):
        return None
    behind = [each for each in sections if first and each.start >= first.start]
    return _Parts(
        data[: first.start] if first else data,
        {each.text: data[each.start : each.end] for each in behind},
        {each.text: data[slice(*document.body(each))] for each in behind},
    )


def _either(before: bytes | None, mine: bytes | None, other: bytes | None) -> bytes | None:
    """Return the version that was changed, or what both are; None where both were, differently."""
    if mine in (other, before):
        return other
    return mine if other == before else None


def _body(before: bytes | None, mine: bytes | None, other: bytes | None) -> bytes | None:
    """Return a section's body with what both have added; None where they did anything else."""
    one = _either(before, mine, other)
    if one is not None or mine is None or other is None:
        return one
    common = (before or b"").rstrip()
    kept = mine.rstrip()
    rests = [each[len(common) :] for each in (kept, other.rstrip()) if each.startswith(common)]
    if len(rests) < 2 or any(each[:1] not in (b"", b"\r", b"\n") for each in rests if common):
        return None
    if not rests[0].strip():
        return other
    if not rests[1].strip():
        return mine
    gap = (b"\r\n" if b"\r\n" in mine else b"\n") * 2
    return kept + gap + rests[1].strip(b"\r\n") + mine[len(kept) :]
