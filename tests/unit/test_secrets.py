"""What must not leave this machine does not, however it came into a commit; all else goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from mcp import Client
from mcp.types import CallToolResult

from aiaml_server import Settings
from aiaml_server.server.protocol import Server
from aiaml_server.server.tools import toolset
from aiaml_server.sync.guard import keep_local, let_go, release
from aiaml_server.sync.place import HIDDEN
from aiaml_server.sync.survey import survey
from machine import TOKEN, Machine, commit_by_hand, content_of, git, settle

pytestmark = pytest.mark.usefixtures("nobodys_configuration")

HELD = "it seems to hold a GitHub token"


def in_any_object(remote: Path, text: str) -> bool:
    """Say whether any object of a repository holds a text, reachable or not."""
    names = git(remote, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    held = subprocess.run(
        ["git", "cat-file", "--batch"], cwd=remote, input=names.encode(), capture_output=True,
        check=True,
    )  # fmt: skip
    return text.encode() in held.stdout


def unchecked(machine: Machine) -> Machine:
    """Return the same directory, with the check off and without a remote."""
    return Machine(machine.base, check_secrets=False)


def with_secret(machine: Machine) -> Path:
    """Have a memory with a secret committed, as an earlier version or a person may have."""
    memory = machine.remember(f"the token is {TOKEN}")
    unchecked(machine).synced()
    return machine.path(memory)


# --- remembering --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(
    ("settings", "told"),
    [({}, True), ({"check_secrets": False}, False), ({"sync": False}, False)],
    ids=["checked", "unchecked", "without sync"],
)
def test_an_agent_is_told_what_stays_out_of_git(
    tmp_path: Path, mode: Literal["auto", "legacy"], settings: dict[str, Any], told: bool
) -> None:
    """In a second block of text; the first, and the structured value, are as ever."""

    async def remembered(content: str) -> CallToolResult:
        arguments = {"agent": "a", "user": "u", "topics": ["t"], "content": content}
        server = Server([toolset(replace(Settings(tmp_path / "base"), **settings))])
        async with Client(server, mode=mode) as client:
            await client.list_tools()
            return await client.call_tool("remember", arguments)

    result = anyio.run(remembered, f"the token is {TOKEN}")
    texts = [block.text for block in result.content if block.type == "text"]
    assert json.loads(texts[0]) == result.structured_content
    assert not result.is_error
    assert result.structured_content["message"].startswith("Memory stored successfully")
    said = "kept out of git and off other machines, because it seems to hold a GitHub token."
    assert texts[1:] == ([f"Stored and found as usual, but {said}"] if told else [])
    assert len(anyio.run(remembered, "the token is in the safe").content) == 1


# --- before the push ------------------------------------------------------------------------------


def test_a_commit_with_a_secret_is_not_pushed_and_all_else_is(ada: Machine, remote: Path) -> None:
    """It is told with the file and the commit; the memories before and after it travel."""
    before = ada.remember("before")
    secret = with_secret(ada)
    commit = ada.git("log", "-1", "--format=%h", "--", f"files/{secret.name}")
    after = ada.remember("after")
    status = ada.synced()
    (told,) = status.held_back.items()
    assert (told[0], told[1].sentence) == (
        f"files/{secret.name}",
        f"{HELD}, in the commit {commit}",
    )
    assert set(content_of(remote)) == {before.file_name, after.file_name}
    assert not in_any_object(remote, TOKEN)
    found = survey(ada.settings)
    assert found.kept_out == status.held_back


def test_a_message_with_a_secret_stays_and_what_it_is_about_travels(
    ada: Machine, remote: Path
) -> None:
    """The same files are pushed in commits of our own, and it is told; unchecked, it goes as is."""
    ada.remember("hello")
    ada.synced()
    (ada.base / "notes.txt").write_text("fine")
    commit_by_hand(ada.base, f"use {TOKEN}", "notes.txt")
    status = ada.synced()
    assert git(remote, "show", "main:notes.txt") == "fine"
    assert not in_any_object(remote, TOKEN)
    assert "the message of a commit seems to hold a GitHub token" in (status.notice or "")
    ada.remember("more")
    ada.synced()
    assert not in_any_object(remote, TOKEN)
    assert len(content_of(remote)) == 2
    commit_by_hand(ada.base, f"use {TOKEN}")
    assert not in_any_object(remote, TOKEN)
    Machine(ada.base, remote, check_secrets=False).synced()
    assert in_any_object(remote, TOKEN)


def test_what_a_person_commits_is_looked_at_as_well(ada: Machine, remote: Path) -> None:
    """Also files that are no memories, and secrets in names."""
    ada.remember("hello")
    ada.synced()
    (ada.base / "notes.txt").write_text(f"token: {TOKEN}")
    (ada.base / f"{TOKEN}.txt").write_text("hello")
    (ada.base / "fine.txt").write_text("fine")
    commit_by_hand(ada.base, "mine", "notes.txt", f"{TOKEN}.txt", "fine.txt")
    held = ada.synced().held_back
    assert set(held) == {"notes.txt", f"{TOKEN}.txt"}
    assert held[f"{TOKEN}.txt"].sentence.startswith("its name seems to hold a GitHub token")
    assert all("with the file's path" in why.remedy for why in held.values())
    assert git(remote, "show", "main:fine.txt") == "fine"
    assert TOKEN not in git(remote, "ls-tree", "-r", "--name-only", "main")
    assert not in_any_object(remote, TOKEN)
    release(ada.base, ["notes.txt"])
    assert set(ada.synced().kept_out) == {f"{TOKEN}.txt"}
    assert TOKEN in git(remote, "show", "main:notes.txt")


def test_a_secret_in_a_name_takes_another_name(ada: Machine) -> None:
    """Editing the memory would change nothing."""
    ada.remember("hello")
    (ada.base / "files" / f"{TOKEN}.md").write_text("hello")
    (why,) = ada.synced().held_back.values()
    assert why.remedy.startswith("give the file another name")


def test_large_file_stays_here(ada: Machine, remote: Path) -> None:
    """What is too large to be looked into for secrets is told, and all else is pushed."""
    ada.remember("hello")
    ada.synced()
    large = b"some words " * 1_600_000 + TOKEN.encode()
    for name, data in (("fine.txt", large[:1_000_000]), ("large.txt", large)):
        (ada.base / name).write_bytes(data)
    commit_by_hand(ada.base, "large", "fine.txt", "large.txt")
    (why,) = ada.synced().held_back.values()
    assert why.kind == "too-large"
    assert "larger than 16 MiB" in why.sentence
    assert git(remote, "ls-tree", "--name-only", "main", "large.txt") == ""
    assert git(remote, "cat-file", "-s", "main:fine.txt") == "1000000"
    assert not in_any_object(remote, TOKEN)


@pytest.mark.slow
def test_machines_go_on_exchanging_while_a_commit_is_held(ada: Machine, bob: Machine) -> None:
    """Edits, deletions and new memories of both sides arrive; the one held stays where it is."""
    shared = ada.remember("shared")
    settle([ada, bob])
    secret = with_secret(ada)
    for number in range(3):
        ada.remember(f"ada {number}")
        bob.remember(f"bob {number}")
        bob.path(shared).write_bytes(bob.path(shared).read_bytes() + b"!")
        settle([ada, bob])
        assert ada.files.items() - bob.files.items() == {(secret.name, secret.read_bytes())}
        assert bob.files.keys() < ada.files.keys()
    bob.path(shared).unlink()
    settle([bob, ada])
    assert shared.file_name not in ada.files
    assert secret.exists()


def test_once_the_secret_is_out_the_memory_travels_and_all_is_usual(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """Without its history; the branch goes on from what the remote has, and the old one is kept."""
    secret = with_secret(ada)
    ada.remember("else")
    ada.synced()
    secret.write_bytes(secret.read_bytes().replace(TOKEN.encode(), b"in the safe"))
    status = ada.synced()
    assert status.kept_out == {}
    assert (status.ahead, status.behind) == (0, 0)
    assert ada.git("rev-parse", "HEAD") == git(remote, "rev-parse", "main")
    assert TOKEN in ada.git("log", "-p", "refs/aiaml/unpushed")
    settle([bob, ada])
    assert bob.files == ada.files
    assert not in_any_object(remote, TOKEN)


def test_a_first_push_leaves_out_the_secret_as_well(ada: Machine, remote: Path) -> None:
    """Also where the remote is empty, and where it is all there is."""
    secret = with_secret(ada)
    assert set(ada.synced().kept_out) == {f"files/{secret.name}"}
    assert not in_any_object(remote, TOKEN)
    memory = ada.remember("else")
    ada.synced()
    assert set(content_of(remote)) == {memory.file_name}


def test_a_round_with_nothing_new_asks_git_nothing_about_blobs(
    ada: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was looked at is remembered: also while something is held."""
    with_secret(ada)
    ada.synced()
    asked: list[object] = []
    monkeypatch.setattr(ada.rounds._repository, "objects", asked.append)
    ada.synced()
    assert asked == []


