"""`aiaml semantic …`: memories and their model, for people; and what Claude Code's hooks start."""

from __future__ import annotations

import json as json_
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from aiaml_server.errors import AiamlError
from aiaml_server.exchange.shapes import line_of
from aiaml_server.files import make_directory, replace_atomic
from aiaml_server.format.memory import format as format_file
from aiaml_server.terminal import (
    EXIT_FAILED,
    EXIT_NOTHING,
    EXIT_OK,
    EXIT_USAGE,
    Exit,
    bold,
    confirm,
    dim,
    echo,
    echo_bytes,
    echo_json,
    echo_rows,
    json_option,
    notify,
    plural,
    progress,
    rows_options,
    show_status,
    styled,
    terminal_width,
    truncate,
    yes_option,
)
from aiaml_server.toolsets.semantic import (
    PROJECT,
    backups,
    config,
    hooks,
    importing,
    logs,
    place,
    reranking,
)
from aiaml_server.toolsets.semantic.checking import HERE, checks, looked_up
from aiaml_server.toolsets.semantic.config import MODEL, Config
from aiaml_server.toolsets.semantic.failures import (
    AlreadyThere,
    Busy,
    Damaged,
    DiskError,
    InvalidConfig,
    InvalidInput,
    InvalidProject,
    NotFound,
    NothingToUndo,
    Refused,
    Unavailable,
)
from aiaml_server.toolsets.semantic.filters import Filters
from aiaml_server.toolsets.semantic.memories import Memories, Stored
from aiaml_server.toolsets.semantic.memory import PRIORITIES, SCOPES, Memory
from aiaml_server.toolsets.semantic.model import CACHE, Model, State
from aiaml_server.toolsets.semantic.portable import as_file
from aiaml_server.toolsets.semantic.reranking import Reranker
from aiaml_server.toolsets.semantic.starting import init
from aiaml_server.toolsets.warning import CHECK_SECRETS

_MOST_INPUT = 4 * 1024 * 1024  # bytes
_WAIT = 3600.0  # seconds that a person waits for a model at most
_BAR = 30
_SHOWN = 20  # pieces of an import, and files that it passes over
_CODES = {
    NotFound: EXIT_NOTHING,
    NothingToUndo: EXIT_NOTHING,
    AlreadyThere: EXIT_NOTHING,
    InvalidInput: EXIT_USAGE,
    InvalidConfig: EXIT_USAGE,
    InvalidProject: EXIT_USAGE,
}


@contextmanager
def _sentences() -> Iterator[None]:
    """Turn what is refused into a sentence and an exit code.

    Raises:
        Ended: something was refused.
    """
    try:
        yield
    except Refused as error:
        raise Exit(str(error), _CODES.get(type(error), EXIT_FAILED)) from error


@contextmanager
def _opened(*, with_model: bool = False) -> Iterator[Memories]:
    """Open the memories of whoever works here.

    Raises:
        Ended: they cannot be opened, or what is done with them is refused.
    """
    with _sentences():
        home = place.home()
        settings = config.load(home)
        project = place.find_project(place.here(), os.environ.get(PROJECT, ""), PROJECT)
        model, reranker = (
            (_model(home, settings), _reranker(home, settings)) if with_model else (None, None)
        )
        check = CHECK_SECRETS.value(os.environ)
        with closing(
            Memories(home, project, model, settings, check_secrets=check, reranker=reranker)
        ) as memories:
            yield memories


def _model(home: Path, settings: Config) -> Model:
    return Model(settings, home / CACHE, noted=partial(logs.record, home, "model"))


def _reranker(home: Path, settings: Config) -> Reranker | None:
    return reranking.of(settings, home / CACHE, partial(logs.record, home, "reranker"))


@click.group("semantic")
def semantic() -> None:
    """Look after memories found by meaning, and their model.

    \b
    Examples:
      aiaml semantic status
      aiaml semantic fetch
      aiaml semantic search how are prices rounded
    """


semantic.add_command(init)


# --- the model ------------------------------------------------------------------------------------


