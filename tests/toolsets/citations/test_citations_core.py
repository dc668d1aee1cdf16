"""The core of `citations`: files, search, verification, graph. On the standard library alone.

It runs under pytest like any other, and once more under a bare Python (`test_citations.py`), so it
may import nothing else.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import unittest
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from unittest import mock

from aiaml_server.files import read_regular
from aiaml_server.toolsets.citations import graph, lock, store, verify
from aiaml_server.toolsets.citations.config import Config, parse
from aiaml_server.toolsets.citations.failures import (
    Busy,
    DiskError,
    InvalidCitation,
    InvalidConfig,
    InvalidInput,
    MalformedMemory,
    NoRepository,
    NotFound,
    ToolError,
)
from aiaml_server.toolsets.citations.frontmatter import read, read_map
from aiaml_server.toolsets.citations.memories import Memories, Saved, find_root
from aiaml_server.toolsets.citations.model import Citation, Link, Memory, memory, new_id
from aiaml_server.toolsets.citations.search import rank
from aiaml_server.toolsets.citations.sources import Sources
from aiaml_server.toolsets.citations.words import sharing, stem, terms

FACT = "**Fact**: Prices are in cents.\n\n**Reasoning**: Rounding.\n\n**Action**: Divide late."
CODE = """\
import math


def price(order):
    return sum(order)  # in cents


def shown(order):
    return f"{price(order) / 100:.2f}"
"""
SPECIFIED = """\
---
id: mem-api-versioning-001
subject: API version must be synchronized between client and server
created: 2026-01-18T10:30:00Z
verified: 2026-01-18T10:30:00Z
confidence: 0.92
citations:
  - path: src/client/constants.ts
    line: 42
    snippet: "export const API_VERSION = 'v2'"
  - path: server/routes/api.ts
    line: 15
    snippet: "router.use('/v2', v2Routes)"
links:
  - type: related
    target: mem-deployment-checklist-003
  - type: supersedes
    target: mem-api-v1-deprecated-012
tags:
  - api
  - versioning
  - client-server
---

**Fact**: Client SDK API_VERSION constant must exactly match server route prefix.

**Reasoning**: Discovered during incident on 2026-01-10.

**Action**: Update both in the same commit.
"""
"""The specification's example, shortened."""


def refused(kind: type[ToolError], call: Callable[[], object]) -> str:
    """Return the sentence that a call is refused with."""
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")


class Repository(unittest.TestCase):
    """A repository with a file of code."""

    def setUp(self) -> None:
        """Make it."""
        place = tempfile.TemporaryDirectory(prefix="aiaml-citations-test-")
        self.addCleanup(place.cleanup)
        self.root = Path(place.name).resolve()
        subprocess.run(["git", "init", "--quiet", self.root], check=True)
        self.write("shop/prices.py", CODE)
        self.memories = Memories(self.root)

    def write(self, path: str, text: str) -> Path:
        """Write a file of the repository."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8"))
        return file

    def cited(self, *given: object) -> tuple[Citation, list[str]]:
        """Save one citation; return it as it is kept, and the warnings."""
        saved = self.save(citations=[Citation(*given)])  # type: ignore[arg-type]
        return self.memories.get(saved.id).citations[0], saved.warnings

    def save(self, subject: str = "Prices are in cents", **given: object) -> Saved:
        """Save a memory."""
        return self.memories.save(subject, FACT, **given)  # type: ignore[arg-type]

    def text(self, saved: Saved) -> str:
        """Return a memory's file."""
        return (self.root / saved.path).read_bytes().decode("utf-8")

    def status(self) -> list[str]:
        """Return what git shows of new and changed files."""
        words = ["git", "-C", str(self.root), "status", "--porcelain", "--untracked-files=all"]
        done = subprocess.run(words, capture_output=True, check=True, text=True)
        return [line[3:] for line in done.stdout.splitlines()]


