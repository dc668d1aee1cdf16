"""`aiaml export`: memories in one file, for a backup, for programs, or to read."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiaml_server.cli import main
from aiaml_server.exchange.jsonl import memories_in
from aiaml_server.exchange.page import page
from aiaml_server.exchange.plan import Planner
from aiaml_server.exchange.shapes import book, lines
from aiaml_server.format.memory import Memory, format, parse  # noqa: A004
from aiaml_server.storage.store import Store

ENDINGS = ["jsonl", "zip", "md", "html"]
HOSTILE = (
    "</script><script>alert(1)</script>\n\n<img src=x onerror=alert(1)> [x](javascript:alert(1))"
)


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A bank with three memories, one of them hostile, which the command line uses."""
    monkeypatch.setenv("AIAML_MEMORY_DIR", str(tmp_path / "bank"))
    monkeypatch.setenv("AIAML_ENABLE_SYNC", "false")
    store = Store(tmp_path / "bank")
    made = "2026-0{}-05T12:00:00.000000+00:00"
    store.add(Memory("a1b2c3d4", made.format(1), "claude", "marco", ("python",), "**Type** hints"))
    store.add(
        Memory("b1b2c3d4", made.format(2), "cursor", "anna", ("food", "dog"), "# Soup\n\nHot")
    )
    store.add(Memory("c1b2c3d4", made.format(3), "<b>x", "marco", ("<i>",), HOSTILE))
    return store


Export = Callable[..., bytes]


@pytest.fixture
def export(bank: Store, tmp_path: Path) -> Export:
    """Run `aiaml export` to a new file and return its bytes."""

    def run(ending: str, *words: str) -> bytes:
        assert bank
        target = tmp_path / f"out.{ending}"
        assert main(["export", "--to", str(target), *words]) == 0
        data = target.read_bytes()
        target.unlink()
        return data

    return run


