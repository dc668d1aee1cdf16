"""The toolset `citations`: what needs more than the standard library to be tested."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from test_cli import run

import strace
from aiaml_server.toolsets.citations.failures import (
    InvalidConfig,
    MalformedMemory,
    NoRepository,
    ToolError,
)
from aiaml_server.toolsets.citations.frontmatter import read
from aiaml_server.toolsets.citations.memories import Memories
from aiaml_server.toolsets.citations.model import (
    LINK_TYPES,
    Citation,
    Link,
    Memory,
    memory,
)
from aiaml_server.toolsets.citations.tools import CitationTools
from aiaml_server.toolsets.citations.usual import read_usual
from aiaml_server.toolsets.citations.writing import block, updated
from client import SERVER, Client
from machine import as_person, git
from paths import ROOT
from printed import inherited
from toolset_contract import Call, Contract

FACT = "**Fact**: Prices are in cents.\n\n**Reasoning**: Rounding.\n\n**Action**: Divide late."


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A git repository with a file of code."""
    path = tmp_path / "shop"
    path.mkdir()
    git(path, "init", "--quiet", "--initial-branch=main")
    (path / "prices.py").write_text("def price(order):\n    return sum(order)  # in cents\n")
    return path


# --- any YAML parser reads the same ---------------------------------------------------------------

HOSTILE = [
    *("", " ", "yes", "No", "null", "~", "1", "1.5", "0x1F", "012", "1_000", "1:30", ".inf", "e1"),
    *(
        "2026-01-01",
        "2026-01-01T00:00:00Z",
        "- x",
        "a: b",
        "a #b",
        "#",
        "'",
        '"',
        "''",
        "\\",
        "\\n",
    ),
    *(
        "[a]",
        "{a: b}",
        "&a",
        "*a",
        "!t",
        "|",
        ">",
        "%",
        "@",
        "`",
        "?",
        ":",
        "-",
        "---",
        "...",
        "<<",
    ),
    *(
        "=",
        "a:",
        "x ",
        " x",
        "\t",
        "a\tb",
        "\n",
        "a\nb",
        "\r",
        "\x85",
        "\u2028",
        "\u2029",
        "\ufeff",
    ),
    *(
        "\ufffe",
        "\x7f",
        "\x80",
        "\x9f",
        "\xa0",
        "\x00",
        "\x1b",
        "\ud800",
        "😀",
        "日本",
        "\u202e",
        "1e5",
    ),
    *("+1", "y", "n", "a word", "two words", "src/a.py", "x.y"),
]


class Hostile:
    """Makes memories that a careless writer or reader of YAML would spoil."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def text(self) -> str:
        """Return a text: one of those that mean something, pieces of them, or any characters."""
        kind = self.chance.randrange(4)
        if kind == 0:
            return self.chance.choice(HOSTILE)
        if kind == 1:
            return "".join(self.chance.choices(HOSTILE, k=self.chance.randint(1, 4)))
        most = (0x7F, 0x2FFF, 0x10FFFF)[self.chance.randrange(3)]
        return "".join(chr(self.chance.randint(0, most)) for _ in range(self.chance.randint(0, 20)))

    def line(self) -> str:
        """Return a text that says something."""
        return next(text for text in iter(self.text, None) if text.strip())

    def some(self, make: Callable[[], Any]) -> tuple[Any, ...]:
        """Return up to three."""
        return tuple(make() for _ in range(self.chance.randint(0, 3)))

    def perhaps(self) -> str | None:
        """Return a line, or None."""
        return self.chance.choice((None, self.line()))

    def citation(self) -> Citation:
        """Return a citation."""
        number = self.chance.choice((None, self.chance.randint(1, 10**9)))
        return Citation(self.line(), number, self.perhaps(), self.perhaps(), self.perhaps())

    def memory(self) -> Memory:
        """Return a memory."""
        return Memory(
            id="mem-a",
            subject=self.line(),
            content="text",
            created=self.chance.choice(("", "2026-01-18T10:30:00Z", "2020-01-01")),
            verified=self.chance.choice(("", "2026-01-18T10:30:00Z")),
            confidence=self.chance.choice((None, self.chance.randint(0, 1000) / 1000)),
            citations=self.some(self.citation),
            links=self.some(lambda: Link(self.chance.choice(LINK_TYPES), self.line())),
            tags=self.some(self.text),
        )


def written(new: Memory) -> str:
    """Return a memory's file."""
    lines = [line for key, value in new.stated().items() for line in block(key, value)]
    return "\n".join(["---", *lines, "---", "", new.content, ""])


class Loader(yaml.SafeLoader):
    """PyYAML's reader, which leaves times as they are."""


