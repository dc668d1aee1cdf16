"""What `git fast-import` reads and `git fast-export` writes, as values and as text (pure).

The format is that of git-fast-import(1). The last commit of a stream tells its name.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from aiaml_server.sync.messages import Verb, written
from aiaml_server.sync.union import Entry, is_safe

SCRATCH = "refs/aiaml/joined"  # the branch of what is written before anything moves
SENT = "refs/aiaml/sent"  # and of what is pushed in the place of it
EXPORTED = ("--no-data", "--reference-excluded-parents", "--show-original-ids", "--reencode=no")
"""How `git fast-export` is asked, for `exported`."""

_MANY = 500  # changes that have a commit each
# What `git fast-import` takes for a person and a time.
_WHO = rb"(?:author|committer) (?:[^<>\n]* )?<[^<>\n]*> \d{1,18} [+-]\d{4}|encoding .*"
_NOBODY = b" Unknown <> 0 +0000"
_ESCAPED = rb'\\([abfnrtv"\\]|[0-7]{3})'
_ESCAPES = dict(zip(b'abfnrtv"\\', b'\a\b\f\n\r\t\v"\\', strict=True))


class Step(NamedTuple):
    """One file's change; `data` is None where it is gone."""

    verb: Verb
    path: bytes
    data: bytes | None


def commits(groups: Sequence[Sequence[Step]], branch: str, head: str, who: str) -> Iterator[bytes]:
    """Yield a stream with one commit for each group, on top of each other."""
    for number, group in enumerate(groups):
        yield from _commit(branch, who, _message(group))
        if head and not number:
            yield b"from %s\n" % head.encode()
        for step in group:
            if step.data is None:
                yield b"D %s\n" % _quoted(step.path)
            else:
                yield b"M 100644 inline %s\ndata %d\n" % (_quoted(step.path), len(step.data))
                yield step.data
                yield b"\n"
    yield b"get-mark :1\ndone\n"


def join(
    ours: str,
    theirs: str,
    changes: Mapping[bytes, Entry | None],
    who: str,
) -> Iterator[bytes]:
    """Yield a stream with a commit of two parents."""
    yield from _commit(SCRATCH, who, written("Join"))
    yield b"from %s\nmerge %s\n" % (ours.encode(), theirs.encode())
    for path, entry in changes.items():
        if entry is None:
            yield b"D %s\n" % _quoted(path)
        elif is_safe(path):
            yield b"M %s %s %s\n" % (*entry, _quoted(path))
    yield b"get-mark :1\ndone\n"


