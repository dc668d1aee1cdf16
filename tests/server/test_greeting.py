"""A start answers a greeting from a copy of what the SDK answers to it, or waits for the SDK."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_stdio import INITIALIZE, MODERN, line, tool_call
from typing_extensions import Self

from aiaml_server import Memory
from aiaml_server.format.memory import format as format_of
from aiaml_server.identity import cache_directory
from aiaml_server.server import greeting
from aiaml_server.server.greeting import LISTS, Course, Greeting
from aiaml_server.server.protocol import Served
from aiaml_server.storage.derived import key
from aiaml_server.toolset import Toolset
from aiaml_server.toolsets import OWN, manifest
from client import PYTHON, SECONDS
from printed import inherited
from waiting import wait_until

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
EMPTY: Mapping[str, str] = {}
SECRET = b"only this user knows it"
HELLO: Any = INITIALIZE["params"]
VERSION = HELLO["protocolVersion"]


def modern(number: int, method: str, **params: Any) -> str:
    """Return a request in the era without a handshake."""
    return line({"id": number, "method": method, "params": {**params, "_meta": MODERN}})


class Started:
    """A server that waits for `open_gate` before it imports the SDK."""

    def __init__(
        self, base: Path, *words: str, gate: bool = False, environ: Mapping[str, str] = {}
    ) -> None:
        self._gate = base / f"gate-{os.urandom(4).hex()}"
        if not gate:
            self.open_gate()
        self.process = subprocess.Popen(
            [PYTHON, "-c", GATED, str(self._gate), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={
                **inherited(),
                "AIAML_MEMORY_DIR": str(base),
                "AIAML_ENABLE_SYNC": "false",
                **environ,
            },
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


def started(
    base: Path, *lines: str, words: tuple[str, ...] = (), environ: Mapping[str, str] = {}
) -> list[bytes]:
    """Start a server, ask all at once, let it end; return the answers, by their ids."""
    with Started(base, *words, environ=environ) as server:
        server.send(*lines)
        answers, log = server.end()
    assert log == ""
    return sorted(answers, key=lambda each: json.loads(each)["id"])


def cold(place: Path) -> dict[str, str]:
    """Return the variables of a person who has no copy."""
    return {"XDG_CACHE_HOME": str(place), "WIN_PD_OVERRIDE_LOCAL_APPDATA": str(place)}


def kept(place: Path, answers: dict[str, str], secret: bytes = SECRET) -> Path:
    """Keep a copy in a directory; return its path."""
    copy = Greeting(place, secret, ["aiaml"])
    copy.keep(answers)
    return copy.path


def known(place: Path, served: tuple[str, ...] = ("aiaml",)) -> dict[str, str]:
    """Return the answers that a fresh start would find."""
    return Greeting(place, SECRET, served).known


@pytest.fixture(scope="module", autouse=True)
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give the path of the copy in a cache that no other tests use."""
    place = str(tmp_path_factory.mktemp("cache"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in cold(Path(place)).items():
            patch.setenv(name, value)
        made("aiaml")
        yield Greeting(cache_directory(), key(), ["aiaml"]).path


def made(*names: str) -> None:
    """Make the copy for these toolsets."""
    words = [sys.executable, "-m", "aiaml_server.cli.copying", *names]
    subprocess.run(words, check=True, env=inherited(), timeout=SECONDS)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a base with one memory."""
    base = tmp_path_factory.mktemp("base")
    (base / "files").mkdir()
    memory = Memory.new("claude", "marco", ["x"], "a needle")
    (base / "files" / memory.file_name).write_text(format_of(memory))
    return base


@pytest.fixture
def base(store: Path, copy: Path) -> Iterator[Path]:
    """Give the same base, and have the copy as it was afterwards."""
    data = copy.read_bytes()
    yield store
    copy.unlink(missing_ok=True)
    copy.write_bytes(data)


# --- a server ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_start_answers_before_the_sdk_is_there(base: Path, tmp_path: Path) -> None:
    """The very bytes that the SDK then says itself, each once; what follows is the SDK's alone."""
    expected = started(base, *HANDSHAKE, PING, THINK, environ=cold(tmp_path))
    with Started(base, gate=True) as server:
        assert server.ask(HANDSHAKE[0]) == expected[0]
        assert server.ask(INITIALIZED, LIST) == expected[1]
        assert server.ask(PING) == expected[2]
        server.send(THINK)
        server.open_gate()
        rest, log = server.end()
    assert (rest, log) == ([expected[3]], "")
    assert b"needle" in rest[0]


@pytest.mark.slow
def test_since_2026_as_well(base: Path, tmp_path: Path) -> None:
    """Where no handshake decides the era, and where a client shakes hands after all."""
    elsewhere = cold(tmp_path)
    greet = [modern(1, "server/discover"), modern(2, "tools/list")]
    expected = started(base, *greet, environ=elsewhere)
    again = [modern(1, "server/discover"), line({**INITIALIZE, "id": 2})]
    (discovered, shaken) = started(base, *again, environ=elsewhere)
    assert discovered == expected[0] and shaken != expected[1]
    for lines, answered in ((greet, expected), (again, [discovered, shaken])):
        with Started(base, gate=True) as server:
            assert [server.ask(each) for each in lines] == answered
            server.open_gate()
            assert server.end() == ([], "")


def test_another_line_waits_for_the_sdk_and_all_behind_it(base: Path) -> None:
    """In the order that they came in."""
    other = line({"id": 7, "method": "no/such/method"})
    with Started(base, gate=True) as server:
        server.ask(HANDSHAKE[0])
        server.send(INITIALIZED, other, LIST)
        server.open_gate()
        rest, log = server.end()
    assert ({json.loads(each)["id"] for each in rest}, log) == ({1, 7}, "")


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


def test_a_client_that_is_only_greeted_is_not_waited_for(base: Path) -> None:
    """What was answered from the copy needs no SDK: the process ends with its client."""
    with Started(base, gate=True) as gated:
        assert gated.ask(*HANDSHAKE[:1])
        assert gated.ask(*HANDSHAKE[1:])
        assert gated.end() == ([], "")


def test_an_answer_that_is_no_longer_right_is_logged_and_forgotten(base: Path, copy: Path) -> None:
    """The client has had it; what it asks from then on the SDK answers, and the copy goes."""
    old = '{"jsonrpc":"2.0","id":0,"result":{}}'
    kept(copy.parent, {f"initialize {VERSION}": ',"result":{}}'}, key())
    with Started(base, gate=True) as server:
        assert server.ask(HANDSHAKE[0]).decode().rstrip() == old
        server.open_gate()
        assert b"needle" in server.ask(INITIALIZED, THINK)
        rest, log = server.end()
    assert rest == [] and not copy.exists()
    assert log.count("is deleted") == 1 and len(log.splitlines()) == 1


@pytest.mark.slow
def test_copy_is_made_whenever_a_client_leaves(base: Path, tmp_path: Path) -> None:
    """Also where it kills the server, with all of its group, before the SDK is there."""
    place = cold(tmp_path)
    cache = tmp_path / "aiaml"
    with Started(base, gate=True, environ=place) as server:
        server.send(*HANDSHAKE)
        wait_until(lambda: any(cache.glob("*")))
        time.sleep(0.2)  # from the mark to the process that makes it
        server.process.kill()
    wait_until(lambda: [each.suffix for each in cache.iterdir()] == [""])
    with Started(base, gate=True, environ=place) as server:
        assert b"serverInfo" in server.ask(HANDSHAKE[0])
        server.open_gate()
        assert server.end() == ([], "")


def test_copy_is_made_by_install(tmp_path: Path) -> None:
    """So that the first session of all is answered at once."""
    environ = {**inherited(), **cold(tmp_path), "HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    words = [PYTHON, "-m", "aiaml_server", "install", "cursor"]
    subprocess.run(words, check=True, env=environ, capture_output=True)
    wait_until(lambda: [each.suffix for each in (tmp_path / "aiaml").iterdir()] == [""])
    with Started(tmp_path, gate=True, environ=cold(tmp_path)) as server:
        assert b"serverInfo" in server.ask(HANDSHAKE[0])
        server.open_gate()
        assert server.end() == ([], "")


@pytest.mark.slow
def test_copy_is_made_by_one_process(base: Path, tmp_path: Path) -> None:
    """However many servers are started without one; all are answered."""
    servers = [Started(base, environ=cold(tmp_path)) for _ in range(6)]
    try:
        for server in servers:
            server.send(*HANDSHAKE, THINK)
        ended = [server.end() for server in servers]
    finally:
        for server in servers:
            server.__exit__()
    assert all(len(lines) == 3 and log == "" for lines, log in ended)
    wait_until(lambda: [each.suffix for each in (tmp_path / "aiaml").iterdir()] == [""])


@pytest.mark.slow
@pytest.mark.parametrize(
    "hello",
    [
        {"clientInfo": {"name": "claude-code", "version": "2.1.331", "title": "Claude"}},
        {"capabilities": {"roots": {"listChanged": True}, "elicitation": {}, "sampling": {}}},
        {"id": "a text"},
        {"protocolVersion": "2024-11-05"},
    ],
    ids=lambda each: next(iter(each)),
)
def test_copy_serves_every_client(base: Path, tmp_path: Path, hello: dict[str, Any]) -> None:
    """Whatever it is called, can do and counts by: exactly what the SDK says itself."""
    request_id = hello.pop("id", 5)
    params = {**HELLO, **hello}
    lines = [line({"id": request_id, "method": "initialize", "params": params}), INITIALIZED]
    lines += [line({"id": f"{number}!", "method": each}) for number, each in enumerate(LISTS)]
    with Started(base, environ=cold(tmp_path)) as server:
        server.send(*lines)
        expected, _ = server.end()
    with Started(base, gate=True) as server:
        server.send(*lines)
        said = {server.ask() for _ in lines[1:]}
        server.open_gate()
        assert server.end() == ([], "")
    assert said == set(expected)


@pytest.mark.slow
def test_each_list_of_toolsets_has_its_own_copy(base: Path) -> None:
    """One file a list."""
    made("aiaml", "sessions")
    for words, found in ((("--toolset", "aiaml", "--toolset", "sessions"), True), ((), False)):
        with Started(base, *words, gate=True) as server:
            server.ask(HANDSHAKE[0])
            assert (b"start_session" in server.ask(INITIALIZED, LIST)) == found
            server.open_gate()
            assert server.end() == ([], "")


ODD = {
    "AIAML_CHECK_SECRETS": "false",
    "AIAML_COMPARTMENT_LIMIT": "77", "AIAML_ENABLE_SYNC": "false", "AIAML_RUN_MINUTES": "5",
}  # fmt: skip


@pytest.mark.parametrize("name", list(OWN))
def test_settings_change_no_answer(name: str) -> None:
    """So that one copy serves them all."""
    one = manifest(name)
    assert said(resolve_name(one.build)(one.read_settings({}))) == said(
        resolve_name(one.build)(one.read_settings(ODD))
    )


def said(toolset: Toolset) -> object:
    """Return what the answers to a greeting are made of."""

    async def ready() -> None:
        pass

    tools = [Served(each, ready).listed for each in toolset.tools]
    resources = [each._replace(read=str, list_names=tuple) for each in toolset.resources]
    prompts = [each._replace(text=str) for each in toolset.prompts]
    return toolset.instructions, toolset.brief, tools, resources, prompts


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


# --- a client's course ---------------------------------------------------------------------------


def places(*lines: str) -> list[str | None]:
    """Return the place of the answer to each line."""
    course = Course()
    found = [course.take(each.encode()) for each in lines]
    return [each and each[0] for each in found]


def test_course_is_decided_by_the_version_alone() -> None:
    """Behind a handshake, without one, and where a client only asks whether it needs one."""
    discover = modern(8, "server/discover")
    assert places(*HANDSHAKE, PING) == [
        f"initialize {VERSION}", "", f"tools/list {VERSION}", f"ping {VERSION}",
    ]  # fmt: skip
    assert places(discover, *HANDSHAKE)[2:] == ["", f"tools/list {VERSION}"]
    assert places(modern(1, "tools/list")) == ["tools/list 2026-07-28"]


@pytest.mark.parametrize(
    "lines",
    [
        (LIST,),
        (HANDSHAKE[0], LIST),
        (*HANDSHAKE[:2], HANDSHAKE[0]),
        (*HANDSHAKE[:2], modern(3, "tools/list")),
        (modern(1, "tools/list"), HANDSHAKE[0]),
        (*HANDSHAKE[:2], line({"id": 1, "method": "tools/list", "params": {"cursor": "x"}})),
        (*HANDSHAKE[:2], line({"id": 1.5, "method": "tools/list"})),
        (*HANDSHAKE[:2], line({"id": True, "method": "tools/list"})),
        (*HANDSHAKE[:2], line({"id": "\ud800", "method": "tools/list"})),
        (line({"id": 1, "method": "initialize", "params": {"protocolVersion": VERSION}}),),
        (THINK,),
        ("[]",),
        ("null",),
        ("{",),
        ("[" * 100_000,),
    ],
)
def test_course_leaves_to_the_sdk_what_it_may_refuse(lines: tuple[str, ...]) -> None:
    """The last line has no place."""
    assert places(*lines)[-1] is None


@given(st.binary(max_size=200))
def test_course_takes_any_line(data: bytes) -> None:
    """It raises nothing."""
    assert Course().take(data) is None


# --- the copy ------------------------------------------------------------------------------------


def test_copies_are_eight_at_most(tmp_path: Path) -> None:
    """The oldest goes."""
    for number in range(10):
        one = Greeting(tmp_path, SECRET, [str(number)])
        one.keep({"a": "1"})
        os.utime(one.path, (number, number))
    found = [number for number in range(10) if known(tmp_path, (str(number),))]
    assert found == list(range(2, 10))


def test_every_torn_copy_is_as_good_as_none(tmp_path: Path) -> None:
    """Wherever the writing was interrupted."""
    copy = kept(tmp_path, {"a": "1"})
    whole = copy.read_bytes()
    for size in range(len(whole)):
        copy.write_bytes(whole[:size])
        assert known(tmp_path) == {}
    copy.write_bytes(whole)
    assert known(tmp_path) == {"a": "1"}


@pytest.mark.slow
@given(st.binary(max_size=300))
def test_any_bytes_are_as_good_as_none(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    """Also those that look like a copy."""
    place = tmp_path_factory.mktemp("place")
    for each in (data, data.hex().encode(), b"0" * 64 + b"{}", b"0" * 64 + data):
        Greeting(place, SECRET, ["aiaml"]).path.write_bytes(each)
        assert known(place) == {}


def test_a_copy_from_elsewhere_is_as_good_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of another version, of another place, of the same installation before it changed."""
    installed = tmp_path / "package"
    installed.mkdir()
    module = installed / "module.py"
    module.write_text("one")
    monkeypatch.setattr(greeting, "PACKAGE", installed)
    place = tmp_path / "place"
    place.mkdir()
    kept(place, {"a": "1"})
    assert known(place)
    with monkeypatch.context() as patch:
        patch.setattr(greeting, "__version__", "0.0.0")
        assert not known(place)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "version", "4.0.0")
        assert not known(place)
    shutil.copytree(installed, tmp_path / "copy")  # with the same times of modification
    monkeypatch.setattr(greeting, "PACKAGE", tmp_path / "copy")
    assert not known(place)
    kept(place, {"a": "2"})
    monkeypatch.setattr(greeting, "PACKAGE", installed)
    assert known(place) == {"a": "1"}  # two installations do not disturb each other
    module.write_text("two")
    assert not known(place)


def test_every_file_of_the_program_counts() -> None:
    """What a toolset says is in its own modules."""
    files = [Path(each.rsplit(None, 4)[0]).as_posix() for each in greeting._installed()]
    assert any("toolsets/citations/" in each for each in files)


@posix
@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
def test_what_is_not_ours_is_neither_read_nor_replaced(kind: str, tmp_path: Path) -> None:
    """It may have been planted under our name."""
    copy, aside = kept(tmp_path, {"a": "1"}), tmp_path / "aside"
    copy.rename(aside)
    if kind == "link":
        copy.symlink_to(aside)
    elif kind == "pipe":
        os.mkfifo(copy)
    else:
        copy.mkdir()
    before = aside.read_bytes()
    assert known(tmp_path) == {}
    with suppress(OSError):
        kept(tmp_path, {"a": "3"})
    assert aside.read_bytes() == before
    assert not copy.is_file() or copy.is_symlink()


@posix
@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("what", ["copy", "directory"])
def test_greeting_of_another_user_is_ignored(tmp_path: Path, what: str) -> None:
    """Whoever may write there; also where their sum is right."""
    place = tmp_path / "place"
    place.mkdir()
    copy = kept(place, {"a": "1"})
    assert known(place)
    os.chown(place if what == "directory" else copy, 65534, 65534)
    assert not known(place)


def test_greeting_with_the_sum_of_another_secret_is_ignored(tmp_path: Path) -> None:
    """Whoever can look at the installation can make all of it but that."""
    copy = kept(tmp_path, {"a": "poisoned"}, b"of somebody else")
    copy.rename(Greeting(tmp_path, SECRET, ["aiaml"]).path)
    assert known(tmp_path) == {}


@pytest.mark.parametrize(
    "text",
    ["[1,2]", "7", "null", '"text"', '{"a": 1}', '{"a": null}', '{"a": ["b"]}', "[" * 100_000],
    ids=lambda text: text[:9],
)
def test_greeting_of_a_wrong_type_or_depth_is_ignored(tmp_path: Path, text: str) -> None:
    """Even with the right sum: whatever a later version writes."""
    one = Greeting(tmp_path, SECRET, ["aiaml"])
    data = text.encode()
    one.path.write_bytes(one._sum(data).encode() + data)
    assert known(tmp_path) == {}


def test_greeting_larger_than_any_is_ignored(tmp_path: Path) -> None:
    """It is not even read to its end."""
    kept(tmp_path, {"a": "x" * greeting.MOST})
    assert known(tmp_path) == {}
