"""The part of a cycle on this computer: commit what changed, write what the disk lacks."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from aiaml_server.files import open_own
from aiaml_server.settings import Settings
from aiaml_server.sync.last_sync import FileState, LastSync, mark_directory, settled
from aiaml_server.sync.merge import copy_of, memory_id_of
from aiaml_server.sync.person_git import PersonGit
from aiaml_server.sync.purge import PurgeList
from aiaml_server.sync.repository import Change, NewCommit, Repository, commit_message
from aiaml_server.sync.skip import SkipRules
from aiaml_server.sync.status import Counts, Problem, Status, timestamp_now
from aiaml_server.sync.worktree import (
    Comparison,
    Deletions,
    Scan,
    Write,
    compare,
    scan,
    write_files,
)

_ATTEMPTS = 5
_IMPORTED_AT_ONCE = 20  # more memories than this, where git has none yet, share one commit
_CONFIRMED = "deleted"
_TOO_LARGE = Problem("too-large", "the other computer's version is too large", "Make it smaller.")


@dataclass
class Reconciler:
    """Brings the disk and the newest commit together; used for one cycle.

    Attributes:
        repository: the repository.
        settings: the settings of the directory.
        status: where skipped files are reported.
        counts: counts what is done.
        on_deleted: "delete" or "restore": what the person says about held deletions.
        purged: what is forgotten everywhere.
        is_complete: whether the last call left nothing to do until something changes.
    """

    repository: Repository
    settings: Settings
    status: Status
    counts: Counts
    on_deleted: str
    purged: PurgeList
    is_complete: bool = False

    @property
    def rules(self) -> SkipRules:
        """What must not be committed, as the person's choices are now."""
        return SkipRules(self.repository, self.purged, check_secrets=self.settings.check_secrets)

    def reconcile(self, head: str, *, is_arriving: bool = False) -> str:
        """Bring both together; return the newest commit.

        Args:
            head: the newest commit until now.
            is_arriving: whether it holds what another computer did.
        """
        for _ in range(_ATTEMPTS):  # again while files are being changed
            head = self._reconcile_once(head, is_arriving=is_arriving)
            if self.is_complete:
                break
        return head

    def _reconcile_once(self, head: str, *, is_arriving: bool) -> str:
        files = self.repository.base / "files"
        record = LastSync.load(self.repository, files)
        person = PersonGit(self.repository.base)
        index_state = person.index_state()
        disk = scan(files, record.files)
        deletions = self._deletions(disk, record, person, index_state)
        tree = self.repository.tree(head)
        found = compare(
            disk, record, tree, self.rules, deletions, lambda: self.repository.versions(head)
        )
        head, copies = self._commit(found, disk, head)
        for path in (*found.unchanged, *found.added, *found.edited):
            file = disk.files[path]
            record.files[path] = FileState(file.name, settled(file.stamp))
        writes = [] if deletions.is_undecided else found.writes
        writes = [*writes, *(Write(path, None, name) for path, name in copies.items())]
        is_changed = bool(writes) and self._write(found, writes, record, is_arriving=is_arriving)
        for path in record.files.keys() - disk.files.keys() - self.repository.tree(head).keys():
            del record.files[path]
        record.held = sorted(found.held)
        if files.is_dir():
            record.directory = mark_directory(files)
        if not deletions.is_undecided:
            record.person_index = index_state
            self._clear_confirmed(deletions.confirmed)
        record.save(self.repository)
        self._report(found, disk)
        self.is_complete = not is_changed and not deletions.is_undecided
        return head

    def _deletions(
        self, disk: Scan, record: LastSync, person: PersonGit, index_state: str
    ) -> Deletions:
        """Return what is known about files that are gone; forget about unmerged ones."""
        has_moved = index_state != record.person_index
        unmerged = person.unmerged() if has_moved else set()
        for name in unmerged:
            disk.files.pop(f"files/{name}", None)
        is_working = person.is_working() or person.index_state() != index_state
        return Deletions(
            confirmed_deletions(self.repository),
            self.on_deleted,
            person.changed_at() if has_moved else 0,
            is_undecided=bool(unmerged) or is_working,
        )

    def _commit(self, found: Comparison, disk: Scan, head: str) -> tuple[str, dict[str, str]]:
        """Commit what was found; return the newest commit and the copies that conflicts made."""
        commits = []
        for action, paths in (("Add", found.added), ("Update", found.edited)):
            for path in paths:
                change = Change(path, disk.files[path].data)
                commits.append(NewCommit(commit_message(action, path), [change]))
        if not head and len(commits) > _IMPORTED_AT_ONCE:
            commits = [_one_import(commits)]
        tree = self.repository.tree(head)
        others = self.repository.blobs([tree[path] for path in found.conflicts])
        copies = []
        for path in found.conflicts:
            copy, data = copy_of(path, tree[path], others[tree[path]])
            copies.append(copy)
            message = f"{commit_message('Add', copy)}\n\n{conflict_trailer(path, copy)}\n"
            commits.append(NewCommit(message, [Change(copy, data)]))
        for path in found.deleted:
            commits.append(NewCommit(commit_message("Forget", path), [Change(path)]))
        if commits:
            head = self.repository.commit(commits, head)
            self.status.last_commit = timestamp_now()
        self.counts.saved += len(found.added) + len(found.edited)
        self.counts.deleted += len(found.deleted)
        return head, {path: self.repository.tree(head)[path] for path in copies}

    def _write(
        self, found: Comparison, writes: list[Write], record: LastSync, *, is_arriving: bool
    ) -> bool:
        """Write what is missing or outdated on disk; return whether a file changed meanwhile."""
        contents = self.repository.blobs([write.name for write in writes if write.name])
        possible = []
        for write in writes:
            if write.name and write.name not in contents:
                found.skipped[write.path] = _TOO_LARGE
            else:
                possible.append(write)
        written, refused, is_changed = write_files(self.repository.base, possible, contents)
        found.skipped |= refused
        for path, state in written.items():
            if state:
                record.files[path] = state
            else:
                record.files.pop(path, None)
        deleted = sum(state is None for state in written.values())
        if is_arriving:
            self.counts.received += len(written) - deleted
            self.counts.deleted_elsewhere += deleted
        else:
            self.counts.restored += len(written) - deleted
        return is_changed

    def _clear_confirmed(self, paths: set[str]) -> None:
        """Note that these deletions are committed; if there are more by now, a later cycle does."""
        if paths and confirmed_deletions(self.repository) == paths:
            (self.repository.notes / _CONFIRMED).unlink(missing_ok=True)

    def _report(self, found: Comparison, disk: Scan) -> None:
        skipped = sorted(found.skipped.items())
        self.status.skipped = {path.removeprefix("files/"): why for path, why in skipped}
        missing = disk.placeholders - disk.files.keys()
        self.status.placeholders = sorted(path.removeprefix("files/") for path in missing)
        self.status.deletions_waiting = len(found.held)


