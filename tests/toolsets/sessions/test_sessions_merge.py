"""Two branches of a real repository keep logs, and git merges them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiaml_server.toolsets.sessions.markdown import Document
from aiaml_server.toolsets.sessions.merge import merge_files, merge_versions
from aiaml_server.toolsets.sessions.schema import DEFAULT_SCHEMA, Schema
from aiaml_server.toolsets.sessions.service import AgentMemory
from machine import git
from printed import completed
from sessions_case import DAY, NEXT_DAY, SECTIONS, log_path

SCHEMA = Schema.parse(DEFAULT_SCHEMA.encode())
AUTHOR = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
Change = Callable[[Path], object]


def run(repo: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the toolset in a repository."""
    return completed([sys.executable, "-m", "aiaml_server", "sessions", *words], cwd=repo)


def commit(repo: Path) -> None:
    """Commit all that is there."""
    git(repo, "add", "--all")
    git(repo, *AUTHOR, "commit", "--quiet", "--message", "work")


def entry(content: str, day: str = DAY, section: str = "Decisions") -> Change:
    """Return what appends an entry to a log, and starts it if it is missing."""

    def write(repo: Path) -> None:
        memory = AgentMemory(str(repo), "aristotle")
        memory.start_session(day)
        memory.append_entry(section, content, day)

    return write


def summary(content: str, mode: str = "append") -> Change:
    """Return what changes the summary."""
    return lambda repo: AgentMemory(str(repo), "aristotle").update_summary(
        "Decisions", content, mode
    )


@pytest.fixture
def prepared(repo: Path) -> Path:
    """A repository with a log that has an entry, after `aiaml sessions setup`."""
    entry("- base")(repo)
    summary("- lasts")(repo)
    assert run(repo, "setup", "--yes").returncode == 0
    commit(repo)
    return repo


def merge(repo: Path, left: Change, right: Change, *words: str) -> bool:
    """Have two branches do something and merge them; return whether git could."""
    git(repo, "checkout", "--quiet", "-b", "left")
    left(repo)
    commit(repo)
    git(repo, "checkout", "--quiet", "-b", "right", "main")
    right(repo)
    commit(repo)
    command = words or ("merge", "--quiet", "--no-edit", "left")
    return completed(["git", *AUTHOR, *command], cwd=repo).returncode == 0


MERGES: dict[str, tuple[Change, Change]] = {
    "the same section": (entry("- left"), entry("- right")),
    "another section": (entry("- left"), entry("- right", section="Context")),
    "the same new day": (entry("- left", NEXT_DAY), entry("- right", NEXT_DAY)),
    "the summary": (summary("- left"), summary("- right")),
    "text": (entry("left\n\nMore."), entry("right\n\nMore.")),
    "items of two lines": (entry("- left\n  by Ada"), entry("- right\n  by Ada")),
}


@pytest.mark.gate_cases(6)
@pytest.mark.parametrize("way", ["merge", "rebase"])
@pytest.mark.parametrize("case", MERGES)
def test_both_sides_are_kept(case: str, way: str, prepared: Path) -> None:
    """After setup, every line of both sides is there in its section, and the check is content."""
    left, right = MERGES[case]
    words = () if way == "merge" else ("rebase", "--quiet", "left")
    assert merge(prepared, left, right, *words)
    done = run(prepared, "check")
    assert done.returncode == 0, done.stdout
    files = [log_path(prepared), log_path(prepared, NEXT_DAY), log_path(prepared).parents[1]]
    paths = [path for path in files if path.is_file()] + [files[2] / "_summary.md"]
    text = "".join(path.read_text("utf-8") for path in paths)
    assert text.count("left") == text.count("right") == text.count("- base") == 1


def test_what_both_changed_is_a_conflict(prepared: Path) -> None:
    """Both sides replaced the same section of the summary; a person decides."""
    assert not merge(prepared, summary("- left", "replace"), summary("- right", "replace"))
    done = run(prepared, "check")
    assert done.returncode == 1
    assert "unfinished merge" in done.stdout


def test_an_edit_is_kept_beside_an_addition(tmp_path: Path) -> None:
    """Git's own merge does that, by lines; our side corrected an old entry, theirs went on."""
    base = "# Log\n\n## Decisions\n\n- one\n\n- two\n\n- three\n"
    ours, theirs = base.replace("one", "1"), f"{base}\n- four\n"
    paths = [tmp_path / name for name in ("base", "ours", "theirs")]
    for path, text in zip(paths, (base, ours, theirs), strict=True):
        path.write_text(text, "utf-8")
    assert merge_files(*paths)
    assert paths[1].read_text("utf-8") == theirs.replace("one", "1")


