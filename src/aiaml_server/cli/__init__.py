"""The command line. `aiaml-server` without a word serves, which is how clients start it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from aiaml_server import programs


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    os.environ.update(programs.variables())
    try:
        if words == ["serve"] or (not words and Path(sys.argv[0]).stem != "aiaml"):
            from .serving import serve  # noqa: PLC0415 (serving does not pay for the verbs)

            return serve()
        from .app import run  # noqa: PLC0415 (serving needs no click)

        return run(words)
    except KeyboardInterrupt:  # while modules are imported
        return 130
