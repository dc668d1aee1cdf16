"""The benchmarks run, and what they measure with is what they say."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from aiaml_server.format.memory import Memory, format, parse  # noqa: A004
from aiaml_server.timestamps import parse_timestamp
from paths import ROOT
from printed import completed
from semantic_model import model_folder

BENCHMARKS = ROOT / "benchmarks"


def run(script: str, *arguments: str | Path) -> str:
    """Run a script to its end; return what it printed."""
    done = completed([sys.executable, BENCHMARKS / script, *arguments], timeout=150)
    assert done.returncode == 0, done.stderr
    return done.stdout


def corpus(base: Path, count: int, seed: int) -> dict[str, bytes]:
    """Generate a corpus; return its files."""
    run("corpus.py", base, str(count), "--seed", str(seed))
    return {path.name: path.read_bytes() for path in (base / "files").iterdir()}


def parsed(files: dict[str, bytes]) -> list[Memory]:
    """Return the memories in the order of their file names."""
    return [parse(files[name].decode()) for name in sorted(files)]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    """Two corpora of one seed are the same file for file, one of another seed shares none."""
    first = corpus(tmp_path / "first", 30, 1)
    assert first == corpus(tmp_path / "second", 30, 1)
    assert not set(first.values()) & set(corpus(tmp_path / "third", 30, 2).values())


@pytest.mark.slow
def test_the_corpus_is_what_the_product_writes(tmp_path: Path) -> None:
    """Every file has the name and the bytes that the product gives to that memory."""
    files = corpus(tmp_path, 200, 3)
    assert len(files) == 200
    for name, data in files.items():
        memory = parse(data.decode())
        assert memory.file_name == name
        assert format(memory).encode() == data


@pytest.mark.slow
def test_the_corpus_is_varied(tmp_path: Path) -> None:
    """Agents, users, lengths, topics and days spread as the generator says."""
    memories = parsed(corpus(tmp_path, 300, 4))
    assert len({memory.id for memory in memories}) == 300
    assert len({memory.agent for memory in memories}) == 8
    assert len({memory.user for memory in memories}) == 5
    assert {len(memory.topics) for memory in memories} <= set(range(1, 7))
    text = "\n".join(memory.content for memory in memories)
    assert all(each in text for each in ("node.js", "c++", "San Francisco", "🙂", "\n- ", "\n## "))
    sizes = sorted(len(memory.content.split()) for memory in memories)
    assert sizes[0] < 80
    assert 380 < sizes[-1] < 500
    moments = [parse_timestamp(memory.timestamp) or 0 for memory in memories]
    assert moments == sorted(moments)
    assert moments[-1] - moments[0] > timedelta(days=700) / timedelta(microseconds=1)


@pytest.mark.slow
def test_every_row_is_measured_and_written(tmp_path: Path) -> None:
    """A run prints each row with a figure, and puts the same table between the marks."""
    document = tmp_path / "RESULTS.md"
    published = (BENCHMARKS / "RESULTS.md").read_text(encoding="utf-8")
    document.write_text(published, encoding="utf-8")
    printed = run("run.py", "--sizes", "50", "--quick", "--place", tmp_path, "--write", document)
    rows = [line.strip("|").split("|") for line in printed.splitlines() if line.startswith("|")]
    figures = {row[0].strip(): row[2].strip() for row in rows[2:]}
    measured = [name for name, figure in figures.items() if any(map(str.isdigit, figure))]
    only_linux_tells = {"memory above the bare process's"}
    needs_an_index = {name for name, figure in figures.items() if figure == "no index"}
    assert set(figures) - set(measured) <= only_linux_tells | needs_an_index
    assert printed in document.read_text(encoding="utf-8")
    assert rows_of(published) == list(figures)  # the published table is one of these
    assert [path.name for path in tmp_path.iterdir()] == ["RESULTS.md"]


@pytest.mark.slow
def test_two_versions_are_measured_beside_each_other() -> None:
    """Every row has a ratio; here both are this one."""
    source = BENCHMARKS.parent / "src"
    printed = run("versions.py", source, "--sizes", "20", "--rounds", "1")
    rows = [line for line in printed.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 11
    assert all(line.endswith(" x |") for line in rows)


@pytest.mark.slow
def test_servers_without_an_index_are_measured_at_once() -> None:
    """The last of three beside one alone; their answers are compared on the way."""
    printed = run("together.py", "--memories", "100", "--servers", "3", "--rounds", "1")
    *each, told = printed.splitlines()
    assert [": 1 at once" in line for line in each] == [True, False]
    assert "the last of 3 on 100 memories" in told
    assert told.endswith(" x")


def rows_of(document: str) -> list[str]:
    """Return the first column of the table between a document's marks."""
    table = document.partition("<!-- end -->")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [line.split("|")[1].strip() for line in lines[1:]]


@pytest.mark.slow
def test_every_row_of_the_toolsets_is_measured() -> None:
    """And is one of those that are published; the answers are compared on the way."""
    text = (BENCHMARKS / "RESULTS.md").read_text(encoding="utf-8")
    published = text.partition("## Toolsets")[2].partition("\n## ")[0]
    rows = [line.split(" | ")[0] for line in run("toolsets.py", "--quick").splitlines()]
    assert len(rows) > 12
    assert rows == [line.split(" | ")[0] for line in published.splitlines() if line[:1] == "|"]


@pytest.mark.slow
def test_every_row_of_citations_is_measured() -> None:
    """And is one of those that are published."""
    text = (BENCHMARKS / "RESULTS.md").read_text(encoding="utf-8")
    section = text.partition("## Citations")[2].partition("\n## ")[0]
    rows = [line.split(" | ")[0] for line in run("citations.py", "--quick").splitlines()]
    published = [line.split(" | ")[0].replace("1,000", "100") for line in section.splitlines()]
    assert len(rows) == 9 and [row for row in rows if row not in published] == []


