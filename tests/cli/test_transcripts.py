"""What a person types and sees: each transcript is run, and its output compared word for word.

A transcript in `transcripts/` holds prose, and commands with what they print:

    $ aiaml show 12345678
    aiaml: no memory has the id 12345678
    [1]

A line `[n]` is the exit code, where it is not 0. A line that ends with ` (glob)` may hold `*`.
Standard output and error come together, and no line of them ends with a blank. Each file starts in
an empty directory, where `$STORE` holds the memories of `store/` until a transcript changes them;
`$TOOLS/change.py` stands for an editor. `AIAML_TRANSCRIPTS=write` puts in what is printed, to be
read before it is believed.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from client import PYTHON
from paths import TESTS
from printed import inherited, printed
from semantic_model import FASTEMBED, WITHOUT

HERE = TESTS / "transcripts"
SHELL = shutil.which("sh")
COMMAND = re.compile(r"^\$ (.*)$")


def blocks(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Return each command with the lines that are to come; prose comes with no command."""
    start = 0
    while start < len(lines):
        end = start + 1
        if command := COMMAND.match(lines[start]):
            while end < len(lines) and lines[end].strip():
                end += 1
            yield command[1], lines[start + 1 : end]
        else:
            yield "", [lines[start]]
        start = end


def environment(home: Path) -> dict[str, str]:
    """Return what a person in an empty home on an 80-column terminal has."""
    programs = f"{Path(PYTHON).parent}{os.pathsep}{os.environ['PATH']}"
    return {
        **inherited("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"),
        "HOME": str(home),
        "USERPROFILE": str(home),
        "APPDATA": str(home / "AppData" / "Roaming"),
        "LOCALAPPDATA": str(home / "AppData" / "Local"),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "STORE": str(home / "store"),
        "TOOLS": str(HERE),
        "AIAML_MEMORY_DIR": str(home / "store"),
        "AIAML_ENABLE_SYNC": "false",
        "PATH": programs,
        "COLUMNS": "80",
        "FORCE_TTY": "1",
        "NO_COLOR": "1",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "PYTHONUTF8": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
    }


def said(command: str, home: Path) -> list[str]:
    """Run one line of shell and return what it printed, an empty line being a dot."""
    assert SHELL
    done = printed([SHELL, "-c", command], cwd=home, env=environment(home))
    text = done.stdout.replace(str(home), "~")
    lines = [line or "." for line in text.splitlines()]
    return [*lines, f"[{done.returncode}]"] if done.returncode else lines


def agree(expected: list[str], got: list[str]) -> bool:
    """Compare line by line."""
    return len(expected) == len(got) and all(map(same, expected, got))


def same(expected: str, got: str) -> bool:
    """Compare two lines."""
    if expected.endswith(" (glob)"):
        return fnmatch.fnmatchcase(got, expected.removesuffix(" (glob)").replace("[", "[[]"))
    return got in (expected, expected.replace("/", os.sep), expected.replace("/", os.sep * 2))


@pytest.mark.gate_cases(10)
@pytest.mark.skipif(not SHELL, reason="transcripts are lines of shell, and there is none here")
@pytest.mark.parametrize("path", sorted(HERE.glob("*.txt")), ids=lambda path: path.stem)
def test_a_transcript_is_what_happens(path: Path, tmp_path: Path) -> None:
    """Every line that a person sees is one that was meant, and none is padded."""
    if path.stem == "semantic" and not FASTEMBED:
        pytest.skip(WITHOUT)
    shutil.copytree(HERE / "store", tmp_path / "store")
    found: list[str] = []
    wrong = []
    for command, expected in blocks(path.read_text(encoding="utf-8").splitlines()):
        if not command:
            found += expected
            continue
        got = said(command, tmp_path)
        right = agree(expected, got)
        # What may vary stays so, whatever lines came beside it.
        vary = [old for old in expected if old.endswith(" (glob)")]
        kept = (next((old for old in vary if same(old, new)), new) for new in got)
        found += [f"$ {command}", *(expected if right else kept)]
        if not right:
            wrong.append("\n".join([f"$ {command}", "expected:", *expected, "printed:", *got]))
    if os.environ.get("AIAML_TRANSCRIPTS") == "write":
        path.write_text("\n".join(found) + "\n", encoding="utf-8")
    assert not wrong, "\n\n".join(wrong)
