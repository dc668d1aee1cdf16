"""How text is prepared: chunks for the model, search terms and queries for FTS5.

FTS5 indexes the content as it stands, with English stems. `search_terms` adds what its tokenizer
does not find: words inside identifiers, other Unicode forms, scripts without spaces, and symbols.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from unicodedata import category, normalize

MAX_CHUNK_CHARACTERS = 1_200
"""Longer texts are split, because the models read about 256 tokens."""
CHUNK_CHARACTERS = 800
MAX_QUERY_TERMS = 64

_SCRIPTS = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    "\u1950-\u1aaf"  # Tai
    "\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese and Japanese
    "\u1100-\u11ff\uac00-\ud7ff"  # Korean, where particles are joined to words
    "\uff66-\uffdc"  # narrow forms
)
_UNSPACED = re.compile(f"[{_SCRIPTS}]")
_UNSPACED_OR_RUN = re.compile(f"[{_SCRIPTS}]|[^{_SCRIPTS}]+")
_HAN = "[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
_SINGLE_HAN = re.compile(f"(?<!{_HAN}){_HAN}(?!{_HAN})")
_IDENTIFIER_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LETTERS = str.maketrans(
    {"\u0131": "i", "ß": "ss", "đ": "d", "ø": "o", "ł": "l", "æ": "ae", "œ": "oe"}
)
"""Letters with a plain spelling that Unicode does not decompose."""
_MORE_SYMBOLS = "§¶†‼⁉"  # which Unicode counts as punctuation

_STOP_WORDS = """
    a about above after again against all also am an and any are as at be because been before
    being below between both but by can could did do does doing don down during each few for
    from further had has have having he her here hers herself him himself his how i if in into
    is it its itself just let me more most my myself no nor not now of off on once only or
    other our ours ourselves out over own same she should so some such than that the their
    theirs them themselves then there these they this those through to too under until up very
    was we were what when where which while who whom why will with would you your yours
    yourself yourselves s t d ll m re ve
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


def chunk_text(content: str) -> list[str]:
    """Split a long text into parts that a model can read; a short one is its only part."""
    if len(content) <= MAX_CHUNK_CHARACTERS:
        return [content]
    return textwrap.wrap(content, CHUNK_CHARACTERS)


def search_terms(text: str) -> str:
    """Return the extra terms under which a text is indexed."""
    terms: list[str] = []
    words = set(_runs(text.lower()))
    for run in _runs(normalize("NFKC", text)):
        if _UNSPACED.search(run):
            terms += _characters(run)
        else:
            terms += [form for form in _forms(run) if form not in words]
    terms += _symbols(text)
    return " ".join(terms)


def build_fts_query(query: str) -> str:
    """Return an FTS5 query that matches any of a question's words.

    English stop words are left out unless there is nothing else. In scripts without spaces, each
    pair of neighbouring characters is a phrase. A question without words matches nothing.
    """
    terms = list(dict.fromkeys(_query_terms(query)))
    meaningful = [term for term in terms if term not in STOP_WORDS] or terms
    return " OR ".join(f'"{term}"' for term in meaningful[:MAX_QUERY_TERMS]) or '""'


def _query_terms(query: str) -> Iterator[str]:
    for run in _runs(normalize("NFKC", query)):
        if not _UNSPACED.search(run):
            yield from _forms(run)
            continue
        characters = _characters(run)
        yield from (" ".join(pair) for pair in pairwise(characters))
        yield from _SINGLE_HAN.findall(run)
        if len(characters) == 1:
            yield run
    yield from _symbols(query)


def _forms(word: str) -> list[str]:
    """Return a word in lower case, its folded form, and its parts if it is an identifier."""
    forms = [word, _plain(word.casefold())]
    parts = _IDENTIFIER_PART.findall(_plain(word))
    if len(parts) > 1:
        forms += [part for part in parts if len(part) > 1]
        forms += map("".join, pairwise(parts))  # `OAuth` in `OAuth2Client`
    return list(dict.fromkeys(form.lower() for form in forms))


def _plain(word: str) -> str:
    """Return a word without accents and vowel marks: `straße` is `strasse`."""
    decomposed = normalize("NFKD", word)
    plain = "".join(character for character in decomposed if category(character) != "Mn")
    return normalize("NFC", plain).translate(_LETTERS)


def _symbols(text: str) -> list[str]:
    """Return a term for each symbol beyond ASCII, such as an emoji, which FTS5 would drop."""
    return [
        f"u{ord(each):x}"
        for each in text
        if each > "\x7f" and (category(each)[0] == "S" or each in _MORE_SYMBOLS)
    ]


def _runs(text: str) -> list[str]:
    """Return the runs of letters, marks and digits, which are the words of FTS5's tokenizer."""
    if text.isascii():
        return re.findall(r"[A-Za-z0-9]+", text)
    return "".join(each if category(each)[0] in "LMN" else " " for each in text).split()


def _characters(run: str) -> list[str]:
    """Split the unspaced scripts in a run into characters, each with its marks."""
    pieces: list[str] = []
    for piece in _UNSPACED_OR_RUN.findall(run):
        if pieces and category(piece[0])[0] == "M":
            pieces[-1] += piece
        else:
            pieces.append(piece.lower())
    return pieces
