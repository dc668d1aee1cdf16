"""The person's search: words in their forms, phrases, and the order of the answer."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from aiaml_server.errors import InvalidInput
from aiaml_server.format.filters import EVERYTHING, Filter
from aiaml_server.format.memory import Memory, format  # noqa: A004
from aiaml_server.index import Answer, Index, Question
from aiaml_server.storage.store import Store


def memory(content: str, topics: Iterable[str] = ("t",), user: str = "u") -> Memory:
    """Make a memory of which only the searched parts matter."""
    return Memory("00c0ffee", "2026-01-01", "a", user, tuple(topics), content)


def ask(
    base: Path,
    parts: list[str],
    *memories: Memory,
    wanted: Filter = EVERYTHING,
    least_share: float = 0.0,
) -> Answer:
    """Ask a question of memories in files 0.md, 1.md and so on."""
    files = base / "files"
    files.mkdir(exist_ok=True)
    for path in files.iterdir():
        path.unlink()
    for number, each in enumerate(memories):
        (files / f"{number}.md").write_text(format(each), encoding="utf-8")
    with closing(Index(Store(base))) as index:
        return index.search(Question.parse(parts), wanted, least_share=least_share)


def order(base: Path, question: str, *memories: Memory) -> list[int]:
    """Return the numbers of the memories that answer a question, the best first."""
    hits = ask(base, question.split(), *memories).found.hits
    return [int(hit.file_name.removesuffix(".md")) for hit in hits]


@pytest.mark.parametrize(
    ("question", "contents", "expected"),
    [
        ("when is the choir rehearsal", ["Is the the when?", "The choir rehearses."], [1]),
        ("who is he", ["he is it"], [0]),  # common words alone
        ("meeting oboe", ["meeting one", "meeting two", "oboe"], [2]),
        ("boat trip", ["boat boat boat", "trip plan", "boat trip"], [2]),
        ("oboe", [f"oboe {'and something else ' * 20}", "oboe, that is all"], [1]),
        ("bernet", ["we use kubernetes"], [0]),  # inside of a word, if no memory has it
        ("東京", ["東京に住む", "京都"], [0]),
        ("wann ist die Chorprobe", ["Chorproben im Mai"], [0]),
        ("bought", ["we buy bread"], [0]),
        ("caf\u00e9", ["the cafe\u0301 there"], [0]),
        ("cafe\u0301", ["the caf\u00e9 there"], [0]),
    ],
)
def test_the_best_answer_comes_first(
    tmp_path: Path, question: str, contents: list[str], expected: list[int]
) -> None:
    """Rare words, several words and short memories count more; forms are found."""
    assert order(tmp_path, question, *map(memory, contents))[: len(expected)] == expected


def test_a_word_counts_most_in_the_topics(tmp_path: Path) -> None:
    """Twice as much as elsewhere."""
    memories = memory("x oboe", ["yy"]), memory("x plum", ["oboe"])
    assert order(tmp_path, "oboe", *memories) == [1, 0]


def test_a_phrase_must_stand_so(tmp_path: Path) -> None:
    """Where no memory has it, the answer says how many hold its words."""
    stored = memory("from San Francisco"), memory("Francisco of San Diego")
    answer = ask(tmp_path, ["San Francisco"], *stored)
    assert [hit.file_name for hit in answer.found.hits] == ["0.md"]
    answer = ask(tmp_path, ["Francisco San"], *stored)
    assert (answer.found.total, answer.without_phrase) == (0, 2)
    answer = ask(tmp_path, ["Francisco San"], *stored, wanted=Filter.of(user="nobody"))
    assert (answer.found.total, answer.without_phrase) == (0, 0)
    (hit,) = ask(tmp_path, ["CAF\u00c9 bar"], memory("the cafe\u0301 bar")).found.hits
    assert hit.file_name == "0.md"
    assert ask(tmp_path, ["++"], memory("C++"), memory("C")).found.total == 1
    signs = memory("a == b"), memory("C++"), memory("a++ == b")
    for phrases in (["==", "++"], ["++", "=="]):
        assert ask(tmp_path, phrases, *signs).found.total == 1


def test_an_answer_says_where_its_words_were_found(tmp_path: Path) -> None:
    """Their forms, and how many memories have them."""
    stored = memory("The choir rehearses."), memory("The choir has a conductor.")
    answer = ask(tmp_path, ["choir", "rehearsal"], *stored)
    found = {word.text: (set(word.forms), len(word.files)) for word in answer.words}
    assert found == {"choir": ({"choir"}, 2), "rehearsal": ({"rehearses"}, 1)}


def test_a_hit_can_be_asked_to_have_a_share_of_the_question(tmp_path: Path) -> None:
    """The share is of the rarity of its words, so a frequent word counts less than a rare one."""
    stored = memory("The choir rehearses."), memory("The choir has a conductor.")
    totals = [
        ask(tmp_path, ["choir", "rehearsal"], *stored, least_share=share).found.total
        for share in (0.0, 0.1, 0.5, 1.0)
    ]
    assert totals == [2, 2, 1, 1]


def test_a_filter_keeps_others_out(tmp_path: Path) -> None:
    """They count for the rarity of a word all the same."""
    stored = memory("oboe", user="ann"), memory("oboe", user="bob")
    answer = ask(tmp_path, ["oboe"], *stored, wanted=Filter.of(user="ann"))
    assert [hit.file_name for hit in answer.found.hits] == ["0.md"]


def test_nothing_is_no_question() -> None:
    """Nor is too much."""
    for parts in ([" "], [], ["x" * 100_000]):
        with pytest.raises(InvalidInput):
            Question.parse(parts)
