"""`-i`: memories by their numbers, to show, edit or forget.

They are plain questions, so that any terminal of any width does, and one that is read aloud.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

from aiaml_server.cli.app import aiaml
from aiaml_server.cli.context import opened
from aiaml_server.cli.filtering import Part
from aiaml_server.cli.rows import Layout
from aiaml_server.format.filters import as_word
from aiaml_server.terminal import Exit, dim, echo, notify, prompt


def choose(names: Sequence[str], part: Part) -> None:
    """List the memories of files page by page, and do what the person says, until they leave.

    Raises:
        Ended: there is no such page.
    """
    pages = _Pages(names, part)
    while True:
        if not pages.ids:
            pages.list()
        keys = f"3 shows, e 3 edits, f 3 forgets, words narrow, {pages.enter}, q leaves"
        notify(dim(keys))
        try:
            said = prompt("Which", "").strip()
        except click.Abort:  # Ctrl-D, Ctrl-C
            notify("")
            return
        if said in ("q", chr(27)):  # Escape
            return
        one = re.fullmatch(r"([ef]?)\s*(\d+)", said)
        if not said:
            pages.turn()
        elif not one:
            pages.narrow(said)
        elif not (memory_id := pages.ids.get(int(one[2]))):
            notify(f"There is no {one[2]} on this page.")
        else:
            pages.left = True
            if do({"": "show", "e": "edit", "f": "forget"}[one[1]], memory_id) and one[1]:
                pages.ids = {}


class _Pages:
    """Memories, a page of them at a time.

    Attributes:
        ids: of those on the page, by their numbers, which they keep; empty before it is shown.
        left: whether something else was shown since.
    """

    def __init__(self, names: Sequence[str], part: Part) -> None:
        self.ids: dict[int, str] = {}
        self.left = False
        self._all = [*enumerate(names, 1)]
        self._among = self._all
        self._first = part.first
        self._size = len(names) if part.everything else part.limit
        if self._first >= len(names):
            raise Exit("there is no such page")

    @property
    def enter(self) -> str:
        """What Enter alone does."""
        is_last = self._first + self._size >= len(self._among)
        return "Enter: " + ("the list" if self.left else "from the top" if is_last else "more")

    def list(self) -> None:
        """Print the page."""
        page = self._among[self._first : self._first + self._size]
        numbers = {name: number for number, name in page}
        with opened() as bank:
            found = [*bank.read(numbers)]
        layout = Layout.of([memory for _, memory in found])
        for name, memory in found:
            for line in layout.lines(memory, name=str(numbers[name])):
                echo(line)
        notify(dim(f"{self._first + 1:,} to {self._first + len(page):,} of {len(self._among):,}."))
        self.ids = {numbers[name]: memory.id for name, memory in found}
        self.left = False

    def turn(self) -> None:
        """Go to the next page, or back to this one; after the last, to the first of all."""
        self.ids = {}
        self._first += 0 if self.left else self._size
        if self._first >= len(self._among):
            self._first, self._among = 0, self._all

    def narrow(self, said: str) -> None:
        """Keep those that have all of some words."""
        numbers = {name: number for number, name in self._all}
        words = said.casefold().split()
        found = []
        with opened() as bank:
            for name, memory in bank.read(numbers):
                text = " ".join([memory.agent, memory.user, *memory.topics, memory.content])
                if all(word in text.casefold() for word in words):
                    found.append((numbers[name], name))
        if not found:
            notify("None of these has all of these words.")
            return
        self.ids, self._first, self._among = {}, 0, found


def words_of(verb: str, *ids: str) -> list[str]:
    """Return the words of a command that means these memories and no other."""
    dashes = ["--"] if any(each.startswith("-") for each in ids) else []
    return [verb, *dashes, *(map(as_word, ids) if verb == "forget" else ids)]


def do(verb: str, *ids: str, yes: bool = False) -> bool:
    """Run a command on memories; say whether it was done."""
    verb, *words = words_of(verb, *ids)
    root = click.get_current_context().find_root()
    plainly = ["--no-pager"] if root.params.get("no_pager") else []
    words = [*plainly, verb, *(["--yes"] if yes else []), *words]
    try:
        aiaml.main(words, prog_name="aiaml", standalone_mode=False)
    except Exit as ended:
        notify(str(ended))
        return False
    return True
