"""`MemoryStore`: storing, changing, merging, deleting and undoing. Reading is in `search`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from aiaml_server.toolsets.semantic import PROJECT, backup, dedupe, history, models, paths, text
from aiaml_server.toolsets.semantic.db import Database, new_row
from aiaml_server.toolsets.semantic.errors import (
    DuplicateContent,
    InvalidInput,
    NotFound,
    NothingToUndo,
    Unavailable,
)
from aiaml_server.toolsets.semantic.models import UNREVIEWED, Filters, Memory, NewMemory, to_json
from aiaml_server.toolsets.semantic.rules import Suggestion, suggest_priority
from aiaml_server.toolsets.semantic.search import MemoryReader
from aiaml_server.toolsets.semantic.worker import Embedded, Item
from aiaml_server.toolsets.warning import IN_DATABASE, secret_warning

MAX_SIMILAR = 5
_EQUAL = "SELECT id, NULL FROM memories WHERE normalized_hash = ? AND id != ? LIMIT 5"
_SIMILAR = """
SELECT vectors.memory_id, 1 - near.distance
FROM (
    SELECT vector_id, distance FROM vec_memories
    WHERE embedding MATCH ? AND k = 10 AND model = ?
) AS near JOIN vectors ON vectors.id = near.vector_id
WHERE vectors.part = 0 AND vectors.memory_id != ? AND 1 - near.distance >= ?
"""


class Similar(NamedTuple):
    """A memory that resembles another; the cosine is None for equal texts."""

    memory: Memory
    cosine: float | None


@dataclass
class StoreResult:
    """What storing or updating did.

    Attributes:
        memory: as stored now.
        created: whether it is new; otherwise it was merged into an equal one, or updated.
        change: the id by which `undo` takes this back; None if nothing was changed.
        similar: what it resembles, equal texts first.
        suggestion: another priority that its words suggest.
        warnings: what should be known.
    """

    memory: Memory
    created: bool
    change: str | None
    similar: Sequence[Similar] = ()
    suggestion: Suggestion | None = None
    warnings: list[str] = field(default_factory=list)


class MemoryStore(MemoryReader):
    """The memories of a person and, where one is active, of a project."""

    check_secrets = True
    """Whether storing warns of what looks like a secret."""

    @classmethod
    def at(cls, directory: Path | str = "", project: str = "", **options: Any) -> MemoryStore:
        """Return the store for somebody who works in a directory; it searches by words only.

        Args:
            directory: the working directory by default.
            project: the value of AIAML_SEMANTIC_PROJECT, which makes the project trusted.
            options: others of `MemoryReader`.
        """
        start = Path(directory) if directory else paths.working_directory()
        found = paths.find_project(start, project, PROJECT)
        return cls(paths.global_directory(), found, trusted=bool(project), **options)

    # --- storing ----------------------------------------------------------------------------------

    def store(self, content: str, **fields: Any) -> StoreResult:
        """Store a memory. One that differs from another in case and white space only is merged.

        Args:
            content: the text.
            fields: others of `NewMemory`, such as tags, priority and scope.
        """
        new = NewMemory(content, **fields).validated()
        database = self.database(new.scope)
        embedded = self._embed(new.content)
        with database.writing():
            number, equal, change = self._put(database, new)
            self._set_vectors(database, number, embedded)
        result = StoreResult(self._read(database, number), equal is None, change)
        if equal:
            is_same = equal.content == new.content
            replaced = "" if is_same else "; the new case and white space replaced the old"
            result.warnings.append(f"that text is already stored, as {equal.id}{replaced}")
        return self._finish(result, embedded)

    def store_many(self, memories: Sequence[NewMemory]) -> list[str]:
        """Store memories in one transaction for each database; return the ids of new ones."""
        stored: list[Item] = []
        for database in self.databases.values():
            own = [each for each in memories if self.database(each.scope) is database]
            if own:
                with database.writing():
                    for each in own:
                        number, equal, _ = self._put(database, each.validated())
                        if equal is None:
                            stored.append((database, number))
        self.worker.embed_later(stored)
        return [f"{database.scope}:{number}" for database, number in stored]

    def _put(self, database: Database, new: NewMemory) -> tuple[int, Memory | None, str | None]:
        """Add a memory, or merge it into an equal one.

        Returns:
            Its number, the equal one as it was, and the id of the change if that was changed.
        """
        column, digest = "content_hash", models.sha256_hex(new.content)
        if self.config.deduplication.auto_check:
            column, digest = "normalized_hash", models.normalized_hash(new.content)
        query = f"SELECT id FROM memories WHERE {column} = ? ORDER BY content = ? DESC"
        rows = database.fetch(query, (digest, new.content))
        equal = change = None
        if rows:
            number = int(rows[0][0])
            equal = self._read(database, number)
            change = self._absorb(database, equal, new)
        else:
            number = database.insert(new_row(new, database.project_name))
        if new.import_key:
            database.fetch("INSERT OR IGNORE INTO imported VALUES (?, ?)", (new.import_key, number))
        return number, equal, change

    def _absorb(self, database: Database, existing: Memory, new: NewMemory) -> str | None:
        """Merge a new memory into an equal one; return the id of the change, if there is one."""
        tags = [tag for tag in existing.tags if tag != UNREVIEWED or tag in new.tags]
        priorities = [existing.priority, new.priority or "LOW"]
        values = {
            "content": new.content,
            "tags": to_json(models.merge_tags(tags, new.tags)),
            "priority": min(priorities, key=models.PRIORITIES.index),
            "category": new.category or existing.category,
        }
        return self._apply(database, existing.number, values, "merge")

    def _apply(
        self, database: Database, number: int, values: dict[str, Any], act: str
    ) -> str | None:
        """Change columns and record that; return the change's id, None if all is as before."""
        before = database.row(number)
        changed = {name: value for name, value in values.items() if value != before[name]}
        if not changed:
            return None
        if "content" in changed:
            query = "SELECT id FROM memories WHERE content_hash = ? AND id != ?"
            digest = models.sha256_hex(changed["content"])
            for (other,) in database.fetch(query, (digest, number)):
                raise DuplicateContent(f"{database.scope}:{other} has exactly that text")
        database.update(number, {**changed, "updated_at": models.sql_now()})
        return history.record_change(database, act, [before])

    def _embed(self, content: str) -> Embedded:
        """Return a text's vectors; in the background mode nobody waits for those of a long one."""
        chunks = text.chunk_text(content)
        if self.worker.background and len(chunks) > 1:
            return Embedded(None, (), [])
        return self.worker.embed(chunks)

    def _set_vectors(self, database: Database, number: int, embedded: Embedded) -> None:
        if embedded.model and embedded.vectors:
            if database.vector_problem:
                embedded.warnings.append(f"words only: {database.vector_problem}")
            else:
                database.set_vectors(number, embedded.model, embedded.vectors)

    def _finish(
        self, result: StoreResult, embedded: Embedded, *, is_new_text: bool = True
    ) -> StoreResult:
        """Add what a memory resembles, its suggested priority and warnings to a result."""
        memory = result.memory
        result.warnings += embedded.warnings
        if is_new_text and self.config.deduplication.auto_check:
            parts = self._query_each(
                Filters(), result.warnings, lambda each: self._similar(each, memory, embedded)
            )
            found = [similar for part in parts for similar in part]
            found.sort(key=lambda each: (each.cosine is not None, -(each.cosine or 0)))
            result.similar = found[:MAX_SIMILAR]
        if memory.embedding_model is None:
            self.worker.embed_later([self._locate(memory.id)])
        texts = (memory.content, *memory.tags, memory.category, *memory.usage_contexts)
        result.warnings += secret_warning(*texts, check=self.check_secrets, advice=IN_DATABASE)
        result.suggestion = suggest_priority(memory)
        return result

    def _similar(self, database: Database, memory: Memory, embedded: Embedded) -> Sequence[Similar]:
        """Return the memories of a database that are equal or similar to another one."""
        own = memory.number if memory.scope == database.scope else 0
        rows = database.fetch(_EQUAL, (models.normalized_hash(memory.content), own))
        model = embedded.model
        if model and embedded.vectors and database.has_vectors(model):
            threshold = self.config.deduplication.similarity_threshold
            values = (embedded.vectors[0], model.key, own, threshold)
            rows = [*database.fetch(_SIMILAR, values), *rows]
        cosines = dict(rows)
        return [Similar(self._read(database, each), cosines[each]) for each in cosines]

    # --- changing ---------------------------------------------------------------------------------

    def update(
        self, memory_id: str, *, used: bool = False, context: str | None = None, **fields: Any
    ) -> StoreResult:
        """Change what is given of a memory, or record that it was used.

        Args:
            memory_id: which.
            used: whether it has helped; this counts as a use.
            context: what it has helped with.
            fields: new values of content, tags, priority, category or source; None changes
                nothing, and an empty category removes it.
        """
        database, number = self._locate(memory_id)
        values = models.check_changes(fields)
        contexts = [models.check_line("context", context, models.MAX_CONTEXT)] if context else []
        if not values and not used:
            raise InvalidInput(
                "updated_content: nothing is given to change",
                "Give a text, or tags, priority, category or source, or used=true.",
            )
        content = values.get("content")
        is_new_text = content not in (None, self.get(memory_id).content)
        embedded = self._embed(str(content)) if is_new_text else Embedded(None, (), [])
        with database.writing():
            before = self._read(database, number)
            change = self._apply(database, number, values, "update")
            if used:
                latest = [*before.usage_contexts, *contexts][-models.MAX_CONTEXTS :]
                use = {"last_accessed_at": models.sql_now(), "usage_contexts": to_json(latest)}
                database.update(number, {**use, "access_count": before.access_count + 1})
            self._set_vectors(database, number, embedded)
        result = StoreResult(self._read(database, number), False, change)
        return self._finish(result, embedded, is_new_text=is_new_text)

    def delete(
        self, memory_id: str | None = None, content_hash: str | None = None
    ) -> dict[str, str]:
        """Delete a memory by its id, or those with a hash; return the change of each.

        `undo` brings it back within 30 days; `forget` deletes for good.
        """
        if (memory_id is None) == (content_hash is None):
            raise InvalidInput("memory_id: give either memory_id or content_hash")
        items = [] if memory_id is None else [self._locate(memory_id)]
        digest = (content_hash or "").strip().lower()
        query = "SELECT id FROM memories WHERE content_hash = ?"
        for database in self._existing():
            items += [(database, number) for (number,) in database.fetch(query, (digest,))]
        if not items:
            raise NotFound("content_hash: no memory has that hash")
        changes: dict[str, str] = {}
        for database, number in items:
            with database.writing():
                memory = self._read(database, number)
                before = database.row(number)
                database.delete(number)
                changes[memory.id] = history.record_change(database, "delete", [before])
        return changes

    def forget(self, memory_id: str) -> None:
        """Delete a memory for good: its text, words, vectors, changes, and backups that hold it."""
        database, number = self._locate(memory_id)
        with database.writing():
            is_there = database.row(number)
            if not history.purge(database, number) and not is_there:
                raise NotFound(f"there is no memory {memory_id.strip()}")
            database.delete(number)
        backup.replace_all(database)

    # --- history and duplicates -------------------------------------------------------------------

    def history(self) -> list[history.Change]:
        """Return the changes of the last 30 days, newest first."""
        found = [change for each in self._existing() for change in history.list_changes(each)]
        return sorted(found, key=lambda change: change.at or "", reverse=True)

    def undo(self, change: str | None = None) -> list[Memory]:
        """Take back a change by its id, or the last one."""
        found = [each for each in self.history() if change in (None, each.id)]
        if not found:
            missing = f"no change {change}" if change else "nothing to undo"
            raise NothingToUndo(f"there is {missing} in the last {history.DAYS} days")
        database = self.databases[found[0].id.partition("#")[0]]
        with database.writing():
            numbers = history.undo(database, found[0])
        self.worker.embed_later([(database, number) for number in numbers])
        return [self._read(database, number) for number in numbers]

    def duplicates(
        self, threshold: float = dedupe.DEFAULT_THRESHOLD
    ) -> tuple[list[dedupe.Group], list[str]]:
        """Return the groups of similar memories within each database, and warnings."""
        dedupe.check_threshold(threshold)
        model, _, warnings = self.worker.current_model()
        parts = self._query_each(
            Filters(), warnings, lambda database: dedupe.find_groups(database, model, threshold)
        )
        return [group for groups in parts for group in groups], warnings

    def merge(self, memory_ids: Sequence[str]) -> Memory:
        """Merge memories of one database into the newest, which keeps its text."""
        items = [self._locate(each, "merge") for each in dict.fromkeys(memory_ids)]
        if len(items) < 2 or len({database for database, _ in items}) > 1:
            raise InvalidInput(
                "merge: must name two or more memories of the same database",
                "Delete or update one of them instead.",
            )
        database = items[0][0]
        with database.writing():
            memories = [self._read(*item) for item in items]
            memories.sort(key=dedupe.newest_key, reverse=True)
            before = [database.row(each.number) for each in memories]
            newest = memories[0].number
            for other in memories[1:]:
                database.delete(other.number, merged_into=newest)
            values = dedupe.merge_memories(memories)
            database.update(newest, {**values, "updated_at": models.sql_now()})
            history.record_change(database, "merge", before)
        return self._read(database, newest)

    def merge_equal(self) -> list[Memory]:
        """Merge texts that differ only in case and white space; return the merged memories."""
        groups = [group for each in self._existing() for group in dedupe.find_groups(each)]
        return [self.merge([each.id for each in group.memories]) for group in groups]

    # --- imports and vectors ----------------------------------------------------------------------

    def existing_keys(self) -> set[str]:
        """Return the normalized hashes of all texts, and the keys of what was imported."""
        query = "SELECT normalized_hash FROM memories UNION SELECT key FROM imported"
        return {str(key) for database in self._existing() for (key,) in database.fetch(query)}

    def unknown_keys(self, memory: Memory) -> str:
        """Return the JSON object of keys that an import brought and this toolset does not know."""
        database, number = self._locate(memory.id)
        return database.row(number)["extra"] or "{}"

    def migrate_embeddings(
        self, limit: int, on_progress: Callable[[int, int], None] = lambda _done, _left: None
    ) -> tuple[int, int]:
        """Make missing and outdated vectors; return how many were made, and how many are left.

        Raises:
            Unavailable: the model is not loaded.
        """
        model, _, warnings = self.worker.current_model(30.0)
        if model is None:
            reason = warnings[0] if warnings else "there is no model"
            raise Unavailable(reason, "Run `aiaml semantic status`.")
        items = self.outdated(model)
        done = 0
        for item in items[:limit]:
            done += self.worker.embed_memories([item])
            on_progress(done, len(items) - done)
        return done, len(items) - done