def blobs(texts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a stream that has git keep the bytes of files."""
    for data in texts:
        yield b"blob\ndata %d\n" % len(data)
        yield data
        yield b"\n"
    yield b"done\n"


def again(
    theirs: str, changes: Sequence[tuple[bytes, Entry | None, Entry | None]], who: str
) -> Iterator[bytes]:
    """Yield a stream with a commit for each change, on top of `theirs`; one for all of very many.

    Args:
        theirs: the commit to go on from; empty for none.
        changes: paths, each with its entry before and after.
        who: whom the commits are by.
    """
    many = len(changes) > _MANY
    for number, (path, before, after) in enumerate(changes):
        verb: Verb = "Forget" if not after else "Update" if before else "Add"
        if not number or not many:
            its = changes if many else [changes[number]]
            message = _message([Step(verb, each, None) for each, _, _ in its])
            yield from _commit(SENT, who, message)
        if theirs and not number:
            yield b"from %s\n" % theirs.encode()
        if not after:
            yield b"D %s\n" % _quoted(path)
        elif is_safe(path):
            yield b"M %s %s %s\n" % (*after, _quoted(path))
    yield b"get-mark :1\ndone\n"


def _commit(branch: str, who: str, message: str) -> Iterator[bytes]:
    text = os.fsencode(message)
    yield b"commit %s\nmark :1\n" % os.fsencode(branch)
    yield b"committer %s %d %s\n" % (os.fsencode(who), time.time(), time.strftime("%z").encode())
    yield b"data %d\n%s\n" % (len(text), text)


def _quoted(path: bytes) -> bytes:
    for raw, escaped in ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n")):
        path = path.replace(raw, escaped)
    return b'"%s"' % path


def _message(group: Sequence[Step]) -> str:
    names = [os.fsdecode(each.path).removeprefix("files/") for each in group]
    return written(group[0].verb, names)


# --- what was exported ----------------------------------------------------------------------------


class Touch(NamedTuple):
    """What a commit did to a file; `oid` is empty where that is gone, or no plain file."""

    line: bytes
    path: bytes
    oid: bytes


class Commit(NamedTuple):
    """A commit as it was exported.

    Attributes:
        mark: what the stream calls it, such as ":12".
        oid: its object name.
        head: the lines about author, committer and encoding.
        message: its message.
        parents: the marks or names of those before it.
        touches: what it did, compared with the first of these.
    """

    mark: bytes
    oid: bytes
    head: Sequence[bytes]
    message: bytes
    parents: Sequence[bytes]
    touches: Sequence[Touch]


def exported(stream: bytes) -> Iterator[Commit]:
    """Read what `git fast-export` wrote (see `EXPORTED`); parents come before children."""
    fields: dict[bytes, bytes] = {}
    lists: dict[bytes, list[bytes]] = {}
    start = 0
    while start < len(stream):
        end = stream.index(b"\n", start) + 1
        line, start = stream[start : end - 1], end
        word, _, rest = line.partition(b" ")
        if word in (b"commit", b"reset"):
            if b"original-oid" in fields:
                yield _exported_commit(fields, lists)
            fields, lists = {}, {b"head": [], b"parents": [], b"touches": []}
        elif word in (b"author", b"committer", b"encoding"):
            lists[b"head"].append(line)
        elif word in (b"from", b"merge"):
            lists[b"parents"].append(rest)
        elif word in (b"M", b"D"):
            lists[b"touches"].append(line)
        elif word == b"data":
            start = end + int(rest)
            fields[word] = stream[end:start]
        else:
            fields[word] = rest
    if b"original-oid" in fields:
        yield _exported_commit(fields, lists)


def _exported_commit(
    fields: Mapping[bytes, bytes], lists: Mapping[bytes, Sequence[bytes]]
) -> Commit:
    return Commit(
        fields[b"mark"],
        fields[b"original-oid"],
        lists[b"head"],
        fields[b"data"],
        lists[b"parents"],
        [_touch(line) for line in lists[b"touches"]],
    )


def _touch(line: bytes) -> Touch:
    if line.startswith(b"D "):
        return Touch(line, _unquoted(line[2:]), b"")
    _, mode, oid, path = line.split(b" ", 3)
    return Touch(line, _unquoted(path), oid if mode.startswith(b"100") else b"")


def _unquoted(path: bytes) -> bytes:
    if not path.startswith(b'"'):
        return path
    return re.sub(_ESCAPED, lambda found: bytes([_character(found[1])]), path[1:-1])


def _character(escape: bytes) -> int:
    return int(escape, 8) if len(escape) == 3 else _ESCAPES[escape[0]]


def rewritten(commit: Commit, parents: Sequence[bytes], kept: Sequence[bytes]) -> Iterator[bytes]:
    """Yield what makes a commit that was exported anew, on other parents and with other lines."""
    left = list(dict.fromkeys(filter(None, parents)))
    if not left:
        yield b"reset %s\n\n" % SCRATCH.encode()
    yield b"commit %s\nmark %s\n" % (SCRATCH.encode(), commit.mark)
    for line in commit.head:
        yield (line if re.fullmatch(_WHO, line) else line.partition(b" ")[0] + _NOBODY) + b"\n"
    yield b"data %d\n%s\n" % (len(commit.message), commit.message)
    for word, parent in zip((b"from", *[b"merge"] * len(left)), left, strict=False):
        yield b"%s %s\n" % (word, parent)
    if left and not parents[0]:  # it was compared with what is nothing now
        yield b"deleteall\n"
    for line in kept:
        yield line + b"\n"
    yield b"\n"