def garden(directory: Path) -> Path:
    """Write a set with two stores of memories; in the first, "bed" finds seven, in this order."""
    beds = [f"Bed {number} has {plant}" for number, plant in enumerate(["leek", "kale", "bean"])]
    texts = [*beds, *(f"A bed of {plant}" for plant in ("mint", "sage", "dill", "chard")), "Rain"]
    stores = [
        {
            "name": "north",
            "memories": [noted(f"n{at}", at, text) for at, text in enumerate(texts)],
            "questions": [
                {"id": "north-0", "text": "Which plant?", "relevant": ["n4"]},
                {"id": "north-1", "text": "Which plants?", "relevant": ["n6", "n7"]},
                {"id": "north-2", "text": "Which leaf?", "relevant": ["n1"]},
            ],
        },
        {
            "name": "south",
            "memories": [noted("s0", 0, "A bed of roses"), noted("s1", 1, "Rain", user="rosa")],
            "questions": [{"id": "south-0", "text": "Who?", "relevant": ["s1"]}],
        },
    ]
    directory.mkdir()
    (directory / "garden.json").write_text(json.dumps(stores), encoding="utf-8")
    return directory


def noted(name: str, day: int, content: str, user: str = "ann") -> dict[str, Any]:
    """Return a memory as such a set has it."""
    when = f"2024-05-{20 - day:02}T08:00:00"
    return {
        "id": name,
        "timestamp": when,
        "agent": "claude",
        "user": user,
        "topics": [],
        "content": content,
    }


def lists(path: Path, **by_question: Any) -> Path:
    """Write keyword lists, for questions named without the hyphen."""
    found = {name.replace("_", "-"): words for name, words in by_question.items()}
    path.write_text(json.dumps(found), encoding="utf-8")
    return path


def table(printed: str) -> list[list[str]]:
    """Return the cells of a table's rows, without its head."""
    rows = [line.strip("|").split("|") for line in printed.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


@pytest.mark.slow
def test_keyword_lists_are_scored_by_what_think_finds(tmp_path: Path) -> None:
    """Right are the fifth; the last two, one of which has a word that no other has; the first."""
    data = garden(tmp_path / "data")
    given = {"north_0": ["bed"], "north_1": ["bed", "rai"], "north_2": ["kale"]}
    one = lists(tmp_path / "one.json", **given, south_0=["rosa"])
    [row] = table(run("keywords.py", data, one))
    assert row[:2] == ["garden", "4 of 4"]
    assert [float(cell.split()[0]) for cell in row[2:5]] == [0.75, 1.0, 1.0]
    assert row[5:] == ["0.625", "0.875", "1.000", "3"]


@pytest.mark.slow
def test_two_files_of_keyword_lists_are_compared_on_what_both_have(tmp_path: Path) -> None:
    """Three questions have two lists; one is answered worse, one better, one alike."""
    data = garden(tmp_path / "data")
    both = {"north_0": ["bed"], "north_1": ["bed"], "south_0": ["rosa"]}
    one = lists(tmp_path / "one.json", **both, north_2=["leek"])
    two = lists(tmp_path / "two.json", north_0=["no"], north_1=["chard", "rain"], south_0=["rain"])
    rows = table(run("keywords.py", data, one, two))
    assert [row[:5] for row in rows] == [
        ["garden", "3", "R@5", "0.667", "0.667"],
        ["garden", "3", "R@10", "0.833", "0.667"],
        ["garden", "3", "R@25", "0.833", "0.667"],
    ]
    assert [row[6:] for row in rows] == [["1 : 1", "1.000"]] * 3
    assert rows[1][5].startswith("-0.167 (")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"north_9": ["bed"]}, "north-9: no set has a question of this id"),
        ({"north_0": []}, "north-0: must be 1 to 15 words"),
        ({"north_0": list("abcdefghijklmnop")}, "north-0: must be 1 to 15 words"),
        ({"north_0": ["bed", " "]}, "north-0: must be 1 to 15 words"),
        ({"north_0": "bed"}, "north-0: must be 1 to 15 words"),
        ({}, "holds no lists"),
    ],
)
def test_keyword_lists_that_measure_nothing_are_refused(
    tmp_path: Path, given: dict[str, Any], sentence: str
) -> None:
    """A question that no set asks, no words, too many: a sentence, and no figure."""
    data = garden(tmp_path / "data")
    done = completed(
        [sys.executable, BENCHMARKS / "keywords.py", data, lists(tmp_path / "one.json", **given)],
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert sentence in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.network
@pytest.mark.slow
def test_every_row_of_semantic_is_measured() -> None:
    """And a small set is answered."""
    model_folder()
    rows = [line.split(" | ")[0] for line in run("semantic.py", "--quick").splitlines()]
    assert [row for row in rows if "50" in row] == ["| search of 50", "| database of 50"]


@pytest.mark.network
@pytest.mark.slow
def test_quality_is_measured_on_any_set(tmp_path: Path) -> None:
    """Given as files."""
    model_folder()
    memory = {"timestamp": "2026-01-01T00:00:00", "user": "ada", "topics": ["tea"]}
    store = {
        "memories": [
            {"id": "a", "content": "I drink green tea", **memory},
            {"id": "b", "content": "The car is blue", **memory},
        ],
        "questions": [{"text": "what does ada drink?", "relevant": ["a"]}],
    }
    for name in ("observations", "turns", "devbench"):
        (tmp_path / f"{name}.json").write_text(json.dumps([store]), encoding="utf-8")
    printed = run("semantic.py", "--quality", tmp_path)
    assert "turns: hit@5 1.000, R@25 1.000, questions 1.000" in printed
