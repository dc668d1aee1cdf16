"""What the trees of commits hold, and how they differ, as git says it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from aiaml_server.sync.command import Git, GitFailed
from aiaml_server.sync.union import Entry, is_memory

Sides = tuple[Entry | None, Entry | None]
Difference = dict[bytes, Sides]
"""What differs between two trees: each path's entry before and after."""

MOST_ENTRIES = 2_000_000  # of all directories of a commit together
_DEEPEST = 100  # directories in one another
_EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_EMPTY_256 = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"


def tree(git: Git, commit: str) -> dict[bytes, Entry]:
    """Return the memories of a commit."""
    output = git.run("ls-tree", "-z", "--full-tree", commit, "files/")
    lines = (line.partition(b"\t") for line in output.split(b"\0") if line)
    fields = ((meta.split(b" "), path) for meta, _, path in lines if is_memory(path))
    return {path: Entry(meta[0], meta[2]) for meta, path in fields}


def changes(git: Git, old: str, new: str) -> Difference:
    """Return what differs between two trees."""
    words = ("-r", "-z", "--raw", "--no-renames", old, new, "--")
    return dict(_differences(git.run("diff-tree", *words).split(b"\0")))


def changes_since(git: Git, base: str, commits: Sequence[str]) -> list[Difference]:
    """Return what differs between one commit and each of others, in one question."""
    asked = "".join(f"{commit} {base}\n" for commit in commits).encode()
    words = ("--stdin", "-r", "-z", "--raw", "--no-renames")
    found = _by_head(git.run("diff-tree", *words, stdin=asked))
    return [found.get(commit.encode(), {}) for commit in commits]


def pairs_of(git: Git, commits: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[bytes, bytes]]:
    """Return the listings of `files/`, before and after, for each parent of each commit.

    A commit without a parent has one pair, and a listing that is not there no name.
    """
    oids = dict.fromkeys(oid for each, parents in commits for oid in (each, *parents))
    asked = "".join(f"{oid}:files\n" for oid in oids).encode()
    words = "--batch-check=%(objecttype) %(objectname)"
    lines = git.run("cat-file", words, stdin=asked).splitlines() if asked else []
    found = (line.rpartition(b" ") for line in lines)
    names = (name if kind == b"tree" else b"" for kind, _, name in found)
    trees = {"": b"", **dict(zip(oids, names, strict=True))}
    return [(trees[parent], trees[oid]) for oid, before in commits for parent in before or ("",)]


def listed(git: Git, pairs: Iterable[tuple[bytes, bytes]]) -> dict[tuple[bytes, bytes], Difference]:
    """Return how listings of one directory each differ, but for what is in directories in it.

    They are named by their trees; an empty name is none. git looks into no other tree, so that
    those that hold each other many times cost nothing.
    """
    asked = {pair: pair for pair in pairs if pair[0] != pair[1]}
    for old, new in list(asked):
        none = empty_tree((old or new).decode()).encode()
        asked[old, new] = (old or none, new or none)
    lines = b"".join(b"%s %s\n" % names for names in asked.values())
    if not lines:
        return {}
    found = _by_head(git.run("diff-tree", "--stdin", "-z", "--raw", "--no-renames", stdin=lines))
    return {pair: found.get(b"%s %s" % names, {}) for pair, names in asked.items()}


def _by_head(output: bytes) -> dict[bytes, Difference]:
    """Return the differences that `git diff-tree --stdin` told, by the names that head them."""
    found: defaultdict[bytes, list[bytes]] = defaultdict(list)
    fields = iter(output.split(b"\0"))
    record: list[bytes] = []
    for field in fields:
        for line in filter(None, field.split(b"\n")):
            if line.startswith(b":"):
                record += (line, next(fields))
            else:  # what the records after it are of
                record = found[line]
    return {head: dict(_differences(record)) for head, record in found.items()}


def _differences(fields: Sequence[bytes]) -> Iterator[tuple[bytes, Sides]]:
    for meta, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old_oid, new_oid, _ = meta[1:].split(b" ")
        yield path, (_entry(old_mode, old_oid), _entry(new_mode, new_oid))


def empty_tree(like: str) -> str:
    """Return the name of the tree without files, which git knows unasked; SHA-256 if `like` is."""
    return _EMPTY_256 if len(like) > 40 else _EMPTY


def _entry(mode: bytes, oid: bytes) -> Entry | None:
    return Entry(mode, oid) if mode.strip(b"0") else None


def check_size(git: Git, commit: str) -> None:
    """See that the directories of a commit hold no more than is looked through.

    A few trees that hold each other several times hold any number of files.

    Raises:
        GitFailed: they do.
    """
    held: dict[bytes, tuple[int, Counter[bytes]]] = {}
    level = Counter([f"{commit}^{{tree}}".encode()])
    count = 0
    for _ in range(_DEEPEST):
        if not level:
            return
        if unseen := [name for name in level if name not in held]:
            asked = b"".join(b"%s\n" % each for each in unseen)
            output = git.run("cat-file", "--batch", stdin=asked)
            for name, data in zip(unseen, parted(output).items(), strict=True):
                held[name] = _directories(*data)
        count += sum(times * held[name][0] for name, times in level.items())
        if count > MOST_ENTRIES:
            break
        below: Counter[bytes] = Counter()
        for name, times in level.items():
            for each, number in held[name][1].items():
                below[each] += times * number
        level = below
    most = f"{MOST_ENTRIES:,} files, or directories {_DEEPEST} deep"
    raise GitFailed("fetch", f"error in tree {commit}: it has more than {most}")


def _directories(name: bytes, tree: bytes) -> tuple[int, Counter[bytes]]:
    """Return how many entries a tree has, and its directories (see git-hash-object(1))."""
    width, at, count = len(name) // 2, 0, 0
    found: Counter[bytes] = Counter()
    while at < len(tree):  # a mode, a blank, a name, a NUL, an object's name in bytes
        end = tree.index(b"\0", at) + 1
        if tree.startswith(b"40000 ", at):
            found[tree[end : end + width].hex().encode()] += 1
        at, count = end + width, count + 1
    return count, found


def sizes(git: Git, oids: Iterable[bytes]) -> dict[bytes, int]:
    """Return the bytes that objects have, by their names, of those that are there."""
    asked = b"".join(oid + b"\n" for oid in oids)
    if not asked:
        return {}
    told = git.run("cat-file", "--batch-check=%(objectname) %(objectsize)", stdin=asked)
    fields = (line.rpartition(b" ") for line in told.splitlines())
    return {name: int(size) for name, _, size in fields if size.isdigit()}


def parted(output: bytes) -> dict[bytes, bytes]:
    """Return the objects in what `git cat-file --batch` printed, by their names."""
    blobs, start = {}, 0
    while start < len(output):
        head, _, _ = output[start : start + 100].partition(b"\n")
        oid, _, size = head.split(b" ")
        start += len(head) + 1
        blobs[oid] = output[start : start + int(size)]
        start += int(size) + 1
    return blobs
