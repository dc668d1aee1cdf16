"""The toolset `sessions`: what it writes into a repository, refuses, and never touches."""

from __future__ import annotations

import errno
import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date
from itertools import pairwise
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from unittest import mock

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from mcp import Client as SdkClient
from mcp.shared.exceptions import MCPError

from aiaml_server import toolsets
from aiaml_server.errors import InvalidSetting
from aiaml_server.server.protocol import Server
from aiaml_server.toolsets.sessions.blocks import headings
from aiaml_server.toolsets.sessions.checking import check
from aiaml_server.toolsets.sessions.document import Document, objection
from aiaml_server.toolsets.sessions.failures import (
    DiskError,
    InvalidContent,
    MalformedLog,
    ToolError,
)
from aiaml_server.toolsets.sessions.memory import AgentMemory
from aiaml_server.toolsets.sessions.place import MAX_FILE
from aiaml_server.toolsets.sessions.schema import DEFAULT_SCHEMA
from client import Client
from machine import git
from steps import killed, steps
from toolset_contract import HOSTILE, Call, Contract

DAY = "2025-01-20"
BELOW = Path(".github/agent-memory/aristotle")
ONE_BY_ONE = threading.Lock()
SECTIONS = ["Context", "Discussion Summary", "Decisions", "Open Questions", "Next Actions"]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A git repository with a commit."""
    path = tmp_path / "shop"
    path.mkdir()
    git(path, "init", "--quiet", "--initial-branch=main")
    return path


@pytest.fixture
def memory(repo: Path) -> AgentMemory:
    """Aristotle's memory in it, with a log."""
    memory = AgentMemory(str(repo), "aristotle")
    memory.start(DAY)
    return memory


def code_of(call: Callable[[], object]) -> str:
    """Return the code that a call is refused with."""
    with pytest.raises(ToolError) as refused:
        call()
    assert str(refused.value)
    return type(refused.value).__name__


def log_of(repo: Path) -> Path:
    """Return where the day's log is."""
    return repo / BELOW / "logs" / f"{DAY}.md"


class TestContract(Contract):
    """What every toolset promises."""

    name = "sessions"

    def environ(self, place: Path) -> dict[str, str]:
        """A repository in the test's directory, and no other."""
        with ONE_BY_ONE:
            if not (place / ".git").exists():
                git(place, "init", "--quiet")
        self.root = str(place)
        return {"AIAML_REPOSITORIES": str(place)}

    def story(self, call: Call) -> None:
        """A session, from its start to its summary."""
        who = {"agent_name": "aristotle", "repo_root": self.root}
        assert "error" not in call("start_session", **who, date=DAY)
        entry = {"section": "Decisions", "content": "- Cents."}
        assert "error" not in call("append_entry", **who, **entry, date=DAY)
        assert "error" not in call("update_summary", **who, **entry, mode="append")
        assert "Cents" in call("read_summary", **who)["summary"]
        assert call("list_sessions", **who)["sessions"] == [f"{DAY}.md"]


# --- what is written ------------------------------------------------------------------------------


def test_a_session_is_started_as_specified(repo: Path) -> None:
    """The directory, the schema as it stands in the specification, a log with its header."""
    memory = AgentMemory(str(repo), "aristotle")
    first = memory.start(DAY)
    assert (Path(first.file), first.created, first.warnings) == (log_of(repo), True, [])
    assert (repo / BELOW / "_schema.md").read_text("utf-8") == DEFAULT_SCHEMA
    headings = "".join(f"\n## {each}\n" for each in SECTIONS)
    assert log_of(repo).read_text("utf-8") == (
        "# Session Log (schema v1)\n\n## Header\n- Agent Name: aristotle\n- Date: 2025-01-20\n"
        f"- Session ID: aristotle-2025-01-20\n{headings}"
    )
    before = log_of(repo).stat()
    assert memory.start(DAY).created is False
    assert log_of(repo).stat() == before


def test_the_same_calls_give_the_same_bytes(tmp_path: Path) -> None:
    """No clock, no random number is in what is written."""
    written = []
    for name in ("one", "two"):
        root = tmp_path / name
        root.mkdir()
        git(root, "init", "--quiet")
        memory = AgentMemory(str(root), "aristotle")
        memory.start(DAY)
        memory.append("Decisions", "- Cents.", DAY)
        memory.update("Context", "The shop.", "replace")
        files = sorted(path for path in (root / ".github").rglob("*") if path.is_file())
        written.append([(path.relative_to(root), path.read_bytes()) for path in files])
        time.sleep(0.01)
    assert written[0] == written[1]


def test_without_a_date_it_is_today(repo: Path) -> None:
    """The local one."""
    started = AgentMemory(str(repo), "aristotle").start()
    assert Path(started.file).name == f"{date.today().isoformat()}.md"  # noqa: DTZ011


def test_git_status_shows_the_contract_s_files_only(repo: Path, memory: AgentMemory) -> None:
    """No lock, no temporary file; nothing that git ignores either."""
    memory.append("Decisions", "- Cents.", DAY)
    memory.update("Decisions", "- Cents.", "append")
    shown = git(repo, "status", "--porcelain", "--untracked-files=all", "--ignored").splitlines()
    expected = ("_schema.md", "_summary.md", f"logs/{DAY}.md")
    assert sorted(shown) == sorted(f"?? {(BELOW / each).as_posix()}" for each in expected)


def test_reading_never_writes(repo: Path) -> None:
    """A summary that is not there reads as an empty one."""
    memory = AgentMemory(str(repo), "aristotle")
    assert memory.summary().text.startswith("# Summary: aristotle\n\n## Context\n")
    assert memory.sessions() == []
    assert not (repo / ".github").exists()


def test_sessions_are_listed_newest_first(memory: AgentMemory, repo: Path) -> None:
    """And nothing that is not the log of a real date."""
    for day in ("2024-12-31", "2025-01-21"):
        memory.start(day)
    logs = log_of(repo).parent
    (logs / "2025-02-30.md").write_text("no such day")
    (logs / "notes.md").write_text("no log")
    if os.name == "posix":
        (logs / "2025-01-22.md").symlink_to(logs / f"{DAY}.md")
    (logs / "2025-01-23.md").mkdir()
    listed = ["2025-01-21.md", "2025-01-20.md", "2024-12-31.md"]
    assert memory.sessions() == listed
    assert memory.sessions(2) == listed[:2]


# --- appending never rewrites ---------------------------------------------------------------------

ENDS = st.sampled_from(["\n", "\r\n"])
LINES = st.lists(
    st.sampled_from(
        [
            "- an entry", "", "  ", "text  ", "### deeper", "> quoted\n> ## not a section", "é 🙂",
            "```\n## in a fence\n```", "    ## in code", "1. one", "| a | b |", "[x]: y", "* * *",
        ]
    ),
    max_size=6,
)  # fmt: skip
CONTENTS = st.sampled_from(
    [
        "- new",
        "new\n\n### Deeper\n\ntext",
        "```\n# code\n```",
        "a\r\nb\r\n",
        "    indented",
        "é 🙂\n",
    ]
)


