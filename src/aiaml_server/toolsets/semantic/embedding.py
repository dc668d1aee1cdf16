"""Vectors: those of a text, those that are missing, and those of another model, made anew."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from aiaml_server.toolsets.semantic import cutting, logs
from aiaml_server.toolsets.semantic.config import Thresholds
from aiaml_server.toolsets.semantic.database import Author, Database, author_of, packed, rows
from aiaml_server.toolsets.semantic.failures import Refused, Unavailable
from aiaml_server.toolsets.semantic.filters import Filters
from aiaml_server.toolsets.semantic.memory import Memory, column, decoded
from aiaml_server.toolsets.semantic.model import Embedder, Provider
from aiaml_server.toolsets.semantic.opened import Opened

if TYPE_CHECKING:
    import apsw

log = logging.getLogger(__name__)

BATCH = 16  # memories that are embedded before they are written
PARTS = 4  # of a text that are embedded at once; a question may have to wait for them
PAUSE = 0.005  # seconds after them, in which a question that waits comes before the next ones
AT_ONCE = 4  # batches that a call makes where there is no background
_CONTENT = column("content")
_LACKING = "embedding_model = ''"
_OUTDATED = (
    f"({_LACKING} OR (embedding_model, embedding_model_version, embedding_dimension)"
    " IS NOT (:model, :version, :dimension))"
)


class Progress(NamedTuple):
    """How far embedding is.

    Attributes:
        done: memories that were embedded in this run.
        left: those that still are to be.
    """

    done: int
    left: int


class Embedding:
    """The memories' vectors, made at once, or in the background where there is one."""

    def __init__(self, opened: Opened, model: Provider | None, *, background: bool) -> None:
        """Take the databases and the model; nothing is loaded yet.

        Args:
            opened: the databases.
            model: what turns texts into vectors; None for words only.
            background: whether what could not be embedded at once is embedded in a thread, also
                while the model is still being loaded.
        """
        self.opened, self.background = opened, background
        self.model = model
        self._closing = threading.Event()
        self._asked = threading.Lock()
        self._wanted: set[str] = set()  # ids whose vectors are of another model
        self._thread: threading.Thread | None = None
        self._complete = False  # no memory lacks a vector, as far as is known

    def close(self) -> None:
        """End what goes on in the background; another call begins it again."""
        self._closing.set()
        thread = self._thread
        if thread is not None:
            thread.join()
        self._closing.clear()

    def embed(
        self, *, outdated: bool = False, wait: float = 0.0, told: list[str] | None = None
    ) -> Iterator[Progress]:
        """Make the vectors that are missing, a batch at a time, each durable at once.

        It may be broken off at any time; another run goes on where this one was.

        Args:
            outdated: also those of memories that another model has made.
            wait: seconds that the model may take to be loaded.
            told: takes a sentence on a database that is passed over, because it cannot be read.

        Raises:
            Unavailable: there is no model.
        """
        embedder, warnings = self.embedder(wait)
        if embedder is None:
            raise Unavailable(
                next(iter(warnings), "there is no model"), "Run `aiaml semantic status`."
            )
        author = author_of(embedder)
        lacking = _OUTDATED if outdated else _LACKING
        done = 0
        warnings = [] if told is None else told
        usable = list(self.opened.readable(Filters(), warnings))
        for database in usable:
            if database.read_only:
                warnings.append(f"no vectors for the {database.name} memories: only readable here")
                continue
            last = 0
            while True:
                with database.reading() as sql:
                    if database.problem:
                        raise Unavailable(database.problem)
                    held = rows(
                        sql,
                        f"SELECT id, {_CONTENT} FROM memories WHERE {lacking} AND id > :last"
                        f" ORDER BY id LIMIT {BATCH}",
                        {"last": last, **author._asdict()},
                    )
                if not held:
                    break
                last = held[-1][0]
                done += self._embed(embedder, database, held)
                yield Progress(done, self._lacking(usable, author if outdated else None))

    def left(self) -> int:
        """Return how many memories have no vector."""
        return self._lacking(self.opened.there(), None)

    def _lacking(self, databases: Iterable[Database], author: Author | None) -> int:
        count = 0
        for database in databases:
            with database.reading() as sql:
                count += self.lacking(sql, author)
        return count

    def counted(self, database: Database) -> tuple[int, int]:
        """Return how many memories a database has, and how many of them have no vector."""
        if not database.there:
            return 0, 0
        with database.reading() as sql:
            return rows(sql, "SELECT count(id) FROM memories")[0][0], self.lacking(sql, None)

    def lacking(self, sql: apsw.Connection, author: Author | None) -> int:
        """Return how many memories have no vector, or none of a model."""
        lacking, values = (_OUTDATED, author._asdict()) if author else (_LACKING, {})
        return int(rows(sql, f"SELECT count(id) FROM memories WHERE {lacking}", values)[0][0])

    def _embed(
        self, embedder: Embedder, database: Database, held: Sequence[tuple[int, bytes | int]]
    ) -> int:
        """Give some memories their vectors, but for damaged ones and those changed meanwhile."""
        made = []
        for number, content in held:
            if self._closing.wait(PAUSE):
                break
            if (text := decoded(content)) is not None:
                made.append((number, content, self.vectors(embedder, cutting.parts(text))))
        done = 0
        with database.writing() as sql:
            for number, content, (vectors, _) in made:
                now = rows(sql, f"SELECT {_CONTENT} FROM memories WHERE id = ?", (number,))
                if vectors and now == [(content,)]:
                    database.set_vectors(sql, number, author_of(embedder), vectors)
                    done += 1
        return done

    def later(self, outdated: Iterable[Memory] = (), *, lacking: bool = False) -> None:
        """Make missing vectors, and those of some memories anew: now, or in the background."""
        if self.model is None:
            return
        with self._asked:
            self._wanted |= {each.id for each in outdated}
            self._complete = self._complete and not lacking
            if self._complete and not self._wanted:
                return
            if self.background:
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
                embedder, _ = self.embedder(wait)
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
            logs.record(self.opened.home, "embed", error)

    def _renew(self, embedder: Embedder) -> None:
        """Make the vectors of memories anew that were found and have those of another model."""
        with self._asked:
            wanted, self._wanted = sorted(self._wanted), set()
        for name in wanted:
            database, number = self.opened.at(name)
            with database.reading() as sql:
                held = rows(sql, f"SELECT id, {_CONTENT} FROM memories WHERE id = ?", (number,))
                possible = not (database.problem or database.read_only)
            if held and possible:
                self._embed(embedder, database, [held[0]])

    def embedder(self, wait: float = 0.0) -> tuple[Embedder | None, list[str]]:
        """Return the model if it is loaded, else what an answer says instead."""
        if self.model is None:
            return None, []
        embedder = self.model.ready(wait)
        if embedder is None:
            sentence = self.model.state().sentence
            return None, [sentence] if sentence else []
        if embedder.dimension != self.opened.config.dimension:
            said = f"words only: the vectors of {embedder.name} have {embedder.dimension} numbers"
            return None, [
                f"{said}; embedding.dimension in config.json is {self.opened.config.dimension}"
            ]
        return embedder, []

    def thresholds(self, embedder: Embedder | None) -> Thresholds:
        """Return what cosines mean: as set, as the model was measured, or as its name has it."""
        return self.opened.config.thresholds(getattr(embedder, "thresholds", None))

    def vectors(
        self, embedder: Embedder | None, texts: Sequence[str], *, asked: bool = False
    ) -> tuple[list[bytes], list[str]]:
        """Return the vectors of a text's parts, or none and why the model has failed.

        A question's are made by `embed_questions` where a model has that.
        """
        if embedder is None:
            return [], []
        embed = getattr(embedder, "embed_questions", embedder.embed) if asked else embedder.embed
        try:
            made: list[bytes] = []
            for start in range(0, len(texts), PARTS):
                if start and self._closing.wait(PAUSE):
                    return [], []
                some = texts[start : start + PARTS]
                made += [packed(each, embedder.dimension) for each in embed(some)]
            if len(made) != len(texts):
                raise ValueError("a vector is missing")  # noqa: TRY301
        except Exception as error:  # noqa: BLE001 (a model may raise anything)
            log.warning("the model failed: %s", type(error).__name__)
            logs.record(self.opened.home, "embed", error)
            return [], [f"words only: the model failed on this text ({type(error).__name__})"]
        return made, []

    def set_vectors(
        self,
        sql: apsw.Connection,
        database: Database,
        number: int,
        embedder: Embedder | None,
        vectors: Sequence[bytes],
    ) -> list[str]:
        """Give a memory its vectors; return why that cannot be, if so."""
        if not vectors or embedder is None:
            return []
        if database.problem:
            return [f"words only: {database.problem}"]
        database.set_vectors(sql, number, author_of(embedder), vectors)
        return []
