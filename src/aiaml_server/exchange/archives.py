"""Sources that are no folder yet: a zip, and what comes through a pipe."""

from __future__ import annotations

import errno
import os
import re
import struct
import tempfile
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from aiaml_server.errors import os_reason
from aiaml_server.exchange.found import PIPED, Skip, printable
from aiaml_server.exchange.walk import MARKDOWN, MAX_TEXT, left_out
from aiaml_server.files import check_own, remove_own

try:
    from lzma import LZMAError
except ImportError:  # a Python that was built without it reads no zip that needs it
    LZMAError = zlib.error  # type: ignore[misc, assignment]

MAX_TOTAL = 1024 * 1024 * 1024  # bytes of a zip, unpacked, or of what comes through a pipe
MAX_ENTRIES = 100_000  # files and folders of a zip
_SCRATCH = re.compile(r"aiaml-import-[0-9a-f]{16}-[a-z0-9_]{8}")
_LEFT_SECONDS = 86_400.0
_READ = (*MARKDOWN, ".json", ".jsonl", ".ndjson")
_BLOCK = 1024 * 1024
_UNREADABLE = (
    *(NotImplementedError, RuntimeError, EOFError, UnicodeError, MemoryError),
    *(zipfile.BadZipFile, zlib.error, LZMAError),
)


@contextmanager
def work_directory() -> Iterator[str]:
    """Open a temporary directory for an import; what a killed one left a day ago goes."""
    top = Path(tempfile.gettempdir())
    for name in filter(_SCRATCH.fullmatch, os.listdir(top)):  # noqa: PTH208 (names)
        path = top / name
        with suppress(OSError):
            is_ours = check_own(path, directory=True, strict=True)
            if is_ours and time.time() - path.lstat().st_mtime > _LEFT_SECONDS:
                remove_own(path)
    with tempfile.TemporaryDirectory(prefix=f"aiaml-import-{os.urandom(8).hex()}-") as place:
        yield place


def unpacked(archive: Path, below: Path) -> tuple[Path, list[Skip]]:
    """Unpack what of a zip can be read; its only folder or file, if it has one, is the source.

    Args:
        archive: the zip.
        below: an empty folder for it.

    Returns:
        The source, and what is left out.

    Raises:
        ValueError: it is no zip that can be read; the message says why.
    """
    name = printable(archive.name)
    top = below / archive.name
    top.mkdir()
    skips: list[Skip] = []
    others: Counter[str] = Counter()
    try:
        _check_list(archive)
        with zipfile.ZipFile(archive) as source:
            room = MAX_TOTAL
            for entry in source.infolist():
                path = PurePosixPath(entry.filename)
                if entry.is_dir():
                    source.extract(entry, top)
                elif "__MACOSX" in path.parts:
                    continue
                elif path.suffix.lower() not in _READ:
                    others[path.suffix.lower() or "no ending"] += 1
                elif (room := room - entry.file_size) < 0:  # of which no more is unpacked
                    raise ValueError(f"unpacked it is larger than {MAX_TOTAL >> 30} GiB")
                elif problem := _extract(source, entry, top):
                    skips.append(Skip(f"{name}/{printable(entry.filename)}", problem))
    except (zipfile.BadZipFile, NotImplementedError, UnicodeError) as error:
        raise ValueError(f"it is no zip that can be read: {error}") from error
    except OSError as error:
        raise ValueError(f"it cannot be unpacked: {os_reason(error)}") from error
    if skips and not any(top.iterdir()):
        raise ValueError(f"nothing of it can be unpacked: {skips[0].place}: {skips[0].reason}")
    skips += left_out(name, "are not read", others)
    inside = list(top.iterdir())
    return (inside[0] if len(inside) == 1 else top), skips


_ENDS = {  # records that tell how long the list is, and how; APPNOTE 6.3.10, 4.3.14 and 4.3.16
    b"PK\x05\x06": struct.Struct("<12xL"),
    b"PK\x06\x06": struct.Struct("<40xQ"),
}
_END = re.compile(rb"PK(?:\x05\x06|\x06\x06)")
_ELSEWHERE = 0xFFFF_FFFF  # instead of the length, where the other record tells it
_ENTRY = b"PK\x01\x02"
_MOST_END = 65_535 + 200  # bytes of the records and of the comment behind them
MAX_LIST = 32 * 1024 * 1024  # bytes of a zip's list


def _check_list(archive: Path) -> None:
    """See that the list of a zip is not too long, before Python makes an object of each entry.

    Which record Python goes by does not matter: each that could be one counts.

    Raises:
        ValueError: it is.
        OSError: it cannot be read.
    """
    with archive.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - _MOST_END))
        last = file.read(_MOST_END)
        size = 0
        for found in _END.finditer(last):
            form = _ENDS[found[0]]
            if len(last) - found.start() >= form.size:
                (told,) = form.unpack_from(last, found.start())
                size = max(size, 0 if told == _ELSEWHERE else told)
        if size > MAX_LIST:
            raise ValueError(f"its list of files is longer than {MAX_LIST >> 20} MiB")
        file.seek(max(0, end - _MOST_END - size))
        if file.read(_MOST_END + size).count(_ENTRY) > MAX_ENTRIES:
            raise ValueError(f"it has more than {MAX_ENTRIES:,} files and folders")


def _extract(source: zipfile.ZipFile, entry: zipfile.ZipInfo, top: Path) -> str:
    """Write one file of a zip below a folder, with its time; say why that cannot be."""
    if entry.flag_bits & 1:
        return "it is encrypted"
    if entry.file_size > MAX_TEXT and entry.filename.lower().endswith(MARKDOWN):
        return f"it is larger than {MAX_TEXT >> 20} MiB: {entry.file_size:,} bytes"
    parts = [each for each in PurePosixPath(entry.filename).parts if each not in ("/", "..", ".")]
    if os.path.lexists(top.joinpath(*parts)):
        return "another file there has its name"
    try:
        target = source.extract(entry, top)
    except (*_UNREADABLE, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.ENAMETOOLONG):
            raise  # the disk's; without a number it is the decompressor's
        with suppress(OSError):
            top.joinpath(*parts).unlink()
        return f"it cannot be unpacked: {str(error) or type(error).__name__}"
    made = time.mktime((*entry.date_time, 0, 0, -1)) if entry.date_time > (1980, 1, 1) else 0
    if made > 0:
        os.utime(target, (made, made))
    return ""


def piped(stream: BinaryIO, below: Path) -> Path:
    """Keep what comes through a pipe in a file whose ending says what it seems to be.

    Raises:
        ValueError: it is too much.
    """
    kept = below / PurePosixPath(PIPED).with_suffix("")
    kept.parent.mkdir()
    first, room = b"", MAX_TOTAL
    with kept.open("wb") as target:
        for block in iter(lambda: stream.read(_BLOCK), b""):
            first = first or block
            room -= len(block)
            if room < 0:
                raise ValueError(f"more than {MAX_TOTAL >> 30} GiB came through the pipe")
            target.write(block)
    return kept.rename(kept.with_suffix(_ending(first)))


def _ending(first: bytes) -> str:
    if first.startswith(b"PK\x03\x04"):
        return ".zip"
    text = first.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text.startswith((b"{", b"[")):
        return ".md"
    line, _, rest = text.partition(b"\n")
    one_a_line = line.rstrip().endswith(b"}") and rest.lstrip()[:1] in (b"{", b"")
    return ".jsonl" if one_a_line else ".json"
