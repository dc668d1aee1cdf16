"""The directory: what is a memory in it, and what is skipped, named once and left alone."""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
import threading
from pathlib import Path
from random import Random

import pytest

from aiaml_server.bank import MemoryBank
from aiaml_server.errors import FileChanged, InvalidInput, MalformedFile, StoreError
from aiaml_server.format.memory import Memory, format  # noqa: A004
from aiaml_server.index import index_file
from aiaml_server.settings import Settings
from aiaml_server.storage.store import MAX_FILE, Store

posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no such files")

GOOD = format(Memory("a1b2c3d4", "2026-01-01T00:00:00+00:00", "claude", "marco", ("x",), "needle"))


@pytest.fixture
def bank(tmp_path: Path) -> MemoryBank:
    """Open an empty bank whose `files/` exists."""
    (tmp_path / "files").mkdir()
    return MemoryBank(Settings(base=tmp_path))


def plant(bank: MemoryBank, name: str, data: bytes = GOOD.encode()) -> Path:
    """Put a file into the store by hand."""
    path = bank.directory / name
    path.write_bytes(data)
    return path


def found(bank: MemoryBank) -> list[str]:
    """Return the names of the files in which the needle is found."""
    return sorted(hit.file_name for hit in bank.think(["needle"]))


def test_any_visible_md_file_is_read(bank: MemoryBank) -> None:
    """The name of a file by other hands does not matter, as long as it ends in .md."""
    for name in ("20260101_000000_a1b2c3d4.md", "notes from today.md", "é中🙂.md", "-rf.md"):
        plant(bank, name)
    for name in (".hidden.md", "._apple.md", ".x.md.tmp", "note.txt", "note.md~", "NOTE.MD", "md"):
        plant(bank, name)
    (bank.directory / "directory").mkdir()
    plant(bank, "directory/deeper.md")
    assert found(bank) == sorted(
        ["20260101_000000_a1b2c3d4.md", "notes from today.md", "é中🙂.md", "-rf.md"]
    )


def test_a_lock_file_that_somebody_else_wrote_is_left_as_it_is(bank: MemoryBank) -> None:
    """It may be another program's, or a link to a file elsewhere."""
    lock = bank.base / ".lock"
    lock.write_bytes(b"what somebody else keeps")
    bank.remember("claude", "marco", ["x"], "needle")
    assert lock.read_bytes() == b"what somebody else keeps"
    assert len(found(bank)) == 1


def test_what_is_forgotten_leaves_the_index_at_once(bank: MemoryBank) -> None:
    """Nobody has to ask it first, and what another version left of its own goes too."""
    bank.remember("claude", "marco", ["x"], "needle")
    (name,) = found(bank)
    index = index_file(bank.base)
    assert b"needle" in index.read_bytes()
    earlier = index.with_name("1-1.0.0.sqlite")
    earlier.write_bytes(b"needle")
    bank.forget({name: bank.text(name)})
    assert b"needle" not in index.read_bytes()
    assert not earlier.exists()


def test_a_forgotten_memory_is_in_no_page_of_the_index(bank: MemoryBank) -> None:
    """SQLite moves what it stores, and leaves copies."""
    random = Random(2)
    for _ in range(40):
        for _ in range(3):
            words = [f"q{random.randrange(16**9):09x}" for _ in range(random.choice([3, 30, 300]))]
            bank.remember("claude", "marco", ["x"], " ".join(words))
        name = random.choice([hit.file_name for hit in bank.think(["claude"])])
        words = bank.read(name).content.split()
        bank.forget({name: bank.text(name)})
        data = index_file(bank.base).read_bytes()
        assert [word for word in words if word.encode() in data] == []


