"""`semantic`: markdown files and lines of JSON as memories."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiaml_server.toolsets.semantic import errors
from aiaml_server.toolsets.semantic.config import Config
from aiaml_server.toolsets.semantic.importing import (
    Candidate,
    preview_import,
    run_import,
    scan_project,
    to_json_line,
)
from aiaml_server.toolsets.semantic.models import to_json
from aiaml_server.toolsets.semantic.store import MemoryStore

NOTES = """\
---
tags: [shop, money]
created: 2026-03-01
---
# Shop

All prices
are in cents.

## Rules of billing

- Round only when shown
- [x] Never use floats
  for money
1. Invoices are final

Ask Ada.
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    """A project without memories."""
    (tmp_path / "shop").mkdir()
    opened = MemoryStore(tmp_path / "home", tmp_path / "shop", None, Config())
    yield opened
    opened.close()


def write(store: MemoryStore, name: str, text: str) -> Path:
    """Write a file of the project."""
    assert store.project is not None
    path = store.project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def candidates(store: MemoryStore, *names: str) -> list[Candidate]:
    """Return what an import would store."""
    return preview_import(store, names or None).candidates


def test_sections_and_items_become_memories(store: MemoryStore) -> None:
    """Each below its headings, with the tags and the date of the frontmatter."""
    write(store, "NOTES.md", NOTES)
    found = candidates(store)
    assert [(each.memory.content, each.line) for each in found] == [
        ("Shop\n\nAll prices\nare in cents.", 7),
        ("Shop > Rules of billing: Round only when shown", 12),
        ("Shop > Rules of billing: Never use floats\nfor money", 13),
        ("Shop > Rules of billing: Invoices are final", 15),
        ("Shop > Rules of billing\n\nAsk Ada.", 17),
    ]
    first, second = found[0].memory, found[1].memory
    assert tuple(first.tags) == ("shop", "money")
    assert tuple(second.tags) == ("shop", "money", "rules-of-billing")
    assert str(first.created_at) <= "2026-03-01 24" and first.source == "import"
    assert first.path == "NOTES.md" and first.priority == "NORMAL"


def test_decision_record_is_one_memory(store: MemoryStore) -> None:
    """With the suggested priority; a long one is split into its sections."""
    write(store, "docs/ADR-3.md", "# Use gRPC\n\nArchitecture: services speak gRPC.\n")
    write(store, "docs/ADR-4.md", f"# Long\n\n## Context\n\n{'word ' * 900}\n\n## Decision\n\nYes.")
    record, *parts = [each.memory for each in candidates(store)]
    assert record.content.startswith("# Use gRPC") and record.category == "decision"
    assert tuple(record.tags) == ("adr",) and record.priority == "HIGH"
    assert len(parts) == 2 and parts[1].content == "Long > Decision\n\nYes."
    assert all("adr" in part.tags for part in parts)


def test_scan_finds_common_memory_files(store: MemoryStore) -> None:
    """In any case, and in `.claude`; not in hidden or installed directories."""
    assert store.project is not None
    for name in ("MEMORY.md", "docs/adr-1.md", ".claude/rules.md", "notes.MD", "CLAUDE.md"):
        write(store, name, "text")
    for name in ("README.md", ".git/NOTES.md", "node_modules/x/NOTES.md", "docs/memory.txt"):
        write(store, name, "text")
    if os.name == "posix":
        (store.project / "docs" / "NOTES.md").symlink_to(store.project / "README.md")
    found = {path.relative_to(store.project).as_posix() for path in scan_project(store.project)}
    assert found == {"MEMORY.md", "docs/adr-1.md", ".claude/rules.md", "notes.MD", "CLAUDE.md"}


def test_preview_changes_nothing_and_import_does_what_it_says(store: MemoryStore) -> None:
    """A second run adds nothing, also after a memory was edited or merged."""
    write(store, "NOTES.md", NOTES)
    preview = preview_import(store)
    assert not store.databases["project"].exists
    assert len(run_import(store, preview)) == 5
    store.update("project:1", content="Other words")
    store.store("Shop > Rules of billing: INVOICES ARE FINAL")
    assert [each.is_new for each in candidates(store)] == [False] * 5
    assert run_import(store, preview_import(store)) == []
    store.forget("project:1")
    assert [each.is_new for each in candidates(store)] == [True] + [False] * 4


def test_large_file_is_read(store: MemoryStore) -> None:
    """One above the limit, or a part that is too long for a memory, is named with what to do."""
    lines = "".join(f"- item number {number} of a long list\n" for number in range(12_000))
    assert len(lines) > 320 * 1024
    write(store, "NOTES.md", lines)
    assert len(candidates(store)) == 12_000
    write(store, "NOTES.md", f"- short\n\n{'x' * 60_000}\n")
    preview = preview_import(store)
    assert [each.memory.content for each in preview.candidates] == ["short"]
    ((path, reason),) = preview.skipped
    assert path == "NOTES.md:3" and "the limit is 50,000" in reason
    write(store, "NOTES.md", "x" * (4 * 1024 * 1024 + 1))
    ((_, reason),) = preview_import(store).skipped
    assert "larger than 4 MiB; split it" in reason


