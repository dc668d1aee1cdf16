"""Convert untrusted markdown to safe HTML.

A memory is data, and may have been copied from any page. The HTML holds no script, no raw HTML, no
style, nothing that a browser loads by itself, and no link but to the web or a mail address.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt

from aiaml_server.format.invisible import marked

_MAX_CHARACTERS = 32 * 1024
_TASK = re.compile(r"(<li>\s*(?:<p>)?)\[([ xX])\] ")
_SAFE_LINK = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)


def safe_html(markdown: str) -> str:
    """Return a fragment of HTML for any markdown text.

    Raw HTML appears as text. A link that leads elsewhere than to `http:`, `https:` or `mailto:`
    stays markdown, an image becomes a link, and a task gets a box. A text of more than 32 KiB is
    shown as it is.
    """
    if len(markdown) > _MAX_CHARACTERS:
        return f"<pre>{escape(marked(markdown))}</pre>\n"
    html: str = _parser().render(markdown)
    return marked(_TASK.sub(lambda task: task[1] + ("☐ " if task[2] == " " else "☑ "), html))


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.disable("image")
    parser.validateLink = _is_safe_link  # type: ignore[method-assign, assignment]
    parser.add_render_rule("link_open", _render_link)
    for cell in ("th_open", "td_open"):
        parser.add_render_rule(cell, _render_cell)
    return parser


def _is_safe_link(address: str) -> bool:
    return bool(_SAFE_LINK.match(address.strip()))


def _render_link(self: Any, tokens: Any, at: int, options: Any, env: Any) -> str:
    tokens[at].attrSet("rel", "noopener noreferrer")
    text: str = self.renderToken(tokens, at, options, env)
    return text


def _render_cell(self: Any, tokens: Any, at: int, options: Any, env: Any) -> str:
    tokens[at].attrs.pop("style", None)  # the page's policy allows no style here
    text: str = self.renderToken(tokens, at, options, env)
    return text
