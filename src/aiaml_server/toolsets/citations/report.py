"""The result of a verification, as lines for people and as annotations for GitHub."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from aiaml_server.toolsets.citations.service import VerifiedMemory
from aiaml_server.toolsets.citations.verify import OK, CheckedCitation


class ReportRow(NamedTuple):
    """One thing that was found.

    Attributes:
        level: `error`, `warning` or `notice`, as GitHub calls them.
        path: the memory's file.
        text: what was found.
    """

    level: str
    path: str
    text: str


def report_rows(
    results: Sequence[VerifiedMemory], unread: Mapping[str, str]
) -> Iterator[ReportRow]:
    """Yield what was found about each citation that is not ok, and each file that is not read."""
    for result in results:
        for entry in result.checked:
            level = "error" if entry.is_stale else "notice" if entry.is_valid else "warning"
            if entry.verdict != OK:
                yield ReportRow(level, result.path, _describe(entry, result.memory.fact))
        if result.problem:
            yield ReportRow("error", result.path, result.problem)
    for path, sentence in unread.items():
        yield ReportRow("error", path, f"not read: {sentence}")


def _describe(entry: CheckedCitation, fact: str) -> str:
    today = " or ".join(f"{path}:{line}" for path, line in entry.places[:5])
    parts = [f"{entry.citation} {entry.verdict}", today and f"today {today}", entry.note]
    if entry.is_stale:
        parts += [f"was: {entry.citation.snippet or '(no text)'}", f"the memory says: {fact}"]
    return ", ".join(filter(None, parts))


def count_results(results: Sequence[VerifiedMemory], unread: Mapping[str, str]) -> str:
    """Return the counts in one line, with advice if something is stale."""
    stale = sum(bool(result.stale) for result in results)
    unsure = sum(not (result.is_valid or result.stale) for result in results)
    text = f"{len(results)} verified, {stale} stale, {unsure} unsure, {len(unread)} not read"
    if stale:
        text += "; if a memory still holds, `save --id ID --cite FILE:LINE` cites it anew"
    return text