def test_an_index_that_cannot_be_written_is_deleted_when_something_is_forgotten(
    bank: MemoryBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the text would stay in it until somebody searches."""
    monkeypatch.setattr("aiaml_server.storage.cache.LOCK_SECONDS", 0)
    bank.remember("claude", "marco", ["x"], "needle")
    (name,) = found(bank)
    bank.close()
    other = sqlite3.connect(index_file(bank.base), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    bank.forget({name: bank.text(name)})
    assert not index_file(bank.base).exists()
    other.close()
    assert found(bank) == []


MALFORMED = {
    "empty": (b"", "the first line is not ---"),
    "only frontmatter, unclosed": (GOOD.split("\n---", 1)[0].encode(), "no second line ---"),
    "invalid UTF-8": (GOOD.encode() + b"\xff", f"byte {len(GOOD.encode())} is not UTF-8"),
    "UTF-16": (GOOD.encode("utf-16"), "byte 0 is not UTF-8"),
    "a missing field": (GOOD.replace("user", "usr").encode(), "no field 'user'"),
    "too large": (GOOD.encode() + b"x" * MAX_FILE, "it is larger than 4,194,304 bytes"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_file_is_skipped_named_once_and_left_alone(
    bank: MemoryBank, caplog: pytest.LogCaptureFixture, case: str
) -> None:
    """Searching goes on, the log says which file and why, and the file stays as it is."""
    data, reason = MALFORMED[case]
    path = plant(bank, "bad.md", data)
    plant(bank, "good.md")
    for _ in range(3):
        assert found(bank) == ["good.md"]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert str(path) in record.getMessage() and reason in record.getMessage()
    assert path.read_bytes() == data

    plant(bank, "new", data + b" ").replace(path)  # changed and still bad: named again
    os.utime(path, (1, 1))
    assert [name for name, _ in bank.scan(bank.names())] == ["good.md"]
    assert len(caplog.records) == 2


def test_several_malformed_files_are_one_line(
    bank: MemoryBank, caplog: pytest.LogCaptureFixture
) -> None:
    """With the command that names them all."""
    for number in range(3):
        plant(bank, f"bad{number}.md", b"no head")
    assert found(bank) == []
    (record,) = caplog.records
    text = record.getMessage()
    assert "bad0.md: the first line" in text
    assert "(2 more were skipped). See `aiaml doctor files`" in text


def test_a_large_file_within_the_limit_is_read(bank: MemoryBank) -> None:
    """Four mebibytes are still a memory."""
    plant(bank, "large.md", GOOD.encode().ljust(MAX_FILE, b"."))
    assert found(bank) == ["large.md"]


@posix
def test_nothing_but_regular_files_is_opened(bank: MemoryBank, tmp_path: Path) -> None:
    """Links, also to memories, pipes, devices and directories are skipped without a wait."""
    outside = tmp_path / "outside.md"
    outside.write_text(GOOD)
    directory = bank.directory
    plant(bank, "good.md")
    (directory / "link.md").symlink_to(outside)
    (directory / "inside.md").symlink_to("good.md")
    (directory / "loop.md").symlink_to("loop.md")
    (directory / "dangling.md").symlink_to("nothing.md")
    (directory / "device.md").symlink_to("/dev/zero")
    (directory / "directory.md").mkdir()
    os.mkfifo(directory / "pipe.md")
    results: list[list[str]] = []
    thread = threading.Thread(target=lambda: results.append(found(bank)), daemon=True)
    thread.start()
    thread.join(10)
    assert results == [["good.md"]]
    with pytest.raises(MalformedFile, match="symbolic link"):
        bank.text("link.md")


@posix
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_skipped(bank: MemoryBank) -> None:
    """One unreadable file hides no other."""
    plant(bank, "good.md")
    plant(bank, "secret.md").chmod(0)
    assert found(bank) == ["good.md"]


def test_the_missing_directory_is_an_empty_store(tmp_path: Path) -> None:
    """Before the first memory nothing exists, and nothing is created by asking."""
    bank = MemoryBank(Settings(base=tmp_path / "not" / "yet"))
    assert bank.think(["x"]) == []
    assert bank.recall(["a1b2c3d4"]) == {"a1b2c3d4": []}
    assert list(tmp_path.iterdir()) == []


@posix
def test_a_link_to_what_is_not_there_is_named(tmp_path: Path) -> None:
    """Its disk is not mounted, so what were made in its place would be hidden by it later."""
    elsewhere = tmp_path / "elsewhere"
    base = tmp_path / "base"
    base.mkdir()
    (base / "files").symlink_to(elsewhere, target_is_directory=True)
    bank = MemoryBank(Settings(base))
    with pytest.raises(StoreError, match="files: it is a link to a directory that is not there"):
        bank.remember("claude", "marco", ["x"], "one")
    assert not elsewhere.exists()
    elsewhere.mkdir()
    bank.remember("claude", "marco", ["x"], "one")
    assert len(list(elsewhere.glob("*.md"))) == 1


def test_what_is_created_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Every directory that has to be made is 0700, every memory 0600."""
    base = tmp_path / "a" / "b"
    MemoryBank(Settings(base=base)).remember("claude", "marco", ["x"], "y")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (base, *base.rglob("*"))}
    assert {mode for name, mode in modes.items() if name.endswith(".md")} == {0o600}
    assert (modes["b"], modes["files"]) == (0o700, 0o700)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700


