"""The command line as a person meets it: help, errors, settings, and what commands answer."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from aiaml_server import __version__
from aiaml_server.bank import MemoryBank
from aiaml_server.cli import app
from aiaml_server.errors import InvalidSetting
from aiaml_server.settings import Settings
from aiaml_server.storage.activity import record_activity
from client import SERVER, Client
from command_line import Result, at, call, run
from machine import bare

SECRET = "AKIA" + "QX7MZ2KHT4WPBN5J"
REMOVED = (
    "completion", "dirs", "help", "history", "inbox", "keep-local", "seen", "serve", "tidy",
    "toolsets", "topics", "undo", "uses", "version", "where",
)  # fmt: skip


posix_only = pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell runs it")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment with an empty memory directory and no git."""
    return at(tmp_path / "m")


def stored(env: dict[str, str], text: str, *words: str) -> str:
    """Store a memory; return its id."""
    said = call(env, "remember", text, *words).stdout
    found = re.match(r"Stored (\w{8}) ", said)
    assert found, said
    return found[1]


def undo(env: dict[str, str], done: Result) -> Result:
    """Run the command that a command names as its reverse."""
    found = re.search(r"Undo: aiaml (.+)", done.stdout)
    assert done.code == 0 and found, done
    return call(env, *found[1].split())


# --- help, errors, settings -----------------------------------------------------------------------


def test_help_fits_a_screen_and_names_everything(env: dict[str, str]) -> None:
    """Commands, toolsets, settings and exit codes, in 40 lines of 80 columns."""
    done = call({**env, "COLUMNS": "80"}, "--help")
    assert (done.code, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) <= 40
    words = set(re.findall(r"[\w-]+", done.stdout))
    toolsets = {"sessions", "compartments", "citations", "semantic"}
    assert words >= {*app.COMMANDS, *toolsets, "AIAML_MEMORY_DIR", "AIAML_TOOLSETS", "130"}


def test_wrong_words_are_named(env: dict[str, str]) -> None:
    """A mistyped command with the one that is meant; removed ones are unknown. All end with 2."""
    done = call(env, "remmeber")
    assert done == (2, "", "aiaml: No such command 'remmeber'. Did you mean 'remember'?\n")
    for name in REMOVED:
        done = call(env, name)
        assert (done.code, done.stdout) == (2, ""), name
        assert done.stderr.startswith(f"aiaml: No such command '{name}'.")
    assert call(env, "citations", "recite") == (2, "", "aiaml: No such command 'recite'.\n")
    assert call(env, "citations", "verify", "--changed").code == 2
    done = call(env, "compartments", "clear", "--session", "x")
    assert done.stderr.endswith("Choose from: session, plan\n")


def test_the_version_is_that_of_the_package(env: dict[str, str]) -> None:
    """One number, in one place."""
    assert call(env, "--version").stdout == f"aiaml-server {__version__}\n"


BAD_SETTINGS = {
    ("AIAML_MEMORY_DIR", "memory"): "must be an absolute path",
    ("AIAML_MEMORY_DIR", "${HOME}/memory"): "must be an absolute path",
    ("AIAML_MEMORY_DIR", "~no_such_person/memory"): "there is no such home directory",
    ("AIAML_MEMORY_DIR", "/a\0b"): "must be an absolute path",
    ("AIAML_GITHUB_REMOTE", "https://***@a.test/m"): "put the password where *** stands",
    ("AIAML_GITHUB_REMOTE", "--upload-pack=x"): "must be a git URL, HOST:PATH or an absolute path",
    ("AIAML_GITHUB_REMOTE", "memories.git"): "must be a git URL, HOST:PATH or an absolute path",
    ("AIAML_GITHUB_REMOTE", "../memories.git"): "must be a git URL, HOST:PATH or an absolute path",
    ("AIAML_LOG_LEVEL", "verbose"): "must be one of DEBUG, INFO, WARNING, ERROR, CRITICAL",
}


