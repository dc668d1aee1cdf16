"""Two branches of a real repository that keep logs: what git makes of both, and what `check` says.

With the lines that `aiaml sessions setup` writes, both sides of every merge come together; without
them git marks a conflict, which is found wherever it is committed.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from aiaml_server.toolsets.sessions.document import Document
from aiaml_server.toolsets.sessions.failures import MalformedLog, ToolError
from aiaml_server.toolsets.sessions.history import lost
from aiaml_server.toolsets.sessions.memory import AgentMemory
from aiaml_server.toolsets.sessions.merging import merged
from aiaml_server.toolsets.sessions.schema import DEFAULT_SCHEMA, Schema
from environments import ROOT
from machine import git
from printed import completed

SECTIONS = ["Context", "Discussion Summary", "Decisions", "Open Questions", "Next Actions"]
DAY, NEXT = "2025-01-20", "2025-01-21"
BELOW = Path(".github/agent-memory/aristotle")
WHO = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


def aiaml(repo: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a verb of the toolset in a repository."""
    return completed([sys.executable, "-m", "aiaml_server", "sessions", *words], cwd=repo)


def commit(repo: Path, message: str = "work") -> None:
    """Commit all that is there."""
    git(repo, "add", "--all")
    git(repo, *WHO, "commit", "--quiet", "--message", message)


def log_of(repo: Path, day: str = DAY) -> Path:
    """Return where a day's log is."""
    return repo / BELOW / "logs" / f"{day}.md"


def entry(words: str, day: str = DAY, section: str = "Decisions") -> Callable[[Path], object]:
    """Return what appends an entry, to a log that is started where it is missing."""

    def write(repo: Path) -> None:
        memory = AgentMemory(str(repo), "aristotle")
        memory.start(day)
        memory.append(section, words, day)

    return write


def lasting(words: str, mode: str = "append") -> Callable[[Path], object]:
    """Return what changes the summary."""
    return lambda repo: AgentMemory(str(repo), "aristotle").update("Decisions", words, mode)


