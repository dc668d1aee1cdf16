"""The ten tools of `citations`: what the specification says of each."""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from shop import FACT, make_shop, save, write

from aiaml_server import toolsets
from aiaml_server.errors import NotFound
from aiaml_server.server.arguments import Arguments
from aiaml_server.toolset import Answer
from aiaml_server.toolsets.citations import MANIFEST, MemoryService, service
from aiaml_server.toolsets.citations.errors import (
    InvalidCitation,
    InvalidConfig,
    InvalidInput,
    MalformedMemory,
)
from aiaml_server.toolsets.citations.tools import build
from machine import git
from toolset_contract import Call, Contract

SPECIFIED = (
    "memory_search", "memory_save", "memory_get", "memory_verify", "memory_list",
    "memory_graph_traverse", "memory_graph_related", "memory_delete", "memory_batch_verify",
    "memory_sync_index",
)  # fmt: skip


class TestContract(Contract):
    """What every toolset promises."""

    name = "citations"

    def environ(self, place: Path) -> dict[str, str]:
        """A repository in the test's directory, and no other."""
        if not (place / ".git").exists():
            make_shop(place)
        return {"AIAML_CITATIONS_REPO": str(place)}

    def story(self, call: Call) -> None:
        """Save, find, verify, walk, delete."""
        cited = [{"path": "prices.py", "line": 2}]
        saved = call("memory_save", subject="Prices are in cents", content=FACT, citations=cited)
        assert "error" not in saved, saved
        link = [{"type": "related", "target": saved["id"]}]
        other = call("memory_save", subject="Orders", content=FACT, links=link)["id"]
        (found, *_) = call("memory_search", query="prices", verify=True)
        assert found["id"] == saved["id"] and found["score"] > 0
        assert call("memory_get", memory_id=saved["id"])["content"] == FACT
        assert {saved["id"], other} == {each["id"] for each in call("memory_list")}
        assert call("memory_verify", memory_id=saved["id"])["valid"]
        assert call("memory_batch_verify")["valid"]
        graph = call("memory_graph_traverse", root_id=other, order="dfs")
        assert list(graph["nodes"]) == [other, saved["id"]]
        (related,) = call("memory_graph_related", memory_id=saved["id"])
        assert related == {"id": other, "subject": "Orders", "type": "related"}
        assert call("memory_sync_index")["index"] == "none"
        gone = call("memory_save", subject="Gone", content=FACT)["id"]
        assert call("memory_delete", memory_id=gone)["deleted"]

    @pytest.mark.slow
    def test_two_processes_serve_it_at_once(self, tmp_path: Path) -> None:
        """In one repository; nothing is lost."""
        self.environ(tmp_path)

        def play(number: int) -> None:
            with self.process(tmp_path) as client:
                for each in range(3):
                    subject = f"Memory {number} {each}"
                    assert client.call("memory_save", subject=subject, content=FACT)["created"]

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(play, (1, 2)))
        assert len(MemoryService(tmp_path).store.ids()) == 6


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with a file of code."""
    return make_shop(tmp_path / "shop")


class Tools:
    """The tools by their names, which take arguments as the server passes them on."""

    def __init__(self, shop: Path) -> None:
        settings = MANIFEST.read_settings({"AIAML_CITATIONS_REPO": str(shop)})
        self._tools = {tool.name: tool for tool in build(settings).tools}

    def __getattr__(self, name: str) -> Any:
        tool = self._tools[name]

        def call(*values: Any, **arguments: Any) -> Any:
            given = inspect.signature(tool.call).bind(*values, **arguments).arguments
            return tool.call(**Arguments(tool).read(given))

        return call


@pytest.fixture
def tools(shop: Path) -> Tools:
    """The tools on it."""
    return Tools(shop)


def value(answer: Any) -> Any:
    """Return what a tool answers, without its notes."""
    return answer.value if isinstance(answer, Answer) else answer


def test_ten_tools_of_the_specification_are_served() -> None:
    """With its names, arguments and defaults; each answer's shape is tested by the contract."""
    assert MANIFEST.tools == SPECIFIED
    built = toolsets.manifest("citations")
    assert built.build == "aiaml_server.toolsets.citations.tools:build"
    signatures = {
        "memory_search": {"query", "limit", "verify", "tags"},
        "memory_save": {"subject", "content", "citations", "links", "tags", "id"},
        "memory_verify": {"memory_id", "update_timestamp"},
        "memory_graph_traverse": {"root_id", "max_depth", "link_types"},
    }
    for tool in build(MANIFEST.read_settings({})).tools:
        parameters = inspect.signature(tool.call).parameters
        assert signatures.get(tool.name, set()) <= set(parameters)


