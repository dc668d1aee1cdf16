"""The git merge driver for logs and summaries, and how a clone is set up to use it.

Git merges by lines: if two branches begin the log of one day, its `union` driver repeats sections
and puts entries under the wrong heading. This driver merges section by section. Both sides may only
have added to a section; what both began to add, byte for byte, is kept once. Everything else is
left to `git merge-file`, which marks conflicts.
"""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from pathlib import Path

from aiaml_server.clients.launch import command
from aiaml_server.errors import DiskError, MalformedFile
from aiaml_server.files import read_regular
from aiaml_server.git import Git, GitFailed
from aiaml_server.toolsets.failures import disk_error
from aiaml_server.toolsets.sessions.errors import OutsideRepository
from aiaml_server.toolsets.sessions.markdown import Document
from aiaml_server.toolsets.sessions.paths import MAX_FILE_BYTES
from aiaml_server.toolsets.sessions.schema import HEADER
from aiaml_server.toolsets.writing import replace

DRIVER = "aiaml-sessions"
ATTRIBUTES_FILE = ".gitattributes"
ATTRIBUTES = f"""\
# Keep what both branches wrote to a session log; `aiaml sessions setup` enables it in a clone.
/.github/agent-memory/*/logs/*.md merge={DRIVER}
/.github/agent-memory/*/_summary.md merge={DRIVER}
"""
ANY_LOG = ".github/agent-memory/agent/logs/2025-01-20.md"
CONFLICT_EXIT_CODE = 5
"""The exit code of a merge that left conflict marks; a shell or Python that fails has another."""

_ENTRY_START = re.compile(rb"^(?=[^\s])", re.MULTILINE)


def merge_files(base: Path, ours: Path, theirs: Path) -> bool:
    """Merge three files into `ours`; return False if conflict marks were left.

    Raises:
        DiskError: a file cannot be read or written.
        GitMissing: git is not installed.
    """
    try:
        versions = [read_regular(str(path), MAX_FILE_BYTES) for path in (base, ours, theirs)]
        merged = merge_versions(*versions)
        if merged is not None and len(merged) <= MAX_FILE_BYTES:
            replace(ours, merged)
            return True
    except (OSError, MalformedFile) as error:
        raise DiskError(f"{ours}: {error}") from error
    paths = [str(path.absolute()) for path in (ours, base, theirs)]
    labels = ("-L", "ours", "-L", "base", "-L", "theirs")
    try:
        Git(ours.absolute().parent).run("merge-file", *labels, *paths)
    except GitFailed:
        return False
    return True


def merge_versions(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return a file with what both versions added to their common base.

    Returns None if git or a person has to decide: both changed the same thing, or the versions do
    not have the same sections.
    """
    before, mine, other = _split(base), _split(ours), _split(theirs)
    if list(mine) != list(other) or (base and list(before) != list(mine)):
        return None
    merged = b""
    for name, part in mine.items():
        text = _merge_parts(before.get(name, part if name == HEADER else b""), part, other[name])
        if text is None:
            return None
        merged += text
    document = Document(merged)
    is_valid = not document.open_block() and list(_split(merged)) == list(mine)
    return merged if is_valid else None


def _split(data: bytes) -> dict[str, bytes]:
    """Return the parts of a file by section, headings included; title and header are one part."""
    document = Document(data)
    sections = [heading for heading in document.sections if heading.text != HEADER]
    starts = [0, *(heading.start for heading in sections), len(data)]
    names = [HEADER, *(heading.text for heading in sections)]
    return {name: data[starts[i] : starts[i + 1]] for i, name in enumerate(names)}


def _merge_parts(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return a section with what both sides added, or None if they did anything else."""
    if ours in (base, theirs):
        return theirs
    if theirs == base:
        return ours
    common, mine, other = _entries(base), _entries(ours), _entries(theirs)
    count = len(common) or 1  # at least the heading
    if mine[:count] != other[:count] or (base and mine[:count] != common):
        return None
    while mine[count : count + 1] == other[count : count + 1] != []:
        count += 1
    newline = b"\r\n" if b"\r\n" in ours else b"\n"
    added = (newline * 2).join(other[count:])
    text = ours.rstrip()
    return text + newline * 2 + added + (ours[len(text) :] or newline) if added else ours


def _entries(part: bytes) -> list[bytes]:
    """Return the lines of a section that are not indented, each with the indented ones below."""
    return [entry.rstrip() for entry in _ENTRY_START.split(part) if entry.strip()]


def has_attributes(root: Path) -> bool:
    """Return whether `.gitattributes` names the driver for logs."""
    return f" merge={DRIVER}".encode() in _read(root / ATTRIBUTES_FILE)


def driver_command() -> str:
    """Return the command that git runs; if this program is gone, git's own merge.

    Git leaves our side without a mark where a driver fails, so another failure must not end it.
    """
    program = shlex.join([*command(), "sessions", "merge"])
    return (
        f"{program} %O %A %B; case $? in 0) ;; {CONFLICT_EXIT_CODE}) exit 1 ;; "
        "*) git merge-file %A %O %B ;; esac"
    )


def set_up(root: Path) -> None:
    """Write `.gitattributes` and the driver's configuration of this clone.

    Raises:
        OutsideRepository: `.gitattributes` is a link.
        DiskError: a file cannot be written, or git refused.
    """
    path = root / ATTRIBUTES_FILE
    if path.is_symlink():
        raise OutsideRepository(f"{ATTRIBUTES_FILE} is a link; replace it by the file itself")
    if not has_attributes(root):
        before = _read(path)
        gap = b"\n" if before and not before.endswith(b"\n") else b""
        try:
            replace(path, before + gap + ATTRIBUTES.encode())
        except OSError as error:
            raise disk_error(ATTRIBUTES_FILE, error) from error
    try:
        Git(root).run("config", "--local", f"merge.{DRIVER}.driver", driver_command())
    except GitFailed as error:
        raise DiskError(str(error)) from error


def _read(path: Path) -> bytes:
    with suppress(OSError, ValueError, MalformedFile):
        return read_regular(str(path), 1024 * 1024)
    return b""
