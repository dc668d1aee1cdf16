"""The Tab key: what is offered, in one process of each shell's kind, and that it is silent."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from aiaml_server.cli import app, completion
from aiaml_server.format.filters import FIELDS
from paths import TESTS

STORE = (TESTS / "transcripts") / "store"
SCRIPT = "import sys; from aiaml_server.cli import main; sys.argv[:] = ['aiaml']; main()"
IDS = ["4e5f6a7b", "3d4e5f6a", "2c3d4e5f", "1b2c3d4e", "0a1b2c3d"]
Tab = Callable[[str], list[str]]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy the store of the transcripts."""
    shutil.copytree(STORE, tmp_path / "store")
    monkeypatch.setenv("AIAML_MEMORY_DIR", str(tmp_path / "store"))
    monkeypatch.setenv("AIAML_ENABLE_SYNC", "false")
    return tmp_path / "store"


@pytest.fixture
def tab(store: Path) -> Tab:
    """Return what offers words for a line; what stands behind its last blank is completed."""
    assert store.is_dir()

    def offered(line: str) -> list[str]:
        words = line.split(" ")
        kind = completion.PowerShell(app.aiaml, {}, "aiaml", "_AIAML_COMPLETE")
        return [item.value for item in kind.get_completions(words[:-1], words[-1])]

    return offered


def test_words_are_completed_by_what_they_mean(tab: Tab) -> None:
    """Ids are the newest first, names the most frequent; what was given is not offered again."""
    assert tab("show ") == IDS
    assert tab("edit 1") == ["1b2c3d4e"]
    assert tab(f"forget {IDS[0]} ") == tab(f"forget --yes {IDS[0]} ") == IDS[1:]
    assert tab("list --agent ") == ["claude", "cursor", "gemini"]
    assert tab("list --agent cl") == ["claude"]
    assert tab("export --user m") == ["marco"]
    assert "food" in tab("remember hello -t fo")
    assert tab("export --format z") == ["zip"]
    assert tab("log --since 7") == ["7d"]
    assert tab("install cla") == ["claude-desktop", "claude-code"]
    assert tab("doctor dis") == ["disk"]
    assert tab("help sta") == ["stats", "status"]
    assert tab("sta") == ["stats", "status"]
    assert tab("list --li") == ["--limit"]
    assert tab("--toolset s") == ["sessions", "semantic"]


def test_fields_are_completed_within_a_search(tab: Tab) -> None:
    """Each with what stands behind its colon, also where a shell takes the colon for a word."""
    assert tab("list agent:") == ["agent:claude", "agent:cursor", "agent:gemini"]
    assert tab("list topic:food agent:CL") == ["agent:claude"]
    assert tab("search dinner user:m") == ["user:marco"]
    assert tab("search dinner ") == tab("search agent: ") == []
    assert tab("search ag") == ["agent:claude", "agent:cursor", "agent:gemini"]
    assert "since:7d" in tab("list since:")
    assert {each.partition(":")[0] for each in tab("list ")} == {*FIELDS}
    assert tab("list ")[0].startswith("agent:")
    assert tab("forget agent:cl") == ["agent:claude"]
    assert tab("list agent :") == ["claude", "cursor", "gemini"]
    assert tab("list agent : cl") == ["claude"]
    assert tab("list nothing:x") == tab("list : x") == tab("list nothing : x") == []


def test_what_cannot_be_known_is_no_error(tab: Tab, store: Path) -> None:
    """Nothing is offered for a verb that is not there, or from a directory that cannot be read."""
    assert tab("shwo ") == tab("show zz") == tab("restore nobody --at ") == []
    shutil.rmtree(store)
    store.write_text("a file", encoding="utf-8")
    assert tab("show ") == tab("list --topic ") == tab("history ") == []


def test_ids_of_damaged_and_foreign_files_are_offered(tab: Tab, store: Path) -> None:
    """They stand in the files' names; whoever completes them may be about to mend them."""
    (store / "files" / "20270101_000000_ffffffff.md").write_bytes(b"\xff\xfe no memory")
    (store / "files" / "notes.md").write_text("no memory", encoding="utf-8")
    assert tab("show ff") == ["ffffffff"]
    assert tab("edit no") == ["notes"]


def test_forgotten_ids_and_revisions(tab: Tab, monkeypatch: pytest.MonkeyPatch) -> None:
    """What git remembers is offered to the verbs that bring it back."""
    monkeypatch.setenv("AIAML_ENABLE_SYNC", "true")
    assert app.run(["forget", "--yes", IDS[1]]) == 0
    assert IDS[1] not in tab("show ")
    assert tab("restore 3") == tab("history 3") == [IDS[1]]
    (revision,) = tab(f"restore {IDS[1]} --at ")
    assert len(revision) == 8