class TestReading(unittest.TestCase):
    """The YAML that people write."""

    def test_the_specified_file_is_read(self) -> None:
        """Every key of it."""
        found = memory(read(SPECIFIED), "mem-api-versioning-001")
        assert found.subject == "API version must be synchronized between client and server"
        assert (found.created, found.verified) == ("2026-01-18T10:30:00Z",) * 2
        assert found.confidence == 0.92
        assert found.citations == (
            Citation("src/client/constants.ts", 42, "export const API_VERSION = 'v2'"),
            Citation("server/routes/api.ts", 15, "router.use('/v2', v2Routes)"),
        )
        assert found.links[1] == Link("supersedes", "mem-api-v1-deprecated-012")
        assert found.tags == ("api", "versioning", "client-server")
        assert found.content.startswith("**Fact**: Client SDK")
        assert found.content.endswith("same commit.")

    def test_values_are_read(self) -> None:
        """Scalars of three kinds, maps and lists in both ways, comments, empty values."""
        found = read_map(
            "plain: some text # a comment\n"
            "# a comment\n"
            "single: 'it''s' # 'x'\n"
            'double: "a\\tb\\u00e9\\\\ \\U0001F600 \\ud83d\\ude00 #"\n'
            '"quoted key": 1\n'
            "url: http://example.org/#x:y\n"
            "numbers: [1, -2, 3.5, 007x, '4']\n"
            "truths: [true, No, null, ~, on]\n"
            "time: 2026-01-18T10:30:00Z\n"
            "map: {a: b, c: [d, {e: f}], }\n"
            "empty:\n"
            "list:\n"
            "- one\n"
            "-   two: 2\n"
            "    three: 3\n"
            "-\n"
            "  four: 4\n"
            "below:\n"
            "    deep:\n"
            "      - x\n\n"
        )
        assert found.value == {
            "plain": "some text",
            "single": "it's",
            "double": "a\tbé\\ 😀 😀 #",
            "quoted key": 1,
            "url": "http://example.org/#x:y",
            "numbers": [1, -2, 3.5, "007x", "4"],
            "truths": [True, False, None, None, True],
            "time": "2026-01-18T10:30:00Z",
            "map": {"a": "b", "c": ["d", {"e": "f"}]},
            "empty": None,
            "list": ["one", {"two": 2, "three": 3}, {"four": 4}],
            "below": {"deep": ["x"]},
        }

    def test_every_value_is_where_it_says(self) -> None:
        """The text between a scalar's offsets is what was written."""
        text = "---\na: one # x\nb:\n  - c: 'two'\n    d: \"three\"\ne: [four, 5]\n---\n"
        root = read(text).root
        item = root.entries["b"].node.items[0].node
        nodes = (root.entries["a"].node, item.entries["c"].node, item.entries["d"].node)
        assert [text[each.start : each.end] for each in nodes] == ["one", "'two'", '"three"']
        five = root.entries["e"].node.items[1].node
        assert text[five.start : five.end] == "5" and five.line == 6
        assert text[root.entries["b"].start : root.entries["b"].end].startswith("b:\n")

    def test_what_it_does_not_know_is_refused_with_the_line(self) -> None:
        """Where PyYAML is not there, with what to do."""
        unknown = {
            "a: |\n  text": "line 1",
            "a: 1\nb: >\n  text": "line 2",
            "a: one\n  two": "line 2",
            "a: &x 1": "line 1",
            "a: 1\nb: *x": "line 2",
            "a: !!str 1": "line 1",
            "a:\n\t- x": "line 2",
            "a: 'not closed": "line 1",
            'a: "\\q"': "line 1",
            'a: "\\UFFFFFFFF"': "line 1",
            "a: [1, 2": "line 1",
            "a: [1\n  , 2]": "line 1",
            "a: {b}": "line 1",
            "a: 'x' y": "line 1",
            "? a\n: b": "line 1",
            "- - a": "line 1",
            "  a: 1\nb: 2": "line 2",
            "a: 1\n  b: 2": "line 2",
            "a: 012": "line 1",
            "a: 0x1F": "line 1",
            "a: 1_000": "line 1",
            "a: 1:30": "line 1",
            "a: .inf": "line 1",
            "a: =": "line 1",
            "yes: 1": "line 1",
            "<<: {a: 1}": "line 1",
            "a: b: c": "line 1",
            "a: @x": "line 1",
            "a: - x": "line 1",
            "a: x\u2028y": "line 1",
            "a: x\x07": "line 1",
            "a: x\rb: y": "line 1",
            "just text": "line 1",
        }
        with mock.patch.dict(sys.modules, {"yaml": None}):
            for text, line in unknown.items():
                sentence = refused(MalformedMemory, partial(read_map, text))
                assert line in sentence and "PyYAML" in sentence, (text, sentence)
            for text in ("a: 1\na: 2", "- a", "---"):
                refused(MalformedMemory, partial(read_map, text))

    def test_values_that_are_nested_too_deeply_are_named(self) -> None:
        """One file in a pull request must not end the verification of all."""
        for nested in ("[" * 50_000, "{" * 50_000, "\n" + "- " * 50_000, "{a: " * 50_000):
            with mock.patch.dict(sys.modules, {"yaml": None}):
                refused(MalformedMemory, partial(read, f"---\nid: {nested}\n---\n"))
            refused(MalformedMemory, partial(read, f"---\nid: {nested}\n---\n"))

    def test_a_number_that_is_too_long_is_named(self) -> None:
        """With its line: no number that Python refuses to read or to write gets any further."""
        long = "9" * 5_000
        for written in (long, f"-{long}", f"[1, {long}]", f"{{b: {long}}}", "0x" + "f" * 5_000):
            sentence = refused(MalformedMemory, partial(read_map, f"a: 1\nb: {written}\n"))
            assert "line 2 has" in sentence and "sys." not in sentence and len(sentence) < 300
        sentence = refused(MalformedMemory, partial(read_map, f"a: 1\n{long}: 1\n"))
        assert "line 2 has" in sentence
        mixed = "9:" * 2_000
        refused(MalformedMemory, partial(read_map, f"a: 1\nb: {mixed}9.5\n"))

    def test_frontmatter_is_found(self) -> None:
        """Between its lines; behind a byte order mark, with any line ends, or empty."""
        assert read("\ufeff---\r\na: 1\r\n---\r\n\r\ntext\r\n").root.value == {"a": 1}
        assert read("---\n---\ntext").root.value == {}
        assert read("---\na: 1\n...\n").root.value == {"a": 1}
        assert "line 1" in refused(MalformedMemory, lambda: read("text"))
        assert "closed" in refused(MalformedMemory, lambda: read("---\na: 1\n"))

    def test_what_is_no_memory_is_said_with_the_line(self) -> None:
        """Each key has its rule."""
        head = "---\nid: mem-a\nsubject: s\n"
        for stamp in (
            "2026-01-18",
            "2026-01-18T10:30:00.1+02:00",
            "2026-01-18 10:30:00.123456789Z",
        ):
            assert memory(read(f"{head}created: {stamp}\n---\n"), "mem-a").created == stamp
        for line, part in {
            "confidence: 2": "line 4: confidence",
            "confidence: true": "line 4: confidence",
            "confidence: high": "line 4: confidence",
            "created: yesterday": "line 4: created",
            "tags: api": "line 4: tags",
            "tags:\n  - [a]": "line 5",
            "citations: a.py": "line 4: citations",
            "citations:\n  - a.py": "line 5",
            "citations:\n  - line: 3": "line 5: there is no path",
            "citations:\n  - path: a.py\n    line: 0": "line 6: line",
            "citations:\n  - path: a.py\n    line: x": "line 6: line",
            "citations:\n  - path: a.py\n    line: 9999999999": "line 6: line",
            "links:\n  - type: likes\n    target: mem-b": "line 5: type is 'likes'",
            "links:\n  - type: related": "line 5: there is no target",
        }.items():
            text = f"{head}{line}\n---\n"
            call = partial(memory, read(text), "mem-a")
            sentence = refused(MalformedMemory, call)
            assert part in sentence, (line, sentence)
        other = refused(MalformedMemory, lambda: memory(read(f"{head}---\n"), "mem-b"))
        assert "mem-a" in other and "mem-b" in other

    def test_text_stays_as_it_is_written(self) -> None:
        """A subject that looks like a number, a tag that looks like a truth."""
        found = memory(read("---\nid: mem-a\nsubject: 2024\ntags: [on, 1.10]\n---\n"), "mem-a")
        assert (found.subject, found.tags) == ("2024", ("on", "1.10"))


class TestSettings(Repository):
    """`.memory-config.yaml`."""

    def test_the_specified_file_is_the_default(self) -> None:
        """As its section 5.3 has it."""
        text = (
            "storage:\n  directory: memories           # Default\n  file_extension: .md\n"
            "search:\n  default_limit: 10\n  min_keyword_length: 3\n"
            "index:\n  type: null                   # null | chroma | forgetful\n"
            "  chroma:\n    persist_dir: .chroma\n    collection: memories\n"
            "  forgetful:\n    endpoint: http://localhost:8020\n"
            "verification:\n  on_retrieval: false\n  stale_threshold_days: 30\n"
            "graph:\n  max_traversal_depth: 5\n"
        )
        assert parse(text) == Config() == parse("")

    def test_it_is_looked_for_at_the_top_and_then_among_the_memories(self) -> None:
        """The first one counts."""
        self.write("memories/.memory-config.yaml", "search: {default_limit: 3}")
        assert Memories(self.root).config.limit == 3
        self.write(".memory-config.yaml", "search:\n  default_limit: 4\n")
        assert Memories(self.root).config.limit == 4

    def test_each_setting_does_what_it_says(self) -> None:
        """The directory, the ending, the limit, the shortest word, the depth."""
        self.write(
            ".memory-config.yaml",
            "storage: {directory: docs/memories, file_extension: .markdown}\n"
            "search: {default_limit: 1, min_keyword_length: 6}\n"
            "graph: {max_traversal_depth: 1}\n",
        )
        memories = Memories(self.root)
        first = memories.save("One", FACT)
        second = memories.save("Two", FACT, links=[Link("related", first.id)])
        third = memories.save("Three", FACT, links=[Link("related", second.id)])
        assert first.path == f"docs/memories/{first.id}.markdown"
        assert (self.root / first.path).is_file()
        assert len(memories.search("prices rounding").hits) == 1
        assert memories.search("cents").hits == []
        assert list(memories.traverse(third.id).nodes) == [third.id, second.id]

    def test_what_is_wrong_is_said(self) -> None:
        """The line, the key, and what would be right; an unknown key with the nearest."""
        for text, parts in {
            "storage: {directory: ../x}": ("line 1", "storage.directory", "below"),
            "storage: {directory: /x}": ("storage.directory",),
            "storage: {directory: .git}": ("storage.directory",),
            "storage: {directory: .github/workflows}": ("storage.directory", "not hidden"),
            "storage: {directory: docs/.x}": ("storage.directory", "not hidden"),
            "index: {chroma: {persist_dir: .vscode}}": ("index.chroma.persist_dir", "not hidden"),
            "storage: {file_extension: md}": ("storage.file_extension", ".md"),
            "storage: {file_extension: .yml}": ("storage.file_extension", ".md or .markdown"),
            "search:\n  default_limit: 0": ("line 2", "search.default_limit", "from 1"),
            "search: {default_limit: true}": ("search.default_limit",),
            "search: {limit: 3}": ("search.limit", "search.default_limit"),
            f"search:\n  default_limit: {'9' * 5_000}": ("line 2", "5,000 digits"),
            "search: [1]": ("search must be a map",),
            "index: {type: redis}": ("index.type", "chroma or forgetful"),
            "index: {forgetful: {endpoint: 'ftp://x'}}": ("index.forgetful.endpoint",),
            "index: {chroma: {collection: a}}": ("index.chroma.collection",),
            "verification: {on_retrieval: maybe}": ("verification.on_retrieval", "true or false"),
            "graph: {max_traversal_depth: -1}": ("graph.max_traversal_depth",),
            "sotrage: {}": ("sotrage", "storage"),
            "- x": ("map",),
        }.items():
            self.write(".memory-config.yaml", text)
            sentence = refused(InvalidConfig, lambda: Memories(self.root))
            assert all(part in sentence for part in (".memory-config.yaml", *parts)), sentence


