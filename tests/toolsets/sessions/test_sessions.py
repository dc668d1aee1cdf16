"""Logs and summaries: what the five tools write, and what they refuse."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aiaml_server import toolsets
from aiaml_server.files import hold_lock
from aiaml_server.toolsets.sessions import paths
from aiaml_server.toolsets.sessions.errors import InvalidAgentName
from aiaml_server.toolsets.sessions.markdown import Document, check_content
from aiaml_server.toolsets.sessions.paths import MAX_FILE_BYTES
from aiaml_server.toolsets.sessions.schema import DEFAULT_SCHEMA, Schema
from aiaml_server.toolsets.sessions.service import AgentMemory
from command_line import call as run
from machine import git
from printed import completed
from sessions_case import AGENT_PATH, DAY, NEXT_DAY, SECTIONS, error_code, log_path, tree
from toolset_contract import Call, Contract

ONE_AT_A_TIME = threading.Lock()
SCHEMA = Schema.parse(DEFAULT_SCHEMA.encode())


class TestContract(Contract):
    """What every toolset promises."""

    name = "sessions"

    def environ(self, place: Path) -> dict[str, str]:
        """Make the test's directory a repository."""
        with ONE_AT_A_TIME:
            git(place, "init", "--quiet")
        self.root = str(place)
        return {}

    def story(self, call: Call) -> None:
        """A session from its start to its summary."""
        who = {"agent_name": "aristotle", "repo_root": self.root}
        assert "error" not in call("start_session", **who, date=DAY)
        entry = {"section": "Decisions", "content": "- Cents."}
        assert "error" not in call("append_entry", **who, **entry, date=DAY)
        assert "error" not in call("update_summary", **who, **entry, mode="append")
        assert "Cents" in call("read_summary", **who)["summary"]
        assert call("list_sessions", **who)["sessions"] == [f"{DAY}.md"]


# --- what is written ------------------------------------------------------------------------------


def test_start_session_creates_what_the_specification_says(repo: Path) -> None:
    """Directory, schema, summary, a log with its header; a second call changes nothing."""
    memory = AgentMemory(str(repo), "aristotle")
    assert memory.start_session(DAY) == {"session_file": str(log_path(repo)), "created": True}
    assert (repo / AGENT_PATH / "_schema.md").read_text("utf-8") == DEFAULT_SCHEMA
    headings = "".join(f"\n## {name}\n" for name in SECTIONS)
    assert log_path(repo).read_text("utf-8") == (
        "# Session Log (schema v1)\n\n## Header\n- Agent Name: aristotle\n- Date: 2025-01-20\n"
        f"- Session ID: aristotle-2025-01-20\n{headings}"
    )
    assert (repo / AGENT_PATH / "_summary.md").read_text("utf-8") == (
        f"# Summary: aristotle\n{headings}"
    )
    before = tree(repo)
    assert memory.start_session(DAY)["created"] is False
    assert tree(repo) == before


def test_start_session_returns_what_the_log_contains(memory: AgentMemory) -> None:
    """An agent that goes on sees today's entries; of a long log, the end."""
    assert "log" not in memory.start_session(DAY)
    memory.append_entry("Decisions", "- Cents.", DAY)
    assert "- Cents." in memory.start_session(DAY)["log"]
    memory.append_entry("Next Actions", f"- {'x' * 20_000}", DAY)
    assert len(memory.start_session(DAY)["log"]) == 10_000


def test_append_entry_puts_content_under_its_heading(memory: AgentMemory, repo: Path) -> None:
    """Behind what is there, with an empty line before it; nothing else changes."""
    memory.append_entry("Decisions", "- One.", DAY)
    memory.append_entry("Decisions", "- Two.\n  More.", DAY)
    memory.append_entry("Next Actions", "Three.", DAY)
    text = log_path(repo).read_text("utf-8")
    assert "\n## Decisions\n\n- One.\n\n- Two.\n  More.\n\n## Open Questions\n" in text
    assert text.endswith("\n## Next Actions\n\nThree.\n")