# --- the file ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_export_is_private_and_leaves_nothing_else(
    ending: str, bank: Store, tmp_path: Path
) -> None:
    """Memories are nobody else's business."""
    target = tmp_path / "out" / f"all.{ending}"
    target.parent.mkdir()
    assert main(["export", "--to", str(target)]) == 0
    assert os.listdir(target.parent) == [target.name]  # noqa: PTH208
    if os.name == "posix":
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert len(bank.names()) == 3


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_memories_give_the_same_bytes(ending: str, export: Export) -> None:
    """So that two backups can be compared."""
    assert export(ending) == export(ending)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_is_replaced_only_when_asked(
    ending: str, bank: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--force` asks."""
    target = tmp_path / f"all.{ending}"
    target.write_text("mine")
    assert main(["export", "--to", str(target)]) == 1
    assert "`--force` replaces it" in capsys.readouterr().err
    assert target.read_text() == "mine"
    assert main(["export", "--to", str(target), "--force"]) == 0
    assert target.read_bytes() != b"mine"
    assert bank.names()


def test_a_target_that_is_no_file_is_refused(bank: Store, tmp_path: Path) -> None:
    """Not even by force."""
    assert main(["export", "--to", str(tmp_path), "--format", "zip", "--force"]) == 1
    assert main(["export", "--to", str(tmp_path / "none" / "x.zip")]) == 1
    if os.name == "posix":
        assert main(["export", "--to", os.devnull, "--format", "zip", "--force"]) == 1
    assert bank.names()


@pytest.mark.parametrize("inside", ["files/book.md", "book.md"])
def test_no_export_lands_among_the_memories(inside: str, bank: Store) -> None:
    """It would be taken for one."""
    assert main(["export", "--to", str(bank.base / inside)]) == 2
    assert not (bank.base / inside).exists()


def test_a_format_that_cannot_be_told_is_asked_for(
    bank: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the endings that there are."""
    assert main(["export", "--to", "memories.xml"]) == 2
    assert ".jsonl, .okf.zip, .zip, .md, .html" in capsys.readouterr().err
    assert bank.names()


def test_the_filters_are_those_of_list(export: Export) -> None:
    """By agent, user, topic and time."""
    for words, ids in {
        ("--user", "MARCO"): ["a1b2c3d4", "c1b2c3d4"],
        ("--agent", "cursor"): ["b1b2c3d4"],
        ("--topic", "food", "--topic", "dog"): ["b1b2c3d4"],
        ("--since", "2026-02-01", "--until", "2026-03-01"): ["b1b2c3d4"],
    }.items():
        said = [json.loads(line)["id"] for line in export("jsonl", *words).splitlines()]
        assert said == ids


def test_nothing_to_export_writes_nothing(bank: Store, tmp_path: Path) -> None:
    """An empty file would look like a backup."""
    target = tmp_path / "x.jsonl"
    assert main(["export", "--to", str(target), "--user", "nobody"]) == 1
    assert not target.exists()
    assert bank.names()


@pytest.mark.parametrize("form", ["jsonl", "zip", "book", "site"])
def test_a_pipe_gets_the_same_bytes(form: str, export: Export, bank: Store) -> None:
    """`--to -` is standard output, and nothing else is written there."""
    ending = {"book": "md", "site": "html"}.get(form, form)
    done = subprocess.run(
        [sys.executable, "-m", "aiaml_server", "export", "--to", "-", "--format", form],
        capture_output=True,
        check=True,
    )
    assert done.stdout == export(ending)
    assert done.stderr == b""
    assert bank.names()


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such terminal")
def test_a_terminal_gets_no_zip(bank: Store) -> None:
    """It would ring bells."""
    import pty

    outer, inner = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "aiaml_server", "export", "--to", "-", "--format", "zip"],
        stdout=inner,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(inner)
    os.close(outer)
    assert (done.returncode, b"names a file" in done.stderr) == (2, True)
    assert bank.names()


# --- zip --------------------------------------------------------------------------------------


def test_a_zip_holds_the_files_byte_for_byte(export: Export, bank: Store) -> None:
    """Also what another hand wrote in its own way; unpacked, it is a memory directory."""
    foreign = "\ufeff---\nid: x\ntimestamp: 2024\nagent: a\nuser: u\ntopics: t\n---\nhi"
    (bank.directory / "by hand.md").write_bytes(foreign.replace("\n", "\r\n").encode())
    with zipfile.ZipFile(io.BytesIO(export("zip"))) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == {
            f"files/{name}": (bank.directory / name).read_bytes() for name in bank.names()
        }
        assert {entry.external_attr >> 16 for entry in archive.infolist()} == {0o100600}


@pytest.mark.skipif(os.name != "posix", reason="Windows has no files of such names")
def test_no_name_in_a_zip_is_a_path_anywhere(export: Export, bank: Store) -> None:
    """No other directory, drive, stream or device, whatever system unpacks it; none is lost."""
    names = [
        "x\\..\\..\\evil.md", "C:evil.md", "C:\\evil.md", "\\\\host\\share.md", "a:stream.md",
        "con.md", "NUL.md", "com1.x.md", "aux .md", "lpt¹.md", "a\nb.md", "a\x7f.md", "q?.md",
        "A.md", "a.md", "straße.md", "STRASSE.md", "..md", "...md",
    ]  # fmt: skip
    text = "---\nid: x\ntimestamp: 2024\nagent: a\nuser: u\ntopics: t\n---\n{}\n"
    for name in names:
        (bank.directory / name).write_text(text.format(name.encode().hex()))
    held = {name for name in names if bank.may_hold(name)}
    with zipfile.ZipFile(io.BytesIO(export("zip"))) as archive:
        found = archive.namelist()
        texts = {archive.read(name) for name in found}
    assert {text.format(name.encode().hex()).encode() for name in held} <= texts
    assert len({name.casefold() for name in found}) == len(found) == len(bank.names())
    for name in found:
        directory, slash, inside = name.partition("/")
        assert (directory, slash) == ("files", "/")
        assert not re.search(r'[\\\\/:*?"<>|\x00-\x1f\x7f]', inside), name
        assert not re.match(r"(?i)(con|nul|aux|com1|lpt¹)\b", inside), name


def test_an_unpacked_zip_can_be_imported(
    export: Export, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bank: Store
) -> None:
    """A backup comes back."""
    with zipfile.ZipFile(io.BytesIO(export("zip"))) as archive:
        archive.extractall(tmp_path / "unpacked")
    monkeypatch.setenv("AIAML_MEMORY_DIR", str(tmp_path / "other"))
    assert main(["import", str(tmp_path / "unpacked"), "--yes"]) == 0
    assert dict(Store(tmp_path / "other").scan()) == dict(bank.scan())


# --- JSON Lines -------------------------------------------------------------------------------

ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
MEMORIES = st.builds(
    Memory,
    id=st.integers(0, 2**32 - 1).map(lambda number: f"{number:08x}"),
    timestamp=st.one_of(
        st.datetimes().map(lambda moment: moment.isoformat() + "+00:00"),
        st.sampled_from(["2024-01-01", "2024-01-01 10:00", "2024-01-01T10:00:00Z", "yesterday"]),
    ),
    agent=ANY,
    user=ANY,
    topics=st.lists(ANY, max_size=4).map(tuple),
    content=ANY,
    extra=st.sampled_from(
        [(), ("source: x",), ("note:", "  more"), ('"q": "\u2028"', "# why", "")]
    ),
).map(lambda memory: parse(format(memory)))
"""What a bank can hold: whatever is read from a file."""


@pytest.mark.slow
@given(st.lists(MEMORIES, max_size=5, unique_by=lambda memory: memory.id))
def test_what_is_exported_is_imported_exactly(
    tmp_path_factory: pytest.TempPathFactory, memories: list[Memory]
) -> None:
    """Every field of every memory, its id and its file's name among them."""
    source = tmp_path_factory.mktemp("round") / "m.jsonl"
    source.write_bytes(b"".join(lines(memories)))
    planner = Planner([], "nobody")
    planner.consider(memories_in(source))
    assert [addition.memory for addition in planner.plan.additions] == memories
    target = Store(source.parent / "bank")
    for memory in memories[:1]:
        target.add(memory)
    assert [memory for _, memory in target.scan()] == memories[:1]


def test_a_bank_comes_back_through_the_command_line(
    export: Export, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bank: Store
) -> None:
    """Export, import into an empty bank, export: the same bytes."""
    data = export("jsonl")
    (tmp_path / "back.jsonl").write_bytes(data)
    monkeypatch.setenv("AIAML_MEMORY_DIR", str(tmp_path / "other"))
    assert main(["import", str(tmp_path / "back.jsonl"), "--yes"]) == 0
    assert dict(Store(tmp_path / "other").scan()) == dict(bank.scan())
    assert export("jsonl") == data


# --- the book ---------------------------------------------------------------------------------


def test_a_book_has_contents_and_chapters(export: Export) -> None:
    """By month, or by first topic."""
    by_month, by_topic = export("md").decode(), export("md", "--by", "topic").decode()
    assert by_month.startswith(
        "# Memories\n\n3 memories, January 2026 to March 2026.\n\n"
        "- [January 2026](#chapter-1) (1)\n- [February 2026](#chapter-2) (1)\n"
    )
    assert re.findall(r"^## (.*)$", by_month, re.MULTILINE) == [
        "January 2026",
        "February 2026",
        "March 2026",
    ]
    assert re.findall(r"^## (.*)$", by_topic, re.MULTILINE) == [r"\<i\>", "food", "python"]
    assert "> # Soup\n>\n> Hot\n" in by_month


@pytest.mark.parametrize(
    "content", ["```\nopen", "<!-- open", "<details>\nx", "- a\n\n\n\n    b", "~~~"]
)
def test_a_memory_in_a_book_cannot_swallow_the_next(content: str) -> None:
    """An open fence, comment or list ends where the memory ends."""
    from markdown_it import MarkdownIt

    memory = Memory("a1b2c3d4", "2026-01-05T12:00:00Z", "a", "u", ("t",), content)
    text = b"".join(book([memory, memory])).decode()
    headings = [token for token in MarkdownIt().parse(text) if token.type == "heading_open"]
    assert [token.tag for token in headings] == ["h1", "h2", "h3", "h3"]


