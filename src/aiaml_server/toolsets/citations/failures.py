"""What can go wrong: a closed list, each with the code that agents get."""

from __future__ import annotations

from aiaml_server.errors import Busy as Busy  # noqa: PLC0414
from aiaml_server.errors import DiskError as DiskError  # noqa: PLC0414
from aiaml_server.errors import NotFound as NotFound  # noqa: PLC0414
from aiaml_server.errors import ToolError as ToolError  # noqa: PLC0414 (a name of this module too)


class NoRepository(ToolError):
    """There is no repository whose memories could be meant."""


class InvalidConfig(ToolError):
    """`.memory-config.yaml` is not as it must be."""


class InvalidInput(ToolError):
    """A value that cannot be used; the sentence says what would be right."""


class InvalidCitation(ToolError):
    """A citation that points outside of the repository, or says nothing."""


class MalformedMemory(ToolError):
    """A file that is no memory; it is left as it is."""


class Unavailable(ToolError):
    """What is configured for the search by meaning does not answer or is not installed."""
