"""The operations on one repository's memories: the ten tools, for agents and the command line.

Agents read the docstrings of the ten methods, and `tools.ARGUMENTS` explains the arguments. All
return JSON values, and raise subclasses of `ToolError`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

from aiaml_server.errors import ToolError
from aiaml_server.toolset import Answer, replace_surrogates
from aiaml_server.toolsets.citations import graph
from aiaml_server.toolsets.citations.citing import build_citation, relative_path
from aiaml_server.toolsets.citations.config import CONFIG_NAME, DEFAULT_DIRECTORY, load_config
from aiaml_server.toolsets.citations.errors import InvalidInput, NoRepository
from aiaml_server.toolsets.citations.index import MemoryIndex, NullIndex
from aiaml_server.toolsets.citations.models import (
    LINK_TYPES,
    Citation,
    JsonObject,
    Link,
    LinkType,
    Memory,
    Texts,
    current_time,
    generate_id,
    parse_time,
)
from aiaml_server.toolsets.citations.search import merge, rank
from aiaml_server.toolsets.citations.sources import SourceTree
from aiaml_server.toolsets.citations.store import MemoryStore, Scan
from aiaml_server.toolsets.citations.verify import (
    CheckedCitation,
    check_citations,
    mean_confidence,
    relocate,
)
from aiaml_server.toolsets.owners import foreign_owner
from aiaml_server.toolsets.warning import find_leak, secret_warning

StrPath = str | os.PathLike[str]
_CONTENT_PARTS = ("Fact", "Reasoning", "Action")
_SUBJECT = re.compile(".{1,79}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Verification(NamedTuple):
    """A memory and the verdicts on its citations.

    Attributes:
        memory: the memory, with the new time of verification if it was written.
        path: its file, relative to the repository's top.
        checked: the verdict on each citation.
        problem: that the file seems to hold a secret, or why it could not be changed.
    """

    memory: Memory
    path: str
    checked: list[CheckedCitation]
    problem: str = ""

    @property
    def is_valid(self) -> bool:
        """Whether every citation still holds."""
        return all(entry.is_valid for entry in self.checked)

    def has(self, verdict: str) -> bool:
        """Return whether a citation has this verdict."""
        return any(entry.verdict == verdict for entry in self.checked)

    @property
    def stale(self) -> list[CheckedCitation]:
        """The citations that no longer hold."""
        return [entry for entry in self.checked if entry.is_stale]

    def to_dict(self) -> JsonObject:
        """Return it as JSON has it."""
        return {
            "id": self.memory.id,
            "subject": self.memory.subject,
            "path": self.path,
            "valid": self.is_valid,
            "stale_citations": [entry.to_dict() for entry in self.stale],
            "citations": [entry.to_dict() for entry in self.checked],
            "confidence": mean_confidence(self.checked),
            "verified": self.memory.verified,
            "problem": self.problem,
        }


def find_repository(given: StrPath | None, cwd: StrPath = "") -> Path:
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
        root: StrPath,
        index: MemoryIndex | None = None,
        *,
        forgetful: str = "",
        check_secrets: bool = True,
    ) -> None:
        """Take the repository's top. Nothing is created.

        Args:
            root: the directory.
            index: the search index; None for the one that the configuration names.
            forgetful: the only address at which a Forgetful server may be called.
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

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], given: str | None = "") -> MemoryService:
        """Return the service for the given repository, else for that of the settings."""
        return cls(
            find_repository(given or settings["AIAML_CITATIONS_REPO"]),
            forgetful=settings["AIAML_CITATIONS_FORGETFUL"],
            check_secrets=settings["AIAML_CHECK_SECRETS"],
        )

    def _open_index(self, forgetful: str) -> MemoryIndex:
        config = self.config
        if config.type == "chroma":
            from aiaml_server.toolsets.citations.chroma import ChromaIndex  # noqa: PLC0415

            return ChromaIndex(self.root / config.persist_dir, config.collection)
        if config.type == "forgetful":
            from aiaml_server.toolsets.citations.forgetful import ForgetfulIndex  # noqa: PLC0415

            return ForgetfulIndex(config.endpoint, forgetful, str(self.root))
        return NullIndex()

    # --- reading ----------------------------------------------------------------------------------

    def _describe(self, memory: Memory) -> JsonObject:
        """Return a memory with its path and whether its verification is too long ago."""
        oldest = datetime.now(timezone.utc) - timedelta(days=self.config.stale_threshold_days)
        time = parse_time(memory.verified or "") or datetime.min.replace(tzinfo=timezone.utc)
        is_overdue = bool(memory.citations) and time < oldest
        return {**memory.to_dict(), "path": self.store.path(memory.id), "overdue": is_overdue}

    def get(self, memory_id: str) -> JsonObject:
        """Return one whole memory by its id."""
        memory = self.store.get(memory_id)
        if not self.config.on_retrieval:
            return self._describe(memory)
        verdicts = self._check(memory, SourceTree(self.root)).to_dict()
        return {**verdicts, **self._describe(memory)}

    def list_memories(self, tags: Texts | None = None) -> Answer:
        """List all memories without their contents, or those with some tags."""
        scan = self.store.scan()
        memories = [self._describe(memory) for memory in self._select(scan, tags)]
        for memory in memories:
            for key in ("content", "citations", "links"):
                del memory[key]
        return Answer(memories, scan.notes)

    def _select(self, scan: Scan, tags: Texts | None, paths: Texts | None = None) -> list[Memory]:
        """Return the memories that have all of some tags, and cite one of some files."""
        wanted = {tag.casefold() for tag in tags or ()}
        files = [relative_path(path, self.root) for path in paths or ()]
        return [
            memory
            for memory in scan.memories.values()
            if wanted <= {tag.casefold() for tag in memory.tags}
            and (not files or memory.cites_any(files))
        ]

    def search(
        self,
        query: str = "",
        limit: int | None = None,
        verify: bool = False,
        tags: Texts | None = None,
        paths: Texts | None = None,
    ) -> Answer:
        """Find memories of this code base by words, best first.

        Give the question, and behind it eight to ten single words that the memory or the code
        may contain: likely answers, synonyms, names, other forms of its words.

        Each memory comes whole: subject, content, score from 0 to 1, citations, links, tags, and
        when it was last verified. `superseded_by` names newer memories that replace it. With
        `verify`, memories with stale citations are left out and named in a second text.
        """
        if not query.strip() and not paths:
            raise InvalidInput("query: must be words to search for, unless paths are given")
        scan = self.store.scan()
        candidates = self._select(scan, tags, paths)
        limit = limit or self.config.default_limit
        notes = []
        found = [(memory, 1.0) for memory in candidates]
        if query.strip():
            found = rank(candidates, query, self.config.min_keyword_length)
            try:
                found = merge(found, self.index.search(query, limit), candidates)
            except Exception as error:  # noqa: BLE001 (an index may fail in any way)
                notes.append(f"Found by words alone: {error}")
        tree = SourceTree(self.root)
        hits: list[JsonObject] = []
        for memory, score in found:
            if len(hits) == limit:
                break
            if stale := self._check(memory, tree).stale if verify else []:
                verdicts = ", ".join(f"{entry.citation} {entry.verdict}" for entry in stale)
                notes.append(f"Left out as stale: {memory.id} ({memory.subject}: {verdicts})")
                continue
            related = graph.find_related(memory.id, scan.memories.values())
            newer = [link["id"] for link in related if link["type"] == "supersedes"]
            hits.append(
                {**self._describe(memory), "score": round(score, 4), "superseded_by": newer}
            )
        return Answer(hits, [*notes, *scan.notes])

    # --- writing ----------------------------------------------------------------------------------

    def save(
        self,
        subject: str | None = None,
        content: str | None = None,
        citations: Sequence[Citation] | None = None,
        links: Sequence[Link] | None = None,
        tags: Texts | None = None,
        id: str | None = None,  # noqa: A002 (the name in the specification)
        *,
        cwd: str = "",
    ) -> JsonObject:
        """Save a memory as a markdown file in the repository, or update the one with the given id.

        An update keeps what is not given: subject, content, citations, links, tags, creation time.
        `warnings` say what should be looked at: citations that were replaced, a snippet on another
        line, a link that leads nowhere, a part of the content that is missing.
        """
        # `cwd` is for the command line: a directory that cited paths may be relative to.
        texts = {"subject": subject and subject.strip(), "content": content}
        lists = {"links": links, "tags": tags}
        fields: JsonObject = {
            key: _clean(key, text) for key, text in texts.items() if text is not None
        }
        fields |= {
            key: tuple(dict.fromkeys(items)) for key, items in lists.items() if items is not None
        }
        if not _SUBJECT.fullmatch(fields.get("subject", "-")):
            raise InvalidInput("subject: must be one line of 1 to 79 characters")
        for link in links or ():
            if link.type not in LINK_TYPES or not link.target:
                types = ", ".join(LINK_TYPES)
                rule = f"must be TYPE:ID, and TYPE one of {types}"
                raise InvalidInput(f"links: {link.type}:{link.target} {rule}")
        warnings = []
        if content is not None:
            missing = [part for part in _CONTENT_PARTS if f"**{part}**:" not in content]
            warnings += [f"content lacks **{part}**" for part in missing]
        if citations is not None:
            tree = SourceTree(self.root)
            tree.learn_hidden(citation.path for citation in citations)
            built = dict(build_citation(citation, tree, cwd) for citation in citations)
            warnings += filter(None, built.values())
            fields["citations"] = tuple(built)
            fields |= _state(check_citations(built, tree))
        name = id or generate_id(fields.get("subject", ""), fields.get("content", ""))
        with self.store.writing():
            is_new = name not in self.store.ids()
            if is_new and not {"subject", "content"} <= fields.keys():
                raise InvalidInput("subject, content: are needed for a new memory")
            if is_new:
                memory = Memory(id=name, created=fields.get("verified") or current_time(), **fields)
                self.store.add(memory)
            else:
                before = self.store.get(name)
                memory = replace(before, **fields)
                self.store.change(before, memory)
                gone = set(map(str, before.citations)) - set(map(str, memory.citations))
                warnings += [f"{place} is no longer cited" for place in sorted(gone)]
        targets = {link.target for link in memory.links} - set(self.store.ids())
        warnings += [f"there is no memory {target} yet" for target in sorted(targets)]
        written = (self.store.read_text(name), memory.text, memory.subject, memory.content)
        warnings += secret_warning(*written, check=self._check_secrets)
        try:
            self.index.add([memory])
        except Exception as error:  # noqa: BLE001 (as above)
            warnings.append(f"{error}; run `sync-index` when it answers again")
        return {
            "id": name,
            "path": self.store.path(name),
            "created": is_new,
            "warnings": warnings,
        }

    def delete(self, memory_id: str) -> JsonObject:
        """Delete a memory's file. Git keeps what was committed.

        If a memory has become wrong, a new one that supersedes it is better.
        """
        with self.store.writing():
            self.store.delete(memory_id)
        with suppress(Exception):  # `sync-index` removes it then
            self.index.remove([memory_id])
        return {"id": memory_id, "path": self.store.path(memory_id), "deleted": True}

    # --- verifying --------------------------------------------------------------------------------

    def verify(self, memory_id: str, update_timestamp: bool = True) -> JsonObject:
        """Verify that the lines which a memory cites are still there.

        `valid` is true if each citation is ok, moved, renamed or reformatted; then `verified` in
        the file becomes the present time. `stale_citations` are those that changed, are missing or
        lie outside the repository. An ambiguous or unseen citation is neither valid nor stale.
        """
        result = self._check(self.store.get(memory_id), SourceTree(self.root))
        return (self._update(result) if update_timestamp else result).to_dict()

    def batch_verify(self, update_timestamp: bool = False) -> JsonObject:
        """Verify all memories at once.

        Counts them, and returns the verdicts on those that are not valid. Files that cannot be
        read are named.
        """
        results, unread = self.verify_all(update_timestamp)
        invalid = [result for result in results if not result.is_valid]
        return {
            "valid": not unread and not invalid,
            "checked": len(results),
            "stale": sum(bool(result.stale) for result in invalid),
            "memories": [result.to_dict() for result in invalid],
            "unreadable": list(unread.values()),
        }

    def verify_all(
        self, update: bool = False, files: Texts = ()
    ) -> tuple[list[Verification], dict[str, str]]:
        """Verify memories; return the results, and why which files were not read.

        Args:
            update: in those that are valid, write the present time, and where the lines are today.
            files: only memories that cite these files, or are these files; empty for all.

        Raises:
            Busy, DiskError: the directory cannot be read or locked.
        """
        scan = self.store.scan()
        memories, unread = list(scan.memories.values()), scan.unread
        if files:  # a broken memory of somebody else must not block this change
            memories = [
                memory
                for memory in memories
                if memory.cites_any(files) or self.store.path(memory.id) in files
            ]
            relevant = {*files, *scan.needs_pyyaml}
            unread = {path: unread[path] for path in unread if path in relevant}
        for path in files:
            is_cited = any(memory.cites_any([path]) for memory in memories)
            if not is_cited and not os.path.lexists(self.root / path):
                unread[path] = f"{path}: there is no such file, and no memory cites it"
        tree = SourceTree(self.root)
        tree.learn_hidden(cited.path for memory in memories for cited in memory.citations)
        results = [self._check(memory, tree) for memory in memories]
        return [self._update(result) for result in results] if update else results, unread

    def _check(self, memory: Memory, tree: SourceTree) -> Verification:
        leak = find_leak(memory.text.encode("utf-8", "replace"), check=self._check_secrets)
        return Verification(
            memory,
            self.store.path(memory.id),
            check_citations(memory.citations, tree),
            f"seems to hold {leak.kind}" if leak else "",
        )

    def _update(self, result: Verification) -> Verification:
        """Write the time of verification, and where the lines are today, if all citations hold."""
        before = result.memory
        if not result.is_valid:
            return result
        citations = tuple(map(relocate, result.checked))
        after = replace(before, citations=citations, **_state(result.checked))
        try:
            with self.store.writing():
                if self.store.get(before.id) != before:  # changed meanwhile
                    return result
                self.store.change(before, after)
        except ToolError as error:  # such as a read-only checkout
            return result._replace(problem=f"was not written: {error}")
        return result._replace(memory=after)

    # --- the graph and the index ------------------------------------------------------------------

    def traverse(
        self,
        root_id: str,
        max_depth: int = 3,
        link_types: Sequence[LinkType] | None = None,
        order: graph.Order = "bfs",
    ) -> JsonObject:
        """Walk along the links from one memory and return what is reached as nodes and edges.

        Link types are related, supersedes, blocks and references. Cycles end by themselves.
        Targets that are not memories are listed as missing.
        """
        memories = {root_id: self.store.get(root_id), **self.store.scan().memories}
        return graph.traverse(
            memories,
            root_id,
            min(max_depth, self.config.max_traversal_depth),
            LINK_TYPES if link_types is None else link_types,
            order,
        )

    def find_related(self, memory_id: str) -> list[dict[str, str]]:
        """Return the memories whose links lead to a memory, and the type of each link."""
        self.store.get(memory_id)  # raises if there is none
        return graph.find_related(memory_id, self.store.scan().memories.values())

    def sync_index(self) -> JsonObject:
        """Bring the index for search by meaning up to date with the files, if one is configured.

        Search by words needs no index.
        """
        return self.index.sync(self.store.scan().memories.values())


def _state(checked: Sequence[CheckedCitation]) -> JsonObject:
    """Return what a memory says of its citations once they are checked."""
    is_valid = all(entry.is_valid for entry in checked)
    return {
        "confidence": mean_confidence(checked),
        "verified": current_time() if is_valid else None,
    }


def _clean(field: str, text: str) -> str:
    """Return a text without empty lines around it, and with line ends as Unix has them."""
    clean = re.sub(r"\r\n?", "\n", replace_surrogates(text)).strip("\n")
    if not clean.strip():
        raise InvalidInput(f"{field}: is empty")
    if found := _CONTROL.search(clean):
        raise InvalidInput(f"{field}: has the control character {found[0]!a}")
    return clean
