"""A person's words put into a file, of which every other byte stays."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from aiaml_server.errors import InvalidArguments, InvalidInput
from aiaml_server.format.memory import Memory, parse
from aiaml_server.frontmatter import format_scalar, replace_entries, split

_LINE_END = re.compile(r"(\r\n|\r|\n)")
_COMPARED = 4_000_000  # pairs of lines; beyond, what lies between the first and last change is new


class Words(NamedTuple):
    """What a person says of a memory, each field checked only where it was changed."""

    agent: str
    user: str
    topics: tuple[str, ...]
    content: str


def with_line_ends(before: str, typed: str, around: str = "") -> str:
    """Undo what a browser's text field does to line ends: it has line feeds alone.

    A line that stands in both texts ends as it did; a new one as the line that it replaces, or as
    most lines do. What was typed with a carriage return did not come from a text field and stays.

    Args:
        before: the text that was shown.
        typed: what became of it.
        around: the text that it is part of.
    """
    if "\r" in typed or "\r" not in before + around:
        return typed
    pieces = _LINE_END.split(before)
    old, ends = pieces[::2], pieces[1::2]
    new = typed.split("\n")
    usual = Counter(_LINE_END.findall(around or before)).most_common(1)[0][0]
    found = [usual] * len(new)
    for first, last, start, stop in _kept(old, new):
        found[start:stop] = [*ends, usual][first:last]
    found[-1] = ""
    return "".join(f"{line}{end}" for line, end in zip(new, found, strict=True))


def _kept(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Yield from which lines to which those stand that are the same, or changed one by one."""
    most = min(len(old), len(new))
    head = next((n for n in range(most) if old[n] != new[n]), most)
    tail = next((n for n in range(most - head) if old[-1 - n] != new[-1 - n]), most - head)
    yield 0, head, 0, head
    yield len(old) - tail, len(old), len(new) - tail, len(new)
    before, after = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(before) * len(after) <= _COMPARED:
        for tag, *at in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            first, last, start, stop = (place + head for place in at)
            if tag == "equal" or last - first == stop - start:
                yield first, last, start, stop


def with_words(text: str, words: Words) -> str:
    """Return a memory's text with other words in it; only what differs is written anew.

    Raises:
        InvalidArguments: changed fields break rules of `remember`.
        MalformedFile: the text is no memory's.
    """
    memory = parse(text)
    content = with_line_ends(memory.content, words.content, text)
    changed = {
        name: value
        for name, value in zip(("agent", "user", "topics"), words, strict=False)
        if value != getattr(memory, name)
    }
    said = {**changed, **({"content": content} if content != memory.content else {})}
    checked = new_memory({**_FITTING, **said})
    text = replace_entries(text, {name: _written(getattr(checked, name)) for name in changed})
    _, body, line_end = split(text)
    if content == memory.content:
        return text
    return text.removesuffix(body) + _body(body, memory.content, content, line_end)


_FITTING = {"agent": "a", "user": "u", "topics": ["t"], "content": "c"}


def new_memory(said: Mapping[str, Any]) -> Memory:
    """Make a memory of what a person says.

    Raises:
        InvalidArguments: fields break a rule of `remember`, each with what would be right.
    """
    wrong = {}
    for field, value in said.items():
        try:
            Memory.new(**{**_FITTING, field: value})
        except InvalidInput as error:
            wrong[field] = error.reason
    if wrong:
        raise InvalidArguments(wrong)
    return Memory.new(**said)


def _written(value: str | Sequence[str]) -> str:
    return (
        format_scalar(value)
        if isinstance(value, str)
        else f"[{', '.join(map(format_scalar, value))}]"
    )


def _body(body: str, before: str, after: str, line_end: str) -> str:
    """Put another content where the one before stands."""
    if not before:
        return f"{line_end}{after}{line_end}"
    first, _, last = body.partition(before)
    return f"{first}{after}{last}"
