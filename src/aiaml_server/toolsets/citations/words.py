"""How text is cut into the words that a search compares: stems, without stop words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache

STOP_WORDS = frozenset(
    """
    a about above after again against all also am an and any are aren as at be because been
    before being below between both but by can cannot could couldn did didn do does doesn doing
    don down during each few for from further get gets got had hadn has hasn have haven having
    he her here hers herself him himself his how i if in into is isn it its itself just ll me
    might more most mustn my myself no nor not of off on once only or other ought our ours
    ourselves out over own re same shall shan she should shouldn so some such than that the
    their theirs them themselves then there these they this those through to too under until up
    us ve very was wasn we were weren what when where which while who whom whose why will with
    won would wouldn you your yours yourself yourselves
    """.split()  # noqa: SIM905 (150 words, not 150 lines)
)

_TWO_LETTERS = frozenset(
    "ad ah ex eh go hi ho la lo ma mr ms oh ok ow pa re st th ye yo".split()  # noqa: SIM905 (as above)
)

_IRREGULAR = {
    form: word
    for word, forms in {
        "become": "became", "begin": "began begun", "break": "broke broken", "bring": "brought",
        "build": "built", "buy": "bought", "catch": "caught", "child": "children",
        "choose": "chose chosen", "die": "dying", "draw": "drew drawn", "drive": "drove driven",
        "eat": "ate eaten",
        "fall": "fell fallen", "feel": "felt", "find": "found", "fly": "flew flown",
        "forget": "forgot forgotten", "foot": "feet", "give": "gave given", "go": "went gone",
        "grow": "grew grown", "hear": "heard", "hide": "hid hidden", "hold": "held",
        "keep": "kept", "know": "knew known", "lead": "led", "leave": "left", "lose": "lost",
        "make": "made", "man": "men", "mean": "meant", "meet": "met", "mouse": "mice",
        "pay": "paid", "person": "people", "read": "reads", "ride": "rode ridden", "run": "ran",
        "say": "said", "see": "saw seen", "sell": "sold", "send": "sent", "show": "shown",
        "sing": "sang sung", "speak": "spoke spoken", "spend": "spent", "stand": "stood",
        "swim": "swam swum", "take": "took taken", "teach": "taught", "tell": "told",
        "think": "thought", "throw": "threw thrown", "understand": "understood",
        "wear": "wore worn", "win": "won", "woman": "women", "write": "wrote written",
    }.items()
    for form in forms.split()
}  # fmt: skip

_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?!s(?![^\W_]))[a-z])")

_ENDINGS = {
    ending: stem
    for line in """
        ational ate, tional tion, enci ence, anci ance, abli able, entli ent, izer ize, ization ize,
        ation ate, ator ate, alism al, aliti al, alli al, fulness ful, ousli ous, ousness ous,
        iveness ive, iviti ive, biliti ble, bli ble, fulli ful, lessli less, alize al, icate ic,
        iciti ic, ical ic, ful , ness
    """.replace("\n", " ").split(",")
    for ending, _, stem in [line.strip().partition(" ")]
}
_LAST = (
    *("ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous"),
    *("ive", "ize", "ion", "al", "er", "ic"),
)


def terms(text: str, shortest: int = 3) -> list[str]:
    """Return the stems of a text's words, in order; stop words and shorter ones are left out.

    A name such as `apiVersion` or `API_VERSION` counts as its words. Of two letters, all count but
    English words: `db`, `CI`, `v2`.
    """
    words = _WORD.findall(_HUMP.sub(" ", text).lower())
    least = min(shortest, 2)
    return [
        stem(word)
        for word in words
        if (len(word) >= shortest or (len(word) == least and word not in _TWO_LETTERS))
        and word not in STOP_WORDS
    ]


def sharing(asked: Iterable[str], shortest: int = 3) -> Callable[[str], frozenset[str]]:
    """Return what says which of some stems a text has, as if all its words were stemmed.

    Only those words are that begin as a word of such a stem does.
    """
    wanted = frozenset(asked)
    begins = {_beginning(each) for each in wanted}
    begins |= {form for form, word in _IRREGULAR.items() if stem(word) in wanted}
    near = _words_from(begins)

    @cache
    def within(part: str) -> frozenset[str]:
        return wanted.intersection(terms(part, shortest))

    def shared(text: str) -> frozenset[str]:
        lower = text.lower()
        if len(lower) != len(text):
            return within(text)
        # A word may begin within a name, so the letter before it is looked at as well.
        parts = {text[max(0, at.start() - 1) : at.end()] for at in near.finditer(lower)}
        return frozenset().union(*map(within, parts))

    return shared


def _words_from(begins: Iterable[str]) -> re.Pattern[str]:
    """Return what finds all that begins so, to the end of the word."""
    first = "|".join(sorted(begins)) or "(?!)"
    return re.compile(f"(?:{first})[^\\W_]*")


def _beginning(stemmed: str) -> str:
    """Return what every regular word of a stem begins with: `try` and `trying` have `tri`."""
    if not stemmed.isascii():
        return stemmed
    return stemmed[:2] if stemmed[2:3] in ("i", "e") else stemmed[:3]


@lru_cache(1 << 16)
def stem(word: str) -> str:
    """Return what a lower-case English word has in common with its other forms.

    Suffixes are taken off in the order that Porter's algorithm made usual.
    """
    word = _IRREGULAR.get(word, word)
    if len(word) < 3 or not word.isascii():
        return word
    if len(word) > 3:
        word = _without_plural(word)
        word = _without_tense(word)
    if word[-1] == "y" and len(word) > 2 and word[-2] not in "aeiou":
        word = f"{word[:-1]}i"
    for _ in range(2):
        word = _replaced(word)
    word = _without_last(word)
    if word[-1] == "e" and _measure(word[:-1]) > _is_short(word[:-1]):
        word = word[:-1]
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word


def _without_plural(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ies", "ied")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")) and _has_vowel(word[:-2]):
        return word[:-1]
    return word


def _without_tense(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    for ending in ("edly", "ingly", "ed", "ing"):
        if word.endswith(ending):
            rest = word.removesuffix(ending)
            if not _has_vowel(rest):
                return word
            if rest.endswith(("at", "bl", "iz")):
                return f"{rest}e"
            if len(rest) > 2 and rest[-1] == rest[-2] and rest[-1] in "bdfgmnprt":
                return rest[:-1]
            return f"{rest}e" if _measure(rest) == 1 and _is_short(rest) else rest
    return word


def _replaced(word: str) -> str:
    for size in range(7, 2, -1):
        if (stem := _ENDINGS.get(word[-size:])) is not None and _measure(word[:-size]):
            return word[:-size] + stem
    return word


def _without_last(word: str) -> str:
    for ending in _LAST:
        if word.endswith(ending):
            rest = word.removesuffix(ending)
            if _measure(rest) > 1 and (ending != "ion" or rest[-1] in "st"):
                return rest
            return word
    return word


def _shape(word: str) -> str:
    """Return V for each vowel and C for each consonant."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape.endswith("C"))
        shape += "V" if vowel else "C"
    return shape


def _measure(word: str) -> int:
    """Count the consonants that follow a vowel."""
    return _shape(word).count("VC")


def _has_vowel(word: str) -> bool:
    return "V" in _shape(word)


def _is_short(word: str) -> bool:
    """Say whether it ends in consonant, vowel and another consonant that is no w, x or y."""
    shape = _shape(word)
    return shape == "VC" or (shape.endswith("CVC") and word[-1] not in "wxy")
