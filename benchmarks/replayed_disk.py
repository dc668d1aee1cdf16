"""The contents of a disk after a power failure, computed from recorded system calls.

A write is on the disk when its file was synced after it. A name that was created, renamed or
deleted is on the disk when its directory was synced after it. Everything else may have arrived or
not: `after_power_failure` drops all of it, or keeps a random part of each file and directory, in
order. Writes into mapped memory are not seen.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from trace_calls import Call

Tree = dict[str, "bytes | None"]
"""The contents of the files below a directory, by path; None for a directory."""


def read_tree(root: Path) -> Tree:
    """Return what is below a directory now."""
    return {
        str(path): path.read_bytes() if path.is_file() else None
        for path in root.rglob("*")
        if path.is_file() or path.is_dir()
    }


@dataclass(eq=False)
class File:
    """A file, or a directory.

    Attributes:
        content: as a process sees it.
        durable: as it certainly is on the disk.
        pending: writes since the last sync as (offset, bytes), or (size, None) for a truncation.
        offsets: the position of each descriptor.
        appending: the descriptors that always write at the end.
    """

    is_directory: bool = False
    content: bytes = b""
    durable: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    offsets: dict[int, int] = field(default_factory=dict)
    appending: set[int] = field(default_factory=set)

    def write(self, offset: int, data: bytes | None) -> None:
        """Write at an offset, or truncate there if there is no data."""
        self.content = changed(self.content, offset, data)
        self.pending.append((offset, data))

    def sync(self) -> None:
        """Make everything durable."""
        self.durable = self.content
        self.pending.clear()

    def after_power_failure(self, random: Random | None) -> bytes | None:
        """Return the content on the disk, with a random part of what was not synced."""
        if self.is_directory:
            return None
        content = self.durable
        arrived = random.randint(0, len(self.pending)) if random else 0
        for offset, data in self.pending[:arrived]:
            content = changed(content, offset, data)
        return content


def changed(content: bytes, offset: int, data: bytes | None) -> bytes:
    """Return a content after a write, or after a truncation if there is no data."""
    begin = content[:offset].ljust(offset, b"\0")
    return begin if data is None else begin + data + content[offset + len(data) :]


class Disk:
    """Everything below one directory, as system calls change it."""

    def __init__(self, root: Path, before: Tree) -> None:
        """Begin with a tree that is durable."""
        self.root = root
        self.names: dict[str, File] = {str(root): File(is_directory=True)}
        for path, content in before.items():
            self.names[path] = File(content is None, content or b"", content or b"")
        self.durable = dict(self.names)
        self.pending: list[tuple[str, File | None]] = []  # a name, and what it became

    def replay(self, calls: Sequence[Call]) -> None:
        """Apply recorded calls."""
        for call in calls:
            if call.name in ("sync", "syncfs"):
                self._sync_all()
            elif call.result >= 0 and str(self.root) in call.text:
                self._apply(call)

    def after_power_failure(self, random: Random | None) -> Tree:
        """Return what is on the disk; with `random`, a random part of what was not synced too."""
        names = dict(self.durable)
        incomplete: set[str] = set()  # directories whose later changes did not arrive
        for path, file in self.pending if random else []:
            parent = path.rpartition("/")[0]
            if parent not in incomplete and random and random.random() < 0.5:
                set_name(names, path, file)
            else:
                incomplete.add(parent)
        return {path: file.after_power_failure(random) for path, file in names.items()}

    def restore(self, tree: Tree) -> None:
        """Write a tree to the real directory, instead of what is there."""
        remove_folder(self.root)
        self.root.mkdir()
        for name in sorted(tree):
            path, content = Path(name), tree[name]
            if not path.parent.is_dir():
                continue  # its directory did not arrive
            if content is None:
                path.mkdir(mode=0o700, exist_ok=True)
            else:
                path.write_bytes(content)
                path.chmod(0o600)

    def _apply(self, call: Call) -> None:
        number, path = call.descriptor
        file = self.names.get(path)
        if call.name in ("openat", "open", "creat"):
            self._open(call)
        elif call.name.startswith(("mkdir", "rename", "link", "unlink", "rmdir")):
            self._change_names(call)
        elif not file:
            return
        elif call.name in ("write", "writev", "pwrite64", "pwritev"):
            write(call, number, file)
        elif call.name == "lseek":
            file.offsets[number] = call.result
        elif call.name == "ftruncate":
            file.write(int(call.text.split(",")[1].split(")")[0]), None)
        elif call.name in ("fsync", "fdatasync"):
            self._sync(path, file)

    def _open(self, call: Call) -> None:
        match = re.search(r"\) += (\d+)<(.*)>$", call.text)
        if not match:
            return
        number, path = int(match[1]), match[2]
        flags = set(re.findall(r"O_[A-Z]+", call.text))
        if "O_CREAT" in flags and path not in self.names:
            self._set(path, File())
        file = self.names.get(path)
        if not file:
            return
        file.offsets[number] = 0
        file.appending.discard(number)
        if "O_APPEND" in flags:
            file.appending.add(number)
        if "O_TRUNC" in flags and file.content:
            file.write(0, None)

    def _change_names(self, call: Call) -> None:
        source, target = [*call.paths, ""][:2]
        if call.name.startswith("mkdir"):
            self._set(source, File(is_directory=True))
        elif call.name.startswith(("unlink", "rmdir")):
            self._set(source, None)
        elif call.name.startswith("link") and source in self.names:
            self._set(target, self.names[source])
        elif call.name.startswith("rename"):
            for path in [path for path in self.names if f"{path}/".startswith(f"{source}/")]:
                self._set(target + path.removeprefix(source), self.names[path])
                self._set(path, None)

    def _set(self, path: str, file: File | None) -> None:
        set_name(self.names, path, file)
        self.pending.append((path, file))

    def _sync(self, path: str, file: File) -> None:
        if not file.is_directory:
            file.sync()
            return
        waiting = self.pending
        self.pending = []
        for name, became in waiting:
            if name.rpartition("/")[0] == path:
                set_name(self.durable, name, became)
            else:
                self.pending.append((name, became))

    def _sync_all(self) -> None:
        for file in self.names.values():
            file.sync()
        self.durable = dict(self.names)
        self.pending.clear()


def write(call: Call, number: int, file: File) -> None:
    """Apply a call that writes to a descriptor."""
    data = b"".join(call.strings)[: call.result]
    if call.name.startswith("pwrite"):
        file.write(int(re.findall(r", (\d+)\) += ", call.text)[-1]), data)
        return
    offset = len(file.content) if number in file.appending else file.offsets.get(number, 0)
    file.write(offset, data)
    file.offsets[number] = offset + len(data)


def set_name(names: dict[str, File], path: str, file: File | None) -> None:
    """Let a name mean a file, or nothing."""
    if file:
        names[path] = file
    else:
        names.pop(path, None)


def remove_folder(folder: Path) -> None:
    """Remove a folder, into which a process of the server may still write for a moment."""
    for pause in (0.0, 0.5, 2.0):
        time.sleep(pause)
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
