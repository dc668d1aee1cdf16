"""How often a verdict of `citations` is right: python benchmarks/verdicts.py [REPOSITORY:A:B …].

The histories are labelled by git: of the lines of commit A, `git blame --reverse -w -M A..B` says
which still exist at B, and where. Lines of at least ten characters are cited as a memory saved at A
would cite them, at most one in five of them repeated in its file, and verified at B. Without
arguments, seven packages of the Python index are fetched in several versions. Each version is a
commit, and the last one is compared with the one before and with the first one.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import NamedTuple

from aiaml_server.toolsets.citations import Citation
from aiaml_server.toolsets.citations.citing import build_citation
from aiaml_server.toolsets.citations.sources import SourceTree
from aiaml_server.toolsets.citations.verify import (
    AMBIGUOUS,
    REFORMATTED,
    CheckedCitation,
    check_citation,
)

VERSIONS = {
    "click": ("7.0", "7.1.2", "8.0.4", "8.1.3", "8.1.8"),
    "requests": ("2.18.4", "2.25.1", "2.28.2", "2.31.0", "2.32.3"),
    "httpx": ("0.18.2", "0.21.3", "0.23.3", "0.25.2", "0.27.2"),
    "starlette": ("0.14.2", "0.20.4", "0.27.0", "0.37.2"),
    "attrs": ("19.3.0", "20.3.0", "21.4.0", "22.2.0", "23.2.0"),
    "rich": ("9.13.0", "10.16.2", "12.6.0", "13.3.5", "13.9.4"),
    "urllib3": ("1.24.3", "1.26.18", "2.0.7", "2.2.3"),
}
AUTHOR = ("-c", "user.name=Benchmark", "-c", "user.email=benchmark@example.org")
SUFFIXES = {".py", ".go", ".ts", ".tsx"}
LINES_OF_A_HISTORY = 600
LINES_OF_A_FILE = 40
SHORTEST = 10  # characters
NAMES = ("lines", "gone", "stale recall", "false stale", "ambiguous", "right line")


class Verdict(NamedTuple):
    """A line's verdict, and where git says that it is: `path`, line number; None for gone."""

    checked: CheckedCitation
    truth: tuple[str, int] | None


