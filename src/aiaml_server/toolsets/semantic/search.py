"""Finding memories: by meaning and words, by their metadata, and for the start of a session."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from aiaml_server.timestamps import now_micros
from aiaml_server.toolsets.failures import shorten
from aiaml_server.toolsets.semantic import models, paths, ranking, text
from aiaml_server.toolsets.semantic.config import Config, load_config
from aiaml_server.toolsets.semantic.db import Database, EmbeddingModel
from aiaml_server.toolsets.semantic.embedding import LazyModel
from aiaml_server.toolsets.semantic.errors import (
    CorruptDatabase,
    InvalidInput,
    InvalidProject,
    NotFound,
    SemanticError,
)
from aiaml_server.toolsets.semantic.logs import log_error
from aiaml_server.toolsets.semantic.models import COLUMNS, Filters, Memory, from_row, to_json
from aiaml_server.toolsets.semantic.ranking import Candidate, SearchHit
from aiaml_server.toolsets.semantic.worker import Embedded, EmbeddingWorker, Item

CONTEXT_LIMITS = {"explicit": 0, "session_start": 8, "auto_trigger": 5}
"""Hits of a search without a limit, by context; 0 stands for the configured limit."""
MAX_QUERY = 10_000  # characters
WHOLE_CHARACTERS = 400
"""Longer hits are cut to what surrounds the words of the question."""
DAMAGED = (
    "the vectors of some memories are damaged, so only their words were compared;"
    " `aiaml semantic model reembed` makes them again"
)
_SNIPPET = """
SELECT ? || ':' || rowid, snippet(words, 0, '', '', '…', 48) FROM words
WHERE words MATCH ? AND rowid IN (SELECT value FROM json_each(?))
"""
_LIST = f"""
SELECT {{key}}, created_at, :scope, count(*) OVER (), {COLUMNS} FROM memories WHERE {{where}}
ORDER BY {{key}} DESC, created_at DESC, id DESC LIMIT {{limit}}
"""
_COUNT_USE = """
UPDATE memories SET access_count = coalesce(access_count, 0) + 1, last_accessed_at = ?
WHERE id IN (SELECT value FROM json_each(?))
"""
_OUTDATED = "(embedding_model != :name OR embedding_model_version IS NOT :version)"

Result = TypeVar("Result")


@dataclass
class SearchResult:
    """What a search found.

    Attributes:
        hits: best first.
        excerpts: by the id of each long hit, the part around the words of the question.
        by_meaning: whether a candidate's meaning was compared, or words only.
        warnings: what should be known.
    """

    hits: Sequence[SearchHit]
    excerpts: Mapping[str, str]
    by_meaning: bool
    warnings: list[str]


@dataclass
class Page:
    """A page of a list; `next_cursor` is None on the last one."""

    memories: Sequence[Memory]
    total: int
    next_cursor: str | None
    warnings: list[str]


class MemoryReader:
    """The memories of a person and, where one is active, of a project, for reading.

    Any thread may call any method; all raise `SemanticError`.

    Attributes:
        home: the person's `~/.memory`.
        project: the project's top directory, or None.
        config: the settings.
        databases: by scope.
        worker: makes vectors.
        identity: equal for stores of the same places and settings.
    """

    def __init__(
        self,
        home: Path,
        project: Path | None = None,
        model: LazyModel | None = None,
        config: Config | None = None,
        *,
        background: bool = False,
        trusted: bool = False,
    ) -> None:
        """Set the places; nothing is opened or created.

        Args:
            home: see the class.
            project: see the class.
            model: makes vectors; None for search by words only.
            config: the settings; None reads `config.json`.
            background: whether vectors that cannot be made at once are made in a thread.
            trusted: whether the person named the project, so that its database is opened whoever
                created it.
        """
        self.home = home
        self.project = project
        self.config = config or load_config(home)
        self.identity = (home, project, self.config)
        self.databases: dict[str, Database] = {}
        if project is not None:
            path = project / paths.DIRECTORY / paths.DATABASE
            self.databases["project"] = Database(path, "project", project.name, trusted=trusted)
        self.databases["global"] = Database(home / paths.DATABASE, "global")
        self.worker = EmbeddingWorker(home, model, background=background)

    def close(self) -> None:
        """End the background thread and close the databases."""
        self.worker.close()
        for database in self.databases.values():
            database.close()

    # --- search -----------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        limit: int | None = None,
        filters: Filters | None = None,
        context: str = "explicit",
        *,
        count_use: bool = False,
    ) -> SearchResult:
        """Return the memories that fit a question best, by meaning and words.

        Args:
            query: the question.
            limit: at most so many; by default what the context wants.
            filters: what they must match.
            context: one of `CONTEXT_LIMITS`.
            count_use: whether being found counts as a use, once a day.
        """
        if not query.strip() or len(query) > MAX_QUERY:
            raise InvalidInput(f"query: must be text of at most {MAX_QUERY:,} characters")
        usual = CONTEXT_LIMITS[models.check_choice("context", context, CONTEXT_LIMITS)]
        usual = usual or self.config.retrieval.default_limit
        limit = models.check_limit(usual if limit is None else limit, models.MAX_HITS)
        filters = filters or Filters()
        filters.where()
        embedded = self.worker.embed([query], is_query=True)
        warnings = embedded.warnings
        parts = self._query_each(
            filters, warnings, lambda each: self._find(each, query, filters, embedded)
        )
        candidates = {each.memory: each for found in parts for each in found}
        visible = [candidates[each] for each in _without_overridden(candidates)]
        hits = ranking.rank(visible, self.config, now_micros())[:limit]
        if hits and all(hit.is_weak for hit in hits):
            warnings.append("no hit is close to the question; there may be no answer in memory")
        memories = [hit.memory for hit in hits]
        lacking = [hit.memory for hit in hits if hit.parts["cosine"] is None]
        with suppress(SemanticError):  # another process may be writing
            if embedded.model and embedded.vectors:
                self._renew_vectors(embedded.model, lacking, warnings)
            if count_use:
                self._count_daily_use(memories)
        by_meaning = any(each.cosine is not None for each in visible)
        return SearchResult(hits, self._excerpts(query, memories), by_meaning, warnings)

    def _find(
        self, database: Database, query: str, filters: Filters, embedded: Embedded
    ) -> list[Candidate]:
        """Return a database's candidates; without a cosine if only words can be compared."""
        model = embedded.model
        where, values = filters.where()
        values["words"] = text.build_fts_query(query)
        rows = None
        if model and embedded.vectors and database.has_vectors(model):
            vector = {"vector": embedded.vectors[0], "model": model.key}
            statement = ranking.candidates_statement(where)
            with suppress(CorruptDatabase):  # words only, then
                rows = database.fetch(statement, {**values, **vector})
        if rows is None:
            statement = ranking.candidates_statement(where, with_vectors=False)
            rows = database.fetch(statement, values)
        return [Candidate(from_row(database.scope, row[:-2]), row[-2], row[-1]) for row in rows]

    def _renew_vectors(
        self, model: EmbeddingModel, memories: Sequence[Memory], warnings: list[str]
    ) -> None:
        """Embed found memories that could not be compared; warn if they should have vectors."""
        made_by = {(each.embedding_model, each.embedding_model_version) for each in memories}
        if (model.name, model.version) in made_by:
            warnings.append(DAMAGED)
        items = [(self.databases[each.scope], each.number) for each in memories]
        self.worker.embed_later(items)

    def _count_daily_use(self, memories: Sequence[Memory]) -> None:
        """Count memories as used, unless that was done today."""
        now = models.sql_now()
        unused = [each for each in memories if (each.last_accessed_at or "")[:10] < now[:10]]
        for database, numbers in self._by_database(unused):
            with database.writing():
                database.fetch(_COUNT_USE, (now, to_json(numbers)))

    def _excerpts(self, query: str, memories: Sequence[Memory]) -> Mapping[str, str]:
        """Return what surrounds the question's words in each long memory."""
        long = [memory for memory in memories if len(memory.content) > WHOLE_CHARACTERS]
        excerpts = {memory.id: memory.content for memory in long}
        for database, numbers in self._by_database(long):
            values = (database.scope, text.build_fts_query(query), to_json(numbers))
            excerpts.update(dict(database.fetch(_SNIPPET, values)))
        return {name: shorten(part, WHOLE_CHARACTERS) for name, part in excerpts.items()}

    def session_start(self) -> list[Memory]:
        """Return what a session should begin with: by priority, project, and then age; no model.

        What a hook stored counts as less than any other memory of its priority.
        """
        memories = _without_overridden(
            self.list_memories(None, "priority", models.MAX_LISTED).memories
        )

        def worth(memory: Memory) -> float:
            is_preferred = memory.scope == "project" and memory.is_reviewed
            return 0.5 * ranking.priority_score(memory) + 0.3 * is_preferred

        limit = self.config.retrieval.session_start_limit
        return sorted(memories, key=worth, reverse=True)[:limit]

    # --- lists ------------------------------------------------------------------------------------

    def get(self, memory_id: str, field: str = "memory_id") -> Memory:
        """Return one memory; an error names the field."""
        return self._read(*self._locate(memory_id, field))

    def list_memories(
        self,
        filters: Filters | None = None,
        sort_by: str = "created_at",
        limit: int = 20,
        cursor: str | None = None,
    ) -> Page:
        """Return a page of memories, sorted from high to low, then from new to old.

        Args:
            filters: what they must match.
            sort_by: one of `SORT_KEYS`.
            limit: memories on a page.
            cursor: the `next_cursor` of the page before.
        """
        key = models.SORT_KEYS[models.check_choice("sort_by", sort_by, models.SORT_KEYS)]
        start = models.check_cursor(cursor)
        end = start + models.check_limit(limit, models.MAX_LISTED)
        filters = filters or Filters()
        where, values = filters.where()
        statement = _LIST.format(key=key, where=where or "true", limit=end + 1)
        warnings: list[str] = []
        parts = self._query_each(
            filters, warnings, lambda each: each.fetch(statement, {**values, "scope": each.scope})
        )
        rows = [row for part in parts for row in part]
        rows.sort(key=lambda row: (*row[:3], row[4]), reverse=True)  # key, time, scope, id
        memories = [from_row(row[2], row[4:]) for row in rows[start:end]]
        total = sum(part[0][3] for part in parts if part)
        return Page(memories, total, str(end) if len(rows) > end else None, warnings)

    def iterate(self) -> Iterator[Memory]:
        """Yield all memories, newest first."""
        page = Page((), 0, "0", [])
        while page.next_cursor:
            page = self.list_memories(limit=models.MAX_LISTED, cursor=page.next_cursor)
            yield from page.memories

    def outdated(self, model: EmbeddingModel | None = None) -> Sequence[Item]:
        """Return the memories without usable vectors of a model; without one, without any."""
        where = _OUTDATED if model else "embedding_model = ''"
        values = {"name": model.name, "version": model.version} if model else {}
        items: list[Item] = []
        for database in self._existing():
            rows = database.fetch(f"SELECT id FROM memories WHERE {where}", values)
            numbers = {*database.lost_vectors(), *(number for (number,) in rows)}
            items += [(database, number) for number in sorted(numbers)]
        return items

    # --- databases --------------------------------------------------------------------------------

    def _locate(self, memory_id: str, field: str = "memory_id") -> Item:
        """Return the database, which exists, and the number in an id."""
        match = re.fullmatch(r"(project|global):([0-9]{1,18})", memory_id.strip())
        if match is None:
            raise InvalidInput(f"{field}: must be an id such as project:12, not {memory_id!r:.80}")
        database = self.databases.get(match[1])
        if database is None or not database.exists:
            raise NotFound(f"there is no memory {memory_id.strip()}")
        return database, int(match[2])

    def database(self, scope: str | None) -> Database:
        """Return the database of a scope; by default the project's if one is active."""
        if scope is None:
            return next(iter(self.databases.values()))
        scope = models.check_choice("scope", scope, models.SCOPES)
        if scope not in self.databases:
            raise InvalidProject("scope: is project, and no project is active here")
        return self.databases[scope]

    def _existing(self) -> Iterable[Database]:
        """Return the databases that exist and may be opened."""
        return [each for each in self.databases.values() if each.exists and each.is_trusted]

    def _by_database(self, memories: Sequence[Memory]) -> Iterator[tuple[Database, Sequence[int]]]:
        for scope, database in self.databases.items():
            numbers = [each.number for each in memories if each.scope == scope]
            if numbers:
                yield database, numbers

    def _read(self, database: Database, number: int) -> Memory:
        rows = database.fetch(f"SELECT {COLUMNS} FROM memories WHERE id = ?", (number,))
        if not rows:
            raise NotFound(f"there is no memory {database.scope}:{number}")
        return from_row(database.scope, rows[0])

    def _query_each(
        self, filters: Filters, warnings: Any, query: Callable[[Database], Result]
    ) -> Sequence[Result]:
        """Query the databases that filters allow, in parallel.

        One that cannot be read is left out with a warning, unless the filters name it.
        """
        databases = [
            each for each in self.databases.values() if filters.includes(each.scope) and each.exists
        ]
        results = []
        with ThreadPoolExecutor(2) as pool:
            futures = {database: pool.submit(query, database) for database in databases}
        for database, future in futures.items():
            try:
                results.append(future.result())
            except SemanticError as error:
                if filters.scope is not None:
                    raise
                log_error(self.home, f"read-{database.scope}", error)
                warnings.append(f"without the {database.scope} memories: {error}")
        return results


def _without_overridden(memories: Iterable[Memory]) -> list[Memory]:
    """Return memories without the global ones whose text the project has as well."""
    hashes = {memory: models.normalized_hash(memory.content) for memory in memories}
    own = {digest for memory, digest in hashes.items() if memory.scope == "project"}
    return [each for each, digest in hashes.items() if each.scope == "project" or digest not in own]
