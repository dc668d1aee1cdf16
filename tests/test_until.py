"""A memory that holds until a day: the line `until` in its file, and who sees that it is over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aiaml_server import MemoryBank, Settings
from aiaml_server.errors import InvalidInput
from aiaml_server.memory import Memory, format, parse, with_until  # noqa: A004
from aiaml_server.moments import instant

CAR = Memory.new("claude", "marco", ["car"], "Anna lends Marco her car.")
OVER, NOT_YET = "2026-01-31", "2998-01-31"


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
