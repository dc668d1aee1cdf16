"""Judge the words that guide `think`: python benchmarks/keywords.py DATA LISTS [OTHER].

Somebody who sees the description of `think` and one question, and nothing else, writes down what
they would look for. LISTS is a JSON file of what was written, {question's id: [keyword, ...]}; the
real `think` answers each list. With OTHER, written by another description, the two are compared on
the questions that both have.

DATA is a directory with a JSON file for each set: a list of stores {name, memories, questions}. A
memory is {id, timestamp, agent, user, topics, content}, a question {id, text, relevant}, where
`relevant` are the ids of the memories that answer it. Each store is a memory directory of its own.

R@k is the share of a question's right memories that are among its first k hits; the mean over all
questions is given with its 95 % interval (bootstrap over the questions). *Chosen* is what an agent
can tell from `matching_keywords`: the hits whose keywords the fewest of the others have, first.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import comb, log
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any, NamedTuple

import corpus
from aiaml_server.bank import MemoryBank
from aiaml_server.format.memory import Memory
from aiaml_server.format.scorer import Hit
from aiaml_server.settings import Settings

MOST = 15  # words in a list; an agent hardly writes more
DEPTHS = (5, 10, 25)
CHOSEN = (3, 5, 10)
RESAMPLES = 1_000

Lists = Mapping[str, Sequence[str]]


class Answer(NamedTuple):
    """What a list has found.

    Attributes:
        right: how many memories are right.
        ranks: where they stand among the hits, from 1.
        chosen: where they stand when the hits are put in order by their matching keywords.
    """

    right: int
    ranks: tuple[int, ...]
    chosen: tuple[int, ...]

    def recall(self, depth: int) -> float:
        """Return the share of the right memories among the first hits."""
        return sum(rank <= depth for rank in self.ranks) / self.right

    def choice(self, depth: int) -> float:
        """Return the share of the right memories among as many that were chosen."""
        return sum(rank <= depth for rank in self.chosen) / self.right


def sets(data: Path) -> dict[str, list[dict[str, Any]]]:
    """Read the stores of each set."""
    found = {path.stem: read(path) for path in sorted(data.glob("*.json"))}
    if not found:
        raise SystemExit(f"{data}: must be a directory with a JSON file for each set")
    return found


def read(path: Path) -> Any:
    """Read a JSON file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path}: must be a JSON file: {error}") from None


def lists(path: Path, asked: set[str]) -> Lists:
    """Read keyword lists for some of the questions that are asked."""
    found = read(path)
    if not isinstance(found, dict) or not found:
        raise SystemExit(f"{path}: holds no lists; must be {{question's id: [keyword, ...]}}")
    for question, words in found.items():
        if question not in asked:
            raise SystemExit(f"{path}: {question}: no set has a question of this id")
        if not (
            isinstance(words, list)
            and 1 <= len(words) <= MOST
            and all(isinstance(word, str) and word.strip() for word in words)
        ):
            raise SystemExit(f"{path}: {question}: must be 1 to {MOST} words")
    return found


def memories(store: dict[str, Any]) -> Iterator[Memory]:
    """Return a store's memories as the product holds them, numbered."""
    for number, each in enumerate(store["memories"]):
        topics = tuple(each["topics"])
        user, content = each["user"], each["content"]
        yield Memory(f"{number:08x}", each["timestamp"], each["agent"], user, topics, content)


def answers(stores: list[dict[str, Any]], given: Sequence[Lists]) -> list[dict[str, Answer]]:
    """Ask each list of its store; return what it found, by question, for each file of lists."""
    found: list[dict[str, Answer]] = [{} for _ in given]
    for store in stores:
        names = {f"{at:08x}": each["id"] for at, each in enumerate(store["memories"])}
        with tempfile.TemporaryDirectory(prefix="aiaml-keywords-") as place:
            corpus.write(Path(place), memories(store))
            bank = MemoryBank(Settings(Path(place), sync=False))
            for question in store["questions"]:
                right = set(question["relevant"])
                for some, into in zip(given, found, strict=True):
                    if words := some.get(question["id"]):
                        hits = bank.think(words)
                        ranks = (
                            tuple(at for at, hit in enumerate(order, 1) if names[hit.id] in right)
                            for order in (hits, by_rarity(hits))
                        )
                        into[question["id"]] = Answer(len(right), *ranks)
            bank.close()
    return found


