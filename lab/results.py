"""Results as JSON lines, a file for each server: a line for each round, written when it ends."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

USUAL = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Round:
    """One round of one measure.

    Attributes:
        server: the adapter's name.
        version: of the server.
        measure: the module's name.
        number: which round, from 0.
        seed: that all its chance comes from.
        figures: what was found; `not measured` or `broke` says why nothing was.
        seconds: how long it took.
        date: of its end.
        load: of the machine then, over a minute.
        machine: what it ran on.
        command: that repeats it.
        processor: seconds of processor of all its programs; 0 where nobody counted.
    """

    server: str
    version: str
    measure: str
    number: int
    seed: int
    figures: dict[str, Any]
    seconds: float
    date: str
    load: float
    machine: str
    command: str
    processor: float = 0.0

    @property
    def key(self) -> tuple[str, str, str, int, int]:
        """Return what makes two rounds the same."""
        return self.server, self.version, self.measure, self.number, self.seed


def read(folder: Path) -> list[Round]:
    """Return all rounds in a folder; a line that was cut off is passed over."""
    return [each for path in sorted(folder.glob("*.jsonl")) for each in _lines(path)]


def _lines(path: Path) -> Iterator[Round]:
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            yield Round(**json.loads(line))
        except (ValueError, TypeError):
            continue


def add(folder: Path, each: Round) -> None:
    """Put a round at the end of its server's file, on the disk before this returns."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{each.server}.jsonl"
    torn = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
    with path.open("a", encoding="utf-8") as stream:
        stream.write("\n" * torn + json.dumps(asdict(each), ensure_ascii=False) + "\n")
        stream.flush()
        os.fsync(stream.fileno())


def machine(folder: Path) -> str:
    """Say what this runs on: processors, system, file system of `folder`, Python, Node."""
    command = ["stat", "--file-system", "--format=%T", str(folder)]
    kind = _said(command).replace("ext2/ext3", "ext4")
    node = _said(["node", "--version"])
    system = f"{platform.system()} {platform.release().split('-')[0]}"
    python = f"Python {platform.python_version()}"
    return ", ".join(
        each
        for each in (f"{os.cpu_count()} CPUs", system, kind, python, node and f"Node {node}")
        if each
    )


def _said(words: list[str]) -> str:
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""