@semantic.command("status")
@json_option
def status(json: bool) -> int:
    """Say where memories are, how many, and how it stands with the model.

    \b
    Examples:
      aiaml semantic status
      aiaml semantic status --json
    """
    with _opened() as memories:
        model = Model(memories.config, memories.home / CACHE)
        reranker = _reranker(memories.home, memories.config)
        state = looked_up(memories.home, "model", model)
        stands = reranker and looked_up(memories.home, "reranker", reranker)
        held, wrong = _counted(memories)
        code = EXIT_FAILED if any(wrong.values()) else EXIT_OK
        lacking = sum(left for _, left in held.values())
        if json:
            echo_json({
                "project": str(memories.project) if memories.project else None,
                "databases": [
                    {
                        "scope": name,
                        "file": str(database.path),
                        "memories": held[name][0] if name in held else None,
                        "error": wrong.get(name),
                    }
                    for name, database in memories.databases.items()
                ],
                "without_vector": lacking,
                "model": {
                    "name": memories.config.model,
                    "folder": str(model.folder),
                    "state": _here(state),
                    "sentence": "" if state.kind in HERE else state.sentence,
                    "bytes": state.done,
                    "bytes_of": state.total,
                    "download": memories.config.download,
                },
                "reranker": reranker and stands and {"name": reranker.name, "state": _here(stands)},
            })  # fmt: skip
            return code
        for name, database in memories.databases.items():
            if name in held:
                echo(f"{name:8}  {plural(held[name][0], 'memory', 'memories'):12}  {database.path}")
            else:
                echo(f"{name:8}  {wrong[name]}")
        if memories.project is None:
            echo(dim("no project: there is no directory .memory from here upwards"))
        if lacking:
            echo(f"{plural(lacking, 'memory', 'memories')} without a vector yet")
        what = f"{memories.config.model}  in {model.folder}"
        _told_of("model", what, state, state.sentence, memories.home)
        if reranker and stands:
            _told_of("reranker", reranker.name, stands, f"none: {stands.why}", memories.home)
        if code:
            notify("`aiaml semantic doctor` says more")
    return code


def _told_of(kind: str, what: str, state: State, lacking: str, home: Path) -> None:
    """Say which model there is; else what is the matter, and how the last try to have it ended."""
    if state.kind in HERE:
        echo(f"{kind:8}  {what}")
        return
    echo(f"{kind:8}  {lacking}")
    if failed := logs.last(home, kind):
        echo(f"{'':8}  the last try failed: {failed}")


def _here(state: State) -> str:
    return "here" if state.kind in HERE else state.kind


def _counted(memories: Memories) -> tuple[dict[str, tuple[int, int]], dict[str, str]]:
    """Count each database's memories, and those without a vector; or say why that cannot be."""
    held: dict[str, tuple[int, int]] = {}
    wrong: dict[str, str] = {}
    for name, database in memories.databases.items():
        try:
            held[name] = memories.counted(database)
        except (Busy, Damaged, DiskError) as error:
            wrong[name] = str(error)
    return held, wrong


@semantic.command("fetch")
@click.option("--anew", is_flag=True, help="Also if it seems to be here.")
@json_option
def fetch(anew: bool, json: bool) -> int:
    """Fetch the model that the settings name, and a reranker, and see whether they work.

    What has come stays when this is broken off, and the next try goes on there.

    \b
    Examples:
      aiaml semantic fetch
      aiaml semantic fetch --anew
    """
    with _sentences():
        home = place.home()
        settings = config.load(home)
        model = _model(home, settings)
        both = [each for each in (model, _reranker(home, settings)) if each is not None]
        states = []
        for each in both:
            each.fetch(anew=anew)
            states.append(_awaited(each))
    state = next((each for each in states if each.kind != "ready"), states[0])
    if json:
        echo_json({"state": state.kind, "sentence": state.sentence, "folder": str(model.folder)})
        return EXIT_OK if state.kind == "ready" else EXIT_FAILED
    if state.kind != "ready":
        raise Exit(state.why, EXIT_FAILED)
    for each in both:
        echo(f"{bold(each.name)} is ready: {each.folder}")
    return EXIT_OK


def _awaited(model: Model | Reranker) -> State:
    """Wait for the model, and show how far it is."""
    begun = time.monotonic()
    try:
        while model.ready(0.2) is None and time.monotonic() - begun < _WAIT:
            state = model.state()
            if state.kind not in ("loading", "downloading"):
                break
            show_status(_bar(state) if state.kind == "downloading" else "loading the model …")
    finally:
        show_status()
    return model.state()