@given(
    bodies=st.lists(LINES, min_size=5, max_size=5),
    end=ENDS,
    cut=st.booleans(),
    contents=st.lists(st.tuples(st.sampled_from(SECTIONS), CONTENTS), min_size=1, max_size=4),
)
def test_every_byte_stays_in_its_order(
    tmp_path_factory: pytest.TempPathFactory,
    bodies: list[list[str]],
    end: str,
    cut: bool,
    contents: list[tuple[str, str]],
) -> None:
    """Whatever the line ends, trailing spaces and the last newline of a hand-written log."""
    root = tmp_path_factory.mktemp("repo")
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    memory = AgentMemory(str(root), "aristotle")
    memory.start(DAY)
    header = log_of(root).read_text("utf-8").partition("\n## Context")[0]
    text = header + "".join(
        f"\n## {name}\n" + "".join(f"{line}\n" for line in body)
        for name, body in zip(SECTIONS, bodies, strict=True)
    )
    text = text.replace("\n", end)
    data = (text.rstrip() if cut else text).encode()
    log_of(root).write_bytes(data)
    for section, content in contents:
        memory.append(section, content, DAY)
        after = log_of(root).read_bytes()
        assert is_within(data, after)
        document = Document(after)
        heading = document.find(section)
        assert heading
        start, behind = document.body(heading)
        assert after[start:behind].decode().rstrip().endswith(content.rstrip())
        data = after


def is_within(before: bytes, after: bytes) -> bool:
    """Say whether `after` is `before` with something put in at one place."""
    pairs = zip(before, after, strict=False)
    same = next((at for at, (old, new) in enumerate(pairs) if old != new), len(before))
    return after.endswith(before[same:])


SECTION_OF_ITS_OWN = {
    "a heading": "text\n\n## Sneaky\n",
    "a title": "# Sneaky",
    "an indented heading": "   ## Sneaky",
    "a heading of equals": "Sneaky\n======",
    "a heading of dashes": "Sneaky\n---",
    "a heading behind a closed fence": "```\n```\n## Sneaky",
    "an open fence": "```\ncode",
    "an open fence of tildes": "~~~ python\ncode\n```",
    "an open comment": "<!-- never closed",
    "open HTML": "<script>\nno end",
    "a heading in HTML": "<h2>Sneaky</h2>",
    "a heading in a paragraph's HTML": "text <H1 id=x>Sneaky</H1>",
    "nothing": "",
    "white space": " \n\t\n",
    "a control character": "a\x1b[0m",
    "a NUL": "a\x00b",
}


@pytest.mark.parametrize("case", SECTION_OF_ITS_OWN)
def test_content_that_would_not_stay_in_its_section_is_refused(
    case: str, memory: AgentMemory, repo: Path
) -> None:
    """With the line and the way out; nothing is altered."""
    before = log_of(repo).read_bytes()
    content = SECTION_OF_ITS_OWN[case]
    assert code_of(lambda: memory.append("Decisions", content, DAY)) == "InvalidContent"
    assert code_of(lambda: memory.update("Decisions", content, "append")) == "InvalidContent"
    if content.strip():
        assert code_of(lambda: memory.update("Decisions", content, "replace")) == "InvalidContent"
    assert log_of(repo).read_bytes() == before
    if case.startswith(("a heading", "an indented", "an open", "open")):
        assert re.search(r"line \d", objection(content))


@pytest.mark.parametrize(
    "content",
    ["### Deeper", "> ## quoted", "- ## in a list", "```\n## code\n```", "    ## code", "#hash",
     "a #2 b", "<b>bold</b>", "<!-- closed -->", "a\n\n---\n\nb"],
)  # fmt: skip
def test_content_that_stays_in_its_section_is_taken(content: str, memory: AgentMemory) -> None:
    """Exactly as it was given, and the next entry behind it."""
    memory.append("Decisions", content, DAY)
    memory.append("Decisions", "- next", DAY)
    text = (memory.place.read(f"logs/{DAY}.md") or b"").decode()
    assert f"\n\n{content}\n\n- next\n" in text
    assert [each.text for each in Document(text.encode()).sections] == ["Header", *SECTIONS]


# --- where sections begin, and how long that takes ------------------------------------------------

MARKS = ["- ", "* ", "1. ", "2) ", "10. ", "> ", ">", "#", "# ", "## ", "###### ", "a", "b c", "é",
         "```", "~~~", "````", "<div>", "</div>", "<b>", "<!--", "-->", "<script>", "</script>",
         "===", "---", "-", "***", " ", "  ", "    ", "\t", "\n", "\n\n", "\r\n", "\r", "`", "<?",
         "?>", "=", "+ a", " ##", "    code", "- - ", "> - "]  # fmt: skip
SLOWLY = MarkdownIt("commonmark", {"maxNesting": 1000}).disable("reference")


def slowly(text: str) -> list[tuple[int, str, int]]:
    """Find headings with the parser of the specification; level 0 where something stays open."""
    tokens = SLOWLY.parse(f"{text}\n\n## end of text\n")
    found = [
        (int(token.tag[1]), inline.content, (token.map or [0])[0] + 1)
        for token, inline in pairwise(tokens)
        if token.type == "heading_open" and not token.level and token.tag in ("h1", "h2")
    ]
    return found[:-1] if found and found[-1][1] == "end of text" else [*found, (0, "", 0)]


@given(st.lists(st.tuples(st.sampled_from(MARKS), st.integers(1, 3)), max_size=14))
def test_headings_are_those_of_markdown(parts: list[tuple[str, int]]) -> None:
    """Level, text and line are those that markdown-it finds, with lines that come again, too."""
    text = "".join(part * times for part, times in parts)
    fast = [
        (found.level, *((found.text, found.line) if found.level else ("", 0)))
        for found in headings(text.encode())
    ]
    lines = [(level, re.sub(r"\n[ \t]+", "\n", said), line) for level, said, line in slowly(text)]
    assert fast == lines


