"""The ten tools as agents see them: their schemas and shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, with_config
from typing_extensions import NotRequired, TypedDict

from aiaml_server.toolset import Answer, Toolset
from aiaml_server.toolsets.answering import Failure, as_number, tool
from aiaml_server.toolsets.citations import FORGETFUL, REPOSITORY, TOOLS, answers
from aiaml_server.toolsets.citations import descriptions as words
from aiaml_server.toolsets.citations.config import load
from aiaml_server.toolsets.citations.memories import MOST, Memories, find_root
from aiaml_server.toolsets.citations.model import LINK_TYPES, Citation, Link

_closed = with_config(extra="forbid")  # a key that nobody knows is refused, not dropped


_AtMost = Field(max_length=MOST)  # more are refused before they are looked at
_Texts = Annotated[list[str], _AtMost]
_Number = Annotated[int | None, Field(strict=True, ge=1), BeforeValidator(as_number)]


@_closed
class Cited(TypedDict):
    """A place in the repository that a memory rests on."""

    path: Annotated[
        str,
        Field(
            description="The file, relative to the repository's top; it may name lines or a "
            "definition as well: a.py:20-24, a.py::Shop.price."
        ),
    ]
    line: NotRequired[_Number]
    snippet: NotRequired[Annotated[str | None, Field(description="The line, as it must be.")]]
    before: NotRequired[str | None]
    after: NotRequired[str | None]
    times: NotRequired[_Number]
    nth: NotRequired[_Number]
    within: NotRequired[str | None]


@_closed
class Linked(TypedDict):
    """An edge to another memory."""

    type: Annotated[str, Field(json_schema_extra={"enum": list(LINK_TYPES)})]
    target: Annotated[str, Field(description="The other memory's id.")]


class SummaryShape(Failure, total=False):
    """What a list says of a memory."""

    id: str
    subject: str
    path: str
    tags: list[str]
    created: str | None
    verified: str | None
    confidence: float | None
    days_since_verified: int | None
    overdue: bool


class MemoryResult(SummaryShape, total=False):
    """A memory, whole."""

    content: str
    citations: list[dict[str, Any]]
    links: list[dict[str, Any]]
    score: float
    superseded_by: list[str]
    valid: bool
    stale_citations: list[dict[str, Any]]


class SearchResult(Failure, total=False):
    """What `memory_search` answers."""

    result: list[MemoryResult]


class SaveResult(Failure, total=False):
    """What `memory_save` answers."""

    id: str
    path: str
    created: bool
    warnings: list[str]


class VerifyResult(Failure, total=False):
    """What `memory_verify` answers."""

    id: str
    subject: str
    path: str
    valid: bool
    stale_citations: list[dict[str, Any]]
    citations: list[dict[str, Any]]
    confidence: float | None
    verified: str | None
    updated: bool
    days_since_verified: int | None
    overdue: bool
    leak: dict[str, Any]
    unwritten: str


class ListResult(Failure, total=False):
    """What `memory_list` answers."""

    result: list[SummaryShape]


class GraphResult(Failure, total=False):
    """What `memory_graph_traverse` answers."""

    root: str
    nodes: dict[str, dict[str, Any]]
    edges: list[dict[str, Any]]
    missing: list[str]
    left_out: int


class RelatedResult(Failure, total=False):
    """What `memory_graph_related` answers."""

    result: list[dict[str, Any]]


class DeleteResult(Failure, total=False):
    """What `memory_delete` answers."""

    id: str
    path: str
    deleted: bool
    referenced_by: list[str]


class BatchResult(Failure, total=False):
    """What `memory_batch_verify` answers."""

    valid: bool
    checked: int
    stale: int
    memories: list[VerifyResult]
    unreadable: list[str]


class SyncResult(Failure, total=False):
    """What `memory_sync_index` answers."""

    index: str
    memories: int
    added: int
    removed: int


Id = Annotated[
    str, Field(description="The memory's id.", examples=["mem-prices-are-in-cents-1a2b3c4d"])
]
Tags = Annotated[
    _Texts | None,
    Field(description="Only memories that have all of these tags.", examples=[["api", "billing"]]),
]
RULES = {
    "query": "words or a question, as text",
    "limit": "a whole number from 1, or nothing",
    "verify": "true or false",
    "tags": f"a list of at most {MOST:,} texts, or nothing",
    "paths": f"a list of at most {MOST:,} paths, or nothing",
    "subject": "one line of less than 80 characters, as text, or nothing in an update",
    "content": "markdown, as text, or nothing in an update",
    "citations": f"a list of at most {MOST:,} {{path, line?, snippet?}}, or none; line must be a "
    "whole number from 1",
    "links": f"a list of at most {MOST:,} {{type, target}}, or nothing; type must be one of "
    f"{', '.join(LINK_TYPES)}",
    "id": "a memory's id, as text, or nothing for a new one",
    "memory_id": "a memory's id, as text",
    "memory_ids": f"a list of at most {MOST:,} memories' ids, or nothing for all",
    "update_timestamp": "true or false",
    "drop_citations": "true or false",
    "root_id": "a memory's id, as text",
    "max_depth": "a whole number from 0",
    "link_types": f"a list of some of {', '.join(LINK_TYPES)}, or nothing for all",
    "order": "'bfs' or 'dfs'",
}


def build(values: Mapping[str, Any]) -> Toolset:
    """Return the toolset, from its settings by variable."""
    calls = CitationTools(
        values[REPOSITORY], values[FORGETFUL], check_secrets=values["AIAML_CHECK_SECRETS"]
    )
    reads = {"read_only": True, "idempotent": True}
    save = {"destructive": True, "idempotent": True}
    every = (
        tool(calls.memory_search, words.SEARCH, SearchResult, RULES, **reads),
        tool(calls.memory_save, words.SAVE, SaveResult, RULES, **save),
        tool(calls.memory_get, words.GET, MemoryResult, RULES, **reads),
        tool(calls.memory_verify, words.VERIFY, VerifyResult, RULES, idempotent=True),
        tool(calls.memory_list, words.LIST, ListResult, RULES, **reads),
        tool(calls.memory_graph_traverse, words.TRAVERSE, GraphResult, RULES, **reads),
        tool(calls.memory_graph_related, words.RELATED, RelatedResult, RULES, **reads),
        tool(calls.memory_delete, words.DELETE, DeleteResult, RULES, destructive=True),
        tool(calls.memory_batch_verify, words.BATCH_VERIFY, BatchResult, RULES, idempotent=True),
        tool(calls.memory_sync_index, words.SYNC_INDEX, SyncResult, RULES, idempotent=True),
    )
    tools = tuple(each for each in every if each.name in values[TOOLS])
    links = words.LINKS if "memory_graph_traverse" in values[TOOLS] else words.LINKS_ALONE
    return Toolset(
        instructions=words.INSTRUCTIONS.format(links=links), brief=words.BRIEF, tools=tools
    )


class CitationTools:
    """The ten tools' functions."""

    def __init__(
        self, repository: str = "", forgetful: str = "", *, check_secrets: bool = True
    ) -> None:
        """Take the repository's directory, and the index server that it may name.

        Where no directory is named, it is found at each call.
        """
        self._repository = repository
        self._forgetful = forgetful
        self._check_secrets = check_secrets
        self._open: Memories | None = None

    def _memories(self) -> Memories:
        """Return the repository's memories, as its settings are now."""
        root = find_root(self._repository, by=REPOSITORY)
        if self._open is None or self._open.root != root or self._open.config != load(root):
            self._open = Memories(
                root, forgetful=self._forgetful, check_secrets=self._check_secrets
            )
        return self._open

    def memory_search(
        self,
        query: Annotated[
            str,
            Field(
                description="The question, and behind it eight to ten single words of the memory"
                " that may answer it; it may be empty where paths are given.",
                examples=[
                    "how are prices rounded? cents currency decimal amount invoice total sum shown"
                ],
            ),
        ] = "",
        limit: Annotated[
            int | None,
            Field(
                strict=True,
                description="At most so many; 10 where none is given, unless the repository's "
                "settings say otherwise.",
                examples=[5],
                json_schema_extra={"minimum": 1},
            ),
        ] = None,
        verify: Annotated[
            bool,
            Field(
                strict=True,
                description="Leave out memories with stale citations.",
                examples=[True],
            ),
        ] = False,
        tags: Tags = None,
        paths: Annotated[
            _Texts | None,
            Field(
                description="Only memories that cite one of these files or directories: what is "
                "known of a file, before it is edited.",
                examples=[["shop/prices.py"]],
            ),
        ] = None,
    ) -> Any:
        """Find memories."""
        memories = self._memories()
        result = memories.search(query, limit, verify, tags, paths)
        found, left = answers.bounded(answers.found(memories, result))
        return Answer(found, [*left, *answers.remarks(result)])

    def memory_save(
        self,
        subject: Annotated[
            str | None,
            Field(
                description="What it is about, in one line of less than 80 characters; only an "
                "update may leave it out.",
                examples=["Prices are in cents until they are shown"],
            ),
        ] = None,
        content: Annotated[
            str | None,
            Field(
                description="Markdown: **Fact**: …, **Reasoning**: …, **Action**: …; only an "
                "update may leave it out.",
                examples=[
                    "**Fact**: `price()` returns cents.\n\n**Reasoning**: …\n\n**Action**: …"
                ],
            ),
        ] = None,
        citations: Annotated[
            Annotated[list[Cited], _AtMost] | None,
            Field(
                description="The lines that it rests on; the snippet is filled in.",
                examples=[[{"path": "shop/prices.py", "line": 12}]],
            ),
        ] = None,
        links: Annotated[
            Annotated[list[Linked], _AtMost] | None,
            Field(
                description="Edges to other memories.",
                examples=[[{"type": "supersedes", "target": "mem-prices-are-in-euros-5e6f7a8b"}]],
            ),
        ] = None,
        tags: Annotated[
            _Texts | None, Field(description="Words to find it by.", examples=[["billing"]])
        ] = None,
        id: Annotated[  # noqa: A002 (the specification's name)
            str | None,
            Field(
                description="The memory to update; a new one is made where none is given.",
                examples=["mem-prices-are-in-cents-1a2b3c4d"],
            ),
        ] = None,
        drop_citations: Annotated[
            bool,
            Field(
                strict=True,
                description="Let go of the citations that an update does not give; else it is "
                "refused, and they are named.",
                examples=[True],
            ),
        ] = False,
    ) -> Any:
        """Save a memory."""
        cited = None if citations is None else [Citation(**each) for each in citations]
        linked = None if links is None else [Link(**each) for each in links]
        others = "drop" if drop_citations else "refuse"
        saved = self._memories().save(subject, content, cited, linked, tags, id, others=others)
        return saved._asdict()

    def memory_get(self, memory_id: Id) -> Any:
        """Return a memory."""
        memories = self._memories()
        memory = memories.get(memory_id)
        checked = memories.verify(memory_id, False) if memories.config.on_retrieval else None
        return answers.whole(memories, memory, checked)

    def memory_verify(
        self,
        memory_id: Id,
        update_timestamp: Annotated[
            bool,
            Field(
                strict=True,
                description="Note the time in the file, if all citations are valid.",
                examples=[False],
            ),
        ] = True,
    ) -> Any:
        """Verify a memory."""
        memories = self._memories()
        return answers.verified(memories, memories.verify(memory_id, update_timestamp))

    def memory_list(self, tags: Tags = None) -> Any:
        """List memories."""
        memories = self._memories()
        scan = memories.list(tags)
        listed, left = answers.bounded(
            answers.summary(memories, each) for each in scan.memories.values()
        )
        return Answer(listed, [*left, *answers.unreadable(scan.broken)])

    def memory_graph_traverse(
        self,
        root_id: Id,
        max_depth: Annotated[
            int,
            Field(
                strict=True,
                description="How many links to follow one after another; 5 at most, unless the "
                "repository's settings say otherwise.",
                examples=[2],
                json_schema_extra={"minimum": 0},
            ),
        ] = 3,
        link_types: Annotated[
            _Texts | None,
            Field(description="Only these types of links.", examples=[["supersedes"], ["related"]]),
        ] = None,
        order: Annotated[
            str,
            Field(
                description="bfs: level by level; dfs: each branch to its end first.",
                examples=["bfs", "dfs"],
                json_schema_extra={"enum": ["bfs", "dfs"]},
            ),
        ] = "bfs",
    ) -> Any:
        """Walk along links."""
        memories = self._memories()
        walk = memories.traverse(root_id, max_depth, link_types, order)
        return answers.walked(memories, root_id, walk)

    def memory_graph_related(self, memory_id: Id) -> Any:
        """Return what links to a memory."""
        memories = self._memories()
        edges = memories.related(memory_id)
        if not edges:
            memories.get(memory_id)
        found, left = answers.bounded(answers.related(memories, edges))
        return Answer(found, left)

    def memory_delete(self, memory_id: Id) -> Any:
        """Delete a memory."""
        memories = self._memories()
        edges = memories.delete(memory_id)
        return {
            "id": memory_id,
            "path": memories.store.path(memory_id),
            "deleted": True,
            "referenced_by": sorted({each.source for each in edges})[: answers.MOST_LISTED],
        }

    def memory_batch_verify(
        self,
        memory_ids: Annotated[
            _Texts | None,
            Field(
                description="Only these; all where none are given.",
                examples=[["mem-prices-are-in-cents-1a2b3c4d"]],
            ),
        ] = None,
        update_timestamp: Annotated[
            bool,
            Field(
                strict=True,
                description="Note the time in the files whose citations are all valid.",
                examples=[True],
            ),
        ] = False,
    ) -> Any:
        """Verify many."""
        memories = self._memories()
        results, broken = memories.verify_all(memory_ids, update_timestamp)
        stated, left = answers.bounded(
            answers.verified(memories, each) for each in results if not each.valid
        )
        answer = {
            "valid": not broken and all(each.valid for each in results),
            "checked": len(results),
            "stale": sum(bool(each.stale) for each in results),
            "memories": stated,
            "unreadable": list(broken.values())[: answers.MOST_LISTED],
        }
        return Answer(answer, left)

    def memory_sync_index(self) -> Any:
        """Bring the index up to date."""
        return vars(self._memories().sync_index())
