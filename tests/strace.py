"""System calls seen, or made to fail, by the strace program (a package of every Linux system)."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

_OPTIONS = ("-f", "-y", "-s", "99999", "-o")


def _missing() -> str:
    """Return why strace cannot be used here, or nothing."""
    if sys.platform != "linux":
        return "strace exists on Linux only"
    if not shutil.which("strace"):
        return "strace is not installed"
    probe = subprocess.run(
        [*following(Path("/dev/null")), "true"], capture_output=True, text=True, check=False
    )
    return f"strace cannot trace here: {probe.stderr.strip()}" if probe.returncode else ""


def following(log: Path, *options: str) -> tuple[str, ...]:
    """Return the words that run a command, all its threads and children under strace."""
    return ("strace", "--seccomp-bpf", *_OPTIONS, str(log), *options)


@contextmanager
def attached(pid: int, log: Path, *options: str) -> Iterator[None]:
    """Trace a process that runs already, inside the `with`."""
    command = ["strace", *_OPTIONS, str(log), *options, "-p", str(pid)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr
        line = tracer.stderr.readline()
        if "attached" not in line:
            pytest.skip(f"strace may not attach here: {line.strip()}")
        try:
            yield
        finally:
            tracer.terminate()


needed = pytest.mark.skipif(bool(_missing()), reason=_missing())


@dataclass(frozen=True)
class Call:
    """One system call.

    Attributes:
        name: such as `fsync`.
        text: arguments and result, with the path of each descriptor.
        begin: the place of its entry in the log.
        end: the place of its exit.
    """

    name: str
    text: str
    begin: int
    end: int


_ENTRY = re.compile(r"(\d+) +(?:(\w+)\((.*)|<\.\.\. (\w+) resumed>(.*))")
_UNFINISHED = " <unfinished ...>"


def calls(log: Path) -> list[Call]:
    """Read what strace wrote, in the order in which the calls were entered."""
    found: list[Call] = []
    entered: dict[str, Call] = {}  # by thread
    for place, line in enumerate(log.read_text(errors="replace").splitlines()):
        match = _ENTRY.match(line)
        if not match:
            continue
        thread, name, text, resumed, rest = match.groups()
        if name and text.endswith(_UNFINISHED):
            entered[thread] = Call(name, text.removesuffix(_UNFINISHED), place, sys.maxsize)
        elif name:
            found.append(Call(name, text, place, place))
        elif thread in entered:
            begun = entered.pop(thread)
            found.append(Call(resumed, begun.text + rest, begun.begin, place))
    return sorted([*found, *entered.values()], key=lambda call: call.begin)
