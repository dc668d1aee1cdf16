"""Markdown that people have: found, shown, taken over once, and nothing from elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiaml_server.errors import MalformedFile
from aiaml_server.exchange import shapes
from aiaml_server.format import memory as files
from aiaml_server.toolsets.semantic import importing, verbs
from aiaml_server.toolsets.semantic import memory as memory_rules
from aiaml_server.toolsets.semantic.config import Config
from aiaml_server.toolsets.semantic.failures import InvalidInput, InvalidProject
from aiaml_server.toolsets.semantic.filters import Filters
from aiaml_server.toolsets.semantic.markdown import pieces
from aiaml_server.toolsets.semantic.memories import Memories
from aiaml_server.toolsets.semantic.memory import Memory
from aiaml_server.toolsets.semantic.portable import as_file, draft_of

NOTES = """\
# Shop

Prices are in cents.
They are shown in euros.

## Rules of billing

- Refunds wait for the bank.
- [x] Invoices have
  two pages.
  - the second one is for the law

1. VAT is 20 %.

```python
# no heading
```

## Empty

## Security

Tokens are rotated each night.
"""
ADR = """\
# ADR 7: One database

## Status

Accepted

## Decision

We use one database, for the architecture stays simple.
"""


@pytest.fixture
def memories(tmp_path: Path) -> Iterator[Memories]:
    """Return the memories of a project with some files."""
    project = tmp_path / "shop"
    (project / "docs").mkdir(parents=True)
    (project / ".claude").mkdir()
    (project / "NOTES.md").write_text(NOTES, encoding="utf-8")
    (project / "docs" / "adr-7.md").write_text(ADR, encoding="utf-8")
    (project / ".claude" / "style.md").write_text("Tabs, never spaces.\n", encoding="utf-8")
    (project / "README.md").write_text("# Not a memory\n\ntext\n", encoding="utf-8")
    made = Memories(tmp_path / "home" / ".memory", project, None, Config())
    yield made
    made.close()


# --- cutting --------------------------------------------------------------------------------------


def test_sections_and_items_become_pieces() -> None:
    """Each has the headings above it, the line where it stands, and a tag."""
    found = pieces(NOTES, Path("NOTES.md"))
    assert [(each.content, each.line, each.tags) for each in found] == [
        ("Shop\n\nPrices are in cents.\nThey are shown in euros.", 3, ("shop",)),
        ("Shop > Rules of billing: Refunds wait for the bank.", 8, ("rules-of-billing",)),
        (
            "Shop > Rules of billing: Invoices have\ntwo pages.\n- the second one is for the law",
            9,
            ("rules-of-billing",),
        ),
        ("Shop > Rules of billing: VAT is 20 %.", 13, ("rules-of-billing",)),
        ("Shop > Rules of billing\n\n```python\n# no heading\n```", 15, ("rules-of-billing",)),
        ("Shop > Security\n\nTokens are rotated each night.", 23, ("security",)),
    ]


@pytest.mark.parametrize("stem", ["ADR-7", "adr-0007-one-database", "decisions"])
def test_a_decision_record_is_one_piece(stem: str) -> None:
    """By its name, or by its title."""
    (found,) = pieces(ADR, Path(f"{stem}.md"))
    assert (found.content, found.tags, found.category) == (ADR.strip(), ("adr",), "decision")


def test_a_long_decision_record_is_cut() -> None:
    """What no memory should be long for."""
    found = pieces(ADR + "\n## Context\n\n" + "It was so. " * 500, Path("ADR-7.md"))
    assert len(found) == 3
    assert all("adr" in each.tags for each in found)


@pytest.mark.parametrize(
    ("text", "content", "tags"),
    [
        (
            """---
id: 1b2c3d4e
timestamp: 2026-01-02T03:04:05Z
agent: claude
user: ada
topics: [billing, vat]
---

# VAT

VAT is 20 %.
""",
            "# VAT\n\nVAT is 20 %.",
            ("billing", "vat"),
        ),
        (
            """---