def test_settings() -> None:
    """They have defaults, homes are expanded, and a bad value is named with what is right."""
    for environ in ({}, {"AIAML_MEMORY_DIR": "", "AIAML_LOG_LEVEL": ""}):
        assert Settings.from_environ(environ) == Settings(Path.home() / ".aiaml")
    for remote in ("git@a.test:m", "https://a.test/m", "a.test:m", "/m", r"\\a\m", "C:/m"):
        assert Settings.from_environ({"AIAML_GITHUB_REMOTE": remote}).remote == remote
    settings = Settings.from_environ({"AIAML_MEMORY_DIR": "~/m", "AIAML_LOG_LEVEL": "debug"})
    assert settings == Settings(Path.home() / "m", log_level="DEBUG")
    for (name, value), problem in BAD_SETTINGS.items():
        with pytest.raises(InvalidSetting, match=re.escape(problem)):
            Settings.from_environ({name: value})


def test_a_bad_setting_ends_a_server_with_a_sentence(tmp_path: Path) -> None:
    """One line, exit code 2, and nothing is made."""
    done = run(HOME=str(tmp_path), AIAML_MEMORY_DIR="memory")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("aiaml-server: AIAML_MEMORY_DIR is 'memory'")
    assert list(tmp_path.iterdir()) == []


# --- what commands do -----------------------------------------------------------------------------


def test_a_memory_without_topics_gets_its_rarest_words(env: dict[str, str]) -> None:
    """Those that the fewest memories have, never common words; one word is one topic."""
    for number in range(3):
        stored(env, f"The rehearsal of the choir, number {number}.", "-t", "choir")
    stored(env, "The rehearsal is on Wednesdays in Ostuni.")
    stored(env, "hello")
    topics = [each["topics"] for each in json.loads(call(env, "list", "--json").stdout)]
    assert topics[:2] == [["hello"], ["wednesdays", "ostuni"]]


@pytest.mark.parametrize(
    "text", ["the of and", "???", f"My key is {SECRET}", "PIN of my card: 4711"]
)
def test_no_topic_is_made_of_common_words_or_secrets(text: str, env: dict[str, str]) -> None:
    """A topic must be named then, and nothing is stored before."""
    done = call(env, "remember", text)
    assert (done.code, done.stdout) == (2, "") and "--topic WORD" in done.stderr
    assert call(env, "list").stdout == ""
    stored(env, text, "-t", "mine")


def test_a_text_without_quotes_is_no_memory(env: dict[str, str]) -> None:
    """The error says how to type it."""
    done = call(env, "remember", "hi", "there", "Max")
    assert (done.code, done.stdout) == (2, "")
    assert 'aiaml remember "hi there Max"' in done.stderr and "quotes" in done.stderr


def test_every_change_names_the_command_that_reverses_it(tmp_path: Path) -> None:
    """And that command does so."""
    env = at(tmp_path / "m", AIAML_ENABLE_SYNC="true")
    remembered = call(env, "remember", "Max weighs 12 kg.", "-t", "dog")
    (file,) = (tmp_path / "m" / "files").glob("*.md")
    before = file.read_bytes()
    forgotten = undo(env, remembered._replace(stdout=f"{remembered.stdout.rstrip()} --yes"))
    assert not file.exists()
    undo(env, forgotten)
    assert file.read_bytes() == before
    before += b"Typed by hand, and not committed yet.\n"
    file.write_bytes(before)
    (tmp_path / "editor").write_text('#!/bin/sh\nsed -i "s/12 kg/13 kg/" "$1"\n')
    (tmp_path / "editor").chmod(0o700)
    edited = call({**env, "EDITOR": str(tmp_path / "editor")}, "edit", file.stem[-8:])
    assert b"13 kg" in file.read_bytes()
    undo(env, edited._replace(stdout=f"{edited.stdout.rstrip()} --yes"))
    assert file.read_bytes() == before


def test_what_was_replaced_and_what_was_forgotten_are_undone_apart(tmp_path: Path) -> None:
    """`restore` of both prints a command for each."""
    env = at(tmp_path / "m", AIAML_ENABLE_SYNC="true")
    ids = [stored(env, text, "-t", "x") for text in ("one", "two")]
    files = {path.stem[-8:]: path for path in (tmp_path / "m" / "files").glob("*.md")}
    files[ids[0]].write_text(files[ids[0]].read_text().replace("one", "three"))
    call(env, "forget", ids[1], "--yes")
    done = call(env, "restore", *ids, "--yes")
    assert f"Undo: aiaml restore {ids[0]}\nUndo: aiaml forget {ids[1]}\n" in done.stdout