def _loaded(model: Model | Reranker) -> State:
    """Wait for what is on this machine to be loaded; nothing is fetched for a search."""
    model.look_up()
    return _awaited(model) if model.state().kind == "loading" else model.state()


def _bar(state: State) -> str:
    if not state.total:
        return f"downloading: {state.done / 1e6:.0f} MB"
    full = round(_BAR * state.done / state.total)
    bar = "█" * full + "·" * (_BAR - full)
    return f"downloading {bar} {state.done / 1e6:.0f} of {state.total / 1e6:.0f} MB"


@semantic.command("use")
@click.argument("model", metavar="DIRECTORY|NAME")
@click.option("--name", help="What a directory's model is called; else as its configuration says.")
@json_option
def use(model: str, name: str | None, json: bool) -> int:
    """Use another model: one in a directory, or one that fastembed knows by NAME.

    A directory must hold an .onnx file, tokenizer.json and tokenizer_config.json. It is tried
    before the settings are changed. Memories get new vectors when they are found, or by
    `aiaml semantic migrate`.

    \b
    Examples:
      aiaml semantic use ~/models/all-MiniLM-L6-v2
      aiaml semantic use BAAI/bge-small-en-v1.5
    """
    with _sentences():
        home = place.home()
        settings = config.load(home)
        folder = Path(os.path.expanduser(model)).absolute()  # noqa: PTH111 (never raises)
        if folder.is_dir():
            values = _tried(folder, name or _called(folder), settings)
        else:
            values = {"model": model, "path": "", "dimension": _width(model)}
        config.change(home, **values)
    if json:
        echo_json(values)
        return EXIT_OK
    echo(f"{bold(str(values['model']))} is used from now on: {home / config.NAME}")
    notify("`aiaml semantic migrate` gives all memories new vectors at once")
    return EXIT_OK


def _tried(folder: Path, name: str, settings: Config) -> dict[str, Any]:
    """Return the settings for the model in a directory, which was loaded."""
    width = _said_in(folder).get("hidden_size")
    values = {
        "model": name,
        "path": os.fspath(folder),
        "dimension": width if isinstance(width, int) else 384,
    }
    wanted = config.parse({"embedding": {**values, "device": settings.device}})
    model = Model(wanted, place.home() / CACHE)
    state = _awaited(model)
    if state.kind != "ready":
        raise Unavailable(state.why)
    return values


def _said_in(folder: Path) -> dict[str, Any]:
    """Return what a model's configuration says; nothing where there is none that can be read."""
    with suppress(OSError, ValueError):
        said = json_.loads((folder / "config.json").read_text(encoding="utf-8"))
        return said if isinstance(said, dict) else {}
    return {}


def _called(folder: Path) -> str:
    if name := str(_said_in(folder).get("_name_or_path") or ""):
        return name[:200]
    says_nothing = folder.name.lower() in ("model", "models", "onnx")
    return f"{folder.parent.name}/{folder.name}" if says_nothing else folder.name


def _width(name: str) -> int:
    """Return the width of a model that fastembed knows.

    Raises:
        Ended: it knows none of that name.
    """
    if name == MODEL:
        return 384
    try:
        return int(Model(Config(name), place.home() / CACHE).described()["dim"])
    except ImportError as error:
        raise Unavailable(
            "fastembed is not installed; "
            "pip install 'aiaml-server[semantic]' (not on Python 3.15 yet)"
        ) from error
    except AiamlError as error:
        raise Exit(f"{name} is no directory here, and {error}", EXIT_USAGE) from error


@semantic.command("migrate")
@json_option
def migrate(json: bool) -> int:
    """Give all memories vectors of the model in use, those that have none first.

    Each batch is durable at once; what was broken off goes on with the next run.

    \b
    Examples:
      aiaml semantic migrate
    """
    done = 0
    warnings: list[str] = []
    with _opened(with_model=True) as memories:
        model = memories.model
        if isinstance(model, Model):
            state = _awaited(model)
            if state.kind != "ready":
                raise Unavailable(state.why)
        try:
            for done, left in memories.embed(outdated=True, told=warnings):
                show_status(f"embedding: {done:,} of {done + left:,} memories")
        finally:
            show_status()
        if json:
            echo_json({"embedded": done, "left": 0, "model": memories.config.model})
        else:
            echo(f"{plural(done, 'memory', 'memories')} got a vector of {memories.config.model}")
        for warning in warnings:
            notify(warning)
    return EXIT_FAILED if warnings else EXIT_OK


