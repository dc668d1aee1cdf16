#!/usr/bin/env python3
"""Run `aiaml citations` from a checkout with Python alone: `python scripts/citations.py verify`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    if sys.version_info < (3, 10):  # noqa: UP036 (the person may have an older one)
        sys.stderr.write("this needs Python 3.10 or later\n")
        sys.exit(2)  # 1 would mean stale
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
    from aiaml_server.toolsets.citations.cli import main

    sys.exit(main())