@pytest.mark.parametrize("name", ["../secret.md", "/etc/hostname", "missing.md", "a\0b", "link.md"])
def test_agents_read_the_project_only(store: MemoryStore, name: str) -> None:
    """And through no link."""
    assert store.project is not None
    (store.project.parent / "secret.md").write_text("- secret", encoding="utf-8")
    if os.name == "posix":
        (store.project / "link.md").symlink_to(store.project.parent / "secret.md")
    with pytest.raises(errors.InvalidInput, match="file_paths"):
        preview_import(store, [name])
    if name == "link.md":
        write(store, "notes/a.md", "- mine")
        (store.project / "notes" / "b.md").symlink_to(store.project.parent / "secret.md")
        preview = preview_import(store, ["notes"])
        assert [each.memory.content for each in preview.candidates] == ["mine"]
        assert preview.skipped == [("notes/b.md", "it is a link, or is reached through one")]
    bare = MemoryStore(store.home)
    with pytest.raises(errors.InvalidProject):
        preview_import(bare)


def test_what_cannot_be_read_is_named(store: MemoryStore) -> None:
    """The other files are imported."""
    write(store, "NOTES.md", "- fine")
    write(store, "MEMORY.md", "\n").write_bytes(b"\xff\xfe\x00")
    write(store, "docs/NOTES.md", "---\n---\n")
    preview = preview_import(store)
    assert [each.memory.content for each in preview.candidates] == ["fine"]
    assert preview.skipped == [("MEMORY.md", "it is not UTF-8")]


def test_json_lines_go_there_and_back(store: MemoryStore, tmp_path: Path) -> None:
    """Once for each id, with all that is known here, and with keys that are not."""
    lines = [
        {"id": "0a1b2c3d", "timestamp": "2026-02-03T04:05:06+00:00", "agent": "claude",
         "user": "ada", "topics": ["tea"], "content": "Tea is green", "mood": {"a": [1]}},
        {"content": "Rule", "topics": [], "priority": "HIGH", "category": "rule"},
    ]  # fmt: skip
    path = tmp_path / "memories.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert len(run_import(store, preview_import(store, [str(path)], anywhere=True))) == 2
    assert run_import(store, preview_import(store, [str(path)], anywhere=True)) == []
    tea = store.get("project:1")
    assert tea.tags == ("tea",) and tea.created_at == "2026-02-03T04:05:06.000000Z"
    written = json.loads(to_json_line(tea, store.unknown_keys(tea)))
    assert written["id"] == "0a1b2c3d" and written["mood"] == {"a": [1]}
    assert written["agent"] == "claude" and written["topics"] == ["tea"]
    rule = store.get("project:2")
    written = json.loads(to_json_line(rule, store.unknown_keys(rule)))
    assert (written["priority"], written["category"]) == ("HIGH", "rule")


def test_each_line_of_json_is_read_alone(store: MemoryStore, tmp_path: Path) -> None:
    """What other programs count as ends of lines is text; a line that is wrong is named."""
    text = "one\u2028two\u0085three"
    store.store(text)
    path = tmp_path / "memories.jsonl"
    written = to_json_line(store.get("project:1"), "{}")
    store.forget("project:1")
    wrong = [
        '{"content": 5}',
        "[" * 100_000,
        '{"content": "a\\ud800"}',
        '{"content": "a", "id": "\\ud800"}',
    ]
    lines = ["\ufeff" + written, *wrong, "", to_json({"content": "last"})]
    path.write_text("\n".join(lines), encoding="utf-8")
    preview = preview_import(store, [str(path)], anywhere=True)
    assert [each.memory.content for each in preview.candidates] == [text, "last"]
    assert [name.rpartition(":")[2] for name, _ in preview.skipped] == ["3", "4", "5", "6"]
    assert all("not a JSON object" in reason for _, reason in preview.skipped)


def test_wrong_value_in_a_line_of_json_is_named(store: MemoryStore, tmp_path: Path) -> None:
    """With its line and what would be right; the other lines are imported."""
    path = tmp_path / "memories.jsonl"
    wrong: dict[str, dict[str, object]] = {
        "priority: must be one of CORE, HIGH, NORMAL, LOW": {"priority": "urgent"},
        "source: must be one of manual, auto_decision": {"source": "mail"},
        "priority: must be text": {"priority": 5},
        "source: must be text": {"source": ["mail"]},
        "category: must be one line": {"category": "a\nb"},
    }
    lines: list[object] = [{"content": "tea", "priority": None, "source": "import"}]
    lines += [{"content": str(number), **more} for number, more in enumerate(wrong.values())]
    path.write_text("".join(to_json(line) + "\n" for line in lines), encoding="utf-8")
    preview = preview_import(store, [str(path)], anywhere=True)
    assert [each.memory.content for each in preview.candidates] == ["tea"]
    reasons = {int(name.rpartition(":")[2]): reason for name, reason in preview.skipped}
    for number, expected in enumerate(wrong, 2):
        assert reasons[number].startswith(expected)
