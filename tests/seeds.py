"""Run a simulation with a range of seeds: `python FILE SEED [COUNT]`."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout

from machine import CLEAN


def main(run: Callable[[int], object]) -> None:
    """Print one line for each seed that fails; with one seed alone, also what happened."""
    logging.disable()
    os.environ.update(CLEAN)
    first = int(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    failed = 0
    for seed in range(first, first + count):
        if seed % 100 == 0:
            print(f"at seed {seed}", file=sys.stderr)  # noqa: T201
        trace = io.StringIO()
        try:
            with redirect_stdout(trace):
                run(seed)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 (pytest's failures, too; the others run)
            failed += 1
            if count == 1:
                print(trace.getvalue())  # noqa: T201
            reason = str(error).splitlines() or [""]
            print(f"failed: seed {seed}: {type(error).__name__}: {reason[0][:200]}", flush=True)  # noqa: T201
    print(f"{count - failed} of {count} seeds from {first} passed")  # noqa: T201
    sys.exit(bool(failed))
