"""What people paste into a report holds nothing private, and the links of the guides work."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from aiaml_server.bank import MemoryBank
from aiaml_server.settings import Settings
from machine import CLEAN, TOKEN
from paths import ROOT
from printed import completed, inherited


def doctor(home: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run doctor in a home directory, with these settings."""
    places = dict.fromkeys(("HOME", "USERPROFILE", "APPDATA", "XDG_CONFIG_HOME"), str(home))
    return completed(
        [sys.executable, "-m", "aiaml_server", "doctor", *words],
        env={**inherited(), **CLEAN, **places, **settings, "PYTHONUTF8": "1"},
    )


@pytest.mark.slow
def test_what_doctor_prints_tells_no_memory(tmp_path: Path) -> None:
    """Nothing that was remembered, rightly or damaged, nor a password, is in what is pasted."""
    base = tmp_path / ".aiaml"
    bank = MemoryBank(Settings(base, sync=False))
    (base / "files").mkdir(parents=True, exist_ok=True)
    private = ["artichoke", "bergamot", "calendula", "dandelion"]
    agent, user, topic, content = private
    bank.remember(agent, user, [topic, *(f"{topic}{number}" for number in range(20))], content)
    bank.remember(agent, user, [topic], f"{content} {TOKEN}")
    bank.remember(agent, user, [topic], f"{content}\u202e{content}\u200b")
    head = f"agent: {agent}\nuser: {user}\ntopics: [{topic}]\n{content}: {content}\n"
    damaged = {
        "00000001": f"---\nid: 00000001\n{head}---\n\n{content}\n",
        "00000002": f"{content}\n",
        "00000003": f"---\nid: 00000003\ntimestamp: {content}\n{head}---\n\n{content}\n",
        "00000004": f"---\nid: [{content}\n{head}",
        "00000005": f"---\nid: 00000009\ntimestamp: 2026-01-01\n{head}---\n\n{content}\n",
    }
    for name, text in damaged.items():
        path = base / f"files/20260101_000000_{name}.md"
        path.write_text(text, encoding="utf-8", newline="\n")
    latin = base / "files/20260101_000000_00000006.md"
    latin.write_bytes(f"---\n{head}---\n\n\xff{content}".encode("latin-1"))
    remote = "https://marco:elderberry@127.0.0.1:9/memories.git"
    for words in (("--json",), ()):
        done = doctor(tmp_path, "--offline", *words, AIAML_GITHUB_REMOTE=remote)
        output = done.stdout + done.stderr
        assert "20260101_000000_00000001.md" in output  # it does say which file is wrong
        assert [word for word in (*private, TOKEN, "elderberry") if word in output] == []


@pytest.mark.slow
def test_doctor_prints_json_whatever_is_wrong(tmp_path: Path) -> None:
    """What is asked for can be had with a directory that cannot be used."""
    (tmp_path / "file").write_text("x", encoding="utf-8")
    done = doctor(tmp_path, "--offline", "--json", AIAML_MEMORY_DIR=str(tmp_path / "file"))
    found = json.loads(done.stdout)
    assert {"check", "level", "found", "remedy"} <= set(found[0])
    assert "error" in {each["level"] for each in found}


def test_links_of_the_guides_lead_somewhere() -> None:
    """A relative link in the pages for contributors names a file that exists."""
    for page in (ROOT / ".github").glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists() or (ROOT / target).exists(), (page.name, target)
