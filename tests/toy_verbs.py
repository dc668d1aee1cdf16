"""The toy toolset's verbs."""

import click


@click.group()
def toy() -> None:
    """Keep short notes."""


@toy.command()
def say() -> None:
    """Say something."""
    click.echo("said")
