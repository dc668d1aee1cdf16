"""The directories that the page shows: that in use, and the others that the person has."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request

from aiaml_server.bank import MemoryBank
from aiaml_server.errors import ChangedMeanwhile
from aiaml_server.format.memory import Memory
from aiaml_server.settings import Settings
from aiaml_server.terminal import note
from aiaml_server.web.asked import name_of
from aiaml_server.web.changes import Changes
from aiaml_server.web.past import Past
from aiaml_server.web.shown import version_of


class Place:
    """One directory. Looking at it changes nothing in it.

    Attributes:
        name: as `aiaml dirs` has it; empty where there is only one.
        settings: which one, and how it is kept.
        bank: what is in it.
        past: what git remembers of it.
        changes: what happens in it.
    """

    def __init__(self, name: str, settings: Settings, stack: ExitStack) -> None:
        """Take a directory; `stack` ends what is begun for it."""
        self.name = name
        self.settings = settings
        self.bank = MemoryBank(settings, told=note)
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


class File(NamedTuple):
    """A file that may hold a memory, in one of the directories."""

    place: Place
    name: str

    @property
    def path(self) -> str:
        """What the page calls it: its name, behind its directory's where there are several."""
        return f"{self.place.name}/{self.name}" if self.place.name else self.name

    @property
    def told(self) -> dict[str, str]:
        """What the page is told of it: its path, and its directory where there are several."""
        directory = {"directory": self.place.name} if self.place.name else {}
        return {"file": self.path, **directory}

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
            raise ChangedMeanwhile(self.name)
        return text


def memories(files: Iterable[File]) -> Iterator[Memory]:
    """Return the memories that files hold, each read when its turn comes."""
    for place, name in files:
        for _, memory in place.bank.read([name]):
            yield memory


class Places:
    """Finds directories, and files in them, by what the page calls them."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._by_name = {each.name: each for each in places}

    @property
    def all(self) -> list[Place]:
        """All directories, that in use first."""
        return list(self._by_name.values())

    def one(self, request: Request) -> Place:
        """Return the directory that a request names, or that in use.

        Raises:
            HTTPException: there is none of that name.
        """
        name = request.query_params.get("directory") or self.all[0].name
        if name not in self._by_name:
            raise HTTPException(404, "there is no such directory; `aiaml dirs` lists yours")
        return self._by_name[name]

    def file(self, path: object) -> File:
        """Return the file that the page means.

        Raises:
            FileNotFoundError: no memory may have that name, or there is no such directory.
        """
        if not isinstance(path, str):
            raise FileNotFoundError(path)
        directory, slash, name = path.rpartition("/")
        place = self._by_name.get(directory) if slash else self.all[0]
        if not place or (slash and not directory):
            raise FileNotFoundError(path)
        return File(place, name_of(name))

    def file_in(self, request: Request) -> File:
        """Return the file whose name stands in the address.

        Raises:
            FileNotFoundError: there can be no such memory.
        """
        return self.file(request.path_params["name"])


@contextmanager
def opened(directories: Sequence[tuple[str, Settings]]) -> Iterator[Places]:
    """Have directories for the page inside the `with`: their names, the one in use first."""
    with ExitStack() as stack:
        places = [Place(*each, stack) for each in directories]
        places[0].kept()
        yield Places(places)
