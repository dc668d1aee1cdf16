"""What can go wrong, each with the code that agents get; wrong values are `InvalidInput`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aiaml_server.errors import Busy as Busy  # noqa: PLC0414
from aiaml_server.errors import DiskError as DiskError  # noqa: PLC0414
from aiaml_server.errors import NotFound as NotFound  # noqa: PLC0414
from aiaml_server.errors import ToolError as ToolError  # noqa: PLC0414 (a name of this module too)

if TYPE_CHECKING:
    from aiaml_server.toolsets.compartments.entries import Entry


class LimitExceeded(ToolError):
    """The compartment would hold more characters than it may.

    Attributes:
        used: characters that it holds.
        allowed: characters that it may hold.
        asked: characters that it would hold.
        oldest: the entries without which there would be room, the least important first, of these
            the oldest; none where nothing that goes would help.
    """

    def __init__(
        self, compartment: str, used: int, allowed: int, asked: int, oldest: Sequence[Entry]
    ) -> None:
        known = "; ".join(
            f"{each.id} (priority {each.priority}, {each.size} characters)" for each in oldest
        )
        super().__init__(
            f"the {compartment} memory holds {used} of {allowed} characters, and would hold"
            f" {asked}: {asked - allowed} are missing; shorten it, or clear_memory by id: {known}"
            if oldest
            else f"this content alone has {asked} characters, and the {compartment} memory holds"
            f" {allowed}: shorten or split it"
        )
        self.used = used
        self.allowed = allowed
        self.asked = asked
        self.oldest = tuple(oldest)
