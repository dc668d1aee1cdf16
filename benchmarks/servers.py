"""The servers that are compared: how each is installed, started, and asked to store and read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from mcp_client import Client, ServerError

HERE = Path(__file__).parent
PYTHON = sys.executable
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aiaml-benchmarks"


class Server:
    """A memory server. Subclasses override what differs.

    Attributes:
        name: its name on the command line.
        package: what is installed, as `pip NAME` or `npm NAME`; empty if nothing is.
        largest: the longest text that it takes, in characters.
    """

    name = ""
    package = ""
    largest = 20_000

    def __init__(self) -> None:
        self.home = CACHE / self.name

    def command(self) -> list[str]:
        """Return the command that starts the server."""
        raise NotImplementedError

    def environ(self, place: Path) -> Mapping[str, str]:
        """Return the variables that make it keep everything in `place`."""
        del place
        return {}

    def store(self, client: Client, key: str, text: str) -> int:
        """Send a text to be stored under a key; return the id of the request."""
        raise NotImplementedError

    def handle(self, key: str, answer: str) -> str:
        """Return what the stored text is read by.

        Raises:
            ServerError: the answer does not say that it was stored.
        """
        raise NotImplementedError

    def read(self, client: Client, handle: str) -> str:
        """Return an answer that contains the stored text."""
        raise NotImplementedError

    def search(self, client: Client, words: Sequence[str]) -> str:
        """Return the answer to a search for any of the words."""
        raise NotImplementedError

    def start(self, place: Path, wrapper: Sequence[str] = ()) -> Client:
        """Start the server on the data in `place`."""
        home = place / "home"
        home.mkdir(parents=True, exist_ok=True)
        environ = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
        for name in ("CACHE", "STATE", "CONFIG"):
            environ[f"XDG_{name}_HOME"] = str(home / name.lower())
        return Client([*wrapper, *self.command()], environ | {**self.environ(place)}, place)


class Aiaml(Server):
    """This checkout, with the Python that runs the benchmark; or that of another Python."""

    name = "aiaml"

    def __init__(self, python: str = PYTHON, name: str = name) -> None:
        super().__init__()
        self.python, self.name = python, name

    def command(self) -> list[str]:
        return [self.python, "-m", "aiaml_server"]

    def environ(self, place: Path) -> Mapping[str, str]:
        return {"AIAML_MEMORY_DIR": str(place / "base"), "AIAML_ENABLE_SYNC": "false"}

    def store(self, client: Client, key: str, text: str) -> int:
        arguments = {"agent": "benchmark", "user": "anna", "topics": [key], "content": text}
        return client.start_call("remember", arguments)

    def handle(self, key: str, answer: str) -> str:
        del key
        return str(json.loads(answer)["memory_id"])

    def read(self, client: Client, handle: str) -> str:
        return client.call("recall", memory_ids=[handle])

    def search(self, client: Client, words: Sequence[str]) -> str:
        return client.call("think", keywords=[*words])


class Files(Server):
    """The yardstick: a server of a few lines on the same SDK, which writes plain files."""

    name = "files"

    def command(self) -> list[str]:
        return [PYTHON, str(HERE / "plain_files.py")]

    def environ(self, place: Path) -> Mapping[str, str]:
        return {"PLAIN_FILES": str(place / "store")}

    def store(self, client: Client, key: str, text: str) -> int:
        return client.start_call("store", {"name": key, "text": text})

    def handle(self, key: str, answer: str) -> str:
        del answer
        return key

    def read(self, client: Client, handle: str) -> str:
        return client.call("read", name=handle)

    def search(self, client: Client, words: Sequence[str]) -> str:
        return client.call("search", words=[*words])


class Official(Server):
    """The official memory server: a graph of entities in one file of JSON lines."""

    name = "official"
    package = "npm @modelcontextprotocol/server-memory"

    def command(self) -> list[str]:
        folder = self.home / "node_modules" / self.package.removeprefix("npm ")
        return ["node", str(folder / "dist" / "index.js")]

    def environ(self, place: Path) -> Mapping[str, str]:
        return {"MEMORY_FILE_PATH": str(place / "memory.jsonl")}

    def store(self, client: Client, key: str, text: str) -> int:
        entity = {"name": key, "entityType": "memory", "observations": [text]}
        return client.start_call("create_entities", {"entities": [entity]})

    def handle(self, key: str, answer: str) -> str:
        if key not in answer and "Successfully" not in answer:
            raise ServerError(answer[:200])
        return key

    def read(self, client: Client, handle: str) -> str:
        return client.call("open_nodes", names=[handle])

    def search(self, client: Client, words: Sequence[str]) -> str:
        return "\n".join(client.call("search_nodes", query=word) for word in words)


class Libsql(Official):
    """mcp-memory-libsql: entities in a libSQL database."""

    name = "libsql"
    package = "npm mcp-memory-libsql"
    largest = 4_000  # an observation has at most 4,096 characters

    def environ(self, place: Path) -> Mapping[str, str]:
        return {"LIBSQL_URL": f"file:{place / 'memory.db'}"}

    def read(self, client: Client, handle: str) -> str:
        return client.call("search_nodes", query=handle)


class BasicMemory(Server):
    """Basic Memory: markdown notes, and a SQLite index."""

    name = "basic-memory"
    package = "pip basic-memory"

    def command(self) -> list[str]:
        return [str(self.home / "bin" / "basic-memory"), "mcp"]

    def environ(self, place: Path) -> Mapping[str, str]:
        del place
        return {"BASIC_MEMORY_AUTO_UPDATE": "false", "FASTMCP_CHECK_FOR_UPDATES": "off"}

    def store(self, client: Client, key: str, text: str) -> int:
        note = {"title": key, "directory": "notes", "output_format": "json", "content": text}
        return client.start_call("write_note", note)

    def handle(self, key: str, answer: str) -> str:
        del key
        return str(json.loads(answer)["permalink"])

    def read(self, client: Client, handle: str) -> str:
        return client.call("read_note", identifier=handle)

    def search(self, client: Client, words: Sequence[str]) -> str:
        return client.call("search_notes", query=" OR ".join(words), page_size=25)


SERVERS = {each.name: each for each in (Aiaml, Files, Official, Libsql, BasicMemory)}


def installed(name: str) -> Server:
    """Return a server, and install it the first time.

    Raises:
        SystemExit: there is no such server, or it cannot be installed.
    """
    if name not in SERVERS:
        raise SystemExit(f"there is no server {name!r}; there are {', '.join(SERVERS)}")
    server = SERVERS[name]()
    if not server.package or server.home.exists():
        return server
    way, _, package = server.package.partition(" ")
    place = str(server.home)
    if way == "npm":
        commands = [["npm", "install", "--prefix", place, "--no-audit", "--no-fund", package]]
    else:
        commands = [
            ["uv", "venv", "--quiet", "--python", ">=3.12", place],
            ["uv", "pip", "install", "--quiet", "--python", f"{place}/bin/python", package],
        ]
    try:
        for command in commands:
            subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        shutil.rmtree(server.home, ignore_errors=True)
        reason = getattr(error, "stderr", "") or error
        raise SystemExit(f"{server.package} cannot be installed: {reason}") from None
    return server