@posix_only
@pytest.mark.parametrize("reason", ["untrusted", "off", "secret"])
def test_no_undo_is_promised_that_would_be_refused(reason: str, tmp_path: Path) -> None:
    """Where git did not save the earlier text. `forget` says so before it forgets, once."""
    base = tmp_path / "m"
    env = at(base, AIAML_ENABLE_SYNC="true")
    memory_id = stored(env, f"key {SECRET}" if reason == "secret" else "one", "-t", "x")
    if reason == "untrusted":
        env = at(base, AIAML_ENABLE_SYNC="true", XDG_STATE_HOME=str(tmp_path / "other"))
    elif reason == "off":
        env = at(base)
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho more >> "$1"\n')
    editor.chmod(0o700)
    for words in (["edit", memory_id], ["forget", memory_id, "--yes"]):
        done = call({**env, "EDITOR": str(editor)}, *words)
        assert done.code == 0 and "Undo:" not in done.stdout, done
    assert done.stdout.startswith("There is no undo for 1 memory"), done
    assert done.stdout.endswith("Forgot 1 memory.\n")
    assert done.stderr.count("Not committed") == (reason == "untrusted"), done


@posix_only
@pytest.mark.parametrize("editor", ["false", "no-such-editor -x", "'"])
def test_an_editor_that_fails_is_named(editor: str, env: dict[str, str]) -> None:
    """With what to do about it, and without the system's words."""
    memory_id = stored(env, "one", "-t", "x")
    done = call({**env, "EDITOR": editor, "VISUAL": ""}, "edit", memory_id)
    assert (done.code, done.stdout) == (1, "")
    assert "EDITOR=nano" in done.stderr and "Errno" not in done.stderr


def test_what_a_filter_forgot_comes_back_as_a_whole(tmp_path: Path) -> None:
    """By the one command that is printed, byte for byte."""
    env = at(tmp_path / "m", AIAML_ENABLE_SYNC="true")
    for number in range(10):
        stored(env, f"Number {number}", "-t", "odd" if number % 2 else "even")
    before = {path.name: path.read_bytes() for path in (tmp_path / "m" / "files").glob("*.md")}
    stored(env, "later", "-t", "even")
    done = call(env, "forget", "before:2999-01-01", "--yes")
    assert "Forgot 11 memories." in done.stdout
    undo(env, done)
    after = {path.name: path.read_bytes() for path in (tmp_path / "m" / "files").glob("*.md")}
    assert after.items() > before.items()


def test_reading_commands_have_the_same_fields_in_json(env: dict[str, str]) -> None:
    """Those of `recall` and the file; a search adds how it matched."""
    memory_id = stored(env, "Max is allergic to chicken.", "-t", "dog")
    (listed,) = json.loads(call(env, "list", "--json").stdout)
    assert listed.keys() == {"id", "timestamp", "agent", "user", "topics", "content", "file"}
    for typed in (memory_id[:4], memory_id.upper()):
        assert json.loads(call(env, "show", typed, "--json").stdout) == [listed]
    for words in (["allergic"], ["allergic", "--as-agent"]):
        (found,) = json.loads(call(env, "search", *words, "--json").stdout)
        assert found.items() >= listed.items()
        assert found["matching_keywords"] == ["allergic"]
    assert found["relevance_score"] == 2


def test_empty_answers_are_no_failure(env: dict[str, str]) -> None:
    """Exit code 0, with a word on stderr, or an empty list as JSON."""
    for words in (["list"], ["search", "x"], ["stats"], ["log"], ["forget", "topic:x", "--yes"]):
        done = call(env, *words)
        assert (done.code, done.stdout) == (0, ""), words
        assert done.stderr
    assert json.loads(call(env, "list", "--json").stdout) == []


