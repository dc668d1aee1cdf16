"""Where the files of an agent are, and that nothing outside of the repository is touched.

No git and no code of the repository runs here.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date, datetime
from pathlib import Path

from aiaml_server.errors import Busy, DiskError, MalformedFile, NoStateDirectory
from aiaml_server.files import hold_lock, make_own_directory, read_regular
from aiaml_server.identity import state_directory
from aiaml_server.toolsets.failures import disk_error, shorten
from aiaml_server.toolsets.owners import foreign_owner
from aiaml_server.toolsets.sessions.errors import (
    InvalidAgentName,
    InvalidContent,
    InvalidDate,
    MalformedLog,
    NotARepository,
    OutsideRepository,
)
from aiaml_server.toolsets.writing import clear_unfinished, replace

MAX_FILE_BYTES = 256 * 1024
LOCK_SECONDS = 10.0
MEMORY_DIRECTORY = (".github", "agent-memory")
LOGS, SUMMARY, SCHEMA = "logs", "_summary.md", "_schema.md"

_AGENT_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_WINDOWS_DEVICES = re.compile(r"(?i)(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?")


def check_agent_name(name: str) -> str:
    """Return the name if it can be that of a directory on every system.

    Raises:
        InvalidAgentName: it cannot.
    """
    if _WINDOWS_DEVICES.fullmatch(name):
        raise InvalidAgentName(f"agent_name {_quoted(name)} is the name of a device on Windows")
    if not _AGENT_NAME.fullmatch(name) or name.endswith("."):
        raise InvalidAgentName(
            f"agent_name {_quoted(name)} must be 1 to 64 letters, digits, dots, dashes or "
            "underscores, such as 'aristotle'"
        )
    return name


def check_date(text: str | None) -> str:
    """Return the date as YYYY-MM-DD; without a text, today in the local time zone.

    Raises:
        InvalidDate: it is not a real date.
    """
    if text is None:
        return datetime.now().astimezone().date().isoformat()
    if _is_date(text):
        return text
    raise InvalidDate(
        f"date {_quoted(text)} must be a real date as YYYY-MM-DD, such as '2025-01-20'"
    )


def _is_date(text: str) -> bool:
    with suppress(ValueError):
        return bool(_DATE.fullmatch(text) and date.fromisoformat(text))
    return False


def find_repository(path: str | os.PathLike[str]) -> Path:
    """Return the top of the git work tree that contains a path.

    Raises:
        NotARepository: there is none, or the path does not exist.
    """
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 (links are not resolved)
    if not os.path.lexists(absolute):
        raise NotARepository(f"{absolute} does not exist")
    for directory in (absolute, *absolute.parents):
        if git_directory(directory):
            return directory
    raise NotARepository(f"{absolute} is in no git repository")


def git_directory(root: Path) -> Path | None:
    """Return the git directory of a work tree, or None if `root` is not the top of one."""
    path = root / ".git"
    try:
        if path.is_file():  # a submodule or a linked worktree
            text = read_regular(str(path), 4096).decode("utf-8", "surrogateescape").strip()
            if not text.startswith("gitdir: "):
                return None
            path = root / text.removeprefix("gitdir: ")
        return path if os.path.lexists(path / "HEAD") else None
    except (OSError, MalformedFile):
        return None


def list_agents(root: Path) -> list[str]:
    """Return the names of all agents that have a directory in a repository."""
    with suppress(FileNotFoundError, NotADirectoryError):
        directory = root.joinpath(*MEMORY_DIRECTORY)
        return sorted(path.name for path in directory.iterdir() if path.is_dir())
    return []


class AgentDirectory:
    """The files of one agent in one repository.

    Attributes:
        root: the top of the repository.
        agent: the agent's name.
        path: the agent's directory.
    """

    def __init__(self, root: str, agent: str) -> None:
        """Check the names and the way to the directory; nothing is created.

        Args:
            root: the absolute path of the top of a git work tree.
            agent: the agent's name.

        Raises:
            NotARepository, OutsideRepository, InvalidAgentName: as their docstrings say.
        """
        if not Path(root).is_absolute() or "\0" in root:
            raise OutsideRepository(f"repo_root {_quoted(root)} must be an absolute path")
        self.agent = check_agent_name(agent)
        self.root = Path(root)
        if _is_link(self.root):
            real = _quoted(os.path.realpath(root))
            raise OutsideRepository(f"repo_root {_quoted(root)} is a link; give {real} instead")
        if git_directory(self.root) is None:
            raise NotARepository(
                f"repo_root {_quoted(root)} is not the top of a git work tree; "
                "`git rev-parse --show-toplevel` in it prints that"
            )
        self.path = self.root.joinpath(*MEMORY_DIRECTORY, agent)
        parts = (*MEMORY_DIRECTORY, agent, LOGS)
        self._parents = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        if reason := foreign_owner(self.root, (".git", *self._parents)):
            raise OutsideRepository(reason)
        self._check_parents()

    def log_name(self, day: str) -> str:
        """Return the name of a date's log, relative to `path`."""
        return f"{LOGS}/{day}.md"

    def log_names(self) -> list[str]:
        """Return the names of all markdown files in the directory of the logs."""
        return [f"{LOGS}/{path.name}" for path in sorted((self.path / LOGS).glob("*.md"))]

    def dates(self) -> list[str]:
        """Return the dates of the logs, newest first."""
        stems = [Path(name).stem for name in self.log_names()]
        return [stem for stem in reversed(stems) if _is_date(stem)]

    def other_agents(self) -> list[str]:
        """Return the names of the other agents of this repository."""
        return [name for name in list_agents(self.root) if name != self.agent]

    def read(self, name: str) -> bytes | None:
        """Return a file's content, or None if there is no file.

        Raises:
            OutsideRepository: it is a link.
            MalformedLog: it is no regular file, or too large.
            DiskError: it cannot be read.
        """
        path = self.path / name
        try:
            if path.is_symlink():
                raise OutsideRepository(f"{name} is a link, which could lead outside")
            return read_regular(str(path), MAX_FILE_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except MalformedFile as error:
            raise MalformedLog(name, 1, str(error)) from error
        except OSError as error:
            raise disk_error(name, error) from error

    def write(self, name: str, data: bytes) -> None:
        """Replace a whole file durably; a reader sees the old or the new content.

        Raises:
            InvalidContent: it would be larger than `MAX_FILE_BYTES`.
            DiskError: the disk refused, and the old file is still there.
        """
        if len(data) > MAX_FILE_BYTES:
            raise InvalidContent(
                f"content: {name} would have {len(data):,} bytes, and the limit is "
                f"{MAX_FILE_BYTES:,}; shorten it, or use the log of another date"
            )
        path = self.path / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace(path, data)
        except OSError as error:
            raise disk_error(name, error) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of this agent, and remove what a killed writer left.

        Raises:
            Busy: another process held the lock for `LOCK_SECONDS`.
            DiskError: the lock cannot be created.
        """
        with hold_lock(self._lock_path(), LOCK_SECONDS) as hold:
            if hold.problem:
                raise DiskError(f"{self.agent}: {hold.problem}") from hold.problem
            if not hold.acquired:
                raise Busy(f"another process writes for {self.agent}; try again")
            self._check_parents()
            for directory in (self.path, self.path / LOGS):
                clear_unfinished(directory)
            yield

    def _lock_path(self) -> Path:
        """Return a path in the git directory, where `git status` does not show it.

        The `.git` of a linked worktree leads to another directory, where nothing is created; its
        lock is in the user's state directory.
        """
        git = self.root / ".git"
        try:
            is_directory = git.is_dir() and not _is_link(git)
            directory = git / "aiaml-sessions" if is_directory else state_directory() / "sessions"
            make_own_directory(directory)
        except (NoStateDirectory, OSError) as error:
            raise DiskError(f"the lock cannot be created: {error}") from error
        return directory / f"{self.agent.lower()}.lock"

    def _check_parents(self) -> None:
        """Raise an error if a directory on the way to the logs is a link, or no directory."""
        for name in self._parents:
            path = self.root / name
            if not os.path.lexists(path):
                return
            if _is_link(path):
                raise OutsideRepository(f"{name} is a link, which could lead outside")
            if not path.is_dir():
                raise DiskError(f"{name} is not a directory")


def _quoted(text: str) -> str:
    return ascii(shorten(text)).replace(r"\u2026", "…")


def _is_link(path: Path) -> bool:
    """Return whether a path is a link, or on Windows any reparse point."""
    try:
        status = path.lstat()
    except (OSError, ValueError):
        return False
    return stat.S_ISLNK(status.st_mode) or bool(getattr(status, "st_file_attributes", 0) & 0x400)