@pytest.mark.slow
def test_a_push_of_many_memories_is_looked_at_in_pieces(ada: Machine, remote: Path) -> None:
    """More than one piece, and more than have a commit each."""
    names = set()
    (ada.base / "files").mkdir(parents=True)
    for number in range(600):
        name = f"20260101_000000_{number:08x}.md"
        (ada.base / "files" / name).write_text(f"number {number} " + "x" * 40_000)
        names.add(name)
    (ada.base / "files" / "secret.md").write_text(TOKEN)
    unchecked(ada).synced()
    assert set(ada.synced().kept_out) == {"files/secret.md"}
    assert set(content_of(remote)) == names
    assert not in_any_object(remote, TOKEN)


# --- released -------------------------------------------------------------------------------------


def test_a_memory_that_is_released_travels_in_its_later_versions_too(
    ada: Machine, remote: Path
) -> None:
    """Of two that are held only the one that was named, also after a restart."""
    one, other = (ada.remember(f"{number} {TOKEN}") for number in range(2))
    assert len(ada.synced().held_back) == 2
    release(ada.base, [f"files/{one.file_name}"])
    ada.restart()
    assert set(ada.synced().kept_out) == {f"files/{other.file_name}"}
    ada.path(one).write_bytes(ada.path(one).read_bytes() + b"more")
    assert set(ada.synced().kept_out) == {f"files/{other.file_name}"}
    assert content_of(remote)[one.file_name].endswith(b"more")