# --- memories -------------------------------------------------------------------------------------


def _shown(memory: Memory, more: str = "") -> None:
    about = f"{memory.id}  {memory.priority}  {memory.updated_at[:10]}"
    tags = f"  {' '.join(f'#{tag}' for tag in memory.tags)}" if memory.tags else ""
    echo(f"{bold(about)}{dim(tags)}{dim(more)}")
    echo(f"    {truncate(memory.content, terminal_width() - 4)}")


def filtered(verb: Callable[..., int]) -> Callable[..., int]:
    """Give a verb the options that say which memories are meant, named as those of `Filters`."""
    for option in (
        click.option("--scope", type=click.Choice(SCOPES), help="Only of this database."),
        click.option("--tag", "tags", metavar="TAG", multiple=True, help="Only with this tag."),
        click.option("--priority", type=click.Choice(PRIORITIES, case_sensitive=False)),
    ):
        verb = option(verb)
    return verb


@semantic.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", metavar="N", type=click.IntRange(1, 50), help="At most so many.")
@filtered
@rows_options
def search(words: Sequence[str], limit: int | None, data: str, **wanted: Any) -> int:
    """Find memories by meaning and words.

    By words alone as long as the model is not on this machine.

    \b
    Examples:
      aiaml semantic search how are prices rounded
      aiaml semantic search deployment --tag shop --limit 3
    """
    with _opened(with_model=True) as memories:
        model, reranker = memories.model, memories.reranker
        lacking = []
        if isinstance(model, Model):  # what is to be fetched first is not waited for
            state = _loaded(model)
            lacking.append(state.sentence)
            memories.model = model if state.kind == "ready" else None
        if isinstance(reranker, Reranker):
            state = _loaded(reranker)
            lacking.append(f"not reranked: {state.why}" if state.kind != "ready" else "")
            memories.reranker = reranker if state.kind == "ready" else None
        found = memories.search(" ".join(words), limit, Filters(**wanted))
        found.warnings += filter(None, lacking)
        if data:
            hits = [{**asdict(each.memory), "score": each.score} for each in found.hits]
            whole = {"memories": hits, "meaning": found.meaning, "warnings": found.warnings}
            echo_rows(hits, data, whole)
        else:
            for each in found.hits:
                _shown(each.memory, f"  {each.score:.2f}{'  weak' if each.weak else ''}")
            for warning in found.warnings:
                notify(warning)
            if not found.hits:
                notify("Nothing was found.")
        return EXIT_OK if found.hits else EXIT_NOTHING


@semantic.command("list")
@click.option("--limit", metavar="N", type=click.IntRange(1, 200), default=20, show_default=True)
@filtered
@rows_options
def list_(limit: int, data: str, **wanted: Any) -> int:
    """List memories, the newest first.

    \b
    Examples:
      aiaml semantic list
      aiaml semantic list --priority CORE --json
    """
    with _opened() as memories:
        filters = Filters(**wanted)
        page = memories.list(filters, limit=limit)
        if data:
            memories_ = list(map(asdict, page.memories))
            whole = {"memories": memories_, "total": page.total, "warnings": page.warnings}
            echo_rows(memories_, data, whole)
            return EXIT_OK
        for each in page.memories:
            _shown(each)
        for warning in page.warnings:
            notify(warning)
        if page.total > len(page.memories):
            notify(dim(f"{len(page.memories)} of {page.total:,}; --limit shows more"))
        if not page.total:
            notify("There are no memories." if filters == Filters() else "Nothing was found.")
        return EXIT_OK if page.total else EXIT_NOTHING


