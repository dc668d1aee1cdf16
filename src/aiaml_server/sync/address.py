"""The remote's address as git reads it from `aiaml/remote`, a file for the owner alone."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

from aiaml_server.errors import NoStateDirectory
from aiaml_server.files import check_own, read_own, remove_own, replace_atomic
from aiaml_server.settings import Settings
from aiaml_server.storage.chosen import chosen_remote
from aiaml_server.storage.derived import folder, key
from aiaml_server.sync.place import notes_of
from aiaml_server.sync.status import Status

_MOST = 1024 * 1024  # bytes of the file that has the address
_NOTE = "remote"  # in the folder of what is derived
_URL = r'(?m)^\turl = "([^"\\]*(?:\\.[^"\\]*)*)"$'
_ESCAPED = r"\\(.)"


def section(url: str, tracked: str = "+refs/heads/*:refs/remotes/origin/*") -> str:
    """Return the text of the file for an address, and where git notes what the remote has."""
    quoted = url.replace("\\", "\\\\").replace('"', '\\"')
    return f'[remote "origin"]\n\turl = "{quoted}"\n\tfetch = {tracked}\n'


def path_of(url: str, base: Path) -> Path | None:
    """Return where on this computer a remote lies, for git in `base`; None where elsewhere."""
    if url.lower().startswith("file://"):
        return base / unquote(url[len("file://") :])
    if re.match(r"[A-Za-z][\w.+-]*://|[^/\\:]{2,}:", url):
        return None
    return base / os.path.expanduser(url)  # noqa: PTH111 (~nobody is no reason to fail)


def remember(base: Path, url: str) -> None:
    """Note that this user exchanges a base directory with an address.

    A repository that came with a directory has an address of whoever gave it away. So a sum that
    only this user can make is noted where only this user can put it.
    """
    with suppress(OSError, NoStateDirectory):
        path, summed = folder(base, make=True) / _NOTE, _sum(url)
        if not check_own(path) or read_own(path, _MOST) != summed:
            replace_atomic(path, summed, 0o600)


def remembered(base: Path) -> str:
    """Return the address that was last used for a base directory; empty where there is none."""
    with suppress(OSError, NoStateDirectory):
        url = _address_in(read_own(notes_of(base) / "aiaml" / "remote", _MOST))
        if read_own(folder(base) / _NOTE, _MOST) == _sum(url):
            return url
    return ""


def in_use(base: Path) -> str:
    """Return the address that servers exchange a directory with; empty where they have none."""
    return remembered(base) if Status.read(base).remote else ""


def with_remote_in_use(chosen: Settings, environ: Mapping[str, str]) -> Settings:
    """Return settings with the remote chosen or in use, unless the environment names one."""
    if "AIAML_GITHUB_REMOTE" in environ:
        return chosen
    return replace(chosen, remote=chosen_remote(chosen.base) or in_use(chosen.base))


def _sum(url: str) -> bytes:
    from hashlib import blake2b  # noqa: PLC0415 (OpenSSL, which most verbs go without)

    return blake2b(url.encode(), key=key(), digest_size=32).hexdigest().encode()


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
