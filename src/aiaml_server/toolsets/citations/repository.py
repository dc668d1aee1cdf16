"""Which files a repository keeps: git is asked, and where it cannot say, ignores are read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from aiaml_server.errors import MalformedFile
from aiaml_server.files import read_regular
from aiaml_server.toolsets.git import ask

_AT_ONCE = 5.0  # seconds for a question about one file
_MOST_FILES = 500_000
_MOST_COMPARED = 8 * 1024 * 1024  # bytes of a file
_MOST_RULES = 64 * 1024  # bytes of one file of them
_NO_SOURCES = {".git", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache"}
SUBMODULE = "160000"  # git-ls-files(1): the mode of another repository's commit


class Tracked(NamedTuple):
    """What git says of a file that it has: `S` for one that is left out of a sparse checkout."""

    tag: str
    mode: str


def ignores(root: str, path: str) -> bool | None:
    """Say whether git ignores a file; None where nobody can say.

    A file that git keeps is not ignored, whatever a line says (git-check-ignore(1)). Of what lies
    in a submodule or another repository, that one is asked as well.
    """
    said = {_ignores(top, path.removeprefix(within)) for top, within in _repositories(root, path)}
    return True if True in said else None if said == {None} else False


def _ignores(top: str, path: str) -> bool | None:
    done = ask(top, "check-ignore", "--quiet", "--", f"./{path}", seconds=_AT_ONCE)
    return {0: True, 1: False}.get(done.returncode) if done else None


def _repositories(root: str, path: str) -> Iterator[tuple[str, str]]:
    """Yield a directory, and those above a file in it that are a repository; with their paths."""
    yield root, ""
    *above, _ = path.split("/")
    for count in range(1, len(above) + 1):
        within = "/".join(above[:count])
        top = os.path.join(root, within)  # noqa: PTH118
        if os.path.lexists(os.path.join(top, ".git")):  # noqa: PTH118
            yield top, f"{within}/"


def keeps_silent(root: str) -> bool:
    """Say whether a directory is in a repository of which git tells nothing, or not in time.

    Where it belongs to another user, git says what to do, and the person may have chosen not to.
    """
    if not any(os.path.lexists(each / ".git") for each in (Path(root), *Path(root).parents)):
        return False
    done = ask(root, "rev-parse", "--git-dir", seconds=_AT_ONCE)
    return not done or (done.returncode != 0 and b"safe.directory" not in done.stderr)


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


def changed_since(root: str, revision: str, paths: Iterable[str]) -> list[str] | None:
    """Return those of some files that differ from a commit; None where git cannot say.

    What lies in a submodule is left out. Comparing is left to us, since whatever of git does it
    runs the filters that the repository names.
    """
    commit = ask(root, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    if not commit or commit.returncode:
        return None
    done = ask(root, "ls-tree", "-r", "-z", commit.stdout.decode().strip())
    if not done or done.returncode:
        return None
    entries = done.stdout.decode("utf-8", "surrogateescape").split("\0")
    rows = (each.partition("\t") for each in filter(None, entries))
    blobs = {path: tuple(about.split(" ")) for about, _, path in rows}
    links = {path for path, (mode, *_) in blobs.items() if mode == SUBMODULE}
    return [
        each
        for each in paths
        if not links.intersection(map(str, PurePosixPath(each).parents))
        and not _is_blob(blobs[each][2] if each in blobs else "", os.path.join(root, each))  # noqa: PTH118
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


def as_it_was(root: str, revision: str, path: str, most: int) -> bytes | None:
    """Return a file's bytes in a commit; None where it was not there, or had more than `most`."""
    place = f"{revision}:./{path}"
    size = ask(root, "cat-file", "-s", "--end-of-options", place)
    if not size or size.returncode or int(size.stdout) > most:
        return None
    done = ask(root, "show", "--end-of-options", place)
    return done.stdout if done and not done.returncode else None


def walked(root: str) -> Iterator[str]:
    """Yield the files below a directory, but for those that its files of ignores name."""
    rules = {root: _rules(os.path.join(root, ".git", "info", "exclude"), root)}  # noqa: PTH118
    count = 0
    for directory, directories, names in os.walk(root):
        above = rules[root if directory == root else os.path.dirname(directory)]  # noqa: PTH120
        here = [*above, *_rules(os.path.join(directory, ".gitignore"), directory)]  # noqa: PTH118
        rules[directory] = here
        directories[:] = [
            each
            for each in directories
            if each not in _NO_SOURCES and not _is_ignored(here, directory, f"{each}/")
        ]
        for name in names:
            if not _is_ignored(here, directory, name):
                path = os.path.relpath(os.path.join(directory, name), root)  # noqa: PTH118
                yield path.replace(os.sep, "/")
        count += len(names)
        if count > _MOST_FILES:
            return


class _Rule(NamedTuple):
    """A line of a file of ignores (gitignore(5)).

    Attributes:
        base: the directory that its pattern begins at.
        parts: the pattern, cut at its slashes.
        keeps: whether it begins with `!`.
        directories: whether it is of directories alone.
    """

    base: str
    parts: list[str]
    keeps: bool
    directories: bool


def _is_ignored(rules: Sequence[_Rule], directory: str, name: str) -> bool:
    is_directory = name.endswith("/")
    for rule in reversed(rules):
        path = os.path.relpath(os.path.join(directory, name), rule.base)  # noqa: PTH118
        if (is_directory or not rule.directories) and _fits(rule.parts, Path(path).parts):
            return not rule.keeps
    return False


def _fits(wanted: Sequence[str], parts: Sequence[str]) -> bool:
    """Say whether a path fits a pattern; `**` stands for any directories, also none."""
    at = {0}
    for part in parts:
        for each in range(len(wanted)):
            if each in at and wanted[each] == "**":
                at.add(each + 1)
        stay = {each for each in at if wanted[each : each + 1] == ["**"]}
        at = stay | {
            each + 1 for each in at - stay if each < len(wanted) and fnmatchcase(part, wanted[each])
        }
    return len(wanted) in at


def _rules(file: str, base: str) -> list[_Rule]:
    try:
        text = read_regular(file, _MOST_RULES).decode("utf-8", "replace")
    except (OSError, MalformedFile):
        return []
    lines = (each.rstrip() for each in text.splitlines())
    return [_rule(each, base) for each in lines if each and not each.startswith("#")]


def _rule(line: str, base: str) -> _Rule:
    pattern = line.removeprefix("!").removeprefix("\\").rstrip("/")
    parts = pattern.removeprefix("/").split("/")
    if "/" not in pattern:
        parts.insert(0, "**")
    if parts[-1] == "**":
        parts.append("*")
    return _Rule(base, parts, line.startswith("!"), line.endswith("/"))
