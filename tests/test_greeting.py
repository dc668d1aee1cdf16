"""A start answers a greeting from what the SDK answered to the same lines before, or waits."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import Self

from aiaml_server import Memory, greeting, toolsets
from aiaml_server.greeting import Greeting
from aiaml_server.memory import format as format_of
from client import PYTHON, SECONDS
from printed import inherited
from test_stdio import INITIALIZE, MODERN, line, tool_call

posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no such files")

GATED = """
import os, sys, time
gate = sys.argv.pop(1)
class Gate:
    def find_spec(self, name, path=None, target=None):
        while name == "aiaml_server.server" and not os.path.exists(gate):
            time.sleep(0.01)
sys.meta_path.insert(0, Gate())
from aiaml_server.cli import main
sys.exit(main([*sys.argv[1:], "serve"]))
"""
"""A server that does not get to import the SDK before there is a certain file."""

INITIALIZED = line({"method": "notifications/initialized"})
LIST = line({"id": 1, "method": "tools/list", "params": {}})
PING = line({"id": 2, "method": "ping"})
THINK = tool_call(9, "think", keywords=["needle"])
HANDSHAKE = [line(INITIALIZE), INITIALIZED, LIST]


def modern(number: int, method: str, **params: Any) -> str:
    """Return a request in the era without a handshake."""
    return line({"id": number, "method": method, "params": {**params, "_meta": MODERN}})


class Started:
    """A server that waits for `open_gate` before it imports the SDK."""

    def __init__(self, base: Path, *words: str, gate: bool = False) -> None:
        self._gate = base / f"gate-{os.urandom(4).hex()}"
        if not gate:
            self.open_gate()
        self.process = subprocess.Popen(
            [PYTHON, "-c", GATED, str(self._gate), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**inherited(), "AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "false"},
        )
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def open_gate(self) -> None:
        """Let it import the SDK."""
        self._gate.touch()

    def send(self, *lines: str) -> None:
        """Send lines."""
        assert self.process.stdin
        self.process.stdin.write("".join(lines).encode())
        self.process.stdin.flush()

    def ask(self, *lines: str) -> bytes:
        """Send lines; return the next that comes."""
        self.send(*lines)
        return self._lines.get(timeout=SECONDS)

    def end(self) -> tuple[list[bytes], str]:
        """Close its input; return what it has still said, and its log. It ends well."""
        assert self.process.stdin and self.process.stderr
        self.process.stdin.close()
        log = self.process.stderr.read().decode()
        assert self.process.wait(SECONDS) == 0
        rest = []
        while each := self._lines.get(timeout=SECONDS):
            rest.append(each)
        return rest, log

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream
            stream.close()

    def _read(self) -> None:
        assert self.process.stdout
        for each in self.process.stdout:
            self._lines.put(each)
        self._lines.put(b"")


def started(base: Path, *lines: str, words: tuple[str, ...] = ()) -> list[bytes]:
    """Start a server, ask all at once, let it end; return the answers, by their ids."""
    with Started(base, *words) as server:
        server.send(*lines)
        answers, log = server.end()
    assert log == ""
    return sorted(answers, key=lambda each: json.loads(each)["id"])


def served(base: Path) -> object:
    """Return what a server of the default toolset on `base` answers by."""
    manifests = toolsets.chosen((), {})
    environ = {"AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "false"}
    return (
        [manifest.name for manifest in manifests],
        [manifest.values(environ) for manifest in manifests],
    )


def note(place: Path, *pairs: tuple[str, str], of: object = "aiaml") -> Greeting:
    """Play a greeting of requests, each with its answer, to its end; return the finished object."""
    known = Greeting(place, of)
    for number, (asked, answer) in enumerate(pairs):
        known.read(asked.encode(), "ping", number)
        known.said(number, answer.encode(), lasting=True)
    known.close(10)
    return known


def answers(place: Path, *asked: str, of: object = "aiaml") -> list[bytes | None]:
    """Return what a fresh start would answer."""
    fresh = Greeting(place, of)
    return [fresh.answer(each.encode()) for each in asked]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a base with one memory, on which a server was greeted once."""
    base = tmp_path_factory.mktemp("base")
    (base / "files").mkdir()
    memory = Memory.new("claude", "marco", ["x"], "a needle")
    (base / "files" / memory.file_name).write_text(format_of(memory))
    started(base, *HANDSHAKE, PING, THINK)
    return base


