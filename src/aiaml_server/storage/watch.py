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

from aiaml_server.files import is_local

_MODIFY, _ATTRIB, _MOVED, _CREATE, _DELETE = 0x2, 0x4, 0xC0, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _ONLY_DIRECTORY = 0x400, 0x800, 0x1000000
_ASKED = _MODIFY | _ATTRIB | _MOVED | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
_LOST = _DELETE_SELF | _MOVE_SELF | 0x2000 | 0x4000 | 0x8000  # unmounted, overflow, ended
_EVENT = struct.Struct("iIII")  # watch, what happened, cookie, length of the name
_ROOM = 64 * 1024


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
