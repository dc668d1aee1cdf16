"""Export memories to a folder of markdown, for Obsidian and other editors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from aiaml_server.exchange.items import digest, is_own_id, without_marks
from aiaml_server.files import make_directory, replace_atomic
from aiaml_server.format.frontmatter import format_scalar
from aiaml_server.format.memory import Memory, format  # noqa: A004 (the word for it)
from aiaml_server.rendering import title

_MAX_NAME = 60  # characters of a file's name before the id


def export_folder(memories: Iterable[Memory], directory: Path) -> None:
    """Write each memory to a markdown file, which `import_folder` takes back.

    A file is called by its memory's first words and its id, and has `tags` besides the fields of a
    memory. Only you can read it.

    Raises:
        OSError: the directory or a file cannot be written.
    """
    make_directory(directory)
    for memory in map(without_marks, memories):
        tags = ", ".join(map(format_scalar, memory.topics))
        text = format(memory._replace(extra=(*memory.extra, f"tags: [{tags}]")))
        replace_atomic(directory / _file_name(memory), text.encode())


def _file_name(memory: Memory) -> str:
    """Return a file name that every system accepts: the title of a memory, and its id."""
    words = "-".join(re.findall(r"\w+", title(memory.content)))[:_MAX_NAME].strip("-")
    unique = memory.id if is_own_id(memory.id) else digest(memory.id)
    return f"{words}-{unique}.md".lstrip("-")
