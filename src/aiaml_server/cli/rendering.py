"""Markdown on a terminal, and whatever else needs rich."""

from __future__ import annotations

from rich.console import Console
from rich.markdown import Markdown

from .terminal import width


def markdown(text: str) -> None:
    """Print markdown. Raw HTML, which rich would leave out, is shown as what it is: text."""
    rendered = Markdown(text, hyperlinks=False)
    for token in rendered.parsed:
        if token.type == "html_block":
            token.type, token.content = "code_block", token.content.rstrip()
        for child in token.children or ():
            if child.type == "html_inline":
                child.type = "text"
    Console(width=min(width(), 100)).print(rendered)
