"""What two histories make together: nothing is lost, and every machine comes to the same answer.

Pure, so that it can be tested without git. A side is described by what it changed since the two
parted: a mapping of each changed path to its entry now, or to None where it was deleted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from itertools import count
from typing import NamedTuple

Path = bytes  # as git names it: from the top of the repository, with slashes


class Entry(NamedTuple):
    """A file in a git tree."""

    mode: bytes
    oid: bytes

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file, not a link or another repository."""
        return self.mode in (b"100644", b"100755")


Changes = Mapping[Path, Entry | None]


class Copy(NamedTuple):
    """The version of an edited file that does not keep the name; it becomes a file of its own."""

    path: Path
    entry: Entry


def union(ours: Changes, theirs: Changes) -> tuple[dict[Path, Entry | None], list[Copy]]:
    """Return what to change in our tree, and the versions to be kept besides.

    An edit wins over a deletion. Of two edits the one with the larger object name keeps the path:
    a rule that gives both machines the same answer, whichever joins first.
    """
    changes: dict[Path, Entry | None] = {}
    copies: list[Copy] = []
    for path, their in theirs.items():
        our = ours.get(path)
        if path not in ours or (their and not our):
            changes[path] = their
        elif our and their and our.oid != their.oid:
            winner, loser = (our, their) if our.oid > their.oid else (their, our)
            changes[path] = winner
            copies.append(Copy(path, loser))
    return changes, copies


def renamed(copy: Copy, data: bytes) -> tuple[Path, bytes]:
    """Return the path and the bytes of a copy: a memory of its own, under an id of its own.

    The id comes from what is copied, so that it is the same on every machine. One of its digits is
    a letter that no notation for numbers has, so that YAML takes it for text.
    """
    import hashlib  # noqa: PLC0415 (OpenSSL, which reading a repository does not need)

    seeds = (b"%s\0%s\0%d" % (copy.path, copy.entry.oid, attempt) for attempt in count())
    ids = (hashlib.sha256(seed).hexdigest()[:8].encode() for seed in seeds)
    identity = next(each for each in ids if set(each) & set(b"acdf"))
    directory, slash, name = copy.path.rpartition(b"/")
    stem, dot, suffix = name.rpartition(b".") if b"." in name[1:] else (name, b"", b"")
    time = stem.rpartition(b"_")[0] or stem
    path = b"".join([directory, slash, time, b"_", identity, dot, suffix])
    return path, re.sub(_ID, rb"\g<1> " + identity, data, count=1)


# The value of `id` in a frontmatter.
_ID = rb"\A((?:\xef\xbb\xbf)?---[^\n]*\n(?:(?!---)[^\n]*\n)*?id[ \t]*:)[^\r\n]*"


# What git takes for its own directory: on NTFS with dots, blanks or a stream behind it, and in the
# short form; on HFS+ with any of these characters, which nobody sees, in it.
_OF_GIT = rb"(?is)(\.git|git~1)[. ]*(:.*)?"
_UNSEEN = "[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]"


def is_safe(path: Path) -> bool:
    """Whether a path may come into our tree: one that git itself takes, and in no memory's way."""
    parts = path.split(b"/")
    if any(part in (b"", b".", b"..") for part in parts):
        return False
    seen = re.sub(_UNSEEN, "", os.fsdecode(path)).replace("\\", "/")
    if any(re.fullmatch(_OF_GIT, part) for part in os.fsencode(seen).split(b"/")):
        return False
    return path != b"files" and not (len(parts) > 2 and is_memory(b"/".join(parts[:2])))


_FORBIDDEN = rb'/\:*?"<>|' if os.name == "nt" else b"/"


def is_memory(path: Path) -> bool:
    """Whether a memory may stand under this path: `files/*.md`, not hidden."""
    directory, _, name = path.partition(b"/")
    safe = not set(name) & set(_FORBIDDEN)
    return directory == b"files" and safe and name.endswith(b".md") and not name.startswith(b".")