Loader.yaml_implicit_resolvers = {
    first: [each for each in found if not each[0].endswith("timestamp")]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def by_pyyaml(text: str) -> Any:
    """Return the frontmatter as PyYAML reads it; times as text."""
    head = text.removeprefix("---\n").partition("\n---\n")[0]
    return yaml.load(head, Loader)  # noqa: S506 (a safe one)


@pytest.mark.slow
def test_what_is_written_is_read_the_same() -> None:
    """10,000 memories, hostile ones too, by our reader and by PyYAML; fewer in a short run."""
    for seed in range(300):
        new = Hostile(seed).memory()
        text = written(new)
        document = read(text)
        assert memory(document, "mem-a") == new, seed
        assert read_usual(text, "mem-a") in (new, None), seed
        assert document.root.value == by_pyyaml(text), seed


@pytest.mark.slow
def test_an_update_gives_what_is_wanted_and_keeps_what_is_not_named() -> None:
    """Whatever was there, and whatever comes; unknown keys stay, and both readers agree."""
    for seed in range(100):
        old, new = Hostile(seed).memory(), Hostile(-1 - seed).memory()
        text = written(old).replace("---\n", "---\nowner: ada # me\n", 1)
        text = text.replace("\n---\n", "\nx: {a: [b]}\n---\n", 1)
        text = text.replace("\n", "\r\n") if seed % 2 else text
        stated = new.stated()
        changed = {key: stated[key] for key in ("subject", "citations", "links", "tags")}
        after = updated(read(text), changed)
        assert memory(read(after), "mem-a") == replace(
            old, subject=new.subject, citations=new.citations, links=new.links, tags=new.tags
        ), seed
        assert read(after).root.value["owner"] == "ada" and "owner: ada # me" in after
        assert read(after).root.value == by_pyyaml(after.replace("\r\n", "\n")), seed
        assert updated(read(after), changed) == after, seed


PIECES = st.sampled_from(
    [
        *("a", "b", "key", ": ", ":", "- ", "-", " ", "  ", "\n", "\n  ", "\n    ", "'", '"', "#"),
        *(
            " #",
            "[",
            "]",
            "{",
            "}",
            ", ",
            ",",
            "1",
            "0x1",
            "true",
            "~",
            "x y",
            "|",
            ">",
            "&a",
            "*a",
        ),
        *("!", "\t", "?", "\\", "\n- ", "\n  - ", "2026-01-01", "@", "\r\n", "é"),
    ]
)


@pytest.mark.slow
@example("-: \na: ")
@given(st.lists(PIECES, max_size=14).map("".join))
def test_what_is_read_is_what_pyyaml_reads(text: str) -> None:
    """Of any text: the same, or PyYAML's own answer, or a refusal; never a guess."""
    from aiaml_server.toolsets.citations import frontmatter, nodes

    try:
        found = frontmatter._Reader(text, 0, len(text), 1).root()
    except (frontmatter.Unknown, MalformedMemory):
        return
    assert isinstance(found, nodes.Node)
    try:
        expected = by_pyyaml(text) or {}
    except yaml.YAMLError:
        assert "\t" in text  # of which PyYAML takes less than YAML does
    else:
        assert found.value == expected


PARTS = st.sampled_from(
    [
        *(
            "a",
            "b",
            "yes",
            "null",
            "no",
            ":",
            ": ",
            "  - ",
            "    ",
            "\n",
            "\n",
            " ",
            "-",
            "[]",
            "1",
            "0",
        ),
        *(
            ".5",
            "01",
            "1:2",
            "2026-01-01T00:00:00Z",
            "2026-01-01",
            '"',
            '"x"',
            "\\",
            "\\n",
            "\\u00e9",
        ),
        *("\\ud83d", "\\x41", "\\/", "#", " #", "'", "é", "\t", "a b", "word.py", "\r"),
    ]
)


USUAL = [
    *("---", "id: mem-a", "subject: a b", "created: 2026-01-01T00:00:00Z", "verified: null"),
    *("confidence: 0.5", "citations:", "  - path: a.py", "    line: 1", '    snippet: "x"'),
    *("links:", "  - type: related", "    target: mem-b", "tags:", "  - a", "source: x", "---", ""),
]


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(1, len(USUAL) - 2), st.lists(PARTS, max_size=3).map("".join))),
    st.booleans(),
)
def test_the_usual_shape_is_read_as_by_the_whole_reader(
    changes: list[tuple[int, str]], behind: bool
) -> None:
    """Whatever is in it: the same memory, or nothing is said."""
    lines = list(USUAL)
    for number, part in changes:
        key, colon, _ = lines[number].partition(": ")
        lines[number] = f"{lines[number]}{part}" if behind else f"{key}{colon}{part}"
    text = "\n".join([*lines, "Text", ""])
    quick = read_usual(text, "mem-a")
    assert quick is None or repr(quick) == repr(memory(read(text), "mem-a"))


SAVE = """
import sys
from aiaml_server.toolsets.citations.memories import Memories
Memories(sys.argv[1]).save("Prices are in cents", "cents")
"""


@strace.needed
def test_the_directory_of_memories_is_as_durable_as_they_are(tmp_path: Path, repo: Path) -> None:
    """Its name is on the disk before the first memory is: a power cut takes neither."""
    log = tmp_path / "log"
    seen = strace.following(log, "-e", "trace=fsync,/^mkdir,/^rename")
    subprocess.run([*seen, sys.executable, "-c", SAVE, str(repo)], check=True)
    calls = strace.calls(log)
    (made,) = [call for call in calls if f'"{repo / "memories"}"' in call.text]
    synced = [call for call in calls if call.name == "fsync" and f"<{repo}>)" in call.text]
    (named,) = [call for call in calls if call.name == "rename" and ".md" in call.text]
    assert any(made.end < call.begin and call.end < named.begin for call in synced)


def test_most_of_what_is_written_has_the_usual_shape() -> None:
    """Else reading it would be slow."""
    assert read_usual("\n".join(USUAL), "mem-a") is not None
    texts = [written(Hostile(seed).memory()) for seed in range(300)]
    assert sum(read_usual(text, "mem-a") is not None for text in texts) > 200


