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

from aiaml_server import Memory, toolsets
from aiaml_server.cli.serving import served
from aiaml_server.format.memory import format as format_of
from aiaml_server.server import greeting
from aiaml_server.server.greeting import Greeting
from aiaml_server.storage.derived import cache_directory, key
from client import PYTHON, SECONDS
from printed import inherited
from test_stdio import INITIALIZE, MODERN, line, tool_call

posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no such files")

GATED = """
import os, sys, time
gate = sys.argv.pop(1)
class Gate:
    def find_spec(self, name, path=None, target=None):
        while name == "aiaml_server.server.protocol" and not os.path.exists(gate):
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
SECRET = b"only this user knows it"


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


def default() -> object:
    """Return what the answers of the default toolset depend on."""
    manifests = toolsets.chosen((), {})
    environ = {"AIAML_ENABLE_SYNC": "false"}
    return served(manifests, [manifest.values(environ) for manifest in manifests])


def note(
    place: Path, *pairs: tuple[str, str], of: object = "aiaml", secret: bytes = SECRET
) -> Greeting:
    """Play a greeting of requests, each with its answer, to its end; return the finished object."""
    known = Greeting(place, secret, of)
    for number, (asked, answer) in enumerate(pairs):
        known.read(asked.encode(), "ping", number)
        known.said(number, answer.encode(), lasting=True)
    known.close(10)
    return known


def answers(place: Path, *asked: str, of: object = "aiaml") -> list[bytes | None]:
    """Return what a fresh start would answer."""
    fresh = Greeting(place, SECRET, of)
    return [fresh.answer(each.encode()) for each in asked]


@pytest.fixture(scope="module", autouse=True)
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give the path of the copy in a cache that no other tests use."""
    place = str(tmp_path_factory.mktemp("cache"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", place)
        patch.setenv("WIN_PD_OVERRIDE_LOCAL_APPDATA", place)
        yield cache_directory() / greeting.NAME


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, copy: Path) -> Path:
    """Give a base with one memory, on which a server was greeted once."""
    base = tmp_path_factory.mktemp("base")
    (base / "files").mkdir()
    memory = Memory.new("claude", "marco", ["x"], "a needle")
    (base / "files" / memory.file_name).write_text(format_of(memory))
    started(base, *HANDSHAKE, PING, THINK)
    assert copy.is_file()
    return base


@pytest.fixture
def base(store: Path, copy: Path) -> Iterator[Path]:
    """Give the same base, and have the copy as it was afterwards."""
    data = copy.read_bytes()
    yield store
    copy.unlink(missing_ok=True)
    copy.write_bytes(data)


# --- a server ----------------------------------------------------------------------------------


def test_the_second_start_answers_before_the_sdk_is_there(base: Path, copy: Path) -> None:
    """The very bytes that the SDK then says itself, each once; what follows is the SDK's alone."""
    copy.rename(base / "aside")
    expected = started(base, *HANDSHAKE, PING, THINK)
    (base / "aside").replace(copy)
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


def test_an_answer_that_is_no_longer_right_is_logged_and_forgotten(base: Path, copy: Path) -> None:
    """The client has had it; what it asks from then on the SDK answers, and the copy goes."""
    copy.unlink()
    old = '{"jsonrpc":"2.0","id":0,"result":{}}'
    note(copy.parent, (HANDSHAKE[0].rstrip("\n"), old), of=default(), secret=key())
    with Started(base, gate=True) as server:
        assert server.ask(HANDSHAKE[0]).decode().rstrip() == old
        server.open_gate()
        assert b"needle" in server.ask(INITIALIZED, THINK)
        rest, log = server.end()
    assert rest == [] and not copy.exists()
    assert log.count("is deleted") == 1 and len(log.splitlines()) == 1


def test_a_damaged_copy_is_as_good_as_none(base: Path, copy: Path) -> None:
    """The SDK answers, and the copy is mended."""
    copy.unlink()
    started(base, *HANDSHAKE, PING, THINK)
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


def test_sixteen_at_once_share_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever writes it; all are answered, and the next one from the copy, on another base."""
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "WIN_PD_OVERRIDE_LOCAL_APPDATA"):
        monkeypatch.setenv(name, str(tmp_path / name))
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
    with Started(tmp_path / "XDG_STATE_HOME", gate=True) as server:
        assert server.ask(HANDSHAKE[0]) in ended[0][0]
        server.open_gate()
        assert server.end() == ([], "")


def test_greeting_serves_the_first_session_of_another_base(base: Path, tmp_path: Path) -> None:
    """Which directory is served changes no answer; nothing is made in it for a greeting."""
    assert base != tmp_path
    with Started(tmp_path, gate=True) as server:
        assert b"serverInfo" in server.ask(HANDSHAKE[0])
        server.open_gate()
        assert server.end() == ([], "")
    assert [each.name for each in tmp_path.iterdir() if not each.name.startswith("gate-")] == []


@posix
@pytest.mark.parametrize("name", ["XDG_CACHE_HOME", "XDG_STATE_HOME"])
def test_greeting_is_not_kept_where_nothing_can_be(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK answers, and what is not ours stays as it is."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "mine").write_text("mine")
    monkeypatch.setenv(name, str(tmp_path / "mine"))
    assert len(started(tmp_path, *HANDSHAKE)) == 2
    assert (tmp_path / "mine").read_text() == "mine" and not (tmp_path / "cache").exists()


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
    first = Greeting(tmp_path, SECRET, "aiaml")
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
        assert Greeting(place, SECRET, "aiaml").known == {}


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


@posix
@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("what", ["copy", "directory"])
def test_greeting_of_another_user_is_ignored(tmp_path: Path, what: str) -> None:
    """Whoever may write there; also where their sum is right."""
    place = tmp_path / "place"
    place.mkdir()
    note(place, ("a", "1"))
    assert answers(place, "a") == [b"1"]
    os.chown(place if what == "directory" else place / greeting.NAME, 65534, 65534)
    assert answers(place, "a") == [None]


def test_greeting_with_the_sum_of_another_secret_is_ignored(tmp_path: Path) -> None:
    """Whoever can look at the installation can make all of it but that."""
    note(tmp_path, ("a", "poisoned"), secret=b"of somebody else")
    assert (tmp_path / greeting.NAME).is_file() and answers(tmp_path, "a") == [None]


@pytest.mark.parametrize(
    "text",
    ["[1,2]", "7", "null", '"text"', '{"a": 1}', '{"a": null}', '{"a": ["b"]}', "[" * 100_000],
    ids=lambda text: text[:9],
)
def test_greeting_of_a_wrong_type_or_depth_is_ignored(tmp_path: Path, text: str) -> None:
    """Even with the right sum: whatever a later version writes."""
    known = Greeting(tmp_path, SECRET, "aiaml")
    data = text.encode()
    (tmp_path / greeting.NAME).write_bytes(known._sum(data).encode() + data)
    assert Greeting(tmp_path, SECRET, "aiaml").known == {}


def test_greeting_larger_than_any_is_ignored(tmp_path: Path) -> None:
    """It is not even read to its end."""
    known = Greeting(tmp_path, SECRET, "aiaml")
    data = json.dumps({"a": "x" * greeting.MOST}).encode()
    (tmp_path / greeting.NAME).write_bytes(known._sum(data).encode() + data)
    assert Greeting(tmp_path, SECRET, "aiaml").known == {}


def test_a_directory_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK answers, as at a first start."""

    def refuse(*_: object) -> int:
        raise PermissionError

    monkeypatch.setattr(greeting, "open_own", refuse)
    note(tmp_path, ("a", "1"))
    assert answers(tmp_path, "a") == [None] and not list(tmp_path.iterdir())
