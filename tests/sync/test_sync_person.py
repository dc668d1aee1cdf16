"""A person's own git in the memory directory: what it does to files is no edit and no deletion."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from aiaml_server.sync.history import History
from machine import Machine, append, as_person, bare, content_of, git, settle


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a computer whose memory directory is in a repository of the person's."""
    remote = bare(tmp_path / "remote")
    machine = Machine(tmp_path / "base", remote)
    machine.base.mkdir()
    git(machine.base, "init", "--quiet", "--initial-branch=main")
    (machine.base / "notes.txt").write_text("mine")
    git(machine.base, "add", "notes.txt")
    as_person(machine.base, "commit", "--quiet", "-m", "Notes")
    machine.remember("one")
    machine.synced()
    return machine


def test_two_repositories_in_one_directory_do_not_see_each_other(machine: Machine) -> None:
    """Their branch, index and files are untouched, and `git add -A` takes nothing of ours."""
    assert machine.repository == machine.base / ".aiaml.git"
    assert git(machine.base, "log", "--format=%s") == "Notes"
    git(machine.base, "add", "-A", ".")
    staged = git(machine.base, "diff", "--cached", "--name-only").splitlines()
    assert not [name for name in staged if name.startswith(".aiaml.git")]
    assert {*content_of(Path(machine.settings.remote))} == {*machine.files}


def test_ignore_rules_of_the_person_hide_no_memory(machine: Machine) -> None:
    """As the documentation recommends, the person's git may ignore all memories."""
    (machine.base / ".gitignore").write_text("files/\n")
    (machine.base / "files" / ".gitignore").write_text("*\n")
    memory = machine.remember("two")
    machine.synced()
    assert memory.file_name in content_of(Path(machine.settings.remote))


def test_what_the_git_of_the_person_removes_or_restores_is_no_change(machine: Machine) -> None:
    """A checkout, a reset and a removal: missing files return, old versions are brought up."""
    git(machine.base, "add", "-f", "files")
    as_person(machine.base, "commit", "--quiet", "-m", "Memories")
    path = next((machine.base / "files").glob("*.md"))
    append(path, "newer")
    later = machine.remember("later")
    machine.synced()
    wanted = dict(machine.files)
    git(machine.base, "stash", "-u", "--quiet")
    machine.synced()
    assert machine.files == wanted
    git(machine.base, "reset", "--quiet", "--hard", "HEAD~1")
    machine.synced()
    assert machine.files == wanted
    git(machine.base, "rm", "--quiet", "-f", "--ignore-unmatch", str(machine.path(later)))
    machine.synced()
    assert machine.files == wanted


def test_remote_of_the_settings_makes_the_directory_trusted(tmp_path: Path) -> None:
    """From the first cycle on, also where the directory has a repository of the person."""
    base = tmp_path / "base"
    base.mkdir()
    git(base, "init", "--quiet")
    machine = Machine(base, bare(tmp_path / "remote"))
    machine.remember("one")
    machine.synced()
    copy = Machine(tmp_path / "copy", machine.settings.remote)
    shutil.copytree(base, copy.base, dirs_exist_ok=True)
    copy.synced()
    for each in (base, copy.base):
        assert len([*History(each).versions()]) == 1


def test_configuration_of_the_person_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What suits their own repositories could stop ours, or change what is read from it."""
    settings = {
        "user.name": "Ada", "user.email": "ada@example.org", "push.gpgSign": "true",
        "commit.gpgSign": "true", "diff.orderFile": str(tmp_path / "missing"), "gc.auto": "1",
        "core.autocrlf": "true", "core.safecrlf": "true", "submodule.recurse": "true",
    }  # fmt: skip
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    for key, value in settings.items():
        subprocess.run(["git", "config", "--global", key, value], check=True)
    remote = bare(tmp_path / "remote")
    ada, bob = (Machine(tmp_path / name, remote) for name in ("ada", "bob"))
    memory = ada.remember("one\r\ntwo")
    settle([ada, bob])
    assert ada.files == bob.files == content_of(remote)
    (version,) = History(ada.base).versions()
    assert (version.author, version.name) == ("Ada", memory.file_name)


def test_files_with_conflict_markers_are_not_committed(machine: Machine) -> None:
    """While the person's merge is open, only new memories are committed."""
    git(machine.base, "add", "-f", "files")
    as_person(machine.base, "commit", "--quiet", "-m", "Memories")
    path = next((machine.base / "files").glob("*.md"))
    git(machine.base, "checkout", "--quiet", "-b", "side")
    append(path, "from the side")
    as_person(machine.base, "commit", "--quiet", "-am", "Side")
    git(machine.base, "checkout", "--quiet", "main")
    append(path, "from main")
    as_person(machine.base, "commit", "--quiet", "-am", "Main")
    with pytest.raises(AssertionError, match="merge --quiet side"):
        as_person(machine.base, "merge", "--quiet", "side")
    new = machine.remember("new")
    machine.synced()
    held = content_of(Path(machine.settings.remote))
    assert new.file_name in held
    assert not any(b"<<<<<<<" in data for data in held.values())
    git(machine.base, "checkout", "--ours", "--", str(path))
    git(machine.base, "add", "-f", str(path))
    as_person(machine.base, "commit", "--quiet", "-m", "Merged")
    machine.synced()
    assert b"from main" in content_of(Path(machine.settings.remote))[path.name]


def test_base_inside_a_project_is_no_part_of_it(tmp_path: Path) -> None:
    """As `memory/` in a checkout."""
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "--quiet", "--initial-branch=main")
    machine = Machine(project / "memory")
    machine.remember("one")
    machine.synced()
    assert machine.repository == project / "memory" / ".aiaml.git"
    assert git(project, "status", "--porcelain", "-uall", "--ignored=no").count("aiaml.git") == 0
