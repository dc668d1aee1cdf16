"""What counts as a secret, and what does not."""

from __future__ import annotations

import random

import pytest

from aiaml_server.format.secrets import find_secret, reason_to_skip
from paths import ROOT
from secrets_corpus import ORDINARY, PASSWORDS, SECRETS

GITHUB = SECRETS["a GitHub token"][0](random.Random(4))


def test_each_rule_finds_what_its_issuer_gives() -> None:
    """In the middle of a text, ten drawn from a seed for each form."""
    rng = random.Random(1)
    for kind, draws in SECRETS.items():
        for draw in draws:
            for _ in range(10):
                text = f"A note.\n\n{draw(rng)}\nMore."
                secret = find_secret(text)
                assert secret is not None, text
                assert secret.kind == kind
                assert secret.line in (3, 4)


def test_each_rule_has_a_sample() -> None:
    """The samples name the kinds of the data file."""
    path = ROOT / "src" / "aiaml_server" / "format" / "secrets.txt"
    lines = path.read_text("utf-8").splitlines()
    assert {line for line in lines if line and line[0] not in "# "} == set(SECRETS)


def test_the_kind_is_named() -> None:
    """A person reads what it is, and never the value."""
    secret = find_secret(f"one\ntwo {GITHUB}")
    assert secret is not None
    assert secret == ("a GitHub token", 2)


def test_a_name_beside_a_value_with_a_digit_or_a_symbol_is_a_secret() -> None:
    """In several notations and languages."""
    assert [text for text in PASSWORDS if not find_secret(text)] == []


def test_ordinary_text_is_none() -> None:
    """Prose, code, examples of documentation, identifiers."""
    assert [text for text in ORDINARY if find_secret(text)] == []


@pytest.mark.parametrize("hidden", ["\u200b", "\u00ad", "\ufeff"])
def test_hidden_characters_hide_no_secret(hidden: str) -> None:
    """A text is read as a person sees it."""
    assert find_secret(GITHUB[:9] + hidden + GITHUB[9:])
    full_width = "".join(chr(ord(letter) + 0xFEE0) for letter in "password:hunter2")
    assert find_secret(full_width)


def test_bytes_that_are_no_text_are_passed_over() -> None:
    """A damaged file raises nothing, and hides nothing."""
    assert find_secret(b"\xff\xfe\x00") is None
    assert find_secret(b"\xff " + GITHUB.encode())


def test_a_reason_to_skip_names_the_line_or_the_name() -> None:
    """What `status` shows of a file that is not committed."""
    assert reason_to_skip("a.md", b"Nothing.") == ""
    assert reason_to_skip("a.md", f"x\n{GITHUB}".encode()) == "it seems to hold a GitHub token"
    assert reason_to_skip(f"{GITHUB}.md", b"") == "its name seems to hold a GitHub token"
