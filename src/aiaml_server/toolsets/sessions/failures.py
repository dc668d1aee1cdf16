"""What can go wrong: a closed list, each with the code that agents get."""

from __future__ import annotations

from collections.abc import Sequence

from aiaml_server.errors import Busy as Busy  # noqa: PLC0414
from aiaml_server.errors import DiskError as DiskError  # noqa: PLC0414
from aiaml_server.errors import ToolError as ToolError  # noqa: PLC0414 (a name of this module too)
from aiaml_server.toolsets.failures import shorten


class InvalidSection(ToolError):
    """The section is not one that the schema defines."""

    def __init__(self, section: str, known: Sequence[str], where: str) -> None:
        names = ", ".join(known)
        super().__init__(
            f"Section {shorten(section)!r} is not defined in {where}; there are: {names}"
        )


class MissingSchema(ToolError):
    """There is no `_schema.md`."""


class Faulty(ToolError):
    """A file that is not as it must be.

    Attributes:
        line: where, from 1.
        why: what is wrong there.
    """

    def __init__(self, name: str, line: int, why: str) -> None:
        super().__init__(f"{name}: line {line}: {why}")
        self.line = line
        self.why = why


class InvalidSchema(Faulty):
    """`_schema.md` is no schema."""


class MissingLog(ToolError):
    """There is no log of that date."""


class MalformedLog(Faulty):
    """A log or a summary is not as the schema has it."""


class InvalidDate(ToolError):
    """The date is no real one, as YYYY-MM-DD."""


class InvalidAgentName(ToolError):
    """The agent's name cannot be the name of a directory."""


class NotARepository(ToolError):
    """`repo_root` is not the top of a git work tree."""


class OutsideRepository(ToolError):
    """What is asked for lies, or leads, outside of the repositories that may be touched."""


class InvalidContent(ToolError):
    """The content is empty, or would not stay within its section."""


class InvalidMode(ToolError):
    """The mode is neither `append` nor `replace`."""