@pytest.mark.parametrize("piece", ["## a\n", "#", "- x\n"])
def test_start_session_beside_too_large_a_log_names_it(
    piece: str, memory: AgentMemory, repo: Path
) -> None:
    """The file, its size and the limit, at once."""
    log_of(repo).write_text(piece * (3_000_000 // len(piece)), "utf-8")
    size = log_of(repo).stat().st_size
    with pytest.raises(
        MalformedLog, match=rf"{DAY}\.md: .* larger than 1 MiB: {size:,} bytes"
    ) as refused:
        memory.start(DAY)
    assert refused.value


def test_append_beyond_the_limit_of_a_log_is_refused(memory: AgentMemory, repo: Path) -> None:
    """By name, size and limit, and the log stays; what a log may hold can be written."""
    room = MAX_FILE - len(log_of(repo).read_bytes()) - len("\n\n")
    memory.append("Next Actions", "x" * room, DAY)
    before = log_of(repo).read_bytes()
    assert len(before) == MAX_FILE
    with pytest.raises(
        InvalidContent, match=rf"{DAY}\.md would have 1,048,579 bytes, .* 1,048,576"
    ):
        memory.append("Next Actions", "x", DAY)
    assert log_of(repo).read_bytes() == before


@pytest.mark.parametrize(
    ("addition", "why"),
    [
        ("".join(f"## {n}\n" for n in range(2000)), "is behind 1,000 headings of level 1 or 2"),
        ("-\n" * 60_000, "is behind 50,000 lines that begin with a mark"),
    ],
)
def test_too_many_lines_to_look_at_are_named(
    addition: str, why: str, memory: AgentMemory, repo: Path
) -> None:
    """In a log and in a content, each with the line at which there are too many."""
    assert re.match(r"line \d+ ", objection(addition))
    if addition[0] == "-":
        assert why in objection(addition)
    with log_of(repo).open("a") as log:
        log.write(addition)
    [checked] = check(log_of(repo))
    assert any(why in each.what for each in checked.remarks)
    with pytest.raises(MalformedLog, match=DAY):
        memory.append("Context", "x", DAY)


def test_a_list_may_be_nested_deeply(memory: AgentMemory) -> None:
    """Ten levels and more are a list, and no block that is not closed."""
    memory.append("Context", "\n".join("  " * depth + "- x" for depth in range(30)), DAY)


def test_a_heading_in_the_html_of_a_long_content_is_refused() -> None:
    """Whether it is code would take long to tell; the sentence names the line and the limit."""
    content = "text\n" * 4000 + "`<h1>` is code"
    why = "line 4001 holds '<h1>', which only a content of at most 16,384 characters may"
    assert objection(content) == why
    assert not objection(content[-100:])


# --- the summary ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["append", "replace"])
def test_only_the_section_named_is_changed(mode: str, memory: AgentMemory, repo: Path) -> None:
    """All other bytes stay, also those of a person who writes as people do."""
    path = repo / BELOW / "_summary.md"
    text = "Intro  \r\n\r\n## Mine\r\nold  \r\n\r\n## Decisions\r\n- one\r\n\r\n\r\n## Other\r\nx"
    text = f"# Summary: aristotle\r\n\r\n{text}"
    path.write_bytes(text.encode())
    memory.update("Decisions", "- two", mode)
    after = path.read_bytes().decode()
    head, tail = text.split("- one\r\n\r\n\r\n")
    assert after.startswith(head) and after.endswith(tail)
    assert ("- one" in after) == (mode == "append") and "- two" in after
    memory.update("Mine", "new", "replace")
    assert "old" not in path.read_text("utf-8")


def test_a_section_that_the_summary_lacks_is_put_in_schema_order(
    memory: AgentMemory, repo: Path
) -> None:
    """Where the schema has it, among those that are there."""
    path = repo / BELOW / "_summary.md"
    path.write_text("# Summary: aristotle\n\n## Context\nc\n\n## Next Actions\nn\n")
    memory.update("Decisions", "- d", "append")
    assert path.read_text("utf-8") == (
        "# Summary: aristotle\n\n## Context\nc\n\n## Decisions\n\n- d\n\n## Next Actions\nn\n"
    )


# --- the schema is the file -----------------------------------------------------------------------


def test_the_repository_s_own_schema_counts(repo: Path) -> None:
    """Sections added and renamed, a second version: a warning, and its sections are taken."""
    memory = AgentMemory(str(repo), "aristotle")
    memory.start("2025-01-19")
    schema = DEFAULT_SCHEMA.replace("v1", "v2").replace(
        "## Decisions", "## Risks\n- r\n\n## Choices"
    )
    (repo / BELOW / "_schema.md").write_text(schema)
    started = memory.start(DAY)
    assert started.warnings == ["_schema.md declares schema v2; this program was made for v1"]
    assert "# Session Log (schema v2)" in log_of(repo).read_text("utf-8")
    memory.append("Risks", "- rain", DAY)
    assert code_of(lambda: memory.append("Decisions", "x", DAY)) == "InvalidSection"
    warned = memory.append("Risks", "- rain", "2025-01-19").warnings
    assert warned[1] == "logs/2025-01-19.md was made under schema v1; the schema is v2"
    older = (repo / BELOW / "logs" / "2025-01-19.md").read_text("utf-8")
    assert older.index("## Discussion Summary") < older.index("## Risks")
    assert older.index("## Risks") < older.index("## Open Questions")


@pytest.mark.parametrize("schema", [
    "", "text", "# Agent Memory\n## Header\n- A\n## B\n", "## Header\n- A\n## B\n",
    "# Agent Memory Schema v1\n## B\n- A\n", "# Agent Memory Schema v1\n## Header\n- A\n",
    "# Agent Memory Schema v1\n## Header\n## B\n",
    "# Agent Memory Schema v1\n## Header\n- A\n## B\n## B\n",
    "# Agent Memory Schema v1\n# Again\n## Header\n- A\n## B\n", "\xff",
])  # fmt: skip
def test_what_is_no_schema_is_refused(schema: str, memory: AgentMemory, repo: Path) -> None:
    """And left as it is."""
    path = repo / BELOW / "_schema.md"
    path.write_bytes(schema.encode("latin-1"))
    assert code_of(lambda: memory.append("Decisions", "x", DAY)) == "InvalidSchema"
    assert code_of(lambda: memory.start("2025-01-21")) == "InvalidSchema"
    assert path.read_bytes() == schema.encode("latin-1")


def test_a_missing_schema_or_log_is_named(memory: AgentMemory, repo: Path) -> None:
    """With what makes it."""
    assert code_of(lambda: memory.append("Decisions", "x", "2025-01-21")) == "MissingLog"
    (repo / BELOW / "_schema.md").unlink()
    assert code_of(lambda: memory.append("Decisions", "x", DAY)) == "MissingSchema"


MALFORMED = {
    "empty": b"",
    "no title": b"## Header\n",
    "no version": b"# Session Log\n\n## Header\n",
    "no header": b"# Session Log (schema v1)\n\n## Context\n",
    "another agent's": b"# Session Log (schema v1)\n\n## Header\n- Agent Name: plato\n"
    b"- Date: 2025-01-20\n- Session ID: x\n",
    "another date's": b"# Session Log (schema v1)\n\n## Header\n- Agent Name: aristotle\n"
    b"- Date: 2025-01-21\n- Session ID: x\n",
    "a field short": b"# Session Log (schema v1)\n\n## Header\n- Agent Name: aristotle\n",
    "no UTF-8": b"# Session Log (schema v1)\n\xff",
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_log_is_refused_and_left_alone(
    case: str, memory: AgentMemory, repo: Path
) -> None:
    """The sentence says which file and line."""
    log_of(repo).write_bytes(MALFORMED[case])
    with pytest.raises(ToolError, match=rf"logs/{DAY}\.md: line \d+") as refused:
        memory.append("Decisions", "x", DAY)
    assert type(refused.value).__name__ == "MalformedLog"
    assert log_of(repo).read_bytes() == MALFORMED[case]


@pytest.mark.parametrize(
    "addition", ["\n## Notes\n", "\n## Decisions\n", "\n# Again\n", "\n```\nopen", "\n<!-- open"]
)
def test_a_log_that_a_person_broke_says_where(
    addition: str, memory: AgentMemory, repo: Path
) -> None:
    """A section that the schema has not, one twice, a second title, an open fence."""
    before = log_of(repo).read_text("utf-8")
    log_of(repo).write_text(before + addition)
    with pytest.raises(ToolError, match=f"line {before.count(chr(10)) + 2}"):
        memory.append("Context", "x", DAY)


UNSOUND: dict[str, tuple[Callable[[str], str], str]] = {
    "all sections gone": (lambda s: s.partition("\n## Context")[0], "'Context' is missing"),
    "a section gone": (lambda s: s.replace("\n## Decisions\n", ""), "'Decisions' is missing"),
    "another order": (
        lambda s: s.replace("## Decisions", "## X").replace("## Context", "## Decisions")
        .replace("## X", "## Context"),
        "'Context' must stand before 'Decisions'",
    ),
    "another id": (lambda s: s.replace("aristotle-2025", "bogus-2025"), "Session ID 'bogus-2025"),
    "a field twice": (lambda s: s.replace("- Date", "- Agent Name: aristotle\n- Date"), "twice"),
    "a mark of a conflict": (lambda s: f"{s}<<<<<<< HEAD\n- a\n", "merge that was not finished"),
    "a mark of the base": (lambda s: f"{s}||||||| 1a2b3c\n", "merge that was not finished"),
    "a mark of the end": (lambda s: f"{s}\n>>>>>>> left\n", "merge that was not finished"),
    "hidden characters": (lambda s: f"{s}- a\u202eb\n", "U+202E"),
    "a tag character": (lambda s: f"{s}- a\U000e0041\n", "U+E0041"),
}  # fmt: skip
"""What `check` finds an error in a log, and with which words."""


@pytest.mark.parametrize("case", UNSOUND)
def test_check_log_structure(case: str, memory: AgentMemory, repo: Path) -> None:
    """File and line of each; a write into such a log is refused with that line."""
    change, said = UNSOUND[case]
    log_of(repo).write_text(change(log_of(repo).read_text("utf-8")), "utf-8")
    (found,) = check(log_of(repo))
    errors = [each for each in found.remarks if each.level == "error"]
    assert any(said in each.what for each in errors)
    if "U+" in said:  # a person's own; it is kept, and can be added to
        assert memory.append("Decisions", "- x", DAY).file
        return
    with pytest.raises(MalformedLog, match=f"line {errors[0].line}: "):
        memory.append("Decisions", "- x", DAY)


def test_check_marks_in_a_fence(memory: AgentMemory, repo: Path) -> None:
    """A log may tell of a conflict, and may underline; only lines outside of fences are marks."""
    told = "- So it looked:\n\n```\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> left\n```"
    memory.append("Decisions", told, DAY)
    memory.append("Decisions", "- <!-- seen -->", DAY)
    (found,) = check(log_of(repo))
    assert [(each.level, "<!--" in each.what) for each in found.remarks] == [("warning", True)]


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "'# Summary: aristotle'"), ("# Summary: plato\n", "'# Summary: aristotle'"),
     ("# Summary: aristotle\n\n>>>>>>> left\n", "merge"), ("junk\n", "'# Summary: aristotle'"),
     ("## Decisions\n\n- x\n", "'# Summary: aristotle'")],
)  # fmt: skip
def test_check_summary(text: str, said: str, memory: AgentMemory, repo: Path) -> None:
    """One that is empty, another's, or of two branches: an error, a warning for who reads.

    A write is refused with the line, and changes nothing.
    """
    path = repo / BELOW / "_summary.md"
    path.write_text(text, "utf-8")
    (found,) = check(path)
    assert said in found.remarks[0].what and found.remarks[0].level == "error"
    assert said in memory.summary().warnings[0] and memory.summary().text == text
    for mode in ("append", "replace"):
        with pytest.raises(MalformedLog, match=rf"_summary\.md: line {found.remarks[0].line}: "):
            memory.update("Decisions", "- x", mode)
    assert path.read_text("utf-8") == text