@pytest.fixture
def base(store: Path) -> Iterator[Path]:
    """Give the same base, and have its copy as it was afterwards."""
    copy = store / ".index" / greeting.NAME
    data = copy.read_bytes()
    yield store
    copy.unlink(missing_ok=True)
    copy.write_bytes(data)


# --- a server ----------------------------------------------------------------------------------


def test_the_second_start_answers_before_the_sdk_is_there(base: Path) -> None:
    """The very bytes that the SDK then says itself, each once; what follows is the SDK's alone."""
    (base / ".index" / greeting.NAME).rename(base / "aside")
    expected = started(base, *HANDSHAKE, PING, THINK)
    (base / "aside").rename(base / ".index" / greeting.NAME)
    with Started(base, gate=True) as server:
        assert server.ask(HANDSHAKE[0]) == expected[0]
        assert server.ask(INITIALIZED, LIST) == expected[1]
        assert server.ask(PING) == expected[2]
        server.send(THINK)
        server.open_gate()
        rest, log = server.end()
    assert (rest, log) == ([expected[3]], "")
    assert b"needle" in rest[0]


def test_since_2026_as_well(base: Path) -> None:
    """Where no handshake decides the era, and where a client shakes hands after all."""
    greet = [modern(1, "server/discover"), modern(2, "tools/list")]
    expected = started(base, *greet)
    again = [modern(1, "server/discover"), line({**INITIALIZE, "id": 2})]
    (discovered, shaken) = started(base, *again)
    assert discovered == expected[0] and shaken != expected[1]
    for lines, answered in ((greet, expected), (again, [discovered, shaken])):
        with Started(base, gate=True) as server:
            assert [server.ask(each) for each in lines] == answered
            server.open_gate()
            assert server.end() == ([], "")


def test_another_line_waits_for_the_sdk_and_all_behind_it(base: Path) -> None:
    """In the order that they came in; the next start knows them too."""
    other = line({"id": 7, "method": "ping"})
    with Started(base, gate=True) as server:
        server.ask(HANDSHAKE[0])
        server.send(INITIALIZED, other, LIST)
        server.open_gate()
        rest, log = server.end()
    assert ({json.loads(each)["id"] for each in rest}, log) == ({1, 7}, "")
    with Started(base, gate=True) as server:
        server.ask(HANDSHAKE[0])
        assert {server.ask(INITIALIZED, other), server.ask(LIST)} == set(rest)
        server.open_gate()
        assert server.end() == ([], "")


def test_a_request_that_is_cancelled_is_not_answered_twice(base: Path) -> None:
    """It has its answer when the client gives it up."""
    cancel = line({"method": "notifications/cancelled", "params": {"requestId": 1}})
    with Started(base, gate=True) as server:
        server.ask(HANDSHAKE[0])
        server.ask(INITIALIZED, LIST)
        server.send(cancel, THINK)
        server.open_gate()
        (answer,), log = server.end()
    assert (json.loads(answer)["id"], log) == (9, "")


def test_a_client_that_leaves_at_once_has_its_answers(base: Path) -> None:
    """The end of input comes before the SDK; nothing is said twice, nothing is left in the log."""
    with Started(base, gate=True) as server:
        server.send(*HANDSHAKE)
        assert server.process.stdin
        server.process.stdin.close()
        server.open_gate()
        rest, log = server.end()
    assert [json.loads(each)["id"] for each in rest] == [0, 1]
    assert log == ""


def test_an_answer_that_is_no_longer_right_is_logged_and_forgotten(base: Path) -> None:
    """The client has had it; what it asks from then on the SDK answers, and the copy goes."""
    copy = base / ".index" / greeting.NAME
    copy.unlink()
    old = '{"jsonrpc":"2.0","id":0,"result":{}}'
    note(copy.parent, (HANDSHAKE[0].rstrip("\n"), old), of=served(base))
    with Started(base, gate=True) as server:
        assert server.ask(HANDSHAKE[0]).decode().rstrip() == old
        server.open_gate()
        assert b"needle" in server.ask(INITIALIZED, THINK)
        rest, log = server.end()
    assert rest == [] and not copy.exists()
    assert log.count("is deleted") == 1 and len(log.splitlines()) == 1


