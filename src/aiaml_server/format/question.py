"""A person's question: its words in their language, and its phrases."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from aiaml_server.errors import InvalidInput
from aiaml_server.format.languages import Language, Word, common, language_of
from aiaml_server.format.scorer import MAX_QUESTION

MAX_WORDS = 64


class Question(NamedTuple):
    """A parsed question.

    Attributes:
        words: the words with their forms.
        phrases: texts that must occur exactly, in lower case and in NFC.
    """

    words: tuple[Word, ...]
    phrases: tuple[str, ...]

    @classmethod
    def parse(cls, parts: Iterable[str]) -> Question:
        """Parse a question.

        Common words ("the", "what") are left out, unless there are no others.

        Args:
            parts: the words; a part that has blanks inside is a phrase.

        Raises:
            InvalidInput: it has no words, or too many.
        """
        parts = [normalize(part.strip().lower()) for part in parts if part.strip()]
        if not parts or sum(map(len, parts)) > MAX_QUESTION:
            wanted = f"must be words to look for, of at most {MAX_QUESTION:,} characters together"
            raise InvalidInput("question", wanted)
        texts = dict.fromkeys(re.findall(r"\w+", " ".join(parts)))
        name = language_of(texts)
        language = Language(name)
        significant = [text for text in texts if text not in common(name)] or list(texts)
        words = tuple(Word(text, language) for text in significant[:MAX_WORDS])
        # Signs alone, such as "++", are searched exactly.
        phrases = [part for part in parts if not words or len(part.split()) > 1]
        return cls(words, tuple(phrases))


def normalize(text: str) -> str:
    """Return a text in Unicode's composed form, NFC."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)
