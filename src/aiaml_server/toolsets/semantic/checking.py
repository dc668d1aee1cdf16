"""What doctor looks at: the settings, the databases and whether their parts agree."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aiaml_server.terminal import plural
from aiaml_server.toolset import Finding, Fix, Level
from aiaml_server.toolsets.semantic import MANIFEST, PROJECT, config, logs, place, reranking
from aiaml_server.toolsets.semantic.database import Database, rows
from aiaml_server.toolsets.semantic.failures import Damaged, DiskError, Refused, Unavailable
from aiaml_server.toolsets.semantic.memory import COLUMNS, Memory, of_row
from aiaml_server.toolsets.semantic.model import CACHE, LOAD_SECONDS, Model, State
from aiaml_server.toolsets.warning import CHECK_SECRETS, find_leak

if TYPE_CHECKING:
    import apsw

CHECK = "semantic"
MOST_LOOKED_AT = 10_000  # memories one by one, the newest
MOST_TEXT = 4 << 20  # characters of them
HERE = ("loading", "ready")  # kinds of a model that is on this machine
_TOLD = 5  # findings of one kind


def checks(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Say whether the settings can be used, and each database is in order."""
    values = MANIFEST.read_settings(environ)
    given, check_secrets = values[PROJECT], values[CHECK_SECRETS.name]
    try:
        home = place.home()
        settings = config.load(home)
        project = place.find_project(place.here(), given, by=PROJECT)
    except Refused as error:
        yield Finding(CHECK, "error", str(error), error.suggestion)
        return
    databases = [Database(home / place.DATABASE, "global")]
    if project is not None:
        databases.append(Database(project / place.NAME / place.DATABASE, "project", project.name))
    for each in databases:
        yield from _seen_by_others(each.path)
        if each.there:
            yield _examined(each)
            if check_secrets:
                yield from _secrets(each)
        else:
            yield Finding(CHECK, "ok", f"{each.path}: no memories yet")
    if any(each.there for each in databases):
        model = Model(settings, home / CACHE)
        lacks = _missing(home, "model", model, "search is by words only")
        yield lacks or Finding(CHECK, "ok", f"the model is in {model.folder}")
        reranker = reranking.of(settings, home / CACHE)
        if reranker and (lacks := _missing(home, "reranker", reranker, "nothing is reranked")):
            yield lacks


def _missing(
    home: Path, kind: str, model: Model | reranking.Reranker, so_that: str
) -> Finding | None:
    """Say why a model is not here, and how the last try to have it ended; None where it is."""
    state = looked_up(home, kind, model)
    if state.kind in HERE:
        return None
    last = logs.last(home, kind)
    told = f"{so_that}: {state.reason}" + (f"; the last try failed: {last}" if last else "")
    return Finding(CHECK, "warning", told, state.remedy)


def looked_up(home: Path, kind: str, model: Model | reranking.Reranker) -> State:
    """Say how it stands with a model; one that has failed before is loaded, to see whether it is.

    Args:
        home: the person's directory.
        kind: what the log calls it.
        model: which.
    """
    model.look_up()
    if model.state().kind == "loading" and logs.last(home, kind):
        model.ready(LOAD_SECONDS)
    return model.state()


def _seen_by_others(database: Path) -> Iterator[Finding]:
    """Say which of the files beside a database are open to other users of this computer."""
    if os.name != "posix":
        return
    for path in (database.parent, database, database.parent / config.NAME):
        with suppress(OSError):
            mode = stat.S_IMODE(path.lstat().st_mode)
            if mode & 0o077 and not path.is_symlink():
                found = f"others on this computer can get at {path} (mode {mode:04o})"
                chmod = f"chmod {700 if path.is_dir() else 600} {path}"
                remedy = f"unless you share it on purpose: `{chmod}`, or `aiaml doctor --fix`"
                fix = Fix(f"make {path} private ({chmod})", partial(path.chmod, mode & 0o7700))
                yield Finding(CHECK, "warning", found, remedy, fix)


