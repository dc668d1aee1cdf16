"""The files: which are no memories, which are one twice, and what else lies among them.

Nothing here is ever changed but temporary files that a writer left when it died.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from aiaml_server.doctor.context import Context
from aiaml_server.doctor.finding import Finding, Fix
from aiaml_server.doctor.scan import FileScan
from aiaml_server.errors import UnsafePath
from aiaml_server.files import check_own, is_temporary, remove_own
from aiaml_server.format.memory import MAX_TOPICS
from aiaml_server.storage.derived import INDEX
from aiaml_server.storage.store import SUFFIX
from aiaml_server.terminal import format_size, plural

_STRAY_SECONDS = 3600.0
_CONFLICT = re.compile(
    r"conflicted copy|case conflict|\.sync-conflict-|sfconflict|\[conflicted\]| \(\d+\)\.",
    re.IGNORECASE,
)
_OWN = (".lock", ".sync.lock", ".sync-status.json", INDEX)
_SYSTEM = ("desktop.ini", "thumbs.db")


def files(context: Context) -> Iterator[Finding]:
    """Count the memories, and name every file that is not what it should be."""
    if not (base := context.base):
        return
    found = context.scan
    count = f"{plural(len(found.names), 'memory')}, {format_size(found.size)}"
    yield Finding("files", "ok", count if found.names else "no memories")
    for told, remedy in _doubts(found, base):
        yield Finding("files", "warning", told, remedy)
    yield from _not_ours(base)
    yield from _others(base)


def _doubts(found: FileScan, base: Path) -> Iterator[tuple[str, str]]:
    """Yield what is to be said of memories and files that are none, and what to do about each."""
    edit = f"correct the file in {base / 'files'}, or move it away; it is never changed or found"
    for name, problems in found.malformed.items():
        yield f"{name} is no memory: {problems}", edit
    for memory_id, names in found.ids.items():
        if len(names) > 1:
            told = f"the id {memory_id} is in {plural(len(names), 'file')}: {', '.join(names)}"
            yield told, "`recall` gives them all; delete the copies, or give them ids of their own"
    clear = "it is found by the id inside; name the file after it, or correct it, to be clear"
    for name, memory_id in found.misnamed.items():
        yield f"{name} has the id {memory_id} inside", clear
    show = "agents read them: `aiaml show` shows where they stand; `aiaml edit` can remove them"
    for name, characters in found.invisible.items():
        yield f"{name} holds characters that nobody sees: {characters}", show
    see = "topics count most in a search, so it comes up in many; see that it is meant to"
    for name, topics in found.crowded.items():
        yield f"{name} has {topics} topics, more than `remember` takes ({MAX_TOPICS})", see
    for name in found.large:
        told = f"{name} is larger than a memory may be (1 MiB), though it is read"
        yield told, "divide it into several memories"
    if found.foreign:
        told = f"{plural(len(found.foreign), 'file')} of another user, such as {found.foreign[0]}"
        yield told, f"if they should be yours: `sudo chown -R $(id -un) {base}`"


def _not_ours(base: Path) -> Iterator[Finding]:
    """Name what has the place of a file that the program keeps beside the memories."""
    for name in _OWN:
        try:
            check_own(base / name, directory=name == INDEX)
        except UnsafePath as error:
            remedy = "it may have come with a cloned directory; it is neither followed nor used"
            yield Finding("files", "error", str(error), remedy)


def _others(base: Path) -> Iterator[Finding]:
    """Name what is in the directory and no memory."""
    directory = base / "files"
    entries = sorted(directory.iterdir()) if directory.is_dir() else []
    for path in [*entries, *base.iterdir()]:
        if not is_temporary(path.name):
            continue
        hours = (time.time() - path.lstat().st_mtime) / 3600
        if hours * 3600 > _STRAY_SECONDS and not path.is_dir():
            found = f"{path.name} was left by a writer that died {hours:,.0f} hours ago"
            remedy = f"delete {path}, or `aiaml doctor --fix`"
            fix = Fix(f"delete {path}", partial(remove_own, path))
            yield Finding("files", "warning", found, remedy, fix)
    for path in entries:
        if path.name[0] == "." or path.name.lower() in _SYSTEM:
            continue
        if _CONFLICT.search(path.name):
            found = f"{path.name} is a copy that a program for synchronising made"
            remedy = "compare it with the original, keep one, delete the other"
            yield Finding("files", "warning", found, remedy)
        elif not path.name.endswith(SUFFIX):
            kind = "a directory" if path.is_dir() else f"a file whose name does not end in {SUFFIX}"
            found = f"{path.name} in {directory} is {kind}"
            remedy = "it is not read: move it away, or what is a memory to where the others are"
            yield Finding("files", "warning", found, remedy)
