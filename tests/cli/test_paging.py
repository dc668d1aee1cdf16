"""Long answers in a pager: the person's own, on a terminal alone, and no error if left early."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from paths import TESTS

pty = pytest.importorskip("pty", reason="there are no such terminals here")

STORE = (TESTS / "transcripts") / "store"
SCRIPT = "import sys; from aiaml_server.cli import main; sys.argv[0] = 'aiaml'; sys.exit(main())"


def shown(home: Path, *words: str, **variables: str) -> tuple[int, str]:
    """Run a verb on a terminal; return its exit code and what the person sees."""
    if not (home / "store").exists():
        shutil.copytree(STORE, home / "store")
    outer = {name: value for name, value in os.environ.items() if "PAGER" not in name}
    own = {"HOME": str(home), "AIAML_MEMORY_DIR": str(home / "store"), "TERM": "xterm"}
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *words],
        env={**outer, **own, "AIAML_ENABLE_SYNC": "false", **variables},
        stdin=theirs, stdout=theirs, stderr=theirs, cwd=home,
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(ours, 65536):
            seen += part
    except OSError:  # how Linux tells the end
        pass
    os.close(ours)
    return process.wait(60), seen.decode()


def pager(home: Path, name: str, script: str) -> str:
    """Make a pager that says that it is one."""
    (home / name).write_text(f"#!/bin/sh\necho paged by {name}\n{script}\n", encoding="utf-8")
    (home / name).chmod(0o755)
    return str(home / name)


def test_an_answer_goes_through_the_person_s_pager(tmp_path: Path) -> None:
    """With colours; AIAML_PAGER before PAGER; not where it is off, nor for a short verb."""
    mine, other = pager(tmp_path, "mine", "cat"), pager(tmp_path, "other", "cat")
    code, text = shown(tmp_path, "list", PAGER=other, AIAML_PAGER=mine)
    assert code == 0
    assert "paged by mine" in text
    assert "\x1b[1m" in text
    assert "paged by other" in shown(tmp_path, "list", "--all", PAGER=other)[1]
    for words, chosen in (
        (["--no-pager", "list"], mine),
        (["list"], ""),
        (["list"], "cat"),
        (["list"], "nothing-of-this-name"),
        (["list"], "./mine"),  # never from the current directory
        (["status"], mine),
    ):
        code, text = shown(tmp_path, *words, PAGER=chosen)
        assert (code, "paged" in text) == (0, False), words
    assert "paged" not in shown(tmp_path, "list", PAGER=mine, TERM="dumb")[1]


def test_a_signal_ends_the_pager_too(tmp_path: Path) -> None:
    """`kill` ends the verb that waits for its reader, and the pager with it."""
    slow = pager(tmp_path, "slow", "cat >/dev/null; sleep 0.5; kill $PPID; exec sleep 50")
    code, _ = shown(tmp_path, "list", PAGER=slow)
    assert code == 128 + signal.SIGTERM


def test_leaving_the_pager_early_is_no_error(tmp_path: Path) -> None:
    """The rest of the answer goes nowhere; what failed before still has its exit code."""
    (tmp_path / "store" / "files").mkdir(parents=True)
    for number in range(2000):
        name = f"20260101_000000_{number:08x}.md"
        (tmp_path / "store" / "files" / name).write_text(
            f"---\nid: {number:08x}\ntimestamp: 2026-01-01T00:00:00+00:00\nagent: a\nuser: u\n"
            f"topics: [t]\n---\n\n{'word ' * 20}\n"
        )
    early = pager(tmp_path, "early", "head -n 1 >/dev/null")
    assert shown(tmp_path, "list", "--all", PAGER=early) == (0, "paged by early\r\n")
    code, text = shown(tmp_path, "show", "nobody", PAGER=pager(tmp_path, "mine", "cat"))
    assert code == 1
    assert "no memory has the id nobody" in text