id: mem-prices-59db126f
subject: Prices are in cents
citations:
  - path: prices.py
    line: 2
tags:
  - billing
---

**Fact**: `price()`.
""",
            "Prices are in cents\n\n**Fact**: `price()`.",
            ("billing",),
        ),
    ],
)
def test_a_memory_of_another_toolset_is_one_piece(
    text: str, content: str, tags: tuple[str, ...]
) -> None:
    """With its own tags, and without its frontmatter."""
    for each in (text, "\ufeff" + text.replace("\n", "\r\n")):
        (found,) = pieces(each, Path("20260102_030405_1b2c3d4e.md"))
        assert (found.content, found.tags) == (content, tags)


def test_a_tag_is_the_text_that_stands_there() -> None:
    """Whatever YAML would make of it: a number, a truth value or a date."""
    head = "id: mem-a\nsubject: 1.10\ntags: [1.10, 007, yes, null, 2026-01-02]\n"
    (found,) = pieces(f"---\n{head}---\n\nIt is out.\n", Path("mem-a.md"))
    assert found.content == "1.10\n\nIt is out."
    assert found.tags == ("1.10", "007", "yes", "null", "2026-01-02")


PARTS = [
    "# ", "## ", "- ", "  - ", "1. ", "> ", "```\n", "\n", "\n\n", "text", " ", "\t", "---\n",
    "<div>", "| a | b |\n", "\r", "\u2028", "é", "===\n", "* * *\n", ": ",
]  # fmt: skip


@given(
    st.lists(
        st.sampled_from(PARTS),
        max_size=40,
    ).map("".join)
)  # fmt: skip
def test_no_text_of_a_file_is_lost(text: str) -> None:
    """Whatever its shape: text is in a piece, none is empty, and lines go up.

    A heading with nothing below it, and what may be frontmatter, are no text.
    """
    found = pieces(text, Path("x.md"))
    has_heading = bool({*"#-="} & {*text})
    assert all(each.content.strip() == each.content for each in found)
    assert [each.line for each in found] == sorted(each.line for each in found)
    if "text" in text and not has_heading:
        assert any("text" in each.content for each in found)


# --- finding --------------------------------------------------------------------------------------


def test_files_that_look_like_memories_are_found_and_offered(memories: Memories) -> None:
    """Nothing is made by that; once there are memories, nothing is offered."""
    assert memories.project
    assert importing.scan(memories.project) == ["NOTES.md", ".claude/style.md", "docs/adr-7.md"]
    said = importing.offer(memories)
    assert said and "NOTES.md, .claude/style.md, docs/adr-7.md" in said
    assert not (memories.project / ".memory").exists()
    memories.store("The first one.")
    assert importing.offer(memories) is None


def test_what_is_installed_hidden_or_linked_is_not_found(
    memories: Memories, tmp_path: Path
) -> None:
    """Nor what lies outside, by whatever way it is reached."""
    assert memories.project
    for name in ("node_modules/x", ".venv", ".git", ".claude/commands"):
        (memories.project / name).mkdir(parents=True)
        (memories.project / name / "NOTES.md").write_text("- other\n", encoding="utf-8")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "MEMORY.md").write_text("- secret\n", encoding="utf-8")
    try:
        (memories.project / "linked").symlink_to(outside)
        (memories.project / "MEMORY.md").symlink_to(outside / "MEMORY.md")
    except OSError:
        pytest.skip("links cannot be made here")
    assert importing.scan(memories.project) == ["NOTES.md", ".claude/style.md", "docs/adr-7.md"]
    for path in ("linked/MEMORY.md", "linked", "MEMORY.md", "../outside/MEMORY.md",
                 str(outside / "MEMORY.md"), "/etc/hostname", "~/x.md", "a\0b", ""):  # fmt: skip
        with pytest.raises(InvalidInput, match="file_paths"):
            importing.preview(memories, [path])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
def test_what_is_no_file_is_not_read(memories: Memories) -> None:
    """A pipe would be waited for, and a huge file read to its end."""
    assert memories.project
    os.mkfifo(memories.project / "MEMORY.md")
    with (memories.project / "ADR-1.md").open("wb") as stream:
        stream.truncate(1 << 30)
    (memories.project / "ADR-2.md").write_bytes(b"\xff\xfe")
    (memories.project / "ADR-3.md").write_text("---\n \n---\n", encoding="utf-8")
    (memories.project / "ADR-4.md").touch()
    skipped = dict(importing.preview(memories).skipped)
    assert skipped == {
        "MEMORY.md": "it is a pipe",
        "ADR-1.md": "it is larger than 320 KiB: 1,073,741,824 bytes",
        "ADR-2.md": "it is no text in UTF-8",
        "ADR-3.md": "it has nothing that could be a memory",
        "ADR-4.md": "it has nothing that could be a memory",
    }


@pytest.mark.timeout(20)
def test_import_markdown_yaml_aliases_that_mean_too_much_are_named(memories: Memories) -> None:
    """Topics that some hundred bytes of aliases make of nested lists are never written out."""
    assert memories.project
    nested = "".join(f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 10)}]\n" for n in range(1, 10))
    head = f"id: x\ntimestamp: y\nagent: z\nk0: &k0 x\n{nested}topics: *k9\n"
    (memories.project / "bomb.md").write_text(f"---\n{head}---\nText.\n")
    skipped = importing.preview(memories, ["bomb.md"]).skipped
    why = "its frontmatter has more than 65,536 characters with its aliases written out"
    assert [(each.path, each.reason) for each in skipped] == [("bomb.md", why)]


def test_without_a_project_nothing_is_read(tmp_path: Path) -> None:
    """An agent cannot name files of the whole machine."""
    alone = Memories(tmp_path, None, None, Config())
    with pytest.raises(InvalidProject):
        importing.preview(alone, ["/etc/hostname"])
    with pytest.raises(InvalidInput):
        importing.preview(alone, None, [tmp_path])
    assert importing.offer(alone) is None


# --- importing ------------------------------------------------------------------------------------


def test_a_preview_changes_nothing_and_an_import_does_what_it_says(memories: Memories) -> None:
    """With tags and priority as shown; a second run adds nothing, and no file is touched."""
    project = memories.project
    assert project
    before = {path: path.read_bytes() for path in project.rglob("*.md")}
    shown = importing.preview(memories)
    assert not (project / ".memory").exists()
    assert len(shown.new) == len(shown.candidates) == 8
    by_tag = {each.draft.tags: each.draft.priority for each in shown.candidates}
    assert by_tag[("adr",)] == by_tag[("security",)] == "HIGH"
    assert by_tag[("shop",)] == "NORMAL"
    done = importing.run(memories, importing.preview(memories))
    assert (len(done.ids), done.already) == (8, 0)
    held = {each.content: each for each in memories.list(limit=100).memories}
    for each in shown.candidates:
        memory = held[each.draft.content]
        assert (memory.source, memory.path) == ("import", each.path)
        assert (memory.tags, memory.priority) == (each.draft.tags, each.draft.priority)
        assert memory.scope == "project"
    again = importing.run(memories, importing.preview(memories))
    assert (again.ids, again.already) == ([], 8)
    assert list(memories.list(limit=100).memories) == list(held.values())
    assert {path: path.read_bytes() for path in project.rglob("*.md")} == before


def test_an_import_that_is_broken_off_is_finished_by_the_next(memories: Memories) -> None:
    """What was taken over stays, once."""

    def broken(items: object) -> Iterator[importing.Candidate]:
        assert isinstance(items, list)
        yield from items[:3]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        importing.run(memories, importing.preview(memories), broken)
    assert memories.list().total == 3
    done = importing.run(memories, importing.preview(memories))
    assert (len(done.ids), done.already, memories.list().total) == (5, 3, 8)


def test_pieces_of_too_many_lines_are_refused() -> None:
    """Each may be a piece, and costs a parser more than its characters."""
    assert len(pieces("- fact of mine\n" * 4_000, Path("a.md"))) == 4_000
    with pytest.raises(MalformedFile, match="it has more than 8,000 lines"):
        pieces("#\n" * 8_001, Path("a.md"))


def test_undo_of_a_merge_with_an_import(memories: Memories) -> None:
    """What was imported comes back with its own date and file."""
    memories.store("Facts are of mine")
    written = "---\ndate: 2026-01-02\n---\nfacts are of MINE\n"
    assert memories.project
    (memories.project / "MEMORY.md").write_text(written, encoding="utf-8")
    preview = importing.preview(memories, ["MEMORY.md"])
    memories.store_all([each.draft for each in preview.candidates])
    kept, again = memories.undo()
    assert (kept.content, kept.path) == ("Facts are of mine", None)
    assert (again.content, again.path) == ("facts are of MINE", "MEMORY.md")
    assert again.created_at.startswith("2026-01-0")


def test_a_large_import_is_written_in_few_batches(memories: Memories) -> None:
    """SQLite counts in its file how often that was changed; each time waits for the disk."""
    assert memories.project
    notes = "\n".join(f"- fact {number}" for number in range(1_000))
    (memories.project / "NOTES.md").write_text(notes, encoding="utf-8")
    memories.store("Fact  7")
    path = memories.project / ".memory" / "db"

    def changes() -> int:
        return int.from_bytes(path.read_bytes()[24:28], "big")

    def broken(items: Sequence[importing.Candidate]) -> Iterator[importing.Candidate]:
        yield from items[:130]
        raise KeyboardInterrupt

    before = changes()
    with pytest.raises(KeyboardInterrupt):
        importing.run(memories, importing.preview(memories, ["NOTES.md"]), broken)
    assert (memories.list().total, changes() - before) == (131, 2)
    done = importing.run(memories, importing.preview(memories, ["NOTES.md"]))
    assert (len(done.ids), done.already, memories.list().total) == (869, 131, 1_000)
    assert changes() - before <= 12


def test_what_was_imported_is_known_whatever_became_of_it(memories: Memories) -> None:
    """Edited or merged; not when it was forgotten, of which nothing is kept."""
    ids = importing.run(memories, importing.preview(memories)).ids
    with memories.databases["project"].writing() as sql:  # as an earlier version has left it
        sql.execute("DROP TABLE imports")
        sql.execute("ALTER TABLE memories DROP COLUMN spaced")
        sql.execute("DROP TABLE words")
        sql.execute(
            "CREATE VIRTUAL TABLE words USING fts5(content, tags, content='memories',"
            " content_rowid='id', tokenize='porter unicode61 remove_diacritics 2')"
        )
        sql.execute("ALTER TABLE merges DROP COLUMN act")
        sql.execute("DROP TABLE exchanged")
        sql.execute("PRAGMA user_version = 2")
    memories.close()
    memories.update(ids[0], content="It says something else now.")
    memories.merge([ids[0], ids[1]])
    kept = memories.merge([ids[2], ids[3]])
    memories.update(kept.id, content="And so does this.")
    assert (importing.run(memories, importing.preview(memories)).ids, memories.list().total) == (
        [],
        6,
    )
    memories.undo()
    assert importing.run(memories, importing.preview(memories)).ids == []
    memories.delete(ids[5])
    assert len(importing.run(memories, importing.preview(memories)).ids) == 1
    with memories.databases["project"].reading() as sql:
        assert sql.execute("SELECT count(*) FROM imports").fetchall() == [(8,)]


def test_a_directory_of_memories_is_read_as_a_whole(memories: Memories, tmp_path: Path) -> None:
    """This product's own, wherever it is, when a person or the settings allow it."""
    base = tmp_path / "aiaml"
    (base / "files").mkdir(parents=True)
    text = "---\nid: {0}\ntimestamp: t\nagent: a\nuser: u\ntopics: [pets]\n---\n\nThe dog is {0}.\n"
    for name in ("rex", "bello"):
        (base / "files" / f"{name}.md").write_text(text.format(name), encoding="utf-8")
    assert memories.project
    done = importing.run(
        memories, importing.preview(memories, [str(base)], [memories.project, base])
    )
    assert len(done.ids) == 2
    held = memories.list().memories
    assert {each.content for each in held} == {"The dog is rex.", "The dog is bello."}
    assert {each.path for each in held} == {
        str(base / "files" / f"{n}.md") for n in ("rex", "bello")
    }


