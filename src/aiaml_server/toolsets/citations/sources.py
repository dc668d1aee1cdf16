"""The files of a repository, read safely: only regular files inside it that git does not ignore."""

from __future__ import annotations

import os
import re
import time
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

from aiaml_server.errors import MalformedFile, TooLarge
from aiaml_server.files import read_regular
from aiaml_server.toolsets.citations.git import (
    SUBMODULE,
    can_answer,
    find_ignored,
    list_tracked,
)

MAX_BYTES = 4 * 1024 * 1024
_MAX_LINE = 2000  # characters of a line whose strings are told from its code
_MAX_SEARCHED = 2_000  # files that are read because a cited one is gone
_MAX_COMPARED = 10_000  # names or lines that are compared for a suggestion
_NEIGHBOR_LINES = 200  # within which the nearest line that is not empty counts as a neighbour

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


class Outside(Exception):  # noqa: N818
    """A path leads out of the repository."""


class Missing(Exception):  # noqa: N818
    """There is no such file."""


class Unseen(Exception):  # noqa: N818
    """A file may exist but must not or cannot be looked at. The message says why."""


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
        self.lines = text.removesuffix("\n").split("\n")

    @cached_property
    def normalized(self) -> list[str]:
        """The lines with their blanks normalized."""
        return [normalize_line(line) for line in self.lines]

    @cached_property
    def _numbers(self) -> dict[str, list[int]]:
        numbers: dict[str, list[int]] = {}
        for number, line in enumerate(self.normalized, 1):
            numbers.setdefault(line, []).append(number)
        return numbers

    def find(self, wanted: Sequence[str]) -> list[int]:
        """Return the numbers of the lines at which some normalized lines begin."""
        size = len(wanted)
        starts = self._numbers.get(wanted[0], [])
        return [n for n in starts if self.normalized[n - 1 : n - 1 + size] == list(wanted)]

    def neighbors(self, number: int, count: int = 1) -> tuple[str, str]:
        """Return the nearest lines that are not empty before and after `count` lines."""
        above = self.normalized[: number - 1][-_NEIGHBOR_LINES:][::-1]
        below = self.normalized[number - 1 + count :][:_NEIGHBOR_LINES]
        return next(filter(None, above), ""), next(filter(None, below), "")

    def closest_line(self, wanted: str) -> str:
        """Return the line most like a text as `number: line`; empty if none is."""
        cut = [line[:300] for line in self.normalized[:_MAX_COMPARED]]
        close = get_close_matches(wanted[:300], dict.fromkeys(cut), 1, 0.6)
        return f"{cut.index(close[0]) + 1}: {close[0]}" if close else ""


