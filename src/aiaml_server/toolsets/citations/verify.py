"""Whether a citation still holds: its line is looked for, and never taken for a similar one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import islice
from typing import Any, NamedTuple

from aiaml_server.toolsets.citations.effort import TooMuch
from aiaml_server.toolsets.citations.model import Citation
from aiaml_server.toolsets.citations.sources import (
    FAR,
    Outside,
    Source,
    Sources,
    Unreadable,
    Unseen,
    plain,
    same,
)
from aiaml_server.toolsets.citations.tokens import reformatted

OK, MOVED, RENAMED, REFORMATTED = "ok", "moved", "renamed", "reformatted"
AMBIGUOUS, UNSEEN = "ambiguous", "unseen"
CHANGED, MISSING, OUTSIDE = "changed", "missing", "outside"
VALID = (OK, MOVED, RENAMED, REFORMATTED)
STALE = (CHANGED, MISSING, OUTSIDE)
CONFIDENCE = {OK: 1.0, MOVED: 0.99, RENAMED: 0.95, REFORMATTED: 0.9, AMBIGUOUS: 0.5}
"""The share of such verdicts of which git's own history says the same; of all others it is 0."""

WITHOUT_SNIPPET = 0.5
"""The same for a citation that says no more than that a file has so many lines."""

SHORT = 25  # characters: a line of fewer may well stand elsewhere too
_TELLING = 35  # of a line with its neighbours, which seldom stand elsewhere
_SIMILAR = 0.5
_SHOWN = 300  # characters of it
_COMPARED = 200  # words and signs of a line
_COMMON = 200  # lines of a file with the same word, which tells little then
_CUT = re.compile(r"\w\w")  # between the two a word goes on
_WORD = re.compile(r"\w+")
_PIECE = re.compile(r"\w+|[^\w\s]")

_TURNS = re.compile(  # what makes something else of the code behind it
    r"#|//|/\*|<!--|--|;|\"\"\"|^\*|!|~|\?|&&|\|\|"
    r"|\b(?:not|no|never|if|elif|else|unless|when|while|until|case|and|or|for|except|catch|async"
    r"|await|lambda|assert|raise|throw|del|delete|was|rem)\b",
    re.IGNORECASE,
)
_TURNS_BEHIND = re.compile(r"\?|&&|\|\||\b(?:if|unless|and|or|for|else|while)\b")
_JOINS = " \t([{=,:"
_IMPORTS = re.compile(r"(?:from|import|use|using|require|#include|export \*)\b")
_REMARK = re.compile(r"\s(?:#|//).*")


class Checked(NamedTuple):
    """What became of a citation.

    Attributes:
        citation: as the memory has it.
        verdict: one of the words above.
        confidence: from 0 to 1, that it holds.
        path: where it stands today; empty if it does not, or that is not known.
        line: on which line; None if on none.
        note: more in words, such as the likest line.
        places: where it may be, of one that is ambiguous: paths and lines.
    """

    citation: Citation
    verdict: str
    confidence: float
    path: str = ""
    line: int | None = None
    note: str = ""
    places: tuple[tuple[str, int], ...] = ()

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
        today: Any = {"path": self.path, "line": self.line} if self.path else None
        if self.places:
            today = [{"path": path, "line": line} for path, line in self.places]
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
    """Check the citations of one memory; those that are sure tell where unsure ones are."""
    citations = list(citations)
    sources.ask_about(each.path for each in citations)
    checked = [check(each, sources) for each in citations]
    if not any(each.verdict == AMBIGUOUS for each in checked):
        return checked
    sure = [each for each in checked if each.valid and each.line and each.citation.line]
    return [
        check(each.citation, sources, sure) if each.verdict == AMBIGUOUS else each
        for each in checked
    ]


def check(citation: Citation, sources: Sources, siblings: Sequence[Checked] = ()) -> Checked:
    """Say what became of a citation.

    Args:
        citation: as a memory has it.
        sources: the repository's files.
        siblings: of the same memory, those that are sure.
    """
    try:
        return _checked(citation, sources, siblings)
    except TooMuch as error:
        return Checked(citation, UNSEEN, 0.0, note=str(error))