@pytest.mark.parametrize("equal", [str.upper, lambda text: text.replace(" ", "  ")])
def test_what_is_there_already_is_not_taken_over(
    memories: Memories, equal: Callable[[str], str]
) -> None:
    """Also where it differs by case and blanks alone; its tags stay as they are."""
    memories.store(equal("Tabs, never spaces."), tags=["own"])
    (shown,) = importing.preview(memories, [".claude"]).candidates
    assert not shown.is_new
    assert importing.run(memories, importing.preview(memories, [".claude"])).ids == []
    assert [each.tags for each in memories.list().memories] == [("own",)]


# --- times and tags -------------------------------------------------------------------------------

DATED = """\
---
title: Brewing
tags: [coffee, brewing]
date: 2024-01-05
permalink: notes/brewing
---

Water has 93 degrees.

## 2024-03-01 Observations

- [method] Pour slowly #v60
- relates_to [[Grinder]]
- [Scales](scales.md)
"""


def test_dates_tags_and_title_of_a_file() -> None:
    """The frontmatter's, a heading's for what stands under it; links alone are no memory.

    A heading's date is no tag.
    """
    first, second = pieces(DATED, Path("brewing.md"))
    assert first.content == "Brewing\n\nWater has 93 degrees."
    assert (first.tags, str(first.created)[:10]) == (("coffee", "brewing"), "2024-01-05")
    assert second.content == "Brewing > 2024-03-01 Observations: Pour slowly #v60"
    assert second.tags == ("coffee", "brewing", "method", "observations", "v60")
    assert str(second.created)[:10] == "2024-03-01"
    (dated,) = pieces("# 2024-03-01\n\n- Pour slowly", Path("diary.md"))
    assert dated.tags == ()


