"""System calls seen, or made to fail, by strace (a package of every Linux system)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CHANGES = (
    "write,writev,pwrite64,pwritev,openat,open,creat,rename,renameat,renameat2,link,linkat,"
    "unlink,unlinkat,mkdir,mkdirat,rmdir,ftruncate,truncate,fsync,fdatasync,syncfs,sync,"
    "fallocate,copy_file_range"
)
"""The calls by which a store changes."""


def traced(names: str) -> str:
    """Return the filter for these calls; those that this processor lacks do not matter."""
    return "trace=" + ",".join(f"?{name}" for name in names.split(","))


def words(log: Path, names: str) -> list[str]:
    """Return the words that run a command and all its children under strace, every byte noted."""
    options = ["-f", "-y", "-s", "100000000", "-o", str(log), "-e", traced(names)]
    return ["strace", "--seccomp-bpf", *options, "-e", "signal=none"]


@contextmanager
def attached(pid: int, log: Path, names: str, inject: str) -> Iterator[None]:
    """Trace a process that runs already, inside the `with`.

    Raises:
        SystemExit: the system does not allow it.
    """
    options = ["-f", "-y", "-o", str(log), "-e", traced(names), "-e", inject]
    with subprocess.Popen(
        ["strace", *options, "-p", str(pid)], stderr=subprocess.PIPE, text=True
    ) as tracer:
        assert tracer.stderr
        line = tracer.stderr.readline()
        if "attached" not in line:
            tracer.kill()
            raise SystemExit(f"strace may not attach: {line.strip()}")
        try:
            yield
        finally:
            tracer.terminate()
            try:
                tracer.wait(2)
            except subprocess.TimeoutExpired:  # a process that it had killed it may wait for
                tracer.kill()


@dataclass(frozen=True)
class Call:
    """One system call.

    Attributes:
        thread: which thread called.
        name: such as `fsync`.
        text: arguments and result, with the path of each descriptor.
        end: the line of the log on which it was done.
    """

    thread: str
    name: str
    text: str
    end: int

    @property
    def result(self) -> int:
        """Return what it returned; -1 where it failed or never did."""
        match = re.search(r"\) += (-?\d+)[^)]*$", self.text)
        return int(match[1]) if match else -1

    @property
    def strings(self) -> list[bytes]:
        """Return the texts among its arguments."""
        return [_bytes(each) for each in re.findall(r'"((?:[^"\\]|\\.)*)"', self.text)]

    @property
    def descriptor(self) -> tuple[int, str]:
        """Return its first descriptor, and the path of that."""
        match = re.match(r"(\d+)<(.*?)>", self.text)
        return (int(match[1]), match[2]) if match else (-1, "")


def _bytes(text: str) -> bytes:
    return text.encode("latin-1", "replace").decode("unicode_escape").encode("latin-1", "replace")


_ENTRY = re.compile(r"(\d+) +(?:(\w+)\((.*)|<\.\.\. (\w+) resumed>(.*))", re.DOTALL)
_UNFINISHED = " <unfinished ...>"


def calls(log: Path) -> list[Call]:
    """Read what strace wrote, in the order in which the calls were done."""
    found: list[Call] = []
    entered: dict[str, str] = {}  # what each thread is in the middle of
    with log.open(encoding="latin-1", newline="\n") as lines:
        for place, line in enumerate(lines):
            match = _ENTRY.match(line.rstrip("\n"))
            if not match:
                continue
            thread, name, text, resumed, rest = match.groups()
            if name and text.endswith(_UNFINISHED):
                entered[thread] = text.removesuffix(_UNFINISHED)
            elif name:
                found.append(Call(thread, name, text, place))
            elif thread in entered:
                found.append(Call(thread, resumed, entered.pop(thread) + rest, place))
    return found