def test_what_only_pyyaml_knows_is_read_and_changed(repo: Path) -> None:
    """Block scalars and anchors: read, and kept where nothing of them is to be changed."""
    text = (
        "---\nid: mem-a\nsubject: >\n  folded\n  text\ncreated: &t 2020-01-01\n"
        "note: |\n  two\n  lines\nverified: *t\ntags:\n  - &x one\n  - *x\nend: 012\n---\n\nText\n"
    )
    file = repo / "memories" / "mem-a.md"
    file.parent.mkdir()
    file.write_text(text)
    memories = Memories(repo)
    found = memories.get("mem-a")
    assert (found.subject, found.created, found.tags) == (
        "folded text\n",
        "2020-01-01",
        ("one",) * 2,
    )
    memories.save("Short", "Text", id="mem-a", tags=["a"])
    assert file.read_text() == text.replace(">\n  folded\n  text", "Short").replace(
        "  - &x one\n  - *x\n", "  - a\n"
    )
    memories.save("Short", "Text", id="mem-a", citations=[Citation("prices.py", 1)])
    assert memories.get("mem-a").verified > "2026"


def test_a_tag_that_nobody_knows_is_refused(repo: Path) -> None:
    """Rather than taken for a list or a text; with PyYAML as without."""
    (repo / "memories").mkdir()
    for number, tags in enumerate(("!!python/object/apply:os.system [x]", "!mine [a]", "!!str a")):
        text = f"---\nid: mem-{number}\nsubject: s\nmine: {tags}\n---\n"
        (repo / "memories" / f"mem-{number}.md").write_text(text, "utf-8")
    scan = Memories(repo).list()
    assert [*scan.memories] == ["mem-2"]
    assert all("line 4" in each for each in scan.broken.values())


@pytest.mark.parametrize("head", ["a: &a [*a]", "a: {1: 2}", "? [a]\n: b"])
def test_hostile_yaml_is_refused_quickly(head: str, repo: Path) -> None:
    """Circles, repetition, keys that are no text."""
    bomb = "a: &a [1,1,1,1,1,1,1,1]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 8)}]\n" for n in range(8)
    )
    (repo / "memories").mkdir()
    for number, text in enumerate((head, bomb)):
        path = repo / "memories" / f"mem-{number}.md"
        path.write_text(f"---\nid: mem-{number}\nsubject: s\n{text}\n---\n")
    broken = Memories(repo).list().broken
    assert [*broken] == ["memories/mem-0.md", "memories/mem-1.md"]


# --- bare Python ----------------------------------------------------------------------------------

BARE = """
import sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        top, _, rest = name.partition(".")
        if top in sys.stdlib_module_names or name in ("aiaml_server", "test_citations_core"):
            return None
        if top == "aiaml_server" and (rest in OURS or rest.startswith("toolsets.citations")):
            return None
        raise ImportError(f"{name} is refused")

OURS = ("errors", "files", "settings", "toolset", "toolsets", "format", "format.invisible",
        "storage", "storage.programs", "toolsets.git",
        "toolsets.failures", "toolsets.keyed", "toolsets.owners", "toolsets.warning",
        "toolsets.writing",
        "format.secrets")
sys.meta_path.insert(0, Refusing())
sys.path[:0] = PATHS
import unittest
done = unittest.main("test_citations_core", argv=["test"], exit=False).result
print(done.testsRun, len(done.skipped))
sys.exit(not done.wasSuccessful())
"""


@pytest.mark.slow
def test_the_core_stands_on_the_standard_library_alone() -> None:
    """Its whole suite, isolated, without site-packages, every other import refused."""
    script = f"PATHS = {[str(ROOT / 'src'), str(ROOT / 'tests')]!r}\n{BARE}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-W", "ignore", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    ran, skipped = map(int, done.stdout.split())
    source = (ROOT / "tests" / "test_citations_core.py").read_text(encoding="utf-8")
    assert ran == len(re.findall(r"^    def test_", source, re.MULTILINE))
    assert skipped == 0 or sys.platform == "win32"


# --- processes ------------------------------------------------------------------------------------

WRITER = """
import sys
from aiaml_server.toolsets.citations.memories import Memories
from aiaml_server.toolsets.citations.model import Citation

memories = Memories(sys.argv[1])
for number in range(int(sys.argv[3])):
    cited = [Citation("prices.py", 2)]
    saved = memories.save(f"Memory {sys.argv[2]} {number}", "text", citations=cited)
    tags = {*memories.get("mem-shared").tags}
    print(saved.id, flush=True)
"""


