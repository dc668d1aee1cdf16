"""What git remembers, for the page: the versions of a memory, what was forgotten, and lately."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, islice
from typing import Any

from aiaml_server.bank import MemoryBank
from aiaml_server.format.memory import Memory, parsed
from aiaml_server.sync import History, Version
from aiaml_server.timestamps import format_timestamp
from aiaml_server.web.shown import title

_MOST = 200  # versions, and forgotten memories
LATELY = 12
_PATIENCE_SECONDS = 2.0  # for another process that synchronises
_COMMITS = 200  # that are looked at for what happened lately
_MANY = 3  # memories of one commit that are told one by one


class Past:
    """What git remembers of one directory."""

    def __init__(self, bank: MemoryBank) -> None:
        self._bank = bank

    def versions(self, name: str) -> list[dict[str, Any]]:
        """Return all versions of a file, newest first, with what changed in each.

        Raises:
            AiamlError: git is missing, or cannot read its repository.
        """
        known = self._bank.history(seconds=_PATIENCE_SECONDS)
        versions = list(islice(known.versions([name]), _MOST))
        texts = known.texts(entry for each in versions for entry in (each.before, each.after))
        rows = []
        for version in versions:
            before, after = texts.get(version.before), texts.get(version.after)
            rows.append({**_fields(version), "text": after, **_changed(before, after)})
        return rows

    def forgotten(self) -> list[dict[str, Any]]:
        """Return the memories that are gone, the last first, each with the text that it had.

        Raises:
            AiamlError: git is missing, or cannot read its repository.
        """
        known = self._bank.history(seconds=_PATIENCE_SECONDS)
        gone: dict[str, Version] = {}
        for version in known.versions():
            if version.action == "deleted" and not self._bank.stamp(version.name):
                gone.setdefault(version.name, version)
        some = list(islice(gone.values(), _MOST))
        return [row for row in self._rows(known, some) if row["text"]]

    def lately(self) -> list[dict[str, Any]]:
        """Return what came, changed and went last; many of one commit as one.

        Raises:
            AiamlError: git is missing, or cannot read its repository.
        """
        known = History(self._bank.base)
        groups = groupby(known.versions(limit=_COMMITS), lambda each: each.commit)
        commits = [list(group) for _, group in islice(groups, LATELY)]
        rows: list[dict[str, Any]] = []
        for versions in commits:
            several = len(versions) > _MANY
            told = self._rows(known, versions[:1] if several else versions)
            count = len(versions) if several else 1
            rows += [{**row, "text": None, "memories": count} for row in told]
        return rows[:LATELY]

    def _rows(self, known: History, versions: list[Version]) -> Iterator[dict[str, Any]]:
        texts = known.texts(version.after or version.before for version in versions)
        for version in versions:
            text = texts.get(version.after or version.before)
            memory = parsed(text)
            yield {
                **_fields(version),
                "there": bool(self._bank.stamp(version.name)),
                "id": memory.id if memory else None,
                "agent": memory.agent if memory else None,
                "title": title(memory.content) if memory else version.name,
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
        "words": [(was, now)] if was != now else [],
    }


_HEAD = ("topics", "agent", "user")


def _head(memory: Memory) -> tuple[str, ...]:
    return ", ".join(memory.topics), memory.agent, memory.user


_WORDS = {
    "added": "Added",
    "edited": "Updated",
    "deleted": "Forgotten",
    "imported": "Imported",
    "copied": "Kept",
}


def _fields(version: Version) -> dict[str, Any]:
    return {
        "file": version.name,
        "revision": version.commit,
        "time": format_timestamp(version.time * 1_000_000, "seconds"),
        "what": _WORDS[version.action],
        "machine": version.author,
    }
