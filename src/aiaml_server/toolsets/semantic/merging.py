"""Memories made one: which resemble, what becomes of them, and how that is taken back."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from aiaml_server.toolsets.semantic import journal, memory
from aiaml_server.toolsets.semantic.database import Database, author_of, rows
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
from aiaml_server.toolsets.semantic.journal import Change, as_text, fields_of
from aiaml_server.toolsets.semantic.memory import Memory, bare, column, decoded
from aiaml_server.toolsets.semantic.opened import SELECT, Opened

if TYPE_CHECKING:
    import apsw

_FIRST_VECTORS = """
SELECT vectors.memory_id, vec_memories.embedding
FROM vectors JOIN vec_memories ON vec_memories.vector_id = vectors.id
WHERE vectors.part = 0 AND vectors.author = ? ORDER BY vectors.memory_id
"""

MOST_PAIRS = 5_000
"""Memories that are like an earlier one, of which a database tells at once: 0.5 s to read them."""


class Merging:
    """What resembles is found; merged is what is told to; what was changed can be undone."""

    def __init__(self, opened: Opened, embedding: Embedding) -> None:
        self._opened, self._embedding = opened, embedding

    def duplicates(self, threshold: float = THRESHOLD) -> tuple[Sequence[Group], list[str]]:
        """Return groups of memories that resemble each other, within each database; and warnings.

        Args:
            threshold: the cosine from which on they do.
        """
        check_threshold(threshold)
        embedder, warnings = self._embedding.embedder()
        if embedder and find_spec("numpy") is None:
            embedder, warnings = None, ["words only: numpy is not installed"]
        groups: list[Group] = []
        for database in self._opened.readable(Filters(), warnings):
            with database.reading() as sql:
                pairs = [*_equal_pairs(sql, database.name), *_alike_pairs(sql, database.name)]
                if len(pairs) >= MOST_PAIRS:
                    warnings.append(
                        f"{database.name}: more are alike than are shown; merge some, and ask again"
                    )
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
        for database in self._opened.there():
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
            for held, _ in self._opened.whole(database, found, warnings):
                known[name] = held
        return grouped([each for pair, each in unique.items() if pair <= known.keys()], known)

    def merge(self, memory_ids: Sequence[str]) -> Memory:
        """Make one memory of several of the same database; `undo` takes it back.

        The newest stays, with its text; tags are united, the highest priority wins.
        """
        meant = [self._opened.at(each, "merge") for each in dict.fromkeys(memory_ids)]
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
            found = [self._opened.row(sql, database, number) for _, number in meant]
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
            journal.note(sql, database.name, "merge", kept.number, was, removed)
            return self._opened.row(sql, database, kept.number)

    def history(self, memory_id: str | None = None) -> Sequence[Change]:
        """Return what was changed in the last 30 days, the newest first.

        Args:
            memory_id: only of this one, which need not be there any more.
        """
        wanted, number = (None, 0) if memory_id is None else self._opened.at(memory_id)
        found: list[Change] = []
        for database in self._opened.there():
            if wanted in (None, database):
                with database.reading() as sql:
                    found += journal.changes(sql, database.name)
        if wanted:
            found = [
                each
                for each in found
                if number in (each.kept, *(one.get("id") for one in each.removed))
            ]
        return sorted(found, key=lambda each: (each.at, each.number), reverse=True)

    def undo(self, change: str | None = None) -> Sequence[Memory]:
        """Take a change back; return the memories that are there again, the kept one first.

        Args:
            change: its id, such as project#5, or a memory's, of which the last one is meant;
                without, the last one of all. What was undone comes again by its id alone.
        """
        of_memory = change if change and ":" in change else None
        wanted = None if change in (None, of_memory) else journal.numbered(str(change))
        found = [
            each
            for each in self.history(of_memory)
            if (each.act != "undo" if wanted is None else wanted == journal.numbered(each.id))
        ]
        if not found:
            if change:
                said = f"there is no change {change.strip()}, it was undone, or is older than"
                raise NothingToUndo(f"{said} {journal.DAYS} days")
            raise NothingToUndo(f"no change of the last {journal.DAYS} days is left to be undone")
        database = self._opened.databases[found[0].id.partition("#")[0]]
        with database.writing() as sql:
            still = [each for each in journal.changes(sql, database.name) if each.id == found[0].id]
            if not still:
                raise NothingToUndo(f"{found[0].id} was undone already")
            numbers = journal.undo(sql, database, still[0])
            again = [self._opened.row(sql, database, number) for number in numbers]
        self._embedding.later(lacking=True)
        return again


def _equal_pairs(sql: apsw.Connection, scope: str) -> list[Pair]:
    """Return the pairs that are equal but for case and white space."""
    found = rows(
        sql,
        "SELECT min(id) OVER (PARTITION BY folded), id FROM memories WHERE folded IN"
        " (SELECT folded FROM memories GROUP BY folded HAVING count(*) > 1) ORDER BY id LIMIT ?",
        (MOST_PAIRS,),
    )
    return [Pair(f"{scope}:{a}", f"{scope}:{b}", None) for a, b in found if a != b]


def _alike_pairs(sql: apsw.Connection, scope: str) -> list[Pair]:
    """Return the pairs that are equal but for case, blanks and punctuation."""
    first: dict[str, int] = {}
    pairs = []
    for number, content in sql.execute(f"SELECT id, {column('content')} FROM memories ORDER BY id"):
        if (text := decoded(content)) is not None:
            before = first.setdefault(bare(text), number)
            if before != number:
                pairs.append(Pair(f"{scope}:{before}", f"{scope}:{number}", None))
        if len(pairs) >= MOST_PAIRS:
            break
    return pairs