def test_a_memory_is_saved_as_a_markdown_file(shop: Path, tools: Any) -> None:
    """With frontmatter, a stable id, the cited text filled in; git sees it at once."""
    cited = [{"path": "prices.py", "line": 2}, {"path": "prices.py:1-2"}]
    saved = tools.memory_save("Prices are in cents", FACT, cited, None, ["billing", "billing"])
    assert saved["created"] and not saved["warnings"]
    assert saved["id"].startswith("mem-prices-are-in-cents-")
    again = MemoryService(make_shop(shop.parent / "other")).save("Prices are in cents", FACT)
    assert again["id"] == saved["id"]
    text = (shop / saved["path"]).read_text("utf-8")
    assert f"\nid: {saved['id']}\nsubject: Prices are in cents\ncreated: 2" in text
    assert text.endswith(f"\n---\n\n{FACT}\n")
    memory = tools.memory_get(saved["id"])
    assert memory["tags"] == ["billing"] and memory["confidence"] == 1.0
    assert memory["created"] and memory["verified"] and not memory["overdue"]
    first, second = memory["citations"]
    assert first["snippet"] == "return sum(order)  # in cents" and second["line"] == 1
    assert second["snippet"] == "def price(order):\n    return sum(order)  # in cents"
    assert saved["path"] in git(shop, "status", "--porcelain", "--untracked-files=all")


