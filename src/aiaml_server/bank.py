"""The verbs of one memory directory, and what runs beside them while a server is open."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from aiaml_server.errors import (
    AiamlError,
    InvalidInput,
    LockTimeout,
    MalformedFile,
    NotCommitted,
)
from aiaml_server.format.memory import SHORTEST_ID, Memory, parse, parsed
from aiaml_server.format.scorer import MAX_HITS
from aiaml_server.settings import Settings
from aiaml_server.storage.store import MAX_FILE, Stamp, Store
from aiaml_server.sync import Problem, Syncer, sync_once

if TYPE_CHECKING:
    from aiaml_server.format.filters import Filter
    from aiaml_server.format.scorer import Found, Hit
    from aiaml_server.index import Answer, Counts, Index, Question
    from aiaml_server.sync.history import History

log = logging.getLogger(__name__)

_COMPARED_CHARACTERS = 2_000  # of a memory for which similar ones are looked for
_SIMILAR_SHARE = 0.4  # of the rarity of a memory's words, that a similar one has
_MAX_REPLACING = 1_000  # memories that are looked at for that sentence
REPLACES = re.compile(r"\bReplaces ([0-9a-z]{8})\b")
PATIENCE_SECONDS = 10.0  # for another process that synchronises, before something is changed


class MemoryBank:
    """All memories of one base directory.

    Every method is safe to call from any thread; of a bank that is not `lasting`, from one.

    Attributes:
        base: that directory.
        directory: where the memories' files are, in it.
        sync: what keeps it in git.
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
        self._settings = settings
        self._lasting = lasting
        self._report = report
        self._store = Store(settings.base)
        self.base = self._store.base
        self.directory = self._store.directory
        self._made: Index | None = None
        self._changed = threading.Event()  # set when there is something for the index
        self._ended = threading.Event()
        self.sync = Syncer(settings)
        if lasting:
            self._index  # noqa: B018 (threads share them: made before there are any)

    @property
    def _index(self) -> Index:
        if not self._made:
            from aiaml_server.index import Index  # noqa: PLC0415 (a tenth of the start of a verb without it)

            self._made = Index(self._store, background=self._lasting)
        return self._made

    @contextmanager
    def opened(self) -> Iterator[MemoryBank]:
        """Work in the background inside the `with`: build the index and sync.

        It ends within 1.5 s.
        """
        threading.Thread(target=self._prepare_index, name="index", daemon=True).start()
        self.sync.start()
        try:
            yield self
        finally:
            self._ended.set()
            self._changed.set()
            self.sync.close()
            self.close()

    def close(self) -> None:
        """Close the index; the bank answers no more."""
        if self._made:
            self._made.close()
        if self._changed.is_set() and not self._lasting:
            self.commit(seconds=0)

    def _prepare_index(self) -> None:
        """Bring the index up to date before the first question."""
        try:
            self._index.think([])
        except AiamlError as error:  # whoever asks gets the same error
            log.info("The index is not up to date: %s", error)
        except Exception:
            log.exception("The index could not be brought up to date; the next question will")

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

        text = "\n".join((memory.agent, memory.user, *memory.topics, memory.content))
        secret = find_secret(text)
        return secret.kind if secret else ""

    def think(self, keywords: Iterable[str]) -> list[Hit]:
        """Return the at most 25 memories that match best; `scorer` defines the order.

        Raises:
            StoreError: the directory cannot be read.
        """
        return self._index.think(keywords)

    def search(
        self, keywords: Iterable[str], wanted: Filter | None = None, part: slice = slice(MAX_HITS)
    ) -> Found:
        """Return a part of the hits among the memories that are meant, and their number.

        Raises:
            InvalidInput: the keywords are too many, or too long.
            StoreError: the directory cannot be read.
        """
        return self._index.search_keywords(keywords, wanted, part)

    def ask(
        self, question: Question, wanted: Filter | None = None, part: slice = slice(MAX_HITS)
    ) -> Answer:
        """Return what answers a question in a person's words; `index.ranking` defines the order.

        Raises:
            StoreError: the directory cannot be read.
        """
        return self._index.search(question, wanted, part)

    def recall(self, memory_ids: Iterable[str]) -> dict[str, list[Memory]]:
        """Return for each id, in the given order and once, every memory that carries it.

        An id that no memory carries has an empty list. Several can carry one only after two
        machines that drew the same id were joined, or a person copied a file.

        Raises:
            StoreError: the directory cannot be read.
        """
        wanted = list(dict.fromkeys(memory_ids))
        found = self._index.files(set(wanted)) if wanted else {}
        return {each: [memory for _, memory in found.get(each, [])] for each in wanted}

    def add(self, memory: Memory) -> Memory:
        """Store a memory that was made elsewhere or earlier; return it as it is stored.

        Raises:
            StoreError: the disk refused; nothing was left behind.
        """
        added = self._store.add(memory)
        self._tell()
        return added

    def add_all(self, memories: Iterable[Memory], stored: Callable[[Memory], object]) -> None:
        """Store memories that were made elsewhere together; `stored` is given each as it is stored.

        Raises:
            StoreError: the disk refused; nothing was left behind but what `stored` was given.
        """
        try:
            self._store.add_all(memories, stored)
        finally:
            self._tell()

    def edit(self, name: str, before: str, after: str) -> bool:
        """Give the file `name`, which holds the text `before`, the text `after`.

        Git gets what was there first, if it can.

        Returns:
            Whether git has what was there.

        Raises:
            MalformedFile: `after` is no memory, or one with another id.
            ChangedMeanwhile: the file does not hold `before`.
            StoreError: the disk refused. In each case the file is as it was.
        """
        if parse(after).id != (old := parse(before).id):
            raise MalformedFile([f"the id must stay {old}, by which agents know the memory"])
        if len(after.encode()) > MAX_FILE:
            raise MalformedFile([f"it is larger than {MAX_FILE // 1024 // 1024} MiB"])
        held_back = self.commit()
        self._replace(name, before, after)
        return held_back is not None and name not in held_back

    def forget(self, texts: Mapping[str, str]) -> set[str] | None:
        """Delete files, each with the text that it holds; git gets them first, if it can.

        Returns:
            The names of those that git's history keeps; None where git did not take what was new.

        Raises:
            ChangedMeanwhile: a file does not hold its text; it and those after it are as they were.
            StoreError: the disk refused; likewise.
        """
        from aiaml_server.sync.replica import confirm_deletions  # noqa: PLC0415 (loads slowly)

        held_back = self.commit()
        for name, before in texts.items():
            self._replace(name, before, None)
            confirm_deletions(self.base, [name])
        return None if held_back is None else set(texts) - set(held_back)

    def erase(
        self, names: Iterable[str], shared: Collection[str], ids: Collection[str]
    ) -> list[str]:
        """Take out what else there is here of memories that are forgotten everywhere.

        Args:
            names: their files, of which git may lack a version, such as one with a secret.
            shared: those of them that may hold another memory by now, which stays.
            ids: the memories.

        Returns:
            The files of them that are left, because they cannot be read.

        Raises:
            ChangedMeanwhile: a file changed meanwhile.
            StoreError: the disk refused.
        """
        texts, left = {}, []
        for name in names:
            try:
                text = self.text(name) if self.stamp(name) else None
            except MalformedFile:
                if name not in shared:
                    left.append(name)
                continue
            memory = parsed(text)
            if text is not None and (name not in shared or (memory and memory.id in ids)):
                texts[name] = text
        self.forget(texts)
        self._index.think([])  # it holds what it has read, until it looks again
        return left

    def restore(
        self, name: str, before: str | None, text: str, history: Collection[str] = ()
    ) -> None:
        """Give the file `name`, which holds `before`, a text of its `history`, as git has that.

        Raises:
            NotInGit: git has not got what it holds, which would be lost.
            ChangedMeanwhile: it does not hold `before`.
            StoreError: the disk refused. In each case the file is as it was.
        """
        if before is not None and before not in history:
            why = (self.commit() or {}).get(name)
            off = "" if self._settings.sync else "sync is off"
            raise NotCommitted(name, why.sentence if why else off)
        self._replace(name, before, text)

    def _replace(self, name: str, before: str | None, after: str | None) -> None:
        self._store.replace(name, before, after)
        self._tell()

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
            self._report(f"Not committed to git yet: {status.problem.sentence}")
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

    def _tell(self) -> None:
        """Let the background work know that a file was written or deleted."""
        self._changed.set()
        self.sync.wake()

    # --- what is there ------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Return the names of all files that may hold a memory.

        Raises:
            StoreError: the directory cannot be read.
        """
        return self._store.names()

    def text(self, name: str) -> str:
        """Return the text of the file `name`, as it stands.

        Raises:
            FileNotFoundError: there is no such file.
            MalformedFile: it is no text, or no file that could be a memory.
            StoreError: no file can be opened now.
        """
        return self._store.text(name)

    def stamp(self, name: str) -> Stamp | None:
        """Return what changes when the file `name` does, or for "" the directory, unread.

        None where there is none.

        Raises:
            StoreError: the directory cannot be read.
        """
        return self._store.stamp(name)

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, Memory]]:
        """Return the memories of files with their names; each is read when its turn comes.

        A damaged file is skipped, and logged once.
        """
        return self._store.scan(names)

    def dated(self, wanted: Filter | None = None) -> list[tuple[int | None, str]]:
        """Return the time and the file's name of every matching memory, newest first.

        Raises:
            StoreError: the directory cannot be read.
        """
        return self._index.dated(wanted)

    def newest(self, wanted: Filter | None = None) -> Iterator[tuple[str, Memory]]:
        """Return every memory that is meant with its file's name, newest first.

        Raises:
            StoreError: the directory cannot be read.
        """
        return self.read(name for _, name in self.dated(wanted))

    def counts(self, wanted: Filter, question: Question | None = None) -> Counts:
        """Count what a filter lets through, and what a question finds.

        Raises:
            StoreError: the directory cannot be read.
        """
        return self._index.counts(wanted, question)

    def find(self, memory_id: str) -> list[tuple[str, Memory]]:
        """Return every memory that carries an id, with its file's name, newest first.

        The first `SHORTEST_ID` characters are enough if no other id begins with them. If nothing is
        found, the id is tried in lower case.

        Raises:
            InvalidInput: several ids begin so.
            StoreError: the directory cannot be read.
        """
        return self._find(memory_id) or self._find(memory_id.lower())

    def similar(self, memory: Memory, count: int = 3) -> list[tuple[str, Memory]]:
        """Return the memories that say nearly the same as one, the most similar first.

        Raises:
            StoreError: the directory cannot be read.
        """
        from aiaml_server.index import Question  # noqa: PLC0415 (as the index itself)

        words = dict.fromkeys(re.findall(r"\w+", memory.content[:_COMPARED_CHARACTERS]))
        if not words:
            return []
        answer = self.ask(Question.parse(words), part=slice(count + 1))
        near = [hit for hit in answer.found.hits if answer.share(hit) >= _SIMILAR_SHARE]
        found = self.read(hit.file_name for hit in near)
        return [(name, each) for name, each in found if each.id != memory.id][:count]

    def replaced(self) -> list[tuple[str, Memory, str]]:
        """Return outdated memories: the file, the memory, and the id of its correction.

        A correction ends with "Replaces ID.", as agents are instructed to write.

        Raises:
            StoreError: the directory cannot be read.
        """
        hits = self.search(["replaces"], part=slice(_MAX_REPLACING)).hits
        found: dict[str, tuple[str, Memory, str]] = {}
        for _, newer in self.read(hit.file_name for hit in hits):
            for memory_id in REPLACES.findall(newer.content):
                for name, older in self.find(memory_id):
                    if older.id != newer.id and older.timestamp <= newer.timestamp:
                        found.setdefault(name, (name, older, newer.id))
        return list(found.values())

    def _find(self, memory_id: str) -> list[tuple[str, Memory]]:
        if len(memory_id) >= SHORTEST_ID and memory_id not in (ids := self._index.ids(memory_id)):
            if len(ids) > 1:
                raise InvalidInput("id", f"{memory_id} is the beginning of {', '.join(ids[:5])}")
            memory_id = ids[0] if ids else memory_id
        return self._index.files([memory_id]).get(memory_id, [])
