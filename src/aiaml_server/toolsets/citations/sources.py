"""The repository's files as citations need them: read safely, once in a run, and never outside."""

from __future__ import annotations

import codecs
import os
import re
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from aiaml_server.errors import MalformedFile
from aiaml_server.files import read_regular
from aiaml_server.storage.programs import find

MAX_FILE = 8 * 1024 * 1024  # bytes
_LIKELIEST = 5
_MOST = 20
_COMMON = 50  # lines of a file with the same word, which tells little then
_WORD = re.compile(r"\w+")
_LOOSE = re.compile(r"(?<!\w) | (?!\w)")
_MOST_FILES = 500_000
_MOST_BYTES = 256 * 1024 * 1024
_LARGEST = 1024 * 1024  # bytes
_NO_SOURCES = {".git", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache"}
_LEADS_OUT = re.compile(
    r"^[/\\]|^[A-Za-z]:|\x00|(?:^|[/\\])(?:\.\.|\.git)(?:[/\\]|$)", re.IGNORECASE
)


_PRIVATE = re.compile(  # names of files that hold secrets, after gitignore templates of GitHub
    r"\.env(?:\..+)?|\.netrc|\.npmrc|\.pypirc|\.pgpass|\.htpasswd|id_(?:rsa|dsa|ecdsa|ed25519)\w*"
    r"|credentials(?:\..+)?|secrets?\.\w+|.+\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk|tfvars|tfstate)",
    re.IGNORECASE,
)


class Outside(Exception):  # noqa: N818 (an answer, told apart by who asks)
    """A path that leads out of the repository."""


class Unreadable(Exception):  # noqa: N818
    """A path under which there is no file that can be read; `str()` says why."""


def plain(line: str) -> str:
    """Return a line with each run of blanks as one space, and none around."""
    return " ".join(line.split())


def dense(line: str) -> str:
    """Return a line with blanks between two words alone, as formatters leave them."""
    return _LOOSE.sub("", plain(line))


class Source:
    """One file's lines, numbered from 1."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        if not self.lines[-1]:
            self.lines.pop()

    @cached_property
    def plain(self) -> list[str]:
        """The lines, each with its blanks made equal."""
        return [" ".join(each.split()) for each in self.lines]

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for number, line in enumerate(self.plain, 1):
            places.setdefault(line, []).append(number)
        return places

    def is_at(self, wanted: list[str], number: int) -> bool:
        """Say whether lines stand there, blanks aside."""
        found = self.lines[number - 1 : number - 1 + len(wanted)]
        return list(map(plain, found)) == wanted

    def find(self, wanted: list[str]) -> list[int]:
        """Return on which lines some lines begin, blanks aside."""
        found = self._places.get(wanted[0], [])
        if len(wanted) > 1:
            found = [at for at in found if self.plain[at - 1 : at - 1 + len(wanted)] == wanted]
        if not found and self._dense:
            return self._dense.find([dense(each) for each in wanted])
        return found

    @cached_property
    def _dense(self) -> Source | None:
        """The same lines with blanks between words alone; None where these are they."""
        text = "\n".join(self.plain)
        shorter = _LOOSE.sub("", text)
        return Source(shorter) if shorter != text else None

    @cached_property
    def _words(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number, line in enumerate(self.plain, 1):
            for word in set(_WORD.findall(line)):
                found.setdefault(word, []).append(number)
        return found

    def alike(self, line: str) -> dict[int, int]:
        """Return the lines that share rare words with another, and how many of them."""
        shared: dict[int, int] = {}
        for word in set(_WORD.findall(line)):
            found = self._words.get(word, ())
            for number in found if len(found) <= _COMMON else ():
                shared[number] = shared.get(number, 0) + 1
        return shared

    def around(self, number: int, count: int = 1) -> tuple[str, str]:
        """Return the nearest lines that are not empty before and behind `count` lines."""
        before = next((each for each in reversed(self.plain[: number - 1]) if each), "")
        after = next((each for each in self.plain[number - 1 + count :] if each), "")
        return before, after


class Sources:
    """The files of one repository, each read once. Make a new one for each run."""

    def __init__(self, root: Path) -> None:
        self._root = os.path.realpath(root)
        self._read: dict[str, Source | Unreadable] = {}
        self._kinds: dict[str, dict[str, bytes]] = {}
        self._private: dict[str, str] = {}

    def get(self, path: str) -> Source:
        """Return a file's lines, by its path below the top.

        Raises:
            Outside: the path, or a link on it, leads out of the repository.
            Unreadable: there is no such file, or it is none that can be read.
        """
        if path not in self._read:
            try:
                self._read[path] = Source(self._text(path))
            except Unreadable as error:
                self._read[path] = error
        found = self._read[path]
        if isinstance(found, Unreadable):
            raise found
        return found

    def private(self, path: str) -> str:
        """Say why no line of a file may be copied into one that git keeps; empty where it may.

        git itself is asked; where it cannot say, names tell that are known for secrets.

        Raises:
            Outside: the path, or a link on it, leads out of the repository.
        """
        if path not in self._private:
            real = os.path.relpath(self._where(path), self._root).replace(os.sep, "/")
            ignored = _ignored_by_git(self._root, real)
            names = (path.rpartition("/")[2], real.rpartition("/")[2])
            why = "git ignores it" if ignored else ""
            if ignored is None and any(_PRIVATE.fullmatch(each) for each in names):
                why = "files of this name hold secrets"
            self._private[path] = why
        return self._private[path]

    def _text(self, path: str) -> str:
        try:
            return _decoded(read_regular(self._where(path), MAX_FILE))
        except (FileNotFoundError, NotADirectoryError):
            raise Unreadable("there is no such file") from None
        except MalformedFile as error:
            raise Unreadable(str(error)) from error
        except (OSError, ValueError) as error:
            raise Unreadable(getattr(error, "strerror", None) or str(error)) from error

    def _where(self, path: str) -> str:
        """Return where a file lies, behind all links.

        Raises:
            Outside: that is not in the repository.
        """
        if _LEADS_OUT.search(path):
            raise Outside(path)
        where = os.path.realpath(os.path.join(self._root, path))  # noqa: PTH118
        within = os.path.relpath(where, self._root) if _one_drive(where, self._root) else ".."
        if _LEADS_OUT.search(within):
            raise Outside(path)
        return where

    def namesakes(self, path: str) -> list[str]:
        """Return the paths of the files of the same name elsewhere, the likeliest first."""
        parts = path.split("/")
        found = [each for each in self._by_name.get(parts[-1], []) if each != path]
        wanted = set(parts)
        found.sort(key=lambda each: (-len(wanted & set(each.split("/"))), each))
        return found[:_LIKELIEST]

    def others(self, path: str, line: str, near: Sequence[str] = ()) -> list[str]:
        """Return the paths of the files of the same kind that have a text in them, at most three.

        Args:
            path: whose kind is meant; itself is left out.
            line: the text.
            near: of these one must be there as well; then there may be more files.

        Files that are larger than a source usually is are not looked at, nor memories.
        """
        _, dot, kind = path.rpartition("/")[2].rpartition(".")
        wanted, *more = (each.encode("utf-8", "surrogatepass") for each in (line, *near))
        found = []
        for other, data in self._of_kind(dot + kind).items() if dot else ():
            if (
                other != path
                and wanted in data
                and (not more or any(each in data for each in more))
            ):
                found.append(other)
                if len(found) > (_MOST if more else 2):
                    break
        return found

    def _of_kind(self, ending: str) -> dict[str, bytes]:
        if ending not in self._kinds:
            self._kinds[ending] = found = {}
            left = _MOST_BYTES
            for name in sorted(self._by_name):
                for path in self._by_name[name] if name.endswith(ending) else ():
                    with suppress(OSError, MalformedFile):
                        data = read_regular(os.path.join(self._root, path), _LARGEST)  # noqa: PTH118
                        left -= len(data)
                        if left >= 0:
                            found[path] = data
        return self._kinds[ending]

    def _has_sources(self, below: str, name: str) -> bool:
        """Say whether a directory may hold what somebody wrote, and not only copies of it."""
        path = name if below == "." else f"{below}/{name}"
        return name not in _NO_SOURCES and self._ignored.isdisjoint({name, path, f"/{path}"})

    @cached_property
    def _ignored(self) -> set[str]:
        """The directories that `.gitignore` at the top names in plain words."""
        try:
            data = read_regular(os.path.join(self._root, ".gitignore"), _LARGEST)  # noqa: PTH118
        except (OSError, MalformedFile):
            return set()
        lines = {each.strip().rstrip("/") for each in _decoded(data).splitlines()}
        return {each for each in lines if f"!{each}" not in lines}

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        count = 0
        for directory, directories, names in os.walk(self._root):
            below = os.path.relpath(directory, self._root).replace(os.sep, "/")
            directories[:] = [each for each in directories if self._has_sources(below, each)]
            for name in names:
                found.setdefault(name, []).append(name if below == "." else f"{below}/{name}")
            count += len(names)
            if count > _MOST_FILES:
                break
        return found


def _ignored_by_git(root: str, path: str) -> bool | None:
    """Ask git whether it ignores a file; None where nobody can say.

    A file that git keeps is not ignored, whatever a line says (git-check-ignore(1)).
    """
    program = find("git")
    if not program or Path(program).is_relative_to(root):
        return None
    words = ("-C", root, "-c", "core.fsmonitor=false", "check-ignore", "--quiet", "--", path)
    # Variables such as GIT_DIR, which a hook is given, would lead to another repository.
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith("GIT_CONFIG_")
    }
    try:
        done = subprocess.run(  # noqa: S603
            [program, *words], env=environ, capture_output=True, timeout=10, check=False
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return {0: True, 1: False}.get(done.returncode)


def _decoded(data: bytes) -> str:
    """Return a file's text; of bytes that are no UTF-8, each counts as Windows has it."""
    is_wide = data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return data.decode("utf-16" if is_wide else "utf-8-sig", _OTHER_BYTES)


def _other_bytes(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)  # noqa: S101 (nothing is encoded so)
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


_OTHER_BYTES = "aiaml-citations"
codecs.register_error(_OTHER_BYTES, _other_bytes)


def _one_drive(first: str, second: str) -> bool:
    return os.path.splitdrive(first)[0].lower() == os.path.splitdrive(second)[0].lower()