def test_stats_fold_the_case_of_names(env: dict[str, str]) -> None:
    """The most frequent spelling stands for all; a filter counts only what it matches."""
    for topic in ("dog", "dog", "Dog", "cat"):
        stored(env, f"about a {topic}", "-t", topic, "-a", "Claude" if topic == "Dog" else "human")
    counts = json.loads(call(env, "stats", "--json").stdout)
    assert (counts["memories"], counts["topics"]) == (4, {"dog": 3, "cat": 1})
    chosen = json.loads(call(env, "stats", "--agent", "claude", "--json").stdout)
    assert (chosen["memories"], chosen["agents"]) == (1, {"Claude": 1})


def test_show_names_similar_memories_on_a_terminal(env: dict[str, str]) -> None:
    """Each with the command that forgets it; not in a pipe."""
    first = stored(env, "Max the dog is allergic to chicken.", "-t", "dog")
    second = stored(env, "Max the dog is allergic to chicken and beef.", "-t", "dog")
    stored(env, "The billing service moves to PostgreSQL.", "-t", "work")
    shown = call({**env, "FORCE_TTY": "1"}, "show", first).stdout
    assert f"aiaml forget {second}" in shown
    assert "PostgreSQL" not in shown
    assert "aiaml forget" not in call(env, "show", first).stdout


def test_a_secret_that_is_held_back_is_named_once(tmp_path: Path) -> None:
    """With its own memory, and never with later ones."""
    env = at(tmp_path / "m", AIAML_ENABLE_SYNC="true")
    done = run("remember", f"The key is {SECRET}", "-t", "key", **env)
    memory_id = done.stdout.split()[1]
    assert "is not committed" in done.stderr
    assert run("remember", "Nothing secret", "-t", "x", **env).stderr == ""
    assert f"--release {memory_id}" in call(env, "status").stdout


def test_deletions_that_wait_are_named_first_and_their_confirmation_can_be_undone(
    tmp_path: Path,
) -> None:
    """`aiaml sync --forget` prints the command that restores what it deleted."""
    env = at(tmp_path / "m", AIAML_ENABLE_SYNC="true")
    with closing(MemoryBank(Settings(tmp_path / "m"), lasting=False)) as bank:
        for number in range(24):
            bank.remember("me", "me", ["x"], f"memory {number}")
    assert call(env, "sync").code == 0
    paths = sorted((tmp_path / "m" / "files").glob("*.md"))
    for path in paths[1:]:
        path.unlink()
    waiting = call(env, "sync")
    assert (waiting.code, waiting.stdout) == (1, "")
    assert waiting.stderr.startswith("Sync waits: 23 memory files vanished at once.")
    done = call(env, "sync", "--forget")
    assert undo(env, done).stdout.splitlines()[-2] == "Restored 23 memories."
    assert sorted((tmp_path / "m" / "files").glob("*.md")) == paths


def test_status_says_where_memories_are_and_who_asked(tmp_path: Path) -> None:
    """The directory, how many, the index, and each client with its last question."""
    env = at(tmp_path / "m")
    stored(env, "something", "-t", "x")
    record_activity(tmp_path / "m", "cursor", "asked")
    lines = call(env, "status").stdout
    assert f"1 memory in {tmp_path / 'm'}" in lines
    assert "Index: " in lines
    assert "cursor: last asked a moment ago, last stored never" in lines
    said = json.loads(call(env, "status", "--json").stdout)
    assert (said["memories"], said["sync"], said["conflicts"]) == (1, False, [])
    assert said["clients"][0]["client"] == "cursor"


def test_status_is_well_before_the_first_memory(tmp_path: Path) -> None:
    """Nothing is made, and nothing fails."""
    done = call(at(tmp_path / "m", AIAML_ENABLE_SYNC="true"), "status")
    assert (done.code, "fails" in done.stdout) == (0, False), done
    assert not (tmp_path / "m").exists()


def test_failed_sync_is_reported_where_the_status_cannot_be_written(tmp_path: Path) -> None:
    """As on a full disk."""
    env = at(tmp_path / "m", AIAML_ENABLE_SYNC="true", AIAML_GITHUB_REMOTE=str(tmp_path / "none"))
    (tmp_path / "m" / ".sync-status.json").mkdir(parents=True)
    done = call(env, "sync")
    assert (done.code, "there is no repository" in done.stderr) == (1, True), done


