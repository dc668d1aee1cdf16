"""The entry points: `aiaml-server` without a word serves, everything else is a command."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from aiaml_server.storage import programs

_INTERRUPTED = 130
_GC_ALLOCATIONS = 200_000  # what a command makes is hardly ever garbage


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command, or serve; return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    os.environ.update(programs.variables())
    try:
        names, rest = _split_toolsets(words)
        if rest == ["serve"] or (not rest and (names or Path(sys.argv[0]).stem != "aiaml")):
            from aiaml_server.server.app import serve  # noqa: PLC0415 (serving needs no click)

            return serve(names)
        return _run(words)
    except KeyboardInterrupt:
        return _INTERRUPTED


def alone(name: str, toolset: str) -> int:
    """Run a program that is one toolset alone; return the exit code.

    Args:
        name: the program's name.
        toolset: the toolset. It is served if there are no arguments; else they are its commands.
    """
    words = sys.argv[1:]
    if not words or words in (["--version"], ["-V"]):
        return main(words or ["--toolset", toolset, "serve"])
    os.environ.update(programs.variables())
    return _run(words, name, toolset)


def _run(words: Sequence[str], name: str = "", group: str = "") -> int:
    gc.set_threshold(_GC_ALLOCATIONS)
    for signal_name in ("SIGTERM", "SIGHUP", "SIGBREAK"):
        number = getattr(signal, signal_name, None)
        if number and signal.getsignal(number) == signal.SIG_DFL:  # under nohup it is ignored
            signal.signal(number, signal.default_int_handler)
    try:
        from aiaml_server.cli.app import run  # noqa: PLC0415 (serving needs no click)

        code = run(words, name, group)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    gc.freeze()  # so that the interpreter ends without looking for garbage
    return code


def _split_toolsets(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split `--toolset NAME` and `--toolset=NAME` from the other arguments."""
    names: list[str] = []
    rest: list[str] = []
    remaining = iter(words)
    for word in remaining:
        option, equals, value = word.partition("=")
        if option == "--toolset":
            names.append(value if equals else next(remaining, ""))
        else:
            rest.append(word)
    return names, rest
