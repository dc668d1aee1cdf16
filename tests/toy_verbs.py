"""The toy toolset's verbs."""

import click


@click.group()
def toy() -> None:
    """Keep short notes."""


@toy.command()
def say() -> None:
    """Say something."""
    click.echo("said")


@toy.command()
def fail() -> None:
    """Do what cannot be done."""
    click.echo(1 // 0)
