"""Where an agent's files lie in a repository, and nothing outside of it.

The repository is never asked: no git runs, and no hook or code of it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime
from pathlib import Path

from aiaml_server.errors import MalformedFile, NoStateDirectory
from aiaml_server.files import Lock, make_own_directory, read_regular, sync_directory
from aiaml_server.storage.derived import state_directory
from aiaml_server.toolsets.failures import disk_error, shorten
from aiaml_server.toolsets.owners import foreign_owner
from aiaml_server.toolsets.sessions.failures import (
    Busy,
    DiskError,
    InvalidAgentName,
    InvalidContent,
    InvalidDate,
    MalformedLog,
    NotARepository,
    OutsideRepository,
)
from aiaml_server.toolsets.writing import clear_unfinished, replace

MAX_FILE = 1024 * 1024  # bytes
LOCK_SECONDS = 10.0
DIRECTORY = (".github", "agent-memory")
LOGS, SUMMARY, SCHEMA = "logs", "_summary.md", "_schema.md"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DEVICES = {"con", "prn", "aux", "nul"} | {
    f"{kind}{n}" for kind in ("com", "lpt") for n in range(10)
}


def check_agent(name: str) -> str:
    """Return an agent's name that can be a directory's.

    Raises:
        InvalidAgentName: it has other characters than it may, or is that of a device.
    """
    if name.partition(".")[0].lower() in _DEVICES:
        raise InvalidAgentName(f"agent_name {_shown(name)} is the name of a device on Windows")
    if not _NAME.fullmatch(name) or name.endswith("."):
        raise InvalidAgentName(
            f"agent_name {_shown(name)} must be 1 to 64 letters, digits, dots, dashes or "
            "underscores, such as 'aristotle'"
        )
    return name


def check_date(text: str | None) -> str:
    """Return a date as the name of a log has it; today's where none is given.

    Raises:
        InvalidDate: it is no real date.
    """
    if text is None:
        return datetime.now().astimezone().date().isoformat()
    with suppress(ValueError):
        if _DATE.fullmatch(text) and date.fromisoformat(text):
            return text
    raise InvalidDate(
        f"date {_shown(text)} must be a real date as YYYY-MM-DD, such as '2025-01-20'"
    )


def top_of(path: str | os.PathLike[str]) -> Path:
    """Return the top of the git work tree that a path lies in.

    Raises:
        NotARepository: it lies in none, or is not there.
    """
    whole = Path(os.path.abspath(path))  # noqa: PTH100 (links on the way stay)
    if os.path.lexists(whole):
        for each in (whole, *whole.parents):
            if git_directory(each):
                return each
        raise NotARepository(f"{whole} is in no git repository")
    raise NotARepository(f"{whole} is not there")


def agents(root: Path) -> list[str]:
    """Return the names of the directories that agents have in a repository."""
    directory = root.joinpath(*DIRECTORY)
    with suppress(FileNotFoundError, NotADirectoryError):
        return sorted(each.name for each in directory.iterdir() if each.is_dir())
    return []


def _shown(text: str) -> str:
    return ascii(shorten(text))


def git_directory(root: Path) -> Path | None:
    """Return the git directory of a work tree's top; None where it is none."""
    dot = root / ".git"
    try:
        if dot.is_file():  # a submodule, or a worktree of another repository
            line = read_regular(str(dot), 4096).decode("utf-8", "surrogateescape").strip()
            if not line.startswith("gitdir: "):
                return None
            dot = root / line.removeprefix("gitdir: ")
        return dot if (dot / "HEAD").is_file() or (dot / "HEAD").is_symlink() else None
    except (OSError, MalformedFile):
        return None


def check_root(root: str) -> None:
    """See that a repository's top is no link; the way to it may have some.

    Raises:
        OutsideRepository: it is one.
    """
    with suppress(OSError, ValueError):
        if _is_link(Path(root).lstat()):
            raise OutsideRepository(
                f"repo_root {_shown(root)} is a link; it could lead elsewhere: name the "
                f"repository itself, {_shown(os.path.realpath(root))}"
            )