@given(st.lists(st.tuples(st.sampled_from(SECTIONS), st.text("ab-# \n`*", min_size=1)), max_size=6))
def test_append_only_inserts(entries: list[tuple[str, str]]) -> None:
    """Every byte that was there stays, in its order; each content stands in its section."""
    document = Document(SCHEMA.new_log("aristotle", DAY))
    for section, content in entries:
        if check_content(content):
            continue
        changed = document.append(section, content)
        rest = iter(changed.data)
        assert all(byte in rest for byte in document.data)
        assert content.strip().encode() in changed.body(section)
        assert not SCHEMA.log_problems(changed, "aristotle", DAY)
        document = changed


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_entries_get_the_line_ends_of_the_file(
    newline: str, memory: AgentMemory, repo: Path
) -> None:
    """So that git adds the file under core.safecrlf."""
    path = log_path(repo)
    for file in (repo / AGENT_PATH).rglob("*.md"):
        file.write_bytes(file.read_bytes().replace(b"\n", newline.encode()))
    memory.append_entry("Decisions", "- two\n- three\r\n- four", DAY)
    data = path.read_bytes()
    assert f"{newline}- two{newline}- three{newline}- four{newline}".encode() in data
    assert data.count(b"\r\n") == (data.count(b"\n") if newline == "\r\n" else 0)
    git(repo, "config", "core.autocrlf", "true" if newline == "\r\n" else "false")
    git(repo, "-c", "core.safecrlf=true", "add", "--all")


def test_update_summary_changes_one_section(memory: AgentMemory, repo: Path) -> None:
    """Appended, replaced, emptied; all other bytes stay."""
    path = repo / AGENT_PATH / "_summary.md"
    memory.update_summary("Decisions", "- Cents.", "append")
    memory.update_summary("Context", "- A shop.", "append")
    memory.update_summary("Decisions", "- Euros.", "replace")
    text = path.read_text("utf-8")
    assert "\n## Decisions\n\n- Euros.\n\n## Open Questions\n" in text
    assert "- A shop." in text
    assert "Cents" not in text
    memory.update_summary("Decisions", "", "replace")
    assert path.read_text("utf-8") == text.replace("\n- Euros.\n", "")
    assert memory.read_summary() == {"summary": path.read_text("utf-8")}


def test_read_summary_without_a_summary_writes_nothing(repo: Path) -> None:
    """It returns an empty one, and says that there is no memory."""
    answer = AgentMemory(str(repo), "plato").read_summary()
    assert answer["summary"].startswith("# Summary: plato\n\n## Context\n")
    assert "no memory of 'plato'" in answer["warnings"][0]
    assert tree(repo) == {}


def test_list_sessions_is_newest_first(memory: AgentMemory, repo: Path) -> None:
    """What is no log by its name is left out."""
    memory.start_session(NEXT_DAY)
    (repo / AGENT_PATH / "logs" / "notes.md").write_text("x", "utf-8")
    assert memory.list_sessions() == {"sessions": [f"{NEXT_DAY}.md", f"{DAY}.md"]}
    assert memory.list_sessions(1) == {"sessions": [f"{NEXT_DAY}.md"]}


def test_the_schema_of_the_repository_decides(memory: AgentMemory, repo: Path) -> None:
    """A new section can be used; a version that is unknown is a warning."""
    schema = DEFAULT_SCHEMA.replace("v1", "v2").replace("## Decisions", "## Risks\n\n## Decisions")
    (repo / AGENT_PATH / "_schema.md").write_text(schema, "utf-8")
    answer = memory.append_entry("Risks", "- Rounding.", DAY)
    assert "schema v2; this program was made for v1" in answer["warnings"][0]
    assert "was made under schema v1; the schema is v2" in answer["warnings"][1]
    text = log_path(repo).read_text("utf-8")
    assert "\n## Risks\n\n- Rounding.\n\n## Decisions\n" in text
    assert memory.start_session(NEXT_DAY)["created"]
    assert "# Session Log (schema v2)" in log_path(repo, NEXT_DAY).read_text("utf-8")


# --- what is refused ------------------------------------------------------------------------------

REFUSED_CONTENT = {
    "empty": " \n",
    "a section": "## Decisions",
    "a title": "text\n\n# Title",
    "an underlined heading": "Heading\n=======",
    "an open code fence": "```\ncode",
    "an open comment": "<!-- comment",
    "a hidden character": "- a\u200bb",
    "a direction mark": "- \u202etxt",
    "a control character": "- CI said \x1b[31mFAILED",
    "hidden letters": "- hidden \U000e0068\U000e0069",
}
ACCEPTED_CONTENT = {
    "a deeper heading": "### Detail\n\ntext",
    "a heading in code": "```\n# not a heading\n```",
    "an indented heading": "- item\n\n      # code in it",
    "an emoji of several": "- \U0001f468\u200d\U0001f469\u200d\U0001f467 and \u2764\ufe0f",
    "a flag of tags": "- \U0001f3f4\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f",
    "Persian": "- \u06a9\u0627\u0631\u0628\u0631 \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u062f",
    "Hindi": "- \u0939\u093f\u0928\u094d\u0926\u0940: \u0915\u094d\u200d\u0937",
}


