"""Serena's memories, imported."""

from __future__ import annotations

from pathlib import Path

import pytest
from shop import make_shop, write

from aiaml_server.toolsets.citations import MemoryService
from aiaml_server.toolsets.citations.errors import NoRepository
from aiaml_server.toolsets.citations.import_serena import import_serena


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with memories of Serena."""
    path = make_shop(tmp_path / "shop")
    text = "# Prices of the shop\r\n\r\nSee `mem:topic/other`. Then mem:away.\n\n  "
    write(path, ".serena/memories/topic/prices.md", text)
    write(path, ".serena/memories/topic/other.md", "no heading\n")
    write(path, ".serena/memories/über uns.md", "x\n")
    write(path, ".serena/memories/long.md", f"\n## {'long ' * 40}\n")
    (path / ".serena/memories/latin.md").write_bytes(b"\xff\xfe\xff")
    return path


def test_memories_are_imported(shop: Path) -> None:
    """Their texts byte for byte, folders as tags, headings as subjects, references as links."""
    memories = MemoryService(shop)
    results = import_serena(memories)
    memory = memories.store.get("mem-topic.prices")
    data = (shop / "memories/mem-topic.prices.md").read_bytes()
    original = (shop / ".serena/memories/topic/prices.md").read_bytes()
    assert data.endswith(b"\n---\n\n" + original + b"\n")
    assert (memory.subject, memory.tags) == ("Prices of the shop", ("topic",))
    assert [(link.type, link.target) for link in memory.links] == [
        ("references", "mem-topic.other")
    ]
    assert memories.store.get("mem-topic.other").subject == "no heading"
    assert len(memories.store.get("mem-long").subject) < 80
    assert results["topic/prices.md"] == "mem-topic.prices"
    assert "utf-8" in results["latin.md"] and "ids look like" in results["\u00fcber uns.md"]
    assert len(memories.store.ids()) == 3


def test_a_second_run_changes_nothing(shop: Path) -> None:
    """And another directory can be named."""
    memories = MemoryService(shop)
    import_serena(memories, str(shop / ".serena" / "memories"))
    memories.save(content="Corrected.", id="mem-topic.other")
    assert "is taken by" in import_serena(memories)["topic/other.md"]
    assert memories.store.get("mem-topic.other").content == "Corrected."
    with pytest.raises(NoRepository, match="Serena's memories"):
        import_serena(memories, str(shop / "nowhere"))


@pytest.mark.usefixtures("nobodys_configuration")
def test_text_of_ignored_files_is_not_imported(shop: Path, tmp_path: Path) -> None:
    """They are named instead, also where another directory of the repository was named."""
    write(shop, ".gitignore", ".serena/memories/topic\n")
    memories = MemoryService(shop)
    (tmp_path / "copy").symlink_to(shop / ".serena" / "memories")
    for directory in ("", str(shop / ".serena" / "memories"), str(tmp_path / "copy")):
        results = import_serena(memories, directory)
        assert "skipped: git ignores it" in results["topic/prices.md"]
        assert "skipped: git ignores it" in results["topic/other.md"]
    assert memories.store.ids() == ["mem-long"]
    write(tmp_path, "outside/name.md", "x\n")
    assert import_serena(memories, str(tmp_path / "outside")) == {"name.md": "mem-name"}
