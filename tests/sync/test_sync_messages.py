"""The messages of our commits: what is written is what is read."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest

import aiaml_server.sync.messages
from aiaml_server.sync.messages import _OF_ALL, _OF_ONE, Did, did, written

NAMES = (
    "20260101_120000_a1b2c3d4.md",
    "by hand.md",
    "notes (old).md",
    "x (1)_y (2).md",
    "a_b (a_b.md).md",
    "Add memory x (x.md).md",
    ".md",
    "_.md",
    "a",
    "\udcff_\udcfe.md",
)


def test_what_is_written_is_read_again() -> None:
    """Also where a name looks like a message, or has parentheses, blanks and underscores."""
    drawn = random.Random(2)
    parts = (drawn.choices("ab _().md", k=drawn.randrange(1, 14)) for _ in range(20_000))
    for name in (*NAMES, *map("".join, parts)):
        for verb in _OF_ONE:
            assert did(written(verb, [name])) == Did(verb, " ".join(name.split())), name
    assert did(written("Import", ["a.md", "b.md"])) == Did("Import")
    for verb in _OF_ALL:
        assert did(written(verb)) == Did(verb)


@pytest.mark.parametrize(
    "message",
    [
        "",
        "Add memory",
        "Add memory a1b2c3d4",
        "Add memory a1b2c3d4 (20260101_120000_a1b2c3d5.md)",
        "Add memory a1b2c3d4 (20260101_120000_a1b2c3d4.md) again",
        "add memory a (a.md)",
        "Move memory a (a.md)",
        "Import my memories",
        "Import  memories",
        "Set up the memory directory again",
    ],
)
def test_what_a_person_wrote_is_not_taken_for_sync_s(message: str) -> None:
    """Not even where it begins so."""
    assert did(message) == Did(None)


def test_a_message_of_any_length_is_read_in_time() -> None:
    """Whatever another machine's commits say."""
    for part in ("(", " (", "_", "a_b (", "9"):
        for start in ("Add memory ", "Import "):
            did(f"{start}{part * 1_000_000}.md)")


def test_no_other_module_spells_them() -> None:
    """Neither to write one nor to recognise it."""
    own = Path(aiaml_server.sync.messages.__file__)
    for path in own.parent.glob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        texts = [each.value for each in ast.walk(tree) if isinstance(each, ast.Constant)]
        spelled = [
            each
            for each in map(str, texts)
            if each.startswith(("aiaml: ", *(f"{verb} memory " for verb in _OF_ONE)))
            or each in _OF_ALL.values()
        ]
        assert path == own or not spelled, path.name
