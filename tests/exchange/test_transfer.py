"""`aiaml import` and `aiaml export`: nothing twice, nothing lost, and back again."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from aiaml_server.bank import MemoryBank
from aiaml_server.cli.app import run
from aiaml_server.format.memory import Memory, format, parse  # noqa: A004 (the word for it)

MEMORIES = [
    Memory("a1b2c3d4", "2026-01-02T03:04:05+00:00", "claude", "ann", ("food",), "Ann eats fish."),
    Memory(
        *("b1b2c3d4", "2026-02-02T03:04:05+00:00", "codex", "ann", ("trip", "x")),
        " Lisbon: ü\n",
        ("k: v",),
    ),
    Memory("../x y", "2026-03-02T03:04:05+00:00", "c", "ann", ("t",), "con / ../../etc", ()),
]


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A memory directory with three memories."""
    monkeypatch.setenv("AIAML_ENABLE_SYNC", "false")
    monkeypatch.chdir(tmp_path)
    files = use(tmp_path / "base", monkeypatch) / "files"
    files.mkdir(parents=True)
    for number, memory in enumerate(MEMORIES):
        name = memory.file_name if number < 2 else "20260302_030405_x.md"
        (files / name).write_text(format(memory), encoding="utf-8", newline="")
    return tmp_path / "base"


