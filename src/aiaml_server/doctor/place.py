"""The base directory: there, ours, private, on a disk that has room and keeps its promises."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from aiaml_server.doctor.context import Context, is_directory
from aiaml_server.doctor.finding import Finding, Fix, Level
from aiaml_server.errors import StoreError
from aiaml_server.files import Lock, make_directory, temporary_path, write_atomic
from aiaml_server.format.memory import Memory, parse
from aiaml_server.format.memory import format as text_of
from aiaml_server.terminal import join_words, plural

_MIB = 1024 * 1024
_ROOM, _LITTLE_ROOM = 10 * _MIB, 500 * _MIB
_NAMES, _FEW_NAMES = 100, 10_000  # files that can still be created
_AHEAD_SECONDS = 600.0
_CLOUDS = {
    r"dropbox.*": "Dropbox",
    r"onedrive.*": "OneDrive",
    r"icloud ?drive|mobile documents|com~apple~clouddocs": "iCloud",
    r"google ?drive.*|my drive|googledrive-.*": "Google Drive",
    r"nextcloud|owncloud": "Nextcloud",
    r"box( sync)?|pcloud ?drive|cloudstorage|syncthing|mega(sync)?": "a synchronised folder",
}
# In `.index` each user has a folder for themselves alone, whatever its own mode is.
_OURS = (
    ".aiaml.git .git .gitattributes .gitignore .keep-local .lock .sync-status.json .sync.lock files"
)


def directory(context: Context) -> Iterator[Finding]:
    """Look whether there is a directory, or could be one, and whether a program copies it."""
    if not context.settings:
        found = "unknown, so nothing in it is checked: AIAML_MEMORY_DIR cannot be used"
        yield Finding("directory", "error", found, "correct AIAML_MEMORY_DIR, then run this again")
        return
    base = context.settings.base
    if os.path.lexists(base) and not is_directory(base):
        remedy = "move it away, or set AIAML_MEMORY_DIR to a directory"
        yield Finding("directory", "error", f"{base} is not a directory", remedy)
        return
    yield Finding("directory", "ok", str(base)) if is_directory(base) else _could_be_made(base)
    parts = {*base.parts, *_existing(base).resolve().parts}
    for pattern, name in _CLOUDS.items():
        if any(re.fullmatch(pattern, part, re.IGNORECASE) for part in parts):
            remedy = "move it out, and exchange memories by `aiaml sync --setup` (docs/sync.md)"
            found = f"{base} is in {name}, which may damage the index and git, and make copies"
            yield Finding("directory", "warning", found, remedy)
            return


def _could_be_made(base: Path) -> Finding:
    """Make the directory as the first memory would, try a memory in it, and take both away."""
    missing = [path for path in (base, *base.parents) if not os.path.lexists(path)]
    try:
        make_directory(base)
        _try_writing(base)
    except OSError as error:
        found = f"{base} is not there, and {StoreError('create', base, error)}"
        above = _existing(base)
        remedy = f"have {above} made writable for you, or set AIAML_MEMORY_DIR to another place"
        return Finding("directory", "error", found, remedy)
    finally:
        for path in missing:
            with suppress(OSError):
                path.rmdir()
    found = f"{base} is not there yet; the first memory makes it"
    return Finding("directory", "ok", found)


def writable(context: Context) -> Iterator[Finding]:
    """Really keep a memory: create, sync, rename, read, delete, lock."""
    if not (base := context.base):
        return
    files = base / "files"
    for place in (base, files) if os.path.lexists(files) else (base,):
        try:
            make_directory(place)
            took = _try_writing(place)
        except OSError as error:
            cause = StoreError("write in", place, error)
            if place.is_dir():
                remedy = "make it writable for you; until then nothing can be remembered"
            elif place.is_symlink():
                remedy = "until then nothing can be remembered"
            else:
                remedy = "move it away; the first memory makes a directory there"
            yield Finding("disk", "error", str(cause), remedy)
            return
    found = f"a trial memory was written, synced, read and taken away in {took:.0f} ms"
    yield Finding("disk", "ok", found)
    path = temporary_path(base)
    with Lock(path).held(1.0) as hold:
        held = hold.acquired
    path.unlink(missing_ok=True)
    if not held:
        remedy = "keep memories on a local disk, or use them from one program at a time"
        yield Finding("disk", "warning", f"files cannot be locked in {base}", remedy)


def _try_writing(place: Path) -> float:
    """Write, read and delete a memory under a name that no reader looks at; return milliseconds.

    Raises:
        OSError: it did not come back as it was written, or the disk refused before.
    """
    path = temporary_path(place)  # counts as left by a writer, should we be killed
    memory = Memory.new("doctor", "nobody", ["trial"], "a trial memory")
    start = time.perf_counter()
    write_atomic(path, text_of(memory).encode())
    try:
        if parse(path.read_text(encoding="utf-8")) != memory:
            raise OSError(errno.EIO, "what was written is not what is read")
    finally:
        path.unlink()
    return (time.perf_counter() - start) * 1000


def access(context: Context) -> Iterator[Finding]:
    """Look whether others can read the memories."""
    if sys.platform == "win32" or not (base := context.base):
        return
    status = base.stat()
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid != os.geteuid():
        found = f"{base} belongs to {_user(status.st_uid)}, and you are {_user(os.geteuid())}"
        remedy = f"if it should be yours: `sudo chown -R {_user(os.geteuid())} {base}`"
        yield Finding("access", "warning", found, remedy)
    if mode & 0o077:
        found = f"others on this computer can get at {base} (mode {mode:04o})"
        remedy = f"unless you share it on purpose: `chmod 700 {base}`, or `aiaml doctor --fix`"
        fix = Fix(f"make {base} private (chmod 700)", lambda: base.chmod(mode & 0o7700))
        yield Finding("access", "warning", found, remedy, fix)
        names = [name for name in _OURS.split() if _bits(base / name) & 0o077]
        if names:
            found = f"others on this computer can read {join_words(names)} in {base}"
            todo = "`aiaml doctor --fix` makes them private, whatever becomes of the directory"
            what = f"make {join_words(names)} in {base} private (chmod go-rwx)"
            fix = Fix(what, lambda: _close(base, names))
            yield Finding("access", "warning", found, todo, fix)
    elif status.st_uid == os.geteuid():
        yield Finding("access", "ok", f"only you can read it (mode {mode:04o})")


def _bits(path: Path) -> int:
    """Return the permission bits of a file or directory; none of what is a link, or not there."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return 0
    return 0 if stat.S_ISLNK(mode) else stat.S_IMODE(mode)