def test_a_damaged_copy_is_as_good_as_none(base: Path) -> None:
    """The SDK answers, and the copy is mended."""
    copy = base / ".index" / greeting.NAME
    whole = copy.read_bytes()
    copy.write_bytes(whole[:-7])
    assert len(started(base, *HANDSHAKE, PING, THINK)) == 4
    assert copy.read_bytes() == whole


def test_each_list_of_toolsets_has_its_own_answers(base: Path) -> None:
    """In one copy."""
    both = ("--toolset", "aiaml", "--toolset", "sessions")
    expected = started(base, *HANDSHAKE, words=both)
    assert b"start_session" in expected[1]
    for words, found in ((both, True), ((), False)):
        with Started(base, *words, gate=True) as server:
            server.ask(HANDSHAKE[0])
            assert (b"start_session" in server.ask(INITIALIZED, LIST)) == found
            server.open_gate()
            assert server.end() == ([], "")


def test_sixteen_at_once_share_a_copy(store: Path, tmp_path: Path) -> None:
    """Whoever writes it; all are answered, and the next one from the copy."""
    shutil.copytree(store / "files", tmp_path / "files")
    servers = [Started(tmp_path) for _ in range(16)]
    try:
        for server in servers:
            server.send(*HANDSHAKE, THINK)
        ended = [server.end() for server in servers]
    finally:
        for server in servers:
            server.__exit__()
    assert all(len(lines) == 3 and log == "" for lines, log in ended)
    started(tmp_path, *HANDSHAKE)  # should the last two have met while writing
    with Started(tmp_path, gate=True) as server:
        assert server.ask(HANDSHAKE[0]) in ended[0][0]
        server.open_gate()
        assert server.end() == ([], "")


@posix
def test_a_toolset_without_a_base_keeps_it_in_its_own_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If there is one, and not where the person has put something else."""
    monkeypatch.setenv("HOME", str(tmp_path))
    words = ("--toolset", "semantic")
    assert len(started(tmp_path, *HANDSHAKE, words=words)) == 2
    home = tmp_path / ".memory"
    assert not home.exists()
    home.mkdir()
    first = started(tmp_path, *HANDSHAKE, words=words)
    assert [each.name for each in home.iterdir()] == [greeting.NAME]
    with Started(tmp_path, *words, gate=True) as server:
        assert server.ask(HANDSHAKE[0]) == first[0]
        assert server.ask(*HANDSHAKE[1:]) == first[1] and b"store_memory" in first[1]
        server.open_gate()
        assert server.end() == ([], "")
    shutil.rmtree(home)
    home.write_text("mine")
    assert len(started(tmp_path, *HANDSHAKE, words=words)) == 2 and home.read_text() == "mine"


@pytest.mark.parametrize("kind", ["no index", "not ours"])
def test_where_nothing_can_be_kept_nothing_is(kind: str, tmp_path: Path) -> None:
    """A directory that was never used stays so; what is not ours stays as it is."""
    if kind == "not ours":
        (tmp_path / ".index").write_text("mine")
    assert len(started(tmp_path, *HANDSHAKE)) == 2
    assert [each.name for each in tmp_path.iterdir() if not each.name.startswith("gate-")] == (
        [".index"] if kind == "not ours" else []
    )


@pytest.mark.parametrize("module", ["asyncio", "click", "mcp", "pydantic", "anyio", "sqlite3"])
def test_nothing_slow_is_imported_before_the_greeting(module: str) -> None:
    """An event loop and the command line's parser take longer than all that it needs."""
    script = f"import sys, aiaml_server.cli.serving; print({module!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.strip() == b"False"


# --- the copy ------------------------------------------------------------------------------------


def test_what_was_answered_is_known_in_the_same_order_alone(tmp_path: Path) -> None:
    """A line is known by all before it."""
    note(tmp_path, ("a", "1"), ("b", "2"))
    assert answers(tmp_path, "a", "b") == [b"1", b"2"]
    assert answers(tmp_path, "b", "a") == [None, None]
    assert answers(tmp_path, "a", "b", of="other toolsets") == [None, None]


