"""Serena's memories taken over, and the skill for Claude Code."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from aiaml_server.toolsets.citations import Memories, serena, skill
from aiaml_server.toolsets.citations.failures import DiskError, InvalidInput, NoRepository
from client import SERVER
from machine import CLEAN, git
from paths import ROOT
from printed import completed


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with code, and a directory for Serena's memories."""
    path = tmp_path / "shop"
    (path / ".serena" / "memories" / "topic").mkdir(parents=True)
    git(path, "init", "--quiet")
    (path / "prices.py").write_text("def price(order):\n    return sum(order)\n")
    return path


def note(repo: Path, name: str, text: str | bytes) -> Path:
    """Write one of Serena's memories."""
    path = repo / ".serena" / "memories" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def run(repo: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the verb."""
    return completed(
        [*SERVER, "citations", *words],
        cwd=repo,
        env={**os.environ, "HOME": str(repo.parent), "USERPROFILE": str(repo.parent)},
        timeout=60,
    )


def taken(repo: Path) -> dict[str, serena.Taken]:
    """Import all; return what became of each note, by its name."""
    memories = Memories(repo)
    planned = serena.plan(memories)
    serena.apply(memories, planned)
    return {each.note.name: each for each in planned.taken}


def test_a_memory_is_taken_over(repo: Path) -> None:
    """Its text byte for byte, its folder in id, source and tags, its heading as the subject."""
    text = (
        "# Prices of the shop\r\n\r\nSee `mem:topic/other` and [that](other.md#part), also "
        "[gone](../gone.md), [code](../../../prices.py), [web](https://example.org/x.md).\n"
        "It is in prices.py:2, in nowhere.py:3 and in prices.py:99. Then mem:away.\n\n  "
    )
    original = note(repo, "topic/prices.md", text)
    note(repo, "topic/other.md", "no heading\n")
    found = taken(repo)["topic/prices"]
    memory = Memories(repo).get("mem-topic.prices")
    data = (repo / "memories" / "mem-topic.prices.md").read_bytes()
    assert data.endswith(b"\n---\n\n" + original.read_bytes())
    assert (memory.subject, memory.tags) == ("Prices of the shop", ("topic",))
    assert [(each.type, each.target) for each in memory.links] == [
        ("references", "mem-topic.other")
    ]
    (citation,) = memory.citations
    assert (citation.path, citation.line, citation.snippet) == ("prices.py", 2, "return sum(order)")
    assert (memory.verified, memory.confidence) == ("", None)
    assert b'\nsource: ".serena/memories/topic/prices.md"\n' in data
    assert found.dead == [
        (3, "gone"), (4, "away"), (4, "nowhere.py:3"), (4, "prices.py:99")
    ]  # fmt: skip
    assert Memories(repo).get("mem-topic.other").subject == "no heading"
    assert original.read_bytes() == text.encode()


def test_the_first_commit_is_the_time_of_creation(repo: Path) -> None:
    """Where git has the file; else its own time."""
    note(repo, "old.md", "# Old\n")
    when = {**os.environ, **CLEAN, "GIT_AUTHOR_DATE": "2024-05-06T07:08:09+02:00"}
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    git(repo, "add", "--all")
    words = ["git", *who, "commit", "--quiet", "--message", "one"]
    subprocess.run(words, cwd=repo, env=when, check=True)
    note(repo, "old.md", "# Old\n\nMore.\n")
    git(repo, *who, "commit", "--quiet", "--all", "--message", "two")
    os.utime(note(repo, "new name é.md", "# New\n"), (1_600_000_000, 1_600_000_000))
    taken(repo)
    created = {each.subject: each.created for each in Memories(repo).list().memories.values()}
    assert created == {"Old": "2024-05-06T05:08:09Z", "New": "2020-09-13T12:26:40Z"}


def test_a_dry_run_writes_nothing_and_a_second_run_changes_nothing(repo: Path) -> None:
    """Also when the code or a note has changed meanwhile; that is said."""
    note(repo, "a.md", "# A\n\nprices.py:2 and mem:nowhere\n")
    done = run(repo, "import-serena")
    assert done.returncode == 0, done.stderr
    assert ".serena/memories/a.md -> memories/mem-a.md" in done.stdout
    assert ".serena/memories/a.md:3: nowhere is not there" in done.stdout
    assert "1 to import (0 links, 1 citations), 0 already there" in done.stderr
    assert not (repo / "memories").exists()
    assert "1 imported" in run(repo, "import-serena", "--apply").stderr
    file = repo / "memories" / "mem-a.md"
    before = (file.read_bytes(), file.stat().st_mtime_ns)
    (repo / "prices.py").write_text("other\n")
    again = json.loads(run(repo, "import-serena", "--apply", "--json").stdout)
    assert (again["new"], again["there"], again["differ"]) == ([], ["mem-a"], [])
    note(repo, "a.md", "# A\n\nchanged\n")
    again = json.loads(run(repo, "import-serena", "--apply", "--json").stdout)
    assert again["differ"] == ["mem-a"]
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before


def test_names_that_are_no_ids_and_those_that_meet(repo: Path) -> None:
    """Each gets a file of its own, on every system, always the same one."""
    names = [
        "a/b",
        "a.b",
        "A/b" if sys.platform == "linux" else "c/b",
        "ä ö",
        "x" * 150,
        "con",
        "日本",
    ]
    for name in names:
        note(repo, f"{name}.md", f"# {name}\n")
    ids = {name: each.id for name, each in taken(repo).items()}
    assert len({each.lower() for each in ids.values()}) == len(names) == len(ids)
    assert ids["con"] == "mem-con"
    scan = Memories(repo).list()
    assert scan.broken == {} and len(scan.memories) == len(names)
    assert {name: each.id for name, each in taken(repo).items()} == ids


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_what_cannot_be_taken_is_named(repo: Path, tmp_path: Path) -> None:
    """Links out of the repository, circles, what is no text; links within it are followed."""
    private = tmp_path / "private"
    private.mkdir()
    (private / "secret.md").write_text("# Secret\n")
    top = repo / ".serena" / "memories"
    (top / "out").symlink_to(private, target_is_directory=True)
    (top / "circle").symlink_to(top, target_is_directory=True)
    (top / "one.md").symlink_to(private / "secret.md")
    (repo / "shared").mkdir()
    (repo / "shared" / "near.md").write_text("# Near\n")
    (top / "within").symlink_to(repo / "shared", target_is_directory=True)
    note(repo, "binary.md", b"\xff\xfe")
    note(repo, "notes.txt", "no memory")
    planned = serena.plan(Memories(repo))
    assert [each.note.name for each in planned.taken] == ["within/near"]
    assert {path for path, _ in planned.skipped} == {"binary.md", "one.md", "out"}
    with pytest.raises(NoRepository, match="no directory"):
        serena.plan(Memories(repo), repo / "nowhere")


@pytest.mark.slow
def test_a_large_store_arrives_whole(repo: Path) -> None:
    """Of the size and the shape of a real one: every body, every dead link, no change twice."""
    chance = random.Random(5)
    names = [
        f"topic-{chance.randrange(60)}/note-{n}" if n % 8 else f"note-{n}" for n in range(1026)
    ]
    dead = 0
    for number, name in enumerate(names):
        lines = [f"# Note {number}" if number % 20 else "plain first line", ""]
        for _ in range(3):
            other = chance.choice(names)
            up = "../" * name.count("/")
            if chance.random() < 0.2:
                other, dead = f"gone/{number}", dead + 1
            lines.append(f"- see [it]({up}{other}.md) for {chance.random()}")
        if number % 70 == 0:
            lines.append("`mem:note-8` and prices.py:1")
        if number % 250 == 3:
            lines[:0] = ["---", "title: own frontmatter", "---"]
        note(repo, f"{name}.md", "\n".join(lines) + "\n" * (number % 3))
    memories = Memories(repo)
    planned = serena.plan(memories)
    serena.apply(memories, planned)
    assert sum(len(each.dead) for each in planned.taken) == dead > 500
    scan = memories.list()
    assert len(scan.memories) == 1026 and scan.broken == {}
    for each in planned.taken:
        data = (repo / "memories" / f"{each.id}.md").read_bytes()
        original = (repo / ".serena" / "memories" / f"{each.note.name}.md").read_bytes()
        assert data.endswith(b"---\n\n" + original)
    again = serena.plan(memories)
    assert not [each for each in again.taken if each.text or each.differs]
    assert len(memories.search("note", limit=5).hits) == 5
    results, _ = memories.verify_all()
    assert sum(len(each.checked) for each in results) == 15 and all(each.valid for each in results)


# --- the skill ------------------------------------------------------------------------------------


def test_the_skill_is_one_by_its_format() -> None:
    """Name and description within the limits; short enough to be read; the same in both places."""
    text = skill.text().decode()
    assert (ROOT / "skills" / skill.NAME / "SKILL.md").read_bytes() == skill.text()
    head, body = re.fullmatch(r"---\n(.*?)\n---\n(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    stated = yaml.safe_load(head)
    assert set(stated) == {"name", "description"}
    assert stated["name"] == skill.NAME and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", skill.NAME)
    assert len(skill.NAME) <= 64 and "claude" not in skill.NAME and "anthropic" not in skill.NAME
    assert 0 < len(stated["description"]) <= 1024 and "<" not in stated["description"]
    assert "Use " in stated["description"]
    assert body.count("\n") < 500
    for tool in re.findall(r"\bmemory_[a-z_]+(?=\(|`)", text):
        assert tool in tools(), tool
    for verdict in ("ok", "moved", "renamed", "ambiguous", "changed", "missing", "outside"):
        assert verdict in body


def tools() -> tuple[str, ...]:
    """Return the names of the tools."""
    from aiaml_server import toolsets

    return toolsets.manifest("citations").tools


def test_the_skill_is_installed(repo: Path) -> None:
    """For the repository or the person; a second time nothing happens; another file stays."""
    path = repo / ".claude" / "skills" / skill.NAME / "SKILL.md"
    done = run(repo, "install-skill")
    assert done.returncode == 0 and path.read_bytes() == skill.text()
    assert "aiaml install claude-code --toolset citations" in done.stderr
    assert "is there already" in run(repo, "install-skill").stdout
    path.write_text("mine")
    assert run(repo, "install-skill").returncode == 2 and path.read_text() == "mine"
    assert run(repo, "install-skill", "--force").returncode == 0
    assert path.read_bytes() == skill.text()
    assert run(repo, "install-skill", "--user").returncode == 0
    own = repo.parent / ".claude" / "skills" / skill.NAME / "SKILL.md"
    assert own.read_bytes() == skill.text()


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_the_skill_is_not_written_elsewhere(repo: Path, tmp_path: Path) -> None:
    """By a link in a repository that was cloned."""
    (repo / ".claude").symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(DiskError, match="link"):
        skill.install(repo)
    assert not (tmp_path / "skills").exists()
    shutil.rmtree(repo / ".serena")
    (repo / ".claude").unlink()
    path = repo / ".claude" / "skills" / skill.NAME / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("x")
    with pytest.raises(InvalidInput, match="--force"):
        skill.install(repo)
