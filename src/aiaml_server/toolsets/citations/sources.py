"""The repository's files as citations need them: read safely, once in a run, and never outside."""

from __future__ import annotations

import codecs
import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from aiaml_server.errors import MalformedFile
from aiaml_server.files import read_regular
from aiaml_server.toolsets.citations.definitions import MOST_LINES, enclosing
from aiaml_server.toolsets.citations.effort import Effort, TooMuch
from aiaml_server.toolsets.citations.repository import (
    SILENT,
    SUBMODULE,
    SYMLINK,
    Entry,
    Tracked,
    blob,
    kept_out,
    tracked,
    walked,
)
from aiaml_server.toolsets.citations.tokens import FOR_LINTERS, SCANNED, Token, counting, scanned

MAX_FILE = 8 * 1024 * 1024  # bytes
MAX_LINES = 200_000
MAX_PATH = 4096  # characters
_MOST_WORK = 100_000_000  # in one run, in units of some ten nanoseconds
_MOST_KEPT = 64 * 1024 * 1024  # bytes of the files that were read last
_LINE = 300  # bytes that a line takes when it was looked for
FAR = 200  # lines, within which a neighbour is
_LIKELIEST = 5
_MOST = 20
_MOST_COMPARED = 20_000  # paths with one that is not there
_WORD = re.compile(r"\w+")
_STRING = r"""("(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|`(?:[^`\\\n]|\\.)*`?)"""
_RUN = re.compile(rf"{_STRING}|\s+")
_INTO_TEXT = re.compile(r"""(?<=^"{3}) | (?="{3}$)|(?<=^'{3}) | (?='{3}$)""")
_LOOSE = re.compile(rf"{_STRING}|(?!(?<=\w) \w|(?<=\+) \+|(?<=-) -) ")
_MOST_BYTES = 64 * 1024 * 1024
_LARGEST = 1024 * 1024  # bytes
_SCRIPTS = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
"""One language to its users: a file of one is at times renamed to another."""
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


def ending(path: str) -> str:
    """Return the ending of a file's name, such as `.py`; empty where it has none."""
    _, dot, kind = path.rpartition("/")[2].rpartition(".")
    return dot + kind.lower() if dot else ""


class Unseen(Unreadable):
    """A file that may well be there, and cannot be looked at."""


class Hidden(Unseen):
    """A file that stays out of git: nothing of it is told, not even whether it is there."""


_NOTHING = Tracked("", "")
_NO_ENTRY = Entry("", "")
_NOT_GIVEN = (
    "git does not give it; where a partial clone left it out,"
    " `git fetch --refetch --no-filter` brings it"
)


def plain(line: str) -> str:
    """Return a line with each run of blanks as one space, and none around; strings stay."""
    equal = " ".join(line.split())
    if len(equal) < len(line) and len(equal) < len(line.strip()):
        return _RUN.sub(lambda each: each[1] or " ", line.strip())
    return equal


def dense(line: str) -> str:
    """Return a line with blanks between two words alone, as formatters leave them."""
    return _LOOSE.sub(lambda each: each[1] or "", _INTO_TEXT.sub("", plain(line)))


def _length(line: str) -> int:
    """Return how many characters a line has that are no spaces."""
    return len(line) - line.count(" ")


def same(line: str, other: str) -> bool:
    """Say whether two lines, plain, are the same but for blanks that are not between words."""
    return line == other or (_length(line) == _length(other) and dense(line) == dense(other))