def test_a_memory_added_by_hand_makes_its_id_taken(tmp_path: Path) -> None:
    """An id is unique among the names in the directory, whoever put them there."""
    store = Store(tmp_path)
    first = store.add(Memory.new("claude", "marco", ["x"], "one"))
    name = f"20200101_000000_{first.id}.md"
    (store.directory / first.file_name).rename(store.directory / name)
    second = store.add(Memory("".join(first.id), first.timestamp, "a", "b", ("c",), "two"))
    assert second.id != first.id
    assert sorted(store.names()) == sorted([name, second.file_name])


def test_a_file_changes_only_from_what_was_read(tmp_path: Path) -> None:
    """Edits and deletions of two people do not overwrite each other."""
    bank = MemoryBank(Settings(tmp_path))
    memory = bank.remember("claude", "marco", ["x"], "one")
    name, before = memory.file_name, bank.text(memory.file_name)
    after = before.replace("one", "two")
    bank.edit(name, before, after)
    for change in (lambda: bank.edit(name, before, after), lambda: bank.forget({name: before})):
        with pytest.raises(FileChanged):
            change()
    assert bank.text(name) == after
    bank.forget({name: after})
    assert bank.names() == []
    with pytest.raises(FileChanged):
        bank.edit(name, after, before)
    bank.restore(name, None, before)
    assert bank.recall([memory.id])[memory.id] == [memory]


def test_what_a_killed_writer_left_is_in_nobody_s_way(tmp_path: Path) -> None:
    """A memory whose bringing back was interrupted by a power cut is brought back at once."""
    bank = MemoryBank(Settings(tmp_path))
    memory = bank.remember("claude", "marco", ["x"], "one")
    name, text = memory.file_name, bank.text(memory.file_name)
    bank.forget({name: text})
    (tmp_path / "files" / f".{name}.tmp").write_text(text[:9])
    bank.restore(name, None, text)
    assert bank.recall([memory.id])[memory.id] == [memory]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("---\nid", "id", "first line"),
        ("id: ", "id: 0", "must stay"),
        ("agent: claude\n", "", "no"),
    ],
)
def test_an_edit_that_is_no_memory_is_refused(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    """The file stays as it was, and the reason is said."""
    bank = MemoryBank(Settings(tmp_path))
    memory = bank.remember("claude", "marco", ["x"], "one")
    before = bank.text(memory.file_name)
    with pytest.raises(MalformedFile, match=reason):
        bank.edit(memory.file_name, before, before.replace(old, new, 1))
    assert bank.text(memory.file_name) == before


def test_a_shortened_id_is_found(tmp_path: Path) -> None:
    """Four characters do, unless two memories begin so."""
    for memory_id in ("abcd0000", "abcd1111", "ffff0000"):
        (tmp_path / "files").mkdir(exist_ok=True)
        memory = Memory(memory_id, "2026-01-01", "a", "u", ("t",), memory_id)
        (tmp_path / "files" / f"{memory_id}.md").write_text(format(memory))
    bank = MemoryBank(Settings(tmp_path))
    assert [memory.id for _, memory in bank.find("ffff")] == ["ffff0000"]
    assert [memory.id for _, memory in bank.find("abcd1111")] == ["abcd1111"]
    assert bank.find("fff") == bank.find("ffff0001") == bank.find("%") == []
    with pytest.raises(InvalidInput, match="abcd0000, abcd1111"):
        bank.find("abcd")
    assert [name for name, _ in bank.newest()] == ["ffff0000.md", "abcd1111.md", "abcd0000.md"]


def test_an_edit_that_was_killed_stands_in_no_way(tmp_path: Path) -> None:
    """What it left does not keep the next one from its work, and is cleared away in time."""
    bank = MemoryBank(Settings(tmp_path))
    name = bank.remember("claude", "marco", ["x"], "one").file_name
    lefts = [tmp_path / "files" / f".aiaml-0123456789abcdef{end}.tmp" for end in "01"]
    for left in lefts:
        left.write_text("half")
        os.utime(left, (1, 1))
    before = bank.text(name)
    bank.edit(name, before, before.replace("one", "two"))
    assert "two" in bank.text(name)
    MemoryBank(Settings(tmp_path)).remember("claude", "marco", ["x"], "another")
    assert not any(left.exists() for left in lefts)
