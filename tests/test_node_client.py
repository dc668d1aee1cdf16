"""The official TypeScript client, from the npm registry, against the real server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from aiaml_server import __version__
from client import SERVER

SDK = "@modelcontextprotocol/sdk@1.32.2"
CACHE = Path(__file__).parent.parent / ".cache" / "node"

pytestmark = pytest.mark.skipif(
    not (shutil.which("node") and shutil.which("npm")), reason="Node.js is not installed"
)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Run the client once; what it got is one JSON object."""
    CACHE.mkdir(parents=True, exist_ok=True)
    npm = [
        str(shutil.which("npm")),
        "install",
        "--silent",
        "--no-save",
        "--prefix",
        str(CACHE),
        SDK,
    ]
    subprocess.run(npm, check=True, timeout=300)
    shutil.copy(Path(__file__).parent / "node_client.mjs", CACHE)
    base = tmp_path_factory.mktemp("base")
    done = subprocess.run(
        [str(shutil.which("node")), str(CACHE / "node_client.mjs"), str(base), *SERVER],
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
        env=dict(os.environ),
    )
    return json.loads(done.stdout)


def value(result: Any) -> Any:
    """Return the JSON value of a result whose two forms agree."""
    (block,) = result["content"]
    found = json.loads(block["text"])
    assert result["structuredContent"] == (found if isinstance(found, dict) else {"result": found})
    return found


def test_it_lists_the_three_tools(answers: Any) -> None:
    """Names, schemas and version arrive."""
    assert [tool["name"] for tool in answers["tools"]] == ["remember", "think", "recall"]
    assert all(tool["inputSchema"] and tool["outputSchema"] for tool in answers["tools"])
    assert answers["version"]["version"] == __version__


def test_its_calls_are_answered(answers: Any) -> None:
    """This client checks every structured result against the published schema."""
    memory_id = value(answers["stored"])["memory_id"]
    assert [hit["id"] for hit in value(answers["found"])] == [memory_id]
    assert value(answers["nothing"]) == []
    memory, missing = value(answers["recalled"])
    assert memory["content"] == "🙂 needle\r\n"
    assert missing == {"id": "00000000", "error": "Memory with ID 00000000 not found"}


def test_its_errors_are_answered(answers: Any) -> None:
    """An error has the specified shape, and the client knows that it is one."""
    assert answers["refused"]["isError"] is True
    assert value(answers["refused"])["message"].startswith("Error storing memory: topics: must be")
