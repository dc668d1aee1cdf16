"""The plugin: its hook's command and its skill."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from aiaml_server import toolsets
from aiaml_server.server.hooks.hosts import HOSTS
from paths import ROOT

PLUGIN = ROOT / "plugin"


def command() -> str:
    """Return the command of the plugin's only hook."""
    hooks = json.loads((PLUGIN / "hooks/hooks.json").read_text(encoding="utf-8"))["hooks"]
    ((entry,),) = (group["hooks"] for group in hooks["SessionStart"])
    return str(entry["command"])


def test_the_hook_is_one_of_the_program() -> None:
    """Its host, event and toolset are known."""
    words = shlex.split(command().partition("2>")[0])
    assert words[:4] == ["uvx", "--from", "aiaml-server", "aiaml-hook"]
    options = dict(zip(words[4::2], words[5::2], strict=True))
    assert options["--host"] in HOSTS
    assert options["--event"] in toolsets.manifest(options["--toolset"]).hooks


@pytest.mark.skipif(os.name == "nt", reason="hosts run it with a shell that Windows may not have")
@pytest.mark.parametrize("program", ["exit 1", "echo told; echo problem >&2", ""])
def test_the_hook_is_silent_where_the_program_is_missing(tmp_path: Path, program: str) -> None:
    """Nothing but an answer is printed, and the session goes on."""
    if program:
        (tmp_path / "uvx").write_text(f"#!/bin/sh\n{program}\n")
        (tmp_path / "uvx").chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", command()], env={"PATH": str(tmp_path)}, capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == ("told" if "told" in program else "")
    assert done.stderr == b""


def test_the_skill_names_the_tools_and_says_when() -> None:
    """Its head is what hosts read, within their limits; its calls are calls that the tools take."""
    text = (PLUGIN / "skills/memory/SKILL.md").read_text(encoding="utf-8")
    _, head, body = text.split("---\n", 2)
    facts = dict(line.split(": ", 1) for line in head.strip().splitlines())
    assert set(facts) == {"name", "description"}
    assert facts["name"] == "memory" and len(facts["description"]) <= 1024
    for tool in ("remember", "think", "recall"):
        assert tool in facts["description"] and tool in body
    calls = re.findall(r"^    (\w+\(.*\))$", body, re.MULTILINE)
    assert [each.partition("(")[0] for each in calls] == ["think", "recall"]
    given = [
        {word.arg: ast.literal_eval(word.value) for word in call_of(each).keywords}
        for each in calls
    ]
    assert [list(each) for each in given] == [["keywords"], ["memory_ids"]]
    assert 8 <= len(given[0]["keywords"]) <= 10
    assert all(word.isalpha() for word in given[0]["keywords"])


def call_of(text: str) -> ast.Call:
    """Return an expression that is a call."""
    found = ast.parse(text, mode="eval").body
    assert isinstance(found, ast.Call)
    return found
