"""What can go wrong: a closed list, each with the kind that agents get and what to do about it."""

from __future__ import annotations

from aiaml_server import errors


class Refused(errors.ToolError):
    """A call that was refused, and what to do about it.

    Attributes:
        suggestion: what to do about it, in one sentence.
    """

    suggestion = "Correct the value and call again."

    def __init__(self, sentence: str, suggestion: str = "") -> None:
        super().__init__(sentence)
        self.suggestion = suggestion or self.suggestion


class InvalidInput(Refused):
    """A value that cannot be used; the sentence says what would be right."""


class InvalidConfig(Refused):
    """`~/.memory/config.json` is not as it must be."""

    suggestion = "Correct the file, or delete it to have the defaults."


class InvalidProject(Refused):
    """There is no project, or what was named is none."""

    suggestion = "Use scope global, or make a directory .memory in the project's top directory."


class NotFound(Refused):
    """There is no memory of that id or hash."""

    suggestion = "Find it with search_memory or list_memories; ids look like project:12."


class AlreadyThere(Refused):
    """Another memory has exactly that text."""

    suggestion = "Update that one, or delete one of the two."


class NothingToUndo(Refused):
    """No merge is left that could be undone."""

    suggestion = "Nothing needs to be done."


class Unavailable(Refused):
    """What is needed is not installed, or cannot be loaded."""

    suggestion = "Install it: pip install 'aiaml-server[semantic]'."


class Busy(Refused):
    """Another process was writing, and did not end in three tries."""

    suggestion = "Call again in a few seconds."


class Damaged(Refused):
    """A file is no database of memories, or was damaged; it is left as it is."""

    suggestion = "Run `aiaml semantic doctor`; `aiaml semantic restore` puts a backup in its place."


class DiskError(Refused):
    """The disk refused; what was there is there."""

    suggestion = "Make room, or let this user write there, and call again."