class TestFiles(Repository):
    """What is written."""

    def test_a_memory_is_a_file_as_specified(self) -> None:
        """Its name, its keys in order, its text; and git shows it at once."""
        saved = self.save(
            citations=[Citation("shop/prices.py", 5)],
            links=[Link("related", "mem-other-12345678")],
            tags=["prices", "2024", "two words", "yes"],
        )
        assert re.fullmatch(r"mem-prices-are-in-cents-[0-9a-f]{8}", saved.id)
        assert saved.created and self.status() == [saved.path, "shop/prices.py"]
        stamp = r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"
        assert re.fullmatch(
            re.escape(
                f"---\nid: {saved.id}\nsubject: Prices are in cents\ncreated: @\nverified: @\n"
                "confidence: 1.0\ncitations:\n  - path: shop/prices.py\n    line: 5\n"
                '    snippet: "return sum(order)  # in cents"\n    before: "def price(order):"\n'
                '    after: "def shown(order):"\n    within: price\nlinks:\n  - type: related\n'
                '    target: mem-other-12345678\ntags:\n  - prices\n  - "2024"\n'
                f'  - two words\n  - "yes"\n---\n\n{FACT}\n'
            ).replace("@", stamp),
            self.text(saved),
        )

    def test_ids_are_deterministic_and_stable(self) -> None:
        """The same subject and content are the same memory; an update keeps the id."""
        first = self.save()
        again = self.save()
        assert (again.id, again.created) == (first.id, False)
        newer = [Link("supersedes", first.id)]
        other = self.memories.save("Prices are in cents", "Another **Fact**: x", links=newer)
        assert other.id != first.id
        self.memories.delete(other.id)
        self.memories.save("Prices are in euros", FACT, id=first.id)
        other = self.save()  # what had this id has become something else
        assert other.created and other.id != first.id
        assert new_id("Naïve café!", "x").startswith("mem-naive-cafe-")
        assert re.fullmatch(r"mem-memory-[0-9a-f]{8}", new_id("日本", "x"))
        assert len(new_id("word " * 30, "x")) < 70

    def test_an_update_touches_no_byte_it_need_not(self) -> None:
        """Order, comments, unknown keys, line ends and the text stay."""
        text = (
            "---\r\n# by hand\r\ntags: [a, b]   # two\r\nsubject:   'Old'  # short\r\n"
            "id: mem-hand-1\r\nowner: ada\r\ncreated: 2020-01-01\r\ncitations:\r\n"
            "- path: shop/prices.py # here\r\n  line: 3\r\n  why: unknown\r\n"
            "  snippet: 'return sum(order) # in cents'\r\n\r\n---\r\nText by hand  \r\n"
        )
        file = self.write("memories/mem-hand-1.md", text)
        self.memories.save("New: it's", "Text by hand  ", id="mem-hand-1")
        expected = text.replace("'Old'", '"New: it\'s"')
        assert file.read_bytes().decode() == expected
        self.memories.save("New: it's", "Text by hand  ", id="mem-hand-1", tags=["a", "c d"])
        expected = expected.replace("[a, b]", "[a, c d]")
        assert file.read_bytes().decode() == expected
        result = self.memories.verify("mem-hand-1", update_timestamp=False, update_lines=True)
        expected = expected.replace("line: 3", "line: 5")
        assert result.updated and file.read_bytes().decode() == expected
        self.memories.save("New: it's", "Other\ntext", id="mem-hand-1")
        expected = expected.replace("Text by hand  \r\n", "\r\nOther\r\ntext\r\n")
        assert file.read_bytes().decode() == expected
        before = file.stat().st_mtime_ns
        self.memories.save("New: it's", "Other\ntext", id="mem-hand-1")
        assert file.stat().st_mtime_ns == before

    def test_one_changed_field_is_one_changed_line(self) -> None:
        """So that two branches merge."""
        saved = self.save(citations=[Citation("shop/prices.py", each) for each in (4, 5, 8)])
        before = self.text(saved).splitlines()
        self.write("shop/prices.py", "\n" + CODE)
        self.memories.verify(saved.id, update_timestamp=False, update_lines=True)
        after = self.text(saved).splitlines()
        assert [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]] == [
            ("    line: 4", "    line: 5"), ("    line: 5", "    line: 6"),
            ("    line: 8", "    line: 9"),
        ]  # fmt: skip

    def test_what_is_not_given_stays(self) -> None:
        """Citations, links, tags, and the time of verification unless the citations change."""
        saved = self.save(citations=[Citation("shop/prices.py", 5)], tags=["x"])
        file = self.root / saved.path
        old = self.text(saved)
        old = re.sub(r"(created|verified): .*", r"\1: 2020-01-01T00:00:00Z", old)
        file.write_bytes(old.encode())
        self.memories.save("Other", FACT, id=saved.id, citations=[Citation("shop/prices.py", 5)])
        assert self.text(saved) == old.replace("Prices are in cents\n", "Other\n", 1)
        self.memories.save("Other", FACT, id=saved.id, citations=[Citation("shop/prices.py", 4)])
        found = self.memories.get(saved.id)
        assert found.verified > "2026" and found.created == "2020-01-01T00:00:00Z"
        self.memories.save("Other", FACT, id=saved.id, citations=[], tags=[])
        found = self.memories.get(saved.id)
        assert (found.citations, found.tags, found.verified, found.confidence) == ((), (), "", None)

    def test_an_id_can_be_given(self) -> None:
        """A new one creates, one that is there updates, and one that is none is refused."""
        assert self.save(id="mem-api-versioning-001").created
        assert not self.save(id="mem-api-versioning-001").created
        for wrong in (
            "x",
            "mem-",
            "mem-../x",
            "mem-a/b",
            "mem-a.",
            "MEM-a",
            "mem-" + "a" * 200,
            "",
        ):
            refused(InvalidInput, partial(self.save, id=wrong))
        assert "case" in refused(InvalidInput, lambda: self.save(id="mem-API-versioning-001"))

    def test_values_that_cannot_be_used_are_refused(self) -> None:
        """And nothing is written."""
        for subject in ("", " ", "x" * 80, "two\nlines", "a\x07", "a\u2028b"):
            refused(InvalidInput, partial(self.save, subject))
        for content in ("", "\n", "\x00", "a\x1b[0m"):
            refused(InvalidInput, partial(self.memories.save, "s", content))
        refused(InvalidInput, lambda: self.save(tags=[""]))
        refused(InvalidInput, lambda: self.save(links=[Link("likes", "mem-a")]))
        refused(InvalidInput, lambda: self.save(links=[Link("related", "../a")]))
        refused(InvalidInput, lambda: self.memories.save("s", "x" * 2_000_000))
        assert self.memories.list().memories == {}

    def test_the_usual_parts_of_a_text_are_asked_for_softly(self) -> None:
        """As a warning."""
        assert self.save().warnings == []
        (warning,) = self.memories.save("s", "**Fact**: only").warnings
        assert warning.endswith("lacks **Reasoning** and **Action**")

    def test_links_that_lead_nowhere_are_named(self) -> None:
        """When they are saved, and when their target goes."""
        first = self.save("First")
        second = self.save("Second", links=[Link("blocks", first.id), Link("related", "mem-gone")])
        assert second.warnings == ["there is no memory mem-gone yet"]
        (edge,) = self.memories.delete(first.id)
        assert edge == (second.id, first.id, "blocks")
        assert not (self.root / first.path).exists()
        refused(NotFound, lambda: self.memories.delete(first.id))
        refused(NotFound, lambda: self.memories.delete("../shop/prices.py"))
        assert (self.root / "shop/prices.py").exists()

    def test_a_file_that_cannot_be_read_is_named_and_left(self) -> None:
        """By every reader; and an update of it is refused."""
        good = self.save()
        bad = self.write("memories/mem-bad.md", "---\nid: mem-bad\n---\n")
        binary = self.write("memories/mem-binary.md", "")
        binary.write_bytes(b"---\nid: \xff\n---\n")
        self.write("memories/mem-.md", "x")
        self.write("memories/index.md", "# For people\n")
        self.write("memories/notes.md", "no memory")
        scan = self.memories.list()
        assert list(scan.memories) == [good.id]
        assert sorted(scan.broken) == [
            "memories/mem-.md", "memories/mem-bad.md", "memories/mem-binary.md"
        ]  # fmt: skip
        assert "memories/mem-bad.md: line 2" in scan.broken["memories/mem-bad.md"]
        assert sorted(self.memories.search("cents").broken) == sorted(scan.broken)
        assert sorted(self.memories.verify_all()[1]) == sorted(scan.broken)
        refused(MalformedMemory, lambda: self.save(id="mem-bad"))
        refused(MalformedMemory, lambda: self.memories.get("mem-binary"))
        assert bad.read_text() == "---\nid: mem-bad\n---\n"

    def test_a_number_that_is_too_long_hides_no_other_memory(self) -> None:
        """Under a key that is not known, or as a line: the file is named, the others are found."""
        good = self.save()
        head = "id: mem-bad\nsubject: Bad\n"
        for more in (f"x: {'9' * 5_000}", f"citations:\n  - path: a.py\n    line: {'9' * 5_000}"):
            self.write("memories/mem-bad.md", f"---\n{head}{more}\n---\n")
            scan = self.memories.list()
            assert list(scan.memories) == [good.id]
            assert "5,000 digits" in scan.broken["memories/mem-bad.md"]
            assert [*self.memories.verify_all()[1]] == ["memories/mem-bad.md"]
            refused(MalformedMemory, lambda: self.memories.get("mem-bad"))

    def test_a_file_that_the_disk_refuses_hides_no_other(self) -> None:
        """It is named, and the others are verified."""
        good, bad = self.save("Good"), self.save("Bad")

        def refusing(path: str, most: int) -> bytes:
            if bad.id in path:
                raise PermissionError(13, "Permission denied")
            return read_regular(path, most)

        with mock.patch.object(store, "read_regular", refusing):
            results, broken = Memories(self.root).verify_all()
        assert [each.memory.id for each in results] == [good.id]
        assert broken == {bad.path: f"{bad.path}: permission denied"}

    def test_a_change_by_hand_is_seen_at_once(self) -> None:
        """By the same object, in the same instant."""
        saved = self.save()
        for word in ("alpha", "gamma"):
            file = self.root / saved.path
            file.write_bytes((self.text(saved).replace("Divide", word)).encode())
            assert word in self.memories.get(saved.id).content
            file.write_bytes((self.text(saved).replace(word, "Divide")).encode())
        (self.root / saved.path).unlink()
        assert self.memories.list().memories == {}

    def test_only_memories_are_in_git_status(self) -> None:
        """After any calls; what a killed writer has left is cleared away, and nothing else."""
        saved = self.save()
        left = self.write("memories/.aiaml-0123456789abcdef.tmp", "half")
        notes = self.write("memories/.notes.md.tmp", "a person's")
        self.memories.verify(saved.id)
        self.memories.search("cents", verify=True)
        self.save("Another")
        assert not left.exists()
        assert notes.read_text() == "a person's"
        notes.unlink()
        other = new_id("Another", FACT)
        assert self.status() == [f"memories/{other}.md", saved.path, "shop/prices.py"]

    def test_eight_threads_lose_nothing(self) -> None:
        """Each with a view of its own, all into one memory's links and many files."""

        def work(number: int) -> None:
            memories = Memories(self.root)
            for each in range(5):
                memories.save(f"Memory {number} {each}", FACT)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        assert len(self.memories.list().memories) == 40

    def test_only_one_writes_at_a_time(self) -> None:
        """Who waits too long is told."""
        self.save()
        held, done = threading.Event(), threading.Event()

        def hold() -> None:
            with lock.alone(self.root / "memories", 1):
                held.set()
                done.wait(10)

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait(10)
        with mock.patch("aiaml_server.toolsets.citations.store.LOCK_SECONDS", 0.05):
            refused(Busy, lambda: self.save("Another"))
        done.set()
        thread.join()
        self.save("Another")

    @unittest.skipIf(sys.platform == "win32", "links need a privilege there")
    def test_the_directory_of_memories_may_not_lead_out(self) -> None:
        """A link in a repository that was cloned."""
        with tempfile.TemporaryDirectory() as outside:
            (self.root / "memories").symlink_to(outside, target_is_directory=True)
            refused(DiskError, lambda: Memories(self.root))
            assert not list(Path(outside).iterdir())

    @unittest.skipIf(sys.platform == "win32", "links need a privilege there")
    def test_a_memory_may_not_be_a_link(self) -> None:
        """It is named, and not followed."""
        with tempfile.TemporaryDirectory() as outside:
            secret = Path(outside) / "secret"
            secret.write_text("---\nid: mem-a\nsubject: s\n---\n")
            (self.root / "memories").mkdir()
            (self.root / "memories" / "mem-a.md").symlink_to(secret)
            assert "link" in self.memories.list().broken["memories/mem-a.md"]


