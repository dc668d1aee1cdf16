"""Reading other people's folders: in order, following no link, believing nothing."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from aiaml_server.errors import MalformedFile, os_reason
from aiaml_server.exchange.dates import moment_in
from aiaml_server.exchange.found import Skip, label, printable
from aiaml_server.files import read_beginning, read_regular
from aiaml_server.timestamps import format_timestamp, to_utc

MARKDOWN = (".md", ".markdown")
MAX_TEXT = 16 * 1024 * 1024  # bytes of a file of notes
_NO_NOTES = frozenset({"node_modules"})


def markdown_below(
    top: Path,
    without: Path | None = None,
    hidden: Sequence[str] = (),
    besides: Collection[Path] = (),
) -> Iterator[Path | Skip]:
    """Yield the markdown files below a folder, sorted, and what is skipped on the way.

    Hidden files and folders are passed over in silence, but for names in `hidden`, and so are those
    in `besides`. Links are not followed, so there are no loops. What is no markdown is counted and
    told once.
    """
    others: Counter[str] = Counter()
    for found in _files_below(top, without, hidden, besides):
        if isinstance(found, Skip) or found.suffix.lower() in MARKDOWN:
            yield found
        else:
            others[found.suffix.lower() or "no ending"] += 1
    yield from left_out(label(top), "are no markdown", others)


def left_out(where: str, why: str, others: Counter[str]) -> list[Skip]:
    """Tell once of files that are left out, by the most frequent endings of their names."""
    endings = ", ".join(f"{count} {ending}" for ending, count in others.most_common(5))
    return [Skip(where, f"other files, which {why}: {endings}")] if others else []


def _files_below(
    top: Path, without: Path | None, hidden: Sequence[str], besides: Collection[Path]
) -> Iterator[Path | Skip]:
    stack = [top]
    while stack:
        folder = stack.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            yield Skip(printable(str(folder)), f"it cannot be read: {os_reason(error)}")
            continue
        folders = []
        for entry in entries:
            path = Path(entry.path)
            is_hidden = entry.name.startswith(".") and entry.name not in hidden
            if is_hidden or entry.name in _NO_NOTES or path in besides:
                continue
            if entry.is_symlink():
                yield Skip(place(top, path), "it is a symbolic link")
            elif not entry.is_dir(follow_symlinks=False):
                yield path
            elif path == without:
                yield Skip(place(top, path), "these are your own memories")
            else:
                folders.append(path)
        stack += reversed(folders)


def place(top: Path, path: Path) -> str:
    """Say where a file stands below the source `top`, the same on every machine."""
    if path == top:
        return f"{label(top.parent)}/{printable(top.name)}"
    inside = os.fspath(path)[len(os.fspath(top)) :].lstrip(os.sep).replace(os.sep, "/")
    return f"{label(top)}/{printable(inside)}"


def read_text(path: Path, most: int = MAX_TEXT) -> str:
    """Return a file's text as it stands, with any line ends.

    Raises:
        ValueError: it is no text, is too large, or cannot be read; the message says which.
    """
    try:
        text = read_regular(os.fspath(path), most).decode("utf-8")
    except MalformedFile as error:
        raise ValueError(str(error)) from error
    except OSError as error:
        raise ValueError(f"it cannot be read: {os_reason(error)}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"it is no UTF-8 text (byte {error.start})") from error
    if "\0" in text:
        raise ValueError("it holds NUL bytes, so it is no text")
    return text


def beginning(path: Path, most: int) -> str:
    """Return the first bytes of a file as text; none of what cannot be read."""
    with suppress(OSError, MalformedFile):
        return read_beginning(os.fspath(path), most).decode("utf-8", "replace")
    return ""


def first_time(stated: Iterable[object], path: Path) -> str:
    """Return the first text that names a moment, or when `path` was changed, as our format has it.

    Raises:
        OSError: the file is gone.
    """
    for text in stated:
        moment = moment_in(text) if isinstance(text, str) else None
        if moment is not None and to_utc(moment):
            return format_timestamp(moment)
    return format_timestamp(path.stat().st_mtime_ns // 1000)