def writer(repo: Path, name: str, count: int) -> subprocess.Popen[str]:
    """Start a process that saves memories and prints each one's id."""
    command = [sys.executable, "-c", WRITER, str(repo), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_eight_processes_lose_nothing(repo: Path) -> None:
    """All that was answered is there, whole, and nothing else."""
    Memories(repo).save("Shared", "text", id="mem-shared")
    processes = [writer(repo, str(each), 12) for each in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answered = [*pool.map(lambda each: each.communicate(timeout=120)[0].split(), processes)]
    assert all(each.returncode == 0 for each in processes)
    scan = Memories(repo).list()
    assert sorted(scan.memories) == sorted(["mem-shared", *(i for ids in answered for i in ids)])
    assert scan.broken == {} and len(scan.memories) == 97


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_killed_writers_leave_nothing_half(repo: Path) -> None:
    """What was answered is there; what was begun is whole or absent; the next one clears away."""
    Memories(repo).save("Shared", "text", id="mem-shared")
    answered: list[str] = []
    for each in range(8):
        process = writer(repo, str(each), 500)
        assert process.stdout
        answered.append(process.stdout.readline().strip())
        time.sleep(0.02 * each)
        process.send_signal(signal.SIGKILL)
        answered += process.stdout.read().split()
        process.wait()
        process.stdout.close()
    memories = Memories(repo)
    memories.save("Last", "text")
    scan = memories.list()
    assert {*answered} <= {*scan.memories} and scan.broken == {}
    assert all(
        name.endswith(".md") for name in (each.name for each in (repo / "memories").iterdir())
    )


def test_two_branches_that_change_different_fields_merge(repo: Path) -> None:
    """Each changes one line."""
    (repo / "prices.py").write_text("\n".join(f"line_number_{each}" for each in range(9)) + "\n")
    memories = Memories(repo)
    cited = [Citation("prices.py", each) for each in (1, 5, 9)]
    saved = memories.save("Prices", FACT, citations=cited, tags=["a", "b", "c"])
    as_person(repo, "add", "-A")
    as_person(repo, "commit", "-qm", "one")
    as_person(repo, "checkout", "-qb", "other")
    memories.save("Prices", FACT, id=saved.id, tags=["a", "b", "c", "d"])
    as_person(repo, "commit", "-qam", "tags")
    as_person(repo, "checkout", "-q", "main")
    memories.save("Prices in cents", FACT, id=saved.id)
    as_person(repo, "commit", "-qam", "subject")
    as_person(repo, "merge", "-q", "-m", "both", "other")
    found = memories.get(saved.id)
    assert (found.subject, found.tags) == ("Prices in cents", ("a", "b", "c", "d"))


# --- the tools ------------------------------------------------------------------------------------


class TestContract(Contract):
    """What every toolset promises."""

    name = "citations"

    def environ(self, place: Path) -> dict[str, str]:
        """A repository in the test's directory, and no other."""
        if not (place / ".git").exists():
            place.mkdir(exist_ok=True)
            git(place, "init", "--quiet")
            (place / "prices.py").write_text("def price(order):\n    return sum(order)\n")
        return {"AIAML_CITATIONS_REPO": str(place), "AIAML_CITATIONS_TOOLS": "all"}

    def story(self, call: Call) -> None:
        """Save, find, verify, walk, delete."""
        cited = [{"path": "prices.py", "line": 2}]
        saved = call("memory_save", subject="Prices are in cents", content=FACT, citations=cited)
        assert "error" not in saved, saved
        link = [{"type": "related", "target": saved["id"]}]
        other = call("memory_save", subject="Orders", content=FACT, links=link)["id"]
        (found, *_) = call("memory_search", query="prices", verify=True)
        assert found["id"] == saved["id"] and found["valid"] and found["score"] > 0
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
        """In one repository; each deletes only its own."""

        def play(number: int) -> None:
            with self.process(tmp_path) as client:
                for each in range(3):
                    subject = f"Memory {number} {each}"
                    saved = client.call("memory_save", subject=subject, content=FACT)
                    assert client.call("memory_get", memory_id=saved["id"])["subject"] == subject
                    assert client.call("memory_delete", memory_id=saved["id"])["deleted"]
                assert client.close() == 0
                assert "Traceback" not in client.log()

        self.environ(tmp_path)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(play, range(2)))
        assert Memories(tmp_path).list().memories == {}


def test_stale_ones_are_named_in_a_second_text(repo: Path) -> None:
    """The list itself stays as specified."""
    environ = {"AIAML_CITATIONS_REPO": str(repo), "AIAML_CITATIONS_TOOLS": "all"}
    with Client(repo, command=(*SERVER, "--toolset", "citations"), environ=environ) as client:
        cited = [{"path": "prices.py", "line": 2}]
        client.call("memory_save", subject="Prices", content=FACT, citations=cited)
        (repo / "prices.py").write_text("nothing\n")
        (repo / "memories" / "mem-bad.md").write_text("bad")
        arguments = {"query": "prices", "verify": True}
        words = {"name": "memory_search", "arguments": arguments}
        result = client.answer(client.request("tools/call", words))["result"]
        assert result["structuredContent"] == {"result": []}
        _, stale, bad = (each["text"] for each in result["content"])
        assert "mem-prices-" in stale and "prices.py:2 changed" in stale
        assert "mem-bad.md: line 1" in bad


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("memory_get", {"memory_id": "mem-nowhere"}, "NotFound"),
        ("memory_get", {"memory_id": "mem-bad"}, "MalformedMemory"),
        ("memory_verify", {"memory_id": "../prices.py"}, "NotFound"),
        ("memory_delete", {"memory_id": "mem-nowhere"}, "NotFound"),
        ("memory_graph_related", {"memory_id": "mem-nowhere"}, "NotFound"),
        ("memory_batch_verify", {"memory_ids": ["mem-nowhere"]}, "NotFound"),
        ("memory_search", {"query": ""}, "InvalidInput"),
        ("memory_search", {"query": "x", "limit": "three"}, "InvalidInput"),
        ("memory_save", {"subject": "x" * 80, "content": "x"}, "InvalidInput"),
        ("memory_save", {"subject": "x", "content": "x", "id": "x"}, "InvalidInput"),
        (
            "memory_save",
            {"subject": "x", "content": "x", "citations": [{"path": "../x"}]},
            "InvalidCitation",
        ),
        (
            "memory_save",
            {"subject": "x", "content": "x", "citations": [{"path": "gone", "line": 10**9}]},
            "InvalidCitation",
        ),
        (
            "memory_save",
            {"subject": "x", "content": "x", "citations": [{"line": 1}]},
            "InvalidInput",
        ),
        ("memory_save", {"subject": "x", "content": "x", "links": ["mem-a"]}, "InvalidInput"),
        ("memory_graph_traverse", {"root_id": "mem-good", "order": "up"}, "InvalidInput"),
    ],
)
def test_each_refusal_has_its_code(
    tool: str, arguments: dict[str, Any], code: str, repo: Path
) -> None:
    """And changes nothing."""
    from mcp import Client as SdkClient

    from aiaml_server import toolsets
    from aiaml_server.server.protocol import Server

    Memories(repo).save("Good", FACT, id="mem-good")
    (repo / "memories" / "mem-bad.md").write_text("bad")
    before = git(repo, "status", "--porcelain", "-uall")
    manifest = toolsets.manifest("citations")
    built = resolve_name(manifest.build)(
        manifest.read_settings({"AIAML_CITATIONS_REPO": str(repo), "AIAML_CITATIONS_TOOLS": "all"})
    )

    async def asked() -> Any:
        async with SdkClient(Server([built])) as client:
            return await client.call_tool(tool, arguments)

    result = anyio.run(asked)
    assert result.is_error and result.structured_content["error"] == code
    assert git(repo, "status", "--porcelain", "-uall") == before


