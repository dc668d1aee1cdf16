"""The five operations on one agent's memory. The same calls give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aiaml_server.toolsets.sessions.document import Document, objection
from aiaml_server.toolsets.sessions.failures import (
    InvalidContent,
    InvalidMode,
    InvalidSection,
    MalformedLog,
    MissingLog,
    MissingSchema,
)
from aiaml_server.toolsets.sessions.place import SCHEMA, SUMMARY, Place, check_date, check_root
from aiaml_server.toolsets.sessions.schema import DEFAULT_SCHEMA, Schema, unreadable
from aiaml_server.toolsets.warning import secret_in

MODES = ("append", "replace")
MAX_CONTENT = 1024 * 1024  # characters


class Written(NamedTuple):
    """What a call did.

    Attributes:
        file: the path of the file.
        created: whether it is new.
        warnings: what the agent should know of the versions, and of a secret.
    """

    file: str
    created: bool
    warnings: list[str]


class AgentMemory:
    """One agent's session logs and summary, in one repository. Failures are `failures.Refused`."""

    def __init__(
        self, root: str, agent: str, roots: Sequence[str] = (), *, check_secrets: bool = True
    ) -> None:
        check_root(root)
        self._check_secrets = check_secrets
        self.place = Place(root, agent, roots)

    def start(self, date: str | None = None) -> Written:
        """Create a date's log, and the schema and the summary where they are missing."""
        day = check_date(date)
        name = self.place.log(day)
        with self.place.writing():
            data = self.place.read(SCHEMA)
            schema = _schema_of(data)
            summary, log = self.place.read(SUMMARY), self.place.read(name)
            warnings = schema.warnings()
            if log is not None:
                warnings += schema.check_log(name, Document(log), self.place.agent, day)
            files = (
                (SCHEMA, data, DEFAULT_SCHEMA.encode()),
                (SUMMARY, summary, schema.summary(self.place.agent)),
                (name, log, schema.log(self.place.agent, day)),
            )
            self.place.write_new({each: new for each, old, new in files if old is None})
        return Written(str(self.place.shown / name), log is None, warnings)

    def append(self, section: str, content: str, date: str | None = None) -> Written:
        """Put content at the end of a section of a date's log; every byte that was there stays."""
        day = check_date(date)
        name = self.place.log(day)
        _check_content(content)
        with self.place.writing():
            schema = self._schema()
            if section not in schema.sections:
                raise InvalidSection(section, schema.sections, "schema")
            data = self.place.read(name)
            if data is None:
                raise MissingLog(f"there is no log of {day}; start_session makes it")
            log = Document(data)
            warnings = schema.warnings()
            warnings += schema.check_log(name, log, self.place.agent, day)
            changed = _with_section(log, section, schema).appended(section, content)
            schema.check_log(name, changed, self.place.agent, day)
            self.place.write(name, changed.data)
        return Written(str(self.place.shown / name), False, warnings + self._secret_in(content))

    def summary(self) -> str:
        """Return the summary; where there is none, what an empty one would say. Never writes."""
        data = self.place.read(SUMMARY)
        if data is None:
            data = _schema_of(self.place.read(SCHEMA)).summary(self.place.agent)
        document = Document(data)
        if problem := unreadable(document):
            raise MalformedLog(SUMMARY, problem.line, problem.what)
        return document.text

    def update(self, section: str, content: str, mode: str) -> Written:
        """Append to a section of the summary, or replace what it holds; all else stays."""
        if mode not in MODES:
            raise InvalidMode(f"mode {mode!r} must be one of {', '.join(MODES)}")
        _check_content(content)
        with self.place.writing():
            schema = self._schema()
            data = self.place.read(SUMMARY)
            before = Document(schema.summary(self.place.agent) if data is None else data)
            schema.check_summary(SUMMARY, before)
            known = list(dict.fromkeys([*schema.sections, *(s.text for s in before.sections)]))
            if section not in known:
                raise InvalidSection(section, known, "schema or summary")
            summary = _with_section(before, section, schema)
            change = summary.appended if mode == "append" else summary.replaced
            changed = change(section, content)
            schema.check_summary(SUMMARY, changed)
            self.place.write(SUMMARY, changed.data)
        warnings = schema.warnings() + self._secret_in(content)
        return Written(str(self.place.shown / SUMMARY), data is None, warnings)

    def sessions(self, limit: int | None = None) -> list[str]:
        """Return the names of the logs, newest first."""
        names = [f"{date}.md" for date in self.place.dates()]
        return names if limit is None else names[:limit]

    def _secret_in(self, content: str) -> list[str]:
        return secret_in(content, check=self._check_secrets)

    def _schema(self) -> Schema:
        data = self.place.read(SCHEMA)
        if data is None:
            raise MissingSchema("there is no _schema.md; start_session makes it")
        return Schema.parse(data)


def _schema_of(data: bytes | None) -> Schema:
    """Return the schema that a file holds; where there is none, that of version 1."""
    return Schema.parse(DEFAULT_SCHEMA.encode() if data is None else data)


def _check_content(content: str) -> None:
    if len(content) > MAX_CONTENT:
        raise InvalidContent(f"content: it is longer than {MAX_CONTENT:,} characters")
    if why := objection(content):
        raise InvalidContent(f"content: {why}")


def _with_section(document: Document, section: str, schema: Schema) -> Document:
    if document.find(section):
        return document
    return document.with_section(section, schema.order)
