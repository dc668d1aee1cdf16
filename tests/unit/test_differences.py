"""What changed in a text: right, and in no more time than its length."""

from __future__ import annotations

import re
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from aiaml_server.rendering.differences import changed_words, difference

TEXTS = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=12).map("\n".join)


@given(TEXTS, TEXTS)
def test_difference_of_long_texts_is_one_that_can_be_applied(before: str, after: str) -> None:
    """It says where it stands, what was there and what is there now."""
    old, new = before.splitlines(), after.splitlines()
    with mock.patch("aiaml_server.rendering.differences._COMPARED", -1):
        lines = difference(before, after)
    assert bool(lines) == (old != new)
    if lines:
        numbers = re.fullmatch(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@", lines[0])
        assert numbers
        first, gone, begin, come = map(int, numbers.groups())
        was = [line[1:] for line in lines[1:] if line[0] in " -"]
        now = [line[1:] for line in lines[1:] if line[0] in " +"]
        assert (first, gone, come) == (begin, len(was), len(now))
        assert old[first - 1 :][:gone] == was
        assert [*old[: first - 1], *now, *old[first - 1 + gone :]] == new


def test_difference_of_a_megabyte() -> None:
    """Lines that are the same in many places, which compare slowly; a megabyte of them."""
    for count in (500, 4000, 300_000):
        before = "\n".join(str(number % 101) for number in range(count))
        after = "\n".join(str(number * 7 % 101) for number in range(count))
        assert difference(before, after)


WORDS = st.lists(st.sampled_from(["a", "b", "77", "78"]), max_size=9).map(" ".join)


@given(WORDS, WORDS)
def test_changed_words_put_together_are_both_texts(before: str, after: str) -> None:
    """Whatever the words; and what is told as changed did change."""
    found = changed_words(before, after)
    assert "".join(gone for gone, _ in found) == before
    assert "".join(come for _, come in found) == after
    assert [each for each in found if each[0] == each[1]] or before != after or not before


def test_changed_words_are_told_in_words() -> None:
    """A number is told as one, and two neighbours as one change."""
    assert changed_words("It has number 77.", "It has number 78.")[1] == ("77.", "78.")
    assert changed_words("big red house", "small blue house")[0] == ("big red", "small blue")


def test_changed_words_of_a_megabyte() -> None:
    """Words that are the same in many places; a megabyte of them, on one line or many."""
    for count, between in ((400, " "), (600, " "), (4000, "\n"), (300_000, " "), (300_000, "\n")):
        before = between.join(str(number % 101) for number in range(count))
        after = between.join(str(number * 7 % 101) for number in range(count))
        assert "".join(come for _, come in changed_words(before, after)) == after
