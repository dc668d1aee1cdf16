"""`Memories`: what the tools, the hooks and Python programs do with memories."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aiaml_server.timestamps import now_micros
from aiaml_server.toolsets.semantic import backups, cutting, journal, logs, memory, place, ranking
from aiaml_server.toolsets.semantic.database import Author, Database, author_of, rows
from aiaml_server.toolsets.semantic.embedding import Embedding
from aiaml_server.toolsets.semantic.failures import AlreadyThere, InvalidInput, NotFound
from aiaml_server.toolsets.semantic.filters import KEYS, Filters, behind, cursor_of
from aiaml_server.toolsets.semantic.journal import FORGOTTEN, as_text, fields_of
from aiaml_server.toolsets.semantic.memory import (
    LIMITS,
    MOST_HITS,
    MOST_LISTED,
    SORTS,
    Draft,
    Memory,
    of_row,
)
from aiaml_server.toolsets.semantic.merging import Merging
from aiaml_server.toolsets.semantic.model import Provider
from aiaml_server.toolsets.semantic.opened import SELECT, Opened
from aiaml_server.toolsets.semantic.periods import periods
from aiaml_server.toolsets.semantic.priority import Suggestion, suggest
from aiaml_server.toolsets.semantic.ranking import Candidate, Hit
from aiaml_server.toolsets.semantic.reranking import BEST, Scores
from aiaml_server.toolsets.warning import secret_warning

if TYPE_CHECKING:
    import apsw

    from aiaml_server.toolsets.semantic.config import Config
    from aiaml_server.toolsets.semantic.model import Embedder

LONGEST_QUERY = 10_000  # characters
FIRST_SECONDS = 2.0  # that a search waits for a model which is on this machine
_NEAR = """
SELECT vectors.memory_id, 1 - near.distance
FROM (
    SELECT vector_id, distance FROM vec_memories
    WHERE embedding MATCH ? AND k = ? AND author = ?
) AS near JOIN vectors ON vectors.id = near.vector_id
WHERE vectors.part = 0 AND vectors.memory_id != ? AND 1 - near.distance >= ?
"""
_SESSION = "session "  # what the keys of `about` that tell of a session begin with
_SESSIONS = 200  # that are kept
_FORGET_SESSIONS = """
DELETE FROM about WHERE key LIKE ?1 AND rowid NOT IN
    (SELECT rowid FROM about WHERE key LIKE ?1 ORDER BY rowid DESC LIMIT ?2)
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
        change: what `undo` takes back of an update; None where nothing was changed.
    """

    memory: Memory
    created: bool
    similar: Sequence[Similar] = ()
    suggestion: Suggestion | None = None
    warnings: builtins.list[str] = field(default_factory=list)
    change: str | None = None


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
        check_secrets: bool = True,
        reranker: Scores | None = None,
    ) -> None:
        """Take the places; nothing is opened or made.

        Args:
            home: the person's directory, `~/.memory`.
            project: the project's top directory; None for none.
            model: what turns texts into vectors; None for words only.
            settings: else they are read from `config.json`.
            background: whether what could not be embedded at once is embedded in a thread.
            check_secrets: whether storing warns of what seems to hold a secret.
            reranker: what orders the best hits of a search anew; None for nothing.

        Raises:
            InvalidConfig, InvalidProject: see `Opened`.
        """
        self.check_secrets, self.reranker = check_secrets, reranker
        self._opened = Opened(home, project, settings)
        self.config = self._opened.config
        self._embedding = Embedding(self._opened, None, background=background)
        self._merging = Merging(self._opened, self._embedding)
        self.model = model
        self.home, self.project, self.databases = home, project, self._opened.databases
        self.embed, self.left, self.counted, self.later = (
            self._embedding.embed, self._embedding.left, self._embedding.counted,
            self._embedding.later,
        )  # fmt: skip
        self.merge, self.merge_equal = self._merging.merge, self._merging.merge_equal
        self.duplicates = self._merging.duplicates
        self.history, self.undo = self._merging.history, self._merging.undo

    @property
    def model(self) -> Provider | None:
        """What turns texts into vectors; None for words only."""
        return self._embedding.model

    @model.setter
    def model(self, model: Provider | None) -> None:
        self._embedding.model, self._opened.compares = model, model is not None

    def close(self) -> None:
        """End what goes on in the background, and close the databases; another call opens them."""
        self._embedding.close()
        self._opened.close()

    @classmethod
    def at(
        cls, start: Path | str, model: Provider | None = None, *, background: bool = False
    ) -> Memories:
        """Return the memories for whoever works in a directory."""
        project = place.find_project(Path(start))
        return cls(place.home(), project, model, background=background)

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
        """
        new = Draft(content, tags, priority, category, source, path).checked()
        database = self._opened.database(scope)
        embedder, warnings = self._embedding.embedder()
        parts = cutting.parts(new.content)
        behind = self._embedding.background and len(parts) > 1
        vectors, problem = self._embedding.vectors(embedder, parts[:1] if behind else parts)
        warnings += [*problem, *memory.repaired(new.content, *new.tags, new.category or "")]
        warnings += self._secret_in(new.content, *new.tags, new.category)
        with database.writing() as sql:
            number, created = self._put(sql, database, new)
            if not created:
                warnings.append(f"that text is there already, as {database.name}:{number}")
            if not behind:
                warnings += self._embedding.set_vectors(sql, database, number, embedder, vectors)
            kept = self._opened.row(sql, database, number)
        similar = self._similar(kept, embedder, vectors, warnings)
        suggestion = suggest(kept.content, kept.tags, kept.priority, kept.scope)
        self._embedding.later(lacking=kept.embedding_model is None)
        return Stored(kept, created, similar, suggestion, warnings)

    def _secret_in(self, *texts: str | None) -> builtins.list[str]:
        return secret_warning(*texts, check=self.check_secrets)

    def store_all(self, drafts: Sequence[Draft]) -> builtins.list[str]:
        """Store memories in one transaction for each database; return the ids of what is new.

        What they resemble is not said, and their vectors are made afterwards.
        """
        all_new = [each.checked() for each in drafts]
        ids = []
        for database in self.databases.values():
            own = [each for each in all_new if self._opened.database(each.scope) is database]
            if own:
                with database.writing() as sql:
                    put = [self._put(sql, database, each) for each in own]
                ids += [f"{database.name}:{number}" for number, created in put if created]
        if all_new:
            self._embedding.later(lacking=True)
        return ids

    def _put(self, sql: apsw.Connection, database: Database, new: Draft) -> tuple[int, bool]:
        """Add a memory, or merge it into the one that is equal; return the number, and if added."""
        found = rows(sql, f"{SELECT} WHERE content_hash = ?", (memory.digest(new.content),))
        if not found and self.config.check:
            found = rows(sql, f"{SELECT} WHERE folded = ? LIMIT 1", (memory.folded(new.content),))
        there = of_row(database.name, found[0]) if found else None
        if there is None:
            number = database.add(sql, journal.row_of(new, database.project_id(sql)))
        else:
            number = there.number
            self._absorb(sql, database, there, new)
        if new.source == "import":
            digest = memory.folded(new.content)
            sql.execute("INSERT OR IGNORE INTO imports VALUES (?, ?)", (digest, number))
        return number, there is None

    def _absorb(
        self, sql: apsw.Connection, database: Database, there: Memory, draft: Draft
    ) -> None:
        """Merge what is to be stored into the memory that is equal to it."""
        values: dict[str, Any] = {
            "content": draft.content,
            "content_hash": memory.digest(draft.content),
            "tags": as_text(memory.united(there.tags, draft.tags)),
            "priority": memory.highest([there.priority, draft.priority or "LOW"]),
            "category": draft.category or there.category,
        }
        was = fields_of(sql, there.number)
        if all(was[name] == value for name, value in values.items()):
            return
        new = journal.row_of(draft, was["project_id"])
        if values["content"] == there.content:
            del values["content"], values["content_hash"]  # its vectors stay
        values["updated_at"] = memory.now()
        database.change(sql, there.number, values)
        journal.note(sql, database.name, "merge", there.number, was, [new])

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

        For 30 days `undo` takes the change back, but for the count.

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
        database, number = self._opened.at(memory_id)
        content = None if content is None else memory.check_content(content)
        values = _changes(content, tags, priority, category, source)
        if context is not None:
            context = memory.check_line("context", context, memory.LONGEST_CONTEXT)
        if not values and not used:
            raise InvalidInput(
                "memory_id: nothing is given that would change it",
                "Give updated_content, tags, priority, category or source, or used=true.",
            )
        self._opened.held(database, number, memory_id)
        embedder, warnings = self._embedding.embedder() if content is not None else (None, [])
        parts = cutting.parts(content) if content is not None else []
        behind = self._embedding.background and len(parts) > 1
        vectors, problem = self._embedding.vectors(embedder, parts[:1] if behind else parts)
        warnings += [*problem, *memory.repaired(content or "", *(tags or ()), category or "")]
        warnings += self._secret_in(content, *(tags or ()), category, context)
        with database.writing() as sql:
            before, was = self._opened.row(sql, database, number), fields_of(sql, number)
            is_new = content is not None and content != before.content
            if is_new:
                if taken := journal.other(sql, values, number):
                    raise AlreadyThere(f"{database.name}:{taken['id']} has exactly that text")
            else:
                values.pop("content", None)
            is_changed = any(was[name] != value for name, value in values.items())
            if is_changed:
                values["updated_at"] = memory.now()
            contexts = [*before.usage_contexts, *([context] if context else [])]
            values |= {
                "access_count": before.access_count + 1,
                "last_accessed_at": memory.now(),
                "usage_contexts": as_text(contexts[-memory.MOST_CONTEXTS :]),
            }
            database.change(sql, number, values)
            if is_new and not behind:
                warnings += self._embedding.set_vectors(sql, database, number, embedder, vectors)
            kept = self._opened.row(sql, database, number)
            noted = is_changed and journal.note(sql, database.name, "update", number, was)
        similar = self._similar(kept, embedder, vectors, warnings) if is_new else ()
        self._embedding.later(lacking=kept.embedding_model is None)
        suggestion = suggest(kept.content, kept.tags, kept.priority, kept.scope)
        return Stored(kept, False, similar, suggestion, warnings, noted or None)

    def delete(
        self, memory_id: str | None = None, content_hash: str | None = None
    ) -> dict[str, str]:
        """Delete a memory by its id, or those with a hash; return the change that each was.

        For 30 days `undo` brings each back; `forget` is for good.
        """
        meant = self._meant(memory_id, content_hash)
        changes = {}
        for database, number in meant:
            name = f"{database.name}:{number}"
            with database.writing() as sql:
                self._opened.row(sql, database, number)  # refuses what cannot be brought back
                was = fields_of(sql, number)
                database.remove(sql, number)
                changes[name] = journal.note(sql, database.name, "delete", number, {}, [was])
        return changes

    def forget(self, memory_id: str) -> None:
        """Delete a memory for good, or what a change in the last 30 days has kept of it.

        Its text, words and vectors, and every change and backup that holds its text, are
        overwritten.
        """
        database, number = self.check_known(memory_id)
        with database.writing() as sql:
            database.remove(sql, number)
            journal.purge(sql, number)
            sql.execute("UPDATE exchanged SET digest = ? WHERE memory_id = ?", (FORGOTTEN, number))
        if backups.made(database):
            backups.make(database, anew=True)

    def check_known(self, memory_id: str) -> tuple[Database, int]:
        """Return where a memory is, or was in the last 30 days: its database and number.

        Raises:
            NotFound: there is none, and was none.
        """
        database, number = self._opened.at(memory_id)
        if database.there:
            with database.reading() as sql:
                if rows(sql, "SELECT 1 FROM memories WHERE id = ?", (number,)):
                    return database, number
        if not self.history(memory_id):
            raise NotFound(f"there is no memory {memory_id.strip()}")
        return database, number

    def _meant(
        self, memory_id: str | None, content_hash: str | None
    ) -> builtins.list[tuple[Database, int]]:
        if (memory_id is None) == (content_hash is None):
            raise InvalidInput("memory_id: give either memory_id or content_hash")
        if memory_id is not None:
            database, number = self._opened.at(memory_id)
            if not database.there:
                raise NotFound(f"there is no memory {memory_id.strip()}")
            return [(database, number)]
        wanted = str(content_hash).strip().lower()
        found = []
        for database in self._opened.there():
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
        is_here = self.model is not None and self.model.state().kind == "loading"
        embedder, warnings = self._embedding.embedder(FIRST_SECONDS if is_here else 0.0)
        vectors, problem = self._embedding.vectors(embedder, [query], asked=True)
        warnings += problem
        author = author_of(embedder) if embedder and vectors else None
        found: list[Candidate] = []
        meaning = False
        for database in self._opened.readable(filters, warnings):
            with self._opened.reading(database, filters, warnings) as sql:
                database.check_words(sql)
                made_by = author and database.author_id(sql, author)
                values |= {"words": cutting.match(query)}
                if made_by:
                    values |= {"vector": vectors[0], "author": made_by}
                given, compared = self._candidates(sql, where, values, warnings, bool(made_by))
                meaning = meaning or compared
                whole = self._opened.whole(database, given, warnings)
                found += [ranking.candidate(each, *scores) for each, scores in whole]
                if author:
                    warnings += self._behind(sql, database, author)
        found = _overridden(found)
        preferred = "global" if ranking.about_the_person(query) else "project"
        hits = ranking.ranked(
            found,
            self.config,
            now_micros(),
            weak=self._embedding.thresholds(embedder).weak,
            preferred=preferred if self.project is not None else None,
            named=periods(query, datetime.now().date()),  # noqa: DTZ005 (the person's own day)
        )
        if self.reranker is not None:
            hits = self._reranked(self.reranker, query, hits[: max(limit, BEST)], warnings)
        hits = hits[:limit]
        if hits and all(each.weak for each in hits):
            warnings.append("nothing here is near the question: it may not be known at all")
        if author:
            other = [each.memory for each in hits if _author(each.memory) not in (None, author)]
            self._embedding.later(other)
        return Found(hits, meaning, list(dict.fromkeys(warnings)))

    def _reranked(
        self,
        reranker: Scores,
        query: str,
        hits: builtins.list[Hit],
        warnings: builtins.list[str],
    ) -> builtins.list[Hit]:
        """Return hits as the reranker orders them; as they are where it cannot."""
        scorer = reranker.ready(FIRST_SECONDS if reranker.state().kind == "loading" else 0.0)
        if scorer is None:
            warnings.append(f"not reranked: {reranker.state().why}")
            return hits
        try:
            scores = scorer.scores(query, [each.memory.content for each in hits])
            if not all(map(isfinite, scores)):
                raise ValueError("a score is no number")  # noqa: TRY301
        except Exception as error:  # noqa: BLE001 (a model may raise anything)
            logs.record(self.home, "rerank", error)
            warnings.append(f"not reranked: the reranker failed ({type(error).__name__})")
            return hits
        return ranking.reranked(hits, scores, self.config)

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
        count = self._embedding.lacking(sql, author)
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
        asked = filters.asked(sort_by)
        after = behind(cursor, asked) if cursor is not None else None
        warnings: list[str] = []
        found: list[tuple[tuple[Any, ...], Memory]] = []
        total = 0
        for database in self._opened.readable(filters, warnings):
            wanted = where or "true"
            with self._opened.reading(database, filters, warnings) as sql:
                total += rows(sql, f"SELECT count(id) FROM memories WHERE {wanted}", values)[0][0]
                if after:
                    wanted += (
                        f" AND ({key}, created_at, :scope, id) < (:key, :created, :of, :number)"
                    )
                    values |= {"scope": database.name, **dict(
                        zip(("key", "created", "of", "number"), after, strict=True)
                    )}  # fmt: skip
                order = f"ORDER BY {key} DESC, created_at DESC, id DESC"
                question = f"SELECT id FROM memories WHERE {wanted} {order}"
                besides = f"{memory.guarded(key)}, {memory.guarded('created_at')}"
                for each, keys in self._opened.first(
                    sql, database, question, values, limit + 1, warnings, besides
                ):
                    name, created = (memory.decoded(e) if isinstance(e, bytes) else e for e in keys)
                    found.append(((name, created, database.name, each.number), each))
        found.sort(key=lambda pair: tuple("" if x is None else x for x in pair[0]), reverse=True)
        more = len(found) > limit
        found = found[:limit]
        next_cursor = cursor_of(asked, found[-1][0]) if more and found else None
        return Page([each for _, each in found], total, next_cursor, warnings)

    def every(
        self, filters: Filters | None = None, warnings: builtins.list[str] | None = None
    ) -> Iterator[Memory]:
        """Yield all memories, the newest first.

        Args:
            filters: what they must be like.
            warnings: where it is said what is left out.
        """
        cursor = None
        while True:
            page = self.list(filters, limit=MOST_LISTED, cursor=cursor)
            yield from page.memories
            if warnings is not None:
                warnings += [each for each in page.warnings if each not in warnings]
            if (cursor := page.next_cursor) is None:
                return

    def get(self, memory_id: str) -> Memory:
        """Return one memory."""
        database, number = self._opened.at(memory_id)
        return self._opened.held(database, number, memory_id)

    def known(self) -> set[str]:
        """Return the texts that are memories, and those that were imported, as `folded` has them.

        What was imported is known as long as its memory is there, whatever that says now.
        """
        found: set[str] = set()
        for database in self._opened.there():
            with database.reading() as sql:
                for table, name in (("memories", "folded"), ("imports", "digest")):
                    digest = f"CAST({name} AS BLOB) FROM {table} WHERE octet_length({name}) = 64"
                    held = rows(sql, f"SELECT {digest}")
                    found |= {row[0].decode("ascii", "replace") for row in held}
        return found

    def heard(self, session: str) -> int:
        """Return how many bytes of a session's transcript left their memories in the project."""
        database = self._opened.database("project")
        if not database.path.exists():
            return 0
        with database.reading() as sql:
            found = rows(sql, "SELECT value FROM about WHERE key = ?", (_SESSION + session,))
        return int(found[0][0]) if found else 0

    def hear(self, session: str, size: int) -> None:
        """Note how many did, of the newest sessions only."""
        with self._opened.database("project").writing() as sql:
            sql.execute("REPLACE INTO about VALUES (?, ?)", (_SESSION + session, str(size)))
            sql.execute(_FORGET_SESSIONS, (f"{_SESSION}%", _SESSIONS))

    def session_start(self, limit: int | None = None, words: str = "") -> Sequence[Memory]:
        """Return what a session should begin with: by priority, project and words; no model.

        Args:
            limit: at most so many; else what the settings say.
            words: what the session is about, if anything is known.
        """
        most = self.config.session_start_limit if limit is None else limit
        _check_limit(most, MOST_HITS)
        found: dict[str, Candidate] = {}
        for database in self._opened.readable(Filters(), []):
            with self._opened.reading(database, Filters(), []) as sql:
                order = f"ORDER BY {KEYS['priority']} DESC, created_at DESC"
                question = f"SELECT id FROM memories {order}"
                best = self._opened.first(sql, database, question, {}, ranking.CANDIDATES, [])
                for each, _ in best:
                    found[each.id] = ranking.candidate(each, None, 0.0)
                if words:
                    database.check_words(sql)
                    statement = ranking.statement(meaning=False)
                    given = rows(sql, statement, {"words": cutting.match(words)})
                    for each, scores in self._opened.whole(database, given, []):
                        found[each.id] = ranking.candidate(each, *scores)
        now = now_micros()
        highest = max((each.bm25 for each in found.values()), default=0.0) or 1.0

        def worth(each: Candidate) -> float:
            near = 0.3 if each.memory.scope == "project" else 0.0
            recency = ranking.recency(each.memory, now, self.config.half_life)
            priority = ranking.PRIORITY[each.memory.priority]
            return 0.5 * priority + near + 0.2 * each.bm25 / highest + 0.1 * recency

        left = _overridden(tuple(found.values()))
        ordered = sorted(left, key=lambda each: (-worth(each), each.memory.id))
        return [each.memory for each in ordered[:most]]

    def _similar(
        self,
        stored: Memory,
        embedder: Embedder | None,
        vectors: Sequence[bytes],
        warnings: builtins.list[str],
    ) -> Sequence[Similar]:
        """Return what resembles a memory: equals first, then the nearest by its first vector."""
        if not self.config.check:
            return []
        found: dict[str, Similar] = {}
        equal: set[str] = set()
        for database in self._opened.readable(Filters(), warnings):
            with self._opened.reading(database, None, warnings) as sql:
                own = stored.number if stored.scope == database.name else 0
                same = "SELECT id FROM memories WHERE folded = ? AND id != ? LIMIT 5"
                near: dict[int, float | None] = {
                    row[0]: None for row in rows(sql, same, (memory.folded(stored.content), own))
                }
                equal |= {f"{database.name}:{number}" for number in near}
                made_by = embedder and database.author_id(sql, author_of(embedder))
                if made_by and vectors:
                    least = self._embedding.thresholds(embedder).same
                    near |= dict(rows(sql, _NEAR, (vectors[0], 10, made_by, own, least)))
                for number, cosine in near.items():
                    same_id = rows(sql, f"{SELECT} WHERE id = ?", (number,))
                    for one, _ in self._opened.whole(database, same_id, warnings):
                        found[one.id] = Similar(one, None if cosine is None else min(cosine, 1.0))
        order = sorted(
            found, key=lambda name: (name not in equal, -(found[name].cosine or 0), name)
        )
        return [found[name] for name in order[:5]]


def _overridden(found: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates without the global ones whose text the project has, but for its case."""
    own = {memory.folded(each.memory.content) for each in found if each.memory.scope == "project"}
    if not own:
        return list(found)
    return [
        each
        for each in found
        if each.memory.scope == "project" or memory.folded(each.memory.content) not in own
    ]


def _author(of: Memory) -> Author | None:
    if of.embedding_model is None:
        return None
    return Author(of.embedding_model, of.embedding_model_version or "", of.embedding_dimension or 0)


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
        values["tags"] = as_text(memory.check_tags(tags))
    if priority is not None:
        values["priority"] = memory.check_choice("priority", priority, memory.PRIORITIES)
    if category is not None:
        values["category"] = memory.check_line("category", category) if category.strip() else None
    if source is not None:
        values["source"] = memory.check_choice("source", source, memory.SOURCES)
    return values


def _check_limit(limit: int, most: int) -> None:
    if not 1 <= limit <= most:
        raise InvalidInput(f"limit: must be a whole number from 1 to {most}")
