"""The five operations on one agent's memory. The same calls give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aiaml_server.toolsets.failures import shorten
from aiaml_server.toolsets.sessions.document import Document, objection
from aiaml_server.toolsets.sessions.driver import UNKNOWN, is_lacking
from aiaml_server.toolsets.sessions.failures import (
    InvalidContent,
    InvalidMode,
    InvalidSection,
    MalformedLog,
    MissingLog,
    MissingSchema,
)
from aiaml_server.toolsets.sessions.place import SCHEMA, SUMMARY, Place, check_date, check_root
from aiaml_server.toolsets.sessions.remarks import hidden
from aiaml_server.toolsets.sessions.schema import (
    DEFAULT_SCHEMA,
    Schema,
    summary_problems,
    unreadable,
)
from aiaml_server.toolsets.warning import secret_warning

MODES = ("append", "replace")
MAX_CONTENT = 1024 * 1024  # characters
MOST_SHOWN = 10_000  # characters of a log that is opened


class Written(NamedTuple):
    """What a call did.

    Attributes:
        file: the path of the file.
        warnings: what the agent should know of the versions, and of a secret.
    """

    file: str
    warnings: list[str]


class Started(NamedTuple):
    """What `start` did.

    Attributes:
        file: the path of the log.
        created: whether it is new.
        warnings: what the agent should know of the versions, and of other agents' memories.
        log: what a log that was there says; empty where it has no entry.
    """

    file: str
    created: bool
    warnings: list[str]
    log: str


class Summary(NamedTuple):
    """What `summary` found.

    Attributes:
        text: the summary.
        warnings: what the agent should know before it believes that.
    """

    text: str
    warnings: list[str]


class AgentMemory:
    """One agent's session logs and summary, in one repository. Failures are `failures.Refused`."""

    def __init__(
        self, root: str, agent: str, roots: Sequence[str] = (), *, check_secrets: bool = True
    ) -> None:
        check_root(root)
        self._check_secrets = check_secrets
        self.place = Place(root, agent, roots)

    def start(self, date: str | None = None) -> Started:
        """Create a date's log, and the schema and the summary where they are missing."""
        day = check_date(date)
        name = self.place.log(day)
        with self.place.writing():
            absent = self.absence()
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
        if self.place.others():
            warnings += absent
        if is_lacking(self.place.root):
            warnings.append(UNKNOWN)
        warnings += self._said_of("")
        said = Document(log or b"")
        text = said.text if any(said.entries(each) for each in schema.sections) else ""
        return Started(str(self.place.shown / name), log is None, warnings, _shortened(text))

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
                newest = next(iter(self.place.dates()), None)
                other = f"; the newest is of {newest}, which `date` names" if newest else ""
                raise MissingLog(f"there is no log of {day}: start_session makes it{other}")
            log = Document(data)
            warnings = schema.warnings()
            warnings += schema.check_log(name, log, self.place.agent, day)
            changed = log.with_section(section, schema.order).appended(section, content)
            schema.check_log(name, changed, self.place.agent, day)
            self.place.write(name, changed.data)
        warnings += self._said_of(content)
        return Written(str(self.place.shown / name), warnings)

    def summary(self) -> Summary:
        """Return the summary; where there is none, what an empty one would say. Never writes."""
        data = self.place.read(SUMMARY)
        if data is None:
            data = _schema_of(self.place.read(SCHEMA)).summary(self.place.agent)
        document = Document(data)
        try:
            text = document.text
        except UnicodeDecodeError:
            (problem,) = unreadable(document)
            raise MalformedLog(SUMMARY, problem.line, problem.what) from None
        found = sorted(summary_problems(document, self.place.agent))
        said = [f"{SUMMARY}: line {each.line}: {each.what}" for each in found]
        return Summary(text, self.absence() + said)

    def absence(self) -> list[str]:
        """Say that this agent has no memory here, and which have; empty where it has."""
        if self.place.directory.is_dir():
            return []
        others = self.place.others()
        there = f"there are: {', '.join(others)}" if others else "nor of any other agent"
        return [f"there is no memory of {self.place.agent!r} here; {there}"]

    def update(self, section: str, content: str, mode: str) -> Written:
        """Append to a section of the summary, or replace what it holds; all else stays."""
        if mode not in MODES:
            raise InvalidMode(f"mode {shorten(mode)!r} must be one of {', '.join(MODES)}")
        if mode == "append" or content.strip():  # in the place of all, nothing may stand
            _check_content(content)
        with self.place.writing():
            schema = self._schema()
            data = self.place.read(SUMMARY)
            before = Document(schema.summary(self.place.agent) if data is None else data)
            self._check_summary(before)
            known = list(dict.fromkeys([*schema.sections, *(s.text for s in before.sections)]))
            if section not in known:
                raise InvalidSection(section, known, "schema or summary")
            summary = before.with_section(section, schema.order)
            change = summary.appended if mode == "append" else summary.replaced
            changed = change(section, content)
            self._check_summary(changed)
            self.place.write(SUMMARY, changed.data)
        warnings = schema.warnings() + self._said_of(content)
        return Written(str(self.place.shown / SUMMARY), warnings)

    def sessions(self, limit: int | None = None) -> list[str]:
        """Return the names of the logs, newest first."""
        names = [f"{date}.md" for date in self.place.dates()]
        return names if limit is None else names[:limit]

    def _check_summary(self, document: Document) -> None:
        for problem in summary_problems(document, self.place.agent):
            raise MalformedLog(SUMMARY, problem.line, problem.what)

    def _said_of(self, content: str) -> list[str]:
        """Return what the agent should know of a content that is taken, and of its own name."""
        unseen = [f"line {each.line} of the content: {each.what}" for each in hidden(content)]
        return secret_warning(self.place.agent, content, check=self._check_secrets) + unseen

    def _schema(self) -> Schema:
        data = self.place.read(SCHEMA)
        if data is None:
            raise MissingSchema("there is no _schema.md; start_session makes it")
        return Schema.parse(data)


def _schema_of(data: bytes | None) -> Schema:
    """Return the schema that a file holds; where there is none, that of version 1."""
    return Schema.parse(DEFAULT_SCHEMA.encode() if data is None else data)


def _shortened(text: str) -> str:
    """Return a log's text, of a long one the end, which begins with a line of its own."""
    if len(text) <= MOST_SHOWN:
        return text
    end = text[-MOST_SHOWN:]
    return f"(the beginning is in the file)\n…{end[end.find(chr(10)) :]}"


def _check_content(content: str) -> None:
    if len(content) > MAX_CONTENT:
        raise InvalidContent(f"content: it is longer than {MAX_CONTENT:,} characters")
    if why := objection(content):
        raise InvalidContent(f"content: {why}")