@pytest.mark.parametrize(
    ("line", "day"),
    [("Date: 2023-02-03", "2023-02-03"), ("* **Date**: 3 February 2023", "2023-02-03"),
     ("- Date: February 3, 2023", "2023-02-03"), ("Date: some day", None)],
)  # fmt: skip
def test_date_of_a_decision_record(line: str, day: str | None, tmp_path: Path) -> None:
    """Its own line, else when the file was changed."""
    path = tmp_path / "ADR-7.md"
    path.write_text(ADR, encoding="utf-8")
    os.utime(path, (1_500_000_000, 1_500_000_000))
    (found,) = pieces(ADR.replace("## Status", f"{line}\n\n## Status"), path)
    assert str(found.created)[:10] == (day or "2017-07-14")


def test_import_keeps_the_time_of_a_memory(memories: Memories, tmp_path: Path) -> None:
    """Recency and date filters are true of what was written years ago."""
    notes = tmp_path / "notes.md"
    notes.write_text(DATED, encoding="utf-8")
    importing.run(memories, importing.preview(memories, [str(notes)], [tmp_path]))
    held = memories.list(Filters(until="2024-02"))
    assert [each.created_at[:10] for each in held.memories] == ["2024-01-05"]
    assert held.memories[0].updated_at == held.memories[0].created_at