class TestRoot(Repository):
    """Which repository is meant."""

    def test_it_is_given_or_found_upwards(self) -> None:
        """From a directory in it; by git's directory, or the settings."""
        assert find_root(str(self.root)) == self.root
        assert find_root(None, self.root / "shop") == self.root
        with tempfile.TemporaryDirectory() as place:
            (Path(place) / "a").mkdir()
            (Path(place) / ".memory-config.yaml").touch()
            assert find_root(None, Path(place) / "a") == Path(place).resolve()

    def test_else_it_is_a_clear_error(self) -> None:
        """That names what to set."""
        with tempfile.TemporaryDirectory() as place:
            sentence = refused(NoRepository, lambda: find_root(None, Path(place)))
            assert "AIAML_CITATIONS_REPO" in sentence and "--repo" in sentence
        refused(NoRepository, lambda: find_root(str(self.root / "nowhere")))
        refused(NoRepository, lambda: find_root("a\0b"))

    def test_a_directory_that_is_given_is_a_repositorys_top(self) -> None:
        """By git's directory, the settings or the memories; none below is taken for it."""
        below = self.root / "shop"
        assert "top of a repository" in refused(NoRepository, lambda: find_root(str(below)))
        (below / "memories").mkdir()
        assert find_root(str(below)) == below
        (below / "memories").rmdir()
        (below / ".memory-config.yaml").touch()
        assert find_root(str(below)) == below


