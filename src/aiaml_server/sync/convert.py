"""A repository of our own: made where none is, with what an earlier version has committed.

Earlier versions committed to a branch `aiaml` in a repository that they shared with the person.
Where nobody but sync ever used it, it becomes ours; else it stays the person's, as it is, and ours
begins beside it with a copy of that branch. A kill at any moment leaves a state from which the next
round goes on.
"""

from __future__ import annotations

import logging
import os
import re
from contextlib import suppress
from pathlib import Path

from aiaml_server.errors import MalformedFile
from aiaml_server.files import (
    check_own,
    make_own_directory,
    read_own,
    read_regular,
    remove_own,
    replace_atomic,
)
from aiaml_server.sync import place
from aiaml_server.sync.command import Git, GitFailed
from aiaml_server.sync.forgetting.erasure import present
from aiaml_server.sync.forgetting.rewrite import FILE
from aiaml_server.sync.messages import BEGIN, REASON
from aiaml_server.sync.place import EARLIER, HIDDEN
from aiaml_server.sync.reading import MAIN, name_of, quiet
from aiaml_server.sync.status import Busy
from aiaml_server.sync.trees import tree
from aiaml_server.sync.union import is_memory

log = logging.getLogger(__name__)

_MOST = 16 * 1024 * 1024  # bytes of a file of git's, or of a note
_SECONDS = 3600.0  # for a copy of a whole history
_OURS = (".gitignore", ".gitattributes", os.fsdecode(FILE))
_UNFINISHED = (
    *("index.lock", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge"),
    *("rebase-apply", "BISECT_LOG", "worktrees", "modules", "info/sparse-checkout"),
)  # of a git at work, or of a person who uses more of git than we do
_NOTES = ("erased", "erased-now", "erased-told", "released", "remote")
_KEPT = ("refs/aiaml/remote", "refs/aiaml/joining", "refs/aiaml/unpushed")
_BY_US = (REASON.encode(), b"fast-import")  # in what git's logs say


_UNREADABLE = (
    "see what `git fsck` says there; or move `.git` elsewhere, and the history begins anew. "
    "Memories are files, and none is touched."
)


def convert(git: Git, base: Path) -> bool:
    """Make an earlier version's repository ours, if it is nobody else's; say whether it is.

    Raises:
        GitFailed: git could not.
        OSError: the disk refused.
    """
    directory = base / ".git"
    if not place.is_made_by_us(directory):
        return False
    git.variables["GIT_DIR"] = str(directory)
    try:
        if not _is_free(git, directory):
            return False
    except GitFailed as error:
        log.info("What is in %s cannot be told, so it is left as it is: %s", directory, error)
        return False
    tip = name_of(git, directory, EARLIER)
    if tip != name_of(git, directory, MAIN):
        git.run("update-ref", "-m", BEGIN, MAIN, tip)
    git.run("config", "core.bare", "true")  # from here on it is ours
    log.info("The repository in %s is the memories' alone now, and bare", directory)
    return True


def _is_free(git: Git, directory: Path) -> bool:
    """Whether nothing but sync ever used the repository of an earlier version."""
    if any(os.path.lexists(directory / name) for name in (*_UNFINISHED, "commondir")):
        return False
    if place.text_of(directory / "HEAD") != f"ref: {MAIN}":
        return False
    names = git.run("for-each-ref", "--format=%(refname)").decode().split()
    theirs = {*names} - {EARLIER, MAIN}
    ours = ("refs/aiaml/", "refs/remotes/")
    if EARLIER not in names or not all(name.startswith(ours) for name in theirs):
        return False
    logs = b"".join(_log(directory, name) for name in ("HEAD", MAIN, EARLIER))
    if not all(line.partition(b"\t")[2].startswith(_BY_US) for line in logs.splitlines()):
        return False
    staged = git.run("ls-files", "-t", "-z").split(b"\0")
    if any(not _may_be_ours(line) for line in staged if line):
        return False
    return MAIN not in names or not git.run("rev-list", "--max-count=1", MAIN, f"^{EARLIER}")


def _may_be_ours(line: bytes) -> bool:
    """Whether what `git ls-files -t` says of a file tells of no person: S is what we hid."""
    tag, _, path = line.partition(b" ")
    return tag == b"S" or (tag == b"H" and (is_memory(path) or os.fsdecode(path) in _OURS))


def finish(git: Git, directory: Path) -> None:
    """Take away what an earlier version has left, or leaves again, in a repository that is ours.

    A server of an earlier version that still runs begins its branch anew, and puts ours in its
    place; so each round looks.
    """
    old = name_of(git, directory, EARLIER)
    index = directory / "index"
    if not old and not os.path.lexists(index):
        return
    if old and not _take_up(git, directory, old):
        return
    exclude = directory / "info" / "exclude"
    if check_own(exclude):
        text = read_own(exclude, _MOST)
        if HIDDEN in text:
            replace_atomic(exclude, text.replace(HIDDEN, b""), 0o600)
    for name in ("aiaml/moves", "aiaml/checked-out", "logs/HEAD", "COMMIT_EDITMSG", "ORIG_HEAD"):
        remove_own(directory / name)
    remove_own(index)  # the last, by which it is known that there is more to do


def _take_up(git: Git, directory: Path, old: str) -> bool:
    """Have our branch go on from the earlier one, and that one gone; say whether it could be."""
    ours = name_of(git, directory, MAIN)
    if ours and ours != old and quiet(git, "rev-list", "--max-count=1", ours, f"^{old}"):
        if quiet(git, "rev-list", "--max-count=1", old, f"^{ours}"):
            return False  # both went on; the earlier version takes up ours at its next round
    elif ours != old:
        git.run("update-ref", "-m", BEGIN, MAIN, old)
    its, log_of_ours = _log(directory, EARLIER), _log(directory, MAIN)
    if not log_of_ours.endswith(its):
        replace_atomic(directory / "logs" / MAIN, _in_order(its, log_of_ours), 0o600)
    git.run("update-ref", "-d", EARLIER, old)
    return True


def _in_order(ours: bytes, checked_out: bytes) -> bytes:
    """Put the log of our branch after that of what was checked out until our branch began."""
    lines = ours.splitlines(keepends=True)
    before = checked_out.splitlines(keepends=True)
    if not lines or not lines[0].endswith(b"\t" + BEGIN.encode() + b"\n"):
        return ours
    start = lines[0].split(b" ")[1]
    ends = [n for n, line in enumerate(before, 1) if line.split(b" ")[1:2] == [start]]
    return b"".join(before[: ends[-1] if ends else 0]) + ours


def _log(directory: Path, name: str) -> bytes:
    return place.bytes_of(directory / "logs" / name, _MOST)


def create(git: Git, base: Path, directory: Path) -> None:
    """Make our repository in `directory`, with what an earlier one in the base directory has.

    Raises:
        Busy: that one cannot be read.
        GitFailed: git could not.
        OSError: the disk refused.
    """
    new = directory.with_name(f"{directory.name}.new")  # takes its name when it is whole
    remove_own(new)  # a link, too: git would make its repository where that leads
    earlier = place.earlier(base)
    configured = place.config_of(earlier[0]) if earlier else ""
    is_256 = re.search(r"(?mi)^[ \t]*objectformat[ \t]*=[ \t]*sha256", configured)
    words = ["--object-format=sha256"] if is_256 else []
    git.variables["GIT_DIR"] = str(new)  # so that it looks into no other
    git.run("init", "--quiet", "--bare", "--template=", *words)
    git.run("config", "include.path", "aiaml/remote")
    if directory.name == place.BESIDE:  # so that the person's git sees nothing of it
        replace_atomic(new / ".gitignore", b"*\n", 0o600)
    if earlier:
        _bring_over(git, base, *earlier, new)
    new.rename(directory)


def _bring_over(git: Git, base: Path, directory: Path, branch: str, new: Path) -> None:
    """Copy what an earlier version committed and noted; nothing of it is changed."""
    its, _ = place.git_directories(base / ".git")
    git.variables["GIT_DIR"] = str(its)
    try:
        tip = name_of(git, directory, branch)
        if not tip:  # then what a person has checked out, if that has memories
            tip = quiet(git, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
            if not tip or not tree(git, tip):
                return
        kept = {name: oid for name in _KEPT if (oid := name_of(git, directory, name))}
        asked = "".join(f"{oid}\n" for oid in dict.fromkeys((tip, *kept.values())))
        pack = str(new / "objects" / "pack" / "pack")
        git.run("pack-objects", "--quiet", "--revs", pack, stdin=asked.encode(), seconds=_SECONDS)
        who = {key: quiet(git, "config", "--local", key) for key in ("user.name", "user.email")}
    except GitFailed as error:
        sentence = f"the repository in {directory} cannot be read: {error}"
        raise Busy(sentence, _UNREADABLE) from error
    git.variables["GIT_DIR"] = str(new)
    steps = "".join(f"create {name} {oid}\n" for name, oid in {MAIN: tip, **kept}.items())
    git.run("update-ref", "-m", BEGIN, "--stdin", stdin=steps.encode())
    log_of_ours = _in_order(_log(directory, branch), _log(directory, "HEAD"))
    replace_atomic(new / "logs" / MAIN, _known(git, log_of_ours), 0o600)
    make_own_directory(new / "aiaml")
    for name in _NOTES:
        with suppress(OSError, MalformedFile):
            data = read_regular(str(directory / "aiaml" / name), _MOST)
            replace_atomic(new / "aiaml" / name, data, 0o600)
    for key, value in who.items():
        if value:
            git.run("config", key, value)


def _known(git: Git, log_of_ours: bytes) -> bytes:
    """Return the lines of a log whose commits are there; git complains of others."""
    lines = log_of_ours.splitlines(keepends=True)
    commits = {commit for line in lines for commit in line.split(b" ")[:2]}
    there = present(git, commits) | {commit for commit in commits if not commit.strip(b"0")}
    return b"".join(line for line in lines if there.issuperset(line.split(b" ")[:2]))
