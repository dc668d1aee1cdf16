"""Which directory is which, and which of them the person trusts."""

from __future__ import annotations

import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

from aiaml_server.bank import MemoryBank
from aiaml_server.cli.trust import trust_command
from aiaml_server.errors import InvalidSetting
from aiaml_server.identity import (
    ID_FILE,
    Trusted,
    base_id,
    is_trusted,
    is_trusted_base,
    read_id,
    state_directory,
    trust,
    trusted_directories,
)
from aiaml_server.settings import Settings

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
root = pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="only root gives files to another user"
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a state directory of its own."""
    for variable in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(tmp_path / "home"))
    monkeypatch.delenv("AIAML_SAFE_DIRECTORIES", raising=False)
    return tmp_path / "home"


def make_base(path: Path) -> Path:
    """Make a memory directory with a repository, as it is after some use."""
    (path / "files").mkdir(parents=True)
    assert is_trusted_base(path)
    (path / ".git").mkdir()
    return path


def test_a_new_base_gets_an_id_and_is_trusted(tmp_path: Path) -> None:
    """It keeps both, also in the next process."""
    base = make_base(tmp_path / "base")
    assert base_id(base) == read_id(base) != ""
    assert trusted_directories() == [Trusted(base_id(base), base.resolve())]
    assert is_trusted_base(base)
    assert base_id(tmp_path / "missing") == ""


def test_two_sticks_at_one_mount_point_are_two_bases(tmp_path: Path) -> None:
    """The second is asked about; the first is known when it is back."""
    mount, other = tmp_path / "stick", tmp_path / "other"
    first = base_id(make_base(mount))
    mount.rename(tmp_path / "away")
    make_base(other).rename(mount)
    assert base_id(mount) != first
    assert not is_trusted_base(mount)
    trust(mount)
    assert is_trusted_base(mount)
    shutil.rmtree(mount)
    (tmp_path / "away").rename(mount)
    assert base_id(mount) == first
    assert is_trusted_base(mount)


def test_a_copied_base_is_asked_about_once(tmp_path: Path) -> None:
    """The original stays trusted."""
    base, copy = make_base(tmp_path / "base"), tmp_path / "copy"
    shutil.copytree(base, copy)
    assert base_id(copy) == base_id(base)
    assert not is_trusted_base(copy)
    trust(copy)
    assert is_trusted_base(copy) and is_trusted_base(base)


def test_a_base_restored_in_place_is_known(tmp_path: Path) -> None:
    """Its files and directories are new ones, but its id and its path are the same."""
    base, backup = make_base(tmp_path / "base"), tmp_path / "backup"
    shutil.copytree(base, backup)
    shutil.rmtree(base)
    shutil.copytree(backup, base)
    assert is_trusted_base(base)


def test_a_base_in_a_container_is_confirmed_by_its_remote(tmp_path: Path, home: Path) -> None:
    """The state directory is new at each start; AIAML_GITHUB_REMOTE is the person's word."""
    base = make_base(tmp_path / "base")
    shutil.rmtree(home)
    assert is_trusted_base(base, "https://example.org/memories.git")
    assert not is_trusted_base(base)


def test_a_lost_state_directory_makes_bases_unknown_until_they_are_trusted(
    tmp_path: Path, home: Path
) -> None:
    """The id stays; memories are found and stored meanwhile."""
    base = make_base(tmp_path / "base")
    found = base_id(base)
    shutil.rmtree(home)
    assert not is_trusted_base(base)
    bank = MemoryBank(Settings(base, sync=False), lasting=False)
    memory = bank.remember("claude", "ann", ["food"], "Ann eats no fish.")
    assert [hit.id for hit in bank.think(["fish"])] == [memory.id]
    bank.close()
    assert trust(base) == found
    assert is_trusted_base(base)


def test_a_repository_without_an_id_is_foreign(tmp_path: Path) -> None:
    """Such as one in an archive that somebody made; trusting it gives it an id."""
    (tmp_path / "files").mkdir()
    for name in (".git", ".aiaml.git"):
        (tmp_path / name).mkdir()
        assert base_id(tmp_path) == "" and not (tmp_path / ID_FILE).exists()
        assert not is_trusted_base(tmp_path)
        (tmp_path / name).rmdir()
    (tmp_path / ".git").mkdir()
    assert trust(tmp_path) == read_id(tmp_path) != ""
    assert is_trusted_base(tmp_path)


def test_a_malformed_id_is_none(tmp_path: Path) -> None:
    """Too long, empty, no hexadecimal digits or no regular file; trusting replaces it."""
    make_base(tmp_path / "base")
    path = tmp_path / "base" / ID_FILE
    for text in ("", "x" * 32, "0" * 31, "0" * 4096, "é" * 32):
        path.write_text(text, "utf-8")
        assert read_id(tmp_path / "base") == "" and not is_trusted(tmp_path / "base")
    trust(tmp_path / "base")
    assert is_trusted(tmp_path / "base")