def test_check_lines_twice_and_names_by_case(memory: AgentMemory, repo: Path) -> None:
    """What a merge that keeps both sides may leave is a warning; two names that may be one, not."""
    for content in ("- Money is in cents.\n  Ada", "- ok", "Zu.", "---"):
        for _ in range(2):
            memory.append("Decisions", content, DAY)
    memory.append("Context", "- ok", DAY)
    (found,) = check(log_of(repo))
    line = log_of(repo).read_text("utf-8").splitlines().index("## Decisions") + 3
    lines = [line + 3, line + 8, line + 12]
    assert [(each.line, each.level) for each in found.remarks] == [(n, "warning") for n in lines]
    assert f"line {line} already" in found.remarks[0].what
    other = repo / BELOW.with_name("Aristotle")
    other.mkdir(exist_ok=True)
    if len(list(other.parent.iterdir())) == 2:  # a disk that tells cases apart
        assert any("differ by case only" in r.what for each in check(repo) for r in each.remarks)


@pytest.mark.parametrize("name", ["_schema.md", "_summary.md", f"logs/{DAY}.md"])
@pytest.mark.parametrize("schema", [True, False])
def test_check_text_that_is_none(name: str, schema: bool, memory: AgentMemory, repo: Path) -> None:
    """Bytes that are no UTF-8 are named with their line, with or without a schema."""
    path = memory.place.directory / name
    path.write_bytes(path.read_bytes().replace(b"\n## Context", b"\n- \xff\n## Context"))
    if not schema and name != "_schema.md":
        (repo / BELOW / "_schema.md").unlink()
    found = {each.path: each.remarks for each in check(repo)}[path]
    line = path.read_bytes().partition(b"\xff")[0].count(b"\n") + 1
    assert any((each.line, each.level) == (line, "error") for each in found)
    assert any("not UTF-8" in each.what for each in found)


def test_append_names_the_newest_log(memory: AgentMemory) -> None:
    """Past midnight, or by the clock of another time zone, today's log may not be there.

    Nothing is written then; the refusal says which log there is, and how to go on with it.
    """
    with pytest.raises(ToolError, match=rf"the newest is of {DAY}, which `date` names") as refused:
        memory.append("Decisions", "- x")
    assert type(refused.value).__name__ == "MissingLog"
    assert memory.append("Decisions", "- x", DAY).file


def test_replace_may_empty_a_section(memory: AgentMemory, repo: Path) -> None:
    """Questions that are answered go, without a filler; all else stays."""
    before = (repo / BELOW / "_summary.md").read_bytes()
    memory.update("Open Questions", "- Who?", "append")
    memory.update("Open Questions", " \n", "replace")
    assert (repo / BELOW / "_summary.md").read_bytes() == before


def test_start_says_what_is_in_the_log(memory: AgentMemory) -> None:
    """Of a log that was there and has entries; of a long one the end."""
    assert memory.start(DAY).log == ""
    memory.append("Decisions", "- Cents.", DAY)
    assert "- Cents." in memory.start(DAY).log
    memory.append("Next Actions", "- y\n" * 5_000, DAY)
    shown = memory.start(DAY).log
    assert len(shown) < 10_100 and shown.startswith("(the beginning is in the file)\n…\n- y\n")


# --- inside the repository only -------------------------------------------------------------------


@pytest.mark.parametrize(("agent", "code"), [
    ("../plato", "InvalidAgentName"), ("a/b", "InvalidAgentName"), ("a\\b", "InvalidAgentName"),
    ("..", "InvalidAgentName"), (".", "InvalidAgentName"), ("C:", "InvalidAgentName"),
    ("con", "InvalidAgentName"), ("NUL.txt", "InvalidAgentName"), ("a.", "InvalidAgentName"),
    ("a\x00b", "InvalidAgentName"), ("", "InvalidAgentName"), (" ", "InvalidAgentName"),
    ("a b", "InvalidAgentName"), ("-rf", "InvalidAgentName"), (".git", "InvalidAgentName"),
    ("é", "InvalidAgentName"), ("x" * 65, "InvalidAgentName"), ("a\n", "InvalidAgentName"),
])  # fmt: skip
def test_names_that_lead_elsewhere_are_refused(agent: str, code: str, repo: Path) -> None:
    """Nothing is made."""
    assert code_of(lambda: AgentMemory(str(repo), agent).start(DAY)) == code
    assert not (repo / ".github").exists()


@pytest.mark.parametrize(
    "day", ["2025-02-30", "20250120", "2025-1-2", "2025-01-20 ", "", "../x", "2025-01-20T00:00:00",
            "\u0662\u0660\u0662\u0665-01-20", "2025-W04-1"]
)  # fmt: skip
def test_only_real_dates_are_taken(day: str, memory: AgentMemory) -> None:
    """As YYYY-MM-DD."""
    assert code_of(lambda: memory.start(day)) == "InvalidDate"
    assert code_of(lambda: memory.append("Decisions", "x", day)) == "InvalidDate"


def test_only_the_top_of_a_work_tree_is_a_repository(repo: Path, tmp_path: Path) -> None:
    """Not a directory in it, not one beside it, not a relative one."""
    (repo / "src").mkdir()
    for root in (repo / "src", tmp_path, tmp_path / "nowhere", repo / ".git"):
        assert code_of(lambda r=root: AgentMemory(str(r), "a")) == "NotARepository"  # type: ignore[misc]
    for relative in ("shop", ".", "", "~"):
        assert code_of(lambda r=relative: AgentMemory(r, "a")) == "OutsideRepository"  # type: ignore[misc]


