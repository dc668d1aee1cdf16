"""What `aiaml doctor` checks: the settings, each database, and secrets in memories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing

from aiaml_server.format.secrets import find_secret
from aiaml_server.terminal import plural
from aiaml_server.toolset import Finding
from aiaml_server.toolsets.semantic import MANIFEST, PROJECT
from aiaml_server.toolsets.semantic.db import Database
from aiaml_server.toolsets.semantic.errors import SemanticError
from aiaml_server.toolsets.semantic.store import MemoryStore
from aiaml_server.toolsets.warning import CHECK_SECRETS

CHECK = "semantic"


def checks(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding for each database, or one about the settings."""
    try:
        store = MemoryStore.at(project=MANIFEST.read_settings(environ)[PROJECT])
    except SemanticError as error:
        yield Finding(CHECK, "error", str(error), error.suggestion)
        return
    with closing(store):
        yield from map(_examine, store.databases.values())
        for memory in store.iterate() if CHECK_SECRETS.value(environ) else ():
            secret = find_secret(memory.content)
            if secret:
                found = f"{memory.id} seems to hold {secret.kind}"
                yield Finding(CHECK, "warning", found, f"`aiaml semantic forget {memory.id}`")


def _examine(database: Database) -> Finding:
    """Check that a database is whole, and that words and vectors agree with its rows."""
    count = 0
    try:
        if database.exists:
            database.check()
            database.fetch("INSERT INTO words(words, rank) VALUES ('integrity-check', 1)")
            ((count,),) = database.fetch("SELECT count(*) FROM memories")
            if lost := database.lost_vectors():
                found = f"{database.path}: the vectors of {plural(len(lost), 'memory')} are damaged"
                return Finding(CHECK, "warning", found, "`aiaml semantic model reembed`")
    except SemanticError as error:
        return Finding(CHECK, "error", str(error), error.suggestion)
    return Finding(CHECK, "ok", f"{database.path}: {plural(count, 'memory')}")
