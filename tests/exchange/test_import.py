"""`aiaml import`: notes of other systems become memories, once, and their source stays as it is."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from aiaml_server import terminal
from aiaml_server.cli import main
from aiaml_server.cli.export import FORMATS
from aiaml_server.exchange.found import Found, Kept, Note
from aiaml_server.exchange.kinds import KINDS, READERS, Reading
from aiaml_server.exchange.plan import Planner
from aiaml_server.format.memory import MAX_ID, Memory, format, parse  # noqa: A004
from aiaml_server.storage import store
from aiaml_server.storage.store import Store
from paths import ROOT, TESTS

SOURCES = (TESTS / "fixtures") / "sources"
posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no such thing")

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def bring(bank: Store, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `aiaml import --json --yes` and return what it says."""

    def run(*words: str | Path, code: int = 0) -> dict[str, Any]:
        assert bank
        assert main(["import", *map(str, words), "--json", "--yes"]) == code
        said: dict[str, Any] = json.loads(capsys.readouterr().out)
        return said

    return run


def memories(bank: Store) -> list[Memory]:
    """Return what the bank holds, in the order of its contents."""
    return sorted((memory for _, memory in bank.scan()), key=lambda memory: memory.content)


def reasons(said: dict[str, Any]) -> dict[str, str]:
    """Return why each place was skipped."""
    return {skip["place"]: skip["reason"] for skip in said["skipped"]}


# --- what becomes what ------------------------------------------------------------------------

BECOMES = {
    "basic-memory": {
        "basic-memory/coffee/brewing.md": "coffee brewing guide filter method preference",
        "basic-memory/water.md": "water",
    },
    "vault": {
        "vault/2024-02-03.md": "obsidian",
        "vault/Recipes/Bread.md": "baking weekend recipe/bread sourdough recipes",
        "vault/Recipes/Starter.md": "starter2 recipes",
    },
    "claude": {
        "claude/CLAUDE.md": "claude",
        "-home-me-shop/memory/package-manager.md": "feedback shop",
        "-home-me-shop/memory/prices.md": "project shop",
    },
    "shop": {
        "shop/.serena/memories/suggested_commands.md": "suggested commands shop",
        "shop/.serena/memories/auth/login.md": "login auth shop",
    },
    "shop/CLAUDE.md": {"shop/CLAUDE.md": "claude shop"},
    "graph.jsonl": {
        "sources/graph.jsonl#Anna Rossi": "person anna rossi",
        "sources/graph.jsonl#Orchestra": "organization orchestra",
    },
    "plain": {"plain/trip.md": "trip"},
    "first-aiaml": {"first-aiaml/files/20250701_101500_a1b2c3d4.md": "python types"},
}


@pytest.mark.parametrize("source", BECOMES)
def test_each_note_becomes_a_memory_with_topics(source: str, bring: Run, bank: Store) -> None:
    """Tags, folders and names become topics; every memory is whole and in our format."""
    said = bring(SOURCES / source, "--user", "marco")
    assert {each["place"]: " ".join(each["topics"]) for each in said["new"]} == BECOMES[source]
    assert len(memories(bank)) == len(BECOMES[source])
    for name, memory in bank.scan():
        assert bank.text(name) == format(memory)
        assert memory.user == "marco"


@pytest.mark.parametrize(
    ("source", "agent"),
    [
        ("basic-memory", "basic-memory"),
        ("vault", "obsidian"),
        ("claude", "claude-code"),
        ("shop", "serena"),
        ("shop/CLAUDE.md", "claude-code"),
        ("graph.jsonl", "mcp-memory"),
        ("plain/trip.md", "markdown"),
        ("first-aiaml", "claude"),
    ],
)
def test_the_kind_of_a_source_is_told(source: str, agent: str, bring: Run) -> None:
    """Nobody has to know the name of a format; the author follows from it."""
    assert {each["agent"] for each in bring(SOURCES / source)["new"]} == {agent}


def test_a_note_keeps_its_text_and_its_other_properties(bring: Run, bank: Store) -> None:
    """A title that only the file's name has stands above the text; nothing else is added."""
    bring(SOURCES / "vault")
    bread = next(memory for memory in memories(bank) if "flour" in memory.content)
    assert bread.content == (
        "# Bread\n\n500 g flour, 350 g water, 10 g salt. See [[Starter]]. #recipe/bread\n\n"
        "```\nnot a #tag\n```"
    )
    assert bread.extra[2:] == ('aliases: ["Sourdough"]', 'created: "2024-01-15"', 'rating: "5"')


def test_an_entity_tells_its_observations_and_relations(bring: Run, bank: Store) -> None:
    """The knowledge graph can be read by a person, and a relation that hangs loose is named."""
    said = bring(SOURCES / "graph.jsonl")
    assert memories(bank)[0].content == (
        "# Anna Rossi (person)\n\n- Lives in Turin\n- Plays the cello\n\n- plays_in Orchestra"
    )
    assert reasons(said) == {
        "sources/graph.jsonl:4": "it relates 'Nobody' to 'Nothing', and neither is there",
        "sources/graph.jsonl:5": "the line is no JSON",
    }


def test_what_is_no_note_is_skipped_with_its_reason(bring: Run) -> None:
    """Attachments, empty notes, an index of other files and what is hidden are no memories."""
    assert reasons(bring(SOURCES / "vault")) == {
        "vault/Empty.md": "it is empty",
        "vault": "other files, which are no markdown: 1 .png",
    }
    assert reasons(bring(SOURCES / "claude")) == {
        "-home-me-shop/memory/MEMORY.md": "it is the index of the files beside it",
    }