def git(repository: Path, *words: str) -> str:
    """Return what git prints."""
    command = ["git", "-C", str(repository), *words]
    done = subprocess.run(command, capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


def surviving(repository: Path, first: str, last: str, path: str) -> dict[int, tuple[str, int]]:
    """Map each line of a file that exists at the last commit to its path and number there."""
    last = git(repository, "rev-parse", f"{last}^{{commit}}").strip()
    words = ("blame", "--reverse", "-w", "-M", "-p", f"{first}..{last}", "--", path)
    places: dict[int, tuple[str, int]] = {}  # the last commit that has a line, and the number there
    names: dict[str, str] = {}
    commit = ""
    for line in git(repository, *words).split("\n"):
        parts = line.split(" ")
        if len(parts) >= 3 and len(parts[0]) == 40 and parts[1].isdigit():
            commit = parts[0]
            places[int(parts[2])] = (commit, int(parts[1]))
        elif line.startswith("filename "):
            names[commit] = line.removeprefix("filename ")
    return {
        number: (names[last], there) for number, (newest, there) in places.items() if newest == last
    }


def cite(old: Path, path: str, chance: random.Random) -> list[Citation]:
    """Return citations of some lines of a file, as `memory_save` makes them."""
    tree = SourceTree(old)
    lines = tree.get(path).normalized
    long_enough = [number for number, line in enumerate(lines, 1) if len(line) >= SHORTEST]
    counts = Counter(lines)
    chosen = chance.sample(long_enough, min(LINES_OF_A_FILE, len(long_enough)))
    unique = [number for number in chosen if counts[lines[number - 1]] == 1]
    repeated = [number for number in chosen if counts[lines[number - 1]] > 1]
    numbers = unique + repeated[: len(unique) // 4]
    return [build_citation(Citation(path, number), tree)[0] for number in numbers]


def check_out(repository: Path, commit: str, place: Path) -> None:
    """Write the files of a commit into a directory, and tell git of them."""
    words = ["git", "-C", str(repository), "archive", commit]
    archive = subprocess.run(words, capture_output=True, check=True).stdout
    place.mkdir()
    subprocess.run(["tar", "x", "-C", str(place)], input=archive, check=True)
    git(place, "init", "--quiet")
    git(place, "add", "--all", "--force")


def check_history(repository: Path, first: str, last: str) -> tuple[list[Verdict], float]:
    """Return the verdicts on lines of a history, and the seconds of processor that they took."""
    chance = random.Random(1)
    found: list[Verdict] = []
    spent = 0.0
    with tempfile.TemporaryDirectory(prefix="aiaml-bench-") as directory:
        old, new = Path(directory) / "old", Path(directory) / "new"
        check_out(repository, first, old)
        check_out(repository, last, new)
        files = [file for file in old.rglob("*") if file.suffix in SUFFIXES and file.is_file()]
        paths = sorted(file.relative_to(old).as_posix() for file in files)
        chance.shuffle(paths)
        tree = SourceTree(new)
        for path in paths:
            if len(found) >= LINES_OF_A_HISTORY:
                break
            citations = cite(old, path, chance)
            truth = surviving(repository, first, last, path)
            begun = process_time()
            checked = [check_citation(citation, tree) for citation in citations]
            spent += process_time() - begun
            found += [Verdict(row, truth.get(row.citation.line or 0)) for row in checked]
    return found, spent


def table_row(name: str, found: list[Verdict], seconds: float) -> str:
    """Return a line of the table: shares of the lines that are gone, or still exist."""
    gone = [verdict.checked for verdict in found if verdict.truth is None]
    alive = [verdict for verdict in found if verdict.truth is not None]
    placed = [verdict for verdict in alive if len(verdict.checked.places) == 1]
    figures = (
        sum(row.is_stale or row.verdict == REFORMATTED for row in gone) / len(gone),
        sum(verdict.checked.is_stale for verdict in alive) / len(alive),
        sum(verdict.checked.verdict == AMBIGUOUS for verdict in found) / len(found),
        sum(verdict.checked.places[0] == verdict.truth for verdict in placed) / len(placed),
    )
    cells = [name, str(len(found)), str(len(gone)), *(f"{figure:.4f}" for figure in figures)]
    return f"| {' | '.join(cells)} | {1000 * seconds / len(found):.2f} |"


def package(place: Path, name: str, versions: tuple[str, ...]) -> Path:
    """Make a history of a package's versions, fetched from the Python index."""
    repository = place / name
    repository.mkdir()
    git(repository, "init", "--quiet")
    uv = shutil.which("uv") or Path(sys.executable).with_name("uv")
    for version in versions:
        for path in repository.iterdir():
            if path.name != ".git":
                subprocess.run(["rm", "-r", str(path)], check=True)
        words = [str(uv), "pip", "install", "--quiet", "--no-deps", "--target", str(repository)]
        subprocess.run([*words, f"{name}=={version}"], check=True)
        git(repository, "add", "--all")
        git(repository, *AUTHOR, "commit", "--quiet", "--message", version)
    return repository


def histories(place: Path, given: list[str]) -> Iterator[tuple[str, Path, str, str]]:
    """Yield histories: a name, a repository, and two commits."""
    for word in given:
        repository, first, last = word.rsplit(":", 2)
        yield Path(repository).resolve().name, Path(repository), first, last
    for name, versions in {} if given else VERSIONS.items():
        repository_of_package = package(place, name, versions)
        for back in (1, len(versions) - 1):
            label = f"{name} {versions[-1 - back]} to {versions[-1]}"
            yield label, repository_of_package, f"HEAD~{back}", "HEAD"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("histories", nargs="*", metavar="REPOSITORY:A:B")
    given = parser.parse_args().histories
    every: list[Verdict] = []
    total = 0.0
    print(f"| history | {' | '.join(NAMES)} | ms each |\n|---|{'--:|' * (len(NAMES) + 1)}")
    with tempfile.TemporaryDirectory(prefix="aiaml-bench-") as place:
        for name, repository, first, last in histories(Path(place), given):
            found, seconds = check_history(repository, first, last)
            every += found
            total += seconds
            print(table_row(name, found, seconds), flush=True)
    print(table_row("all", every, total))


if __name__ == "__main__":
    main()