def test_after_a_squash_each_entry_is_there_once(prepared: Path) -> None:
    """Also when the branch goes on and is merged again."""
    assert merge(prepared, entry("- left"), lambda _: None or entry("- x", NEXT_DAY)(prepared))
    git(prepared, "checkout", "--quiet", "main")
    git(prepared, *AUTHOR, "merge", "--quiet", "--squash", "left")
    commit(prepared)
    git(prepared, "checkout", "--quiet", "left")
    entry("- left again")(prepared)
    commit(prepared)
    git(prepared, "checkout", "--quiet", "main")
    git(prepared, *AUTHOR, "merge", "--quiet", "--no-edit", "left")
    lines = log_path(prepared).read_text("utf-8").splitlines()
    assert [line for line in lines if line.startswith("- left")] == ["- left", "- left again"]


def test_without_the_program_git_marks_conflicts(prepared: Path) -> None:
    """A driver that fails would leave our side alone in the file, without a mark."""
    command = git(prepared, "config", "--get", "merge.aiaml-sessions.driver").strip()
    missing = command.replace(sys.executable, "/nowhere/python").replace("aiaml", "no-aiaml", 1)
    git(prepared, "config", "merge.aiaml-sessions.driver", missing)
    assert not merge(prepared, entry("- left"), entry("- right"))
    text = log_path(prepared).read_text("utf-8")
    assert "- left" in text
    assert "- right" in text


def test_setup_adds_to_what_is_there(repo: Path) -> None:
    """The attributes are appended once; without a yes nothing is written."""
    path = repo / ".gitattributes"
    path.write_text("*.png binary", "utf-8")
    assert run(repo, "setup").returncode != 0
    assert path.read_text("utf-8") == "*.png binary"
    for _ in range(2):
        assert run(repo, "setup", "--yes").returncode == 0
    text = path.read_text("utf-8")
    assert text.startswith("*.png binary\n#")
    assert text.count("merge=aiaml-sessions") == 2


def test_setup_warns_if_git_ignores_the_logs(repo: Path) -> None:
    """As in a repository of Node, whose `.gitignore` has `logs`; the line that it names helps."""
    (repo / ".gitignore").write_text("logs\n*.log\n", "utf-8")
    line = "!/.github/agent-memory/*/logs"
    assert line in run(repo, "setup", "--yes").stderr
    (repo / ".gitignore").write_text(f"logs\n*.log\n{line}\n", "utf-8")
    assert line not in run(repo, "setup", "--yes").stderr
    AgentMemory(str(repo), "aristotle").start_session(DAY)
    git(repo, "add", ".")
    assert f"logs/{DAY}.md" in git(repo, "ls-files")


def additions(name: str) -> st.SearchStrategy[list[tuple[str, str]]]:
    """Return entries of one side, each with its section."""
    content = st.integers(0, 99).map(lambda number: f"- {name}{number}: a decision")
    return st.lists(st.tuples(st.sampled_from(SECTIONS), content), min_size=1, max_size=5)


@given(additions("base"), additions("ours"), additions("theirs"), st.booleans())
def test_each_entry_stays_in_its_section(
    base: list[tuple[str, str]],
    ours: list[tuple[str, str]],
    theirs: list[tuple[str, str]],
    is_new: bool,
) -> None:
    """Whether both sides begin the day, or go on from a common log."""

    def added(document: Document, entries: list[tuple[str, str]]) -> Document:
        for section, content in entries:
            document = document.append(section, content)
        return document

    empty = Document(SCHEMA.new_log("aristotle", DAY))
    common = empty if is_new else added(empty, base)
    mine, other = added(common, ours), added(common, theirs)
    merged = merge_versions(b"" if is_new else common.data, mine.data, other.data)
    assert merged is not None
    document = Document(merged)
    assert not SCHEMA.log_problems(document, "aristotle", DAY)
    for section, content in [*([] if is_new else base), *ours, *theirs]:
        assert content.encode() in document.body(section)


def test_a_merge_of_many_sections_is_linear() -> None:
    """A summary with a thousand sections on each side is merged, one pass over each."""
    text = "# Summary: aristotle\n" + "".join(f"\n## S{n}\n\n- {n}\n" for n in range(990))
    ours = text.replace("- 0\n", "- 0\n\n- ours\n", 1).encode()
    theirs = text.replace("- 989\n", "- 989\n\n- theirs\n", 1).encode()
    merged = merge_versions(text.encode(), ours, theirs)
    assert merged is not None
    assert b"- ours" in merged
    assert b"- theirs" in merged