def test_content_stays_in_its_section(memory: AgentMemory, repo: Path) -> None:
    """What would begin a section, never end, or be invisible is refused; the rest is kept."""
    before = tree(repo)
    for name, content in REFUSED_CONTENT.items():
        code = error_code(memory.append_entry, "Context", content, DAY)
        assert code == "InvalidContent", name
    assert tree(repo) == before
    for name, content in ACCEPTED_CONTENT.items():
        memory.append_entry("Context", content, DAY)
        assert content in log_path(repo).read_text("utf-8"), name


CALLS: list[tuple[str, Callable[[AgentMemory], object]]] = [
    ("InvalidSection", lambda m: m.append_entry("Thoughts", "- x", DAY)),
    ("InvalidSection", lambda m: m.append_entry("Header", "- x", DAY)),
    ("InvalidSection", lambda m: m.update_summary("Thoughts", "- x", "append")),
    ("InvalidMode", lambda m: m.update_summary("Decisions", "- x", "delete")),
    ("MissingLog", lambda m: m.append_entry("Decisions", "- x", NEXT_DAY)),
    ("InvalidDate", lambda m: m.start_session("2025-02-30")),
    ("InvalidDate", lambda m: m.start_session("2025-1-5")),
    ("InvalidDate", lambda m: m.start_session("today")),
    ("InvalidContent", lambda m: m.append_entry("Context", "x" * MAX_FILE_BYTES, DAY)),
]


def test_wrong_values_are_refused(memory: AgentMemory, repo: Path) -> None:
    """With the code of the closed list; nothing changes."""
    before = tree(repo)
    for code, call in CALLS:
        assert error_code(call, memory) == code
    assert tree(repo) == before


def test_errors_name_what_would_be_right(memory: AgentMemory) -> None:
    """The sections of the schema; the newest log."""
    with pytest.raises(Exception, match="Context, Discussion Summary, Decisions"):
        memory.append_entry("Thoughts", "- x", DAY)
    with pytest.raises(Exception, match="newest is that of 2025-01-20"):
        memory.append_entry("Decisions", "- x", NEXT_DAY)


BROKEN_LOGS = {
    "no title": ("# Session Log (schema v1)", "# Log"),
    "another agent": ("- Agent Name: aristotle", "- Agent Name: plato"),
    "another date": ("- Date: 2025-01-20", "- Date: 2025-01-21"),
    "a section twice": ("## Decisions", "## Context"),
    "a section missing": ("## Decisions\n", ""),
    "an unknown section": ("## Decisions", "## Choices"),
    "an open fence": ("## Decisions\n", "## Decisions\n```\n"),
    "a conflict": ("## Decisions\n", "## Decisions\n<<<<<<< ours\n"),
}


@pytest.mark.parametrize("case", BROKEN_LOGS)
def test_a_malformed_log_is_left_alone(case: str, memory: AgentMemory, repo: Path) -> None:
    """The error names file and line, and nothing is written."""
    old, new = BROKEN_LOGS[case]
    path = log_path(repo)
    path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    before = tree(repo)
    with pytest.raises(Exception, match=rf"logs/{DAY}.md: line \d+: "):
        memory.append_entry("Context", "- x", DAY)
    assert error_code(lambda: memory.start_session(DAY)) == "MalformedLog"
    assert tree(repo) == before


@pytest.mark.parametrize("data", [b"", b"\xff", b"# Schema v1\n\n## Decisions\n", b"# S\n"])
def test_an_invalid_schema_refuses_writes(data: bytes, memory: AgentMemory, repo: Path) -> None:
    """Also one that is missing; reading the summary still works."""
    path = repo / AGENT_PATH / "_schema.md"
    path.write_bytes(data)
    assert error_code(lambda: memory.append_entry("Context", "- x", DAY)) == "InvalidSchema"
    path.unlink()
    assert error_code(lambda: memory.append_entry("Context", "- x", DAY)) == "MissingSchema"
    assert memory.read_summary()["summary"]


@pytest.mark.parametrize(
    "agent", ["", "..", "a/b", "../x", "con", "Claude Code", "アダ", "a.", "a" * 65, "nul.x"]
)
def test_an_agent_name_is_a_directory_name(agent: str, repo: Path) -> None:
    """On every system."""
    assert error_code(lambda: AgentMemory(str(repo), agent)) == "InvalidAgentName"
    AgentMemory(str(repo), "claude-opus-4.5")


