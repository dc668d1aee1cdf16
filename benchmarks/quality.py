"""How well searches find: python benchmarks/quality.py DATA [LISTS] [--semantic].

DATA is a directory of JSON files, one for each set: a list of stores
{"name", "memories": [{"id", "timestamp", "agent", "user", "topics", "content"}],
"questions": [{"id", "text", "relevant": [ids]}]}. LISTS is a JSON file {question's id: [words]},
such as `keywords.json` (for LoCoMo, by somebody who saw only the question and the description of
`think`). Without it the words of the question are the keywords.

hit@5 is the share of questions with a right memory among the first five, R@k the share of the right
memories among the first k. The 95 % intervals are a bootstrap over the questions. `--semantic`
measures the toolset `semantic` with the model of the tests instead.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Any

import corpus
from aiaml_server.bank import MemoryBank
from aiaml_server.format.memory import Memory
from aiaml_server.settings import Settings

if TYPE_CHECKING:
    from aiaml_server.toolsets.semantic.store import MemoryStore

DEPTHS = (5, 10, 25)
Search = Callable[[str, Sequence[str]], list[str]]


def with_think(store: Mapping[str, Any], place: Path) -> Search:
    """Store memories as files and return a search by keywords."""
    names = {f"{at:08x}": each["id"] for at, each in enumerate(store["memories"])}
    made = []
    for at, each in enumerate(store["memories"]):
        head = (each["timestamp"], each["agent"], each["user"], tuple(each["topics"]))
        made.append(Memory(f"{at:08x}", *head, each["content"]))
    corpus.write(place, made)
    bank = MemoryBank(Settings(place, sync=False))
    return lambda _, words: [names[hit.id] for hit in bank.think(words)]


def with_semantic(store: Mapping[str, Any], place: Path) -> Search:
    """Store memories in a database and return a search by meaning."""
    from aiaml_server.toolsets.semantic import models  # noqa: PLC0415

    memories = semantic_store(place)
    names: dict[str, str] = {}
    for each in store["memories"]:
        text = f"{each['user']}: {each['content']}{' ' * len(names)}"  # equal texts stay apart
        created = models.iso_to_sql(each["timestamp"])
        new = models.NewMemory(text, tags=each["topics"], created_at=created)
        names[memories.store_many([new])[0]] = each["id"]
    return lambda text, words: [
        names[hit.memory.id] for hit in memories.search(" ".join([text, *words]), 25).hits
    ]


def semantic_store(place: Path) -> MemoryStore:
    """Return an empty store of the toolset `semantic`, with the model of the tests."""
    sys.path.append(str(Path(__file__).parent.parent / "tests"))
    from aiaml_server.toolsets.semantic import config  # noqa: PLC0415
    from aiaml_server.toolsets.semantic.store import MemoryStore  # noqa: PLC0415
    from semantic_model import NAME, Ready, real  # noqa: PLC0415

    off = config.Deduplication(auto_check=False)
    settings = config.Config(embedding=config.Embedding(model=NAME), deduplication=off)
    return MemoryStore(place / ".memory", None, Ready(real()), settings)


def with_interval(values: Sequence[float]) -> str:
    """Return a mean and its 95 % interval."""
    random = Random(1)
    means = sorted(fmean(random.choices(values, k=len(values))) for _ in range(1_000))
    return f"{fmean(values):.3f} ({means[25]:.3f} to {means[-25]:.3f})"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("lists", type=Path, nargs="?", metavar="LISTS")
    parser.add_argument("--semantic", action="store_true")
    given = parser.parse_args()
    lists = json.loads(given.lists.read_text("utf-8")) if given.lists else None
    way = with_semantic if given.semantic else with_think
    print("| set | questions | hit@5 | " + " | ".join(f"R@{depth}" for depth in DEPTHS) + " |")
    print("|---|--:|--:|" + "--:|" * len(DEPTHS))
    for path in sorted(given.data.glob("*.json")):
        found: list[tuple[set[str], list[str]]] = []
        for store in json.loads(path.read_text("utf-8")):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
                search = way(store, Path(place))
                for question in store["questions"]:
                    words = re.findall(r"\w+", question["text"].lower())
                    if lists is not None:
                        words = lists.get(question["id"], [])
                    if words:
                        found.append((set(question["relevant"]), search(question["text"], words)))
        cells = [path.stem, f"{len(found):,}"]
        cells.append(with_interval([float(bool(right & set(ids[:5]))) for right, ids in found]))
        for depth in DEPTHS:
            shares = [len(right & set(ids[:depth])) / len(right) for right, ids in found]
            cells.append(with_interval(shares))
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
