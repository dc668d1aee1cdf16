"""Find the notes of a folder in a fixed order. Links are not followed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from aiaml_server.errors import os_reason
from aiaml_server.exchange.items import Skipped, printable
from aiaml_server.files import read_regular

MARKDOWN = (".md", ".markdown")
_PLACEHOLDERS = (".icloud", ".nextcloud", ".owncloud")
_GENERIC_NAMES = {"memory", "memories", "files", "notes", "docs", ".serena", ".claude"}


def find_notes(top: Path, own: Path) -> Iterator[Path | Skipped]:
    """Yield the markdown files below a folder, and what is skipped.

    Hidden files and folders are passed over silently. Links are not followed.

    Args:
        top: the folder.
        own: the person's own memory directory, which is never read.

    """
    errors: list[OSError] = []
    left_out = {own: "it holds your own memories", **_folders_of_editors(top)}
    for folder, reason in left_out.items():
        if top in folder.parents and folder.is_dir():
            yield Skipped(place(top, folder), reason)
    for parent, folders, names in os.walk(top, onerror=errors.append):
        folders[:] = [
            name
            for name in sorted(folders)
            if not name.startswith((".", "node_modules")) and Path(parent, name) not in left_out
        ]
        for path in (Path(parent, name) for name in sorted(names)):
            if path.name.endswith(_PLACEHOLDERS):
                yield Skipped(place(top, path), "it is only in the cloud; download it first")
            elif path.name[0] != "." and path.suffix.lower() in MARKDOWN and _is_note(top, path):
                yield path
    for error in errors:
        yield Skipped(place(top, Path(error.filename)), os_reason(error))


def place(top: Path, path: Path) -> str:
    """Return a file's path below the folder `top`, the same on every computer.

    It begins with the folder's name; if that is a common one, with two parents as well.
    """
    count = 3 if top.name in _GENERIC_NAMES else 1
    return printable("/".join([*top.parts[-count:], *path.relative_to(top).parts]))


def _is_note(top: Path, path: Path) -> bool:
    """Return whether a markdown file is a note; in `~/.claude` most are not."""
    return top.name != ".claude" or bool({"CLAUDE.md", "memory", "rules"} & {*path.parts})


def _folders_of_editors(top: Path) -> dict[Path, str]:
    """Return the folders of a vault or graph without notes, each with the reason."""
    folders: dict[Path, str] = {}
    if (top / "logseq" / "config.edn").is_file():
        folders[top / "logseq"] = "Logseq keeps settings and older versions there"
    with suppress(Exception):  # a file that others wrote may hold anything
        settings = json.loads(read_regular(str(top / ".obsidian" / "templates.json"), 1 << 20))
        folders[top / settings["folder"].strip("/")] = "it holds templates"
    return folders
