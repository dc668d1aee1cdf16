"""`memory-server`: this toolset as a program. Without arguments it serves."""

import sys

from aiaml_server.cli import alone


def main() -> int:
    """Serve, or run a command; return the exit code."""
    return alone("semantic")


if __name__ == "__main__":
    sys.exit(main())
