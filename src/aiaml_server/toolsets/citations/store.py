"""The directory of memories: one markdown file each, read and written whole."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from aiaml_server.errors import Busy, DiskError, MalformedFile, NotFound, ToolError, os_reason
from aiaml_server.files import hold_lock, make_directory, read_regular, sync_directory
from aiaml_server.format.frontmatter import split
from aiaml_server.toolsets.citations import frontmatter
from aiaml_server.toolsets.citations.config import Config
from aiaml_server.toolsets.citations.errors import InvalidInput, MalformedMemory
from aiaml_server.toolsets.citations.models import Memory, is_memory_id, memory_from_fields
from aiaml_server.toolsets.writing import clear_unfinished, replace

MAX_BYTES = 1024 * 1024  # of a file
_MAX_FILES = 10_000
_LOCK_SECONDS = 10.0


class Scan(NamedTuple):
    """The content of the directory.

    Attributes:
        memories: by id, in order.
        unread: the files that could not be read, by path, each with a sentence that says why.
        needs_pyyaml: the paths of those that could be read if PyYAML were installed.
    """

    memories: dict[str, Memory]
    unread: dict[str, str]
    needs_pyyaml: set[str]

    @property
    def notes(self) -> list[str]:
        """The sentences about the files that could not be read."""
        return [f"Not read: {sentence}" for sentence in self.unread.values()]


class MemoryStore:
    """The memory files of one repository."""

    def __init__(self, root: Path, config: Config) -> None:
        """Take the repository's top. Nothing is created.

        Raises:
            DiskError: the directory of memories leads out of the repository.
        """
        self.directory = root / config.directory
        self._name = config.directory
        self._extension = config.file_extension
        real = os.path.realpath(self.directory)
        if os.path.normcase(real) != os.path.normcase(self.directory):
            raise DiskError(f"{self._name} is or passes through a link, which could lead outside")

    def path(self, memory_id: str) -> str:
        """Return the path of a memory's file relative to the repository's top."""
        return f"{self._name}/{memory_id}{self._extension}"

    def _file(self, memory_id: str) -> Path:
        if not is_memory_id(memory_id):
            raise NotFound(f"there is no memory {memory_id[:150]!r}; ids look like mem-topic-1a2b")
        return self.directory / f"{memory_id}{self._extension}"

    def ids(self) -> list[str]:
        """Return the names of all files that may be memories, without extension, sorted.

        Raises:
            DiskError: the directory cannot be read.
        """
        end = self._extension
        with self._named_errors(self._name):
            names = os.listdir(self.directory) if self.directory.exists() else []  # noqa: PTH208
        files = [name for name in names if name.startswith("mem-") and name.endswith(end)]
        return sorted(name.removesuffix(end) for name in files)

    @contextmanager
    def _named_errors(self, path: str) -> Iterator[None]:
        """Raise what is wrong with a file as a `ToolError` that names it."""
        try:
            yield
        except MalformedMemory as error:
            raise type(error)(f"{path}: {error}") from error
        except (MalformedFile, UnicodeDecodeError) as error:
            raise MalformedMemory(f"{path}: {error}") from error
        except FileNotFoundError:
            raise NotFound(f"there is no memory {Path(path).stem}; a list shows all ids") from None
        except OSError as error:
            raise DiskError(f"{path}: {os_reason(error)}") from error

    def read_text(self, memory_id: str) -> str:
        """Return the text of a memory's file.

        Raises:
            NotFound: there is no such memory.
            MalformedMemory: it is not UTF-8 text, or too large.
            DiskError: it cannot be read.
        """
        file = os.fspath(self._file(memory_id))
        with self._named_errors(self.path(memory_id)):
            return read_regular(file, MAX_BYTES).decode("utf-8")

    def get(self, memory_id: str) -> Memory:
        """Return a memory; raises as `read_text` does."""
        return self._parse(memory_id, self.read_text(memory_id))

    def _parse(self, memory_id: str, text: str) -> Memory:
        with self._named_errors(self.path(memory_id)):
            parts = split(text)
            return memory_from_fields(frontmatter.parse(parts.head), memory_id, parts.body)

    def scan(self) -> Scan:
        """Read all memories.

        Raises:
            DiskError: the directory cannot be read.
        """
        scan = Scan({}, {}, set())
        ids = self.ids()
        if ids[_MAX_FILES:]:
            scan.unread[self._name] = f"{self._name}: only the first 10,000 memories are read"
        for memory_id in ids[:_MAX_FILES]:
            try:
                scan.memories[memory_id] = self.get(memory_id)
            except ToolError as error:
                path = self.path(memory_id)
                scan.unread[path] = str(error)
                if isinstance(error, frontmatter.PyYamlMissing):
                    scan.needs_pyyaml.add(path)
        return scan

    # --- writing ----------------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only writer. Files that a killed writer has left are removed.

        Raises:
            Busy: another process holds the lock for too long.
            DiskError: the directory cannot be made or locked.
        """
        # Imported here because reading needs the standard library alone.
        from aiaml_server.identity import state_directory  # noqa: PLC0415

        digest = hashlib.sha256(os.fsencode(self.directory)).hexdigest()[:16]
        with self._named_errors(self._name):
            locks = state_directory() / "locks"
            make_directory(locks)
            make_directory(self.directory, 0o777)  # like any directory of a repository
            with hold_lock(locks / f"citations-{digest}", _LOCK_SECONDS) as hold:
                if not hold.acquired:
                    raise Busy(f"another process writes in {self._name}; try again")
                clear_unfinished(self.directory)
                yield

    def add(self, memory: Memory) -> None:
        """Write a new memory, while `writing`.

        Raises:
            InvalidInput: another file would have the same name on some systems.
            DiskError: the disk refused.
        """
        taken = [other for other in self.ids() if other.lower() == memory.id.lower()]
        if taken:
            raise InvalidInput(f"id: {memory.id} is taken by {taken[0]}; choose another one")
        fields = memory.to_dict()
        content = fields.pop("content")
        self._write(memory.id, frontmatter.render(fields, content))

    def change(self, before: Memory, after: Memory) -> None:
        """Write what differs between two versions of a memory, while `writing`.

        All else in the file keeps its bytes.

        Raises:
            NotFound, MalformedMemory, DiskError: as `read_text`, or the file cannot be changed
                without touching more of it.
        """
        old = before.to_dict()
        changes = {key: value for key, value in after.to_dict().items() if old[key] != value}
        if changes:
            self._write(after.id, frontmatter.update(self.read_text(after.id), changes))

    def delete(self, memory_id: str) -> None:
        """Delete a memory's file, while `writing`, even if it cannot be read.

        Raises:
            NotFound: there is none.
            DiskError: the disk refused.
        """
        with self._named_errors(self.path(memory_id)):
            self._file(memory_id).unlink()
            sync_directory(self.directory)

    def _write(self, memory_id: str, text: str) -> None:
        data = text.encode("utf-8", "surrogatepass")
        if len(data) > MAX_BYTES:
            raise InvalidInput("content: the file would have more than 1 MiB")
        self._parse(memory_id, text)
        with self._named_errors(self.path(memory_id)):
            replace(self._file(memory_id), data)
