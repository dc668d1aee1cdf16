"""The person's memories as files of the default toolset, whose git carries them to other machines.

What was the same on both sides at the last exchange is known by a digest of the file, so that each
side can be told to have changed. Where both have, the later change wins, and what is replaced in a
database stays in its history.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from aiaml_server.errors import MalformedFile
from aiaml_server.format import memory as files
from aiaml_server.storage.store import Store
from aiaml_server.toolsets.semantic import journal, memory
from aiaml_server.toolsets.semantic.database import Database, rows
from aiaml_server.toolsets.semantic.journal import FORGOTTEN
from aiaml_server.toolsets.semantic.memories import Memories
from aiaml_server.toolsets.semantic.memory import COLUMNS, Memory, of_row
from aiaml_server.toolsets.semantic.portable import AGENT, as_file, draft_of, origin

_SAID = ("priority", "category", "tags", "source", "updated_at")
_TAKEN = ("content", "content_hash", "folded", *_SAID)
"""The columns that a changed file changes."""
_UNITED = (*_SAID, "path", "created_at")
"""Those that change where a memory and a file become one."""


@dataclass
class Exchanged:
    """What an exchange has done: how many memories, by what became of them, and what was not.

    Attributes:
        again: whether two files were new that have the same text, which become one the next time.
    """

    done: Counter[str] = field(default_factory=Counter)
    skipped: list[str] = field(default_factory=list)
    again: bool = False


def exchange(memories: Memories, store: Store) -> Exchanged:
    """Bring the global memories and their files to the same state.

    Raises:
        Refused: the database cannot be used.
        StoreError: the disk refused a file.
    """
    database = memories.databases["global"]
    result = Exchanged()
    there = dict(_files(store, result))
    held: dict[int, Memory] = {}
    known: dict[str, tuple[int, str]] = {}
    if database.there:
        with database.reading() as sql:
            for uid, number, digest in rows(sql, "SELECT uid, memory_id, digest FROM exchanged"):
                known[str(uid)] = (number, str(digest))
            for row in rows(sql, f"SELECT {COLUMNS} FROM memories ORDER BY id"):
                held[row[0]] = of_row("global", row)
    _forget(there, known, store, result)
    named = {number for number, _ in known.values()}
    for number, one in held.items():
        if number not in named:
            known[_uid(one, {*known, *there})] = (number, "")
    _join(memories, store, result, there, known, held)
    for uid in sorted({*known, *there}):
        number, digest = known.get(uid, (0, ""))
        _Pair(database, store, result, uid, digest, there.get(uid)).settle(held.get(number), number)
    if result.again:
        more = exchange(memories, store)
        result.done += more.done
        result.skipped += more.skipped
    return result


def _join(
    memories: Memories,
    store: Store,
    result: Exchanged,
    there: dict[str, tuple[str, str]],
    known: dict[str, tuple[int, str]],
    held: dict[int, Memory],
) -> None:
    """Make one of each memory and a file that is not known, and yet of that memory."""
    database = memories.databases["global"]
    named = {number: uid for uid, (number, _) in known.items()}
    texts = {one.content_hash: number for number, one in held.items()}
    for uid in [uid for uid in there if uid not in known]:
        name, text = there[uid]
        one = files.parse(text)
        first = origin(one)
        if first in there and (number := known.get(first, (0, ""))[0]) in held:
            # Another version of one, which git kept as a file of its own: the later one stays.
            if _updated(text) > held[number].updated_at:
                _Pair(database, store, result, uid, "", there[uid]).put(text, number)
            kept = named[number]
        elif number := texts.get(_digest(one.content), 0):
            # Stored on two machines before they met: each keeps the same of the two ids.
            kept, gone = sorted((named[number], uid))
            _unite(database, number, text, is_first=kept == named[number])
            del known[named[number]]
            name, text = there.pop(gone, ("", ""))
        else:
            continue
        held[number] = memories.get(f"global:{number}")
        named[number], known[kept] = kept, (number, "")  # either may be the later one now
        if kept != uid:
            there.pop(uid, None)
        if name:
            store.replace(name, text, None)
        result.done["joined"] += 1


def _unite(database: Database, number: int, text: str, *, is_first: bool) -> None:
    """Have a memory say what a file of the same text says besides, whichever of them is first."""
    file = journal.row_of(draft_of(files.parse(text)).checked())
    with database.writing() as sql:
        was = journal.fields_of(sql, number)
        first, second = (was, file) if is_first else (file, was)
        values = {**first, **journal.joined(first, second)}
        values |= {"created_at": min(was["created_at"], file["created_at"]),
                   "updated_at": max(was["updated_at"], file["updated_at"])}  # fmt: skip
        database.change(sql, number, {name: values[name] for name in _UNITED})
        journal.note(sql, "global", "update", number, was)
        sql.execute("DELETE FROM exchanged WHERE memory_id = ?", (number,))


def _files(store: Store, result: Exchanged) -> Mapping[str, tuple[str, str]]:
    """Return the files of ours by their ids: each with its name and text."""
    found: dict[str, tuple[str, str]] = {}
    for name in store.names():
        text = store.present(name)
        if text is None or f"agent: {AGENT}\n" not in text:
            continue
        try:
            one = files.parse(text)
        except MalformedFile as error:
            result.skipped.append(f"{name}: {error}")
        else:
            if one.agent == AGENT and "scope: global" in one.extra:
                if one.id in found:
                    result.skipped.append(f"{name}: another file has the id {one.id}, too")
                else:
                    found[one.id] = (name, text)
    return found


def _forget(
    there: dict[str, tuple[str, str]],
    known: Mapping[str, tuple[int, str]],
    store: Store,
    result: Exchanged,
) -> None:
    """Delete the files of what was forgotten for good, whatever git has made of them since."""
    for uid, (name, text) in list(there.items()):
        if known.get(origin(files.parse(text)), (0, ""))[1].startswith(FORGOTTEN):
            store.replace(name, text, None)
            del there[uid]
            result.done["file deleted"] += 1


def _uid(one: Memory, taken: set[str]) -> str:
    """Return an id for a file: the same on each machine for what is stored on each by itself."""
    uid = hashlib.sha256(f"{one.created_at}{one.content_hash}".encode()).hexdigest()[:8]
    bare = any(each.isalpha() and each != "e" for each in uid)  # else YAML could take a number
    return uid if bare and uid not in taken else files.draw_id()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class _Pair:
    """A memory and its file.

    Attributes:
        digest: of the file when both were the same; empty where they never were; `FORGOTTEN` of
            a memory that was forgotten for good.
        file: its name and text; None where there is none.
    """

    database: Database
    store: Store
    result: Exchanged
    uid: str
    digest: str
    file: tuple[str, str] | None

    def settle(self, held: Memory | None, number: int) -> None:
        """Have both say the same."""
        mine = files.format(as_file(held, self.uid, exchanged=True)) if held else None
        text = self.file[1] if self.file else None
        if self.digest.startswith(FORGOTTEN):
            if self.file:
                self.store.replace(*self.file, None)
                self.result.done["file deleted"] += 1
            return  # the mark stays, for the next file
        is_mine_new = mine is not None and _digest(mine) != self.digest
        is_file_new = text is not None and _digest(text) != self.digest
        if mine == text:
            if text is not None and is_file_new:
                self._note(number, text)
        elif mine is None and (is_file_new or not self.digest):
            self._take(text or "", 0)
        elif text is None and (is_mine_new or not self.digest):
            self._write(mine or "", held)
        elif mine is None:
            self._write(None, None)
        elif text is None:
            self._drop(number)
        elif is_file_new and not (is_mine_new and held and held.updated_at >= _updated(text)):
            self._take(text, number)
        else:
            self._write(mine, held)

    def _note(self, number: int, text: str | None) -> None:
        with self.database.writing() as sql:
            sql.execute("DELETE FROM exchanged WHERE uid = ? OR memory_id = ?", (self.uid, number))
            if text is not None:
                values = (self.uid, number, _digest(text))
                sql.execute("INSERT INTO exchanged VALUES (?, ?, ?)", values)

    def _write(self, text: str | None, held: Memory | None) -> None:
        name = self.file[0] if self.file else as_file(held, self.uid).file_name if held else ""
        self.store.replace(name, self.file[1] if self.file else None, text)
        self._note(held.number if held else 0, text)
        self.result.done["written" if text else "file deleted"] += 1

    def _drop(self, number: int) -> None:
        with self.database.writing() as sql:
            was = journal.fields_of(sql, number)
            self.database.remove(sql, number)
            journal.note(sql, "global", "delete", number, {}, [was])
            sql.execute("DELETE FROM exchanged WHERE uid = ?", (self.uid,))
        self.result.done["deleted"] += 1

    def _take(self, text: str, number: int) -> None:
        if number := self.put(text, number):
            self._note(number, text)

    def put(self, text: str, number: int) -> int:
        """Store what a file says, as a new memory, or in place of what one says.

        Returns:
            The memory's number; 0 where another one has the text.
        """
        row = journal.row_of(draft_of(files.parse(text)).checked())
        digest = row["content_hash"]
        with self.database.writing() as sql:
            same = rows(sql, "SELECT id FROM memories WHERE content_hash = ?", (digest,))
            if same and same[0][0] != number:
                if number or self.digest:
                    self.result.skipped.append(f"{self.uid}: global:{same[0][0]} has that text")
                else:
                    self.result.again = True
                return 0
            if number:
                was = journal.fields_of(sql, number)
                values = {name: row[name] for name in _TAKEN}
                if was["content_hash"] == digest:
                    del values["content"]  # its vectors stay
                self.database.change(sql, number, values)
                journal.note(sql, "global", "update", number, was)
                self.result.done["changed"] += 1
            else:
                number = self.database.add(sql, row)
                self.result.done["new"] += 1
        return number


def _updated(text: str) -> str:
    """Return when a file's memory was changed last, as `Memory` has it."""
    return memory.shown(draft_of(files.parse(text)).updated) or ""
