"""YAML that the reader of this package does not take, read by PyYAML where that is installed."""

from __future__ import annotations

from typing import Any

from aiaml_server.toolsets.citations.failures import MalformedMemory
from aiaml_server.toolsets.citations.nodes import MOST_DIGITS, Node, Part

_TAGS = {"map", "seq", "str", "null", "bool", "int", "float", "timestamp", "merge", "value"}
_MOST = 10_000  # values, each counted as often as it is repeated


def read_foreign(text: str, start: int, end: int, line: int, why: str) -> Node:
    """Read a map between two offsets, of which the first is on a line with the given number.

    Args:
        text: what holds it.
        start: where it begins.
        end: where it ends.
        line: the first line's number.
        why: what the other reader says of it, for the sentence.

    Raises:
        MalformedMemory: PyYAML is not installed, or cannot read it either.
    """
    try:
        import yaml  # noqa: PLC0415 (it may be missing, and few files need it)
    except ImportError:
        raise MalformedMemory(
            f"{why}; write it more simply, or install PyYAML, which may know it"
        ) from None
    try:
        return _Foreign(yaml, text, start, end, line).root()
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise MalformedMemory(f"{why}, and PyYAML cannot read it either") from error


class _Foreign:
    """Turns what PyYAML has found into nodes."""

    def __init__(self, yaml: Any, text: str, start: int, end: int, line: int) -> None:
        self._yaml, self._text, self._start, self._line = yaml, text, start, line
        self._loader = yaml.SafeLoader(text[start:end])
        self._left = _MOST

    def root(self) -> Node:
        """Return the whole."""
        node = self._loader.get_single_node()
        if node is None:
            raise ValueError("there is nothing")
        return self._node(node)

    def _node(self, node: Any, kind: str = "foreign") -> Node:
        self._left -= 1
        if self._left < 0:
            raise ValueError("aliases repeat more than can be meant")
        if node.tag.removeprefix("tag:yaml.org,2002:") not in _TAGS:
            raise ValueError(f"the tag {node.tag} is not known")
        yaml, items = self._yaml, list[Part]()
        entries: dict[str, Part] = {}
        written = ""
        value: Any
        if isinstance(node, yaml.MappingNode):
            for key, each in node.value:
                name = self._node(key).value
                if not isinstance(name, str):
                    raise TypeError(f"a key is no text: {name}")
                entries[name] = self._part(each, key.start_mark, key.end_mark)
            value = {key: each.node.value for key, each in entries.items()}
        elif isinstance(node, yaml.SequenceNode):
            items = [self._part(each, each.start_mark, node.start_mark) for each in node.value]
            value = [each.node.value for each in items]
        else:
            kind = "scalar" if node.start_mark.line == node.end_mark.line else kind
            written = "" if node.style else node.value
            is_text = node.tag.rpartition(":")[2] not in ("null", "bool", "int", "float")
            value = node.value if is_text else self._loader.construct_object(node)
        if isinstance(value, int) and abs(value) >= 10**MOST_DIGITS:
            raise ValueError(f"a number has more than {MOST_DIGITS} digits")
        begin = self._start + node.start_mark.index
        end = begin + len(self._text[begin : self._start + node.end_mark.index].rstrip())
        number = node.start_mark.line + self._line
        return Node(value, kind, number, begin, end, written, entries, items)

    def _part(self, node: Any, first: Any, beside: Any) -> Part:
        read = self._node(node)
        if node.start_mark.index < beside.index:  # an alias of what stands above
            at = self._start + beside.index
            read = Node(read.value, "foreign", read.line, at, at)
        behind = self._text.find("\n", read.end) + 1
        return Part(self._start + first.index, behind or len(self._text), 0, read)
