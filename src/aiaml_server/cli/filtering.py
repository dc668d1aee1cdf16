"""The options of the verbs that choose among memories, and show a part of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from aiaml_server.format.filters import WHEN

Verb = TypeVar("Verb", bound=Callable[..., Any])


def filtered(verb: Verb) -> Verb:
    """Give a verb the options that `Filter.of` takes."""
    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb


def paged(verb: Verb) -> Verb:
    """Give a verb the options `limit page everything`, for `Part`, and `everywhere`."""
    for option in reversed(_PAGES):
        verb = option(verb)
    return verb


@dataclass(frozen=True)
class Part:
    """The part of what was found that a person wants to see."""

    limit: int
    page: int
    everything: bool

    @property
    def first(self) -> int:
        """How many are passed over."""
        return 0 if self.everything else min((self.page - 1) * self.limit, sys.maxsize)

    @property
    def last(self) -> int | None:
        """Before which it ends; None for all."""
        return None if self.everything else min(self.first + self.limit, sys.maxsize)

    def told(self, count: int, total: int) -> str:
        """Say how many of all are shown, and how to see the others; empty where all are."""
        if count == total:
            return ""
        if self.first + count >= total:
            last = "" if count == 1 else f"{count:,} "
            return f"The last {last}of {total:,}."
        shown = f"{self.first + 1:,} to {self.first + count:,}" if self.first else f"{count:,}"
        more = f"`--page {self.page + 1}` shows the next, `--all` all of them."
        return f"{shown} of {total:,}: {more}"


_PAGES = (
    click.option(
        "--limit",
        "-n",
        metavar="N",
        default=25,
        type=click.IntRange(1),
        show_default=True,
        help="How many on a page.",
    ),
    click.option(
        "--page", "-p", metavar="N", default=1, type=click.IntRange(1), help="Which page."
    ),
    click.option("--all", "everything", is_flag=True, help="All of them, without pages."),
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
