"""The schema of session logs: read from `_schema.md`, which the repository may change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from aiaml_server.toolsets.failures import shorten
from aiaml_server.toolsets.sessions.blocks import Heading
from aiaml_server.toolsets.sessions.document import Document
from aiaml_server.toolsets.sessions.failures import InvalidSchema, MalformedLog
from aiaml_server.toolsets.sessions.place import SCHEMA
from aiaml_server.toolsets.sessions.remarks import Remark, conflicts

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
"""Version 1, as specified."""

HEADER = "Header"
VERSION = "v1"
_VERSION = re.compile(r"\bschema (v\d[\w.]*)", re.IGNORECASE)
_ITEM = re.compile(r"^[ \t]*[-*+][ \t]+(\S.*)")


@dataclass(frozen=True)
class Schema:
    """What a session log must hold.

    Attributes:
        version: such as "v1".
        fields: the header's, in order, without the hints in brackets.
        sections: the others' names, in order.
    """

    version: str
    fields: tuple[str, ...]
    sections: tuple[str, ...]

    @classmethod
    def parse(cls, data: bytes) -> Schema:
        """Read a schema.

        Raises:
            InvalidSchema: it is none; the sentence says what is wrong, and on which line.
        """
        document = Document(data)
        for problem in schema_problems(document):
            raise InvalidSchema(SCHEMA, problem.line, problem.what)
        version = _version(document)
        header, *sections = document.sections
        names = tuple(each.text for each in sections)
        return cls(version, tuple(_fields(document, header)), names)

    def warnings(self) -> list[str]:
        """Return what an agent should know of the version."""
        if self.version == VERSION:
            return []
        return [f"_schema.md declares schema {self.version}; this program was made for {VERSION}"]

    # --- what new files hold ----------------------------------------------------------------------

    def log(self, agent: str, date: str) -> bytes:
        """Return an empty log."""
        known = {"Agent Name": agent, "Date": date, "Session ID": f"{agent}-{date}"}
        fields = "".join(f"- {each}: {known.get(each, '')}".rstrip() + "\n" for each in self.fields)
        sections = "".join(f"\n## {each}\n" for each in self.sections)
        return f"# Session Log (schema {self.version})\n\n## {HEADER}\n{fields}{sections}".encode()

    def summary(self, agent: str) -> bytes:
        """Return an empty summary."""
        sections = "".join(f"\n## {each}\n" for each in self.sections)
        return f"# Summary: {agent}\n{sections}".encode()

    # --- what existing files must hold ------------------------------------------------------------

    def check_log(self, name: str, document: Document, agent: str, date: str) -> list[str]:
        """Check a log; return warnings.

        Raises:
            MalformedLog: it is not as it must be; the sentence says on which line.
        """
        for problem in self.log_problems(document, agent, date):
            raise MalformedLog(name, problem.line, problem.what)
        return self.log_warnings(name, document)

    def log_warnings(self, name: str, document: Document) -> list[str]:
        """Return what should be known of the version that a log was made under."""
        version = _version(document)
        if version in ("", self.version):
            return []
        return [f"{name} was made under schema {version}; the schema is {self.version}"]

    def log_problems(self, document: Document, agent: str, date: str) -> Iterator[Remark]:
        """Yield all that is wrong with a log."""
        if spoilt := unreadable(document):
            yield from spoilt
            return
        version = _version(document)
        if not version:
            line = document.headings[0].line if document.headings else 1
            title = f"# Session Log (schema {self.version})"
            yield Remark(line, f"the first heading must be {title!r}")
        yield from _heading_problems(document)
        header = next(iter(document.sections), None)
        if header and header.text == HEADER:
            yield from self._header_problems(document, header, agent, date)
        else:
            yield Remark(header.line if header else 1, f"'## {HEADER}' must come first")
        if version == self.version:
            yield from self._section_problems(document)

    def _section_problems(self, document: Document) -> Iterator[Remark]:
        """Yield where a log's sections are not the schema's, all of them and in order."""
        place = {name: number for number, name in enumerate(self.order)}
        last = -1
        for each in document.sections:
            name = shorten(each.text)
            if each.text not in place:
                yield Remark(each.line, f"the section {name!r} is not in the schema")
            elif place[each.text] < last:
                before = shorten(self.order[last])
                what = f"the section {name!r} must stand before {before!r}"
                yield Remark(each.line, what)
            last = max(last, place.get(each.text, -1))
        for name in self.sections:
            if not document.find(name):
                later = self.order[place[name] + 1 :]
                lines = (each.line for each in document.sections if each.text in later)
                line = min(lines, default=document.line_at(len(document.data)))
                yield Remark(line, f"the section {name!r} is missing: put '## {name}' here")

    def _header_problems(
        self, document: Document, header: Heading, agent: str, date: str
    ) -> Iterator[Remark]:
        found: dict[str, tuple[int, str]] = {}
        for line, item in _listed(document, header):
            name, _, said = item.partition(":")
            field = _without_hint(name.strip())
            if field in found:
                yield Remark(line, f"the header has the field {shorten(field)!r} twice")
            found[field] = line, said.strip()
        known = {"Agent Name": agent, "Date": date, "Session ID": f"{agent}-{date}"}
        for field, value in known.items():
            if field not in self.fields:
                continue
            if field not in found:
                yield Remark(header.line, f"the header lacks the field {field!r}")
                continue
            line, said = found[field]
            if said != value:
                yield Remark(
                    line, f"the header says {field} {shorten(said)!r}; it must be {value!r}"
                )

    @cached_property
    def order(self) -> list[str]:
        """Every section's name, the header's first."""
        return [HEADER, *self.sections]


def schema_problems(document: Document) -> Iterator[Remark]:
    """Yield all that is wrong with a schema."""
    if spoilt := unreadable(document):
        yield from spoilt
        return
    if not _version(document):
        line = document.headings[0].line if document.headings else 1
        title = "# Agent Memory Schema v1"
        yield Remark(line, f"the first heading must name the version, as in {title!r}")
    yield from _heading_problems(document)
    sections = document.sections
    line = sections[0].line if sections else 1
    if len(sections) < 2 or sections[0].text != HEADER:
        yield Remark(line, f"'## {HEADER}' must come first, and a section after it")
    elif not _fields(document, sections[0]):
        yield Remark(line, f"'## {HEADER}' must list its fields, as in '- Agent Name'")


def summary_problems(document: Document, agent: str) -> Iterator[Remark]:
    """Yield all that is wrong with an agent's summary."""
    if spoilt := unreadable(document):
        yield from spoilt
        return
    yield from _heading_problems(document)
    title = next(iter(document.headings), None)
    wanted = f"Summary: {agent}"
    if not title or (title.level, title.text) != (1, wanted):
        line = title.line if title else 1
        yield Remark(line, f"a summary's first heading must be '# {wanted}'")


