"""Memories from markdown files: found, shown as they would be, and taken over when that is wanted.

The files stay as they are. A file is read only below a directory that was allowed, and through no
link; what was taken over once is not taken over again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from aiaml_server.errors import MalformedFile
from aiaml_server.exchange import kinds
from aiaml_server.exchange.found import Kept, Note, Skip
from aiaml_server.files import read_regular
from aiaml_server.toolsets.semantic import memory
from aiaml_server.toolsets.semantic.database import LOOK
from aiaml_server.toolsets.semantic.failures import InvalidInput, InvalidProject
from aiaml_server.toolsets.semantic.markdown import Piece, pieces
from aiaml_server.toolsets.semantic.memories import Memories
from aiaml_server.toolsets.semantic.memory import (
    LONGEST,
    MOST_CONTENT,
    MOST_TAGS,
    Draft,
    folded,
    instant_of,
)
from aiaml_server.toolsets.semantic.portable import draft_of
from aiaml_server.toolsets.semantic.priority import suggest
from aiaml_server.toolsets.warning import secret_warning

NAMES = ("memory.md", "notes.md", "adr-*.md", "claude.md", "agents.md")
"""Files that are looked for in a project, whatever their case; besides them `.claude/*.md`."""
_OWN = ".claude"
MOST_FILE = 320 * 1024  # bytes: `MOST_CONTENT` of four each, with a frontmatter
_MOST_FILES = 500
_MOST_DIRECTORIES = 5000
_MOST_TOPICS = 8  # that become tags, of a note of another program
_AT_ONCE = 100  # memories that are written in one transaction
_REST = 2 * LOOK  # seconds after each, in which who waits to write has a turn
_PASSED_OVER = {"node_modules", "__pycache__", "venv", "site-packages", "dist", "build", "target"}


class Candidate(NamedTuple):
    """What would become a memory.

    Attributes:
        path: the file, from the project's top directory on where it lies in it.
        line: where it begins there; 0 where a source has no lines.
        draft: what would be stored.
        is_new: whether no memory has that text yet.
    """

    path: str
    line: int
    draft: Draft
    is_new: bool

    def fields(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        draft = self.draft
        return {
            "path": self.path, "line": self.line, "content": draft.content,
            "tags": list(draft.tags), "priority": draft.priority, "category": draft.category,
            "created_at": memory.shown(draft.created), "is_new": self.is_new,
        }  # fmt: skip


class Skipped(NamedTuple):
    """A file of which nothing is taken, and why."""

    path: str
    reason: str


class Preview(NamedTuple):
    """What an import would do: each candidate in the order of its file, and what is to be known."""

    candidates: Sequence[Candidate]
    skipped: Sequence[Skipped]
    warnings: Sequence[str]

    @property
    def new(self) -> Sequence[Candidate]:
        """Those that are not memories yet."""
        return [each for each in self.candidates if each.is_new]


class Imported(NamedTuple):
    """What an import has done.

    Attributes:
        ids: of the new memories.
        already: how many pieces were memories before.
        skipped: files of which nothing was taken.
        warnings: what is to be known.
    """

    ids: Sequence[str]
    already: int
    skipped: Sequence[Skipped]
    warnings: Sequence[str]


def scan(project: Path) -> list[str]:
    """Return the files of a project that look like memories, as paths from its top directory on.

    Directories that are hidden or hold what is built or installed are passed over, and so are
    links; the search ends after 5,000 directories or 500 files.
    """
    found: list[str] = []
    for number, (directory, below, names) in enumerate(os.walk(project)):
        inside = Path(directory).relative_to(project)
        own = inside.parts == (_OWN,)
        below[:] = sorted(
            each
            for each in below
            if not each.startswith(".") and each.lower() not in _PASSED_OVER and not own
        )
        if not inside.parts and (project / _OWN).is_dir() and not (project / _OWN).is_symlink():
            below.insert(0, _OWN)
        for name in sorted(names):
            lower = name.lower()
            wanted = lower.endswith(".md") if own else any(fnmatch(lower, e) for e in NAMES)
            if wanted and not Path(directory, name).is_symlink():
                found.append((inside / name).as_posix())
        if number >= _MOST_DIRECTORIES or len(found) >= _MOST_FILES:
            break
    return found[:_MOST_FILES]


def offer(memories: Memories) -> str | None:
    """Return a sentence that offers an import where a project has no memories yet."""
    if memories.project is None or memories.databases["project"].there:
        return None
    found = scan(memories.project)
    if not found:
        return None
    named = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
    return (
        f"this project has files that look like memories ({named}); import_markdown_memories shows"
        " what would become of them, and imports nothing until it is told to"
    )


def foreign_kind(source: Path) -> str | None:
    """Return the kind of a source that another program has left; None for markdown files.

    Notes of others that are single markdown files are cut as any file is.
    """
    kind = kinds.detect(source) if source.exists() else None
    own = ("aiaml", "citations", "markdown", "sessions")
    notes = ("obsidian", "basic-memory", "claude", "serena")
    return None if kind in (None, *own) or (kind in notes and source.is_file()) else kind


def preview(
    memories: Memories,
    paths: Sequence[str] | None = None,
    roots: Sequence[Path] | None = None,
    foreign: Sequence[tuple[Path, str]] = (),
) -> Preview:
    """Show what an import of files would do; nothing is changed.

    Args:
        memories: where they would go.
        paths: files, or directories whose `.md` files are meant; without any, what `scan` finds.
        roots: the directories below which they may lie; the project's if not said. The first one
            is where a relative path begins.
        foreign: sources of other programs, each with its kind.

    Raises:
        InvalidProject: no project is active, and nothing else was said.
        InvalidInput: a path leads elsewhere, or there is nothing.
    """
    project = memories.project
    if roots is None:
        if project is None:
            raise InvalidProject("file_paths: no project is active whose files could be read")
        roots = [project]
    if paths is None and not foreign:
        if project is None:
            raise InvalidInput("file_paths: must name files, since no project is active")
        found = [(project, each) for each in scan(project)]
    else:
        found = [each for path in paths or () for each in _below(path, roots)]
    known = memories.known()
    candidates: list[Candidate] = []
    skipped: list[Skipped] = []
    for one in [*_cut(dict.fromkeys(found), project), *_told(foreign)]:
        if isinstance(one, Skipped):
            skipped.append(one)
            continue
        shown, piece = one
        if len(piece.content) > MOST_CONTENT:
            at = f"what begins at line {piece.line} is longer than {MOST_CONTENT:,} characters"
            skipped.append(Skipped(shown, at))
            continue
        key = folded(piece.content)
        draft = piece.draft or _suggested(shown, piece)
        if draft.source == "import" and not draft.path:
            draft = draft._replace(path=shown)
        candidates.append(Candidate(shown, piece.line, draft, key not in known))
        known.add(key)
    drafts = [each.draft for each in candidates if each.is_new]
    texts = [text for draft in drafts for text in (draft.content, *draft.tags)]
    return Preview(candidates, skipped, secret_warning(*texts, check=memories.check_secrets))


def _cut(
    found: Iterable[tuple[Path, str]], project: Path | None
) -> Iterator[tuple[str, Piece] | Skipped]:
    """Yield the pieces of markdown files, each with the path that is shown."""
    for root, inside in found:
        shown = inside if root == project else os.fspath(root / inside)
        try:
            cut = _read(Path(os.path.realpath(root)) / inside)
        except (ValueError, OSError, MalformedFile) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            yield Skipped(shown, reason[:1].lower() + reason[1:])
            continue
        if not cut:
            yield Skipped(shown, "it has nothing that could be a memory")
        yield from ((shown, piece) for piece in cut)


def _told(foreign: Iterable[tuple[Path, str]]) -> Iterator[tuple[str, Piece] | Skipped]:
    """Yield what the sources of other programs hold."""
    for source, kind in foreign:
        for one in kinds.READERS[kind](source, kinds.Reading(split=True)):
            if isinstance(one, Skip):
                yield Skipped(one.place, one.reason)
            else:
                yield one.place, _piece_of(one)


def run(
    memories: Memories,
    shown: Preview,
    told: Callable[[Sequence[Candidate]], Iterator[Candidate]] = iter,
) -> Imported:
    """Take over what a preview shows as new, with the tags and priorities that it suggests.

    They are written by hundreds, each of which is durable: a run that is broken off is finished by
    the next one.

    Args:
        memories: where they go.
        shown: what `preview` has returned.
        told: gives the candidates on one by one, and may show how far it is.
    """
    ids: list[str] = []
    batch: list[Draft] = []
    try:
        for one in told(shown.new):
            batch.append(one.draft)
            if len(batch) == _AT_ONCE:
                whole, batch = batch, []
                ids += memories.store_all(whole)
                time.sleep(_REST)
    finally:  # also where it was broken off, for it was shown as done
        ids += memories.store_all(batch)
    return Imported(ids, len(shown.candidates) - len(shown.new), shown.skipped, shown.warnings)


def _below(path: str, roots: Sequence[Path]) -> list[tuple[Path, str]]:
    """Return the files that a path means, each with the allowed directory that it lies in."""
    if not path or "\0" in path:
        raise InvalidInput("file_paths: a path is empty, or holds U+0000")
    given = Path(os.path.expanduser(path))  # noqa: PTH111 (never raises)
    whole = Path(os.path.normpath(roots[0] / given))
    for root in roots:
        real = Path(os.path.realpath(root))
        for top in (root, real):
            if not whole.is_relative_to(top):
                continue
            inside = whole.relative_to(top)
            if os.path.realpath(real / inside) != os.fspath(real / inside):
                raise InvalidInput(f"file_paths: {path} is a link, or lies behind one")
            return _files(root, inside, path)
    places = " or ".join(map(str, roots))
    raise InvalidInput(f"file_paths: {path} does not lie in {places}")


def _files(root: Path, inside: Path, path: str) -> list[tuple[Path, str]]:
    whole = root / inside
    if whole.is_dir():
        if (whole / "files").is_dir():  # this product's own directory of memories
            inside, whole = inside / "files", whole / "files"
        names = sorted(each.name for each in whole.iterdir() if each.suffix.lower() == ".md")
        return [(root, (inside / name).as_posix()) for name in names]
    if not whole.is_file():
        said = "is no file" if whole.exists() else "is not there"
        raise InvalidInput(f"file_paths: {path} {said}")
    return [(root, inside.as_posix())]


def _read(whole: Path) -> list[Piece]:
    path = os.fspath(whole)
    if os.path.realpath(path) != path:
        raise ValueError("it lies behind a link")
    try:
        text = read_regular(path, MOST_FILE).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError("it is no text in UTF-8") from error
    return pieces(text, whole)


def _piece_of(one: Note | Kept) -> Piece:
    if isinstance(one, Kept):
        draft = draft_of(one.memory)
        return Piece(draft.content, 0, tuple(draft.tags), draft.category, draft.created, draft)
    return Piece(one.content.strip(), 0, one.topics[:_MOST_TOPICS], None, instant_of(one.timestamp))


def _suggested(path: str, piece: Piece) -> Draft:
    tags = tuple(tag[:LONGEST] for tag in piece.tags[:MOST_TAGS])
    wanted = suggest(piece.content, tags, "NORMAL", "project")
    priority = wanted.priority if wanted else "NORMAL"
    return Draft(
        piece.content, tags, priority, piece.category, "import", path, created=piece.created
    )