def test_a_remote_cannot_release_anything(ada: Machine, bob: Machine, remote: Path) -> None:
    """What another machine commits under the same names has no part in it."""
    memory = bob.remember(TOKEN)
    bob.synced()
    for place in ("aiaml/released", ".git-aiaml-released"):
        path = ada.base / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"files/{memory.file_name}\0")
        ada.remember("x")
        ada.synced()
        commit_by_hand(ada.base, "released", place)
    settle([ada, bob])
    assert memory.file_name not in content_of(remote)


# --- kept here ------------------------------------------------------------------------------------


def test_a_memory_that_is_kept_here_is_in_no_commit(ada: Machine, remote: Path) -> None:
    """It is found as usual, and nothing is said to be wrong; undone, it travels."""
    memory, other = ada.remember("private"), ada.remember("else")
    keep_local(ada.base, memory.file_name)
    assert ada.synced().kept_out == {}
    assert set(content_of(remote)) == {other.file_name}
    assert list(survey(ada.settings).kept_local) == [f"files/{memory.file_name}"]
    assert len(ada.bank.think(["private"])) == 1
    assert let_go(ada.base, memory.file_name)
    assert not let_go(ada.base, memory.file_name)
    ada.synced()
    assert set(content_of(remote)) == {memory.file_name, other.file_name}


def test_a_memory_that_is_kept_here_after_its_commit_is_not_pushed(
    ada: Machine, remote: Path
) -> None:
    """Committed while the remote was away, then kept here: all else is pushed."""
    memory = ada.remember("private")
    Machine(ada.base).synced()
    keep_local(ada.base, memory.file_name)
    other = ada.remember("else")
    assert ada.synced().kept_out == {}
    assert set(content_of(remote)) == {other.file_name}
    assert not in_any_object(remote, "private")


