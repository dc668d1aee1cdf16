"""`doctor`: what is wrong is named with its remedy, and repaired only where that is safe."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from aiaml_server.bank import MemoryBank
from aiaml_server.cli import main
from aiaml_server.doctor import CHECKS, run_checks
from aiaml_server.format.memory import Memory
from aiaml_server.format.memory import format as format_memory
from aiaml_server.index.index import Index
from aiaml_server.settings import SETTINGS, Settings
from aiaml_server.toolset import Finding
from command_line import call
from machine import CLEAN, TOKEN, bare

SLOW = ("server", "remote")
HEAD = "id: {}\ntimestamp: 2026-01-01T00:00:00+00:00\nagent: a\nuser: u\ntopics: [t]"


@pytest.fixture
def base(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private directory with three memories; no client is installed."""
    for name, value in CLEAN.items():
        monkeypatch.setenv(name, value)
    base = home / "base"
    bank = MemoryBank(Settings(base, sync=False))
    for number in range(3):
        bank.remember("claude", "marco", ["travel"], f"Lisbon has {number} bridges.")
    bank.close()
    base.chmod(0o700)
    return base


def check(base: Path | None, *names: str, **environ: str) -> list[Finding]:
    """Run some checks, by default all that need no server and no remote."""
    own = {"AIAML_ENABLE_SYNC": "false"}
    if base is not None:
        own["AIAML_MEMORY_DIR"] = str(base)
    chosen = names or [name for name in CHECKS if name not in SLOW]
    return list(run_checks(chosen, {**os.environ, **own, **environ}))


def test_a_healthy_directory_has_no_finding(base: Path) -> None:
    """Each check says so, and a second run changes nothing."""
    before = sorted(base.glob("files/*"))
    findings = check(base)
    assert {finding.level for finding in findings} == {"ok"}, findings
    assert {finding.check for finding in findings} >= {"directory", "files", "index", "sync"}
    assert sorted(base.glob("files/*")) == before
    assert {finding.level for finding in check(base.parent / "new")} == {"ok"}
    assert not (base.parent / "new").exists()


def plant(name: str, text: str) -> Callable[[Path], object]:
    """Return what puts a file among the memories."""
    return lambda base: (base / "files" / name).write_text(text, "utf-8")


def memory_text(content: str, memory_id: str = "0a1b2c3d") -> str:
    """Return the text of a memory."""
    return f"---\n{HEAD.format(memory_id)}\n---\n\n{content}\n"


NAME = "20260101_000000_0a1b2c3d.md"
TROUBLES: dict[str, tuple[Callable[[Path], object], dict[str, str], str, str]] = {
    "malformed": (plant(NAME, "no head"), {}, "files", f"{NAME} is not a memory"),
    "invisible": (plant(NAME, memory_text("a\u200bb")), {}, "files", "invisible characters"),
    "another file": (plant("notes.txt", "x"), {}, "files", "notes.txt in"),
    "an id twice": (
        lambda base: [
            plant(name, memory_text("x"))(base) for name in (NAME, "20260102_000000_0a1b2c3d.md")
        ],
        {},
        "files",
        "the id 0a1b2c3d is in 2 files",
    ),
    "others can read": (lambda base: base.chmod(0o755), {}, "access", "can read"),
    "a bad setting": (lambda _: None, {"AIAML_SYNC_INTERVAL": "soon"}, "settings", "INTERVAL"),
    "an unknown setting": (lambda _: None, {"AIAML_MEMORY_DIRR": "x"}, "settings", "DIRR is set"),
    "an unknown toolset": (lambda _: None, {"AIAML_TOOLSETS": "tea"}, "toolsets", "tea"),
    "a toolset's setting": (
        lambda _: None,
        {"AIAML_TOOLSETS": "compartments", "AIAML_PLAN_SCOPE": "x"},
        "toolsets",
        "AIAML_PLAN_SCOPE",
    ),
    "made elsewhere": (
        lambda base: (base / ".git").mkdir(0o700),
        {},
        "directory",
        "was made on another computer",
    ),
    "no directory": (
        lambda base: (base.parent / "file").write_text("x"),
        {"AIAML_MEMORY_DIR": "~/file"},
        "directory",
        "is not a directory",
    ),
}


