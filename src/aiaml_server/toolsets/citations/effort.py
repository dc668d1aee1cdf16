"""How much one call looks at, whatever somebody else has put into the repository."""

from __future__ import annotations

from aiaml_server.toolsets.citations.failures import InvalidInput


class TooMuch(InvalidInput):
    """What a call looks at at most is used up; what remains was not looked at."""


class Effort:
    """What is left of a call's work, counted: so the same files give the same answer everywhere."""

    def __init__(self, most: int) -> None:
        """Take how much there is, in units of whoever counts."""
        self._left = most

    def has(self, units: int) -> bool:
        """Take some away; say whether there was as much."""
        self._left -= units
        return self._left >= 0

    def spend(self, units: int) -> None:
        """Take some away.

        Raises:
            TooMuch: there is no more.
        """
        if not self.has(units):
            raise TooMuch("so much was looked through that the rest was not; ask for fewer by ids")
