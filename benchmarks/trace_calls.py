"""System calls, recorded or made to fail by strace, which every Linux distribution has."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CHANGES = (
    "write,writev,pwrite64,pwritev,lseek,openat,open,creat,rename,renameat,renameat2,link,linkat,"
    "unlink,unlinkat,mkdir,mkdirat,rmdir,ftruncate,truncate,fsync,fdatasync,syncfs,sync,"
    "fallocate,copy_file_range"
)
"""The calls by which a store changes files."""


def trace_filter(names: str) -> str:
    """Return strace's filter for some calls; those that this processor lacks are ignored."""
    return "trace=" + ",".join(f"?{name}" for name in names.split(","))


def recording(log: Path) -> list[str]:
    """Return the words before a command that record its changes and those of its children."""
    options = ["-f", "-y", "-s", "100000000", "-o", str(log), "-e", trace_filter(CHANGES)]
    return ["strace", "--seccomp-bpf", *options, "-e", "signal=none"]


@contextmanager
def injected_error(pid: int, log: Path, name: str, error: str) -> Iterator[None]:
    """Let calls of a running process fail, inside the `with`.

    Raises:
        SystemExit: the system does not allow it.
    """
    options = ["-f", "-y", "-o", str(log), "-e", trace_filter(name)]
    command = ["strace", *options, "-e", f"inject=?{name}:{error}", "-p", str(pid)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr
        line = tracer.stderr.readline()
        if "attached" not in line:
            tracer.kill()
            raise SystemExit(f"strace cannot attach: {line.strip()}")
        try:
            yield
        finally:
            tracer.terminate()
            try:
                tracer.wait(2)
            except subprocess.TimeoutExpired:  # it may wait for a process that was killed
                tracer.kill()


@dataclass(frozen=True)
class Call:
    """One system call.

    Attributes:
        name: such as `fsync`.
        text: arguments and result, with the path of each descriptor.
    """

    name: str
    text: str

    @property
    def result(self) -> int:
        """Return the result; -1 if the call failed or did not return."""
        match = re.search(r"\) += (-?\d+)[^)]*$", self.text)
        return int(match[1]) if match else -1

    @property
    def strings(self) -> list[bytes]:
        """Return the texts among the arguments."""
        return [
            text.encode("latin-1", "replace").decode("unicode_escape").encode("latin-1", "replace")
            for text in re.findall(r'"((?:[^"\\]|\\.)*)"', self.text)
        ]

    @property
    def paths(self) -> list[str]:
        """Return the texts as absolute paths."""
        folder = re.search(r"<(.*?)>", self.text)
        base = Path(folder[1] if folder else "/")
        return [str(base / text.decode(errors="replace")) for text in self.strings]

    @property
    def descriptor(self) -> tuple[int, str]:
        """Return the first descriptor, and its path."""
        match = re.match(r"(\d+)<(.*?)>", self.text)
        return (int(match[1]), match[2]) if match else (-1, "")


_ENTRY = re.compile(r"(\d+) +(?:(\w+)\((.*)|<\.\.\. (\w+) resumed>(.*))", re.DOTALL)
_UNFINISHED = " <unfinished ...>"


def read_calls(log: Path) -> list[Call]:
    """Read what strace recorded, in the order in which the calls returned."""
    found: list[Call] = []
    entered: dict[str, str] = {}  # the unfinished call of each thread
    with log.open(encoding="latin-1", newline="\n") as lines:
        for line in lines:
            match = _ENTRY.match(line.rstrip("\n"))
            if not match:
                continue
            thread, name, text, resumed, rest = match.groups()
            if name and text.endswith(_UNFINISHED):
                entered[thread] = text.removesuffix(_UNFINISHED)
            elif name:
                found.append(Call(name, text))
            elif thread in entered:
                found.append(Call(resumed, entered.pop(thread) + rest))
    return found
