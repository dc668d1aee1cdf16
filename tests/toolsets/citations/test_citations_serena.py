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
    write(path, ".serena/memories/über uns.md", f"\n## {'long ' * 40}\n")
    (path / ".serena/memories/latin.md").write_bytes(b"\xff\xfe\xff")
    return path


def test_memories_are_imported(shop: Path) -> None:
    """Their texts byte for byte, folders as tags, headings as subjects, references as links."""
    memories = MemoryService(shop)
    files = {each.source: each for each in import_serena(memories)}
    memory = memories.get("mem-topic.prices")
    data = (shop / "memories/mem-topic.prices.md").read_bytes()
    original = (shop / ".serena/memories/topic/prices.md").read_bytes()
    assert data.endswith(b"\n---\n\n" + original + b"\n")
    assert (memory.subject, memory.tags) == ("Prices of the shop", ("topic",))
    assert [(link.type, link.target) for link in memory.links] == [
        ("references", "mem-topic.other")
    ]
    assert b'\nsource: ".serena/memories/topic/prices.md"\n' in data
    assert files["topic/prices.md"].problem == "nothing is called away"
    assert memories.get("mem-topic.other").subject == "no heading"
    assert files["über uns.md"].id.startswith("mem-ber-uns-")
    assert len(memories.get(files["über uns.md"].id).subject) < 80
    assert "utf-8" in files["latin.md"].problem and not files["latin.md"].is_new


def test_a_second_run_changes_nothing(shop: Path) -> None:
    """Nor a dry one; another directory can be named."""
    memories = MemoryService(shop)
    assert sum(each.is_new for each in import_serena(memories, dry_run=True)) == 3
    assert memories.store.ids() == []
    import_serena(memories, shop / ".serena" / "memories")
    memories.save(content="Corrected.", memory_id="mem-topic.other")
    assert not any(each.is_new for each in import_serena(memories))
    assert memories.get("mem-topic.other").content == "Corrected."
    with pytest.raises(NoRepository, match="Serena's memories"):
        import_serena(memories, shop / "nowhere")
