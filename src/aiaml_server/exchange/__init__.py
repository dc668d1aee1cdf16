"""Import memories from other programs, and export them to files.

An importer yields items (`items`). A plan (`plan`) decides which of them are new, changed or known.
Nothing here prints, asks, or changes a memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from aiaml_server.exchange.export import export_folder
from aiaml_server.exchange.folder import import_folder
from aiaml_server.exchange.items import RUN, Item, Skipped, mark, printable, with_marks
from aiaml_server.exchange.jsonl import (
    export_jsonl,
    import_jsonl,
    import_mcp_memory,
)
from aiaml_server.exchange.plan import Plan, make_plan
from aiaml_server.exchange.walk import MARKDOWN
from aiaml_server.files import read_regular

__all__ = [
    "RUN",
    "Item",
    "Plan",
    "export_folder",
    "export_jsonl",
    "make_plan",
    "mark",
    "read_source",
    "with_marks",
]

MAX_BYTES = 256 << 20


def read_source(source: Path, user: str, own: Path) -> Iterator[Item | Skipped]:
    """Yield the items of a file of JSON lines, a markdown file or a folder of markdown.

    Args:
        source: the file or folder, with an absolute path; it is only read.
        user: the person whom memories are about that do not say it.
        own: the person's own memory directory, which is never read.

    Raises:
        MalformedFile, OSError: the source cannot be read, or is too large.
    """
    if source.is_dir() or source.suffix.lower() in MARKDOWN:
        yield from import_folder(source, user, own)
        return
    data = read_regular(str(source), MAX_BYTES)
    is_mcp_memory = re.match(rb'\s*\{"type": ?"(entity|relation)"', data)
    read = import_mcp_memory if is_mcp_memory else import_jsonl
    yield from read(data, printable(source.name), user)