def test_worktrees_and_submodules_are_repositories(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their `.git` is a file, which may lead into any repository: nothing is made there."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    git(
        repo,
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "x",
    )
    git(repo, "worktree", "add", "-q", str(tmp_path / "tree"))
    allow = ("-c", "protocol.file.allow=always")
    git(repo, *allow, "submodule", "add", "-q", str(repo), "sub")
    for root in (tmp_path / "tree", repo / "sub"):
        assert AgentMemory(str(root), "aristotle").start(DAY).created
        assert "aiaml" not in git(root, "status", "--porcelain", "--untracked-files=all")
    assert (tmp_path / "state" / "aiaml" / "sessions" / "aristotle.lock").is_file()
    assert list((repo / ".git").rglob("aiaml*")) == []


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
@pytest.mark.parametrize("name", [".git", ".git/aiaml-sessions"])
def test_a_lock_is_made_behind_no_link(
    name: str, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A git directory, or the lock's in it, that is a link keeps what it leads to as it was."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    target = tmp_path / "target"
    if name == ".git":
        (repo / name).rename(target)
    else:
        target.mkdir()
    (repo / name).symlink_to(target)
    before = sorted(target.iterdir())
    assert AgentMemory(str(repo), "aristotle").start(DAY).created
    assert sorted(target.iterdir()) == before


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
@pytest.mark.parametrize(
    "link", [".github", ".github/agent-memory", str(BELOW), str(BELOW / "logs")]
)
def test_no_directory_is_reached_through_a_link(link: str, repo: Path, tmp_path: Path) -> None:
    """Wherever it leads."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (repo / link).parent.mkdir(parents=True, exist_ok=True)
    (repo / link).symlink_to(outside)
    memory = lambda: AgentMemory(str(repo), "aristotle").start(DAY)  # noqa: E731
    assert code_of(memory) == "OutsideRepository"
    assert list(outside.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
@pytest.mark.parametrize("name", ["_schema.md", "_summary.md", f"logs/{DAY}.md"])
def test_no_file_is_reached_through_a_link(
    name: str, memory: AgentMemory, repo: Path, tmp_path: Path
) -> None:
    """Neither read nor written."""
    secret = tmp_path / "secret.md"
    (repo / BELOW / name).rename(secret)
    before = secret.read_bytes()
    (repo / BELOW / name).symlink_to(secret)
    codes = set()
    for call in (
        lambda: memory.append("Decisions", "x", DAY),
        lambda: memory.update("Decisions", "x", "append"),
        memory.summary,
        lambda: memory.start(DAY),
    ):
        try:
            call()
        except ToolError as refused:
            codes.add(type(refused).__name__)
    assert codes == {"OutsideRepository"}
    assert secret.read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
@pytest.mark.parametrize("name", ["_summary.md", f"logs/{DAY}.md"])
@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
def test_a_start_that_is_refused_makes_nothing(
    name: str, kind: str, repo: Path, tmp_path: Path
) -> None:
    """All that is there is looked at before anything is written."""
    path = repo / BELOW / name
    path.parent.mkdir(parents=True)
    if kind == "link":
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    before = sorted((repo / ".github").rglob("*"))
    expected = "OutsideRepository" if kind == "link" else "MalformedLog"
    assert code_of(lambda: AgentMemory(str(repo), "aristotle").start(DAY)) == expected
    assert sorted((repo / ".github").rglob("*")) == before


@pytest.mark.parametrize("step", range(6))
def test_a_start_that_the_disk_refuses_leaves_nothing(step: int, repo: Path) -> None:
    """However many of its files are there already; the next start makes them all."""
    memory = AgentMemory(str(repo), "aristotle")
    memory.start("2025-01-19")
    for path in (repo / BELOW).glob("_*.md"):
        path.unlink()
    before = contents(repo)
    full = OSError(errno.ENOSPC, "No space left on device")
    refusing = mock.patch("os.fsync", side_effect=[*[None] * step, full, *[None] * 9])
    with refusing as called, suppress(DiskError):
        memory.start(DAY)
    # Windows makes no names durable: there are fewer steps, and some starts come to an end.
    assert contents(repo) == before or called.call_count <= step
    assert memory.start(DAY).file and len(contents(repo)) == len(before) + 3


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_the_repository_itself_is_reached_through_no_link(repo: Path, tmp_path: Path) -> None:
    """Whatever is allowed; the way to it is the person's, and may have links."""
    link = tmp_path / "link"
    link.symlink_to(repo)
    for root in (str(link), f"{link}/", f"{link}/."):
        for allowed in ([], [str(tmp_path)], [root]):
            with pytest.raises(ToolError, match=re.escape(str(repo))) as refused:
                AgentMemory(root, "a", allowed)
            assert type(refused.value).__name__ == "OutsideRepository"
    (tmp_path / "ways").symlink_to(tmp_path)
    for allowed in ([], [str(tmp_path)]):
        assert AgentMemory(str(tmp_path / "ways" / "shop"), "b", allowed).start(DAY).file
    assert not [each for each in check(link) if "repo_root" in str(each)]


def test_a_setting_without_a_directory_is_no_permission(tmp_path: Path) -> None:
    """An empty list would allow everything; only a variable that is not set does."""
    manifest = toolsets.manifest("sessions")

    def values(environ: dict[str, str]) -> dict[str, object]:
        return {"AIAML_REPOSITORIES": manifest.read_settings(environ)["AIAML_REPOSITORIES"]}

    for value in (os.pathsep, os.pathsep * 3, " "):
        with pytest.raises(InvalidSetting, match="AIAML_REPOSITORIES"):
            values({"AIAML_REPOSITORIES": value})
    one = f"{tmp_path}{os.pathsep}"
    assert values({"AIAML_REPOSITORIES": one}) == {"AIAML_REPOSITORIES": (str(tmp_path),)}
    assert values({"AIAML_REPOSITORIES": ""}) == values({}) == {"AIAML_REPOSITORIES": ()}


def test_a_wrong_header_field_is_named_at_its_own_line(memory: AgentMemory, repo: Path) -> None:
    """With any line ends, and a heading of two lines."""
    good = log_of(repo).read_text("utf-8")
    wrong = good.replace("Date: 2025-01-20", "Date: 2025-01-21").replace(
        "aristotle\n", "plato\n", 1
    )
    for end in ("\n", "\r\n", "\r"):
        log_of(repo).write_bytes(wrong.replace("\n", end).encode())
        (found,) = check(log_of(repo))
        assert [each.line for each in found.remarks] == [4, 5]
        with pytest.raises(ToolError, match="line 4: the header says Agent Name 'plato'"):
            memory.append("Decisions", "x", DAY)
    log_of(repo).write_text(wrong.replace("## Header\n", "Header\n------\n"), "utf-8")
    (found,) = check(log_of(repo))
    assert [each.line for each in found.remarks] == [5, 6]


@pytest.mark.parametrize("name", ["_schema.md", "_summary.md", f"logs/{DAY}.md"])
def test_control_characters_are_found_as_they_are_refused(
    name: str, memory: AgentMemory, repo: Path
) -> None:
    """Each line that holds one is named, and what was written by hand can still be added to."""
    path = repo / BELOW / name
    lines = path.read_bytes().count(b"\n")
    path.write_bytes(path.read_bytes() + b"\na\tb\r\nc\x1b[0m\x07\nd\x00\n")
    found = {each.path.name: each.remarks for each in check(repo)}[path.name]
    assert [(each.line, each.level) for each in found] == [
        (lines + 3, "error"),
        (lines + 4, "error"),
    ]
    assert "U+001B" in found[0].what and "U+0000" in found[1].what
    memory.append("Decisions", "x", DAY)


def test_only_the_repositories_allowed_are_touched(repo: Path, tmp_path: Path) -> None:
    """`AIAML_REPOSITORIES` narrows to some, or what lies below them."""
    other = tmp_path / "other"
    other.mkdir()
    assert AgentMemory(str(repo), "a", [str(tmp_path)]).start(DAY).created
    assert code_of(lambda: AgentMemory(str(repo), "a", [str(other)])) == "OutsideRepository"
    assert code_of(lambda: AgentMemory(str(repo), "a", [f"{repo}x"])) == "OutsideRepository"


def test_no_hook_of_the_repository_runs(repo: Path) -> None:
    """Nothing of it is executed; git itself is never started."""
    hook = repo / ".git" / "hooks" / "post-index-change"
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    memory = AgentMemory(str(repo), "aristotle")
    memory.start(DAY)
    memory.append("Decisions", "x", DAY)
    assert not (repo / "ran").exists()


# --- many at once, and ends -----------------------------------------------------------------------

APPENDER = """
import sys, time
from aiaml_server.toolsets.sessions.memory import AgentMemory
memory = AgentMemory(sys.argv[1], "aristotle")
for number in range(int(sys.argv[3])):
    begun = time.time()
    memory.append("Decisions", f"- {sys.argv[2]}.{number}.", "2025-01-20")
    print(f"{sys.argv[2]}.{number}.", begun, time.time(), flush=True)
"""


@pytest.mark.usefixtures("memory")
def test_eight_processes_lose_nothing(repo: Path) -> None:
    """Every entry is there; what was answered before another was asked for stands before it."""

    def run(name: int) -> list[tuple[str, float, float]]:
        words = [sys.executable, "-c", APPENDER, str(repo), f"p{name}", "6"]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        rows = [line.split() for line in done.stdout.splitlines()]
        return [(entry, float(begun), float(ended)) for entry, begun, ended in rows]

    with ThreadPoolExecutor(8) as pool:
        answered = [row for rows in pool.map(run, range(8)) for row in rows]
    entries = re.findall(r"^- (p\d\.\d\.)$", log_of(repo).read_text("utf-8"), re.MULTILINE)
    assert sorted(entries) == sorted(entry for entry, _, _ in answered) and len(entries) == 48
    places = {entry: number for number, entry in enumerate(entries)}
    for entry, _, ended in answered:
        for other, begun, _ in answered:
            assert ended > begun or places[entry] < places[other]
    assert [each for each in check(repo) if each.remarks] == []


def test_who_waits_too_long_is_told(
    memory: AgentMemory, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing was changed; reading waits for nobody."""
    monkeypatch.setattr("aiaml_server.toolsets.sessions.place.LOCK_SECONDS", 0.05)
    before = contents(repo)
    with AgentMemory(str(repo), "aristotle").place.writing():
        for call in (
            lambda: memory.start(DAY),
            lambda: memory.append("Decisions", "x", DAY),
            lambda: memory.update("Decisions", "x", "append"),
        ):
            assert code_of(call) == "Busy"
        assert memory.summary().text and memory.sessions()
    assert contents(repo) == before


def test_what_the_disk_refuses_is_told(memory: AgentMemory, repo: Path) -> None:
    """A full disk while writing, and something else that has the name of a directory."""
    before = contents(repo)
    with mock.patch("os.fsync", side_effect=OSError(errno.ENOSPC, "No space left on device")):
        assert code_of(lambda: memory.append("Decisions", "x", DAY)) == "DiskError"
    assert contents(repo) == before
    (repo / ".github" / "agent-memory" / "plato").write_text("in the way")
    assert code_of(lambda: AgentMemory(str(repo), "plato").start(DAY)) == "DiskError"


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
@pytest.mark.parametrize("moment", [0.0, 0.002, 0.005, 0.01, 0.02, 0.05])
def test_a_kill_leaves_the_old_or_the_new_file(
    moment: float, memory: AgentMemory, repo: Path
) -> None:
    """Nothing acknowledged is lost, nothing torn, and the next call clears what was left."""
    words = [sys.executable, "-c", APPENDER, str(repo), "k", "100000"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        first = process.stdout.readline().strip()
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        told = [line.split()[0] for line in [first, *process.stdout.read().splitlines()] if line]
    log = log_of(repo).read_text("utf-8")
    assert all(f"- {each}\n" in log for each in told)
    (log_of(repo).parent / ".aiaml-0a1b2c3d4e5f6071.tmp").write_text("left by a killed writer")
    notes = log_of(repo).parent / ".notes.md.tmp"
    notes.write_text("a person's")
    memory.append("Context", "- after", DAY)
    assert notes.read_text() == "a person's"
    notes.unlink()
    assert [each for each in check(repo) if each.remarks] == []
    shown = git(repo, "status", "--porcelain", "--untracked-files=all")
    assert shown.count("??") == 3 and ".tmp" not in shown


SESSION = """
import sys
from aiaml_server.toolsets.sessions.memory import AgentMemory
memory = AgentMemory(sys.argv[1], "aristotle")
memory.start("2025-01-20")
print("started", flush=True)
memory.append("Decisions", "- Cents.", "2025-01-20")
print("appended", flush=True)
memory.update("Decisions", "- Euros.", "append")
print("updated", flush=True)
memory.summary(), memory.sessions()
"""


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_kill_at_any_step_leaves_whole_files(repo: Path) -> None:
    """Before each file that is opened, written, renamed or made durable, one after the other."""
    count = 0
    for count, told in enumerate(killed(SESSION, repo, [str(repo)]), 1):  # noqa: B007
        assert not [each for each in check(repo) if each.remarks and (each.path.exists() or told)]
        memory = AgentMemory(str(repo), "aristotle")
        assert "appended" not in told or "- Cents." in log_of(repo).read_text("utf-8")
        assert "updated" not in told or "- Euros." in memory.summary().text
        memory.start(DAY)
        memory.append("Context", "- after", DAY)
        memory.update("Context", "- after", "append")
        shown = git(repo, "status", "--porcelain", "--untracked-files=all", "--ignored")
        assert ".tmp" not in shown and shown.count("?? ") == 3 and shown.count("!! ") == 0
        shutil.rmtree(repo / ".github")
        shutil.rmtree(repo / ".git" / "aiaml-sessions")
    assert count > 20


def test_no_network_no_program_and_nothing_is_deleted(repo: Path) -> None:
    """Of all that a session does, each step is looked at."""
    for _ in range(2):  # where nothing is yet, and where all is there
        done = steps(SESSION, repo, [str(repo)])
        assert {"open", "fsync"} <= {event for event, _ in done}
        assert {event for event, _ in done} <= {"open", "os.mkdir", "os.rename", "fsync"}
        for event, path in done:
            below = Path(path or repo).relative_to(repo).as_posix()
            ours = (".github", ".git/HEAD", ".git/aiaml-sessions")
            assert below in (".", ".git") or below.startswith(ours), (event, path)


# --- over MCP -------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_resources_are_logs_and_summaries(repo: Path) -> None:
    """Listed, the newest first, and read by agent and date; what is not there is an error."""
    memory = AgentMemory(str(repo), "aristotle")
    for day in (DAY, "2025-01-21"):
        memory.start(day)
    memory.append("Decisions", "- Cents.", DAY)
    async with SdkClient(Server([built(AIAML_SESSIONS_REPO=str(repo))])) as client:
        listed = [str(each.uri) for each in (await client.list_resources()).resources]
        assert listed == [
            "session-summary://aristotle",
            "session-log://aristotle/2025-01-21",
            f"session-log://aristotle/{DAY}",
        ]
        texts = []
        for uri in listed:
            (content,) = (await client.read_resource(uri)).contents
            texts.append(content.text)  # type: ignore[union-attr]
        assert texts[0] == memory.summary().text and "- Cents." in texts[2]
        for wrong in ("log://aristotle/2025-02-30", "log://plato/2025-01-20",
                      "summary://..%2F..", "log://aristotle/..%2F_schema"):  # fmt: skip
            with pytest.raises(MCPError):
                await client.read_resource(f"session-{wrong}")
        assert len((await client.list_tools()).tools) == 5


@pytest.mark.anyio
async def test_resources_of_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of one there are none, and what is asked for says why."""
    monkeypatch.chdir(tmp_path)
    async with SdkClient(Server([built()])) as client:
        assert (await client.list_resources()).resources == []
        with pytest.raises(MCPError, match="is in no git repository"):
            await client.read_resource(f"session-log://aristotle/{DAY}")


@pytest.mark.anyio
async def test_settings_name_agent_and_repository(repo: Path) -> None:
    """Then a call may leave both out, by nothing, null or an empty text; what it names counts."""
    told = {"AIAML_SESSIONS_AGENT": "coder", "AIAML_SESSIONS_REPO": str(repo)}
    async with SdkClient(Server([built(**told)])) as client:
        listed = (await client.list_tools()).tools
        required = {each.name: each.input_schema.get("required", []) for each in listed}
        assert required["append_entry"] == ["section", "content"] and not required["start_session"]
        for given_ in ({}, {"agent_name": "", "repo_root": ""}, {"agent_name": "plato"}):
            done = await client.call_tool("start_session", {**given_, "date": DAY})
            assert not done.is_error, done.structured_content
    assert {path.name for path in (repo / BELOW.parent).iterdir()} == {"coder", "plato"}
    for variable, value in (("AGENT", "a b"), ("AGENT", "../x"), ("REPO", "here")):
        with pytest.raises(InvalidSetting, match=f"AIAML_SESSIONS_{variable}"):
            built(**{f"AIAML_SESSIONS_{variable}": value})


@pytest.mark.anyio
async def test_arguments_as_clients_send_them(repo: Path) -> None:
    """Plain types in the schemas; a number as text or 1.0, and nothing as empty text or null."""
    who = {"agent_name": "aristotle", "repo_root": str(repo)}
    async with SdkClient(Server([built()])) as client:
        for tool in (await client.list_tools()).tools:
            for name, schema in tool.input_schema["properties"].items():
                assert schema["type"] in ("string", "integer"), (tool.name, name)
        for limit in (1, 1.0, "1", None, ""):
            done = await client.call_tool("list_sessions", {**who, "limit": limit})
            assert not done.is_error, limit
        for day in (None, ""):
            assert not (await client.call_tool("start_session", {**who, "date": day})).is_error


@given(texts=st.lists(st.sampled_from(["null", "true", "5", '{"a": 1}', "[1]", '"x"']), max_size=4))
def test_what_is_sent_is_what_is_stored(
    texts: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A text that looks like JSON is a text."""
    repo = tmp_path_factory.mktemp("repo")
    git(repo, "init", "--quiet")
    who = {"agent_name": "aristotle", "repo_root": str(repo), "date": DAY}

    async def story() -> None:
        async with SdkClient(Server([built()])) as client:
            await client.call_tool("start_session", who)
            for text in texts:
                entry = {**who, "section": "Decisions", "content": text}
                assert not (await client.call_tool("append_entry", entry)).is_error

    anyio.run(story)
    log = Document(log_of(repo).read_bytes())
    assert log.entries("Decisions").decode().split("\n\n") == (texts or [""])


@pytest.mark.anyio
@pytest.mark.parametrize(("tool", "arguments", "code"), [
    ("start_session", {}, "InvalidInput"),
    ("start_session", {"agent_name": "a"}, "InvalidInput"),
    ("start_session", {"agent_name": 5, "repo_root": "/x"}, "InvalidInput"),
    ("start_session", {"agent_name": "a", "repo_root": "ROOT", "date": 5}, "InvalidInput"),
    ("start_session", {"agent_name": "a", "repo_root": "ROOT", "date": "x"}, "InvalidDate"),
    ("start_session", {"agent_name": "a b", "repo_root": "ROOT"}, "InvalidAgentName"),
    ("start_session", {"agent_name": "a", "repo_root": "/"}, "NotARepository"),
    ("append_entry", {"section": "Thoughts", "content": "x"}, "InvalidSection"),
    ("append_entry", {"section": "Header", "content": "x"}, "InvalidSection"),
    ("append_entry", {"section": "Decisions", "content": "## x"}, "InvalidContent"),
    ("append_entry", {"section": "Decisions", "content": "x", "date": "2020-01-01"}, "MissingLog"),
    ("update_summary", {"section": "Decisions", "content": "x", "mode": "prepend"}, "InvalidMode"),
    ("update_summary", {"section": "Thoughts", "content": "x", "mode": "append"}, "InvalidSection"),
    ("list_sessions", {"limit": 0}, "InvalidInput"),
    ("list_sessions", {"limit": -1}, "InvalidInput"),
    ("list_sessions", {"limit": "five"}, "InvalidInput"),
    ("list_sessions", {"limit": True}, "InvalidInput"),
])  # fmt: skip
async def test_every_refusal_has_its_code(
    tool: str, arguments: dict[str, Any], code: str, repo: Path
) -> None:
    """`{"error", "message"}` with `isError`; nothing on disk is changed."""
    AgentMemory(str(repo), "aristotle").start(DAY)
    before = {path: path.read_bytes() for path in (repo / ".github").rglob("*.md")}
    known = {"agent_name": "aristotle", "repo_root": "ROOT"} if tool != "start_session" else {}
    given = {"date": DAY} if tool == "append_entry" else {}
    asked = {
        name: str(repo) if value == "ROOT" else value
        for name, value in {**known, **given, **arguments}.items()
    }
    async with SdkClient(Server([built()])) as client:
        result = await client.call_tool(tool, asked)
    assert result.is_error
    value = json.loads(result.content[0].text)  # type: ignore[union-attr]
    assert value == result.structured_content
    assert (value["error"], set(value)) == (code, {"error", "message"})
    assert {path: path.read_bytes() for path in (repo / ".github").rglob("*.md")} == before


@pytest.mark.parametrize("field", ["agent_name", "repo_root", "date", "section", "mode"])
def test_refusal_shows_the_beginning_of_a_wrong_value(field: str, repo: Path) -> None:
    """A value of megabytes is told by its first 80 characters, by each tool that takes it."""
    AgentMemory(str(repo), "aristotle").start(DAY)
    known = {"agent_name": "aristotle", "repo_root": str(repo), "date": DAY}
    known |= {"section": "Decisions", "mode": "append", "content": "x"}
    wrong = f"{repo}/{'x' * 3_000_000}"
    for each in built().tools:
        takes = inspect.signature(each.call).parameters
        if field in takes:
            given = {name: known[name] for name in takes if name in known}
            with pytest.raises(ToolError) as refused:
                each.call(**{**given, field: wrong})
            said = str(refused.value)
            assert wrong[:60] in said and len(said) < 400


@pytest.mark.parametrize("line", ["- Agent Name: {}", "- {}: x\n- {}: x", "## {}", "## {}\n## {}"])
def test_refusal_shows_the_beginning_of_a_long_line(line: str, repo: Path) -> None:
    """Also what a log has, and should not."""
    memory = AgentMemory(str(repo), "aristotle")
    memory.start(DAY)
    text = log_of(repo).read_text("utf-8")
    long = line.replace("{}", "x" * 300_000)
    changed = text.replace("- Agent Name: aristotle", long) if line[0] == "-" else f"{text}\n{long}"
    log_of(repo).write_text(changed, "utf-8")
    with pytest.raises(MalformedLog) as refused:
        memory.append("Decisions", "- x", DAY)
    assert "x…" in str(refused.value) and len(str(refused.value)) < 300


GOOD: dict[str, dict[str, Any]] = {
    "start_session": {"date": DAY},
    "append_entry": {"section": "Decisions", "content": "- Cents.", "date": DAY},
    "read_summary": {},
    "update_summary": {"section": "Decisions", "content": "- Cents.", "mode": "append"},
    "list_sessions": {"limit": 3},
}
"""For each tool the arguments besides agent and repository."""
TRICKS: list[Any] = [
    "../../escape", "/etc", "\\\\host\\share", "C:\\x", "a/../b", "~", "$HOME", "a\nb", "a\tb",
    "\u202eabc", "Header", "header", "DECISIONS", "# Decisions", "## x", "con", "2025-01-20/..",
    "9999-12-31", "0000-00-00", "é" * 300, 10**30, -(10**30), 2**63, 1e308,
]  # fmt: skip


@pytest.mark.anyio
@pytest.mark.parametrize("tool", GOOD)
async def test_whatever_a_parameter_holds_the_answer_has_its_shape(tool: str, repo: Path) -> None:
    """One hostile value at a time among good ones: a code of the list, or a file that is whole."""
    AgentMemory(str(repo), "aristotle").start(DAY)
    outside = {each for each in repo.parent.rglob("*") if repo not in (each, *each.parents)}
    good = {"agent_name": "aristotle", "repo_root": str(repo), **GOOD[tool]}
    codes = {"InvalidInput", *(each.__name__ for each in subclasses(ToolError))}
    async with SdkClient(Server([built()])) as client:
        for parameter in good:
            for value in (*HOSTILE, *TRICKS):
                if isinstance(value, str):
                    value = value.encode("utf-8", "replace").decode()  # noqa: PLW2901
                before = contents(repo)
                result = await client.call_tool(tool, {**good, parameter: value})
                answer = result.structured_content
                assert answer and "Traceback" not in str(answer)
                if result.is_error:
                    assert set(answer) == {"error", "message"} and answer["error"] in codes, value
                    assert contents(repo) == before
    assert [each for each in check(repo) if each.remarks] == []
    assert {each for each in repo.parent.rglob("*") if repo not in (each, *each.parents)} == outside
    assert strangers(repo) == []


def subclasses(kind: type[ToolError]) -> set[type[ToolError]]:
    """Return a class and all below it."""
    found = {kind}
    for each in kind.__subclasses__():
        found |= subclasses(each)
    return found


def strangers(repo: Path) -> list[str]:
    """Return what git shows besides the contract's files."""
    shown = git(repo, "status", "--porcelain", "--untracked-files=all", "--ignored").splitlines()
    ours = r"\?\? \.github/agent-memory/[\w.-]+/(logs/[\d-]{10}|_schema|_summary)\.md"
    return [line for line in shown if not re.fullmatch(ours, line)]


def contents(repo: Path) -> dict[Path, bytes]:
    """Return every file of the memory in a repository."""
    return {path: path.read_bytes() for path in (repo / ".github").rglob("*") if path.is_file()}


def test_answers_are_those_of_the_specification(repo: Path, tmp_path: Path) -> None:
    """Their keys, to a real client of a real server."""
    command = (sys.executable, "-m", "aiaml_server", "--toolset", "sessions")
    who = {"agent_name": "aristotle", "repo_root": str(repo)}
    with Client(tmp_path / "base", command=command) as client:
        empty = client.call("list_sessions", **who)
        assert (empty["sessions"], set(empty)) == ([], {"sessions", "warnings"})
        assert set(client.call("read_summary", **who)) == {"summary", "warnings"}
        file = str(log_of(repo))
        for created in (True, False):
            done = client.call("start_session", **who, date=DAY)
            assert done == {"session_file": file, "created": created}
        client.call("append_entry", **who, section="Decisions", content="- Cents.", date=DAY)
        client.call("start_session", **who, date="2025-01-15")
        assert set(client.call("read_summary", **who)) == {"summary"}
        listed = client.call("list_sessions", **who)
        assert listed == {"sessions": ["2025-01-20.md", "2025-01-15.md"]}
        assert client.call("list_sessions", **who, limit=1) == {"sessions": ["2025-01-20.md"]}
        refused = client.call("append_entry", **who, section="Thoughts", content="x", date=DAY)
        schema = repo / BELOW / "_schema.md"
        schema.write_text(DEFAULT_SCHEMA.replace("v1", "v2"), "utf-8")
        warned = client.call("start_session", **who, date=DAY)["warnings"]
    assert len(warned) == 2 and "declares schema v2" in warned[0] and "schema v1" in warned[1]
    assert refused["error"] == "InvalidSection"
    assert refused["message"].startswith("Section 'Thoughts' is not defined in schema")


def test_nothing_is_written_but_what_the_call_names(memory: AgentMemory, repo: Path) -> None:
    """An entry does not reach the summary, nor the summary a log; reading writes nothing."""
    for call, changed in (
        (lambda: memory.append("Decisions", "- Cents.", DAY), log_of(repo)),
        (lambda: memory.update("Decisions", "- Cents.", "append"), repo / BELOW / "_summary.md"),
        (memory.summary, None),
        (memory.sessions, None),
    ):
        before = contents(repo)
        call()
        after = contents(repo)
        assert set(after) == set(before)
        assert [path for path in after if after[path] != before[path]] == (
            [changed] if changed else []
        )


CALLS = st.lists(
    st.tuples(
        st.sampled_from(["start", "append", "summary", "update", "sessions"]),
        st.sampled_from(["aristotle", "plato", "../x", ""]),
        st.sampled_from([DAY, "2025-01-21", "2025-02-30", None]),
        st.sampled_from(["Decisions", "Context", "Header", "Thoughts"]),
        st.sampled_from(["- entry", "### deeper\n\ntext", "## other", "", "```\nopen"]),
        st.sampled_from(["append", "replace", "prepend"]),
    ),
    max_size=12,
)  # fmt: skip


@given(calls=CALLS)
def test_after_any_calls_git_shows_the_contract_s_files_only(
    calls: list[tuple[str, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Also after those that were refused; and each of them is in order."""
    root = tmp_path_factory.mktemp("repo")
    git(root, "init", "--quiet")
    for operation, agent, day, section, content, mode in calls:
        with suppress(ToolError):
            memory = AgentMemory(str(root), agent)
            words = {
                "start": (day,),
                "append": (section, content, day),
                "update": (section, content, mode),
            }
            getattr(memory, operation)(*words.get(operation, ()))
    assert [each for each in check(root) if each.remarks] == []
    assert strangers(root) == []


def built(**environ: str) -> Any:
    """Build the toolset for any repository."""
    manifest = toolsets.manifest("sessions")
    return resolve_name(manifest.build)(manifest.read_settings(environ))


def test_the_instructions_carry_the_usage_pattern() -> None:
    """Its five steps in their order, and whose reasoning and judgement are."""
    text = built().instructions
    steps_ = ["starts", "`read_summary`", "reason together", "`append_entry`", "`update_summary`"]
    places = [text.index(each) for each in steps_]
    assert places == sorted(places)
    assert "Reasoning is the agent's, judgement is the person's" in text


def test_exactly_five_tools_are_served(tmp_path: Path) -> None:
    """By a real process."""
    with Client(
        tmp_path, command=(sys.executable, "-m", "aiaml_server", "--toolset", "sessions")
    ) as client:
        listed = client.answer(client.request("tools/list"))["result"]["tools"]
    assert [each["name"] for each in listed] == [
        "start_session", "append_entry", "read_summary", "update_summary", "list_sessions",
    ]  # fmt: skip