def conflict_trailer(path: str, copy: str) -> str:
    """Return the line of a commit message that records a conflict."""
    return f"Conflict: {memory_id_of(path)} {memory_id_of(copy)}"


def _one_import(commits: list[NewCommit]) -> NewCommit:
    """Return one commit instead of many, with the ids in its message."""
    changes = [change for commit in commits for change in commit.changes]
    ids = "\n".join(memory_id_of(change.path) for change in changes)
    return NewCommit(f"Import {len(changes)} memories\n\n{ids}\n", changes)


def confirm_deletions(base: Path, names: Iterable[str]) -> None:
    """Note that the person deletes memory files by a command, so nothing has to be confirmed.

    A disk that refuses is ignored: then many deletions at once are held.

    Args:
        base: the memory directory.
        names: the names of the files.
    """
    repository = Repository(base)
    if repository.exists:
        text = b"".join(os.fsencode(f"files/{name}") + b"\0" for name in names)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with (
            suppress(OSError),
            os.fdopen(open_own(repository.notes / _CONFIRMED, flags), "ab") as f,
        ):
            f.write(text)


def confirmed_deletions(repository: Repository) -> set[str]:
    """Return the paths of the files that the person has deleted by a command."""
    return set(os.fsdecode(repository.read_note(_CONFIRMED)).split("\0")) - {""}
