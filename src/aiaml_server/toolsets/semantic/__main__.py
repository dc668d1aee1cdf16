"""`memory-server`: this toolset as a program of its own; without words it serves."""

import sys

from aiaml_server.cli import alone


def main() -> int:
    """Serve, or with words use the verbs; return the exit code."""
    return alone("memory-server", "semantic")


if __name__ == "__main__":
    sys.exit(main())