@pytest.mark.usefixtures("store")
@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash here")
def test_bash_completes_ids_and_files(tmp_path: Path) -> None:
    """The very function that bash calls at the Tab key; the file is bash's own to complete."""
    script = """
        PATH=$1:$PATH; eval "$(aiaml completion bash)"; compopt() { printf "%s " option "$@"; }
        for line in "show 4" "export --to x" "nonsense "; do
            COMP_WORDS=(aiaml ${line% *} "${line##* }"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            COMPREPLY=(); _aiaml_completion aiaml; echo "${COMPREPLY[@]}"
        done
    """
    done = subprocess.run(
        ["bash", "-c", script, "bash", str(Path(sys.executable).parent)],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout.split("\n"), done.stderr) == (
        ["4e5f6a7b", "option -o default ", "", ""],
        "",
    )


HOSTILE = ["$(touch OWNED)", "`touch OWNED`", "a;touch OWNED", "it's", "fast food", "*", "~", "!!"]


def planted(store: Path, number: int, name: str) -> None:
    """Store a memory that carries a name as its id, in its file's name, as user and as topic."""
    said = json.dumps(name)
    text = f"id: {said}\ntimestamp: 2026-01-01T00:00:00+00:00\nagent: a\nuser: {said}\n"
    path = store / "files" / f"20260101_0000{number:02}_{name}.md"
    path.write_text(f"---\n{text}topics: [{said}]\n---\n\ntext\n", encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash here")
def test_what_bash_completes_is_one_word_whoever_named_it(store: Path, tmp_path: Path) -> None:
    """It goes onto the person's line as it is: a name must not run there, nor become two."""
    for number, name in enumerate(HOSTILE):
        planted(store, number, name)
    script = """
        PATH=$1:$PATH; eval "$(aiaml completion bash)"; shift
        COMP_WORDS=(aiaml "$@" ""); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        COMPREPLY=(); _aiaml_completion aiaml
        for each in "${COMPREPLY[@]}"; do eval "set -- $each"; printf "%s %s\\n" $# "$1"; done
    """
    for words in (["show"], ["list", "--user"], ["list", "--topic"]):
        done = subprocess.run(
            ["bash", "-c", script, "bash", str(Path(sys.executable).parent), *words],
            env={**os.environ, "HOME": str(tmp_path)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert {f"1 {name}" for name in HOSTILE} <= set(done.stdout.splitlines()), done
        assert done.stderr == ""
    assert not (tmp_path / "OWNED").exists()


def test_powershell_gets_names_in_quotes() -> None:
    """Where it sees more than a word it is a string, with its quotes twice."""
    kind = completion.PowerShell(app.aiaml, {}, "aiaml", "_AIAML_COMPLETE")
    values = ["a1b2c3d4", "fast food", "$(calc)", "it's", "it\u2019;calc;", "@x"]
    assert [kind.format_completion(completion.Item(each)).split("\t")[0] for each in values] == [
        "a1b2c3d4", "'fast food'", "'$(calc)'", "'it''s'", "'it\u2019\u2019;calc;'", "'@x'",
    ]  # fmt: skip


def test_what_is_no_word_is_not_offered(tab: Tab, store: Path) -> None:
    """An option that a file's name plants, and a line's end that begins another offer."""
    users = tab("list --user ")
    for number, name in enumerate(["--everywhere", "x\nplain,`id`", "a\tb", "\u202egnp"]):
        with suppress(OSError):  # Windows has no such names
            planted(store, number, name)
    assert [each for each in tab("show ") if each not in IDS] == []
    assert tab("list --user ") == users
    assert "--everywhere" not in tab("show --")


def test_the_tab_key_says_nothing_on_stderr(store: Path, tmp_path: Path) -> None:
    """A traceback or a sentence would stand in the middle of a person's line."""
    for words, setting in (("aiaml show ", "relative"), ("aiaml nonsense --x ", str(store))):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={
                **os.environ, "HOME": str(tmp_path), "AIAML_MEMORY_DIR": setting,
                "_AIAML_COMPLETE": "fish_complete", "COMP_WORDS": words, "COMP_CWORD": "",
            },
            capture_output=True, check=True,
        )  # fmt: skip
        assert (done.stdout.strip(), done.stderr) == (b"", b"")
