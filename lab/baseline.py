"""A memory server of plain files: the yardstick of the laboratory, and what its faults are put in.

It stands on the standard library alone and is run as a file. LAB_STORE is where the memories are,
LAB_REMOTE a folder to exchange them with, LAB_FAULT one of the faults that `mutations.py` lists:
each is looked for by `fault(…)` below, where a sound server does what it should.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

STORE = Path(os.environ["LAB_STORE"])
REMOTE = os.environ.get("LAB_REMOTE")
FAULT = os.environ.get("LAB_FAULT", "")
PIECE = 10_000
LARGEST = 1_000_000
PAUSE = 0.1  # seconds between two looks at the remote
_cache: dict[str, tuple[tuple[int, int, int], str]] = {}
_leaked: list[Any] = []
_out = threading.Lock()


class WrongError(Exception):
    """What was asked for cannot be done; the text says why."""


def fault(name: str) -> bool:
    """Whether this server has that fault."""
    return name == FAULT


# --- the files ------------------------------------------------------------------------------------


def store(text: Any) -> str:
    """Write a memory and return its id, once both its bytes and its name are on the disk."""
    if not isinstance(text, str) or not 0 < len(text) <= LARGEST:
        raise WrongError(f"text must be 1 to {LARGEST} characters")
    data = text.encode()
    STORE.mkdir(parents=True, exist_ok=True)
    sync(STORE.parent)
    with locked():
        name = free_name()
        try:
            write(STORE / f"{name}.txt", data)
        except OSError as error:
            if not fault("error swallowed"):
                raise WrongError(f"not stored: {error}") from None
    return name


def free_name() -> str:
    """Return a name that no memory has; who calls it holds the lock."""
    machine = STORE / "machine"
    if not machine.exists():
        write(machine, uuid.uuid4().hex[:8].encode())
    mine = machine.read_text()
    taken = [int(path.stem.split("-")[1]) for path in STORE.glob(f"{mine}-*.txt")]
    number = max(taken, default=0) + 1
    if fault("no lock"):
        time.sleep(0.002)
    return f"{mine}-{number:06d}"


@contextmanager
def locked() -> Iterator[None]:
    """Let one process at a time in."""
    with (STORE / "lock").open("w") as stream:
        if not fault("no lock"):
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def write(path: Path, data: bytes) -> None:
    """Write a file whole: aside, to the disk, then under its name, and that to the disk."""
    aside = path.with_suffix(".tmp")
    early = fault("name before content")
    with aside.open("wb", buffering=0) as stream:
        try:
            if early:
                aside.replace(path)
                sync(path.parent)
            for start in range(0, len(data), PIECE):
                put(stream.fileno(), data[start : start + PIECE])
            if not fault("no sync"):
                os.fsync(stream.fileno())
        except OSError:
            aside.unlink(missing_ok=True)
            raise
        if fault("descriptor left open"):
            _leaked.append(os.dup(stream.fileno()))
    if not early:
        aside.replace(path)
    sync(path.parent)


def put(descriptor: int, data: bytes) -> None:
    """Write all of these bytes, however few the system takes at once."""
    while data:
        taken = os.write(descriptor, data)
        data = data[taken:]
        if fault("short write believed"):
            return


def sync(directory: Path) -> None:
    """Bring a directory's names to the disk."""
    if fault("no sync") or fault("name not synced"):
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(name: Any) -> str:
    """Return a memory."""
    if not isinstance(name, str):
        raise WrongError("id must be a text")
    if not fault("id unchecked") and not re.fullmatch(r"[0-9a-f]{8}-\d+", name):
        raise WrongError(f"there is no memory {name[:40]!r}")
    path = Path(os.path.normpath(STORE / name))
    with suppress(OSError, ValueError):
        return (path if path.is_file() else STORE / f"{name}.txt").read_text()
    raise WrongError(f"there is no memory {name[:40]!r}")


def search(words: Any) -> list[dict[str, str]]:
    """Return the memories that have most of the words."""
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise WrongError("words must be a list of texts")
    wanted = {word.lower() for word in words}
    scores: dict[str, int] = {}
    for name, text in everything().items():
        scores[name] = len(wanted & set(re.findall(r"\w+", text.lower())))
    best = sorted((name for name in scores if scores[name]), key=lambda name: -scores[name])
    return [{"id": name, "text": _cache[name][1]} for name in best[:25]]