def _checked(citation: Citation, sources: Sources, siblings: Sequence[Checked]) -> Checked:
    sources.spend(2000 + 4 * len(citation.snippet or ""))
    try:
        source = sources.get(citation.path)
    except Outside:
        return Checked(citation, OUTSIDE, 0.0, note="it leads out of the repository")
    except Unseen as error:
        return Checked(citation, UNSEEN, 0.0, note=str(error))
    except Unreadable as error:
        return _elsewhere(citation, sources, str(error))
    wanted = lines_of(citation.snippet)
    if not wanted:
        return _without_snippet(citation, source)
    return _in_its_file(citation, wanted, source, siblings) or _gone(
        citation, wanted, source, sources
    )


def _in_its_file(
    citation: Citation, wanted: list[str], source: Source, siblings: Sequence[Checked]
) -> Checked | None:
    found = _in(source, wanted, citation, siblings)
    if not found and not citation.is_whole and len(wanted) == 1:
        found = _parts(source, wanted[0], citation.line)
    if found:
        return _verdict(citation, found)
    others = source.find(wanted)
    anew = _anew(source, wanted, citation, siblings, others)
    if anew:
        note = "the same code, set differently"
        return _verdict(citation, anew, note, REFORMATTED)
    left = _left(source, wanted, citation, others)
    note = "one of several such lines has gone, and nothing tells which"
    return _ambiguous(citation, [(citation.path, at) for at in left], note) if left else None


def _ambiguous(citation: Citation, places: Sequence[tuple[str, int]], note: str) -> Checked:
    shown = tuple(places[:_MOST_PLACES])
    return Checked(citation, AMBIGUOUS, CONFIDENCE[AMBIGUOUS], note=note, places=shown)


def _left(
    source: Source, wanted: list[str], citation: Citation, others: Sequence[int]
) -> list[int]:
    """Return where one of several long lines may be now: in its definition, or by a neighbour."""
    if _size(wanted) < SHORT or _is_edited(source, wanted, citation):
        return []
    own = citation.within or ""
    return [
        at for at in others if source.within(at) == own or _agreeing(source, at, wanted, citation)
    ]


def _gone(citation: Citation, wanted: list[str], source: Source, sources: Sources) -> Checked:
    """Say where a line has gone that is in its file no more."""
    if place := _moved_out(citation, wanted, source, sources):
        note = f"{citation.path} is there without it"
        return Checked(citation, RENAMED, CONFIDENCE[RENAMED], *place, note)
    near = likest(source, citation)
    note = f"the likest line is {near}: {source.plain[near - 1][:_SHOWN]}" if near else ""
    return Checked(citation, CHANGED, 0.0, note=note)


def lines_of(snippet: str | None) -> list[str]:
    """Return a snippet's lines with their blanks made equal, without empty ones around."""
    text = (snippet or "").strip()
    return [plain(each) for each in text.split("\n")] if text else []


def _verdict(
    citation: Citation, lines: Sequence[int], note: str = "", verdict: str = ""
) -> Checked:
    """Return the verdict on a citation that stands on one of some lines of its file."""
    if len(lines) > 1:
        note = "the snippet is there several times, and nothing tells which is meant"
        return _ambiguous(citation, [(citation.path, each) for each in lines], note)
    verdict = verdict or (OK if citation.line in (lines[0], None) else MOVED)
    return Checked(citation, verdict, CONFIDENCE[verdict], citation.path, lines[0], note)


def _in(
    source: Source, wanted: list[str], citation: Citation, siblings: Sequence[Checked] = ()
) -> list[int]:
    """Return on which lines the snippet may stand: one where that is sure."""
    line = citation.line or 0
    if line and source.is_at(wanted, line):
        known = bool(citation.before) + bool(citation.after)
        is_alone = citation.times is None and (not known or _size(wanted) >= SHORT)
        if is_alone or (known and len(_agreeing(source, line, wanted, citation)) == known):
            return [line]
    found = source.find(wanted)
    return _told_apart(source, found, wanted, citation, siblings) if found else []


