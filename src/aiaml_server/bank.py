"""The memories of one directory, with their index and their history in git."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING

from aiaml_server.errors import (
    AiamlError,
    InvalidInput,
    LockTimeout,
    MalformedFile,
    NotCommitted,
)
from aiaml_server.format.filters import EVERYTHING, Filter
from aiaml_server.format.memory import SHORTEST_ID, Memory, format, parse, parsed
from aiaml_server.settings import Settings
from aiaml_server.storage.store import MAX_FILE, Store
from aiaml_server.sync import Problem, Syncer, sync_once

if TYPE_CHECKING:
    from aiaml_server.format.scorer import Hit
    from aiaml_server.index import Index
    from aiaml_server.sync.history import History, Version

log = logging.getLogger(__name__)

_COMPARED_CHARACTERS = 2_000  # of a memory for which similar ones are looked for
_SIMILAR_SHARE = 0.4  # of the rarity of a memory's words, that a similar one has
_MAX_REPLACING = 1_000  # memories that are looked at for that sentence
REPLACES = re.compile(r"\bReplaces ([0-9a-z]{8})\b")
PATIENCE_SECONDS = 10.0  # for another process that synchronises, before something is changed


class MemoryBank(Store):
    """A store that keeps an index of its files, and commits them to git.

    Every method is safe to call from any thread; of a bank that is not `lasting`, from one.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        lasting: bool = True,
        report: Callable[[str], object] = log.warning,
    ) -> None:
        """Make the bank of a directory.

        Args:
            settings: which directory, and how it is synced.
            lasting: whether it is for many questions, with `opened`; otherwise it is for one, and
                commits what was changed when it is closed.
            report: called with a sentence when git could not commit.
        """
        super().__init__(settings.base)
        self._settings = settings
        self._lasting = lasting
        self._report = report
        self._is_changed = False
        self._syncer = Syncer(settings)
        if lasting:
            self.index  # noqa: B018 (threads share it: made before there are any)

    @cached_property
    def index(self) -> Index:
        """The index of the files, which answers questions."""
        from aiaml_server.index import Index  # noqa: PLC0415 (a tenth of a command's start)

        return Index(self, background=self._lasting)

    @contextmanager
    def opened(self) -> Iterator[MemoryBank]:
        """Work in the background inside the `with`: build the index and sync.

        It ends within 1.5 s.
        """
        threading.Thread(target=self._prepare_index, name="index", daemon=True).start()
        self._syncer.start()
        try:
            yield self
        finally:
            self._syncer.close()
            self.close()

    def close(self) -> None:
        """Close the index; the bank answers no more."""
        if "index" in vars(self):
            self.index.close()
        if self._is_changed and not self._lasting:
            self.commit(seconds=0)

    def _prepare_index(self) -> None:
        """Bring the index up to date before the first question."""
        try:
            self.index.think([])
        except Exception as error:  # noqa: BLE001 (whoever asks gets the same error)
            log.info("The index is not up to date: %s", error)

    def remember(self, agent: str, user: str, topics: Sequence[str], content: str) -> Memory:
        """Store a memory; on return it is whole and durable on disk.

        Raises:
            InvalidInput: a value is not what it must be; nothing was written.
            StoreError: the disk refused; nothing was left behind.
        """
        return self.add(Memory.new(agent, user, topics, content))

    def secret_in(self, memory: Memory) -> str:
        """Name the secret for which a memory stays out of git; empty when it does not."""
        if not (self._settings.sync and self._settings.check_secrets):
            return ""
        from aiaml_server.format.secrets import find_secret  # noqa: PLC0415 (for what agents store)

        secret = find_secret(format(memory))
        return secret.kind if secret else ""

    def think(self, keywords: Iterable[str]) -> list[Hit]:
        """Return the at most 25 memories that match best; `scorer` defines the order.

        Raises:
            StoreError: the directory cannot be read.
        """
        return self.index.think(keywords)

    def recall(self, memory_ids: Iterable[str]) -> dict[str, list[Memory]]:
        """Return for each id, in the given order and once, every memory that carries it.

        An id that no memory carries has an empty list. Several can carry one only after two
        machines that drew the same id were joined, or a person copied a file.

        Raises:
            StoreError: the directory cannot be read.
        """
        wanted = list(dict.fromkeys(memory_ids))
        found = self.index.files(set(wanted)) if wanted else {}
        return {each: [memory for _, memory in found.get(each, [])] for each in wanted}

    def add(self, memory: Memory) -> Memory:
        """Store a memory that was made elsewhere or earlier; return it as it is stored.

        Raises:
            StoreError: the disk refused; nothing was left behind.
        """
        added = super().add(memory)
        self._wake()
        return added

    def add_all(self, memories: Iterable[Memory], stored: Callable[[Memory], object]) -> None:
        """Store memories that were made elsewhere together; `stored` is given each as it is stored.

        Raises:
            StoreError: the disk refused; nothing was left behind but what `stored` was given.
        """
        try:
            super().add_all(memories, stored)
        finally:
            self._wake()

    def replace(self, name: str, before: str | None, after: str | None) -> None:
        """Change the text of the file `name`; None stands for no file.

        Raises:
            FileChanged: it does not hold `before`; nothing was changed.
            StoreError: the disk refused; nothing was changed, or it is not known to be durable.
        """
        super().replace(name, before, after)
        self._wake()

    def edit(self, name: str, before: str, after: str) -> bool:
        """Give the file `name`, which holds the text `before`, the text `after`.

        Git gets what was there first, if it can.

        Returns:
            Whether git has what was there.

        Raises:
            MalformedFile: `after` is no memory, or one with another id.
            FileChanged: the file does not hold `before`.
            StoreError: the disk refused. In each case the file is as it was.
        """
        if parse(after).id != (old := parse(before).id):
            raise MalformedFile([f"the id must stay {old}, by which agents know the memory"])
        if len(after.encode()) > MAX_FILE:
            raise MalformedFile([f"it is larger than {MAX_FILE // 1024 // 1024} MiB"])
        held_back = self.commit()
        self.replace(name, before, after)
        return held_back is not None and name not in held_back

    def forget(self, texts: Mapping[str, str]) -> set[str] | None:
        """Delete files, each with the text that it holds, also from the index.

        Git gets them first, if it can.

        Returns:
            The names of those that git's history keeps; None where git did not take what was new.

        Raises:
            FileChanged: a file does not hold its text; it and those after it are as they were.
            StoreError: the disk refused; likewise.
        """
        from aiaml_server.sync.replica import confirm_deletions  # noqa: PLC0415 (loads slowly)

        held_back = self.commit()
        for name, before in texts.items():
            self.replace(name, before, None)
            confirm_deletions(self.base, [name])
        self.index.forget()
        return None if held_back is None else set(texts) - set(held_back)

    def erase(self, names: Iterable[str]) -> None:
        """Delete the files of memories that are forgotten everywhere.

        A file that cannot be read is left.

        Raises:
            FileChanged: a file changed meanwhile.
            StoreError: the disk refused.
        """
        texts = {}
        for name in names:
            with suppress(MalformedFile, FileNotFoundError):
                texts[name] = self.text(name)
        self.forget(texts)

    def restore(
        self, name: str, before: str | None, text: str, history: Collection[str] = ()
    ) -> None:
        """Give the file `name`, which holds `before`, a text of its `history`, as git has that.

        Raises:
            NotCommitted: git has not got what it holds, which would be lost.
            FileChanged: it does not hold `before`.
            StoreError: the disk refused. In each case the file is as it was.
        """
        if before is not None and before not in history:
            why = (self.commit() or {}).get(name)
            because = why.sentence if why else "sync is off, or git failed"
            raise NotCommitted(
                f"the current version of files/{name} would be lost: it is not in git ({because})."
                " Commit it or move the file away, and try again"
            )
        self.replace(name, before, text)

    def commit(self, *, seconds: float = PATIENCE_SECONDS) -> dict[str, Problem] | None:
        """Commit what is new on this computer; a failure is reported, not raised.

        Args:
            seconds: how long to wait while another process synchronises; for 0, nothing is
                reported when one does: it will commit what is new.

        Returns:
            The names of the files that are not committed, each with the reason; None if the
            commit failed.
        """
        if not self._settings.sync:
            return None
        try:
            status, _ = sync_once(self._settings, local=True, lock_seconds=seconds)
        except AiamlError as error:
            if seconds or not isinstance(error, LockTimeout):
                self._report(f"Not committed to git yet: {error}")
            return None
        if status.problem:
            problem = status.problem
            self._report(f"Not committed to git yet: {problem.sentence}. {problem.remedy}")
            return None
        return status.skipped

    def history(self, *, seconds: float = PATIENCE_SECONDS) -> History:
        """Return what git knows of the past, after it took what is new, if it can.

        Args:
            seconds: how long to wait while another process synchronises.

        Raises:
            GitMissing: there is no git.
            GitFailed: the repository cannot be read.
        """
        from aiaml_server.sync.history import History  # noqa: PLC0415 (for a person's questions alone)

        self.commit(seconds=seconds)
        return History(self.base)

    def forgotten(self, history: History, since: float = 0) -> list[tuple[Version, str]]:
        """Return the deletion of each forgotten memory with its last text, newest first.

        A memory that was renamed is not one of them: its id exists.

        Args:
            history: the history.
            since: the time, in seconds since 1970, after which they were forgotten.
        """
        deletions = [row for row in history.versions() if row.time >= since and not row.after]
        texts = history.texts(row.before for row in deletions)
        found: dict[str, tuple[Version, str]] = {}
        for deletion in deletions:
            text = texts[deletion.before]
            if memory := parsed(text):
                found.setdefault(memory.id, (deletion, text))
        present = self.recall(found)
        return [row for memory_id, row in found.items() if not present[memory_id]]

    def _wake(self) -> None:
        """Let the background work know that a file was written or deleted."""
        self._is_changed = True
        self._syncer.wake()

    def newest(self, wanted: Filter = EVERYTHING) -> Iterator[tuple[str, Memory]]:
        """Return every memory that matches, with its file's name, newest first.

        Raises:
            StoreError: the directory cannot be read.
        """
        return self.scan(name for _, name in self.index.dated(wanted))

    def find(self, memory_id: str) -> list[tuple[str, Memory]]:
        """Return every memory that carries an id, with its file's name, newest first.

        The first `SHORTEST_ID` characters are enough if no other id begins with them.

        Raises:
            InvalidInput: several ids begin so.
            StoreError: the directory cannot be read.
        """
        ids = self.index.ids(memory_id) if len(memory_id) >= SHORTEST_ID else []
        if memory_id in ids or not ids:
            ids = [memory_id]
        if len(ids) > 1:
            raise InvalidInput("id", f"{memory_id} is the beginning of {', '.join(ids[:5])}")
        return self.index.files(ids).get(ids[0], [])

    def similar(self, memory: Memory, count: int = 3) -> list[tuple[str, Memory]]:
        """Return the memories that say nearly the same as one, the most similar first.

        Raises:
            StoreError: the directory cannot be read.
        """
        from aiaml_server.index import Question  # noqa: PLC0415 (as the index itself)

        words = dict.fromkeys(re.findall(r"\w+", memory.content[:_COMPARED_CHARACTERS]))
        if not words:
            return []
        question = Question.parse(words)
        answer = self.index.search(question, part=slice(count + 1), least_share=_SIMILAR_SHARE)
        found = self.scan(hit.file_name for hit in answer.found.hits)
        return [(name, each) for name, each in found if each.id != memory.id][:count]

    def replaced(self) -> list[tuple[str, Memory, str]]:
        """Return outdated memories: the file, the memory, and the id of its correction.

        A correction ends with "Replaces ID.", as agents are instructed to write.

        Raises:
            StoreError: the directory cannot be read.
        """
        hits = self.index.search_keywords(["replaces"], part=slice(_MAX_REPLACING)).hits
        found: dict[str, tuple[str, Memory, str]] = {}
        for _, newer in self.scan(hit.file_name for hit in hits):
            for memory_id in REPLACES.findall(newer.content):
                for name, older in self.find(memory_id):
                    if older.id != newer.id and older.timestamp <= newer.timestamp:
                        found.setdefault(name, (name, older, newer.id))
        return list(found.values())