class TestCitedPaths(Repository):
    """How a path is written down."""

    def test_it_is_the_shortest(self) -> None:
        """And leads no more out than it did."""
        for path in ("./shop//prices.py", "shop/./prices.py", ".//./shop/.//prices.py"):
            saved = self.memories.save(path, FACT, [Citation(path, 5)])
            (cited,) = self.memories.get(saved.id).citations
            assert cited.path == "shop/prices.py", path
        for path in ("//shop/prices.py", "./../prices.py", "shop//..//../prices.py"):
            refused(InvalidCitation, partial(self.memories.save, "x", FACT, [Citation(path, 5)]))


class TestCiting(Repository):
    """What is taken down of a citation."""

    def test_a_line_gets_its_snippet(self) -> None:
        """Without the blanks around."""
        kept, warnings = self.cited("./shop/prices.py", 5)
        assert kept == Citation(
            "shop/prices.py", 5, "return sum(order)  # in cents",
            "def price(order):", "def shown(order):", within="price",
        )  # fmt: skip
        assert warnings == []

    def test_a_snippet_gets_its_line(self) -> None:
        """And a part of a line the rest of it."""
        assert self.cited("shop/prices.py", None, "def shown(order):")[0].line == 8
        kept, warnings = self.cited("shop/prices.py", None, "/ 100")
        assert (kept.line, kept.snippet) == (9, 'return f"{price(order) / 100:.2f}"')
        assert warnings == []
        kept, _ = self.cited("shop/prices.py", 4, "price")
        assert kept.snippet == "def price(order):"

    def test_a_part_of_several_lines_is_the_nearest_whole_one(self) -> None:
        """Which is said; it is not stale from the beginning."""
        kept, (warning,) = self.cited("shop/prices.py", 7, "order):")
        assert kept.snippet == "def shown(order):" and "on line 8, not on line 7" in warning
        kept, (warning,) = self.cited("shop/prices.py", None, "order")
        assert kept.snippet == "def price(order):" and "on lines 4, 5, 8, 9" in warning
        for result in self.memories.verify_all()[0]:
            assert result.valid
        self.write("min.js", "a=1;" * 2000)
        refused(InvalidCitation, lambda: self.cited("min.js", 1, "a=1"))

    def test_a_line_is_kept_as_it_is_read(self) -> None:
        """In files of Windows too; each letter of theirs counts."""
        for encoding in ("cp1252", "utf-16", "utf-8-sig"):
            file = self.root / "a.txt"
            file.write_bytes("Preis… für Bär\r\nTür\r\n".encode(encoding))
            kept, _ = self.cited("a.txt", 1)
            assert kept.snippet == "Preis… für Bär", encoding
            (checked,) = verify.check_all([kept], Sources(self.root))
            assert checked.verdict == "ok"
            file.write_bytes("Preis… für Bür\r\nTür\r\n".encode(encoding))
            (checked,) = verify.check_all([kept], Sources(self.root))
            assert checked.verdict == "changed", encoding

    def test_a_line_that_is_there_twice_keeps_its_neighbours(self) -> None:
        """So that it can be told from the other."""
        self.write("a.py", "def a():\n    return 1\n\ndef b():\n    return 1\n\nend()\n")
        kept, _ = self.cited("a.py", 5)
        assert kept == Citation("a.py", 5, "return 1", "def b():", "end()", 2, 2, "b")
        saved = self.save(citations=[kept])
        told = '    before: "def b():"\n    after: end()\n    times: 2\n    nth: 2\n    within: b\n'
        assert told in self.text(saved)

    def test_a_short_line_keeps_its_neighbours(self) -> None:
        """So that it can be told from its like elsewhere, should the file get another name."""
        kept, _ = self.cited("shop/prices.py", 8)
        assert kept == Citation(
            "shop/prices.py", 8, "def shown(order):",
            "return sum(order) # in cents", 'return f"{price(order) / 100:.2f}"', within="shown",
        )  # fmt: skip

    def test_what_disagrees_is_said(self) -> None:
        """Line and snippet, or a file that is not there."""
        kept, (warning,) = self.cited("shop/prices.py", 2, "def shown(order):")
        assert kept.line == 8 and "on line 8, not on line 2" in warning
        kept, (warning,) = self.cited("shop/prices.py", 5, "return sum(orders)  # in cents")
        assert kept.line == 5 and "likest line is 5" in warning
        assert "no such file" in refused(InvalidCitation, partial(self.cited, "shop/gone.py", 5))
        _, (warning,) = self.cited("shop/prices.py")
        assert "name a line" in warning
        self.write("a.py", "x = 1\n\nx = 1\n")
        _, (warning,) = self.cited("a.py", None, "x = 1")
        assert "lines 1, 3" in warning

    def test_what_cites_nothing_is_refused(self) -> None:
        """A line that is empty or not there, a path out of the repository, none."""
        for given in (
            ("shop/prices.py", 2), ("shop/prices.py", 99), ("", 1), ("/etc/passwd", 1),
            ("../x", 1), ("C:\\x", 1), (".git/config", 1), ("shop/prices.py", 1, "x" * 5000),
        ):  # fmt: skip
            refused(InvalidCitation, partial(self.cited, *given))
        assert self.memories.list().memories == {}