def test_the_password_of_the_remote_is_printed_nowhere(tmp_path: Path) -> None:
    """Nor stored with the status; `sync --setup` names the remote of the settings without it."""
    remote = "http://ada:sesame@127.0.0.1:9/memories"
    env = at(tmp_path / "m", AIAML_ENABLE_SYNC="true", AIAML_GITHUB_REMOTE=remote)
    new = bare(tmp_path / "new")
    setups = [["sync", "--setup", str(place)] for place in (tmp_path / "none", new)]
    for words in (["sync"], ["status"], ["status", "--json"], *setups):
        done = call(env, *words)
        assert "127.0.0.1:9" in done.stdout + done.stderr, words
        assert "sesame" not in done.stdout + done.stderr, words
    assert "sesame" not in (tmp_path / "m" / ".sync-status.json").read_text()


def test_log_and_restore_use_revisions(tmp_path: Path) -> None:
    """`restore ID --at REVISION` gives the version that `log ID` names so."""
    env = at(tmp_path / "m", AIAML_ENABLE_SYNC="true")
    memory_id = stored(env, "one", "-t", "x")
    (file,) = (tmp_path / "m" / "files").glob("*.md")
    texts = [file.read_text()]
    for word in ("two", "three"):
        file.write_text(texts[0].replace("one", word))
        texts.append(file.read_text())
        assert call(env, "sync").code == 0
    versions = json.loads(call(env, "log", memory_id, "--json").stdout)
    assert [each["content"] for each in versions] == ["three", "two", "one"]
    (listed,) = json.loads(call(env, "list", "--json").stdout)
    assert versions[0].items() >= listed.items()
    assert [each["action"] for each in versions] == ["edited", "edited", "added"]
    revision = versions[-1]["revision"][:8]
    assert call(env, "restore", memory_id, "--at", revision, "--yes").code == 0
    assert file.read_text() == texts[0]
    assert call(env, "restore", memory_id, "--at", "nowhere", "--yes").code == 1


def test_another_directory_is_used_without_the_remote_of_the_environment(tmp_path: Path) -> None:
    """`--dir` sets the directory."""
    env = at(tmp_path / "m", AIAML_GITHUB_REMOTE=str(tmp_path / "remote.git"))
    assert call(env, "--dir", str(tmp_path / "other"), "remember", "x", "-t", "x").code == 0
    assert len(list((tmp_path / "other" / "files").glob("*.md"))) == 1
    assert not (tmp_path / "m").exists()
    other = call({**env, "AIAML_ENABLE_SYNC": "true"}, "--dir", str(tmp_path / "other"), "status")
    assert "There is no remote" in other.stdout


def test_the_tab_key_completes_ids(env: dict[str, str]) -> None:
    """Those that need no quotes in any shell."""
    memory_id = stored(env, "something", "-t", "x")
    words = {"_AIAML_COMPLETE": "bash_complete", "COMP_WORDS": "aiaml show ", "COMP_CWORD": "2"}
    assert call({**env, **words}).stdout == f"plain,{memory_id}\n"


def test_times_at_the_edges_of_the_calendar_are_shown(tmp_path: Path) -> None:
    """A file that names the first or the last day of all keeps no other from being shown."""
    files = tmp_path / "m" / "files"
    files.mkdir(parents=True)
    days = ("0001-01-01T00:00:00", "9999-12-31T23:59:59")
    times = [f"{day}{offset}" for day in days for offset in ("Z", "+10:00", "-10:00")]
    for number, time in enumerate(times):
        head = f"id: {number:08x}\ntimestamp: {time}\nagent: a\nuser: b\ntopics: [c]"
        (files / f"{number}.md").write_text(f"---\n{head}\n---\n\ntext\n")
    ids = [f"{number:08x}" for number in range(len(times))]
    for words in (["list"], ["search", "text"], ["stats"], ["show", *ids], ["export", "--to", "-"]):
        done = call(at(tmp_path / "m", FORCE_TTY="1"), *words)
        assert (done.code, done.stderr) == (0, ""), words
    for zone in ("XXX-5", "XXX+5"):
        listed = run("list", **at(tmp_path / "m", FORCE_TTY="1", TZ=zone))
        assert (listed.returncode, listed.stderr) == (0, ""), zone


