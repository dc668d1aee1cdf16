"""How often a verdict of `citations` is right, on a history whose lines git itself labels."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from machine import as_person, git
from paths import ROOT
from printed import completed

BENCHMARK = ROOT / "benchmarks" / "verdicts.py"


def edited(lines: list[str], chance: random.Random) -> list[str]:
    """Return a file's lines after some work on them: insertions, deletions, changes, a move."""
    lines = list(lines)
    for _ in range(chance.randint(1, 12)):
        at = chance.randrange(len(lines))
        match chance.randrange(5):
            case 0:
                lines[at:at] = [f"inserted_{chance.random()} = {at}"] * chance.randint(1, 4)
            case 1:
                del lines[at : at + chance.randint(1, 4)]
            case 2:
                words = lines[at].split(" ")
                words[chance.randrange(len(words))] += f"_{chance.randrange(1000)}"
                lines[at] = " ".join(words)
            case 3:
                lines[at] = f"    {lines[at]}"  # only blanks
            case 4:
                block = lines[at : at + 12]
                del lines[at : at + 12]
                to = chance.randrange(len(lines) + 1)
                lines[to:to] = block
        lines = lines or [""]
    return lines


COMMON = ["    return None", "    else:", "    try:", "    continue", "", "@property", "    pass"]


def code(chance: random.Random) -> list[str]:
    """Return lines that look like code; one in eight is a common one."""

    def name() -> str:
        return "".join(chance.choices("abcdeilmnoprstu", k=chance.randint(3, 9)))

    def line() -> str:
        if chance.random() < 0.125:
            return chance.choice(COMMON)
        if chance.random() < 0.1:
            return f"def {name()}({name()}, {name()}):"
        return f"    {name()} = {name()}({name()}, {name()}[{chance.randint(0, 99)}])"

    return [line() for _ in range(chance.randint(100, 300))]


def history(place: Path) -> Path:
    """Make a repository of twenty files, and forty commits of work on them."""
    chance = random.Random(3)
    repository = place / "history"
    for number in range(20):
        file = repository / "code" / f"part_{number % 4}" / f"file_{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(code(chance)), "utf-8")
    git(repository, "init", "--quiet")
    as_person(repository, "add", "--all")
    as_person(repository, "commit", "--quiet", "--message", "first")
    for number in range(40):
        files = sorted((repository / "code").rglob("*.py"))
        for file in chance.sample(files, 4):
            text = file.read_text("utf-8").split("\n")
            file.write_text("\n".join(edited(text, chance)), "utf-8")
        if number % 10 == 5:
            moved = repository / "code" / f"moved_{number}"
            moved.mkdir()
            file = chance.choice(files)
            file.rename(moved / file.name)
        if number % 20 == 7:
            chance.choice(sorted((repository / "code").rglob("*.py"))).unlink()
        as_person(repository, "add", "--all")
        as_person(repository, "commit", "--quiet", "--message", str(number))
    return repository


@pytest.mark.slow
def test_verdicts_are_right(tmp_path: Path) -> None:
    """Stale recall at least 0.95, false stales at most 0.01, the right line at least 0.95."""
    repository = history(tmp_path)
    spans = [f"{repository}:HEAD~{back}:HEAD" for back in (10, 25, 40)]
    done = completed([sys.executable, BENCHMARK, *spans], timeout=150)
    assert done.returncode == 0, done.stderr
    rows = [row.strip("| ").split(" | ") for row in done.stdout.splitlines()]
    figures = {name: float(cell) for name, cell in zip(rows[0][1:], rows[-1][1:], strict=True)}
    assert figures["lines"] > 1500 and figures["gone"] > 100
    assert figures["stale recall"] >= 0.95, figures
    assert figures["false stale"] <= 0.01, figures
    assert figures["right line"] >= 0.95, figures
