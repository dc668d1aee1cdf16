"""The schema of session logs: read from `_schema.md`, which the repository may change."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from .document import Document, Heading
from .failures import InvalidSchema, MalformedLog

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
_FIELD = re.compile(r"^[ \t]*[-*+][ \t]+(.+?)[ \t]*$", re.MULTILINE)
_HINT = re.compile(r"[ \t]*\([^()]*\)$")


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
        try:
            headings = document.headings
        except UnicodeDecodeError as error:
            raise InvalidSchema(f"_schema.md: byte {error.start} is not UTF-8") from error
        title = headings[0] if headings else None
        version = _VERSION.search(title.text) if title and title.level == 1 else None
        if not version:
            raise InvalidSchema(
                "_schema.md: the first heading must name the version, as in "
                "'# Agent Memory Schema v1'"
            )
        names = [each.text for each in document.sections]
        for each in headings[1:]:
            if each.level == 1:
                raise InvalidSchema(f"_schema.md: line {each.line} is a second title")
            if not each.text or names.count(each.text) > 1:
                what = "has no name" if not each.text else f"is {each.text!r} once more"
                raise InvalidSchema(f"_schema.md: the section on line {each.line} {what}")
        if names[:1] != [HEADER] or len(names) < 2:
            raise InvalidSchema("_schema.md: '## Header' must come first, and a section after it")
        start, end = document.body(document.sections[0])
        fields = [_HINT.sub("", each) for each in _FIELD.findall(data[start:end].decode())]
        if not fields:
            raise InvalidSchema(
                "_schema.md: '## Header' must list its fields, as in '- Agent Name'"
            )
        return cls(version[1].lower(), tuple(fields), tuple(names[1:]))

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
        headings = _headings(name, document)
        title = headings[0] if headings else None
        version = _VERSION.search(title.text) if title and title.level == 1 else None
        if not title or not version:
            raise MalformedLog(
                f"{name}: line {title.line if title else 1}: the first heading must be "
                f"'# Session Log (schema {self.version})'"
            )
        self._check_sections(name, document)
        first = document.sections[0] if document.sections else None
        if not first or first.text != HEADER:
            line = first.line if first else title.line + 1
            raise MalformedLog(f"{name}: line {line}: '## {HEADER}' must come first")
        self._check_header(name, document, first, {"Agent Name": agent, "Date": date})
        if version[1].lower() != self.version:
            return [f"{name} was made under schema {version[1]}; the schema is {self.version}"]
        for each in document.sections[1:]:
            if each.text not in self.sections:
                raise MalformedLog(
                    f"{name}: line {each.line}: the section {each.text!r} is not in the schema"
                )
        return []

    def check_summary(self, name: str, document: Document) -> None:
        """Check a summary.

        Raises:
            MalformedLog: it is no text, has an open block, or a section twice.
        """
        _headings(name, document)
        self._check_sections(name, document)

    def _check_sections(self, name: str, document: Document) -> None:
        seen: set[str] = set()
        for each in document.sections:
            if each.text in seen:
                raise MalformedLog(
                    f"{name}: line {each.line}: the section {each.text!r} is there twice"
                )
            seen.add(each.text)
        titles = [each for each in document.headings if each.level == 1]
        if len(titles) > 1:
            raise MalformedLog(f"{name}: line {titles[1].line} is a second title")

    def _check_header(
        self, name: str, document: Document, header: Heading, known: dict[str, str]
    ) -> None:
        start, end = document.body(header)
        lines = _FIELD.findall(document.data[start:end].decode().replace("\r", "\n"))
        found = {
            _HINT.sub("", field.strip()): value.strip()
            for field, _, value in (line.partition(":") for line in lines)
        }
        for field in self.fields:
            if field not in found and field in (*known, "Session ID"):
                raise MalformedLog(
                    f"{name}: line {header.line}: the header lacks the field {field!r}"
                )
        for field, value in known.items():
            if field in found and found[field] != value:
                raise MalformedLog(
                    f"{name}: line {header.line}: the header says {field} {found[field]!r}, "
                    f"and it is the log of {value!r}"
                )

    @cached_property
    def order(self) -> list[str]:
        """Every section's name, the header's first."""
        return [HEADER, *self.sections]


def _headings(name: str, document: Document) -> list[Heading]:
    try:
        headings = document.headings
    except UnicodeDecodeError as error:
        line = document.data.count(b"\n", 0, error.start) + 1
        raise MalformedLog(f"{name}: line {line}: byte {error.start} is not UTF-8") from error
    if line := document.open_block():
        raise MalformedLog(f"{name}: line {line} opens a code fence or HTML that is not closed")
    return headings
