"""`semantic`: decisions, errors and confirmations in labelled sentences."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from aiaml_server.toolsets.semantic.rules import (
    error_signature,
    find_decision,
    find_decisions,
    find_error,
    is_confirmation,
)
from paths import TESTS

FIXTURES = TESTS / "fixtures"
RULES: dict[str, Callable[[str], object]] = {
    "decision": find_decision,
    "error": find_error,
    "works": is_confirmation,
}


def measure(name: str, kind: str) -> tuple[float, float]:
    """Return precision and recall on a file of lines: kind, yes or no, sentence."""
    lines = (FIXTURES / name).read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    seen = [(label == "yes", bool(RULES[kind](text))) for of, label, text in rows if of == kind]
    right = seen.count((True, True))
    return right / (right + seen.count((False, True))), right / (right + seen.count((True, False)))


@pytest.mark.parametrize(
    ("name", "kind", "precision", "recall"),
    [
        ("semantic_sentences.tsv", "decision", 0.95, 0.9),
        ("semantic_sentences.tsv", "error", 0.95, 0.9),
        ("semantic_sentences.tsv", "works", 0.95, 0.95),
        ("semantic_sentences_held.tsv", "decision", 0.75, 0.8),
        ("semantic_sentences_held.tsv", "error", 0.9, 0.7),
        ("semantic_sentences_public.tsv", "decision", 0.9, 0.85),
    ],
)
def test_precision_and_recall(name: str, kind: str, precision: float, recall: float) -> None:
    """The rules were corrected once by the first and the third file, never by the second."""
    measured = measure(name, kind)
    assert measured[0] >= precision and measured[1] >= recall, measured


def test_errors_in_real_output() -> None:
    """The line that names the error, whatever stands before it; a status alone is none."""
    for line in (FIXTURES / "semantic_failures.jsonl").read_text(encoding="utf-8").splitlines():
        failure = json.loads(line)
        assert find_error(failure["error"]) == failure["signature"], failure["kind"]


def test_sentence_and_not_the_text_is_returned() -> None:
    """Nothing in code or quotations, no question, and no condition."""
    text = "I looked at both. We decided to use apsw. Now the tests:\n\n- run them"
    assert find_decision(text) == "We decided to use apsw."
    twice = f"{text}\n\nWe decided to use apsw. Let's go with WAL mode."
    assert find_decisions(twice) == ["We decided to use apsw.", "Let's go with WAL mode."]
    for nothing in (
        "See:\n```\n# We decided to use apsw.\n```\n",
        "> We decided to use apsw.\n\nIs that so?",
        "Have we decided to use apsw?",
        "If we decided to use apsw, it would work",
    ):
        assert find_decision(nothing) is None, nothing


def test_last_line_of_a_traceback_is_the_error() -> None:
    """Lines of code before it may name other errors; numbers and directories do not matter."""
    text = (
        "Traceback (most recent call last):\n"
        '  File "shop.py", line 3, in <module>\n'
        "    raise ValueError(price)\n"
        "shop.PriceError: no price\n"
    )
    assert find_error(f"$ python shop.py\n{text}") == "shop.PriceError: no price"
    one, other = "/a/b/shop.py:3: no price at 0x7f", "/var/x1/shop.py:90: no price at 0x1"
    assert error_signature(one) == error_signature(other)
    assert error_signature("No module named yaml") != error_signature("No module named toml")