def test_what_is_no_greeting_ends_it(tmp_path: Path) -> None:
    """What comes behind is not kept; nor is an error that may not come again."""
    first = Greeting(tmp_path, "aiaml")
    for number, (method, lasting) in enumerate(
        [("initialize", True), ("ping", False), ("tools/call", True), ("ping", True)]
    ):
        first.read(b"%d" % number, method, number)
        first.said(number, b"answer", lasting=lasting)
    first.close(10)
    assert answers(tmp_path, "0", "1", "2", "3") == [b"answer", None, None, None]


def test_more_than_is_kept_drops_what_was_before(tmp_path: Path) -> None:
    """A client that never sends the same twice does not fill the disk."""
    for number in range(12):
        note(tmp_path, (f"line {number}", "x" * (greeting.MOST // 10)))
        assert (tmp_path / greeting.NAME).stat().st_size < greeting.MOST
    assert answers(tmp_path, "line 0") == [None]
    assert answers(tmp_path, "line 11") != [None]


def test_every_torn_copy_is_as_good_as_none(tmp_path: Path) -> None:
    """Wherever the writing was interrupted."""
    note(tmp_path, ("a", "1"))
    copy = tmp_path / greeting.NAME
    whole = copy.read_bytes()
    for size in range(len(whole)):
        copy.write_bytes(whole[:size])
        assert answers(tmp_path, "a") == [None]
    copy.write_bytes(whole)
    assert answers(tmp_path, "a") == [b"1"]


@given(st.binary(max_size=300))
def test_any_bytes_are_as_good_as_none(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    """Also those that look like a copy."""
    place = tmp_path_factory.mktemp("place")
    for each in (data, data.hex().encode(), b"0" * 64 + b"{}", b"0" * 64 + data):
        (place / greeting.NAME).write_bytes(each)
        assert Greeting(place, "aiaml").known == {}


def test_a_copy_from_elsewhere_is_as_good_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of another machine's installation, of another version, of the same one before it changed."""
    installed = tmp_path / "package"
    installed.mkdir()
    module = installed / "module.py"
    module.write_text("one")
    monkeypatch.setattr(greeting, "__file__", str(module))
    place = tmp_path / "place"
    place.mkdir()
    note(place, ("a", "1"))
    assert answers(place, "a") == [b"1"]
    with monkeypatch.context() as patch:
        patch.setattr(greeting, "__version__", "0.0.0")
        assert answers(place, "a") == [None]
    with monkeypatch.context() as patch:
        patch.setattr(sys, "version", "4.0.0")
        assert answers(place, "a") == [None]
    module.write_text("two")
    assert answers(place, "a") == [None]
    shutil.copytree(installed, tmp_path / "copy")  # with the same times of modification
    monkeypatch.setattr(greeting, "__file__", str(tmp_path / "copy" / "module.py"))
    note(place, ("a", "2"))
    monkeypatch.setattr(greeting, "__file__", str(module))
    assert answers(place, "a") == [None]


@posix
@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
def test_what_is_not_ours_is_neither_read_nor_replaced(kind: str, tmp_path: Path) -> None:
    """It may have been planted under our name."""
    note(tmp_path, ("a", "1"))
    copy, aside = tmp_path / greeting.NAME, tmp_path / "aside"
    copy.rename(aside)
    if kind == "link":
        copy.symlink_to(aside)
    elif kind == "pipe":
        os.mkfifo(copy)
    else:
        copy.mkdir()
    before = aside.read_bytes()
    assert answers(tmp_path, "a") == [None]
    note(tmp_path, ("a", "3"))
    assert aside.read_bytes() == before
    assert not copy.is_file() or copy.is_symlink()


def test_a_directory_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK answers, as at a first start."""

    def refuse(*_: object) -> int:
        raise PermissionError

    monkeypatch.setattr(greeting, "open_own", refuse)
    note(tmp_path, ("a", "1"))
    assert answers(tmp_path, "a") == [None] and not list(tmp_path.iterdir())
