"""The languages of questions: their common words, and the forms of a word.

Forms are recognised by Snowball's stemmers (https://snowballstem.org). Only the stemmer that is
needed is loaded: the package's own `__init__` loads those of thirty languages in 0.3 s (3.1.1).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from os.path import commonprefix
from types import ModuleType
from typing import Any

COMMON = {
    "english": """
        a about above after again all also am an and any are aren as at be because been before
        being below between both but by can could couldn d did didn do does doesn doing don down
        during each few for from further had hadn has hasn have haven having he her here hers
        herself him himself his how i if in into is isn it its itself just ll m me more most my
        myself no nor not now of off on once only or other ought our ours ourselves out over own
        re s same she should shouldn so some such t than that the their theirs them themselves
        then there these they this those through to too under until up ve very was wasn we were
        weren what when where which while who whom whose why will with won would wouldn you your
        yours yourself yourselves
    """,
    "german": """
        aber alle allem allen aller alles als also am an ander andere anderen auch auf aus bei
        beim bin bis bist da damit dann das dass dein deine dem den denn der des dessen dich die
        dies diese dieser dieses dir doch dort du durch ein eine einem einen einer eines er es
        etwas euch euer für gegen hab habe haben hat hatte hatten hier hin hinter ich ihm ihn
        ihnen ihr ihre ihrem ihren ihrer im in indem ins ist ja jede jedem jeden jeder jedes
        jener jetzt kann kein keine keinen können könnte man manche mein meine meinem meinen
        meiner mich mir mit muss musste nach nicht nichts noch nun nur ob oder ohne sehr sein
        seine seinem seinen seiner selbst sich sie sind so solche soll sollte sondern sonst über
        um und uns unser unsere unter viel vom von vor wann war waren warst warum was weg weil
        welche welchem welchen welcher welches wem wen wenn wer werde werden weshalb wessen wie
        wieder will wir wird wirst wo wollen wollte womit woran wozu wurde wurden würde zu zum
        zur zwar zwischen
    """,
    "french": """
        à ai as au aux avait avec avez avons c ce ces cet cette chez comment d dans de des du
        elle elles en est et étaient était été être eu eux fut il ils j je l la là le les leur
        leurs lui m ma mais me même mes moi mon n ne nos notre nous on ont où ou par pas pour
        pourquoi qu quand que quel quelle quelles quels qui quoi s sa sans se sera ses si son
        sont sur t ta te tes toi ton tu un une vos votre vous y
    """,
    "spanish": """
        a al algo ante como cómo con contra cuál cuáles cuándo cuando de del desde donde dónde
        durante e el él ella ellas ellos en entre era eran es esa esas ese eso esos está están
        esta estas este esto estos fue fueron ha había han hasta hay la las le les lo los más me
        mi mis muy nada ni no nos nosotros o os otra otro para pero por porqué que qué quién
        quien se sea ser si sí sin sobre son su sus también tanto te tiene tienen tu tus tú un
        una uno unos y ya yo
    """,
    "italian": """
        a ad agli ai al alla alle allo anche avere c che chi ci come con contro cosa cui da
        dagli dai dal dalla dalle dallo degli dei del della delle dello di dov dove e è ed era
        erano essere fu furono gli ha hai hanno ho i il in io l la le lei li lo loro lui ma mi
        mia mie miei mio ne negli nei nel nella nelle nello noi non o perché però più quale
        quali quando quanto quella quelle quelli quello questa queste questi questo sei si sia
        sono su sua sue sugli sui sul sulla sulle suo suoi ti tra tu tua tuo un una uno vi voi
    """,
    "portuguese": """
        a à ao aos as às até com como da das de dela dele deles depois do dos e é ela elas ele
        eles em entre era eram essa essas esse esses esta está estão estas este estes eu foi
        foram há isso isto já lhe lhes mais mas me mesmo meu meus minha minhas muito na não nas
        nem no nos nossa nosso num numa o onde os ou para pela pelas pelo pelos por porque qual
        quais quando que quem são se sem ser seu seus só sua suas também te tem têm teu tua um
        uma você vocês
    """,
    "dutch": """
        aan al alles als andere ben bij daar dan dat de der deze die dit doch doen door dus een
        en er geen haar had heb hebben heeft hem het hier hij hoe hun ik in is ja je kan kon
        kunnen maar me meer men met mij mijn moet na naar niet niets nog nu of om omdat onder
        ons ook op over reeds te tegen toch toen tot u uit uw van veel voor waar waarom wanneer
        want waren was wat welke werd wie wij wil wordt worden zal ze zelf zich zij zijn zo
        zonder zou
    """,
}  # fmt: skip
"""Words that say how a sentence is made and not what it is about. The first language is that of a
question that has none of them."""

IRREGULAR = {
    "english": """
        beat beaten, become became, begin began begun, bend bent, bite bit bitten, bleed bled,
        blow blew blown, break broke broken, breed bred, bring brought, build built, burn burnt,
        buy bought, catch caught, child children, choose chose chosen, come came, creep crept,
        cry cried cries, deal dealt, die died dies dying, dig dug, draw drawn drew, dream
        dreamt, drink drank drunk, drive driven drove, dry dried dries, eat ate eaten, fall
        fallen fell, feed fed, feel felt, fight fought, find found, flee fled, fly flew flown,
        foot feet, forbid forbade forbidden, forget forgot forgotten, forgive forgave forgiven,
        freeze froze frozen, get got gotten, give gave given, go goes going gone went, goose
        geese, grow grew grown, half halves, hang hung, hear heard, hide hid hidden, hold held,
        keep kept, kneel knelt, knife knives, know knew known, lead led, leap leapt, learn
        learnt, leave left, lend lent, lie lain lies lying, life lives, light lit, loaf loaves,
        lose lost, make made, man men, mean meant, meet met, mouse mice, pay paid, person
        people, ride ridden rode, ring rang rung, rise risen rose, run ran, say said, see saw
        seen, seek sought, sell sold, send sent, sew sewn, shake shaken shook, shelf shelves,
        shine shone, shoot shot, show shown, shrink shrank shrunk, sing sang sung, sink sank
        sunk, sit sat, sleep slept, slide slid, speak spoke spoken, spend spent, spill spilt,
        spin spun, stand stood, steal stole stolen, stick stuck, strike struck, swear swore
        sworn, sweep swept, swim swam swum, swing swung, take taken took, teach taught, tear
        tore torn, tell told, think thought, throw threw thrown, tie tied ties tying, tooth
        teeth, try tried tries, understand understood, wake woke woken, wear wore worn, weave
        wove woven, weep wept, wife wives, win won, wolf wolves, woman women, write written
        wrote
    """,
}  # fmt: skip
"""Words whose forms no ending tells, each group with the plain form first."""

SHORT = 3
"""Letters of which a word has at least as many, if it has forms but itself."""

_PARTS = "aiaml_snowball"
_alone = threading.Lock()


def language_of(words: Iterable[str]) -> str:
    """Return the language in which most of the words are common words."""
    unique = set(words)
    return max(COMMON, key=lambda each: len(common(each) & unique))


@cache
def common(language: str) -> frozenset[str]:
    """Return the common words of a language."""
    return frozenset(COMMON[language].split())


class Word:
    """A word of a question, with its forms.

    Attributes:
        text: the word in lower case.
        start: the beginning of all its forms except the irregular ones.
        irregular_forms: these, and the word itself.
        is_inflected: whether it has other forms.
    """

    def __init__(self, text: str, language: Language | None = None) -> None:
        """Find the common beginning of a word's forms.

        Args:
            text: the word in lower case.
            language: whose forms; None for a name, which has none.
        """
        self.text = self.start = text
        self.irregular_forms = frozenset([text])
        self.is_inflected = False
        if language and text.isalpha():
            self._stem = language.stem
            group = language.irregular(text)
            self.irregular_forms = frozenset([text, *group])
            plain = group[0] if group else text
            self._stemmed = self._stem(plain)
            start = commonprefix([plain, self._stemmed])  # noqa: RUF071 (letters are meant)
            if start == self._stemmed and len(start) > SHORT and not language.keeps(start):
                start = start[:-1]  # `hike` has the stem `hike`, with which `hiking` does not begin
            if len(start) >= SHORT:
                self.start = start
                self.is_inflected = True

    def is_form(self, term: str) -> bool:
        """Return whether a term is this word or a form of it.

        >>> Word("rehearsal", Language("english")).is_form("rehearsing")
        True
        >>> Word("buying", Language("english")).is_form("bought")
        True
        """
        if term in self.irregular_forms or not self.is_inflected:
            return term in self.irregular_forms
        return term.startswith(self.start) and term.isalpha() and self._stem(term) == self._stemmed


class Language:
    """The word forms of one language.

    Attributes:
        name: its name in Snowball.
    """

    def __init__(self, name: str) -> None:
        """Load the stemmer and the irregular forms of a language."""
        self.name = name
        self._groups = [each.split() for each in IRREGULAR.get(name, "").split(",")]

    def stem(self, word: str) -> str:
        """Return the stem of a word."""
        return _stem(self.name, word)

    def keeps(self, stem: str) -> bool:
        """Return whether all words with a stem begin with it."""
        return self.name == "english" and stem[-1] not in "eiy"

    def irregular(self, word: str) -> list[str]:
        """Return the irregular forms of a word with its plain form; usually none."""
        for group in self._groups:
            if word in group:
                return group
        stemmed = self.stem(word)
        for group in self._groups:
            if group and group[0][:2] == word[:2] and self.stem(group[0]) == stemmed:
                return group
        return []


@lru_cache(maxsize=10_000)
def _stem(language: str, word: str) -> str:
    with _alone:
        return str(_stemmer(language).stemWord(word))


@cache
def _stemmer(language: str) -> Any:
    """Load the stemmer of a language."""
    found = find_spec("snowballstemmer")
    parts = ModuleType(_PARTS)
    parts.__path__ = list((found and found.submodule_search_locations) or ())
    sys.modules.setdefault(_PARTS, parts)
    module = import_module(f"{_PARTS}.{language}_stemmer")
    return getattr(module, f"{language.capitalize()}Stemmer")()
