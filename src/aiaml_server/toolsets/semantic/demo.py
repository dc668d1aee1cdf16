"""The demonstration: memories of two kinds, found by what they mean, in a throw-away place."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from aiaml_server.terminal import echo
from aiaml_server.toolsets.semantic import config, place
from aiaml_server.toolsets.semantic.memories import Memories
from aiaml_server.toolsets.semantic.model import CACHE, Model

SECONDS = 20.0  # that the model may take to be loaded
STORY: tuple[tuple[str, list[str], str], ...] = (
    ("Prices are kept in cents, since rounding euros lost money twice.", ["billing"], "project"),
    ("The architecture has three layers; only the lowest one speaks to disks.", [], "project"),
    ("Ada prefers short answers, with the command first.", ["style"], "global"),
)
QUESTIONS = ("rounding of money", "how does Ada like replies?")


def demo() -> int:
    """Show the toolset at work, with the model if it is on this machine; return the exit code."""
    home = place.home()
    settings = replace(config.load(home), download=False)
    model = Model(settings, home / CACHE)
    with tempfile.TemporaryDirectory(prefix="aiaml-semantic-") as directory:
        shop = Path(directory).resolve() / "shop"
        shop.mkdir()
        play(Memories(shop.parent / "home" / place.NAME, shop, model, settings))
    return 0


def play(memories: Memories) -> None:
    """Store, resemble, find, and forget."""
    model = memories.model.ready(SECONDS) if memories.model else None
    meant = f"meaning ({model.name}) and words" if model else "words alone"
    echo(f"Found by {meant}.")
    echo()
    for content, tags, scope in STORY:
        stored = memories.store(content, tags, scope=scope)
        echo(f"store_memory({content!r}, scope={scope!r})")
        echo(f"  -> {stored.memory.id}")
        if stored.suggestion:
            echo(f"     suggested: {stored.suggestion.priority}, {stored.suggestion.reason}")
    again = memories.store(
        "prices are kept in CENTS, since rounding euros lost money twice.", ["x"]
    )
    echo("the first once more, in other letters and with the tag x:")
    added = "it was added" if again.created else "nothing was added"
    echo(f"  -> {again.memory.id}, tags {', '.join(again.memory.tags)}; {added}")
    echo()
    for question in QUESTIONS:
        echo(f"search_memory({question!r})")
        found = memories.search(question, 1)
        for hit in found.hits:
            echo(f"  -> {hit.memory.id}  {hit.memory.content}")
    memories.delete("global:1")
    echo()
    echo("delete_memory('global:1')")
    left = ", ".join(each.id for each in memories.list().memories)
    echo(f"  -> {left} are left; of what was forgotten no byte is")
    memories.close()
