"""Of a file that git ignores, `citations` copies no line into the repository, and shows none."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_citations import bare, full

from aiaml_server.toolsets.citations import Citation, Memories
from aiaml_server.toolsets.citations.tools import CitationTools
from aiaml_server.toolsets.git import ask
from machine import git
from secrets_corpus import ALNUM, of

VALUE = of(ALNUM, 32)(random.Random(28))

pytestmark = pytest.mark.usefixtures("nobodys_configuration")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A git repository with a file of code, and two files that git ignores."""
    path = tmp_path / "shop"
    (path / "conf").mkdir(parents=True)
    git(path, "init", "--quiet", "--initial-branch=main")
    (path / "prices.py").write_text("def price(order):\n    return sum(order)  # in cents\n")
    (path / "local.ini").write_text(f"[api]\nsecond = {VALUE}\n")
    (path / "conf" / ".gitignore").write_text("*.local\n")
    (path / "conf" / "db.local").write_text(f"first\nsecond = {VALUE}\n")
    (path / ".gitignore").write_text("local.ini\n")
    return path


@pytest.mark.gate_cases(4)
@pytest.mark.parametrize("path", ["local.ini", "conf/db.local", "./conf//db.local", "link"])
@pytest.mark.parametrize("snippet", [None, f"second = {VALUE}"])
def test_citation_of_an_ignored_file_keeps_no_text(
    repo: Path, path: str, snippet: str | None
) -> None:
    """Nor what is given as its snippet, nor its neighbours; also through a link; and says so."""
    (repo / "link").symlink_to("local.ini")
    memories = Memories(repo)
    saved = memories.save("Api", "**Fact**: x", [Citation(path, 2, snippet)])
    assert any("git ignores it, so none of its text is kept" in each for each in saved.warnings)
    (cited,) = memories.get(saved.id).citations
    assert (cited.line, cited.snippet, cited.before, cited.after) == (2, None, None, None)
    for file in (repo / "memories").iterdir():
        assert VALUE not in file.read_text("utf-8")


def test_citation_of_a_tracked_file_keeps_its_text(repo: Path) -> None:
    """Also where a line would ignore it: git does not, once it has the file."""
    (repo / ".gitignore").write_text("*.py\n")
    git(repo, "add", "--force", "prices.py")
    memories = Memories(repo)
    saved = memories.save("Prices", "**Fact**: x", [Citation("prices.py", 2)])
    assert memories.get(saved.id).citations[0].snippet == "return sum(order)  # in cents"


