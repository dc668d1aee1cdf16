"""The command `aiaml web`: how it starts, how the browser gets there, and how it ends."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from aiaml_server.format.memory import parse
from aiaml_server.settings import Settings
from aiaml_server.web import app
from paths import TESTS
from waiting import wait_until
from web_process import Web, path_of

DOG = "20260620_120000_3d4e5f6a.md"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """The sample memories."""
    shutil.copytree(TESTS / "transcripts" / "store", tmp_path / "store")
    return tmp_path / "store"


@pytest.mark.skipif(os.name != "posix", reason="Windows ends a process group otherwise")
def test_a_signal_ends_it_and_the_port_is_free_again(base: Path) -> None:
    """With exit code 0, whoever is connected."""
    web = Web(base)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#token=[\w-]{43}", web.address)
    assert web.get("/api/memories")["total"] == 5
    with socket.create_connection(("127.0.0.1", web.port), 10):
        assert web.end(signal.SIGINT) == 0
    assert web.log.startswith("Anyone who has this address can read and change your memories")
    with Web(base, "--port", str(web.port)) as again:
        assert again.port == web.port
        assert again.end(signal.SIGTERM) == 0


def test_a_signal_is_never_lost(
    base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python drops an exception within `__del__`, and so a KeyboardInterrupt at that point."""

    class Interrupting:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    def echo_and_interrupt(_: str) -> None:
        Interrupting()

    monkeypatch.setattr(app, "echo", echo_and_interrupt)
    assert app.serve(Settings(base, sync=False), None, browser=False, idle=3) == 0
    assert "Stopped after" not in capsys.readouterr().err


def test_it_listens_on_this_computer_alone(base: Path) -> None:
    """No address of the network is open, nor another one of a Linux computer's own."""
    own = ["127.0.0.2"] if sys.platform == "linux" else []
    with Web(base) as web:
        for address in [*own, *socket.gethostbyname_ex(socket.gethostname())[2]]:
            if address != "127.0.0.1":
                with pytest.raises(OSError, match=r".*"):
                    socket.create_connection((address, web.port), 2)


@pytest.mark.skipif(os.name != "posix", reason="the stand-in for a browser is a shell script")
def test_the_browser_is_sent_by_a_file_of_this_user_alone(base: Path, tmp_path: Path) -> None:
    """The token is on no command line, and the file goes at the end."""
    browser, home = tmp_path / "browser", tmp_path / "home"
    browser.write_text('#!/bin/sh\nprintf %s "$1" > "$0.part"; mv "$0.part" "$0.opened"\n')
    browser.chmod(0o700)
    (home / "snap").mkdir(parents=True)
    loose = ("sh", "-c", 'umask 0; exec "$@"', "sh")
    with Web(base, before=loose, BROWSER=str(browser), HOME=str(home), TMPDIR=str(tmp_path)) as web:
        wait_until((tmp_path / "browser.opened").exists)
        address = (tmp_path / "browser.opened").read_text()
        page = Path(unquote(urlsplit(address).path))
        assert address.startswith("file:///") and web.token not in address
        assert page.parent.parent == (home if sys.platform == "linux" else tmp_path)
        assert f"0;url={web.address}" in page.read_text()
        assert [stat.S_IMODE(path.stat().st_mode) for path in (page, page.parent)] == [0o600, 0o700]
        assert web.end() == 0
    assert not page.parent.exists()


def test_it_ends_by_itself_when_nobody_comes(base: Path) -> None:
    """So a forgotten page does not stay open."""
    web = Web(base, "--idle", "0.02")
    assert web.ended() == 0
    assert web.log.endswith("Stopped after 0.02 minutes without a visit.\n")


def test_a_port_that_is_in_use_is_an_error(base: Path) -> None:
    """With exit code 1 and a reason."""
    with Web(base) as web:
        done = subprocess.run(
            [sys.executable, "-m", "aiaml_server", "web", "--no-browser", "--port", str(web.port)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "false"},
            timeout=60,
        )
    assert (done.returncode, done.stdout) == (1, "")
    assert f"cannot listen on port {web.port}: " in done.stderr


def test_changes_are_committed_while_it_is_open(base: Path) -> None:
    """As a server would do."""
    text = (base / "files" / DOG).read_text()
    after = text.replace("chicken", "beef").encode()
    nobody = base.parent / "nobody"
    nobody.mkdir()
    with Web(base, AIAML_ENABLE_SYNC="true", GIT_CONFIG_GLOBAL=os.devnull) as web:
        version = web.get(path_of(DOG))["version"]
        assert web.ask(path_of(DOG), "PUT", after, {"If-Match": version}).status == 200
        wait_until(lambda: len(web.get(f"{path_of(DOG)}/versions")) == 2)
    show = ["git", "-C", str(base), "show", f"HEAD:files/{DOG}"]
    done = subprocess.run(show, capture_output=True, check=True)
    assert parse(done.stdout.decode()).content == "Marco's dog Max is allergic to beef."
