"""Which files a repository keeps: git is asked, and where it cannot say, ignores are read."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from aiaml_server.errors import MalformedFile
from aiaml_server.files import read_regular
from aiaml_server.storage.programs import find

_SECONDS = 30
_MOST_FILES = 500_000
_MOST_RULES = 64 * 1024  # bytes of one file of them
_NO_SOURCES = {".git", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache"}
SUBMODULE = "160000"  # git-ls-files(1): the mode of another repository's commit


class Tracked(NamedTuple):
    """What git says of a file that it has: `S` for one that is left out of a sparse checkout."""

    tag: str
    mode: str


def ask(root: str, *words: str) -> subprocess.CompletedProcess[bytes] | None:
    """Ask git in a directory; None where there is no git, or it does not answer."""
    program = find("git")
    if not program or Path(program).is_relative_to(root):
        return None
    # Variables such as GIT_DIR, which a hook is given, would lead to another repository.
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith("GIT_CONFIG_")
    }
    command = [program, "-C", root, "-c", "core.fsmonitor=false", *words]
    try:
        return subprocess.run(  # noqa: S603
            command, env=environ, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def ignores(root: str, path: str) -> bool | None:
    """Say whether git ignores a file; None where nobody can say.

    A file that git keeps is not ignored, whatever a line says (git-check-ignore(1)).
    """
    done = ask(root, "check-ignore", "--quiet", "--", path)
    return {0: True, 1: False}.get(done.returncode) if done else None


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


def changed_since(root: str, revision: str) -> list[str] | None:
    """Return the files below a directory that differ from a commit; None where git cannot say."""
    words = ("diff", "--name-only", "--no-renames", "--relative", "-z", "--end-of-options")
    done = ask(root, *words, revision, "--")
    if not done or done.returncode:
        return None
    return [each for each in done.stdout.decode("utf-8", "surrogateescape").split("\0") if each]


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