def renamed(repo: Path) -> None:
    """Give the agent another name, as a person does."""
    git(repo, "mv", str(BELOW), str(BELOW.with_name("plato")))
    for path in (repo / BELOW.with_name("plato")).rglob("*.md"):
        path.write_text(path.read_text("utf-8").replace("aristotle", "plato"), "utf-8")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with a log that has an entry."""
    path = tmp_path / "shop"
    path.mkdir()
    git(path, "init", "--quiet", "--initial-branch=main")
    entry("- base")(path)
    lasting("- lasts")(path)
    commit(path)
    return path


@pytest.fixture
def prepared(repo: Path) -> Path:
    """The same, after `aiaml sessions setup`."""
    assert aiaml(repo, "setup", "--yes").returncode == 0
    commit(repo, "setup")
    return repo


MERGES: dict[str, tuple[Callable[[Path], object], Callable[[Path], object]]] = {
    "the same section": (entry("- left decision"), entry("- right decision")),
    "another section": (entry("- left"), entry("- right", section="Context")),
    "the same new day": (entry("- left decision", NEXT), entry("- right decision", NEXT)),
    "the summary": (lasting("- left decision"), lasting("- right decision")),
    "several sections of a new day": (
        lambda repo: [entry("- left a", NEXT)(repo), entry("- left b", NEXT, SECTIONS[4])(repo)],
        lambda repo: [entry("- right a", NEXT)(repo), entry("- right b", NEXT, SECTIONS[3])(repo)],
    ),
    "the same last line": (entry("- left\n  by Ada"), entry("- right\n  by Ada")),
    "plain text": (entry("Left.\n\nMore left."), entry("Right.\n\nMore right.")),
    "an agent renamed": (renamed, entry("- right decision")),
}
WAYS = ("merge", "rebase", "squash")


def brought_together(repo: Path, case: str, way: str) -> bool:
    """Have two branches do something, and bring them together; say whether git could."""
    left, right = MERGES[case]
    git(repo, "checkout", "--quiet", "-b", "left")
    left(repo)
    commit(repo, "left")
    git(repo, "checkout", "--quiet", "-b", "right", "main")
    right(repo)
    commit(repo, "right")
    words = {
        "merge": ("merge", "--quiet", "--no-edit", "left"),
        "rebase": ("rebase", "--quiet", "left"),
        "squash": ("merge", "--quiet", "--squash", "left"),
    }[way]
    done = completed(["git", *WHO, *words], cwd=repo)
    if done.returncode == 0 and way == "squash":
        commit(repo, "squashed")
    return done.returncode == 0


@pytest.mark.gate_cases(8)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", MERGES)
def test_setup_merge_keeps_both_sides(case: str, way: str, prepared: Path) -> None:
    """Whatever the two branches did; what is left to do after it is found by `check`."""
    assert brought_together(prepared, case, way)
    files = sorted((prepared / BELOW.parent).rglob("*.md"))
    text = "".join(each.read_text("utf-8") for each in files)
    assert "right" in text.lower() and ("left" in text.lower() or case == "an agent renamed")
    done = aiaml(prepared, "check")
    assert case == "an agent renamed" or done.stdout == ""  # no entry is there twice
    if case == "the same last line":
        assert text.count("by Ada") == 2 and "- right\n  by Ada" in text
    if case == "plain text":
        assert "\n\nRight.\n\nMore right.\n" in text and "\n\nLeft.\n\nMore left.\n" in text
    if case == "an agent renamed":
        assert "- base\n- right decision" in text.replace("\n\n", "\n") and "plato" in text
    assert done.returncode == 0, done.stdout


ENTRIES = st.lists(
    st.tuples(st.sampled_from(SECTIONS), st.sampled_from(["", "\n  the same line", "\n\n  more"])),
    max_size=5,
)


@given(begun=ENTRIES, left=ENTRIES, right=ENTRIES, is_new=st.booleans())
def test_merged_keeps_each_entry_in_its_section(
    begun: list[tuple[str, str]],
    left: list[tuple[str, str]],
    right: list[tuple[str, str]],
    is_new: bool,
) -> None:
    """Whatever two branches add to a log that one has had, or both begin; in their order."""
    schema = Schema.parse(DEFAULT_SCHEMA.encode())

    def written(log: Document, entries: list[tuple[str, str]], side: str) -> Document:
        for number, (section, more) in enumerate(entries):
            log = log.appended(section, f"- {side} {number}{more}")
        return log

    empty = Document(schema.log("aristotle", DAY))
    base = empty if is_new else written(empty, begun, "base")
    sides = [written(base, left, "left"), written(base, right, "right")]
    whole = merged(b"" if is_new else base.data, sides[0].data, sides[1].data)
    assert whole is not None
    log = Document(whole)
    assert list(schema.log_problems(log, "aristotle", DAY)) == []
    if left or right:
        assert whole.endswith(b"\n") and not whole.endswith(b"\n\n")
    expected = dict.fromkeys(SECTIONS, "")
    for side, entries in (("base", [] if is_new else begun), ("left", left), ("right", right)):
        for number, (section, more) in enumerate(entries):
            expected[section] += f"- {side} {number}{more}\n\n"
    for name, text in expected.items():
        assert log.entries(name).decode() == text.strip()


def test_merge_of_what_was_changed_is_a_person_s(prepared: Path) -> None:
    """Both sides have replaced a section, or one has edited an entry: marks, and a conflict."""
    left, right = lasting("- left decision", "replace"), lasting("- right decision", "replace")
    with mock.patch.dict(MERGES, {"replaced": (left, right)}):
        assert not brought_together(prepared, "replaced", "merge")
    text = (prepared / BELOW / "_summary.md").read_text("utf-8")
    assert "<<<<<<< ours\n- right decision\n=======\n- left decision\n>>>>>>> theirs\n" in text


@pytest.mark.slow
@pytest.mark.parametrize("way", ["merge", "merge back", "rebase", "squash"])
def test_merge_after_a_squash_has_each_entry_once(way: str, prepared: Path) -> None:
    """A branch whose commits came to main as one, and that went on: nothing twice, nothing lost."""
    git(prepared, "checkout", "--quiet", "-b", "left")
    for each in (entry("- left a"), entry("- left b", section="Context"), entry("- new", NEXT)):
        each(prepared)
    lasting("- left lasts")(prepared)
    commit(prepared, "left")
    git(prepared, "checkout", "--quiet", "main")
    entry("- main a")(prepared)
    entry("- main new", NEXT)(prepared)
    commit(prepared, "main")
    git(prepared, *WHO, "merge", "--quiet", "--squash", "left")
    commit(prepared, "squashed")
    entry("- main b")(prepared)
    commit(prepared, "main goes on")
    git(prepared, "checkout", "--quiet", "left")
    for each in (entry("- left c"), entry("- left d", NEXT), lasting("- left lasts on")):
        each(prepared)
    commit(prepared, "left goes on")
    git(prepared, "branch", "before")
    if way in ("merge", "squash"):
        git(prepared, "checkout", "--quiet", "main")
    words = {
        "merge": ("merge", "--quiet", "--no-edit", "left"),
        "merge back": ("merge", "--quiet", "--no-edit", "main"),
        "rebase": ("rebase", "--quiet", "main"),
        "squash": ("merge", "--quiet", "--squash", "left"),
    }[way]
    git(prepared, *WHO, *words)
    if way == "squash":
        commit(prepared, "squashed again")
    said = {day: Document(log_of(prepared, day).read_bytes()) for day in (DAY, NEXT)}
    main = ["- base", "- main a", "- left a", "- main b", "- left c"]
    left = ["- base", "- main a", "- left a", "- left c", "- main b"]
    decisions = said[DAY].entries("Decisions").decode().split("\n\n")
    assert decisions == (left if way == "merge back" else main)
    assert said[DAY].entries("Context") == b"- left b"
    assert said[NEXT].entries("Decisions") == b"- main new\n\n- new\n\n- left d"
    summary = Document((prepared / BELOW / "_summary.md").read_bytes())
    assert summary.entries("Decisions") == b"- lasts\n\n- left lasts\n\n- left lasts on"
    for against in ("main", "before", "left"):
        done = aiaml(prepared, "check", "--against", against)
        assert (done.returncode, done.stdout) == (0, ""), done.stdout


EQUAL: dict[str, tuple[list[str], list[str], list[str]]] = {
    "both have one": (["- ok"], ["- ok"], ["- ok"]),
    "one has it twice": (["- ok", "- ok"], ["- ok"], ["- ok", "- ok"]),
    "between others of each": (
        ["- l", "- ok", "- m"], ["- r", "- ok", "- s"],
        ["- l", "- ok", "- m", "- r", "- ok", "- s"],
    ),
    "several times squashed": (
        ["- a", "- m", "- b"], ["- a", "- b", "- c"], ["- a", "- m", "- b", "- c"],
    ),
    "the other way round": (["- a", "- b"], ["- b", "- a"], ["- a", "- b", "- a"]),
    "one commit was picked": (["- b"], ["- a", "- b"], ["- a", "- b"]),
    "the same words in one of its paragraphs": (
        ["- l\n\n  more"], ["- r\n\n  more"], ["- l\n\n  more", "- r\n\n  more"],
    ),
    "in a fence": (
        ["```\na\n\nb\n```"], ["```\na\n\nc\n```"], ["```\na\n\nb\n```", "```\na\n\nc\n```"],
    ),
}  # fmt: skip
"""What ours and theirs have added, and what both together are."""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("case", EQUAL)
def test_merged_equal_entries(case: str, newline: str) -> None:
    """What one side has of the other stands once; what each wrote among its own stands twice."""
    schema = Schema.parse(DEFAULT_SCHEMA.encode())
    base = Document(schema.log("aristotle", DAY).replace(b"\n", newline.encode()))

    def written(entries: list[str]) -> bytes:
        log = base
        for each in entries:
            log = log.appended("Decisions", each.replace("\n", newline))
        return log.data

    ours, theirs, both = map(written, EQUAL[case])
    assert merged(base.data, ours, theirs) == both


HOSTILE = ["- a", "- b", "- b\n\n  more", "- a\n- b", "a", "a\n\nb", "\t\r\n- a", "- a\r", "- a  ",
           "```\na\n\n- b\n```", "> a", "1. a", "<!-- a\n\n- b -->", "### a\nb"]  # fmt: skip


@given(*[st.lists(st.sampled_from(HOSTILE), max_size=6)] * 3)
def test_merged_has_all_of_each_side_in_its_order(
    begun: list[str], left: list[str], right: list[str]
) -> None:
    """Whatever is equal to what: every line of both is there, as `check --against` asks."""
    schema = Schema.parse(DEFAULT_SCHEMA.encode())
    base = Document(schema.log("aristotle", DAY))
    for each in begun:
        base = base.appended("Decisions", each)
    sides = []
    for added in (left, right):
        side = base
        for each in added:
            side = side.appended("Decisions", each)
        sides.append(side.data)
    whole = merged(base.data, *sides)
    assert whole is not None
    for data in sides:
        assert list(lost(data, whole, "REV")) == []
    assert list(schema.log_problems(Document(whole), "aristotle", DAY)) == []


@pytest.mark.gate_cases(3)
@pytest.mark.parametrize("case", MERGES)
def test_merge_in_a_clone_without_setup_loses_nothing(
    case: str, prepared: Path, tmp_path: Path
) -> None:
    """Git merges by lines there, and marks what it cannot; `check` and a start tell of both."""
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(prepared), str(clone))
    found = json.loads(aiaml(clone, "check", "--json").stdout)
    assert [(Path(each["path"]).name, each["level"]) for each in found] == [
        (".gitattributes", "warning")
    ]
    assert "aiaml sessions setup" in found[0]["what"] and found[0]["line"] == 2
    assert "aiaml sessions setup" in AgentMemory(str(clone), "aristotle").start(DAY).warnings[0]
    assert AgentMemory(str(prepared), "aristotle").start(DAY).warnings == []
    assert aiaml(clone, "check", "--format", "github").stdout == ""
    is_done = brought_together(clone, case, "merge")
    text = "".join(each.read_text("utf-8") for each in (clone / BELOW.parent).rglob("*.md"))
    for side in ("left", "right"):
        assert side in text.lower() or case == "an agent renamed"
    assert is_done == (aiaml(clone, "check").returncode == 0)


def test_start_in_a_work_tree_knows_the_driver(prepared: Path, tmp_path: Path) -> None:
    """Its configuration is that of the repository, which lies elsewhere."""
    other = tmp_path / "other"
    git(prepared, "worktree", "add", "--quiet", str(other), "-b", "other")
    assert AgentMemory(str(other), "aristotle").start(DAY).warnings == []
    git(prepared, "config", "--remove-section", "merge.aiaml-sessions")
    assert "aiaml sessions setup" in AgentMemory(str(other), "aristotle").start(DAY).warnings[0]


def test_setup_in_a_clone(prepared: Path, tmp_path: Path) -> None:
    """A clone has no driver until its owner sets it up; `check` says so, and nothing is added."""
    git(prepared, "rm", "--quiet", "-r", str(BELOW))
    git(prepared, *WHO, "commit", "--quiet", "--message", "nothing yet")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(prepared), str(clone))
    assert "aiaml sessions setup" in aiaml(clone, "check").stdout
    done = aiaml(clone, "setup", "--yes")
    assert done.returncode == 0 and "This clone is set up" in done.stderr
    assert git(clone, "status", "--porcelain") == ""
    assert aiaml(clone, "check").stdout == ""
    entry("- base")(clone)
    commit(clone)
    assert brought_together(clone, "several sections of a new day", "merge")


@pytest.mark.parametrize("gone", ["program", "package"])
def test_merge_without_the_program_keeps_both_sides(
    gone: str, prepared: Path, tmp_path: Path
) -> None:
    """An environment may be deleted: git then marks the conflict and keeps both sides."""
    driver = git(prepared, "config", "merge.aiaml-sessions.driver").strip()
    words = driver.partition(" %O ")[0]
    lost = str(tmp_path / "no" / "such") if gone == "program" else f"{sys.executable} -m no_such"
    git(prepared, "config", "merge.aiaml-sessions.driver", driver.replace(words, lost))
    assert not brought_together(prepared, "the same section", "merge")
    text = log_of(prepared).read_text("utf-8")
    assert "- left decision" in text and "- right decision" in text and "\n<<<<<<< " in text
    assert aiaml(prepared, "check").returncode == 1


def tried_merge(repository: Path, branch: str) -> None:
    """Merge a branch, whether or not a conflict is left."""
    words = ["git", *WHO, "merge", "--quiet", "--no-edit", branch]
    subprocess.run(words, cwd=repository, capture_output=True, check=False)


def test_merge_after_a_revert_has_each_entry_once(prepared: Path) -> None:
    """What a person took out on one branch stays out; what came on either stands once."""
    entry("- mistaken")(prepared)
    commit(prepared, "mistaken")
    git(prepared, "checkout", "--quiet", "-b", "left")
    entry("- left")(prepared)
    commit(prepared, "left")
    git(prepared, "checkout", "--quiet", "main")
    git(prepared, *WHO, "revert", "--no-edit", "HEAD")
    entry("- main")(prepared)
    commit(prepared, "main")
    tried_merge(prepared, "left")
    lines = log_of(prepared).read_text().splitlines()
    assert (lines.count("- left"), lines.count("- main")) == (1, 1), lines


def test_merge_without_the_program_marks_conflicts_whatever_a_log_shows(prepared: Path) -> None:
    """Marks in a fence are somebody's example: they say nothing of this merge."""
    entry("```\n<<<<<<< HEAD\n```")(prepared)
    commit(prepared, "example")
    driver = git(prepared, "config", "merge.aiaml-sessions.driver")
    gone = "/no/such " + driver.strip()[driver.index("sessions merge") :]
    git(prepared, "config", "merge.aiaml-sessions.driver", gone)
    for side in ("left", "right"):
        git(prepared, "checkout", "--quiet", "-b", side, "main")
        entry(f"- {side}")(prepared)
        commit(prepared, side)
    tried_merge(prepared, "left")
    lines = log_of(prepared).read_text().splitlines()
    assert {"- left", "- right", "======="} <= {*lines}, lines


