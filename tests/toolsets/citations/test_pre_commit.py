"""The hooks for pre-commit, installed and run by pre-commit itself in another repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from aiaml_server.toolsets.citations import Citation, MemoryService
from aiaml_server.toolsets.sessions.service import AgentMemory
from environments import ROOT, UV
from machine import git

PUBLISHED = (".pre-commit-hooks.yaml", "pyproject.toml", "README.md", "LICENSE", "src", "scripts")
WHO = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
DAY = "2025-01-20"


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository that others name in their configuration, as far as a hook needs it."""
    path = tmp_path_factory.mktemp("hooks")
    for name in PUBLISHED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, path / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, path / name)
    git(path, "init", "--quiet")
    git(path, "add", "--all")
    git(path, *WHO, "commit", "--quiet", "--message", "hooks")
    return path


@pytest.fixture
def shop(tmp_path: Path, hooks: Path) -> Path:
    """A repository with a session of an agent, that uses the hook."""
    path = tmp_path / "shop"
    path.mkdir()
    git(path, "init", "--quiet")
    memory = AgentMemory(str(path), "aristotle")
    memory.start_session(DAY)
    memory.append_entry("Decisions", "- Cents.", DAY)
    revision = git(hooks, "rev-parse", "HEAD").strip()
    (path / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: {hooks.as_uri()}\n    rev: {revision}\n"
        "    hooks:\n      - id: aiaml-sessions-check\n",
        "utf-8",
    )
    git(path, "add", "--all")
    return path


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pre-commit keeps what it installs, for all tests of this file."""
    return tmp_path_factory.mktemp("pre-commit")


def start(command: list[str], repository: Path, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a repository, with what pre-commit keeps in a home of its own."""
    return subprocess.run(
        command,
        cwd=repository,
        env={**os.environ, "PRE_COMMIT_HOME": str(home), "PRE_COMMIT_COLOR": "never"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def pre_commit(word: str, repository: Path, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of pre-commit: `run` for the hooks on what is staged, or `install`."""
    words = [UV, "tool", "run", "--quiet", "--python", sys.executable, "pre-commit", word]
    return start(words, repository, home)


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_pre_commit_lets_good_logs_in_and_bad_ones_not(shop: Path, home: Path) -> None:
    """With file and line of each problem; what is no log is not looked at."""
    (shop / "notes.md").write_text("# Session Log\n")
    git(shop, "add", "notes.md")
    done = pre_commit("run", shop, home)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed" in done.stdout
    git(shop, *WHO, "commit", "--quiet", "--message", "a session")
    log = shop / ".github" / "agent-memory" / "aristotle" / "logs" / f"{DAY}.md"
    with log.open("a", encoding="utf-8") as stream:
        stream.write("\n## Thoughts\n")
    git(shop, "add", "--all")
    done = pre_commit("run", shop, home)
    assert done.returncode == 1, done.stdout + done.stderr
    name = log.relative_to(shop)
    line = log.read_text("utf-8").splitlines().index("## Thoughts") + 1
    assert f"{name}:{line}: the section 'Thoughts' is not in the schema" in done.stdout


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_pre_commit_lets_no_stale_memory_in(shop: Path, home: Path, tmp_path: Path) -> None:
    """In a clone: git refuses the commit that makes a memory stale, and no other."""
    config = shop / ".pre-commit-config.yaml"
    text = config.read_text("utf-8").replace("aiaml-sessions-check", "aiaml-citations-verify")
    config.write_text(text, "utf-8")
    (shop / "prices.py").write_text("price = 1\n")
    MemoryService(shop).save("One price", "text", [Citation("prices.py", 1)])
    git(shop, "add", "--all")
    git(shop, *WHO, "commit", "--quiet", "--message", "a memory")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(shop), str(clone))
    installed = pre_commit("install", clone, home)
    assert installed.returncode == 0, installed.stdout + installed.stderr
    for name, line, code in (("README.md", "Fine.\n", 0), ("prices.py", "price = 2\n", 1)):
        (clone / name).write_text(line)
        git(clone, "add", "--all")
        done = start(["git", *WHO, "commit", "--message", name], clone, home)
        assert done.returncode == code, done.stdout + done.stderr
    assert "prices.py:1 changed" in done.stdout + done.stderr
    assert git(clone, "log", "--format=%s", "-1") == "README.md"
