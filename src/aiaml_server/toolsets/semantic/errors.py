"""Errors of this toolset. The class name is the error code; each carries a suggestion."""

from __future__ import annotations

from aiaml_server import errors


class SemanticError(errors.ToolError):
    """A call that failed and changed nothing.

    Attributes:
        suggestion: what to do about it, in one sentence.
    """

    suggestion = "Correct the value and call again."

    def __init__(self, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.suggestion = suggestion or self.suggestion


class InvalidInput(SemanticError):
    """A value cannot be used; the message says what would be right."""


class InvalidConfig(SemanticError):
    """`~/.memory/config.json` is not valid."""

    suggestion = "Correct the file, or delete it to use the defaults."


class InvalidProject(SemanticError):
    """There is no project, or the named directory is not one."""

    suggestion = "Use scope global, or run `aiaml semantic init` in the project's top directory."


class UntrustedDatabase(SemanticError):
    """The project's database was not created by this user on this machine."""

    suggestion = "Ask the person to look at the directory and to run `aiaml trust`."


class NotFound(SemanticError):
    """No memory has that id or hash."""

    suggestion = "Find it with search_memory or list_memories; ids look like project:12."


class DuplicateContent(SemanticError):
    """Another memory has exactly that text."""

    suggestion = "Update that one, or delete one of the two."


class NothingToUndo(SemanticError):
    """There is no such change, or it cannot be undone any more."""

    suggestion = "`aiaml semantic undo --list` shows what can be undone."


class Unavailable(SemanticError):
    """A library or the model is not installed, or cannot be loaded."""

    suggestion = "Install it: pip install 'aiaml-server[semantic]'."


class DatabaseLocked(SemanticError):
    """Another process was writing during three attempts."""

    suggestion = "Call again in a few seconds."


class CorruptDatabase(SemanticError):
    """A file is damaged, or not a database of memories. It is not changed."""

    suggestion = "`aiaml semantic restore project` (or `global`) puts a backup in its place."


class DiskError(SemanticError):
    """The disk or the operating system refused; the data is unchanged."""

    suggestion = "Free some space, give this user write access, or choose another place."
