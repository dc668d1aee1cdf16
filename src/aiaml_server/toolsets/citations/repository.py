"""Which files a repository keeps: git is asked, and where it cannot say, ignores are read."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import translate
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from aiaml_server.errors import MalformedFile
from aiaml_server.files import read_regular
from aiaml_server.storage.programs import find
from aiaml_server.toolsets.git import ask

_AT_ONCE = 5.0  # seconds for what is ignored
_MOST_FILES = 500_000
_MOST_COMPARED = 8 * 1024 * 1024  # bytes of a file
_MOST_BYTES = 64 * 1024  # of one file of ignores
_MOST_RULES = 1000  # of the same
_NO_SOURCES = {".git", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache"}
SUBMODULE = "160000"  # git-ls-files(1): the mode of another repository's commit
SYMLINK = "120000"  # the same of a symbolic link
SILENT = "git does not say whether it ignores it"
_A_QUESTION = 500_000  # the work of asking git, in units of `Sources`


class Tracked(NamedTuple):
    """What git says of a file that it has: `S` for one that is left out of a sparse checkout."""

    tag: str
    mode: str


class Entry(NamedTuple):
    """What a commit has of a file: its mode, and the name of its bytes."""

    mode: str
    name: str


def kept_out(
    root: str, paths: Iterable[str], spend: Callable[[int], None]
) -> dict[str, str | None]:
    """Say of files why they stay out of git; empty where they do not, None where nobody can say.

    A file that git keeps is not ignored, whatever a line says (git-check-ignore(1)). Of what lies
    in a submodule or another repository, that one is asked as well. `spend` counts the work.
    """
    places = {path: list(_repositories(root, path)) for path in paths}
    asked: dict[str, list[str]] = {}
    for each in places.values():
        for top, below in each:
            asked.setdefault(top, []).append(below)
    said: dict[str, Mapping[str, bool]] = {}
    for top, below_it in asked.items():
        spend(_A_QUESTION)
        said[top] = _ignores(top, below_it)
    silent = {top for top, below_it in asked.items() if len(said[top]) < len(below_it)}
    silent = {top for top in silent if _keeps_silent(top)}
    found: dict[str, str | None] = {}
    for path, each in places.items():
        answers = [said[top].get(below) for top, below in each]
        if True in answers:
            found[path] = "git ignores it"
        elif answers[-1] is None:
            found[path] = SILENT if each[-1][0] in silent else None
        else:
            found[path] = ""
    return found


def _repositories(root: str, path: str) -> Iterator[tuple[str, str]]:
    """Yield a directory, and the repositories in it around a file; each with the file's path."""
    yield root, path
    parts = path.split("/")
    for count in range(1, len(parts)):
        top = os.path.join(root, *parts[:count])  # noqa: PTH118
        if os.path.lexists(os.path.join(top, ".git")):  # noqa: PTH118
            yield top, "/".join(parts[count:])


def _ignores(top: str, paths: Sequence[str]) -> Mapping[str, bool]:
    """Return of each file whether git ignores it; without those of which it does not say."""
    if not _is_within(top) or not _means(top):
        return {}
    said = _answers(top, paths)
    if len(said) < len({*paths}):  # it ends at the first file that lies in a submodule
        kept = tracked(top) or {}
        links = {path for path, each in kept.items() if each.mode == SUBMODULE}
        above = {each: map(str, PurePosixPath(each).parents) for each in paths}
        own = [each for each in paths if links.isdisjoint(above[each])]
        said = _answers(top, own) if links else said
    return said


def _answers(top: str, paths: Sequence[str]) -> Mapping[str, bool]:
    words = ("check-ignore", "--stdin", "-z", "--verbose", "--non-matching")
    names = {each: b"./" + os.fsencode(each) for each in paths}
    given = b"".join(b"%s\0" % each for each in names.values())
    done = ask(top, *words, seconds=_AT_ONCE, given=given)
    fields = done.stdout.split(b"\0") if done else []
    patterns = dict(zip(fields[3::4], fields[2::4], strict=False))
    said = {path: patterns.get(name) for path, name in names.items()}
    return {
        path: pattern != b"" and not pattern.startswith(b"!")
        for path, pattern in said.items()
        if pattern is not None
    }


