"""Lists and counts: the files that a filter lets through, the best ones, agents and topics."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from aiaml_server.format.filters import EVERYTHING, Filter
from aiaml_server.format.scorer import Found, Hit
from aiaml_server.index.database import BEGINS, IN, SEPARATOR, Database, label, listed
from aiaml_server.storage.store import Stamp

NEWEST_FIRST = "ORDER BY instant DESC, name DESC"

Stamps = dict[str, Stamp]  # of files by name
Names = list[tuple[str, int]]  # with the number of memories, the most frequent first


class Counts(NamedTuple):
    """What a filter and a question match, counted.

    Attributes:
        total: all memories.
        malformed: files that hold no memory.
        matching: memories that match.
        agents: of those that match, whichever agent is chosen.
        users: of those that match, whichever user is chosen.
        topics: of those that match.
        times: when those that match were made, in microseconds since 1970, ascending.
    """

    total: int
    malformed: int
    matching: int
    agents: Names
    users: Names
    topics: Names
    times: list[int]


def select(
    database: Database,
    columns: str,
    wanted: Filter,
    ids: Collection[int] | None = None,
    order: str = "",
) -> list[Any]:
    """Return columns of the files that a filter lets through.

    Args:
        database: the index, inside of one transaction.
        columns: their names in SQL.
        wanted: which memories.
        ids: if given, only those of these ids.
        order: for example `NEWEST_FIRST`.
    """
    for field, key in wanted.labels:
        found = [files for _, files in database.postings(BEGINS, label(field, key))]
        having = set().union(*found)
        ids = having if ids is None else having.intersection(ids)
    conditions = {
        f"id {IN}": None if ids is None else listed(ids),
        "instant >= ?": wanted.since,
        "instant < ?": wanted.before,
    }
    used = {condition: value for condition, value in conditions.items() if value is not None}
    where = " AND ".join(["problem IS NULL", *used])
    statement = f"SELECT {columns} FROM files WHERE {where} {order}"
    return database.rows(statement, list(used.values())).fetchall()


def keep_matching(database: Database, ids: set[int], wanted: Filter) -> set[int]:
    """Return those of some files that a filter lets through."""
    return {file for (file,) in select(database, "id", wanted, ids)} if wanted else ids


def best_hits(
    database: Database,
    scores: Mapping[int, int],
    holding: Mapping[str, Container[int]],
    part: slice,
) -> tuple[Found, Stamps]:
    """Return a part of the files with a score as hits, and their stamps as recorded.

    The order is by score, then the newest first, then by file name from the end of the alphabet.

    Args:
        database: the index, inside of one transaction.
        scores: of each file that matches.
        holding: for each keyword, the files that have it.
        part: which of the hits.
    """
    least = min(sorted(scores.values())[-(part.stop or 0) :], default=0)
    ids = [file for file, score in scores.items() if score >= least]
    columns = "id, name, memory_id, timestamp, modified, changed, inode, size"
    rows = select(database, columns, EVERYTHING, ids, NEWEST_FIRST)
    hits: list[Hit] = []
    stamps: Stamps = {}
    rows.sort(key=lambda row: -scores[row[0]])
    for file, name, memory_id, timestamp, *stamp in rows[part]:
        matching = tuple(keyword for keyword, files in holding.items() if file in files)
        hits.append(Hit(name, memory_id, timestamp, scores[file], matching))
        stamps[name] = Stamp(*stamp)
    return Found(len(scores), hits), stamps


def labels(
    database: Database, field: str, wanted: Filter, ids: Collection[int] | None = None
) -> Names:
    """Return the agents, users or topics of the files that match, each as most often written."""
    choose: Any = list
    if wanted or ids is not None:
        choose = {file for (file,) in select(database, "id", wanted, ids)}.intersection
    spellings: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for found, files in database.postings(BEGINS, label(field)):
        if chosen := choose(files):
            _, key, name, _ = found.split(SEPARATOR)
            spellings[key][unquote(name)] += len(chosen)
    totals = [(each.most_common(1)[0][0], each.total()) for each in spellings.values()]
    return sorted(totals, key=lambda each: (-each[1], each[0]))


def count(database: Database, wanted: Filter, ids: Collection[int] | None) -> Counts:
    """Count what a filter lets through, of all files or of those with the given ids."""
    ((total, malformed),) = database.rows("SELECT count(memory_id), count(problem) FROM files")
    times = [time for (time,) in select(database, "instant", wanted, ids, "ORDER BY 1")]
    return Counts(
        total,
        malformed,
        len(times),
        labels(database, "agent", wanted._replace(agent=""), ids),
        labels(database, "user", wanted._replace(user=""), ids),
        labels(database, "topic", wanted, ids),
        [time for time in times if time is not None],
    )
