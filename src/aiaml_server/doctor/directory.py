"""Checks of the memory directory: it exists, it is private, and its disk keeps what is written."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from aiaml_server.doctor.context import Context
from aiaml_server.errors import StoreError
from aiaml_server.files import hold_lock, replace_atomic, temporary_path
from aiaml_server.identity import is_trusted_base
from aiaml_server.toolset import Finding, Fix

_TRIAL = b"aiaml doctor\n"
_CLOUDS = re.compile(
    r"(?i)dropbox.*|onedrive.*|icloud ?drive|mobile documents|com~apple~clouddocs|google ?drive.*"
    r"|my drive|nextcloud|owncloud|box( sync)?|pcloud ?drive|cloudstorage|syncthing|mega(sync)?"
)


def location(context: Context) -> Iterator[Finding]:
    """Check that the directory exists, is trusted, and is not in a cloud folder."""
    if context.settings is None:
        found = "unknown, so it is not checked: AIAML_MEMORY_DIR cannot be used"
        yield Finding("directory", "error", found, "correct AIAML_MEMORY_DIR, then run this again")
        return
    base = context.settings.base
    if os.path.lexists(base) and not base.is_dir():
        remedy = "move it away, or set AIAML_MEMORY_DIR to a directory"
        yield Finding("directory", "error", f"{base} is not a directory", remedy)
        return
    new = "" if base.is_dir() else " does not exist yet; the first memory creates it"
    yield Finding("directory", "ok", f"{base}{new}")
    if base.is_dir() and not is_trusted_base(base, context.settings.remote):
        found = f"{base} was made on another computer or by another user; it is not synchronised"
        yield Finding("directory", "warning", found, f"if it is yours: `aiaml trust {base}`")
    if any(_CLOUDS.fullmatch(part) for part in {*base.parts, *base.resolve().parts}):
        found = f"{base} is in a cloud folder, whose program may copy or replace files"
        remedy = "move it elsewhere, and synchronise with `aiaml sync --setup` (docs/sync.md)"
        yield Finding("directory", "warning", found, remedy)


def writing(context: Context) -> Iterator[Finding]:
    """Write, read, delete and lock a file, as storing a memory does."""
    if context.base is None:
        return
    files = context.base / "files"
    directory = files if os.path.lexists(files) else context.base
    try:
        _try_writing(directory)
    except OSError as error:
        cause = StoreError("write in", directory, error)
        remedy = "make it a directory that you can write; until then nothing can be stored"
        yield Finding("disk", "error", str(cause), remedy)
        return
    yield Finding("disk", "ok", "a file was written, synced, read and deleted")
    path = temporary_path(context.base)
    with hold_lock(path, 1.0) as hold:
        is_locked = hold.acquired
    path.unlink(missing_ok=True)
    if not is_locked:
        remedy = "keep memories on a local disk, or use them from one program at a time"
        yield Finding("disk", "warning", f"files cannot be locked in {context.base}", remedy)


def permissions(context: Context) -> Iterator[Finding]:
    """Check that only this user can read the memories."""
    base = context.base
    if sys.platform == "win32" or base is None:
        return
    mode = stat.S_IMODE(base.stat().st_mode)
    if mode & 0o077:
        found = f"others on this computer can read {base} (mode {mode:04o})"
        remedy = f"unless you share it on purpose: `chmod 700 {base}`, or `aiaml doctor --fix`"
        fix = Fix(f"make {base} private (chmod 700)", lambda: base.chmod(mode & 0o7700))
        yield Finding("access", "warning", found, remedy, fix)
    else:
        yield Finding("access", "ok", f"others cannot read it (mode {mode:04o})")


def _try_writing(directory: Path) -> None:
    """Write, read and delete a file that no reader looks at.

    Raises:
        OSError: the disk refused, or gave back something else.
    """
    path = temporary_path(directory)
    replace_atomic(path, _TRIAL)
    try:
        if path.read_bytes() != _TRIAL:
            raise OSError("what was written is not what is read")
    finally:
        path.unlink()
