"""Clients written for Node, from the npm registry, against the real server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aiaml_server import __version__, toolsets
from client import SERVER
from machine import git
from paths import ROOT, TESTS

SDK = "@modelcontextprotocol/sdk@1.32.2"
AI_SDK = "@ai-sdk/mcp@2.0.99"
CACHE = ROOT / ".cache" / "node"

pytestmark = pytest.mark.skipif(
    not (shutil.which("node") and shutil.which("npm")), reason="Node.js is not installed"
)


@pytest.fixture(scope="module")
def sdk() -> Path:
    """Install the SDKs, with the clients beside them; return their directory."""
    CACHE.mkdir(parents=True, exist_ok=True)
    npm = [
        str(shutil.which("npm")),
        "install",
        "--silent",
        "--no-save",
        "--prefix",
        str(CACHE),
        SDK,
        AI_SDK,
    ]
    subprocess.run(npm, check=True, timeout=300)
    for name in ("node_client.mjs", "node_calls.mjs", "node_ai_sdk.mjs"):
        shutil.copy(TESTS / name, CACHE)
    return CACHE


def node(script: Path, *words: str, environ: Mapping[str, str] | None = None) -> Any:
    """Run a client; return what it got. Leaving with an error is a failure of the test."""
    done = subprocess.run(
        [str(shutil.which("node")), str(script), *words],
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
        env={**os.environ, **(environ or {})},
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def answers(sdk: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Run the client once; what it got is one JSON object."""
    return node(sdk / "node_client.mjs", str(tmp_path_factory.mktemp("base")), *SERVER)


def value(result: Any) -> Any:
    """Return the JSON value of a result whose two forms agree."""
    (block,) = result["content"]
    found = json.loads(block["text"])
    assert result["structuredContent"] == (found if isinstance(found, dict) else {"result": found})
    return found


@pytest.mark.network
@pytest.mark.slow
def test_it_lists_the_three_tools(answers: Any) -> None:
    """Names, schemas and version arrive."""
    assert [tool["name"] for tool in answers["tools"]] == ["remember", "think", "recall"]
    assert all(tool["inputSchema"] and tool["outputSchema"] for tool in answers["tools"])
    assert answers["version"]["version"] == __version__


@pytest.mark.network
@pytest.mark.slow
def test_its_calls_are_answered(answers: Any) -> None:
    """This client checks every structured result against the published schema."""
    memory_id = value(answers["stored"])["memory_id"]
    assert [hit["id"] for hit in value(answers["found"])] == [memory_id]
    assert value(answers["nothing"]) == []
    memory, missing = value(answers["recalled"])
    assert memory["content"] == "🙂 needle\r\n"
    assert missing == {"id": "00000000", "error": "Memory with ID 00000000 not found"}


@pytest.mark.network
@pytest.mark.slow
def test_its_errors_are_answered(answers: Any) -> None:
    """An error has the specified shape, and the client knows that it is one."""
    assert answers["refused"]["isError"] is True
    assert value(answers["refused"])["message"].startswith("Error storing memory: topics: must be")


@pytest.mark.network
@pytest.mark.slow
def test_it_keeps_a_session(sdk: Path, tmp_path: Path) -> None:
    """From its start to its summary, and what is refused."""
    git(tmp_path, "init", "--quiet")
    who = {"agent_name": "aristotle", "repo_root": str(tmp_path)}
    entry = {"section": "Decisions", "content": "- Cents. 🙂"}
    calls = [
        ["start_session", {**who, "date": "2025-01-20"}],
        ["append_entry", {**who, **entry, "date": "2025-01-20"}],
        ["update_summary", {**who, **entry, "mode": "append"}],
        ["read_summary", who],
        ["list_sessions", {**who, "limit": 5}],
        ["append_entry", {**who, **entry, "section": "Thoughts", "date": "2025-01-20"}],
    ]
    got = node(sdk / "node_calls.mjs", json.dumps(calls), *SERVER, "--toolset", "sessions")
    assert got["tools"] == list(toolsets.manifest("sessions").tools)
    values = [value(each) for each in got["results"]]
    assert values[0]["created"] is True and "🙂" in values[3]["summary"]
    assert values[4] == {"sessions": ["2025-01-20.md"]}
    assert got["results"][5]["isError"] and values[5]["error"] == "InvalidSection"


@pytest.mark.network
@pytest.mark.slow
def test_it_keeps_working_memory(sdk: Path, tmp_path: Path) -> None:
    """Each tool, an error, and the resource of the run memory."""
    calls = [
        ["save_memory", {"compartment": "run", "content": "12 of 40", "tags": ["count"]}],
        ["get_memory", {"compartment": "run", "query": "40", "limit": 1}],
        ["clear_memory", {"compartment": "run"}],
        ["save_memory", {"compartment": "run", "id": "nope", "priority": 3}],
    ]
    environ = {"AIAML_COMPARTMENTS_FILE": str(tmp_path / "memory.json")}
    words = (json.dumps(calls), *SERVER, "--toolset", "compartments")
    got = node(sdk / "node_calls.mjs", *words, environ=environ)
    assert got["tools"] == list(toolsets.manifest("compartments").tools)
    values = [value(each) for each in got["results"]]
    assert values[0]["created"] is True and values[1]["entries"][0]["tags"] == ["count"]
    assert (
        values[2] == {"cleared": 1, "ids": [values[0]["id"]]} and values[3]["error"] == "NotFound"
    )
    assert [each["uri"] for each in got["resources"]["resources"]] == ["memory://run"]


LATE = """
import sys, time
time.sleep(float(sys.argv.pop(1)))
from aiaml_server.cli import main
sys.exit(main())
"""


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0, 1.5, 5])
def test_a_client_that_asks_before_it_shakes_hands_connects(
    sdk: Path, tmp_path: Path, seconds: float
) -> None:
    """Vercel's waits a second for `server/discover`, then shakes hands, however late the start."""
    late = (SERVER[0], "-c", LATE, str(seconds))
    got = node(sdk / "node_ai_sdk.mjs", str(tmp_path), *late)
    assert got["tools"] == ["remember", "think", "recall"]
    assert got["found"]["structuredContent"] == {"result": []}
    assert seconds == 0 or got["era"] == "legacy"