class TestVerifying(Repository):
    """What became of a citation."""

    def verdict(self, citation: Citation) -> verify.Checked:
        """Check one."""
        return verify.check(citation, Sources(self.root))

    def test_each_verdict(self) -> None:
        """With where it stands today, and how sure that is."""
        self.write("two.py", "a = 1\nb = 2\na = 1\n")
        self.write("x/moved.py", "def moved_away():\n")
        self.write("y/other.py", "same_line()\n")
        self.write("z/other.py", "same_line()\n")
        line = "return sum(order)  # in cents"
        prices = "shop/prices.py"
        for given, expected in {
            (prices, 5, line): ("ok", 1.0, prices, 5),
            (prices, 5, "  return  sum(order) # in cents"): ("ok", 1.0, prices, 5),
            (prices, 5, "sum(order)"): ("ok", 1.0, prices, 5),
            (prices, None, line): ("ok", 1.0, prices, 5),
            (prices, 1, line): ("moved", 0.99, prices, 5),
            (prices, 1, "def price(order):\n    " + line): ("moved", 0.99, prices, 4),
            ("old/moved.py", 9, "def moved_away():"): ("renamed", 0.95, "x/moved.py", 1),
            ("two.py", 2, "a = 1"): ("ambiguous", 0.5, "", None),
            ("two.py", 3, "a = 1", "b = 3", "c"): ("ambiguous", 0.5, "", None),
            ("two.py", 1, "a = 1", "b = 2"): ("moved", 0.99, "two.py", 3),
            ("old/other.py", 1, "same_line()"): ("ambiguous", 0.5, "", None),
            (prices, 5, "return sum(orders)"): ("changed", 0.0, "", None),
            (prices, 4, line[3:-3]): ("changed", 0.0, "", None),
            ("gone.py", 1, "def nowhere_to_be_found():"): ("missing", 0.0, "", None),
            ("gone.py", 1, "import math"): ("missing", 0.0, "", None),
            ("gone.md", 1, line): ("missing", 0.0, "", None),
            ("gone.py", 1, line): ("renamed", 0.95, prices, 5),
            ("gone.py",): ("missing", 0.0, "", None),
            (prices, 99): ("missing", 0.0, "", None),
            (prices, 5): ("ok", 0.5, prices, 5),
            (prices,): ("ok", 0.5, prices, None),
            ("../prices.py", 1, line): ("outside", 0.0, "", None),
        }.items():  # fmt: skip
            found = self.verdict(Citation(*given))  # type: ignore[arg-type]
            assert (found.verdict, found.confidence, found.path, found.line) == expected, given
            assert found.valid == (found.verdict in ("ok", "moved", "renamed"))
            assert found.stale == (found.verdict in ("changed", "missing", "outside"))

    def test_the_likest_line_is_shown_and_never_accepted(self) -> None:
        """However like it is."""
        for part, verdict in {
            "sum(order)": "ok",
            "sum(order)  # in cent": "changed",
            "return sum(order)": "changed",
            "def shown": "changed",
        }.items():
            assert self.verdict(Citation("shop/prices.py", 5, part)).verdict == verdict, part
        assert self.verdict(Citation("shop/prices.py", 8, "def shown(order)")).verdict == "ok"
        found = self.verdict(Citation("shop/prices.py", 5, "return sum(order)  # in euros"))
        assert found.verdict == "changed"
        assert found.note == "the likest line is 5: return sum(order) # in cents"

    def test_blanks_count_between_words_alone(self) -> None:
        """As a formatter sets them."""
        self.write("a.py", "first = call( a,b )[1 :]\nin_cents = 1\n")
        for given, verdict in {
            "first=call(a, b)[1:]": "moved",
            "fir st = call(a, b)[1:]": "changed",
            "in cents = 1": "changed",
        }.items():
            assert self.verdict(Citation("a.py", 2, given)).verdict == verdict, given
        self.write("b.py", "def f( a ):\n    return a\n\ndef g( a ):\n    return a\n")
        cited = Citation("b.py", 1, "return a", "def g(a):", None, 2)
        assert self.verdict(cited).line == 5

    def test_a_short_line_of_a_renamed_file_is_known_by_its_neighbours(self) -> None:
        """Where these are nowhere, or the same in several files, nothing is taken for it."""
        self.write("old.py", "import gc\n\ngc.freeze()\nserve_until_the_client_goes()\n")
        kept, _ = self.cited("old.py", 3)
        (self.root / "old.py").unlink()
        self.write("other.py", "gc.freeze()\nelse_where = 1\n")
        assert self.verdict(kept).verdict == "missing"
        self.write("new.py", "import gc\n\ngc.freeze()\nserve_until_the_client_goes()\n")
        found = self.verdict(kept)
        assert (found.verdict, found.path, found.line) == ("renamed", "new.py", 3)
        self.write("copy.py", "import gc\n\ngc.freeze()\nserve_until_the_client_goes()\n")
        assert self.verdict(kept).verdict == "ambiguous"

    def test_what_git_ignores_is_no_new_place(self) -> None:
        """A file that is gone may have left a copy where things are built."""
        kept, _ = self.cited("shop/prices.py", 9)
        (self.root / "shop" / "prices.py").unlink()
        for place in ("build/lib", "made/build"):
            self.write(f"{place}/prices.py", CODE)
        for ignored, path in (
            ("build/\nmade/build", ""), ("/build/\n*.pyc", "made/build/prices.py"),
            ("made/build\n", "build/lib/prices.py"), ("build", ""),
            ("build\n!build\nmade", "build/lib/prices.py"),
        ):  # fmt: skip
            self.write(".gitignore", ignored)
            assert self.verdict(kept).path == path, ignored

    def test_the_one_that_is_left_of_several_is_not_taken_for_another(self) -> None:
        """Where it is short, and neither of its neighbours is there."""
        self.write("a.py", "def a():\n    return None\n\ndef b():\n    return None\n\nend()\n")
        first, _ = self.cited("a.py", 2)
        second, _ = self.cited("a.py", 5)
        self.write("a.py", "def b():\n    return None\n\nend()\n")
        assert self.verdict(first).verdict == "changed"
        assert self.verdict(second).verdict == "moved"

    def test_it_is_answered_as_stated(self) -> None:
        """The same shape for agents and for `--json`."""
        line = "return sum(order)  # in cents"
        assert self.verdict(Citation("shop/prices.py", 1, line)).stated() == {
            "path": "shop/prices.py", "line": 1, "snippet": line, "verdict": "moved",
            "confidence": 0.99, "today": {"path": "shop/prices.py", "line": 5},
        }  # fmt: skip
        assert self.verdict(Citation("gone.md", 1, line)).stated()["today"] is None

    def test_a_memory_is_valid_when_all_its_citations_are(self) -> None:
        """Only then is the time noted."""
        saved = self.save(citations=[Citation("shop/prices.py", 5), Citation("shop/prices.py", 8)])
        file = self.root / saved.path
        old = re.sub(r"verified: .*", "verified: 2020-01-01T00:00:00Z", self.text(saved))
        file.write_bytes(old.encode())
        assert self.memories.is_overdue(self.memories.get(saved.id))
        assert self.memories.age(self.memories.get(saved.id)) > 2000  # type: ignore[operator]
        result = self.memories.verify(saved.id, update_timestamp=False)
        assert result.valid and not result.updated and self.text(saved) == old
        self.write("shop/prices.py", CODE.replace("def shown", "def displayed"))
        result = self.memories.verify(saved.id)
        assert not result.valid and not result.updated and self.text(saved) == old
        assert [each.verdict for each in result.stale] == ["changed"]
        assert result.confidence == 0.5
        self.write("shop/prices.py", "\n" + CODE)
        result = self.memories.verify(saved.id)
        assert result.valid and result.updated and result.confidence == 0.99
        found = self.memories.get(saved.id)
        assert found.verified > "2026" and found.citations[0].line == 5
        assert not self.memories.is_overdue(found)
        result = self.memories.verify(saved.id, update_lines=True)
        assert [each.line for each in self.memories.get(saved.id).citations] == [6, 9]
        assert self.memories.get(saved.id).confidence == 1.0

    def test_an_ambiguous_citation_is_neither(self) -> None:
        """Not stale, and the time is not noted."""
        self.write("a.py", "x = 1\n")
        saved = self.save(citations=[Citation("a.py", 1)])
        self.write("a.py", "y = 2\nx = 1\nz = 3\nx = 1\n")
        before = self.text(saved)
        result = self.memories.verify(saved.id)
        assert (result.valid, result.stale, result.confidence) == (False, [], 0.5)
        assert self.text(saved) == before

    def test_a_memory_without_citations_is_valid_and_unknown(self) -> None:
        """There is nothing to be stale, and nothing to note."""
        saved = self.save()
        result = self.memories.verify(saved.id)
        assert (result.valid, result.confidence, result.updated) == (True, None, False)

    def test_all_are_verified_in_one_go(self) -> None:
        """Or those that are named; a missing one is refused."""
        first = self.save("First", citations=[Citation("shop/prices.py", 5)])
        second = self.save("Second", citations=[Citation("shop/prices.py", 8)])
        self.write("shop/prices.py", CODE.replace("in cents", "in euros"))
        results, broken = self.memories.verify_all()
        assert {each.memory.id: each.valid for each in results} == {
            first.id: False,
            second.id: True,
        }
        assert broken == {}
        (one,), _ = self.memories.verify_all([second.id, second.id])
        assert one.memory.id == second.id
        refused(NotFound, lambda: self.memories.verify_all(["mem-nowhere"]))

    def test_nothing_outside_is_read_and_nothing_hangs(self) -> None:
        """Eight attacks on a path."""
        with tempfile.TemporaryDirectory() as place:
            secret = Path(place) / "secret.txt"
            secret.write_text("secret line here\n")
            attacks = [
                os.path.relpath(secret, self.root), str(secret), f"C:{secret}",
                f"\\\\host\\share{secret}", f"\\\\?\\{secret}", ".git/config", "shop/../../x",
                "a\0b", "shop\\..\\..\\x", ".GIT/config",
            ]  # fmt: skip
            for path in attacks:
                found = self.verdict(Citation(path, 1, "secret line here"))
                assert found.verdict == "outside", path
            if sys.platform != "win32":
                (self.root / "link.txt").symlink_to(secret)
                (self.root / "way").symlink_to(place, target_is_directory=True)
                (self.root / "git").symlink_to(".git", target_is_directory=True)
                for path in ("link.txt", "way/secret.txt", "git/config"):
                    assert self.verdict(Citation(path, 1)).verdict == "outside", path
                found = self.verdict(Citation("gone/secret.txt", 1, "secret line here"))
                assert found.verdict == "missing"
                os.mkfifo(self.root / "pipe")
                (self.root / "loop").symlink_to("loop")
            with (self.root / "huge").open("wb") as huge:
                huge.truncate(1 << 30)
            for path in ("pipe", "loop", "huge", "shop", "x" * 5000, "shop/prices.py/x"):
                assert self.verdict(Citation(path, 1, "x")).verdict == "missing", path

    @unittest.skipIf(sys.platform == "win32", "links need a privilege there")
    def test_a_device_is_not_opened(self) -> None:
        """Through a link it is outside; a link within the repository is followed."""
        (self.root / "zero").symlink_to("/dev/zero")
        (self.root / "near.py").symlink_to("shop/prices.py")
        assert self.verdict(Citation("zero", 1, "x")).verdict == "outside"
        assert self.verdict(Citation("near.py", 1, "import math")).verdict == "ok"


