"""What agents asked for, as `aiaml uses` tells it: written behind the answers, and nowhere else."""

from __future__ import annotations

import errno
import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aiaml_server import files
from aiaml_server.errors import NotOurs
from aiaml_server.storage import uses
from aiaml_server.storage.derived import folder
from aiaml_server.storage.uses import Use, Uses
from client import NOTE, PYTHON, SERVER, Client
from printed import completed, inherited


def aiaml(base: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a verb on a base."""
    settings = {"AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "false", "PYTHONUTF8": "1"}
    return completed(
        [PYTHON, "-m", "aiaml_server", *words], env={**inherited(), **settings, **environ}
    )


def told(base: Path, *words: str, **environ: str) -> Any:
    """Return what `aiaml uses --json` tells."""
    return json.loads(aiaml(base, "uses", "--json", *words, **environ).stdout)


@pytest.mark.slow
def test_what_agents_asked_for_is_told(tmp_path: Path) -> None:
    """Which memories help, which never come up, and what found nothing; by two servers at once."""
    with Client(tmp_path) as one, Client(tmp_path) as other:
        first = one.remember("Max the dog eats no chicken")["memory_id"]
        second = one.remember("a plan nobody asks about")["memory_id"]
        one.call("think", keywords=["dog"])
        one.call("recall", memory_ids=[first, "00000000"])
        other.call("recall", memory_ids=[first])
        other.call("think", keywords=["zebra", "Giraffe"])
        other.call("think", keywords=[])
    found = told(tmp_path)
    assert found["asked"] == {"think": 2, "recall": 2}
    assert found["clients"] == {"tests": 4}
    assert [(each["id"], each["recalled"]) for each in found["recalled"]] == [(first, 2)]
    assert [each["id"] for each in found["never"]] == [second]
    assert [(each["keywords"], each["times"]) for each in found["nothing"]] == [
        (["zebra", "Giraffe"], 1)
    ]
    shown = aiaml(tmp_path, "uses").stdout
    assert first in shown
    assert "zebra" in shown
    log = told(tmp_path, "--log")
    assert {(each["client"], each["tool"]) for each in log} == {
        ("tests", "think"),
        ("tests", "recall"),
    }
    assert told(tmp_path, "--since", "2100-01-01", "--log") == []
    file = folder(tmp_path) / "uses.jsonl"
    assert "chicken" not in file.read_text(encoding="utf-8")
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert aiaml(tmp_path, "uses", "--clear").returncode == 2  # there is nobody to ask
    assert aiaml(tmp_path, "uses", "--clear", "--yes").returncode == 0
    assert told(tmp_path)["asked"] == {}


def test_nothing_is_noted_where_the_setting_says_so(tmp_path: Path) -> None:
    """Nor is anything by a person's own search."""
    with Client(tmp_path, environ={"AIAML_LOG_USES": "false"}) as client:
        client.call("remember", **NOTE, content="words")
        client.call("think", keywords=["words"])
    aiaml(tmp_path, "search", "words")
    assert not (folder(tmp_path) / "uses.jsonl").exists()
    assert "AIAML_LOG_USES is false" in aiaml(tmp_path, "uses", AIAML_LOG_USES="false").stderr


def test_a_server_that_is_killed_leaves_lines_that_can_be_read(tmp_path: Path) -> None:
    """A torn line costs itself alone."""
    folder(tmp_path, make=True)
    (folder(tmp_path) / "uses.jsonl").write_bytes(b'{"at": "2026-01-01T00:00:00+00:00", "cl')
    with Client(tmp_path, command=SERVER) as client:
        client.remember("words")
        client.call("think", keywords=["words"])
    with (folder(tmp_path) / "uses.jsonl").open("ab") as file:
        file.write(b'[1]\n{"at": 5}\n\xff\n{"torn')
    assert told(tmp_path)["asked"] == {"think": 1}


def test_the_log_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files of a limited size, and the newest uses among them; long questions are cut."""
    monkeypatch.setattr(uses, "MOST", 4000)
    log = Uses(tmp_path)
    folder(tmp_path, make=True)
    for number in range(40):
        with log.kept():
            log.note("tests", "think", [f"word{number}", "x" * 1000, *map(str, range(1000))], [])
    found = list(log.read())
    assert found[-1].keywords[0] == "word39"
    assert 1 < len(found) < 40
    assert sum(path.stat().st_size for path in folder(tmp_path).iterdir()) < 12000


def test_the_log_is_bounded_where_no_file_can_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some network disks have no locks: nobody's turn is waited for there."""

    def no_locks(_stream: object) -> bool:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(files, "_locked", no_locks)
    monkeypatch.setattr(uses, "MOST", 4000)
    log = Uses(tmp_path)
    folder(tmp_path, make=True)
    for number in range(200):
        log.write("tests", "think", [f"word{number}", "x" * 1000], [])
    found = list(log.read())
    assert found[-1].keywords[0] == "word199"
    assert sum(path.stat().st_size for path in folder(tmp_path).iterdir()) < 12000


def test_what_is_forgotten_everywhere_is_taken_out(tmp_path: Path) -> None:
    """All lines that name it, the questions that found it among them."""
    folder(tmp_path, make=True)
    log = Uses(tmp_path)
    with log.kept():
        log.note("tests", "think", ["secret"], ["aaaaaaaa", "bbbbbbbb"])
        log.note("tests", "recall", [], ["bbbbbbbb"])
    log.forget(["aaaaaaaa"])
    assert [each.ids for each in log.read()] == [("bbbbbbbb",)]
    assert "secret" not in (folder(tmp_path) / "uses.jsonl").read_text(encoding="utf-8")


def test_a_link_under_its_name_is_not_followed(tmp_path: Path) -> None:
    """A base may come from elsewhere."""
    folder(tmp_path, make=True)
    target = tmp_path / "target"
    target.write_text("", encoding="utf-8")
    try:
        (folder(tmp_path) / "uses.jsonl").symlink_to(target)
    except OSError:
        pytest.skip("there are no links here")
    log = Uses(tmp_path)
    with log.kept():
        log.note("tests", "think", ["word"], [])
    assert target.read_text(encoding="utf-8") == ""
    with pytest.raises(NotOurs):
        list(log.read())


def test_a_use_is_read_as_it_was_written() -> None:
    """Also one with what JSON escapes."""
    use = Use("2026-01-01T00:00:00+00:00", 'a"b', "think", ("ü", "\n"), ("aaaaaaaa",))
    assert Use.parsed(use.line()) == use


def test_a_foreign_line_forges_none_of_ours(tmp_path: Path) -> None:
    """A cloned base brings its own; whatever a line says, it is one, and it is told as it is."""
    folder(tmp_path, make=True)
    said = {"at": "2026-01-01T00:00:00+00:00", "client": "x\nforged", "tool": "think"}
    good = {**said, "keywords": ["a\nforged"], "ids": ["\nforged"]}
    lines = [good, {**good, "at": "now\nforged"}, {**good, "tool": "other\nforged"}]
    text = "".join(f"{json.dumps(each)}\n" for each in lines)
    (folder(tmp_path) / "uses.jsonl").write_text(text, encoding="utf-8")
    for words in ([], ["--log"]):
        shown = aiaml(tmp_path, "uses", *words).stdout
        assert shown.count("forged") > 0
        assert not [line for line in shown.splitlines() if line.startswith("forged")]
    assert told(tmp_path)["asked"] == {"think": 1}
