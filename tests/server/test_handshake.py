"""The cached handshake: what it answers before the SDK is there, and when it does not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_stdio import INITIALIZE, MODERN, environ, line, talk, tool_call

from aiaml_server import toolsets
from aiaml_server.server.handshake import LIST_METHODS, Handshake, write, write_in_background
from client import Client
from waiting import wait_until

INITIALIZED = line({"method": "notifications/initialized"})
DEFAULT = [toolsets.manifest("aiaml")]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache directory of the test's own."""
    for name in ("XDG_CACHE_HOME", "WIN_PD_OVERRIDE_LOCAL_APPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "cache"))
    return tmp_path / "cache"


def request(method: str, number: int = 1, **params: Any) -> str:
    """Return a request."""
    return line({"id": number, "method": method, "params": params})


def lists(**params: Any) -> list[str]:
    """Return a request for each list."""
    return [request(method, number, **params) for number, method in enumerate(LIST_METHODS, 1)]


WAITING = """
import importlib.abc, pathlib, sys, time
class Waiting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        while name.startswith("mcp.") and not pathlib.Path(sys.argv[1]).exists():
            time.sleep(0.01)
sys.meta_path.insert(0, Waiting())
from aiaml_server.cli import main
sys.exit(main([]))
"""
"""A server whose SDK can be imported only when a file is there."""


@pytest.mark.usefixtures("cache")
def test_a_client_is_answered_before_the_sdk_is_imported(tmp_path: Path) -> None:
    """The handshake and the tools; what follows is answered once the SDK is there."""
    write(DEFAULT)
    gate = tmp_path / "gate"
    command = (sys.executable, "-c", WAITING, str(gate))
    with Client(tmp_path / "base", command=command) as client:
        listed = client.answer(client.request("tools/list"))["result"]["tools"]
        assert [tool["name"] for tool in listed] == ["remember", "think", "recall"]
        call = client.start("think", keywords=["x"])
        gate.touch()
        assert client.value(call) == []
        assert client.close() == 0


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25", "2026-07-28"])
def test_answers_are_those_of_the_sdk(version: str, tmp_path: Path) -> None:
    """In each era the same lines with the file as without, in any order."""
    lines = [request("server/discover", 0, _meta=MODERN), *lists(_meta=MODERN)]
    if version < "2026":
        params = {**INITIALIZE["params"], "protocolVersion": version}  # type: ignore[dict-item]
        lines = [request("initialize", 0, **params), INITIALIZED, *lists()]
    lines.append(tool_call(9, "think", keywords=["x"]))
    before = talk(tmp_path / "base", *lines).answers
    write(DEFAULT)
    after = talk(tmp_path / "base", *lines).answers
    by_id = [sorted(answers, key=lambda each: each["id"]) for answers in (before, after)]
    assert by_id[0] == by_id[1]


@pytest.mark.usefixtures("cache")
def test_a_server_that_has_none_writes_it(tmp_path: Path) -> None:
    """In a process of its own, so that it is there even if the client leaves at once."""
    assert not Handshake(DEFAULT).is_cached
    process = subprocess.run(
        [sys.executable, "-m", "aiaml_server"],
        input=b"",
        env=environ(tmp_path / "base"),
        check=True,
    )
    assert process.returncode == 0
    wait_until(lambda: Handshake(DEFAULT).is_cached)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.usefixtures("cache")
def test_the_process_that_writes_it_leaves_no_zombie(tmp_path: Path) -> None:
    """Although nobody waits for it."""
    with Client(tmp_path / "base") as client:
        wait_until(lambda: Handshake(DEFAULT).is_cached)
        threads = Path(f"/proc/{client.process.pid}/task")
        wait_until(lambda: not any(each.read_text() for each in threads.glob("*/children")))


@pytest.mark.usefixtures("cache")
def test_another_set_of_toolsets_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """And so have settings that change the tools."""
    both = [*DEFAULT, toolsets.manifest("sessions")]
    sessions = both[1:]
    paths = [Handshake(each).path for each in (DEFAULT, both, sessions)]
    monkeypatch.setenv("AIAML_SESSIONS_AGENT", "ada")
    paths.append(Handshake(sessions).path)
    assert len(set(paths)) == len(paths)


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("content", ["", "{", "[1]", "x" * 2_000_000])
def test_a_damaged_file_is_no_handshake(content: str) -> None:
    """It answers nothing, and the SDK does."""
    write(DEFAULT)
    path = Handshake(DEFAULT).path
    assert path
    path.write_text(content)
    assert Handshake(DEFAULT).answer(line(INITIALIZE).encode()) == ("", False)


@pytest.mark.usefixtures("cache")
def test_only_what_is_known_is_answered() -> None:
    """After the first other line nothing is, so that answers keep to the order of the era."""
    write(DEFAULT)
    for first in (
        "garbage",
        tool_call(1, "think", keywords=["x"]),
        request("tools/list"),  # before a handshake
        request("initialize", protocolVersion="2099-01-01", capabilities={}, clientInfo={}),
        request("tools/list", cursor="x", _meta=MODERN),
    ):
        handshake = Handshake(DEFAULT)
        assert handshake.answer(first.encode()) == ("", False), first
        assert handshake.answer(line(INITIALIZE).encode()) == ("", False), first
    handshake = Handshake(DEFAULT)
    text, is_done = handshake.answer(line(INITIALIZE).encode())
    assert json.loads(text)["id"] == 0 and not is_done  # the SDK has to see it as well
    assert handshake.handled == {0}


def test_without_a_cache_directory_nothing_is_written(cache: Path) -> None:
    """As where something else stands in its place."""
    cache.write_text("a file")
    write_in_background([])
    assert not Handshake(DEFAULT).is_cached
    assert cache.read_text() == "a file"
