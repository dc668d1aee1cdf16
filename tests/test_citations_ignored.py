"""Of a file that git ignores, `citations` copies no line into the repository."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from aiaml_server.toolsets.citations import Citation, Memories
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