def test_a_memory_is_never_verified_before_it_is_created(
    tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though a second may begin between checking its citations and writing its file."""
    times = (f"2026-01-18T10:30:{second:02}Z" for second in range(60))
    monkeypatch.setattr(service, "current_time", lambda: next(times))
    cited = [{"path": "prices.py", "line": 2}]
    memory_id = tools.memory_save("Prices are in cents", FACT, cited)["id"]
    memory = tools.memory_get(memory_id)
    assert memory["created"] <= memory["verified"]


def test_an_update_keeps_what_is_not_given(shop: Path, tools: Any) -> None:
    """Given citations replace all, and the warnings name what went."""
    memory_id = save(shop, "prices.py:1")
    before = tools.memory_get(memory_id)
    updated = tools.memory_save(tags=["money"], id=memory_id)
    assert not updated["created"]
    after = tools.memory_get(memory_id)
    assert after == {**before, "tags": ["money"]}
    answer = tools.memory_save(citations=[{"path": "prices.py", "line": 2}], id=memory_id)
    assert answer["warnings"] == ["prices.py:1 is no longer cited"]
    assert [each["line"] for each in tools.memory_get(memory_id)["citations"]] == [2]


def test_what_is_odd_is_warned_about(tools: Any) -> None:
    """A missing part, a link to nothing, a snippet on another line, a whole file, a secret."""
    token = "ghp_" + "q7Rk2ZmX9bLw" + "T4vN8cHs6YpJ" + "3dGf5QaEu1Wo"
    cited = [{"path": "prices.py", "line": 1, "snippet": "sum(order)"}, {"path": "prices.py"}]
    linked = [{"type": "blocks", "target": "mem-nothing"}]
    warnings = tools.memory_save("Odd", f"**Fact**: {token}", cited, linked)["warnings"]
    for part in ("**Action**", "mem-nothing", "line 2, not 1", "a whole file is cited", "seems to"):
        assert any(part in warning for warning in warnings), part
    assert token not in str(warnings)


def test_what_cannot_be_used_is_refused(shop: Path, tools: Any) -> None:
    """With a sentence that says what would be right; nothing is written."""
    write(shop, "binary.py", "a\0b\n")
    git(shop, "add", "--all")
    near = [{"path": "prices.py", "snippet": "sum(orders)  # in cents"}]
    for error, part, arguments in (
        (InvalidInput, "1 to 79", ("x" * 80, FACT)),
        (InvalidInput, "one line", ("a\nb", FACT)),
        (InvalidInput, "control character", ("a", "b\x07")),
        (InvalidInput, "empty", ("a", " \n")),
        (InvalidInput, "needed", ("a", None)),
        (InvalidInput, "needed", (None, None, None, None, ["t"], "mem-none")),
        (NotFound, "ids look like", ("a", FACT, None, None, None, "../mem-x")),
        (InvalidCitation, "did you mean 'prices.py'", ("a", FACT, [{"path": "price.py"}])),
        (InvalidCitation, "last line is 2", ("a", FACT, [{"path": "prices.py", "line": 9}])),
        (InvalidCitation, "out of", ("a", FACT, [{"path": "../x", "line": 1}])),
        (InvalidCitation, "not a text", ("a", FACT, [{"path": "binary.py", "line": 1}])),
        (InvalidCitation, "closest line is 2", ("a", FACT, near)),
    ):  # fmt: skip
        with pytest.raises(error, match=part):
            tools.memory_save(*arguments)
    assert not (shop / "memories").exists() or not list((shop / "memories").glob("*.md"))


def test_a_flag_of_tag_characters_is_kept(tools: Any) -> None:
    """The emoji of Wales, in a subject, a content and a tag; shown as it is."""
    wales = "\U0001f3f4\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"
    saved = tools.memory_save(f"Prices in {wales}", f"{FACT} {wales}", None, None, [wales])
    memory = tools.memory_get(saved["id"])
    assert memory["subject"].endswith(wales) and memory["content"].endswith(wales)
    assert memory["tags"] == [wales]


def test_search_ranks_filters_and_verifies(shop: Path, tools: Any) -> None:
    """By words, tags and cited files; stale memories are left out and named."""
    write(shop, "lib/tea.py", "pot = 1\ncup = 2\n")
    prices = save(shop, "prices.py:2")
    cited = [{"path": "lib/tea.py", "line": 1}]
    text = "**Fact**: Warm it.\n\n**Reasoning**: Taste, not cents.\n\n**Action**: Pour."
    tea = tools.memory_save("The pot comes first", text, cited, None, ["Kitchen"])["id"]
    found = value(tools.memory_search("how are prices rounded"))
    assert found[0]["id"] == prices
    assert 0 < found[0]["score"] <= 1 and found[0]["citations"] and found[0]["content"] == FACT
    assert [each["id"] for each in value(tools.memory_search("cents", tags=["kitchen"]))] == [tea]
    assert [each["id"] for each in value(tools.memory_search(paths=["lib"]))] == [tea]
    assert len(value(tools.memory_search("prices pot", limit=1))) == 1
    write(shop, "prices.py", "gone\n")
    answer = tools.memory_search("how are prices rounded", verify=True)
    assert (
        prices not in str(answer.value)
        and f"{prices} (Prices are in cents: prices.py:2" in answer.notes[0]
    )
    newer = [{"type": "supersedes", "target": tea}]
    new = tools.memory_save("The pot comes last", FACT, None, newer)["id"]
    newer_by = {each["id"]: each["superseded_by"] for each in value(tools.memory_search("pot"))}
    assert newer_by == {tea: [new], new: []}
    with pytest.raises(InvalidInput):
        tools.memory_search()


def test_a_list_that_is_too_long_is_cut_and_says_so(shop: Path, tools: Any) -> None:
    """A host would refuse it, or fill the model with it; a single memory comes whole."""
    for number in range(3):
        tools.memory_save(f"Prices {number}", "cents " * 15_000)
    (shop / "memories/mem-broken.md").touch()
    answer = tools.memory_search("cents")
    assert len(answer.value) == 2 and "Only 2 of 3" in answer.notes[0]
    assert "mem-broken" in answer.notes[1]
    longest = tools.memory_save("Longest", "cents " * 100_000)["id"]
    (found,) = tools.memory_search("longest", limit=1).value
    assert found["id"] == longest and len(found["content"]) == 600_000


def test_verify_writes_the_time_to_the_second(shop: Path, tools: Any) -> None:
    """If all citations hold and it is asked to; never for what is stale."""
    memory_id = save(shop, "prices.py:2")
    file = shop / "memories" / f"{memory_id}.md"
    old = file.read_text("utf-8").replace(
        str(tools.memory_get(memory_id)["verified"]), "2020-01-01T00:00:00Z"
    )
    file.write_text(old, "utf-8")
    assert tools.memory_verify(memory_id, update_timestamp=False)["valid"]
    assert file.read_text("utf-8") == old and tools.memory_get(memory_id)["overdue"]
    first = tools.memory_verify(memory_id)
    assert first["valid"] and first["confidence"] == 1.0
    written = tools.memory_get(memory_id)["verified"]
    assert first["verified"] == written and len(written) == 20 and written[:4] != "2020"
    write(shop, "prices.py", "def price(order):\n    return max(order)\n")
    stale = tools.memory_verify(memory_id)
    assert not stale["valid"] and stale["confidence"] == 0.0
    (citation,) = stale["stale_citations"]
    assert citation["verdict"] == "changed" and "closest line is 2" in citation["note"]
    batch = value(tools.memory_batch_verify())
    assert (batch["valid"], batch["checked"], batch["stale"]) == (False, 1, 1)
    assert tools.memory_get(memory_id)["verified"] == written


def test_batch_verify_names_what_cannot_be_read(shop: Path, tools: Any) -> None:
    """And updates when asked to, with the lines of today."""
    memory_id = save(shop, "prices.py:2")
    write(shop, "prices.py", "\n\ndef price(order):\n    return sum(order)  # in cents\n")
    write(shop, "memories/mem-bad.md", "no frontmatter\n")
    batch = value(tools.memory_batch_verify(update_timestamp=True))
    assert not batch["valid"] and batch["stale"] == 0 and "mem-bad.md" in batch["unreadable"][0]
    assert tools.memory_get(memory_id)["citations"][0]["line"] == 4
    (shop / "memories" / "mem-bad.md").unlink()
    assert tools.memory_batch_verify()["valid"]


def test_the_graph_is_walked(tools: Any) -> None:
    """Breadth or depth first, to a depth, by types; cycles end, and missing targets are named."""
    links = {"a": "bc", "b": "d", "c": "d", "d": "ae", "e": ""}
    for name, targets in links.items():
        linked = [{"type": "related", "target": f"mem-{each}"} for each in targets]
        linked += [{"type": "blocks", "target": "mem-gone"}] if name == "a" else []
        tools.memory_save(name, FACT, None, linked, None, f"mem-{name}")
    for arguments, nodes in (
        ({"max_depth": 5}, "abcde"),
        ({"max_depth": 5, "order": "dfs"}, "abdec"),
        ({"max_depth": 1}, "abc"),
        ({"max_depth": 0}, "a"),
        ({"max_depth": 5, "link_types": ["blocks"]}, "a"),
    ):
        walk = tools.memory_graph_traverse("mem-a", **arguments)
        assert [node.removeprefix("mem-") for node in walk["nodes"]] == list(nodes), arguments
    walk = tools.memory_graph_traverse("mem-a")
    assert walk["nodes"]["mem-d"] == {"subject": "d", "depth": 2}
    assert {"source": "mem-d", "target": "mem-a", "type": "related"} in walk["edges"]
    assert walk["missing"] == ["mem-gone"]
    assert [each["id"] for each in value(tools.memory_graph_related("mem-d"))] == ["mem-b", "mem-c"]
    assert tools.memory_delete("mem-e")["deleted"]
    with pytest.raises(NotFound):
        tools.memory_get("mem-e")


def test_the_configuration_is_obeyed(shop: Path, tools: Any) -> None:
    """Each key of the specification; a wrong one is refused with what would be right."""
    config = (
        "storage:\n  directory: docs/notes  # with a remark\n  file_extension: .markdown\n"
        "search:\n  default_limit: 1\n  min_keyword_length: 9\nindex:\n  type: null\n"
        "  chroma:\n    persist_dir: .chroma\n    collection: memories\n"
        "  forgetful:\n    endpoint: http://localhost:8020\n"
        "verification:\n  on_retrieval: true\n  stale_threshold_days: 2\n"
        "graph:\n  max_traversal_depth: 0\n"
    )
    write(shop, ".memory-config.yaml", config)
    for subject in ("Prices are integers", "Prices are positive"):
        saved = tools.memory_save(subject, FACT, [{"path": "prices.py", "line": 2}])
        assert saved["path"].startswith("docs/notes/") and saved["path"].endswith(".markdown")
    assert len(value(tools.memory_search("reasoning integers positive"))) == 1
    assert value(tools.memory_search("prices")) == []  # the word is too short
    write(shop, "prices.py", "gone\n")
    memory = tools.memory_get(saved["id"])
    assert not memory["valid"] and memory["stale_citations"]
    assert list(tools.memory_graph_traverse(saved["id"])["nodes"]) == [saved["id"]]
    for text, part in (
        ("search: {default_limits: 1}", "not a known key"),
        ("search: {default_limit: 0}", "whole number from 1"),
        ("storage: {directory: ../x}", "a directory"),
        ("storage: {directory: .github/workflows}", "not hidden"),
        ("index: {type: other}", "null, chroma or forgetful"),
        ("index: {forgetful: {endpoint: http://example.org}}", "on this machine"),
        ("- a", "not a YAML map"),
    ):
        write(shop, ".memory-config.yaml", text)
        with pytest.raises(InvalidConfig, match=part):
            tools.memory_list()


def test_a_broken_file_is_named_and_left(shop: Path, tools: Any) -> None:
    """By search and list; it can be deleted, and nothing else writes it."""
    write(shop, "memories/mem-bad.md", "---\nid: mem-other\nsubject: s\n---\nx\n")
    assert "id must be mem-bad" in tools.memory_list().notes[0]
    assert "id must be mem-bad" in tools.memory_search("x").notes[0]
    with pytest.raises(MalformedMemory):
        tools.memory_save("s", FACT, id="mem-bad")
    assert tools.memory_delete("mem-bad")["deleted"]
