"""Where the repository and the tests are."""

from pathlib import Path

TESTS = Path(__file__).parent
ROOT = TESTS.parent
