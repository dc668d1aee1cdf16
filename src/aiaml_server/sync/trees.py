"""What the trees of commits hold, and how they differ, as git says it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aiaml_server.sync.command import Git
from aiaml_server.sync.union import Entry, is_memory

Difference = dict[bytes, tuple[Entry | None, Entry | None]]
"""What differs between two trees: each path's entry before and after."""

_EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_EMPTY_256 = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"


def tree(git: Git, commit: str) -> dict[bytes, Entry]:
    """Return the memories of a commit."""
    output = git.run("ls-tree", "-z", "--full-tree", commit, "files/")
    lines = (line.partition(b"\t") for line in output.split(b"\0") if line)
    fields = ((meta.split(b" "), path) for meta, _, path in lines if is_memory(path))
    return {path: Entry(meta[0], meta[2]) for meta, path in fields}


def changes(git: Git, old: str, new: str, *within: str) -> Difference:
    """Return what differs between two trees, everywhere or within some paths."""
    words = ("-r", "-z", "--raw", "--no-renames", old, new, "--", *within)
    return dict(_differences(git.run("diff-tree", *words).split(b"\0")))


def changes_since(git: Git, base: str, commits: Sequence[str]) -> list[Difference]:
    """Return what differs between one commit and each of others, in one question."""
    asked = "".join(f"{commit} {base}\n" for commit in commits).encode()
    words = ("--stdin", "-r", "-z", "--raw", "--no-renames")
    found: dict[str, list[bytes]] = {commit: [] for commit in commits}
    fields = iter(git.run("diff-tree", *words, stdin=asked).split(b"\0"))
    record: list[bytes] = []
    for field in fields:
        if field.startswith(b":"):
            record += (field, next(fields))
        elif field:  # the commit that the records after it are of
            record = found[field.decode()]
    return [dict(_differences(found[commit])) for commit in commits]


def _differences(
    fields: Sequence[bytes],
) -> Iterator[tuple[bytes, tuple[Entry | None, Entry | None]]]:
    for meta, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old_oid, new_oid, _ = meta[1:].split(b" ")
        yield path, (_entry(old_mode, old_oid), _entry(new_mode, new_oid))


def empty_tree(like: str) -> str:
    """Return the name of the tree without files, which git knows unasked; SHA-256 if `like` is."""
    return _EMPTY_256 if len(like) > 40 else _EMPTY


def _entry(mode: bytes, oid: bytes) -> Entry | None:
    return Entry(mode, oid) if mode.strip(b"0") else None
