"""The eight tools as agents see them, and the resources."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, with_config
from typing_extensions import NotRequired, TypedDict

from aiaml_server import toolset
from aiaml_server.errors import AiamlError
from aiaml_server.toolset import OnChange, Resource, Tool, Toolset
from aiaml_server.toolsets import answering
from aiaml_server.toolsets.answering import Few, as_number
from aiaml_server.toolsets.semantic import PROJECT, memory, words
from aiaml_server.toolsets.semantic.failures import InvalidProject, Refused
from aiaml_server.toolsets.semantic.memory import LIMITS, MOST_HITS, MOST_LISTED, SORTS

if TYPE_CHECKING:
    from aiaml_server.toolsets.semantic.config import Config
    from aiaml_server.toolsets.semantic.filters import Filters
    from aiaml_server.toolsets.semantic.memories import Memories, Page
    from aiaml_server.toolsets.semantic.model import Provider
    from aiaml_server.toolsets.semantic.reranking import Scores


class Failure(answering.Failure, total=False):
    """What every tool answers when it fails: a kind of a closed list, and what to do."""

    success: bool
    suggestion: str


_closed = with_config(extra="forbid")  # a key that nobody knows is refused, not dropped
DateRange = TypedDict("DateRange", {"from": NotRequired[str], "to": NotRequired[str]})
_closed(DateRange)
_Objects = list[dict[str, Any]]  # what is in them, `answers` says: a schema would cost each session


def _one_of(choices: Sequence[str]) -> dict[str, Any]:
    return {"json_schema_extra": {"enum": [*choices]}}


_MOST = 1_000  # entries of a list that is looked at


_FEW = Few(_MOST)


@_closed
class Wanted(TypedDict, total=False):
    """What memories must be like."""

    tags: Annotated[list[str], _FEW, Field(description="All of these.")]
    priority: Annotated[str, Field(**_one_of(memory.PRIORITIES))]
    date_range: Annotated[DateRange, Field(description="ISO 8601; `to` is meant whole.")]
    category: str
    source: Annotated[str, Field(**_one_of(memory.SOURCES))]
    project_id: str
    scope: Annotated[str, Field(**_one_of(memory.SCOPES))]


class StoreResult(Failure, total=False):
    """Answers `store_memory`."""

    memory_id: str
    created: bool
    embedded: bool
    similar: _Objects
    offer: str
    priority_suggestion: dict[str, str]
    warnings: list[str]


class SearchResult(Failure, total=False):
    """Answers `search_memory`."""

    memories: _Objects
    meaning: bool
    warnings: list[str]


class ListResult(Failure, total=False):
    """Answers `list_memories`."""

    memories: _Objects
    total: int
    next_cursor: str
    warnings: list[str]


class DeleteResult(Failure, total=False):
    """Answers `delete_memory`."""

    deleted: list[str]
    undo: list[str]


class UpdateResult(Failure, total=False):
    """Answers `update_memory`."""

    memory: dict[str, Any]
    undo: str
    similar: _Objects
    offer: str
    priority_suggestion: dict[str, str]
    warnings: list[str]


class DeduplicateResult(Failure, total=False):
    """Answers `deduplicate_memories`."""

    groups: _Objects
    merged: _Objects
    next_cursor: str
    warnings: list[str]


class ImportResult(Failure, total=False):
    """Answers `import_markdown_memories`."""

    imported: bool
    memory_ids: list[str]
    already: int
    new: int
    candidates: _Objects
    skipped: _Objects
    warnings: list[str]


class MigrateResult(Failure, total=False):
    """Answers `migrate_embeddings`."""

    done: int
    left: int
    finished: bool
    warnings: list[str]


# --- parameters: what agents read of each, and what a wrong type is answered with -----------------

_AHEAD_SECONDS = 1.0  # after the start, in which tools are listed
_LAST_SECONDS = 5.0  # that a backup may hold up the end
_AGAIN = "Make that directory again, or start the server anew; scope global can be used meanwhile."

Tags = Annotated[
    list[str] | None,
    _FEW,
    Field(description="Words to filter by.", examples=[["billing", "api"]]),
]
Priority = Annotated[
    str | None,
    Field(description="How much rests on it.", examples=["HIGH"], **_one_of(memory.PRIORITIES)),
]
Category = Annotated[
    str | None,
    Field(description="A word for its kind; '' clears it.", examples=["decision"]),
]
Source = Annotated[
    str | None,
    Field(description="What it comes from.", examples=["auto_decision"], **_one_of(memory.SOURCES)),
]
Matching = Annotated[
    Wanted | None,
    Field(
        description="Only memories like this.",
        examples=[{"date_range": {"from": "2026-01"}}],
    ),
]
Cursor = Annotated[
    str | None,
    Field(description="The next_cursor before.", examples=["WyJj"]),
]
Explain = Annotated[
    bool,
    Field(
        strict=True, description="Whole, with all metadata and the score's parts.", examples=[True]
    ),
]


RULES = {
    "content": "text",
    "tags": f"a list of at most {_MOST:,} texts, or nothing",
    "priority": f"one of {', '.join(memory.PRIORITIES)}, or nothing",
    "category": "text, or nothing",
    "source": f"one of {', '.join(memory.SOURCES)}, or nothing",
    "scope": "project or global, or nothing",
    "query": "words or a question, as text",
    "search_memory limit": f"a whole number from 1 to {MOST_HITS}, or nothing",
    "list_memories limit": f"a whole number from 1 to {MOST_LISTED}, or nothing",
    "migrate_embeddings limit": "a whole number from 1, or nothing",
    "filters": f"an object with some of tags (at most {_MOST:,}), priority, date_range, category,"
    " source, project_id, scope, or nothing; date_range is {from, to} in ISO 8601",
    "context": "text, or nothing",
    "explain": "true or false",
    "sort_by": f"one of {', '.join(SORTS)}, or nothing",
    "cursor": "the next_cursor of an earlier answer, or nothing",
    "ids": f"a list of at most {_MOST:,} ids such as project:12, or nothing",
    "memory_id": "an id such as project:12, as text",
    "content_hash": "a memory's content_hash, as text, or nothing",
    "updated_content": "text, or nothing",
    "used": "true or false",
    "similarity_threshold": "a number above 0, at most 1",
    "auto_merge": "true or false",
    "merge": f"a list of two to {_MOST:,} ids, or nothing",
    "file_paths": f"a list of at most {_MOST:,} paths, or nothing for what a scan finds",
    "confirm_import": "true or false",
}


def _at_most(most: int | None) -> Any:
    return Field(strict=True, ge=1, le=most, description="At most so many.", examples=[5])


def build(values: Mapping[str, Any]) -> Toolset:
    """Return the toolset, from its settings by variable."""
    calls = SemanticTools(values[PROJECT], check_secrets=values["AIAML_CHECK_SECRETS"])
    reads = {"read_only": True, "idempotent": True}
    core, high = (partial(calls.of_priority, each) for each in ("CORE", "HIGH"))

    def made(call: Callable[..., Any], words: str, shape: type, **hints: Any) -> Tool:
        one = answering.tool(calls.noted(call), words, shape, RULES, **hints)
        return one._replace(error_answer=failure)

    return Toolset(
        instructions=words.INSTRUCTIONS,
        brief=words.BRIEF,
        tools=(
            made(calls.store_memory, words.STORE, StoreResult, idempotent=True),
            made(calls.search_memory, words.SEARCH, SearchResult, **reads),
            made(calls.list_memories, words.LIST, ListResult, **reads),
            made(calls.delete_memory, words.DELETE, DeleteResult, destructive=True),
            made(
                calls.update_memory,
                words.UPDATE,
                UpdateResult,
                destructive=True,
                allow_empty=("category",),
            ),
            made(
                calls.deduplicate_memories, words.DEDUPLICATE, DeduplicateResult, destructive=True
            ),
            made(calls.import_markdown_memories, words.IMPORT, ImportResult, idempotent=True),
            made(calls.migrate_embeddings, words.MIGRATE, MigrateResult, idempotent=True),
        ),
        resources=(
            Resource("memory://core", "core", "The CORE memories.", core, "text/markdown"),
            Resource("memory://high", "high", "The HIGH memories.", high, "text/markdown"),
            Resource(
                "memory://project/{project_id}",
                "project",
                "The memories of a project, by its id.",
                calls.of_project,
                "text/markdown",
            ),
        ),
        lifespan=calls.opened,
    )


def failure(error: AiamlError | None) -> dict[str, Any]:
    """Return what every tool answers when it fails: a kind of the closed list, and what to do."""
    if error is None:
        suggestion = "Look at the server's log, and at ~/.memory/logs."
    else:
        suggestion = error.suggestion if isinstance(error, Refused) else Refused.suggestion
    return {"success": False, **toolset.error_answer(error), "suggestion": suggestion}


class SemanticTools:
    """The tools' functions."""

    def __init__(self, project: str = "", *, check_secrets: bool = True) -> None:
        """Take the project's directory; where none is named, it is found at each call."""
        self._project = project
        self._check_secrets = check_secrets
        self._lock = threading.Lock()
        self._open: Memories | None = None
        self._models: tuple[tuple[Any, ...], Provider, Scores | None] | None = None
        self._offered: set[Path | None] = set()
        self._found: Path | None = None  # the last project whose .memory was there

    @contextmanager
    def opened(self, _changed: OnChange) -> Iterator[None]:
        """Make ready behind the first answers; close at the end what calls have opened."""
        left = threading.Event()
        ahead = threading.Thread(target=self._ahead, args=(left,), name="ahead", daemon=True)
        ahead.start()
        try:
            yield
        finally:
            left.set()
            ahead.join(_LAST_SECONDS)
            if self._open is not None:
                self._open.close()

    def _ahead(self, left: threading.Event) -> None:
        """Load the model that is on this machine, make the vectors that are missing, and backups.

        Whoever has no memories pays nothing for the model: agents ask for what somebody has stored.
        """
        from aiaml_server.toolsets.semantic import backups

        if left.wait(_AHEAD_SECONDS):
            return
        with suppress(AiamlError, OSError):  # what is wrong, the first call says
            memories = self._memories()
            there = [each for each in memories.databases.values() if each.there]
            if there and memories.model and memories.model.state().kind == "loading":
                memories.later(lacking=True)  # which loads it
            if there and memories.reranker and memories.reranker.state().kind == "loading":
                memories.reranker.ready()
            for each in there:
                if not left.is_set() and each.path.stat().st_size <= backups.MOST_UNASKED:
                    with suppress(AiamlError):
                        backups.make(each)

    def noted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a call whose failures are noted in the log."""
        from aiaml_server.toolsets.semantic import logs, place

        @wraps(call)
        def noting(**given: Any) -> Any:
            try:
                return call(**given)
            except Exception as error:
                logs.record(place.home(), call.__name__, error)
                raise

        return noting

    def _memories(self) -> Memories:
        """Return the memories, as the settings are now."""
        from aiaml_server.toolsets.semantic import config, memories, place

        home = place.home()
        project = place.find_project(place.here(), self._project, by=PROJECT)
        if self._found is None or (self._found / place.NAME).is_dir():
            self._found = project
        settings = config.load(home)
        with self._lock:
            held = self._open
            if held is None or (held.home, held.project, held.config) != (home, project, settings):
                if held is not None:
                    held.close()
                model, reranker = self._providers(settings)
                held = memories.Memories(
                    home,
                    project,
                    model,
                    settings,
                    background=True,
                    check_secrets=self._check_secrets,
                    reranker=reranker,
                )
                self._open = held
        return held

    def _providers(self, settings: Config) -> tuple[Provider, Scores | None]:
        """Return the model and the reranker that the settings name, the same as long as they do."""
        from aiaml_server.toolsets.semantic import logs, model, place, reranking

        wanted = (settings.model, settings.path, settings.dimension, settings.device,
                  settings.download, settings.query_prefix, settings.document_prefix,
                  settings.reranker)  # fmt: skip
        if self._models is None or self._models[0] != wanted:
            home = place.home()
            cache = home / model.CACHE
            made = model.Model(settings, cache, noted=partial(logs.record, home, "model"))
            noted = partial(logs.record, home, "reranker")
            self._models = (wanted, made, reranking.of(settings, cache, noted))
        return self._models[1:]

    def _gone(self, memories: Memories) -> str:
        """Say that the project is another one than before, as its `.memory` was taken away."""
        if memories.project == self._found or self._project:
            return ""
        now = f"the project is {memories.project}" if memories.project else "no project is active"
        return f"{self._found} is no project any more, as its .memory is gone, and {now}"

    def _offer(self, memories: Memories) -> list[str]:
        """Return sentences about the project: that it is gone; once that it could import."""
        from aiaml_server.toolsets.semantic import importing

        if gone := self._gone(memories):
            return [gone]
        if memories.project in self._offered:
            return []
        self._offered.add(memories.project)
        sentence = importing.offer(memories)
        return [sentence] if sentence else []

    def store_memory(
        self,
        content: Annotated[
            str,
            Field(
                description="One fact, decision or solution, in one to three sentences.",
                examples=["Prices are kept in cents, since rounding euros lost money."],
            ),
        ],
        tags: Tags = None,
        priority: Priority = None,
        category: Category = None,
        source: Source = None,
        scope: Annotated[
            str | None,
            Field(
                description="project is the default where one is active.",
                examples=["global"],
                **_one_of(memory.SCOPES),
            ),
        ] = None,
    ) -> Any:
        """Store a memory."""
        from aiaml_server.toolsets.semantic import answers

        memories = self._memories()
        if str(scope).strip().lower() != "global" and (gone := self._gone(memories)):
            raise InvalidProject(f"scope: {gone}", _AGAIN)
        offer = self._offer(memories)
        stored = memories.store(
            content, tags or (), priority or None, category or None, source or "manual",
            scope or None,
        )  # fmt: skip
        stored.warnings += offer
        return answers.stored(stored)

    def search_memory(
        self,
        query: Annotated[
            str,
            Field(
                description="The question, then eight to ten single words its answer may hold.",
                examples=[
                    "how is authentication done? login oauth token jwt session password sso user"
                ],
            ),
        ],
        limit: Annotated[
            int | None,
            _at_most(MOST_HITS),
            BeforeValidator(as_number),
        ] = None,
        filters: Matching = None,
        context: Annotated[
            str | None,
            Field(
                description="Without limit: 10 (explicit; or as set), 8 or 5 hits.",
                examples=["auto_trigger"],
                **_one_of(tuple(LIMITS)),
            ),
        ] = None,
        explain: Explain = False,
    ) -> Any:
        """Find memories."""
        from aiaml_server.toolsets.semantic import answers

        memories = self._memories()
        found = memories.search(query, limit, _filters(filters), context or "explicit")
        found.warnings += self._offer(memories)
        return answers.found(found, query, explain=explain)

    def list_memories(
        self,
        filters: Matching = None,
        sort_by: Annotated[
            str | None,
            Field(
                description="The highest first, then the newest.",
                examples=["priority"],
                **_one_of(SORTS),
            ),
        ] = None,
        limit: Annotated[
            int | None,
            _at_most(MOST_LISTED),
            BeforeValidator(as_number),
        ] = None,
        cursor: Cursor = None,
        ids: Annotated[
            list[str] | None,
            _FEW,
            Field(description="Only these, with all metadata.", examples=[["project:12"]]),
        ] = None,
    ) -> Any:
        """List memories."""
        from aiaml_server.toolsets.semantic import answers

        memories = self._memories()
        if ids:
            return answers.read([memories.get(each) for each in dict.fromkeys(ids)])
        page = memories.list(
            _filters(filters), sort_by or "created_at", limit or 20, cursor or None
        )
        page.warnings += self._offer(memories)
        return answers.listed(page)

    def delete_memory(
        self,
        memory_id: Annotated[
            str | None,
            Field(description="The memory's id.", examples=["project:12"]),
        ] = None,
        content_hash: Annotated[
            str | None,
            Field(description="Or its content_hash.", examples=["0f3c…"]),
        ] = None,
    ) -> Any:
        """Delete a memory."""
        changes = self._memories().delete(memory_id or None, content_hash or None)
        return {"success": True, "deleted": list(changes), "undo": list(changes.values())}

    def update_memory(
        self,
        memory_id: Annotated[
            str,
            Field(description="The memory's id.", examples=["project:12"]),
        ],
        updated_content: Annotated[
            str | None,
            Field(description="Another text.", examples=["Prices are in cents."]),
        ] = None,
        tags: Tags = None,
        priority: Priority = None,
        category: Category = None,
        source: Source = None,
        used: Annotated[
            bool,
            Field(strict=True, description="That it has helped.", examples=[True]),
        ] = False,
        context: Annotated[
            str | None,
            Field(description="What it has helped with.", examples=["rounding invoices"]),
        ] = None,
    ) -> Any:
        """Change a memory."""
        from aiaml_server.toolsets.semantic import answers

        return answers.updated(
            self._memories().update(
                memory_id, updated_content or None, tags, priority or None, category,
                source or None, used=used, context=context or None,
            )
        )  # fmt: skip

    def deduplicate_memories(
        self,
        similarity_threshold: Annotated[
            float,
            Field(
                strict=True,
                gt=0,
                le=1,
                description="The cosine from which on two resemble.",
                examples=[0.9],
            ),
        ] = 0.95,
        auto_merge: Annotated[
            bool,
            Field(strict=True, description="Merge what is equal.", examples=[True]),
        ] = False,
        merge: Annotated[
            list[str] | None,
            _FEW,
            Field(
                description="Merge these, which were looked at.",
                examples=[["project:3", "project:8"]],
            ),
        ] = None,
        cursor: Cursor = None,
    ) -> Any:
        """Find what resembles, and merge what is named."""
        from aiaml_server.toolsets.semantic import answers, duplicates

        duplicates.check_threshold(similarity_threshold)  # before anything is merged
        begun = duplicates.after(cursor or None, similarity_threshold)
        memories = self._memories()
        merged = [memories.merge(merge)] if merge is not None else []
        if auto_merge:
            merged += memories.merge_equal()
        groups, warnings = memories.duplicates(similarity_threshold)
        shown, next_cursor = duplicates.page(groups, begun, similarity_threshold)
        return answers.grouped(shown, merged, next_cursor, warnings)

    def import_markdown_memories(
        self,
        file_paths: Annotated[
            list[str] | None,
            _FEW,
            Field(
                description="Files or directories of the project; else MEMORY.md, NOTES.md, "
                "ADR-*.md, .claude/*.md.",
                examples=[["NOTES.md", "docs/adr"]],
            ),
        ] = None,
        confirm_import: Annotated[
            bool,
            Field(strict=True, description="Store what a preview showed as new.", examples=[False]),
        ] = False,
    ) -> Any:
        """Show or take over what markdown files hold."""
        from aiaml_server.toolsets.semantic import answers, importing

        memories = self._memories()
        if gone := self._gone(memories):
            raise InvalidProject(f"file_paths: {gone}", _AGAIN)
        preview = importing.preview(memories, file_paths)
        if confirm_import:
            return answers.imported(importing.run(memories, preview))
        return answers.previewed(preview)

    def migrate_embeddings(
        self,
        limit: Annotated[
            int | None,
            _at_most(None),
            BeforeValidator(as_number),
        ] = None,
    ) -> Any:
        """Make vectors anew."""
        memories = self._memories()
        done = left = 0
        warnings: list[str] = []
        for step in memories.embed(outdated=True, wait=30.0, told=warnings):
            done, left = step
            if done >= (limit or 256):
                break
        finished = left == 0
        return {"success": True, "done": done, "left": left, "finished": finished,
                **({"warnings": warnings} if warnings else {})}  # fmt: skip

    def of_priority(self, priority: str) -> str:
        """Return the memories of a priority."""
        from aiaml_server.toolsets.semantic import answers, filters

        page = self._page(filters.Filters(priority=priority))
        return str(answers.resource(f"{priority} memories", page))

    def of_project(self, project_id: str) -> str:
        """Return a project's memories.

        Raises:
            LookupError: there are none, or it is another project.
        """
        from aiaml_server.toolsets.semantic import answers, filters

        page = self._page(filters.Filters(project_id=project_id))
        if not page.memories and not page.warnings:
            raise LookupError(project_id)
        return str(answers.resource(f"Memories of {project_id}", page))

    def _page(self, filters: Filters) -> Page:
        return self._memories().list(filters, "priority", MOST_LISTED)


def _filters(given: Wanted | None) -> Filters:
    from aiaml_server.toolsets.semantic import filters

    held: dict[str, Any] = {**(given or {})}
    span = held.pop("date_range", {})
    found: Filters = filters.Filters(**held, since=span.get("from"), until=span.get("to"))
    return found
