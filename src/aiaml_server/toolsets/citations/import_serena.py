"""Import Serena's memories: each file's text stays byte for byte, and the originals stay.

Files that git ignores are left out, because memories are committed.
"""

from __future__ import annotations

import re
from pathlib import Path

from aiaml_server.errors import MalformedFile, NotFound
from aiaml_server.files import read_regular
from aiaml_server.toolsets.citations.errors import InvalidInput, NoRepository
from aiaml_server.toolsets.citations.models import MAX_SUBJECT, Link, Memory, current_time
from aiaml_server.toolsets.citations.service import MemoryService
from aiaml_server.toolsets.citations.sources import UNSEEN, SourceTree, Unreadable

SERENA_DIRECTORY = ".serena/memories"
_MAX_BYTES = 960 * 1024
_HEADING = re.compile(r"\w.*")  # the first line with a word in it, without the signs before it
_REFERENCE = re.compile(r"\bmem:([A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+)*)")


def import_serena(memories: MemoryService, directory: str = "") -> dict[str, str]:
    """Import all memories of Serena that are not there yet.

    Args:
        memories: where they go.
        directory: where they are; empty for `.serena/memories` in the repository.

    Returns:
        What became of each file: the id of the new memory, or why it was skipped.

    Raises:
        NoRepository: there is no such directory.
        Busy, DiskError: a memory cannot be written; the next run goes on.
    """
    top = Path(directory or memories.root / SERENA_DIRECTORY)
    if not top.is_dir():
        raise NoRepository(f"{top} is not a directory; name the one with Serena's memories")
    names = [path.relative_to(top).with_suffix("").as_posix() for path in top.rglob("*.md")]
    ids = {name: f"mem-{name.replace('/', '.')}" for name in sorted(names)}
    tree = SourceTree(top)
    tree.learn_hidden(f"{name}.md" for name in names)
    results = {}
    for name, new_id in ids.items():
        source = f"{name}.md"
        try:
            text = _read(tree, source)
            heading = _HEADING.search(text)
            subject = " ".join(heading[0].split()) if heading else name
            targets = [target for target in _REFERENCE.findall(text) if target in ids]
            memory = Memory(
                id=new_id,
                subject=subject[:MAX_SUBJECT].strip(),
                content=text,
                created=current_time(),
                links=tuple(Link("references", ids[target]) for target in dict.fromkeys(targets)),
                tags=tuple(name.split("/")[:-1]),
            )
            with memories.store.writing():
                memories.store.add(memory)
            results[source] = new_id
        except (OSError, ValueError, MalformedFile, InvalidInput, NotFound, Unreadable) as error:
            results[source] = f"skipped: {error}"
    return results


def _read(tree: SourceTree, name: str) -> str:
    """Return a file's text.

    Raises:
        Unreadable: git ignores it.
        OSError, ValueError, MalformedFile: it is no readable UTF-8 text.
    """
    if reason := tree.why_hidden(name):
        raise Unreadable(UNSEEN, f"{reason}, and memories are committed")
    return read_regular(str(Path(tree.root, name)), _MAX_BYTES).decode("utf-8")
