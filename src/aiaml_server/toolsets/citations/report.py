"""The result of a verification, as lines for people and as annotations for CI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from aiaml_server.toolsets.citations.service import VerifiedMemory
from aiaml_server.toolsets.citations.verify import OK, CheckedCitation
from aiaml_server.toolsets.failures import annotation


def report_lines(results: Sequence[VerifiedMemory], unread: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each citation that is not ok, and what the stale memories say."""
    for result in results:
        for entry in result.checked:
            if entry.verdict != OK:
                yield f"{result.path}: {_describe(entry)}"
        if result.stale:
            yield f"    says: {result.memory.fact}"
        for entry in result.stale:
            yield f"    {entry.citation} was: {entry.citation.snippet or '(no text was kept)'}"
        if result.problem:
            yield f"{result.path}: {result.problem}"
    for sentence in unread.values():
        yield f"not read: {sentence}"


def _describe(entry: CheckedCitation) -> str:
    today = " or ".join(f"{path}:{line}" for path, line in entry.places[:5])
    text = f"{entry.citation} {entry.verdict}"
    text += f", today {today}" if today else ""
    return f"{text} ({entry.note})" if entry.note else text


def count_results(results: Sequence[VerifiedMemory], unread: Mapping[str, str]) -> Iterator[str]:
    """Yield the counts in one line, and advice if something is stale."""
    stale = sum(bool(result.stale) for result in results)
    unsure = sum(not (result.is_valid or result.stale) for result in results)
    updated = sum(result.is_updated for result in results)
    counts = {"stale": stale, "unsure": unsure, "updated": updated, "not read": len(unread)}
    parts = [f"{count} {what}" for what, count in counts.items() if count or what == "stale"]
    yield f"{len(results)} verified, {', '.join(parts)}"
    if stale:
        yield (
            "if a memory still holds, `save --id ID --cite FILE:LINE` cites it anew; if not, save"
            " what is true with --link supersedes:ID"
        )


def ci_annotations(results: Sequence[VerifiedMemory], unread: Mapping[str, str]) -> Iterator[str]:
    """Yield what GitHub shows beside the memory files, without the leading `::`."""
    for result in results:
        for entry in result.checked:
            if not entry.is_valid:
                level = "error" if entry.is_stale else "warning"
                text = _describe(entry)
                yield annotation(level, text, file=result.path, title=entry.verdict)
        if result.problem:
            yield annotation("error", result.problem, file=result.path, title="problem")
    for path, sentence in unread.items():
        yield annotation("error", sentence, file=path, title="not read")
