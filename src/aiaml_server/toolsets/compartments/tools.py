"""The three tools: for agents over MCP, and as plain functions for any framework."""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from time import monotonic as current_seconds
from typing import Annotated, Any, cast

from pydantic import Field, TypeAdapter, ValidationError, validate_call
from typing_extensions import TypedDict

from aiaml_server.errors import AiamlError, InvalidArguments, ToolError
from aiaml_server.toolset import Answer, OnChange, Prompt, Resource, Toolset, error_answer
from aiaml_server.toolsets.answering import PLAIN, Failure, Few, Whole, tool
from aiaml_server.toolsets.compartments.entries import (
    COMPARTMENTS,
    HIGHEST,
    LOWEST,
    MOST_GIVEN,
    RULES,
)
from aiaml_server.toolsets.compartments.memory import Compartments, twin
from aiaml_server.toolsets.compartments.words import BRIEF, CLEAR, GET, INSTRUCTIONS, SAVE
from aiaml_server.toolsets.failures import shorten
from aiaml_server.toolsets.warning import secret_warning

log = logging.getLogger(__name__)

RUN = "memory://run"

Compartment = Annotated[
    str,
    Field(
        description="run: this run alone; session: every run and sub-agent of the session; "
        "plan: the steps of a larger task.",
        examples=list(COMPARTMENTS),
        json_schema_extra={"enum": list(COMPARTMENTS)},
    ),
]
Id = Annotated[str | None, PLAIN, Field(description="An entry's id.", examples=["0a1b2c3d"])]
Category = Annotated[
    str | None, PLAIN, Field(description="What kind of thing it is.", examples=["decision"])
]
Tags = Annotated[
    list[str] | None,
    PLAIN,
    Few(MOST_GIVEN),
    Field(description="Words to find it by; to find, all of them.", examples=[["invoice", "euro"]]),
]
Metadata = Annotated[
    dict[str, str] | None,
    PLAIN,
    Few(MOST_GIVEN),
    Field(
        description="Anything else, as texts; to find, all that is given.",
        examples=[{"source": "mail"}],
    ),
]


class Saved(Failure, total=False):
    """What `save_memory` answers."""

    id: str
    created: bool
    warnings: list[str]


class Stored(TypedDict, total=False):
    """One entry."""

    id: str
    content: str
    category: str
    tags: list[str]
    metadata: dict[str, str]
    created_at: str
    updated_at: str
    access_count: int
    priority: int
    expires_at: str


class Words(TypedDict):
    """What there is to look for."""

    categories: list[str]
    tags: list[str]


class Found(Failure, total=False):
    """What `get_memory` answers."""

    entries: list[Stored]
    total: int
    there_are: Words


class Cleared(Failure, total=False):
    """What `clear_memory` answers."""

    cleared: int
    ids: list[str]


class Calls:
    """The tools' functions on one run's memory."""

    def __init__(self, memory: Compartments) -> None:
        self._memory = memory

    def save_memory(
        self,
        compartment: Compartment,
        content: Annotated[
            str | None,
            PLAIN,
            Field(
                description="What to remember, in words that stand by themselves.",
                examples=["The customer wants invoices in euros."],
            ),
        ] = None,
        id: Annotated[  # noqa: A002 (the specification's word)
            str | None,
            PLAIN,
            Field(
                description="To change an entry, or bring back a cleared one: its id. Only what is "
                "given is changed.",
                examples=["0a1b2c3d"],
            ),
        ] = None,
        category: Category = None,
        tags: Tags = None,
        metadata: Metadata = None,
        priority: Annotated[
            int | None,
            Whole(LOWEST, HIGHEST),
            Field(description="Higher is more important; 5 where none is given.", examples=[8]),
        ] = None,
        expires: Annotated[
            str | None,
            PLAIN,
            Field(
                description="When it is forgotten: a date or time, or from now on (m, h, d, w).",
                examples=["2h", "2027-01-31"],
            ),
        ] = None,
    ) -> Saved:
        """Save or change an entry."""
        saved = self._memory.save(
            compartment,
            content or None,
            id=id or None,
            category=category or None,
            tags=tags,
            metadata=metadata,
            priority=priority,
            expires=expires or None,
        )
        answer: Saved = {"id": saved.id, "created": saved.created}
        more = [f"{name}: {value}" for name, value in (metadata or {}).items()]
        texts = (content, category, *(tags or ()), *more)
        warnings = secret_warning(*texts, check=self._memory.check_secrets)
        return {**answer, "warnings": warnings} if warnings else answer

    def get_memory(
        self,
        compartment: Compartment,
        id: Id = None,  # noqa: A002
        category: Category = None,
        tags: Tags = None,
        metadata: Metadata = None,
        query: Annotated[
            str | None,
            PLAIN,
            Field(
                description="Words or a question; what has the rarest of its words comes first.",
                examples=["Which currency are invoices in?"],
            ),
        ] = None,
        limit: Annotated[
            int | None, Whole(1), Field(description="At most so many entries.", examples=[10])
        ] = None,
        offset: Annotated[
            int | None, Whole(0), Field(description="Entries to pass over first.", examples=[0])
        ] = None,
    ) -> Found:
        """Return entries."""
        found = self._memory.get(
            compartment,
            id=id or None,
            category=category or None,
            tags=tags,
            metadata=metadata,
            query=query or None,
            limit=limit,
            offset=offset or 0,
        )
        entries: Any = [each.as_json() for each in found.entries]
        answer: Found = {"entries": entries, "total": found.total}
        categories, words = ([], []) if found.total else self._memory.words(compartment)
        if categories or words:
            answer["there_are"] = {"categories": categories, "tags": words}
        return answer

    def clear_memory(
        self,
        compartment: Compartment,
        id: Id = None,  # noqa: A002
        category: Category = None,
        tags: Tags = None,
    ) -> Cleared:
        """Delete entries."""
        ids = self._memory.clear_ids(compartment, id=id, category=category, tags=tags)
        return {"cleared": len(ids), "ids": ids}


