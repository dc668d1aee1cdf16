"""Measure `citations`: python benchmarks/citations.py [--quick] [--accuracy] [REPOSITORY:A:B …].

Without words, times: each operation beside a yardstick that was measured in alternation with it, in
the processor's time. `--json` prints a list of {what, limit, ours, bare} instead, in seconds.

With `--accuracy`, how often a verdict is right, on histories whose lines git labels: of the lines
of commit A, `git blame --reverse -w -M A..B` says which are still there at B, and where. A line of
at least ten characters is cited as a memory saved at A would cite it, at most one in five of them
repeated in its file, and verified at B. REPOSITORY:A:B names a history; without one, packages of
the Python index are fetched in several versions, each version a commit: from the last but one and
from the first to the last.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import NamedTuple

import corpus
from aiaml_server.files import replace_atomic
from aiaml_server.toolsets.citations import CheckedCitation, Citation, Link, MemoryService
from aiaml_server.toolsets.citations.citing import build_citation
from aiaml_server.toolsets.citations.search import stem
from aiaml_server.toolsets.citations.sources import SourceTree
from aiaml_server.toolsets.citations.verify import AMBIGUOUS, REFORMATTED, check_citation
from speed import beside, in_turn, judged

VERSIONS = {
    "click": ("7.0", "7.1.2", "8.0.4", "8.1.3", "8.1.8"),
    "requests": ("2.18.4", "2.25.1", "2.28.2", "2.31.0", "2.32.3"),
    "httpx": ("0.18.2", "0.21.3", "0.23.3", "0.25.2", "0.27.2"),
    "starlette": ("0.14.2", "0.20.4", "0.27.0", "0.37.2"),
    "attrs": ("19.3.0", "20.3.0", "21.4.0", "22.2.0", "23.2.0"),
    "rich": ("9.13.0", "10.16.2", "12.6.0", "13.3.5", "13.9.4"),
    "urllib3": ("1.24.3", "1.26.18", "2.0.7", "2.2.3"),
}
WHO = ("-c", "user.name=Benchmark", "-c", "user.email=benchmark@example.org")
LINES = 600  # of one history
OF_A_FILE = 40
SHORTEST = 10  # characters
SECONDS = 3600.0  # for one history


class Verdict(NamedTuple):
    """A line's verdict, and where git says that it is: `path`, line number; None for gone."""

    checked: CheckedCitation
    truth: tuple[str, int] | None


