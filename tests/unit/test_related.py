"""Similar and replaced memories."""

from __future__ import annotations

from pathlib import Path

from aiaml_server.bank import MemoryBank
from aiaml_server.settings import Settings


def test_similar_memories_share_much_of_their_words(tmp_path: Path) -> None:
    """At most three, and never the memory itself."""
    bank = MemoryBank(Settings(tmp_path, sync=False))
    texts = [f"The deploy of the billing service runs on {day}." for day in ("Monday", "Friday")]
    deploys = [bank.remember("claude", "ann", ["deploy"], text) for text in texts]
    bank.remember("claude", "ann", ["food"], "Ann likes the lentil soup of the corner restaurant.")
    bank.remember("claude", "ann", ["signs"], "++")
    found = bank.similar(deploys[0])
    assert [(name, memory.id) for name, memory in found] == [(deploys[1].file_name, deploys[1].id)]
    copies = [bank.remember("claude", "ann", ["deploy"], texts[0]) for _ in range(4)]
    assert len(bank.similar(deploys[0])) == 3
    assert {memory.id for _, memory in bank.similar(copies[0])} < {
        memory.id for memory in (*copies, *deploys)
    }
    bank.close()


def test_replaced_memories_are_named_by_newer_ones(tmp_path: Path) -> None:
    """By an id that exists."""
    bank = MemoryBank(Settings(tmp_path, sync=False))
    old = bank.remember("claude", "ann", ["tea"], "Green tea.")
    new = bank.remember("claude", "ann", ["tea"], f"Black tea. Replaces {old.id}.")
    bank.remember("claude", "ann", ["tea"], f"Who replaces {'0' * 8}? Nobody replaces the dead.")
    [replaced] = bank.replaced()
    assert replaced == (old.file_name, old, new.id)
    bank.close()