# --- there and back -------------------------------------------------------------------------------

NAMES = ("content", "tags", "priority", "category", "source", "path", "scope", "created_at",
         "updated_at", "access_count", "last_accessed_at", "usage_contexts")  # fmt: skip
line = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=40).filter(
    lambda text: text.strip() == text and memory_rules.check_line("x", text) == text
)


def _is_content(text: str) -> bool:
    try:
        return memory_rules.check_content(text) == text
    except InvalidInput:
        return False


texts = st.text(min_size=1, max_size=300).filter(_is_content)


@given(
    texts, st.lists(line, max_size=5), st.sampled_from(memory_rules.PRIORITIES), st.none() | line,
    st.sampled_from(memory_rules.SOURCES), st.lists(line, max_size=3), st.integers(0, 10**6),
)  # fmt: skip
def test_a_memory_as_a_file_and_back(
    content: str, tags: list[str], priority: str, category: str | None, source: str,
    contexts: list[str], used: int,
) -> None:  # fmt: skip
    """Whatever it holds, nothing is lost, neither as a file nor as a line."""
    one = Memory(
        "global:1", content, "0" * 64, priority, category,
        memory_rules.check_tags(tags), None, source,
        "2024-01-05T10:00:00.123456Z", "2025-01-05T10:00:00.000001Z", None, None, None, used,
        "2025-06-05T10:00:00.000000Z" if used else None, tuple(contexts), None,
    )  # fmt: skip
    portable = as_file(one, "abcdef12")
    (piece,) = pieces(files.format(portable), Path("a.md"))
    for made in (piece.draft, draft_of(_of_line(portable))):
        assert made is not None
        draft = made.checked()
        assert (draft.content, draft.tags, draft.category) == (content, one.tags, category)
        assert (draft.priority, draft.source, draft.scope) == (priority, source, "global")
        assert memory_rules.shown(draft.created) == one.created_at
        assert memory_rules.shown(draft.updated) == one.updated_at
        assert draft.used == used and tuple(draft.contexts) == tuple(contexts)
        assert memory_rules.shown(draft.last_used) == one.last_accessed_at


