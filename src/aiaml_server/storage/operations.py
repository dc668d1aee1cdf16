"""What a person changed on this computer, so that the last of it can be taken back.

Noted are the names of files, and git's names for what they held before and after: what a memory
says is in git alone, and what is not there cannot be brought back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

from aiaml_server.files import read_own, replace_atomic
from aiaml_server.moments import instant, present, timestamp
from aiaml_server.storage.derived import folder

MOST = 4 * 1024 * 1024  # bytes of the file: some 30,000 files that were changed
_KEPT = 50  # operations
_FILE = "operations.jsonl"

_changed: ContextVar[dict[Path, dict[str, tuple[str, str]]] | None] = ContextVar(
    "changed", default=None
)


class Operation(NamedTuple):
    """What was done at once.

    Attributes:
        at: when it ended, ISO 8601 in UTC.
        verb: what did it: a verb of the command line, or "web".
        files: of each file's name the blobs that it held before and after; "" stands for no file.
    """

    at: str
    verb: str
    files: dict[str, tuple[str, str]]


@contextmanager
def recorded(verb: str, told: Callable[[str], object]) -> Iterator[None]:
    """Record as one operation what banks change inside the `with`, also where that fails.

    Args:
        verb: what changes it.
        told: is given a sentence where it could not be recorded.
    """
    changed: dict[Path, dict[str, tuple[str, str]]] = defaultdict(dict)
    token = _changed.set(changed)
    try:
        yield
    finally:
        _changed.reset(token)
        for base, files in changed.items():
            try:
                done = Operation(timestamp(present(), "seconds"), verb, files)
                _write(base, [done, *operations(base)])
            except OSError as error:
                told(f"`aiaml undo` cannot take this back: {error}")


def note(base: Path, name: str, before: str | None, after: str | None) -> None:
    """Note that a file was changed, where that is recorded."""
    changed = _changed.get()
    if changed is not None:
        first = changed[base].get(name, (blob(before), ""))[0]
        changed[base][name] = (first, blob(after))


def blob(text: str | None) -> str:
    """Return git's name for a text: the SHA-1 of it behind its length (gitformat-loose(5))."""
    if text is None:
        return ""
    import hashlib  # noqa: PLC0415 (OpenSSL, which a start goes without)

    data = text.encode()
    return hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()


def operations(base: Path, most: int = MOST) -> list[Operation]:
    """Return what was done, the last first; what cannot be understood is not among it.

    Raises:
        OSError: it cannot be read, or has more than `most` bytes.
    """
    import json  # noqa: PLC0415 (see `blob`)

    try:
        lines = read_own(folder(base) / _FILE, most).splitlines()
    except FileNotFoundError:
        return []
    found = []
    for line in reversed(lines[-_KEPT:]):
        try:
            at, verb, files = json.loads(line)
            pairs = {name: (before, after) for name, (before, after) in files.items()}
        except (ValueError, TypeError, AttributeError, RecursionError):
            continue
        texts = [at, verb, *(each for pair in pairs.values() for each in pair)]
        if all(isinstance(each, str) for each in texts) and instant(at) is not None:
            found.append(Operation(at, verb, pairs))
    return found


def drop(base: Path, done: Operation) -> None:
    """Forget an operation, which was taken back.

    Raises:
        OSError: the disk refused.
    """
    _write(base, [each for each in operations(base) if each != done])


def _write(base: Path, newest: list[Operation]) -> None:
    import json  # noqa: PLC0415 (see `blob`)

    lines: list[bytes] = []
    room = MOST
    for each in newest[:_KEPT]:
        line = json.dumps(each).encode() + b"\n"
        room -= len(line)
        if room < 0:
            break
        lines.append(line)
    place = folder(base, make=True) / _FILE
    replace_atomic(place, b"".join(reversed(lines)), 0o600)
