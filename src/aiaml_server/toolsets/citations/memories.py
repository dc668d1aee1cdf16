"""The operations on one repository's memories. Failures are `failures.ToolError`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from aiaml_server.format.secrets import Secret
from aiaml_server.toolset import replace_surrogates
from aiaml_server.toolsets.citations import REPOSITORY, graph
from aiaml_server.toolsets.citations.citing import ask_about, recorded
from aiaml_server.toolsets.citations.config import DIRECTORY, NAME, Config, load, parse
from aiaml_server.toolsets.citations.effort import Effort
from aiaml_server.toolsets.citations.failures import (
    DiskError,
    InvalidInput,
    MalformedMemory,
    NoRepository,
    NotFound,
    Unavailable,
)
from aiaml_server.toolsets.citations.graph import Edge, Walk
from aiaml_server.toolsets.citations.indexes import MemoryIndex, NullIndex, Synced
from aiaml_server.toolsets.citations.model import (
    LINK_TYPES,
    LONGEST_SUBJECT,
    Citation,
    Link,
    Memory,
    cites,
    instant,
    is_drawn,
    is_id,
    midnight,
    new_id,
    now,
    place,
)
from aiaml_server.toolsets.citations.notation import relative
from aiaml_server.toolsets.citations.repository import changed_since, files_at
from aiaml_server.toolsets.citations.search import Hit, arranged, merged, rank, successors
from aiaml_server.toolsets.citations.sources import Outside, Past, Sources, Unreadable
from aiaml_server.toolsets.citations.store import MAX_HEAD, MOST_READ, Scan, Store
from aiaml_server.toolsets.citations.verify import UNSEEN, Checked, check_all, confidence
from aiaml_server.toolsets.owners import foreign_owner
from aiaml_server.toolsets.warning import find_leak, secret_warning

MOST = 1000  # memories in one answer, and values in one list that a call is given
_TO_VERIFY = 8  # what a byte of a content weighs in which secrets are looked for
_NAMES = re.compile(rb"(?i:key|token|secret|pass|pwd)")  # beside which secrets are looked for
_MOST_NAMES = 100_000  # in all texts of a call; each takes some five microseconds
_NOT_LOOKED = "it names so many keys that no secret was looked for; verify it alone"
_CANDIDATES = 50  # that an index is asked for
BY_A_PERSON = 8  # times the work of a call, where a person or CI has typed what is waited for
_PARTS = ("Fact", "Reasoning", "Action")
_LOOKS_SO = re.compile(r"mem-.+-[0-9a-f]{8}\.(?:md|markdown)")
_MOST_DAYS = 7  # between two dates of verification in a file
_Value = TypeVar("_Value")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Saved(NamedTuple):
    """What saving did.

    Attributes:
        id: the memory's id.
        path: its file's, below the repository's top.
        created: whether it is new.
        warnings: what its maker should know.
    """

    id: str
    path: str
    created: bool
    warnings: list[str]


class Verified(NamedTuple):
    """What became of a memory's citations.

    Attributes:
        memory: the memory, as it was before.
        path: its file's, below the repository's top.
        checked: each citation's verdict.
        updated: whether the file was changed.
        leak: the first secret that its file seems to hold.
        unwritten: why it was not changed, where it should have been.
    """

    memory: Memory
    path: str
    checked: list[Checked]
    updated: bool = False
    leak: Secret | None = None
    unwritten: str = ""

    @property
    def valid(self) -> bool:
        """Whether every citation holds; of none that is so."""
        return all(each.valid for each in self.checked)

    @property
    def stale(self) -> list[Checked]:
        """The citations that hold no more."""
        return [each for each in self.checked if each.stale]

    @property
    def unseen(self) -> bool:
        """Whether one of them could not be looked at."""
        return any(each.verdict == UNSEEN for each in self.checked)

    @property
    def confidence(self) -> float | None:
        """The mean over the citations; None where there are none."""
        return confidence(self.checked)


class Found(NamedTuple):
    """What a search found.

    Attributes:
        hits: the memories, best first.
        checked: what became of their citations, by id, where that was asked for.
        left_out: the memories that would have been hits, but have stale citations.
        broken: the files that could not be read, with what is wrong.
        notes: what else should be known.
    """

    hits: list[Hit]
    checked: dict[str, Verified]
    left_out: list[Verified]
    broken: dict[str, str]
    notes: Sequence[str] = ()


def find_root(
    given: str | os.PathLike[str] | None,
    start: Path | None = None,
    by: str = f"--repo or {REPOSITORY}",
) -> Path:
    """Return the top directory of the repository whose memories are meant.

    Args:
        given: what somebody named; it may also have memories alone. Else it is found upwards from
            `start`.
        start: where to begin; the working directory where None.
        by: by what one is named, for whoever must do it.

    Raises:
        NoRepository: it is no directory, or no repository's top; or none was found, or another
            user's.
    """
    if given:
        name = f"the repository {os.fspath(given)[:200]!r}"
        try:
            path = Path(given).expanduser()
            if not path.is_dir():
                raise NoRepository(f"{name} is no directory")
            path = path.resolve()
            if _is_top(path) or (path / DIRECTORY).is_dir():
                return path
        except (OSError, RuntimeError, ValueError):
            raise NoRepository(f"{name} is no directory") from None
        raise NoRepository(
            f"{name} is not the top of a repository: it has no .git, {NAME} or {DIRECTORY}"
        )
    start = (start or Path.cwd()).resolve()
    for directory in (start, *start.parents):
        if _is_top(directory):
            if whose := foreign_owner(directory, (".git", NAME, DIRECTORY, f"{DIRECTORY}/{NAME}")):
                raise NoRepository(whose)
            return directory
    raise NoRepository(f"{start} is in no repository; name one by {by}")


def _is_top(place: Path) -> bool:
    return (place / ".git").exists() or (place / NAME).is_file()


class Memories:
    """One repository's memories."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        index: MemoryIndex | None = None,
        *,
        forgetful: str = "",
        check_secrets: bool = True,
    ) -> None:
        """Take a repository's top directory; nothing is made.

        Args:
            root: the directory.
            index: searches by meaning; the one that the settings name where None.
            forgetful: the address of the one server that may be asked where they name it.
            check_secrets: whether saving and verifying tell what seems to hold a secret.

        Raises:
            InvalidConfig: its settings are not as they must be.
            DiskError: the directory of memories leads out of it.
        """
        self.root = Path(root)
        self.check_secrets = check_secrets
        self.config: Config = load(self.root)
        self.store = Store(self.root, self.config)
        self.index = index or _index(self.root, self.config, forgetful)

    # --- reading --------------------------------------------------------------------------------

    def get(self, memory_id: str) -> Memory:
        """Return a memory.

        Raises:
            NotFound, MalformedMemory, DiskError: see there.
        """
        return self.store.get(memory_id)

    def list(self, tags: Iterable[str] | None = None) -> Scan:
        """Return all memories, or those that have all of some tags."""
        wanted = {each.casefold() for each in _few("tags", tags) or ()}
        scan = self.store.scan()
        memories = {
            key: each
            for key, each in scan.memories.items()
            if wanted <= {tag.casefold() for tag in each.tags}
        }
        return Scan(memories, scan.broken)

    def search(
        self,
        query: str = "",
        limit: int | None = None,
        verify: bool = False,
        tags: Iterable[str] | None = None,
        paths: Iterable[str] | None = None,
    ) -> Found:
        """Return the memories that a question is about, or that cite some files, best first.

        Args:
            query: words, or a whole question; it may be empty where paths are given.
            limit: how many at most; None for what the settings say.
            verify: leave out the memories with stale citations.
            tags: only memories that have all of these.
            paths: only memories that cite one of these files, or one in these directories.

        Raises:
            InvalidInput: there is neither a question nor a path, or the limit is none.
        """
        wanted = {each.casefold() for each in _few("tags", tags) or ()}
        asked = _few("paths", paths)
        files = None if asked is None else {relative(each, self.root) for each in asked}
        if not query.strip() and not files:
            raise InvalidInput("query: must be words to search for, unless paths are given")
        limit = self.config.limit if limit is None else limit
        if not 1 <= limit <= MOST:
            raise InvalidInput(f"limit: must be a whole number from 1 to {MOST}")
        scan = self.store.scan()
        about = [each for each in scan.memories.values() if files is None or cites(each, files)]
        near: Sequence[tuple[str, float]] = ()
        notes: Sequence[str] = ()
        if not query.strip():
            ranked = [(each, 1.0) for each in about]
        else:
            ranked = rank(about, query, self.config.shortest)
            near, notes = self._near(query, limit)
        found = [
            (each, score)
            for each, score in merged(ranked, near, {each.id: each for each in about})
            if wanted <= {tag.casefold() for tag in each.tags}
        ]
        sources = Sources(self.root)
        result = Found([], {}, [], scan.broken, notes)
        hits = arranged(found, successors(scan.memories))
        if verify or self.config.on_retrieval:
            sources.ask_about(_cited(each.memory for each in hits[: 2 * limit]))
        for hit in hits:
            if len(result.hits) == limit:
                break
            if verify or self.config.on_retrieval:
                checked = self._checked(hit.memory, sources)
                if verify and checked.stale:
                    result.left_out.append(checked)
                    continue
                result.checked[hit.memory.id] = checked
            result.hits.append(hit)
        return result

    def _near(self, query: str, limit: int) -> tuple[Sequence[tuple[str, float]], Sequence[str]]:
        """Return what the index finds; where it does not answer, a sentence that says so."""
        try:
            return self.index.search(query, max(limit, _CANDIDATES)), ()
        except Unavailable as error:
            return (), [f"Found by words alone: {error}"]

    def changed(self, revision: str) -> tuple[Sequence[str], Sources]:
        """Return the cited files that differ from a commit, and the files as they were then.

        Raises:
            InvalidInput: there is no git, or no such commit.
        """
        root = os.fspath(self.root)
        was = files_at(root, revision)
        if was is None:
            raise InvalidInput(
                f"--changed: git knows no commit {revision[:200]!r} here, or not all of it"
            )
        sources = Sources(self.root, BY_A_PERSON)
        cited = dict.fromkeys(_cited(self.list().memories.values()))
        sources.ask_about(cited)
        paths = [each for each in sorted(cited) if each in was or sources.shows(each)]
        return changed_since(root, was, paths), Past(self.root, was, BY_A_PERSON)

    def age(self, memory: Memory) -> int | None:
        """Return the days since a memory was verified; None where it never was."""
        then = instant(memory.verified)
        return None if then is None else max(0, (datetime.now(timezone.utc) - then).days)

    def is_overdue(self, memory: Memory) -> bool:
        """Say whether a memory's citations were not verified for too long."""
        age = self.age(memory)
        return bool(memory.citations) and (age is None or age > self.config.stale_days)

    # --- writing --------------------------------------------------------------------------------

    def save(
        self,
        subject: str | None = None,
        content: str | None = None,
        citations: Sequence[Citation] | None = None,
        links: Sequence[Link] | None = None,
        tags: Sequence[str] | None = None,
        id: str | None = None,  # noqa: A002 (the specification's name)
        *,
        others: str = "drop",
        start: str = "",
    ) -> Saved:
        """Create a memory, or update the one with the given id.

        What is not given stays as it was; only a new memory needs a subject and a content.

        Args:
            subject: one line.
            content: markdown.
            citations: what it rests on.
            links: its edges.
            tags: its classification.
            id: the memory to update, or the name of a new one.
            others: what becomes of citations that it has and that are not given: `drop`, `keep`,
                or `refuse` to let them go.
            start: the directory that cited paths may be relative to; empty for the top.

        Raises:
            InvalidInput, InvalidCitation: a value cannot be used.
            MalformedMemory: the file that would be updated is no memory.
            Busy, DiskError: see there.
        """
        warnings: list[str] = []
        citations, links = _few("citations", citations), _few("links", links)
        tags = _few("tags", tags)
        if subject is not None:
            subject = _line("subject", subject, LONGEST_SUBJECT)
        if content is not None:
            content, warnings = _content(content)
        if id is not None and not is_id(id):
            raise InvalidInput(f"id: {id[:150]!r} must look like mem-topic-1a2b3c4d")
        sources = Sources(self.root)
        cited = None
        if citations is not None:
            there = self._citations_of(id)
            cited = _recorded(citations, sources, warnings, there, start)
        changes = _labels(subject, tags, links)
        with self.store.writing():
            memory_id, before = self._target(subject, content, id)
            if cited is not None and before is not None:
                cited = _beside(before.citations, cited, others)
            if cited is not None and (before is None or cited != before.citations):
                changes |= _checked_anew(cited, sources)
            warnings += self._warnings_of(changes.get("links", ()), memory_id)
            if before is None:
                if id is None:
                    self._refuse_double(memory_id, str(subject), links or ())
                changes |= {"content": content, "created": now()}
                self.store.add(Memory(id=memory_id, **changes))
            else:
                self._change(before, changes, content)
            after = self.store.get(memory_id)
        texts = (self.store.text(memory_id), after.subject, after.content[:300])
        warnings += secret_warning(*texts, check=self.check_secrets)
        try:
            self.index.add(after)
        except Unavailable as error:
            warnings.append(f"{error}; `sync-index` makes up for it")
        return Saved(memory_id, self.store.path(memory_id), before is None, warnings)

    def _citations_of(self, memory_id: str | None) -> Sequence[Citation]:
        with suppress(NotFound, MalformedMemory):
            return self.get(memory_id).citations if memory_id else ()
        return ()

    def recite(self, memory_id: str, old: str, new: Citation | None, *, start: str = "") -> Saved:
        """Put another citation in the place of one; the others stay as they are.

        Args:
            memory_id: the memory's id.
            old: the citation, as path and line: `shop/prices.py:12`.
            new: the other one; None to let go of it.
            start: the directory that its path may be relative to; empty for the top.

        Raises:
            InvalidInput, InvalidCitation: the memory cites no such place, or it cannot be cited.
            NotFound, MalformedMemory, Busy, DiskError: see there.
        """
        sources = Sources(self.root)
        warnings: list[str] = []
        with self.store.writing():
            before = self.get(memory_id)
            places = [place(each) for each in before.citations]
            if old not in places:
                cites = ", ".join(places) or "nothing"
                raise InvalidInput(f"{memory_id} does not cite {old[:300]}; it cites {cites}")
            cited = list(before.citations)
            at = places.index(old)
            cited[at : at + 1] = []
            if new is not None:
                kept, warnings = recorded(new, sources, start=start)
                cited.insert(at, kept)
            self._change(before, _checked_anew(tuple(dict.fromkeys(cited)), sources))
        return Saved(memory_id, self.store.path(memory_id), False, warnings)

    def _target(
        self, subject: str | None, content: str | None, given: str | None
    ) -> tuple[str, Memory | None]:
        """Return the id to save under, and the memory that has it."""
        if given:
            with suppress(NotFound):
                return given, self.store.get(given)
        why = f"there is no memory {given} yet" if given else "only an update may leave it out"
        for field, value in (("subject", subject), ("content", content)):
            if value is None:
                raise InvalidInput(f"{field}: is missing; {why}")
        if given:
            return given, None
        for size in (8, 16, 32, 64):
            name = new_id(subject or "", content or "", size)
            try:
                found = self.store.get(name)
            except NotFound:
                return name, None
            if (found.subject, found.content) == (subject, content):
                return name, found
        raise InvalidInput("id: all that this subject and content have are taken; give one")

    def _refuse_double(self, memory_id: str, subject: str, links: Sequence[Link]) -> None:
        """Raise where another memory has the subject of a new one, which nothing supersedes.

        Ids that are not a person's own begin with their subject's words, so few files are read.
        """
        topic = memory_id.rpartition("-")[0]
        near = [each for each in self.store.ids() if each.startswith(topic) or not is_drawn(each)]
        with suppress(NotFound):  # deleted meanwhile
            others = self.store.scan(near).memories.values()
            linked = [*links, *(link for each in others for link in each.links)]
            superseded = {each.target for each in linked if each.type == "supersedes"}
            for other in others:
                is_same = other.subject.casefold() == subject.casefold()
                if is_same and other.id not in superseded:
                    raise InvalidInput(
                        f"subject: {other.id} has it already, with another text; update that one by"
                        " its id, supersede it by a link, or say in the subject what differs"
                    )

    def _warnings_of(self, links: Sequence[Link], memory_id: str) -> Sequence[str]:
        known = {*self.store.ids(), memory_id} if links else set()
        gone = [
            f"there is no memory {each.target} yet" for each in links if each.target not in known
        ]
        return gone + [f"{memory_id} links to itself" for each in links if each.target == memory_id]

    def delete(self, memory_id: str) -> Sequence[Edge]:
        """Delete a memory; return the links that lead nowhere now.

        Raises:
            NotFound, Busy, DiskError: see there.
        """
        with self.store.writing():
            self.store.delete(memory_id)
        with suppress(Unavailable):  # what is not in the files is no hit
            self.index.remove(memory_id)
        return self.related(memory_id)

    def _change(self, before: Memory, changes: dict[str, Any], content: str | None = None) -> bool:
        stated = replace(before, **changes).stated()
        return self.store.change(
            before.id, {key: each for key, each in stated.items() if key in changes}, content
        )

    # --- verifying ------------------------------------------------------------------------------

    def verify(
        self, memory_id: str, update_timestamp: bool = True, update_lines: bool = False
    ) -> Verified:
        """Say whether a memory's citations still hold.

        Args:
            memory_id: the memory's id.
            update_timestamp: note the time, if all of them do.
            update_lines: write down on which lines, and in which files, they stand today.

        Raises:
            NotFound, MalformedMemory, Busy, DiskError: see there.
        """
        memory = self.get(memory_id)
        result = self._verify(memory, Sources(self.root), update_timestamp, update_lines)
        return self._with_leaks([result], {})[0]

    def verify_all(
        self,
        ids: Iterable[str] | None = None,
        update_timestamp: bool = False,
        update_lines: bool = False,
        *,
        times: int = 1,
    ) -> tuple[Sequence[Verified], dict[str, str]]:
        """Verify all memories, or some; return the results, and the files that could not be read.

        `times` is how often the work that one call has may be done for the citations.

        Those that could not be written are among the latter, with the reason; and those that were
        not looked at.

        Raises:
            NotFound, Busy: see there.
            DiskError: the directory cannot be read.
        """
        sources = Sources(self.root, times)
        results = []
        asked = _few("memory_ids", ids, times * MOST)
        memories, broken = self.store.scan(asked, times=_TO_VERIFY if self.check_secrets else 2)
        broken |= self.unread() if asked is None else {}
        sources.ask_about(_cited(memories.values()))
        for memory in memories.values():
            try:
                results.append(self._verify(memory, sources, update_timestamp, update_lines))
            except (MalformedMemory, DiskError) as error:
                broken[self.store.path(memory.id)] = str(error)
            except NotFound:  # deleted meanwhile
                continue
        return self._with_leaks(results, broken), broken

    def unread(self, past: Sources | None = None) -> dict[str, str]:
        """Return the directories in which files look like memories that the settings leave out.

        They are looked for where memories are usually, where they are now and, with the files of
        a commit, where they were then: else who changes the settings has none of them verified.
        """
        found: dict[str, str] = {}
        then = {_directory_in(past)} if past else set()
        for name in sorted({DIRECTORY, self.config.directory, *then}):
            directory = self.store.root / name
            if os.path.realpath(directory) != os.fspath(directory) or not directory.is_dir():
                continue
            own = self.store.directory
            names = [each for each in os.listdir(directory) if _LOOKS_SO.fullmatch(each)]  # noqa: PTH208
            if own.exists() and directory.samefile(own):
                names = [each for each in names if not each.endswith(self.config.extension)]
            if names:
                found[name] = (
                    f"{name}: {len(names)} that look like memories, such as {min(names)}, are not"
                    f" read: {NAME} keeps them in {self.config.directory}, as"
                    f" {self.config.extension}"
                )
        return found

    def _with_leaks(
        self, results: Sequence[Verified], broken: dict[str, str]
    ) -> Sequence[Verified]:
        """Say which of the memories seem to hold a secret; looked for in all texts at once.

        Those that were not looked through for it are added to `broken`; the first always is.
        """
        if not self.check_secrets:
            return results
        texts: dict[str, bytes] = {}
        effort = Effort(_MOST_NAMES)
        for each in results:
            with suppress(NotFound, DiskError, MalformedMemory):  # gone since
                text = self.store.text(each.memory.id).encode("utf-8", "replace")
                if effort.has(len(_NAMES.findall(text))) or not texts:
                    texts[each.memory.id] = text
                else:
                    broken[each.path] = f"{each.path}: {_NOT_LOOKED}"
        if not find_leak(b"\n\n".join(texts.values()), check=True):
            return results
        return [
            each._replace(leak=find_leak(texts.get(each.memory.id, b""), check=True))
            for each in results
        ]

    def _checked(self, memory: Memory, sources: Sources) -> Verified:
        return Verified(memory, self.store.path(memory.id), check_all(memory.citations, sources))

    def _verify(self, memory: Memory, sources: Sources, stamp: bool, lines: bool) -> Verified:
        result = self._checked(memory, sources)
        changes: dict[str, Any] = {}
        today = tuple(each.today() for each in result.checked) if lines else ()
        moves = lines and today != result.memory.citations
        if moves:
            changes["citations"] = today
        if stamp and result.checked and result.valid:
            age = self.age(memory)
            # Seldom, for two branches may note it both.
            is_due = age is None or age >= min(_MOST_DAYS, self.config.stale_days / 4)
            if is_due:
                changes["verified"] = midnight()
            if is_due or moves:
                held = check_all(today, sources) if lines else result.checked
                changes["confidence"] = confidence(held)
        if not changes:
            return result
        try:
            with self.store.writing():
                if self.get(memory.id) != memory:  # somebody else was quicker
                    return self._checked(self.get(memory.id), sources)
                updated = self._change(result.memory, changes)
        except DiskError as error:  # such as a tree that may only be read
            return result._replace(unwritten=str(error))
        return result._replace(updated=updated)

    # --- the graph ------------------------------------------------------------------------------

    def traverse(
        self,
        root_id: str,
        max_depth: int = 3,
        link_types: Iterable[str] | None = None,
        order: str = "bfs",
    ) -> Walk:
        """Walk along the links from a memory.

        Args:
            root_id: where to begin.
            max_depth: how far; never farther than the settings allow.
            link_types: which links to follow; None for all.
            order: `bfs` or `dfs`.

        Raises:
            InvalidInput: there is no such type or order, or too much is reached.
            NotFound, MalformedMemory, DiskError: of the first memory.
        """
        asked = _few("link_types", link_types)
        types = None if asked is None else set(asked)
        for each in types or ():
            if each not in LINK_TYPES:
                raise InvalidInput(f"link_types: {each!r} must be one of {', '.join(LINK_TYPES)}")
        if order not in graph.ORDERS:
            raise InvalidInput(f"order: {order!r} must be bfs or dfs")
        if max_depth < 0:
            raise InvalidInput("max_depth: must be a whole number from 0")
        self.get(root_id)

        effort = Effort(MOST_READ)

        def links(memory_id: str) -> Sequence[Link] | None:
            try:
                found, weight = self.store.weighed(memory_id)
            except (NotFound, MalformedMemory) as error:
                effort.spend(MAX_HEAD * (1 if isinstance(error, NotFound) else 256))
                return None
            effort.spend(weight + len(found.content))
            return found.links

        return graph.traverse(root_id, links, min(max_depth, self.config.depth), types, order)

    def whole_graph(self, link_types: Iterable[str] | None = None) -> Walk:
        """Return all memories and their links, or those of some types."""
        memories = self.store.scan().memories
        types = set(LINK_TYPES if link_types is None else _few("link_types", link_types) or ())
        edges = dict.fromkeys(
            Edge(each.id, link.target, link.type)
            for each in memories.values()
            for link in each.links
            if link.type in types
        )
        missing = dict.fromkeys(each.target for each in edges if each.target not in memories)
        return Walk(dict.fromkeys(memories, 0), list(edges), list(missing))

    def related(self, memory_id: str) -> Sequence[Edge]:
        """Return the links that lead to a memory."""
        return graph.related(memory_id, self.store.scan().memories.values())

    def find_roots(self) -> Sequence[str]:
        """Return the ids of the memories that no other one links to."""
        return graph.roots(self.store.scan().memories.values())

    def sync_index(self) -> Synced:
        """Bring the index for search by meaning up to date with the files.

        Raises:
            Unavailable: it does not answer, or is not installed.
        """
        return self.index.sync(self.store.scan().memories)


