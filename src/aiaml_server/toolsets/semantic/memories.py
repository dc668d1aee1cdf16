"""`Memories`: what the tools, the hooks and Python programs do with memories."""

from __future__ import annotations

import builtins
import json
import logging
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aiaml_server.toolset import repair_surrogates

from . import config, cutting, memory, place, ranking
from .config import Config
from .database import Author, Database, author_of, packed, rows
from .duplicates import Group, Pair, check_threshold, grouped, merged, near, newer
from .failures import (
    AlreadyThere,
    Busy,
    Damaged,
    DiskError,
    InvalidInput,
    InvalidProject,
    NotFound,
    NothingToUndo,
    Refused,
    Unavailable,
)
from .filters import KEYS, Filters, behind, cursor_of
from .memory import COLUMNS, LIMITS, MOST_LISTED, SORTS, Memory, of_row
from .model import Embedder, Provider
from .priority import Suggestion, suggest
from .ranking import Candidate, Hit

if TYPE_CHECKING:
    import apsw

log = logging.getLogger(__name__)

MOST_HITS = 50
LONGEST_QUERY = 10_000  # characters
BATCH = 16  # memories that are embedded before they are written
PARTS = 4  # of a text that are embedded at once; a question may have to wait for them
PAUSE = 0.005  # seconds after them, in which a question that waits comes before the next ones
AT_ONCE = 4  # batches that a call makes where there is no background
_SELECT = f"SELECT {COLUMNS} FROM memories"
_NEAR = """
SELECT vectors.memory_id, 1 - near.distance
FROM (
    SELECT vector_id, distance FROM vec_memories
    WHERE embedding MATCH ? AND k = ? AND author = ?
) AS near JOIN vectors ON vectors.id = near.vector_id
WHERE vectors.part = 0 AND vectors.memory_id != ? AND 1 - near.distance >= ?
"""
_FIRST_VECTORS = """
SELECT vectors.memory_id, vec_memories.embedding
FROM vectors JOIN vec_memories ON vec_memories.vector_id = vectors.id
WHERE vectors.part = 0 AND vectors.author = ? ORDER BY vectors.memory_id
"""


class Similar(NamedTuple):
    """A memory that resembles another, and how nearly, as the cosine of their vectors."""

    memory: Memory
    cosine: float | None


@dataclass
class Stored:
    """What storing has done.

    Attributes:
        memory: as it is kept now.
        created: whether it is new; else it was merged into one that was there.
        similar: what it resembles, the nearest first.
        suggestion: another priority that its words suggest.
        warnings: what should be known.
    """

    memory: Memory
    created: bool
    similar: Sequence[Similar] = ()
    suggestion: Suggestion | None = None
    warnings: builtins.list[str] = field(default_factory=list)


@dataclass
class Found:
    """What a search has found, best first.

    Attributes:
        hits: with what their scores are made of.
        meaning: whether meanings were compared, or words alone.
        warnings: what should be known.
    """

    hits: Sequence[Hit]
    meaning: bool
    warnings: builtins.list[str] = field(default_factory=list)


@dataclass
class Page:
    """A page of a list.

    Attributes:
        memories: in the order asked for.
        total: how many there are on all pages.
        next_cursor: what the next page is asked for by; None behind the last.
        warnings: what should be known.
    """

    memories: Sequence[Memory]
    total: int
    next_cursor: str | None
    warnings: builtins.list[str] = field(default_factory=list)


class Progress(NamedTuple):
    """How far embedding is.

    Attributes:
        done: memories that were embedded in this run.
        left: those that still are to be.
    """

    done: int
    left: int


