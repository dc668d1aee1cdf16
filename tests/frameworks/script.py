"""What the models of the stories do, and what they saw: the same in every framework."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

Step = str | list[tuple[str, dict[str, Any]]]
"""What a model answers: calls of tools, or its last words."""

ALL = ("run", "session", "plan")
LOOK: Step = [("get_memory", {"compartment": each}) for each in ALL]
FIRST: list[Step] = [
    [
        ("save_memory", {"compartment": "session", "content": "Invoices are in euros."}),
        ("save_memory", {"compartment": "plan", "content": "Convert the old orders."}),
        ("save_memory", {"compartment": "run", "content": "12 of 40 are read."}),
    ],
    [("save_memory", {"compartment": "run", "content": "more than there is room for " * 2})],
    [("clear_memory", {"compartment": "run"})],
    [("save_memory", {"compartment": "run", "content": "13 of 40 are read."})],
    [("ask_helper", {"task": "Look around."})],
    "done",
]
HELPER: list[Step] = [LOOK, "looked"]
SECOND: list[Step] = [LOOK, "found"]
LIMIT = {"run": 60}


class Actor:
    """A model's part: it says the next step, and notes what it saw before."""

    seen: list[dict[str, str]] = []  # noqa: RUF012 (all actors of one play share it)

    def __init__(self, name: str, steps: list[Step]) -> None:
        self._name = name
        self._steps: Iterator[Step] = iter(steps)

    def act(self, text: str, results: str) -> Step:
        """Return the next step; note the text of the prompt and the last calls' results."""
        self.seen.append({"who": self._name, "text": text, "results": results})
        return next(self._steps)


def end() -> None:
    """Print what all actors saw."""
    json.dump(Actor.seen, sys.stdout)
