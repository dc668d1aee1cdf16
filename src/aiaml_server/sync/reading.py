"""A git repository that is there, to be read: found, examined, asked for commits and objects.

What its refs name is read from git's files where that is plain, and else asked of git: a round asks
some ten times, and each process of git takes as long as the rest of an idle round.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from aiaml_server.files import check_own
from aiaml_server.sync import address, place
from aiaml_server.sync.command import Git, GitFailed
from aiaml_server.sync.trees import parted, sizes

MAIN = "refs/heads/main"  # the branch that memories are committed to, here and at the remote
NOBODY = "AIAML"  # whom commits are by where no name is configured

_NAME = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF = re.compile(r"(HEAD|refs/[\w/.-]+)(?:\^\{commit\})?")


class Reading:
    """The repository of `base` that is ours; until this version made one, the earlier one.

    Attributes:
        base: the base directory.
        directory: git's.
        branch: the full name of the branch that memories are committed to.
        git: runs git in it.
    """

    def __init__(self, base: Path) -> None:
        self.base = base
        self.directory = base / ".git"
        self.branch = MAIN
        self.git = Git(base)

    def find(self) -> bool:
        """Name the repository, so that git looks for no other; say whether there is one."""
        directory = place.directory_of(self.base)
        if directory.is_dir():
            place.check_ours(directory)
            self._use(directory, MAIN)
            return True
        found = place.earlier(self.base)
        if not found or not found[0].is_dir():
            return False
        self._use(*found)
        return bool(self.head())

    def _use(self, directory: Path, branch: str) -> None:
        """Have git use this repository, in which it waits for no pipe, and what is ours is ours.

        Raises:
            NotOurs: something else is there.
        """
        self.directory, self.branch = directory, branch
        if check_own(directory / "aiaml", directory=True):
            for name in ("HEAD", "config"):
                check_own(directory / "aiaml" / name)
            address.clear(directory / "aiaml" / "remote")
        self.git.variables["GIT_DIR"] = str(directory)

    def head(self) -> str:
        """Return the newest commit of our branch; empty where there is none."""
        return self.name_of(f"{self.branch}^{{commit}}")

    def name_of(self, revision: str) -> str:
        """Return the object name that git understands by `revision`; empty where there is none."""
        return name_of(self.git, self.directory, revision)

    def objects(self, oids: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return what objects hold, by their names."""
        if not oids:
            return {}
        asked = b"".join(oid + b"\n" for oid in oids)
        return parted(self.git.run("cat-file", "--batch", stdin=asked))

    def small_objects(self, oids: Iterable[bytes], most: int) -> dict[bytes, bytes]:
        """Return what those hold that are there, and have no more than `most` bytes."""
        found = sizes(self.git, dict.fromkeys(oids))
        return self.objects([oid for oid, size in found.items() if size <= most])

    def said_of(self, commit: str, what: str) -> str:
        """Return what `git log` says of one commit, in a format of its own (see git-log(1))."""
        words = ("-1", "--no-show-signature", f"--format={what}", commit, "--")
        return os.fsdecode(self.git.run("log", *words)).strip()


# --- refs -----------------------------------------------------------------------------------------


def name_of(git: Git, directory: Path, revision: str) -> str:
    """Return the object name that git understands by a revision; empty where there is none.

    Raises:
        GitFailed: git could not tell.
    """
    match = _REF.fullmatch(revision)
    name = written(directory, match[1]) if match else ""
    if match and not name and _is_absent(directory, match[1]):
        return ""
    return name or quiet(git, "rev-parse", "--verify", "--quiet", revision)


def written(directory: Path, ref: str) -> str:
    """Return what the file of a ref, or HEAD, says plainly; empty where only git knows."""
    text = place.text_of(directory / ref)
    if ref == "HEAD" and text.startswith("ref: refs/heads/"):
        text = place.text_of(directory / text.removeprefix("ref: "))
    return text if _NAME.fullmatch(text) else ""


def _is_absent(directory: Path, ref: str) -> bool:
    """Whether there is no such ref for sure: no file of it and, looked at later, no packed one.

    git packs a ref before it removes its file. Where it keeps them in another way, it says so in
    the place of HEAD.
    """
    elsewhere = place.text_of(directory / "HEAD") in ("", "ref: refs/heads/.invalid")
    if ref == "HEAD" or elsewhere or os.path.lexists(directory / ref):
        return False
    try:
        packed = (directory / "packed-refs").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return f" {ref}\n" not in packed


def quiet(git: Git, verb: str, *words: str) -> str:
    """Ask for a name that may not be there; empty where it is not.

    Raises:
        GitFailed: git could not tell.
    """
    try:
        return os.fsdecode(git.run(verb, *words)).strip()
    except GitFailed as error:
        if error.output:
            raise
        return ""