class Memories:
    """The memories of a person, and those of a project where one is active.

    Any method may be called from any thread, and raises `Refused` and its kinds.
    """

    def __init__(
        self,
        home: Path,
        project: Path | None = None,
        model: Provider | None = None,
        settings: Config | None = None,
        *,
        background: bool = False,
    ) -> None:
        """Take the places; nothing is opened or made.

        Args:
            home: the person's directory, `~/.memory`.
            project: the project's top directory; None for none.
            model: what turns texts into vectors; None for words only.
            settings: else they are read from `config.json`.
            background: whether what could not be embedded at once is embedded in a thread, also
                while the model is still being loaded.

        Raises:
            InvalidConfig: the settings are not as they must be.
            InvalidProject: the project is the home directory, or has a name that is no text.
        """
        self.home, self.project, self.model = home, project, model
        self.config = config.load(home) if settings is None else settings
        self.databases: dict[str, Database] = {}
        for path in filter(None, (home, project)):
            if repair_surrogates(os.fspath(path)) != os.fspath(path):
                raise InvalidProject(f"{path} is no text in UTF-8, and SQLite opens no such path")
        if project is not None:
            directory = project / place.NAME
            if directory == home:
                raise InvalidProject(f"{project} is the home directory, which is no project")
            self.databases["project"] = Database(
                directory / place.DATABASE, "project", project.name or "project"
            )
        self.databases["global"] = Database(home / place.DATABASE, "global")
        self._background = background
        self._closing = threading.Event()
        self._asked = threading.Lock()
        self._wanted: set[str] = set()  # ids whose vectors are of another model
        self._thread: threading.Thread | None = None
        self._complete = False  # no memory lacks a vector, as far as is known

    @classmethod
    def at(
        cls, start: Path | str, model: Provider | None = None, *, background: bool = False
    ) -> Memories:
        """Return the memories for whoever works in a directory."""
        project = place.find_project(Path(start))
        return cls(place.home(), project, model, background=background)

    def close(self) -> None:
        """End what goes on in the background, and close the databases; another call opens them."""
        self._closing.set()
        thread = self._thread
        if thread is not None:
            thread.join()
        self._closing.clear()
        for each in self.databases.values():
            each.close()

    # --- storing and changing ---------------------------------------------------------------------

    def store(
        self,
        content: str,
        tags: Sequence[str] = (),
        priority: str | None = None,
        category: str | None = None,
        source: str = "manual",
        scope: str | None = None,
        path: str | None = None,
        *,
        compared: bool = True,
    ) -> Stored:
        """Store a memory; what is equal but for case and white space is merged into one.

        With a background, a text of several parts is embedded there: each takes up to 0.1 s.

        Args:
            content: the text.
            tags: words to filter by.
            priority: one of `PRIORITIES`; NORMAL where none is given.
            category: a word for its kind.
            source: one of `SOURCES`.
            scope: `project` or `global`; the project where one is active.
            path: the file that it was imported from.
            compared: whether to say what it resembles, by its first part if it has several.
        """
        content = memory.check_content(content)
        tags = memory.check_tags(tags)
        source = memory.check_choice("source", source, memory.SOURCES)
        if priority is not None:
            priority = memory.check_choice("priority", priority, memory.PRIORITIES)
        if category is not None:
            category = memory.check_line("category", category)
        database = self._database(scope)
        embedder, warnings = self._embedder()
        parts = cutting.parts(content)
        behind = self._background and (len(parts) > 1 or not compared)
        vectors, problem = self._vectors(embedder, parts[: int(compared)] if behind else parts)
        warnings += [*problem, *memory.repaired(content, *tags, category or "")]
        with database.writing() as sql:
            there = self._equal(sql, database, content)
            if there is None:
                moment = memory.now()
                number = database.add(
                    sql,
                    (content, memory.digest(content), memory.folded(content),
                     priority or "NORMAL", category, _json(tags), database.project_id(sql), source,
                     moment, moment, 0, None, "[]", path, None),
                )  # fmt: skip
            else:
                number = there.number
                self._absorb(sql, database, there, content, tags, priority, category, source)
            if source == "import":
                digest = memory.folded(content)
                sql.execute("INSERT OR IGNORE INTO imports VALUES (?, ?)", (digest, number))
            if not behind:
                warnings += self._set_vectors(sql, database, number, embedder, vectors)
            kept = self._row(sql, database, number)
        similar: Sequence[Similar] = ()
        if compared and self.config.check and vectors and embedder:
            similar = self._similar(kept, vectors[0], author_of(embedder), warnings)
        suggestion = suggest(kept.content, kept.tags, kept.priority, kept.scope)
        self._later(lacking=kept.embedding_model is None)
        return Stored(kept, there is None, similar, suggestion, warnings)

    def _equal(self, sql: apsw.Connection, database: Database, content: str) -> Memory | None:
        """Return the memory with this text; by its folded form, if that is asked for."""
        found = rows(sql, f"{_SELECT} WHERE content_hash = ?", (memory.digest(content),))
        if not found and self.config.check:
            found = rows(sql, f"{_SELECT} WHERE folded = ? LIMIT 1", (memory.folded(content),))
        return of_row(database.name, found[0]) if found else None

    def _absorb(
        self,
        sql: apsw.Connection,
        database: Database,
        there: Memory,
        content: str,
        tags: Sequence[str],
        priority: str | None,
        category: str | None,
        source: str,
    ) -> None:
        """Merge what is to be stored into the memory that is equal to it."""
        known = {each.casefold() for each in there.tags}
        more = tuple(each for each in tags if each.casefold() not in known)
        values: dict[str, Any] = {
            "content": content,
            "content_hash": memory.digest(content),
            "tags": _json((*there.tags, *more)[: memory.MOST_TAGS]),
            "priority": memory.highest([there.priority, priority or "LOW"]),
            "category": category or there.category,
        }
        was = _kept(sql, there.number)
        if all(was[name] == value for name, value in values.items()):
            return
        new = {**was, "id": None, "content": content, "content_hash": memory.digest(content),
               "tags": _json(tags), "priority": priority or "NORMAL", "category": category,
               "source": source, "created_at": memory.now(), "updated_at": memory.now(),
               "access_count": 0, "last_accessed_at": None, "usage_contexts": "[]"}  # fmt: skip
        if values["content"] == there.content:
            del values["content"], values["content_hash"]  # its vectors stay
        self._note_merge(sql, there.number, was, [new])
        values["updated_at"] = memory.now()
        database.change(sql, there.number, values)
        self._note_kept(sql, there.number)

    def update(
        self,
        memory_id: str,
        content: str | None = None,
        tags: Sequence[str] | None = None,
        priority: str | None = None,
        category: str | None = None,
        source: str | None = None,
        *,
        used: bool = False,
        context: str | None = None,
    ) -> Stored:
        """Change what is given of a memory, and count it as used; return it as it is now.

        Args:
            memory_id: which.
            content: another text; its vectors are made anew.
            tags: in place of those that it has.
            priority: another.
            category: another.
            source: another.
            used: that it has helped; alone, nothing else is changed.
            context: what for.
        """
        database, number = self._at(memory_id)
        content = None if content is None else memory.check_content(content)
        values = _changes(content, tags, priority, category, source)
        if context is not None:
            context = memory.check_line("context", context, memory.LONGEST_CONTEXT)
        if not values and not used:
            raise InvalidInput(
                "memory_id: nothing is given that would change it",
                "Give updated_content, tags, priority, category or source, or used=true.",
            )
        self._held(database, number, memory_id)
        embedder, warnings = self._embedder() if content is not None else (None, [])
        parts = cutting.parts(content) if content is not None else []
        behind = self._background and len(parts) > 1
        vectors, problem = self._vectors(embedder, [] if behind else parts)
        warnings += [*problem, *memory.repaired(content or "", *(tags or ()), category or "")]
        with database.writing() as sql:
            before = self._row(sql, database, number)
            if content == before.content:
                values.pop("content", None)
                vectors = []
            elif content is not None:
                _check_new(sql, database, number, content)
            if values:
                values["updated_at"] = memory.now()
            contexts = [*before.usage_contexts, *([context] if context else [])]
            values |= {
                "access_count": before.access_count + 1,
                "last_accessed_at": memory.now(),
                "usage_contexts": _json(contexts[-memory.MOST_CONTEXTS :]),
            }
            database.change(sql, number, values)
            if vectors:
                warnings += self._set_vectors(sql, database, number, embedder, vectors)
            kept = self._row(sql, database, number)
        self._later(lacking=kept.embedding_model is None)
        suggestion = suggest(kept.content, kept.tags, kept.priority, kept.scope)
        return Stored(kept, created=False, suggestion=suggestion, warnings=warnings)

    def delete(self, memory_id: str | None = None, content_hash: str | None = None) -> list[str]:
        """Delete a memory by its id, or those with a hash; return their ids.

        Their texts, words and vectors, and what was noted of merges with them, are overwritten.
        """
        if (memory_id is None) == (content_hash is None):
            raise InvalidInput("memory_id: give either memory_id or content_hash")
        if memory_id is not None:
            database, number = self._at(memory_id)
            self._held(database, number, memory_id)
            meant = [(database, number)]
        else:
            meant = self._by_hash(content_hash or "")
        for database, number in meant:
            with database.writing() as sql:
                self._row(sql, database, number)
                database.remove(sql, number)
                name = str(number)
                for merge, kept, removed in rows(sql, "SELECT id, kept, removed FROM merges"):
                    if kept == number or name in {str(each["id"]) for each in json.loads(removed)}:
                        sql.execute("DELETE FROM merges WHERE id = ?", (merge,))
        return [f"{database.name}:{number}" for database, number in meant]

    def _by_hash(self, content_hash: str) -> builtins.list[tuple[Database, int]]:
        wanted = content_hash.strip().lower()
        found = []
        for database in self._there():
            with database.reading() as sql:
                held = rows(sql, "SELECT id FROM memories WHERE content_hash = ?", (wanted,))
            found += [(database, row[0]) for row in held]
        if not found:
            raise NotFound("content_hash: no memory has that hash")
        return found

    # --- finding ----------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        limit: int | None = None,
        filters: Filters | None = None,
        context: str = "explicit",
    ) -> Found:
        """Find memories by meaning and words, best first.

        Args:
            query: a question, or words.
            limit: at most so many; else what the context has.
            filters: what they must be like.
            context: what is searched for: one of `LIMITS`.
        """
        query = query.strip()
        if not query or len(query) > LONGEST_QUERY:
            raise InvalidInput(f"query: must be text of 1 to {LONGEST_QUERY:,} characters")
        context = memory.check_choice("context", context, tuple(LIMITS))
        if limit is None:
            limit = LIMITS[context] or self.config.limit
        _check_limit(limit, MOST_HITS)
        filters = filters or Filters()
        where, values = filters.where()
        embedder, warnings = self._embedder()
        vectors, problem = self._vectors(embedder, [query])
        warnings += problem
        author = author_of(embedder) if embedder and vectors else None
        found: list[Candidate] = []
        meaning = False
        for database in self._readable(filters, warnings):
            with database.reading() as sql:
                made_by = author and not database.problem and database.author_id(sql, author)
                values |= {"words": cutting.match(query)}
                if made_by:
                    values |= {"vector": vectors[0], "author": made_by}
                given, compared = self._candidates(sql, where, values, warnings, bool(made_by))
                meaning = meaning or compared
                found += ranking.candidates(database.name, given)
                if author:
                    warnings += self._behind(sql, database, author)
        own = {each.memory.content_hash for each in found if each.memory.scope == "project"}
        found = [
            each
            for each in found
            if each.memory.scope == "project" or each.memory.content_hash not in own
        ]
        now = datetime.now(timezone.utc)
        hits = ranking.ranked(found, self.config, now, in_project=self.project is not None)[:limit]
        if author:
            other = [each.memory for each in hits if _author(each.memory) not in (None, author)]
            self._later(other)
        return Found(hits, meaning, list(dict.fromkeys(warnings)))

    def _candidates(
        self,
        sql: apsw.Connection,
        where: str,
        values: dict[str, Any],
        warnings: builtins.list[str],
        meaning: bool,
    ) -> tuple[builtins.list[tuple[Any, ...]], bool]:
        """Run the one statement; by words alone, where the vectors fail."""
        import apsw  # noqa: PLC0415 (an extra)

        if meaning:
            try:
                return rows(sql, ranking.statement(where), values), True
            except apsw.BusyError:
                raise
            except apsw.Error as error:
                warnings.append(f"words only: the vectors cannot be searched ({error})")
        return rows(sql, ranking.statement(where, meaning=False), values), False

    def _behind(
        self, sql: apsw.Connection, database: Database, author: Author
    ) -> builtins.list[str]:
        """Say how many memories cannot be compared by meaning."""
        other = rows(
            sql,
            "SELECT 1 FROM authors WHERE (model, version, dimension) != (?, ?, ?)"
            " AND EXISTS (SELECT 1 FROM vectors WHERE author = authors.id)",
            tuple(author),
        )
        if not other and not rows(sql, "SELECT 1 FROM memories WHERE embedding_model = '' LIMIT 1"):
            return []
        count = self._left(sql, author)
        if not count:
            return []
        said = f"{count} {database.name} memories have no vector of this model yet, and are found"
        return [f"{said} by words only; migrate_embeddings makes them"]

    def list(
        self,
        filters: Filters | None = None,
        sort_by: str = "created_at",
        limit: int = 20,
        cursor: str | None = None,
    ) -> Page:
        """Return a page of memories, the highest of what they are sorted by first, then the newest.

        Args:
            filters: what they must be like.
            sort_by: one of `SORTS`.
            limit: at most so many on a page.
            cursor: the `next_cursor` of the page before.
        """
        sort_by = memory.check_choice("sort_by", sort_by, SORTS)
        _check_limit(limit, MOST_LISTED)
        filters = filters or Filters()
        where, values = filters.where()
        key = KEYS[sort_by]
        after = behind(cursor, sort_by) if cursor is not None else None
        warnings: list[str] = []
        found: list[tuple[tuple[Any, ...], Memory]] = []
        total = 0
        for database in self._readable(filters, warnings):
            wanted = [where] if where else []
            with database.reading() as sql:
                count = f"SELECT count(*) FROM memories {_where(wanted)}"
                total += rows(sql, count, values)[0][0]
                if after:
                    wanted.append(
                        f"({key}, created_at, :scope, id) < (:key, :created, :of, :number)"
                    )
                    values |= {"scope": database.name, **dict(
                        zip(("key", "created", "of", "number"), after, strict=True)
                    )}  # fmt: skip
                held = rows(
                    sql,
                    f"SELECT {key}, created_at, {COLUMNS} FROM memories {_where(wanted)}"
                    f" ORDER BY {key} DESC, created_at DESC, id DESC LIMIT {limit + 1}",
                    values,
                )
            for row in held:
                each = of_row(database.name, row[2:])
                found.append(((row[0], row[1], database.name, each.number), each))
        found.sort(key=lambda pair: pair[0], reverse=True)
        more = len(found) > limit
        found = found[:limit]
        next_cursor = cursor_of(sort_by, found[-1][0]) if more else None
        return Page([each for _, each in found], total, next_cursor, warnings)

    def get(self, memory_id: str) -> Memory:
        """Return one memory."""
        database, number = self._at(memory_id)
        return self._held(database, number, memory_id)

    def known(self) -> set[str]:
        """Return the texts that are memories, and those that were imported, as `folded` has them.

        What was imported is known as long as its memory is there, whatever that says now.
        """
        found: set[str] = set()
        for database in self._there():
            with database.reading() as sql:
                held = rows(sql, "SELECT folded FROM memories UNION SELECT digest FROM imports")
            found |= {row[0] for row in held}
        return found

    def session_start(self, limit: int | None = None, words: str = "") -> Sequence[Memory]:
        """Return what a session should begin with: by priority, project and words; no model.

        Args:
            limit: at most so many; else what the settings say.
            words: what the session is about, if anything is known.
        """
        most = self.config.session_start_limit if limit is None else limit
        _check_limit(most, MOST_HITS)
        found: dict[str, Candidate] = {}
        for database in self._readable(Filters(), []):
            with database.reading() as sql:
                held = rows(
                    sql,
                    f"{_SELECT} ORDER BY {KEYS['priority']} DESC, created_at DESC"
                    f" LIMIT {ranking.CANDIDATES}",
                )
                given = [(*row, None, 0.0) for row in held]
                if match := cutting.match(words):
                    statement = ranking.statement(meaning=False)
                    given += rows(sql, statement, {"words": match})
            for each in ranking.candidates(database.name, given):
                found[each.memory.id] = each
        now = datetime.now(timezone.utc)
        best = max((each.bm25 for each in found.values()), default=0.0) or 1.0

        def worth(each: Candidate) -> float:
            near = 0.3 if each.memory.scope == "project" else 0.0
            recency = ranking.recency(each.memory, now, self.config.half_life)
            priority = ranking.PRIORITY[each.memory.priority]
            return 0.5 * priority + near + 0.2 * each.bm25 / best + 0.1 * recency

        ordered = sorted(found.values(), key=lambda each: (-worth(each), each.memory.id))
        return [each.memory for each in ordered[:most]]

    # --- duplicates -------------------------------------------------------------------------------

    def duplicates(self, threshold: float = 0.95) -> tuple[Sequence[Group], builtins.list[str]]:
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
                made_by = (
                    database.author_id(sql, author_of(embedder))
                    if embedder and not database.problem
                    else None
                )
                held = rows(sql, _FIRST_VECTORS, (made_by,)) if made_by is not None else []
            names = [f"{database.name}:{number}" for number, _ in held]
            pairs += near(names, [vector for _, vector in held], threshold)
            with database.reading() as sql:  # which others used while vectors were compared
                groups += self._grouped(sql, database, pairs)
        return groups, warnings

    def merge_equal(self) -> Sequence[Memory]:
        """Merge what is equal but for case and white space; return what was made of it."""
        groups: list[Group] = []
        for database in self._there():
            with database.reading() as sql:
                groups += self._grouped(sql, database, _equal_pairs(sql, database.name))
        return [self.merge([one.id for one in each.memories]) for each in groups]

    def _grouped(
        self, sql: apsw.Connection, database: Database, pairs: Sequence[Pair]
    ) -> Sequence[Group]:
        unique = {frozenset((each.first, each.second)): each for each in reversed(pairs)}
        known: dict[str, Memory] = {}
        for name in {name for pair in unique for name in pair}:
            number = int(name.partition(":")[2])
            for row in rows(sql, f"{_SELECT} WHERE id = ?", (number,)):
                known[name] = of_row(database.name, row)
        return grouped([each for pair, each in unique.items() if pair <= known.keys()], known)

    def merge(self, memory_ids: Sequence[str]) -> Memory:
        """Make one memory of several of the same database; `undo` takes it back.

        The newest stays, with its text; tags are united, the highest priority wins.
        """
        meant = [self._at(each) for each in dict.fromkeys(memory_ids)]
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
            was = _kept(sql, kept.number)
            self._note_merge(sql, kept.number, was, [_kept(sql, each.number) for each in others])
            for each in others:
                there = "UPDATE imports SET memory_id = ? WHERE memory_id = ?"
                sql.execute(there, (kept.number, each.number))
                database.remove(sql, each.number)
            one = merged([kept, *others])
            database.change(
                sql,
                kept.number,
                {"priority": one.priority, "category": one.category, "tags": _json(one.tags),
                 "access_count": one.access_count, "updated_at": memory.now(),
                 "usage_contexts": _json(one.usage_contexts)},
            )  # fmt: skip
            self._note_kept(sql, kept.number)
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
            now = _kept(sql, kept)
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
        sql.execute(
            "INSERT INTO merges (at, kept, kept_as, was, removed) VALUES (?, ?, '', ?, ?)",
            (memory.now(), kept, _json(was), _json(removed)),
        )

    def _note_kept(self, sql: apsw.Connection, kept: int) -> None:
        """Note what a merge has made, so that it is undone only while it is so."""
        sql.execute(
            "UPDATE merges SET kept_as = ? WHERE id = (SELECT max(id) FROM merges)",
            (_json(_kept(sql, kept)),),
        )

    # --- vectors ----------------------------------------------------------------------------------

    def embed(self, *, outdated: bool = False, wait: float = 0.0) -> Iterator[Progress]:
        """Make the vectors that are missing, a batch at a time, each durable at once.

        It may be broken off at any time; another run goes on where this one was.

        Args:
            outdated: also those of memories that another model has made.
            wait: seconds that the model may take to be loaded.

        Raises:
            Unavailable: there is no model.
        """
        embedder, warnings = self._embedder(wait)
        if embedder is None:
            raise Unavailable(
                next(iter(warnings), "there is no model"), "Run `aiaml semantic status`."
            )
        author = author_of(embedder)
        lacking = "embedding_model = ''"
        if outdated:
            lacking = f"({lacking} OR {_OTHER_AUTHOR})"
        done = 0
        for database in self._there():
            last = 0
            while True:
                with database.reading() as sql:
                    if database.problem:
                        raise Unavailable(database.problem)
                    held = rows(
                        sql,
                        f"SELECT id, content FROM memories WHERE {lacking} AND id > :last"
                        f" ORDER BY id LIMIT {BATCH}",
                        {"last": last, **author._asdict()} if outdated else {"last": last},
                    )
                if not held:
                    break
                last = held[-1][0]
                done += self._embed(embedder, database, held)
                yield Progress(done, self.left(outdated=outdated, author=author))

    def left(self, *, outdated: bool = False, author: Author | None = None) -> int:
        """Return how many memories have no vector; or none of a model."""
        count = 0
        for database in self._there():
            with database.reading() as sql:
                count += self._left(sql, author if outdated else None)
        return count

    def _left(self, sql: apsw.Connection, author: Author | None) -> int:
        where = "embedding_model = ''"
        if author is None:
            return int(rows(sql, f"SELECT count(*) FROM memories WHERE {where}")[0][0])
        where = f"{where} OR {_OTHER_AUTHOR}"
        count = f"SELECT count(*) FROM memories WHERE {where}"
        return int(rows(sql, count, author._asdict())[0][0])

    def _embed(
        self, embedder: Embedder, database: Database, held: Sequence[tuple[int, str]]
    ) -> int:
        """Give some memories their vectors, but for those that were changed meanwhile."""
        made = []
        for number, content in held:
            if self._closing.wait(PAUSE):
                break
            made.append((number, content, self._vectors(embedder, cutting.parts(content))))
        done = 0
        with database.writing() as sql:
            for number, content, (vectors, _) in made:
                now = rows(sql, "SELECT content FROM memories WHERE id = ?", (number,))
                if vectors and now == [(content,)]:
                    database.set_vectors(sql, number, author_of(embedder), vectors)
                    done += 1
        return done

    def _later(self, outdated: Iterable[Memory] = (), *, lacking: bool = False) -> None:
        """Make missing vectors, and those of some memories anew: now, or in the background."""
        if self.model is None:
            return
        with self._asked:
            self._wanted |= {each.id for each in outdated}
            self._complete = self._complete and not lacking
            if self._complete and not self._wanted:
                return
            if self._background:
                if self._thread is None or not self._thread.is_alive():
                    self._thread = threading.Thread(
                        target=self._work, args=(0.25,), name="semantic", daemon=True
                    )
                    self._thread.start()
                return
        self._work(0.0)

    def _work(self, wait: float) -> None:
        try:
            while not self._closing.is_set():
                embedder, _ = self._embedder(wait)
                if embedder is None:
                    kind = self.model.state().kind if self.model else "off"
                    if not wait or kind not in ("loading", "downloading"):
                        return
                    self._closing.wait(0.2)
                    continue
                self._renew(embedder)
                self._complete = True
                for batch, _ in enumerate(self.embed(), 1):
                    if self._closing.is_set() or (not wait and batch == AT_ONCE):
                        self._complete = False
                        return
                with self._asked:
                    if not wait or (self._complete and not self._wanted):
                        self._thread = None  # what is asked for from now on has another one
                        return
        except Refused as error:
            self._complete = False
            log.info("vectors are still to be made: %s", type(error).__name__)

    def _renew(self, embedder: Embedder) -> None:
        """Make the vectors of memories anew that were found and have those of another model."""
        with self._asked:
            wanted, self._wanted = sorted(self._wanted), set()
        for name in wanted:
            database, number = self._at(name)
            with database.reading() as sql:
                held = rows(sql, "SELECT id, content FROM memories WHERE id = ?", (number,))
                possible = not database.problem
            if held and possible:
                self._embed(embedder, database, [held[0]])

    def _embedder(self, wait: float = 0.0) -> tuple[Embedder | None, builtins.list[str]]:
        """Return the model if it is loaded, else what an answer says instead."""
        if self.model is None:
            return None, []
        embedder = self.model.ready(wait)
        if embedder is None:
            sentence = self.model.state().sentence
            return None, [sentence] if sentence else []
        if embedder.dimension != self.config.dimension:
            said = f"words only: the vectors of {embedder.name} have {embedder.dimension} numbers"
            return None, [f"{said}; embedding.dimension in config.json is {self.config.dimension}"]
        return embedder, []

    def _vectors(
        self, embedder: Embedder | None, texts: Sequence[str]
    ) -> tuple[builtins.list[bytes], builtins.list[str]]:
        """Return the vectors of a text's parts, or none and why the model has failed."""
        if embedder is None:
            return [], []
        try:
            made: list[bytes] = []
            for start in range(0, len(texts), PARTS):
                if start and self._closing.wait(PAUSE):
                    return [], []
                some = texts[start : start + PARTS]
                made += [packed(each, embedder.dimension) for each in embedder.embed(some)]
            if len(made) != len(texts):
                raise ValueError("a vector is missing")  # noqa: TRY301
        except Exception as error:  # noqa: BLE001 (a model may raise anything)
            log.warning("the model failed: %s", type(error).__name__)
            return [], [f"words only: the model failed on this text ({type(error).__name__})"]
        return made, []

    def _set_vectors(
        self,
        sql: apsw.Connection,
        database: Database,
        number: int,
        embedder: Embedder | None,
        vectors: Sequence[bytes],
    ) -> builtins.list[str]:
        if not vectors or embedder is None:
            return []
        if database.problem:
            return [f"words only: {database.problem}"]
        database.set_vectors(sql, number, author_of(embedder), vectors)
        return []

    def _similar(
        self, stored: Memory, vector: bytes, author: Author, warnings: builtins.list[str]
    ) -> Sequence[Similar]:
        """Return what resembles a memory above the model's threshold, the nearest first."""
        found: list[Similar] = []
        for database in self._readable(Filters(), warnings):
            with database.reading() as sql:
                made_by = None if database.problem else database.author_id(sql, author)
                if made_by is None:
                    continue
                own = stored.number if stored.scope == database.name else 0
                near = rows(sql, _NEAR, (vector, 10, made_by, own, self.config.thresholds.same))
                found += [
                    Similar(self._row(sql, database, number), min(cosine, 1.0))
                    for number, cosine in near
                ]
        found.sort(key=lambda each: (-(each.cosine or 0.0), each.memory.id))
        return found[:5]

    # --- databases --------------------------------------------------------------------------------

    def _database(self, scope: str | None) -> Database:
        """Return the database for what is new."""
        if scope is None:
            return next(iter(self.databases.values()))
        scope = memory.check_choice("scope", scope, memory.SCOPES)
        if scope not in self.databases:
            raise InvalidProject("scope: is project, and no project is active here")
        return self.databases[scope]

    def _at(self, memory_id: str) -> tuple[Database, int]:
        scope, _, number = memory_id.strip().partition(":")
        database = self.databases.get(scope)
        if not (number.isascii() and number.isdigit() and len(number) < 19) or (
            scope not in memory.SCOPES
        ):
            raise InvalidInput(
                "memory_id: must be an id such as project:12 or global:12",
                NotFound.suggestion,
            )
        if database is None:
            raise InvalidProject(f"memory_id: {scope}:{number} is a project's, and none is active")
        return database, int(number)

    def _held(self, database: Database, number: int, memory_id: str) -> Memory:
        if not database.there:
            raise NotFound(f"there is no memory {memory_id.strip()}")
        with database.reading() as sql:
            return self._row(sql, database, number)

    def _row(self, sql: apsw.Connection, database: Database, number: int) -> Memory:
        found = rows(sql, f"{_SELECT} WHERE id = ?", (number,))
        if not found:
            raise NotFound(f"there is no memory {database.name}:{number}")
        return of_row(database.name, found[0])

    def _there(self) -> builtins.list[Database]:
        return [each for each in self.databases.values() if each.there]

    def _readable(self, filters: Filters, warnings: builtins.list[str]) -> Iterator[Database]:
        """Yield the databases that can be read; warn of one that cannot, unless it is the only."""
        meant = [each for each in self._there() if filters.meant(each.name)]
        failed: list[Refused] = []
        for database in meant:
            try:
                with database.reading():
                    pass
            except (Busy, Damaged, DiskError) as error:
                failed.append(error)
                warnings.append(f"without the {database.name} memories: {error}")
            else:
                if database.problem and self.model is not None:
                    warnings.append(f"words only: {database.problem}")
                yield database
        if failed and len(failed) == len(meant):
            raise failed[0]


