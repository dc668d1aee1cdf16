"""Whether a citation still holds: its line is looked for, and never taken for a similar one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from aiaml_server.toolsets.citations.model import Citation
from aiaml_server.toolsets.citations.sources import (
    Outside,
    Source,
    Sources,
    Unreadable,
    dense,
    plain,
)

OK, MOVED, RENAMED = "ok", "moved", "renamed"
AMBIGUOUS = "ambiguous"
CHANGED, MISSING, OUTSIDE = "changed", "missing", "outside"
VALID = (OK, MOVED, RENAMED)
STALE = (CHANGED, MISSING, OUTSIDE)
CONFIDENCE = {OK: 1.0, MOVED: 0.99, RENAMED: 0.95, AMBIGUOUS: 0.5}
"""The share of such verdicts of which git's own history says the same; of all others it is 0."""

WITHOUT_SNIPPET = 0.5
"""The same for a citation that says no more than that a file has so many lines."""

_SIMILAR = 0.6
SHORT = 25  # characters: a line of fewer may well stand elsewhere too
_TELLING = 35  # of a line with its neighbours, which seldom stand elsewhere
_CUT = re.compile(r"\w\w")  # between the two a word goes on
_WORD = re.compile(r"\w")


class Checked(NamedTuple):
    """What became of a citation.

    Attributes:
        citation: as the memory has it.
        verdict: one of the words above.
        confidence: from 0 to 1, that it holds.
        path: where it stands today; empty if it does not.
        line: on which line; None if on none.
        note: more in words, such as the likest line.
    """

    citation: Citation
    verdict: str
    confidence: float
    path: str = ""
    line: int | None = None
    note: str = ""

    @property
    def valid(self) -> bool:
        """Whether it holds."""
        return self.verdict in VALID

    @property
    def stale(self) -> bool:
        """Whether it does not."""
        return self.verdict in STALE

    def stated(self) -> dict[str, Any]:
        """Return it as programs get it."""
        today = {"path": self.path, "line": self.line} if self.path else None
        answer: dict[str, Any] = {
            "path": self.citation.path,
            "line": self.citation.line,
            "snippet": self.citation.snippet,
            "verdict": self.verdict,
            "confidence": self.confidence,
            "today": today,
        }
        return {**answer, "note": self.note} if self.note else answer

    def today(self) -> Citation:
        """Return the citation as it would be written today."""
        if not self.valid or not self.path:
            return self.citation
        line = self.line if self.citation.line is not None else None
        return replace(self.citation, path=self.path, line=line)


def confidence(checked: Sequence[Checked]) -> float | None:
    """Return a memory's confidence: the mean over its citations; None where it has none."""
    if not checked:
        return None
    return round(sum(each.confidence for each in checked) / len(checked), 3)


def check_all(citations: Iterable[Citation], sources: Sources) -> list[Checked]:
    """Check each citation."""
    return [check(each, sources) for each in citations]


def check(citation: Citation, sources: Sources) -> Checked:
    """Say what became of a citation."""
    try:
        source = sources.get(citation.path)
    except Outside:
        return Checked(citation, OUTSIDE, 0.0, note="it leads out of the repository")
    except Unreadable as error:
        return _elsewhere(citation, sources, str(error))
    wanted = lines_of(citation.snippet)
    if not wanted:
        return _without_snippet(citation, source)
    found = _in(source, wanted, citation)
    if not found and citation.line and _within(source, wanted, citation.line):
        found = citation.line, True
    if not found:
        near = likest(source, wanted[0], citation.line or 0)
        note = f"the likest line is {near}: {source.plain[near - 1]}" if near else ""
        return Checked(citation, CHANGED, 0.0, note=note)
    line, sure = found
    if not sure:
        note = "the snippet is there several times"
        return _as(AMBIGUOUS, citation, citation.path, line, note)
    return _as(OK if citation.line in (line, None) else MOVED, citation, citation.path, line)


def lines_of(snippet: str | None) -> list[str]:
    """Return a snippet's lines with their blanks made equal, without empty ones around."""
    text = (snippet or "").strip()
    return [plain(each) for each in text.split("\n")] if text else []


def _as(verdict: str, citation: Citation, path: str, line: int | None, note: str = "") -> Checked:
    return Checked(citation, verdict, CONFIDENCE[verdict], path, line, note)


