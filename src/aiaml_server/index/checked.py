"""One SQLite file of which nothing is believed that does not agree with a checksum.

A checksum (CRC-32) stands beside each row that an answer is made of. So that no row is missing
either, the rows of one kind have a sum of theirs (`change_sum`, `compare_sum`), to which whoever
adds one adds its own. What agreed once is believed for as long as nobody else has written to the
file (`verified`), and what was read is kept for as long; both end together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

from aiaml_server.storage.sqlite import Damaged, SharedFile

MASK = (1 << 32) - 1
KINDS = ("unindexed", "texts", "order", "facets", "vocabulary")
"""What has a sum over all rows."""

TABLES = "CREATE TABLE sums (kind PRIMARY KEY, sum);" + "".join(
    f"INSERT INTO sums VALUES ('{kind}', 0);" for kind in KINDS
)


class Verified:
    """What is known of a file that nobody else has written to since.

    Attributes:
        docs: of each document, the parts that agreed with their checksums, as bits.
        terms: those whose postings agreed.
        kinds: those whose rows agreed with their sum.
        kept: what was read, by its name.
    """

    def __init__(self) -> None:
        self.docs = bytearray()
        self.terms: set[int] = set()
        self.kinds: set[str] = set()
        self.kept: dict[str, Any] = {}

    def make_room(self, end: int) -> None:
        """Have a byte for each document below `end`."""
        self.docs.extend(bytes(max(0, end - len(self.docs))))

    def have(self, part: int, docs: Iterable[int]) -> bool:
        """Say whether a part of all of some documents agreed."""
        return all(self.docs[doc] & part for doc in docs)


class CheckedFile(SharedFile):
    """One open database with its sums. Its user holds a lock: no method may run twice at a time."""

    verified: Verified
    _verified_at: tuple[int, ...] = ()  # what `_state` said then

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read one state of the database, whatever other processes write meanwhile."""
        with super().snapshot():
            self._forget_if_written()
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all or nothing, alone among the processes."""
        with super().transaction():
            others = self._forget_if_written()
            yield
        self._verified_at = (others, *self._state())  # our own writing harms nothing

    def begin_anew(self) -> None:
        """Believe nothing, and forget what was read."""
        self.verified = Verified()

    def renew(self, path: Path) -> None:
        """Change the file's time; what agreed before is still believed."""
        undisturbed = self._verified_at[1:] == self._state()
        super().renew(path)
        if undisturbed:
            self._verified_at = (*self._verified_at[:1], *self._state())

    def _forget_if_written(self) -> int:
        """Begin anew if somebody else has written; return what `changed_by_others` says."""
        others = self.changed_by_others()
        if self._verified_at != (others, *self._state()):
            self.begin_anew()
            self._verified_at = (others, *self._state())
        return others

    def _state(self) -> tuple[int, ...]:
        """Return the file's time and size, which tell who writes to it other than by SQLite."""
        status = self.path.stat() if self.path else None
        return (status.st_mtime_ns, status.st_size) if status else ()

    # --- sums over all rows of a kind -----------------------------------------------------------

    def change_sum(self, kind: str, change: int) -> None:
        """Add the checksums of rows that are recorded, or take off those of rows that go."""
        if change:
            statement = "UPDATE sums SET sum = sum + ? & ? WHERE kind = ?"
            self.sql.execute(statement, (change, MASK, kind))

    def compare_sum(self, kind: str, total: int) -> None:
        """Compare what all rows of a kind add up to with what was recorded.

        Raises:
            Damaged: they differ.
        """
        if self.read("SELECT sum FROM sums WHERE kind = ?", (kind,)) != [(total & MASK,)]:
            raise Damaged
        self.verified.kinds.add(kind)


def sum_of(rows: Iterable[tuple[object, ...]]) -> int:
    """Return the sum of the checksums of rows."""
    return sum([crc32(repr(row).encode()) for row in rows])
