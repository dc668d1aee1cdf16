"""The options of the verbs that choose among memories, and show a part of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from aiaml_server.format.filters import WHEN
from aiaml_server.terminal import dim, notify

Verb = TypeVar("Verb", bound=Callable[..., Any])


def filtered(verb: Verb) -> Verb:
    """Give a verb the options that `Filter.of` takes."""
    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb


def limited(verb: Verb) -> Verb:
    """Give a verb the options `limit` and `everything`."""
    for option in reversed(_LIMITS):
        verb = option(verb)
    return verb


def tell_limit(count: int, total: int) -> None:
    """Say how many of all are shown, where that is not all of them."""
    if count < total:
        notify(dim(f"{count:,} of {total:,}: `--all` shows all of them."))


_LIMITS = (
    click.option(
        "--limit",
        "-n",
        metavar="N",
        default=25,
        type=click.IntRange(1),
        show_default=True,
        help="How many to show.",
    ),
    click.option("--all", "everything", is_flag=True, help="All of them."),
)
_OPTIONS = (
    click.option("--agent", "-a", metavar="NAME", help="Only this agent's."),
    click.option("--user", "-u", metavar="NAME", help="Only those about this person."),
    click.option("--topic", "-t", metavar="WORD", multiple=True, help="Only with this topic."),
    click.option(
        "--since", metavar="TIME", help=f"Only from then on. {WHEN[0].upper()}{WHEN[1:]}."
    ),
    click.option("--until", metavar="TIME", help="Only before then, likewise."),
)
