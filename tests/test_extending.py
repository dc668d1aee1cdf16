"""What docs/extending.md shows works: a copy of the package with its files in it is used."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import aiaml_server
from client import Client

PAGE = Path(__file__).parent.parent / "docs" / "extending.md"
PACKAGE = Path(aiaml_server.__file__).parent


@pytest.fixture
def extended(tmp_path: Path) -> dict[str, str]:
    """Make a package with the page's toolset and verb in it; return the environment to use it."""
    copy = tmp_path / "package" / "aiaml_server"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    text = PAGE.read_text(encoding="utf-8")
    files = re.findall(r"`([\w/]+\.py)`[^`]*:\n\n```python\n(.*?)```", text, re.DOTALL)
    assert [name for name, _ in files] == [
        "toolsets/words/__init__.py", "toolsets/words/tools.py", "cli/size.py",
    ]  # fmt: skip
    for name, code in files:
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_text(code, encoding="utf-8")
    (line,) = re.findall(r"`(\"size\": \(\"size:size\", .*\))`", text)
    for name, before, more in (
        ("toolsets/__init__.py", "NAMES: tuple[str, ...] = (DEFAULT,", ' "words",'),
        ("cli/app.py", "VERBS = {", f"\n    {line},"),
    ):
        code = (copy / name).read_text(encoding="utf-8")
        assert code.count(before) == 1
        (copy / name).write_text(code.replace(before, before + more), encoding="utf-8")
    return {"PYTHONPATH": str(copy.parent), "AIAML_ENABLE_SYNC": "false"}


def test_the_toolset_of_the_page_is_served_and_listed(
    extended: dict[str, str], tmp_path: Path
) -> None:
    """By its own tool alone, with a failure in its shape."""
    server = (sys.executable, "-m", "aiaml_server", "--toolset", "words")
    with Client(tmp_path, command=server, environ=extended) as client:
        listed = client.answer(client.request("tools/list"))["result"]["tools"]
        assert [each["name"] for each in listed] == ["count_words"]
        assert client.call("count_words", text="one two three") == {"words": 3}
        assert "text" in client.call("count_words", text=5)["error"]
    assert "words  how many words a text has" in said(extended, "toolsets")


def test_the_verb_of_the_page_is_one(extended: dict[str, str], tmp_path: Path) -> None:
    """With its help, and a memory to measure."""
    extended["AIAML_MEMORY_DIR"] = str(tmp_path / "base")
    said(extended, "remember", "twelve bytes", "-t", "size")
    assert said(extended, "size") == "12 bytes\n"
    assert "Say how large all memories are together." in said(extended, "--help")


def said(environ: dict[str, str], *words: str) -> str:
    """Return what a verb prints."""
    command = [sys.executable, "-m", "aiaml_server", *words]
    return subprocess.run(
        command,
        env=os.environ | environ,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    ).stdout
