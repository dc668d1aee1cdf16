"""`aiaml semantic …`: memories, the model and the databases, for people."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from aiaml_server.files import replace_atomic
from aiaml_server.terminal import (
    EXIT_FAILED,
    EXIT_OK,
    EXIT_USAGE,
    Exit,
    bold,
    confirm,
    dim,
    echo,
    echo_json,
    json_option,
    notify,
    plural,
    show_status,
    terminal_width,
    truncate,
    yes_option,
)
from aiaml_server.toolsets.semantic import PROJECT, backup, importing, models, paths
from aiaml_server.toolsets.semantic.db import translated_errors
from aiaml_server.toolsets.semantic.embedding import ModelLoader
from aiaml_server.toolsets.semantic.errors import (
    CorruptDatabase,
    DatabaseLocked,
    DiskError,
    InvalidConfig,
    InvalidInput,
    InvalidProject,
    SemanticError,
    Unavailable,
)
from aiaml_server.toolsets.semantic.models import Filters, Memory, NewMemory, to_json
from aiaml_server.toolsets.semantic.store import MemoryStore
from aiaml_server.toolsets.warning import CHECK_SECRETS

DOWNLOAD_SECONDS = 3600.0
MAX_SHOWN = 20  # memories of an import
scope_option = click.option("--scope", type=click.Choice(models.SCOPES))
priority_option = click.option(
    "--priority", type=click.Choice(models.PRIORITIES, case_sensitive=False)
)


@contextmanager
def opened(project: str = "", *, with_model: bool = False) -> Iterator[MemoryStore]:
    """Open the memories for the working directory; turn errors into exit codes.

    Args:
        project: another project's directory than the setting or a `.memory` names.
        with_model: whether a model that is on this machine is loaded.
    """
    try:
        with closing(MemoryStore.at(project=project or os.environ.get(PROJECT, ""))) as store:
            store.check_secrets = CHECK_SECRETS.value(os.environ)
            if with_model:
                settings = replace(store.config.embedding, download=False)
                loader = ModelLoader(settings, store.home / paths.MODELS)
                loader.ready(DOWNLOAD_SECONDS)
                store.worker.model = loader
            yield store
    except (InvalidInput, InvalidConfig, InvalidProject) as error:
        raise Exit(str(error), EXIT_USAGE) from error
    except (CorruptDatabase, DatabaseLocked, DiskError) as error:
        raise Exit(f"{error}. {error.suggestion}", EXIT_FAILED) from error
    except SemanticError as error:
        raise Exit(str(error), EXIT_FAILED) from error


def show(head: str, memory: Memory | NewMemory, more: str = "") -> None:
    """Print a memory on two lines."""
    tags = "".join(f" #{tag}" for tag in memory.tags)
    echo(f"{bold(head)}{dim(f'{tags}{more}')}")
    echo(f"    {truncate(memory.content, terminal_width() - 4)}")


def show_memory(memory: Memory, more: str = "") -> None:
    """Print a stored memory on two lines."""
    show(f"{memory.id}  {memory.priority}  {memory.date}", memory, more)


@click.group("semantic")
def semantic() -> None:
    """Manage memories that are found by meaning, and their model.

    \b
    Examples:
      aiaml semantic status
      aiaml semantic search how are prices rounded
    """


@semantic.command("init")
def init() -> None:
    """Create the databases: yours, and that of the project in this directory.

    \b
    Examples:
      cd ~/shop; memory-server init
    """
    here = Path.cwd()
    is_named = PROJECT in os.environ or here.samefile(Path.home()) or paths.find_project(here)
    with opened("" if is_named else os.fspath(here)) as store:
        for database in store.databases.values():
            with database.writing():
                echo(f"{database.scope:8}  {database.path}")
        files = importing.scan_project(store.project) if store.project else []
    if files:
        notify(f"Files that look like memories: {len(files)}. `aiaml semantic import` shows them.")


@semantic.command("status")
@json_option
def status(json: bool) -> None:
    """Show where memories are, how many, and whether the model can be used.

    \b
    Examples:
      aiaml semantic status
    """
    with opened() as store:
        state = ModelLoader(store.config.embedding, store.home / paths.MODELS).state()
        page = store.list_memories()
        pending = len(store.outdated())
        if json:
            echo_json({"memories": page.total, "without_vector": pending, "model": state.status})
            return
        for scope, database in store.databases.items():
            echo(f"{scope:8}  {database.path}")
        echo(f"{plural(page.total, 'memory')}, {pending:,} without a vector")
        model = store.config.embedding.model
        echo(f"model     {model if state.status == 'loading' else state.warning}")
        for warning in page.warnings:
            notify(warning)


# --- the model ------------------------------------------------------------------------------------


@semantic.group("model")
def model() -> None:
    """Download the model, or make vectors anew.

    \b
    Examples:
      aiaml semantic model download
    """


@model.command("download")
def download() -> None:
    """Download the configured model, and check that it works.

    \b
    Examples:
      aiaml semantic model download
    """
    with opened() as store:
        settings = replace(store.config.embedding, download=True)
        loader = ModelLoader(settings, store.home / paths.MODELS)
        if sys.stderr.isatty():
            os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "0"
        notify(f"Loading {settings.model}; a download may take minutes.")
        if loader.ready(DOWNLOAD_SECONDS) is None:
            state = loader.state()
            raise Unavailable(f"{state.reason}; {state.remedy}")
        echo(f"{bold(settings.model)} is ready: {loader.folder}")


@model.command("reembed")
def reembed() -> int:
    """Give all memories vectors of the configured model.

    \b
    Examples:
      aiaml semantic model reembed
    """
    with opened(with_model=True) as store:
        done, left = store.migrate_embeddings(
            sys.maxsize, lambda done, left: show_status(f"{done:,} of {done + left:,}")
        )
    show_status()
    echo(f"{plural(done, 'memory')} got vectors, {left:,} did not")
    return EXIT_FAILED if left else EXIT_OK


# --- memories -------------------------------------------------------------------------------------


def filter_options(command: Any) -> Any:
    """Add the options that filter memories."""
    tag_option = click.option("--tag", "tags", multiple=True, help="Only with this tag.")
    return priority_option(tag_option(scope_option(command)))


def show_memories(notes: Mapping[Memory, str], as_json: bool, warnings: Sequence[str]) -> None:
    """Print memories with a note each, or as JSON."""
    if as_json:
        echo_json({"memories": [vars(memory) for memory in notes], "warnings": warnings})
        return
    for memory, note in notes.items():
        show_memory(memory, note)
    for line in [*warnings, *([] if notes else ["No memories match."])]:
        notify(line)


@semantic.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, models.MAX_HITS))
@filter_options
@json_option
def search(words: Sequence[str], limit: int | None, json: bool, **wanted: Any) -> None:
    """Find memories by meaning and words; by words only while the model is missing.

    \b
    Examples:
      aiaml semantic search how are prices rounded
    """
    with opened(with_model=True) as store:
        found = store.search(" ".join(words), limit, Filters(**wanted))
        notes = {hit.memory: f"  {hit.score:.2f}{' weak' * hit.is_weak}" for hit in found.hits}
        show_memories(notes, json, found.warnings)


@semantic.command("list")
@click.option("--limit", type=click.IntRange(1, models.MAX_LISTED), default=20)
@filter_options
@json_option
def list_(limit: int, json: bool, **wanted: Any) -> None:
    """List memories, the newest first.

    \b
    Examples:
      aiaml semantic list --priority CORE
    """
    with opened() as store:
        page = store.list_memories(Filters(**wanted), limit=limit)
        show_memories(dict.fromkeys(page.memories, ""), json, page.warnings)


@semantic.command("show")
@click.argument("memory_id", metavar="ID")
@json_option
def show_(memory_id: str, json: bool) -> None:
    """Show a memory with all its metadata.

    \b
    Examples:
      aiaml semantic show project:12
    """
    with opened() as store:
        memory = store.get(memory_id)
    if json:
        echo_json(vars(memory))
        return
    for name, value in vars(memory).items():
        if value and name != "content":
            echo(f"{dim(f'{name}:')} {to_json(value)}")
    echo(f"\n{memory.content}")


@semantic.command("add")
@click.argument("content", required=False)
@click.option("--tag", "tags", multiple=True, help="A word to filter by.")
@priority_option
@scope_option
def add(content: str | None, **fields: Any) -> None:
    """Store a memory: CONTENT, or standard input.

    \b
    Examples:
      aiaml semantic add 'Prices are kept in cents.' --tag billing
    """
    with opened() as store:
        text = sys.stdin.read().rstrip("\n") if content is None else content
        result = store.store(text, **fields)
    show_memory(result.memory)
    similar = [f"similar: {each.id} {truncate(each.content, 60)}" for each, _ in result.similar]
    for line in [*similar, *result.warnings]:
        notify(line)


@semantic.command("forget")
@click.argument("ids", nargs=-1, required=True)
@yes_option
def forget(ids: Sequence[str], yes: bool) -> None:
    """Delete memories for good, also from history and backups.

    \b
    Examples:
      aiaml semantic forget project:12
    """
    with opened() as store:
        if not yes:
            confirm(f"Delete {', '.join(ids)} for good?")
        for memory_id in ids:
            store.forget(memory_id)
    echo(f"forgotten: {', '.join(ids)}")


@semantic.command("undo")
@click.argument("change", required=False)
@click.option("--list", "is_list", is_flag=True, help="List what can be undone; undo nothing.")
def undo(change: str | None, is_list: bool) -> None:
    """Take back the last change, or the CHANGE with an id.

    \b
    Examples:
      aiaml semantic undo --list
      aiaml semantic undo project#5
    """
    with opened() as store:
        if not is_list:
            for memory in store.undo(change):
                show_memory(memory)
            return
        changes = store.history()
    for each in changes:
        echo(f"{bold(each.id)}  {each.at}  {each.act}  {each.memory_id}")
        for row in each.before:
            echo(dim(f"    {truncate(row['content'], terminal_width() - 4)}"))
    if not changes:
        notify("There is nothing to undo.")


# --- files ----------------------------------------------------------------------------------------


@semantic.command("import")
@click.argument("files", metavar="[FILE|DIRECTORY]...", nargs=-1)
@click.option("--dry-run", is_flag=True, help="Show what would be imported; store nothing.")
@yes_option
def import_(files: Sequence[str], dry_run: bool, yes: bool) -> int:
    """Import markdown files, or lines of JSON from a .jsonl file.

    Without FILE, the project's MEMORY.md, NOTES.md, ADR-*.md and .claude/*.md.

    \b
    Examples:
      aiaml semantic import --dry-run
      aiaml semantic import docs/notes.md
    """
    with opened() as store:
        preview = importing.preview_import(store, files, anywhere=True)
        new = [each for each in preview.candidates if each.is_new]
        for memory, line, _ in new[:MAX_SHOWN]:
            show(f"{memory.path}:{line}  {memory.priority or ''}", memory)
        for problem in [*map(": ".join, preview.skipped), *preview.warnings]:
            notify(problem)
        stored = len(preview.candidates) - len(new)
        notify(f"{plural(len(new), 'new memory')}, {stored:,} already stored")
        if new and not dry_run:
            if not yes:
                confirm("Import them?")
            echo(f"imported: {len(importing.run_import(store, preview))}")
    return EXIT_FAILED if preview.skipped and not new else EXIT_OK


@semantic.command("export")
@click.argument("target", metavar="FILE.jsonl")
def export(target: str) -> None:
    """Write memories as lines of JSON, which `import` and `aiaml import` read.

    \b
    Examples:
      aiaml semantic export memories.jsonl
    """
    with opened() as store:
        if warnings := store.list_memories(limit=1).warnings:
            raise Exit(f"nothing was written: {warnings[0]}", EXIT_FAILED)
        memories = store.iterate()
        lines = [importing.to_json_line(each, store.unknown_keys(each)) for each in memories]
        path = Path(target).resolve()
        with translated_errors(path):
            replace_atomic(path, "".join(lines).encode())
    notify(f"Wrote {plural(len(lines), 'memory')} to {target}.")


@semantic.command("backup")
def backup_() -> None:
    """Back up the databases now, and list the backups; those of three days remain.

    \b
    Examples:
      aiaml semantic backup
    """
    with opened() as store:
        for database in store.databases.values():
            database.check()
            backup.make_backup(database, again=True)
            for path in backup.list_backups(database):
                count = plural(backup.count_memories(path), "memory")
                echo(f"{database.scope:8}  {path}  {count}")


@semantic.command("restore")
@click.argument("scope", type=click.Choice(models.SCOPES))
@yes_option
def restore(scope: str, yes: bool) -> None:
    """Put the newest backup in the place of a database.

    \b
    Examples:
      aiaml semantic restore project
    """
    with opened() as store:
        database = store.database(scope)
        if not yes:
            confirm(f"Put a backup in the place of {database.path}?")
        source, replaced = backup.restore(database)
        echo(f"restored from {source}")
        if replaced.exists():
            echo(f"what was there is kept as {replaced}")
