"""Promises of time, on machines that others use as well."""

from __future__ import annotations


class TooSlow(AssertionError):  # noqa: N818 (what is wrong is the time)
    """A test that ends so is made again, twice at most: the machine may have been busy.

    pyproject.toml says so, and the closing line counts it. No other failure is tried again.
    """


def quick(took: float, most: float) -> None:
    """Fail unless what `took` so many seconds took fewer than `most`."""
    if took >= most:
        raise TooSlow(f"took {took:.3f} s, and less than {most:.3f} s is promised")
