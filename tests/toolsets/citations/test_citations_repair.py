"""Repairing a memory of `citations` loses nothing, and verifying it makes no conflicts."""

from __future__ import annotations

import os
import re
import stat
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from test_citations import bare

from aiaml_server.toolsets.citations import Citation, Memories, ToolError
from aiaml_server.toolsets.citations.conflicts import settled
from aiaml_server.toolsets.citations.tools import CitationTools
from machine import as_person, git

CODE = "\n".join(f"line_{number} = {number} * rate" for number in range(1, 21)) + "\n"
FACT = "**Fact**: Rates are percent.\n\n**Reasoning**: r.\n\n**Action**: a."


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with a file of code."""
    path = tmp_path / "shop"
    path.mkdir()
    git(path, "init", "--quiet", "--initial-branch=main")
    (path / "a.py").write_text(CODE, "utf-8")
    return path


def saved(repo: Path, *lines: int) -> str:
    """Save a memory that cites some lines; return its id."""
    cited = [Citation("a.py", line) for line in lines]
    return Memories(repo).save("Rates", FACT, cited).id


def lines_of(repo: Path, memory_id: str) -> list[int | None]:
    """Return the lines that a memory cites."""
    return [each.line for each in Memories(repo).get(memory_id).citations]


def dated(repo: Path, memory_id: str, days: int) -> str:
    """Write that a memory was verified some days ago; return its text."""
    file = repo / Memories(repo).store.path(memory_id)
    then = datetime.now(timezone.utc) - timedelta(days=days)
    text = re.sub(r"verified: .*", f"verified: {then:%Y-%m-%d}T00:00:00Z", file.read_text("utf-8"))
    file.write_text(text, "utf-8")
    return text


# --- repair ---


def test_recite_puts_one_citation_in_the_place_of_another(repo: Path) -> None:
    """The others stay; what the memory says is shown beside what it cites."""
    name = saved(repo, 2, 5, 9)
    done = bare("recite", name, "a.py:5", "a.py:6", cwd=repo)
    assert done.returncode == 0 and lines_of(repo, name) == [2, 6, 9]
    assert "the memory says: Rates are percent." in done.stderr
    assert "a.py:6: line_6 = 6 * rate" in done.stderr
    assert bare("recite", name, "a.py:6", "--drop", cwd=repo).returncode == 0
    assert lines_of(repo, name) == [2, 9]
    done = bare("recite", name, "a.py:6", "a.py:7", cwd=repo)
    assert done.returncode == 2 and "it cites a.py:2, a.py:9" in done.stderr
    assert bare("recite", name, "a.py:2", cwd=repo).returncode == 2
    assert lines_of(repo, name) == [2, 9]


def test_update_by_the_command_keeps_other_citations(repo: Path) -> None:
    """One of the same place is taken down anew."""
    name = saved(repo, 2, 5, 9)
    (repo / "a.py").write_text(CODE.replace("line_5 = 5", "line_5 = 55"), "utf-8")
    done = bare("save", "--id", name, "--cite", "a.py:5", "--cite", "a.py:7", cwd=repo)
    assert done.returncode == 0 and lines_of(repo, name) == [2, 5, 9, 7]
    assert "55" in str(Memories(repo).get(name).citations[1].snippet)


def test_update_by_the_tool_that_would_lose_citations_says_so(repo: Path) -> None:
    """And changes nothing until it is asked for in so many words."""
    name = saved(repo, 2, 5)
    tools = CitationTools(str(repo))
    with pytest.raises(ToolError, match=r"let go of a\.py:2; .* drop_citations=true"):
        tools.memory_save(id=name, citations=[{"path": "a.py", "line": 5}])
    assert lines_of(repo, name) == [2, 5]
    tools.memory_save(id=name, citations=[{"path": "a.py", "line": 5}], drop_citations=True)
    assert lines_of(repo, name) == [5]


def test_verify_shows_the_fact_beside_the_line_that_is_stale(repo: Path) -> None:
    """So that nobody cites another line by reflex; the hint loses nothing."""
    name = saved(repo, 2, 5)
    (repo / "a.py").write_text(CODE.replace("line_5 = 5", "line_5 = 55"), "utf-8")
    done = bare("verify", cwd=repo)
    assert done.returncode == 1
    assert "    says: Rates are percent.\n    a.py:5 was: line_5 = 5 * rate\n" in done.stdout
    assert "recite ID OLD NEW" in done.stderr and name in done.stdout


# --- verification ---


@pytest.mark.parametrize(("days", "written"), [(0, False), (6, False), (7, True), (30, True)])
def test_verify_writes_the_day_once_a_week(repo: Path, days: int, written: bool) -> None:
    """Or once in a quarter of the threshold, whichever is shorter; a day, no time of day."""
    name = saved(repo, 2)
    before = dated(repo, name, days)
    assert Memories(repo).verify(name).updated is written
    after = (repo / Memories(repo).store.path(name)).read_text("utf-8")
    today = datetime.now(timezone.utc)
    assert (after != before) is written
    if written:
        assert f"verified: {today:%Y-%m-%d}T00:00:00Z" in after


def test_verify_follows_a_short_threshold(repo: Path) -> None:
    """Of eight days, so that nothing is overdue that was verified all the time."""
    name = saved(repo, 2)
    (repo / ".memory-config.yaml").write_text("verification:\n  stale_threshold_days: 8\n")
    dated(repo, name, 2)
    assert Memories(repo).verify(name).updated


def test_two_branches_that_verified_everything_merge(repo: Path) -> None:
    """On one day, without a conflict: both have written the same."""
    names = [saved(repo, line) for line in (2, 5, 9)]
    for name in names:
        dated(repo, name, 20)
    git(repo, "add", "--all")
    as_person(repo, "commit", "--quiet", "--message", "first")
    for branch in ("one", "two"):
        git(repo, "switch", "--quiet", "--create", branch, "main")
        Memories(repo).verify_all(update_timestamp=True)
        (repo / f"{branch}.txt").write_text(branch)
        git(repo, "add", "--all")
        as_person(repo, "commit", "--quiet", "--message", branch)
    as_person(repo, "merge", "--quiet", "--no-edit", "one")
    results, broken = Memories(repo).verify_all()
    assert not broken and all(each.valid for each in results)


def test_conflict_over_the_day_alone_is_read_as_the_later_one(repo: Path) -> None:
    """Of a merge that git left so; the next change writes the file without it."""
    name = saved(repo, 2)
    path = Memories(repo).store.path(name)
    dated(repo, name, 30)
    git(repo, "add", "--all")
    as_person(repo, "commit", "--quiet", "--message", "first")
    for branch, days in (("one", 9), ("two", 3)):
        git(repo, "switch", "--quiet", "--create", branch, "main")
        dated(repo, name, days)
        as_person(repo, "commit", "--quiet", "--all", "--message", branch)
    with pytest.raises(Exception, match="merge"):
        as_person(repo, "merge", "--quiet", "one")
    assert "<<<<<<< " in (repo / path).read_text("utf-8")
    memories = Memories(repo)
    assert memories.age(memories.get(name)) == 3
    assert not memories.verify_all()[1]
    memories.save(id=name, tags=["rates"])
    assert "<<<<<<<" not in (repo / path).read_text("utf-8")


def test_conflict_over_anything_else_is_no_memory() -> None:
    """Nothing is chosen for a person."""
    for ours, theirs in (
        ("verified: 2026-01-01T00:00:00Z\nsubject: a\n", "verified: 2026-01-02T00:00:00Z\n"),
        ("a\n", "b\n"),
        ("", "verified: 2026-01-02T00:00:00Z\n"),
    ):
        text = f"---\n<<<<<<< HEAD\n{ours}=======\n{theirs}>>>>>>> one\n---\n"
        assert settled(text) == text
    day = "verified: 2026-01-0{}T00:00:00Z\nconfidence: {}\n"
    text = "---\n<<<<<<< HEAD\n{}||||||| base\nx\n=======\n{}>>>>>>> one\n---\n"
    assert (
        settled(text.format(day.format(2, 0.9), day.format(1, 1.0)))
        == f"---\n{day.format(2, 0.9)}---\n"
    )


@pytest.mark.skipif(os.name == "nt" or not os.geteuid(), reason="everything may be written")
def test_verify_in_a_tree_that_may_only_be_read(repo: Path) -> None:
    """Gives its verdicts, and says that they were not written."""
    name = saved(repo, 2)
    dated(repo, name, 20)
    place = repo / "memories"
    place.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        result = Memories(repo).verify(name)
        done = bare("verify", "--update", cwd=repo)
    finally:
        place.chmod(stat.S_IRWXU)
    assert result.valid and not result.updated and "memories" in result.unwritten
    assert done.returncode == 0 and "not written" in done.stderr


def test_verify_that_cannot_write_gives_its_verdicts(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the disk says."""
    name = saved(repo, 2)
    dated(repo, name, 20)

    def refuse(*_args: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("aiaml_server.toolsets.citations.store.replace", refuse)
    result = Memories(repo).verify(name)
    assert result.valid and not result.updated and "ermission denied" in result.unwritten