class Place:
    """One agent's files in one repository."""

    def __init__(self, root: str, agent: str, roots: Sequence[str] = ()) -> None:
        """Find the place; nothing is made.

        Raises:
            NotARepository, OutsideRepository, InvalidAgentName: see there.
        """
        if not Path(root).is_absolute() or "\0" in root:
            raise OutsideRepository(f"repo_root {_shown(root)} must be an absolute path")
        self.agent = check_agent(agent)
        self.root = Path(os.path.realpath(root))
        if roots and not any(self.root.is_relative_to(os.path.realpath(each)) for each in roots):
            raise OutsideRepository(
                f"repo_root {_shown(root)} is in none of the directories of AIAML_REPOSITORIES"
            )
        if git_directory(self.root) is None:
            raise NotARepository(
                f"repo_root {_shown(root)} is not the top of a git work tree; `git rev-parse "
                "--show-toplevel` in it names that"
            )
        below = (*DIRECTORY, agent, LOGS)
        self._below = ["/".join(below[:count]) for count in range(1, len(below) + 1)]
        named = any(os.path.realpath(each) == str(self.root) for each in roots)
        if not named and (whose := foreign_owner(self.root, (".git", *self._below))):
            raise OutsideRepository(whose)
        self.directory = self.root.joinpath(*DIRECTORY, agent)
        self.shown = Path(root).joinpath(*DIRECTORY, agent)
        self._check_links()
        self._check_case()

    def others(self) -> list[str]:
        """Return the names of the other agents that have a memory here."""
        return [each for each in agents(self.root) if each != self.agent]

    def _check_case(self) -> None:
        """See that no other name is the same on a disk that does not tell cases apart.

        Raises:
            InvalidAgentName: one is.
        """
        there = agents(self.root)
        for each in there if self.agent not in there else ():
            if each.lower() == self.agent.lower():
                raise InvalidAgentName(
                    f"agent_name {_shown(self.agent)} differs by case only from {each!r}, which "
                    f"has a memory here; use {each!r}"
                )

    def _check_links(self) -> None:
        """See that no directory on the way to the logs is a link.

        Raises:
            OutsideRepository: one is.
            DiskError: something else has its name.
        """
        for each in self._below:
            try:
                status = (self.root / each).lstat()
            except FileNotFoundError:
                return
            except OSError as error:
                raise disk_error(each, error) from error
            if _is_link(status):
                raise OutsideRepository(f"{each} is a link; it could lead outside")
            if not stat.S_ISDIR(status.st_mode):
                raise DiskError(f"{each} is in the way: it is not a directory")

    def log(self, day: str) -> str:
        """Return the name of a date's log, below the agent's directory."""
        return f"{LOGS}/{day}.md"

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file; None where there is none.

        Raises:
            OutsideRepository: it is a link.
            DiskError: it cannot be read.
        """
        path = self.directory / name
        try:
            if path.is_symlink():
                raise OutsideRepository(f"{name} is a link; it could lead outside")
            return read_regular(str(path), MAX_FILE)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except MalformedFile as error:
            raise MalformedLog(name, 1, str(error)) from error
        except OSError as error:
            raise disk_error(name, error) from error

    def log_names(self) -> list[str]:
        """Return the names of what lies where logs do and is markdown, below the directory."""
        try:
            names = os.listdir(self.directory / LOGS)  # noqa: PTH208
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise disk_error(LOGS, error) from error
        return sorted(f"{LOGS}/{each}" for each in names if each.endswith(".md"))

    def dates(self) -> list[str]:
        """Return the dates of the logs, newest first."""
        found = []
        for name in self.log_names():
            with suppress(InvalidDate, OSError):
                day = check_date(Path(name).stem)
                if stat.S_ISREG((self.directory / name).lstat().st_mode):
                    found.append(day)
        return found[::-1]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only one who writes for this agent, and clear away what a killed one left.

        Raises:
            Busy: another process holds the lock for too long.
        """
        with Lock(self._lock()).held(LOCK_SECONDS) as hold:
            if hold.problem:
                raise DiskError(f"{self.agent}: {hold.problem}") from hold.problem
            if not hold.acquired:
                raise Busy(f"another process writes for {self.agent}; try again")
            self._check_links()
            self._check_case()
            for directory in (self.directory, self.directory / LOGS):
                clear_unfinished(directory)
            yield

    def _lock(self) -> Path:
        """Return where the lock lies: in the git directory, which git status does not show.

        A `.git` that leads elsewhere, as a worktree's does, may lead into any repository, where
        nothing is made. Then the lock lies in the user's state directory, as it does where the git
        directory cannot be written to.
        """
        name = f"{self.agent.lower()}.lock"
        dot = self.root / ".git"
        with suppress(OSError):
            status = dot.lstat()
            if stat.S_ISDIR(status.st_mode) and not _is_link(status):
                make_own_directory(dot / "aiaml-sessions")
                return dot / "aiaml-sessions" / name
        try:
            place = state_directory() / "sessions"
            make_own_directory(place)
        except (NoStateDirectory, OSError) as error:
            raise DiskError(f"no place for a lock: {error}") from error
        return place / name

    def write(self, name: str, data: bytes) -> None:
        """Put a whole file in place, durably; a reader sees the old or the new one.

        Raises:
            InvalidContent: it is larger than what is read.
            DiskError: the disk refused; the old file is there.
        """
        if len(data) > MAX_FILE:
            raise InvalidContent(
                f"content: with it {name} would have {len(data):,} bytes, and a file has at most "
                f"{MAX_FILE:,}; shorten it, or begin the log of another date"
            )
        path = self.directory / name
        try:
            missing = [each for each in (path.parent, *path.parent.parents) if not each.exists()]
            for each in reversed(missing):
                each.mkdir(exist_ok=True)
                sync_directory(each.parent)
            replace(path, data)
        except OSError as error:
            raise disk_error(name, error) from error

    def write_new(self, files: Mapping[str, bytes]) -> None:
        """Put files in place that are not there yet: all of them, or none.

        Raises:
            DiskError: the disk refused.
        """
        for name, data in files.items():
            try:
                self.write(name, data)
            except DiskError:
                for each in files:
                    with suppress(OSError):
                        (self.directory / each).unlink()
                    if each == name:
                        break
                raise


def _is_link(status: os.stat_result) -> bool:
    """Say whether the system would lead elsewhere; on Windows, by any reparse point."""
    return stat.S_ISLNK(status.st_mode) or bool(getattr(status, "st_file_attributes", 0) & 0x400)
