"""The eight tools as agents see them, and the resources."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, with_config
from typing_extensions import NotRequired, TypedDict

from aiaml_server.errors import AiamlError
from aiaml_server.toolset import Changed, Resource, Tool, Toolset
from aiaml_server.toolsets import answering

from . import PROJECT, memory, words
from .failures import InvalidProject, Refused
from .memory import LIMITS, MOST_HITS, MOST_LISTED, SORTS

if TYPE_CHECKING:
    from .config import Config
    from .filters import Filters
    from .memories import Memories, Page
    from .model import Provider


class Failure(answering.Failure, total=False):
    """What every tool answers when it fails: a kind of a closed list, and what to do."""

    success: bool
    suggestion: str


_closed = with_config(extra="forbid")  # a key that nobody knows is refused, not dropped
_Moment = Annotated[
    str,
    Field(description="A date, week, month or time in ISO 8601; as `to`, a date is its whole day."),
]
DateRange = TypedDict("DateRange", {"from": NotRequired[_Moment], "to": NotRequired[_Moment]})
_closed(DateRange)
_Priority = Annotated[str, Field(json_schema_extra={"enum": list(memory.PRIORITIES)})]
_Source = Annotated[str, Field(json_schema_extra={"enum": list(memory.SOURCES)})]
_Scope = Annotated[str, Field(json_schema_extra={"enum": list(memory.SCOPES)})]


@_closed
class Wanted(TypedDict, total=False):
    """What memories must be like."""

    tags: Annotated[list[str], Field(description="They have all of these.")]
    priority: _Priority
    date_range: DateRange
    category: str
    source: _Source
    project_id: str
    scope: _Scope


class MemoryShape(TypedDict):
    """A memory with all its metadata."""

    id: str
    content: str
    priority: str
    category: str | None
    tags: list[str]
    scope: str
    project_id: str | None
    source: str
    path: str | None
    created_at: str
    updated_at: str
    content_hash: str
    embedding_model: str | None
    embedding_model_version: str | None
    embedding_dimension: int | None
    access_count: int
    last_accessed_at: str | None
    usage_contexts: list[str]


class Breakdown(TypedDict):
    """What a score is made of."""

    similarity: float
    recency: float
    priority: float
    usage: float
    project_boost: float
    cosine: float | None
    bm25: float


class HitShape(MemoryShape):
    """A memory that was found."""

    score: float
    weak: bool
    breakdown: Breakdown


class SuggestionShape(TypedDict):
    """A priority that the words suggest."""

    priority: str
    reason: str


class SimilarShape(TypedDict):
    """A memory that resembles the one that was stored."""

    memory_id: str
    content: str
    cosine: float | None


class StoreResult(Failure, total=False):
    """What `store_memory` answers."""

    memory_id: str
    content_hash: str
    created: bool
    embedded: bool
    priority: str
    tags: list[str]
    similar: list[SimilarShape]
    offer: str
    priority_suggestion: SuggestionShape
    warnings: list[str]


class SearchResult(Failure, total=False):
    """What `search_memory` answers."""

    memories: list[HitShape]
    meaning: bool
    warnings: list[str]


class ListResult(Failure, total=False):
    """What `list_memories` answers."""

    memories: list[MemoryShape]
    total: int
    next_cursor: str | None
    warnings: list[str]


class DeleteResult(Failure, total=False):
    """What `delete_memory` answers."""

    deleted: list[str]


class UpdateResult(Failure, total=False):
    """What `update_memory` answers."""

    memory: MemoryShape
    similar: list[SimilarShape]
    offer: str
    priority_suggestion: SuggestionShape
    warnings: list[str]


class PairShape(TypedDict):
    """Two memories that resemble each other."""

    first: str
    second: str
    cosine: float | None


class MergeSuggestion(TypedDict):
    """What a group would become."""

    merge: list[str]
    keeps: str
    priority: str
    category: str | None
    tags: list[str]
    advice: str


class GroupShape(TypedDict):
    """Memories that resemble each other."""

    kind: str
    memories: list[MemoryShape]
    pairs: list[PairShape]
    merge_suggestion: MergeSuggestion


class DeduplicateResult(Failure, total=False):
    """What `deduplicate_memories` answers."""

    groups: list[GroupShape]
    merged: list[MemoryShape]
    next_cursor: str | None
    warnings: list[str]


class CandidateShape(TypedDict):
    """What would become a memory."""

    path: str
    line: int
    content: str
    tags: list[str]
    priority: str
    category: str | None
    is_new: bool


class SkippedShape(TypedDict):
    """A file of which nothing is taken."""

    path: str
    reason: str


class ImportResult(Failure, total=False):
    """What `import_markdown_memories` answers."""

    imported: bool
    memory_ids: list[str]
    already: int
    new: int
    candidates: list[CandidateShape]
    skipped: list[SkippedShape]
    warnings: list[str]


class MigrateResult(Failure, total=False):
    """What `migrate_embeddings` answers."""

    done: int
    left: int
    finished: bool
    warnings: list[str]


_Tags = Field(description="Words to filter by.", examples=[["billing", "api"]])
_PriorityField = Field(
    description="CORE, HIGH, NORMAL or LOW.",
    examples=["NORMAL", "HIGH"],
    json_schema_extra={"enum": [*memory.PRIORITIES, None]},
)
_CategoryField = Field(description="A word for its kind.", examples=["decision", "preference"])
_SourceField = Field(
    description="What it comes from.",
    examples=["manual", "auto_decision"],
    json_schema_extra={"enum": [*memory.SOURCES, None]},
)
_FiltersField = Field(
    description="Only memories that are like this.",
    examples=[{"tags": ["api"], "priority": "HIGH", "date_range": {"from": "2026-01-01"}}],
)
_Cursor = Field(description="The next_cursor of the page before.", examples=["WyJjcmVhdGVk"])
_Hits = Field(strict=True, ge=1, le=MOST_HITS, description="At most so many.", examples=[5])
_Listed = Field(strict=True, ge=1, le=MOST_LISTED, description="At most so many.", examples=[5])
_Limit = Field(strict=True, ge=1, description="At most so many.", examples=[5])
_AGAIN = "Make that directory again, or start the server anew; scope global can be used meanwhile."
Id = Annotated[str, Field(description="The memory's id.", examples=["project:12", "global:3"])]
_FILTERS = "an object with some of tags, priority, date_range, category, source, project_id, scope"
RULES = {
    "content": "text",
    "updated_content": "text, or nothing",
    "tags": "a list of texts, or nothing",
    "priority": f"one of {', '.join(memory.PRIORITIES)}, or nothing",
    "category": "text, or nothing",
    "source": f"one of {', '.join(memory.SOURCES)}, or nothing",
    "scope": "project or global, or nothing",
    "query": "words or a question, as text",
    "limit": "a whole number from 1",
    "search_memory limit": f"a whole number from 1 to {MOST_HITS}, or nothing",
    "list_memories limit": f"a whole number from 1 to {MOST_LISTED}",
    "filters": f"{_FILTERS}, or nothing; date_range is {{from, to}} in ISO 8601",
    "context": "text, or nothing",
    "sort_by": f"one of {', '.join(SORTS)}",
    "cursor": "the next_cursor of an earlier answer, or nothing",
    "memory_id": "an id such as project:12, as text",
    "content_hash": "a memory's content_hash, as text, or nothing",
    "used": "true or false",
    "similarity_threshold": "a number above 0, at most 1",
    "auto_merge": "true or false",
    "merge": "a list of two or more ids, or nothing",
    "file_paths": "a list of paths, or nothing for what a scan finds",
    "confirm_import": "true or false",
}


def build(values: Mapping[str, Any]) -> Toolset:
    """Return the toolset, from its settings by variable."""
    calls = SemanticTools(values[PROJECT], check_secrets=values["AIAML_CHECK_SECRETS"])
    reads = {"reads": True, "repeatable": True}

    def made(call: Callable[..., Any], words: str, shape: type, **hints: bool) -> Tool:
        one = answering.tool(calls.noted(call), words, shape, RULES, **hints)
        return one._replace(failure=failure)

    return Toolset(
        instructions=words.INSTRUCTIONS,
        brief=words.BRIEF,
        tools=(
            made(calls.store_memory, words.STORE, StoreResult, repeatable=True),
            made(calls.search_memory, words.SEARCH, SearchResult, **reads),
            made(calls.list_memories, words.LIST, ListResult, **reads),
            made(calls.delete_memory, words.DELETE, DeleteResult, destroys=True),
            made(calls.update_memory, words.UPDATE, UpdateResult, destroys=True),
            made(calls.deduplicate_memories, words.DEDUPLICATE, DeduplicateResult, destroys=True),
            made(calls.import_markdown_memories, words.IMPORT, ImportResult, repeatable=True),
            made(calls.migrate_embeddings, words.MIGRATE, MigrateResult, repeatable=True),
        ),
        resources=(
            Resource("memory://core", "core", "The CORE memories.", calls.core, "text/markdown"),
            Resource("memory://high", "high", "The HIGH memories.", calls.high, "text/markdown"),
            Resource(
                "memory://project/{project_id}",
                "project",
                "The memories of a project, by its id.",
                calls.of_project,
                "text/markdown",
            ),
        ),
        opened=calls.opened,
    )


def failure(error: AiamlError | None) -> Failure:
    """Return what every tool answers when it fails: a kind of the closed list, and what to do."""
    if error is None:
        suggestion = "Look at the server's log, and at ~/.memory/logs."
    else:
        suggestion = error.suggestion if isinstance(error, Refused) else Refused.suggestion
    return {"success": False, **answering.failure(error), "suggestion": suggestion}


class SemanticTools:
    """The tools' functions."""

    def __init__(self, project: str = "", *, check_secrets: bool = True) -> None:
        """Take the project's directory; where none is named, it is found at each call."""
        self._project = project
        self._check_secrets = check_secrets
        self._lock = threading.Lock()
        self._open: Memories | None = None
        self._model: tuple[tuple[Any, ...], Provider] | None = None
        self._offered: set[Path | None] = set()
        self._found: Path | None = None  # the last project whose .memory was there

    @contextmanager
    def opened(self, _changed: Changed) -> Iterator[None]:
        """Close at the end what calls have opened."""
        try:
            yield
        finally:
            if self._open is not None:
                self._open.close()

    def noted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a call whose failures are noted in the log."""
        from . import logs, place

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
        from . import config, memories, place

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
                held = memories.Memories(
                    home,
                    project,
                    self._provider(settings),
                    settings,
                    background=True,
                    check_secrets=self._check_secrets,
                )
                self._open = held
        return held

    def _provider(self, settings: Config) -> Provider:
        """Return the model that the settings name, the same as long as they do."""
        from . import logs, model, place

        wanted = (settings.model, settings.path, settings.dimension, settings.device,
                  settings.download)  # fmt: skip
        if self._model is None or self._model[0] != wanted:
            home = place.home()
            noted = partial(logs.record, home, "model")
            made = model.Model(settings, home / model.CACHE, noted=noted)
            self._model = (wanted, made)
        return self._model[1]

    def _gone(self, memories: Memories) -> str:
        """Say that the project is another one than before, as its `.memory` was taken away."""
        if memories.project == self._found or self._project:
            return ""
        now = f"the project is {memories.project}" if memories.project else "no project is active"
        return f"{self._found} is no project any more, as its .memory is gone, and {now}"

    def _offer(self, memories: Memories) -> list[str]:
        """Return sentences about the project: that it is gone; once that it could import."""
        from . import importing

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
                examples=["Prices are in cents until they are shown, since euros lost rounding."],
            ),
        ],
        tags: Annotated[list[str] | None, _Tags] = None,
        priority: Annotated[str | None, _PriorityField] = None,
        category: Annotated[str | None, _CategoryField] = None,
        source: Annotated[str | None, _SourceField] = None,
        scope: Annotated[
            str | None,
            Field(
                description="project, the default where one is active, or global.",
                examples=["global"],
                json_schema_extra={"enum": [*memory.SCOPES, None]},
            ),
        ] = None,
    ) -> Any:
        """Store a memory."""
        from . import answers

        memories = self._memories()
        if str(scope).strip().lower() != "global" and (gone := self._gone(memories)):
            raise InvalidProject(f"scope: {gone}", _AGAIN)
        offer = self._offer(memories)
        stored = memories.store(content, tags or (), priority, category, source or "manual", scope)
        stored.warnings += offer
        return answers.stored(stored)

    def search_memory(
        self,
        query: Annotated[
            str,
            Field(
                description="The question, then eight to ten single words its answer may hold.",
                examples=[
                    "how is authentication done? login oauth token jwt session password sso user",
                    "which tests do we run? pytest unittest ci suite jest coverage mocha check",
                ],
            ),
        ],
        limit: Annotated[int | None, _Hits] = None,
        filters: Annotated[Wanted | None, _FiltersField] = None,
        context: Annotated[
            str,
            Field(
                description="What it is for, which says how many are given where no limit is: "
                "explicit 10 (unless the settings say otherwise), session_start 8, auto_trigger 5.",
                examples=["explicit", "auto_trigger"],
                json_schema_extra={"enum": list(LIMITS)},
            ),
        ] = "explicit",
    ) -> Any:
        """Find memories."""
        from . import answers

        memories = self._memories()
        found = memories.search(query, limit, _filters(filters), context)
        found.warnings += self._offer(memories)
        return answers.found(found)

    def list_memories(
        self,
        filters: Annotated[Wanted | None, _FiltersField] = None,
        sort_by: Annotated[
            str,
            Field(
                description="The highest first, then the newest.",
                examples=["priority"],
                json_schema_extra={"enum": list(SORTS)},
            ),
        ] = "created_at",
        limit: Annotated[int, _Listed] = 20,
        cursor: Annotated[str | None, _Cursor] = None,
    ) -> Any:
        """List memories."""
        from . import answers

        memories = self._memories()
        page = memories.list(_filters(filters), sort_by, limit, cursor)
        page.warnings += self._offer(memories)
        return answers.listed(page)

    def delete_memory(
        self,
        memory_id: Annotated[
            str | None, Field(description="The memory's id.", examples=["project:12"])
        ] = None,
        content_hash: Annotated[
            str | None, Field(description="Or its content_hash.", examples=["0f3c…"])
        ] = None,
    ) -> Any:
        """Delete a memory."""
        return {"success": True, "deleted": self._memories().delete(memory_id, content_hash)}

    def update_memory(
        self,
        memory_id: Id,
        updated_content: Annotated[
            str | None,
            Field(description="Another text.", examples=["Prices are in tenths of a cent."]),
        ] = None,
        tags: Annotated[list[str] | None, _Tags] = None,
        priority: Annotated[str | None, _PriorityField] = None,
        category: Annotated[
            str | None,
            Field(
                description="A word for its kind; empty text takes it away.", examples=["decision"]
            ),
        ] = None,
        source: Annotated[str | None, _SourceField] = None,
        used: Annotated[
            bool, Field(strict=True, description="That it has helped.", examples=[True])
        ] = False,
        context: Annotated[
            str | None,
            Field(description="What it has helped with.", examples=["rounding invoices"]),
        ] = None,
    ) -> Any:
        """Change a memory."""
        from . import answers

        return answers.updated(
            self._memories().update(
                memory_id, updated_content, tags, priority, category, source,
                used=used, context=context,
            )
        )  # fmt: skip

    def deduplicate_memories(
        self,
        similarity_threshold: Annotated[
            float,
            Field(
                strict=True, description="The cosine from which on two resemble.", examples=[0.9]
            ),
        ] = 0.95,
        auto_merge: Annotated[
            bool,
            Field(
                strict=True,
                description="Merge what is equal but for case and white space.",
                examples=[True],
            ),
        ] = False,
        merge: Annotated[
            list[str] | None,
            Field(
                description="Merge exactly these, which were looked at.",
                examples=[["project:3", "project:8"]],
            ),
        ] = None,
        cursor: Annotated[str | None, _Cursor] = None,
    ) -> Any:
        """Find what resembles, and merge what is named."""
        from . import answers, duplicates

        duplicates.check_threshold(similarity_threshold)  # before anything is merged
        begun = duplicates.after(cursor, similarity_threshold)
        memories = self._memories()
        merged = [memories.merge(merge)] if merge is not None else []
        if auto_merge:
            merged += memories.merge_equal()
        groups, warnings = memories.duplicates(similarity_threshold)
        shown, next_cursor = duplicates.page(groups, begun, similarity_threshold)
        return {
            "success": True,
            "groups": [answers.group(each) for each in shown],
            "merged": [answers.whole(each) for each in merged],
            "next_cursor": next_cursor,
            "warnings": warnings,
        }

    def import_markdown_memories(
        self,
        file_paths: Annotated[
            list[str] | None,
            Field(
                description="Files or directories of the project; what a scan finds (MEMORY.md, "
                "NOTES.md, ADR-*.md, .claude/*.md) where none are given.",
                examples=[["NOTES.md", "docs/adr"]],
            ),
        ] = None,
        confirm_import: Annotated[
            bool,
            Field(
                strict=True,
                description="Store what a preview has shown as new.",
                examples=[False],
            ),
        ] = False,
    ) -> Any:
        """Show or take over what markdown files hold."""
        from . import answers, importing

        memories = self._memories()
        if gone := self._gone(memories):
            raise InvalidProject(f"file_paths: {gone}", _AGAIN)
        if confirm_import:
            return answers.imported(importing.run(memories, file_paths))
        return answers.previewed(importing.preview(memories, file_paths))

    def migrate_embeddings(
        self,
        limit: Annotated[int, _Limit] = 256,
    ) -> Any:
        """Make vectors anew."""
        memories = self._memories()
        done = left = 0
        warnings: list[str] = []
        for step in memories.embed(outdated=True, wait=30.0, told=warnings):
            done, left = step
            if done >= limit:
                break
        finished = left == 0
        return {
            "success": True, "done": done, "left": left, "finished": finished, "warnings": warnings
        }  # fmt: skip

    def core(self) -> str:
        """Return the CORE memories."""
        from . import answers, filters

        page = self._page(filters.Filters(priority="CORE"))
        return str(answers.resource("CORE memories", page))

    def high(self) -> str:
        """Return the HIGH memories."""
        from . import answers, filters

        page = self._page(filters.Filters(priority="HIGH"))
        return str(answers.resource("HIGH memories", page))

    def of_project(self, project_id: str) -> str:
        """Return a project's memories.

        Raises:
            LookupError: there are none, or it is another project.
        """
        from . import answers, filters

        page = self._page(filters.Filters(project_id=project_id))
        if not page.memories and not page.warnings:
            raise LookupError(project_id)
        return str(answers.resource(f"Memories of {project_id}", page))

    def _page(self, filters: Filters) -> Page:
        return self._memories().list(filters, "priority", MOST_LISTED)


def _filters(given: Wanted | None) -> Filters:
    from . import filters

    held: dict[str, Any] = {**(given or {})}
    span = held.pop("date_range", {})
    found: Filters = filters.Filters(**held, since=span.get("from"), until=span.get("to"))
    return found
