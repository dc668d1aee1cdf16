"""Errors of the toolset. Agents get the class name as a code, and the message."""

from aiaml_server.errors import ToolError


class NoRepository(ToolError):
    """No repository was named or found."""


class InvalidConfig(ToolError):
    """`.memory-config.yaml` has a wrong key or value."""


class InvalidInput(ToolError):
    """An argument cannot be used. The message says what would be right."""


class InvalidCitation(ToolError):
    """A citation names no line that can be cited."""


class MalformedMemory(ToolError):
    """A file is not a memory. It is left as it is."""


class Unavailable(ToolError):
    """The configured search index is not installed or does not answer."""