# --- for any framework ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Function:
    """One tool as a plain function.

    Attributes:
        name: what the model calls it by.
        description: what the model reads.
        parameters: the JSON schema of its arguments.
        call: takes the arguments by name; returns a JSON value, also where it fails:
            `{"error", "message"}`.
        acall: the same for asyncio.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    call: Callable[..., dict[str, Any]]
    acall: Callable[..., Awaitable[dict[str, Any]]]


def functions(memory: Compartments) -> list[Function]:
    """Return the tools on one run's memory."""
    calls = Calls(memory)
    described = ((calls.save_memory, SAVE), (calls.get_memory, GET), (calls.clear_memory, CLEAR))
    return [_function(call, words) for call, words in described]


def _function(call: Callable[..., Any], words: str) -> Function:
    checked = validate_call(call)

    def checked_call(**arguments: Any) -> dict[str, Any]:
        try:
            return dict(checked(**arguments))
        except ValidationError as error:
            wrong = sorted({str(each["loc"][0]) for each in error.errors(include_input=False)})
            rules = {shorten(name): f"must be {RULES.get(name, 'left out')}" for name in wrong}
            return dict(error_answer(InvalidArguments(rules)))
        except AiamlError as error:
            return dict(error_answer(error))

    checked_call.__name__ = call.__name__
    checked_call.__doc__ = words
    schema = {**TypeAdapter(cast(Any, call)).json_schema(), "title": call.__name__}
    return Function(call.__name__, words, schema, checked_call, twin(checked_call))


# --- over MCP -------------------------------------------------------------------------------------


def build(values: Mapping[str, Any]) -> Toolset:
    """Return the toolset, from its settings by variable: a server's process is a run."""
    usual = values["AIAML_COMPARTMENT_LIMIT"]
    limits = {
        each: values[f"AIAML_COMPARTMENT_LIMIT_{each.upper()}"] or usual for each in COMPARTMENTS
    }
    told: list[OnChange] = []
    memory = Compartments(
        values["AIAML_COMPARTMENTS_FILE"],
        session=values["AIAML_SESSION"],
        plan_scope=values["AIAML_PLAN_SCOPE"],
        limit=limits,
        changed=lambda: [each(RUN) for each in told],
        check_secrets=values["AIAML_CHECK_SECRETS"],
    )
    calls = Calls(memory)
    idle = 60.0 * (values["AIAML_RUN_MINUTES"] or 0)
    last = current_seconds()
    turn = threading.Lock()

    def begin_where_idle() -> None:
        """Begin another run where nothing was asked for so long that the last one has ended."""
        nonlocal last
        with turn:
            now = current_seconds()
            if idle and now - last >= idle:
                memory.begin_run()
            last = now

    def noting(call: Callable[..., Any]) -> Callable[..., Answer]:
        @wraps(call)
        def called(**arguments: Any) -> Answer:
            begin_where_idle()
            return Answer(call(**arguments), memory.notices())

        return called

    def run_text() -> str:
        begin_where_idle()
        return memory.run_text()

    @contextmanager
    def opened(changed: OnChange) -> Iterator[None]:
        told.append(changed)
        with _logged():  # while it lasts, each call answers so
            memory.open()
        try:
            yield
        finally:
            with _logged():
                memory.close()

    return Toolset(
        instructions=INSTRUCTIONS,
        brief=BRIEF,
        tools=(
            tool(noting(calls.save_memory), SAVE, Saved, RULES),
            tool(noting(calls.get_memory), GET, Found, RULES, read_only=True, idempotent=True),
            tool(
                noting(calls.clear_memory),
                CLEAR,
                Cleared,
                RULES,
                destructive=True,
                idempotent=True,
                allow_empty=("id", "category"),
            ),
        ),
        resources=(
            Resource(
                RUN,
                "run memory",
                "What belongs into each call of this run.",
                run_text,
                subscribable=True,
            ),
        ),
        prompts=(
            Prompt(
                "run_memory",
                "Run memory",
                "What belongs into each call of this run.",
                lambda: run_text() or "The run memory is empty.",
            ),
        ),
        lifespan=opened,
    )


@contextmanager
def _logged() -> Iterator[None]:
    """Say in the log what was refused, and go on."""
    try:
        yield
    except ToolError as error:
        log.error("%s", error)  # noqa: TRY400 (the sentence says it all)
