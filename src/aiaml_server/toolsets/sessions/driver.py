"""Whom git asks to merge logs: named by `.gitattributes`, and told by each clone's configuration.

Git's configuration is not cloned. Where git does not know a driver, it merges by lines itself, and
marks what both sides have added at one place (https://git-scm.com/docs/gitattributes, "merge").
"""

from __future__ import annotations

import os
import re
import shlex
from contextlib import suppress
from pathlib import Path

from aiaml_server.clients.launch import command
from aiaml_server.errors import MalformedFile
from aiaml_server.files import read_regular
from aiaml_server.storage.programs import find
from aiaml_server.toolsets.sessions.failures import DiskError, OutsideRepository
from aiaml_server.toolsets.sessions.history import ask_git
from aiaml_server.toolsets.sessions.place import git_directory
from aiaml_server.toolsets.sessions.remarks import Remark

ATTRIBUTES = ".gitattributes"
DRIVER = "aiaml-sessions"
MARKED = 5  # exit code of a merge that left a conflict; no Python or shell that fails has it
UNKNOWN = (
    f"by {ATTRIBUTES}, git asks {DRIVER} to merge logs, which this clone cannot: what two branches "
    "add at one place is marked as a conflict; `aiaml sessions setup`, by a person, mends it"
)
_PROGRAM = re.compile(r"'([^']+)'|([^'\s]+)")
_KEY = f"merge.{DRIVER}"
_SECTION = re.compile(rf'^[ \t]*\[merge "{DRIVER}"\]'.encode(), re.MULTILINE | re.IGNORECASE)
_MOST = 1024 * 1024  # bytes of a file in which it is looked for


def asked_for(root: Path) -> int:
    """Return the line in which `.gitattributes` names the driver for logs; 0 where none does."""
    for number, line in enumerate(_read(root / ATTRIBUTES).splitlines(), 1):
        said, _, _ = line.partition(b"#")
        if b"agent-memory/" in said and f"merge={DRIVER}".encode() in said.split():
            return number
    return 0


def words() -> str:
    """Return what git's shell runs: this program, and git's own merge where it is gone.

    A driver that fails leaves our side alone in the file, without a mark (gitattributes, "Defining
    a custom merge driver"). So what failed, and did not say that it marked a conflict, git does.
    """
    ours = shlex.join([*command(), "sessions", "merge"])
    by_git = "git merge-file %A %O %B"
    return f"{ours} %O %A %B; case $? in 0) ;; {MARKED}) exit 1 ;; *) {by_git} ;; esac"


def told(root: Path) -> str:
    """Return what git runs here; empty where it knows nothing, or a program that is gone.

    Raises:
        DiskError: git cannot be run.
    """
    found = (ask_git(root, "config", "--get", f"{_KEY}.driver") or b"").decode("utf-8", "replace")
    program = _PROGRAM.match(found)
    return found.rstrip("\n") if program and find(program[1] or program[2]) else ""


def unknown(root: Path) -> list[Remark]:
    """Say where `.gitattributes` names the driver, and git does not know it here."""
    line = asked_for(root)
    with suppress(DiskError):  # there is no git
        if line and not told(root):
            return [Remark(line, UNKNOWN, "warning")]
    return []


def is_lacking(root: Path) -> bool:
    """Say whether the repository asks for the driver, and its configuration has none; no git runs.

    A configuration of the person's own is not looked at.
    """
    if not asked_for(root):
        return False
    directory = git_directory(root) or root
    return not _SECTION.search(_read(directory / _line(directory / "commondir") / "config"))


def _read(path: Path) -> bytes:
    """Return what a file holds; nothing where it cannot be read."""
    try:
        return read_regular(str(path), _MOST)
    except (OSError, ValueError, MalformedFile):
        return b""


def check_configuration(root: Path) -> None:
    """See that what `tell` writes to is the configuration of this very repository.

    A `.git` that leads elsewhere may lead into any: only a worktree or a submodule is taken, whose
    git directory leads back (https://git-scm.com/docs/gitrepository-layout, `gitdir`, `commondir`).

    Raises:
        OutsideRepository: it is another file, or may be another repository's.
        DiskError: git cannot be run.
    """
    dot, own = root / ".git", Path(os.path.realpath(root), ".git")
    directory = Path(os.path.realpath(git_directory(root) or dot))
    common = Path(os.path.realpath(directory / _line(directory / "commondir")))
    config = common / "config"
    if config.is_symlink():
        raise OutsideRepository(
            f"{config} is a link; it could lead outside: put the file that it leads to in its place"
        )
    if os.path.realpath(dot) != str(own):
        is_own = False
    elif directory == own:
        is_own = common == own
    elif common != directory:
        back = os.path.realpath(directory / _line(directory / "gitdir"))
        is_own = directory.parent == common / "worktrees" and back == str(own)
    else:
        found = ask_git(root, "config", "--file", str(config), "--get", "core.worktree") or b""
        back = os.path.realpath(directory / os.fsdecode(found.rstrip(b"\n")))
        is_own = bool(found) and back == str(own.parent)
    if not is_own:
        raise OutsideRepository(
            f"{dot} leads to {common}, which does not lead back, and could be another "
            "repository's: `git worktree repair` mends a worktree that was moved"
        )


def _line(path: Path) -> str:
    """Return the line that a file of git's holds; empty where it cannot be read."""
    return os.fsdecode(_read(path).partition(b"\0")[0]).strip()


def tell(root: Path) -> None:
    """Have git ask this installation, in this clone.

    Raises:
        DiskError: git cannot be run, or refuses.
    """
    for key, value in (("name", "logs of agents, section by section"), ("driver", words())):
        if ask_git(root, "config", "--local", f"{_KEY}.{key}", value) is None:
            raise DiskError(f"git cannot write its configuration of {root}")
