"""How a citation is taken down: with the whole line, and with what tells it from others like it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from textwrap import dedent

from aiaml_server.toolsets.citations.definitions import named
from aiaml_server.toolsets.citations.failures import InvalidCitation
from aiaml_server.toolsets.citations.model import MOST_COUNT, Citation
from aiaml_server.toolsets.citations.notation import Place, read_place, relative
from aiaml_server.toolsets.citations.sources import Hidden, Outside, Source, Sources, Unreadable
from aiaml_server.toolsets.citations.verify import likest, lines_of

LONGEST_SNIPPET = 4000  # characters
_TOLD_BY = 8000  # characters, of which a NUL tells that a file is no text, as git has it


def recorded(given: Citation, sources: Sources, *, start: str = "") -> tuple[Citation, list[str]]:
    """Return a citation as a memory keeps it, and what its maker should know.

    A path and a line get the line's text, as several lines do and a definition that is named; a
    snippet without a line, or beside another one, gets its line; a part of a line becomes the whole
    one. Of a file that stays out of git, no text is kept.

    Args:
        given: the citation; its path may name lines or a definition (see `notation`).
        sources: the repository's files.
        start: the directory that the path may be relative to; empty for the top.

    Raises:
        InvalidCitation: it leads out of the repository, or cites nothing.
    """
    said, path = _named(given, sources, start)
    cited = replace(given, path=path, line=given.line or said.first)
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
        source = _source(given, cited.path, sources)
    except Hidden:
        why = f"{sources.private(cited.path)}, so none of its text is kept"
        warning = f"{cited.path}: {why}, and no verification looks at it"
        return Citation(cited.path, cited.line), [warning]
    if said.name:
        cited = replace(cited, line=_definition(cited.path, said.name, source))
    if not lines_of(cited.snippet):
        if cited.line is None:
            return replace(cited, snippet=None), [
                f"{cited.path}: a whole file is cited; name a line, so that its change is noticed"
            ]
        last = said.last or cited.line
        if not cited.line <= last <= len(source.lines):
            raise InvalidCitation(
                f"citations: {cited.path} has {len(source.lines)} lines, no {max(cited.line, last)}"
            )
        return _with_neighbours(_with_lines(cited, cited.line, last, source), source), []
    found, warnings = _with_line(cited, source)
    return _with_neighbours(found, source), warnings


def ask_about(citations: Iterable[Citation], sources: Sources, start: str = "") -> None:
    """Ask git at once about the files that are to be cited, by `recorded` one after another."""
    sources.ask_about(_named(each, sources, start)[1] for each in citations)


def _named(given: Citation, sources: Sources, start: str) -> tuple[Place, str]:
    """Return what a citation's path says, and the file's path below the top."""
    said = read_place(given.path) if given.line is None else Place(given.path)
    return said, relative(said.path, sources.root, start)


def _source(given: Citation, path: str, sources: Sources) -> Source:
    """Return the cited file.

    Raises:
        InvalidCitation: it is not in the repository, not there, or no text.
        Hidden: it stays out of git.
    """
    try:
        source = sources.get(path)
    except Outside:
        raise InvalidCitation(
            f"citations: {given.path} is not in the repository; paths are relative to its top"
        ) from None
    except Hidden:
        raise
    except Unreadable as error:
        near = sources.likest(path)
        hint = f"; did you mean {near}?" if near else ""
        raise InvalidCitation(f"citations: {path}: {error}{hint}") from None
    if "\0" in source.text[:_TOLD_BY]:
        raise InvalidCitation(f"citations: {path} is no text, and nothing of it can be cited")
    return source


def _definition(path: str, name: str, source: Source) -> int:
    """Return the line on which a definition stands.

    Raises:
        InvalidCitation: there is none of that name, or several.
    """
    found = named(source.text, source.kind, name)
    if len(found) == 1:
        return found[0]
    if found:
        lines = ", ".join(map(str, found[:10]))
        raise InvalidCitation(f"citations: {path} has several {name}, on lines {lines}; name one")
    last = name.rpartition(".")[2]
    there = [at for at in source.having(last) if source.within(at).endswith(last)]
    hint = f"; did you mean {source.within(there[0])}?" if there else ""
    raise InvalidCitation(f"citations: {path} has no definition {name}{hint}")


def _with_lines(cited: Citation, first: int, last: int, source: Source) -> Citation:
    """Return the citation with the text of some lines."""
    lines = source.lines[first - 1 : last]
    if not lines[0].strip():
        raise InvalidCitation(f"citations: line {first} of {cited.path} is empty")
    text = lines[0].strip() if first == last else dedent("\n".join(lines).expandtabs()).rstrip()
    if len(text) > LONGEST_SNIPPET:
        which = f"line {first}" if first == last else f"lines {first} to {last}"
        raise InvalidCitation(
            f"citations: {which} of {cited.path} would be more than 4,000 characters"
        )
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
        cited = _with_lines(cited, at, at, source)
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
    cited = Citation(cited.path, cited.line, cited.snippet)
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