def test_a_memory_that_was_pushed_keeps_its_later_versions_here(ada: Machine, bob: Machine) -> None:
    """The version that the others have stays as it is there."""
    memory = ada.remember("public")
    settle([ada, bob])
    keep_local(ada.base, memory.file_name)
    ada.path(memory).write_bytes(ada.path(memory).read_bytes() + b"private")
    ada.remember("else")
    settle([ada, bob])
    assert b"private" in ada.files[memory.file_name]
    assert not any(b"private" in data for data in bob.files.values())
    assert len(bob.files) == 2


@pytest.mark.parametrize("place", [".gitignore", ".git/info/exclude", "files/.gitignore"])
def test_a_line_of_gits_own_that_names_a_memory_is_honoured(
    ada: Machine, remote: Path, place: str
) -> None:
    """With git's own rules: patterns, and exceptions from them."""
    ada.remember("first")
    ada.synced()
    here = [ada.remember(f"private {number}") for number in range(2)]
    there = ada.remember("else")
    lines = f"*_{here[0].id}.md\n*_{here[1].id}.md\n*_{there.id}.md\n!*_{there.id}.md\n"
    (ada.base / place).parent.mkdir(exist_ok=True)
    with (ada.base / place).open("a") as file:
        file.write(lines)
    assert ada.synced().kept_out == {}
    assert not {each.file_name for each in here} & content_of(remote).keys()
    assert there.file_name in content_of(remote)
    told = survey(ada.settings).kept_local[f"files/{here[0].file_name}"]
    assert Path(place).name in told.sentence


@pytest.mark.parametrize("rules", ["hidden", "a link", "neither"])
@pytest.mark.parametrize("place", [".keep-local", ".gitignore", ".git/info/exclude"])
def test_patterns_mean_what_git_says_they_mean(
    ada: Machine, remote: Path, place: str, rules: str
) -> None:
    """Also where a line of an earlier version hides all memories, or `files` leads elsewhere."""
    if rules == "a link":
        if sys.platform == "win32":
            pytest.skip("links take a privilege on Windows")
        (ada.base.parent / "vault").mkdir()
        ada.base.mkdir()
        (ada.base / "files").symlink_to(ada.base.parent / "vault")
    ada.remember("first")
    ada.synced()
    if rules == "hidden":
        exclude = ada.base / ".git" / "info" / "exclude"
        exclude.parent.mkdir()
        exclude.write_bytes(HIDDEN)
        ada.restart()
        ada.remember("second")
        ada.synced()
    before = set(content_of(remote))
    names = ["a-1.md", "a-2.md", "b-x.md", "b-1.md", "c.md", "e.md"]
    for name in names:
        (ada.base / "files" / name).write_text(name)
    (ada.base / place).parent.mkdir(exist_ok=True)
    with (ada.base / place).open("a") as file:
        file.write("a-*.md\n!a-2.md\n/**/b-[!0-9].md\n/c.md\ne.md/\n")
    assert ada.synced().kept_out == {}
    assert set(content_of(remote)) - before == {"a-2.md", "b-1.md", "c.md", "e.md"}


def test_deleting_git_does_not_let_go_what_is_kept_here(ada: Machine, remote: Path) -> None:
    """As docs/sync.md has it for a new history: the memory stays out of the new one, too."""
    memory = ada.remember("private")
    keep_local(ada.base, memory.file_name)
    ada.synced()
    subprocess.run(["rm", "-rf", str(ada.base / ".git")], check=True)
    ada.restart()
    ada.remember("else")
    ada.synced()
    assert memory.file_name not in content_of(remote)


def test_odd_names_are_named_and_not_patterns(ada: Machine, remote: Path) -> None:
    """A star, a bracket, an exclamation mark, a space at the end of the stem."""
    names = ["a*.md", "[b].md", "!c.md", "d .md", "#e.md"]
    (ada.base / "files").mkdir(parents=True)
    for name in [*names, "ab.md", "b.md"]:
        (ada.base / "files" / name).write_text(name)
    for name in names:
        keep_local(ada.base, name)
    ada.synced()
    assert set(content_of(remote)) == {"ab.md", "b.md"}
