"""`doctor`: what is really broken is found, named with its remedy, and mended only where safe."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import strace
from aiaml_server import Memory, MemoryBank, Settings
from aiaml_server.doctor.finding import guarded
from aiaml_server.errors import InvalidSetting
from aiaml_server.format.memory import format as text_of
from aiaml_server.index import index_file
from aiaml_server.settings import PAGER, SETTINGS
from aiaml_server.sync import once
from client import SERVER
from loop_disk import memory_disk
from machine import CLEAN, TOKEN, bare, commit_by_hand, git
from printed import completed, inherited

posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no such modes and programs")
IS_ROOT = sys.platform != "win32" and os.geteuid() == 0


class Report:
    """What one run of `aiaml doctor --json` said.

    Attributes:
        code: the exit code.
        findings: the records.
    """

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        assert "Traceback" not in done.stdout + done.stderr
        self.code = done.returncode
        self.findings: list[dict[str, str]] = json.loads(done.stdout)

    def having(self, level: str, text: str) -> list[dict[str, str]]:
        """Return the findings of a level that hold a text; all but an `ok` have a remedy."""
        assert all(each["remedy"] or each["level"] == "ok" for each in self.findings)
        return [each for each in self.findings if each["level"] == level and text in each["found"]]

    @property
    def all_is_well(self) -> bool:
        """Whether each line is ok, and there is one."""
        return {each["level"] for each in self.findings} == {"ok"} and self.code == 0


def run(
    base: Path, *words: str, before: Sequence[str] = (), env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `aiaml doctor` on a directory, without sync, with nobody at the terminal."""
    own = {"AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "false"}
    home = str(base.parent)  # in which no client is installed
    own |= dict.fromkeys(("HOME", "USERPROFILE", "APPDATA", "XDG_CONFIG_HOME"), home)
    return completed(
        [*before, *SERVER, "doctor", *words],
        env={**inherited(), **CLEAN, **own, "PYTHONUTF8": "1", **(env or {})},
    )


def checked(base: Path, *words: str, **env: str) -> Report:
    """Return what some checks find, for programs."""
    return Report(run(base, "--json", *words, env=env))


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A directory with twelve memories of which all is well."""
    base = tmp_path / "base"
    bank = MemoryBank(Settings(base, sync=False))
    for number in range(12):
        words = f"Lisbon has {number} bridges; (number {number * 7}) is called span-{number}."
        bank.remember("claude", "marco", ["travel", f"n{number}"], words)
    time.sleep(0.1)  # of files that are younger, the index knows nothing for sure
    assert bank.think(["bridges"])
    bank.close()
    return base


def plant(base: Path, name: str, text: str | bytes = "") -> Path:
    """Put a file among the memories."""
    path = base / "files" / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_doctor_files_shows_a_name_of_several_lines_on_one(base: Path) -> None:
    """Whoever plants a file cannot have a finding of his own printed."""
    plant(base, "x\nok       sync       all is safe\n\nNothing is wrong.\n.md", "no memory")
    shown = run(base, "files")
    lines = shown.stdout.splitlines() + shown.stderr.splitlines()
    assert not [each for each in lines if each.startswith(("ok       sync", "Nothing is wrong"))]


# --- all is well --------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_healthy_store_is_well(base: Path) -> None:
    """Every check says ok, the exit code is 0, and no file of the person is touched."""
    before = {path: path.stat().st_mtime_ns for path in (base / "files").iterdir()}
    report = checked(base)
    assert report.all_is_well, report.findings
    assert {path: path.stat().st_mtime_ns for path in (base / "files").iterdir()} == before
    names = "version python packages settings directory disk space files clock index git server"
    assert set(names.split()) <= {each["check"] for each in report.findings}
    assert report.having("ok", "12 memories")
    assert report.having("ok", "as the files do")
    assert report.having("ok", "the three tools work")
    assert {path.name for path in base.iterdir()} == {".aiaml-id", "files", ".lock"}


def test_nothing_yet_is_well(tmp_path: Path) -> None:
    """Before the first memory there is nothing to complain of, and nothing is made."""
    report = checked(tmp_path / "a" / "b")
    assert report.all_is_well, report.findings
    assert report.having("ok", "the first memory makes it")
    assert list(tmp_path.iterdir()) == []


def test_the_screen_names_each_check_once(base: Path) -> None:
    """A line for each check, and a last one for all of them on stderr."""
    done = run(base, "files", "space", "git")
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [
        ["ok", "files"],
        ["ok", "space"],
        ["ok", "git"],
    ]
    assert done.stderr == "\nNothing is wrong.\n"


def test_an_unknown_check_is_refused(base: Path) -> None:
    """With the usual exit code for usage."""
    assert run(base, "everything").returncode == 2


# --- the program --------------------------------------------------------------------------------


def distribution(place: Path, name: str, version: str, *lines: str) -> None:
    """Make a package look installed, in front of the real one."""
    directory = place / f"{name.replace('-', '_')}-{version}.dist-info"
    directory.mkdir(parents=True)
    head = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *lines, ""]
    (directory / "METADATA").write_text("\n".join(head))


def test_a_package_of_another_version_is_an_error(base: Path, tmp_path: Path) -> None:
    """An SDK that is too new is the error that brought down every server without a bound."""
    distribution(tmp_path / "path", "mcp", "9.1")
    report = checked(base, "packages", PYTHONPATH=str(tmp_path / "path"))
    assert report.code == 1
    assert report.having("error", "mcp 9.1 does not fit: aiaml-server needs mcp")
    assert report.having("ok", "click")


def test_a_package_that_is_missing_is_an_error(base: Path, tmp_path: Path) -> None:
    """What it needs here is in its own record; what other cases need is not asked for."""
    needs = ("Requires-Dist: no-such-package<9,>=1", "Requires-Dist: other; extra == 'more'")
    distribution(tmp_path / "path", "aiaml-server", "1.0", *needs)
    report = checked(base, "packages", PYTHONPATH=str(tmp_path / "path"))
    (found,) = report.findings
    assert (found["level"], found["found"]) == ("error", "no-such-package is not installed")


def test_a_python_that_nobody_tested_is_a_warning(base: Path, tmp_path: Path) -> None:
    """The package says on which it was tested."""
    tested = [f"Classifier: Programming Language :: Python :: {each}" for each in ("3.7", "3.8")]
    distribution(tmp_path / "path", "aiaml-server", "1.0", *tested)
    report = checked(base, "python", PYTHONPATH=str(tmp_path / "path"))
    (found,) = report.having("warning", f"Python {sys.version_info[0]}.{sys.version_info[1]}.")
    assert found["remedy"] == "it is tested on Python 3.7 to 3.8: use one of these"


RECORDS = {
    "an index": None,
    "a directory": '{"url": "file:///x", "dir_info": {}}',
    "a wheel": '{"url": "file:///x.whl", "archive_info": {"hash": "sha256=0"}}',
    "git": '{"url": "https://x.invalid/x.git", "vcs_info": {"vcs": "git", "commit_id": "0"}}',
    "no JSON": "{",
    "a list": "[]",
    "null": "null",
}


@pytest.mark.gate_cases(3)
@pytest.mark.parametrize("source", RECORDS)
def test_each_way_to_install_it_is_well(base: Path, tmp_path: Path, source: str) -> None:
    """Whatever record the installer has left, the program says who installed it."""
    distribution(tmp_path / "path", "aiaml-server", "1.0")
    directory = tmp_path / "path" / "aiaml_server-1.0.dist-info"
    (directory / "INSTALLER").write_text("pip\n")
    if record := RECORDS[source]:
        (directory / "direct_url.json").write_text(record)
    report = checked(base, "version", PYTHONPATH=str(tmp_path / "path"))
    assert report.code == 0
    assert report.having("ok", ", installed by pip, in ")


def test_editable_source_is_said_to_be_one(base: Path, tmp_path: Path) -> None:
    """Who helps wants to know that the program may be in any state."""
    distribution(tmp_path / "path", "aiaml-server", "1.0")
    record = tmp_path / "path" / "aiaml_server-1.0.dist-info" / "direct_url.json"
    record.write_text('{"url": "file:///x", "dir_info": {"editable": true}}')
    report = checked(base, "version", PYTHONPATH=str(tmp_path / "path"))
    assert report.having("ok", "installed as editable source")


def test_a_server_that_does_not_start_is_an_error(base: Path, tmp_path: Path) -> None:
    """With what it said last."""
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "mcp.py").write_text("raise ImportError('a broken installation')")
    report = checked(base, "server", PYTHONPATH=str(tmp_path / "path"))
    assert report.code == 1
    assert report.having("error", "does not serve: it ended, or did not answer initialize")
    assert report.having("error", "ImportError: a broken installation")


def test_a_server_that_says_something_else_is_an_error(base: Path, tmp_path: Path) -> None:
    """What is not the protocol on standard output is told."""
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "mcp.py").write_text("import os; os.write(1, b'hello'); os.close(1)")
    report = checked(base, "server", PYTHONPATH=str(tmp_path / "path"))
    assert report.having("error", "does not serve")


def test_a_server_of_other_toolsets_is_tried_with_their_tools(base: Path) -> None:
    """What is served here is what is tried."""
    report = checked(base, "server", AIAML_TOOLSETS="sessions")
    assert report.having("ok", "with 5 tools")


def test_an_entry_that_cannot_start_is_an_error(base: Path) -> None:
    """It names a toolset that there is not; one that there is, is named."""
    home = {"HOME": str(base.parent), "USERPROFILE": str(base.parent)}
    environ = {**os.environ, **home, "AIAML_MEMORY_DIR": str(base)}
    install = [*SERVER, "install", "gemini", "--toolset", "sessions"]
    subprocess.run(install, env=environ, check=True, capture_output=True)
    assert checked(base, "clients").having("ok", "serves sessions")
    (file,) = (base.parent / ".gemini").glob("settings.json")
    file.write_text(file.read_text("utf-8").replace('"sessions"', '"session"'), "utf-8")
    report = checked(base, "clients")
    assert report.code == 1
    assert report.having("error", "did you mean sessions?")


def test_install_writes_no_entry_that_cannot_start(base: Path) -> None:
    """A toolset that there is not, or a setting of one that cannot be used, is refused."""
    home = {"HOME": str(base.parent), "USERPROFILE": str(base.parent)}
    for variable, value in (("AIAML_TOOLSETS", "bad"), ("AIAML_SESSIONS_REPO", "not/absolute")):
        environ = {**os.environ, **home, "AIAML_TOOLSETS": "sessions", variable: value}
        install = [*SERVER, "install", "gemini"]
        done = subprocess.run(install, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 2 and variable in done.stderr
        assert not (base.parent / ".gemini").exists()


# --- settings -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_each_bad_setting_is_named_and_the_rest_is_checked(base: Path) -> None:
    """Two wrong values are two errors; what does not depend on them is checked all the same."""
    report = checked(base, AIAML_SYNC_INTERVAL="often", AIAML_LOG_LEVEL="loud")
    assert report.code == 1
    assert report.having("error", "AIAML_SYNC_INTERVAL is 'often'")
    assert report.having("error", "AIAML_LOG_LEVEL is 'loud'")
    assert report.having("ok", "12 memories")
    assert report.having("ok", "AIAML_ENABLE_SYNC, AIAML_MEMORY_DIR")


def test_a_bad_setting_of_a_toolset_that_is_served_is_not_well(base: Path) -> None:
    """Each is named once, with what to do; and none of a toolset that is not served."""
    wrong = {
        "AIAML_COMPARTMENT_LIMIT": "abc", "AIAML_RUN_MINUTES": "soon",
        "AIAML_SESSIONS_REPO": "here",
        "AIAML_SAFE_DIRECTORIES": "there",
    }  # fmt: skip
    report = checked(base, "settings", "toolsets", AIAML_TOOLSETS="compartments", **wrong)
    named = {each["found"].split()[0]: each["remedy"] for each in report.having("error", "")}
    unusable = [each for each in wrong if each != "AIAML_SESSIONS_REPO"]
    assert sorted(named) == sorted(unusable)
    assert len(report.having("error", "")) == len(named)
    assert named["AIAML_RUN_MINUTES"].startswith("correct AIAML_RUN_MINUTES, or remove it, where")
    (good,) = [each for each in report.having("ok", "AIAML_") if each["check"] == "settings"]
    assert not [each for each in unusable if each in good["found"]]
    alone = checked(base, "toolsets", AIAML_TOOLSETS="compartments", AIAML_RUN_MINUTES="soon")
    (told,) = alone.having("error", "AIAML_RUN_MINUTES is 'soon'")
    assert (told["check"], told["remedy"]) == ("compartments", named["AIAML_RUN_MINUTES"])
    (told,) = checked(base, "settings", "toolsets", AIAML_TOOLSETS="wrods").having("error", "")
    assert "AIAML_TOOLSETS names 'wrods'" in told["found"]


def test_without_a_directory_the_rest_is_checked() -> None:
    """No other directory is taken for the one that the setting does not name."""
    report = checked(Path("relative"), AIAML_LOG_LEVEL="loud")
    assert report.having("error", "AIAML_MEMORY_DIR is 'relative'")
    assert report.having("error", "AIAML_LOG_LEVEL")
    assert report.having("error", "nothing in it is checked")
    assert report.having("ok", "the three tools work")
    assert not report.having("ok", "memories")


def test_a_variable_that_nobody_reads_is_a_warning(base: Path) -> None:
    """With the name that was probably meant."""
    report = checked(base, "settings", AIAML_MEMORYDIR="/x", AIAML_COLOUR="red")
    assert report.code == 1
    (typo,) = report.having("warning", "AIAML_MEMORYDIR is set")
    assert typo["remedy"] == "did you mean AIAML_MEMORY_DIR?"
    assert report.having("warning", "AIAML_COLOUR is set")


def test_every_setting_is_known(base: Path) -> None:
    """What the program reads is never called unknown."""
    source = Path(sys.modules["aiaml_server.settings"].__file__ or "").read_text(encoding="utf-8")
    names = set(re.findall(r"AIAML_[A-Z_]+[A-Z]", source))
    assert names == {each.name for each in (*SETTINGS, PAGER)}
    assert checked(base, "settings", **dict.fromkeys(names, "")).all_is_well


# --- the directory ------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [(), ("--fix", "--yes")])
def test_a_file_in_the_place_of_the_directory(tmp_path: Path, words: tuple[str, ...]) -> None:
    """It is an error, nothing is done to the file, and the other checks still come."""
    base = tmp_path / "base"
    base.write_text("mine")
    report = checked(base, *words)
    assert report.code == 1
    assert report.having("error", f"{base} is not a directory")
    assert report.having("ok", "the three tools work")
    assert base.read_text() == "mine"


@pytest.mark.parametrize("name", ["mine/x", "mine/x/y", "x" * 300])
def test_a_directory_that_no_memory_could_make_is_an_error(tmp_path: Path, name: str) -> None:
    """What cannot lie below a file, or has no name that a disk takes, is not well."""
    (tmp_path / "mine").write_text("mine")
    report = checked(tmp_path / name, "directory", "disk")
    assert report.code == 1
    assert report.having("error", "cannot create")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_link_to_nowhere_in_the_place_of_files(tmp_path: Path) -> None:
    """The first memory could not be written, and the disk's check says so."""
    (tmp_path / "files").symlink_to(tmp_path / "nowhere")
    report = checked(tmp_path, "disk")
    assert report.having("error", "it is a link to a directory that is not there; connect its disk")
    assert not (tmp_path / "nowhere").exists()


def test_a_file_in_the_place_of_files(tmp_path: Path) -> None:
    """Nothing can be written or read there, and each check says so by itself."""
    tmp_path.joinpath("files").write_text("mine")
    report = checked(tmp_path, "disk", "files", "index")
    assert {each["check"] for each in report.having("error", "not a directory")} >= {"disk"}
    assert report.code == 1


def unprivileged() -> tuple[str, ...]:
    """Return the words that make root obey the modes of files."""
    if not IS_ROOT:
        return ()
    if not shutil.which("setpriv"):
        pytest.skip("root is not bound by modes, and there is no setpriv to bind it")
    return ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


@posix
@pytest.mark.parametrize("where", ["base", "files"])
def test_a_directory_without_permission(base: Path, where: str) -> None:
    """What cannot be written is an error of the disk."""
    place = base if where == "base" else base / "files"
    place.chmod(0o500)
    report = Report(run(base, "--json", "disk", before=unprivileged()))
    place.chmod(0o700)
    assert report.code == 1
    assert report.having("error", f"cannot write in {place}: permission denied")


@posix
def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    """It is said before the first memory is lost."""
    tmp_path.chmod(0o500)
    report = Report(run(tmp_path / "base", "--json", "directory", before=unprivileged()))
    tmp_path.chmod(0o700)
    assert report.having("error", "permission denied")


@pytest.mark.slow
@posix
def test_a_directory_that_cannot_be_read(base: Path) -> None:
    """Every check that needs it is an error, and the others still come."""
    (base / "files").chmod(0)
    report = Report(run(base, "--json", before=unprivileged()))
    (base / "files").chmod(0o700)
    failed = {each["check"] for each in report.having("error", "permission denied")}
    assert failed >= {"disk", "files", "clock"}
    assert report.having("ok", "the three tools work")


@posix
def test_others_who_can_read_are_a_warning_that_is_mended(base: Path) -> None:
    """`--fix` takes their access away, after saying so; and then all is well."""
    base.chmod(0o755)
    report = checked(base, "access")
    assert report.code == 1
    assert report.having("warning", "mode 0755")
    done = run(base, "access", "--fix", "--yes")
    assert done.returncode == 0
    assert "This will:" in done.stderr
    assert f"Done: make {base} private" in done.stderr
    assert base.stat().st_mode & 0o777 == 0o700
    assert checked(base, "access").all_is_well


@posix
def test_without_a_yes_nothing_is_mended(base: Path) -> None:
    """Where nobody can be asked, it says what it would do, and does not."""
    base.chmod(0o755)
    done = run(base, "access", "--fix")
    assert done.returncode == 2
    assert "`--yes` says yes" in done.stderr
    assert base.stat().st_mode & 0o777 == 0o755


@pytest.mark.skipif(not IS_ROOT, reason="only root may give files away")
def test_what_belongs_to_another_user_is_a_warning(base: Path) -> None:
    """As after a `sudo` too many: the directory, and a file."""
    os.chown(base, 12345, -1)
    os.chown(next((base / "files").iterdir()), 12345, -1)
    report = checked(base, "access", "files")
    assert report.having("warning", f"{base} belongs to user 12345")
    assert report.having("warning", "1 file of another user")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 600 KB and 40 files."""
    with memory_disk(tmp_path / "disk", "size=600k,nr_inodes=40,mode=700") as place:
        yield place


def test_a_disk_without_room_is_an_error(small_disk: Path) -> None:
    """Neither for bytes nor for names."""
    report = checked(small_disk, "space", "directory")
    assert report.having("error", "KiB free")
    assert report.having("error", "more files")
    assert report.having("ok", str(small_disk))


def test_a_full_disk_is_an_error(small_disk: Path) -> None:
    """It is really tried."""
    (small_disk / "filler").write_bytes(bytes(600 * 1024))
    report = checked(small_disk, "disk")
    assert report.having("error", "the disk is full")
    assert [path.name for path in small_disk.iterdir()] == ["filler"]


@pytest.mark.slow
def test_a_read_only_disk_is_an_error_and_is_read(small_disk: Path) -> None:
    """Nothing can be written, and what is there is checked in memory."""
    (small_disk / "files").mkdir()
    note = Memory.new("claude", "marco", ["a"], "hello")
    plant(small_disk, note.file_name, text_of(note))
    remount = ["mount", "-o", "remount,ro", str(small_disk)]
    subprocess.run(remount, check=True, capture_output=True)
    report = checked(small_disk)
    assert report.having("error", "the disk is read-only")
    assert report.having("ok", "1 memory")
    assert report.having("warning", "kept in memory")
    assert report.having("ok", "as the files do")


def test_a_cloud_folder_is_a_warning(tmp_path: Path) -> None:
    """Programs that synchronise files do not know what belongs together."""
    for name in ("Dropbox", "OneDrive - Firm", "Mobile Documents", "Google Drive"):
        assert checked(tmp_path / name / "m", "directory").having("warning", "which may damage")
    assert checked(tmp_path / "Boxes" / "m", "directory").all_is_well


@strace.needed
def test_a_disk_without_locks_is_a_warning(base: Path, tmp_path: Path) -> None:
    """It is really tried."""
    refuse = strace.following(tmp_path / "log", "-e", "inject=flock:error=ENOLCK")
    refuse = (*refuse, "-e", "trace=flock")
    report = Report(run(base, "--json", "disk", before=refuse))
    assert report.having("warning", "files cannot be locked")
    assert not list(base.glob(".aiaml-*"))


def test_memories_from_the_future_are_a_warning(base: Path) -> None:
    """Some clock is off."""
    coming = Memory("abcdef01", "2199-01-01T00:00:00+00:00", "claude", "marco", ("a",), "later")
    plant(base, "later.md", text_of(coming))
    report = checked(base, "clock")
    assert report.code == 1
    assert report.having("warning", "later.md is from the future")


# --- files --------------------------------------------------------------------------------------


def test_malformed_files_are_named_with_their_reasons(base: Path) -> None:
    """Each of them, on the screen the first ten; and they are never changed."""
    bad = plant(base, "latin.md", b"---\nid: \xe9\n---\n")
    for number in range(14):
        plant(base, f"empty{number:02}.md")
    report = checked(base, "files")
    assert report.code == 1
    assert report.having("warning", "latin.md is no memory: byte 8 is not UTF-8")
    assert len(report.having("warning", "is no memory: the first line is not ---")) == 14
    done = run(base, "files", "--fix", "--yes")
    assert "... and 5 more, which `--json` names" in done.stdout
    assert done.stdout.count("is no memory") == 10
    assert done.stdout.count("it is never changed") == 1
    assert "nothing that --fix may mend" in done.stderr
    assert bad.read_bytes() == b"---\nid: \xe9\n---\n"


def test_repeated_ids_are_named_with_their_files(base: Path) -> None:
    """A copy of a file is a warning, and its name one more when it does not fit."""
    first = min((base / "files").iterdir())
    memory_id = first.stem.rpartition("_")[2]
    shutil.copy(first, base / "files" / "20200101_000000_12345678.md")
    report = checked(base, "files")
    (found,) = report.having("warning", f"the id {memory_id} is in 2 files")
    assert first.name in found["found"] and "20200101_000000_12345678.md" in found["found"]
    assert report.having("warning", f"20200101_000000_12345678.md has the id {memory_id} inside")


def test_what_is_no_memory_is_named(base: Path, tmp_path: Path) -> None:
    """Directories, other suffixes and copies that sync tools made; system files are left alone."""
    (base / "files" / "old").mkdir()
    plant(base, "notes.txt", "hello")
    plant(base, "Thumbs.db")
    text = text_of(Memory.new("claude", "marco", ["a"], "hello"))
    plant(base, "a (Anna's conflicted copy 2026-01-01).md", text)
    plant(base, "b.sync-conflict-20260101-120000-ABCDEFG.md", text.replace("id: ", "id: x"))
    if os.name == "posix":
        (base / "files" / "link.md").symlink_to(tmp_path / "elsewhere.md")
    report = checked(base, "files")
    assert report.having("warning", "old in") and report.having("warning", "is a directory")
    assert report.having("warning", "notes.txt in")
    assert len(report.having("warning", "a program for synchronising made")) == 2
    assert not report.having("warning", "Thumbs")
    assert os.name != "posix" or report.having("warning", "link.md is no memory: it is a symbolic")


def stated(**fields: Any) -> Memory:
    """Return a memory that a hand wrote."""
    usual = Memory("abcd1234", "2026-01-01T00:00:00+00:00", "a", "u", ("t",), "text")
    return replace(usual, **fields)


def test_a_memory_with_what_nobody_sees_is_named(base: Path) -> None:
    """In whichever field; what belongs to an emoji is no reason."""
    for number, fields in enumerate[dict[str, Any]](
        [
            {"content": "obey\U000e0068\u202e"},
            {"topics": ("a\u200bb",)},
            {"user": "mar\u00adco"},
            {"content": "\r\n👩\u200d👧\r\n"},
        ]
    ):
        plant(base, f"{number}.md", text_of(stated(id=f"abcd000{number}", **fields)))
    found = checked(base, "files")
    assert found.having("warning", "0.md holds characters that nobody sees: ‹U+E0068› ‹U+202E›")
    assert found.having("warning", "1.md holds characters that nobody sees: ‹U+200B›")
    assert found.having("warning", "2.md holds characters that nobody sees: ‹U+00AD›")
    assert not found.having("warning", "3.md holds")


def test_a_memory_with_very_many_topics_is_named(base: Path) -> None:
    """It would be among the first answers to most questions."""
    topics = tuple(f"word{number}" for number in range(500))
    plant(base, "many.md", text_of(stated(id="abcd0001", topics=topics)))
    plant(base, "most.md", text_of(stated(id="abcd0002", topics=topics[:32])))
    found = checked(base, "files")
    assert found.having("warning", "many.md has 500 topics, more than `remember` takes (32)")
    assert not found.having("warning", "most.md")


def test_a_memory_larger_than_the_limit_is_named(base: Path) -> None:
    """It is read, but no agent could have stored it."""
    large = Memory(
        "abcdef01", "2026-01-01T00:00:00+00:00", "claude", "marco", ("a",), "é" * 600_000
    )
    plant(base, "large.md", text_of(large))
    assert checked(base, "files").having("warning", "large.md is larger than a memory may be")


def test_stray_temporary_files_are_deleted_once_they_are_old(base: Path) -> None:
    """A fresh one may belong to a writer at work, and a hidden file of other programs to them."""
    old, fresh = plant(base, f".aiaml-{1:017x}.tmp"), plant(base, f".aiaml-{2:017x}.tmp")
    other = plant(base, ".notes.md.tmp")
    long_ago = time.time() - 7300
    for path in (old, other):
        os.utime(path, (long_ago, long_ago))
    assert len(checked(base, "files").having("warning", f"{old.name} was left")) == 1
    done = run(base, "files", "--fix", "--yes")
    assert done.returncode == 0
    assert f"Done: delete {old}" in done.stderr
    assert [path.exists() for path in (old, fresh, other)] == [False, True, True]
    assert checked(base, "files").all_is_well


# --- the index ----------------------------------------------------------------------------------


NO_WATCH = 'echo 0 > /proc/sys/user/max_inotify_instances && exec "$@"'


def tampered(base: Path, statement: str) -> None:
    """Change the index behind everybody's back."""
    connection = sqlite3.connect(index_file(base))
    connection.executescript(statement)
    connection.close()


def test_an_index_that_answers_wrongly_is_an_error_that_is_mended(base: Path) -> None:
    """Files are compared; made anew, it is right."""
    tampered(base, "UPDATE terms SET term = upper(term)")
    report = checked(base, "index")
    assert report.code == 1
    assert report.having("error", "the index ")
    mended = checked(base, "index", "--fix", "--yes")
    assert mended.having("ok", "mended") and mended.code == 0
    assert checked(base, "index").all_is_well


# --- git and the remote -------------------------------------------------------------------------


def synced(base: Path, *words: str, remote: object = "", **env: str) -> Report:
    """Check with sync on."""
    on = {"AIAML_ENABLE_SYNC": "true", "AIAML_GITHUB_REMOTE": str(remote)}
    return checked(base, *(words or ("git", "sync", "remote")), **on, **env)


@posix
@pytest.mark.parametrize(
    ("says", "level", "found"),
    [("git version 2.20.1", "error", "is too old"), ("", "warning", "there is no git")],
)
def test_a_git_that_cannot_be_used(
    base: Path, tmp_path: Path, says: str, level: str, found: str
) -> None:
    """Too old is an error, none a warning, since everything else works."""
    (tmp_path / "bin").mkdir()
    if says:
        (tmp_path / "bin" / "git").write_text(f"#!/bin/sh\necho {says}\n")
        (tmp_path / "bin" / "git").chmod(0o755)
    report = synced(base, "git", PATH=str(tmp_path / "bin"))
    assert report.having(level, found)
    assert not report.having("ok", "")


def test_memories_that_are_not_committed_are_a_warning(base: Path) -> None:
    """Before the first round there is no repository; then each new file is counted."""
    assert synced(base).having("ok", "no git repository yet")
    once(Settings(base))
    report = synced(base)
    assert report.all_is_well and report.having("ok", "all memories are committed")
    assert report.having("ok", "version 2.") and report.having("ok", "none set")
    new = Memory.new("claude", "marco", ["a"], "hello")
    plant(base, new.file_name, text_of(new))
    assert synced(base).having("warning", "1 memory not committed yet")


def test_a_memory_with_a_secret_is_named(base: Path) -> None:
    """With the reason why it is kept out of git."""
    new = Memory.new("claude", "marco", ["a"], f"it is {TOKEN}")
    plant(base, new.file_name, text_of(new))
    once(Settings(base))
    report = synced(base)
    (found,) = report.having("warning", "it seems to hold a GitHub token")
    assert new.file_name in found["found"]
    assert not report.having("warning", "not committed yet")


def test_what_is_in_the_way_of_git_is_named(base: Path) -> None:
    """A lock of a git that died."""
    once(Settings(base))
    lock = base / ".git" / "HEAD.lock"
    lock.touch()
    os.utime(lock, (time.time() - 3600,) * 2)
    report = synced(base)
    assert report.code == 1
    assert report.having("warning", "HEAD.lock was left by a git that died")


def test_a_broken_repository_is_an_error(base: Path) -> None:
    """In git's own words."""
    once(Settings(base))
    (base / ".git" / "HEAD").write_text("")
    assert synced(base).having("error", "git cannot read its repository")


def test_a_remote_that_answers_is_well(base: Path, tmp_path: Path) -> None:
    """Empty, and with memories; nothing is pushed or fetched, and no repository is made."""
    remote = bare(tmp_path / "remote")
    assert synced(base, remote=remote).having("ok", "is empty")
    assert not (base / ".git").exists()
    once(Settings(base, remote=str(remote)))
    report = synced(base, remote=remote)
    assert report.all_is_well and report.having("ok", "on the same disk as the memories")
    commit_by_hand(base, "here only")
    before = git(remote, "rev-parse", "main")
    synced(base, remote=remote)
    assert git(remote, "rev-parse", "main") == before


def test_a_remote_that_refuses_or_was_emptied_is_no_copy(base: Path, tmp_path: Path) -> None:
    """Since when, why, and what to do, as `aiaml status` has it; though it answers."""
    remote = bare(tmp_path / "remote")
    once(Settings(base, remote=str(remote)))
    hook = remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho GH006: Protected branch >&2\nexit 1\n")
    hook.chmod(0o755)
    commit_by_hand(base, "here only")
    (found,) = synced(base, "remote", remote=remote).having("warning", "lacks 1 commit of ours")
    assert "aiaml sync" in found["remedy"]
    pushed = once(Settings(base, remote=str(remote))).last_push
    told = f"no copy of what is newer than {pushed}: the remote refuses"
    (found,) = synced(base, "remote", remote=remote).having("error", told)
    assert "Protected branch" in found["found"] and "protects `main`" in found["remedy"]
    hook.unlink()
    once(Settings(base, remote=str(remote)))
    shutil.rmtree(remote)
    bare(remote)
    assert synced(base, "remote", remote=remote).having("warning", "is empty: there is no copy")


def test_the_remote_that_servers_use_is_asked_without_the_variable(
    base: Path, tmp_path: Path
) -> None:
    """A shell that does not know of it is not told that memories stay on this computer."""
    remote = bare(tmp_path / "remote")
    once(Settings(base, remote=str(remote)))
    assert checked(base, "remote", AIAML_ENABLE_SYNC="true").having("ok", "on the same disk")


def test_a_remote_that_is_not_there_is_an_error(base: Path, tmp_path: Path) -> None:
    """Said now, and, once a server has tried, also by the status; `--offline` does not ask."""
    missing = tmp_path / "missing"
    report = synced(base, remote=missing)
    assert report.code == 1
    assert report.having("error", f"nothing is at {missing}")
    once(Settings(base, remote=str(missing)))
    assert synced(base, "sync", remote=missing).having("error", "failing since")
    assert synced(base, "remote", "--offline", remote=missing).having("ok", "not asked")


def test_a_trouble_of_the_remote_is_named_once(base: Path, tmp_path: Path) -> None:
    """By the check of sync, which says since when; what it does not know of, by the other."""
    missing, another = tmp_path / "missing", tmp_path / "another"
    once(Settings(base, remote=str(missing)))
    report = synced(base, "sync", "remote", remote=missing)
    (found,) = report.having("error", f"nothing is at {missing}")
    assert found["check"] == "sync" and "failing since" in found["found"]
    assert report.code == 1
    assert synced(base, "remote", remote=missing).having("error", f"nothing is at {missing}")
    report = synced(base, "sync", "remote", remote=another)
    assert [each["check"] for each in report.having("error", "is not there")] == ["sync", "remote"]


def test_a_refusal_of_the_remote_is_named_once(base: Path, tmp_path: Path) -> None:
    """The check of the remote says what that means for the copy."""
    remote = bare(tmp_path / "remote")
    hook = remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    once(Settings(base, remote=str(remote)))
    report = synced(base, "sync", "remote", remote=remote)
    (found,) = report.having("error", "refuses what is pushed")
    assert found["check"] == "sync"
    assert report.having("error", "there is no copy, for the reason that sync has")


@pytest.mark.slow
@posix
def test_a_remote_that_never_answers_is_given_up(base: Path, tmp_path: Path) -> None:
    """After some ten seconds, and what was started is gone."""
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\nexec sleep 60\n")
    ssh.chmod(0o755)
    report = synced(base, "remote", remote="host:memories.git", GIT_SSH=str(ssh))
    assert report.having("error", "did not answer in time")


def test_an_address_that_shows_a_password_is_a_warning(base: Path) -> None:
    """The password itself is never printed."""
    address = "http://marco:hunter2@localhost:1/x.git"
    env = {"AIAML_ENABLE_SYNC": "true", "AIAML_GITHUB_REMOTE": address}
    done = run(base, "remote", "--offline", env=env)
    assert done.returncode == 1
    assert "holds a password" in done.stdout
    assert "unencrypted" in done.stdout
    assert "hunter2" not in done.stdout + done.stderr


# --- clients ------------------------------------------------------------------------------------


def cursor(home: Path, text: str) -> Path:
    """Write a client's configuration."""
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_a_client_that_starts_something_missing_is_an_error(base: Path, tmp_path: Path) -> None:
    """As after a Python was removed; the file is left as it is."""
    assert checked(base, "clients").having("ok", "none is connected")
    gone = tmp_path / "gone" / "aiaml-server"
    path = cursor(tmp_path, json.dumps({"mcpServers": {"aiaml": {"command": str(gone)}}}))
    before = path.read_bytes()
    report = checked(base, "clients", "--fix", "--yes")
    assert report.code == 1
    (found,) = report.having("error", f"starts {gone}, which is not there")
    assert found["found"].startswith("Cursor: ") and str(path) in found["found"]
    assert found["remedy"] == "`aiaml install cursor` puts it right"
    assert path.read_bytes() == before


def test_a_client_that_is_connected_is_named(base: Path, tmp_path: Path) -> None:
    """With the file that says so."""
    entry = {"command": sys.executable, "args": ["-m", "aiaml_server"]}
    path = cursor(tmp_path, json.dumps({"mcpServers": {"aiaml": entry}}))
    report = checked(base, "clients")
    assert report.all_is_well and report.having("ok", f"connected: Cursor ({path})")


def test_a_client_s_file_that_cannot_be_read_is_a_warning(base: Path, tmp_path: Path) -> None:
    """With the place in it."""
    cursor(tmp_path, '{"mcpServers": {')
    report = checked(base, "clients")
    assert report.code == 1
    assert report.having("warning", "line 1, column")


# --- the report itself --------------------------------------------------------------------------


def test_a_check_that_crashes_does_not_take_the_others_along() -> None:
    """What it found comes, and its failure as one more error."""

    def broken(found: list[Any]) -> Iterator[Any]:
        yield from found
        raise ZeroDivisionError("a fault of ours")

    *before, last = guarded("clock", broken, [])
    assert before == []
    assert (last.check, last.level) == ("clock", "error")
    assert "ZeroDivisionError: a fault of ours" in last.found
    assert "report" in last.remedy


def test_a_check_that_finds_a_setting_wrong_says_what_to_correct() -> None:
    """As the check of the settings does, whoever wrote it."""

    def wrong(found: list[Any]) -> Iterator[Any]:
        yield from found
        raise InvalidSetting("AIAML_WORDS", "is 'x'; it must be y")

    (only,) = guarded("words", wrong, [])
    assert (only.level, only.found) == ("error", "AIAML_WORDS is 'x'; it must be y")
    assert only.remedy == "correct AIAML_WORDS, or remove it, where the server's environment is set"


@posix
def test_on_a_terminal_there_is_colour_and_a_question(base: Path) -> None:
    """Levels in colour, the fix asked for, `n` changes nothing and `y` mends."""
    import pty

    base.chmod(0o755)
    for answer, mode, code in (("n", 0o755, 1), ("y", 0o700, 0)):
        controller, terminal = pty.openpty()
        outer = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        own = {"AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "false", "COLUMNS": "62"}
        command = [*SERVER, "doctor", "access", "files", "--fix"]
        with subprocess.Popen(
            command, stdin=terminal, stdout=terminal, stderr=terminal, env={**outer, **own}
        ) as process:
            os.close(terminal)
            os.write(controller, f"{answer}\n".encode())
            said = b""
            try:
                while part := os.read(controller, 4096):
                    said += part
            except OSError:  # Linux's way to say that the other end is closed
                pass
            assert process.wait(60) == code
        os.close(controller)
        assert b"\x1b[33mwarning" in said
        assert b"can get at\r\n" + b" " * 20 in said
        assert b"Go on?" in said
        assert base.stat().st_mode & 0o777 == mode
