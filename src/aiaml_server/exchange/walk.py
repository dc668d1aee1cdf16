"""Find the notes of a folder: in order, following no link, and naming what is left out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from aiaml_server.errors import MalformedFile
from aiaml_server.exchange.items import Skipped, label, printable
from aiaml_server.files import read_regular

MARKDOWN = (".md", ".markdown")
_PLACEHOLDERS = (".icloud", ".nextcloud", ".owncloud")
_TEMPLATE_SETTINGS = {
    ".obsidian/templates.json": "folder",
    ".obsidian/plugins/templater-obsidian/data.json": "templates_folder",
}


def find_notes(top: Path, own: Path) -> Iterator[Path | Skipped]:
    """Yield the markdown files below a folder, and what is skipped.

    Hidden files and folders are passed over silently. Links are not followed.

    Args:
        top: the folder.
        own: the person's own memory directory, which is never read.

    Raises:
        OSError: a folder cannot be read.
    """
    left_out = {own: "it holds your own memories", **_folders_of_editors(top)}
    for folder, reason in left_out.items():
        if top in folder.parents and folder.is_dir():
            yield Skipped(place(top, folder), reason)
    for parent, folders, names in os.walk(top, onerror=_fail):
        visible = [name for name in sorted(folders) if name[0] != "." and name != "node_modules"]
        folders[:] = [name for name in visible if Path(parent, name) not in left_out]
        for path in (Path(parent, name) for name in sorted(names)):
            if path.name.endswith(_PLACEHOLDERS):
                yield Skipped(place(top, path), "it is only in the cloud; download it first")
            elif path.name[0] != "." and path.suffix.lower() in MARKDOWN and _is_note(top, path):
                yield path


def _fail(error: OSError) -> None:
    """Have a folder that cannot be read end the walk, instead of being left out silently."""
    raise error


def place(top: Path, path: Path) -> str:
    """Return where a file stands below the folder `top`, the same on every computer."""
    return printable("/".join([label(top), *path.relative_to(top).parts]))


def _is_note(top: Path, path: Path) -> bool:
    """Return whether a markdown file is a note: in `~/.claude`, much of it is none."""
    return top.name != ".claude" or bool({"CLAUDE.md", "memory", "rules"} & {*path.parts})


def _folders_of_editors(top: Path) -> dict[Path, str]:
    """Return the folders of a vault or graph that hold no notes, each with the reason."""
    folders: dict[Path, str] = {}
    if (top / "logseq" / "config.edn").is_file():
        folders = dict.fromkeys((top / "logseq", top / "bak"), "Logseq keeps older versions there")
    for file, key in _TEMPLATE_SETTINGS.items():
        with suppress(OSError, MalformedFile, ValueError, AttributeError, LookupError):
            folder = json.loads(read_regular(str(top / file), 1 << 20))[key]
            folders[top / folder.strip("/")] = "it holds templates"
    return folders
