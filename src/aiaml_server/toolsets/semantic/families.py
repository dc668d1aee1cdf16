"""What differs from model to model: prefixes of questions and texts, and what cosines mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import hypot
from typing import NamedTuple

from aiaml_server.toolsets.semantic.config import Thresholds


class Prefixes(NamedTuple):
    """What a model wants before a question, and before a text that may answer it."""

    question: str
    text: str


_NONE = Prefixes("", "")
_PASSAGES = Prefixes("Represent this sentence for searching relevant passages: ", "")
FAMILIES: dict[str, Prefixes] = {
    r"e5-[\w-]{0,40}instruct": Prefixes(
        "Instruct: Given a question, retrieve notes that answer it\nQuery: ", ""
    ),
    r"(?:^|[-/])e5-": Prefixes("query: ", "passage: "),
    r"nomic-embed": Prefixes("search_query: ", "search_document: "),
    r"arctic-embed": _PASSAGES,
    r"mxbai-embed": _PASSAGES,
    r"bge-(?:small|base|large)-en$": _PASSAGES,
    r"qwen3-embedding": Prefixes(
        "Instruct: Given a question, retrieve notes that answer it\nQuery:", ""
    ),
    r"stella[-_]en": Prefixes(
        "Instruct: Given a web search query, retrieve relevant passages that answer the query."
        "\nQuery: ",
        "",
    ),
    r"embeddinggemma": Prefixes("task: search result | query: ", "title: none | text: "),
}
"""By what a model's name has in it, as their model cards say; any other gets none."""

_PAIRS = """
How are prices rounded?|Amounts are kept in cents and rounded when they are shown.
When do we release?|Deploys go out on Tuesdays from the main branch.
Which database is used?|The service stores its data in PostgreSQL.
What does Ada drink?|Ada likes green tea in the morning.
Who may push to main?|Only maintainers can write to the protected branch.
Where are secrets kept?|Passwords lie in the vault and never in the repository.
Why was the build slow?|Each image was built twice, which took ten minutes.
How is the user logged in?|Authentication works with short-lived tokens.
What breaks on Windows?|Paths with backslashes are not found by the loader.
Which editor does she use?|She writes all her code in Helix.
When was the meeting?|The team met on the ninth of November.
How do I run the tests?|Call pytest with the option for the fast suite.
What colour is the car?|Their vehicle was painted red last summer.
Where does Tom live?|Tom has moved to an apartment in Lisbon.
How many retries are made?|A request is tried three times before it fails.
What did the doctor say?|He was told to rest and to walk more.
"""
"""Questions and what answers each: no other answers it."""


def prefixes(name: str, question: str | None = None, text: str | None = None) -> Prefixes:
    """Return the prefixes of a model's family, or what a person has set instead.

    Args:
        name: the model's.
        question: what the settings say; None for nothing.
        text: likewise.
    """
    found = (each for sign, each in FAMILIES.items() if re.search(sign, name.lower()))
    own = next(found, _NONE)
    return Prefixes(
        own.question if question is None else question, own.text if text is None else text
    )


def calibrated(
    ask: Callable[[Sequence[str]], list[list[float]]],
    embed: Callable[[Sequence[str]], list[list[float]]],
) -> Thresholds:
    """Return what a model's cosines mean, by fixed pairs of questions and texts.

    Weak is what is no nearer than the nearest of 240 pairs that have nothing to do with each other;
    the same, what is seven eighths of the way from the nearest two texts to 1.
    """
    pairs = [line.split("|") for line in _PAIRS.strip().split("\n")]
    questions, texts = ask([each[0] for each in pairs]), embed([each[1] for each in pairs])
    strange = [
        _cosine(question, text)
        for number, question in enumerate(questions)
        for text in texts[:number] + texts[number + 1 :]
    ]
    near = max(_cosine(one, other) for at, one in enumerate(texts) for other in texts[:at])
    return Thresholds(round(max(strange), 3), round(near + 0.875 * (1 - near), 3))


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True)) / (hypot(*one) * hypot(*other))
