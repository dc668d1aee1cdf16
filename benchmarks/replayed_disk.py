"""What a disk holds after the power failed, told from the system calls that came before.

A write is on the disk when its file was synced after it; a name (made, moved or taken away) when
its directory was. Everything else may be there or not: `after` leaves all of it out, or keeps of
each file and directory as much as chance wants, in order. With `like_ext4`, any sync brings all
names before it to the disk, as the journal of ext4 does; POSIX does not promise that. Writes into
mapped memory are not seen.
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


@dataclass(eq=False)
class File:
    """A file, or a directory.

    Attributes:
        content: as a process sees it.
        durable: as the disk has it for certain.
        pending: what was written since, as (offset, bytes), or (size, None) where it was cut.
        offsets: where each descriptor writes next.
        appending: descriptors that always write at the end.
    """

    directory: bool = False
    content: bytes = b""
    durable: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    offsets: dict[int, int] = field(default_factory=dict)
    appending: set[int] = field(default_factory=set)

    def write(self, offset: int, data: bytes | None) -> None:
        """Write at an offset, or cut there."""
        self.content = _changed(self.content, offset, data)
        self.pending.append((offset, data))

    def sync(self) -> None:
        """Bring all to the disk."""
        self.durable = self.content
        self.pending.clear()


def _changed(content: bytes, offset: int, data: bytes | None) -> bytes:
    if data is None:
        return content[:offset].ljust(offset, b"\0")
    return content[:offset].ljust(offset, b"\0") + data + content[offset + len(data) :]


Tree = dict[str, "bytes | None"]
"""What lies below a directory, by path; None stands for a directory."""


def tree(place: Path) -> Tree:
    """Return what lies there now."""
    return {
        str(path): path.read_bytes() if path.is_file() else None
        for path in place.rglob("*")
        if path.is_file() or path.is_dir()
    }


class Disk:
    """All below one directory, as calls change it."""

    def __init__(self, place: Path, before: Tree, *, like_ext4: bool) -> None:
        """Begin with what was there before, all of it on the disk."""
        self.place = place
        self.like_ext4 = like_ext4
        self.names: dict[str, File] = {str(place): File(directory=True)}
        for path, content in before.items():
            whole = content or b""
            self.names[path] = File(directory=content is None, content=whole, durable=whole)
        self.durable = dict(self.names)
        self.pending: list[tuple[str, File | None]] = []  # a name, and what it became

    def play(self, calls: Sequence[Call]) -> None:
        """Do what the calls did."""
        for call in calls:
            if call.result >= 0 and str(self.place) in call.text:
                self._do(call)
            elif call.name == "sync":
                self._sync_all()

    def after(self, random: Random | None) -> Tree:
        """Return what is there after the power failed."""
        names = dict(self.durable)
        stopped: set[str] = set()  # directories of which the rest did not arrive
        for path, became in self.pending if random else []:
            parent = path.rpartition("/")[0]
            if parent not in stopped and random and random.random() < 0.5:
                _name(names, path, became)
            else:
                stopped.add(parent)
        return {path: _content(each, random) for path, each in names.items()}

    def seen(self) -> Tree:
        """Return what processes see while the power is there."""
        return {path: None if each.directory else each.content for path, each in self.names.items()}

    def restore(self, there: Tree) -> None:
        """Make the directory what `after` or `seen` returned."""
        remove(self.place)
        self.place.mkdir()
        for path in sorted(there):
            content = there[path]
            if not Path(path).parent.is_dir():
                continue  # the directory that it was in is not there
            if content is None:
                Path(path).mkdir(mode=0o700, exist_ok=True)
            else:
                Path(path).write_bytes(content)
                Path(path).chmod(0o600)

    def _do(self, call: Call) -> None:
        number, path = call.descriptor
        file = self.names.get(path)
        if call.name in ("openat", "open", "creat"):
            self._open(call)
        elif call.name in ("write", "writev", "pwrite64", "pwritev") and file:
            self._write(call, number, file)
        elif call.name == "lseek" and file:
            file.offsets[number] = call.result
        elif call.name == "ftruncate" and file:
            file.write(int(call.text.split(",")[1].split(")")[0]), None)
        elif call.name in ("fsync", "fdatasync") and file:
            self._sync(path, file)
        elif call.name == "syncfs":
            self._sync_all()
        elif call.name.startswith(("mkdir", "rename", "link", "unlink", "rmdir")):
            self._rename(call)

    def _open(self, call: Call) -> None:
        match = re.search(r"\) += (\d+)<(.*)>$", call.text)
        if not match:
            return
        number, path = int(match[1]), match[2]
        flags = set(re.findall(r"O_[A-Z]+", call.text))
        if "O_CREAT" in flags and path not in self.names:
            self._set(path, File())
        file = self.names.get(path)
        if file:
            file.offsets[number] = 0
            file.appending.discard(number)
            if "O_APPEND" in flags:
                file.appending.add(number)
            if "O_TRUNC" in flags and file.content:
                file.write(0, None)

    @staticmethod
    def _write(call: Call, number: int, file: File) -> None:
        data = b"".join(call.strings)[: call.result]
        if call.name.startswith("pwrite"):
            offset = int(re.findall(r", (\d+)\) += ", call.text)[-1])
            file.write(offset, data)
            return
        there = len(file.content) if number in file.appending else file.offsets.get(number, 0)
        file.write(there, data)
        file.offsets[number] = there + len(data)

    def _rename(self, call: Call) -> None:
        paths = [self._absolute(call, each) for each in _paths(call)]
        if call.name.startswith("mkdir"):
            self._set(paths[0], File(directory=True))
        elif call.name.startswith(("unlink", "rmdir")):
            self._set(paths[0], None)
        elif call.name.startswith("link") and paths[0] in self.names:
            self._set(paths[1], self.names[paths[0]])
        elif call.name.startswith("rename"):
            moved = [each for each in self.names if f"{each}/".startswith(f"{paths[0]}/")]
            for each in moved:
                self._set(paths[1] + each.removeprefix(paths[0]), self.names[each])
            for each in moved:
                self._set(each, None)

    @staticmethod
    def _absolute(call: Call, path: str) -> str:
        if path.startswith("/"):
            return path
        folder = re.search(r"<(.*?)>", call.text)
        return f"{folder[1]}/{path}" if folder else path

    def _set(self, path: str, became: File | None) -> None:
        _name(self.names, path, became)
        self.pending.append((path, became))

    def _sync(self, path: str, file: File) -> None:
        if not file.directory:
            file.sync()
        arrived = [
            each
            for each in self.pending
            if self.like_ext4 or (file.directory and each[0].rpartition("/")[0] == path)
        ]
        for each in arrived:
            _name(self.durable, *each)
        self.pending = [each for each in self.pending if each not in arrived]

    def _sync_all(self) -> None:
        for file in self.names.values():
            file.sync()
        for each in self.pending:
            _name(self.durable, *each)
        self.pending.clear()


def remove(folder: Path) -> None:
    """Remove a folder; what a server started by itself may write there a moment longer."""
    for pause in (0.0, 0.5, 2.0):
        time.sleep(pause)
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break


def _name(names: dict[str, File], path: str, became: File | None) -> None:
    if became:
        names[path] = became
    else:
        names.pop(path, None)


def _content(file: File, random: Random | None) -> bytes | None:
    if file.directory:
        return None
    content = file.durable
    arrived = random.randint(0, len(file.pending)) if random else 0
    for offset, data in file.pending[:arrived]:
        content = _changed(content, offset, data)
    return content


def _paths(call: Call) -> list[str]:
    return [each.decode(errors="replace") for each in call.strings]
