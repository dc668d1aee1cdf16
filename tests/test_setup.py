"""`aiaml sync --setup`: two homes and a directory between them, with nothing set anywhere."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from client import PYTHON, SECONDS, Client
from printed import completed, inherited


class Home:
    """A person's computer, on which no variable of ours is set."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.place.mkdir()
        self.environ = {
            **{name: value for name, value in inherited().items() if "AIAML" not in name},
            "HOME": str(place),
            "USERPROFILE": str(place),
            "XDG_STATE_HOME": str(place / "state"),
            "WIN_PD_OVERRIDE_LOCAL_APPDATA": str(place / "state"),
            "COLUMNS": "200",
        }

    def aiaml(self, *words: str, code: int = 0) -> str:
        """Type a line; return all that it says."""
        done = completed([PYTHON, "-m", "aiaml_server", *words], env=self.environ, cwd=self.place)
        assert done.returncode == code, done
        return done.stdout + done.stderr


@pytest.fixture
def homes(tmp_path: Path) -> tuple[Home, Home]:
    """Return two computers."""
    return Home(tmp_path / "one"), Home(tmp_path / "two")


def test_setup_brings_memories_to_a_second_computer(
    homes: tuple[Home, Home], tmp_path: Path
) -> None:
    """The repository is made, tried and remembered; servers use it, whatever client starts them."""
    one, two = homes
    one.aiaml("remember", "Max likes the sea.", "-t", "dog")
    assert "Kept on this computer only" in one.aiaml("status")
    remote = str(tmp_path / "stick" / "memories.git")
    said = one.aiaml("sync", "--setup", remote)
    assert f"Made the repository {remote}" in said and "1 memory pushed" in said
    assert "All is well: there is a copy, of a moment ago" in one.aiaml("status")
    assert "1 memory arrived" in two.aiaml("sync", "--setup", remote)
    assert "Max likes the sea" in two.aiaml("list")
    status = two.aiaml("status")
    assert "never" not in status and "All is well" in status
    served = {"AIAML_MEMORY_DIR": str(two.place / ".aiaml"), "AIAML_ENABLE_SYNC": "true"}
    with Client(two.place, environ={**two.environ, **served}) as client:
        client.remember("Bo likes the hills.")
        end = time.monotonic() + SECONDS
        while "Bo likes" not in one.aiaml("list") and time.monotonic() < end:
            one.aiaml("sync")
    assert "Bo likes the hills" in one.aiaml("list")


def test_setup_of_what_does_not_answer_remembers_nothing(homes: tuple[Home, Home]) -> None:
    """It says why, and what to do."""
    one, _ = homes
    one.aiaml("remember", "Max likes the sea.", "-t", "dog")
    for address in ("file:///no/such/repository.git", "ext::sh -c false"):
        one.aiaml("sync", "--setup", address, code=3 if address.startswith("file") else 2)
    assert "Kept on this computer only" in one.aiaml("status")
    assert "no terminal to ask on" in one.aiaml("sync", "--setup", code=2)