def test_check_against_a_log_that_is_gone(prepared: Path) -> None:
    """It is a problem like any other: the exit code is that of problems, with a count."""
    log_of(prepared).unlink()
    done = aiaml(prepared, "check", "--against", "HEAD")
    assert done.returncode == 1 and "1 problem" in done.stderr, done.stderr


def test_check_against_nothing_is_refused(prepared: Path) -> None:
    """A variable of CI that is empty must not pass for a comparison."""
    done = aiaml(prepared, "check", "--against", "")
    assert done.returncode == 2 and "--against" in done.stderr


def test_setup_names_the_program_that_is_there(prepared: Path) -> None:
    """A driver of another place is replaced; `check` names one whose program is not there."""
    git(prepared, "config", "merge.aiaml-sessions.driver", "/no/such sessions merge %O %A %B")
    assert "aiaml sessions setup" in aiaml(prepared, "check").stdout
    assert "This clone is set up" in aiaml(prepared, "setup", "--yes").stderr
    assert aiaml(prepared, "check").stdout == ""
    assert brought_together(prepared, "the same section", "merge")


def test_setup_merge_tells_entries_apart(prepared: Path) -> None:
    """Each entry is an item of its own, and git says of each which branch's commit brought it."""
    assert brought_together(prepared, "the same section", "merge")
    assert {"- left decision", "- right decision"} <= {*log_of(prepared).read_text().splitlines()}
    blamed = git(prepared, "blame", "--line-porcelain", str(log_of(prepared)))
    for side in ("left", "right"):
        assert f"\nsummary {side}\n" in blamed.partition(f"\n\t- {side} decision\n")[0][-400:]


