"""The lines that hooks of the default server show: memories on a prompt, and an overview."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from aiaml_server.errors import InvalidInput
from aiaml_server.format.filters import Filter, fold
from aiaml_server.format.memory import Memory
from aiaml_server.index import Index, Question
from aiaml_server.settings import Settings
from aiaml_server.storage.store import Store
from aiaml_server.toolset import HookInput
from aiaml_server.toolsets.failures import shorten

MAX_SHOWN = 3
"""Memories that are shown at once."""
MAX_CONTENT = 200
"""Characters of a memory that are shown."""
MAX_PROMPT = 4_000
"""Characters of a prompt that are looked at."""
MAX_WORDS = 16
"""Words of a prompt that are looked for."""
MIN_WORDS, MIN_SHARE = 2, 0.3
"""Words of a prompt that a memory must have, and the share of the prompt's rarity. Of fifteen such
pairs, these find most while 95 % of other prompts find nothing (benchmarks/RESULTS.md)."""


def prompt(event: HookInput) -> list[str]:
    """Return lines for the memories that a prompt is about."""
    return [_line(memory) for memory in find_relevant(_open(), event.prompt)]


def find_relevant(store: Store, text: str) -> list[Memory]:
    """Return the memories that a prompt is about, the best first."""
    try:
        question = Question.parse(text[:MAX_PROMPT].split())
    except InvalidInput:
        return []
    words = Question(question.words[:MAX_WORDS], ())
    answer = Index(store, rescan_seconds=None).search(
        words, part=slice(MAX_SHOWN), least_share=MIN_SHARE
    )
    names = [hit.file_name for hit in answer.found.hits if len(hit.matching_keywords) >= MIN_WORDS]
    return [memory for _, memory in store.scan(names)]


def session_start(event: HookInput) -> list[str]:
    """Return lines with counts, topics, and the newest memories of this project."""
    store = _open()
    index = Index(store, rescan_seconds=None)
    users = index.labels("user")
    count = sum(number for _, number in users)
    if not count:
        return []
    overview = f"Memories: {count:,}, about {_join(users[:5])}; topics: "
    overview += _join(index.labels("topic")[:10])
    project = Path(event.directory).name
    dated = index.dated(Filter(topics=(fold(project),))) if project else []
    newest = store.scan(name for _, name in dated[:MAX_SHOWN])
    return [overview, *[_line(memory) for _, memory in newest]]


def _open() -> Store:
    return Store(Settings.from_environ(os.environ).base)


def _line(memory: Memory) -> str:
    content = shorten(" ".join(memory.content.split()), MAX_CONTENT)
    return f"{memory.id} ({memory.timestamp[:10]}, {memory.agent[:40]}): {content}"


def _join(labels: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name[:40]} ({number})" for name, number in labels)
