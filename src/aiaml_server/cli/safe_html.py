"""Markdown that anyone may have written, as HTML that is safe to show (`safe_html`).

A memory is data: an agent may have copied it from any page. What comes out holds no script, no raw
HTML, no style, nothing that a browser would load by itself, and no link but to the web or to a mail
address. The markdown is CommonMark with tables and strikethrough.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

_LINK = re.compile(r"https?://[^/]|mailto:[^/]", re.IGNORECASE)
_MAX_RENDERED = 64 * 1024  # characters; the worst text of that size takes a second to parse


def safe_html(markdown: str) -> str:
    """Return a fragment of HTML that shows `markdown`, whatever it holds.

    Raw HTML appears as the text it is. Links lead to `http:`, `https:` and `mailto:` only and say
    `rel="noopener noreferrer"`; any other link stands as its markdown. An image becomes a link to
    it, and is not loaded. What is too long, or nested too deeply, to be rendered stands as it is.
    """
    if len(markdown) <= _MAX_RENDERED:
        try:
            return str(_renderer().render(markdown))
        except RecursionError:
            pass
    return f"<pre>{escape(markdown)}</pre>\n"


@cache
def _renderer() -> MarkdownIt:
    renderer = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    renderer.validateLink = lambda url: bool(_LINK.match(url))  # type: ignore[method-assign]
    renderer.core.ruler.push("tame", _tame)
    return renderer


def _tame(state: StateCore) -> None:
    for token in state.tokens:
        token.attrs.pop("style", None)  # of a table's cells; a strict page allows no style here
        if token.children:
            token.children = _tamed(token.children)


def _tamed(tokens: list[Token]) -> list[Token]:
    """Give links their `rel`, and turn images into links, or into text inside a link."""
    tamed: list[Token] = []
    in_link = False
    for token in tokens:
        if token.type in ("link_open", "link_close"):
            in_link = token.type == "link_open"
        tamed += [token] if token.type != "image" else _image(token, in_link=in_link)
    for token in tamed:
        if token.type == "link_open":
            token.attrs["rel"] = "noopener noreferrer"
    return tamed


def _image(token: Token, *, in_link: bool) -> list[Token]:
    source = str(token.attrs.get("src", ""))
    text = Token("text", "", 0, content=f"[image: {token.content.strip() or source}]")
    if in_link:
        return [text]
    opening = Token("link_open", "a", 1, attrs={"href": source})
    return [opening, text, Token("link_close", "a", -1)]
