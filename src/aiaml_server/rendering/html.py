"""Markdown that anyone may have written, as HTML that is safe to show (`safe_html`).

A memory is data: an agent may have copied it from any page. What comes out holds no script, no raw
HTML, no style, nothing that a browser would load by itself, and no link but to the web or to a mail
address. And it holds every word of the markdown (see `commonmark`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from markdown_it.common.normalize_url import normalizeLink
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from aiaml_server.format.invisible import marked
from aiaml_server.rendering.commonmark import parsed, parser, shows_all, text_of, why_not


def safe_html(markdown: str) -> str:
    """Return a fragment of HTML that shows `markdown`, whatever it holds.

    Raw HTML appears as the text it is. Links lead to `http:`, `https:` and `mailto:` only, say
    `rel="noopener noreferrer"`, and are followed by their address and title; any other link stands
    as its markdown. An image becomes a link to it, and is not loaded. Invisible characters are
    `marked`. What is too long, or would lose a word, stands as it is.
    """
    tokens = parsed(markdown)
    if tokens is not None:
        rendered = marked(RendererHTML().render(_tame(tokens), parser().options, {}))
        if shows_all(markdown, text_of(rendered)):
            return rendered
    return f'<p class="aside">{why_not(markdown)}</p>\n<pre>{escape(marked(markdown))}</pre>\n'


def _tame(tokens: Sequence[Token]) -> list[Token]:
    """Return tokens of which nothing but harmless HTML can be made, and in which all is text."""
    tamed: list[Token] = []
    for token in tokens:
        token.attrs.pop("style", None)  # of a table's cells; a strict page allows no style here
        token.attrs.pop("start", None)  # each number stands at its item
        if token.type == "list_item_open" and token.info:
            token.attrs["value"] = int(token.info)
        if token.type == "fence" and (info := token.info.strip()):
            tamed += _paragraph(info)
        if token.children:
            token.children = _links(token.children)
        tamed.append(token)
    return tamed


def _links(tokens: Sequence[Token]) -> list[Token]:
    """Encode addresses and show them; turn images into links, or into text inside a link."""
    tamed: list[Token] = []
    link: Token | None = None
    start = 0
    for token in tokens:
        if token.type == "link_open":
            link, start = token, len(tamed)
            tamed.append(_opening(token.attrs) if token.attrs["href"] else _text("["))
        elif token.type == "link_close" and link:
            closing = token if link.attrs["href"] else _text("]()")
            tamed += [closing, *_aside(link.attrs, "".join(each.content for each in tamed[start:]))]
            link = None
        elif token.type == "image":
            tamed += _image(token, in_link=link is not None)
        else:
            tamed.append(token)
    return tamed


def _image(token: Token, *, in_link: bool) -> list[Token]:
    source = str(token.attrs["src"])
    attrs = {"href": source, "title": token.attrs.get("title", "")}
    label = _text(f"[image: {token.content.strip()}]")
    if in_link or not source:
        return [label, *_aside(attrs)]
    return [_opening(attrs), label, Token("link_close", "a", -1), *_aside(attrs)]


def _opening(attrs: Mapping[str, Any]) -> Token:
    address = normalizeLink(str(attrs["href"]))
    return Token("link_open", "a", 1, attrs={"href": address, "rel": "noopener noreferrer"})


def _aside(attrs: Mapping[str, Any], text: str = "") -> list[Token]:
    """Return what stands behind a link: where it leads, where that is not its text; its title."""
    address, title = str(attrs["href"]), str(attrs.get("title", ""))
    if text in (address, address.removeprefix("mailto:")):
        address = ""
    said = " ".join(filter(None, [address, title and f'"{title}"']))
    if not said:
        return []
    small = Token("small_open", "small", 1)
    return [_text(" "), small, _text(f"({said})"), Token("small_close", "small", -1)]


def _paragraph(text: str) -> list[Token]:
    opening = Token("paragraph_open", "p", 1, attrs={"class": "aside"}, block=True)
    inline = Token("inline", "", 0, children=[_text(text)], block=True)
    return [opening, inline, Token("paragraph_close", "p", -1, block=True)]


def _text(text: str) -> Token:
    return Token("text", "", 0, content=text)
