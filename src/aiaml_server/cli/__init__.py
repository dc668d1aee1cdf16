"""The entry points: `aiaml-server` without arguments serves, everything else is a command."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from aiaml_server import toolsets
from aiaml_server.storage import programs

_USAGE, _INTERRUPTED = 2, 130
_GC_ALLOCATIONS = 200_000  # what a command makes is hardly ever garbage


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command, or serve; return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    os.environ.update(programs.variables())
    try:
        names, rest = toolsets.split_option(words)
        if not rest and (names or Path(sys.argv[0]).stem != "aiaml"):
            from aiaml_server.server.app import serve  # noqa: PLC0415 (serving needs no click)

            return serve(names)
        if words[:1] != rest[:1] and names:  # a command may have an option of this name
            command = f"aiaml {names[0]} {rest[0]}"
            sys.stderr.write(f"{toolsets.OPTION} chooses what is served; run `{command}`\n")
            return _USAGE
        gc.set_threshold(_GC_ALLOCATIONS)
        _handle_signals()
        from aiaml_server.cli.app import run  # noqa: PLC0415 (serving needs no click)

        code = run(words)
        gc.freeze()  # so that the interpreter ends without looking for garbage
    except KeyboardInterrupt:
        return _INTERRUPTED
    return code


def alone(toolset: str) -> int:
    """Run a program that has one toolset only; return the exit code.

    Args:
        toolset: the toolset. It is served if there are no arguments; else they are its commands.
    """
    words = sys.argv[1:]
    if words in ([], ["--version"], ["-V"]):
        return main(words or ["--toolset", toolset])
    return main([toolset, *words])


def _handle_signals() -> None:
    """Treat SIGTERM, SIGHUP and SIGBREAK like Ctrl-C."""
    for signal_name in ("SIGTERM", "SIGHUP", "SIGBREAK"):
        number = getattr(signal, signal_name, None)
        if number and signal.getsignal(number) == signal.SIG_DFL:  # under nohup it is ignored
            signal.signal(number, signal.default_int_handler)
