"""JSON with comments, edited in place: only what is named changes, every other byte stays.

`put` and `remove` find the exact spans of keys and values, splice the text, and read the result
again before they give it out: what was not to change has not. Comments, `//` and `/* */`, and
commas after a last member are read wherever they occur, and never added where there were none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from aiaml_server.clients.text import BOM, Edit, Refused, end_of_words, indentation, newline, splice

# As many as `_MOST`: what comes then is refused.
_BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/){0,50000}", re.DOTALL)
_BEGIN_BLANK = frozenset(" \t\r\n/")
_REST_OF_LINE = re.compile(
    r"[ \t]*(?:/\*[^*\r\n]*(?:\*(?!/)[^*\r\n]*)*\*/[ \t]*)*(?://[^\r\n]*)?(?=[\r\n])"
)
_LINE_COMMENT = re.compile(r"[ \t]*(?://[^\r\n]*)?[\r\n]")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_DEEPEST = 200
_MOST = 50_000  # values, and comments; each takes some microseconds


class Node(NamedTuple):
    """A value and where it stands: `text[start:end]`."""

    start: int
    end: int
    value: Any
    members: tuple[Member, ...] = ()


class Member(NamedTuple):
    """One `"name": value` of an object, or one value of a list, whose name is empty.

    Attributes:
        start: where the name begins.
        comma: where the comma behind it is, if there is one.
    """

    name: str
    start: int
    node: Node
    comma: int | None


def entry(text: str, keys: Sequence[str]) -> Any:
    """Return the value under nested keys, None where there is none.

    Raises:
        Refused: the text cannot be read, a key occurs twice, or something on the way is no object.
    """
    node = _node(parse(text), keys)
    return None if node is None else node.value


def put(text: str, keys: Sequence[str], value: Mapping[str, Any]) -> str:
    """Bring the object under nested keys up to date; what it has besides `value` stays.

    Raises:
        Refused: see `entry`.
    """
    wanted: Mapping[str, Any] = value
    for key in reversed(keys):
        wanted = {key: wanted}
    root = parse(text)
    editor = _Editor(text, root)
    if root is None:
        return _proven(editor.begun(wanted), wanted, 0)
    edited = splice(text, editor.edits(root, wanted, ()))
    return _proven(edited, _merged(root.value, wanted), root.start)


def remove(text: str, keys: Sequence[str]) -> str:
    """Take the innermost key out; without it the text stays as it is.

    Raises:
        Refused: see `entry`.
    """
    root = parse(text)
    node = _node(root, keys[:-1])
    member = node and _member(node, keys[-1], keys[:-1])
    if root is None or node is None or member is None:
        return text
    edited = splice(text, _removal(text, node, member))
    left = {name: value for name, value in node.value.items() if name != keys[-1]}
    return _proven(edited, _replaced(root.value, keys[:-1], left), member.start)


def extend(text: str, keys: Sequence[str], values: Sequence[Any]) -> str:
    """Put values at the end of the list under nested keys; what is missing on the way is made.

    Raises:
        Refused: see `entry`; or there is something else than a list.
    """
    root = parse(text)
    node = _node(root, keys)
    if root is None or node is None or node.value is None:
        *above, last = keys
        return put(text, above, {last: list(values)})
    if not isinstance(node.value, list):
        raise Refused(node.start, f'"{keys[-1]}" should be a list in [ ]')
    edited = splice(text, _Editor(text, root).more(node, values))
    return _proven(edited, _replaced(root.value, keys, [*node.value, *values]), node.start)


def discard(text: str, keys: Sequence[str], unwanted: Callable[[Any], bool]) -> str:
    """Take values out of the list under nested keys; without such a list nothing changes.

    Raises:
        Refused: see `entry`.
    """
    root = parse(text)
    node = _node(root, keys)
    if root is None or node is None or not isinstance(node.value, list):
        return text
    member = next((each for each in node.members if unwanted(each.node.value)), None)
    if member is None:
        return text
    edited = splice(text, _removal(text, node, member))
    left = [each.node.value for each in node.members if each is not member]
    edited = _proven(edited, _replaced(root.value, keys, left), node.start)
    return discard(edited, keys, unwanted)


@lru_cache(maxsize=2)
def parse(text: str) -> Node | None:
    """Read a text into values and their places; None when there is nothing but white space.

    Raises:
        Refused: it is not JSON, even with comments.
    """
    if text.count("/*") > _MOST:
        raise Refused(0, f"there are more than {_MOST:,} comments")
    scanner = _Scanner(text)
    start = scanner.blank(len(BOM) if text.startswith(BOM) else 0)
    if start == len(text):
        return None
    node = scanner.value(start, 0)
    end = scanner.blank(node.end)
    if end != len(text):
        raise Refused(end, "there is more after the end of the value")
    return node


_Missing = Mapping[str, Any] | Sequence[Any]
"""Members of an object that it lacks, or values that a list is to have more."""


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._values = 0
        self._scalar = json.JSONDecoder(parse_constant=_no_constant).raw_decode

    def blank(self, at: int) -> int:
        if self._text[at : at + 1] not in _BEGIN_BLANK:
            return at
        found = _BLANK.match(self._text, at)
        end = found.end() if found else at
        if self._text.startswith("//", end):
            raise Refused(end, f"there are more than {_MOST:,} comments")
        if self._text.startswith("/*", end):
            raise Refused(end, "this comment has no end")
        return end

    def value(self, at: int, depth: int) -> Node:
        if depth > _DEEPEST:
            raise Refused(at, f"values are nested more than {_DEEPEST} deep")
        self._values += 1
        if self._values > _MOST:
            raise Refused(at, f"there are more than {_MOST:,} names and values")
        if self._text.startswith("{", at):
            return self._object(at, depth)
        if self._text.startswith("[", at):
            return self._array(at, depth)
        try:
            value, end = self._scalar(self._text, at)
        except json.JSONDecodeError as error:
            words = error.msg.removesuffix(" at").removesuffix(" starting")
            reason = "a value should be here" if words == "Expecting value" else words.lower()
            raise Refused(error.pos, reason) from None
        except ValueError as error:
            raise Refused(at, str(error)) from None
        return Node(at, end, value)

    def _object(self, start: int, depth: int) -> Node:
        members: list[Member] = []
        at = self.blank(start + 1)
        while not self._text.startswith("}", at):
            if not self._text.startswith('"', at):
                raise Refused(at, "a name in double quotes, or }, should be here")
            name = self.value(at, depth)
            colon = self.blank(name.end)
            if not self._text.startswith(":", colon):
                raise Refused(colon, "a : should be here")
            node = self.value(self.blank(colon + 1), depth + 1)
            comma, at = self._separator(node.end, "}")
            members.append(Member(name.value, name.start, node, comma))
        value = {member.name: member.node.value for member in members}
        return Node(start, at + 1, value, tuple(members))

    def _array(self, start: int, depth: int) -> Node:
        members: list[Member] = []
        at = self.blank(start + 1)
        while not self._text.startswith("]", at):
            node = self.value(at, depth + 1)
            comma, at = self._separator(node.end, "]")
            members.append(Member("", node.start, node, comma))
        return Node(start, at + 1, [each.node.value for each in members], tuple(members))

    def _separator(self, at: int, close: str) -> tuple[int | None, int]:
        """Return where the comma is, if there is one, and where to go on."""
        at = self.blank(at)
        if self._text.startswith(",", at):
            return at, self.blank(at + 1)
        if not self._text.startswith(close, at):
            raise Refused(at, f"a comma or {close} should be here")
        return None, at


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no value in JSON")


def _member(node: Node, name: str, trail: Sequence[str]) -> Member | None:
    if not isinstance(node.value, dict):
        where = f'the value of "{".".join(trail)}"' if trail else "the whole"
        raise Refused(node.start, f"{where} should be an object in {{ }}")
    found = [member for member in node.members if member.name == name]
    if len(found) > 1:
        raise Refused(found[1].start, f'"{name}" is here a second time; keep one of them')
    return found[0] if found else None


def _node(node: Node | None, keys: Sequence[str]) -> Node | None:
    """Return what is under nested keys; None where there is nothing."""
    for depth, key in enumerate(keys):
        member = node and _member(node, key, keys[:depth])
        node = member and member.node
    return node


class _Editor:
    """Finds the edits that bring a text up to date, in the text's own style."""

    def __init__(self, text: str, root: Node | None) -> None:
        self._text = text
        self._newline = newline(text)
        self._unit = "  "
        if root and root.members and self._begins_line(root.members[0].start):
            mine = indentation(text, root.start)
            self._unit = indentation(text, root.members[0].start).removeprefix(mine) or "  "

    def begun(self, wanted: Mapping[str, Any]) -> str:
        """Return the text, which has no value yet, with one."""
        end = end_of_words(self._text, len(self._text))
        words, rest = self._text[:end], self._text[end:]
        before = self._newline if words.removeprefix(BOM) else ""
        return words + before + self._rendered(wanted, "") + (rest or self._newline)

    def edits(self, node: Node, wanted: Mapping[str, Any], trail: Sequence[str]) -> list[Edit]:
        edits: list[Edit] = []
        missing: dict[str, Any] = {}
        for name, value in wanted.items():
            member = _member(node, name, trail)
            if member is None:
                missing[name] = value
            elif isinstance(value, Mapping):
                edits += self.edits(member.node, value, (*trail, name))
            elif member.node.value != value:
                new = self._rendered(value, indentation(self._text, member.start))
                edits.append(Edit(member.node.start, member.node.end, new))
        if missing:
            edits += self.more(node, missing)
        return edits

    def more(self, node: Node, missing: _Missing) -> list[Edit]:
        """Write behind what an object or a list has."""
        return self._more(node, missing) if node.members else self._first(node, missing)

    def _first(self, node: Node, missing: _Missing) -> list[Edit]:
        """Fill an object or a list that is empty; a comment in it stays."""
        close = node.end - 1
        outer = indentation(self._text, node.start)
        inner = outer + self._unit
        start = end_of_words(self._text, close)
        new = self._newline + inner + self._listed(missing, inner, self._newline + inner)
        if "\n" in self._text[start:close]:
            return [Edit(start, start, new)]
        return [Edit(start, close, new + self._newline + outer)]

    def _more(self, node: Node, missing: _Missing) -> list[Edit]:
        """Write behind the last member, and behind the comments that follow it."""
        first, last, close = node.members[0], node.members[-1], node.end - 1
        edits = [] if last.comma else [Edit(last.node.end, last.node.end, ",")]
        tail = self._text[last.node.end : close]
        if "\n" in self._text[node.start : first.start] + tail:
            own = self._begins_line(first.start)
            inner = indentation(self._text, first.start if own else node.start)
            inner += "" if own else self._unit
            before, new = self._newline + inner, self._listed(missing, inner, self._newline + inner)
        else:
            before, new = " ", json.dumps(missing, ensure_ascii=False)[1:-1]
        place = end_of_words(self._text, close)
        return [*edits, Edit(place, place, before + new + ("," if last.comma else ""))]

    def _listed(self, members: _Missing, indent: str, between: str) -> str:
        if not isinstance(members, Mapping):
            return f",{between}".join(self._rendered(value, indent) for value in members)
        return f",{between}".join(
            f"{json.dumps(name, ensure_ascii=False)}: {self._rendered(value, indent)}"
            for name, value in members.items()
        )

    def _rendered(self, value: Any, indent: str) -> str:
        is_list = isinstance(value, list) and any(isinstance(each, Mapping) for each in value)
        if not value or not (is_list or isinstance(value, Mapping)):
            return json.dumps(value, ensure_ascii=False)
        inner = self._newline + indent + self._unit
        listed = self._listed(value, indent + self._unit, inner)
        opening, closing = "[]" if is_list else "{}"
        return opening + inner + listed + self._newline + indent + closing

    def _begins_line(self, offset: int) -> bool:
        start = end_of_words(self._text, offset)
        return "\n" in self._text[start:offset]