def _index(root: Path, config: Config, forgetful: str) -> MemoryIndex:
    """Return the index that the settings name; what it needs is imported when it is used."""
    if config.index == "chroma":
        from aiaml_server.toolsets.citations.chroma import ChromaIndex  # noqa: PLC0415 (few need it)

        return ChromaIndex(root.resolve() / config.chroma_directory, config.chroma_collection)
    if config.index == "forgetful":
        from aiaml_server.toolsets.citations.forgetful import ForgetfulIndex  # noqa: PLC0415 (imports a client of HTTP)

        return ForgetfulIndex(config.forgetful, allowed=forgetful)
    return NullIndex()


def _cited(memories: Iterable[Memory]) -> Iterator[str]:
    return (one.path for each in memories for one in each.citations)


def _few(
    field: str, values: Iterable[_Value] | None, most: int = MOST
) -> tuple[_Value, ...] | None:
    """Return the values of a list that a call is given.

    Raises:
        InvalidInput: there are too many; they are not looked at.
    """
    if values is None:
        return None
    found = tuple(islice(values, most + 1))
    if len(found) > most:
        raise InvalidInput(f"{field}: must be at most {most:,}")
    return found


def _labels(
    subject: str | None, tags: Sequence[str] | None, links: Sequence[Link] | None
) -> dict[str, Any]:
    """Return what changes of a memory's head, each value once."""
    changes: dict[str, Any] = {} if subject is None else {"subject": subject}
    if tags is not None:
        changes["tags"] = tuple(dict.fromkeys(_line("tags", each, 100) for each in tags))
    if links is not None:
        changes["links"] = tuple(dict.fromkeys(map(_link, links)))
    return changes