@posix
def test_a_link_or_a_pipe_in_the_place_of_the_id_is_not_followed(tmp_path: Path) -> None:
    """A pipe would be waited for; a link may show another directory's id."""
    base, other = make_base(tmp_path / "base"), make_base(tmp_path / "other")
    path = base / ID_FILE
    path.unlink()
    path.symlink_to(other / ID_FILE)
    assert read_id(base) == ""
    path.unlink()
    os.mkfifo(path)
    assert read_id(base) == ""


@posix
def test_a_link_to_a_base_is_the_base(tmp_path: Path) -> None:
    """The real path counts."""
    base = make_base(tmp_path / "base")
    (tmp_path / "link").symlink_to(base)
    assert is_trusted(tmp_path / "link")


@root
@pytest.mark.parametrize("damage", ["link", "stranger", "no json", "wrong shape"])
def test_a_record_that_is_not_ours_trusts_nothing(tmp_path: Path, damage: str) -> None:
    """Nobody else can make this user trust a directory."""
    base = make_base(tmp_path / "base")
    record = state_directory() / "trusted.jsonl"
    if damage == "link":
        record.rename(tmp_path / "elsewhere.json")
        record.symlink_to(tmp_path / "elsewhere.json")
    elif damage == "stranger":
        os.chown(record.parent, 65534, 65534)
        os.chown(record, 65533, 65533)
    else:
        record.write_text("no" if damage == "no json" else '[["x"]]', "utf-8")
    assert trusted_directories() == []
    assert not is_trusted(base)


def test_trust_is_withdrawn_by_deleting_a_line(tmp_path: Path) -> None:
    """Neither that nor a damaged line takes trust from another directory."""
    for name in ("first", "second", "third"):
        (tmp_path / name).mkdir()
        trust(tmp_path / name)
    record = state_directory() / "trusted.jsonl"
    first, second, third = record.read_text().splitlines()
    assert str(tmp_path / "second") in second
    record.write_text(f"{first[:-1]}\n{third}\n")
    assert [is_trusted(tmp_path / name) for name in ("first", "second", "third")] == [
        False,
        False,
        True,
    ]
    trust(tmp_path / "first")
    assert is_trusted(tmp_path / "first")
    assert is_trusted(tmp_path / "third")


def test_directories_may_be_trusted_at_once(tmp_path: Path) -> None:
    """None of them is lost."""
    paths = [tmp_path / str(number) for number in range(24)]
    for path in paths:
        path.mkdir()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(trust, paths))
    assert {row.path for row in trusted_directories()} == {*paths}


def test_safe_directories_are_trusted(tmp_path: Path) -> None:
    """A list as in PATH of absolute paths, `~` and `*`; anything else is refused."""
    base = tmp_path / "base"
    base.mkdir()
    for value in (str(base), f"/nowhere{os.pathsep}{base}", "*"):
        assert is_trusted(base, {"AIAML_SAFE_DIRECTORIES": value})
    for value in ("", str(tmp_path), str(base / "files")):
        assert not is_trusted(base, {"AIAML_SAFE_DIRECTORIES": value})
    with pytest.raises(InvalidSetting, match="absolute path"):
        is_trusted(base, {"AIAML_SAFE_DIRECTORIES": "base"})


# --- the command ----------------------------------------------------------------------------------


def run(*words: str, code: int = 0) -> str:
    """Run `aiaml trust` with some words; return what it prints."""
    result = CliRunner().invoke(trust_command, [*words])
    assert result.exit_code == code, result.output
    return result.output


def test_the_command_lists_and_trusts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A base that is not trusted is named, with the command that trusts it."""
    base, project = make_base(tmp_path / "base"), tmp_path / "shop"
    (project / ".memory").mkdir(parents=True)
    monkeypatch.setenv("AIAML_MEMORY_DIR", str(base))
    assert run() == f"{base}\n"
    (state_directory() / "trusted.jsonl").unlink()
    assert f"Trust it with: aiaml trust {base}" in " ".join(run().split())
    assert run(str(base)).startswith(f"Trusted {base}.\n")
    assert run(str(project)).startswith(f"Trusted {project / '.memory'}.\n")
    rows = json.loads(run("--json"))
    assert [(row["path"], row["trusted"]) for row in rows] == [
        (str(base), True),
        (str(project / ".memory"), True),
    ]
    shutil.rmtree(project)
    assert f"{project / '.memory'}  (not there now)" in run()


@root
def test_the_command_trusts_a_directory_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Itself and its database, since both are looked at."""
    monkeypatch.setenv("AIAML_MEMORY_DIR", str(tmp_path / "base"))
    assert run() == "No directory is trusted yet.\n"
    project = tmp_path / "shop"
    (project / ".memory").mkdir(parents=True)
    os.chown(project, 65534, 65534)
    run(str(project))
    assert is_trusted(project) and is_trusted(project / ".memory")


def test_the_command_refuses_what_is_no_directory(tmp_path: Path) -> None:
    """And says so."""
    result = CliRunner().invoke(trust_command, [str(tmp_path / "missing")])
    assert "is not a directory" in str(result.exception)