_OTHER_AUTHOR = (
    "(embedding_model != '' AND (embedding_model, embedding_model_version, embedding_dimension)"
    " IS NOT (:model, :version, :dimension))"
)
_FIELDS = (
    "content", "content_hash", "folded", "priority", "category", "tags", "project_id", "source",
    "created_at", "updated_at", "access_count", "last_accessed_at", "usage_contexts", "path", "id",
)  # fmt: skip


def _kept(sql: apsw.Connection, number: int) -> dict[str, Any]:
    """Return a memory's row but for its vectors' author."""
    found = rows(sql, f"SELECT {', '.join(_FIELDS)} FROM memories WHERE id = ?", (number,))
    return dict(zip(_FIELDS, found[0], strict=True)) if found else {}


def _author(of: Memory) -> Author | None:
    if of.embedding_model is None:
        return None
    return Author(of.embedding_model, of.embedding_model_version or "", of.embedding_dimension or 0)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _where(conditions: Sequence[str]) -> str:
    return f"WHERE {' AND '.join(conditions)}" if conditions else ""


def _changes(
    content: str | None,
    tags: Sequence[str] | None,
    priority: str | None,
    category: str | None,
    source: str | None,
) -> dict[str, Any]:
    """Return the columns that an update changes."""
    values: dict[str, Any] = {}
    if content is not None:
        values |= {
            "content": content,
            "content_hash": memory.digest(content),
            "folded": memory.folded(content),
        }
    if tags is not None:
        values["tags"] = _json(memory.check_tags(tags))
    if priority is not None:
        values["priority"] = memory.check_choice("priority", priority, memory.PRIORITIES)
    if category is not None:
        values["category"] = memory.check_line("category", category)
    if source is not None:
        values["source"] = memory.check_choice("source", source, memory.SOURCES)
    return values


def _check_new(sql: apsw.Connection, database: Database, number: int, content: str) -> None:
    """See that no other memory has a text.

    Raises:
        AlreadyThere: one has.
    """
    digest = memory.digest(content)
    same = "SELECT id FROM memories WHERE content_hash = ? AND id != ?"
    if taken := rows(sql, same, (digest, number)):
        raise AlreadyThere(f"{database.name}:{taken[0][0]} has exactly that text")


def _check_limit(limit: int, most: int) -> None:
    if not 1 <= limit <= most:
        raise InvalidInput(f"limit: must be a whole number from 1 to {most}")


def _equal_pairs(sql: apsw.Connection, scope: str) -> list[Pair]:
    """Return the pairs that are equal but for case and white space."""
    found = rows(
        sql,
        "SELECT min(id) OVER (PARTITION BY folded), id FROM memories WHERE folded IN"
        " (SELECT folded FROM memories GROUP BY folded HAVING count(*) > 1) ORDER BY id",
    )
    return [Pair(f"{scope}:{a}", f"{scope}:{b}", None) for a, b in found if a != b]
