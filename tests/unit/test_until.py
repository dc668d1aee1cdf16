"""A memory that holds until a day: the line `until` in its file, and who sees that it is over."""

from __future__ import annotations

import random
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from aiaml_server import MemoryBank, Settings
from aiaml_server.errors import InvalidInput
from aiaml_server.exchange.found import Kept
from aiaml_server.exchange.jsonl import memories_in
from aiaml_server.exchange.shapes import line_of
from aiaml_server.format.filters import Filter
from aiaml_server.format.memory import Memory, format, parse, with_until  # noqa: A004
from aiaml_server.moments import instant, present, timestamp
from aiaml_server.storage.derived import folder

CAR = Memory.new("claude", "marco", ["car"], "Anna lends Marco her car.")
OVER, NOT_YET = "2020-01-31", "2998-01-31"


def ending(until: str, content: str = CAR.content) -> Memory:
    """Return a memory of its own that holds until then."""
    memory = replace(CAR.with_new_id(), content=content)
    return parse(with_until(format(memory), until))


def test_a_day_is_over_at_its_end_and_a_moment_at_once() -> None:
    """In local time where there is no offset; whatever names no moment never ends."""
    last = (instant("2027-02-01T00:00") or 0) - 1
    assert ending("2027-01-31").ends == last
    assert [ending("2027-01-31").expired(each) for each in (last, last + 1)] == [False, True]
    moment = "2027-01-31T10:00:00+02:00"
    assert ending(moment).ends == instant(moment)
    assert CAR.ends is None
    assert CAR.until == ""
    for wrong in ("soon", "[2027-01-31]", "20270131", "2027-02-30"):
        memory = replace(CAR, extra=(f"until: {wrong}",))
        assert (memory.until, memory.ends, memory.expired(1 << 62)) == (wrong, None, False)
        with pytest.raises(InvalidInput):
            with_until(format(CAR), wrong)


@pytest.mark.parametrize(
    "lines",
    ["until: 2027-01-31", 'until: "2027-01-31"', "until: '2027-01-31' ", "until:\n  2027-01-31",
     "mood: good\nuntil: 2020-01-01\nuntil: 2027-01-31\nmore:\n  - until: x"],
)  # fmt: skip
def test_it_is_read_as_people_write_it(lines: str) -> None:
    """Quoted, over two lines, twice; and kept as it stands."""
    text = format(CAR).replace("\n---\n\n", f"\n{lines}\n---\n\n")
    assert parse(text).ends == ending("2027-01-31").ends
    assert format(parse(text)) == text


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_setting_it_changes_no_other_byte(line_end: str) -> None:
    """Nor does taking it out again."""
    text = format(replace(CAR, extra=("mood: good",))).replace("\n", line_end)
    with_it = text.replace("mood: good", f"mood: good{line_end}until: 2027-01-31")
    assert with_until(text, "2027-01-31") == with_it
    assert with_until(with_it, "2027-02-28") == with_it.replace("2027-01-31", "2027-02-28")
    assert with_until(with_it, "") == text


def test_agents_cannot_set_it_and_still_recall_it(tmp_path: Path) -> None:
    """What they remember has it in no field; what is over is given whole by its id."""
    bank = MemoryBank(Settings(tmp_path, sync=False))
    stored = bank.remember("claude", "marco", ["car"], "---\nuntil: 2020-01-01\n---\nuntil: x")
    assert not stored.until
    assert not bank.find(stored.id)[0][1].until
    over = bank.add(ending(OVER))
    assert bank.recall([over.id]) == {over.id: [over]}
    bank.close()


def test_it_goes_along_where_memories_are_taken(tmp_path: Path) -> None:
    """As lines of JSON, and back."""
    file = tmp_path / "out.jsonl"
    file.write_text(line_of(ending(OVER)), encoding="utf-8")
    (kept,) = memories_in(file)
    assert isinstance(kept, Kept)
    assert kept.memory.until == OVER


# --- found or not ---------------------------------------------------------------------------------


def test_what_is_over_is_found_unless_the_settings_say_otherwise(tmp_path: Path) -> None:
    """By `think` alone: a person, who may ask for just these, finds them always."""
    usual = MemoryBank(Settings(tmp_path, sync=False, check_index=True))
    hiding = MemoryBank(Settings(tmp_path, sync=False, check_index=True, hide_expired=True))
    over, later, open_end = (usual.add(each) for each in (ending(OVER), ending(NOT_YET), CAR))
    both = {later.id, open_end.id}
    assert {hit.id for hit in usual.think(["car"])} == {over.id, *both}
    for question in (["car"], ["her car"], ["ca"]):
        assert {hit.id for hit in hiding.think(question)} == both
        assert hiding.search(question).total == 3
        only = hiding.search(question, Filter.of(expired=True))
        assert [hit.id for hit in only.hits] == [over.id]
    assert [memory for _, memory in usual.newest(Filter.of(expired=True))] == [over]
    assert hiding.recall([over.id]) == {over.id: [over]}
    usual.close()
    hiding.close()


def test_it_is_over_at_the_moment_of_the_question_not_of_the_indexing(tmp_path: Path) -> None:
    """No file changes meanwhile; and a change of the line alone, in a file, is seen."""
    bank = MemoryBank(Settings(tmp_path, sync=False, check_index=True, hide_expired=True))
    soon = bank.add(ending(timestamp(present() + 1_500_000)))
    assert [hit.id for hit in bank.think(["car"])] == [soon.id]
    time.sleep(1.6)
    assert bank.think(["car"]) == []
    ((name, _),) = bank.find(soon.id)
    text = bank.text(name)
    bank.edit(name, text, with_until(text, NOT_YET))
    assert [hit.id for hit in bank.think(["car"])] == [soon.id]
    later = MemoryBank(Settings(tmp_path, sync=False, check_index=True, hide_expired=True))
    path = tmp_path / "files" / name
    path.write_bytes(with_until(bank.text(name), OVER).encode())
    assert later.think(["car"]) == []
    for each in (bank, later):
        each.close()


def test_the_best_of_the_others_are_found_whatever_is_over(tmp_path: Path) -> None:
    """Compared with the files: words, phrases, parts of words, among many, new and old."""
    drawn = random.Random(3)
    bank = MemoryBank(Settings(tmp_path, sync=False, check_index=True, hide_expired=True))
    words = ["car", "carpet", "scar", "her car", "a-b", "lends", "e"]
    for number in range(150):
        content = " ".join(drawn.choices(words, k=drawn.randrange(1, 9)))
        until = drawn.choice((OVER, OVER, NOT_YET, ""))
        bank.add(ending(until, f"{content} {number}"))
        if number % 30 == 0:
            bank.think(["car"])
    for _ in range(40):
        bank.think(drawn.sample(words, 3))
    bank.close()


def test_a_damaged_list_of_ends_hides_nothing_and_shows_nothing_wrong(tmp_path: Path) -> None:
    """The index is made anew."""
    settings = Settings(tmp_path, sync=False, hide_expired=True)
    bank = MemoryBank(settings)
    over, other = bank.add(ending(OVER)), bank.add(CAR)
    assert [hit.id for hit in bank.think(["car"])] == [other.id]
    bank.close()
    (file,) = folder(tmp_path).glob("*.sqlite")
    with closing(sqlite3.connect(file)) as database:
        database.execute("UPDATE ends SET moment = moment + 1 << 60")
        database.commit()
    bank = MemoryBank(settings)
    assert [hit.id for hit in bank.think(["car"])] == [other.id]
    assert bank._index.repaired
    assert bank.recall([over.id])[over.id]
    bank.close()