def test_a_long_value_is_shown_shortened(repo: Path) -> None:
    """With an ellipsis that people read, and other characters by their code points."""
    with pytest.raises(InvalidAgentName, match=r"'\\u0430a{79}…' must be"):
        AgentMemory(str(repo), "\u0430" + "a" * 99)


# --- nothing outside of the repository ------------------------------------------------------------


def test_only_the_top_of_a_work_tree_is_a_repository(repo: Path, tmp_path: Path) -> None:
    """Not a directory in it or beside it, nor a relative path; a linked work tree is one."""
    (repo / "src").mkdir()
    for path in (repo / "src", tmp_path, tmp_path / "none"):
        assert error_code(AgentMemory, str(path), "ada") == "NotARepository"
    for text in (".", "~/x", f"file://{repo}", ""):
        assert error_code(AgentMemory, text, "ada") == "OutsideRepository"
    git(repo, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x", "--allow-empty")
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    assert AgentMemory(str(tmp_path / "linked"), "ada").start_session(DAY)["created"]


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
@pytest.mark.parametrize(
    "name", [".github", str(AGENT_PATH.parent), str(AGENT_PATH), f"{AGENT_PATH}/logs"]
)
def test_no_directory_is_reached_through_a_link(name: str, repo: Path, tmp_path: Path) -> None:
    """Neither read nor written."""
    AgentMemory(str(repo), "aristotle").start_session(DAY)
    outside = tmp_path / "outside"
    (repo / name).rename(outside)
    (repo / name).symlink_to(outside)
    before = tree(outside)
    assert error_code(AgentMemory, str(repo), "aristotle") == "OutsideRepository"
    assert tree(outside) == before


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
@pytest.mark.parametrize("name", ["_schema.md", "_summary.md", f"logs/{DAY}.md"])
@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
def test_only_regular_files_are_read(
    name: str, kind: str, memory: AgentMemory, repo: Path, tmp_path: Path
) -> None:
    """A link, a pipe or a directory in the place of a file is refused."""
    path = repo / AGENT_PATH / name
    path.unlink()
    if kind == "link":
        (tmp_path / "secret").write_text("secret", "utf-8")
        path.symlink_to(tmp_path / "secret")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    calls: list[Callable[[], Any]] = [lambda: memory.start_session(DAY)]
    if name == "_summary.md":
        calls.append(memory.read_summary)
    for call in calls:
        assert error_code(call) in ("OutsideRepository", "MalformedLog", "DiskError")


def test_no_hook_of_the_repository_runs(memory: AgentMemory, repo: Path) -> None:
    """Nor does anything but the files of the agent change."""
    hooks = repo / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "reference-transaction", "post-checkout"):
        (hooks / name).write_text("#!/bin/sh\ntouch ran\n", "utf-8")
        (hooks / name).chmod(0o755)
    memory.append_entry("Decisions", "- x", DAY)
    memory.update_summary("Decisions", "- x", "append")
    status = git(repo, "status", "--porcelain", "--untracked-files=all")
    below = AGENT_PATH.as_posix()
    assert sorted(line[3:] for line in status.splitlines()) == sorted(
        [f"{below}/_schema.md", f"{below}/_summary.md", f"{below}/logs/{DAY}.md"]
    )


# --- several writers, kills and a full disk -------------------------------------------------------

WRITER = """
import sys
from aiaml_server.toolsets.sessions.service import AgentMemory
memory = AgentMemory(sys.argv[1], "aristotle")
for number in range(int(sys.argv[3])):
    memory.append_entry("Decisions", f"- {sys.argv[2]}-{number}", sys.argv[4])
    print(number, flush=True)
"""


@pytest.mark.usefixtures("memory")
def test_several_processes_lose_nothing(repo: Path) -> None:
    """Four at a time append ten entries each."""
    command = [sys.executable, "-c", WRITER, str(repo)]
    writers = [subprocess.Popen([*command, name, "10", DAY]) for name in "abcd"]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    text = log_path(repo).read_text("utf-8")
    assert all(f"- {name}-{number}\n" in text for name in "abcd" for number in range(10))


@pytest.mark.skipif(os.name == "nt", reason="kills are signals")
def test_a_kill_leaves_whole_files(memory: AgentMemory, repo: Path) -> None:
    """What was acknowledged is there, and the next writer goes on."""
    for kill_after in (1, 3, 5):
        command = [sys.executable, "-c", WRITER, str(repo), f"k{kill_after}", "1000", DAY]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(kill_after):
                writer.stdout.readline()
            writer.kill()
        text = log_path(repo).read_text("utf-8")
        assert all(f"- k{kill_after}-{number}\n" in text for number in range(kill_after))
        memory.append_entry("Context", "- goes on", DAY)
    assert sorted(path.name for path in log_path(repo).parent.iterdir()) == [f"{DAY}.md"]


