"""The text that a hook gives to an agent."""

from __future__ import annotations

from collections.abc import Iterable

from aiaml_server.format.invisible import marked_line

LIMIT = 1200  # characters


def hook_text(heading: str, lines: Iterable[str], limit: int = LIMIT) -> str:
    """Return texts that anybody may have written as one fenced block; empty for no lines.

    Each text becomes one line. Control and invisible characters are shown as code points, and tags
    are escaped, so that no text can end the fence or imitate the host's own markup.

    Args:
        heading: trusted lines, before the fence.
        lines: the untrusted texts.
        limit: characters of the whole; lines that do not fit are dropped.
    """
    opening, closing = f"{heading}\n<memories>", "\n</memories>"
    room = limit - len(opening) - len(closing)
    block = ""
    for line in lines:
        safe = marked_line(" ".join(line.split())).replace("<", "&lt;").replace(">", "&gt;")
        if len(block) + 1 + len(safe) > room:
            break
        block += f"\n{safe}"
    return f"{opening}{block}{closing}" if block else ""
