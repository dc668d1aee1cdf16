"""`aiaml export`: memories as JSON lines or as a folder of markdown."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from aiaml_server.cli.context import opened
from aiaml_server.cli.filtering import filtered
from aiaml_server.errors import StoreError
from aiaml_server.exchange import export_folder, export_jsonl
from aiaml_server.files import replace_atomic
from aiaml_server.format.filters import Filter
from aiaml_server.terminal import EXIT_USAGE, Exit, echo_bytes, notify, plural


@click.command("export")
@click.option(
    "--to",
    "target",
    required=True,
    metavar="TARGET",
    help="A file that ends in .jsonl, a new folder, or `-` for standard output.",
)
@click.option("--force", "-f", is_flag=True, help="Replace the file if it exists.")
@filtered
def export(target: str, force: bool, **options: Any) -> None:
    """Export memories to JSON lines or to a folder of markdown.

    `aiaml import` takes both back. In a folder each memory is a file that is called by its
    first words and its id, with its topics as tags. Only you can read what is written.

    \b
    Examples:
      aiaml export --to memories.jsonl
      aiaml export --to notes/ --topic food
      aiaml export --to - --since 2026-01-01
    """
    wanted = Filter.of(**options)
    with opened() as bank:
        memories = [memory for _, memory in wanted.among(bank.newest())][::-1]
        own = bank.base.resolve()
    if target == "-":
        echo_bytes(export_jsonl(memories))
        return
    path = Path(target).resolve()
    is_file = path.suffix.lower() == ".jsonl"
    if path.suffix and not (is_file or target.endswith(("/", os.sep))):
        raise Exit(f"a file must end in .jsonl; for a folder, type {target}/", EXIT_USAGE)
    if own in (path, *path.parents):
        raise Exit(f"{path} is in your memory directory; name another place", EXIT_USAGE)
    if path.exists() and not (force and is_file):
        raise Exit(f"{path} exists; name another, or use --force for a file")
    try:
        if is_file:
            replace_atomic(path, export_jsonl(memories))
        else:
            export_folder(memories, path)
    except OSError as error:
        raise StoreError("write", path, error) from error
    notify(f"Exported {plural(len(memories), 'memory')} to {target}.")
