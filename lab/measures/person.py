"""A person, and git, in the folder where a server keeps each text as a file."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from random import Random
from threading import Event, Thread

from ..adapter import Adapter
from ..client import Client
from . import texts

ZERO = ("deleted and there", "edit not seen", "file by hand gone")
ASKED_FOR = 500  # texts deleted, and as many edited, at most
PAUSE = 0.02  # seconds between two things that the person does
GIT = (
    ["status", "--short"],
    ["log", "--oneline"],
    ["add", "--all"],
    ["commit", "--quiet", "--message=by hand"],
)


class Person(Thread):
    """Edits, deletes and adds files, and asks git, until `over` is set.

    Attributes:
        deleted: the keys of the texts whose files it deleted.
        edited: the line that it put at the end of a text's file, by the text's key.
        added: its own files, and what is in them.
    """

    def __init__(self, folder: Path, random: Random) -> None:
        """Take the folder, which need not be there yet."""
        super().__init__(daemon=True)
        self._folder = folder
        self._random = random
        self.over = Event()
        self.deleted: set[str] = set()
        self.edited: dict[str, str] = {}
        self.added: dict[Path, bytes] = {}

    def run(self) -> None:
        """Work, whatever the servers do meanwhile."""
        self._git("init", "--quiet")
        paths: list[Path] = []
        done = 0
        while not self.over.wait(PAUSE):
            if done % 50 == 0:
                paths = [
                    Path(where, name)
                    for where, _, names in os.walk(self._folder)
                    for name in names
                    if "/.git" not in where and not name.startswith(".")
                ]
            done += 1
            if done % 10 == 0:
                self._git(*self._random.choice(GIT))
            elif paths:
                with suppress(OSError):
                    self._touch(self._random.choice(paths), done)

    def _touch(self, path: Path, number: int) -> None:
        """Do one thing to a file, or beside it."""
        match = re.search(rb"begin (key\w+) ", path.read_bytes())
        if not match or path in self.added:
            return
        name = match[1].decode()
        what = self._random.choice(("append", "write anew", "delete", "add"))
        line = f"by hand {number}"
        if what == "append":
            with path.open("a", encoding="utf-8") as stream:
                stream.write(f"\n{line}\n")
            self.edited[name] = line
        elif what == "write anew":
            aside = path.with_name(f".{path.name}.swp")
            aside.write_text(f"{path.read_text(encoding='utf-8')}\n{line}\n", encoding="utf-8")
            aside.replace(path)
            self.edited[name] = line
        elif what == "delete":
            path.unlink()
            self.deleted.add(name)
            self.edited.pop(name, None)
        else:
            mine = path.with_name(f"hand-{number}{path.suffix}")
            self.added[mine] = f"# A note\n\n{line}\n".encode()
            mine.write_bytes(self.added[mine])

    def _git(self, *words: str) -> None:
        settings = ["-c", "user.name=lab", "-c", "user.email=lab@example.org"]
        command = ["git", "-C", str(self._folder), *settings, *words]
        with suppress(OSError):
            subprocess.run(command, capture_output=True, check=False)

    def wrong(self, server: Adapter, client: Client) -> Counter[str]:
        """Count what was done by hand and is not so for a server; of much, some is asked for."""
        found: Counter[str] = Counter()
        for name in self._some(self.deleted):
            found["deleted and there"] += f"begin {name}" in texts.find(server, client, name)
        for name in self._some(self.edited):
            found["edit not seen"] += self.edited[name] not in texts.find(server, client, name)
        for path, data in self.added.items():
            found["file by hand gone"] += not path.exists() or path.read_bytes() != data
        return +found

    @staticmethod
    def _some(names: Iterable[str]) -> list[str]:
        """Return the names, or `ASKED_FOR` of them, the same each time."""
        wanted = sorted(names)
        return Random(0).sample(wanted, min(ASKED_FOR, len(wanted)))
