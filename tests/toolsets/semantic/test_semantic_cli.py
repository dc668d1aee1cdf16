"""`aiaml semantic …` and what `aiaml doctor` says of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from aiaml_server.identity import trust
from aiaml_server.terminal import Exit
from aiaml_server.toolset import Finding
from aiaml_server.toolsets.semantic import doctor
from aiaml_server.toolsets.semantic.cli import semantic
from aiaml_server.toolsets.semantic.store import MemoryStore
from loop_disk import memory_disk
from semantic_model import NAME, model_folder, needs_fastembed


@pytest.fixture
def shop(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, in which the person works."""
    (home / "shop").mkdir()
    monkeypatch.chdir(home / "shop")
    monkeypatch.delenv("AIAML_SEMANTIC_PROJECT", raising=False)
    return home / "shop"


def run(*words: str, code: int = 0, given: str = "") -> str:
    """Run a command, check how it ends, and return all that it prints."""
    result = CliRunner().invoke(semantic, words, input=given, standalone_mode=False)
    if isinstance(result.exception, Exit):
        assert result.exception.code == code, result.exception
        return result.output + str(result.exception)
    if result.exception is not None:
        raise result.exception
    assert (result.return_value or 0) == code, result.output
    return result.output


def test_memories_by_hand(shop: Path) -> None:
    """Created, added, found, shown, listed, forgotten; an empty answer is no failure."""
    assert "No memories match." in run("list")
    assert str(shop / ".memory" / "db") in run("init")
    run("add", "Prices are in cents.", "--tag", "billing", "--priority", "high")
    assert "I like tea" in run("add", "--scope", "global", given="I like tea\n")
    assert "project:1" in run("search", "price") and "words only" in run("search", "price")
    assert "Prices are in cents." in run("show", "project:1")
    assert json.loads(run("show", "project:1", "--json"))["priority"] == "HIGH"
    listed = run("list", "--tag", "billing")
    assert "project:1" in listed and "global:1" not in listed
    assert json.loads(run("list", "--json"))["memories"][0]["id"] == "global:1"
    assert "2 memories, 2 without a vector" in run("status")
    assert json.loads(run("status", "--json"))["memories"] == 2
    run("forget", "global:1", "--yes")
    assert "No memories match." in run("search", "tea")
    run("show", "global:1", code=1)
    run("show", "x", code=2)


def test_changes_are_listed_and_undone(shop: Path) -> None:
    """By their ids."""
    run("init")
    run("add", "one")
    assert "There is nothing to undo." in run("undo", "--list")
    assert "there is nothing to undo in" in run("undo", code=1)
    store = MemoryStore.at(shop)
    store.update("project:1", content="two")
    store.close()
    (change,) = MemoryStore.at(shop).history()
    assert f"project#1  {change.at}  update" in run("undo", "--list")
    assert "one" in run("undo", "project#1")
    assert "there is no change project#1 in" in run("undo", "project#1", code=1)


def test_import_export_backup_restore(shop: Path) -> None:
    """Out of the files of a project, and through lines of JSON."""
    (shop / "NOTES.md").write_text("# Rules\n\n- Use cents\n- No floats\n", encoding="utf-8")
    assert "look like memories" in run("init")
    assert "2 new memories" in run("import", "--dry-run")
    assert "imported: 2" in run("import", "--yes")
    assert "0 new memories, 2 already stored" in run("import", "--yes")

    assert "missing.md: no such file or directory" in run("import", "missing.md", code=1)

    listed = run("backup").splitlines()
    assert [line.rpartition("  ")[2] for line in listed] == ["2 memories", "0 memories"]
    run("export", "all.jsonl")
    assert len((shop / "all.jsonl").read_text(encoding="utf-8").splitlines()) == 2
    run("forget", "project:1", "project:2", "--yes")
    assert "imported: 2" in run("import", "all.jsonl", "--yes")
    assert json.loads((shop / "all.jsonl").read_text().splitlines()[0])["topics"] == ["rules"]
    assert "restored" in run("restore", "project", "--yes")
    assert json.loads(run("list", "--json"))["memories"] == []


def test_a_backup_survives_an_export_of_damaged_memories(shop: Path) -> None:
    """Nothing is written if not all memories can be read."""
    run("init")
    run("add", "one")
    run("export", "all.jsonl")
    before = (shop / "all.jsonl").read_bytes()
    (shop / ".memory" / "db").write_bytes(b"damaged" * 1000)
    assert "nothing was written" in run("export", "all.jsonl", code=1)
    assert (shop / "all.jsonl").read_bytes() == before


