"""The compartments in agents of other people's frameworks, as docs/toolsets/compartments.md has it.

The code is taken from the page; the frameworks run it with a model that follows a script, in an
environment of their own. What the models do stands in `frameworks/script.py`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from environments import environment
from paths import ROOT, TESTS

PAGE = ROOT / "docs" / "toolsets" / "compartments.md"
STORIES = TESTS / "frameworks"
FRAMEWORKS = {
    "pydantic-ai": "pydantic_ai",
    "smolagents": "smolagents",
    "the OpenAI Agents SDK": "openai_agents",
}
Seen = list[dict[str, str]]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the frameworks and this package; return the interpreter."""
    group = f"{ROOT / 'pyproject.toml'}:frameworks"
    place = tmp_path_factory.mktemp("frameworks") / "environment"
    return environment(place, str(ROOT), "--group", group)


@pytest.fixture(scope="module", params=FRAMEWORKS)
def seen(
    request: pytest.FixtureRequest, python: Path, tmp_path_factory: pytest.TempPathFactory
) -> Seen:
    """Play the story in a framework; return what its models saw, call by call."""
    place = tmp_path_factory.mktemp(FRAMEWORKS[request.param])
    found: Seen = played(python, request.param, FRAMEWORKS[request.param], place)
    return found


def played(python: Path, framework: str, name: str, place: Path) -> Any:
    """Play a framework's story with what the page shows as `connect.py`; return what it prints."""
    section = PAGE.read_text("utf-8").partition(f"### With {framework}\n")[2]
    shown = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert shown
    (place / "connect.py").write_text(shown[1], "utf-8")
    done = subprocess.run(
        [python, STORIES / f"{name}_story.py", place / "memory.json"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(place), str(STORIES.parent)])},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def of(seen: Seen, who: str) -> Seen:
    """Return what one actor saw."""
    return [each for each in seen if each["who"] == who]


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_run_memory_is_in_each_call(seen: Seen) -> None:
    """As it is at that moment, also when it was emptied; and nothing of session and plan."""
    texts = [each["text"] for each in of(seen, "first")]
    twelve, thirteen = ("12 of 40" in texts[1], "13 of 40" in texts[-1])
    assert twelve and thirteen and len(texts) == 6
    assert "12 of 40" in texts[2]
    assert not any(number in texts[at] for at in (0, 3) for number in ("12 of", "13 of"))
    assert "12 of 40" not in texts[4]
    assert not any(word in each["text"] for each in seen for word in ("euros", "orders"))


@pytest.mark.network
@pytest.mark.slow
def test_a_full_compartment_is_told_to_the_model(seen: Seen) -> None:
    """It reads how much there is, makes room, and goes on."""
    results = [each["results"] for each in of(seen, "first")]
    assert "LimitExceeded" in results[2] and "holds 18 of 60" in results[2]
    assert "'cleared': 1" in results[3] and "'created': True" in results[4]


@pytest.mark.network
@pytest.mark.slow
def test_a_sub_agent_sees_session_and_plan_but_not_the_run(seen: Seen) -> None:
    """Neither in the prompt nor when it asks."""
    first, last = of(seen, "helper")
    assert "of 40" not in first["text"] + last["text"] + last["results"]
    assert "euros" in last["results"] and "old orders" in last["results"]
    assert "'entries': [], 'total': 0" in last["results"]


@pytest.mark.network
@pytest.mark.slow
def test_the_next_run_finds_session_and_plan(seen: Seen) -> None:
    """The run's own memory ended with it."""
    first, last = of(seen, "second")
    assert "of 40" not in first["text"] + last["text"] + last["results"]
    assert "euros" in last["results"] and "old orders" in last["results"]


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_langgraph_store(python: Path, tmp_path: Path) -> None:
    """Of two runs of a graph: what one has stored the next finds, by key, words and filter."""
    seen = played(python, "LangGraph", "langgraph", tmp_path)
    assert seen["asked"] == ["Invoices are in euros."]
    assert seen["found"] == [{"text": "Invoices are in euros.", "weight": 3}]
    assert seen["filtered"] == ["b", "c"] and seen["page"] == ["b"]
    assert seen["namespaces"] == [["customers"], ["notes"], ["plans", "old"]]
    assert seen["gone"] is None and seen["expires"] is True
    assert seen["refused"].startswith("this content alone has ")
    assert "euros" in seen["to the tools"]