def everything() -> dict[str, str]:
    """Return all memories; what has not changed since is not read again."""
    if fault("cache not compared") and _cache:
        return {name: text for name, (_, text) in _cache.items()}
    found = {}
    for path in STORE.glob("*.txt"):
        with suppress(OSError, UnicodeDecodeError):
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            if path.stem not in _cache or _cache[path.stem][0] != stamp:
                _cache[path.stem] = (stamp, path.read_text())
            found[path.stem] = _cache[path.stem][1]
    return found


# --- another machine ------------------------------------------------------------------------------


def exchange(remote: Path) -> None:
    """Take what is new there, and bring there what is new here, for ever."""
    sent: set[str] = set()
    while True:
        with suppress(OSError):
            STORE.mkdir(parents=True, exist_ok=True)
            for path in remote.glob("*-*.txt"):
                if not (STORE / path.name).exists():
                    write(STORE / path.name, path.read_bytes())
        for path in STORE.glob("*-*.txt"):
            if path.name not in sent and not (remote / path.name).exists():
                try:
                    write(remote / path.name, path.read_bytes())
                except OSError:
                    if not fault("push result ignored"):
                        continue
            sent.add(path.name)
        time.sleep(PAUSE)


# --- the protocol ---------------------------------------------------------------------------------

TEXT = {"type": "string"}
TOOLS: dict[str, tuple[str, dict[str, Any], Callable[..., Any]]] = {
    "store": ("Store a text.", {"text": TEXT}, lambda text=None: {"id": store(text)}),
    "read": ("Read a memory.", {"id": TEXT}, lambda id=None: {"text": read(id)}),  # noqa: A006
    "search": (
        "Find memories by words.",
        {"words": {"type": "array", "items": TEXT}},
        lambda words=None: {"memories": search(words)},
    ),
}


def answered(method: Any, params: Any) -> Any:
    """Return the result of a request; `KeyError` where there is no such method."""
    if method == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "files", "version": "1"},
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {
            "tools": [
                {"name": name, "description": text, "inputSchema": schema(given)}
                for name, (text, given, _) in TOOLS.items()
            ]
        }
    if method == "tools/call":
        return called(params)
    raise KeyError(method)


def schema(given: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's arguments."""
    return {"type": "object", "properties": given, "required": list(given)}


def called(params: Any) -> dict[str, Any]:
    """Return the result of a call."""
    try:
        _, _, call = TOOLS[params["name"]]
        text, wrong = json.dumps(call(**params.get("arguments", {}))), False
    except (WrongError, KeyError, TypeError, AttributeError, ValueError, OSError) as error:
        text, wrong = f"{type(error).__name__}: {error}", True
    return {"content": [{"type": "text", "text": text}], "isError": wrong}


def respond(line: bytes) -> None:
    """Answer a line, where it wants an answer."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        say({"id": None, "error": {"code": -32700, "message": "no JSON"}})
        return
    if not isinstance(message, dict) or "method" not in message:
        say({"id": None, "error": {"code": -32600, "message": "no request"}})
        return
    if "id" not in message:
        return
    params = message.get("params")
    called_first = isinstance(params, dict) and params.get("name") == "store"
    if fault("answer before write") and called_first:
        STORE.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"id": free_name()})
        result = {"content": [{"type": "text", "text": text}], "isError": False}
        say({"id": message["id"], "result": result})
        called(params)
        return
    try:
        say({"id": message["id"], "result": answered(message["method"], params)})
    except KeyError:
        say({"id": message["id"], "error": {"code": -32601, "message": "no such method"}})


def say(message: dict[str, Any]) -> None:
    """Write an answer, in one call, so that it is out whole or not at all."""
    if fault("words on standard output"):
        os.write(1, b"answering\n")
    data = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
    with _out:
        while data:
            data = data[os.write(1, data) :]


def main() -> None:
    """Answer lines until there are none."""
    if REMOTE:
        threading.Thread(target=exchange, args=(Path(REMOTE),), daemon=True).start()
    for line in sys.stdin.buffer:
        respond(line)


if __name__ == "__main__":
    main()
