"""Memories made one: which resemble, what becomes of them, and how that is taken back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from aiaml_server.toolsets.semantic import memory
from aiaml_server.toolsets.semantic.database import MOST_VALUE, Database, author_of, rows
from aiaml_server.toolsets.semantic.duplicates import (
    THRESHOLD,
    Group,
    Pair,
    check_threshold,
    grouped,
    merged,
    near,
    newer,
)
from aiaml_server.toolsets.semantic.embedding import Embedding
from aiaml_server.toolsets.semantic.failures import InvalidInput, NotFound, NothingToUndo
from aiaml_server.toolsets.semantic.filters import Filters
from aiaml_server.toolsets.semantic.memory import Memory
from aiaml_server.toolsets.semantic.opened import SELECT

if TYPE_CHECKING:
    import apsw

_FIRST_VECTORS = """
SELECT vectors.memory_id, vec_memories.embedding
FROM vectors JOIN vec_memories ON vec_memories.vector_id = vectors.id
WHERE vectors.part = 0 AND vectors.author = ? ORDER BY vectors.memory_id
"""
_FIELDS = (
    "content", "content_hash", "folded", "priority", "category", "tags", "project_id", "source",
    "created_at", "updated_at", "access_count", "last_accessed_at", "usage_contexts", "path", "id",
)  # fmt: skip


class Merging(Embedding):
    """What resembles is found; merged is what is told to, and noted so that it can be undone."""

    def duplicates(self, threshold: float = THRESHOLD) -> tuple[Sequence[Group], list[str]]:
        """Return groups of memories that resemble each other, within each database; and warnings.

        Args:
            threshold: the cosine from which on they do.
        """
        check_threshold(threshold)
        embedder, warnings = self._embedder()
        if embedder and find_spec("numpy") is None:
            embedder, warnings = None, ["words only: numpy is not installed"]
        groups: list[Group] = []
        for database in self._readable(Filters(), warnings):
            with database.reading() as sql:
                pairs = _equal_pairs(sql, database.name)
                made_by = database.author_id(sql, author_of(embedder)) if embedder else None
                held = rows(sql, _FIRST_VECTORS, (made_by,)) if made_by is not None else []
            names = [f"{database.name}:{number}" for number, _ in held]
            pairs += near(names, [vector for _, vector in held], threshold)
            with database.reading() as sql:  # which others used while vectors were compared
                groups += self._grouped(sql, database, pairs, warnings)
        return groups, warnings

    def merge_equal(self) -> Sequence[Memory]:
        """Merge what is equal but for case and white space; return what was made of it."""
        groups: list[Group] = []
        for database in self._there():
            with database.reading() as sql:
                groups += self._grouped(sql, database, _equal_pairs(sql, database.name), [])
        return [self.merge([one.id for one in each.memories]) for each in groups]

    def _grouped(
        self, sql: apsw.Connection, database: Database, pairs: Sequence[Pair], warnings: list[str]
    ) -> Sequence[Group]:
        unique = {frozenset((each.first, each.second)): each for each in reversed(pairs)}
        known: dict[str, Memory] = {}
        for name in {name for pair in unique for name in pair}:
            number = int(name.partition(":")[2])
            found = rows(sql, f"{SELECT} WHERE id = ?", (number,))
            for held, _ in self._whole(database, found, warnings):
                known[name] = held
        return grouped([each for pair, each in unique.items() if pair <= known.keys()], known)

    def merge(self, memory_ids: Sequence[str]) -> Memory:
        """Make one memory of several of the same database; `undo` takes it back.

        The newest stays, with its text; tags are united, the highest priority wins.
        """
        meant = [self._at(each, "merge") for each in dict.fromkeys(memory_ids)]
        if len(meant) < 2:
            raise InvalidInput("merge: must name two memories or more")
        database = meant[0][0]
        if any(each is not database for each, _ in meant):
            raise InvalidInput(
                "merge: memories of the project and global ones cannot become one",
                "Delete or update one of them instead.",
            )
        if not database.there:
            raise NotFound(f"there is no memory {memory_ids[0]}")
        with database.writing() as sql:
            found = [self._row(sql, database, number) for _, number in meant]
            kept, *others = sorted(found, key=newer, reverse=True)
            was, removed = fields_of(sql, kept.number), []
            for each in others:
                removed.append(fields_of(sql, each.number))
                there = "UPDATE imports SET memory_id = ? WHERE memory_id = ?"
                sql.execute(there, (kept.number, each.number))
                database.remove(sql, each.number)
            one = merged([kept, *others])
            database.change(
                sql,
                kept.number,
                {"priority": one.priority, "category": one.category, "tags": as_text(one.tags),
                 "access_count": one.access_count, "updated_at": memory.now(),
                 "usage_contexts": as_text(one.usage_contexts)},
            )  # fmt: skip
            self._note_merge(sql, kept.number, was, removed)
            return self._row(sql, database, kept.number)

    def undo(self) -> Sequence[Memory]:
        """Take the last merge back; return the memories that are there again, the kept one first.

        What was kept becomes what it was, unless it was changed since.
        """
        last: tuple[str, Database] | None = None
        for database in self._there():
            with database.reading() as sql:
                for row in rows(sql, "SELECT at FROM merges ORDER BY id DESC LIMIT 1"):
                    last = max(last or ("", database), (row[0], database), key=lambda one: one[0])
        if last is None:
            raise NothingToUndo("no merge was made, or all were undone")
        database = last[1]
        with database.writing() as sql:
            found = rows(sql, "SELECT * FROM merges ORDER BY id DESC LIMIT 1")
            if not found:
                raise NothingToUndo("no merge was made, or all were undone")
            merge, _, kept, kept_as, was, removed = found[0]
            now = fields_of(sql, kept)
            if json.loads(kept_as) == now:
                before = json.loads(was)
                if before["content"] == now["content"]:
                    del before["content"]
                database.change(sql, kept, {k: v for k, v in before.items() if k != "id"})
            numbers = [kept]
            for each in json.loads(removed):
                taken = rows(
                    sql, "SELECT id FROM memories WHERE content_hash = ?", (each["content_hash"],)
                )
                if not taken:
                    fields = [each[name] for name in _FIELDS]
                    numbers.append(database.add(sql, fields))
            sql.execute("DELETE FROM merges WHERE id = ?", (merge,))
            again = [self._row(sql, database, number) for number in numbers]
        self._later(lacking=True)
        return again

    def _note_merge(
        self,
        sql: apsw.Connection,
        kept: int,
        was: dict[str, Any],
        removed: Sequence[dict[str, Any]],
    ) -> None:
        """Note what was there before a merge, and what is kept now: it is undone while it is so."""
        texts = [as_text(each) for each in (fields_of(sql, kept), was, removed)]
        if sum(len(each.encode()) for each in texts) > MOST_VALUE // 2:
            raise InvalidInput("merge: these are too long to be merged at once; merge fewer")
        sql.execute(
            "INSERT INTO merges (at, kept, kept_as, was, removed) VALUES (?, ?, ?, ?, ?)",
            (memory.now(), kept, *texts),
        )


def fields_of(sql: apsw.Connection, number: int) -> dict[str, Any]:
    """Return a memory's row but for its vectors' author."""
    found = rows(sql, f"SELECT {', '.join(_FIELDS)} FROM memories WHERE id = ?", (number,))
    return dict(zip(_FIELDS, found[0], strict=True)) if found else {}


def as_text(value: Any) -> str:
    """Return a JSON value as the databases have it."""
    return json.dumps(value, ensure_ascii=False)


def _equal_pairs(sql: apsw.Connection, scope: str) -> list[Pair]:
    """Return the pairs that are equal but for case and white space."""
    found = rows(
        sql,
        "SELECT min(id) OVER (PARTITION BY folded), id FROM memories WHERE folded IN"
        " (SELECT folded FROM memories GROUP BY folded HAVING count(*) > 1) ORDER BY id",
    )
    return [Pair(f"{scope}:{a}", f"{scope}:{b}", None) for a, b in found if a != b]
