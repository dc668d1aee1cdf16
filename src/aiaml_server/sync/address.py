"""The remote's address as git reads it from `.git/aiaml/remote`, a file for the owner alone."""

from __future__ import annotations

import re
from pathlib import Path


def section(url: str) -> str:
    """Return the text of the file for an address."""
    quoted = url.replace("\\", "\\\\").replace('"', '\\"')
    return f'[remote "origin"]\n\turl = "{quoted}"\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n'


def remembered(base: Path) -> str:
    """Return the address that was last used for a base directory; empty where there is none."""
    try:
        text = (base / ".git" / "aiaml" / "remote").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
    quoted = re.search(r'^\turl = "((?:[^"\\]|\\.)*)"$', text, re.MULTILINE)
    return re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else ""
