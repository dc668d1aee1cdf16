"""What `aiaml doctor` checks: the settings, each database, and the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing

from aiaml_server.terminal import plural
from aiaml_server.toolset import Finding
from aiaml_server.toolsets.semantic import MANIFEST, PROJECT, paths
from aiaml_server.toolsets.semantic.db import Database
from aiaml_server.toolsets.semantic.embedding import ModelLoader
from aiaml_server.toolsets.semantic.errors import CorruptDatabase, SemanticError, Unavailable
from aiaml_server.toolsets.semantic.store import MemoryStore

CHECK = "semantic"


def checks(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding for each thing that was looked at."""
    try:
        store = MemoryStore.at(project=MANIFEST.read_settings(environ)[PROJECT])
    except SemanticError as error:
        yield Finding(CHECK, "error", str(error), error.suggestion)
        return
    with closing(store):
        existing = [database for database in store.databases.values() if database.exists]
        yield from map(_examine, existing)
        model = store.config.embedding.model
        state = ModelLoader(store.config.embedding, store.home / paths.MODELS).state()
        if not existing:
            yield Finding(CHECK, "ok", f"{store.home}: no memories yet")
        elif state.status == "loading":
            yield Finding(CHECK, "ok", f"the model {model} is here")
        else:
            yield Finding(CHECK, "warning", state.warning, state.remedy)


def _examine(database: Database) -> Finding:
    """Check that a database is whole, and that its words and vectors agree with its rows."""
    try:
        ((said,),) = database.fetch("PRAGMA integrity_check(1)")
        if said != "ok":
            raise CorruptDatabase(f"{database.path} is damaged: {said}")
        database.fetch("INSERT INTO words(words, rank) VALUES ('integrity-check', 1)")
        ((count,),) = database.fetch("SELECT count(*) FROM memories")
        ((pending,),) = database.fetch("SELECT count(*) FROM memories WHERE embedding_model = ''")
    except SemanticError as error:
        return Finding(CHECK, "error", str(error), error.suggestion)
    found = f"{database.path}: {plural(count, 'memory', 'memories')}"
    if database.vector_problem:
        problem = f"{found}, by words only: {database.vector_problem}"
        return Finding(CHECK, "warning", problem, Unavailable.suggestion)
    if pending:
        remedy = "they are found by words until `aiaml semantic model reembed`"
        return Finding(CHECK, "warning", f"{found}, {pending:,} without a vector", remedy)
    return Finding(CHECK, "ok", found)
