"""The command line. `aiaml-server` without a verb serves, which is how clients start it."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from aiaml_server.storage import programs

# What a verb imports and makes is hardly ever garbage. Looking for it as often as Python does
# takes a twentieth of the time of `list`, and half of that of rendering a long text.
_ALLOCATIONS = 200_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    os.environ.update(programs.variables())
    try:
        names, rest = _toolsets(words)
        if rest == ["serve"] or (not rest and (names or Path(sys.argv[0]).stem != "aiaml")):
            from aiaml_server.cli.serving import serve  # noqa: PLC0415 (serving does not pay for the verbs)

            return serve(names)
        return _verbs(words)
    except KeyboardInterrupt:  # while modules are imported
        return 130


def alone(name: str, toolset: str) -> int:
    """Run a program that is one toolset alone; return the exit code.

    Args:
        name: the program's name.
        toolset: the toolset, which is served where no word is given; words are its verbs.
    """
    words = sys.argv[1:]
    if not words or words in (["--version"], ["-V"]):
        return main(words or ["--toolset", toolset, "serve"])
    os.environ.update(programs.variables())
    return _verbs(words, name, toolset)


def _verbs(words: Sequence[str], name: str = "", group: str = "") -> int:
    gc.set_threshold(_ALLOCATIONS)
    from aiaml_server.cli.ending import Ending  # noqa: PLC0415 (serving has its own)

    ending = Ending()
    try:
        from aiaml_server.cli.app import run  # noqa: PLC0415 (serving needs no click)

        code = run(words, name, group)
    except KeyboardInterrupt:  # while modules are imported
        code = 130
    gc.freeze()  # what is there was needed to the end: looking for garbage finds none
    return code and (ending.code or code)


def _toolsets(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Take `--toolset NAME` and `--toolset=NAME` out of the words before or behind `serve`."""
    names: list[str] = []
    rest: list[str] = []
    ahead = iter(words)
    for word in ahead:
        option, equals, value = word.partition("=")
        if option != "--toolset":
            rest.append(word)
        else:
            names.append(value if equals else next(ahead, ""))
    return names, rest
