"""How a citation is taken down: with the whole line, and with what tells it from others like it."""

from __future__ import annotations

import re
from dataclasses import replace

from .failures import InvalidCitation
from .model import MOST_COUNT, Citation
from .sources import Outside, Source, Sources, Unreadable
from .verify import likest, lines_of

LONGEST_SNIPPET = 4000  # characters


def recorded(given: Citation, sources: Sources) -> tuple[Citation, list[str]]:
    """Return a citation as a memory keeps it, and what its maker should know.

    A path and a line get the line's text; a snippet without a line, or beside another one, gets its
    line; a part of a line becomes the whole one. Of a file that stays out of git, no text is kept.

    Raises:
        InvalidCitation: it leads out of the repository, or cites nothing.
    """
    path = re.sub(r"/(?:\.?/)+", "/", given.path.replace("\\", "/"))
    cited = replace(given, path=path.removeprefix("./"))
    if not cited.path.strip("/ ") or len(cited.path) > 1000 or "\n" in cited.path:
        raise InvalidCitation("citations: path must be a file's, relative to the repository's top")
    if cited.line is not None and not (type(cited.line) is int and 1 <= cited.line <= MOST_COUNT):
        raise InvalidCitation(
            f"citations: line must be a whole number from 1 to {MOST_COUNT:,} in {cited.path}"
        )
    if len(cited.snippet or "") > LONGEST_SNIPPET:
        raise InvalidCitation(
            f"citations: a snippet of {cited.path} is longer than 4,000 characters"
        )
    try:
        source = sources.get(cited.path)
    except Outside:
        raise InvalidCitation(
            f"citations: {given.path} is not in the repository; paths are relative to its top"
        ) from None
    except Unreadable as error:
        return cited, [f"{cited.path}: {error}; the citation is stale from the beginning"]
    if why := sources.private(cited.path):
        return replace(cited, snippet=None, before=None, after=None, times=None), [
            f"{cited.path}: {why}, so none of its text is kept; its change is not noticed"
        ]
    if not lines_of(cited.snippet):
        if cited.line is None:
            return replace(cited, snippet=None), [
                f"{cited.path}: a whole file is cited; name a line, so that its change is noticed"
            ]
        if cited.line > len(source.lines):
            raise InvalidCitation(
                f"citations: {cited.path} has {len(source.lines)} lines, no {cited.line}"
            )
        return _with_neighbours(_with_whole_line(cited, cited.line, source), source), []
    found, warnings = _with_line(cited, source)
    return _with_neighbours(found, source), warnings


def _with_whole_line(cited: Citation, line: int, source: Source) -> Citation:
    text = source.lines[line - 1].strip()
    if not text:
        raise InvalidCitation(f"citations: line {line} of {cited.path} is empty")
    if len(text) > LONGEST_SNIPPET:
        raise InvalidCitation(f"citations: line {line} of {cited.path} is too long to be cited")
    return replace(cited, snippet=text)


def _with_line(cited: Citation, source: Source) -> tuple[Citation, list[str]]:
    """Return the citation with the line on which its snippet is."""
    wanted = lines_of(cited.snippet)
    line = cited.line or 0
    if line and source.is_at(wanted, line):
        return cited, []
    found = source.find(wanted)
    is_part = not found and len(wanted) == 1
    if is_part:
        found = [at for at, each in enumerate(source.plain, 1) if wanted[0] in each]
    if not found:
        near = likest(source, cited)
        hint = f"; the likest line is {near}: {source.plain[near - 1]}" if near else ""
        return cited, [f"{cited.path}: the snippet is not in it{hint}"]
    at = min(found, key=lambda each: abs(each - line))
    if is_part:
        cited = _with_whole_line(cited, at, source)
    warnings = []
    if line and at != line:
        warnings = [f"{cited.path}: the snippet is on line {at}, not on line {line}; {at} is kept"]
    elif not line and len(found) > 1:
        lines = ", ".join(map(str, found[:10]))
        warnings = [f"{cited.path}: the snippet is on lines {lines}; {at} is kept"]
    return replace(cited, line=at), warnings


def _with_neighbours(cited: Citation, source: Source) -> Citation:
    """Keep what tells a snippet from others like it: the lines around it, and where it belongs."""
    wanted = lines_of(cited.snippet)
    cited = replace(cited, before=None, after=None, times=None, nth=None, within=None)
    if cited.line is None or not source.is_at(wanted, cited.line):
        return cited
    found = source.find(wanted)
    before, after = source.around(cited.line, len(wanted))
    several = len(found) > 1
    alone = not (before or after)
    return replace(
        cited,
        before=before or None,
        after=after or None,
        times=len(found) if several or alone else None,
        nth=found.index(cited.line) + 1 if several else None,
        within=source.within(cited.line) or None,
    )
