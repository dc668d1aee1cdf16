"""Which names in a directory were touched, where the system keeps a list of them.

Linux does, once asked (inotify): every call that changes a name, or a file through its name, has
put it on the list before it returns. So reading the list costs nothing when nothing happened, and
misses nothing that was done on this machine. Changes made by another machine are not on it;
therefore it is asked for only on file systems that no other machine can change.
"""

from __future__ import annotations

import os
import struct
import sys
from contextlib import suppress
from pathlib import Path

from aiaml_server.storage.store import Stamp, Store

_MODIFY, _ATTRIB, _MOVED, _CREATE, _DELETE = 0x2, 0x4, 0xC0, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _ONLY_DIRECTORY = 0x400, 0x800, 0x1000000
_ASKED = _MODIFY | _ATTRIB | _MOVED | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
_LOST = _DELETE_SELF | _MOVE_SELF | 0x2000 | 0x4000 | 0x8000  # unmounted, overflow, ended
_EVENT = struct.Struct("iIII")  # watch, what happened, cookie, length of the name
_ROOM = 64 * 1024

_LOCAL = frozenset(  # the kernel's numbers for file systems
    {
        0xEF53,  # ext2, ext3, ext4
        0x58465342,  # XFS
        0x9123683E,  # btrfs
        0xF2F52010,  # F2FS
        0x01021994,  # tmpfs
    }
)


def is_local(directory: Path) -> bool:
    """Say whether this machine alone can change the files of a directory, as far as is known."""
    if sys.platform != "linux":
        return False
    try:
        import ctypes  # noqa: PLC0415 (only for questions)

        libc = ctypes.CDLL(None, use_errno=True)
    except (OSError, ImportError):
        return False
    status = ctypes.create_string_buffer(512)  # more than any struct statfs has
    width = ctypes.sizeof(ctypes.c_long)
    failed = libc.statfs(os.fsencode(directory), status)
    return not failed and int.from_bytes(status.raw[:width], sys.byteorder) in _LOCAL


class Watch:
    """The list for one directory, from `begin` on."""

    def __init__(self) -> None:
        self._descriptor: int | None = None

    def begin(self, directory: Path) -> None:
        """Have the system note from now on; where it cannot, `touched` says so."""
        self.end()
        if sys.platform == "linux":
            with suppress(OSError, AttributeError, ImportError):  # a Python may lack ctypes
                self._descriptor = _noting(directory)

    @property
    def begun(self) -> bool:
        """Whether the system is noting."""
        return self._descriptor is not None

    def touched(self) -> set[str] | None:
        """Return the names touched since `begin` or the last call, "" for the directory itself.

        None, and an end, when not all may be known: the system notes nothing here, more happened
        than it notes, or the directory was moved or deleted.
        """
        names: set[str] = set()
        while self._descriptor is not None:
            try:
                events = os.read(self._descriptor, _ROOM)
            except BlockingIOError:
                return names
            except OSError:
                self.end()
                break
            at = 0
            while at < len(events):
                _, what, _, length = _EVENT.unpack_from(events, at)
                at += _EVENT.size + length
                names.add(os.fsdecode(events[at - length : at].rstrip(b"\0")))
                if what & _LOST:
                    self.end()
        return None

    def end(self) -> None:
        """Have nothing noted any more."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self) -> None:
        """End with what it was for."""
        self.end()


def _noting(directory: Path) -> int | None:
    if not is_local(directory):
        return None
    import ctypes  # noqa: PLC0415 (only whoever is asked a question needs it)

    libc = ctypes.CDLL(None, use_errno=True)
    path = os.fsencode(directory)
    descriptor: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        return None
    if libc.inotify_add_watch(descriptor, path, _ASKED | _ONLY_DIRECTORY) < 0:
        os.close(descriptor)
        return None
    return descriptor


def touched(watch: Watch, before: Stamp | None, directory: Stamp | None) -> set[str] | None:
    """Return the names of files touched since the directory's stamp was `before`.

    None, and the end of the watch, if that is not known. A directory that changed without any name
    touched is not the one that is watched.
    """
    if before and directory and before.inode == directory.inode:
        names = watch.touched()
        if names is not None and (names or directory == before):
            return set(filter(Store.may_hold, names))
    watch.end()
    return None