def test_each_command_says_what_to_do(shop: Path, tmp_path: Path) -> None:
    """On a read-only disk, which is still read; and where a database is damaged."""
    with memory_disk(tmp_path / "disk", "size=4m") as disk:
        project = disk / "shop"
        project.mkdir()
        os.chdir(project)
        run("init")
        run("add", "tea")
        for words in ("backup",), ("add", "coffee"), ("forget", "project:2", "--yes"):
            run(*words)
        (project / "NOTES.md").write_text("- note", encoding="utf-8")
        os.utime(project / ".memory" / "db")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        for words in (
            ("add", "more"), ("forget", "project:1", "--yes"), ("import", "--yes"), ("init",),
            ("export", "all.jsonl"), ("backup",), ("restore", "project", "--yes"),
        ):  # fmt: skip
            said = run(*words, code=1)
            assert "Read-only file system. Free some space, give this user write" in said, words
        assert "tea" in run("search", "tea") and "tea" in run("show", "project:1")
        assert "1 new memory" in run("import", "--dry-run") and "1 memory" in run("status")
        os.chdir(shop)
    run("init")
    (shop / ".memory" / "db").write_bytes(b"damaged" * 1000)
    assert "damaged" in run("show", "project:1", code=1)
    assert "restore project" in run("show", "project:1", code=1)


@needs_fastembed
@pytest.mark.network
def test_model_is_used(shop: Path) -> None:
    """One in a directory; the memories get vectors."""
    run("init")
    run("add", "The car is washed on Fridays.")
    settings = {"embedding": {"model": NAME, "path": str(model_folder())}}
    (shop.parent / ".memory" / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    assert "is ready" in run("model", "download")
    assert "1 memory got vectors" in run("model", "reembed")
    assert "The car" in run("search", "vehicle") and "words only" not in run("search", "vehicle")
    assert NAME in run("status")


def test_database_of_somebody_else_is_opened_after_a_yes(shop: Path) -> None:
    """The person's own memories are answered meanwhile; a named project is a yes."""
    run("init")
    run("add", "Own tea", "--scope", "global")
    run("add", "Tea from a stranger")
    stranger = shop.parent / "stranger"
    (shop / ".memory").rename(shop.parent / "taken")
    stranger.mkdir()
    (shop.parent / "taken").rename(stranger / ".memory")
    os.chdir(stranger)
    found = run("search", "tea")
    assert "Own tea" in found and "stranger" in found and "Tea from" not in found
    assert "aiaml trust" in found
    assert "not created by you" in run("add", "more", code=1)
    assert [each.level for each in findings() if "not created by you" in each.found] == ["error"]
    os.environ["AIAML_SEMANTIC_PROJECT"] = str(stranger)
    try:
        assert "Tea from a stranger" in run("search", "tea")
    finally:
        del os.environ["AIAML_SEMANTIC_PROJECT"]
    trust(stranger / ".memory")
    assert "Tea from a stranger" in run("search", "tea")


def test_no_command_uses_what_is_not_trusted(shop: Path) -> None:
    """A copied project, its backups alone, and a link to a trusted one; nothing is changed."""
    run("init")
    run("add", "tea")
    run("backup")
    run("add", "coffee")
    copied, backups, linked = (shop.parent / name for name in ("copied", "backups", "linked"))
    shutil.copytree(shop, copied)
    shutil.copytree(shop, backups)
    (backups / ".memory" / "db").unlink()
    linked.mkdir()
    (linked / ".memory").symlink_to(shop / ".memory")
    before = contents(shop.parent)
    for project, message in ((copied, "not created"), (backups, "not created"), (linked, "link")):
        os.chdir(project)
        commands = [("restore", "project", "--yes"), ("backup",)]
        if project != backups:
            commands += [("add", "x"), ("show", "project:1"), ("forget", "project:1", "--yes")]
        for words in commands:
            assert message in run(*words, code=1), words
        assert contents(shop.parent) == before
    os.chdir(shop)
    assert "restored" in run("restore", "project", "--yes")


def contents(directory: Path) -> dict[Path, bytes]:
    """Return what each file below a directory holds."""
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_memory_directory_without_a_database_needs_no_yes(shop: Path) -> None:
    """As a clone may have one."""
    (shop / ".memory").mkdir(mode=0o700)
    run("add", "tea")
    assert "project:1" in run("search", "tea")


def test_nothing_is_created_or_trusted_without_apsw(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a directory, nor an id in one that came with a clone."""
    monkeypatch.setitem(sys.modules, "apsw", None)
    assert "pip install" in run("init", code=1)
    assert list(shop.iterdir()) == []
    (shop / ".memory").mkdir(mode=0o700)
    for words in (("init",), ("add", "tea")):
        assert "pip install" in run(*words, code=1)
    assert list((shop / ".memory").iterdir()) == []


def findings() -> list[Finding]:
    """Return what doctor says."""
    return list(doctor.checks(dict(os.environ)))


def test_doctor(shop: Path) -> None:
    """Of the settings and the databases."""
    assert [each.level for each in findings()] == ["ok"]
    run("init")
    run("add", "tea")
    assert "backups" in run("backup")
    assert [each.found.partition(": ")[2] for each in findings()] == ["1 memory", "0 memories"]
    path = shop / ".memory" / "db"
    path.write_bytes(b"damaged" * 1000)
    assert any(each.level == "error" and "damaged" in each.found for each in findings())
    backed_up = run("backup", code=1)
    assert "damaged" in backed_up and "backups" not in backed_up
    (shop.parent / ".memory" / "config.json").write_text('{"x": 1}', encoding="utf-8")
    (found,) = findings()
    assert found.level == "error" and "x is unknown" in found.found
