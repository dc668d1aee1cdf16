"""What `aiaml doctor` checks: the settings, each database, the model, and secrets in memories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing

from aiaml_server.format.secrets import find_secret
from aiaml_server.terminal import plural
from aiaml_server.toolset import Finding
from aiaml_server.toolsets.semantic import MANIFEST, PROJECT, paths
from aiaml_server.toolsets.semantic.config import load_config
from aiaml_server.toolsets.semantic.db import Database
from aiaml_server.toolsets.semantic.embedding import ModelLoader
from aiaml_server.toolsets.semantic.errors import CorruptDatabase, SemanticError, Unavailable
from aiaml_server.toolsets.semantic.store import MemoryStore

CHECK = "semantic"
MAX_LEAKS = 5  # that are named


def checks(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding for each thing that was looked at."""
    values = MANIFEST.read_settings(environ)
    named = values[PROJECT]
    try:
        home = paths.global_directory()
        project = paths.find_project(paths.working_directory(), named, PROJECT)
        store = MemoryStore(home, project, None, load_config(home), trusted=bool(named))
    except SemanticError as error:
        yield Finding(CHECK, "error", str(error), error.suggestion)
        return
    with closing(store):
        for database in store.databases.values():
            if database.exists:
                yield _examine(database)
            else:
                yield Finding(CHECK, "ok", f"{database.path}: no memories yet")
        if any(database.exists for database in store.databases.values()):
            state = ModelLoader(store.config.embedding, home / paths.MODELS).state()
            if state.status == "loading":
                yield Finding(CHECK, "ok", f"the model {store.config.embedding.model} is here")
            else:
                yield Finding(CHECK, "warning", state.warning, state.remedy)
        if values["AIAML_CHECK_SECRETS"]:
            yield from _leaks(store)


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


def _leaks(store: MemoryStore) -> Iterator[Finding]:
    """Yield the first memories that seem to hold a secret."""
    leaks = 0
    for memory in store.iterate():
        secret = find_secret("\n".join((memory.content, *memory.tags, *memory.usage_contexts)))
        if secret:
            leaks += 1
            found = f"{memory.id} seems to hold {secret.kind}"
            remedy = f"`aiaml semantic forget {memory.id}`; change it if it is real"
            yield Finding(CHECK, "warning", found, remedy)
        if leaks == MAX_LEAKS:
            return
