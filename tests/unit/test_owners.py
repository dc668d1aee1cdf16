"""What belongs to another user is not taken for the person's, though it is found upwards."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from aiaml_server.errors import InvalidSetting
from aiaml_server.identity import SAFE_DIRECTORIES as SAFE
from aiaml_server.toolsets.owners import foreign_owner

ADA, EVE = 20_001, 20_002
SAID = "what eve wrote"
as_root = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root on Linux can be two others here"
)
ENTRY = {"id": "a1", "content": SAID, "created_at": "2026-01-01T00:00:00Z"}
MEMORY = f"---\nid: mem-eve-1a2b3c4d\nsubject: {SAID}\n---\n\n{SAID}\n"
LOG = f"# Agent Session Log\n\n- Agent Name: eve\n\n## Notes\n\n- {SAID}\n"


def owned(top: Path, uid: int) -> None:
    """Give a directory and all in it to a user."""
    for path in (top, *top.rglob("*")):
        os.chown(path, uid, uid, follow_symlinks=False)


@pytest.fixture
def eve() -> Iterator[Path]:
    """A directory of Eve's in which each toolset finds something, and Ada's home beside it."""
    top = Path(tempfile.mkdtemp(dir="/tmp"))  # where both can go
    top.chmod(0o755)
    (top / "ada").mkdir()
    place = top / "eve"
    for path, text in {
        ".git/HEAD": "ref: refs/heads/main\n",
        ".memory-config.yaml": "search: {default_limit: 5}\n",
        "memories/mem-eve-1a2b3c4d.md": MEMORY,
        ".github/agent-memory/eve/_summary.md": f"# Eve\n\n## Notes\n\n- {SAID}\n",
        ".github/agent-memory/eve/logs/2026-01-01.md": LOG,
        "work/.aiaml-compartments.json": json.dumps(
            {"format": 1, "sessions": {"default": {"session": [ENTRY]}}}
        ),
    }.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text, encoding="utf-8")
    owned(place, EVE)
    owned(top / "ada", ADA)
    (place / "work").chmod(0o777)
    yield place
    shutil.rmtree(top)


ANOTHER = """
import ctypes, os, sys
uid = int(sys.argv[1])
if uid:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    read = 1 << 2  # CAP_DAC_READ_SEARCH: this Python may lie where that user cannot go
    assert libc.capset(header, (ctypes.c_uint32 * 6)(read, read, 0, 0, 0, 0)) == 0
from aiaml_server.cli import main
sys.exit(main(sys.argv[2:]))
"""


def run(words: Sequence[str], where: Path, uid: int, given: str = "", **environ: str) -> str:
    """Run the command line as a user; return all that it prints."""
    home = next(each for each in where.parents if (each / "ada").is_dir()) / "ada"
    there = {**os.environ, "HOME": str(home), "AIAML_MEMORY_DIR": str(home / "base"), **environ}
    done = subprocess.run(
        [sys.executable, "-c", ANOTHER, str(uid), *words],
        cwd=where, env=there, input=given, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


FOUND = {
    "citations": ("citations", "list"),
    "compartments": ("compartments", "show"),
}


@pytest.mark.gate_cases(5)
@as_root
@pytest.mark.parametrize("uid", [ADA, 0])
@pytest.mark.parametrize("words", FOUND.values(), ids=FOUND)
def test_owner_is_another(eve: Path, words: tuple[str, ...], uid: int) -> None:
    """The sentence says whose it is, and the setting that it names takes it."""
    work = eve / "work"
    top = work if words[0] == "compartments" else eve
    output = " ".join(run(words, work, uid).split())
    assert SAID not in output
    assert f"belongs to the user {EVE}" in output
    assert f"run `aiaml trust {top}`" in output
    assert SAID not in run(words, work, uid, AIAML_SAFE_DIRECTORIES=str(eve.parent))
    assert SAID in run(words, work, uid, AIAML_SAFE_DIRECTORIES=f"/nowhere:{top}")
    assert SAID in run(words, work, uid, AIAML_SAFE_DIRECTORIES="*")
    state = {"XDG_STATE_HOME": str(eve.parent / "ada")}
    done = run(("trust", str(top)), work, uid, **state)
    if uid == ADA:
        assert f"Trusted {top}" in done and SAID in run(words, work, uid, **state)
    else:
        assert "ada belongs to another user; set XDG_STATE_HOME" in done


@as_root
def test_owner_of_what_is_named_is_not_asked(eve: Path) -> None:
    """A setting or an option that names it is the person's word."""
    work = eve / "work"
    assert SAID in run(FOUND["citations"], work, ADA, AIAML_CITATIONS_REPO=str(eve))
    file = str(work / ".aiaml-compartments.json")
    assert SAID in run(FOUND["compartments"], work, ADA, AIAML_COMPARTMENTS_FILE=file)
    words = ("compartments", "--file", ".aiaml-compartments.json", "show")
    assert SAID in run(words, work, ADA)


@as_root
def test_owner_who_became_root_is_known(eve: Path) -> None:
    """By sudo, which tells who; to nobody else does that variable say anything."""
    words, work = FOUND["citations"], eve / "work"
    assert SAID in run(words, work, 0, SUDO_UID=str(EVE))
    assert SAID not in run(words, work, 0, SUDO_UID=str(ADA))
    assert SAID not in run(words, work, ADA, SUDO_UID=str(EVE))


@as_root
def test_owner_root_is_trusted(eve: Path) -> None:
    """Who is root can do anything."""
    owned(eve, 0)
    assert SAID in run(FOUND["citations"], eve / "work", ADA)


@pytest.mark.parametrize("value", ["here", "~/x:here", "./x"])
def test_safe_directories_are_absolute(value: str) -> None:
    """One that is not is named."""
    with pytest.raises(
        InvalidSetting, match=r"AIAML_SAFE_DIRECTORIES holds .* absolute path, or \*"
    ):
        SAFE.value({SAFE.name: value.replace(":", os.pathsep)})


def test_owner_is_oneself(tmp_path: Path) -> None:
    """Also where what is opened is not there yet."""
    assert foreign_owner(tmp_path, [".memory", "a/b"], {}) == ""
