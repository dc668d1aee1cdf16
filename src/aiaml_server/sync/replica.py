"""The part of a cycle on this computer: commit what changed, write what the disk lacks."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from aiaml_server.settings import Settings
from aiaml_server.sync import purge
from aiaml_server.sync.last_sync import FileState, LastSync, mark_directory, settled
from aiaml_server.sync.merge import copy_of, memory_id_of
from aiaml_server.sync.person_git import PersonGit
from aiaml_server.sync.repository import (
    MAIN,
    ORIGIN,
    Change,
    NewCommit,
    Repository,
    memory_commit,
)
from aiaml_server.sync.skip import SkipRules
from aiaml_server.sync.status import Counts, Status, timestamp_now
from aiaml_server.sync.worktree import (
    Comparison,
    Deletions,
    Scan,
    Write,
    object_name,
    scan,
    write_files,
)

_ATTEMPTS = 5
_IMPORTED_AT_ONCE = 20  # more memories than this, where git has none yet, share one commit
_CONFIRMED = "deleted"


@dataclass
class Replica:
    """The files and the history of one memory directory, during one cycle.

    Attributes:
        repository: the repository.
        settings: the settings of the directory.
        status: where skipped files are reported.
        counts: counts what is done.
        on_deleted: "delete" or "restore": the person's answer about deletions that wait.
        head: the newest commit here; an empty string for none.
        remote_head: the newest commit that the remote is known to have; likewise.
        purged: what is forgotten everywhere.
        is_complete: whether the last comparison left nothing to do until something changes.
    """

    repository: Repository
    settings: Settings
    status: Status
    counts: Counts
    on_deleted: str

    def __post_init__(self) -> None:
        """Read what the repository knows."""
        self.head = self.repository.resolve(MAIN)
        self.remote_head = self.repository.resolve(ORIGIN)
        self.purged = purge.load_list(self.repository, self.head)
        self.is_complete = False

    def rules(self) -> SkipRules:
        """Return what must not be committed, as the person's choices are now."""
        return SkipRules(self.repository, self.purged, check_secrets=self.settings.check_secrets)

    def move_to(self, commit: str, *, is_arriving: bool = False) -> None:
        """Make a commit the newest one, and bring the disk up to it."""
        if commit != self.head:
            self.repository.point(MAIN, commit)
            self.head = commit
            self.reconcile(is_arriving=is_arriving)

    def reconcile(self, *, is_arriving: bool = False) -> None:
        """Bring the disk and the newest commit together.

        Args:
            is_arriving: whether the commit holds what another computer did.
        """
        for _ in range(_ATTEMPTS):  # again while files are being changed
            self._reconcile_once(is_arriving=is_arriving)
            if self.is_complete:
                return

    def _reconcile_once(self, *, is_arriving: bool) -> None:
        repository = self.repository
        files = repository.base / "files"
        record = LastSync.load(repository, files)
        person = PersonGit(repository.base)
        index_time = person.index_time()
        disk = scan(files, record.files)
        deletions = self._deletions(disk, record, person, index_time)
        found = Comparison(disk, record, repository, self.head, self.rules(), deletions)
        self._commit(found, disk)
        tree = repository.tree(self.head)
        for path, file in disk.files.items():
            if tree.get(path) == file.name:
                record.files[path] = FileState(file.name, settled(file.stamp))
        is_changed = bool(found.writes) and self._write(found, record, is_arriving=is_arriving)
        for path in record.files.keys() - disk.files.keys() - tree.keys():
            del record.files[path]
        record.waiting = sorted(found.waiting)
        if files.is_dir():
            record.directory = mark_directory(files)
        if not deletions.is_undecided:
            record.person_index = index_time
            if repository.read_paths(_CONFIRMED) == deletions.confirmed:
                (repository.notes / _CONFIRMED).unlink(missing_ok=True)
        record.save(repository)
        self._report(found, disk)
        self.is_complete = not is_changed and not deletions.is_undecided

    def _deletions(
        self, disk: Scan, record: LastSync, person: PersonGit, index_time: int
    ) -> Deletions:
        """Return what is known about files that are gone; ignore files with unmerged conflicts."""
        is_newer = index_time != record.person_index
        unmerged = person.unmerged() if is_newer else set()
        for name in unmerged:
            disk.files.pop(f"files/{name}", None)
        changed_at = index_time if index_time > 0 else time.time_ns()
        return Deletions(
            self.repository.read_paths(_CONFIRMED),
            self.on_deleted,
            changed_at if is_newer else 0,
            is_undecided=bool(unmerged) or person.is_working() or person.index_time() != index_time,
        )

    def _commit(self, found: Comparison, disk: Scan) -> None:
        """Commit what was found; what is copied for a conflict is also to be written."""
        files = disk.files
        commits = [memory_commit("Add", Change(path, files[path].data)) for path in found.added]
        commits += [
            memory_commit("Update", Change(path, files[path].data)) for path in found.edited
        ]
        if not self.head and len(commits) > _IMPORTED_AT_ONCE:
            commits = [_one_import(commits)]
        tree = self.repository.tree(self.head)
        conflicts = [  # another version is of a cycle here that was killed
            path
            for path in found.conflicts
            if self.repository.tree(self.remote_head).get(path) == tree[path]
        ]
        contents = self.repository.blobs(tree[path] for path in conflicts)
        for path in conflicts:
            copy, data = copy_of(path, tree[path], contents[tree[path]])
            found.writes.append(Write(copy, None, object_name(data)))
            commits.append(memory_commit("Add", Change(copy, data), conflict_trailer(path, copy)))
        commits += [memory_commit("Forget", Change(path)) for path in found.deleted]
        if commits:
            self.head = self.repository.commit(commits, self.head)
            self.status.last_commit = timestamp_now()
        self.counts.saved += len(found.added) + len(found.edited)
        self.counts.deleted += len(found.deleted)

    def _write(self, found: Comparison, record: LastSync, *, is_arriving: bool) -> bool:
        """Write what is missing or outdated on disk; return whether a file changed meanwhile."""
        contents = self.repository.blobs(write.name for write in found.writes)
        written, refused = write_files(self.repository.base, found.writes, contents)
        found.skipped |= refused
        for path, state in written.items():
            record.files.pop(path, None)
            if state:
                record.files[path] = state
        deleted = [*written.values()].count(None)
        if is_arriving:
            self.counts.received += len(written) - deleted
            self.counts.deleted_elsewhere += deleted
        else:
            self.counts.restored += len(written) - deleted
        return len(written) + len(refused) < len(found.writes)

    def _report(self, found: Comparison, disk: Scan) -> None:
        self.status.skipped = {
            path.removeprefix("files/"): why for path, why in sorted(found.skipped.items())
        }
        self.status.placeholders = sorted(
            path.removeprefix("files/") for path in disk.placeholders - disk.files.keys()
        )
        self.status.deletions_waiting = len(found.waiting)


def conflict_trailer(path: str, copy: str) -> str:
    """Return the line of a commit message that records a conflict."""
    return f"Conflict: {memory_id_of(path)} {memory_id_of(copy)}"


def _one_import(commits: list[NewCommit]) -> NewCommit:
    """Return one commit instead of many, with the ids in its message."""
    changes = [commit.changes[0] for commit in commits]
    ids = "\n".join(memory_id_of(change.path) for change in changes)
    return NewCommit(f"Import {len(changes)} memories\n\n{ids}\n", changes)


def confirm_deletions(base: Path, names: Iterable[str]) -> None:
    """Note that the person deletes memory files by a command, so nothing has to be confirmed.

    A disk that refuses is ignored: then many deletions at once wait for confirmation.

    Args:
        base: the memory directory.
        names: the names of the files.
    """
    repository = Repository(base)
    if repository.exists:
        with suppress(OSError):
            repository.append_paths(_CONFIRMED, names)