def by_rarity(hits: Sequence[Hit]) -> list[Hit]:
    """Return hits with those first that match what few of the others match; equals by rank."""
    having = Counter(word for hit in hits for word in hit.matching_keywords)
    return sorted(
        hits, key=lambda hit: -sum(log(26 / having[word]) for word in hit.matching_keywords)
    )


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of a mean."""
    chance = Random(1)
    means = sorted(fmean(chance.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return means[RESAMPLES // 40], means[-RESAMPLES // 40]


def sign_test(better: int, worse: int) -> float:
    """Return how likely as uneven a count is by chance alone, in either direction."""
    differing = better + worse
    tail = sum(comb(differing, count) for count in range(min(better, worse) + 1))
    return min(1.0, tail / 2 ** (differing - 1) if differing else 1.0)


def scored(name: str, of: int, found: Sequence[Answer]) -> str:
    """Return a set's row: R@k, the same of those chosen, and where the first right one stands."""
    cells = [name, f"{len(found)} of {of}"]
    for depth in DEPTHS:
        values = [answer.recall(depth) for answer in found]
        low, high = interval(values)
        cells.append(f"{fmean(values):.3f} ({low:.3f} to {high:.3f})")
    cells += [f"{fmean(answer.choice(depth) for answer in found):.3f}" for depth in CHOSEN]
    first = [answer.ranks[0] for answer in found if answer.ranks]
    cells.append(f"{median(first):g}" if first else "-")
    return row(*cells)


def compared(name: str, depth: int, pairs: Sequence[tuple[Answer, Answer]]) -> str:
    """Return a row that sets two files of lists side by side."""
    values = [(one.recall(depth), two.recall(depth)) for one, two in pairs]
    first, second = (fmean(each) for each in zip(*values, strict=True))
    low, high = interval([two - one for one, two in values])
    better, worse = sum(one < two for one, two in values), sum(one > two for one, two in values)
    return row(
        name,
        f"{len(pairs)}",
        f"R@{depth}",
        f"{first:.3f}",
        f"{second:.3f}",
        f"{second - first:+.3f} ({low:+.3f} to {high:+.3f})",
        f"{better} : {worse}",
        f"{sign_test(better, worse):.3f}",
    )


def row(*cells: str) -> str:
    """Return a table's row."""
    return f"| {' | '.join(cells)} |"


def head(*cells: str) -> str:
    """Return a table's first two lines."""
    return f"{row(*cells)}\n|---|{'--:|' * (len(cells) - 1)}"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("lists", type=Path, nargs="+", metavar="LISTS")
    given = parser.parse_args()
    if len(given.lists) > 2:
        parser.error("at most two files of lists can be compared")
    by_name = sets(given.data)
    asked = {each["id"] for stores in by_name.values() for s in stores for each in s["questions"]}
    read_lists = [lists(path, asked) for path in given.lists]
    if len(read_lists) == 1:
        depths = [f"R@{depth}" for depth in DEPTHS] + [f"{depth} chosen" for depth in CHOSEN]
        print(head("set", "questions", *depths, "median rank of the first right"))
    else:
        print(head("set", "n", "", "first", "second", "difference", "better : worse", "sign test"))
    for name, stores in by_name.items():
        found = answers(stores, read_lists)
        if len(found) == 1 and found[0]:
            of = sum(len(store["questions"]) for store in stores)
            print(scored(name, of, list(found[0].values())))
        elif both := [(found[0][each], found[1][each]) for each in found[0] if each in found[-1]]:
            for depth in DEPTHS:
                print(compared(name, depth, both))


if __name__ == "__main__":
    main()