def test_four_tools_are_served_and_others_by_setting() -> None:
    """For each costs an agent context; what is served is what the instructions name."""
    from aiaml_server import toolsets
    from aiaml_server.errors import InvalidSetting

    manifest = toolsets.manifest("citations")

    def built(value: str) -> Any:
        return resolve_name(manifest.build)(
            manifest.read_settings({"AIAML_CITATIONS_TOOLS": value})
        )

    four = ["memory_search", "memory_save", "memory_get", "memory_verify"]
    assert [each.name for each in built("").tools] == four
    assert [each.name for each in built("agent").tools] == four
    assert [each.name for each in built("memory_list").tools] == [*four, "memory_list"]
    assert tuple(each.name for each in built("all").tools) == manifest.tools
    assert "memory_graph" not in built("agent").instructions
    assert "memory_graph_traverse" in built("all").instructions
    with pytest.raises(InvalidSetting, match="'memory_lst'; it must be agent, all, or"):
        built("memory_lst")


def test_subject_of_another_memory_is_asked_about(repo: Path) -> None:
    """Instead of a second one without a word; what supersedes it may have it."""
    memories = Memories(repo)
    first = memories.save("Prices are in cents", FACT)
    with pytest.raises(ToolError, match=rf"{first.id} has it already, with another text"):
        memories.save("prices are in Cents", "another text")
    newer = memories.save("Prices are in cents", "new", links=[Link("supersedes", first.id)])
    assert newer.id != first.id
    assert memories.save("Prices are in cents", FACT).created is False
    newest = memories.save("Prices are in cents", "newest", links=[Link("supersedes", newer.id)])
    with pytest.raises(ToolError, match=rf"{newest.id} has it already, with another text"):
        memories.save("Prices are in cents", "one more")  # the superseded ones are none to update


def test_subject_of_a_memory_with_an_id_of_its_own_is_asked_about(repo: Path) -> None:
    """Its id does not begin with the subject's words."""
    memories = Memories(repo)
    memories.save("Prices are in cents", FACT, id="mem-billing")
    memories.save("Prices", FACT)
    with pytest.raises(ToolError, match="mem-billing has it already, with another text"):
        memories.save("Prices are in cents", "another text")
    renamed = memories.save("Orders", FACT).id
    memories.save("Orders are kept", id=renamed)
    assert memories.save("Orders", "another text").created


def test_answer_has_a_bound(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of characters; what is left out is counted. Names and sentences are counted as well."""
    from aiaml_server.toolsets.citations import answers

    memories = Memories(repo)
    for number in range(30):
        memories.save(f"Memory {number}", "word " * 100, tags=[f"t{each}" for each in range(100)])
        (repo / "memories" / f"mem-bad{number}.md").write_text("bad")
    monkeypatch.setattr(answers, "_MOST", 5000)
    tools = CitationTools(str(repo))
    for answer in (tools.memory_search("word", limit=1000), tools.memory_list()):
        assert 1 <= len(answer.value) < 30
        assert len(json.dumps(answer.value)) < 6000
        left, broken = answer.notes
        assert left.startswith(f"{30 - len(answer.value)} more are left out")
        assert "and 10 more" in broken


def test_without_a_repository_each_tool_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server starts all the same; one that appears is found. What is named can be set there."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoRepository, match=r"name one by AIAML_CITATIONS_REPO$"):
        CitationTools().memory_list()
    calls = CitationTools(str(tmp_path / "nowhere"))
    with pytest.raises(NoRepository):
        calls.memory_list()
    (tmp_path / "nowhere" / ".git").mkdir(parents=True)
    assert calls.memory_list().value == []


def test_a_change_of_the_settings_is_seen(repo: Path) -> None:
    """By the running server; a wrong one is said at each call."""
    calls = CitationTools(str(repo))
    calls.memory_save("Prices", FACT)
    (repo / ".memory-config.yaml").write_text("storage: {directory: docs/memories}\n")
    assert calls.memory_list().value == []
    (repo / ".memory-config.yaml").write_text("storage: {dir: x}\n")
    with pytest.raises(InvalidConfig, match=r"storage\.directory"):
        calls.memory_list()


# --- the command ----------------------------------------------------------------------------------


def bare(*words: str, cwd: Path, data: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command on a Python without anything installed, from a checkout."""
    script = "import sys; sys.path.insert(0, sys.argv.pop(1)); import runpy; "
    script += "runpy.run_module('aiaml_server.toolsets.citations', run_name='__main__')"
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, str(ROOT / "src"), *words],
        cwd=cwd,
        env=inherited(),
        input=data,
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=60,
    )


