"""What a stranger can make of a database of `semantic`, and what its server takes then."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import apsw
from typing_extensions import Self

SUPER = bytes.fromhex("d9d505f920a163d7")
"""What a journal begins with, and ends with where it names a super-journal."""
PAGE = 4096


def naming_journal(database: Path, victim: str) -> bytes:
    """Return a journal that SQLite rolls back, and that names a file as its super-journal.

    The format is that of https://www.sqlite.org/fileformat2.html#the_rollback_journal: a header,
    no page, and pager.c's trailer: the page of the lock, the name, its length, the sum of its
    bytes, and the magic.
    """
    pages = max(database.stat().st_size // PAGE, 1)
    header = SUPER + struct.pack(">IIIII", 0, 0, pages, 512, PAGE)
    name = os.fsencode(victim)
    lock_page = 2**30 // PAGE + 1
    trailer = struct.pack(">I", lock_page) + name
    trailer += struct.pack(">II", len(name), sum(name) % 2**32) + SUPER
    return header.ljust(512, b"\0") + trailer


def deletes(library: str, directory: Path, python: str = sys.executable) -> bool:
    """Say whether a library's SQLite deletes what such a journal names: `sqlite3` or `apsw`."""
    victim, database = directory / "victim", directory / "probe"
    victim.write_bytes(b"precious")
    sql = apsw.Connection(str(database))
    sql.execute("CREATE TABLE probe (a)")
    sql.close()
    (directory / "probe-journal").write_bytes(naming_journal(database, str(victim)))
    opening = "apsw.Connection" if library == "apsw" else "sqlite3.connect"
    reading = "execute('SELECT * FROM probe')"
    script = f"import sys, {library}; {opening}(sys.argv[1]).{reading}"
    subprocess.run([python, "-c", script, str(database)], check=True)
    return not victim.exists()


class Server:
    """A real server with the toolset `semantic`, as a client starts it in a project."""

    def __init__(self, project: Path, environ: Mapping[str, str]) -> None:
        """Start it, and see it ready."""
        command = [sys.executable, "-m", "aiaml_server", "serve", "--toolset", "semantic"]
        self._process = subprocess.Popen(
            command, cwd=project, env=dict(environ), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._number = 0
        about = {"protocolVersion": "2025-06-18", "capabilities": {},
                 "clientInfo": {"name": "test", "version": "1"}}  # fmt: skip
        self._ask("initialize", about)
        self._say({"method": "notifications/initialized"})

    def _say(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()

    def _ask(self, method: str, params: Mapping[str, Any]) -> Any:
        self._number += 1
        self._say({"id": self._number, "method": method, "params": params})
        assert self._process.stdout
        while True:
            said = json.loads(self._process.stdout.readline())
            if said.get("id") == self._number:
                return said["result"]

    def call(self, tool: str, **given: Any) -> Any:
        """Call a tool; return what it answers."""
        return self._ask("tools/call", {"name": tool, "arguments": given})["structuredContent"]

    def peak(self) -> int:
        """Return the most memory that it had so far, in MB (of Linux's /proc)."""
        status = Path(f"/proc/{self._process.pid}/status").read_text("ascii")
        (line,) = [each for each in status.splitlines() if each.startswith("VmHWM:")]
        return int(line.split()[1]) // 1024

    def processor(self) -> float:
        """Return the seconds of processor that it took so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text("ascii").rpartition(")")[2]
        user, system = fields.split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> int:
        """Leave it as clients do; return its exit code."""
        self._process.communicate(timeout=30)
        return self._process.returncode
