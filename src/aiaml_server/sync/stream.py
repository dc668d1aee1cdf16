"""What `git fast-import` reads: new commits, on top of each other or of two parents."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from .messages import Verb, written
from .replay import SCRATCH
from .union import Entry, is_safe

_MANY = 500  # changes that have a commit each


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
            yield from _commit("refs/aiaml/sent", who, message)
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
