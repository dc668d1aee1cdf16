"""The files of a repository, read safely: only regular files inside it that git does not ignore."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

from aiaml_server.errors import MalformedFile, TooLarge
from aiaml_server.files import read_regular
from aiaml_server.toolsets.git import (
    SUBMODULE,
    can_answer,
    find_ignored,
    list_tracked,
)

MAX_BYTES = 4 * 1024 * 1024
MAX_SECONDS = 60.0  # after which no further file is looked at
_MAX_TOTAL = 128 * 1024 * 1024  # of all files that are held in memory
_MAX_LINE = 2000  # characters of a line in which strings and code are distinguished
_MAX_SEARCHED = 2_000  # files that are read because a cited one is gone
_MAX_COMPARED = 10_000  # lines that are compared for a suggestion

_OUTSIDE = re.compile(r"^[/\\]|^[A-Za-z]:|\x00|(?:^|[/\\])(?:\.\.|\.git)(?:[/\\]|$)", re.IGNORECASE)
_SECRET_NAMES = re.compile(  # after GitHub's gitignore templates
    r"(?:^|/)(?:\.env(?:\..+)?|\.netrc|\.npmrc|\.pypirc|\.pgpass|\.htpasswd"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)\w*|credentials(?:\..+)?|secrets?\.\w+"
    r"|[^/]+\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk|tfvars|tfstate))$",
    re.IGNORECASE | re.MULTILINE,
)
_LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\n"

STRING = r"""("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\\n]|\\.)*`)"""
_BLANKS = re.compile(STRING + r"|\s+")
_DOCSTRING_BLANKS = re.compile(r"""^("{3}|'{3})\s+|\s+("{3}|'{3})$""")


OUTSIDE, MISSING, UNSEEN = "outside", "missing", "unseen"
"""Why a file cannot be read: it is not in the repository, does not exist, or is not shown."""


class Unreadable(Exception):  # noqa: N818
    """A file is not read. The message says why.

    Attributes:
        verdict: what its citations are therefore: `OUTSIDE`, `MISSING` or `UNSEEN`.
    """

    def __init__(self, verdict: str, message: str) -> None:
        self.verdict = verdict
        super().__init__(message)


def normalize_line(line: str) -> str:
    """Return a line without blanks around it and with single ones in it; strings stay."""
    stripped = line.strip()
    if len(stripped) > _MAX_LINE:
        return " ".join(stripped.split())
    stripped = _DOCSTRING_BLANKS.sub(lambda found: found[1] or found[2], stripped)
    return _BLANKS.sub(lambda found: found[1] or " ", stripped)


class SourceFile:
    """The lines of one file, numbered from 1."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends."""
        return self.text.removesuffix("\n").split("\n")

    @cached_property
    def normalized(self) -> list[str]:
        """The lines with their blanks normalized."""
        return [normalize_line(line) for line in self.lines]

    def find(self, wanted: Sequence[str]) -> list[int]:
        """Return the numbers of the lines at which some normalized lines begin."""
        lines = self.normalized
        starts = [index for index, line in enumerate(lines) if line == wanted[0]]
        return [index + 1 for index in starts if lines[index : index + len(wanted)] == wanted]

    def neighbors(self, number: int, count: int = 1) -> tuple[str, str]:
        """Return the nearest lines that are not empty before and after `count` lines."""
        line_at = self.normalized.__getitem__
        above = map(line_at, range(number - 2, -1, -1))
        below = map(line_at, range(number - 1 + count, len(self.lines)))
        return next(filter(None, above), ""), next(filter(None, below), "")

    def closest_line(self, wanted: str) -> str:
        """Return the line most like a text as `number: line`; empty if none is."""
        cut = [line[:300] for line in self.normalized[:_MAX_COMPARED]]
        close = get_close_matches(wanted[:300], cut, 1)
        return f"{cut.index(close[0]) + 1}: {close[0]}" if close else ""


class SourceTree:
    """The files of one repository. Each is read once, so make a new tree for each call."""

    def __init__(self, root: str | os.PathLike[str], seconds: float = MAX_SECONDS) -> None:
        """Take the repository's top, and how long files may be looked at from now on."""
        self._deadline = time.monotonic() + seconds
        self._held = 0
        self.root = os.path.realpath(root)
        self._files: dict[str, SourceFile] = {}
        self._hidden: dict[str, str] = {}

    def get(self, path: str) -> SourceFile:
        """Return a file.

        Raises:
            Unreadable: it cannot be read.
        """
        if self._held > _MAX_TOTAL or time.monotonic() > self._deadline:
            raise Unreadable(UNSEEN, "128 MiB or 60 seconds were used up by files before it")
        if path not in self._files:
            self._files[path] = SourceFile(path, self._read(path))
        return self._files[path]

    def _read(self, path: str) -> str:
        if reason := self.why_hidden(path):
            raise Unreadable(UNSEEN, f"{reason}, so its text is not shown")
        try:
            data = read_regular(os.path.realpath(Path(self.root, path)), MAX_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            if self._tracked.get(path, "").startswith("S"):  # git-ls-files(1)
                raise Unreadable(UNSEEN, "it is left out of this sparse checkout") from None
            raise Unreadable(MISSING, "there is no such file") from None
        except (MalformedFile, OSError, ValueError) as error:
            is_there = isinstance(error, TooLarge | PermissionError)
            raise Unreadable(UNSEEN if is_there else MISSING, str(error)) from error
        if data.startswith(_LFS_POINTER) and len(data) < 1024:
            raise Unreadable(UNSEEN, "it is a Git LFS pointer; `git lfs pull` fetches the file")
        self._held += len(data)
        return data.decode("utf-8-sig", "replace")

    def why_hidden(self, path: str) -> str:
        """Return why the text of a file must not be copied or shown; empty if it may.

        Raises:
            Unreadable: the path, or a link on it, leads out of the repository.
        """
        self.learn_hidden([path])
        if path not in self._hidden:
            raise Unreadable(OUTSIDE, "it leads out of the repository")
        return self._hidden[path]

    def learn_hidden(self, paths: Iterable[str]) -> None:
        """Ask git about many files in one process, instead of one process for each."""
        names: dict[str, str] = {}
        for path in set(paths) - self._hidden.keys():
            name = self._resolve(path)
            if name:
                self._hidden[path] = self._why_nested(name)
            if name and not self._hidden[path]:
                names[path] = name
        if not names:
            return
        ignored, problem = find_ignored(self.root, list(names.values()))
        has_git = can_answer(self.root)
        for path, name in names.items():
            is_secret = not has_git and _SECRET_NAMES.search(f"{path}\n{name}")
            reason = "git ignores it" if name in ignored else problem
            self._hidden[path] = "files of this name hold secrets" if is_secret else reason

    def _resolve(self, path: str) -> str:
        """Return where a file lies below the top, with links followed; empty if it lies outside."""
        real = "/" if "\0" in path else os.path.realpath(Path(self.root, path))
        below = os.path.relpath(real, self.root)
        is_outside = _OUTSIDE.search(path) or _OUTSIDE.search(below)
        return "" if is_outside else Path(below).as_posix()

    def _why_nested(self, name: str) -> str:
        for above in list(Path(name).parents)[:-1]:
            is_submodule = SUBMODULE in self._tracked.get(above.as_posix(), "")
            if is_submodule or os.path.lexists(Path(self.root, above, ".git")):
                return f"it belongs to another repository, {above.as_posix()}"
        return ""

    # --- where a missing file may have gone -------------------------------------------------------

    @cached_property
    def _tracked(self) -> dict[str, str]:
        """The files that git has; none without git."""
        return list_tracked(self.root)

    def find_files(self, path: str, line: str) -> list[SourceFile]:
        """Return the files that git has, of the type of a missing file, that contain a line."""
        name = f"/{Path(path).name}"
        ending = Path(path).suffix or name[1:]
        paths = [other for other in self._tracked if other.endswith(ending)]
        paths.sort(key=lambda other: not f"/{other}".endswith(name))
        paths = paths[:_MAX_SEARCHED]
        self.learn_hidden(paths)
        files = []
        for other in paths:
            with suppress(Unreadable):
                files.append(self.get(other))
        return [file for file in files if line in file.text]

    def suggest(self, path: str) -> str:
        """Return the path that a wrong one probably means; empty if none is close."""
        return next(iter(get_close_matches(path, list(self._tracked), 1)), "")