def _each(database: Database, sql: apsw.Connection) -> Iterator[Memory | Damaged]:
    """Yield each memory, the newest first, or what is wrong with it; as many as are looked at."""
    left = MOST_TEXT
    newest = f"SELECT {COLUMNS} FROM memories ORDER BY id DESC LIMIT {MOST_LOOKED_AT}"
    for row in sql.execute(newest):
        try:
            held = of_row(database.name, row)
        except Damaged as error:
            yield error
            continue
        left -= len(held.content) + sum(map(len, (*held.tags, *held.usage_contexts)))
        if left < 0:
            return
        yield held


def _secrets(database: Database) -> Iterator[Finding]:
    """Say which memories seem to hold a secret, the first of them by name."""
    leaks = 0
    with suppress(Exception), closing(database), database.reading() as sql:  # `_examined` says why
        for each in _each(database, sql):
            if isinstance(each, Damaged):
                continue
            text = "\n".join((each.content, *each.tags, *each.usage_contexts))
            leak = find_leak(text.encode("utf-8", "replace"), check=True)
            leaks += bool(leak)
            if leaks > _TOLD:
                found = f"{database.path}: more memories seem to hold a secret"
                yield Finding(CHECK, "warning", found, "forget those that are named; look again")
                return
            if leak:
                found = f"{database.path}: {each.id} seems to hold {leak.kind}"
                remedy = f"`aiaml semantic forget {each.id}`; change it if it was a real one"
                yield Finding(CHECK, "warning", found, remedy)


def _examined(database: Database) -> Finding:
    try:
        with database.reading() as sql:
            every = list(_each(database, sql))
            if damaged := [str(each) for each in every if isinstance(each, Damaged)]:
                more = f", and {len(damaged) - _TOLD:,} more" if len(damaged) > _TOLD else ""
                found = f"{database.path}: {'; '.join(damaged[:_TOLD])}{more}"
                remedy = "`aiaml semantic forget` each, or `aiaml semantic restore` a backup"
                return Finding(CHECK, "error", found, remedy)
            said = rows(sql, "PRAGMA integrity_check(1)")[0][0]
            if not database.read_only:
                sql.execute("INSERT INTO words(words, rank) VALUES ('integrity-check', 1)")
            tables = ("authors", "merges", "about", "imports")
            rows(sql, f"SELECT {', '.join(f'EXISTS (SELECT 1 FROM {x})' for x in tables)}")
            count = rows(sql, "SELECT count(*) FROM memories")[0][0]
            pending = rows(sql, "SELECT count(*) FROM memories WHERE embedding_model = ''")[0][0]
            lost = rows(
                sql,
                "SELECT count(*) FROM memories WHERE embedding_model != ''"
                " AND id NOT IN (SELECT memory_id FROM vectors)",
            )[0][0]
    except Refused as error:
        level: Level = "warning" if isinstance(error, Unavailable) else "error"
        return Finding(CHECK, level, str(error), error.suggestion)
    except Exception as error:  # noqa: BLE001 (apsw's, of what is damaged)
        remedy = "`aiaml semantic restore` puts a backup in its place"
        return Finding(CHECK, "error", f"{database.path}: {error}", remedy)
    finally:
        database.close()
    found = f"{database.path}: {plural(count, 'memory', 'memories')}"
    if len(every) < count:
        found += f", of which the newest {len(every):,} were looked at one by one"
    if said != "ok":
        found, remedy = f"{found}, {said}", "`aiaml semantic restore` puts a backup in its place"
        return Finding(CHECK, "error", found, remedy)
    if database.read_only:
        found, remedy = f"{found}, which can only be read", DiskError.suggestion
    elif database.problem:
        found, remedy = f"{found}, by words only: {database.problem}", Unavailable.suggestion
    elif pending or lost:
        found = f"{found}, {pending + lost:,} without a vector"
        remedy = "they are found by words until `aiaml semantic migrate`"
    else:
        return Finding(CHECK, "ok", found)
    return Finding(CHECK, "warning", found, remedy)
