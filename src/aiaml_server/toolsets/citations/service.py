"""The operations on one repository's memories. Their errors are subclasses of `ToolError`."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from aiaml_server.toolset import replace_surrogates
from aiaml_server.toolsets.citations import graph
from aiaml_server.toolsets.citations.citing import build_citation, relative_path
from aiaml_server.toolsets.citations.config import CONFIG_NAME, DEFAULT_DIRECTORY, load_config
from aiaml_server.toolsets.citations.errors import (
    DiskError,
    InvalidInput,
    MalformedMemory,
    NoRepository,
    NotFound,
    Unavailable,
)
from aiaml_server.toolsets.citations.index import MemoryIndex, NullIndex
from aiaml_server.toolsets.citations.models import (
    LINK_TYPES,
    MAX_SUBJECT,
    Citation,
    Link,
    Memory,
    current_time,
    generate_id,
    parse_time,
)
from aiaml_server.toolsets.citations.search import Hit, mark_superseded, merge, rank
from aiaml_server.toolsets.citations.sources import SourceTree
from aiaml_server.toolsets.citations.store import MemoryStore, Scan
from aiaml_server.toolsets.citations.verify import (
    UNSEEN,
    CheckedCitation,
    check_citations,
    mean_confidence,
    relocate,
)
from aiaml_server.toolsets.owners import foreign_owner
from aiaml_server.toolsets.warning import find_leak, secret_warning

_CONTENT_PARTS = ("Fact", "Reasoning", "Action")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class SaveResult(NamedTuple):
    """What a save did.

    Attributes:
        id: the memory's id.
        path: its file, relative to the repository's top.
        created: whether it is new.
        warnings: what its author should know.
    """

    id: str
    path: str
    created: bool
    warnings: list[str]


class VerifiedMemory(NamedTuple):
    """A memory and the verdicts on its citations.

    Attributes:
        memory: the memory, with the new time of verification if it was written.
        path: its file, relative to the repository's top.
        checked: the verdict on each citation.
        problem: that the file seems to hold a secret, or why it could not be changed.
        is_updated: whether the file was changed.
    """

    memory: Memory
    path: str
    checked: list[CheckedCitation]
    problem: str = ""
    is_updated: bool = False

    @property
    def is_valid(self) -> bool:
        """Whether every citation still holds."""
        return all(entry.is_valid for entry in self.checked)

    @property
    def stale(self) -> list[CheckedCitation]:
        """The citations that no longer hold."""
        return [entry for entry in self.checked if entry.is_stale]

    @property
    def is_unseen(self) -> bool:
        """Whether a citation could not be looked at."""
        return any(entry.verdict == UNSEEN for entry in self.checked)


class SearchResult(NamedTuple):
    """What a search found.

    Attributes:
        hits: the memories, best first.
        left_out: the memories that were left out because they are stale.
        unread: the files that could not be read, by path, with the reason.
        note: what else the caller should know.
    """

    hits: list[Hit]
    left_out: list[VerifiedMemory]
    unread: dict[str, str]
    note: str


def find_repository(given: str | os.PathLike[str] | None, cwd: str | os.PathLike[str] = "") -> Path:
    """Return the top directory of a repository.

    Args:
        given: the directory that somebody named; None or empty to search upwards.
        cwd: where the search begins; empty for the working directory.

    Raises:
        NoRepository: there is none, or the one that was found belongs to another user.
    """
    start = Path(os.path.realpath(Path(given or cwd or os.curdir).expanduser()))
    names = (".git", CONFIG_NAME, DEFAULT_DIRECTORY)
    for directory in (start,) if given else (start, *start.parents):
        if any((directory / name).exists() for name in (names if given else names[:2])):
            problem = "" if given else foreign_owner(directory, names)
            if problem:
                raise NoRepository(problem)
            return directory
    raise NoRepository(
        f"{start} is not in a repository with .git or {CONFIG_NAME}; name one with --repo or"
        " AIAML_CITATIONS_REPO"
    )


class MemoryService:
    """The memories of one repository."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        index: MemoryIndex | None = None,
        *,
        forgetful: str = "",
        check_secrets: bool = True,
    ) -> None:
        """Take the repository's top. Nothing is created.

        Args:
            root: the directory.
            index: the search index; None for the one that the configuration names.
            forgetful: the only address of a Forgetful server that may be asked.
            check_secrets: whether to look for secrets in memories.

        Raises:
            InvalidConfig: the configuration is wrong.
            DiskError: the directory of memories leads out of the repository.
        """
        self.root = Path(os.path.realpath(root))
        self.config = load_config(self.root)
        self.store = MemoryStore(self.root, self.config)
        self.index = index or self._open_index(forgetful)
        self._check_secrets = check_secrets

    def _open_index(self, forgetful: str) -> MemoryIndex:
        config = self.config
        if config.index == "chroma":
            from aiaml_server.toolsets.citations.chroma import ChromaIndex  # noqa: PLC0415

            return ChromaIndex(self.root / config.chroma_directory, config.chroma_collection)
        if config.index == "forgetful":
            from aiaml_server.toolsets.citations.forgetful import ForgetfulIndex  # noqa: PLC0415

            return ForgetfulIndex(config.forgetful_endpoint, forgetful, str(self.root))
        return NullIndex()

    # --- reading ----------------------------------------------------------------------------------

    def get(self, memory_id: str) -> Memory:
        """Return a memory; raises as `MemoryStore.read_text` does."""
        return self.store.get(memory_id)

    def list_memories(self, tags: Sequence[str] | None = None) -> Scan:
        """Return all memories, or those that have all of some tags."""
        scan = self.store.scan()
        wanted = set(map(str.casefold, tags or ()))
        memories = scan.memories.items()
        found = {k: each for k, each in memories if wanted <= set(map(str.casefold, each.tags))}
        return scan._replace(memories=found)

    def search(
        self,
        query: str = "",
        limit: int | None = None,
        verify: bool = False,
        tags: Sequence[str] | None = None,
        paths: Sequence[str] | None = None,
    ) -> SearchResult:
        """Return the memories that match a question, or cite some files, best first.

        Args:
            query: words or a question; may be empty if paths are given.
            limit: the largest number of results; None for that of the configuration.
            verify: leave out memories with stale citations.
            tags: only memories with all of these.
            paths: only memories that cite one of these files or directories.

        Raises:
            InvalidInput: there is neither a question nor a path.
        """
        if not query.strip() and not paths:
            raise InvalidInput("query: must be words to search for, unless paths are given")
        scan = self.list_memories(tags)
        candidates = scan.memories
        if paths:
            files = [relative_path(path, self.root) for path in paths]
            candidates = {key: each for key, each in candidates.items() if each.cites_any(files)}
        limit = limit or self.config.limit
        note = ""
        found = [(memory, 1.0) for memory in candidates.values()]
        if query.strip():
            found = rank(candidates.values(), query, self.config.min_keyword_length)
            try:
                found = merge(found, self.index.search(query, limit), candidates)
            except Unavailable as error:
                note = f"Found by words alone: {error}"
        result = SearchResult([], [], scan.unread, note)
        tree = SourceTree(self.root)
        for hit in mark_superseded(found, scan.memories.values()):
            if len(result.hits) == limit:
                break
            verified = self._check(hit.memory, tree) if verify else None
            if verified and verified.stale:
                result.left_out.append(verified)
            else:
                result.hits.append(hit)
        return result

    def days_since_verified(self, memory: Memory) -> int | None:
        """Return the days since a memory was verified; None if it never was."""
        time = parse_time(memory.verified or "")
        return max(0, (datetime.now(timezone.utc) - time).days) if time else None

    def is_overdue(self, memory: Memory) -> bool:
        """Return whether a memory's citations were not verified for too long."""
        days = self.days_since_verified(memory)
        return bool(memory.citations) and (days is None or days > self.config.stale_days)

    # --- writing ----------------------------------------------------------------------------------

    def save(
        self,
        subject: str | None = None,
        content: str | None = None,
        citations: Sequence[Citation] | None = None,
        links: Sequence[Link] | None = None,
        tags: Sequence[str] | None = None,
        memory_id: str | None = None,
        *,
        cwd: str = "",
    ) -> SaveResult:
        """Create a memory, or update the one with the given id.

        An update keeps what is None. Only a new memory needs a subject and a content.

        Args:
            subject: one line of less than 80 characters.
            content: markdown.
            citations: the places that it rests on; they replace those of an earlier version.
            links: its edges.
            tags: words to classify it.
            memory_id: the memory to update, or the id of a new one.
            cwd: the directory that cited paths may be relative to.

        Raises:
            InvalidInput, InvalidCitation: a value cannot be used.
            MalformedMemory: the file that would be updated cannot be read.
            Busy, DiskError: it cannot be written.
        """
        warnings: list[str] = []
        fields: dict[str, Any] = {}
        if subject is not None:
            fields["subject"] = _clean("subject", subject).strip()
            if len(fields["subject"]) > MAX_SUBJECT or "\n" in fields["subject"]:
                raise InvalidInput("subject: must be one line of 1 to 79 characters")
        if content is not None:
            fields["content"] = _clean("content", content)
            missing = [part for part in _CONTENT_PARTS if f"**{part}**:" not in content]
            warnings += [f"content lacks **{part}**" for part in missing]
        if tags is not None:
            fields["tags"] = tuple(dict.fromkeys(map(replace_surrogates, tags)))
        if links is not None:
            _check_link_types([link.type for link in links])
            fields["links"] = tuple(dict.fromkeys(links))
        if citations is not None:
            tree = SourceTree(self.root)
            tree.learn_hidden(citation.path for citation in citations)
            built = dict(build_citation(citation, tree, cwd) for citation in citations)
            warnings += filter(None, built.values())
            checked = check_citations(built, tree)
            fields["citations"] = tuple(built)
            fields["confidence"] = mean_confidence(checked)
            holds = checked and all(entry.is_valid for entry in checked)
            fields["verified"] = current_time() if holds else None
        with self.store.writing():
            memory, created = self._create_or_update(memory_id, fields, warnings)
        missing = sorted({link.target for link in memory.links} - set(self.store.ids()))
        warnings += [f"there is no memory {target} yet" for target in missing]
        texts = (self.store.read_text(memory.id), memory.subject, memory.content)
        warnings += secret_warning(*texts, check=self._check_secrets)
        try:
            self.index.add([memory])
        except Unavailable as error:
            warnings.append(f"{error}; `sync-index` makes up for it")
        return SaveResult(memory.id, self.store.path(memory.id), created, warnings)

    def _create_or_update(
        self, memory_id: str | None, fields: dict[str, Any], warnings: list[str]
    ) -> tuple[Memory, bool]:
        """Write a memory, and add a warning about citations that were replaced."""
        name = memory_id or generate_id(fields.get("subject", ""), fields.get("content", ""))
        if name not in self.store.ids():
            if not {"subject", "content"} <= fields.keys():
                raise InvalidInput("subject, content: are needed for a new memory")
            memory = Memory(id=name, created=current_time(), **fields)
            self.store.add(memory)
            return memory, True
        before = self.store.get(name)
        after = replace(before, **fields)
        replaced = set(map(str, before.citations)) - set(map(str, after.citations))
        if replaced:
            warnings.append(f"these citations were replaced: {', '.join(sorted(replaced))}")
        self.store.change(before, after)
        return after, False

    def delete(self, memory_id: str) -> list[graph.Edge]:
        """Delete a memory; return the links that lead nowhere now.

        Raises:
            NotFound: there is none.
            Busy, DiskError: it cannot be deleted.
        """
        with self.store.writing():
            self.store.delete(memory_id)
        with suppress(Unavailable):  # `sync-index` removes it then
            self.index.remove([memory_id])
        return self.find_related(memory_id)

    # --- verifying --------------------------------------------------------------------------------

    def verify(self, memory_id: str, update: bool = True) -> VerifiedMemory:
        """Verify one memory, as `verify_all` does; raises as that does."""
        result = self._check(self.store.get(memory_id), SourceTree(self.root))
        return self._update(result) if update else result

    def verify_all(
        self,
        ids: Sequence[str] | None = None,
        update: bool = False,
        files: Sequence[str] = (),
        seconds: float = 60.0,
    ) -> tuple[list[VerifiedMemory], Scan]:
        """Verify all memories, or some; return the results and the scan that they come from.

        Args:
            ids: only these memories.
            update: in those that are valid, write the present time, and where the lines are today.
            files: only memories that cite these files, or are these files; empty for all.
            seconds: after which no more files are looked at.

        Raises:
            NotFound, MalformedMemory: a given id does not exist, or is not a memory.
            Busy, DiskError: the directory cannot be read or locked.
        """
        scan = self.store.scan(ids)
        memories = list(scan.memories.values())
        if files:
            own = [memory for memory in memories if self.store.path(memory.id) in files]
            memories = [memory for memory in memories if memory in own or memory.cites_any(files)]
        tree = SourceTree(self.root, seconds)
        tree.learn_hidden(cited.path for memory in memories for cited in memory.citations)
        results = [self._check(memory, tree) for memory in memories]
        return [self._update(result) for result in results] if update else results, scan

    def _check(self, memory: Memory, tree: SourceTree) -> VerifiedMemory:
        text = "\n".join([memory.subject, memory.content, *memory.tags])
        leak = find_leak(text.encode("utf-8", "replace"), check=self._check_secrets)
        problem = f"seems to hold {leak.kind}" if leak else ""
        checked = check_citations(memory.citations, tree)
        return VerifiedMemory(memory, self.store.path(memory.id), checked, problem)

    def _update(self, result: VerifiedMemory) -> VerifiedMemory:
        """Write the time of verification, and where the lines are today, if all citations hold."""
        before = result.memory
        if not result.is_valid:
            return result
        after = replace(
            before,
            citations=tuple(map(relocate, result.checked)),
            confidence=mean_confidence(result.checked),
            verified=current_time(),
        )
        try:
            with self.store.writing():
                if self.store.get(before.id) != before:  # changed meanwhile
                    return result
                changed = self.store.change(before, after)
        except (DiskError, MalformedMemory, NotFound) as error:  # such as a read-only checkout
            return result._replace(problem=f"was not written: {error}")
        return result._replace(memory=after, is_updated=changed)

    # --- the graph --------------------------------------------------------------------------------

    def traverse(
        self,
        root_id: str,
        max_depth: int = 3,
        link_types: Sequence[str] | None = None,
        order: str = "bfs",
    ) -> graph.Walk:
        """Walk along the links from a memory.

        Args:
            root_id: where to begin.
            max_depth: the largest distance; the configuration may set a lower one.
            link_types: the types of links to follow; None for all.
            order: `bfs` or `dfs`.

        Raises:
            InvalidInput: there is no such type or order.
            NotFound, MalformedMemory, DiskError: the first memory cannot be read.
        """
        memories = {root_id: self.store.get(root_id), **self.store.scan().memories}
        depth = min(max_depth, self.config.max_depth)
        types = LINK_TYPES if link_types is None else link_types
        _check_link_types(types)
        if order not in graph.ORDERS:
            raise InvalidInput("order: must be bfs or dfs")
        return graph.traverse(memories, root_id, depth, types, order)

    def find_related(self, memory_id: str) -> list[graph.Edge]:
        """Return the links that lead to a memory."""
        return graph.find_related(memory_id, self.store.scan().memories.values())


def _check_link_types(types: Sequence[str]) -> None:
    if not set(types) <= set(LINK_TYPES):
        raise InvalidInput(f"links: their type must be one of {', '.join(LINK_TYPES)}")


def _clean(field: str, text: str) -> str:
    """Return a text without empty lines around it, and with line ends as Unix has them."""
    clean = re.sub(r"\r\n?", "\n", replace_surrogates(text)).strip("\n")
    if not clean.strip():
        raise InvalidInput(f"{field}: is empty")
    if found := _CONTROL.search(clean):
        raise InvalidInput(f"{field}: has the control character U+{ord(found[0]):04X}")
    return clean
