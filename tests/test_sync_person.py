"""A person's own git in the memory directory: its files, branches and habits are left alone."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from aiaml_server.sync import remembered
from machine import Machine, as_person, content_of, git, settle

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="a shell script is the hook")


@pytest.fixture(autouse=True)
def nobodys_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sync runs as on a machine whose owner has configured nothing."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's own configuration file, empty."""
    path = tmp_path / "gitconfig"
    path.touch()
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(path))
    return path


# --- where the repository is --------------------------------------------------------------------


def test_a_deleted_repository_is_made_anew_while_the_server_runs(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """The next round makes it and commits all memories again; nobody loses or gets one twice."""
    memories = {ada.remember("one").file_name, bob.remember("two").file_name}
    settle([ada, bob])
    shutil.rmtree(ada.base / ".git")
    memories.add(ada.remember("three").file_name)
    ada.synced()
    settle([ada, bob])
    assert set(ada.files) == memories
    assert ada.files == bob.files == content_of(remote)
    assert ada.git("status", "--porcelain") == ""


def _worktree(base: Path) -> None:
    other = base.parent / "other"
    git(base.parent, "init", "--quiet", str(other))
    as_person(other, "commit", "--quiet", "--allow-empty", "-m", "Other")
    git(other, "worktree", "add", "--quiet", str(base))


def _submodule(base: Path) -> None:
    outer, inner = base.parent, base.parent.parent / "inner"
    for directory in (outer, inner):
        git(base.parent.parent, "init", "--quiet", str(directory))
    as_person(inner, "commit", "--quiet", "--allow-empty", "-m", "Inner")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner),
        base.name)  # fmt: skip


def _separate(base: Path) -> None:
    git(base.parent, "init", "--quiet", "--separate-git-dir", str(base.parent / "git"), str(base))


def _link(base: Path) -> None:
    base.mkdir()
    git(base, "init", "--quiet")
    (base / ".git").rename(base.parent / "git")
    (base / ".git").symlink_to(base.parent / "git")


@pytest.mark.parametrize("made", [_worktree, _submodule, _separate, _link])
def test_the_address_last_used_is_known_wherever_the_repository_lies(
    tmp_path: Path, remote: Path, made: object
) -> None:
    """Also where `.git` is a file or a link: a worktree, a submodule, a directory apart."""
    base = tmp_path / "outer" / "base"
    base.parent.mkdir()
    made(base)  # type: ignore[operator]
    machine = Machine(base, remote)
    memory = machine.remember("one")
    machine.synced()
    assert list(content_of(remote)) == [memory.file_name]
    assert remembered(base) == str(remote)


# --- what a person has configured ---------------------------------------------------------------


def test_no_configured_order_of_files_stops_commits(configuration: Path, ada: Machine) -> None:
    """`diff.orderFile` may name a file that is not there."""
    configuration.write_text("[diff]\n\torderFile = nowhere\n")
    memory = ada.remember("one")
    ada.synced()
    ada.path(memory).write_bytes(ada.path(memory).read_bytes() + b"more\n")
    ada.remember("two")
    ada.synced()
    assert len(ada.messages()) == 4


def test_a_warning_about_line_ends_leaves_nothing_staged(configuration: Path, ada: Machine) -> None:
    """With `core.safecrlf` git refuses to add what it could not give back byte for byte."""
    configuration.write_text("[core]\n\tautocrlf = true\n\tsafecrlf = true\n")
    ada.remember("one")
    ada.synced()
    assert ada.git("ls-files").splitlines()[:2] == [".gitattributes", ".gitignore"]
    assert ada.git("diff", "--cached", "--name-only") == ""


@posix_only
def test_a_persons_hooks_do_not_run_at_a_remote_that_is_a_path(
    configuration: Path, ada: Machine, remote: Path, tmp_path: Path
) -> None:
    """What `core.hooksPath` of a person names stays still; the remote's own hooks do run."""
    hooks, ran = tmp_path / "hooks", tmp_path / "ran"
    hooks.mkdir()
    for path in (hooks / "reference-transaction", remote / "hooks" / "post-receive"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\necho {path.name} >> {ran}\n")
        path.chmod(0o755)
    configuration.write_text(f"[core]\n\thooksPath = {hooks}\n")
    ada.remember("one")
    ada.synced()
    assert len(content_of(remote)) == 1
    assert ran.read_text() == "post-receive\n"