def test_each_section_can_become_a_memory(bring: Run, bank: Store) -> None:
    """`--split heading` cuts at the upper two levels; a heading without a text is left out."""
    said = bring(SOURCES / "plain", "--split", "heading")
    assert [(each["place"], each["content"]) for each in said["new"]] == [
        ("plain/trip.md", "# trip\n\nThings for the trip."),
        ("plain/trip.md#Lisbon", "# trip › Lisbon\n\nTake the tram."),
        ("plain/trip.md#Food", "## trip › Lisbon › Food\n\nPastries."),
    ]
    assert len(memories(bank)) == 3


def test_a_heading_inside_code_does_not_split(tmp_path: Path, bring: Run) -> None:
    """A comment in a script is no section."""
    (tmp_path / "a.md").write_text("# One\n\n```sh\n# two\n```\n\n## Three\nx\n")
    said = bring(tmp_path / "a.md", "--split", "heading")
    assert [each["content"] for each in said["new"]] == [
        "# a › One\n\n```sh\n# two\n```",
        "## a › One › Three\nx",
    ]


@pytest.mark.parametrize(
    ("name", "head", "timestamp"),
    [
        ("a.md", "created: 2024-01-15T08:30:00+01:00", "2024-01-15T07:30:00.000000+00:00"),
        ("a.md", "date: 2024-01-15T08:30:00Z", "2024-01-15T08:30:00.000000+00:00"),
        ("a.md", "created: soon\nupdated: 2024-01-15 08:30Z", "2024-01-15T08:30:00.000000+00:00"),
        ("a.md", "title: x", "2021-02-03T04:05:06.000000+00:00"),
        ("a.md", "", "2021-02-03T04:05:06.000000+00:00"),
    ],
)
def test_the_time_of_the_source_is_kept(
    name: str, head: str, timestamp: str, tmp_path: Path, bring: Run, bank: Store
) -> None:
    """It is what the note says, or else when its file was changed; the new file's name has it."""
    note = tmp_path / name
    note.write_text(f"---\n{head}\n---\ntext" if head else "text")
    os.utime(note, (1612325106, 1612325106))
    bring(note)
    [(file, memory)] = bank.scan()
    assert memory.timestamp == timestamp
    assert file.startswith(timestamp[:10].replace("-", "") + "_")


def test_a_daily_note_is_of_its_day(tmp_path: Path, bring: Run, bank: Store) -> None:
    """A name that begins with a date says when."""
    (tmp_path / "2024-02-03 lake.md").write_text("text")
    bring(tmp_path / "2024-02-03 lake.md")
    assert memories(bank)[0].file_name.startswith(("20240203", "20240202"))  # local midnight


def test_the_user_is_the_one_that_most_memories_are_about(bring: Run, bank: Store) -> None:
    """Nobody has to say it where the bank knows."""
    for user in ("anna", "marco", "marco"):
        bank.add(Memory.new("a", user, ["t"], "c"))
    assert {each["user"] for each in bring(SOURCES / "plain")["new"]} == {"marco"}


def test_a_kind_can_be_named(tmp_path: Path, bring: Run) -> None:
    """`--from` overrides what is told from the source."""
    note = tmp_path / "list.text"
    note.write_text("milk")
    assert bring(note, "--from", "markdown")["new"][0]["content"] == "# list\n\nmilk"


# --- nothing is lost --------------------------------------------------------------------------


def found(word: str, capsys: pytest.CaptureFixture[str]) -> int:
    """Return how many memories the search finds by a word."""
    capsys.readouterr()
    main(["search", word, "--json"])
    return len(json.loads(capsys.readouterr().out))


