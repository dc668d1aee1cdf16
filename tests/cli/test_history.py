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
