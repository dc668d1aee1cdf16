"""Two versions of a log or a summary brought together, section by section, as git asks a driver.

Git merges by lines: where two branches begin one day's log, its `union` puts sections twice and
entries under the wrong heading. Here each section has what it had, then what ours added, then what
theirs did. What one side already has of the other, as after a squash, stands once.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from aiaml_server.errors import MalformedFile
from aiaml_server.files import read_regular
from aiaml_server.toolsets.failures import disk_error
from aiaml_server.toolsets.sessions.blocks import ITEMS, entries
from aiaml_server.toolsets.sessions.document import Document
from aiaml_server.toolsets.sessions.failures import DiskError
from aiaml_server.toolsets.sessions.history import ask_git
from aiaml_server.toolsets.sessions.place import MAX_FILE
from aiaml_server.toolsets.sessions.remarks import conflicts
from aiaml_server.toolsets.sessions.schema import HEADER
from aiaml_server.toolsets.writing import replace

_ENDS = b"\r\n"
_MOST_LINES = 20_000  # of a file that is merged here; a log of a mebibyte has some 10,000


def bring_together(base: Path, ours: Path, theirs: Path) -> bool:
    """Merge three files into `ours`; say whether it could be done, by us or by git's own merge.

    Where it could not, that has put its marks in, or what it is now is larger than what is read.

    Raises:
        DiskError: one cannot be read or written, or there is no git.
    """
    try:
        versions = [read_regular(str(each), MAX_FILE) for each in (base, ours, theirs)]
        whole = merged(*versions)
        if whole is not None and len(whole) <= MAX_FILE:
            replace(ours, whole)
            return True
    except MalformedFile as error:
        raise DiskError(f"{ours}: {error}") from error
    except OSError as error:
        raise disk_error(ours, error) from error
    labels = ("-L", "ours", "-L", "base", "-L", "theirs")
    names = (str(each.absolute()) for each in (ours, base, theirs))
    return ask_git(Path.cwd(), "merge-file", *labels, *names) is not None


class _Parts(NamedTuple):
    """A file: what stands before the sections, and of each its heading's lines and its body."""

    head: bytes
    headings: Mapping[str, bytes]
    bodies: Mapping[str, bytes]


def merged(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return a file that has what both versions added to what they had in common.

    Returns:
        None where git or a person has to decide: both have changed what was there, or one is not as
        it must be, or has very many lines.
    """
    if any(len(each.splitlines()) > _MOST_LINES for each in (base, ours, theirs)):
        return None
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
    whole = b"".join(found)
    parts = _parts(whole)
    return whole if parts and list(parts.bodies) == names else None


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


class _Entry(NamedTuple):
    """What a section has at the margin: an item, or what stands between empty lines.

    Attributes:
        said: its lines.
        end: its line's end, and the empty lines behind it; none for a section's last.
    """

    said: bytes
    end: bytes


def _body(before: bytes | None, mine: bytes | None, other: bytes | None) -> bytes | None:
    """Return a section's body with what both have added; None where they did anything else."""
    one = _either(before, mine, other)
    if one is not None or mine is None or other is None:
        return one
    common, ours, theirs = map(_entries, (before or b"", mine, other))
    together = _together(common, ours, theirs)
    if not together:
        return None if together is None else max(mine, other, key=len)
    gap = (b"\r\n" if b"\r\n" in mine else b"\n") * 2
    leads = [each[: len(each) - len(each.lstrip(_ENDS))] for each in (mine, other)]
    tails = [each[len(each.rstrip(_ENDS)) :] for each in (mine, other)]
    lines = (b"\r", b"\n")
    body = [max(leads, key=len)]
    for entry, following in pairwise(together):
        is_item = following.said[:2] in ITEMS
        is_apart = entry.end.endswith(lines) and (is_item or len(entry.end) >= len(gap))
        body += [*entry, b"" if is_apart else gap]
    return b"".join([*body, *together[-1], max(tails, key=len)])


def _entries(body: bytes) -> list[_Entry]:
    """Return what a section's body holds."""
    found = []
    for _, raw in entries(body.strip(_ENDS)):
        kept = len(raw.rstrip())
        kept = len(raw) - len(raw[kept:].lstrip(b" \t"))  # spaces at a line's end say something
        found.append(_Entry(raw[:kept], raw[kept:]))
    return found


def _together(
    common: list[_Entry], ours: list[_Entry], theirs: list[_Entry]
) -> list[_Entry] | None:
    """Return what both sides have, each in its order; None where one has not all that there was."""
    found: list[_Entry] = []
    sides = [each.said for each in ours], [each.said for each in theirs]
    mine = other = 0
    for said, _ in common:
        try:
            upto = sides[0].index(said, mine), sides[1].index(said, other)
        except ValueError:
            return None
        found += _joined(ours[mine : upto[0]], theirs[other : upto[1]])
        mine, other = upto[0] + 1, upto[1] + 1
        found.append(_longer(ours[mine - 1], theirs[other - 1]))
    return [*found, *_joined(ours[mine:], theirs[other:])]


def _joined(ours: list[_Entry], theirs: list[_Entry]) -> list[_Entry]:
    """Return what both sides have added at one place, each side's in its order.

    What a side has got of the other, by a squash or a commit that was picked, are the first that
    the other has and it has not passed: so the first of a side that is also further on in the other
    stands once. Where both begin with what the other has not, all that follow are two branches'
    own, equal or not.
    """
    found: list[_Entry] = []
    sides = (ours, theirs)
    last = [{entry.said: place for place, entry in enumerate(side)} for side in sides]
    at = [0, 0]
    while at[0] < len(ours) and at[1] < len(theirs):
        for one, other in ((0, 1), (1, 0)):
            wanted = sides[other][at[other]]
            if last[one].get(wanted.said, -1) >= at[one]:
                break
        else:
            break
        while (entry := sides[one][at[one]]).said != wanted.said:
            found.append(entry)
            at[one] += 1
        found.append(_longer(entry, wanted))
        at = [each + 1 for each in at]
    return [*found, *ours[at[0] :], *theirs[at[1] :]]


def _longer(one: _Entry, other: _Entry) -> _Entry:
    """Return the one of two that say the same which has more empty lines behind it."""
    return max(one, other, key=lambda each: len(each.end))
