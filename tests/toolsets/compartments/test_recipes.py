"""The recipes of docs/toolsets/compartments-recipes.md, each run in its framework."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from environments import environment
from paths import ROOT, TESTS

PAGE = ROOT / "docs" / "toolsets" / "compartments-recipes.md"
RECIPES = {
    "pydantic-ai": "pydantic_ai",
    "OpenAI Agents SDK": "openai_agents",
    "smolagents": "smolagents",
    "LangGraph": "langgraph",
}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the frameworks and this package; return the interpreter."""
    group = f"{ROOT / 'pyproject.toml'}:frameworks"
    place = tmp_path_factory.mktemp("frameworks") / "environment"
    return environment(place, str(ROOT), "--group", group)


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("heading", RECIPES)
def test_recipe_gives_an_agent_the_memory(heading: str, python: Path, tmp_path: Path) -> None:
    """The tools work, errors reach the model, and the run memory alone is in each call."""
    section = PAGE.read_text("utf-8").partition(f"\n## {heading}\n")[2]
    shown = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert shown
    (tmp_path / "recipe.py").write_text(shown[1], "utf-8")
    done = subprocess.run(
        [python, TESTS / "frameworks" / "play.py", RECIPES[heading], tmp_path / "memory.json"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    played = json.loads(done.stdout.splitlines()[-1])
    assert played["answer"] == "done"
    instructions, results = zip(*played["seen"], strict=True)
    assert ["12 of 40" in each for each in instructions] == [False, True, True, True, True]
    assert not any("euros" in each for each in instructions)
    assert "LimitExceeded" in results[3]
    assert "Invoices are in euros." in results[4]