def _told_apart(
    source: Source,
    found: list[int],
    wanted: list[str],
    citation: Citation,
    siblings: Sequence[Checked],
) -> list[int]:
    """Return those of some lines of which one is meant; nothing where that is none of them."""
    source.spend(100 * len(found))
    line, every, times = citation.line or 0, len(found), citation.times or 1
    if not citation.is_whole:
        return [line or found[0]] if line in found or not line else found
    agree = {at: len(_agreeing(source, at, wanted, citation)) for at in found}
    known = bool(citation.before) + bool(citation.after)
    full = [at for at in found if agree[at] == known]
    if full or max(every, times) == 1:
        found = full or found
    elif _is_edited(source, wanted, citation):
        return []
    else:
        own = citation.within or ""
        within = [at for at in found if f"{source.within(at)}.".startswith(f"{own}.")]
        if every < times:  # one of several has gone
            decorates = wanted[0].startswith("@")
            return [at for at in within if agree[at] or decorates][:1]
        found = within or found
        best = max(agree[at] for at in found)
        found = [at for at in found if agree[at] == best]
    if len(found) > 1 and full and citation.within:
        found = [at for at in found if source.within(at) == citation.within] or found
    if len(found) > 1 and line:
        beside = {
            sibling.line + line - sibling.citation.line
            for sibling in siblings
            if sibling.path == citation.path and sibling.line and sibling.citation.line
        }
        found = [at for at in found if at in beside] or found
    if len(found) > 1 and citation.nth and every == times:
        found = [source.find(wanted)[citation.nth - 1]]
    if len(found) > 1 and line in full and times == 1:
        found = [line]
    return found


def _is_edited(source: Source, wanted: Sequence[str], citation: Citation) -> bool:
    """Say whether a line with half of the words stands where both neighbours are as they were."""
    if not (citation.before and citation.after) or len(wanted) > 1:
        return False
    words = set(_WORD.findall(wanted[0]))
    for at in source.find([citation.before]):
        below = enumerate(source.plain[at : at + FAR], at + 1)
        number = next((n for n, line in below if line), at)
        if len(_agreeing(source, number, wanted, citation)) == 2:
            now = source.plain[number - 1]
            if now != wanted[0] and 2 * len(words.intersection(_WORD.findall(now))) >= len(words):
                return True
    return False


def _size(lines: Iterable[str]) -> int:
    return sum(map(len, lines))


def _agreeing(source: Source, at: int, wanted: Sequence[str], citation: Citation) -> list[str]:
    """Return the neighbours that are as they were when the citation was made."""
    if not (citation.before or citation.after):
        return []
    now = source.around(at, len(wanted))
    kept = citation.before or "", citation.after or ""
    return [each for each, is_now in zip(kept, now, strict=True) if each and same(each, is_now)]