@pytest.mark.parametrize("case", ["the same section", "the same new day", "the summary"])
def test_merge_without_setup_is_found(case: str, repo: Path) -> None:
    """The conflict that git marks is an error of `check`, and of a write; a read warns of it."""
    assert "aiaml sessions setup" in aiaml(repo, "check").stderr
    assert not brought_together(repo, case, "merge")
    commit(repo, "badly merged")
    day = NEXT if case == "the same new day" else DAY
    file = repo / BELOW / "_summary.md" if case == "the summary" else log_of(repo, day)
    lines = file.read_text("utf-8").splitlines()
    marked = [n for n, line in enumerate(lines, 1) if line[:7] in ("<<<<<<<", "=======", ">>>>>>>")]
    done = aiaml(repo, "check", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 1 and len(marked) == 3
    assert [each["line"] for each in found if each["path"] == str(file)] == marked
    memory = AgentMemory(str(repo), "aristotle")
    if case == "the summary":
        assert "merge that was not finished" in memory.summary().warnings[0]
        with pytest.raises(MalformedLog, match=f"line {marked[0]}"):
            memory.update("Context", "- x", "append")
    else:
        with pytest.raises(MalformedLog, match=f"line {marked[0]}"):
            memory.append("Context", "- x", day)


# --- what is not there any more -------------------------------------------------------------------

LOSSES: dict[str, Callable[[Path], object]] = {
    "an entry": lambda log: log.write_text(log.read_text("utf-8").replace("- base\n", "")),
    "a word": lambda log: log.write_text(log.read_text("utf-8").replace("base", "bass")),
    "the order": lambda log: log.write_text(
        log.read_text("utf-8").replace("- base\n\n- second", "- second\n\n- base")
    ),
    "the log": lambda log: log.unlink(),
}


@pytest.mark.parametrize("case", LOSSES)
def test_check_against_names_what_is_lost(case: str, repo: Path) -> None:
    """Each with its file; what was only added to is in order, as is what main has got since."""
    entry("- second")(repo)
    commit(repo)
    git(repo, "checkout", "--quiet", "-b", "feature")
    entry("- third")(repo)
    commit(repo)
    git(repo, "checkout", "--quiet", "main")
    entry("- meanwhile", NEXT)(repo)
    commit(repo)
    git(repo, "checkout", "--quiet", "feature")
    for words in (("--against", "main"), ("--against", "HEAD"), ("--against", "HEAD", str(BELOW))):
        done = aiaml(repo, "check", *words)
        assert done.returncode == 0, done.stdout
    LOSSES[case](log_of(repo))
    assert aiaml(repo, "check").returncode == 0
    done = aiaml(repo, "check", "--against", "main", "--format", "github")
    assert done.returncode == 1
    (line,) = done.stdout.splitlines()
    assert line.startswith(f"::error file={(BELOW / 'logs' / DAY).as_posix()}.md,line=")
    assert "bring it back" in line


def test_check_against_what_git_does_not_know(repo: Path) -> None:
    """A sentence that says what is wrong with most checkouts in CI, and no verdict."""
    for revision in ("origin/main", "--help", "a\nb"):
        done = aiaml(repo, "check", f"--against={revision}")
        assert done.returncode == 2, done.stderr
        assert "fetch-depth: 0" in done.stderr


def test_rename_of_an_agent_is_no_loss(prepared: Path) -> None:
    """Every log is there under its new name: `--against` is in order, and tells of what is not."""
    git(prepared, "checkout", "--quiet", "-b", "left")
    renamed(prepared)
    commit(prepared, "renamed")
    done = aiaml(prepared, "check", "--against", "main")
    assert done.returncode == 0, done.stdout
    log = prepared / BELOW.with_name("plato") / "logs" / f"{DAY}.md"
    log.write_text(log.read_text("utf-8").replace("- base\n", ""), "utf-8")
    done = aiaml(prepared, "check", "--against", "main")
    assert done.returncode == 1 and "aristotle/logs" in done.stdout, done.stdout


@pytest.mark.parametrize("way", WAYS)
def test_rename_of_an_agent_that_begins_a_log(way: str, prepared: Path) -> None:
    """Git asks about the new log, which it has put into the renamed folder; `check` says the rest.

    With `merge.directoryRenames` it does not ask; with or without, nothing is lost.
    """
    git(prepared, "config", "merge.directoryRenames", "true")
    with mock.patch.dict(MERGES, {"begun": (renamed, entry("- right decision", NEXT))}):
        assert brought_together(prepared, "begun", way)
    logs = prepared / BELOW.with_name("plato") / "logs"
    assert "- right decision" in (logs / f"{NEXT}.md").read_text("utf-8")
    assert not (prepared / BELOW).exists()
    done = aiaml(prepared, "check")
    said = done.stdout.splitlines()
    assert done.returncode == 1 and len(said) == 2
    assert all(f"plato/logs/{NEXT}.md" in each and "'plato" in each for each in said)


@pytest.mark.parametrize("case", ["too large", "too large for git", "many lines"])
def test_merge_that_nobody_could_read_is_a_person_s(case: str, tmp_path: Path) -> None:
    """Two sides that are within the limit, and together are not: marked, and nothing is lost."""
    head = b"# Session Log\n\n## Decisions\n"
    item = b"- a\n" if case == "many lines" else b"- %s a\n" % (b"x" * 1000)
    sides = [head + item.replace(b"a", each) * (600_000 // len(item)) for each in (b"b", b"c")]
    base = head
    if case == "too large for git":
        gap = b"- between\n" * 10
        base, sides = head + gap, [sides[0] + gap, head + gap + sides[1].removeprefix(head)]
    for name, data in zip(("base", "ours", "theirs"), (base, *sides), strict=True):
        (tmp_path / name).write_bytes(data)
    done = aiaml(tmp_path, "merge", "base", "ours", "theirs")
    assert done.returncode == 5, done.stderr
    assert "1,048,576" in done.stderr and "1,2" in done.stderr
    found = set((tmp_path / "ours").read_bytes().splitlines())
    assert found >= {line for side in sides for line in side.splitlines()}
    assert (tmp_path / "ours").stat().st_size > 1_190_000


# --- setting up -----------------------------------------------------------------------------------


def test_setup_asks_and_adds_to_what_is_there(repo: Path) -> None:
    """Without a terminal nothing is written; each file keeps its bytes; twice is once."""
    done = aiaml(repo, "setup")
    assert done.returncode == 2 and "--yes" in done.stderr
    assert not (repo / ".gitattributes").exists()
    before = {
        ".gitattributes": b"*.png binary",
        "CLAUDE.md": b"# Shop\r\n\r\nBe kind.\r\n",
        ".pre-commit-config.yaml": b"repos:\n  - repo: local\n    hooks: []\n",
    }
    for name, data in before.items():
        (repo / name).write_bytes(data)
    done = aiaml(repo, "setup", "--yes")
    assert done.returncode == 0, done.stderr
    for name, data in before.items():
        after = (repo / name).read_bytes()
        assert after.startswith(data) and len(after) > len(data)
    assert b"\n" not in (repo / "CLAUDE.md").read_bytes().replace(b"\r\n", b"")
    assert not (repo / "AGENTS.md").exists() and not (repo / ".github" / "workflows").exists()
    hooks = yaml.safe_load((repo / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    assert [each["repo"] for each in hooks] == ["local", "local"]
    assert hooks[1]["hooks"][0]["id"] == "aiaml-sessions-check"
    shown = git(repo, "check-attr", "merge", "--", (BELOW / "logs" / "x.md").as_posix())
    assert shown.strip().endswith("merge: aiaml-sessions")
    assert "sessions merge %O %A %B" in git(repo, "config", "merge.aiaml-sessions.driver")
    written = {name: (repo / name).read_bytes() for name in before}
    done = aiaml(repo, "setup", "--yes")
    assert done.returncode == 0 and "there already" in done.stderr
    assert written == {name: (repo / name).read_bytes() for name in before}


def test_setup_github_workflow(repo: Path) -> None:
    """Where no pre-commit is used: a workflow that can read alone, and the whole history."""
    assert aiaml(repo, "setup", "--yes").returncode == 0
    flow: dict[str, Any] = yaml.safe_load((repo / ".github/workflows/agent-memory.yml").read_text())
    assert flow["permissions"] == {"contents": "read"}
    first, second = flow["jobs"]["check"]["steps"]
    assert first["with"] == {"fetch-depth": 0}
    assert second["run"].endswith(
        'aiaml sessions check --format github --against "origin/$GITHUB_BASE_REF"'
    )
    assert "agent-memory" in (repo / "AGENTS.md").read_text("utf-8")


@pytest.mark.parametrize("config", ["repos: [{repo: local}]\n", "repos:\n- repo: local\nci: {}\n"])
def test_setup_leaves_what_is_not_plain(config: str, repo: Path) -> None:
    """A configuration that cannot be added to at its end: the part is shown, for a person."""
    (repo / ".pre-commit-config.yaml").write_text(config)
    done = aiaml(repo, "setup", "--yes")
    assert done.returncode == 1 and "add to the repos of .pre-commit-config.yaml" in done.stdout
    assert (repo / ".pre-commit-config.yaml").read_text() == config


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_setup_follows_no_link(repo: Path, tmp_path: Path) -> None:
    """What another file is reached by stays as it is; a guide that is the other one is left out."""
    (repo / "AGENTS.md").write_text("# Shop\n")
    (repo / "CLAUDE.md").symlink_to("AGENTS.md")
    assert aiaml(repo, "setup", "--yes").returncode == 0
    assert (repo / "AGENTS.md").read_text().count("## Agent memory") == 1
    (repo / ".gitattributes").unlink()
    (repo / ".gitattributes").symlink_to(tmp_path / "elsewhere")
    done = aiaml(repo, "setup", "--yes")
    assert done.returncode == 2 and ".gitattributes is a link" in done.stderr
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.gate_cases(2)
@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
@pytest.mark.parametrize(
    "way", ["config", "commondir", "link", "file", "false worktree", "false submodule", "moved"]
)
def test_setup_tells_no_other_repository(way: str, repo: Path, tmp_path: Path) -> None:
    """Where `.git` leads to another's configuration, that stays, and so do all files."""
    other, dot = tmp_path / "other", repo / ".git"
    git(tmp_path, "init", "--quiet", str(other))
    if way == "config":
        (dot / "config").rename(tmp_path / "config")
        (dot / "config").symlink_to(tmp_path / "config")
    elif way == "commondir":
        (dot / "commondir").write_text(f"{other / '.git'}\n")
    elif way == "link":
        dot.rename(tmp_path / "moved")
        dot.symlink_to(other / ".git")
    elif way == "moved":
        git(repo, "worktree", "add", "--quiet", "-b", "other", str(tmp_path / "tree"))
        repo = (tmp_path / "tree").rename(tmp_path / "renamed")
    else:
        admin = tmp_path / "admin"
        shutil.copytree(dot, admin)
        shutil.rmtree(dot)
        dot.write_text(f"gitdir: {other / '.git' if way == 'file' else admin}\n")
        if way == "false worktree":
            (admin / "commondir").write_text(f"{other / '.git'}\n")
            (admin / "gitdir").write_text(f"{dot}\n")
        if way == "false submodule":
            git(other, "config", "core.worktree", str(repo))
            (admin / "config").unlink()
            (admin / "config").symlink_to(other / ".git" / "config")
    done = aiaml(repo, "setup", "--yes")
    assert done.returncode == 2 and len(done.stderr.splitlines()) <= 6, done.stderr
    said = " ".join(done.stderr.split())
    assert ("is a link" in said) == (way in ("config", "false submodule"))
    assert not any(b"aiaml" in each.read_bytes() for each in tmp_path.rglob("config"))
    assert not (repo / ".gitattributes").exists() and not (repo / "AGENTS.md").exists()


@pytest.mark.parametrize("kind", ["worktree", "submodule"])
def test_setup_in_a_worktree_or_submodule(kind: str, repo: Path, tmp_path: Path) -> None:
    """A `.git` that is a file, and to which what it names leads back, is told."""
    root = tmp_path / "tree" if kind == "worktree" else repo / "sub"
    if kind == "worktree":
        git(repo, "worktree", "add", "--quiet", "-b", "other", str(root))
    else:
        allow = ("-c", "protocol.file.allow=always")
        git(repo, *allow, "submodule", "add", "--quiet", str(repo), "sub")
    done = aiaml(root, "setup", "--yes")
    assert done.returncode == 0, done.stderr
    assert "sessions merge" in git(root, "config", "--local", "merge.aiaml-sessions.driver")


# --- names ----------------------------------------------------------------------------------------


def test_a_name_without_memory_is_no_silence(repo: Path) -> None:
    """Both reads say which names there are; a new agent is told of the others."""
    codr = AgentMemory(str(repo), "codr")
    said = ["there is no memory of 'codr' here; there are: aristotle"]
    assert codr.summary().warnings == said and codr.absence() == said
    assert codr.start(DAY).warnings == said
    assert codr.start(DAY).warnings == [] == codr.summary().warnings


def test_a_name_that_differs_by_case_is_refused(repo: Path) -> None:
    """By every call, with the name that there is."""
    with pytest.raises(ToolError, match="use 'aristotle'") as refused:
        AgentMemory(str(repo), "Aristotle")
    assert type(refused.value).__name__ == "InvalidAgentName"
    done = aiaml(repo, "show", "ARISTOTLE")
    assert done.returncode == 2 and "use 'aristotle'" in done.stderr


# --- in CI ----------------------------------------------------------------------------------------

BASH = shutil.which("bash")


@pytest.mark.skipif(not BASH, reason="the action's shell is bash")
def test_action_annotates(repo: Path, tmp_path: Path) -> None:
    """Its step, as GitHub runs it: annotations and the exit code, nothing of the inputs as code."""
    assert BASH
    action = yaml.safe_load((ROOT / "actions" / "sessions" / "action.yml").read_text("utf-8"))
    (step,) = action["runs"]["steps"]
    assert "${{" not in step["run"]
    assert set(step["env"]) == {each.upper() for each in action["inputs"]}
    pipx = tmp_path / "pipx"  # stands for the real one: runs what is installed here
    python = shlex.quote(sys.executable)
    pipx.write_text(f'#!/bin/sh\n[ "$1 $2 $4" = "run --spec aiaml" ] && shift 4\n'
                    f'exec {python} -m aiaml_server "$@"\n')  # fmt: skip
    pipx.chmod(0o755)
    words = [BASH, "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    environ = {**os.environ, "PIPX": str(pipx), "REPOSITORY": str(repo), "AGAINST": "HEAD",
               "GITHUB_ACTION_PATH": str(ROOT / "actions" / "sessions")}  # fmt: skip
    assert completed(words, env=environ, cwd=repo).returncode == 0
    log_of(repo).write_text(log_of(repo).read_text("utf-8").replace("- base", "- <<\n<<<<<<< x"))
    done = completed(words, env=environ, cwd=repo)
    assert done.returncode == 1, done.stderr
    shown = done.stdout.splitlines()
    assert len(shown) == 2 and all(each.startswith("::error file=.github/") for each in shown)
    done = completed(words, env={**environ, "AGAINST": "origin/main"}, cwd=repo)
    assert done.returncode == 2 and "fetch-depth: 0" in done.stderr
