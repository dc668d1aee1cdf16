"""What an import takes beside durable writes: python benchmarks/importing.py [notes].

A vault of notes in folders of 500 is imported as a person would. Beside it, the same bytes are put
on the same disk in batches of 256, each file synced by one of eight threads before it is renamed.
Then another import is interrupted somewhere, and made again. TMPDIR says on which disk. The
processor's time is given beside the clock's, which other programs disturb.
"""

from __future__ import annotations

import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

BATCH = 256
THREADS = 8
PROGRAM = (sys.executable, "-m", "aiaml_server")


def make_vault(vault: Path, number: int) -> None:
    """Write notes of 120 words with two tags each."""
    chance = random.Random(5)
    words = [f"w{chance.randrange(10**6):x}" for _ in range(20_000)]
    for each in range(number):
        folder = vault / f"folder{each // 500}"
        folder.mkdir(parents=True, exist_ok=True)
        body = " ".join(chance.choices(words, k=120))
        head = f"---\ntags: [a{each % 50}, b{each % 7}]\n---\n\n# Heading {each}\n\n"
        (folder / f"Note {each}.md").write_text(f"{head}{body}\n", encoding="utf-8")
    os.sync()


def write_durably(path: Path, data: bytes) -> None:
    """Write a file, and wait until the disk has it."""
    with path.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


class Taken(NamedTuple):
    """Seconds that something took."""

    clock: float
    processor: float


def now(whose: int) -> Taken:
    """Return both times up to now: of this process, or of those that it waited for."""
    used = resource.getrusage(whose)
    return Taken(time.perf_counter(), used.ru_utime + used.ru_stime)


def since(began: Taken, whose: int) -> Taken:
    """Return what was taken since then."""
    ended = now(whose)
    return Taken(ended.clock - began.clock, ended.processor - began.processor)


def bare(vault: Path, target: Path) -> Taken:
    """Return the seconds that durable writes in batches take."""
    began = now(resource.RUSAGE_SELF)
    target.mkdir()
    notes = sorted(vault.rglob("*.md"))
    with ThreadPoolExecutor(THREADS) as pool:
        for first in range(0, len(notes), BATCH):
            batch = {target / f".{note.name}": note.read_bytes() for note in notes[first:][:BATCH]}
            list(pool.map(write_durably, batch, batch.values()))
            for path in batch:
                path.rename(path.with_name(path.name[1:]))
            descriptor = os.open(target, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
    return since(began, resource.RUSAGE_SELF)


def start(base: Path, vault: Path) -> subprocess.Popen[str]:
    """Begin to import a vault."""
    environ = {**os.environ, "AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "false"}
    words = [*PROGRAM, "import", str(vault), "--yes"]
    return subprocess.Popen(
        words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def ours(base: Path, vault: Path) -> tuple[Taken, str]:
    """Return the seconds that a whole import takes, its preview included, and what it says."""
    began = now(resource.RUSAGE_CHILDREN)
    with start(base, vault) as process:
        said = process.communicate()[0]
    assert process.returncode == 0
    return since(began, resource.RUSAGE_CHILDREN), said


def main(number: int) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory(prefix="aiaml-bench-") as directory:
        here = Path(directory)
        make_vault(here / "vault", number)
        write = bare(here / "vault", here / "bare")
        whole, said = ours(here / "base", here / "vault")
        for what, mine, theirs in zip(Taken._fields, whole, write, strict=True):
            ratio = f"{mine:.1f} : {theirs:.1f} s = {mine / theirs:.2f} x"
            print(f"{number:,} notes, {what}: {ratio}", flush=True)
        told = [
            line for line in said.splitlines() if re.match(r"(Reading|Adding).*: [0-9,]+", line)
        ]
        print(f"{len(told)} lines of progress, such as {told[-1:]}")
        os.sync()
        share = random.uniform(0.3, 0.95)
        with start(here / "again", here / "vault") as process:
            time.sleep(whole.clock * share)
            process.send_signal(signal.SIGINT)
            said = process.communicate()[0]
        print(f"interrupted at {share:.0%}: {said.strip().splitlines()[-1]}", flush=True)
        ours(here / "again", here / "vault")
        texts = [path.read_text("utf-8") for path in (here / "again" / "files").glob("*.md")]
        headings = {line for text in texts for line in text.splitlines() if line[:2] == "# "}
        print(f"then {len(texts):,} memories with {len(headings):,} different headings")


if __name__ == "__main__":
    main(int((sys.argv[1:] or ["100000"])[0]))
