"""The contract that is shipped, with what only the tests of this repository have to ask."""

from __future__ import annotations

from pathlib import Path

from aiaml_server import testing
from aiaml_server.testing import HOSTILE, Call
from client import SERVER, Client

__all__ = ["HOSTILE", "Call", "Contract"]


class Contract(testing.Contract):
    """The promises, of the installation that is tested."""

    command: tuple[str, ...] = SERVER

    def test_it_ends_when_its_client_leaves(self, tmp_path: Path) -> None:
        """At once, with exit code 0 and no traceback in the log."""
        with self.process(tmp_path) as client:
            self.story(client.call)
            assert client.close() == 0
            assert "Traceback" not in client.log()

    def process(self, place: Path) -> Client:
        """Start a server with this toolset alone, behind a client that speaks in raw lines."""
        return Client(
            place, command=(*self.command, "--toolset", self.name), environ=self.environ(place)
        )
