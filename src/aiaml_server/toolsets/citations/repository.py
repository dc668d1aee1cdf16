"""Which files a repository keeps: git is asked, and where it cannot say, ignores are read."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from fnmatch import translate
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from aiaml_server.errors import MalformedFile
from aiaml_server.files import read_regular
from aiaml_server.storage.programs import find
from aiaml_server.toolsets.git import ask

_AT_ONCE = 5.0  # seconds for a question about one file
_MOST_FILES = 500_000
_MOST_COMPARED = 8 * 1024 * 1024  # bytes of a file
_MOST_BYTES = 64 * 1024  # of one file of ignores
_MOST_RULES = 1000  # of the same
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
    found = [each / ".git" for each in (Path(root), *Path(root).parents)]
    if not find("git") or not any(each.is_file() or (each / "HEAD").exists() for each in found):
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
