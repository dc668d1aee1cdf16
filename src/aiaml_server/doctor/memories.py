"""Checks of the files and the index. No memory is ever changed."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from aiaml_server.bank import REPLACES
from aiaml_server.doctor.context import Context
from aiaml_server.errors import MalformedFile
from aiaml_server.files import is_temporary, remove_own
from aiaml_server.format.invisible import invisible_in
from aiaml_server.format.memory import Memory
from aiaml_server.storage.store import SUFFIX, Store
from aiaml_server.terminal import plural
from aiaml_server.toolset import Finding, Fix

_STALE_SECONDS = 3600.0
_SYSTEM_FILES = ("desktop.ini", "thumbs.db")


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
            yield _warning(f"{name} is not a memory: {value}", correct)
            continue
        if characters := invisible_in("\n".join((*value.topics, value.content))):
            found = f"{name} contains invisible characters: {' '.join(characters[:5])}"
            yield _warning(found, "agents read them; `aiaml show` shows where they are")
    names_by_id = defaultdict(list)
    for name, memory in memories.items():
        names_by_id[memory.id].append(name)
    for memory_id, names in names_by_id.items():
        if len(names) > 1:
            found = f"the id {memory_id} is in {plural(len(names), 'file')}: {', '.join(names)}"
            yield _warning(found, "delete the copies, or give them ids of their own")
    yield from _other_files(directory)


def replaced(context: Context) -> Iterator[Finding]:
    """Name outdated memories: a newer one says that it replaces them."""
    memories = [value for value in context.memories.values() if isinstance(value, Memory)]
    ids = {memory.id for memory in memories}
    for memory in memories:
        for old in REPLACES.findall(memory.content):
            if old in ids - {memory.id}:
                found = f"{old} is outdated: {memory.id} replaces it"
                yield Finding("replaced", "warning", found, f"`aiaml forget {old}`")


def index(context: Context) -> Iterator[Finding]:
    """Compare the index with the files."""
    if context.base is None or not (context.base / "files").is_dir():
        return
    from aiaml_server.index import Index, delete_index, index_file  # noqa: PLC0415 (only here)

    base = context.base
    with closing(Index(Store(base))) as opened:
        difference = opened.verify()
    if difference:
        fix = Fix("delete the index, which is built again", lambda: delete_index(base))
        remedy = "`aiaml doctor --fix` deletes it; it is built again"
        yield Finding("index", "error", difference, remedy, fix)
    else:
        yield Finding("index", "ok", f"agrees with the files; {index_file(base)}")


def _other_files(directory: Path) -> Iterator[Finding]:
    """Report other files in the directory."""
    for path in sorted(directory.iterdir()) if directory.is_dir() else []:
        if is_temporary(path.name):
            if not path.is_dir() and time.time() - path.lstat().st_mtime > _STALE_SECONDS:
                fix = Fix(f"delete {path}", partial(remove_own, path))
                found = f"{path.name} was left by a writer that was killed"
                yield Finding("files", "warning", found, "`aiaml doctor --fix` deletes it", fix)
        elif path.name.startswith(".") or path.name.lower() in _SYSTEM_FILES:
            continue
        elif not path.name.endswith(SUFFIX):
            yield _warning(f"{path.name} in {directory} is not read", "move it away")


def _warning(found: str, remedy: str) -> Finding:
    return Finding("files", "warning", found, remedy)
