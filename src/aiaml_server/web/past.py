"""What git remembers, for the page: the versions of a memory, what was forgotten, and lately."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from aiaml_server.bank import MemoryBank
from aiaml_server.format.memory import Memory, parsed
from aiaml_server.rendering.differences import changed_words
from aiaml_server.sync.history import Change, History
from aiaml_server.web.shown import title

_MOST = 200  # versions, and forgotten memories
LATELY = 12
_PATIENCE_SECONDS = 2.0  # for another process that synchronises
_MANY = 3  # memories of one commit that are told one by one


class Past:
    """What git remembers of one directory."""

    def __init__(self, bank: MemoryBank) -> None:
        self._bank = bank
        self._known: History | None = None

    def versions(self, name: str) -> list[dict[str, Any]]:
        """Return all versions of a file, newest first, with what changed in each.

        Raises:
            AiamlError: git is missing, or cannot read its repository.
        """
        known = self._history(self._bank.history(seconds=_PATIENCE_SECONDS))
        changes = known.of(lambda each: each == name)[:_MOST]
        texts = known.texts(entry for each in changes for entry in (each.before, each.after))
        told = []
        for each in changes:
            before = texts.get(each.before) if each.before else None
            after = texts.get(each.after) if each.after else None
            told.append({**_fields(each), "text": after, **_changed(before, after)})
        return told

    def forgotten(self) -> list[dict[str, Any]]:
        """Return the memories that are gone, the last first, each with the text that it had.

        Raises:
            AiamlError: git is missing, or cannot read its repository.
        """
        known = self._history(self._bank.history(seconds=_PATIENCE_SECONDS))
        gone: dict[str, Change] = {}
        for each in known.forgotten():
            if not self._bank.stamp(each.name):
                gone.setdefault(each.name, each)
        some = list(islice(gone.values(), _MOST))
        return [each for each in self._told(known, some) if each["text"]]

    def lately(self) -> list[dict[str, Any]]:
        """Return what came, changed and went last; many of one commit as one.

        Raises:
            AiamlError: git is missing, or cannot read its repository.
        """
        known = self._history(History(self._bank.base))
        rows = list(islice(known.rows(many=_MANY), LATELY))
        told = self._told(known, [changes[0] for changes in rows])
        return [
            {**each, "text": None, "memories": len(changes)}
            for each, changes in zip(told, rows, strict=True)
        ]

    def _history(self, now: History) -> History:
        """Return what git knows now, listed anew only when it has another commit."""
        if self._known is None or self._known.head != now.head:
            self._known = now
        return self._known

    def _told(self, known: History, changes: list[Change]) -> Iterator[dict[str, Any]]:
        texts = known.texts(each.after or each.before for each in changes)
        for each in changes:
            entry = each.after or each.before
            text = texts.get(entry) if entry else None
            memory = parsed(text)
            yield {
                **_fields(each),
                "there": bool(self._bank.stamp(each.name)),
                "id": memory.id if memory else None,
                "agent": memory.agent if memory else None,
                "title": title(memory.content) if memory else each.name,
                "text": text if memory else None,
            }


def _changed(before: str | None, after: str | None) -> dict[str, Any]:
    """Return what changed from one version to the next: fields, and the words of the text."""
    old, new = parsed(before), parsed(after)
    was, now = (
        each.content if each else text or "" for each, text in ((old, before), (new, after))
    )
    fields = zip(_head(old), _head(new), strict=True) if old and new else ()
    return {
        "fields": [
            (name, *each) for name, each in zip(_HEAD, fields, strict=False) if len({*each}) > 1
        ],
        "words": changed_words(was, now),
    }


_HEAD = ("topics", "agent", "user")


def _head(memory: Memory) -> tuple[str, ...]:
    return ", ".join(memory.topics), memory.agent, memory.user


def _fields(change: Change) -> dict[str, Any]:
    return {
        "file": change.name,
        "revision": change.commit.oid,
        "time": change.commit.when,
        "what": change.what,
        "machine": change.machine or ("another machine" if change.arrived else None),
    }