def full(*words: str, cwd: Path, data: str = "") -> subprocess.CompletedProcess[str]:
    """Run the same by `aiaml citations`."""
    return subprocess.run(
        [*SERVER, "citations", *words],
        cwd=cwd,
        env={**inherited(), "HOME": str(cwd)},
        input=data,
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=60,
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", [bare, full])
def test_the_command_does_what_the_tools_do(command: Callable[..., Any], repo: Path) -> None:
    """Both command lines, from a directory below: save, list, get, search, graph, delete."""
    below = repo / "docs"
    below.mkdir()

    def said(*words: str, code: int = 0, data: str = "") -> str:
        done = command(*words, cwd=below, data=data)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return str(done.stdout + done.stderr)

    def answered(*words: str) -> Any:
        return json.loads(command(*words, "--json", cwd=below).stdout)

    words = ("save", "Prices are in cents", "--cite", "prices.py:2", "--tag", "billing")
    assert said(*words, data=FACT).startswith("saved memories/mem-prices-are-in-cents-")
    saved = answered(*words, "--content", FACT)
    assert saved["created"] is False
    first = saved["id"]
    linked = ("--link", f"supersedes:{first}", "--link", "related:mem-gone")
    second = answered("save", "Prices are in euros", "--content", "x", *linked)["id"]
    long = f"prices.py:{'9' * 5_000}"
    assert "from 1 to 999,999,999" in said("save", "s", "--content", "x", "--cite", long, code=2)
    assert "--link: 'x'" in said("save", "s", "--content", "x", "--link", "x", code=2)
    assert first in said("list") and second not in said("list", "--tag", "billing")
    assert [each["id"] for each in answered("list")] == [first, second]
    assert 'snippet: "return sum(order)  # in cents"' in said("get", first)
    assert answered("get", first)["content"] == FACT
    assert "there is no memory mem-x" in said("get", "mem-x", code=1)
    assert f"superseded by {second}" in said("search", "cents", "--limit", "1")
    assert answered("search", "prices", "cents")[0]["id"] == second
    assert said("search", "zebra", code=1) == "no memory was found\n"
    assert f"did you mean {first}?" in said("get", first[:-4], code=1)
    assert said("list", "--tag", "zebra") == "there are no memories\n"
    assert second in said("graph") and first not in said("graph", "--roots")
    assert "-> related mem-gone (missing)" in said("graph", second)
    assert said("graph", second, "--format", "mermaid").startswith("graph LR")
    assert said("graph", second, "--format", "dot").startswith("digraph")
    whole = said("graph", "--format", "mermaid")
    assert whole.startswith("graph LR") and whole.count("-->") == 2 and "euros" in whole
    assert said("graph", "--format", "dot", "--type", "supersedes").count(" -> ") == 1
    assert list(answered("graph", second, "--order", "dfs")["nodes"]) == [second, first]
    assert "2 verified, 0 stale" in said("verify")
    assert "`--yes` says yes" in said("delete", first, code=2)
    assert "there is no memory mem-x" in said("delete", "mem-x", code=1)
    deleted = said("delete", first, "--yes")
    assert "links to it (supersedes)" in deleted
    git(repo, "add", "memories")
    file = f"memories/{second}.md"
    assert answered("delete", second, "--yes")["deleted"] is True
    assert not (repo / file).exists()
    back = deleted.splitlines()[-1].partition(": ")[2].replace(first, second)
    subprocess.run(shlex.split(back), check=True, cwd=below)
    assert (repo / file).exists()
    assert "words alone" in said("sync-index")


@pytest.mark.slow
@pytest.mark.parametrize("command", [bare, full])
def test_verify_is_made_for_ci(command: Callable[..., Any], repo: Path) -> None:
    """Exit code 0, 1 or 2; file, line, verdict and today's line; annotations; some or all."""
    memories = Memories(repo)
    moved = memories.save("Moved", FACT, [Citation("prices.py", 2)])
    stale = memories.save("Stale", FACT, [Citation("prices.py", 1)])
    (repo / "prices.py").write_text("\n\ndef price(orders):\n    return sum(order)  # in cents\n")
    done = command("verify", cwd=repo)
    assert done.returncode == 1
    likest = "(the likest line is 3: def price(orders):)"
    assert done.stdout.splitlines() == [
        f"{moved.path}: prices.py:2 moved, today prices.py:4",
        f"{stale.path}: prices.py:1 changed {likest}",
        "    says: Prices are in cents.",
        "    prices.py:1 was: def price(order):",
    ]
    assert done.stderr.splitlines()[0] == "2 verified, 1 stale"
    assert "`recite ID OLD NEW`" in done.stderr
    assert command("verify", moved.id, cwd=repo).returncode == 0
    assert command("verify", moved.path, cwd=repo).returncode == 0
    assert command("verify", moved.path, stale.path, cwd=repo).returncode == 1
    assert command("verify", "mem-nowhere", cwd=repo).returncode == 2
    report = json.loads(command("verify", "--json", cwd=repo).stdout)
    assert (report["valid"], report["checked"], report["stale"]) == (False, 2, 1)
    (citation,) = report["memories"][0]["citations"]
    assert citation == {
        "path": "prices.py", "line": 2, "snippet": "return sum(order)  # in cents",
        "verdict": "moved", "confidence": 0.99, "today": {"path": "prices.py", "line": 4},
    }  # fmt: skip
    shown = command("verify", "--format", "github", cwd=repo)
    assert shown.returncode == 1
    assert shown.stdout == (
        f"::error file={stale.path},title=changed::prices.py:1 is changed: "
        "the likest line is 3: def price(orders):\n"
    )
    done = command("verify", "--update", cwd=repo)
    assert done.returncode == 1 and "2 verified, 1 stale, 1 updated" in done.stderr
    assert memories.get(moved.id).citations[0].line == 4
    (repo / "memories" / "mem-bad.md").write_text("---\nid: mem-bad\n---\n")
    done = command("verify", moved.id, cwd=repo)
    assert done.returncode == 0
    done = command("verify", cwd=repo)
    assert done.returncode == 2 and "mem-bad.md: line 2" in done.stdout
    (repo / ".memory-config.yaml").write_text("nonsense: 1\n")
    done = command("verify", cwd=repo)
    assert done.returncode == 2 and "line 1: nonsense" in done.stderr


@pytest.mark.parametrize("command", [bare, full])
def test_where_there_is_no_repository(command: Callable[..., Any], tmp_path: Path) -> None:
    """A clear sentence and exit code 2; --repo and the variable name one."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    done = command("list", cwd=place)
    if done.returncode == 0:  # the temporary directory itself lies in a repository
        return
    assert done.returncode == 2 and "AIAML_CITATIONS_REPO" in done.stderr
    for verb in ("list", "verify"):  # nothing was looked at: no success for CI
        done = command(verb, "--repo", str(place), cwd=place)
        assert done.returncode == 2 and "not the top of a repository" in done.stderr
    (place / "memories").mkdir()
    assert command("verify", "--repo", str(place), cwd=place).returncode == 0
    assert command("list", "--repo", str(place / "x"), cwd=place).returncode == 2
    assert command("nonsense", cwd=place).returncode == 2


@pytest.mark.parametrize("command", [bare, full])
def test_nothing_hostile_reaches_the_terminal(command: Callable[..., Any], repo: Path) -> None:
    """What a memory by other hands says is made visible."""
    (repo / "memories").mkdir()
    head = 'id: mem-a\nsubject: "t\\e]0;x\\a\\u202e"\ntags: ["\\x9b"]'
    text = f"---\n{head}\n---\n\x1b[31mred\n"
    (repo / "memories" / "mem-a.md").write_text(text, encoding="utf-8")
    for line in (
        "list",
        "list --json",
        "get mem-a",
        "get mem-a --json",
        "search t --json",
        "graph",
    ):
        done = command(*line.split(), cwd=repo)
        assert done.stdout
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", done.stdout + done.stderr), line


@pytest.mark.parametrize("command", [bare, full])
def test_an_update_keeps_what_is_not_given(command: Callable[..., Any], repo: Path) -> None:
    """Its text too: standard input is not taken for one, unless it is named."""
    memories = Memories(repo)
    first = memories.save("Prices", FACT, [Citation("prices.py", 2)], tags=["old"])
    assert command("save", "--id", first.id, "--tag", "new", cwd=repo, data="no").returncode == 0
    after = memories.get(first.id)
    assert (after.subject, after.content, after.tags) == ("Prices", FACT, ("new",))
    assert command("save", "--id", first.id, "Sums", cwd=repo, data="no").returncode == 0
    words = ("save", "--id", first.id, "--content", "-")
    assert command(*words, cwd=repo, data="text").returncode == 0
    after = memories.get(first.id)
    assert (after.subject, after.content, after.tags) == ("Sums", "text", ("new",))
    assert len(after.citations) == 1
    done = command("save", "--tag", "new", cwd=repo)
    assert done.returncode == 2 and "subject: is missing" in done.stderr
    done = command("save", "--id", "mem-new", "Sums", cwd=repo)
    assert done.returncode == 2 and "content: is missing" in done.stderr


@pytest.mark.slow
def test_an_update_by_the_tool_keeps_what_is_not_given(repo: Path) -> None:
    """Only a new memory needs a subject and a content; the refusal names which."""
    environ = {"AIAML_CITATIONS_REPO": str(repo), "AIAML_CITATIONS_TOOLS": "all"}
    with Client(repo, command=(*SERVER, "--toolset", "citations"), environ=environ) as client:
        first = client.call("memory_save", subject="Prices", content=FACT)["id"]
        before = (repo / "memories" / f"{first}.md").read_text()
        assert client.call("memory_save", id=first, subject="Sums")["created"] is False
        after = (repo / "memories" / f"{first}.md").read_text()
        assert after == before.replace("subject: Prices", "subject: Sums")
        client.call("memory_save", id=first, content="text")
        found = client.call("memory_get", memory_id=first)
        assert (found["subject"], found["content"]) == ("Sums", "text")
        for given, field in (({"subject": "x"}, "content"), ({"content": "x"}, "subject")):
            refused = client.call("memory_save", **given)
            assert refused["error"] == "InvalidInput"
            assert refused["message"].startswith(f"{field}: is missing")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"links": [{"target": "mem-a"}]}, "'type' of item 1 is missing"),
        ({"links": [{"type": "related", "target": "mem-a", "why": "x"}]}, "'why' of item 1 is not"),
        ({"citations": [{"path": "prices.py"}, {"line": 1}]}, "'path' of item 2 is missing"),
        ({"citations": [{"path": "prices.py", "lines": 1}]}, "'lines' of item 1 is not known"),
        ({"citations": [{"path": "prices.py", "line": 0}]}, "line must be a whole number from 1"),
        ({"citations": [{"path": "prices.py", "line": "four"}]}, "'line' of item 1 is not so"),
    ],
)
def test_what_is_wrong_within_a_list_is_said(given: Any, said: str, repo: Path) -> None:
    """And nothing is dropped in silence."""
    environ = {"AIAML_CITATIONS_REPO": str(repo), "AIAML_CITATIONS_TOOLS": "all"}
    with Client(repo, command=(*SERVER, "--toolset", "citations"), environ=environ) as client:
        refused = client.call("memory_save", subject="Prices", content=FACT, **given)
        assert refused["error"] == "InvalidInput" and said in refused["message"]
    assert not (repo / "memories").exists()


def test_what_a_memory_says_can_be_saved_again(repo: Path) -> None:
    """Its citations and links as they are answered."""
    (repo / "twice.py").write_text("a = 1\nb = 2\nc = 3\nb = 2\n")
    environ = {"AIAML_CITATIONS_REPO": str(repo), "AIAML_CITATIONS_TOOLS": "all"}
    with Client(repo, command=(*SERVER, "--toolset", "citations"), environ=environ) as client:
        cited = [{"path": "twice.py", "line": 4}]
        first = client.call("memory_save", subject="b", content=FACT, citations=cited)["id"]
        found = client.call("memory_get", memory_id=first)
        assert found["citations"][0]["before"] == "c = 3"
        again = client.call("memory_save", id=first, citations=found["citations"])
        assert again["created"] is False
        assert client.call("memory_get", memory_id=first) == found


@pytest.mark.slow
@pytest.mark.parametrize("command", [bare, full])
def test_a_line_stays_one_whatever_is_in_it(command: Callable[..., Any], repo: Path) -> None:
    """So that nothing in a memory is taken for a command to the CI that shows it."""
    (repo / "memories").mkdir()
    told = "::error title=PWN::pwned"
    text = (
        f'---\nid: mem-a\nsubject: "t\\n{told}"\ncitations:\n  - path: "a.py\\n{told}"\n'
        f'    line: 1\n    snippet: "x\\r{told}"\nlinks:\n  - type: related\n'
        f'    target: "mem-b\\n{told}"\n---\n\ntext\n'
    )
    (repo / "memories" / "mem-a.md").write_text(text, encoding="utf-8")
    for line in (
        *("verify", "verify --format github", "verify --json", "verify --update", "list"),
        *("search t", "search --verify t", "graph", "graph mem-a", "graph mem-a --format mermaid"),
        *("graph mem-a --format dot", "list --json", "get mem-a", "get mem-a --json"),
    ):
        done = command(*line.split(), cwd=repo)
        shown = (done.stdout + done.stderr).splitlines()
        assert not [each for each in shown if each.lstrip().startswith("::error title")], line
    if os.name != "nt":  # where a file's name may have any character
        (repo / "memories" / "mem-b\n::error title=PWN.md").write_text("bad")
        for line in ("verify", "list", "search t", "verify --format github"):
            done = command(*line.split(), cwd=repo)
            shown = (done.stdout + done.stderr).splitlines()
            assert not [each for each in shown if each.startswith("::error title")], line


def test_a_refusal_begins_as_those_of_other_verbs(repo: Path) -> None:
    """With the program's name."""
    for line in ("get mem-x", "verify mem-x", "save --tag a", "list --repo nowhere"):
        done = full(*line.split(), cwd=repo)
        assert done.returncode and done.stderr.startswith(("aiaml: ", "aiaml-server: ")), line


@pytest.mark.slow
def test_doctor_looks_at_the_repository(repo: Path) -> None:
    """Which it is, whether its citations hold, what cannot be read, and what is missing."""
    environ = {"AIAML_TOOLSETS": "citations", "AIAML_CITATIONS_REPO": str(repo)}

    def lines() -> str:
        return run("doctor", "toolsets", **environ).stdout

    Memories(repo).save("Prices", FACT, [Citation("prices.py", 2)])
    assert "1 memory" in lines() and "stale" not in lines()
    (repo / "prices.py").write_text("nothing\n")
    assert "1 memory, 1 stale" in lines() and "aiaml citations verify" in lines()
    (repo / "memories" / "mem-bad.md").write_text("bad")
    assert "mem-bad.md: line 1" in lines()
    (repo / ".memory-config.yaml").write_text("x: 1\n")
    assert "x is no known key" in lines()
    environ["AIAML_CITATIONS_REPO"] = str(repo / "nowhere")
    assert "is no directory" in lines()


def test_the_python_on_the_page_runs(repo: Path) -> None:
    """As it stands there, in a repository that has the cited line."""
    page = (ROOT / "docs" / "toolsets" / "citations.md").read_text("utf-8")
    shown = re.search(r"## In Python\n\n```python\n(.*?)```", page, re.DOTALL)
    assert shown
    (repo / "shop").mkdir()
    lines = [f"line_{number} = {number}" for number in range(1, 20)]
    (repo / "shop" / "prices.py").write_text("\n".join(lines), "utf-8")
    names: dict[str, Any] = {}
    exec(shown[1].replace("/home/ada/shop", repo.as_posix()), names)  # noqa: S102
    assert names["memories"].get(names["saved"].id).citations[0].snippet == "line_12 = 12"


@given(
    text=st.sampled_from(["null", '{"a": 1}', "[1, 2]", '"x"', "true", "1", "1.0", "NaN", '""x'])
    | st.text("[]{}\"':,0123456789.truefalsn ", min_size=1, max_size=20).filter(str.strip)
)
def test_text_that_looks_like_json_is_stored_as_it_was_sent(text: str) -> None:
    """Whatever the tool's parameter may be beside text."""
    from mcp import Client as SdkClient

    from aiaml_server import toolsets
    from aiaml_server.server.protocol import Server

    manifest = toolsets.manifest("citations")
    with TemporaryDirectory() as place:
        (Path(place) / ".git").mkdir()
        built = resolve_name(manifest.build)(
            manifest.read_settings({"AIAML_CITATIONS_REPO": place})
        )

        async def stored() -> Any:
            async with SdkClient(Server([built])) as client:
                words = {"subject": text, "content": text, "tags": [text]}
                saved = await client.call_tool("memory_save", words)
                name = saved.structured_content["id"]
                again = {"id": name, "subject": f"{text}!", "content": f"{text}"}
                await client.call_tool("memory_save", again)
                await client.call_tool("memory_search", {"query": text})
                got = await client.call_tool("memory_get", {"memory_id": name})
                return got.structured_content

        found = anyio.run(stored)
    assert found["subject"] == f"{text}!".strip()
    assert found["content"] == text.strip("\n")
    assert found["tags"] == [text.strip()]
