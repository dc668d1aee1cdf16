"""What can go wrong: a closed list, each with the code that agents get."""

from __future__ import annotations

from collections.abc import Sequence

from aiaml_server.errors import Busy as Busy  # noqa: PLC0414
from aiaml_server.errors import DiskError as DiskError  # noqa: PLC0414
from aiaml_server.errors import Refused as Refused  # noqa: PLC0414 (a name of this module too)
from aiaml_server.toolsets.failures import beginning


class InvalidSection(Refused):
    """The section is not one that the schema defines."""

    def __init__(self, section: str, known: Sequence[str], where: str) -> None:
        names = ", ".join(known)
        super().__init__(
            f"Section {beginning(section)!r} is not defined in {where}; there are: {names}"
        )


class MissingSchema(Refused):
    """There is no `_schema.md`."""


class Faulty(Refused):
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


class MissingLog(Refused):
    """There is no log of that date."""


class MalformedLog(Faulty):
    """A log or a summary is not as the schema has it."""


class InvalidDate(Refused):
    """The date is no real one, as YYYY-MM-DD."""


class InvalidAgentName(Refused):
    """The agent's name cannot be the name of a directory."""


class NotARepository(Refused):
    """`repo_root` is not the top of a git work tree."""


class OutsideRepository(Refused):
    """What is asked for lies, or leads, outside of the repositories that may be touched."""


class InvalidContent(Refused):
    """The content is empty, or would not stay within its section."""


class InvalidMode(Refused):
    """The mode is neither `append` nor `replace`."""