# --- the page ---------------------------------------------------------------------------------


class Page(HTMLParser):
    """The elements of a page, and the texts of its style and scripts."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[tuple[str, str]] = []
        self.feed(data.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Note the text of a style or script."""
        if self.elements and self.elements[-1][0] in ("style", "script") and data.strip():
            self.inline.append((self.elements[-1][0], data))

    def policy(self) -> dict[str, str]:
        """Return the page's own policy."""
        [stated] = [
            attributes["content"] or ""
            for _, attributes in self.elements
            if attributes.get("http-equiv") == "Content-Security-Policy"
        ]
        return dict(each.strip().split(" ", 1) for each in stated.split(";"))


def loads(elements: list[tuple[str, dict[str, str | None]]]) -> Iterator[str]:
    """Return what would be fetched from elsewhere, or run by an attribute."""
    for tag, attributes in elements:
        for name, value in attributes.items():
            if name in ("src", "srcset", "style", "action", "data") or name.startswith("on"):
                yield f"{tag} {name}={value}"
        if tag in ("link", "iframe", "object", "embed", "base", "img", "form", "svg"):
            yield tag


def test_the_page_allows_its_own_script_and_style_alone(export: Export) -> None:
    """By their hashes: nothing else runs, and nothing is loaded."""
    found = Page(export("html"))
    policy = found.policy()
    assert policy["default-src"] == "'none'"
    assert [kind for kind, _ in found.inline] == ["style", "script"]
    for kind, text in found.inline:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert policy[f"{kind}-src"] == f"'sha256-{digest}'"
    assert list(loads(found.elements)) == []


def test_hostile_memories_are_text_on_the_page(export: Export) -> None:
    """In content, topics, agent, user, id and time."""
    data = export("html").decode()
    assert data.count("<script>") == 1 and data.count("</script>") == 1
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in data
    assert "&lt;b&gt;x" in data and "&lt;i&gt;" in data


@given(st.lists(MEMORIES, min_size=1, max_size=3))
def test_no_memory_adds_an_element_that_loads_or_runs(memories: list[Memory]) -> None:
    """Whatever its fields hold."""
    hostile = '"><script>x</script><img src=x onerror=y>'
    odd = [
        Memory(f"{m.id}{hostile}", m.timestamp + hostile, hostile, hostile, (hostile,), hostile)
        for m in memories
    ]
    found = Page(b"".join(page([*memories, *odd])))
    assert list(loads(found.elements)) == []
    assert len(found.inline) == 2


def test_the_page_has_a_place_for_each_memory(export: Export) -> None:
    """Newest first, each with an address of its own; for a phone, for light and dark, for paper."""
    found = Page(export("html"))
    articles = [attributes["id"] for tag, attributes in found.elements if tag == "article"]
    assert articles == ["memory-c1b2c3d4", "memory-b1b2c3d4", "memory-a1b2c3d4"]
    assert any(attributes.get("name") == "viewport" for _, attributes in found.elements)
    style = dict(found.inline)["style"]
    assert "prefers-color-scheme: dark" in style and "@media print" in style
