"""The errors of this toolset. The name of a class is the code that agents get."""

from __future__ import annotations

from collections.abc import Sequence

from aiaml_server.errors import ToolError
from aiaml_server.toolsets.failures import shorten


class InvalidSection(ToolError):
    """The schema does not define the section."""

    def __init__(self, section: str, known: Sequence[str], where: str) -> None:
        super().__init__(
            f"Section {shorten(section)!r} is not defined in {where}; there are: {', '.join(known)}"
        )


class MissingSchema(ToolError):
    """There is no `_schema.md`."""


class MissingLog(ToolError):
    """There is no log of that date."""


class InvalidFile(ToolError):
    """A file does not have the form that it must have.

    Attributes:
        line: the line that is wrong, counted from 1.
        reason: what is wrong there.
    """

    def __init__(self, name: str, line: int, reason: str) -> None:
        super().__init__(f"{name}: line {line}: {reason}")
        self.line = line
        self.reason = reason


class InvalidSchema(InvalidFile):
    """`_schema.md` is not a schema."""


class MalformedLog(InvalidFile):
    """A log or a summary does not follow the schema."""


class InvalidDate(ToolError):
    """The date is not a real one written as YYYY-MM-DD."""


class InvalidAgentName(ToolError):
    """The agent's name cannot be the name of a directory."""


class NotARepository(ToolError):
    """`repo_root` is not the top of a git work tree."""


class OutsideRepository(ToolError):
    """The path is outside of the repositories that may be used, or links to such a place."""


class InvalidContent(ToolError):
    """The content is empty, or would not stay within its section."""


class InvalidMode(ToolError):
    """The mode is neither `append` nor `replace`."""
