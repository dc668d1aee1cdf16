"""The git repository of the base directory: made, kept in order, asked, and written to."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from aiaml_server.errors import UnsafePath
from aiaml_server.files import (
    TEMPORARY_SUFFIX,
    check_own,
    make_directory,
    make_own_directory,
    open_private,
)
from aiaml_server.storage.derived import folder, name_of
from aiaml_server.storage.sqlite import files_of
from aiaml_server.storage.store import MAX_FILE
from aiaml_server.sync import convert, place, stream
from aiaml_server.sync.command import GitFailed
from aiaml_server.sync.disk import in_chunks
from aiaml_server.sync.forgetting.erasure import Erasure
from aiaml_server.sync.messages import GO_ON_FROM_PUSHED
from aiaml_server.sync.reading import NOBODY, Reading
from aiaml_server.sync.seen import MARKER, Seen
from aiaml_server.sync.stream import Step
from aiaml_server.sync.theirs import Theirs
from aiaml_server.sync.trees import Difference, changes, empty_tree, listed, pairs_of, sizes, tree
from aiaml_server.sync.union import Copy, Entry, is_memory, renamed
from aiaml_server.sync.worktree import Unfit, object_name, read

log = logging.getLogger(__name__)

JOINING = "refs/aiaml/joining"  # what the files are being brought up to
REMOTE = "refs/aiaml/remote"  # the remote's branch as last seen
AT_ONCE = 1000  # files that are brought in at once …
AT_ONCE_BYTES = 16 * 1024 * 1024  # … and as many bytes of them, at the most
_STALE_SECONDS = 600.0  # longer than any command of ours runs on this machine
_NOWHERE = "aiaml@localhost"
_CRUD = r"[<>\x00-\x1f]"  # what git takes out of a name

_IGNORED = f"""\
# What AIAML keeps beside the memories; git needs none of it.
.lock
.sync.lock
.sync-status.json*
.sync-forget*
.keep-local
.git.new/
.index/
.*{TEMPORARY_SUFFIX}
{MARKER}
"""
_EXACT = "files/*.md -text -filter -ident !eol !working-tree-encoding\n"
_OWN_FILES = {".gitignore": _IGNORED, ".gitattributes": _EXACT}


class Repository(Reading):
    """The repository in `base`: made where there is none, and changed."""

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        self._adopted = 0  # the number of its directory
        self._looked = False  # for a join that another process did not finish
        self._identity = ""
        self._configured: list[tuple[str, str, str]] | None = None  # scope, key, value
        self.erasure = Erasure(self.git, self.directory)
        self._record: Seen | None = None
        self._listed: tuple[str, dict[bytes, Entry]] = ("", {})
        self._made: tuple[str, str, Difference] = ("", "", {})
        self._past: tuple[str, set[tuple[bytes, bytes]]] = ("", set())

    # --- setting up -----------------------------------------------------------------------------

    def prepare(self) -> None:
        """Create what is missing, and clear away what a dead git has left.

        Raises:
            NotOurs: something else has its place, or its history began elsewhere.
            Busy: an earlier version's repository cannot be read.
        """
        directory = place.directory_of(self.base)
        if not self._adopted:
            self._check_begun_here(directory)
        if not directory.is_dir():  # also deleted under a running server
            self._create(directory)
            directory = place.directory_of(self.base)
            self._adopted = 0  # the number of one that was deleted is given to the next
        found = directory.stat().st_ino  # or replaced
        if found != self._adopted or directory != self.directory:
            self.find()
            self._adopted = found
            self._note_begun_here()
        self._clear_leftovers()
        with suppress(OSError):  # where none can be, what was seen is in memory
            if not folder(self.base).is_dir():
                folder(self.base, make=True)
        convert.finish(self.git, self.directory)
        self.erasure.load()

    def _check_begun_here(self, directory: Path) -> None:
        """See that no history that came with a directory is written to where a link leads.

        Raises:
            NotOurs: `files` is a link, and the history was not begun or used here before.
        """
        files = self.base / "files"
        if files.is_symlink() and not self._is_begun_here(directory) and self.find():
            what = f"of a history that was begun elsewhere, and {files} is a link"
            raise UnsafePath(self.directory, what)

    def _is_begun_here(self, directory: Path) -> bool:
        with suppress(OSError):
            return os.path.lexists(directory / "aiaml" / name_of(directory))
        return False

    def _note_begun_here(self) -> None:
        """Leave a name in it that nobody else can make: another directory has another one."""
        with suppress(OSError):
            make_own_directory(self.directory / "aiaml")
            mark = self.directory / "aiaml" / name_of(self.directory)
            os.close(open_private(str(mark), os.O_CREAT | os.O_WRONLY))

    def _create(self, directory: Path) -> None:
        make_directory(self.base)
        try:
            is_converted = convert.convert(self.git, self.base)
        except GitFailed:  # perhaps for what a git has left that died at it
            self.directory = self.base / ".git"
            self._clear_leftovers()
            is_converted = convert.convert(self.git, self.base)
        if is_converted:
            return
        if not place.earlier(self.base):
            for name, text in _OWN_FILES.items():
                path = self.base / name
                with (
                    suppress(FileExistsError),
                    open(path, "x", encoding="utf-8", opener=open_private) as file,
                ):
                    file.write(text)
        convert.create(self.git, self.base, directory)
        log.info("Created a git repository in %s", self.base)

    def find(self) -> bool:
        """Name the repository, so that git looks for no other; say whether there is one."""
        if not super().find():
            return False
        self.erasure = Erasure(self.git, self.directory)
        return True

    def _clear_leftovers(self) -> None:
        for path in self._leftovers():
            with suppress(OSError):
                if time.time() - path.lstat().st_mtime > _STALE_SECONDS:
                    path.unlink()
                    log.warning("Removed %s, left by a git that died", path)

    def _leftovers(self) -> Iterator[Path]:
        """Yield what a git at work has, and one that died leaves: locks and unfinished files."""
        for directory, starts, ends, depth in (
            (self.directory, "fast_import_crash_", ".lock", 1),
            (self.directory / "refs", (), ".lock", None),
            (self.directory / "aiaml", (), ".lock", None),
            (self.directory / "objects" / "pack", "tmp_", (), None),
        ):
            if directory.is_symlink():
                continue
            for found, _, names in islice(os.walk(directory), depth):
                for name in names:
                    if name.startswith(starts) or name.endswith(ends):
                        yield Path(found, name)

    # --- asking ---------------------------------------------------------------------------------

    def ahead_behind(self) -> tuple[int, int]:
        """Count the commits that the remote, as last seen, has not; and those that we have not."""
        ours, theirs = self.head(), self.name_of(REMOTE)
        if not theirs:
            return int(self.git.run("rev-list", "--count", ours)), 0
        if ours == theirs:
            return 0, 0
        both = f"{ours}...{theirs}"
        ahead, behind = self.git.run("rev-list", "--left-right", "--count", both).split()
        return int(ahead), int(behind)

    def ahead_since(self) -> int | None:
        """Return when the oldest commit that the remote has not was made, in seconds since 1970.

        None where there is none, or none says a time that can be.
        """
        seen = [f"^{REMOTE}"] if self.name_of(REMOTE) else []
        lines = self.git.run("rev-list", "--timestamp", self.head(), *seen).splitlines()
        times = (int(line.split()[0]) for line in lines)
        return min((each for each in times if 0 < each <= time.time()), default=None)

    def differing(self, old: str, new: str) -> int:
        """Count the memories that differ between two commits; `old` may be empty for none."""
        return sum(map(is_memory, self.changes(old, new)))

    def tree(self, commit: str) -> dict[bytes, Entry]:
        """Return the memories of a commit; the last answer is kept, since it is often the same."""
        if commit and commit != self._listed[0]:
            self._listed = commit, tree(self.git, commit)
        return self._listed[1] if commit else {}

    def know(self, old: str, new: str, changed: Difference) -> None:
        """Keep in mind how a commit differs from one before, and its memories if that one's are."""
        if not all(before is None or before.is_file for before, _ in changed.values()):
            return  # under a directory, there may be more
        self._made = old, new, changed
        if old and old == self._listed[0] and not any(path.count(b"/") > 1 for path in changed):
            memories = {path: after for path, (_, after) in changed.items() if is_memory(path)}
            known: dict[bytes, Entry | None] = {**self._listed[1], **memories}
            self._listed = new, {path: each for path, each in known.items() if each}

    def versions(self, head: str) -> set[tuple[bytes, bytes]]:
        """Return each path in `files/` with the object name of each version it has had."""
        if head != self._past[0]:
            lines = self.git.run("rev-list", "--parents", head).decode().splitlines()
            commits = [(oid, parents) for oid, *parents in map(str.split, lines)]
            found: set[tuple[bytes, bytes]] = set()
            for changed in listed(self.git, set(pairs_of(self.git, commits))).values():
                there = ((name, after) for name, (_, after) in changed.items() if after)
                found.update((b"files/" + name, after.oid) for name, after in there)
            self._past = head, found
        return self._past[1]

    def changes(self, old: str, new: str) -> Difference:
        """Return what differs between two commits, of which the first may be empty for none.

        git is not asked about the last that we made.
        """
        if (old, new) == self._made[:2]:
            return self._made[2]
        return changes(self.git, old or empty_tree(new), new)

    @property
    def theirs(self) -> Theirs:
        """The person's own git beside it."""
        return Theirs(self.base, self.directory / "aiaml" / "their-index")

    @property
    def seen(self) -> Seen:
        """The record of what was seen on disk."""
        file = None
        with suppress(OSError):
            file = folder(self.base) / "seen"
        if self._record is None or self._record.file != file:
            self._record = Seen(file, self.base / "files")
            self._remove_earlier_record()
        return self._record

    def _remove_earlier_record(self) -> None:
        """Remove the record of an earlier version, unopened: anybody can have put it there."""
        notes = self.directory / "aiaml"
        with suppress(OSError):
            if check_own(notes, directory=True):
                for path in files_of(notes / "seen"):
                    if check_own(path, strict=True):
                        path.unlink()

    def commit_own_files(self) -> str:
        """Write the first commit, of the files that tell git what to leave; empty where none is."""
        files = {}
        for name in _OWN_FILES:
            with suppress(Unfit):  # a link, say, that came with the directory
                files[name.encode()] = read(self.base / name)
        ours = [text.encode() for text in _OWN_FILES.values()]
        steps = [Step("Set up", path, data) for path, data in files.items() if data in ours]
        if not steps:
            return ""
        return self.write_commits(stream.commits([steps], self.branch, "", self.who()))

    def who(self) -> str:
        """Return whom our commits are by: as the person has configured; for either, else, us."""
        if not self._identity:
            said, parts = self.configured(), []
            for part, default in (("name", NOBODY), ("email", _NOWHERE)):
                own = os.environ.get(f"GIT_COMMITTER_{part.upper()}")
                given = own or said.get(f"committer.{part}") or said.get(f"user.{part}", "")
                parts.append(re.sub(_CRUD, "", given).strip() or default)
            self._identity = "{} <{}>".format(*parts)
        return self._identity

    def configured(self, *scopes: str) -> dict[str, str]:
        """Return what git is configured to do here, in all scopes or in some (see git-config(1)).

        It is asked once: a server that runs goes on as it began.
        """
        if self._configured is None:
            told = os.fsdecode(self.git.run("config", "--list", "--show-scope", "-z")).split("\0")
            entries = (entry.partition("\n") for entry in told[1::2])
            pairs = zip(told[::2], entries, strict=False)
            self._configured = [(scope, key, value) for scope, (key, _, value) in pairs]
        wanted = scopes or ("system", "global", "local", "worktree")
        return {key: value for scope, key, value in self._configured if scope in wanted}

    def write_commits(self, commits: Iterable[bytes], *words: str) -> str:
        """Write commits (see `stream`); return the name of the last one."""
        made = self.git.run("fast-import", "--quiet", "--done", *words, stdin=b"".join(commits))
        return made.decode().strip()

    def file(self, path: bytes) -> Path:
        """Return where a path of a commit is on disk."""
        return self.base / os.fsdecode(path)

    def joining(self) -> str:
        """Return the commit of a join that was begun and not finished; empty for none."""
        if not self._looked or (self.directory / JOINING).exists():
            self._looked = True
            return self.name_of(JOINING)
        return ""

    def write_copies(self, copies: Sequence[Copy], like: bytes) -> dict[bytes, Entry]:
        """Write the versions that get a name of their own; return their entries.

        What is too large for a memory gets none.
        """
        sizes = self.sizes([copy.entry.oid for copy in copies])
        fit = [copy for copy in copies if sizes[copy.entry.oid] <= MAX_FILE]
        entries = {}
        for chunk in in_chunks(fit, lambda copy: sizes[copy.entry.oid], AT_ONCE, AT_ONCE_BYTES):
            blobs = self.objects([copy.entry.oid for copy in chunk])
            files = dict(renamed(copy, blobs[copy.entry.oid]) for copy in chunk)
            self.write_commits(stream.blobs(files.values()))
            for path, data in files.items():
                entries[path] = Entry(b"100644", object_name(data, like))
        return entries

    def without(
        self, theirs: str, ours: str, left_out: set[bytes]
    ) -> tuple[str, dict[bytes, Entry]]:
        """Make commits on top of `theirs` that have all of `ours` but some objects.

        Args:
            theirs: the commit to go on from; empty for none.
            ours: the commit whose files they have in the end.
            left_out: the names of the objects that they must not have.

        Returns:
            The last of them, or `theirs` where nothing is to be changed; and the files of `ours`
            that were left out.
        """
        changes = self.changes(theirs, ours)
        entries = {path: after for path, (_, after) in changes.items() if after}
        lacking = {path: each for path, each in entries.items() if each.oid in left_out}
        wanted = [(path, *entry) for path, entry in changes.items() if path not in lacking]
        if not wanted:
            return theirs, lacking
        return self.write_commits(stream.again(theirs, wanted, self.who()), "--force"), lacking

    def entries(self, old: str, new: str) -> dict[bytes, Entry]:
        """Return the files of `new` that `old` (empty for none) has not, or not so."""
        changes = self.changes(old, new)
        return {path: after for path, (_, after) in changes.items() if after}

    def have_same_files(self, one: str, other: str) -> bool:
        """Whether two commits have the same files, all in the same versions."""
        return self.name_of(f"{one}^{{tree}}") == self.name_of(f"{other}^{{tree}}")

    def go_on_from(self, pushed: str) -> bool:
        """Make the current commit the one that was pushed, if its files are the same.

        What was here stays under the name `refs/aiaml/unpushed`.

        Returns:
            Whether they are.
        """
        ours = self.head()
        if not self.have_same_files(ours, pushed):
            return False
        self.git.run("update-ref", "refs/aiaml/unpushed", ours)
        self.git.run("update-ref", "-m", GO_ON_FROM_PUSHED, self.branch, pushed, ours)
        return True

    def sizes(self, oids: Sequence[bytes]) -> dict[bytes, int]:
        """Return the bytes that objects have, by their names.

        Raises:
            GitFailed: the repository has lost one.
        """
        found = sizes(self.git, oids)
        if lost := [oid for oid in oids if oid not in found]:
            raise GitFailed("cat-file", f"missing object {lost[0].decode()}")
        return found