@pytest.mark.slow
def test_the_demo_shows_the_whole_way() -> None:
    """Three calls and the file on one screen, and how to connect."""
    done = run("demo")
    assert (done.returncode, done.stderr) == (0, "")
    for shown in ("remember(", "think(", "recall(", "Memory stored successfully", "topics: [food"):
        assert shown in done.stdout
    program = str(Path(sys.executable).with_name("aiaml-server"))
    assert f"{program} install --all" in done.stdout
    lines = done.stdout.replace(program, "/usr/local/bin/aiaml-server").splitlines()
    assert sum(-(-len(line) // 72) or 1 for line in lines) <= 40


# --- processes ------------------------------------------------------------------------------------


def shell(line: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a line of the shell in which "$@" is the command."""
    words = ["sh", "-c", line, "sh", *SERVER]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120, env=env)


@posix_only
def test_closed_and_full_outputs_end_in_a_sentence(env: dict[str, str]) -> None:
    """Nothing is printed where nobody listens; a full disk is an error, and nothing is a crash."""
    assert shell('"$@" remember "keep this" -t x', env).returncode == 0
    for command in ("list", "list --json", "export --to -"):
        done = shell(f'"$@" {command} <&- >&- 2>&-', env)
        assert done.returncode == 0, command
        left = shell(f'{{ "$@" {command}; echo $? >&2; }} | true', env)
        assert left.stderr in ("0\n", "1\n"), command
        if Path("/dev/full").exists():
            full = shell(f'"$@" {command} > /dev/full', env)
            said = "aiaml: cannot read or write: no space left on device\n"
            assert (full.returncode, full.stderr) == (1, said)
    for command in ("remember -t x", "forget topic:x"):
        done = shell(f'"$@" {command} <&-', env)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr


@posix_only
@pytest.mark.parametrize("memory_id", ["my id", "-all"])
def test_what_brings_a_memory_back_can_be_typed(memory_id: str, tmp_path: Path) -> None:
    """Ids by other hands have spaces and dashes, and the command that is named still works."""
    env = at(tmp_path / "m", AIAML_ENABLE_SYNC="true")
    file = tmp_path / "m" / "files" / "a.md"
    file.parent.mkdir(parents=True)
    head = f"id: {memory_id}\ntimestamp: 2026-01-02\nagent: a\nuser: b\ntopics: [c]"
    file.write_text(f"---\n{head}\n---\n\ntext\n")
    done = call(env, "forget", "--yes", "--", memory_id)
    command = done.stdout.partition("Undo: aiaml ")[2]
    assert not file.exists()
    assert shell(f'"$@" {command}', env).returncode == 0
    assert file.exists()


@posix_only
def test_ctrl_c_while_starting_is_quiet(tmp_path: Path) -> None:
    """The tenth of a second in which modules are imported can be ended as well."""
    kill = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nfor _ in range(10**8): pass\n"
    (tmp_path / "click.py").write_text(kill)
    done = run("list", **at(tmp_path / "m", PYTHONPATH=str(tmp_path)))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@posix_only
def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    """Under nohup the end of the terminal is not the end of the server."""
    with Client(tmp_path, command=["nohup", *SERVER]) as client:
        client.process.send_signal(signal.SIGHUP)
        assert client.remember("still here")["memory_id"]


@posix_only
def test_a_server_on_a_terminal_says_what_it_waits_for(tmp_path: Path) -> None:
    """Three lines on stderr; it ends when the terminal is closed."""
    import pty

    controller, terminal = pty.openpty()
    with subprocess.Popen(
        SERVER,
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=at(tmp_path / "m"),
        start_new_session=True,
    ) as server:
        os.close(terminal)
        assert server.stderr and server.stdout
        said = [server.stderr.readline() for _ in range(3)]
        assert b"waiting for an MCP client" in said[0]
        os.close(controller)
        assert server.wait(60) == 0
        assert (server.stdout.read(), server.stderr.read()) == (b"", b"")