class Source:
    """One file's lines, numbered from 1."""

    def __init__(
        self, text: str, kind: str = "", spend: Callable[[int], None] = lambda _: None
    ) -> None:
        """Take its text, the ending of its name, such as `.py`, and what counts the work."""
        self.text, self.kind, self.spend = text, kind, spend
        self._having: dict[str, list[int]] = {}
        self._within: dict[int, str] = {}
        self.lines = text.split("\n")
        if not self.lines[-1]:
            self.lines.pop()

    @cached_property
    def plain(self) -> list[str]:
        """The lines, each with its blanks made equal."""
        self.spend(80 * len(self.lines) + 2 * len(self.text))
        return list(map(plain, self.lines))

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        self.spend(20 * len(self.lines))
        for number, line in enumerate(self.plain, 1):
            places.setdefault(line, []).append(number)
        return places

    def is_at(self, wanted: list[str], number: int) -> bool:
        """Say whether lines stand there, blanks aside."""
        found = self.lines[number - 1 : number - 1 + len(wanted)]
        self.spend(4 * sum(map(len, found)))
        return list(map(plain, found)) == wanted

    def find(self, wanted: list[str]) -> list[int]:
        """Return on which lines some lines begin, blanks aside."""
        found = self._places.get(wanted[0], [])
        if len(wanted) > 1:
            self.spend(20 * len(found) + sum(map(len, wanted)))
            found = [at for at in found if self.plain[at - 1 : at - 1 + len(wanted)] == wanted]
        return found or self._find_dense(wanted)

    def _find_dense(self, wanted: list[str]) -> list[int]:
        """Return the same where blanks count between words alone."""
        longest = max(_WORD.findall(wanted[0]), key=len, default="")
        count, size = len(wanted), _length(wanted[0])
        self.spend(8 * len(self.lines) + len(self.text) // 4 + 10 * sum(map(len, wanted)))
        having = [at for at, line in enumerate(self.plain, 1) if longest in line]
        self.spend(sum(30 + len(self.plain[at - 1]) // 2 for at in having))
        alike = [at for at in having if _length(self.plain[at - 1]) == size]
        self.spend((500 + 40 * sum(map(len, wanted))) * len(alike))
        return [at for at in alike if self._are_same(self.plain[at - 1 : at - 1 + count], wanted)]

    @staticmethod
    def _are_same(lines: Sequence[str], wanted: Sequence[str]) -> bool:
        return len(lines) == len(wanted) and all(map(same, lines, wanted))

    def having(self, word: str) -> list[int]:
        """Return the lines that have a word, in order."""
        if word not in self._having:
            self.spend(10 * len(self.lines) + len(self.text) // 4)
            found = [at for at, line in enumerate(self.lines, 1) if word in line]
            self.spend(sum(30 + 6 * len(self.lines[at - 1]) for at in found))
            self._having[word] = [at for at in found if word in _WORD.findall(self.lines[at - 1])]
        return self._having[word]

    def within(self, number: int) -> str:
        """Return the definition that a line belongs to, such as `Shop.price`."""
        if number not in self._within:
            self.spend(40 * min(number, MOST_LINES))
            self._within[number] = enclosing(self.lines, number)
        return self._within[number]

    @cached_property
    def _counting(self) -> tuple[str, list[int]]:
        """All words of the code, each between blanks, and where in it those of each line begin."""
        self.spend(150 * len(self.lines) + 20 * len(self.text))
        code = FOR_LINTERS.sub("", self.text) if len(self.text) <= _LARGEST else ""
        parts, begins, size = [" "], [0], 1
        for line in code.split("\n"):
            words = "".join(f"{each} " for each in counting(line, self.kind))
            parts.append(words)
            begins.append(size)
            size += len(words)
        return "".join(parts), begins

    def spans(self, words: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield the first and the last line of each place where words follow one another."""
        if not words:
            return
        every, begins = self._counting
        self.spend(len(every) // 8)
        wanted = f" {' '.join(words)} "
        at = every.find(wanted)
        while at >= 0:
            self.spend(500)
            end = at + len(wanted) - 2
            yield bisect_right(begins, at + 1) - 1, bisect_right(begins, end) - 1
            at = every.find(wanted, at + 1)

    def tokens(self, first: int, last: int) -> list[Token]:
        """Return the tokens of some lines."""
        text = "\n".join(self.lines[first - 1 : last])
        self.spend(500 + SCANNED * len(text))
        return scanned(text, first, self.kind)

    def around(self, number: int, count: int = 1) -> tuple[str, str]:
        """Return the nearest lines that are not empty before and behind `count` lines."""
        end = number - 1 + count
        above = self.lines[max(0, number - 1 - FAR) : number - 1]
        before = next((each for each in reversed(above) if each.strip()), "")
        after = next((each for each in self.lines[end : end + FAR] if each.strip()), "")
        self.spend(500 + 20 * (len(before) + len(after)))
        return plain(before), plain(after)


class Sources:
    """The files of one repository, each read once. Make a new one for each run.

    All methods may raise `TooMuch`: so much was looked through in this run as one may.
    """

    def __init__(self, root: Path, times: int = 1) -> None:
        """Take a repository's top, and how often the work that a call has may be done."""
        self.root = os.path.realpath(root)
        self.spend = Effort(times * _MOST_WORK).spend
        self._kept = 0  # bytes
        self._sizes: dict[str, int] = {}
        self._read: dict[str, Source | Unreadable] = {}
        self._kinds: dict[tuple[str, ...], dict[str, bytes]] = {}
        self._private: dict[str, str] = {}

    def get(self, path: str) -> Source:
        """Return a file's lines, by its path below the top.

        Raises:
            Outside: the path, or a link on it, leads out of the repository.
            Unreadable: there is no such file, or it is none that can be read.
        """
        if path not in self._read:
            self.spend(5000 + 2000 * path.count("/"))
            try:
                self._read[path] = self._source(path)
            except Unreadable as error:
                self._read[path] = error
        found = self._read[path]
        if isinstance(found, Unreadable):
            raise found
        return found

    def _source(self, path: str) -> Source:
        if len(path) > MAX_PATH:
            raise Unreadable("the path is too long")
        text = self._text(path)
        count = text.count("\n")
        if count > MAX_LINES:
            raise Unseen(f"the file has more than {MAX_LINES:,} lines")
        self.spend(len(text) + 10 * count)
        size = len(text) + _LINE * count
        self._kept += size
        while self._kept > _MOST_KEPT and (oldest := next(iter(self._sizes), "")):
            self._kept -= self._sizes.pop(oldest)
            self._read.pop(oldest)
        self._sizes[path] = size
        return Source(text, ending(path), self.spend)

    def private(self, path: str) -> str:
        """Say why nobody may see a line of a file who has not the file; empty where one may.

        git itself is asked; where it cannot say, names tell that are known for secrets.

        Raises:
            Outside: the path, or a link on it, leads out of the repository.
        """
        if path not in self._private:
            self._where(path)
            self._learn([path])
        return self._private[path]

    def shows(self, path: str) -> bool:
        """Say whether a file may be looked at, if it is there."""
        try:
            return not self.private(path)
        except (Outside, ValueError):
            return False

    def ask_about(self, paths: Iterable[str]) -> None:
        """Ask git at once which of some files are private; else it is asked for each."""
        with suppress(TooMuch):  # which the look at them says
            self._learn(paths)

    def _learn(self, paths: Iterable[str]) -> None:
        real: dict[str, str] = {}
        for path in paths:
            if path not in self._private and path not in real:
                self.spend(2000)
                with suppress(Outside, ValueError):
                    real[path] = self._real(path)
        kept = vars(self).get("_tracked") or {}  # only where that was asked already
        said: dict[str, str | None] = dict.fromkeys(kept.keys() & real.values(), "")
        if asked := {*real.values()} - said.keys():
            said |= kept_out(self.root, sorted(asked), self.spend)
        for path, where in real.items():
            names = (path.rpartition("/")[2], where.rpartition("/")[2])
            is_known = any(_PRIVATE.fullmatch(each) for each in names)
            named = "files of this name hold secrets" if is_known else ""
            self._private[path] = named if (why := said[where]) is None else why

    def _real(self, path: str) -> str:
        """Return the path behind all links, relative to the top.

        Raises:
            Outside: that is not in the repository.
        """
        return os.path.relpath(self._where(path), self.root).replace(os.sep, "/")

    def lacks(self, path: str) -> bool:
        """Say whether there is no such file, or none that can be read."""
        try:
            self.get(path)
        except (Outside, Unreadable):
            return True
        return False

    def _text(self, path: str) -> str:
        try:
            if why := self.private(path):
                if why == SILENT:
                    self._refuse_hidden(path)
                raise Hidden(f"{why}, so nothing of it is told")
            return _decoded(read_regular(self._where(path), MAX_FILE))
        except (FileNotFoundError, NotADirectoryError):
            self._refuse_hidden(path)
            raise Unreadable("there is no such file") from None
        except PermissionError as error:
            raise Unseen(error.strerror) from error
        except MalformedFile as error:
            raise Unreadable(str(error)) from error
        except (OSError, ValueError) as error:
            raise Unreadable(getattr(error, "strerror", None) or str(error)) from error

    def _refuse_hidden(self, path: str) -> None:
        """Raise where git has a file, or may have it, that is not checked out."""
        kept = self._tracked or {}
        if kept.get(path, _NOTHING).tag == "S":
            raise Unseen("it is left out of this sparse checkout")
        parts = path.split("/")
        for above in ("/".join(parts[:size]) for size in range(1, len(parts))):
            place = Path(self.root, above)
            if kept.get(above, _NOTHING).mode == SUBMODULE and not any(place.glob("*")):
                raise Unseen(f"the submodule {above} is not checked out")

    def _where(self, path: str) -> str:
        """Return where a file lies, behind all links.

        Raises:
            Outside: that is not in the repository.
        """
        if _LEADS_OUT.search(path):
            raise Outside(path)
        where = os.path.realpath(os.path.join(self.root, path))  # noqa: PTH118
        drives = {os.path.splitdrive(each)[0].lower() for each in (where, self.root)}
        within = os.path.relpath(where, self.root) if len(drives) == 1 else ".."
        if _LEADS_OUT.search(within):
            raise Outside(path)
        return where

    def namesakes(self, path: str) -> list[str]:
        """Return the paths of the files of the same name elsewhere, the likeliest first."""
        parts = path.split("/")
        stem, kind = parts[-1].removesuffix(ending(path)), ending(path)
        names = [stem + each for each in _SCRIPTS] if kind in _SCRIPTS else [parts[-1]]
        found = [each for name in names for each in self._by_name.get(name, []) if each != path]
        self.spend(500 * len(found))
        wanted = set(parts)
        found.sort(key=lambda each: (-len(wanted & set(each.split("/"))), each))
        self._learn(found[:_LIKELIEST])
        return found[:_LIKELIEST]

    def likest(self, path: str) -> str:
        """Return the path that was meant by one under which there is no file; or nothing."""
        from difflib import get_close_matches  # noqa: PLC0415 (hardly ever needed)

        same = self.namesakes(path)
        known = [each for paths in self._by_name.values() for each in paths]
        return next(iter(same or get_close_matches(path, known[:_MOST_COMPARED], 1)), "")

    def others(self, path: str, line: str, near: Sequence[str] = ()) -> list[str]:
        """Return the paths of the files of the same kind that have a text in them, at most three.

        Args:
            path: whose kind is meant; itself is left out.
            line: the text.
            near: of these one must be there as well; then there may be more files.

        Files that are larger than a source usually is are not looked at, nor memories.
        """
        kind = ending(path)
        endings = _SCRIPTS if kind in _SCRIPTS else (kind,)
        wanted, *more = (each.encode("utf-8", "surrogatepass") for each in (line, *near))
        found = []
        self.spend(1000)
        for other, data in self._of_kind(endings).items() if kind else ():
            self.spend(100 + len(data) // 6)
            if (
                other != path
                and wanted in data
                and (not more or any(each in data for each in more))
            ):
                found.append(other)
                if len(found) > (_MOST if more else 2):
                    break
        self._learn(found)
        return [each for each in found if not self.lacks(each)]

    def _of_kind(self, endings: tuple[str, ...]) -> dict[str, bytes]:
        if endings not in self._kinds:
            self._kinds[endings] = found = {}
            left = _MOST_BYTES
            for name in sorted(self._by_name):
                for path in self._by_name[name] if name.lower().endswith(endings) else ():
                    with suppress(OSError, MalformedFile):
                        self.spend(5000)
                        data = read_regular(os.path.join(self.root, path), _LARGEST)  # noqa: PTH118
                        left -= len(data)
                        if left >= 0:
                            found[path] = data
        return self._kinds[endings]

    @cached_property
    def _tracked(self) -> Mapping[str, Tracked] | None:
        return tracked(self.root)

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        """The files that the repository keeps: what lies beside them is no new place of code."""
        found: dict[str, list[str]] = {}
        kept = walked(self.root, self.spend) if self._tracked is None else self._tracked
        for path in kept:
            found.setdefault(path.rpartition("/")[2], []).append(path)
        return found


class Past(Sources):
    """The files as they were in a commit; only those that are asked for by their paths."""

    def __init__(self, root: Path, was: Mapping[str, Entry], times: int = 1) -> None:
        """Take a repository's top, and the files that it had then."""
        super().__init__(root, times)
        self._was = was

    def _text(self, path: str) -> str:
        if _LEADS_OUT.search(path):
            raise Outside(path)
        then = self._was.get(path, _NO_ENTRY)
        if then.mode in ("", SYMLINK):  # or it lay behind a link to a directory
            is_link = then.mode == SYMLINK
            then = self._was.get(self._real(path), _NO_ENTRY)
            if is_link and then.mode in ("", SYMLINK):
                raise Unseen("it was a link then")
        if then.mode in ("", SUBMODULE):
            raise Unreadable("there was no such file")
        self.spend(500_000)
        try:
            data = blob(self.root, then.name, MAX_FILE)
        except MalformedFile:
            raise Unseen(f"it had more than {MAX_FILE:,} bytes then") from None
        if data is None:
            raise Unseen(_NOT_GIVEN)
        return _decoded(data)

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        return {}


def _decoded(data: bytes) -> str:
    """Return a file's text; of bytes that are no UTF-8, each counts as Windows has it."""
    is_wide = data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return data.decode("utf-16" if is_wide else "utf-8-sig", _OTHER_BYTES)


def _other_bytes(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)  # noqa: S101 (nothing is encoded so)
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


_OTHER_BYTES = "aiaml-citations"
codecs.register_error(_OTHER_BYTES, _other_bytes)
