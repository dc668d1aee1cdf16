"""Memories as one web page that needs nothing else: no server, no other file, no network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from urllib.parse import quote

from aiaml_server.exchange.shapes import by_months
from aiaml_server.format.memory import Memory
from aiaml_server.rendering import visible
from aiaml_server.timestamps import format_minute


def page(memories: Sequence[Memory]) -> Iterator[bytes]:
    """Return the page, piece by piece.

    A memory is data that anyone may have written: its text is shown by `safe_html`, and the page's
    policy lets the browser run and load nothing but the script and the style that stand in it.
    """
    style, script = _part("page.css"), _part("page.js")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    yield f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Memories</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>Memories</h1> <span id="count" role="status">{len(memories)}</span>
<input id="search" type="search" placeholder="Search" aria-label="Search" autocomplete="off" hidden>
</header>
<main>
""".encode()
    for title, inside in by_months(memories).items():
        yield f"<section>\n<h2>{escape(title)}</h2>\n".encode()
        for memory in inside:
            yield _article(memory).encode()
        yield b"</section>\n"
    yield f"</main>\n<script>{script}</script>\n</body>\n</html>\n".encode()


def _article(memory: Memory) -> str:
    memory = visible(memory)
    from aiaml_server.rendering.html import safe_html  # noqa: PLC0415 (a tenth of a second)

    topics = " ".join(
        f'<button type="button" class="topic">{escape(topic)}</button>' for topic in memory.topics
    )
    name = f"memory-{memory.id}"
    return f"""<article id="{escape(name)}">
<div class="about"><a href="#{quote(name)}"><time datetime="{escape(memory.timestamp)}">\
{escape(format_minute(memory.timestamp))}</time></a> <span>{escape(memory.agent)}</span> \
<span>{escape(memory.user)}</span> {topics}</div>
<div class="content" dir="auto">
{safe_html(memory.content)}</div>
</article>
"""


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
