"""Lists and counts: the files that a filter lets through, the best ones, agents and topics."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from typing import NamedTuple

from aiaml_server.format.filters import Filter
from aiaml_server.format.scorer import Found, Hit
from aiaml_server.index.database import IN, Database, listed
from aiaml_server.storage.store import Stamp

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


def matching(wanted: Filter, ids: Collection[int] | None = None) -> tuple[str, list[object]]:
    """Return a condition on `files` in SQL, and its values.

    Args:
        wanted: which memories.
        ids: if given, only those of these ids.
    """
    chosen = {"agent": [wanted.agent], "user": [wanted.user], "topic": wanted.topics}
    keys = {f"{field} {key}" for field, some in chosen.items() for key in some if key}
    having = f"SELECT file FROM labels WHERE key {IN} GROUP BY file HAVING count(*) = {len(keys)}"
    parts: dict[str, object] = {
        f"id IN ({having})": listed(keys) if keys else None,
        f"id {IN}": None if ids is None else listed(ids),
        "instant >= ?": wanted.since,
        "instant < ?": wanted.before,
    }
    used = {part: value for part, value in parts.items() if value is not None}
    return " AND ".join(["problem IS NULL", *used]), list(used.values())


def keep_matching(database: Database, ids: set[int], wanted: Filter) -> set[int]:
    """Return those of some files that a filter lets through."""
    if not wanted:
        return ids
    condition, values = matching(wanted)
    rows = database.rows(f"SELECT id FROM files WHERE {condition}", values)
    return ids & {file for (file,) in rows}


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
    rows = database.rows(
        "SELECT id, name, memory_id, timestamp, modified, changed, inode, size"
        f" FROM files WHERE id {IN} ORDER BY instant DESC, name DESC",
        [listed(ids)],
    ).fetchall()
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
    condition, values = matching(wanted, ids)
    files = f"AND file IN (SELECT id FROM files WHERE {condition})" if values else ""
    # `label` is that of the row with the largest `number`.
    statement = (
        "SELECT label, total FROM (SELECT label, sum(number) AS total, max(number) FROM"
        " (SELECT key, label, count(*) AS number FROM labels"
        f" WHERE key BETWEEN ? AND ? {files} GROUP BY key, label) GROUP BY key)"
        " ORDER BY total DESC, label"
    )
    return database.rows(statement, [f"{field} ", f"{field}!", *values]).fetchall()


def count(database: Database, wanted: Filter, ids: Collection[int] | None) -> Counts:
    """Count what a filter lets through, of all files or of those with the given ids."""
    ((total, malformed),) = database.rows("SELECT count(memory_id), count(problem) FROM files")
    condition, values = matching(wanted, ids)
    rows = database.rows(f"SELECT instant FROM files WHERE {condition} ORDER BY 1", values)
    times = [time for (time,) in rows]
    return Counts(
        total,
        malformed,
        len(times),
        labels(database, "agent", wanted._replace(agent=""), ids),
        labels(database, "user", wanted._replace(user=""), ids),
        labels(database, "topic", wanted, ids),
        [time for time in times if time is not None],
    )
