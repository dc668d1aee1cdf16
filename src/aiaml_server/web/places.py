"""The memory directory that the page shows, and the files in it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request

from aiaml_server.bank import MemoryBank
from aiaml_server.errors import FileChanged
from aiaml_server.format.memory import Memory
from aiaml_server.settings import Settings
from aiaml_server.terminal import notify
from aiaml_server.web.asked import name_of
from aiaml_server.web.changes import Changes
from aiaml_server.web.past import Past
from aiaml_server.web.shown import version_of


class Place:
    """The memory directory. Looking at it changes nothing in it.

    Attributes:
        settings: which one, and how it is kept.
        bank: what is in it.
        past: what git remembers of it.
        changes: what happens in it.
    """

    def __init__(self, settings: Settings, stack: ExitStack) -> None:
        """Take a directory; `stack` ends what is begun for it."""
        self.settings = settings
        self.bank = MemoryBank(settings, told=notify)
        self.past = Past(self.bank)
        self.changes = Changes(self.bank)
        self._stack = stack
        self._lock = threading.Lock()
        self._kept = False
        stack.callback(self.bank.close)
        stack.callback(self.changes.close)

    def kept(self) -> MemoryBank:
        """Return what is in it, to be changed; from then on it is kept as a server keeps it."""
        with self._lock:
            if not self._kept:
                self._stack.enter_context(self.bank.opened())
                self._kept = True
        return self.bank

    def file(self, name: object) -> File:
        """Return the file of a name.

        Raises:
            FileNotFoundError: no memory may have that name.
        """
        return File(self, name_of(name))

    def file_in(self, request: Request) -> File:
        """Return the file whose name stands in the address.

        Raises:
            FileNotFoundError: there can be no such memory.
        """
        return self.file(request.path_params["name"])


class File(NamedTuple):
    """A file that may hold a memory."""

    place: Place
    name: str

    @property
    def text(self) -> str:
        """What it holds.

        Raises:
            FileNotFoundError: there is no such file.
            MalformedFile: it is no text.
            StoreError: no file can be opened now.
        """
        return self.place.bank.text(self.name)

    def current(self, seen: object) -> str:
        """Return what it holds, which must still be the version that the page has seen.

        Raises:
            ChangedMeanwhile: it is another.
            HTTPException: none was said.
        """
        if not seen:
            raise HTTPException(428, "a change must say, as If-Match, which version it changes")
        text = self.text
        if version_of(text) != seen:
            raise FileChanged(self.name)
        return text


def memories(files: Iterable[File]) -> Iterator[Memory]:
    """Return the memories that files hold, each read when its turn comes."""
    for place, name in files:
        for _, memory in place.bank.read([name]):
            yield memory


@contextmanager
def opened(settings: Settings) -> Iterator[Place]:
    """Have the directory for the page inside the `with`."""
    with ExitStack() as stack:
        place = Place(settings, stack)
        place.kept()
        yield place
