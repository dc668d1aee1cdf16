"""Add the page `commands.md` to the documentation while mkdocs builds it.

The page holds the help of every command and, below it, the transcript that the tests run.
"""

from __future__ import annotations

import re
from pathlib import Path

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from aiaml_server.cli.app import aiaml

TRANSCRIPTS = Path(__file__).resolve().parent.parent / "tests" / "transcripts"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page; mkdocs calls this."""
    files.append(File.generated(config, "commands.md", content=reference()))
    return files


def reference() -> str:
    """Return the page as markdown."""
    context = click.Context(aiaml, info_name="aiaml", terminal_width=80, max_content_width=80)
    sections = ["# Commands", help_block(aiaml, context)]
    for name in aiaml.list_commands(context):
        command = aiaml.get_command(context, name)
        assert command is not None  # noqa: S101 (it is listed)
        below = click.Context(command, info_name=name, parent=context)
        sections += [f"## aiaml {name}", help_block(command, below)]
        transcript = TRANSCRIPTS / f"{name}.txt"
        if transcript.exists():
            text = re.sub(r" \(glob\)$", "", transcript.read_text("utf-8"), flags=re.MULTILINE)
            sections.append(f"```console\n{text.strip()}\n```")
    return "\n\n".join(sections) + "\n"


def help_block(command: click.Command, context: click.Context) -> str:
    """Return the help of a command in a code block."""
    return f"```text\n{command.get_help(context)}\n```"
