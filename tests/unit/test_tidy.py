"""What `aiaml tidy` proposes, and that it does nothing by itself."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from aiaml_server import MemoryBank, Settings
from aiaml_server.cli import app
from aiaml_server.format.memory import Memory, parse
from aiaml_server.format.memory import format as format_of
from aiaml_server.format.tidying import Proposal, proposals, unused
from aiaml_server.storage.derived import folder
from aiaml_server.storage.uses import Use
from clock import quick
from paths import TESTS


def made(content: str, *topics: str, user: str = "marco", day: int = 1) -> Memory:
    """Return a memory of a day of 2026."""
    memory = Memory.new("claude", user, topics or ["any"], content)
    stamp = f"2026-01-{day:02}T10:00:00.000000+00:00"
    return Memory(memory.id, stamp, "claude", user, memory.topics, content)


def ending(memory: Memory, until: str) -> Memory:
    """Return the memory with an end."""
    return replace(memory, extra=(f"until: {until}",))


def quiet(items: Sequence[Memory], _doing: str) -> Iterable[Memory]:
    """Show nothing."""
    return items


def found(*memories: Memory) -> list[Proposal]:
    """Return the proposals for some memories."""
    return list(proposals(memories, quiet))


DOG = "Marco's dog Max is allergic to chicken and must get the food with salmon in it"


def test_the_older_of_two_that_say_the_same_may_go() -> None:
    """White space aside; but not what is about another person."""
    old, new = made(DOG, day=1), made(f"{DOG}\n", day=2)
    (only,) = found(old, new, made(DOG, user="anna"))
    assert (only.kind, only.ids, only.command) == (
        "duplicate", (new.id, old.id), ("forget", old.id),
    )  # fmt: skip


def test_nothing_is_to_go_for_what_ends_before_it() -> None:
    """Neither the same text, nor one that is alike."""
    old, new = made(DOG, day=1), ending(made(DOG, day=2), "2026-12-31")
    (only,) = found(old, new)
    assert (only.ids, only.command) == ((old.id, new.id), ("forget", new.id))
    assert "the one that holds longer is kept" in only.why
    (only,) = found(ending(old, "2026-06-30"), new)
    assert only.ids == (new.id, old.id)
    near = made(f"Please note: {DOG}!", day=3)
    assert found(old, ending(near, "2026-12-31"))[0].ids == (old.id, near.id)
    more = ending(made(f"{DOG}. The vet says so.", day=3), "2026-12-31")
    assert found(old, more) == []
    assert [each.kind for each in found(new, near)] == ["similar"]


def test_the_one_with_more_topics_is_kept() -> None:
    """Of two that say the same neither goes whose topics the other has not."""
    old, new = (
        made("The deadline is Friday.", "heron", "plan"),
        made("The deadline is Friday.", "plan", day=2),
    )
    (only,) = found(old, new)
    assert only.ids == (old.id, new.id)
    assert "more topics" in only.why
    assert found(old, replace(new, topics=("kestrel", "plan"))) == []


PAIRS = [
    line.split(" | ")
    for line in (TESTS / "fixtures" / "tidy" / "pairs.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
RIGHT = {"same": {"forget"}, "updated": {"edit"}, "persons": set(), "times": set()}


def test_two_hundred_labelled_pairs_get_no_wrong_proposal() -> None:
    """And three of four that say the same, or may no longer hold, are found."""
    right, all_right = 0, 0
    for label, older, newer in PAIRS:
        pair = [made(older.replace("\\n", "\n"), day=1), made(newer.replace("\\n", "\n"), day=2)]
        verbs = {each.command[0] for each in found(*pair)}
        assert verbs <= RIGHT[label], (label, older, newer)
        right += bool(verbs)
        all_right += bool(RIGHT[label])
    assert (len(PAIRS), all_right) == (200, 110)
    assert right / all_right >= 0.74


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The heir of Anna is Bo", "The heir of Anna is not Bo"),
        ("Plan A is cheaper", "Plan is cheaper"),
        ("Use C for the client", "Use C++ for the client"),
        ("It is below -5 degrees", "It is below 5 degrees"),
        ("Ignore *.py files", "Ignore .py files"),
        ("Bo has few friends", "Bo has a few friends"),
        ("Is Anna vegetarian?", "Anna is vegetarian"),
        ("Anna likes tea?", "Anna likes tea."),
        ("Anna is allergic to nuts", "The sister of Anna is allergic to nuts"),
        ("Anna likes tea.", "Anna likes tea. She does not like coffee."),
        ("Anna likes tea.", "Anna likes tea. So does Bo, and Bo likes it strong."),
        ("Dentist today", "Dentist today!"),
    ],
)
def test_what_differs_in_a_telling_mark_or_word_does_not_go(older: str, newer: str) -> None:
    """Also where hardly anything differs, or a day is meant by the day it was said on."""
    assert "forget" not in {
        each.command[0] for each in found(made(older, day=1), made(newer, day=2))
    }


def test_what_may_no_longer_hold_is_told_by_its_difference() -> None:
    """A value or a negation, nothing else, and never as one to forget."""
    rent = made("The rent of the flat in Basel is 1,450 francs a month", "home", day=1)
    more = made("The rent of the flat in Basel is 1,520 francs a month", "home", day=2)
    (differing,) = found(rent, more)
    assert (differing.kind, differing.ids) == ("differing", (more.id, rent.id))
    assert "alike but for 1,450 and 1,520:" in differing.why
    assert differing.command == ("edit", rent.id)
    never = made("The rent of the flat in Basel is not 1,450 francs a month", "home", day=3)
    (differing,) = found(rent, never)
    assert 'alike but for "not":' in differing.why
    assert found(rent, replace(more, topics=("garden",))) == []
    series = [
        replace(rent, id=f"{n:08}", content=f"The depth of the well is {n} m") for n in range(9)
    ]
    assert found(*series) == []


def test_a_topic_is_spelled_as_most_memories_spell_it() -> None:
    """Case, plural and hyphens; words that only end alike are others."""
    usual = [made(f"note {number}", "recipe", "machine-learning") for number in "abc"]
    odd = made("another one", "Recipes", "machinelearning")
    (only,) = found(*usual, odd, made("bus and glass", "bus", "glass", "news"))
    assert (only.kind, only.command) == ("topics", ("edit", odd.id))
    assert "'Recipes' is usually 'recipe'" in only.why


def test_a_long_text_and_an_unused_one_are_named() -> None:
    """A memory that is younger than the log of uses has had no time."""
    (only,) = found(long := made("word " * 3000))
    assert (only.kind, only.ids) == ("long", (long.id,))
    old, new, helpful = made("a", day=1), made("b", day=20), made("c", day=1)
    (never,) = unused([old, new, helpful], {helpful.id: "x"}, "2026-01-10T00:00:00+00:00")
    assert (never.kind, never.ids) == ("unused", (old.id,))


def test_what_is_kept_of_two_is_not_to_go_as_unused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever runs every command that is proposed keeps one of them."""
    monkeypatch.setenv("AIAML_MEMORY_DIR", str(tmp_path))
    monkeypatch.setenv("AIAML_ENABLE_SYNC", "false")
    old, new, other = made(DOG, day=1), made(DOG, day=2), made("a plan nobody asks about", day=1)
    bank = MemoryBank(Settings(base=tmp_path, sync=False))
    for memory in (old, new, other):
        bank.add(memory)
    bank.close()
    used = Use("2026-01-20T00:00:00+00:00", "tests", "think", ("dog",), (old.id,))
    folder(tmp_path, make=True)
    (folder(tmp_path) / "uses.jsonl").write_bytes(used.line())
    assert app.run(["tidy", "--all", "--json"]) == 0
    proposed = [(each["kind"], *each["ids"]) for each in json.loads(capsys.readouterr().out)]
    assert proposed == [("duplicate", new.id, old.id), ("unused", other.id)]


