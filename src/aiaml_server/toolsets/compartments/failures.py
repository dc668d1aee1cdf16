"""What can go wrong, each with the code that agents get; wrong values are `InvalidInput`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aiaml_server.errors import Refused as Refused  # noqa: PLC0414 (a name of this module too)
from aiaml_server.toolsets.failures import Busy as Busy  # noqa: PLC0414
from aiaml_server.toolsets.failures import DiskError as DiskError  # noqa: PLC0414
from aiaml_server.toolsets.failures import NotFound as NotFound  # noqa: PLC0414

if TYPE_CHECKING:
    from aiaml_server.toolsets.compartments.entries import Entry


class LimitExceeded(Refused):
    """The compartment would hold more characters than it may.

    Attributes:
        used: characters that it holds.
        allowed: characters that it may hold.
        asked: characters that it would hold.
        oldest: the entries of the lowest priority, the oldest first.
    """

    def __init__(
        self, compartment: str, used: int, allowed: int, asked: int, oldest: Sequence[Entry]
    ) -> None:
        known = "; ".join(
            f"{each.id} (priority {each.priority}, {each.size} characters)" for each in oldest[:5]
        )
        way = f"clear_memory by id makes room, first for the least important: {known}"
        super().__init__(
            f"the {compartment} memory holds {used} of {allowed} characters, and would hold {asked}"
            f"; {way if oldest else 'a shorter content fits'}"
        )
        self.used = used
        self.allowed = allowed
        self.asked = asked
        self.oldest = tuple(oldest)