@pytest.mark.parametrize("case", TROUBLES)
def test_what_is_wrong_is_named_with_a_remedy(case: str, base: Path) -> None:
    """By its check, which names the file or the setting."""
    if case == "others can read" and sys.platform == "win32":
        pytest.skip("Windows has no such modes")
    cause, environ, name, text = TROUBLES[case]
    cause(base)
    found = [each for each in check(base, **environ) if each.level != "ok"]
    assert [each for each in found if each.check == name and text in each.found], found
    assert all(each.remedy for each in found)


def test_a_replaced_memory_is_named(base: Path) -> None:
    """An agent says "Replaces ID." in a correction; the old one can be forgotten."""
    bank = MemoryBank(Settings(base, sync=False))
    old = bank.remember("claude", "marco", ["travel"], "Lisbon has 9 bridges.")
    bank.remember("claude", "marco", ["travel"], f"Lisbon has 2 bridges. Replaces {old.id}.")
    bank.close()
    (finding,) = check(base, "replaced")
    assert finding.found.startswith(f"{old.id} is outdated")
    assert finding.remedy == f"`aiaml forget {old.id}`"


def test_a_wrong_index_is_deleted_by_fix(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is built again and agrees with the files."""
    monkeypatch.setenv("AIAML_MEMORY_DIR", str(base))
    monkeypatch.setenv("AIAML_ENABLE_SYNC", "false")
    (finding,) = check(base, "index")
    path = Path(finding.found.rpartition("; ")[2])
    assert path.is_file()
    with monkeypatch.context() as patch:
        patch.setattr(Index, "verify", lambda _: "the index and the files differ in a.md")
        (finding,) = check(base, "index")
        assert finding.level == "error"
        assert main(["doctor", "index", "--fix", "--yes"]) == 0
    assert not path.exists()
    assert check(base, "index")[0].level == "ok"
    assert path.is_file()


def test_fix_makes_private(
    base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says first what it will do; memories stay."""
    memories = sorted(path.name for path in (base / "files").glob("*.md"))
    monkeypatch.setenv("AIAML_MEMORY_DIR", str(base))
    monkeypatch.setenv("AIAML_ENABLE_SYNC", "false")
    base.chmod(0o755)
    main(["doctor", "files", "access", "--fix", "--yes"])
    assert "This will:" in capsys.readouterr().err
    assert sorted(path.name for path in (base / "files").glob("*.md")) == memories
    if sys.platform != "win32":
        assert base.stat().st_mode & 0o077 == 0


def test_a_check_that_crashes_is_one_finding(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others still run."""
    monkeypatch.setattr("aiaml_server.doctor.memories.replace_atomic", lambda *_: 1 / 0)
    findings = check(base, "disk", "files")
    assert [finding.level for finding in findings] == ["error", "ok"]
    assert "ZeroDivisionError" in findings[0].found


def test_every_setting_is_known(base: Path) -> None:
    """None of them is called unknown."""
    environ = {setting.name: setting.default for setting in SETTINGS if setting.default}
    found = check(base, "settings", **{**environ, "AIAML_MEMORY_DIR": str(base)})
    assert [finding.found for finding in found if "not a setting" in finding.found] == []


def test_a_client_that_starts_something_missing_is_an_error(base: Path, home: Path) -> None:
    """Its title and file are named; a connected one is listed."""
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    entry = {"mcpServers": {"aiaml": {"command": "/nowhere/aiaml-server", "args": []}}}
    path.write_text(json.dumps(entry), "utf-8")
    (finding,) = (each for each in check(base, "clients") if "Cursor" in each.found)
    assert finding.level == "error"
    assert "aiaml install cursor" in finding.remedy


@pytest.mark.parametrize(
    ("value", "remedy"), [("tea", "correct AIAML_TOOLSETS"), ("semantic", "run `pip")]
)
def test_a_toolset_that_cannot_be_served_is_an_error_of_the_server(
    value: str, remedy: str, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server with this environment would not start; what is missing is to be installed."""
    monkeypatch.setattr("aiaml_server.toolsets.find_spec", lambda _: None)
    for name in ("server", "toolsets"):
        (finding,) = check(base, name, AIAML_TOOLSETS=value)
        assert finding.level == "error" and finding.remedy.startswith(remedy), finding
        assert "pip" not in finding.found


def test_status_and_doctor_count_alike(base: Path) -> None:
    """Memories only, and as not committed also what is held back."""
    plant("notes.md", "no head")(base)
    environ = {"AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "true"}
    bank = MemoryBank(Settings(base))
    bank.add(Memory.new("a", "u", ["t"], f"key {TOKEN}"))
    bank.commit()
    bank.close()
    output = call({**os.environ, **environ}, "status").stdout
    findings = [finding.found for finding in check(base, "files", "sync", **environ)]
    assert "4 memories" in output and "4 memories" in findings
    assert "2 not committed" in output and "2 changes not committed" in findings
    assert "all memories are committed" not in findings


def test_a_server_is_started_as_clients_do(base: Path) -> None:
    """On an empty directory; the person's own is not touched."""
    before = sorted(base.rglob("*"))
    (finding,) = check(base, "server")
    assert finding.level == "ok", finding
    assert sorted(base.rglob("*")) == before


def test_a_remote_that_answers_and_one_that_is_missing(base: Path, tmp_path: Path) -> None:
    """Asked without a prompt; `offline` asks nothing; a password is never shown."""
    remote = bare(tmp_path / "remote")
    environ = {"AIAML_ENABLE_SYNC": "true", "AIAML_GITHUB_REMOTE": str(remote)}
    assert check(base, "remote", **environ)[-1].level != "error"
    environ["AIAML_GITHUB_REMOTE"] = str(tmp_path / "missing")
    assert check(base, "remote", **environ)[-1].level == "error"
    environ["AIAML_GITHUB_REMOTE"] = "https://marco:elderberry@127.0.0.1:9/memories.git"
    own = {**os.environ, "AIAML_MEMORY_DIR": str(base), **environ}
    findings = list(run_checks(["remote"], own, offline=True))
    assert findings[0].level == "warning"
    assert "elderberry" not in repr(findings)


def test_a_remote_has_no_memory_that_is_not_committed(base: Path, tmp_path: Path) -> None:
    """Nothing else is said where one is held back."""
    remote = bare(tmp_path / "remote")
    environ = {"AIAML_ENABLE_SYNC": "true", "AIAML_GITHUB_REMOTE": str(remote)}
    plant("20260101_000000_0a1b2c3d.md", memory_text(f"key {TOKEN}"))(base)
    call({**os.environ, "AIAML_MEMORY_DIR": str(base), **environ}, "sync")
    (finding,) = check(base, "remote", **environ)
    assert finding.found == "it answers, and had every committed memory at the last sync"
    assert "1 change not committed" in [each.found for each in check(base, "sync", **environ)]
    plant("20260102_000000_0a1b2c3e.md", memory_text("later", "0a1b2c3e"))(base)
    call({**os.environ, "AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "true"}, "log")
    (finding,) = check(base, "remote", **environ)
    assert finding.level == "warning" or finding.found.endswith("at the last sync")


def test_what_is_printed_holds_no_memory(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither in words nor as JSON: it is made to be pasted into a report."""
    private = ("artichoke", "bergamot", TOKEN)
    bank = MemoryBank(Settings(base, sync=False))
    bank.add(Memory.new(private[0], private[1], [private[0]], f"{private[1]} {TOKEN}\u200b"))
    bank.close()
    plant(NAME, f"---\nid: [{private[0]}\n")(base)
    text = format_memory(Memory.new("a", "u", ["t"], "x")).replace("agent: a", "agent: [a")
    plant("20260102_000000_00000001.md", text)(base)
    findings = check(base)
    printed = repr(findings) + capsys.readouterr().out
    assert NAME in printed
    assert [word for word in private if word in printed] == []