class SourceTree:
    """The files of one repository. Each is read once, so make a new tree for each call."""

    def __init__(self, root: str | os.PathLike[str], seconds: float = 20.0) -> None:
        """Take the repository's top, and the seconds after which no more files are read."""
        self.root = os.path.realpath(root)
        self._deadline = time.monotonic() + seconds
        self._files: dict[str, SourceFile] = {}
        self._hidden: dict[str, str] = {}

    def get(self, path: str) -> SourceFile:
        """Return a file.

        Raises:
            Outside: the path, or a link on it, leads out of the repository.
            Unseen: it must not or cannot be looked at.
            Missing: there is no such file.
        """
        if path not in self._files:
            self._files[path] = self._read(path)
        return self._files[path]

    def _read(self, path: str) -> SourceFile:
        real = self._resolve(path)
        if reason := self.why_hidden(path):
            raise Unseen(f"{reason}, so its text is not shown")
        if time.monotonic() > self._deadline:
            raise Unseen("there was no time left to look at it; verify fewer memories at once")
        try:
            data = read_regular(real, MAX_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            if (self.tracked or {}).get(path, "").startswith("S"):  # git-ls-files(1)
                raise Unseen("it is left out of this sparse checkout") from None
            raise Missing("there is no such file") from None
        except (TooLarge, PermissionError) as error:
            raise Unseen(str(error)) from error
        except (MalformedFile, OSError, ValueError) as error:
            raise Missing(str(error)) from error
        if data.startswith(_LFS_POINTER) and len(data) < 1024:
            raise Unseen("it is a Git LFS pointer; `git lfs pull` fetches the file")
        return SourceFile(path, decode(data))

    def _resolve(self, path: str) -> str:
        """Return where a file lies, with all links followed.

        Raises:
            Outside: that is not in the repository.
        """
        real = "/" if "\0" in path else os.path.realpath(Path(self.root, path))
        below = os.path.relpath(real, self.root)
        if _OUTSIDE.search(path) or _OUTSIDE.search(below):
            raise Outside("it leads out of the repository")
        return real

    def why_hidden(self, path: str) -> str:
        """Return why the text of a file must not be copied or shown; empty if it may.

        Raises:
            Outside: the path leads out of the repository.
        """
        self._resolve(path)
        self.learn_hidden([path])
        return self._hidden[path]

    def learn_hidden(self, paths: Iterable[str]) -> None:
        """Ask git about many files at once, so that it is not asked for each."""
        names: dict[str, str] = {}
        for path in set(paths) - self._hidden.keys():
            with suppress(Outside):
                names[path] = Path(self._resolve(path)).relative_to(self.root).as_posix()
        nested = {path: self._nested_repository(name) for path, name in names.items()}
        asked = [name for path, name in names.items() if not nested[path]]
        ignored = find_ignored(self.root, asked) if asked else set()
        for path, name in names.items():
            reason = nested[path]
            if ignored is None:
                is_known = _SECRET_NAMES.search(f"{path}\n{name}")
                reason = "files of this name hold secrets" if is_known else reason
                if can_answer(self.root):
                    reason = "git does not say whether it ignores it (see safe.directory)"
            elif name in ignored:
                reason = "git ignores it"
            self._hidden[path] = reason

    def _nested_repository(self, path: str) -> str:
        for above in list(Path(path).parents)[:-1]:
            is_submodule = SUBMODULE in (self.tracked or {}).get(above.as_posix(), "")
            if is_submodule or os.path.lexists(Path(self.root, above, ".git")):
                return f"it belongs to another repository, {above.as_posix()}"
        return ""

    # --- where a missing file may have gone -------------------------------------------------------

    @cached_property
    def tracked(self) -> dict[str, str] | None:
        """The files that git has; None if there is no git."""
        return list_tracked(self.root)

    @cached_property
    def _paths(self) -> list[str]:
        return sorted(walk_files(self.root) if self.tracked is None else self.tracked)

    def candidates(self, path: str, line: str) -> Iterator[list[SourceFile]]:
        """Yield the files of a missing file's name, then those of its type that contain a line."""
        folder, _, name = path.rpartition("/")
        parts = set(folder.split("/"))
        same_name = [other for other in self._paths if f"/{other}".endswith(f"/{name}")]
        same_name.sort(key=lambda other: -len(parts.intersection(other.split("/"))))
        yield self._readable(same_name[:5])
        ending = Path(path).suffix or "/"
        same_type = [other for other in self._paths if other.endswith(ending)]
        yield self._readable(same_type[:_MAX_SEARCHED], line)

    def _readable(self, paths: Sequence[str], line: str = "") -> list[SourceFile]:
        """Return those of some files that can be read and contain a text."""
        self.learn_hidden(paths)
        files = []
        for path in paths:
            with suppress(Outside, Unseen, Missing):
                file = self._read(path)
                files += [file] if line in file.text else []
        return files

    def spelled(self, path: str) -> str:
        """Return the path of the file that is called so, perhaps in another Unicode form."""
        if path.isascii() or os.path.lexists(Path(self.root, path)):
            return path
        wanted = unicodedata.normalize("NFC", path)
        same = (other for other in self._paths if unicodedata.normalize("NFC", other) == wanted)
        return next(same, path)

    def suggest(self, path: str) -> str:
        """Return the path that a wrong one probably means; empty if none is close."""
        return next(iter(get_close_matches(path, self._paths[:_MAX_COMPARED], 1)), "")


def walk_files(root: str) -> Iterator[str]:
    """Yield the paths below a directory that has no git, without hidden directories."""
    for directory, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            yield Path(directory, name).relative_to(root).as_posix()


def decode(data: bytes) -> str:
    """Return a file's text. Bytes that are not UTF-8 are read as Latin-1."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")