@pytest.mark.parametrize(
    ("name", "kept"),
    [(".env", False), ("server.pem", False), ("id_ed25519", False), ("a.py", True)],
)
def test_citation_without_git_goes_by_the_name(
    repo: Path, name: str, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no git can say, what is known for secrets is not copied."""
    monkeypatch.setenv("PATH", "")
    (repo / name).write_text(f"second = {VALUE}\n")
    memories = Memories(repo)
    saved = memories.save("Api", "**Fact**: x", [Citation(name, 1)])
    assert (memories.get(saved.id).citations[0].snippet is not None) is kept
    assert any("files of this name hold secrets" in each for each in saved.warnings) is not kept


def planted(repo: Path, path: str, line: int, snippet: str) -> None:
    """Add a memory that somebody wrote who has not the file, and wants to know what is in it."""
    memories = Memories(repo)
    saved = memories.save("Prices", "**Fact**: x", [Citation("prices.py", 1)])
    file = repo / saved.path
    text = file.read_text("utf-8").replace("path: prices.py", f"path: {path}")
    kept = [each for each in text.split("\n") if not each.startswith(("    before", "    after"))]
    text = "\n".join(each for each in kept if not each.startswith("    within"))
    text = text.replace("line: 1\n", f"line: {line}\n")
    file.write_text(text.replace('"def price(order):"', json.dumps(snippet)), "utf-8")


WAYS = [
    ("verify",),
    ("verify", "--json"),
    ("verify", "--format", "github"),
    ("verify", "--changed"),
    ("about", "local.ini", "conf", "gone.ini", "link", "--json"),
    ("search", "prices", "--verify", "--json"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "path"), [(bare, "local.ini"), (bare, "conf/db.local"), (full, "link")]
)
def test_ignored_file_is_shown_by_nothing(
    command: Callable[..., Any], repo: Path, path: str
) -> None:
    """Whatever the snippet says of it, and whether or not it is there, the answer is the same."""
    (repo / "link").symlink_to("local.ini")
    git(repo, "add", "prices.py", ".gitignore", "conf/.gitignore", "link")
    git(repo, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "--quiet", "-m", "x")
    answers: list[list[str]] = []
    for line, snippet in ((2, "second = "), (2, f"second = {VALUE}"), (900, "first = 3")):
        planted(repo, path, line, snippet)
        said = []
        for way in WAYS:
            done = command(*way, cwd=repo)
            assert VALUE not in done.stdout.replace(snippet, "") + done.stderr
            text = f"{done.returncode} {done.stdout}{done.stderr}"
            for each in (json.dumps(snippet), snippet, f":{line} ", f'"line": {line},'):
                text = text.replace(each, "-")
            said.append(text)
        answers.append(said)
    assert answers[0] == answers[1] == answers[2]
    assert "unseen (git ignores it, so nothing of it is told)" in answers[0][0]
    assert answers[0][0].startswith("2 ")
    for each in ("local.ini", "conf/db.local"):
        (repo / each).unlink()
    planted(repo, path if path != "link" else "local.ini", 2, "second = ")
    gone = command("verify", cwd=repo)
    assert gone.returncode == 2 and "git ignores it" in gone.stdout


def test_ignored_file_is_told_of_by_no_tool(repo: Path) -> None:
    """Neither by one verification nor by that of all."""
    planted(repo, "local.ini", 2, "second = ")
    tools = CitationTools(str(repo))
    (memory,) = Memories(repo).list().memories
    for answer in (tools.memory_verify(memory), tools.memory_batch_verify()):
        assert VALUE not in str(answer) and "git ignores it" in str(answer)


def test_git_is_asked_once_for_all_that_is_verified(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many memories there are, and whatever they cite; and once for all that one cites."""
    memories = Memories(repo)
    for number in range(300):
        (repo / f"f{number}.py").write_text("x = 1\n")
    for number in range(5):
        memories.save(f"Prices {number}", "**Fact**: x", [Citation("prices.py", 1 + number % 2)])
    asked: list[str] = []

    def counted(root: str, *words: str, **more: Any) -> Any:
        asked.append(words[0])
        return ask(root, *words, **more)

    monkeypatch.setattr("aiaml_server.toolsets.citations.repository.ask", counted)
    results, _ = memories.verify_all()
    assert [each.valid for each in results] == [True] * 5
    assert sorted(asked) == ["check-ignore", "rev-parse"]
    asked.clear()
    memories.save("Many", "**Fact**: x", [Citation(f"f{number}.py:1") for number in range(300)])
    assert sorted(asked) == ["check-ignore", "rev-parse"]


@pytest.mark.parametrize("tree", ["conf", "..", "/"])
def test_settings_of_another_work_tree_show_nothing(repo: Path, tree: str) -> None:
    """A `.git` that came along may say that its files lie elsewhere: git then ignores none."""
    git(repo, "config", "core.worktree", str((repo / tree).resolve()))
    memories = Memories(repo)
    saved = memories.save("Api", "**Fact**: x", [Citation("local.ini", 2)])
    assert any("git does not say whether it ignores it" in each for each in saved.warnings)
    assert memories.get(saved.id).citations[0].snippet is None
    planted(repo, "local.ini", 2, "second = ")
    for each in memories.verify_all()[0]:
        assert VALUE not in str(each.checked)
        assert [one.verdict for one in each.checked] == ["unseen"]