def git(repository: Path, *words: str) -> str:
    """Return what git prints."""
    command = ["git", "-C", str(repository), *words]
    done = subprocess.run(command, capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


def still_there(repository: Path, first: str, last: str, path: str) -> dict[int, tuple[str, int]]:
    """Return the lines of a file that are there at the last commit, with where."""
    last = git(repository, "rev-parse", last).strip()
    words = ("blame", "--reverse", "-w", "-M", "-p", f"{first}..{last}", "--", path)
    seen: dict[int, tuple[str, int]] = {}
    names: dict[str, str] = {}
    commit = ""
    for line in git(repository, *words).split("\n"):
        parts = line.split(" ")
        if len(parts) >= 3 and len(parts[0]) == 40 and parts[1].isdigit():
            commit = parts[0]
            seen[int(parts[2])] = (commit, int(parts[1]))
        elif line.startswith("filename "):
            names[commit] = line.removeprefix("filename ")
    return {at: (names[last], line) for at, (by, line) in seen.items() if by == last}


def cited(old: Path, path: str, chance: random.Random) -> list[Citation]:
    """Return citations of some lines of a file, as they are taken down."""
    tree = SourceTree(old, SECONDS)
    plain = tree.get(path).normalized
    fit = [number for number, line in enumerate(plain, 1) if len(line) >= SHORTEST]
    counts = Counter(plain)
    chosen = chance.sample(fit, min(OF_A_FILE, len(fit)))
    unique = [number for number in chosen if counts[plain[number - 1]] == 1]
    repeated = [number for number in chosen if counts[plain[number - 1]] > 1]
    numbers = unique + repeated[: len(unique) // 4]
    return [build_citation(Citation(path, number), tree)[0] for number in numbers]


def check_out(repository: Path, commit: str, place: Path) -> None:
    """Write the files of a commit into a directory."""
    words = ["git", "-C", str(repository), "archive", commit]
    archive = subprocess.run(words, capture_output=True, check=True).stdout
    place.mkdir()
    subprocess.run(["tar", "x", "-C", str(place)], input=archive, check=True)


def verdicts(repository: Path, first: str, last: str) -> tuple[list[Verdict], float]:
    """Return the verdicts on lines of a history, and the seconds of processor that they took."""
    chance = random.Random(1)
    found: list[Verdict] = []
    spent = 0.0
    with tempfile.TemporaryDirectory(prefix="aiaml-bench-") as directory:
        old, new = Path(directory) / "old", Path(directory) / "new"
        check_out(repository, first, old)
        check_out(repository, last, new)
        paths = sorted(each.relative_to(old).as_posix() for each in old.rglob("*.py"))
        chance.shuffle(paths)
        tree = SourceTree(new, SECONDS)
        for path in paths:
            if len(found) >= LINES:
                break
            lines = cited(old, path, chance)
            truth = still_there(repository, first, last, path)
            begun = process_time()
            checked = [check_citation(each, tree) for each in lines]
            spent += process_time() - begun
            found += [Verdict(each, truth.get(each.citation.line or 0)) for each in checked]
    return found, spent


def noticed(checked: CheckedCitation) -> bool:
    """Return whether a line that git takes for gone is stale, or laid out differently."""
    return checked.is_stale or checked.verdict == REFORMATTED


def accuracy(found: list[Verdict]) -> dict[str, float]:
    """Return the figures: shares of what git says is gone, or still there."""
    gone = [each.checked for each in found if each.truth is None]
    alive = [each for each in found if each.truth is not None]
    placed = [each for each in alive if len(each.checked.places) == 1]
    right = sum(each.checked.places[0] == each.truth for each in placed)
    return {
        "lines": len(found),
        "gone": len(gone),
        "stale recall": round(sum(map(noticed, gone)) / len(gone), 4),
        "false stale": round(sum(each.checked.is_stale for each in alive) / len(alive), 4),
        "ambiguous": round(
            sum(each.checked.verdict == AMBIGUOUS for each in found) / len(found), 4
        ),
        "right line": round(right / len(placed), 4),
    }


def package(place: Path, name: str, versions: tuple[str, ...]) -> Path:
    """Make a history of a package's versions, fetched from the Python index."""
    repository = place / name
    repository.mkdir()
    git(repository, "init", "--quiet")
    uv = shutil.which("uv") or Path(sys.executable).with_name("uv")
    for version in versions:
        for each in repository.iterdir():
            if each.name != ".git":
                subprocess.run(["rm", "-r", str(each)], check=True)
        words = [str(uv), "pip", "install", "--quiet", "--no-deps", "--target", str(repository)]
        subprocess.run([*words, f"{name}=={version}"], check=True)
        git(repository, "add", "--all")
        git(repository, *WHO, "commit", "--quiet", "--message", version)
    return repository


def histories(place: Path, words: list[str]) -> Iterator[tuple[str, Path, list[tuple[str, str]]]]:
    """Yield histories: a name, a repository, spans of two commits."""
    for word in words:
        repository, first, last = word.rsplit(":", 2)
        yield Path(repository).resolve().name, Path(repository), [(first, last)]
    for name, versions in {} if words else VERSIONS.items():
        spans = [(f"HEAD~{back}", "HEAD") for back in (1, len(versions) - 1)]
        yield f"{name} to {versions[-1]}", package(place, name, versions), spans


def show_accuracy(words: list[str], as_json: bool) -> None:
    """Print how often the verdicts are right."""
    every: list[Verdict] = []
    total = 0.0
    names = ("lines", "gone", "stale recall", "false stale", "ambiguous", "right line")
    if not as_json:
        print(f"| history | {' | '.join(names)} | ms each |\n|---|{'--:|' * 7}")
    with tempfile.TemporaryDirectory(prefix="aiaml-bench-") as place:
        for name, repository, spans in histories(Path(place), words):
            pairs = [verdicts(repository, first, last) for first, last in spans]
            found = [each for verdicts_found, _ in pairs for each in verdicts_found]
            spent = sum(seconds for _, seconds in pairs)
            every += found
            total += spent
            if not as_json:
                print(row(name, accuracy(found), spent / len(found)), flush=True)
    figures = accuracy(every)
    if as_json:
        print(json.dumps({**figures, "ms each": 1000 * total / len(every)}))
    else:
        print(row("all", figures, total / len(every)))


def row(name: str, figures: dict[str, float], each: float) -> str:
    """Return a line of the table."""
    return f"| {name} | {' | '.join(map(str, figures.values()))} | {1000 * each:.2f} |"


# --- times ----------------------------------------------------------------------------------------

WORDS = corpus.vocabulary()


def filled(place: Path, count: int) -> MemoryService:
    """Make a repository with memories that cite two lines each and link to others."""
    chance = random.Random(1)
    (place / ".git").mkdir(parents=True)
    for number in range(50):
        lines = [f"line_{number}_{each} = {chance.random()}" for each in range(400)]
        (place / f"file_{number}.py").write_text("\n".join(lines), encoding="utf-8")
    memories = MemoryService(place)
    for number in range(count):
        text = " ".join(chance.choices(WORDS[:2_000], k=chance.randrange(40, 160)))
        cites = [
            Citation(f"file_{chance.randrange(50)}.py", chance.randint(1, 400)) for _ in range(2)
        ]
        links = [Link("related", f"mem-{chance.randrange(count)}") for _ in range(3)]
        content = f"**Fact**: {text}\n\n**Reasoning**: r\n\n**Action**: a"
        memories.save(f"Memory {number}", content, cites, links, ["a"], f"mem-{number}")
    return memories


def read_all(place: Path) -> int:
    """Read the files' bytes, as the yardstick."""
    return sum(len(each.read_bytes()) for each in place.glob("memories/*.md"))


class Measured(NamedTuple):
    """An operation beside its yardstick, each in seconds of the processor.

    Attributes:
        what: the two of them, in words.
        limit: how many times as long as the yardstick it may take.
        ours: how long the operation takes.
        bare: how long the yardstick takes.
    """

    what: str
    limit: float
    ours: float
    bare: float


def as_new(place: Path) -> MemoryService:
    """Return a repository's memories with nothing known of them, as in a new process."""
    stem.cache_clear()
    return MemoryService(place)


def times(repeats: int) -> Iterator[Measured]:
    """Yield what is measured."""
    count = 1_000 if repeats > 1 else 100
    with tempfile.TemporaryDirectory(prefix="aiaml-bench-") as directory:
        place = Path(directory).resolve()
        memories = filled(place, count)
        first = memories.list_memories().memories["mem-0"]

        def compare(
            what: str, limit: float, ours: Callable[[], object], bare: Callable[[], object]
        ) -> Measured:
            taken, yardstick = in_turn(repeats, ours, bare, clock=process_time)
            return Measured(what, limit, taken, max(yardstick, 1e-6))  # some clocks tick seldom

        question = f"what about the {WORDS[300]} and {WORDS[1_500]}?"
        label = f"search of {count:,} in a new process : reading and parsing them"
        yield compare(
            label, 4, lambda: as_new(place).search(question), lambda: as_new(place).list_memories()
        )
        label = "the same : reading the files' bytes alone"
        yield compare(label, 30, lambda: as_new(place).search(question), partial(read_all, place))
        memories.search(question)
        label = "the same in a server : reading the files' bytes"
        yield compare(label, 30, lambda: memories.search(question), partial(read_all, place))
        text = (place / memories.store.path("mem-0")).read_bytes()
        label = "save, with two citations : a bare write"
        yield compare(
            label,
            20,  # of which two are asking git whether it ignores what is cited
            lambda: memories.save(
                first.subject, f"{first.content} ", first.citations, memory_id="mem-0"
            ),
            lambda: replace_atomic(place / "bare.md", text, 0o644),
        )
        label = "verify one, with two citations : reading its three files"
        cites = [place / each.path for each in first.citations]
        own = place / memories.store.path("mem-0")
        yield compare(
            label,
            40,  # a tenth of a millisecond is the yardstick
            lambda: as_new(place).verify("mem-0", update=False),
            lambda: [each.read_text(encoding="utf-8") for each in (own, *cites)],
        )
        label = f"verify all {count:,} : reading all files once"
        yield compare(
            label,
            8,  # of which two are looking for secrets, 0.1 s for a megabyte
            lambda: as_new(place).verify_all(),
            lambda: (
                as_new(place).list_memories(),
                [each.read_text() for each in place.glob("*.py")],
            ),
        )
    with tempfile.TemporaryDirectory(prefix="aiaml-bench-") as directory:
        place = Path(directory).resolve()
        filled(place, 100)
        label = "depth 3 among 100 memories : reading them"
        yield compare(
            label,
            2,
            lambda: as_new(place).traverse("mem-0", 3),
            lambda: as_new(place).list_memories(),
        )


def main() -> None:
    """Print a table."""
    words = [each for each in sys.argv[1:] if not each.startswith("--")]
    if "--accuracy" in sys.argv[1:]:
        show_accuracy(words, "--json" in sys.argv[1:])
        return
    measured = times(1 if "--quick" in sys.argv[1:] else 7)
    if "--json" in sys.argv[1:]:
        print(json.dumps([each._asdict() for each in measured]))
        return
    print("| | limit | |\n|---|---|--:|")
    for what, limit, ours, bare in measured:
        figures = judged(beside(ours, bare), ours, limit * bare)
        print(f"| {what} | {limit:g} x | {figures} |", flush=True)


if __name__ == "__main__":
    main()