def _close(base: Path, names: Iterable[str]) -> None:
    for name in names:
        (base / name).chmod(_bits(base / name) & 0o7700)


def space(context: Context) -> Iterator[Finding]:
    """Look whether there is room."""
    if not context.settings:
        return
    place = _existing(context.settings.base)
    free = shutil.disk_usage(place).free
    remedy = "free some space on that disk; nothing can be remembered when it is full"
    level = _level(free, _ROOM, _LITTLE_ROOM)
    found = f"{free // _MIB:,} MiB free" if free >= _MIB else f"{free // 1024:,} KiB free"
    yield Finding("space", level, found, "" if level == "ok" else remedy)
    if sys.platform != "win32":
        status = os.statvfs(place)
        level = _level(status.f_favail, _NAMES, _FEW_NAMES) if status.f_files else "ok"
        if level != "ok":
            found = f"the disk takes only {plural(status.f_favail, 'more file', 'more files')}"
            yield Finding("space", level, found, "delete files that are not needed on that disk")


def _level(free: int, error: int, warning: int) -> Level:
    return "error" if free < error else "warning" if free < warning else "ok"


def clock(context: Context) -> Iterator[Finding]:
    """Look for memories from the future."""
    if not context.base:
        return
    moment, name = context.scan.newest
    if moment / 1e6 > time.time() + _AHEAD_SECONDS:
        found = (
            f"{name} is from the future: this computer's clock, or the one it was made by, is off"
        )
        remedy = "set the clock, and correct the timestamp in the file: it counts as the newest"
        yield Finding("clock", "warning", found, remedy)
    else:
        yield Finding("clock", "ok", f"{time.strftime('%Y-%m-%d %H:%M %z')}")


def _existing(path: Path) -> Path:
    """Return the nearest directory above, or the path itself, that is there."""
    while not is_directory(path) and path.parent != path:
        path = path.parent
    return path


def _user(number: int) -> str:
    if sys.platform != "win32":
        import pwd  # noqa: PLC0415

        try:
            return pwd.getpwuid(number).pw_name
        except KeyError:
            pass
    return f"user {number}"
