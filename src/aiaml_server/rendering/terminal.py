"""Markdown on a terminal.

Each block becomes lines that fit the width. Nothing of the source is lost (see `commonmark`): a
link's address and title stand behind its text, the words after a fence above its code, and a table
that is too wide is given row by row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from aiaml_server.format.invisible import marked, marked_line
from aiaml_server.rendering import MAX_RENDERED, paragraphs
from aiaml_server.terminal import (
    bold,
    dim,
    display_width,
    styled,
    terminal_width,
    unstyled,
    wrap_line,
)

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_WIDEST = 100  # columns that are read with ease
_NARROWEST = 20  # however deep a list is nested

Style = Callable[[str], str]


def rendered(text: str) -> str:
    """Return markdown as it is printed (by `out`); what would lose a word by it, as it stands."""
    room = min(terminal_width(), _WIDEST)
    if len(text) <= MAX_RENDERED and (prose := paragraphs(text)) is not None:
        wrapped = (_wrapped(" ".join(map(marked, lines)), room) for lines in prose)
        return "\n\n".join("\n".join(lines) for lines in wrapped)
    from markdown_it.tree import SyntaxTreeNode  # noqa: PLC0415 (the parser: a tenth of a start)

    from aiaml_server.rendering.commonmark import parsed, shows_all, why_not  # noqa: PLC0415 (the same)

    if (tokens := parsed(text)) is not None:
        shown = "\n".join(_blocks(SyntaxTreeNode(tokens).children, room))
        if shows_all(text, unstyled(shown)):
            return shown
    return f"{dim(why_not(text))}\n\n{marked(text)}"


# --- blocks ---------------------------------------------------------------------------------------


def _blocks(nodes: Iterable[SyntaxTreeNode], room: int, *, tight: bool = False) -> list[str]:
    """Return the lines of blocks, an empty one between two."""
    lines: list[str] = []
    for node in nodes:
        lines += [""] if lines and not tight else []
        lines += _BLOCKS.get(node.type, _text)(node, max(room, _NARROWEST))
    return lines


def _text(node: SyntaxTreeNode, room: int) -> list[str]:
    if node.type == "heading":
        return _wrapped(f"{bold('#' * int(node.tag[1]))} {_inline(node, bold)}", room)
    return _wrapped(_inline(node), room)


def _list(node: SyntaxTreeNode, room: int) -> list[str]:
    tight = all(child.hidden for item in node.children for child in item.children[:1])
    marks = [f" {each.info}{each.markup} " if each.info else " • " for each in node.children]
    indent = max(map(len, marks))
    lines: list[str] = []
    for mark, item in zip(marks, node.children, strict=True):
        inside = _blocks(item.children, room - indent, tight=tight) or [""]
        lines += [""] if lines and not tight else []
        lines.append(f"{mark:>{indent}}{inside[0]}")
        lines += [" " * indent + line if line else "" for line in inside[1:]]
    return lines


def _code(node: SyntaxTreeNode, _: int) -> list[str]:
    lines = marked(node.content).rstrip("\n").split("\n")
    if info := marked_line(node.info.strip()):
        lines.insert(0, dim(info))
    return [f"    {line}".rstrip() for line in lines]


def _table(node: SyntaxTreeNode, room: int) -> list[str]:
    """Return a table in columns; where these do not fit, each row as text."""
    rows = [
        [_inline(cell) for cell in row.children] for part in node.children for row in part.children
    ]
    head, *body = rows
    widest = [
        max(display_width(unstyled(cell)) for cell in column) for column in zip(*rows, strict=True)
    ]
    if sum(widest) + 3 * (len(widest) - 1) > room:
        return [line for row in rows for line in _hanging(" │ ".join(row), room)]
    rule = dim("─┼─".join("─" * size for size in widest))
    return [_row(map(bold, head), widest), rule, *(_row(row, widest) for row in body)]


def _hanging(text: str, room: int) -> list[str]:
    first, *rest = _wrapped(text, room - 2)
    return [first, *(f"  {line}" for line in rest)]


def _row(cells: Iterable[str], widest: Sequence[int]) -> str:
    padded = (
        cell + " " * (size - display_width(unstyled(cell)))
        for cell, size in zip(cells, widest, strict=True)
    )
    return dim(" │ ").join(padded).rstrip()


_BLOCKS: dict[str, Callable[[SyntaxTreeNode, int], list[str]]] = {
    "bullet_list": _list,
    "ordered_list": _list,
    "blockquote": lambda node, room: [
        f"{dim('│')} {line}".rstrip() for line in _blocks(node.children, room - 2)
    ],
    "fence": _code,
    "code_block": _code,
    "table": _table,
    "hr": lambda _, room: [dim("─" * room)],
}


# --- inside a block -------------------------------------------------------------------------------


def _inline(node: SyntaxTreeNode, style: Style = str) -> str:
    """Return the text of a block; each word has its own style, so that lines can break anywhere."""
    return "".join(_span(child, style) for child in node.children)


def _span(node: SyntaxTreeNode, style: Style) -> str:
    if node.type in _STYLES:
        inner = _STYLES[node.type]
        return _inline(node, lambda word: inner(style(word)))
    if node.type == "inline":
        return _inline(node, style)
    if node.type == "link":
        return _link(node, style)
    if node.type == "image":
        source = str(node.attrs["src"])
        return _styled(f"[image: {node.content.strip()}]", style) + _aside(source, node)
    if node.type in ("softbreak", "hardbreak"):
        return " " if node.type == "softbreak" else "\n"
    return _styled(node.content, _CODE if node.type == "code_inline" else style)


def _link(node: SyntaxTreeNode, style: Style) -> str:
    address = str(node.attrs["href"])
    text = _inline(node, lambda word: styled(style(word), "underline"))
    if unstyled(text) in (address, address.removeprefix("mailto:")):
        address = ""
    return text + _aside(address, node)


def _aside(address: str, node: SyntaxTreeNode) -> str:
    """Return what stands behind a link: where it leads, and its title."""
    title = str(node.attrs.get("title", ""))
    said = " ".join(filter(None, [address, title and f'"{title}"']))
    return " " + _styled(f"({said})", dim) if said else ""


def _styled(text: str, style: Style) -> str:
    return re.sub(r"[^ \n]+", lambda word: style(word[0]), marked(text))


_CODE: Style = lambda word: styled(word, "cyan")  # noqa: E731 (a style like those below)
_STYLES: dict[str, Style] = {
    "strong": bold,
    "em": lambda word: styled(word, "italic"),
    "s": lambda word: styled(word, "struck"),
}


def _wrapped(text: str, room: int) -> list[str]:
    """Break a text between words; a word that is too long stays whole, to be copied."""
    lines = (" ".join(filter(None, line.split(" "))) for line in text.split("\n"))
    return [each for line in lines for each in wrap_line(line, room)]
