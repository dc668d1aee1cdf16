"""Which priority a text suggests; it is only ever said, never applied unasked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple


class Suggestion(NamedTuple):
    """A priority that would fit better, and why."""

    priority: str
    reason: str


_CORE = re.compile(
    r"\b(?:cross[- ]cutting|core (?:principle|rule)|always applies|every project|all projects)\b",
    re.IGNORECASE,
)
_HIGH = re.compile(
    r"\b(?:architectur\w{0,4}|security|securely|vulnerabilit\w{1,3}|authenticat\w{1,4}"
    r"|authori[sz]ation|adr|design decision|breaking change|data loss)\b",
    re.IGNORECASE,
)
_PASSING = re.compile(
    r"\b(?:bug ?fix\w{0,3}|fixed (?:a|the) bug|hotfix|workaround|temporar\w{1,3}|for now|todo"
    r"|wip)\b",
    re.IGNORECASE,
)


def suggest(content: str, tags: Sequence[str], priority: str, scope: str) -> Suggestion | None:
    """Return the priority that a memory's words suggest; None where that is the one it has.

    Args:
        content: its text.
        tags: its tags, which count like words of the text.
        priority: the one that it has.
        scope: where it is; what is for all projects may be CORE.
    """
    text = " ".join([content, *tags])
    if found := _CORE.search(text):
        wanted = Suggestion("CORE", f"it says {found[0]!r}, which concerns everything")
    elif priority != "CORE" and (found := _HIGH.search(text)) and not _PASSING.search(text):
        wanted = Suggestion("HIGH", f"it says {found[0]!r}, which decisions rest on")
    elif (found := _PASSING.search(text)) and priority in ("CORE", "HIGH"):
        wanted = Suggestion("NORMAL", f"it says {found[0]!r}, which passes")
    elif scope == "global" and priority in ("NORMAL", "HIGH"):
        wanted = Suggestion("CORE", "it is global: consider CORE if it holds in every project")
    else:
        return None
    return wanted if wanted.priority != priority else None
