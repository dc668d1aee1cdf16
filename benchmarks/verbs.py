"""Measure the start of every verb: python benchmarks/verbs.py [--rounds 9].

Processor time of each, with all that it starts (git), over that of `python -c pass`, by turns in
one run; the median of the rounds. On six memories in git; bytecode is compiled before. `remember`
answers before git takes what is new, so it is measured without sync as well: that is its answer.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median

OURS = (sys.executable, "-c", "import sys; sys.argv[0] = 'aiaml'; from aiaml_server.cli import main; sys.exit(main())")  # fmt: skip  # noqa: E501
PASS = (sys.executable, "-c", "pass")
LINES = (
    "--version", "--help", "help list", "list", "show ID", "show ID --raw", "search dinner",
    "stats", "history ID", "log", "restore ID --help", "status",
    "export --to -", "remember x -u y -t z", "remember x -u y -t z, without sync",
    "install --list", "doctor files", "list --help", "import --help",
    "remember --help", "web --help", "rm",
)  # fmt: skip


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as home:
        env = _environment(Path(home))
        for number in range(6):
            _run([*OURS, "remember", f"Dinner {number}", "-t", "food"], env)
        first = json.loads(_run([*OURS, "list", "--json"], env))[0]["id"]
        lines = {line: _line(line.replace("ID", first), env) for line in LINES}
        for words, its in lines.values():  # compiles what it imports
            _run(words, its)
        ratios: dict[str, list[float]] = {line: [] for line in lines}
        for _ in range(rounds):
            for line, (words, its) in lines.items():
                yardstick = min(_seconds(PASS, env) for _ in range(2))
                ratios[line].append(_seconds(words, its) / yardstick)
    print("| verb | : `python -c pass` |\n|---|---|")
    for line, found in ratios.items():
        print(f"| `{line}` | {median(found):.1f} x |")


def _line(line: str, env: Mapping[str, str]) -> tuple[list[str], Mapping[str, str]]:
    """Return the words and the environment of a line."""
    words, _, without = line.partition(", without ")
    more = {"AIAML_ENABLE_SYNC": "false"} if without else {}
    return [*OURS, *words.split()], {**env, **more}


def _environment(home: Path) -> dict[str, str]:
    outer = {k: v for k, v in os.environ.items() if not k.startswith(("AIAML_", "PYTHON"))}
    return {
        **outer,
        "HOME": str(home),
        "AIAML_MEMORY_DIR": str(home / "memory"),
        "PYTHONPYCACHEPREFIX": str(home / "bytecode"),
        "GIT_CONFIG_GLOBAL": os.devnull,
    }


def _run(words: list[str], env: Mapping[str, str]) -> bytes:
    return subprocess.run(
        words, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False
    ).stdout


def _seconds(words: list[str] | tuple[str, ...], env: Mapping[str, str]) -> float:
    """Return the processor time of a process and of those that it started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _run(list(words), env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