def _in(source: Source, wanted: list[str], citation: Citation) -> tuple[int, bool] | None:
    """Return on which line the snippet stands, and whether that is sure; None for nowhere."""
    line = citation.line or 0
    if not citation.has_neighbours and line and source.is_at(wanted, line):
        return line, True
    found = source.find(wanted)
    if citation.has_neighbours and found:
        agree = {at: len(_agreeing(source, at, wanted, citation)) for at in found}
        best = max(agree.values())
        if not best and (len(found) > 1 or (citation.times or 1) > 1):
            # One of several is left: a short one may be any of them.
            is_left = len(found) == 1 and _size(wanted) < _TELLING
            return None if is_left else (_nearest(found, line), False)
        found = [at for at in found if agree[at] == best]
    if not found:
        return None
    if line in found or not line:
        return line or found[0], True
    return _nearest(found, line), len(found) == 1


def _nearest(found: list[int], line: int) -> int:
    return min(found, key=lambda at: abs(at - line))


def _size(lines: Iterable[str]) -> int:
    return sum(map(len, lines))


def _agreeing(source: Source, at: int, wanted: list[str], citation: Citation) -> list[str]:
    """Return the neighbours that are as they were when the citation was made."""
    now = map(dense, source.around(at, len(wanted)))
    kept = dense(citation.before or ""), dense(citation.after or "")
    return [each for each, is_now in zip(kept, now, strict=True) if each == is_now]


def _within(source: Source, wanted: list[str], line: int) -> bool:
    """Say whether the snippet is a part of the very line, as people cite: whole words of it.

    A line of which it is the beginning, and which goes on with more words, has been changed.
    """
    now = plain("".join(source.lines[line - 1 : line]))
    before, found, after = now.partition(wanted[0])
    if len(wanted) > 1 or not found or not (before or after):
        return False
    cut = _CUT.search(before[-1:] + found[:1]) or _CUT.search(found[-1:] + after[:1])
    return not cut and (bool(before) or not _WORD.search(after))


def _elsewhere(citation: Citation, sources: Sources, why: str) -> Checked:
    """Look for the snippet in the files of the same name, then in all others of its kind."""
    wanted = lines_of(citation.snippet)
    places: list[tuple[str, int, bool]] = []
    if wanted:
        places = _places(sources.namesakes(citation.path), wanted, citation, sources)
    if wanted and not places:
        places = _told_apart(citation, wanted, sources)
    if not places:
        return Checked(citation, MISSING, 0.0, note=why)
    path, line, sure = places[0]
    if len(places) > 1 or not sure:
        found_in = ", ".join(each for each, *_ in places)
        return _as(AMBIGUOUS, citation, path, line, f"{why}; the snippet is in {found_in}")
    return _as(RENAMED, citation, path, line)


def _told_apart(
    citation: Citation, wanted: list[str], sources: Sources
) -> list[tuple[str, int, bool]]:
    """Return where the snippet stands in files of any name; with its neighbours, if it has any."""
    first = (citation.snippet or "").strip().partition("\n")[0].strip()
    near = [each for each in (citation.before, citation.after) if each]
    paths = sources.others(citation.path, first, near)
    if not near:
        places = _places(paths, wanted, citation, sources)
        return places if _size(wanted) >= SHORT and len(places) == 1 else []
    most, best = 1, list[tuple[str, int, bool]]()
    for path in paths:
        source = sources.get(path)
        for at in source.find(wanted):
            agreeing = _agreeing(source, at, wanted, citation)
            if len(agreeing) > most:
                most, best = len(agreeing), []
            if len(agreeing) == most and _size([*wanted, *agreeing]) >= _TELLING:
                best.append((path, at, True))
    return best if len(best) < 2 or most > 1 else []


def _places(
    paths: Iterable[str], wanted: list[str], citation: Citation, sources: Sources
) -> list[tuple[str, int, bool]]:
    """Return in which of some files the snippet stands, on which line, and whether that is sure."""
    places = []
    for path in paths:
        try:
            found = _in(sources.get(path), wanted, citation)
        except (Outside, Unreadable):
            continue
        if found:
            places.append((path, *found))
    return places


def _without_snippet(citation: Citation, source: Source) -> Checked:
    if citation.line is not None and citation.line > len(source.lines):
        note = f"the file has {len(source.lines)} lines"
        return Checked(citation, MISSING, 0.0, note=note)
    note = "there is no snippet to compare"
    return Checked(citation, OK, WITHOUT_SNIPPET, citation.path, citation.line, note)


def likest(source: Source, wanted: str, line: int) -> int:
    """Return the number of the line that is most like the wanted one; 0 where none is much."""
    shared = source.alike(wanted)
    first = sorted(shared, key=lambda at: (-shared[at], abs(at - line)))[:4]
    rated = [
        (SequenceMatcher(None, wanted, source.plain[at - 1]).ratio(), -abs(at - line), at)
        for at in first
    ]
    ratio, _, at = max(rated, default=(0.0, 0, 0))
    return at if ratio >= _SIMILAR else 0