@pytest.mark.slow
def test_ten_thousand_memories_are_compared_without_comparing_each_with_each() -> None:
    """Also where all are made from one form; the two that are the same are among them."""
    drawn = random.Random(5)
    words = [f"word{number}" for number in range(4000)]
    many = [
        made(f"Notes of the weekly meeting: {' '.join(drawn.choices(words, k=40))}", day=2)
        for _ in range(10_000)
    ]
    twin = made(f"{many[77].content}!", day=3)
    began = time.process_time()
    assert [each.ids for each in found(*many, twin)] == [(twin.id, many[77].id)]
    quick(time.process_time() - began, 3)


def test_a_base_is_not_changed_by_looking(tmp_path: Path) -> None:
    """The files are as they were."""
    bank = MemoryBank(Settings(base=tmp_path, sync=False))
    for _ in range(2):
        bank.remember("claude", "marco", ["dog"], DOG)
    before = {path.name: path.read_bytes() for path in (tmp_path / "files").iterdir()}
    assert len(found(*(memory for _, memory in bank.newest()))) == 1
    assert {path.name: path.read_bytes() for path in (tmp_path / "files").iterdir()} == before
    bank.close()


def test_tidy_names_no_command_of_several_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An id in a planted file that a shell would read as a command of its own is passed over."""
    bank = MemoryBank(Settings(tmp_path, sync=False))
    bank.remember("claude", "marco", ["dog"], DOG)
    bank.remember("claude", "marco", ["dog"], DOG)
    bank.close()
    path = min((tmp_path / "files").iterdir())
    text = path.read_text("utf-8")
    planted = replace(parse(text), id="x\naiaml forget --all --yes\ny")
    path.write_text(format_of(planted), "utf-8")
    assert parse(path.read_text("utf-8")).id == planted.id
    app.run(["--dir", str(tmp_path), "tidy"])
    shown = capsys.readouterr()
    assert "aiaml forget --all" not in shown.out + shown.err
