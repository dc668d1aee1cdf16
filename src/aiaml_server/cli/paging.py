"""Long answers through the person's pager, as git shows them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from subprocess import PIPE

from click.exceptions import Exit

from aiaml_server.cli.ending import Signalled
from aiaml_server.settings import PAGER
from aiaml_server.storage import programs
from aiaml_server.terminal import is_interactive, shown_by

PAGED = ("list", "show", "search", "topics", "stats", "log", "history")
"""The verbs whose answers may be long."""


@contextmanager
def paged() -> Iterator[None]:
    """Show what is printed inside the `with` in a pager, if there is a terminal and a pager.

    What the person does not look at any more is no error.
    """
    words = _pager() if is_interactive() else []
    if not words:
        yield
        return
    usual = {"LESS": "FRX", "LV": "-c"}  # less ends by itself where all fits on the screen
    pager = subprocess.Popen(words, stdin=PIPE, env={**usual, **os.environ})  # noqa: S603 (the person's)
    assert pager.stdin  # noqa: S101 (for mypy)
    try:
        with shown_by(pager.stdin):
            yield
        _finish(pager)
    except Signalled:
        pager.terminate()
        raise
    except BaseException as error:
        _finish(pager)
        if isinstance(error, BrokenPipeError):
            raise Exit(0) from error
        raise


def _finish(pager: subprocess.Popen[bytes]) -> None:
    """Tell the pager that this was all, and wait until the person leaves it."""
    assert pager.stdin  # noqa: S101 (for mypy)
    with suppress(BrokenPipeError):
        pager.stdin.close()
    while pager.poll() is None:
        try:
            pager.wait()
        except Signalled:
            raise
        except KeyboardInterrupt:  # it is the pager's, which may go on
            continue


def _pager() -> list[str]:
    """Return the words that start the pager; none where there is or should be none."""
    chosen = next((os.environ[name] for name in _NAMES if name in os.environ), None)
    if chosen is None and sys.platform == "win32":
        return []  # its `more` shows neither colours nor UTF-8
    try:
        words = shlex.split("less" if chosen is None else chosen, posix=sys.platform != "win32")
    except ValueError:  # a quotation mark that is open
        return []
    found = programs.find(words[0]) if words and words[0] != "cat" else None
    return [found, *words[1:]] if found else []


_NAMES = (PAGER.name, "PAGER")
