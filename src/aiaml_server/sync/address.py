"""The remote's address as git reads it from `aiaml/remote`, a file for the owner alone."""

from __future__ import annotations

import re
from pathlib import Path

from aiaml_server.files import check_own, read_own, remove_own

from .place import notes_of

_MOST = 1024 * 1024  # bytes of the file that has the address
_URL = r'(?m)^\turl = "([^"\\]*(?:\\.[^"\\]*)*)"$'
_ESCAPED = r"\\(.)"


def section(url: str, tracked: str = "+refs/heads/*:refs/remotes/origin/*") -> str:
    """Return the text of the file for an address, and where git notes what the remote has."""
    quoted = url.replace("\\", "\\\\").replace('"', '\\"')
    return f'[remote "origin"]\n\turl = "{quoted}"\n\tfetch = {tracked}\n'


def remembered(base: Path) -> str:
    """Return the address that was last used for a base directory; empty where there is none."""
    try:
        return _address_in(read_own(notes_of(base) / "aiaml" / "remote", _MOST))
    except OSError:
        return ""


def clear(path: Path) -> None:
    """Remove the file if it is none of ours any more: git does nothing where it cannot read it.

    Raises:
        NotOurs: it is no file, or larger than ours could be.
    """
    if check_own(path):
        data = read_own(path, _MOST)
        if section(_address_in(data)).encode() != data:
            remove_own(path)


def _address_in(data: bytes) -> str:
    quoted = re.search(_URL, data.decode("utf-8", "replace"))
    return re.sub(_ESCAPED, r"\1", quoted[1]) if quoted else ""