class TestSearching(Repository):
    """What a question finds."""

    def test_the_best_come_first(self) -> None:
        """By shared stems, the rarer the better."""
        one = self.memories.save("API versioning", "**Fact**: Client and server versions match.")
        two = self.memories.save("Deployment", "**Fact**: The server is deployed by hand.")
        self.memories.save("Unrelated", "**Fact**: Tea.")
        hits = self.memories.search("how is the API version of servers matched?").hits
        assert [hit.memory.id for hit in hits] == [one.id, two.id]
        assert 1 >= hits[0].score > hits[1].score > 0
        assert self.memories.search("nothing of this kind").hits == []
        assert self.memories.search("tag-word").hits == []

    def test_names_are_found_by_their_words(self) -> None:
        """Whether humps or underlines part them."""
        saved = self.memories.save("The constant", "`API_VERSION` and `priceInCents`")
        for query in ("api version", "apiVersion", "PRICE cents", "HTTPVersion"):
            assert [hit.memory.id for hit in self.memories.search(query).hits] == [saved.id], query

    def test_limit_and_tags(self) -> None:
        """At most so many; only those that have all the tags, case aside."""
        ids = [self.save(f"Prices {each}", tags=["A", f"t{each}"]).id for each in range(12)]
        assert len(self.memories.search("prices").hits) == 10
        assert len(self.memories.search("prices", limit=12).hits) == 12
        (hit,) = self.memories.search("prices", tags=["a", "T3"]).hits
        assert hit.memory.id == ids[3]
        assert list(self.memories.list(["t4"]).memories) == [ids[4]]
        for wrong in (0, -1, 1001):
            refused(InvalidInput, partial(self.memories.search, "x", wrong))
        refused(InvalidInput, lambda: self.memories.search(" "))

    def test_stale_ones_can_be_left_out(self) -> None:
        """And are named; the next best take their places."""
        cited = [Citation("shop/prices.py", each) for each in (5, 8)]
        stale = self.memories.save("Prices in cents", "x", citations=cited[:1])
        good = self.memories.save("Prices", "x", citations=cited[1:])
        self.write("shop/prices.py", CODE.replace("in cents", "in euros"))
        assert len(self.memories.search("prices cents").hits) == 2
        found = self.memories.search("prices cents", limit=1, verify=True)
        assert [hit.memory.id for hit in found.hits] == [good.id]
        assert [each.memory.id for each in found.left_out] == [stale.id]
        self.write(".memory-config.yaml", "verification: {on_retrieval: true}")
        found = Memories(self.root).search("prices cents")
        assert {key: each.valid for key, each in found.checked.items()} == {
            stale.id: False, good.id: True
        }  # fmt: skip

    def test_a_superseded_memory_comes_behind_its_successor(self) -> None:
        """However well it matches, through chains and circles."""
        old = self.memories.save("Prices prices cents", "prices in cents, rounded")
        new = self.memories.save("Prices", "euros", links=[Link("supersedes", old.id)])
        newer = self.memories.save("Prices today", "x", links=[Link("supersedes", new.id)])
        hits = self.memories.search("prices in cents rounded").hits
        assert [hit.memory.id for hit in hits] == [newer.id, new.id, old.id]
        assert hits[2].superseded_by == (new.id,)
        (hit,) = self.memories.search("rounded").hits
        assert hit.superseded_by == (new.id,)
        self.memories.save("Prices prices cents", "prices in cents, rounded",
                           links=[Link("supersedes", newer.id)])  # fmt: skip
        assert len(self.memories.search("prices in cents rounded").hits) == 3

    def test_equal_scores_have_an_order(self) -> None:
        """The newest first, then by id."""
        every = [Memory(f"mem-{n}", "tea", "x", created=f"2026-01-0{1 + n % 2}") for n in range(6)]
        random.Random(1).shuffle(every)
        assert [each.id for each, _ in rank(every, "tea")] == [
            "mem-1", "mem-3", "mem-5", "mem-0", "mem-2", "mem-4"
        ]  # fmt: skip

    def test_forms_of_a_word_have_one_stem(self) -> None:
        """And different words different ones."""
        for forms in (
            "deploy deploys deployed deploying deployment deployments",
            "relation relations relational", "connect connected connecting connection connections",
            "city cities", "run runs running ran", "write writes writing wrote written",
            "happy happiness", "stop stopped stopping stops",
            "cache caches cached caching", "buy bought buying", "child children",
            "try tries trying tried", "dry dries drying", "die dies dying",
            "depend depends dependable", "validate validates validated validation validator",
        ):  # fmt: skip
            assert len({stem(each) for each in forms.split()}) == 1, forms
        words = ("new", "class", "clash", "test", "text", "bus", "busy")
        assert len({*map(stem, words)}) == 7
        assert terms("The cats are in the API") == ["cat", "api"]
        assert terms("POSTs to URLs of an HTTPServer") == ["post", "url", "http", "server"]
        assert terms("of Is x") == []

    def test_what_is_not_stemmed_has_none_of_the_stems(self) -> None:
        """A text shares with a question what it would if all its words were stemmed."""
        chance = random.Random(5)
        endings = ("", "s", "ies", "ing", "ed", "er", "y", "ation", "ful", "ability", "ll")
        odd = (
            "ran",
            "Trying",
            "HTTPVersion",
            "URLs_of",
            "İstanbul",
            "ΟΔΟΣ",
            "größe",
            "x_y",
            "42nd",
            "日本",
            "ss",
        )

        def word() -> str:
            if chance.random() < 0.1:
                return chance.choice(odd)
            letters = "".join(chance.choices("aeiybcdlnst", k=chance.randint(1, 4)))
            text = letters + chance.choice(endings)
            return chance.choice((text, text.title(), text.upper()))

        shared = 0
        for _ in range(500):
            text = "".join(word() + chance.choice(("", " ", "-", "_")) for _ in range(60))
            asked = {*terms(f"{word()} {word()} {text[: chance.randint(0, 30)]}", 1)}
            expected = asked & {*terms(text, 2)}
            assert sharing(asked, 2)(text) == expected, (asked, text)
            shared += len(expected)
        assert shared > 500