def _of_line(portable: files.Memory) -> files.Memory:
    value = json.loads(shapes.line_of(portable))
    return files.Memory(
        **{**value, "topics": tuple(value["topics"]), "extra": tuple(value["extra"])}
    )


@pytest.mark.parametrize("target", ["all.jsonl", "notes"])
def test_export_and_import_lose_nothing(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of both databases; into others that are empty, and nothing comes twice."""
    monkeypatch.chdir(tmp_path)
    told: list[list[object]] = []
    for home in ("one", "two"):
        place, project = tmp_path / home, tmp_path / home / "shop"
        (project / ".memory").mkdir(parents=True)
        for name in ("HOME", "USERPROFILE"):
            monkeypatch.setenv(name, str(place))
        monkeypatch.setenv("AIAML_SEMANTIC_PROJECT", str(project))
        memories = Memories(place / ".memory", project, None, Config())
        if home == "one":
            memories.store("Prices are in cents.", ["a b", "c,d"], "HIGH", "decision")
            memories.store("Ada likes tea.", scope="global")
            memories.update("global:1", "Ada likes green tea.", used=True, context="a, b")
            memories.store("\r\n  Lines of Windows,\r\nof Unix\nand blanks behind. \r\n")
            memories.store("茶" * memory_rules.MOST_CONTENT)
            verbs.semantic(["export", target], standalone_mode=False)
        else:
            for _ in range(2):
                verbs.semantic(["import", "--yes", target], standalone_mode=False)
        told.append([[getattr(each, name) for name in NAMES] for each in memories.every()])
        memories.close()
    assert len(told[0]) == 4 and sorted(map(repr, told[0])) == sorted(map(repr, told[1]))


# --- other programs -------------------------------------------------------------------------------


def test_foreign_sources_come_with_their_times(memories: Memories, tmp_path: Path) -> None:
    """mem0's export here; every reader of the default's import is used."""
    source = tmp_path / "mem0.json"
    source.write_text(
        json.dumps({"results": [
            {"id": "1", "memory": "Likes tea", "categories": ["food"], "user_id": "ada",
             "created_at": "2024-05-06T07:08:09Z"},
        ]}),
        encoding="utf-8",
    )  # fmt: skip
    kind = importing.foreign_kind(source)
    assert kind == "mem0" and importing.foreign_kind(tmp_path / "none") is None
    done = importing.run(memories, importing.preview(memories, [], [tmp_path], [(source, kind)]))
    (one,) = (memories.get(each) for each in done.ids)
    assert (one.content, one.created_at[:10], one.tags) == ("Likes tea", "2024-05-06", ("food",))


def test_mcp_memory_service_and_claude_mem(memories: Memories, tmp_path: Path) -> None:
    """Their own databases, with times, tags and kinds; what was deleted there stays away."""
    sqlite = pytest.importorskip("sqlite3")
    service, other = tmp_path / "sqlite_vec.db", tmp_path / ".claude-mem" / "claude-mem.db"
    other.parent.mkdir()
    with closing(sqlite.connect(service)) as database:
        database.executescript(
            "CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, content_hash TEXT UNIQUE"
            " NOT NULL, content TEXT NOT NULL, tags TEXT, memory_type TEXT, metadata TEXT,"
            " created_at REAL, updated_at REAL, created_at_iso TEXT, updated_at_iso TEXT,"
            " deleted_at REAL DEFAULT NULL);"
            "CREATE TABLE memory_embeddings (x);"
            "INSERT INTO memories VALUES (1, 'a', 'Prices are in cents', 'billing,shop',"
            " 'decision', '{}', 1715000000.5, 1715000000.5, 'x', 'x', NULL);"
            "INSERT INTO memories VALUES (2, 'b', 'gone', '', NULL, '{}', 1, 1, 'x', 'x', 2.0);"
            "INSERT INTO memories VALUES (-9223372036854775808, 'c', 'negative', '', '', '',"
            " 1715000000.5, 1, 'x', 'x', NULL);"
        )
    with closing(sqlite.connect(other)) as database:
        database.executescript(
            "CREATE TABLE observations (id INTEGER PRIMARY KEY, memory_session_id TEXT,"
            " project TEXT, text TEXT, type TEXT, title TEXT, facts TEXT, narrative TEXT,"
            " concepts TEXT, created_at TEXT, created_at_epoch INTEGER);"
            "CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, project TEXT, request TEXT,"
            " learned TEXT, created_at TEXT);"
            "INSERT INTO observations VALUES (1, 's', 'shop', '', 'bugfix', 'Rounding fixed',"
            " '[\"cents were lost\"]', 'Euros were rounded twice.', '[\"gotcha\"]',"
            " '2025-12-01T10:00:00.000Z', 1);"
            "INSERT INTO session_summaries VALUES (1, 'shop', 'Fix it', 'Round once.',"
            " '2025-12-02T10:00:00.000Z');"
        )
    found = [(each, importing.foreign_kind(each)) for each in (service, other.parent)]
    assert [kind for _, kind in found] == ["mcp-memory-service", "claude-mem"]
    done = importing.run(
        memories,
        importing.preview(memories, [], [tmp_path], [(path, str(kind)) for path, kind in found]),
    )
    held = {each.content: each for each in map(memories.get, done.ids)}
    assert set(held) == {
        "negative",
        "Prices are in cents",
        "# Rounding fixed\n\nEuros were rounded twice.\n\ncents were lost",
        "Fix it\n\nRound once.",
    }
    price = held["Prices are in cents"]
    assert (price.created_at[:10], price.tags) == ("2024-05-06", ("billing", "shop", "decision"))
    fixed = held["# Rounding fixed\n\nEuros were rounded twice.\n\ncents were lost"]
    assert fixed.created_at[:10] == "2025-12-01" and {"gotcha", "bugfix"} <= set(fixed.tags)
    assert not done.skipped
