"""The git repository of the base directory: what it does not know yet, committing, joining."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

from aiaml_server.derived import folder
from aiaml_server.errors import AiamlError
from aiaml_server.files import (
    TEMPORARY,
    check_own,
    make_directory,
    private,
)
from aiaml_server.sqlite import files_of

from . import asked, convert, place, stream
from .command import GitFailed
from .disk import Disk, Objection, in_chunks, listing
from .erasure import Erasure
from .messages import GO_ON_FROM_PUSHED, JOIN, written
from .reading import NOBODY, Reading
from .refs import MAIN, quiet
from .replay import MOST, SCRATCH, on_top
from .rewrite import FILE, Marks, mark, text_of
from .seen import MARKER, Seen, Sighting
from .status import CUT, Problem
from .stream import Step
from .theirs import Theirs
from .trees import Difference, changes, changes_since, empty_tree, tree
from .union import Changes, Copy, Entry, is_memory, is_safe, renamed, union
from .worktree import MAX_FILE, Change, Changed, Unfit, bring, object_name, read

log = logging.getLogger(__name__)

IMPORT_FROM = 500  # more new memories than this, where git has none yet, share a commit
JOINING = "refs/aiaml/joining"
REMOTE = "refs/aiaml/remote"  # the remote's branch as last seen
_CHUNK = 200  # files that are committed at once
_FILES = 1000  # and brought in
_BYTES = 16 * 1024 * 1024  # and as many bytes of them, at the most
_IMPORTED = 5000
_IMPORTED_BYTES = 1024 * 1024  # so that a commit passes the limit that web servers are shipped with
_MANY = 20  # deletions at once that need no word of a person's, also of all memories
_MANY_TOLD = 20  # memories to forget everywhere at another machine's word that need no other
_SHARE = 5  # more are held if they are more than a fifth
_STALE_SECONDS = 600.0  # longer than any command of ours runs on this machine
_TOO_LARGE = Problem("too-large", f"it is larger than {MAX_FILE // 1024 // 1024} MiB", CUT)
_SAY = (
    "`aiaml sync --bring-back` brings them back from git; `aiaml sync --forget` forgets them, on "
    "all your machines. If a disk is not mounted or a copy not complete, mend that."
)
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
.*{TEMPORARY}
{MARKER}
"""
_EXACT = "files/*.md -text -filter -ident !eol !working-tree-encoding\n"
_OWN_FILES = {".gitignore": _IGNORED, ".gitattributes": _EXACT}
__all__ = ["IMPORT_FROM", "MAIN", "REMOTE", "Busy", "Repository"]


_AGAIN = "nothing: it is committed, and tried again by itself."
_PUT_BACK = (
    "put it back (is a disk not mounted?); or make it anew, empty, and all memories that git has "
    "come back. Nothing is done meanwhile, and nothing forgotten."
)
Missing = Literal["", "forget", "bring back"]


class Busy(AiamlError):  # noqa: N818
    """Not now: a disk is missing, a person has to say a word, or a file changed meanwhile.

    Attributes:
        remedy: what to do about it.
    """

    def __init__(self, sentence: str, remedy: str = "") -> None:
        super().__init__(sentence)
        self.remedy = remedy or _AGAIN


class Committed(NamedTuple):
    """What a commit came to.

    Attributes:
        number: memories that were committed.
        kept_out: files that are not committed as they are, each with why.
        brought_back: memories that git had and the disk had lost.
        forgotten: how many of the number are gone.
        passed: paths, each with the name of the object, to which there was no objection.
    """

    number: int
    kept_out: dict[bytes, Problem]
    brought_back: int = 0
    forgotten: int = 0
    passed: Sequence[tuple[bytes, bytes]] = ()


class Joined(NamedTuple):
    """What a join came to.

    Attributes:
        arrived: memories that are not here as they were.
        forgotten: how many of these are gone.
        kept_out: files that were not brought in, each with why.
        notice: what a person should hear of; empty for nothing.
    """

    arrived: int = 0
    forgotten: int = 0
    kept_out: Mapping[bytes, Problem] = MappingProxyType({})
    notice: str = ""