@pytest.mark.parametrize(
    ("name", "text", "word", "begins"),
    [
        ("Sourdough Levain.md", "## Ingredients\nflour", "levain", "# Sourdough Levain\n\n## Ingr"),
        ("Levain.md", "# Bread\nflour", "levain", "# Bread\nflour"),
        ("Levain.md", "## The levain\nflour", "levain", "## The levain\nflour"),
        ("x.md", "---\ntitle: Levain\n---\n## Parts\nflour", "levain", "# Levain\n\n## Parts"),
        ("x.md", "---\naliases: [Levain, Lievito]\n---\n# A\nflour", "lievito", "# A\nflour"),
        ("x.md", "---\nauthor: Poilâne\n---\n# A\nflour", "poilâne", "# A\nflour"),
        ("x.md", "---\ndescription: by hand\n---\n# A\nflour", "hand", "# A\n\nby hand\n\nflour"),
        ("1984.md", "# A\nflour", "1984", "# A\nflour"),
        ("茶.md", "# A\nflour", "茶", "# A\nflour"),
    ],
)
def test_a_note_is_found_by_its_names(
    name: str,
    text: str,
    word: str,
    begins: str,
    tmp_path: Path,
    bring: Run,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The title, the file's name and the aliases are said, in the content or as topics."""
    (tmp_path / name).write_text(text, "utf-8")
    assert bring(tmp_path / name)["new"][0]["content"].startswith(begins)
    assert found(word, capsys) == 1


def test_a_section_says_what_stands_above_it(tmp_path: Path, bring: Run) -> None:
    """A memory of its own would not say of which project it tells."""
    (tmp_path / "ProjectX.md").write_text("# ProjectX\n## Setup ##\nx\n# Use\ny\n## Setup\nz")
    said = bring(tmp_path / "ProjectX.md", "--split", "heading")
    assert [each["content"] for each in said["new"]] == [
        "## ProjectX › Setup\nx",
        "# ProjectX › Use\ny",
        "## ProjectX › Use › Setup\nz",
    ]


def test_every_property_is_kept(tmp_path: Path, bring: Run, bank: Store) -> None:
    """Nested ones, those that have a name of ours, and names that are no words."""
    (tmp_path / "a.md").write_text(
        "---\nmetadata: {type: user, at: [1, {b: 2}]}\nid: 7\n'my: key': x\nempty:\n"
        "tags: [tea, {deep: er}]\n---\n# a\n"
    )
    bring(tmp_path / "a.md", "--from", "markdown")
    [(name, memory)] = bank.scan()
    assert memory.extra[2:] == (
        'metadata: {"type": "user", "at": ["1", {"b": "2"}]}',
        'source-id: "7"',
        '"my: key": "x"',
        'tags: ["tea", {"deep": "er"}]',
    )
    loaded = yaml.safe_load(bank.text(name).split("---")[1])
    assert loaded["metadata"]["at"][1] == {"b": "2"} and loaded["my: key"] == "x"


def test_import_property_of_ours_gets_another_name(tmp_path: Path, bring: Run, bank: Store) -> None:
    """What it means there it does not mean here: the note's `verbatim` is not the memory's."""
    named = {"verbatim": "true", "topics": {"a": "b"}, "agent": "me"}
    (tmp_path / "a.md").write_text(f"---\n{yaml.safe_dump(named)}---\n# Levain\n", "utf-8")
    (tmp_path / "b.json").write_text(json.dumps([{"text": "Bread", **named}]), "utf-8")
    (tmp_path / "c.md").write_text(f"---\ntype: x\n{yaml.safe_dump(named)}---\n# Tea\n", "utf-8")
    bring(tmp_path / "a.md", "--from", "markdown")
    bring(tmp_path / "b.json", "--from", "json")
    bring(tmp_path / "c.md", "--from", "okf")
    assert len(memories(bank)) == 3
    for memory in memories(bank):
        said = yaml.safe_load("\n".join(memory.extra))
        assert {f"source-{name}" for name in named} <= said.keys()
        assert not named.keys() & said.keys()


@pytest.mark.parametrize("ending", ["jsonl", "zip", "okf.zip"])
def test_import_of_our_own_export_keeps_other_keys(
    ending: str, tmp_path: Path, bring: Run, bank: Store
) -> None:
    """Whichever form it came in."""
    kept = Memory.new("claude", "marco", ["car"], "Anna lends Marco her car.")
    kept = bank.add(replace(kept, extra=("mood: glad",)))
    assert main(["export", "--to", str(tmp_path / f"all.{ending}")]) == 0
    (bank.directory / kept.file_name).unlink()
    bring(tmp_path / f"all.{ending}")
    assert [memory.extra for memory in memories(bank)] == [("mood: glad",)]


def test_what_there_is_no_room_for_is_named(
    tmp_path: Path, bring: Run, bank: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """A note that is taken in part is no note that was taken."""
    (tmp_path / "a.md").write_text(f"---\nlong: {'é' * 9_000}\nshort: y\n---\ntext", "utf-8")
    assert main(["import", str(tmp_path / "a.md"), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "Taken in part:" in said and "a.md: the property 'long' is too long" in said
    assert "1 new memory, 1 of them in part" in said
    partly = bring(tmp_path / "a.md")["partly"]
    assert [each["reason"] for each in partly] == ["the property 'long' is too long"]
    assert memories(bank)[0].extra[2:] == ('short: "y"',)


def test_a_note_of_properties_only_is_a_memory(tmp_path: Path, bring: Run) -> None:
    """Books and people are often no more than that; one with a time alone says nothing."""
    folder = tmp_path / "n"
    folder.mkdir()
    (folder / "Emma.md").write_text("---\ntype: book\nby: [Jane, A.]\nat: {shelf: 2}\n---\n")
    (folder / "Ada.md").write_text("---\ntags: [person]\n---\n")
    (folder / "new.md").write_text("---\ncreated: 2024-01-02\n---\n")
    said = bring(folder)
    assert [each["content"] for each in said["new"]] == [
        "# Ada\n\n- tags: person",
        '# Emma\n\n- type: book\n- by: Jane, A.\n- at: {"shelf": "2"}',
    ]
    assert reasons(said) == {"n/new.md": "it is empty"}


@pytest.mark.parametrize(
    "hole", ["{{date}}", "{{date:YYYY-MM-DD}}", "{{title}}", "<% tp.file.title %>"]
)
def test_a_template_is_named_as_left_out(hole: str, tmp_path: Path, bring: Run) -> None:
    """It is no note; but one that shows how they are written is."""
    vault = tmp_path / "vault"
    (vault / ".obsidian").mkdir(parents=True)
    (vault / "Daily.md").write_text(f"---\ncreated: {hole}\n---\n# {hole}\n")
    (vault / "How.md").write_text(f"# How\nWrite `{hole}`:\n\n```\n{hole}\n```\nand {{{{x}}}}.\n")
    said = bring(vault)
    assert [each["place"] for each in said["new"]] == ["vault/How.md"]
    why = f"it is a template ({hole if '{' in hole else '<% tp.'}); `--from markdown` takes it"
    assert reasons(said) == {"vault/Daily.md": why}
    assert len(bring(vault, "--from", "markdown")["new"]) == 1


def test_all_of_claudes_files_of_a_project_arrive(tmp_path: Path, bring: Run) -> None:
    """Rules, and those of its folders; what is left out is named."""
    for name in (
        "CLAUDE.md",
        "AGENTS.md",
        "docs/guide.md",
        "api/CLAUDE.md",
        "api/v2/AGENTS.md",
        "web/.claude/rules/sql.md",
        "node_modules/x/CLAUDE.md",
        ".claude/CLAUDE.md",
        ".claude/rules/style.md",
        ".claude/rules/web/css.md",
        ".claude/commands/go.md",
    ):
        path = tmp_path / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"What {name} says.")
    said = bring(tmp_path / "shop", "--from", "claude", "--dry-run")
    assert sorted(each["place"] for each in said["new"]) == [
        "shop/.claude/CLAUDE.md",
        "shop/.claude/rules/style.md",
        "shop/.claude/rules/web/css.md",
        "shop/AGENTS.md",
        "shop/CLAUDE.md",
        "shop/api/CLAUDE.md",
        "shop/api/v2/AGENTS.md",
        "shop/web/.claude/rules/sql.md",
    ]
    assert reasons(said) == {
        "shop": "other markdown files, which come along without `--from claude`: 1",
    }
    assert said["skipped"][0]["reason"] == "what Claude Code runs, in .claude, is no memory: 1"
    both = bring(tmp_path / "shop")
    agents = {each["place"]: each["agent"] for each in both["new"]}
    assert agents.pop("shop/docs/guide.md") == "markdown"
    assert (len(agents), {*agents.values()}) == (8, {"claude-code"})
    assert both["skipped"] == said["skipped"][:1]


@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md"])
def test_notes_arrive_beside_what_tells_agents_how_to_work(
    tmp_path: Path, bring: Run, name: str
) -> None:
    """As they would without it; what is no note is named."""
    notes = tmp_path / "garden"
    (notes / "recipes").mkdir(parents=True)
    (notes / "recipes" / "bread.md").write_text(
        "---\npermalink: bread\n---\n# Bread\n\n- [fact] Rye. #rye\n"
    )
    (notes / "photo.jpg").write_bytes(b"")
    alone = bring(notes, "--dry-run")
    (notes / name).write_text("Answer briefly.")
    said = bring(notes)
    (bread,) = (each for each in said["new"] if each["agent"] == "basic-memory")
    assert bread["topics"] == alone["new"][0]["topics"]
    assert [each["place"] for each in said["new"]] == [f"garden/{name}", "garden/recipes/bread.md"]
    assert said["skipped"] == alone["skipped"] != []


def test_the_rules_of_a_person_arrive(tmp_path: Path, bring: Run) -> None:
    """Those in `~/.claude`, beside its `CLAUDE.md`."""
    home = tmp_path / ".claude"
    (home / "rules").mkdir(parents=True)
    (home / "rules" / "tests.md").write_text("Test first.")
    (home / "CLAUDE.md").write_text("Be brief.")
    assert len(bring(home)["new"]) == 2


def test_words_that_say_nothing_are_no_topics(tmp_path: Path, bring: Run) -> None:
    """What is called "No tags" is about tags."""
    (tmp_path / "No tags.md").write_text("text")
    assert bring(tmp_path / "No tags.md")["new"][0]["topics"] == ["tags"]


@pytest.mark.parametrize(
    ("stated", "moment"),
    [
        ("24.12.2024", "2024-12-24 00:00"),
        ("4. 3. 2024 08:05", "2024-03-04 08:05"),
        ("2024/3/4", "2024-03-04 00:00"),
        ("20240304", "2024-03-04 00:00"),
        ("20240304080500", "2024-03-04 08:05"),
        ("March 3, 2024", "2024-03-03 00:00"),
        ("Sunday, March 3rd, 2024 at 4:05 PM", "2024-03-03 16:05"),
        ("Sun, 3 Mar 2024 16:05:06 +0000", "2024-03-03 16:05"),
        ("3. März 2024", "2024-03-03 00:00"),
        ("3 de marzo de 2024", "2024-03-03 00:00"),
        ("12/24/2024 12:05 am", "2024-12-24 00:05"),
        ("24/12/2024", "2024-12-24 00:00"),
        ("1710428400", "2024-03-14 15:00"),
        ("1710428400.5", "2024-03-14 15:00"),
        ("1710428400000", "2024-03-14 15:00"),
        ("1710428400000000000", "2024-03-14 15:00"),
        ("03/04/2024", ""),
        ("31.02.2024", ""),
        ("3 Floréal 2024", ""),
        ("March 3, 2024 maybe", ""),
        ("12.12.24", ""),
    ],
)
def test_dates_are_read_as_people_write_them(
    stated: str, moment: str, tmp_path: Path, bring: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that may be two days is not guessed, and is named."""
    monkeypatch.setenv("TZ", "UTC")
    if hasattr(time, "tzset"):
        time.tzset()
    note = tmp_path / "a.md"
    note.write_text(f"---\ncreated: {stated}\n---\ntext")
    os.utime(note, (1612325106, 1612325106))
    said = bring(note)
    local = datetime.fromisoformat(moment or "2021-02-03 04:05")
    assert said["new"][0]["timestamp"].startswith(local.astimezone(timezone.utc).isoformat()[:16])
    why = [f"created: {stated!r} names no day for certain"]
    assert [each["reason"] for each in said["partly"]] == ([] if moment else why)


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["photo.png", "data.json", "folder", "noend"])
def test_an_unknown_source_is_refused_with_the_kinds(
    name: str, tmp_path: Path, bank: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is guessed; the sentence says what there is to choose from."""
    source = tmp_path / name
    source.mkdir() if name == "folder" else source.write_text("{}")
    assert main(["import", str(source)]) == 2
    said = capsys.readouterr().err
    assert all(kind in said for kind in KINDS) and "--from" in said
    assert memories(bank) == []


@pytest.mark.parametrize("inside", ["", "files"])
def test_the_own_memories_are_refused(
    inside: str, bank: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bank does not import itself."""
    bank.add(Memory.new("a", "u", ["t"], "c"))
    assert main(["import", str(bank.base / inside), "--yes"]) == 2
    assert "your own memory directory" in capsys.readouterr().err
    assert len(memories(bank)) == 1


def test_own_memories_below_a_source_are_left_out(tmp_path: Path, bring: Run, bank: Store) -> None:
    """A folder above the bank can be imported."""
    bank.add(Memory.new("a", "u", ["t"], "c"))
    (tmp_path / "a.md").write_text("text")
    said = bring(tmp_path, "--from", "markdown")
    assert [each["content"] for each in said["new"]] == ["# a\n\ntext"]
    assert list(reasons(said).values()) == ["these are your own memories"]


def test_the_documentation_names_every_kind_and_format() -> None:
    """What there is can be read, and what can be read is there."""
    text = (ROOT / "docs" / "import.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([a-z0-9-]+)` \|", text, re.MULTILINE) == [*KINDS, *FORMATS]


# --- asking -----------------------------------------------------------------------------------


def test_nothing_is_added_before_somebody_says_yes(
    bank: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a terminal there is nobody to ask, and it says so."""
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["import", str(SOURCES / "plain")]) == 1
    said = capsys.readouterr()
    assert "1 new memory" in said.out and "`--yes` says yes" in said.err
    assert memories(bank) == []


def test_a_dry_run_only_says(bank: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """With or without --yes."""
    assert main(["import", str(SOURCES / "plain"), "--dry-run", "--yes"]) == 0
    assert "plain/trip.md [trip]" in capsys.readouterr().out
    assert memories(bank) == []


@posix
@pytest.mark.parametrize(("answer", "code", "count"), [("y", 0, 3), ("n", 1, 0)])
def test_on_a_terminal_it_asks(answer: str, code: int, count: int, bank: Store) -> None:
    """The answer decides; standard output stays free of question and progress."""
    import pty

    outer, inner = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "aiaml_server", "import", str(SOURCES / "vault")],
        stdin=inner,
        stdout=subprocess.PIPE,
        stderr=inner,
        env={**os.environ, "TERM": "xterm"},
    ) as process:
        os.write(outer, f"{answer}\n".encode())
        assert process.stdout
        said = process.stdout.read().decode()
        assert process.wait(60) == code
    shown = os.read(outer, 65536).decode()
    os.close(inner)
    os.close(outer)
    assert ("Added 3 memories" in said) == (answer == "y")
    assert "Add them?" not in said and "\x1b" not in said
    assert "Add them?" in shown and ("100%" in shown) == (answer == "y")
    assert len(memories(bank)) == count


# --- twice ------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", BECOMES)
def test_a_second_run_adds_nothing(source: str, bring: Run, bank: Store) -> None:
    """Whatever the kind."""
    first = bring(SOURCES / source)
    before = memories(bank)
    second = bring(SOURCES / source)
    assert (second["new"], len(second["there"])) == ([], len(first["new"]))
    assert memories(bank) == before


def test_a_copy_elsewhere_adds_nothing(tmp_path: Path, bring: Run) -> None:
    """A note is known by what it says, not by where it lies."""
    bring(SOURCES / "vault")
    shutil.copytree(SOURCES / "vault", tmp_path / "moved")
    assert bring(tmp_path / "moved")["new"] == []


def test_import_says_what_is_perhaps_there_already(
    tmp_path: Path, bring: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """What an agent has stored in nearly the same words is named, and added all the same."""
    said = "The billing service moves to PostgreSQL 18 in October, after the backups are checked."
    assert main(["remember", said, "-t", "billing"]) == 0
    capsys.readouterr()
    notes = tmp_path / "notes"
    notes.mkdir()
    alike = "the billing service moves to PostgreSQL 18 in October after backups are checked"
    (notes / "alike.md").write_text(alike, encoding="utf-8")
    (notes / "other.md").write_text("The billing of phones ends in October.", encoding="utf-8")
    new = {Path(each["place"]).name: each["remark"] for each in bring(notes)["new"]}
    assert new["alike.md"].startswith("perhaps there already: ")
    assert new["other.md"] == ""


def test_a_changed_note_is_listed_and_added_when_asked(tmp_path: Path, bring: Run) -> None:
    """What a person wrote anew is neither missed nor doubled in silence."""
    note = tmp_path / "n" / "a.md"
    note.parent.mkdir()
    note.write_text("one")
    bring(note.parent)
    note.write_text("two")
    (note.parent / "b.md").write_text("new")
    said = bring(note.parent)
    assert (said["changed"], [each["place"] for each in said["new"]]) == (["n/a.md"], ["n/b.md"])
    assert [each["place"] for each in bring(note.parent, "--changed")["new"]] == ["n/a.md"]
    assert bring(note.parent, "--changed")["changed"] == []


def test_a_renamed_note_is_known_again(tmp_path: Path, bring: Run) -> None:
    """Its text is the same, and where it was is nothing any more; the preview says so."""
    note = tmp_path / "n" / "one.md"
    note.parent.mkdir()
    note.write_text("---\nx: y\n---\ntext")
    bring(note.parent)
    note.rename(note.with_name("two.md"))
    said = bring(note.parent)
    assert (said["new"], said["there"]) == ([], ["n/two.md"])
    assert said["renamed"] == [{"place": "n/two.md", "before": "n/one.md"}]


@pytest.mark.parametrize("together", [True, False])
def test_notes_of_one_text_are_two_where_their_names_differ(
    together: bool, tmp_path: Path, bring: Run, bank: Store
) -> None:
    """`Alice.md` and `Bob.md` that hold `#person` are no renamed note, whenever they came."""
    folder = tmp_path / "n"
    folder.mkdir()
    (folder / "Alice.md").write_text("#person")
    if not together:
        bring(folder)
    (folder / "Bob.md").write_text("#person")
    bring(folder)
    bring(folder)
    assert [each.content for each in memories(bank)] == ["# Alice\n\n#person", "# Bob\n\n#person"]


@pytest.mark.parametrize("body", ["a line", "## Parts\nflour", "# Title\ntext"])
@pytest.mark.parametrize("copied", [True, False])
def test_what_an_earlier_version_imported_is_known(
    body: str, copied: bool, tmp_path: Path, bring: Run, bank: Store
) -> None:
    """Its digest was of the content with the name in it, wherever the note lies now."""
    content = body if body.startswith("#") else f"# one\n\n{body}"
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    lines = ('imported-from: "markdown:n/one.md"', f'imported-digest: "{digest}"')
    old = Memory("a1b2c3d4", "2024-01-01T00:00:00Z", "markdown", "u", ("one",), content, lines)
    bank.add(old)
    note = tmp_path / ("m" if copied else "n") / "one.md"
    note.parent.mkdir()
    note.write_text(body)
    said = bring(note.parent)
    assert (said["new"], len(said["there"])) == ([], 1)


@pytest.mark.slow
@posix
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_an_import_that_was_interrupted_is_completed_by_the_next(
    sent: signal.Signals, tmp_path: Path, bank: Store, bring: Run
) -> None:
    """What is done is whole, and nothing is done twice."""
    source = tmp_path / "notes"
    source.mkdir()
    for number in range(3000):
        (source / f"{number}.md").write_text(f"note {number}\n" * 50)
    with subprocess.Popen(
        [sys.executable, "-m", "aiaml_server", "import", str(source), "--yes"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while len(bank.names()) < 20:
            assert process.poll() is None
            time.sleep(0.002)
        process.send_signal(sent)
        _, said = process.communicate(timeout=60)
    done = len(bank.names())
    assert 10 <= done < 3000  # the last may have been taken back
    if sent == signal.SIGINT:
        assert process.returncode == 130
        assert f"Stopped before the end: {done:,} of 3,000 memories were added" in said
        assert "Run it again, and it brings the rest" in said
    assert len(memories(bank)) == done
    assert len(bring(source)["new"]) == 3000 - done
    assert len({memory.content for memory in memories(bank)}) == len(memories(bank)) == 3000


@posix
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_import_ended_by_a_signal_clears_up(sent: signal.Signals, tmp_path: Path) -> None:
    """What it unpacked is gone, also where a closed terminal sends its signal twice."""
    scratch, source = tmp_path / "scratch", tmp_path / "export.zip"
    scratch.mkdir()
    with zipfile.ZipFile(source, "w") as archive:
        for number in range(3000):
            archive.writestr(f"{number}.md", f"note {number}\n")
    with subprocess.Popen(
        [sys.executable, "-m", "aiaml_server", "import", str(source), "--yes"],
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        while len(list(scratch.glob("aiaml-import-*/0/*/*.md"))) < 20:
            assert process.poll() is None
            time.sleep(0.002)
        process.send_signal(sent)
        if sent != signal.SIGINT:
            process.send_signal(sent)
        process.communicate(timeout=60)
    assert process.returncode == 128 + sent
    assert list(scratch.iterdir()) == []


def test_import_removes_what_a_killed_one_has_left(
    tmp_path: Path, bring: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day later, by our mark; what another program or person has named so stays."""
    top = tmp_path / "scratch"
    mark = "aiaml-import-0123456789abcdef-"
    names = [f"{mark}abcdefgh", f"{mark}young_00", f"{mark}notes", "aiaml-import-thesis"]
    for name in names:
        (top / name / "0").mkdir(parents=True)
        (top / name / "0" / "a.md").write_text("x")
        if "young" not in name:
            os.utime(top / name, (1, 1))
    monkeypatch.setattr(tempfile, "tempdir", str(top))
    (tmp_path / "a.md").write_text("tea")
    bring(tmp_path / "a.md")
    assert sorted(each.name for each in top.iterdir()) == sorted(names[1:])


def test_many_notes_are_durable_in_few_steps(
    tmp_path: Path, bring: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory is synced once for some hundreds, and each name is taken after its bytes."""
    steps: list[str] = []

    def noted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            steps.append(name)
            return real(*arguments)

        return call

    for name in ("write_temporary", "rename_over", "sync_directory"):
        monkeypatch.setattr(store, name, noted(name, getattr(store, name)))
    for number in range(600):
        (tmp_path / f"{number}.md").write_text(f"note {number}")
    bring(tmp_path, "--from", "markdown")
    assert steps.count("write_temporary") == steps.count("rename_over") == 600
    assert steps.count("sync_directory") == 3
    assert steps.index("rename_over") == 256  # all bytes before the first name


def test_progress_is_told_where_there_is_no_terminal(
    tmp_path: Path, bank: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line now and then, on standard error."""
    monkeypatch.setattr(terminal, "_TOLD_SECONDS", 0.0)
    for number in range(3):
        (tmp_path / f"{number}.md").write_text(f"note {number}")
    assert main(["import", str(tmp_path), "--yes", "--from", "markdown"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert f"Reading {tmp_path.name}: 2" in said and "Adding: 2 of 3" in said
    assert len(memories(bank)) == 3


# --- our own JSON Lines -----------------------------------------------------------------------


def line(**changes: Any) -> str:
    """Return a line of our own format."""
    fields = {
        "id": "a1b2c3d4",
        "timestamp": "2025-01-02T03:04:05.000006+00:00",
        "agent": "claude",
        "user": "marco",
        "topics": ["python"],
        "content": "Marco prefers type hints.",
        "extra": [],
    }
    return json.dumps({key: value for key, value in {**fields, **changes}.items() if value != "-"})


def test_a_memory_keeps_its_id(tmp_path: Path, bring: Run, bank: Store) -> None:
    """And everything else."""
    (tmp_path / "m.jsonl").write_text(line())
    bring(tmp_path / "m.jsonl")
    assert bank.names() == ["20250102_030405_a1b2c3d4.md"]
    assert bring(tmp_path / "m.jsonl")["there"] == [f"{tmp_path.name}/m.jsonl:1"]


def test_an_id_that_another_memory_has_is_drawn_anew(
    tmp_path: Path, bring: Run, bank: Store
) -> None:
    """Once, and it says so."""
    bank.add(Memory("a1b2c3d4", "2024-01-01", "a", "u", ("t",), "something else"))
    (tmp_path / "m.jsonl").write_text(line())
    new = bring(tmp_path / "m.jsonl")["new"][0]
    assert new["remark"] == "a new id: 'a1b2c3d4' is that of another memory"
    assert {memory.id for memory in memories(bank)} == {"a1b2c3d4", new["id"]}
    assert bring(tmp_path / "m.jsonl")["new"] == []


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("garbage", "the line is no JSON"),
        ("[" * 100_000, "the line is no JSON"),
        ("9" * 10_000, "the line is no JSON"),
        ("[]", "the line is no JSON object"),
        ("\udcff", "the line is no JSON"),
        (line(id="-"), "'id' is missing, or no text"),
        (line(id=7), "'id' is missing, or no text"),
        (line(content=None), "'content' is missing, or no text"),
        (line(topics="python"), "'topics' is missing, or no list of texts"),
        (line(topics=[1]), "'topics' is missing, or no list of texts"),
        (line(content="\ud800"), "it holds half of a surrogate pair, which is no text"),
        (line(content="x" * 4_200_000), "it is larger than 4 MiB"),
        (line(extra=["user: mallory"]), "it would not be the same when read again"),
        (line(extra=["---", "content"]), "it would not be the same when read again"),
        (line(timestamp=""), "timestamp is empty"),
    ],
)
def test_a_bad_line_is_skipped_and_the_rest_goes_on(
    bad: str, reason: str, tmp_path: Path, bring: Run
) -> None:
    """With its number and what is wrong with it."""
    source = tmp_path / "m.jsonl"
    source.write_text(f"\ufeff{line()}\n\n{bad}\n{line(id='b1b2c3d4')}", "utf-8", "surrogateescape")
    said = bring(source, "--from", "jsonl")
    assert [each["id"] for each in said["new"]] == ["a1b2c3d4", "b1b2c3d4"]
    assert reasons(said) == {f"{tmp_path.name}/m.jsonl:3": reason}


@pytest.mark.parametrize(
    ("timestamp", "begins"),
    [("2025-01-02T03:04:05Z", "20250102_030405"), ("yesterday", "19700101_000000")],
)
def test_a_timestamp_by_other_hands_is_kept(
    timestamp: str, begins: str, tmp_path: Path, bring: Run, bank: Store
) -> None:
    """It stays as it was written; the file's name says its moment, or 1970 where it names none."""
    (tmp_path / "m.jsonl").write_text(line(timestamp=timestamp))
    bring(tmp_path / "m.jsonl")
    assert bank.names() == [f"{begins}_a1b2c3d4.md"]
    assert memories(bank)[0].timestamp == timestamp


@pytest.mark.parametrize("bad_id", ["", "../../evil", "A1B2C3D4", "x" * 500, "a\nb"])
def test_an_id_that_is_none_of_ours_never_names_a_file(
    bad_id: str, tmp_path: Path, bring: Run, bank: Store
) -> None:
    """An id decides about no path; an empty one is refused, and one too long to be shown."""
    (tmp_path / "m.jsonl").write_text(line(id=bad_id))
    refused = not bad_id or len(bad_id) > MAX_ID
    said = bring(tmp_path / "m.jsonl", code=1 if refused else 0)
    assert len(said["new"]) == (0 if refused else 1)
    for name in bank.names():
        assert name == f"20250102_030405_{said['new'][0]['id']}.md"


# --- hostile sources --------------------------------------------------------------------------


def test_what_cannot_be_read_is_skipped_and_the_rest_goes_on(tmp_path: Path, bring: Run) -> None:
    """Binary, other encodings, empty, too large: each with its reason."""
    source = tmp_path / "n"
    source.mkdir()
    (source / "a.md").write_bytes("Müller".encode("latin-1"))
    (source / "b.md").write_bytes("text".encode("utf-16"))
    (source / "c.md").write_bytes(b"text\0text")
    (source / "d.md").write_bytes(b"\n\n")
    (source / "e.md").write_bytes(b"x" * (1024 * 1024 + 1))
    with (source / "f.md").open("wb") as stream:
        stream.truncate(17 * 1024 * 1024)
    (source / "g.md").write_bytes(b"\xef\xbb\xbfgood\r\n")
    said = bring(source)
    assert reasons(said) == {
        "n/a.md": "it is no UTF-8 text (byte 1)",
        "n/b.md": "it is no UTF-8 text (byte 0)",
        "n/c.md": "it holds NUL bytes, so it is no text",
        "n/d.md": "it is empty",
        "n/e.md": "it is larger than 1 MiB; `--split heading` makes a memory of each section",
        "n/f.md": "it is larger than 16 MiB: 17,825,792 bytes",
    }
    assert [each["content"] for each in said["new"]] == ["# g\n\ngood"]


def test_no_entity_hurts(tmp_path: Path, bank: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """Names that break lines, colour terminals or are no text; observations of any shape."""
    entities: list[dict[str, Any]] = [
        {"name": "a\n---\nuser: mallory\x1b[31m", "observations": ["one\n# two", None, ["x"]]},
        {"name": "\ud800", "entityType": "half a character"},
        {"name": "kept", "entityType": 5, "observations": {"x": "y"}},
        {"name": "told", "observations": [{"content": "twice"}, "twice"]},
        {"name": ["x"]},
        {"name": ""},
    ]
    source = tmp_path / "m.jsonl"
    source.write_text("\n".join(json.dumps({"type": "entity", **each}) for each in entities))
    assert main(["import", str(source), "--user", "marco", "--yes"]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said and "3 new memories, 0 already there, 0 changed, 3 skipped." in said
    assert {memory.user for memory in memories(bank)} == {"marco"}
    assert [memory.content for memory in memories(bank)] == [
        "# a --- user: mallory\x1b[31m\n\n- one\n  # two",
        "# kept",
        "# told\n\n- twice",
    ]


@posix
def test_links_and_pipes_are_not_followed(tmp_path: Path, bring: Run) -> None:
    """No loop, no file from elsewhere, no waiting."""
    source = tmp_path / "n"
    source.mkdir()
    (tmp_path / "secret.md").write_text("secret")
    (source / "a.md").symlink_to(tmp_path / "secret.md")
    (source / "loop").symlink_to(source)
    os.mkfifo(source / "pipe.md")
    (source / "z.md").write_text("good")
    said = bring(source, "--from", "markdown")
    assert reasons(said) == {
        "n/a.md": "it is a symbolic link",
        "n/loop": "it is a symbolic link",
        "n/pipe.md": "it is a pipe",
    }
    assert [each["place"] for each in said["new"]] == ["n/z.md"]


def test_folders_may_be_nested_deeply(tmp_path: Path, bring: Run) -> None:
    """The way down is no recursion."""
    deep = tmp_path.joinpath("n", *["d"] * 40)
    deep.mkdir(parents=True)
    (deep / "a.md").write_text("deep")
    assert len(bring(tmp_path / "n")["new"]) == 1


@pytest.mark.parametrize(
    "head",
    [
        "a: " + "[" * 30_000,
        "a: " + "{" * 1_000,
        "? " * 900,
        "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: &d [*c, *c]\ne: [*d, *d]",
        "a: *nowhere",
        "a: &a [*a]",
        "{{title}}: {{date}}",
        "tags: {a: b}\ntitle: [x]\ncreated: {}\ntype: [y]",
        "a: !!python/object/apply:os.system [true]",
        "\t- x",
        "- a\n- b",
        "id: x\nuser: mallory\ntopics: [y]\nverbatim: true\nsource: z",
        "x: " + "y" * 40_000,
    ],
)
def test_no_frontmatter_hurts(head: str, tmp_path: Path, bring: Run, bank: Store) -> None:
    """Whatever stands there, the note's text becomes one memory, about whom the person said."""
    (tmp_path / "a.md").write_text(f"---\n{head}\n---\nthe text\n")
    bring(tmp_path / "a.md", "--user", "marco", "--from", "markdown")
    [memory] = memories(bank)
    assert memory.content.endswith("the text") and memory.user == "marco"


ALIASES = "".join(f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 10)}]\n" for n in range(1, 10))


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "head",
    [
        f"k0: &k0 {'x' * 9}\n{ALIASES}tags: *k9",
        f"k0: &k0 {'x' * 9}\n{ALIASES}".replace("[", "{a: [").replace("]", "]}"),
        f"long: &long {'x' * 9_000}\nagain: [{'*long, ' * 9}]",
    ],
)
def test_import_yaml_aliases_that_mean_too_much_are_named(
    head: str, tmp_path: Path, bring: Run, bank: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """Some hundred bytes can mean a thousand million values; the other notes are imported."""
    (tmp_path / "bomb.md").write_text(f"---\n{head}\n---\nText.\n")
    (tmp_path / "fine.md").write_text("---\ntags: &a [tea]\nkeywords: *a\n---\nGreen.\n")
    assert main(["import", str(tmp_path), "--dry-run"]) == 0
    why = "its frontmatter has more than 65,536 characters with its aliases written out"
    assert why in " ".join(capsys.readouterr().out.split())
    said = bring(tmp_path)
    assert [each["place"].rpartition("/")[2] for each in said["new"]] == ["fine.md"]
    assert [*reasons(said).values()] == [why]
    assert len(bank.names()) == 1


def contents(top: Path) -> dict[str, tuple[bytes, int]]:
    """Return each file's bytes and time of change, and those of folders."""
    paths = [top, *top.rglob("*")]
    return {
        str(path): (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
        for path in paths
    }


def test_a_source_is_never_changed(tmp_path: Path, bring: Run) -> None:
    """Neither a byte nor a time."""
    shutil.copytree(SOURCES, tmp_path / "s")
    before = contents(tmp_path / "s")
    for source in BECOMES:
        bring(tmp_path / "s" / source)
    assert contents(tmp_path / "s") == before


TEXT = st.text(
    alphabet=st.one_of(
        st.sampled_from("---\n\n# `~[]:,'\"&*!|>{}\t\r tags:title-x"), st.characters()
    ),
    max_size=120,
)


@given(head=TEXT, body=TEXT, kind=st.sampled_from(["markdown", "basic-memory", "claude"]))
def test_any_text_becomes_a_memory_that_reads_back(
    tmp_path_factory: pytest.TempPathFactory, head: str, body: str, kind: str
) -> None:
    """Whatever a note holds: it is skipped with a reason, or its memory's file is as it must be."""
    note = tmp_path_factory.getbasetemp() / "note.md"
    note.write_bytes(f"---\n{head}\n---\n{body}".encode("utf-8", "replace"))
    for split in (False, True):
        found: list[Found] = list(READERS[kind](note, Reading(split=split)))
        assert not any(isinstance(each, Kept) for each in found)
        planner = Planner([], "marco")
        planner.consider(found)
        for addition in planner.plan.additions:
            assert parse(format(addition.memory)) == addition.memory
            assert addition.memory.user == "marco" and addition.memory.topics
        notes = [each for each in found if isinstance(each, Note)]
        planner.consider(notes)
        assert len(planner.plan.there) >= len(notes) - len(planner.plan.skips)
