"""One answer over several directories of memories: the newest of all, and the best."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import merge
from operator import itemgetter
from typing import TYPE_CHECKING

from .scorer import Hit, newest_first

if TYPE_CHECKING:
    from .bank import MemoryBank
    from .filters import Filter


def newest(banks: Sequence[MemoryBank], wanted: Filter) -> list[tuple[MemoryBank, str]]:
    """Return the files of all memories that are meant, newest first, as if they lay in one.

    Raises:
        StoreError: a directory cannot be read.
    """
    if len(banks) == 1:
        return [(banks[0], name) for _, name in banks[0].dated(wanted)]
    runs = [[(*each, bank) for each in bank.dated(wanted)] for bank in banks]
    return [(bank, name) for _, name, bank in merge(*runs, key=itemgetter(0, 1), reverse=True)]


def best(
    banks: Sequence[MemoryBank],
    keywords: Sequence[str],
    wanted: Filter,
    first: int = 0,
    last: int | None = None,
) -> tuple[int, list[tuple[MemoryBank, Hit]]]:
    """Return how many hits there are, and the part from `first` to `last`, ranked as if in one.

    Raises:
        InvalidInput: the keywords are too many, or too long.
        StoreError: a directory cannot be read.
    """
    if len(banks) == 1:
        found = banks[0].search(keywords, wanted, first, last)
        return found.total, [(banks[0], hit) for hit in found.hits]
    total, hits = 0, []
    for bank in banks:
        found = bank.search(keywords, wanted, 0, last)
        total += found.total
        hits += [(bank, hit) for hit in found.hits]
    hits.sort(key=lambda each: each[1].file_name, reverse=True)
    hits.sort(key=lambda each: (-each[1].relevance_score, newest_first(each[1].timestamp)))
    return total, hits[first:last]