def use(base: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work with another memory directory."""
    monkeypatch.setenv("AIAML_MEMORY_DIR", str(base))
    return base


def typed(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """Run a command line; return what it prints."""
    assert run(words) == code
    done = capsys.readouterr()
    return done.out + done.err


def stored(base: Path) -> list[Memory]:
    """Return the memories of a directory."""
    files = sorted((base / "files").glob("*.md"))
    return [parse(path.read_bytes().decode()) for path in files]


def counts(said: str) -> tuple[int, ...]:
    """Return how many were new, unchanged, changed (also if edited here) and skipped."""
    line = next(each for each in said.splitlines() if re.match(r"\d+ new, ", each))
    new, changed, edited, skipped, unchanged = map(int, re.findall(r"\d+", line))
    return new, unchanged, changed + edited, skipped


@pytest.mark.parametrize("target", ["m.jsonl", "folder"])
def test_what_is_exported_comes_back(
    target: str,
    base: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exactly, once, and exported again it is the same. An import changes nothing in its source."""
    typed(capsys, "export", "--to", target)
    exported = {path: path.read_bytes() for path in tmp_path.glob(f"{target}/*")}
    exported |= {path: path.read_bytes() for path in tmp_path.glob("m.jsonl")}
    other = use(tmp_path / "other", monkeypatch)
    assert counts(typed(capsys, "import", target, "--yes"))[:2] == (3, 0)
    typed(capsys, "export", "--to", f"again-{target}")
    back = {memory.content: memory for memory in stored(other)}
    for memory in MEMORIES[:2]:
        marked = back[memory.content]
        assert (marked.id, marked.topics) == (memory.id, memory.topics)
        assert marked.extra[len(marked.extra) - len(memory.extra) :] == memory.extra
    if target == "m.jsonl":
        before, again = (Path(name).read_text("utf-8") for name in (target, f"again-{target}"))
        assert before.splitlines()[:2] == again.splitlines()[:2]
    assert counts(typed(capsys, "import", target, "--yes"))[:3] == (0, 3, 0)
    assert exported and all(path.read_bytes() == data for path, data in exported.items())
    use(base, monkeypatch)
    assert counts(typed(capsys, "import", target, "--dry-run"))[:2] == (0, 3)


def test_a_folder_is_private_and_its_files_have_names_that_say_something(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """First words and id; an id never names a path; topics are tags."""
    typed(capsys, "export", "--to", "folder")
    names = sorted(path.name for path in (tmp_path / "folder").iterdir())
    assert names[:2] == ["Ann-eats-fish-a1b2c3d4.md", "Lisbon-ü-b1b2c3d4.md"]
    assert re.fullmatch(r"con-etc-[0-9a-f]{16}\.md", names[2])
    text = (tmp_path / "folder" / names[1]).read_text("utf-8")
    assert "\ntags: [trip, x]\n---\n" in text
    if os.name == "posix":
        for path in (tmp_path / "folder", *(tmp_path / "folder").iterdir()):
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    assert not list(base.glob("*.md"))


def test_nothing_is_written_over_or_into_the_memories(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file only with --force; `-` is the output; filters are those of `list`."""
    (tmp_path / "m.jsonl").write_text("mine")
    typed(capsys, "export", "--to", "m.jsonl", code=1)
    typed(capsys, "export", "--to", str(base / "m.jsonl"), code=2)
    typed(capsys, "export", "--to", str(tmp_path), code=1)
    assert (tmp_path / "m.jsonl").read_text() == "mine"
    said = typed(capsys, "export", "--to", "m.jsonl", "--force", "--topic", "food")
    assert "1 memory" in said
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / "m.jsonl").stat().st_mode) == 0o600
        (tmp_path / "link").symlink_to(base)
        typed(capsys, "export", "--to", "link/m.jsonl", code=2)
    assert json.loads(typed(capsys, "export", "--to", "-", "--topic", "food"))["id"] == "a1b2c3d4"
    typed(capsys, "import", str(base), code=2)
    assert "base: it holds your own memories" in typed(capsys, "import", str(tmp_path), "--dry-run")


def test_a_note_is_imported_once_updated_and_taken_back(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was edited here meanwhile stays; the command that takes an import back is printed."""
    vault = tmp_path / "vault"
    (vault / ".obsidian").mkdir(parents=True)
    (vault / "Bread.md").write_text("Flour, water.")
    (vault / "Tea.md").write_text("Two minutes.")
    assert counts(typed(capsys, "import", "vault", "--dry-run"))[0] == 2
    typed(capsys, "import", "vault", code=2)  # there is no terminal to ask on
    assert len(stored(base)) == 3
    said = typed(capsys, "import", "vault", "--yes")
    undo = re.search(r"Undo: aiaml (.*)", said)
    assert counts(said) == (2, 0, 0, 0) and undo
    first = {memory.content: memory for memory in stored(base)}["# Bread\n\nFlour, water."]
    assert 'imported-from: "obsidian:vault/Bread.md"' in first.extra
    assert counts(typed(capsys, "import", "vault", "--yes")) == (0, 2, 0, 0)

    (vault / "Bread.md").write_text("Flour, water, salt.")
    (vault / "Tea.md").write_text("Three minutes.")
    (tea,) = [path for path in (base / "files").iterdir() if "Two minutes" in path.read_text()]
    tea.write_text(tea.read_text().replace("Two minutes", "My own two minutes"))
    assert counts(typed(capsys, "import", "vault", "--yes")) == (0, 0, 2, 0)
    said = typed(capsys, "import", "vault", "--update", "--yes")
    assert re.search("edited +obsidian:vault/Tea.md: .* stays as it is", said)
    now = {memory.id: memory for memory in stored(base)}
    assert now[first.id].content == "# Bread\n\nFlour, water, salt."
    assert now[first.id].timestamp == first.timestamp
    assert "My own two minutes" in tea.read_text()
    assert counts(typed(capsys, "import", "vault", "--update", "--yes")) == (0, 1, 1, 0)

    (vault / "Bread.md").rename(vault / "Loaf.md")
    (vault / "Loaf.md").write_text("# Bread\n\nFlour, water, salt.")
    assert counts(typed(capsys, "import", "vault", "--dry-run"))[0] == 0

    typed(capsys, *undo[1].split(), code=2)  # it asks
    typed(capsys, *undo[1].split(), "--yes")
    assert len(stored(base)) == 3
    assert "no memory was added" in typed(capsys, *undo[1].split(), "--yes", code=1)


def test_an_update_is_undone_by_the_printed_command(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was added and what was replaced have a command each, and so has a forgotten import."""
    monkeypatch.setenv("AIAML_ENABLE_SYNC", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    note = tmp_path / "Bread.md"
    note.write_text("Flour, water.")
    typed(capsys, "import", str(note), "--yes")
    before = stored(base)
    note.write_text("Flour, water, salt.")
    said = typed(capsys, "import", str(note), "--update", "--yes")
    (undo,) = re.findall(r"Undo: aiaml (restore .*)", said)
    typed(capsys, *undo.split(), "--yes")
    assert stored(base) == before
    (tmp_path / "Tea.md").write_text("Two minutes.")
    said = typed(capsys, "import", str(tmp_path / "Tea.md"), "--yes")
    (undo,) = re.findall(r"Undo: aiaml (import .*)", said)
    (undo,) = re.findall(r"Undo: aiaml (restore .*)", typed(capsys, *undo.split(), "--yes"))
    assert stored(base) == before
    typed(capsys, *undo.split(), "--yes")
    assert len(stored(base)) == len(before) + 1


def test_an_import_that_is_interrupted_says_how_it_goes_on(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many were stored, and the same command imports the rest."""
    lines = [json.dumps({"content": f"Note number {number}"}) for number in range(300)]
    (tmp_path / "notes.jsonl").write_text("\n".join(lines))
    add_all = MemoryBank.add_all
    calls: list[object] = []

    def interrupted(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        add_all(*arguments)

    monkeypatch.setattr(MemoryBank, "add_all", interrupted)
    said = typed(capsys, "import", "notes.jsonl", "--yes", code=130)
    count = len(stored(base)) - 3
    assert f"Imported {count} memories." in said and "Undo: aiaml import --undo" in said
    assert "Run the same command again" in said and 0 < count < 300
    typed(capsys, "import", "notes.jsonl", "--yes")
    assert len(stored(base)) == 303


@pytest.mark.parametrize("target", ["notes.txt", "notes.md", "my.notes"])
def test_a_target_that_looks_like_another_file_is_refused(
    target: str, base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder of that name needs a slash at its end."""
    assert f"for a folder, type {target}/" in typed(capsys, "export", "--to", target, code=2)
    assert not (tmp_path / target).exists() and base.exists()
    typed(capsys, "export", "--to", f"{target}/")
    assert (tmp_path / target).is_dir()


def test_json_says_everything(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is new, and what is skipped with the reason."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "Tea.md").write_text("---\na: [\n---\nTwo minutes.")
    (tmp_path / "mine" / "Empty.md").write_text("")
    plan = json.loads(typed(capsys, "import", "mine", "--dry-run", "--json"))
    assert [each["place"] for each in plan["new"]] == ["markdown:mine/Tea.md"]
    assert "cannot be parsed" in plan["new"][0]["remark"]
    assert plan["skipped"] == [{"place": "mine/Empty.md", "reason": "it is empty"}]
    assert (plan["run"], plan["unchanged"]) == ("", 0) and len(stored(base)) == 3
