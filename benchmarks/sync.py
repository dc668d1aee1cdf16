"""Measure sync beside git by hand: python benchmarks/sync.py [--sizes 0,1000,10000].

One new memory is committed; two computers exchange a memory through a bare repository; a new
computer gets all memories, beside `git clone`.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import corpus
from aiaml_server.settings import Settings
from aiaml_server.sync import sync_once
from speed import beside, in_turn, ms, timed

AUTHOR = ("-c", "user.name=Anna", "-c", "user.email=anna@example.org")


def git(place: Path, *words: str) -> None:
    """Run git as a person does."""
    subprocess.run(["git", *AUTHOR, *words], cwd=place, check=True, capture_output=True)


class Person:
    """A repository with the same memories, and a person who types git commands."""

    def __init__(self, place: Path, size: int) -> None:
        self._place = place
        corpus.generate(place, size)
        git(place, "init", "--quiet")
        self.commit()

    def commit(self) -> None:
        """Write a memory, add and commit it."""
        corpus.write(self._place, corpus.memories(1, Random().randrange(10**9)))
        git(self._place, "add", "files")
        git(self._place, "commit", "--quiet", "--message", "Add a memory")


def sync(base: Path, remote: Path) -> None:
    """Do one cycle."""
    status, _ = sync_once(Settings(base, remote=str(remote)))
    if status.problem:
        raise SystemExit(f"sync failed: {status.problem}")


def add_and_sync(base: Path, remote: Path) -> None:
    """Write a memory and do one cycle."""
    corpus.write(base, corpus.memories(1, Random().randrange(10**9)))
    sync(base, remote)


def measure(root: Path, size: int) -> Iterator[tuple[str, str]]:
    """Measure one size."""
    remote, here, there = root / "remote", root / "here", root / "there"
    git(root, "init", "--quiet", "--bare", str(remote))
    corpus.generate(here, size)
    yield "the first cycle, with a push", ms(timed(lambda: sync(here, remote)))
    joined = timed(lambda: sync(there, remote))
    cloned = timed(lambda: git(root, "clone", "--quiet", str(remote), str(root / "clone")))
    yield "a new computer gets all memories : `git clone`", beside(joined, cloned)
    person = Person(root / "person", size)
    ours, by_hand = in_turn(5, lambda: add_and_sync(here, remote), person.commit)
    text = "a new memory committed and pushed : `git add` and `git commit`"
    yield text, beside(ours, by_hand)
    yield "a cycle without changes", ms(in_turn(5, lambda: sync(here, remote))[0])
    arrived = []
    for _ in range(5):
        add_and_sync(here, remote)
        arrived.append(timed(lambda: sync(there, remote)))
    yield "a cycle that receives a memory", ms(sorted(arrived)[2])
    names = [{path.name for path in (base / "files").iterdir()} for base in (here, there)]
    if names[0] != names[1]:
        raise SystemExit("the two computers do not have the same files")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--sizes", default="0,1000,10000", help="numbers of memories")
    for size in map(int, parser.parse_args().sizes.split(",")):
        print(f"\n| {size:,} memories | |\n|---|--:|", flush=True)
        with tempfile.TemporaryDirectory(prefix="aiaml-sync-") as root:
            for row in measure(Path(root).resolve(), size):
                print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
