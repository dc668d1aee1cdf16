"""What every test gets."""

from __future__ import annotations

import os

from hypothesis import settings

# `HYPOTHESIS_EXAMPLES=20000 tests/run.sh` looks longer.
settings.register_profile(
    "aiaml", max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "200")), deadline=None
)
settings.load_profile("aiaml")