def _recorded(
    citations: Sequence[Citation],
    sources: Sources,
    warnings: list[str],
    there: Sequence[Citation],
    start: str,
) -> tuple[Citation, ...]:
    """Return citations as a memory keeps them, add what their maker should know.

    Those that it has already stay as they are where their file has gone.
    """
    sources.ask_about(each.path for each in there)
    ask_about(citations, sources, start)
    gone = {each for each in there if sources.lacks(each.path)}
    pairs = [
        (each, list[str]()) if each in gone else recorded(each, sources, start=start)
        for each in citations
    ]
    warnings += [warning for _, said in pairs for warning in said]
    return tuple(dict.fromkeys(each for each, _ in pairs))


def _checked_anew(cited: tuple[Citation, ...], sources: Sources) -> dict[str, Any]:
    """Return what a memory says of its citations once they are others."""
    checked = check_all(cited, sources)
    holds = bool(checked) and all(each.valid for each in checked)
    return {
        "verified": midnight() if holds else "",
        "confidence": confidence(checked),
        "citations": cited,
    }


def _beside(
    there: Sequence[Citation], given: tuple[Citation, ...], others: str
) -> tuple[Citation, ...]:
    """Return a memory's citations with the given ones, each in the place of that of its line.

    Raises:
        InvalidInput: some would be lost, and that is to be refused.
    """
    anew = {place(each): each for each in given}
    lost = [place(each) for each in there if place(each) not in anew]
    if others == "refuse" and lost:
        raise InvalidInput(
            f"citations: this would let go of {', '.join(lost)}; give those as well, or say"
            " drop_citations=true"
        )
    if others != "keep":
        return given
    kept = [anew.pop(place(each), each) for each in there]
    return tuple(dict.fromkeys([*kept, *anew.values()]))


