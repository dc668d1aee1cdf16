"""`aiaml citations …`: passes its words on to the command line of the standard library."""

from __future__ import annotations

import click

from aiaml_server.toolsets.citations.cli import main


@click.command(
    "citations",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def citations(words: tuple[str, ...]) -> int:
    """Search, save and verify the memories of a code base."""
    return main(words, "aiaml citations")
