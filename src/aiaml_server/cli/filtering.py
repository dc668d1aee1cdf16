"""The options of the verbs that choose among memories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from aiaml_server.filters import WHEN

Verb = TypeVar("Verb", bound=Callable[..., Any])


def filtered(verb: Verb) -> Verb:
    """Give a verb the options `agent user topic since until`, for `Filter.of`."""
    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb


_OPTIONS = (
    click.option("--agent", "-a", metavar="NAME", help="Only this agent's."),
    click.option("--user", "-u", metavar="NAME", help="Only those about this person."),
    click.option("--topic", "-t", metavar="WORD", multiple=True, help="Only with this topic."),
    click.option(
        "--since",
        metavar="TIME",
        help=f"Only from then on. {WHEN[0].upper()}{WHEN[1:]}.",
    ),
    click.option("--until", metavar="TIME", help="Only before then, likewise."),
)
