"""How texts are cut: a memory into the parts that a model reads, a question into words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby, pairwise
from unicodedata import category, normalize

from aiaml_server.format.languages import Language, Word, common, language_of

LONG = 190
"""Words above which a text has several parts, since a model reads some 256 pieces of words."""
PART = 120
_WIDE = 1_600  # characters that count as `LONG` words where there are no blanks
_PART_WIDE = 1_000
MOST_WORDS = 64  # of a question
_START = 4  # letters, of which forms of one word may all begin so

_SCRIPTS = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    "\u1950-\u1aaf"  # Tai
    "\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese and Japanese
    "\u1100-\u11ff\uac00-\ud7ff"  # Korean, whose particles are written together with words
    "\uff66-\uffdc"  # narrow forms
)
_UNSPACED = re.compile(f"[{_SCRIPTS}]")
"""A character of a script that does not set blanks between words."""
_PIECE = re.compile(f"[{_SCRIPTS}]|[^{_SCRIPTS}]+")
_HAN = "[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
_ALONE = re.compile(f"(?<!{_HAN}){_HAN}(?!{_HAN})")
"""A Chinese character between Japanese ones, which is a word as a rule."""

_STOP = """
    a about above after again against all also am an and any are as at be because been before
    being below between both but by can could did do does doing don down during each few for
    from further had has have having he her here hers herself him himself his how i if in into
    is it its itself just let me more most my myself no nor not now of off on once only or
    other our ours ourselves out over own same she should so some such than that the their
    theirs them themselves then there these they this those through to too under until up very
    was we were what when where which while who whom why will with would you your yours
    yourself yourselves s t d ll m re ve
"""
STOP = frozenset(_STOP.split())
"""Words of a question that say nothing of what it is about."""


def parts(content: str) -> list[str]:
    """Return what a model reads of a text one after the other: the whole, unless it is long."""
    words = [each.span() for each in re.finditer(r"\S+", content)]
    if len(words) <= LONG and len(content) <= _WIDE:
        return [content]
    found: list[str] = []
    start, count = 0, 0
    for first, last in words:
        while last - start > _PART_WIDE:
            end = first if first > start else start + _PART_WIDE
            found.append(content[start:end].strip())
            start, count = end, 0
        count += 1
        if count == PART:
            found.append(content[start:last].strip())
            start, count = last, 0
    found.append(content[start:].strip())
    return [each for each in found if each]


def match(query: str) -> str:
    """Return a question as FTS5 has it: any of its words, without those that say nothing.

    Where there are no blanks between words, any two characters that follow each other are one, and
    a Chinese one between Japanese ones. FTS5 stems English words; one of a question in another
    language that `languages` knows is looked for by what its forms begin with.
    Where the question has no word, it is what no text has.
    """
    words = list(dict.fromkeys(_asked(query.lower())))
    language = language_of(words)
    plain = STOP if language == "english" else common(language)
    telling = [each for each in words if each not in plain] or words
    if language == "english":
        asked = [f'"{each}"' for each in telling[:MOST_WORDS]]
    else:
        starts = [(each, Word(each, Language(language)).start) for each in telling[:MOST_WORDS]]
        asked = [f'"{start}"*' if len(start) >= _START else f'"{each}"' for each, start in starts]
    return " OR ".join(asked) or '""'


def spaced(text: str) -> str | None:
    """Return what a text has in scripts without blanks, with a blank behind each character.

    Words of other scripts that are written together with these are apart from them then. None
    where there is nothing of the kind.
    """
    if not _UNSPACED.search(text):
        return None
    found = (" ".join(_pieces(run)) for run in _runs(text) if _UNSPACED.search(run))
    return " ".join(found) or None


def _asked(query: str) -> Iterator[str]:
    for run in _runs(query):
        for unspaced, group in groupby(_pieces(run), lambda each: bool(_UNSPACED.match(each))):
            found = list(group)
            if unspaced and len(found) > 1:
                yield from map(" ".join, pairwise(found))
                yield from _ALONE.findall("".join(found))
            else:
                yield from found


def _runs(text: str) -> list[str]:
    """Return the parts of a text that consist of letters, the signs on them, and digits."""
    if text.isascii():
        return re.findall(r"\w+", text)
    if _UNSPACED.search(text):
        text = normalize("NFKC", text)  # narrow forms are the same characters
    return "".join(e if e == "_" or category(e)[0] in "LMN" else " " for e in text).split()


def _pieces(run: str) -> list[str]:
    """Return a run as it is; its characters, each with its signs, where there are no blanks."""
    if not _UNSPACED.search(run):
        return [run]
    found: list[list[str]] = []
    for each in _PIECE.findall(run):
        if found and category(each[0])[0] == "M":
            found[-1].append(each)
        else:
            found.append([each])
    return list(map("".join, found))