def _is_within(root: str) -> bool:
    """Say whether a directory is in what looks like a repository."""
    found = [each / ".git" for each in (Path(root), *Path(root).parents)]
    return any(each.is_file() or (each / "HEAD").exists() for each in found)


def _means(top: str) -> bool:
    """Say whether git takes a directory for what it is: settings may name another work tree."""
    done = ask(top, "rev-parse", "--show-toplevel", seconds=_AT_ONCE)
    if not done or done.returncode:
        return False
    where = Path(os.path.realpath(os.fsdecode(done.stdout.removesuffix(b"\n"))))
    return Path(top).is_relative_to(where) and os.path.lexists(where / ".git")


def _keeps_silent(root: str) -> bool:
    """Say whether a directory is in a repository of which git tells nothing, or not in time.

    Where it belongs to another user, git says what to do, and the person may have chosen not to.
    """
    if not find("git") or not _is_within(root):
        return False
    done = ask(root, "rev-parse", "--git-dir", seconds=_AT_ONCE)
    return not done or b"safe.directory" not in done.stderr


def tracked(root: str) -> dict[str, Tracked] | None:
    """Return the files that git has below a directory; None where it has none, or cannot say."""
    done = ask(root, "ls-files", "-t", "--stage", "-z")
    if not done or done.returncode:
        return None
    found: dict[str, Tracked] = {}
    for entry in done.stdout.decode("utf-8", "surrogateescape").split("\0"):
        said, _, path = entry.partition("\t")
        if path:
            tag, mode, *_ = said.split(" ")
            found[path] = Tracked(tag, mode)
    return found or None