def test_a_disk_that_refuses_changes_nothing(
    memory: AgentMemory, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is DiskError, and no temporary file is left."""
    before = tree(repo)

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    assert error_code(lambda: memory.append_entry("Context", "- x", DAY)) == "DiskError"
    monkeypatch.undo()
    memory.start_session(DAY)
    assert tree(repo) == before


def test_a_lock_that_stays_held_is_an_error(
    memory: AgentMemory, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Busy, and nothing is written."""
    monkeypatch.setattr(paths, "LOCK_SECONDS", 0.0)
    before = tree(repo)
    with hold_lock(repo / ".git" / "aiaml-sessions" / "aristotle.lock", 0) as hold:
        assert hold.acquired
        assert error_code(lambda: memory.append_entry("Context", "- x", DAY)) == "Busy"
    assert tree(repo) == before


# --- as tools -------------------------------------------------------------------------------------


def call_tool(name: str, arguments: dict[str, Any], **values: str) -> Any:
    """Call a tool of the toolset with some settings."""
    manifest = toolsets.manifest("sessions")
    toolset = resolve_name(manifest.build)(manifest.read_settings(values))
    assert tuple(tool.name for tool in toolset.tools) == manifest.tools
    tools = {tool.name: tool for tool in toolset.tools}
    return tools[name].call(**arguments)


def test_a_setting_gives_agent_and_repository(repo: Path) -> None:
    """Then a call may leave them out."""
    values = {"AIAML_SESSIONS_AGENT": "aristotle", "AIAML_SESSIONS_REPO": str(repo)}
    assert call_tool("start_session", {"date": DAY}, **values)["created"]
    assert call_tool("list_sessions", {}, **values)["sessions"] == [f"{DAY}.md"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=30))
def test_no_agent_name_leads_outside(tmp_path: Path, name: str) -> None:
    """Whatever it is, it is refused or names a directory below the memory's."""
    repo = tmp_path / "any"
    if not repo.exists():
        repo.mkdir()
        git(repo, "init", "--quiet")
    with suppress(InvalidAgentName):
        path = AgentMemory(str(repo), name).directory.path
        assert path.parent == repo / AGENT_PATH.parent


def test_secrets_are_named_and_never_shown(memory: AgentMemory) -> None:
    """It is written all the same, since only a person can tell."""
    answer = memory.append_entry("Context", "- password: correct-horse-battery", DAY)
    (warning,) = answer["warnings"]
    assert "seems to hold a password" in warning
    assert "horse" not in warning


@pytest.mark.usefixtures("memory")
def test_check_names_what_is_wrong(repo: Path) -> None:
    """File and line; exit code 1, and 2 where nothing can be checked."""
    check = [sys.executable, "-m", "aiaml_server", "sessions", "check"]
    done = completed([*check, str(repo)])
    assert (done.returncode, done.stderr) == (0, "0 problems in 3 files.\n")
    path = log_path(repo)
    path.write_text(path.read_text("utf-8").replace("## Decisions", "## Choices"), "utf-8")
    (path.parent / "notes.md").write_text("x", "utf-8")
    done = completed([*check, str(path)], cwd=repo)
    assert done.returncode == 1
    assert done.stdout == (
        f"{AGENT_PATH.as_posix()}/logs/{DAY}.md:12: '## Decisions' must be here; there is "
        "'Choices'\n"
    )
    assert "real date" in completed([*check, "--json"], cwd=repo).stdout
    assert completed([*check, str(repo.parent)]).returncode == 2


@pytest.mark.usefixtures("memory")
def test_check_never_passes_without_looking(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere in a repository it checks all logs; exit code 2 where the tools refuse, too."""
    (repo / "src").mkdir()
    for name in (".", "src", ".github"):
        monkeypatch.chdir(repo / name)
        assert run({}, "sessions", "check") == (0, "", "0 problems in 3 files.\n"), name
    monkeypatch.chdir(repo / "src")
    with monkeypatch.context() as patch:
        patch.setattr(paths, "foreign_owner", lambda *_: "it belongs to another user")
        code, _, err = run({}, "sessions", "check")
        assert (code, err) == (2, "aiaml: it belongs to another user\n")
    memories = repo / AGENT_PATH.parent
    memories.rename(tmp_path / "outside")
    for target in ("outside", "nowhere"):
        memories.symlink_to(tmp_path / target)
        code, _, err = run({}, "sessions", "check")
        assert code == 2 and "is a link, which could lead outside" in err
        memories.unlink()
