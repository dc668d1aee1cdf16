"""The five operations on one agent's memory. The same calls write the same bytes.

Each returns the answer of the tool of the same name.
"""

from __future__ import annotations

from typing import Any

from aiaml_server.toolsets.failures import shorten
from aiaml_server.toolsets.sessions.errors import (
    InvalidContent,
    InvalidMode,
    InvalidSection,
    MalformedLog,
    MissingLog,
    MissingSchema,
)
from aiaml_server.toolsets.sessions.markdown import Document, check_content
from aiaml_server.toolsets.sessions.paths import SCHEMA, SUMMARY, AgentDirectory, check_date
from aiaml_server.toolsets.sessions.schema import DEFAULT_SCHEMA, Schema, summary_problems
from aiaml_server.toolsets.warning import secret_warning

MODES = ("append", "replace")
MAX_SHOWN_CHARACTERS = 10_000

ToolAnswer = dict[str, Any]


class AgentMemory:
    """The session logs and the summary of one agent in one repository.

    Errors are those of `sessions.errors`. After an error, nothing has changed on disk.
    """

    def __init__(self, root: str, agent: str, *, check_secrets: bool = True) -> None:
        self.directory = AgentDirectory(root, agent)
        self._check_secrets = check_secrets

    def start_session(self, date: str | None = None) -> ToolAnswer:
        """Create a date's log, and the schema and the summary if they are missing."""
        day = check_date(date)
        name, agent = self.directory.log_name(day), self.directory.agent
        with self.directory.locked():
            warnings = self.absence_warning() if self.directory.other_agents() else []
            schema_data, summary = self.directory.read(SCHEMA), self.directory.read(SUMMARY)
            log = self.directory.read(name)
            schema = Schema.parse(schema_data or DEFAULT_SCHEMA.encode())
            if log is not None:
                warnings += schema.check_log(name, Document(log), agent, day)
            if schema_data is None:
                self.directory.write(SCHEMA, DEFAULT_SCHEMA.encode())
            if summary is None:
                self.directory.write(SUMMARY, schema.new_summary(agent))
            if log is None:
                self.directory.write(name, schema.new_log(agent, day))
        answer = {"session_file": str(self.directory.path / name), "created": log is None}
        document = Document(log or b"")
        if any(document.body(section) for section in schema.sections):
            answer["log"] = document.text[-MAX_SHOWN_CHARACTERS:]
        return self._with_warnings(answer, schema, warnings)

    def append_entry(self, section: str, content: str, date: str | None = None) -> ToolAnswer:
        """Append content to a section of a date's log; all other bytes stay."""
        day = check_date(date)
        name, agent = self.directory.log_name(day), self.directory.agent
        _require_valid(content)
        with self.directory.locked():
            schema = self._schema()
            if section not in schema.sections:
                raise InvalidSection(section, schema.sections, "schema")
            data = self.directory.read(name)
            if data is None:
                newest = next(iter(self.directory.dates()), "")
                hint = f"; the newest is that of {newest}, to be given as `date`" if newest else ""
                raise MissingLog(f"there is no log of {day}; start_session creates it{hint}")
            log = Document(data)
            warnings = schema.check_log(name, log, agent, day)
            changed = log.with_section(section, schema.order).append(section, content)
            schema.check_log(name, changed, agent, day)
            self.directory.write(name, changed.data)
        answer = {"session_file": str(self.directory.path / name), "section": section}
        return self._with_warnings(answer, schema, warnings, content)

    def read_summary(self) -> ToolAnswer:
        """Return the summary, or an empty one if there is none; never writes."""
        data = self.directory.read(SUMMARY)
        if data is None:
            schema = Schema.parse(self.directory.read(SCHEMA) or DEFAULT_SCHEMA.encode())
            data = schema.new_summary(self.directory.agent)
        document = Document(data)
        for problem in document.text_problems()[:1]:
            raise MalformedLog(SUMMARY, problem.line, problem.text)
        warnings = self.absence_warning()
        for problem in summary_problems(document, self.directory.agent):
            warnings.append(f"{SUMMARY}: line {problem.line}: {problem.text}")
        return {"summary": document.text, **({"warnings": warnings} if warnings else {})}

    def update_summary(self, section: str, content: str, mode: str) -> ToolAnswer:
        """Append to a section of the summary, or replace its content; all other bytes stay.

        With mode "replace", an empty content empties the section.
        """
        if mode not in MODES:
            raise InvalidMode(f"mode {shorten(mode)!r} must be one of {', '.join(MODES)}")
        if mode == "append" or content.strip():
            _require_valid(content)
        with self.directory.locked():
            schema = self._schema()
            data = self.directory.read(SUMMARY)
            before = Document(data or schema.new_summary(self.directory.agent))
            self._check_summary(before)
            names = [*schema.sections, *(heading.text for heading in before.sections)]
            if section not in names:
                raise InvalidSection(section, list(dict.fromkeys(names)), "schema or summary")
            summary = before.with_section(section, schema.order)
            change = summary.append if mode == "append" else summary.replace
            changed = change(section, content)
            self._check_summary(changed)
            self.directory.write(SUMMARY, changed.data)
        path = str(self.directory.path / SUMMARY)
        answer = {"summary_file": path, "section": section, "mode": mode}
        return self._with_warnings(answer, schema, [], content)

    def list_sessions(self, limit: int | None = None) -> ToolAnswer:
        """Return the file names of the logs, newest first."""
        names = [f"{day}.md" for day in self.directory.dates()[:limit]]
        warnings = self.absence_warning()
        return {"sessions": names, **({"warnings": warnings} if warnings else {})}

    def absence_warning(self) -> list[str]:
        """Return a warning if this agent has no memory here, which names the agents that have."""
        if self.directory.path.is_dir():
            return []
        others = ", ".join(self.directory.other_agents())
        known = f"there are memories of: {others}" if others else "nor of any other agent"
        return [f"there is no memory of {self.directory.agent!r} here; {known}"]

    def _schema(self) -> Schema:
        data = self.directory.read(SCHEMA)
        if data is None:
            raise MissingSchema(f"there is no {SCHEMA}; start_session creates it")
        return Schema.parse(data)

    def _check_summary(self, document: Document) -> None:
        for problem in summary_problems(document, self.directory.agent):
            raise MalformedLog(SUMMARY, problem.line, problem.text)

    def _with_warnings(
        self, answer: ToolAnswer, schema: Schema, warnings: list[str], content: str = ""
    ) -> ToolAnswer:
        secret = secret_warning(self.directory.agent, content, check=self._check_secrets)
        warnings = [*schema.version_warnings(), *warnings, *secret]
        return {**answer, "warnings": warnings} if warnings else answer


def _require_valid(content: str) -> None:
    if reason := check_content(content):
        raise InvalidContent(f"content: {reason}")
