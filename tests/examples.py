"""How many examples a property is tried with: fewer where the run is to be short."""

from __future__ import annotations

import os

USUAL = 200
EXAMPLES = int(os.environ.get("HYPOTHESIS_EXAMPLES", str(USUAL)))
"""`tests/run.sh` asks for fewer, `HYPOTHESIS_EXAMPLES=20000 tests/run.sh -k format` for more."""
FEWEST = 10


def examples(number: int) -> int:
    """Return how many examples a test looks at that wants `number` of them where others want 200.

    With HYPOTHESIS_EXAMPLES=50, 3,000 are 750, and 60 are 15.
    """
    return max(min(number, FEWEST), number * EXAMPLES // USUAL)
