"""The schema of session logs, as `_schema.md` of the repository defines it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from aiaml_server.toolsets.failures import shorten
from aiaml_server.toolsets.sessions.errors import InvalidSchema, MalformedLog
from aiaml_server.toolsets.sessions.markdown import Document, Problem
from aiaml_server.toolsets.sessions.paths import SCHEMA

DEFAULT_SCHEMA = """\
# Agent Memory Schema v1

## Header
- Agent Name
- Date (YYYY-MM-DD)
- Session ID

## Context
- Project
- Focus Area
- Stage

## Discussion Summary
- Key topics discussed

## Decisions
- Explicit decisions made

## Open Questions
- Unresolved issues or risks

## Next Actions
- Follow-up actions
"""
"""Version 1, as the specification has it."""

HEADER = "Header"
VERSION = "v1"

_VERSION = re.compile(r"\bschema (v\d[\w.]*)", re.IGNORECASE)
_LIST_ITEM = re.compile(r"^[ \t]*[-*+][ \t]+(\S.*?)[ \t]*(?:\([^()\n]*\))?[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Schema:
    """What a session log must contain.

    Attributes:
        version: such as "v1".
        fields: of the header, in order, without the hints in brackets.
        sections: the names of the other sections, in order.
    """

    version: str
    fields: tuple[str, ...]
    sections: tuple[str, ...]

    @classmethod
    def parse(cls, data: bytes) -> Schema:
        """Read a schema.

        Raises:
            InvalidSchema: it is not one.
        """
        document = Document(data)
        for problem in schema_problems(document):
            raise InvalidSchema(SCHEMA, problem.line, problem.text)
        names = [heading.text for heading in document.sections]
        fields = _LIST_ITEM.findall(document.body(HEADER).decode())
        return cls(find_version(document), tuple(fields), tuple(names[1:]))

    @property
    def order(self) -> list[str]:
        """The names of all sections, that of the header first."""
        return [HEADER, *self.sections]

    def version_warnings(self) -> list[str]:
        """Return a warning if this program was made for another version."""
        if self.version == VERSION:
            return []
        return [f"_schema.md declares schema {self.version}; this program was made for {VERSION}"]

    def new_log(self, agent: str, day: str) -> bytes:
        """Return an empty log."""
        fields = [f"- {field}: {value}".rstrip() for field, value in self._header(agent, day)]
        sections = [f"\n## {name}" for name in self.sections]
        lines = [f"# Session Log (schema {self.version})", "", f"## {HEADER}", *fields, *sections]
        return ("\n".join(lines) + "\n").encode()

    def new_summary(self, agent: str) -> bytes:
        """Return an empty summary."""
        lines = [f"# Summary: {agent}", *(f"\n## {name}" for name in self.sections)]
        return ("\n".join(lines) + "\n").encode()

    def check_log(self, name: str, document: Document, agent: str, day: str) -> list[str]:
        """Check a log and return warnings.

        Raises:
            MalformedLog: it does not follow the schema.
        """
        for problem in self.log_problems(document, agent, day):
            raise MalformedLog(name, problem.line, problem.text)
        version = find_version(document)
        if version == self.version:
            return []
        return [f"{name} was made under schema {version}; the schema is {self.version}"]

    def log_problems(self, document: Document, agent: str, day: str) -> list[Problem]:
        """Return what is wrong with a log.

        The sections of a log that was made under another version are not compared.
        """
        title = f"# Session Log (schema {self.version})"
        problems = _form_problems(document, _VERSION, title)
        if problems:
            return problems
        header = document.sections[:1]
        if not header or header[0].text != HEADER:
            return [Problem(1, f"'## {HEADER}' must be the first section")]
        lines = {line.strip() for line in document.body(HEADER).decode().splitlines()}
        for field, value in self._header(agent, day):
            if value and f"- {field}: {value}" not in lines:
                text = f"the header must have the line '- {field}: {value}'"
                problems.append(Problem(header[0].line, text))
        if find_version(document) == self.version:
            problems += self._section_problems(document)
        return problems

    def _section_problems(self, document: Document) -> Iterator[Problem]:
        """Yield the first heading that differs from the schema, and those that it does not have."""
        found = [(heading.text, heading.line) for heading in document.sections]
        end = document.line_at(len(document.data))
        for position, expected in enumerate(self.order):
            name, line = found[position] if position < len(found) else ("nothing", end)
            if name != expected:
                yield Problem(line, f"'## {expected}' must be here; there is {shorten(name)!r}")
                return
        for name, line in found[len(self.order) :]:
            yield Problem(line, f"the section {shorten(name)!r} is not in the schema")

    def _header(self, agent: str, day: str) -> list[tuple[str, str]]:
        values = {"Agent Name": agent, "Date": day, "Session ID": f"{agent}-{day}"}
        return [(field, values.get(field, "")) for field in self.fields]


def schema_problems(document: Document) -> list[Problem]:
    """Return what is wrong with a schema."""
    problems = _form_problems(document, _VERSION, "# Agent Memory Schema v1")
    if problems:
        return problems
    names = [heading.text for heading in document.sections]
    if len(names) < 2 or names[0] != HEADER:
        return [Problem(1, f"'## {HEADER}' must come first, and another section after it")]
    if not _LIST_ITEM.search(document.body(HEADER).decode()):
        return [Problem(1, f"'## {HEADER}' must list its fields, as in '- Agent Name'")]
    return []


def summary_problems(document: Document, agent: str) -> list[Problem]:
    """Return what is wrong with an agent's summary."""
    title = f"Summary: {agent}"
    return _form_problems(document, re.compile(f"^{re.escape(title)}$"), f"# {title}")


def find_version(document: Document) -> str:
    """Return the version that the title names, or an empty text."""
    match = _VERSION.search(document.headings[0].text) if document.headings else None
    return shorten(match[1]).lower() if match else ""


def _form_problems(document: Document, title: re.Pattern[str], example: str) -> list[Problem]:
    """Return why a file is not UTF-8, has no title, or is not clearly divided into sections."""
    problems = document.text_problems()
    if problems:
        return problems
    first = document.headings[0] if document.headings else None
    if first is None or first.level != 1 or not title.search(first.text):
        problems.append(Problem(first.line if first else 1, f"the title must be {example!r}"))
    names: set[str] = set()
    for heading in document.sections:
        if heading.text in names:
            text = f"the section {shorten(heading.text)!r} is there twice"
            problems.append(Problem(heading.line, text))
        names.add(heading.text)
    if open_block := document.open_block():
        problems.append(open_block)
    return problems
