"""The toolset `citations`: what needs more than the standard library to be tested."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from aiaml_server.toolsets.citations.failures import MalformedMemory
from aiaml_server.toolsets.citations.frontmatter import read
from aiaml_server.toolsets.citations.memories import Memories
from aiaml_server.toolsets.citations.model import (
    KEYS,
    LINK_TYPES,
    Citation,
    Link,
    Memory,
    identity,
    memory,
)
from aiaml_server.toolsets.citations.writing import block, updated
from machine import as_person, git

ROOT = Path(__file__).parent.parent
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


def test_what_is_written_is_read_the_same() -> None:
    """10,000 memories, hostile ones too, by our reader and by PyYAML."""
    for seed in range(10_000):
        new = Hostile(seed).memory()
        text = written(new)
        document = read(text)
        assert memory(document, "mem-a") == new, seed
        assert document.root.value == by_pyyaml(text), seed


def test_an_update_gives_what_is_wanted_and_keeps_what_is_not_named() -> None:
    """Whatever was there, and whatever comes; unknown keys stay, and both readers agree."""
    for seed in range(1000):
        old, new = Hostile(seed).memory(), Hostile(-1 - seed).memory()
        text = written(old).replace("---\n", "---\nowner: ada # me\n", 1)
        text = text.replace("\n---\n", "\nx: {a: [b]}\n---\n", 1)
        text = text.replace("\n", "\r\n") if seed % 2 else text
        stated = new.stated()
        changed = {key: stated[key] for key in ("subject", "citations", "links", "tags")}
        after = updated(read(text), changed, KEYS, identity)
        assert memory(read(after), "mem-a") == replace(
            old, subject=new.subject, citations=new.citations, links=new.links, tags=new.tags
        ), seed
        assert read(after).root.value["owner"] == "ada" and "owner: ada # me" in after
        assert read(after).root.value == by_pyyaml(after.replace("\r\n", "\n")), seed
        assert updated(read(after), changed, KEYS, identity) == after, seed


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


@settings(max_examples=3000)
@given(st.lists(PIECES, max_size=14).map("".join))
def test_what_is_read_is_what_pyyaml_reads(text: str) -> None:
    """Of any text: the same, or PyYAML's own answer, or a refusal; never a guess."""
    from aiaml_server.toolsets.citations import frontmatter, nodes

    try:
        found = frontmatter._Reader(text, 0, len(text), 1).root()
    except (frontmatter._Unknown, MalformedMemory):
        return
    assert isinstance(found, nodes.Node)
    try:
        expected = by_pyyaml(text) or {}
    except yaml.YAMLError:
        assert "\t" in text  # of which PyYAML takes less than YAML does
    else:
        assert found.value == expected


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
    start = time.monotonic()
    broken = Memories(repo).list().broken
    assert [*broken] == ["memories/mem-0.md", "memories/mem-1.md"]
    assert time.monotonic() - start < 10


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

OURS = ("errors", "files", "invisible", "toolset", "toolsets")
sys.meta_path.insert(0, Refusing())
sys.path[:0] = PATHS
import unittest
done = unittest.main("test_citations_core", argv=["test"], exit=False).result
print(done.testsRun, len(done.skipped))
sys.exit(not done.wasSuccessful())
"""


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
