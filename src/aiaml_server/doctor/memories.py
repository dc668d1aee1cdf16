"""Checks of the memory directory, its disk, the files and the index. No memory is ever changed."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing

from aiaml_server.bank import REPLACES
from aiaml_server.doctor.context import Context, warning
from aiaml_server.errors import MalformedFile, StoreError
from aiaml_server.files import hold_lock, replace_atomic, temporary_path
from aiaml_server.format.invisible import invisible_in
from aiaml_server.format.memory import Memory
from aiaml_server.identity import is_trusted_base
from aiaml_server.index import Index, delete_index, index_file
from aiaml_server.storage.store import SUFFIX, Store
from aiaml_server.terminal import plural
from aiaml_server.toolset import Finding, Fix

_SYSTEM_FILES = ("desktop.ini", "thumbs.db")
_CLOUDS = re.compile(
    r"(?i)dropbox.*|onedrive.*|icloud ?drive|mobile documents|com~apple~clouddocs|google ?drive.*"
    r"|my drive|nextcloud|owncloud|box( sync)?|pcloud ?drive|cloudstorage|syncthing|mega(sync)?"
)


def location(context: Context) -> Iterator[Finding]:
    """Check that the directory exists, is trusted, and is not in a cloud folder."""
    if context.settings is None:
        found = "unknown, so it is not checked: AIAML_MEMORY_DIR cannot be used"
        yield Finding("directory", "error", found, "correct AIAML_MEMORY_DIR, then run this again")
        return
    base = context.settings.base
    if os.path.lexists(base) and not base.is_dir():
        remedy = "move it away, or set AIAML_MEMORY_DIR to a directory"
        yield Finding("directory", "error", f"{base} is not a directory", remedy)
        return
    new = "" if base.is_dir() else " does not exist yet; the first memory creates it"
    yield Finding("directory", "ok", f"{base}{new}")
    if base.is_dir() and not is_trusted_base(base, context.settings.remote):
        found = f"{base} was made on another computer or by another user; it is not synchronised"
        yield warning("directory", found, f"if it is yours: `aiaml trust {base}`")
    if any(_CLOUDS.fullmatch(part) for part in {*base.parts, *base.resolve().parts}):
        found = f"{base} is in a cloud folder, whose program may copy or replace files"
        remedy = "move it elsewhere, and synchronise with `aiaml sync --setup` (docs/sync.md)"
        yield warning("directory", found, remedy)


def disk(context: Context) -> Iterator[Finding]:
    """Write, delete and lock a file that no reader looks at, as storing a memory does."""
    if context.base is None:
        return
    files = context.base / "files"
    directory = files if os.path.lexists(files) else context.base
    path = temporary_path(directory)
    try:
        replace_atomic(path, b"aiaml doctor\n")
        path.unlink()
    except OSError as error:
        cause = StoreError("write in", directory, error)
        remedy = "make it a directory that you can write; until then nothing can be stored"
        yield Finding("disk", "error", str(cause), remedy)
        return
    yield Finding("disk", "ok", "a file was written, synced and deleted")
    path = temporary_path(context.base)
    with hold_lock(path, 1.0) as hold:
        is_locked = hold.acquired
    path.unlink(missing_ok=True)
    if not is_locked:
        remedy = "keep memories on a local disk, or use them from one program at a time"
        yield warning("disk", f"files cannot be locked in {context.base}", remedy)


def permissions(context: Context) -> Iterator[Finding]:
    """Check that only this user can read the memories."""
    base = context.base
    if sys.platform == "win32" or base is None:
        return
    mode = stat.S_IMODE(base.stat().st_mode)
    if mode & 0o077:
        found = f"others on this computer can read {base} (mode {mode:04o})"
        remedy = f"unless you share it on purpose: `chmod 700 {base}`, or `aiaml doctor --fix`"
        fix = Fix(f"make {base} private (chmod 700)", lambda: base.chmod(mode & 0o7700))
        yield warning("access", found, remedy, fix)
    else:
        yield Finding("access", "ok", f"others cannot read it (mode {mode:04o})")


def files(context: Context) -> Iterator[Finding]:
    """Count the memories, and name every file that is wrong."""
    if context.base is None:
        return
    memories = {name: m for name, m in context.memories.items() if isinstance(m, Memory)}
    yield Finding("files", "ok", plural(len(memories), "memory") if memories else "no memories")
    directory = context.base / "files"
    correct = f"correct the file in {directory}, or move it away; it is not found until then"
    for name, value in context.memories.items():
        if isinstance(value, MalformedFile):
            yield warning("files", f"{name} is not a memory: {value}", correct)
            continue
        if characters := invisible_in("\n".join((*value.topics, value.content))):
            found = f"{name} contains invisible characters: {' '.join(characters[:5])}"
            yield warning("files", found, "agents read them; `aiaml show` shows where they are")
    names_by_id = defaultdict(list)
    for name, memory in memories.items():
        names_by_id[memory.id].append(name)
    for memory_id, names in names_by_id.items():
        if len(names) > 1:
            found = f"the id {memory_id} is in {plural(len(names), 'file')}: {', '.join(names)}"
            yield warning("files", found, "delete the copies, or give them ids of their own")
    for path in sorted(directory.glob("[!.]*")):
        if path.suffix != SUFFIX and path.name.lower() not in _SYSTEM_FILES:
            yield warning("files", f"{path.name} in {directory} is not read", "move it away")


def replaced(context: Context) -> Iterator[Finding]:
    """Name outdated memories: a newer one says that it replaces them."""
    memories = [value for value in context.memories.values() if isinstance(value, Memory)]
    ids = {memory.id for memory in memories}
    for memory in memories:
        for old in REPLACES.findall(memory.content):
            if old in ids - {memory.id}:
                found = f"{old} is outdated: {memory.id} replaces it"
                yield warning("replaced", found, f"`aiaml forget {old}`")


def index(context: Context) -> Iterator[Finding]:
    """Compare the index with the files."""
    base = context.base
    if base is None or not (base / "files").is_dir():
        return
    with closing(Index(Store(base))) as opened:
        difference = opened.verify()
    if difference:
        fix = Fix("delete the index, which is built again", lambda: delete_index(base))
        remedy = "`aiaml doctor --fix` deletes it; it is built again"
        yield Finding("index", "error", difference, remedy, fix)
    else:
        yield Finding("index", "ok", f"agrees with the files; {index_file(base)}")
