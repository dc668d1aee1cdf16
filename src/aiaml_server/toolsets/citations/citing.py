"""Build citations: fill in the cited text, and the lines around it that identify it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from textwrap import dedent

from aiaml_server.toolsets.citations.errors import InvalidCitation
from aiaml_server.toolsets.citations.models import Citation
from aiaml_server.toolsets.citations.sources import MISSING, SourceFile, SourceTree, Unreadable
from aiaml_server.toolsets.citations.verify import find_part, snippet_lines

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
    path = relative_path(path, tree.root, cwd)
    try:
        if reason := tree.why_hidden(path):
            warning = f"{path}: {reason}, so none of its text is kept or verified"
            return Citation(path, first), warning
        file = tree.get(path)
    except Unreadable as error:
        near = tree.suggest(path) if error.verdict == MISSING else ""
        hint = f"; did you mean {near!a}?" if near else ""
        raise InvalidCitation(f"citations: {path}: {error}{hint}") from None
    if "\0" in file.text:
        raise InvalidCitation(f"citations: {path} is not a text file")
    warning = ""
    if wanted := snippet_lines(given.snippet):
        number, count = _find_snippet(wanted, first or 0, file)
        if first and number != first:
            warning = f"{path}: the snippet is on line {number}, not {first}"
        first, last = number, number + count - 1
    if not (first and last):
        return Citation(path), f"{path}: a whole file is cited; cite a line to notice its change"
    return _copy_lines(first, last, file), warning


def relative_path(path: str, root: str | os.PathLike[str], cwd: str = "") -> str:
    """Return a path relative to the repository's top, with slashes.

    Args:
        path: absolute, relative to `cwd` if there is such a file, or relative to the top.
        root: the repository's top.
        cwd: a directory; empty for the top alone.
    """
    top = os.path.realpath(root)
    plain = path.replace("\\", "/")
    start = cwd if cwd and os.path.lexists(Path(cwd, plain)) else top
    absolute = Path(os.path.abspath(Path(start, plain)))  # noqa: PTH100 (it removes `..`)
    real = Path(os.path.realpath(absolute.parent), absolute.name)
    return real.relative_to(top).as_posix() if real.is_relative_to(top) else plain


def _find_snippet(wanted: list[str], near: int, file: SourceFile) -> tuple[int, int]:
    """Return on which line a snippet begins, the nearest to a line, and how many it has."""
    found = file.find(wanted)
    lines = found or find_part(file, " ".join(wanted))
    if not lines:
        closest = file.closest_line(wanted[0])
        hint = f"; the closest line is {closest}" if closest else ""
        raise InvalidCitation(f"citations: the snippet is not in {file.path}{hint}")
    number = min(lines, key=lambda number: abs(number - near))
    return number, len(wanted) if found else 1


def _copy_lines(first: int, last: int, file: SourceFile) -> Citation:
    """Return a citation of lines, with what distinguishes them from equal lines later."""
    lines = file.lines[first - 1 : last]
    place = f"citations: {file.path}:{first}" + (f"-{last}" if last != first else "")
    if not 0 < first <= last <= len(file.lines):
        raise InvalidCitation(f"{place}: the last line is {len(file.lines)}")
    if not lines[0].strip():
        raise InvalidCitation(f"{place}: the line is empty")
    snippet = dedent("\n".join(lines)).strip()
    if len(snippet) > _MAX_SNIPPET:
        raise InvalidCitation(f"citations: a snippet of {file.path} has more than 4,000 characters")
    wanted = snippet_lines(snippet)
    found = file.find(wanted)
    before, after = file.neighbors(first, len(wanted))
    is_repeated = len(found) > 1
    return Citation(
        file.path,
        first,
        snippet,
        before or None,
        after or None,
        occurrences=len(found) if is_repeated or not (before or after) else None,
        occurrence=found.index(first) + 1 if is_repeated else None,
    )
