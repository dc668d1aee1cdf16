"""Markdown as it is shown to a person: parsed so, and checked so, that nothing of it is hidden.

A renderer is meant to leave things out: what only it reads (definitions of links, the words after a
fence), what is nested too deeply, the cells that a table has too many. An agent reads the source,
and so must a person be able to. Hence two rules for whatever renders markdown here: it is parsed by
`parsed`, which hides as little as it can, and `shows_all` compares what came out with the source.
Where that fails, the source is shown as it stands (`why_not`).
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from aiaml_server.format.invisible import marked
from aiaml_server.rendering import MAX_RENDERED

TOO_LONG = f"Shown as it stands: it is longer than {MAX_RENDERED // 1024} KiB."
HIDES = "Shown as it stands: rendered, some of it would be hidden."

_LINK = re.compile(r"https?://[^/]|mailto:[^/]", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_NUMBER = re.compile(r'<li value="([0-9]+)">')
_TAG = re.compile("<[^<>]*>")
_WORD_CHARACTER = re.compile(r"[^\W_]")


@cache
def parser() -> MarkdownIt:
    """Return the parser: CommonMark with tables and strikethrough, without raw HTML.

    References to links are off, so that they and their definitions are text. Addresses stay as they
    are written; whoever makes a link of one has to encode it.
    """
    made = MarkdownIt("commonmark", {"html": False})
    made.enable(["table", "strikethrough"]).disable("reference")
    made.validateLink = lambda url: bool(_LINK.match(url))  # type: ignore[method-assign]
    made.normalizeLink = lambda url: url  # type: ignore[method-assign]
    made.normalizeLinkText = lambda link: link  # type: ignore[method-assign]
    return made


def parsed(source: str) -> list[Token] | None:
    """Return the tokens of a text; None when it is too long or nested too deeply to parse."""
    if len(source) > MAX_RENDERED:
        return None
    try:
        return parser().parse(source)
    except RecursionError:
        return None


def why_not(source: str) -> str:
    """Return the sentence that says why a text is not rendered."""
    return TOO_LONG if len(source) > MAX_RENDERED else HIDES


def shows_all(source: str, shown: str) -> bool:
    """Say whether each letter and digit of a source is in what is shown, in the same order."""
    rest = iter(_words(shown))
    return all(character in rest for character in _words(marked(source)))


def _words(text: str) -> list[str]:
    """Return letters and digits; an entity counts as what it stands for, in code as elsewhere.

    So its name gives no letters in which a hidden word could be found.
    """
    decoded = _ENTITY.sub(lambda entity: marked(html.unescape(entity[0])), text)
    return _WORD_CHARACTER.findall(decoded)


def text_of(rendered: str) -> str:
    """Return the text that a person sees of HTML made by a renderer, numbers of lists included."""
    return html.unescape(_TAG.sub("", _NUMBER.sub(r" \1 ", rendered)))


# --- what others make of it -----------------------------------------------------------------------


def is_shown_by_others(source: str) -> bool:
    """Say whether any usual renderer shows each letter and digit of a text.

    The address of a link counts as shown; raw HTML and a picture's address do not.
    """
    if len(source) > MAX_RENDERED:
        return False
    try:
        tokens = _usual().parse(source)
    except RecursionError:
        return False
    shown = _usual().renderer.render(_numbered(tokens), _usual().options, {})
    return shows_all(source, text_of(_ADDRESS.sub(r" <a>\1 ", shown)))


_ADDRESS = re.compile(r'<a href="([^"<]*)"[^<>]*>')


@cache
def _usual() -> MarkdownIt:
    made = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    made.normalizeLink = lambda url: url  # type: ignore[method-assign]
    made.normalizeLinkText = lambda link: link  # type: ignore[method-assign]
    for raw in ("html_block", "html_inline", "image"):
        made.add_render_rule(raw, lambda *_: "")
    return made


def _numbered(tokens: Sequence[Token]) -> Sequence[Token]:
    """Give each item of a list the number that a browser shows."""
    numbers: list[int] = []
    for token in tokens:
        if token.type == "ordered_list_open":
            numbers.append(int(token.attrs.pop("start", 1)))
        elif token.type == "ordered_list_close":
            numbers.pop()
        elif token.type == "list_item_open" and token.info:
            token.attrs["value"] = numbers[-1]
            numbers[-1] += 1
    return tokens