def unreadable(document: Document) -> list[Remark]:
    """Return where a file is no text, or is two texts that git could not merge."""
    try:
        document.text  # noqa: B018 (reading it is the question)
    except UnicodeDecodeError as error:
        return [Remark(document.line_at(error.start), f"byte {error.start} is not UTF-8")]
    return list(conflicts(document))


def _version(document: Document) -> str:
    """Return the version that the first heading names; empty if it names none."""
    title = next(iter(document.headings), None)
    found = _VERSION.search(title.text) if title and title.level == 1 else None
    return shorten(found[1]).lower() if found else ""


def _heading_problems(document: Document) -> Iterator[Remark]:
    """Yield what no document of ours may have: anything twice, or a block that never ends."""
    seen: set[str] = set()
    for each in document.sections:
        if not each.text:
            yield Remark(each.line, "the section has no name")
        elif each.text in seen:
            yield Remark(each.line, f"the section {shorten(each.text)!r} is there twice")
        seen.add(each.text)
    for each in [each for each in document.headings if each.level == 1][1:]:
        yield Remark(each.line, "this is a second title")
    if problem := document.problem:
        yield Remark(problem.line, f"this {problem.text}")


def _listed(document: Document, section: Heading) -> list[tuple[int, str]]:
    """Return the items of a section's list, each with its line."""
    start, end = document.body(section)
    lines = enumerate(document.data[start:end].splitlines(), document.line_at(start))
    found = ((line, _ITEM.match(data.decode())) for line, data in lines)
    return [(line, item[1].rstrip(" \t")) for line, item in found if item]


def _without_hint(field: str) -> str:
    """Return a field's name without what stands in brackets behind it."""
    start = field.rfind("(")
    if start < 0 or field.find(")", start) != len(field) - 1:
        return field
    return field[:start].rstrip(" \t")


def _fields(document: Document, header: Heading) -> list[str]:
    return [_without_hint(item) for _, item in _listed(document, header)]
