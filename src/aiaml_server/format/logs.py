"""The format of the log: one line for each record, without invisible characters."""

from __future__ import annotations

import logging

from aiaml_server.format.invisible import inert, marked, marked_line


class LogFormatter(logging.Formatter):
    """A record on one line and its traceback below, `marked`."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (logging's name)
        """Return the line."""
        return marked_line(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        """Return the line and the traceback."""
        return inert(marked(super().format(record)))