@semantic.command("show")
@click.argument("id")
@json_option
def show(id: str, json: bool) -> int:
    """Show a memory: what it says, and what is known of it.

    \b
    Examples:
      aiaml semantic show project:12
    """
    with _opened() as memories:
        memory = memories.get(id)
    if json:
        echo_json(asdict(memory))
        return EXIT_OK
    known = {
        "tags": ", ".join(memory.tags),
        "category": memory.category,
        "source": memory.source + (f", {memory.path}" if memory.path else ""),
        "stored": memory.created_at,
        "changed": memory.updated_at if memory.updated_at != memory.created_at else None,
        "used": plural(memory.access_count, "time") if memory.access_count else None,
        "vector": memory.embedding_model or "none yet",
    }
    echo(bold(f"{memory.id}  {memory.priority}"))
    for name, value in known.items():
        if value:
            echo(f"{dim(f'{name}:')} {value}")
    echo()
    echo(memory.content)
    return EXIT_OK


@semantic.command("add")
@click.argument("content", required=False)
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="A word to filter by.")
@click.option("--priority", type=click.Choice(PRIORITIES, case_sensitive=False))
@click.option("--category", metavar="WORD", help="A word for its kind.")
@click.option("--scope", type=click.Choice(SCOPES), help="Where; else in the project, if any.")
@json_option
def add(content: str | None, json: bool, **given: Any) -> int:
    """Store a memory: CONTENT, or what comes from standard input.

    \b
    Examples:
      aiaml semantic add 'Prices are kept in cents.' --tag billing
      git log -1 --format=%B | aiaml semantic add --category decision
    """
    with _opened() as memories:
        stored = memories.store(_piped() if content is None else content, **given)
    return _stored(stored, json)


