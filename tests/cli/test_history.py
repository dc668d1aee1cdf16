"""The commands log and restore, on what git remembers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from machine import Machine, append


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a computer with a memory that was edited, and one that was forgotten."""
    machine = Machine(tmp_path / "base")
    kept, gone = machine.remember("green tea"), machine.remember("forgotten tea")
    machine.synced()
    append(machine.path(kept), "edited")
    machine.path(gone).unlink()
    machine.synced()
    return machine


def rows(machine: Machine, *words: str) -> list[dict[str, object]]:
    """Return what a command prints as JSON."""
    done = machine.aiaml(*words, "--json", AIAML_ENABLE_SYNC="true")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found


def test_log_names_each_change_once(machine: Machine) -> None:
    """Newest first, with what was done and to which memory."""
    found = rows(machine, "log")
    assert [row["action"] for row in found] == ["deleted", "edited", "added", "added"]
    assert len(rows(machine, "log", "-n", "2")) == 2


def test_log_of_a_memory_has_every_version(machine: Machine) -> None:
    """Also of a forgotten memory, by the beginning of its id."""
    for row in rows(machine, "log"):
        memory_id = str(row["id"])
        versions = rows(machine, "log", memory_id[:6])
        assert len(versions) == 2
        assert versions[1]["action"] == "added"
        assert "tea" in str(versions[1]["content"])
    assert machine.aiaml("log", "ffffffff").returncode == 1


def test_restore_brings_back_what_was_forgotten_or_earlier(machine: Machine) -> None:
    """A forgotten memory as it was last; an edited one as it was before, or at a revision."""
    gone, kept = (str(row["id"]) for row in rows(machine, "log")[:2])
    first = str(rows(machine, "log", kept)[1]["revision"])
    for words in ((gone,), (kept, "--yes"), (kept, "--yes"), (kept, "--at", first, "--yes")):
        done = machine.aiaml("restore", *words, AIAML_ENABLE_SYNC="true")
        assert done.returncode == 0, done.stderr
    assert len(machine.files) == 2
    assert not any(b"edited" in data for data in machine.files.values())
    machine.bank.forget({name: data.decode() for name, data in machine.files.items()})
    done = machine.aiaml("restore", "--since", "1h", "--yes", AIAML_ENABLE_SYNC="true")
    assert done.returncode == 0, done.stderr
    assert len(machine.files) == 2


def by_hand(machine: Machine, name: str, memory_id: str) -> Path:
    """Store a memory whose file and id a person chose; return its path."""
    memory = machine.remember("mint tea")
    path = machine.path(memory)
    text = path.read_text("utf-8").replace(memory.id, memory_id)
    path.unlink()
    path = path.with_name(name)
    path.write_text(text, "utf-8")
    machine.synced()
    return path


def test_a_forgotten_memory_is_known_by_the_id_in_its_text(machine: Machine) -> None:
    """Also if a person named its file, and if another id begins with its id."""
    for name, memory_id in (("Tea.md", "aaaa1111"), ("own.md", "my-own")):
        path = by_hand(machine, name, memory_id)
        other = by_hand(machine, f"x_{memory_id}2.md", f"{memory_id}2")
        path.unlink()
        machine.synced()
        assert [row["action"] for row in rows(machine, "log", memory_id)] == ["deleted", "added"]
        done = machine.aiaml("restore", memory_id, AIAML_ENABLE_SYNC="true")
        assert done.returncode == 0, done.stderr
        assert f"Memory {memory_id}:" in done.stdout
        assert path.exists()
        other.unlink()


def test_restore_does_not_revive_a_renamed_memory(machine: Machine) -> None:
    """Its old file is deleted, but its id still exists. Once forgotten, it comes back once."""
    renamed = machine.remember("plum tea")
    machine.synced()
    path = machine.path(renamed).rename(machine.path(renamed).with_name("plum.md"))
    machine.synced()
    done = machine.aiaml("restore", renamed.id, "--yes", AIAML_ENABLE_SYNC="true")
    assert (done.returncode, "no earlier version" in done.stderr) == (1, True), done.stdout
    append(path, "edited")
    machine.synced()
    done = machine.aiaml("restore", "--since", "1h", AIAML_ENABLE_SYNC="true")
    assert "forgotten tea" in done.stdout
    assert "plum tea" not in done.stdout
    assert len(machine.files) == 3
    path.unlink()
    done = machine.aiaml("restore", "--since", "1h", AIAML_ENABLE_SYNC="true")
    assert done.returncode == 0, done.stderr
    assert b"edited" in path.read_bytes()
    assert len(machine.files) == 3


def test_restore_says_that_there_is_no_earlier_version(machine: Machine) -> None:
    """Of a memory that never changed."""
    memory = machine.remember("black tea")
    done = machine.aiaml("restore", memory.id, AIAML_ENABLE_SYNC="true")
    assert (done.returncode, "no earlier version" in done.stderr) == (1, True), done.stderr