def files_at(root: str, revision: str) -> dict[str, Entry] | None:
    """Return the files of a commit below a directory; None where git cannot say."""
    commit = ask(root, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    if not commit or commit.returncode:
        return None
    done = ask(root, "ls-tree", "-r", "-z", commit.stdout.decode().strip())
    if not done or done.returncode:
        return None
    found: dict[str, Entry] = {}
    for row in filter(None, done.stdout.decode("utf-8", "surrogateescape").split("\0")):
        about, _, path = row.partition("\t")
        mode, _, name = about.split(" ")
        found[path] = Entry(mode, name)
    return found


def changed_since(root: str, was: Mapping[str, Entry], paths: Iterable[str]) -> list[str]:
    """Return those of some files that differ from a commit's.

    What lies in a submodule is left out. Comparing is left to us, since whatever of git does it
    runs the filters that the repository names.
    """
    links = {path for path, each in was.items() if each.mode == SUBMODULE}
    return [
        each
        for each in paths
        if not links.intersection(map(str, PurePosixPath(each).parents))
        and not _is_blob(was[each].name if each in was else "", os.path.join(root, each))  # noqa: PTH118
    ]


def _is_blob(name: str, path: str) -> bool:
    """Say whether a file is what git has under a name, but for line ends; no file has none."""
    with suppress(OSError, MalformedFile):
        data = read_regular(path, _MOST_COMPARED)
        kind = "sha256" if len(name) == 64 else "sha1"
        texts = (data, data.replace(b"\r\n", b"\n"))
        return name in (
            hashlib.new(kind, b"blob %d\0" % len(each) + each).hexdigest() for each in texts
        )
    return not name


def blob(root: str, name: str, most: int) -> bytes | None:
    """Return a file's bytes by the name that git has for them; None where it does not give them.

    Whatever else has that name is not shown: showing a commit runs programs of the settings.

    Raises:
        MalformedFile: it has more than `most` bytes.
    """
    size = ask(root, "cat-file", "-s", name)
    if not size or size.returncode:
        return None
    if int(size.stdout) > most:
        raise MalformedFile(f"it has more than {most:,} bytes")
    done = ask(root, "cat-file", "blob", name)
    return done.stdout if done and not done.returncode else None


def walked(root: str, spend: Callable[[int], None]) -> Iterator[str]:
    """Yield the files below a directory, but for those that its files of ignores name.

    `spend` counts the work of each rule with each file: both may be many, and somebody else's.
    """
    exclude = os.path.join(root, ".git", "info", "exclude")  # noqa: PTH118
    rules = {root: _rules(exclude, 0, spend)}
    count = 0
    for directory, directories, names in os.walk(root):
        above = rules[root if directory == root else os.path.dirname(directory)]  # noqa: PTH120
        parts = Path(os.path.relpath(directory, root)).parts
        own = _rules(os.path.join(directory, ".gitignore"), len(parts), spend)  # noqa: PTH118
        rules[directory] = here = [*above, *own] if own else above
        directories[:] = [
            each
            for each in directories
            if each not in _NO_SOURCES and not _is_ignored(here, (*parts, each, ""), spend)
        ]
        for name in names:
            if not _is_ignored(here, (*parts, name), spend):
                yield "/".join((*parts, name))
        count += len(names)
        if count > _MOST_FILES:
            return


class _Rule(NamedTuple):
    """A line of a file of ignores (gitignore(5)).

    Attributes:
        depth: how many directories below the top its pattern begins.
        parts: the pattern, cut at its slashes; what has wildcards is compiled, but for `**`.
        keeps: whether it begins with `!`.
        directories: whether it is of directories alone.
    """

    depth: int
    parts: Sequence[str | re.Pattern[str]]
    keeps: bool
    directories: bool


def _is_ignored(rules: Sequence[_Rule], path: Sequence[str], spend: Callable[[int], None]) -> bool:
    """Say whether rules ignore a path below the top; a directory's ends with an empty part."""
    is_directory = not path[-1]
    parts = path[:-1] if is_directory else path
    spend(20 * len(rules))
    for rule in reversed(rules):
        if (is_directory or not rule.directories) and _fits(rule, parts, spend):
            return not rule.keeps
    return False


def _fits(rule: _Rule, parts: Sequence[str], spend: Callable[[int], None]) -> bool:
    """Say whether a path fits a pattern; `**` stands for any directories, also none.

    Where a part does not fit, the last `**` takes in one directory more: those before it need not,
    for what stands between them has been found as early as it can be.
    """
    wanted, here = rule.parts, rule.depth
    if len(wanted) == 2 and wanted[0] == "**":
        return _is_named(parts[-1], wanted[1], spend)
    spend(100)
    at, any_directories, taken = 0, -1, 0
    while here < len(parts):
        if at < len(wanted) and wanted[at] == "**":
            any_directories, taken = at, here
            at += 1
        elif at < len(wanted) and _is_named(parts[here], wanted[at], spend):
            at += 1
            here += 1
        elif any_directories >= 0:
            spend(100)
            taken += 1
            at, here = any_directories + 1, taken
        else:
            return False
    return at == len(wanted)


def _is_named(name: str, wanted: str | re.Pattern[str], spend: Callable[[int], None]) -> bool:
    if isinstance(wanted, str):
        return name == wanted
    spend(80 + len(name) * len(wanted.pattern) // 8)
    return wanted.match(name) is not None


def _rules(file: str, depth: int, spend: Callable[[int], None]) -> list[_Rule]:
    """Return the rules of a file of ignores; the first ones, where there are too many."""
    try:
        text = read_regular(file, _MOST_BYTES).decode("utf-8", "replace")
    except (OSError, MalformedFile):
        return []
    lines = [each.rstrip() for each in text.splitlines()]
    said = [each for each in lines if each and not each.startswith("#")]
    return [_rule(each, depth, spend) for each in said[:_MOST_RULES]]


def _rule(line: str, depth: int, spend: Callable[[int], None]) -> _Rule:
    pattern = line.removeprefix("!").removeprefix("\\").rstrip("/")
    names = pattern.removeprefix("/").split("/")
    if "/" not in pattern:
        names.insert(0, "**")
    if names[-1] == "**":
        names.append("*")
    spend(200 + 50 * len(names))
    parts = [_part(each, spend) for each in names]
    return _Rule(depth, parts, line.startswith("!"), line.endswith("/"))


def _part(name: str, spend: Callable[[int], None]) -> str | re.Pattern[str]:
    if name == "**" or not any(each in name for each in "*?["):
        return name
    spend(5000 + 800 * len(name))
    return re.compile(translate(name))