def reached(edges: dict[str, list[Link]], root: str, depth: int, types: set[str]) -> dict[str, int]:
    """Return by brute force what is within a depth: every path is walked."""
    found = {root: 0}

    def walk(here: str, left: int) -> None:
        for link in edges[here] if left else ():
            if link.type in types and link.target in edges:
                distance = depth - left + 1
                found[link.target] = min(distance, found.get(link.target, distance))
                walk(link.target, left - 1)

    walk(root, depth)
    return found


class TestGraph(Repository):
    """Walks along the links."""

    def test_walks_equal_brute_force(self) -> None:
        """On 1,000 random graphs with circles, links to oneself, and to nowhere."""
        chance = random.Random(7)
        for _ in range(1000):
            names = [f"mem-{each}" for each in range(chance.randint(1, 8))]
            edges = {
                name: [
                    Link(chance.choice(("related", "blocks")), chance.choice([*names, "mem-gone"]))
                    for _ in range(chance.randint(0, 3))
                ]
                for name in names
            }
            depth = chance.randint(0, 4)
            types = chance.choice((None, {"related"}, set()))
            every = {"related", "blocks"} if types is None else types
            root = chance.choice(names)
            expected = reached(edges, root, depth, every)
            for order in graph.ORDERS:
                walk = graph.traverse(root, edges.get, depth, types, order)
                assert walk.nodes == expected and next(iter(walk.nodes)) == root
                followed = {
                    (here, link.target, link.type)
                    for here, distance in expected.items()
                    for link in edges[here]
                    if distance < depth and link.type in every
                }
                assert len(walk.edges) == len(followed) and {*walk.edges} == followed
                assert walk.missing == (
                    ["mem-gone"] if "mem-gone" in {e[1] for e in followed} else []
                )
            memories = [Memory(name, "s", "c", links=tuple(links)) for name, links in edges.items()]
            for name in names:
                expected_links = {
                    (a, name, x.type) for a in names for x in edges[a] if x.target == name
                }
                assert {*graph.related(name, memories)} == expected_links
            assert graph.roots(memories) == [
                name for name in sorted(names)
                if not any(x.target == name for a in names if a != name for x in edges[a])
            ]  # fmt: skip

    def test_the_orders_differ(self) -> None:
        """Level by level, or each branch to its end."""
        links = {"a": "bc", "b": "d", "c": "", "d": "e", "e": "a"}
        edges = {name: [Link("related", each) for each in to] for name, to in links.items()}
        assert [*graph.traverse("a", edges.get, 9).nodes] == list("abcde")
        assert [*graph.traverse("a", edges.get, 9, order="dfs").nodes] == list("abdec")

    def test_a_walk_through_files(self) -> None:
        """Types, depth, order; what cannot be read is missing."""
        leaf = self.save("Leaf")
        self.write("memories/mem-bad.md", "no memory")
        links = [Link("blocks", leaf.id), Link("related", "mem-bad"), Link("related", "mem-gone")]
        root = self.save("Root", links=links)
        walk = self.memories.traverse(root.id)
        assert walk.nodes == {root.id: 0, leaf.id: 1} and walk.missing == ["mem-bad", "mem-gone"]
        assert self.memories.traverse(root.id, link_types=["related"]).nodes == {root.id: 0}
        assert self.memories.traverse(root.id, max_depth=0).edges == []
        assert self.memories.find_roots() == [root.id]
        refused(NotFound, lambda: self.memories.traverse("mem-gone"))
        refused(MalformedMemory, lambda: self.memories.traverse("mem-bad"))
        refused(InvalidInput, lambda: self.memories.traverse(root.id, link_types=["likes"]))
        refused(InvalidInput, lambda: self.memories.traverse(root.id, order="random"))
        refused(InvalidInput, lambda: self.memories.traverse(root.id, max_depth=-1))

    def test_pictures(self) -> None:
        """Whatever a subject says, it stays a label."""
        walk = graph.Walk({"mem-a": 0}, [graph.Edge("mem-a", "mem-b", "blocks")], ["mem-b"])
        subjects = {"mem-a": 'say "x"] --> y; <b>'}
        assert graph.mermaid(walk, subjects) == (
            'graph LR\n    m0["say #34;x#34;#93; --#62; y#59; #60;b#62;"]\n'
            '    m1["mem-b #40;missing#41;"]\n    m0 -->|blocks| m1'
        )
        assert graph.dot(walk, subjects) == (
            'digraph memories {\n    "mem-a" [label="say \\"x\\"] --> y; <b>"];\n'
            '    "mem-b" [label="mem-b (missing)"];\n'
            '    "mem-a" -> "mem-b" [label="blocks"];\n}'
        )


if __name__ == "__main__":
    unittest.main()
