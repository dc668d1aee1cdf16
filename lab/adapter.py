"""What the laboratory has to know of a server; each file in `adapters/` says it of one."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from . import adapters
from .client import Client, RefusedError

Call = tuple[str, dict[str, Any]]
"""A tool and its arguments."""


class Adapter:
    """How one server is installed, started, and asked. A subclass overrides what differs.

    Attributes:
        name: as it is called here.
        title: as its authors call it.
        package: what `lab` installs: `pip NAME` or `npm NAME`; empty for what needs nothing.
        python: an expression that the Python to install it with must be able to evaluate.
        largest: how many characters a text may have.
        files: the folder below `place` where each text is a file that people may edit, if any.
        notes: what is unfair to it, or to others: by measure, and "" for all of them.
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    package: ClassVar[str] = ""
    python: ClassVar[str] = "True"
    largest: ClassVar[int] = 20_000
    files: ClassVar[str] = ""
    notes: ClassVar[Mapping[str, str]] = {}

    def __init__(self, home: Path, version: str) -> None:
        """Take the folder into which the package was installed, and which version it is."""
        self.home = home
        self.version = version

    def command(self) -> list[str]:
        """Return the words that start the server."""
        raise NotImplementedError

    def environ(self, place: Path) -> Mapping[str, str]:
        """Return what its environment has besides HOME and PATH, to keep everything in `place`."""
        return {}

    def prepare(self, place: Path) -> None:
        """Make what must be there before the first start."""

    def begin(self, client: Client) -> None:
        """Call what must be called after each start."""

    def store(self, key: str, text: str) -> Call:
        """Return the call that stores a text; `key` is a name where one is wanted."""
        raise NotImplementedError

    def stored(self, key: str, answer: str) -> str:
        """Return the handle by which it is read, from the answer.

        Raises:
            RefusedError: the answer does not say that it was stored.
        """
        raise NotImplementedError

    def read(self, client: Client, handle: str) -> str:
        """Return an answer that holds the text of this handle, if there is such a text."""
        raise NotImplementedError

    def search(self, client: Client, question: str, words: Sequence[str]) -> list[str]:
        """Ask as its tools want to be asked; return the answers, the best first.

        Raises:
            NotImplementedError: it has no search.
        """
        raise NotImplementedError

    def find(self, client: Client, key: str) -> str:
        """Return an answer that holds the whole text that was stored with this key, if any."""
        return "\n".join(self.search(client, key, [key]))

    def mark(self, handle: str) -> str:
        """Return what of a handle stands in an answer to `search`."""
        return handle

    def syncing(self, place: Path, remote: Path) -> Mapping[str, str] | None:
        """Return what to add to the environment to exchange with `remote`; None without sync."""
        return None

    def lay(self, place: Path) -> Path:
        """Make what must be there before the first start; return the home directory."""
        home = place / "home"
        if not home.exists():
            home.mkdir(parents=True)
            self.prepare(place)
        return home

    def start(
        self, place: Path, wrap: Sequence[str] = (), environ: Mapping[str, str] | None = None
    ) -> Client:
        """Start the server on what lies in `place`."""
        home = self.lay(place)
        usual = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            "UV_USE_IO_URING": "0",
        }
        folder = {"XDG_CACHE_HOME": "cache", "XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config"}
        usual |= {name: str(home / each) for name, each in folder.items()}
        given = {**usual, **self.environ(place), **(environ or {})}
        log = place.with_name(f"{place.name}.log")
        client = Client([*wrap, *self.command()], given, place, log)
        try:
            self.begin(client)
        except BaseException:
            client.__exit__(Exception, None, None)
            raise
        return client

    def keep(self, client: Client, key: str, text: str, seconds: float = 60.0) -> str:
        """Store a text and return its handle."""
        return self.stored(key, client.call(*self.store(key, text), seconds=seconds))


def field(answer: str, name: str) -> str:
    """Return a field of an answer in JSON.

    Raises:
        RefusedError: it has none.
    """
    try:
        value = json.loads(answer)[name]
    except (ValueError, KeyError, TypeError):
        raise RefusedError(answer[:200]) from None
    if not value:
        raise RefusedError(answer[:200])
    return str(value)


def known() -> dict[str, type[Adapter]]:
    """Return every adapter by its name."""
    found: dict[str, type[Adapter]] = {}
    for module in pkgutil.iter_modules(adapters.__path__):
        each = importlib.import_module(f"{adapters.__name__}.{module.name}")
        found[each.Server.name] = each.Server
    return found
