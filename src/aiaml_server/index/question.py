"""A person's question: its words in their language, and its phrases."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from aiaml_server.errors import InvalidInput
from aiaml_server.format.languages import Language, Word, common, language_of
from aiaml_server.format.scorer import MAX_QUESTION
from aiaml_server.index.terms import TERM, Vocabulary, normalize, split_counts

MAX_WORDS = 64
MIN_FRAGMENT = 4
"""Characters of a word that is also looked for inside of others, if no memory has it as a word."""

_ALL = 1 << 60
_UNSPACED = re.compile(  # scripts that put no spaces between words
    r"[\u0e00-\u0edf\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
)


class Question(NamedTuple):
    """What is looked for.

    Attributes:
        words: each with its forms.
        phrases: what must stand so, in lower case and in NFC.
    """

    words: tuple[Word, ...]
    phrases: tuple[str, ...]

    @classmethod
    def parse(cls, parts: Iterable[str]) -> Question:
        """Return the question that was asked.

        Common words ("the", "what") are left out, unless there are no others.

        Args:
            parts: the words; a part that has blanks inside is a phrase.

        Raises:
            InvalidInput: there is nothing to look for, or too much.
        """
        parts = [normalize(part.strip().lower()) for part in parts if part.strip()]
        if not parts or sum(map(len, parts)) > MAX_QUESTION:
            wanted = f"must be words to look for, of at most {MAX_QUESTION:,} characters together"
            raise InvalidInput("question", wanted)
        phrases = [part for part in parts if len(part.split()) > 1]
        asked = dict.fromkeys(TERM.findall(" ".join(parts)))
        name = language_of(asked)
        language = Language(name)
        telling = [text for text in asked if text not in common(name)] or list(asked)
        words: list[Word] = []
        for text in telling[:MAX_WORDS]:
            if not any(word.is_form(text) for word in words):
                words.append(Word(text, language))
        if not words:  # signs alone, such as "++"
            phrases = parts
        return cls(tuple(words), tuple(dict.fromkeys(phrases)))


def terms_of_word(vocabulary: Vocabulary, word: Word, limit: int) -> list[str]:
    """Return the counted terms in which a word is found.

    They are its forms. Where there are none, and in scripts without spaces, they are all that
    contain it, unless those are more than `limit`.
    """
    starts = {word.start, *word.others} if word.bends else word.others
    found: set[str] = set()
    for start in starts:
        terms = vocabulary.find(f"\n{start}", _ALL) or []
        found.update(term for term in terms if word.is_form(split_counts(term)[0]))
    if _UNSPACED.search(word.text) or (not found and len(word.text) >= MIN_FRAGMENT):
        terms = vocabulary.find(word.text, limit) or []
        found.update(term for term in terms if word.text in split_counts(term)[0])
    return sorted(found)
