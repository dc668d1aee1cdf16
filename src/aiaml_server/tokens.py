r"""How text is cut for the index, and why counting in the pieces is counting in the text.

A text is cut into *runs*: the longest stretches of word characters (`\w`) and of other characters
that are not white space. A keyword that is itself one run, of either kind, can occur only inside
runs of its kind, because its neighbours in the text do not matter to where it can stand. So

    text.count(keyword) = sum over the runs that contain it of run.count(keyword)

(`str.count` does not overlap, and no occurrence crosses the end of a run). A whole-word match,
`\b` keyword `\b`, is for a keyword of word characters exactly a run equal to it; for one of other
characters it is a run equal to it that has a word character on both sides.

A keyword of several runs (`node.js`, `san francisco`) can occur only in a text that has its inner
runs as runs, one that ends with its first and one that begins with its last. That is a necessary
condition, which narrows the search; `scorer` then counts in the text itself.

Everything is UTF-8: in it, one text's bytes occur in another's exactly where its characters do.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator

from .scorer import Fields

MAX_RUN = 200  # characters; a text with a longer run (encoded data) is not cut but always scored

_RUN = re.compile(r"\w+|[^\w\s]+")
_ENCLOSED = re.compile(r"(?<=\w)[^\w\s]+(?=\w)")


def runs(text: str) -> list[str]:
    """Cut a lower-cased text, or a cleaned keyword, into its runs."""
    return _RUN.findall(text)


def is_run(keyword: str) -> bool:
    """Say whether a keyword is one single run."""
    return _RUN.fullmatch(keyword) is not None


def is_word(run: str) -> bool:
    """Say whether a run is one of word characters."""
    return run[0] == "_" or run[0].isalnum()


class Postings:
    """For each run of some texts, the slots of the texts that it stands in.

    A slot is a small number that stands for a text; it is repeated for each time the run occurs.

    Attributes:
        totals: for each run, the slots, over all fields.
        topics: the same for the topics, whose occurrences count once more.
        whole: for runs of other characters, those with a word character on both sides.
    """

    def __init__(self) -> None:
        self.totals: defaultdict[str, array[int]] = defaultdict(slots)
        self.topics: defaultdict[str, array[int]] = defaultdict(slots)
        self.whole: defaultdict[str, array[int]] = defaultdict(slots)

    def add(self, slot: int, searched: Fields) -> bool:
        """Cut a text's fields; False, and nothing is added, when it has too long a run."""
        cut = [(weight, text, runs(text)) for weight, text in searched]
        if any(len(run) > MAX_RUN for _, _, found in cut for run in found):
            return False
        for weight, text, found in cut:
            for run in found:
                self.totals[run].append(slot)
            for run in found if weight > 1 else ():
                self.topics[run].append(slot)
            for run in _ENCLOSED.findall(text):
                self.whole[run].append(slot)
        return True

    def of(self, run: str) -> tuple[array[int], array[int], array[int]]:
        """Return the slots of one run: totals, topics, whole words."""
        return self.totals[run], self.topics.get(run, slots()), self.whole.get(run, slots())


def slots(of: bytes | Iterable[int] = b"") -> array[int]:
    """Make slots from numbers, or from what their `tobytes` gave."""
    return array("H", of)


# --- a vocabulary: the distinct runs of a segment, each between line feeds ----------------------


def vocabulary(words: set[str]) -> bytes:
    """Pack runs for `containing` and `matching`."""
    return "\n".join(["", *sorted(words), ""]).encode()


def containing(packed: bytes, part: str) -> Iterator[str]:
    """Find the runs that contain `part`."""
    return _found(packed, part.encode())


def matching(packed: bytes, keyword: str, position: int, count: int) -> Iterator[str]:
    """Find the runs that can hold the run `keyword` at `position` of `count` in a keyword."""
    before = b"" if position == 0 else b"\n"
    after = b"" if position == count - 1 else b"\n"
    return _found(packed, before + keyword.encode() + after)


def _found(packed: bytes, pattern: bytes) -> Iterator[str]:
    body = pattern.strip(b"\n")
    at = packed.find(pattern)
    while at >= 0:
        inside = at + pattern.find(body)
        start = packed.rfind(b"\n", 0, inside) + 1
        end = packed.find(b"\n", inside)
        yield packed[start:end].decode()
        at = packed.find(pattern, end)
