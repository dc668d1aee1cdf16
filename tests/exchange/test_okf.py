"""Memories and concepts of the Open Knowledge Format become each other without loss."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from test_format import memories

from aiaml_server.cli import main
from aiaml_server.errors import MalformedFile
from aiaml_server.exchange.found import Kept, Note
from aiaml_server.exchange.kinds import detect
from aiaml_server.exchange.okf import concept, concepts, own
from aiaml_server.exchange.plan import Planner
from aiaml_server.exchange.shapes import bundle
from aiaml_server.format.memory import Memory, parse
from aiaml_server.storage.store import Store

PLAIN = Memory(
    "a1b2c3d4",
    "2026-11-21T10:30:00.123456+00:00",
    "claude",
    "marco",
    ("programming", "python"),
    "Marco prefers type hints.",
)


def parts(text: str) -> tuple[dict[str, Any], str]:
    """Read a concept as any YAML parser does."""
    _, head, body = text.split("---\n", 2)
    fields = yaml.load(head, yaml.BaseLoader)  # noqa: S506 (it makes only text, lists, mappings)
    assert isinstance(fields, dict)
    return fields, body


# --- our memories -----------------------------------------------------------------------------


def test_okf_concept_says_what_the_format_has_keys_for() -> None:
    """Its type, tags, who made it and when (§4.1, §5.2)."""
    fields, body = parts(concept(PLAIN))
    assert fields["type"] == "Memory" and fields["tags"] == ["programming", "python"]
    assert fields["generated"] == {"by": "claude/unknown", "at": PLAIN.timestamp}
    assert body.strip() == PLAIN.content


ODD = ("no key at all", "a: 1", "a: 2", "b: [", "\tc")


@pytest.mark.slow
@given(memories)
@example(replace(PLAIN, extra=("type: Metric", "tags: [own]", "sources:", "  - {id: x}")))
@example(replace(PLAIN, extra=("type:",)))
@example(replace(PLAIN, extra=("okf-added: [type]", "type: Memory")))
@example(replace(PLAIN, extra=ODD))
@example(replace(PLAIN, extra=('okf-above: "# Tea\\n\\n"',), content="# Tea\n\nGreen."))
@example(replace(PLAIN, extra=('okf-above: "# Tea\\n\\n"',), content="Edited."))
@example(replace(PLAIN, agent="human:marco", timestamp="whenever", content=" \n"))
def test_okf_memory_comes_back_the_same(memory: Memory) -> None:
    """Whatever a file of ours may hold; and each is a concept: YAML, with a type (§11)."""
    text = concept(memory)
    assert own(parse(text)) == memory
    fields, _ = parts(text.replace("\r", "\n"))
    assert fields["type"].strip()


def test_okf_memory_whose_head_is_full_is_refused_whole() -> None:
    """Sooner than written with a loss."""
    with pytest.raises(MalformedFile, match="without loss"):
        concept(replace(PLAIN, extra=(f"note: {'x' * 65_300}",)))


def test_okf_bundle_has_no_concept_under_a_reserved_name() -> None:
    """`index.md` and `log.md` mean something else at any level (§3.1, §8)."""
    found = [(name, replace(PLAIN, id=name)) for name in ("log.md", "index.md", "a [b].md")]
    with zipfile.ZipFile(io.BytesIO(bundle(found))) as made:
        names = made.namelist()
        index = made.read("index.md").decode()
    assert names == [
        "index.md",
        *("memories/a [b].md", "memories/index (1).md", "memories/log (1).md"),
    ]
    assert 'okf_version: "0.2"' in index and "(memories/a%20%5Bb%5D.md)" in index


def test_okf_export_is_taken_back_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the command line, in an empty bank; a second time it adds nothing."""
    monkeypatch.setenv("AIAML_ENABLE_SYNC", "false")
    monkeypatch.setenv("AIAML_MEMORY_DIR", str(tmp_path / "one"))
    given = [replace(PLAIN, extra=ODD), replace(PLAIN, id="b1b2c3d4", content=" Two\n")]
    for each in given:
        Store(tmp_path / "one").add(each)
    assert main(["export", "--to", str(tmp_path / "all.okf.zip")]) == 0
    monkeypatch.setenv("AIAML_MEMORY_DIR", str(tmp_path / "two"))
    assert main(["import", str(tmp_path / "all.okf.zip"), "--yes"]) == 0
    back = {memory.id: memory for _, memory in Store(tmp_path / "two").scan()}
    assert back == {each.id: each for each in given}
    capsys.readouterr()
    assert main(["import", str(tmp_path / "all.okf.zip"), "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["new"] == []


# --- concepts of others -----------------------------------------------------------------------

ORDERS = """---
type: BigQuery Table
title: Customer Orders
description: One row per completed customer order.
tags: [sales, "two words"]
generated: { by: reference_agent/gemini-2.5-pro, at: 2026-05-28T14:30:00Z }
verified:
  - { by: human:ahormati, at: 2026-06-25T09:00:00Z }
sources:
  - id: ga4
    resource: https://example.com
    usage_count: 5000
stale_after: 2026-09-23T00:00:00Z
---

# Schema

| Column | Type |
"""

Taken = Callable[[str], Memory]


def taken(folder: Path, text: str) -> Memory:
    """Return the memory that a concept becomes."""
    folder.mkdir(exist_ok=True)
    (folder / "orders.md").write_text(text, encoding="utf-8", newline="")
    found = list(concepts(folder))
    [note] = found
    assert isinstance(note, (Note, Kept))
    planner = Planner([], "marco")
    planner.consider(found)
    [addition] = planner.plan.additions
    return addition.memory


def test_okf_concept_becomes_a_memory_that_agents_understand(tmp_path: Path) -> None:
    """With its name above it, who made it and when."""
    memory = taken(tmp_path / "bundle", ORDERS)
    assert memory.content.startswith("# Customer Orders\n\nOne row per completed customer order.")
    assert memory.agent == "reference_agent/gemini-2.5-pro"
    assert memory.timestamp == "2026-05-28T14:30:00.000000+00:00"
    assert {"sales", "bigquery", "table"} <= {*memory.topics}


def test_okf_bundle_is_known_by_its_index(tmp_path: Path) -> None:
    """Its index and its log are no concepts; a file without frontmatter is a note."""
    for name, text in {
        "index.md": '---\nokf_version: "0.2"\n---\n\n# All\n',
        "log.md": "# Log\n",
        "tables/orders.md": ORDERS,
        "tables/index.md": "# Tables\n",
        "plain.md": "Plain.\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert detect(tmp_path) == "okf"
    assert len(list(concepts(tmp_path))) == 2


KEYS = st.sampled_from(["title", "description", "resource", "tags", "status", "sources", "x-y"])
WORDS = st.text("abc é🙂:#-'\"[]{}", min_size=1, max_size=30)
VALUES = st.recursive(
    WORDS | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
BODIES = st.lists(st.sampled_from(["# Schema", "", "text", "- item", "## title", "---"])).map(
    "\n".join
)


@pytest.mark.slow
@given(st.dictionaries(KEYS, VALUES), BODIES, st.booleans())
@example({"title": "Orders", "description": "All of them."}, "# Orders\n\ntext", False)
@example({"id": 7, "user": "ada", "timestamp": "2026-01-01"}, "text", False)
@example({"title": "#"}, "## title", False)
def test_okf_concept_comes_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, fields: dict[str, Any], body: str, flow: bool
) -> None:
    """Every key with its value as it was typed, and the body; a key of ours as `source-KEY`."""
    fields = {"type": "Metric", "x": {"y": {"z": 1}}, **fields}
    style = None if flow else False  # what is innermost between braces, or nothing
    head = yaml.safe_dump(fields, allow_unicode=True, default_flow_style=style, sort_keys=False)
    text = f"---\n{head}---\n\n{body}\n"
    memory = taken(tmp_path_factory.getbasetemp() / "bundle", text)
    again = concept(memory)
    assert own(parse(again)) == memory
    _, made, rest = again.split("---\n", 2)
    ours = {"id", "user", "timestamp"}
    wanted = {f"source-{key}" if key in ours else key: value for key, value in fields.items()}
    found = yaml.safe_load(made)
    assert {key: found.get(key) for key in wanted} == wanted
    assert rest.strip() == body.strip()