class Repository(Reading):
    """The repository in `base`: made where there is none, and changed."""

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        self._held_back: dict[bytes, Problem] = {}  # memories that must not be committed, and why
        self._unfit: dict[bytes, Problem] = {}  # what has a memory's name and is none
        self._forgetting: frozenset[bytes] = frozenset()  # deletions that wait for a person's word
        self._learned = ""  # what was forgotten at another machine's word and is not told yet
        self._adopted = 0  # the number of its directory
        self._missing: Missing = ""
        self._looked = False  # for a join that another process did not finish
        self._identity = ""
        self._configured: list[tuple[str, str, str]] | None = None  # scope, key, value
        self.erasure = Erasure(self.git, self.directory)
        self._record: Seen | None = None
        self._listed: tuple[str, dict[bytes, Entry]] = ("", {})
        self._made: tuple[str, str, Difference] = ("", "", {})
        self._grown = ("", "")  # the commits before and after the last that were made here
        self._past: tuple[str, set[tuple[bytes, bytes]]] = ("", set())

    # --- setting up -----------------------------------------------------------------------------

    def prepare(self) -> None:
        """Create what is missing, and clear away what a dead git has left.

        Raises:
            Unreadable: an earlier version's repository cannot be read.
        """
        directory = place.directory_of(self.base)
        if not directory.is_dir():  # also deleted under a running server
            self._create(directory)
            directory = place.directory_of(self.base)
        found = directory.stat().st_ino  # or replaced
        if found != self._adopted or directory != self.directory:
            self.find()
            self._adopted = found
        self._clear_leftovers()
        with suppress(OSError):  # where none can be, what was seen is in memory
            if not folder(self.base).is_dir():
                folder(self.base, make=True)
        convert.finish(self.git, self.directory)
        self.erasure.load()

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
                with suppress(FileExistsError):
                    _create(self.base / name, text)
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
            for found, _, names in islice(os.walk(directory), depth):
                for name in names:
                    if name.startswith(starts) or name.endswith(ends):
                        yield Path(found, name)

    # --- asking ---------------------------------------------------------------------------------

    def ahead_behind(self) -> tuple[int, int]:
        """Count the commits that the remote, as last seen, has not; and those that we have not."""
        ours, theirs = self.head(), self.name_of(REMOTE)
        if not theirs:
            return int(_text(self.git.run("rev-list", "--count", ours))), 0
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
        return sum(map(is_memory, self.changes(old or empty_tree(new), new)))

    def _disk(self, head: str) -> Disk:
        """Compare the files with the commit `head`; empty for none.

        Raises:
            Busy: the directory that had the files is not there.
        """
        directory = self.base / "files"
        tree, seen = self.tree(head), self._seen
        known = seen.read()
        here = listing(directory, known)
        if not seen.is_same():  # what was listed may be another one
            known = {}
        moved = self._theirs.moved()  # later than the listing, so that it has all of it
        if here is None and tree and seen.anything() and not moved:
            raise Busy(f"the directory {directory} is missing", _PUT_BACK)
        certain = seen.held() | asked.to_forget(self.base) if moved else frozenset[bytes]()
        return Disk(self.base, tree, here or {}, known, moved, certain, self._arriving(head))

    def _arriving(self, head: str) -> dict[bytes, Entry | None]:
        """Return what a join that was interrupted has brought, or has still to bring."""
        joining = self.joining()
        if not joining:
            return {}
        changes = self.changes(head or empty_tree(joining), joining)
        return {path: after for path, (_, after) in changes.items() if is_memory(path)}

    def tree(self, commit: str) -> dict[bytes, Entry]:
        """Return the memories of a commit; the last answer is kept, since it is often the same."""
        if commit and commit != self._listed[0]:
            self._listed = commit, tree(self.git, commit)
        return self._listed[1] if commit else {}

    def _know(self, old: str, new: str, changed: Difference) -> None:
        """Keep in mind how a commit differs from one before, and its memories if that one's are."""
        if not all(before is None or before.is_file for before, _ in changed.values()):
            return  # under a directory, there may be more
        self._made = old, new, changed
        if old and old == self._listed[0] and not any(path.count(b"/") > 1 for path in changed):
            memories = {path: after for path, (_, after) in changed.items() if is_memory(path)}
            known: dict[bytes, Entry | None] = {**self._listed[1], **memories}
            self._listed = new, {path: each for path, each in known.items() if each}

    def _versions(self, head: str) -> set[tuple[bytes, bytes]]:
        """Return each path in `files/` with the object name of each version it has had."""
        if head != self._past[0]:
            words = ("--stdin", "-m", "-r", "--root", "-z", "--raw", "--no-renames")
            commits = self.git.run("rev-list", head)
            fields = self.git.run(
                "diff-tree", *words, "--no-commit-id", "--", "files", stdin=commits
            ).split(b"\0")
            pairs = zip(fields[::2], fields[1::2], strict=False)
            self._past = head, {(path, meta.split(b" ")[3]) for meta, path in pairs}
        return self._past[1]

    def changes(self, old: str, new: str) -> Difference:
        """Return what differs between two commits; git is not asked about the last that we made."""
        return self._made[2] if (old, new) == self._made[:2] else changes(self.git, old, new)

    # --- committing -----------------------------------------------------------------------------

    def pending(self, objection: Objection) -> tuple[Committed, frozenset[bytes]]:
        """Say what `commit` would do now, and which files are to be brought in."""
        head = self.head()
        disk = self._disk(head)
        forgotten = self._forgotten(disk, asked.to_forget(self.base), "")
        missing = frozenset(disk.missing())
        added = sum(1 for _ in self._steps(disk, head, objection))
        kept_out, number = disk.held_back | disk.unfit, added + len(forgotten)
        return Committed(number, kept_out, forgotten=len(forgotten)), missing

    def commit(self, objection: Objection, missing: Missing = "") -> Committed:
        """Commit every memory that is not on disk as it is in the current commit.

        What the disk lacks, and was never seen there, is brought back instead. Where much has been
        deleted at once, that is not committed unless a person has said so. While a git of the
        person's beside ours may be changing files, only what is new is.

        Args:
            objection: says why a path with these bytes must not be committed; None if it may.
            missing: what a person has said about memories that were deleted.
        """
        self._missing = missing
        head = self.head() or self._commit_own_files()
        named = asked.to_forget(self.base)
        theirs = self._theirs.state()
        self._seen.mark()
        disk = self._disk(head)
        # What their git takes away or writes just now is not deleted or edited.
        wait = self._theirs.is_at_work(theirs)
        wait = wait or (bool(disk.moved) and self._theirs.has_conflicts(self.git))
        forgotten = [] if wait else self._forgotten(disk, named, missing)
        if not wait and self._forgetting != self._seen.held():
            self._seen.hold(self._forgetting)
        self._held_back, self._unfit = disk.held_back, disk.unfit
        gone = ((Step("Forget", path, None), None) for path in forgotten)
        found = chain(self._steps(disk, head, objection), gone)
        adopting = not disk.tree and len(disk.here) > IMPORT_FROM
        most = (_IMPORTED, _IMPORTED_BYTES) if adopting else (_CHUNK, _BYTES)
        start, committed, brought_back, deleted = head, 0, 0, 0
        passed: list[tuple[bytes, bytes]] = []
        for chunk in in_chunks(found, lambda found: len(found[0].data or b""), *most):
            wait = wait or self._theirs.is_at_work(theirs)
            sure = [each for each in chunk if not wait or each[0].verb == "Add"]
            passed += [(step.path, each.oid) for step, each in sure if each]
            sure += self._besides([step.path for step, _ in sure], disk, head)
            steps = [step for step, _ in sure]
            groups = [steps] if adopting else [[step] for step in steps]
            if steps:
                old = head
                head = self._import(stream.commits(groups, self.branch, head, self._who()))
                new = {step.path: _entry_of(sighting) for step, sighting in sure}
                self._know(old, head, {p: (disk.tree.get(p), each) for p, each in new.items()})
                self._seen.note({step.path: sighting for step, sighting in sure})
            committed += len(steps)
            deleted += sum(step.data is None for step in steps)
        self._grown = start, head
        self._seen.note(disk.same)
        if not wait:
            back = disk.missing() | (disk.deleted() if missing == "bring back" else {})
            brought_back = self._bring_back(back, disk.outdated)
            asked.done(self.base, named)
            self._theirs.note(theirs)
        kept_out = self._held_back | self._unfit
        return Committed(committed, kept_out, brought_back, deleted, passed)

    def _forgotten(self, disk: Disk, named: set[bytes], missing: Missing) -> list[bytes]:
        """Return which deletions are to be committed; note which are held."""
        self._forgetting = frozenset()
        deleted = disk.deleted()
        if missing:
            return list(deleted) if missing == "forget" else []
        unasked = deleted.keys() - named
        if len(unasked) <= _MANY or _SHARE * len(unasked) <= len(disk.tree):
            unasked &= self._seen.held()  # whatever has come or gone since
        if unasked:
            disk.unfit[b"files"] = Problem(
                "many-deleted",
                f"{len(unasked)} of its {len(disk.tree)} memories are gone, and so many are not "
                "forgotten unless you say so",
                _SAY,
            )
        self._forgetting = frozenset(unasked)
        return [path for path in deleted if path not in unasked]

    def _steps(
        self, disk: Disk, head: str, objection: Objection
    ) -> Iterator[tuple[Step, Sighting | None]]:
        def was_there(path: bytes, oid: bytes) -> bool:
            return mark(path) in self.erasure.marks or (path, oid) in self._versions(head)

        return disk.steps(head.encode(), objection, was_there)

    def _besides(
        self, paths: Iterable[bytes], disk: Disk, head: str
    ) -> list[tuple[Step, Sighting | None]]:
        """Have a file of its own made of what others made of a memory that was edited here."""
        copies = [Copy(path, disk.crossed[path]) for path in paths if path in disk.crossed]
        kept = self._kept(copies, head.encode())
        kept = {path: kept[path] for path in kept.keys() - disk.tree.keys()}
        here = self._check_out({path: (None, entry) for path, entry in kept.items()})
        blobs = self.blobs([kept[path] for path in here])
        return [(Step("Add", p, blobs[kept[p]]), Sighting(kept[p].oid, None)) for p in here]

    def _bring_back(
        self, missing: Mapping[bytes, Entry], outdated: Mapping[bytes, tuple[Entry, Entry | None]]
    ) -> int:
        """Have on disk what no person deleted or changed there, as the commit has it; count it."""
        changes: Difference = {path: (None, entry) for path, entry in missing.items()}
        changes |= outdated
        done = self._check_out(changes)
        self._seen.note({path: _sighting(changes[path][1]) for path in done})
        return sum(1 for path in done if changes[path][1])

    @property
    def _theirs(self) -> Theirs:
        return Theirs(self.base, self.directory / "aiaml" / "their-index")

    @property
    def _seen(self) -> Seen:
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
                    if check_own(path, alone=True):
                        path.unlink()

    def _commit_own_files(self) -> str:
        files = {}
        for name in _OWN_FILES:
            with suppress(Unfit):  # a link, say, that came with the directory
                files[name.encode()] = read(self.base / name)
        ours = [text.encode() for text in _OWN_FILES.values()]
        steps = [Step("Set up", path, data) for path, data in files.items() if data in ours]
        if not steps:
            return ""
        return self._import(stream.commits([steps], self.branch, "", self._who()))

    def _who(self) -> str:
        if not self._identity:
            self._identity = _identity(self.configured())
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

    def _import(self, commits: Iterator[bytes], *words: str) -> str:
        """Write commits; return the name of the last one."""
        return _text(
            self.git.run("fast-import", "--quiet", "--done", *words, stdin=b"".join(commits))
        )

    def _file(self, path: bytes) -> Path:
        return self.base / os.fsdecode(path)

    # --- joining --------------------------------------------------------------------------------

    def join(self, theirs: str) -> Joined:
        """Make the current commit one that holds `theirs` too, and bring the files up to it.

        The files come first. Before them it is noted what they are brought up to, so that a join
        that is interrupted can be finished, and is not taken for news.

        Raises:
            Busy: a file was changed since it was committed; nothing of it is lost.
            OSError: the disk refused.
        """
        joined = self._join(theirs)
        learned, self._learned = self._learned, ""
        return joined._replace(notice=learned)

    def _join(self, theirs: str) -> Joined:
        ours = self.head()
        self._learn(ours, theirs)
        joined = self._marked(self._both(ours, theirs))
        if joined == ours:
            return Joined()
        new = self.changes(ours or empty_tree(joined), joined)
        self.git.run("update-ref", JOINING, joined)
        here = self._check_out(new)
        # What is held back here stays on disk as it is, and is known to come from what was before.
        apart = new.keys() & self._held_back.keys()
        unseen = apart - self._seen.read().keys() if apart else set()
        before = ours or "0" * len(joined)
        steps = f"update {self.branch} {joined} {before}\ndelete {JOINING}\n".encode()
        self.git.run("update-ref", "-m", f"{JOIN}{theirs}", "--stdin", stdin=steps)
        self._know(ours, joined, new)
        was = {path: _sighting(new[path][0]) or Sighting(b"", None) for path in unseen}
        self._seen.note(was | {path: _sighting(new[path][1]) for path in here})
        kept_out = {path: why for path, why in self._unfit.items() if path in new}
        return Joined(len(here), sum(not new[path][1] for path in here), kept_out)

    def joining(self) -> str:
        """Return the commit of a join that was begun and not finished; empty for none."""
        if not self._looked or (self.directory / JOINING).exists():
            self._looked = True
            return self.name_of(JOINING)
        return ""

    def _both(self, ours: str, theirs: str) -> str:
        """Return a commit that holds both, but for what is forgotten everywhere."""
        mine, their = self.erasure.cleaned(ours), self.erasure.cleaned(theirs)
        if not mine or not their:
            return mine or their
        brought_back = their != theirs  # by a machine that still has the old history, perhaps
        return mine if brought_back and self._only_joins(mine, their) else self._joined(mine, their)

    def _only_joins(self, ours: str, theirs: str) -> bool:
        """Whether all that theirs has besides are joins of what is here, as it is here."""
        if self.name_of(f"{ours}^{{tree}}") != self.name_of(f"{theirs}^{{tree}}"):
            return False
        return not self.git.run("rev-list", "--no-merges", "--max-count=1", theirs, f"^{ours}")

    def _learn(self, ours: str, theirs: str) -> None:
        """Hear from another machine's commit what is forgotten everywhere.

        Raises:
            Busy: it is so much that a person has to say so.
        """
        new = self.erasure.told_by(theirs) - self.erasure.marks
        if not new:
            return
        tree = self.tree(ours) if ours else {}
        gone = [path for path in tree if mark(path) in new]
        if len(gone) > _MANY_TOLD and _SHARE * len(gone) > len(tree) and self._missing != "forget":
            raise Busy(
                f"another machine has {len(gone)} of the {len(tree)} memories here forgotten "
                "everywhere, for good",
                "if that is meant, `aiaml sync --forget` follows. Until then nothing is exchanged.",
            )
        self.erasure.add(new)
        if gone:
            changed = [path for path in gone if mark(tree[path].oid) not in self.erasure.marks]
            names = ", ".join(os.fsdecode(path) for path in changed)
            also = f"; what was changed here went as well, in {names}" if changed else ""
            count = "1 memory was" if len(gone) == 1 else f"{len(gone)} memories were"
            self._learned = (
                f"{count} forgotten here, for good, since another machine has them forgotten "
                f"everywhere{also}"
            )

    def _marked(self, commit: str) -> str:
        """Return a commit whose tree tells other machines what is forgotten everywhere."""
        if not self.erasure.marks or self.erasure.marks <= self.erasure.told_by(commit):
            return commit
        told = self.erasure.told_by(commit)
        step = Step("Forget everywhere", FILE, text_of(self.erasure.marks | told))
        return self._import(stream.commits([[step]], SCRATCH, commit, self._who()), "--force")

    def erase(self, marks: Marks) -> Joined:
        """Forget everywhere what has these marks, and what is noted so already.

        Raises:
            Busy: a file was changed since it was committed; nothing of it is lost.
            OSError: the disk refused.
        """
        self.erasure.add(marks)
        if not self.erasure.marks:
            return Joined()
        head = self.head()
        is_done = self.erasure.is_clean(head) and self.erasure.marks <= self.erasure.told_by(head)
        return Joined() if is_done else self.join(head)

    def author(self, commit: str) -> str:
        """Return the name that a commit is by."""
        return _text(self.git.run("log", "-1", "--no-show-signature", "--format=%an", commit, "--"))

    def cut_logs(self) -> None:
        """Have git's logs of our branch not lead to what it was before."""
        words = ("--expire=never", "--expire-unreachable=now", self.branch, "HEAD")
        with suppress(GitFailed):  # there is none
            self.git.run("reflog", "expire", *words)

    def _joined(self, ours: str, theirs: str) -> str:
        """Return a commit that holds both, written without moving anything.

        Histories that crossed have several common ancestors; these are joined first, as git does.
        Commits that are only ours are put on top of theirs, where both touch different memories.
        A new machine, which has nothing but what every machine begins with, goes on from theirs.
        """
        known = ours == theirs or self._grown == (theirs, ours)
        bases = [theirs] if known else self._bases(ours, theirs)
        if theirs in bases:
            return ours
        if ours in bases:
            return theirs
        most = f"--max-count={MOST + 1}"
        ahead = self.git.run("rev-list", "--parents", most, ours, f"^{theirs}").splitlines()
        joins = [line for line in ahead if line.count(b" ") > 1]
        if ahead[0] in joins and (bare := self._without_join(ours, theirs)):
            return self._joined(bare, theirs)
        sides = self._sides(bases, ours, theirs)
        mine, their = ({path: after for path, (_, after) in side.items()} for side in sides)
        if mine.items() <= their.items():
            words = ("--no-show-signature", "--format=%P%n%s", ours, "--")
            if _text(self.git.run("log", "-1", *words)) == written("Set up"):
                return theirs  # ours is the first commit that we made, and has no memory yet
        few = len(bases) == 1 and len(ahead) <= MOST and not joins
        replayed = few and self._replayed(ours, theirs, mine, their)
        if replayed and not mine.keys() & their.keys():
            self._know(ours, replayed, sides[1])
        return replayed or self._together(ours, theirs, mine, their)

    def _bases(self, ours: str, theirs: str) -> list[str]:
        return quiet(self.git, "merge-base", "--all", ours, theirs).split()

    def _sides(self, bases: Sequence[str], ours: str, theirs: str) -> list[Difference]:
        """Return what each side changed since the two parted."""
        sides = (ours, theirs)
        if bases:
            return changes_since(self.git, reduce(self._joined, bases), sides)
        return [self.changes(empty_tree(side), side) for side in sides]

    def _together(self, ours: str, theirs: str, mine: Changes, their: Changes) -> str:
        """Write a commit of two parents that has what both sides changed."""
        changes, copies = union(mine, their)
        copies = [copy for copy in copies if copy.entry.is_file and copy.path != FILE]
        changes |= self._kept(copies, ours.encode())
        return self._import(stream.join(ours, theirs, changes, self._who()), "--force")

    def _kept(self, copies: Sequence[Copy], like: bytes) -> dict[bytes, Entry]:
        """Write the versions that get a name of their own; return their entries."""
        sizes = self._sizes([copy.entry for copy in copies])
        fit = [copy for copy in copies if sizes[copy.entry] <= MAX_FILE]
        kept = {}
        for chunk in in_chunks(fit, lambda copy: sizes[copy.entry], _FILES, _BYTES):
            blobs = self._contents([copy.entry for copy in chunk])
            files = dict(renamed(copy, blobs[copy.entry]) for copy in chunk)
            self._import(stream.blobs(files.values()))
            for path, data in files.items():
                kept[path] = Entry(b"100644", object_name(data, like))
        return kept

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
        changes = self.changes(theirs or empty_tree(ours), ours)
        entries = {path: after for path, (_, after) in changes.items() if after}
        lacking = {path: each for path, each in entries.items() if each.oid in left_out}
        wanted = [(path, *entry) for path, entry in changes.items() if path not in lacking]
        if not wanted:
            return theirs, lacking
        return self._import(stream.again(theirs, wanted, self._who()), "--force"), lacking

    def entries(self, old: str, new: str) -> dict[bytes, Entry]:
        """Return the files of `new` that `old` (empty for none) has not, or not so."""
        changes = self.changes(old or empty_tree(new), new)
        return {path: after for path, (_, after) in changes.items() if after}

    def go_on_from(self, pushed: str) -> bool:
        """Make the current commit the one that was pushed, if its files are the same.

        What was here stays under the name `refs/aiaml/unpushed`.

        Returns:
            Whether they are.
        """
        ours = self.head()
        if self.name_of(f"{ours}^{{tree}}") != self.name_of(f"{pushed}^{{tree}}"):
            return False
        self.git.run("update-ref", "refs/aiaml/unpushed", ours)
        reason = GO_ON_FROM_PUSHED
        self.git.run("update-ref", "-m", reason, self.branch, pushed, ours)
        return True

    def _without_join(self, ours: str, theirs: str) -> str:
        """Return what a join of ours joined that never got to the remote; empty if it is none.

        Such a join is made anew, instead of being joined with what came after it.
        """
        said = _text(
            self.git.run("log", "-1", "--no-show-signature", "--format=%P%n%s", ours, "--")
        )
        parents, _, subject = said.partition("\n")
        first, _, second = parents.partition(" ")
        if subject != written("Join") or not second:
            return ""
        return "" if self.git.run("rev-list", "--max-count=1", second, f"^{theirs}") else first

    def _replayed(self, ours: str, theirs: str, mine: Changes, their: Changes) -> str:
        """Return what our commits become on top of theirs; empty where they must be joined.

        They must where they are not sync's, and where both sides change the same memory, unless in
        the same way: so it is after a kill between the files and the branch.
        """
        known = mine.items() <= their.items()
        if not known and their.keys() & mine.keys():
            return ""
        if not all(map(is_memory, mine)) or not all(map(is_safe, their)):
            return ""
        words = ("--no-data", "--reference-excluded-parents", "--reencode=no")
        commits = on_top(self.git.run("fast-export", *words, f"{theirs}..{ours}"), theirs)
        if not commits or known:
            return theirs if commits else ""
        return self._import(iter([commits]), "--force")

    def blobs(self, entries: Sequence[Entry]) -> dict[Entry, bytes]:
        """Return the bytes of those that are not too large for a memory."""
        sizes = self._sizes(entries)
        return self._contents([entry for entry in entries if sizes[entry] <= MAX_FILE])

    def _sizes(self, entries: Sequence[Entry]) -> dict[Entry, int]:
        sizes = self.sizes([entry.oid for entry in entries])
        return {entry: sizes[entry.oid] for entry in entries}

    def sizes(self, oids: Sequence[bytes]) -> dict[bytes, int]:
        """Return the bytes that objects have, by their names.

        Raises:
            GitFailed: the repository has lost one.
        """
        if not oids:
            return {}
        asked = b"".join(oid + b"\n" for oid in oids)
        sizes = self.git.run("cat-file", "--batch-check=%(objectsize)", stdin=asked).splitlines()
        if lost := [size for size in sizes if size.endswith(b" missing")]:
            raise GitFailed("cat-file", f"missing object {lost[0].split()[0].decode()}")
        return dict(zip(oids, map(int, sizes), strict=True))

    def _contents(self, entries: Sequence[Entry]) -> dict[Entry, bytes]:
        blobs = self.objects([entry.oid for entry in entries])
        return {entry: blobs[entry.oid] for entry in entries}

    def _check_out(self, changes: Mapping[bytes, tuple[Entry | None, Entry | None]]) -> list[bytes]:
        """Do on disk what `changes` says about memories; return the paths that are up to date."""
        wanted = [
            (path, before, after)
            for path, (before, after) in changes.items()
            if is_memory(path) and path not in self._held_back and (not after or after.is_file)
        ]
        # What is new comes first: a kill must find the copy of a version that loses its name made
        # before the name is taken from it.
        wanted.sort(key=lambda each: each[1] is not None)
        sizes = self._sizes([after for _, _, after in wanted if after])
        for path in [path for path, _, after in wanted if after and sizes[after] > MAX_FILE]:
            self._refuse(path, _TOO_LARGE)
        fit = [each for each in wanted if not each[2] or sizes[each[2]] <= MAX_FILE]
        here = []
        for chunk in in_chunks(fit, lambda each: sizes[each[2]] if each[2] else 0, _FILES, _BYTES):
            here += self._put(chunk)
        return here

    def _put(self, chunk: Sequence[tuple[bytes, Entry | None, Entry | None]]) -> list[bytes]:
        """Bring files in; return the paths of those that are up to date."""
        blobs = self._contents([after for _, _, after in chunk if after])
        files = [self._file(path) for path, _, _ in chunk]
        changes = [
            Change(
                file,
                before.oid if before and path not in self._forgetting else None,
                blobs[after] if after else None,
            )
            for file, (path, before, after) in zip(files, chunk, strict=True)
        ]
        try:
            refused = bring(self.base / "files", changes)
        except Changed as error:
            raise Busy(f"{error} was changed while another version of it arrived") from error
        here = []
        for file, (path, _, _) in zip(files, chunk, strict=True):
            if why := refused.get(file):
                self._refuse(path, why)
            else:
                here.append(path)
        return here

    def _refuse(self, path: bytes, why: Problem) -> None:
        sentence = f"another machine's version cannot be brought in: {why.sentence}"
        self._unfit[path] = why._replace(sentence=sentence)


def _identity(said: Mapping[str, str]) -> str:
    """Return the name and the address that the person has configured; for either, else, our own."""

    def configured(part: str, default: str) -> str:
        given = os.environ.get(f"GIT_COMMITTER_{part.upper()}") or said.get(f"committer.{part}")
        return re.sub(_CRUD, "", given or said.get(f"user.{part}", "")).strip() or default

    return f"{configured('name', NOBODY)} <{configured('email', _NOWHERE)}>"


def _text(output: bytes) -> str:
    return os.fsdecode(output).strip()


def _sighting(entry: Entry | None) -> Sighting | None:
    return Sighting(entry.oid, None) if entry else None


def _entry_of(sighting: Sighting | None) -> Entry | None:
    return Entry(b"100644", sighting.oid) if sighting else None


def _create(path: Path, text: str) -> None:
    with open(path, "x", encoding="utf-8", opener=private) as file:
        file.write(text)