def _parts(source: Source, wanted: str, line: int | None) -> list[int]:
    """Return the lines of which the snippet is a part, as people write it: whole words of it.

    What turns the meaning may not stand before it, such as a comment sign, a negation or a
    condition; and a line of which it is the beginning may not go on with more words.
    """
    found = []
    source.spend(20 * len(source.lines) + len(source.text) // 4)
    for at, now in enumerate(source.plain, 1):
        before, there, after = now.partition(wanted)
        if there:
            source.spend(200 + 20 * len(now))
        if there and _is_part(before, wanted, after):
            found.append(at)
    return [line] if line in found else found


def _is_part(before: str, part: str, after: str) -> bool:
    if _CUT.search(before[-1:] + part[:1]) or _CUT.search(part[-1:] + after[:1]):
        return False
    if not before:
        return not _WORD.search(after) and not _TURNS_BEHIND.search(after)
    if before[-1] not in _JOINS or before.count('"') % 2 or before.count("'") % 2:
        return False
    return not _TURNS.search(before) and not _TURNS_BEHIND.search(_REMARK.sub("", after))


def _anew(
    source: Source,
    wanted: list[str],
    citation: Citation,
    siblings: Sequence[Checked],
    others: Sequence[int],
) -> list[int]:
    """Return on which lines the snippet may stand where a formatter has set it anew.

    Where there are others like it that stand as they were, it is in its own definition.
    """
    source.spend(300 * _size([*wanted, citation.before or "", citation.after or ""]))
    places = dict(reformatted(source, wanted, citation.before, citation.after, others))
    if others:
        own = citation.within or ""
        places = {at: size for at, size in places.items() if source.within(at) == own}
    if len(places) < 2:
        return list(places)
    size = max(places.values())
    return _told_apart(source, list(places), [""] * size, citation, siblings)


def _moved_out(
    citation: Citation, wanted: list[str], source: Source, sources: Sources
) -> tuple[str, int] | None:
    """Return where code has gone that was moved out of a file which is still there.

    It was the only such line in its file, a long one, and stands beside a neighbour that has gone
    from there as well.
    """
    if citation.times or _size(wanted) < _TELLING or _IMPORTS.match(wanted[0]):
        return None
    gone = [
        each
        for each in (citation.before, citation.after)
        if each and len(each) >= SHORT // 2 and not source.find([plain(each)])
    ]
    if not gone:
        return None
    left = replace(
        citation,
        before=citation.before if citation.before in gone else None,
        after=citation.after if citation.after in gone else None,
    )
    places = _in_any(left, wanted, sources)
    return places[0] if len(places) == 1 else None


def _nearest(places: list[tuple[str, int]], path: str) -> list[tuple[str, int]]:
    """Return the one of some places that alone is in a file's own directory; else all."""
    own, _, _ = path.rpartition("/")
    beside = [each for each in places if each[0].rpartition("/")[0] == own]
    return beside if len(beside) == 1 else places


def _elsewhere(citation: Citation, sources: Sources, why: str) -> Checked:
    """Look for the snippet in the files of the same name, then in all others of its kind."""
    wanted = lines_of(citation.snippet)
    if not wanted:
        return Checked(citation, MISSING, 0.0, note=why)
    places = _places(sources.namesakes(citation.path), wanted, citation, sources)
    places = places or _in_any(citation, wanted, sources)
    if not places:
        return Checked(citation, MISSING, 0.0, note=why)
    if len(places) > 1:
        found_in = ", ".join(dict.fromkeys(path for path, _ in places))
        return _ambiguous(citation, places, f"{why}; the snippet is in {found_in}")
    return Checked(citation, RENAMED, CONFIDENCE[RENAMED], *places[0])


_MOST_PLACES = 20  # of one citation in an answer


def _in_any(citation: Citation, wanted: list[str], sources: Sources) -> list[tuple[str, int]]:
    """Return where the snippet stands in files of any name; with its neighbours, if it has any."""
    near = [each for each in (citation.before, citation.after) if each]
    first, _, _ = (citation.snippet or "").strip().partition("\n")
    paths = sources.others(citation.path, first.strip(), near)
    if not near:
        places = _places(paths, wanted, citation, sources)
        return places if _size(wanted) >= SHORT and len(places) == 1 else []
    most, best = 1, list[tuple[str, int]]()
    for path in paths:
        source = sources.get(path)
        for at in source.find(wanted):
            agreeing = _agreeing(source, at, wanted, citation)
            if len(agreeing) > most:
                most, best = len(agreeing), []
            if len(agreeing) == most and _size([*wanted, *agreeing]) >= _TELLING:
                best.append((path, at))
    best = _nearest(best, citation.path)
    return best if len(best) < 2 or most > 1 else []


def _places(
    paths: Iterable[str], wanted: list[str], citation: Citation, sources: Sources
) -> list[tuple[str, int]]:
    """Return in which of some files the snippet stands, and on which lines."""
    places = []
    for path in paths:
        try:
            found = _in(sources.get(path), wanted, citation)
        except (Outside, Unreadable):
            continue
        places += [(path, line) for line in found]
    return places


def _without_snippet(citation: Citation, source: Source) -> Checked:
    if citation.line is not None and citation.line > len(source.lines):
        return Checked(citation, MISSING, 0.0, note=f"the file has {len(source.lines)} lines")
    note = "there is no snippet to compare"
    return Checked(citation, OK, WITHOUT_SNIPPET, citation.path, citation.line, note)


def likest(source: Source, citation: Citation) -> int:
    """Return the number of the line that a reader would take for the cited one; 0 for none.

    It has most of the line's words and signs, in their order; the neighbours count a little.
    """
    wanted = lines_of(citation.snippet)[0]
    source.spend(300 * len(wanted))
    weights: dict[int, float] = {}
    for word in set(_WORD.findall(wanted)):
        found = source.having(word)
        for at in found if len(found) <= _COMMON else ():
            weights[at] = weights.get(at, 0.0) + 1 / len(found)
    line = citation.line or 0
    pieces = _PIECE.findall(wanted)[:_COMPARED]

    def rating(at: int) -> tuple[float, int]:
        found = _PIECE.finditer(source.plain[at - 1])  # of a line that may be very long
        now = [each[0] for each in islice(found, _COMPARED)]
        source.spend(50 * len(pieces) * len(now))
        blocks = SequenceMatcher(None, pieces, now, autojunk=False).get_matching_blocks()
        shared = sum(each.size for each in blocks)
        kept = 0.7 * shared / len(pieces) + 0.6 * shared / (len(pieces) + len(now))
        return kept + 0.1 * len(_agreeing(source, at, [wanted], citation)), -abs(at - line)

    first = sorted(weights, key=lambda at: (-weights[at], abs(at - line)))[:12]
    best = max(first, key=rating, default=0)
    return best if best and rating(best)[0] >= _SIMILAR else 0