@semantic.command("edit")
@click.argument("id")
@click.option("--content", metavar="TEXT", help="Another text; - for standard input.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="In place of those it has.")
@click.option("--priority", type=click.Choice(PRIORITIES, case_sensitive=False))
@click.option("--category", metavar="WORD", help="A word for its kind; '' takes it away.")
@json_option
def edit(id: str, content: str | None, tags: Sequence[str], json: bool, **given: Any) -> int:
    """Change a memory: its text, tags, priority or category.

    \b
    Examples:
      aiaml semantic edit project:12 --content 'Prices are kept in cents.'
      aiaml semantic edit project:12 --priority HIGH
    """
    with _opened() as memories:
        text = _piped() if content == "-" else content
        stored = memories.update(id, text, list(tags) or None, **given)
    return _stored(stored, json)


def _piped() -> str:
    """Return the text that comes from standard input, without the end of its last line.

    Raises:
        InvalidInput: it is no text.
    """
    try:
        return sys.stdin.buffer.read(_MOST_INPUT).decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InvalidInput("content: standard input is no text in UTF-8") from error


def _stored(stored: Stored, json: bool) -> int:
    if json:
        echo_json({"memory": asdict(stored.memory), "undo": stored.change,
                  "warnings": stored.warnings})  # fmt: skip
        return EXIT_OK
    _shown(stored.memory)
    for each in stored.similar:
        notify(
            f"resembles {each.memory.id}: {truncate(each.memory.content, terminal_width() - 30)}"
        )
    for warning in stored.warnings:
        notify(warning)
    if stored.change:
        notify(f"`aiaml semantic undo {stored.change}` takes it back")
    return EXIT_OK


@semantic.command("forget")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@yes_option
@json_option
def forget(ids: Sequence[str], yes: bool, json: bool) -> int:
    """Delete memories for good; no byte of them stays in the databases or their backups.

    Also one that was deleted, and that `undo` could bring back.

    \b
    Examples:
      aiaml semantic forget project:12
    """
    with _opened() as memories:
        for each in (names := list(dict.fromkeys(ids))):
            memories.check_known(each)
        if not yes:
            for each in names:
                try:
                    _shown(memories.get(each))
                except (NotFound, Damaged):
                    echo(f"{bold(each)}  deleted, or damaged")
            confirm(f"Delete {plural(len(names), 'memory', 'memories')} for good?")
        for each in names:
            memories.forget(each)
    if json:
        echo_json({"forgotten": names})
    else:
        echo(f"forgotten: {', '.join(names)}")
    return EXIT_OK


@semantic.command("history")
@click.argument("id", required=False)
@rows_options
def history(id: str | None, data: str) -> int:
    """List what was changed, merged and deleted in the last 30 days, the newest first.

    \b
    Examples:
      aiaml semantic history
      aiaml semantic history project:12
    """
    with _opened() as memories:
        found = memories.history(id)
    if data:
        echo_rows([each._asdict() for each in found], data)
        return EXIT_OK if found else EXIT_NOTHING
    for each in found:
        echo(f"{bold(each.id)}  {each.at[:16].replace('T', ' ')}  {each.act}  {each.memory_id}")
        for before in filter(
            None, (each.was if each.act in ("update", "undo") else None, *each.removed)
        ):
            echo(dim(f"    {truncate(str(before.get('content')), terminal_width() - 4)}"))
    if not found:
        notify("Nothing was changed in the last 30 days.")
    return EXIT_OK if found else EXIT_NOTHING


@semantic.command("undo")
@click.argument("change", required=False)
@json_option
def undo(change: str | None, json: bool) -> int:
    """Take a change back: the last one, a memory's last one, or the one that `history` names.

    An update that was undone is in `history` as well, and comes again by its id.

    \b
    Examples:
      aiaml semantic undo
      aiaml semantic undo project:12
      aiaml semantic undo project#5
    """
    with _opened() as memories:
        again = memories.undo(change)
        newest = next(iter(memories.history(again[0].id)), None) if again else None
    redo = newest.id if newest and newest.act == "undo" else None
    if json:
        echo_json({"memories": list(map(asdict, again)), "undo": redo})
        return EXIT_OK
    echo(f"Undone; {plural(len(again), 'memory', 'memories')} as before:")
    for each in again:
        _shown(each)
    if redo:
        notify(f"`aiaml semantic undo {redo}` brings back what that took away")
    return EXIT_OK


@semantic.command("backup")
@click.option("--list", "listed", is_flag=True, help="List those that there are; make none.")
@rows_options
def backup(listed: bool, data: str) -> int:
    """Copy the databases into `backups` beside each; a server does so once a day.

    Those of the last three days on which something was changed are kept.

    \b
    Examples:
      aiaml semantic backup
      aiaml semantic backup --list
    """
    with _opened() as memories:
        there = [each for each in memories.databases.values() if each.there]
        if not listed:
            for each in there:
                backups.make(each)
        found = [(each.name, path) for each in there for path in backups.made(each)]
    if data:
        echo_rows([{"scope": name, "file": str(path)} for name, path in found], data)
        return EXIT_OK if found else EXIT_NOTHING
    for name, path in found:
        echo(f"{name:8}  {path.name.removeprefix('db-')}  {path}")
    if not found:
        notify("There are no backups yet.")
    return EXIT_OK if found else EXIT_NOTHING


@semantic.command("restore")
@click.argument("scope", type=click.Choice(SCOPES))
@click.argument("day", required=False)
@yes_option
@json_option
def restore(scope: str, day: str | None, yes: bool, json: bool) -> int:
    """Put a backup in the place of a database: the newest, or that of DAY.

    The database that is there, damaged or not, is kept beside it under another name.

    \b
    Examples:
      aiaml semantic restore project
      aiaml semantic restore global 2026-11-24
    """
    with _opened() as memories:
        if scope not in memories.databases:
            raise InvalidProject("scope: is project, and no project is active here")
        database = memories.databases[scope]
        if not yes:
            confirm(f"Put a backup in the place of {database.path}?")
        taken, aside = backups.restore(database, day or "")
    if json:
        echo_json({"backup": str(taken), "before": str(aside) if aside else None})
        return EXIT_OK
    echo(f"restored from {taken.name.removeprefix('db-')}: {database.path}")
    if aside:
        notify(f"what was there is {aside}; delete it once all is well")
    return EXIT_OK


@semantic.command("export")
@click.argument("target", metavar="FILE.jsonl|DIRECTORY")
@filtered
@json_option
def export(target: str, json: bool, **wanted: Any) -> int:
    """Write memories out: as lines of JSON, or as markdown files into a directory; - for stdout.

    Both are the default toolset's own formats, with dates, tags, priority and scope: `aiaml
    semantic import` takes them back without loss, and `aiaml import` reads them.

    \b
    Examples:
      aiaml semantic export memories.jsonl
      aiaml semantic export notes/ --scope project
    """
    with _opened() as memories:
        warnings: list[str] = []
        found = list(memories.every(Filters(**wanted), warnings))
    portable = [as_file(each, _uid(each)) for each in found]
    for warning in warnings:
        notify(warning)
    if not found:
        notify("There are no memories like that; nothing was written.")
        return EXIT_FAILED if warnings else EXIT_NOTHING
    try:
        if target == "-":
            echo_bytes(line_of(each).encode() for each in portable)
        elif target.lower().endswith(".jsonl"):
            data = "".join(map(line_of, portable)).encode()
            replace_atomic(Path(target).resolve(), data, 0o600)
        else:
            directory = Path(target).resolve()
            make_directory(directory)
            for each in portable:
                replace_atomic(directory / each.file_name, format_file(each).encode(), 0o600)
    except OSError as error:
        raise Exit(f"cannot write {target}: {error.strerror or error}", EXIT_FAILED) from error
    if json:
        echo_json({"memories": len(found), "target": target, "warnings": warnings})
    elif target != "-":
        notify(f"Wrote {plural(len(found), 'memory', 'memories')} to {target}.")
    return EXIT_FAILED if warnings else EXIT_OK


def _uid(memory: Memory) -> str:
    """Return an id for a file, the same at each export; its first digit is no number to YAML."""
    return "abcdef"[len(memory.scope) % 6] + memory.content_hash[:7]


@semantic.command("sync")
@json_option
def sync(json: bool) -> int:
    """Exchange your memories with your other machines, as files that `aiaml sync` carries.

    Each global memory is a file in the default toolset's directory, where `think` finds it too.
    What was changed on one side goes to the other; where both were, the later change wins, and
    the earlier one is in `aiaml semantic history`. Run it before and after `aiaml sync`.

    \b
    Examples:
      aiaml semantic sync; aiaml sync; aiaml semantic sync
    """
    from aiaml_server.settings import Settings  # noqa: PLC0415 (only this needs it)
    from aiaml_server.storage.store import Store  # noqa: PLC0415
    from aiaml_server.toolsets.semantic.exchanging import exchange  # noqa: PLC0415

    base = Settings.from_environ(os.environ).base
    with _opened() as memories:
        result = exchange(memories, Store(base))
    if json:
        echo_json({"directory": str(base), **result.done, "skipped": result.skipped})
        return EXIT_FAILED if result.skipped else EXIT_OK
    told = ", ".join(f"{count:,} {what}" for what, count in sorted(result.done.items()))
    echo(f"{told or 'all was the same'}: {base / 'files'}")
    for each in result.skipped:
        notify(each)
    return EXIT_FAILED if result.skipped else EXIT_OK


@semantic.command("import")
@click.argument("paths", metavar="[FILE|DIRECTORY]...", nargs=-1)
@click.option("--dry-run", is_flag=True, help="Show what would be imported; store nothing.")
@yes_option
@json_option
def import_(paths: Sequence[str], dry_run: bool, yes: bool, json: bool) -> int:
    """Import markdown: sections, items of lists, decision records (ADR).

    Without a path, the project's files that look like memories are meant: MEMORY.md, NOTES.md,
    ADR-*.md and .claude/*.md. What would be imported is shown first. What is a memory already
    is not imported again, and no file is changed. A directory stands for its .md files; that
    of this product's own memories, and of `citations`, too. What other programs left is read as
    `aiaml import` reads it: ChatGPT, Claude, mem0, Obsidian, Basic Memory, mcp-memory-service,
    claude-mem and more. Each keeps its date: of the frontmatter, a heading, a decision record,
    else of the file.

    \b
    Examples:
      aiaml semantic import --dry-run
      aiaml semantic import docs/notes.md
    """
    with _opened() as memories:
        roots = None
        named: list[str] | None = None
        foreign: list[tuple[Path, str]] = []
        if paths:  # a person may name any file of theirs
            whole = [Path(os.path.realpath(each)) for each in paths]
            told = [(each, importing.foreign_kind(each)) for each in whole]
            foreign = [(each, kind) for each, kind in told if kind]
            whole = [each for each, kind in told if not kind]
            tops = dict.fromkeys(Path(each.anchor) for each in whole)
            roots = [*([memories.project] if memories.project else []), *tops]
            named = [os.fspath(each) for each in whole]
        preview = importing.preview(memories, named, roots, foreign)
        new = preview.new
        asks = not (json or yes or dry_run)
        if dry_run or asks:
            if json:
                echo_json(
                    {
                        "candidates": [each.fields() for each in preview.candidates],
                        "skipped": [each._asdict() for each in preview.skipped],
                    }
                )
            else:
                for each in new[:_SHOWN]:
                    draft, at = each.draft, f":{each.line}" if each.line else ""
                    tags = " ".join(f"#{tag}" for tag in draft.tags)
                    day = (draft.created or "")[:10]
                    about = f"{draft.priority or 'NORMAL'}  {day}"
                    echo(f"{bold(each.path + at)}  {about}  {dim(tags)}")
                    echo(f"    {truncate(draft.content, terminal_width() - 4)}")
                if len(new) > _SHOWN:
                    notify(f"and {len(new) - _SHOWN:,} more; `--dry-run --json` shows all")
        if not json:
            _passed_over(preview, memories)
        if dry_run:
            already = len(preview.candidates) - len(new)
            notify(
                f"{plural(len(new), 'memory', 'memories')} would be imported, {already:,} are there"
            )
            return EXIT_OK if new else EXIT_NOTHING
        if asks and new:
            confirm(f"Import {plural(len(new), 'memory', 'memories')}?")
        done = importing.run(memories, preview, _told)
    if json:
        skipped = [each._asdict() for each in done.skipped]
        echo_json({"imported": list(done.ids), "already": done.already, "skipped": skipped})
    else:
        echo(
            f"{plural(len(done.ids), 'memory', 'memories')} imported,"
            f" {done.already:,} were there already"
        )
    return EXIT_OK if done.ids else EXIT_NOTHING


def _passed_over(preview: importing.Preview, memories: Memories) -> None:
    """Say what is to be known, of which files nothing is taken, or that there are none."""
    for warning in preview.warnings:
        notify(warning)
    for path, reason in preview.skipped[:_SHOWN]:
        notify(f"{path}: {reason}")
    if len(preview.skipped) > _SHOWN:
        notify(f"and {len(preview.skipped) - _SHOWN:,} more are passed over")
    if not (preview.candidates or preview.skipped):
        where = f"in {memories.project} nor named: MEMORY.md, NOTES.md, ADR-*.md, .claude/*.md"
        notify(f"There is no file to import, neither {where}")


def _told(found: Sequence[importing.Candidate]) -> Iterator[importing.Candidate]:
    """Give candidates on, and show how far that is."""
    try:
        yield from progress(found, "importing", many=20)
    except (GeneratorExit, KeyboardInterrupt):
        notify("broken off; what was imported stays, and the next run imports the rest")
        raise


# --- doctor, hooks --------------------------------------------------------------------------------


@semantic.command("doctor")
@rows_options
def doctor(data: str) -> int:
    """Examine the databases, the settings and the model.

    \b
    Exit codes:
      0  all is well
      1  there are warnings
      3  there are errors

    \b
    Examples:
      aiaml semantic doctor
    """
    found = list(checks(os.environ))
    worst = {"ok": EXIT_OK, "warning": EXIT_NOTHING, "error": EXIT_FAILED}
    if data:
        echo_rows([each.fields() for each in found], data)
    else:
        colours = {"ok": "green", "warning": "yellow", "error": "red"}
        for each in found:
            echo(f"{styled(each.level, colours[each.level])}  {each.check}: {each.found}")
            if each.remedy:
                echo(f"    {each.remedy}")
    return max((worst[each.level] for each in found), default=EXIT_OK)


@semantic.command("hook")
@click.argument("event")
def hook(event: str) -> int:
    """Answer a hook of Claude Code, which its settings start.

    What happened is read from standard input as JSON. Whatever fails, nothing is printed and
    the exit code is 0: a hook must not stand in the way of a session.
    """
    try:
        given = json_.loads(sys.stdin.buffer.read(_MOST_INPUT))
        if isinstance(given, dict) and (said := hooks.answer(event, given, os.environ)):
            echo(said)
    except Exception as error:  # noqa: BLE001 (anything that may be broken)
        with suppress(Exception):
            logs.record(place.home(), "hook", error)
    return EXIT_OK
