"""`aiaml citations …`: passes its words on to the command line of the standard library."""

from __future__ import annotations

import click

from aiaml_server.toolsets.citations.cli import COMMANDS, main


@click.command(
    "citations",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def citations(words: tuple[str, ...]) -> int:
    """Search, save and verify the memories of a code base."""
    if words and words[0] not in COMMANDS and not words[0].startswith("-"):
        raise click.UsageError(f"No such command '{words[0]}'.")
    try:
        return main(words, "aiaml citations")
    except SystemExit as end:  # argparse has printed help or a usage error
        return int(end.code or 0)
