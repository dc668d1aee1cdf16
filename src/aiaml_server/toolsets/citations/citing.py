"""Build citations: fill in the cited text, and the lines around it that tell it from copies."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

from aiaml_server.toolsets.citations.errors import InvalidCitation
from aiaml_server.toolsets.citations.models import Citation
from aiaml_server.toolsets.citations.sources import Missing, Outside, SourceFile, SourceTree, Unseen
from aiaml_server.toolsets.citations.verify import snippet_lines

_MAX_SNIPPET = 4000  # characters
_LINES = re.compile(r"(.+)[:#]L?([0-9]{1,9})(?:-L?([0-9]{1,9}))?")


def build_citation(given: Citation, tree: SourceTree, cwd: str = "") -> tuple[Citation, str]:
    """Return a citation as a memory keeps it, and a warning for its author or an empty text.

    Args:
        given: a path and perhaps a line and a snippet. The path may end in lines: `a.py:20-24` or
            `a.py#L20-L24`. The rest is read from the file.
        tree: the files.
        cwd: the directory that the path may be relative to; empty for the repository's top.

    Raises:
        InvalidCitation: it names no text that can be cited.
    """
    path, first, last = given.path, given.line, given.line
    if first is None and (found := _LINES.fullmatch(path)):
        path, first, last = found[1], int(found[2]), int(found[3] or found[2])
    path = tree.spelled(relative_path(path, tree.root, cwd))
    citation = Citation(path, first, given.snippet)
    try:
        if reason := tree.why_hidden(path):
            warning = f"{path}: {reason}, so none of its text is kept or verified"
            return Citation(path, first), warning
        file = tree.get(path)
    except (Outside, Missing, Unseen) as error:
        near = tree.suggest(path) if isinstance(error, Missing) else ""
        hint = f"; did you mean {near}?" if near else ""
        raise InvalidCitation(f"citations: {path}: {error}{hint}") from None
    if any("\0" in line for line in file.lines[:200]):
        raise InvalidCitation(f"citations: {path} is not a text file")
    if snippet_lines(given.snippet):
        citation = _find_snippet(citation, file)
    elif first and last:
        citation = _copy_lines(citation, first, last, file)
    else:
        return Citation(path), f"{path}: a whole file is cited; cite a line to notice its change"
    if len(citation.snippet or "") > _MAX_SNIPPET:
        raise InvalidCitation(f"citations: a snippet of {path} has more than 4,000 characters")
    moved = first is not None and citation.line != first
    warning = f"{path}: the snippet is on line {citation.line}, not {first}" if moved else ""
    return _with_neighbors(citation, file), warning


def relative_path(path: str, root: str | os.PathLike[str], cwd: str = "") -> str:
    """Return a path relative to the repository's top, with slashes.

    Args:
        path: absolute, relative to `cwd` if there is such a file, or relative to the top.
        root: the repository's top.
        cwd: a directory; empty for the top alone.
    """
    top = os.path.realpath(root)
    absolute = Path(os.path.realpath(cwd or top), path)
    if Path(path).is_absolute() or (cwd and os.path.lexists(absolute)):
        real = Path(os.path.realpath(absolute.parent), absolute.name)
        if real.is_relative_to(top):
            return real.relative_to(top).as_posix()
    return os.path.normpath(path).replace("\\", "/") if path else path


def _copy_lines(citation: Citation, first: int, last: int, file: SourceFile) -> Citation:
    lines = file.lines[first - 1 : last]
    if last > len(file.lines) or not lines or not lines[0].strip():
        problem = f"line {first} is empty, or one of {len(file.lines)} lines does not exist"
        raise InvalidCitation(f"citations: {citation.path}:{first}-{last}: {problem}")
    text = dedent("\n".join(lines).expandtabs()) if last > first else lines[0]
    return replace(citation, line=first, snippet=text.strip())


def _find_snippet(citation: Citation, file: SourceFile) -> Citation:
    """Return the citation with the line on which its snippet is; a part of a line is completed."""
    wanted = snippet_lines(citation.snippet)
    found = file.find(wanted)
    lines = enumerate(file.normalized, 1)
    parts = found or [number for number, line in lines if " ".join(wanted) in line]
    if not parts:
        closest = file.closest_line(wanted[0])
        hint = f"; the closest line is {closest}" if closest else ""
        raise InvalidCitation(f"citations: the snippet is not in {citation.path}{hint}")
    number = min(parts, key=lambda number: abs(number - (citation.line or 0)))
    exact = replace(citation, line=number)
    return exact if found else _copy_lines(citation, number, number, file)


def _with_neighbors(citation: Citation, file: SourceFile) -> Citation:
    """Return the citation with what tells it from equal lines, also after the file has changed."""
    wanted = snippet_lines(citation.snippet)
    found = file.find(wanted) if wanted else []
    if citation.line is None or citation.line not in found:
        return citation
    before, after = file.neighbors(citation.line, len(wanted))
    is_repeated = len(found) > 1
    return replace(
        citation,
        before=before or None,
        after=after or None,
        occurrences=len(found) if is_repeated or not (before or after) else None,
        occurrence=found.index(citation.line) + 1 if is_repeated else None,
    )