def _removal(text: str, node: Node, member: Member) -> list[Edit]:
    """Find what goes with a member: its comma, or the one before, and the space before it."""
    index, close = node.members.index(member), node.end - 1
    before = text[node.members[index - 1].node.end if index else node.start + 1 : member.start]
    behind = text[member.node.end : node.end]
    edits = []
    if member.comma is not None:
        edits.append(Edit(member.comma, member.comma + 1, ""))
        behind = text[member.node.end : member.comma] + text[member.comma + 1 : node.end]
    elif index and (comma := node.members[index - 1].comma) is not None:
        edits.append(Edit(comma, comma + 1, ""))
    if len(node.members) == 1 and not (before + behind[:-1]).strip():
        return [Edit(node.start + 1, close, "")]
    start = end_of_words(text, member.start) if _may_join(before, behind) else member.start
    return [*edits, Edit(start, member.node.end, "")]


def _may_join(before: str, behind: str) -> bool:
    """Say whether the line before a member may end with what is behind the member."""
    if _LINE_COMMENT.match(behind):
        return True
    words = before.rstrip()
    comments = _COMMENT.findall(words)
    if comments and comments[-1].startswith("//") and words.endswith(comments[-1]):
        return False
    same_line = not re.search(r"[\r\n]", before[len(words) :])
    return (
        same_line
        or behind.lstrip(" \t").startswith(("}", "]"))
        or bool(_REST_OF_LINE.match(behind))
    )


def _replaced(value: Any, keys: Sequence[str], new: Any) -> Any:
    """Return a document with another value under nested keys."""
    if not keys:
        return new
    return {**value, keys[0]: _replaced(value[keys[0]], keys[1:], new)}


def _merged(value: Any, wanted: Mapping[str, Any]) -> Any:
    merged = dict(value)
    for name, new in wanted.items():
        old = merged.get(name, {})
        merged[name] = _merged(old, new) if isinstance(new, Mapping) else new
    return merged


def _proven(edited: str, expected: Any, offset: int) -> str:
    """Return the edited text if it says what it should.

    Raises:
        Refused: it does not; the layout was one that the splicing does not know.
    """
    try:
        node = parse(edited)
    except Refused:
        node = None
    if node is None or node.value != expected:
        raise Refused(offset, "this layout cannot be edited safely; edit the file by hand")
    return edited
