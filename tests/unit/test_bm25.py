"""What answers a person's words: BM25 by hand, and the index that answers exactly so."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aiaml_server import Memory, MemoryBank, Settings
from aiaml_server.errors import InvalidInput
from aiaml_server.format.bm25 import Question, collected, length, rank
from aiaml_server.format.filters import Filter
from aiaml_server.format.languages import Language, Word, language_of
from aiaml_server.format.memory import format  # noqa: A004
from aiaml_server.format.scorer import fields
from aiaml_server.index import tuning


def memory(
    content: str, topics: Sequence[str] = ("t",), user: str = "u", agent: str = "a", day: int = 1
) -> Memory:
    """Build a memory of which only the searched parts matter."""
    moment = f"2026-01-{day:02}T00:00:00+00:00"
    return Memory(f"00c0ff{day:02}", moment, agent, user, tuple(topics), content)


def asked(question: str, *memories: Memory) -> list[str]:
    """Return the contents that answer a question, the best first."""
    pairs = [(f"{number}.md", each) for number, each in enumerate(memories)]
    by_name = dict(pairs)
    hits = rank(pairs, Question.of(question.split())).found.hits
    return [by_name[hit.file_name].content for hit in hits]


FORMS = [
    ("english", "rehearsal", "rehearsing"),
    ("english", "buy", "bought"),
    ("english", "hike", "hiking"),
    ("english", "study", "studies"),
    ("english", "went", "going"),
    ("english", "child", "children"),
    ("german", "proben", "probe"),
    ("french", "journal", "journaux"),
    ("spanish", "viaje", "viajes"),
]


@pytest.mark.parametrize(("language", "word", "form"), FORMS)
def test_word_forms(language: str, word: str, form: str) -> None:
    """A word is found in its forms, whichever of them is asked for."""
    assert Word(word, Language(language)).is_form(form)
    assert Word(form, Language(language)).is_form(word)


def test_word_name_kept() -> None:
    """A name has no forms but itself."""
    assert not Word("wales").is_form("wale")


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("when is the choir rehearsal", "english"),
        ("wann ist die Chorprobe", "german"),
        ("où est la clé du garage", "french"),
        ("dónde están las llaves", "spanish"),
        ("kubernetes", "english"),
    ],
)
def test_language_of_question(question: str, language: str) -> None:
    """The common words of a question tell its language; without any, it is English."""
    assert language_of(question.lower().split()) == language


def test_rank_common_words_quiet() -> None:
    """What holds the common words of a question is no answer to it."""
    choir = "The choir rehearses on Thursdays."
    found = asked("when is the choir rehearsal", memory("Is the the when the is?"), memory(choir))
    assert found == [choir]


def test_rank_common_words_alone() -> None:
    """A question of common words alone is still answered."""
    assert asked("who is he", memory("he is it")) == ["he is it"]


def test_rank_rare_word_first() -> None:
    """A rare word counts more than one that most memories have."""
    memories = [memory(f"meeting number {each}", day=each) for each in range(1, 9)]
    assert asked("meeting oboe", *memories, memory("oboe"))[0] == "oboe"


def test_rank_different_words_first() -> None:
    """Two words of the question outweigh one of them said often."""
    both = memory("boat trip")
    often = memory("boat boat boat boat")
    assert asked("boat trip", often, memory("trip plan"), both)[0] == "boat trip"


def test_rank_topic_content_name() -> None:
    """A word counts most in the topics, then in the content, then in a name."""
    in_name = memory("x plum", user="oboe", topics=["yy"])
    in_content = memory("x oboe", user="plum", topics=["yy"])
    in_topics = memory("x plum", user="yyyy", topics=["oboe"])
    found = asked("oboe", in_name, in_content, in_topics)
    assert found == [each.content for each in (in_topics, in_content, in_name)]


def test_rank_short_memory_first() -> None:
    """Of two that say a word once, the shorter comes first."""
    long = memory("oboe " + "and something else " * 20)
    assert asked("oboe", long, memory("oboe, that is all"))[0] == "oboe, that is all"


def test_rank_phrase() -> None:
    """A phrase must stand so; where it does not, it is said how many hold its words."""
    pairs = [("1.md", memory("from San Francisco")), ("2.md", memory("Francisco of San Diego"))]
    stands = rank(pairs, Question.of(["San Francisco"]))
    assert [hit.file_name for hit in stands.found.hits] == ["1.md"]
    apart = rank(pairs, Question.of(["Francisco San"]))
    assert (apart.found.total, apart.apart) == (0, 2)


def test_rank_inside_words() -> None:
    """Where no memory has a word, it is found inside of others, and so are those without spaces."""
    assert asked("bernet", memory("we use kubernetes")) == ["we use kubernetes"]
    assert asked("東京", memory("東京に住む")) == ["東京に住む"]


def test_rank_signs() -> None:
    """A question of signs alone is taken as it stands."""
    assert asked("🙂", memory("so 🙂"), memory("so")) == ["so 🙂"]


def test_question_empty() -> None:
    """Nothing is no question."""
    with pytest.raises(InvalidInput):
        Question.of(["  "])


def test_score_by_hand() -> None:
    """The worked example of docs/search.md."""
    pairs = [memory("The choir rehearses on Thursdays.", ["music"], "marco", "claude")]
    pairs += [memory("The choir has a new conductor.", ["music"], "marco", "claude")]
    question, collection = collected(Question.of(["choir", "rehearsal"]), map(fields, pairs))
    assert collection.holding == (2, 1)
    assert [collection.rarity(each) for each in (0, 1)] == [182, 693]
    searched = fields(pairs[0])
    points = [collection.points(each, 4, length(searched)) for each in (0, 1)]
    assert points == [179, 681]  # a step longer than the usual one
    assert collection.score(question.counts(searched), length(searched)) == 860


PIECES = [
    *(
        "cat",
        "cats",
        "concat",
        "dog",
        "dogs",
        "run",
        "ran",
        "running",
        "the",
        "is",
        "when",
        "study",
    ),
    *(
        "studies",
        "San Francisco",
        "san",
        "francisco",
        "東京",
        "京",
        "c++",
        "++",
        "🙂",
        "x",
        "é",
        "_",
    ),
    *("node.js", "it's", "Cat", "ΟΔΟΣ", "proben", "die", "ist", "hike", "hiking", " ", "\n"),
]
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=12).map(" ".join)
WORDS = st.lists(st.sampled_from([each for each in PIECES if each.strip()]), min_size=1, max_size=8)


@pytest.mark.slow
@given(
    st.lists(st.tuples(TEXTS, TEXTS, st.integers(1, 3)), min_size=1, max_size=12),
    st.lists(WORDS, min_size=1, max_size=4),
    st.sampled_from([0, 100]),
)
@example(
    [*[("cat", "cat", 1)] * 4, ("cat", "concat", 1), ("cat", "the", 1)],
    [["cat", "concat", "dog", "run"]],
    0,
)
def test_index_ranks_as_defined(
    texts: list[tuple[str, str, int]], questions: list[list[str]], recent: int
) -> None:
    """The index answers exactly what a look at every memory does, tokenized or not."""
    with tempfile.TemporaryDirectory() as made, pytest.MonkeyPatch.context() as patched:
        base = Path(made)
        patched.setenv("XDG_CACHE_HOME", str(base / "cache"))
        patched.setattr(tuning, "RECENT", recent)
        files = base / "files"
        files.mkdir()
        for number, (content, topics, day) in enumerate(texts):
            user, *rest = topics.split() or ["u"]
            each = memory(content, rest or ["t"], user, "cat", day)
            path = files / f"2026010{day}_000000_{number:08x}.md"
            path.write_text(format(each), encoding="utf-8")
        checked = Settings(base=base, sync=False, check_index=True)
        with closing(MemoryBank(checked, lasting=False)) as bank:
            for words in questions:
                for wanted in (None, Filter(since=1767312000_000000)):
                    bank.ask(Question.of(words), wanted)
                    bank.ask(Question.of(words), wanted, slice(1, 3))