def _line(field: str, text: str, longest: int) -> str:
    """Return a text that is one line, without blanks around.

    Raises:
        InvalidInput: it is empty, too long, or has control characters.
    """
    text = replace_surrogates(text).strip()
    if not text or len(text) > longest:
        raise InvalidInput(f"{field}: must have from 1 to {longest} characters")
    if _CONTROL.search(text) or len(text.splitlines()) > 1:
        raise InvalidInput(f"{field}: must be one line, without control characters")
    return text


def _content(content: str) -> tuple[str, list[str]]:
    """Return a content as it is kept, and what is usual and missing in it.

    Raises:
        InvalidInput: it is empty or has control characters.
    """
    content = re.sub(r"\r\n?", "\n", replace_surrogates(content)).strip("\n")
    if not content.strip():
        raise InvalidInput("content: is empty; state the fact, its reasoning and the action")
    if found := _CONTROL.search(content):
        line = content.count("\n", 0, found.start()) + 1
        raise InvalidInput(f"content: line {line} has the control character U+{ord(found[0]):04X}")
    missing = [each for each in _PARTS if f"**{each}**:" not in content]
    if missing:
        return content, [f"content lacks {' and '.join(f'**{each}**' for each in missing)}"]
    return content, []


def _link(link: Link) -> Link:
    if link.type not in LINK_TYPES:
        raise InvalidInput(f"links: type {link.type!r} must be one of {', '.join(LINK_TYPES)}")
    if not is_id(link.target):
        raise InvalidInput(f"links: target {link.target[:150]!r} must be a memory's id")
    return link


def _directory_in(past: Sources) -> str:
    """Return where memories were kept in a commit."""
    for file in (NAME, f"{DIRECTORY}/{NAME}"):
        with suppress(Unreadable, Outside, MalformedMemory):
            return parse(past.get(file).text).directory
    return DIRECTORY
