"""What an import takes beside durable writes: python benchmarks/importing.py [notes].

A vault of notes in folders of 500 is imported as a person would. Beside it, the same bytes are put
on the same disk in batches of 256, each file synced by one of eight threads before it is renamed.
Then another import is interrupted half way, and made again. TMPDIR says on which disk.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

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


def bare(vault: Path, target: Path) -> float:
    """Return the seconds that durable writes in batches take."""
    began = time.perf_counter()
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
    return time.perf_counter() - began


def start(base: Path, vault: Path) -> subprocess.Popen[str]:
    """Begin to import a vault."""
    environ = {**os.environ, "AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "false"}
    words = [*PROGRAM, "import", str(vault), "--yes"]
    return subprocess.Popen(
        words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def ours(base: Path, vault: Path) -> float:
    """Return the seconds that a whole import takes, its preview included."""
    began = time.perf_counter()
    with start(base, vault) as process:
        process.communicate()
    assert process.returncode == 0
    return time.perf_counter() - began


def main(number: int) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory(prefix="aiaml-bench-") as directory:
        here = Path(directory)
        make_vault(here / "vault", number)
        write, whole = bare(here / "vault", here / "bare"), ours(here / "base", here / "vault")
        print(f"{number:,} notes: {whole:.1f} : {write:.1f} s = {whole / write:.2f} x", flush=True)
        os.sync()
        with start(here / "again", here / "vault") as process:
            time.sleep(whole * 0.7)
            process.send_signal(signal.SIGINT)
            said = process.communicate()[0]
        print(f"interrupted: {said.strip().splitlines()[-1]}")
        ours(here / "again", here / "vault")
        texts = [path.read_text("utf-8") for path in (here / "again" / "files").glob("*.md")]
        headings = {line for text in texts for line in text.splitlines() if line[:2] == "# "}
        print(f"then {len(texts):,} memories with {len(headings):,} different headings")


if __name__ == "__main__":
    main(int((sys.argv[1:] or ["100000"])[0]))
