"""The index: opens, knows the same memories as the files, and answers as they do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress

from aiaml_server.doctor.context import Context
from aiaml_server.doctor.finding import Finding, Fix
from aiaml_server.errors import NoStateDirectory
from aiaml_server.index import Index, delete_index, index_file
from aiaml_server.storage.store import Store
from aiaml_server.terminal import format_size


def index(context: Context) -> Iterator[Finding]:
    """Compare the index with the files."""
    if not (base := context.base) or not (base / "files").is_dir():
        return
    with closing(Index(Store(base))) as opened:
        difference = opened.verify()
    if opened.problem:
        yield Finding("index", "warning", opened.problem, "nothing is lost; check the disk")
    size = 0
    with suppress(OSError, NoStateDirectory):
        size = index_file(base).stat().st_size
    if not difference:
        yield Finding("index", "ok", f"{format_size(size)}; answers as the files do")
        return
    fix = Fix("delete the index, which is made anew", lambda: delete_index(base))
    yield Finding("index", "error", difference, "`aiaml doctor --fix`", fix)
