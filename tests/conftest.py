"""What every test gets."""

from __future__ import annotations

import http.server
import os
import shutil
import signal
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from aiaml_server.storage.store import Store
from machine import CLEAN, Machine, bare

# Under nohup, or in the background of a script, signals are ignored, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
if os.name == "posix":
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

os.environ.pop("COLUMNS", None)  # each test says how wide its terminal is

# The gate always tries the same examples, and reports a failing one as it is: shrinking can take
# minutes. The nightly run draws new ones, shrinks them and keeps those that fail.
settings.register_profile(
    "ci",
    derandomize=True,
    max_examples=25,
    deadline=None,
    report_multiple_bugs=False,
    phases=[Phase.explicit, Phase.generate, Phase.target],
)
settings.register_profile("nightly", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


_STATE = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep the state and the cache of whoever runs the tests untouched."""
    place = config.stash[_STATE] = tempfile.mkdtemp(prefix="aiaml-tests-")
    os.environ |= {"XDG_STATE_HOME": place, "XDG_CACHE_HOME": f"{place}{os.sep}cache"}
    for name in ("LOCALAPPDATA", "WIN_PD_OVERRIDE_LOCAL_APPDATA"):
        os.environ[name] = f"{place}{os.sep}local"


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave nothing behind."""
    if _STATE in config.stash:
        shutil.rmtree(config.stash[_STATE], ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what `gate_cases` leaves to the nightly run."""
    seen: Counter[str] = Counter()
    for item in items:
        marker = item.get_closest_marker("gate_cases")
        if marker is None:
            continue
        name = item.nodeid.partition("[")[0]
        seen[name] += 1
        if seen[name] > marker.args[0]:
            item.add_marker("slow")


@pytest.fixture(autouse=True, scope="session")
def _temporary_files_go(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a program leaves among the system's temporary files goes with those of the tests."""
    place = str(tmp_path_factory.mktemp("temporary"))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TMPDIR", "TEMP", "TMP"):
            patch.setenv(name, place)
        patch.setattr(tempfile, "tempdir", None)
        yield


@pytest.fixture(autouse=True, scope="session")
def _random_is_registered() -> None:
    """Let Hypothesis register its random generator, which it does at its first test.

    After `gc.freeze()`, which the command line calls, it would take it for garbage and warn.
    """

    @given(st.none())
    def register(_: None) -> None:
        pass

    register()


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """An empty remote."""
    return bare(tmp_path / "remote")


@pytest.fixture
def ada(tmp_path: Path, remote: Path) -> Machine:
    """A machine."""
    return Machine(tmp_path / "ada", remote)


@pytest.fixture
def bob(tmp_path: Path, remote: Path) -> Machine:
    """Another machine with the same remote."""
    return Machine(tmp_path / "bob", remote)


@pytest.fixture
def cleo(tmp_path: Path, remote: Path) -> Machine:
    """A third machine with the same remote."""
    return Machine(tmp_path / "cleo", remote)


@pytest.fixture
def nobodys_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sync runs as on a machine whose owner has configured nothing."""
    for name, value in CLEAN.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def anyio_backend() -> str:
    """Run on asyncio, as the server does."""
    return "asyncio"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home; nothing of the person's own is seen."""
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("APPDATA", "LOCALAPPDATA", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "config"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty bank, which the command line uses."""
    monkeypatch.setenv("AIAML_MEMORY_DIR", str(tmp_path / "bank"))
    monkeypatch.setenv("AIAML_ENABLE_SYNC", "false")
    return Store(tmp_path / "bank")


class Forbidding(http.server.BaseHTTPRequestHandler):
    """A web server that lets nobody in."""

    def do_GET(self) -> None:
        """Refuse."""
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="memories"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def forbidding() -> Iterator[str]:
    """The address of a server that lets nobody in."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forbidding)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()
