"""Decide whether a cited line is still there. A line that is only similar is never accepted.

A citation is looked for in four steps: the exact text on its line; the same text elsewhere in its
file, distinguished from copies by the lines around it; the same code with other blanks at its
brackets, as a formatter leaves it; and, if the file is gone, the same text in another file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from aiaml_server.toolsets.citations.models import Citation, JsonObject
from aiaml_server.toolsets.citations.sources import (
    MISSING,
    OUTSIDE,
    SourceFile,
    SourceTree,
    Unreadable,
    normalize_line,
)

OK, MOVED, RENAMED, REFORMATTED = "ok", "moved", "renamed", "reformatted"
AMBIGUOUS, CHANGED = "ambiguous", "changed"
CONFIDENCE = {OK: 1.0, MOVED: 0.99, RENAMED: 0.95, REFORMATTED: 0.9, AMBIGUOUS: 0.5}
"""How often git's own history says the same as such a verdict. For all others it is 0."""

_SHORT = 25  # characters: a shorter line may well occur in another file too
_MAX_STATEMENT = 40  # lines
_MAX_PLACES = 20
_LINTER_COMMENT = re.compile(r"\s*#\s*(?:noqa|type:\s*ignore|pragma|pylint|mypy|ruff|fmt)\b.*")
_TRAILING_COMMA = re.compile(r",\n(?=[)\]}])")
_BRACKET_BLANKS = re.compile(r"(?<=[(\[{,])\s+|\s+(?=[)\]}])")
_EITHER_QUOTE = (".py", ".pyi", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")


class CheckedCitation(NamedTuple):
    """A citation and its verdict.

    Attributes:
        citation: as the memory has it.
        verdict: one of the nine words above.
        places: where it is today, as paths and lines; several if it is ambiguous.
        note: more in words, such as the closest line.
    """

    citation: Citation
    verdict: str
    places: Sequence[tuple[str, int | None]] = ()
    note: str = ""

    @property
    def is_valid(self) -> bool:
        """Whether it still holds."""
        return self.verdict in (OK, MOVED, RENAMED, REFORMATTED)

    @property
    def is_stale(self) -> bool:
        """Whether it no longer holds."""
        return self.verdict in (CHANGED, MISSING, OUTSIDE)

    @property
    def confidence(self) -> float:
        """How sure it is that it still holds, from 0 to 1; half without a snippet to compare."""
        return CONFIDENCE.get(self.verdict, 0.0) * (1 if self.citation.snippet else 0.5)

    def to_dict(self) -> JsonObject:
        """Return it as JSON has it."""
        return {
            **self.citation.to_dict(),
            "verdict": self.verdict,
            "confidence": self.confidence,
            "today": [{"path": path, "line": line} for path, line in self.places],
            "note": self.note,
        }


def mean_confidence(checked: Sequence[CheckedCitation]) -> float | None:
    """Return a memory's confidence: the mean over its citations, or None if it has none."""
    return round(fmean(entry.confidence for entry in checked), 3) if checked else None


def check_citations(citations: Collection[Citation], tree: SourceTree) -> list[CheckedCitation]:
    """Return the verdicts on all citations of a memory."""
    tree.learn_hidden(citation.path for citation in citations)
    return [check_citation(citation, tree) for citation in citations]


def check_citation(citation: Citation, tree: SourceTree) -> CheckedCitation:
    """Return the verdict on one citation."""
    wanted = snippet_lines(citation.snippet)
    try:
        file = tree.get(citation.path)
    except Unreadable as error:
        is_missing = wanted and error.verdict == MISSING
        places = _find_elsewhere(citation, wanted, tree) if is_missing else []
        if not places:
            return CheckedCitation(citation, error.verdict, note=str(error))
        verdict = RENAMED if len(places) == 1 else AMBIGUOUS
        return CheckedCitation(citation, verdict, places, str(error))
    return _check_in_file(citation, wanted, file)


def _check_in_file(citation: Citation, wanted: list[str], file: SourceFile) -> CheckedCitation:
    if not wanted:
        if citation.line and citation.line > len(file.lines):
            return CheckedCitation(citation, MISSING, note=f"the last line is {len(file.lines)}")
        places = [(file.path, citation.line)]
        return CheckedCitation(citation, OK, places, "there is no snippet to compare")
    numbers = _locate(file, wanted, citation)
    places = [(file.path, number) for number in numbers]
    if len(places) > 1:
        return CheckedCitation(citation, AMBIGUOUS, places[:_MAX_PLACES], "there are several")
    if places:
        verdict = OK if citation.line in (numbers[0], None) else MOVED
        return CheckedCitation(citation, verdict, places)
    places = [(file.path, number) for number in _find_reformatted(file, wanted)]
    if len(places) == 1:
        return CheckedCitation(citation, REFORMATTED, places, "it is laid out differently")
    closest = file.closest_line(wanted[0])
    note = f"the closest line is {closest}" if closest else "no line is like it"
    return CheckedCitation(citation, CHANGED, note=note)


def snippet_lines(snippet: str | None) -> list[str]:
    """Return the normalized lines of a snippet, without empty ones around it."""
    text = (snippet or "").strip()
    return [normalize_line(line) for line in text.split("\n")] if text else []


def relocate(checked: CheckedCitation) -> Citation:
    """Return a valid citation as it would be written today."""
    path, line = checked.places[0]
    return replace(checked.citation, path=path, line=checked.citation.line and line)


def _locate(file: SourceFile, wanted: list[str], citation: Citation) -> list[int]:
    """Return the line on which the snippet is; several if that is unsure, none if it is gone."""
    numbers = file.find(wanted)
    if not (citation.before or citation.after or citation.occurrences):  # a person typed it
        numbers = numbers or find_part(file, "\n".join(wanted))
        return [citation.line] if citation.line in numbers else numbers
    expected = citation.occurrences or 1
    if len(numbers) <= expected == 1:
        return numbers
    scores = {number: _agreement(file, number, wanted, citation) for number in numbers}
    best = max(scores.values(), default=0)
    likely = [number for number in numbers if scores[number] == best]
    if len(numbers) < expected and best < bool(citation.before) + bool(citation.after):
        # One of several equal lines is gone. With half of its surroundings it may be this one.
        return likely[:best]
    if len(likely) > 1 and len(numbers) == expected:
        return numbers[(citation.occurrence or 1) - 1 : citation.occurrence]
    return likely


def _agreement(file: SourceFile, number: int, wanted: Sequence[str], citation: Citation) -> int:
    """Return how many neighbours of a line are as they were when it was cited."""
    before, after = file.neighbors(number, len(wanted))
    return (before == citation.before) + (after == citation.after)


def find_part(file: SourceFile, wanted: str) -> list[int]:
    """Return the lines that contain a text, which a person typed, as whole words."""
    pattern = re.compile(rf"(?<![\w.]){re.escape(wanted)}(?![\w.])")
    return [number for number, line in enumerate(file.normalized, 1) if pattern.search(line)]


def _find_reformatted(file: SourceFile, wanted: list[str]) -> list[int]:
    """Return the lines at which the same code begins, with other blanks at its brackets."""
    text = _compact(wanted, file.path)
    numbers = []
    for index, line in enumerate(file.normalized):
        if not line or not text.startswith(_compact([line], file.path).rstrip(",")):
            continue
        found = _compact(file.normalized[index : index + _MAX_STATEMENT], file.path)
        if f"{found}\n".startswith(f"{text}\n"):
            numbers.append(index + 1)
    copies = file.find(wanted)  # which are not the cited line
    return [number for number in numbers if number not in copies]


def _compact(lines: Sequence[str], path: str) -> str:
    text = _TRAILING_COMMA.sub("", "\n".join(_LINTER_COMMENT.sub("", line) for line in lines))
    text = _BRACKET_BLANKS.sub("", text)
    return text.replace("'", '"') if path.endswith(_EITHER_QUOTE) else text


def _find_elsewhere(
    citation: Citation, wanted: list[str], tree: SourceTree
) -> list[tuple[str, int | None]]:
    """Return where the snippet of a missing file is; a file of its name is preferred."""
    line = (citation.snippet or "").strip().partition("\n")[0]
    scores: dict[tuple[str, int | None], tuple[int, bool]] = {}
    for file in tree.find_files(citation.path, line):
        is_namesake = Path(file.path).name == Path(citation.path).name
        for number in _locate(file, wanted, citation):
            agreement = _agreement(file, number, wanted, citation)
            scores[file.path, number] = (agreement, is_namesake)
    best = max(scores.values(), default=(0, False))
    likely = [place for place, score in scores.items() if score == best]
    is_certain = len(likely) == 1 and len("".join(wanted)) >= _SHORT
    return likely if best[0] or is_certain else []
