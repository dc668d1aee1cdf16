"""What a stranger has put beside the memories for SQLite to find: none of it is ever opened.

A rollback journal may end with the name of another file, a *super-journal*. SQLite rolls such a
journal back when it opens the database, and then deletes the file that is named (`pager_delsuper`
in its pager.c).
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from aiaml_server import Memory
from aiaml_server.format.memory import format as format_of
from aiaml_server.storage.journal import check_beside
from client import Client
from machine import CLEAN, bare, git
from printed import completed, inherited

_MAGIC = bytes.fromhex("d9d505f920a163d7")
_KEPT_BY = 0x40000000 // 1024 + 1  # the page of the lock byte, under which the name is recorded


def journal_naming(victim: str, pages: int = 1) -> bytes:
    """Return a journal of no pages that names a super-journal."""
    name = victim.encode()
    header = b"".join(
        [_MAGIC, *(each.to_bytes(4, "big") for each in (0, 0, pages, 512, 1024))]
    ).ljust(512, b"\0")
    total = sum(name) & 0xFFFFFFFF
    trailer = [_KEPT_BY.to_bytes(4, "big"), name, len(name).to_bytes(4, "big")]
    return header + b"".join([*trailer, total.to_bytes(4, "big"), _MAGIC])


def plant(database: Path, victim: str) -> None:
    """Put a database somewhere, with a journal beside it that names a file."""
    database.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(database)) as made:
        made.execute("PRAGMA page_size = 1024")
        made.execute("CREATE TABLE anything (value)")
        made.commit()
        ((pages,),) = made.execute("PRAGMA page_count").fetchall()
    database.with_name(f"{database.name}-journal").write_bytes(journal_naming(victim, pages))


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """A file of the person's; afterwards it is as it was."""
    path = tmp_path / "precious"
    path.write_text("ssh-ed25519 AAAA somebody\n")
    yield path
    assert path.is_file() and path.read_text() == "ssh-ed25519 AAAA somebody\n"


@pytest.fixture(params=["absolute", "relative"])
def base(request: pytest.FixtureRequest, tmp_path: Path, victim: Path) -> Path:
    """A base that was cloned from a stranger, who has planted what there is to plant."""
    named = str(victim) if request.param == "absolute" else victim.name
    stranger = tmp_path / "stranger"
    memory = Memory.new("claude", "marco", ["x"], "a needle")
    (stranger / "files").mkdir(parents=True)
    (stranger / "files" / memory.file_name).write_text(format_of(memory), "utf-8")
    index = stranger / ".index"
    for database in ("0" * 32, os.urandom(16).hex()):
        plant(index / database / "seen", named)
    git(stranger, "init", "--quiet")
    git(stranger, "add", "--all", "--force")
    git(stranger, "-c", "user.name=X", "-c", "user.email=x@example.org", "commit", "-qm", "all")
    git(tmp_path, "clone", "--quiet", str(stranger), "base")
    return tmp_path / "base"


def run(base: Path, *words: str, **more: str) -> str:
    """Run a verb in the directory that a relative name is meant in; return what it prints."""
    environ = {**inherited(), **CLEAN, "AIAML_MEMORY_DIR": str(base), "COLUMNS": "200"}
    environ |= more
    done = completed([sys.executable, "-m", "aiaml_server", *words], env=environ, cwd=base.parent)
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["sync", "remember something -t x"])
def test_planted_ledger_of_sync_is_not_opened(base: Path, victim: Path, verb: str) -> None:
    """Nor what lies below `.git`, as it comes with an archive, or with a directory of another's."""
    journal = base / ".index" / ("0" * 32) / "seen-journal"
    named = str(victim) if str(victim).encode() in journal.read_bytes() else victim.name
    shutil.rmtree(base / ".index")
    for place in (base / ".git" / "aiaml" / "seen", base / ".git" / "seen"):
        plant(place, named)
    run(base, *verb.split())
    with Client(base, environ={"AIAML_ENABLE_SYNC": "true", **CLEAN}, cwd=base.parent) as client:
        client.remember("noted")
    run(base, "sync")
    assert (base / ".git" / "aiaml" / "seen-journal").exists()  # in a repository that is not ours


def test_journal_that_was_put_into_the_users_own_folder_deletes_nothing(
    tmp_path: Path, victim: Path
) -> None:
    """By what synchronises directories, or with a copy that got the number of the one before it."""
    base = tmp_path / "own"
    run(base, "remember", "a needle", "-t", "x")
    run(base, "search", "needle")
    (database,) = (base / ".index").glob("*/seen")
    pages = database.stat().st_size // 1024
    database.with_name(f"{database.name}-journal").write_bytes(journal_naming(str(victim), pages))
    assert "needle" in run(base, "search", "needle")
    run(base, "remember", "another", "-t", "x")
    run(base, "sync")


@pytest.mark.slow
def test_remote_of_a_directory_from_elsewhere_is_not_used(tmp_path: Path) -> None:
    """Memories go where this user has said, not where whoever gave the directory away did."""
    theirs, base = tmp_path / "theirs", tmp_path / "base"
    evil = bare(tmp_path / "evil")
    with_remote = {"AIAML_GITHUB_REMOTE": str(evil)}
    run(theirs, "remember", "a bait", "-t", "x", **with_remote)
    run(theirs, "sync", **with_remote)
    assert "evil" in run(theirs, "status")
    shutil.copytree(theirs, base)
    shutil.rmtree(base / ".index")
    run(base, "remember", "my own", "-t", "x")
    assert "pushed" not in run(base, "sync")
    assert git(evil, "rev-list", "--count", "main") == git(theirs, "rev-list", "--count", "main")


def test_git_file_that_names_no_path_is_named(tmp_path: Path) -> None:
    """A memory is stored once all the same, and a verb says what is wrong."""
    base = tmp_path / "base"
    base.mkdir()
    (base / ".git").write_bytes(b"gitdir: \0x\n")
    assert "mistake in the program" not in run(base, "remember", "a needle", "-t", "x")
    assert "mistake in the program" not in run(base, "sync")
    assert "needle" in run(base, "list")


def test_journal_that_another_process_begins_names_nothing(tmp_path: Path) -> None:
    """It begins with the bytes with which one that names a file ends: looked at at any moment."""
    database = tmp_path / "index.sqlite"
    journal = tmp_path / "index.sqlite-journal"
    begun = bytes.fromhex("d9d505f920a163d7").ljust(512, b"\0")
    journal.write_bytes(begun[:8])
    check_beside(database)
    ended = threading.Event()

    def begin() -> None:
        with journal.open("r+b", buffering=0) as file:
            while not ended.is_set():
                file.truncate(0)
                file.seek(0)
                file.write(begun)

    beginning = threading.Thread(target=begin)
    beginning.start()
    try:
        for _ in range(5_000):
            check_beside(database)
    finally:
        ended.set()
        beginning.join()
