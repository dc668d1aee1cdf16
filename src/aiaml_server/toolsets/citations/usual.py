"""Reads a memory of the shape that this program writes, in a fraction of the time.

The keys in their order, plain scalars of few characters, JSON strings; entries of other keys at the
end, one line each. What has any other shape is left to `frontmatter.read` and `model.memory`; what
has this one is read the same by them.
"""

from __future__ import annotations

import json
import re
from datetime import datetime

from aiaml_server.toolsets.citations.frontmatter import WORDS
from aiaml_server.toolsets.citations.model import LINK_TYPES, Citation, Link, Memory
from aiaml_server.toolsets.citations.writing import KEYS

_QUOTED = (
    r'"[^"\\\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]*'
    r'(?:\\.[^"\\\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]*)*"'
)
_TEXT = rf"(?:{_QUOTED}|[A-Za-z_](?:[A-Za-z0-9_./@+()-]| (?! ))*(?<! ))"
_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z|null"
_NUMBER = "[1-9][0-9]{0,8}"


def _cited(text: str, number: str) -> str:
    """Return a pattern for a citation, given what to capture its scalars by."""
    more = [("line", number), ("snippet", text), ("before", text), ("after", text)]
    more += ("times", number), ("nth", number), ("within", text)
    rest = "".join(rf"(?:\n    {key}: {each})?" for key, each in more)
    return rf"\n  - path: {text}{rest}"


def _linked(kind: str, text: str) -> str:
    return rf"\n  - type: {kind}\n    target: {text}"


_KIND = "|".join(LINK_TYPES)
_CITATION = re.compile(_cited(f"({_TEXT})", f"({_NUMBER})"))
_LINK = re.compile(_linked(f"({_KIND})", f"({_TEXT})"))
_TAG = re.compile(rf"\n  - ({_TEXT})")
_OTHER = re.compile(rf"\n([a-z_]+): ({_TEXT}|{_TIME})")
_HEAD = re.compile(
    rf"---\nid: (?P<id>mem-[A-Za-z0-9._-]+)\nsubject: (?P<subject>{_TEXT})"
    rf"\ncreated: (?P<created>{_TIME})\nverified: (?P<verified>{_TIME})"
    rf"\nconfidence: (?P<confidence>[01]\.[0-9]{{1,9}}|null)"
    rf"\ncitations:(?P<citations> \[\]|(?:{_cited(_TEXT, _NUMBER)})+)"
    rf"\nlinks:(?P<links> \[\]|(?:{_linked(f'(?:{_KIND})', _TEXT)})+)"
    rf"\ntags:(?P<tags> \[\]|(?:\n  - {_TEXT})+)"
    rf"(?P<others>(?:\n[a-z_]+: (?:{_TEXT}|{_TIME}))*)\n---\n"
)


class _Unusual(Exception):  # noqa: N818 (the other reader may know it)
    """A value that has the shape, and another meaning."""


def read_usual(text: str, name: str) -> Memory | None:
    """Return the memory in a text of the usual shape; None where it has another.

    Args:
        text: the file's.
        name: its name, without the ending.
    """
    head = _HEAD.match(text)
    if not head or head["id"] != name or "\r" in text:
        return None
    try:
        keys = [*KEYS]
        for key, written in _OTHER.findall(head["others"]):
            _said(written)
            keys.append(key)
        if len({*keys} - WORDS.keys()) < len(keys):
            return None
        confidence = None if head["confidence"] == "null" else float(head["confidence"])
        if confidence is not None and confidence > 1:
            return None
        return Memory(
            id=name,
            subject=_needed(head["subject"]),
            content=text[head.end() :].strip("\n"),
            created=_time(head["created"]),
            verified=_time(head["verified"]),
            confidence=confidence,
            citations=tuple(
                Citation(
                    _needed(path),
                    int(line) if line else None,
                    _said(snippet) or None,
                    _said(before) or None,
                    _said(after) or None,
                    int(times) if times else None,
                    int(nth) if nth else None,
                    _said(within) or None,
                )
                for path, line, snippet, before, after, times, nth, within in _CITATION.findall(
                    head["citations"]
                )
            ),
            links=tuple(
                Link(kind, _needed(target)) for kind, target in _LINK.findall(head["links"])
            ),
            tags=tuple(map(_said, _TAG.findall(head["tags"]))),
        )
    except (_Unusual, ValueError):
        return None


def _said(written: str) -> str:
    if written[:1] == '"':
        return written[1:-1] if "\\" not in written else str(json.loads(written))
    if written and written in WORDS:
        raise _Unusual(written)
    return written


def _needed(written: str) -> str:
    if not (said := _said(written)).strip():
        raise _Unusual(written)
    return said


def _time(written: str) -> str:
    if written == "null":
        return ""
    datetime.fromisoformat(written[:-1])
    return written
