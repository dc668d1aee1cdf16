"""Sentences of this program among the texts that a hook shows to an agent."""

from __future__ import annotations

from collections.abc import Sequence


class Request(str):
    """A sentence of this program. It is shown before the block of data, and not in it."""

    __slots__ = ()


def split_requests(texts: Sequence[str]) -> tuple[str, list[str]]:
    """Return the requests of a hook, each after a line end, and its other texts."""
    requests = "".join(f"\n{text}" for text in texts if isinstance(text, Request))
    return requests, [text for text in texts if not isinstance(text, Request)]
