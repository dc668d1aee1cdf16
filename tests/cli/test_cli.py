"""The command line and the settings, as a person meets them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from aiaml_server import InvalidSetting, Settings, __version__
from aiaml_server.cli import app
from client import SERVER, Client
from printed import completed


def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the command with an empty input."""
    return completed([*SERVER, *words], env={**os.environ, **env})


def test_help_names_every_variable_and_exit_code() -> None:
    """What can be set is said where a person looks first."""
    done = run("--help")
    assert done.returncode == 0
    for word in ("demo", "AIAML_MEMORY_DIR", "AIAML_LOG_LEVEL", "130"):
        assert word in done.stdout


def test_version_is_the_package_s() -> None:
    """One number, in one place."""
    assert run("--version").stdout == f"aiaml-server {__version__}\n"


def test_an_unknown_word_is_named() -> None:
    """Usage errors go to stderr and exit with 2."""
    done = run("serv")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("aiaml: No such command 'serv'.")


REMOVED = (
    "completion", "dirs", "help", "inbox", "keep-local", "seen", "tidy", "toolsets", "topics",
    "undo", "uses", "version", "where",
)  # fmt: skip


@pytest.mark.parametrize("name", REMOVED)
def test_a_removed_command_is_no_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It gets click's own sentence, and nothing else is done."""
    assert app.run([name], "aiaml") == 2
    said = capsys.readouterr()
    assert (said.out, said.err[:24]) == ("", "aiaml: No such command '")


def test_the_list_of_verbs_says_what_each_says_of_itself() -> None:
    """The list is written down, so that `--help` imports none of them."""
    context = click.Context(app.aiaml)
    for name, (_, summary) in app.VERBS.items():
        command = app.aiaml.get_command(context, name)
        assert command and command.get_short_help_str(200) == summary


BAD = {
    "AIAML_MEMORY_DIR": {
        "memory": "must be an absolute path",
        "./memory": "must be an absolute path",
        "${HOME}/memory": "must be an absolute path",
        "~no_such_person/memory": "there is no such home directory",
    },
    "AIAML_LOG_LEVEL": {
        "verbose": "must be one of DEBUG, INFO, WARNING, ERROR, CRITICAL",
        "10": "must be one of",
    },
}


@pytest.mark.gate_cases(2)
@pytest.mark.parametrize(
    ("variable", "value"), [(name, value) for name in BAD for value in BAD[name]]
)
def test_a_bad_setting_is_a_sentence(variable: str, value: str, tmp_path: Path) -> None:
    """It names the variable, the value and what would be right; nothing is created."""
    done = run(**{"HOME": str(tmp_path), variable: value})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"aiaml-server: {variable} is {value!r}")
    assert BAD[variable][value] in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_settings_have_defaults() -> None:
    """Nothing must be set; an empty variable counts as not set."""
    for environ in ({}, {"AIAML_MEMORY_DIR": "", "AIAML_LOG_LEVEL": ""}):
        assert Settings.from_environ(environ) == Settings(Path.home() / ".aiaml")


def test_settings_are_read() -> None:
    """Home directories are expanded, levels may be written in any case."""
    settings = Settings.from_environ({"AIAML_MEMORY_DIR": "~/m", "AIAML_LOG_LEVEL": "debug"})
    assert settings == Settings(Path.home() / "m", log_level="DEBUG")


def test_a_nul_in_a_path_is_refused() -> None:
    """No system takes it."""
    with pytest.raises(InvalidSetting):
        Settings.from_environ({"AIAML_MEMORY_DIR": "/a\0b"})


@pytest.mark.slow
def test_the_demo_shows_the_whole_way() -> None:
    """Three calls, the file, and how to connect; the exit code is 0 and nothing stays behind."""
    done = run("demo")
    assert (done.returncode, done.stderr) == (0, "")
    for shown in ("remember(", "think(", "recall(", "Memory stored successfully", "topics: [food"):
        assert shown in done.stdout
    assert f"{Path(sys.executable).with_name('aiaml-server')} install --all" in done.stdout


def test_the_demo_fits_on_a_screen() -> None:
    """Of 80 columns and 40 lines, where the program's directory is none of the longest."""
    program = str(Path(sys.executable).with_name("aiaml-server"))
    lines = run("demo").stdout.replace(program, "/usr/local/bin/aiaml-server").splitlines()
    assert sum(-(-len(line) // 72) or 1 for line in lines) <= 40


@pytest.mark.skipif(os.name != "posix", reason="Windows tells it otherwise")
def test_a_reader_of_the_demo_may_leave() -> None:
    """As behind `| head -1`: that is no failure of the server's."""
    with subprocess.Popen(
        [*SERVER, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout and running.stderr and running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
        running.wait(60)


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such signals")
@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.1])
def test_ctrl_c_ends_the_demo_quietly(seconds: float) -> None:
    """At whatever moment: exit code 130 (or 0, if it was done), no traceback.

    While the interpreter itself ends, the signal ends the process, which shells call 130 as well.
    """
    command = [*SERVER, "demo"]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout and running.stdout.readline()
        time.sleep(seconds)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert running.returncode in (130, 0, -signal.SIGINT)
    assert b"Traceback" not in said


@pytest.mark.skipif(os.name != "posix", reason="Windows has no nohup")
def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    """Under nohup the end of the terminal is not the end of the server."""
    with Client(tmp_path, command=["nohup", *SERVER]) as client:
        client.process.send_signal(signal.SIGHUP)
        assert client.remember("still here")["memory_id"]


@pytest.mark.skipif(os.name != "posix", reason="a pseudo-terminal is POSIX")
def test_on_a_terminal_it_says_what_it_waits_for(tmp_path: Path) -> None:
    """Two or three lines on stderr, and Ctrl-C ends it."""
    import pty

    controller, terminal = pty.openpty()
    with subprocess.Popen(
        SERVER,
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "AIAML_MEMORY_DIR": str(tmp_path), "AIAML_ENABLE_SYNC": "false"},
        start_new_session=True,
    ) as server:
        os.close(terminal)
        assert server.stderr and server.stdout
        said = [server.stderr.readline() for _ in range(3)]
        assert b"waiting for an MCP client" in said[0]
        assert b"aiaml-server demo" in said[1]
        os.close(controller)  # the terminal is closed
        assert server.wait(60) == 0
        assert (server.stdout.read(), server.stderr.read()) == (b"", b"")


def at(base: Path, **env: str) -> dict[str, str]:
    """Return an environment with memories of its own, and no git."""
    home = {name: str(base.parent) for name in ("HOME", "USERPROFILE")}
    own = {"AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "false"}
    return {**os.environ, **home, **own, **env}


def shell(line: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a line of the shell in which "$@" is the command."""
    return subprocess.run(
        ["sh", "-c", line, "sh", *SERVER],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=env,
    )


def left(words: list[str], env: dict[str, str]) -> tuple[int, str]:
    """Run the command with an output whose reader is gone; return its exit code and stderr."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*SERVER, *words],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=120,
            env=env,
        )
    finally:
        os.close(writer)
    return done.returncode, done.stderr


@pytest.mark.gate_cases(2)
@pytest.mark.skipif(sys.platform == "win32", reason="a Unix shell closes the streams")
@pytest.mark.parametrize("verb", ["list", "list --json", "export --to -", "--help"])
def test_closed_and_full_outputs_end_in_a_sentence(verb: str, tmp_path: Path) -> None:
    """Nothing is printed where nobody listens; a pipe that closes is 1, and so is a refusal."""
    env = at(tmp_path / "m")
    assert shell('"$@" remember "keep this" -t x', env).returncode == 0
    for closed in (">&-", "2>&-", "<&-", "<&- >&- 2>&-"):
        done = shell(f'"$@" {verb} {closed}', env)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), closed
    assert left(verb.split(), env) == (1, "")
    if Path("/dev/full").exists():
        full = shell(f'"$@" {verb} > /dev/full', env)
        said = "aiaml: cannot use standard input or output: the disk is full\n"
        assert (full.returncode, full.stderr) == (1, said)


@pytest.mark.skipif(sys.platform == "win32", reason="a Unix shell closes the streams")
def test_a_closed_input_is_an_empty_one(tmp_path: Path) -> None:
    """What would be read or asked is answered by a sentence."""
    env = at(tmp_path / "m")
    assert shell('"$@" remember "keep this" -t x', env).returncode == 0
    memory_id = shell('"$@" list', env).stdout[:8]
    for verb in ("remember -t x", f"forget {memory_id}"):
        done = shell(f'"$@" {verb} <&-', env)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert shell('"$@" list', env).stdout[:8] == memory_id


@pytest.mark.skipif(sys.platform == "win32", reason="Windows deletes no directory that is in use")
def test_a_deleted_working_directory_is_named(tmp_path: Path) -> None:
    """It was standard input that was blamed."""
    (tmp_path / "gone").mkdir()
    there = f'cd {tmp_path / "gone"} && rmdir ../gone && "$@" citations list'
    done = shell(there, at(tmp_path / "m"))
    said = "aiaml: cannot use the working directory: no such file or directory\n"
    assert (done.returncode, done.stderr) == (1, said)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows knows no limit for a file's size")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_output_cut_short_is_no_success(unbuffered: str, tmp_path: Path) -> None:
    """An export that a disk took only part of ends with 3, however Python buffers."""
    env = at(tmp_path / "m", PYTHONUNBUFFERED=unbuffered)
    text = "word " * 40_000
    assert shell(f'"$@" remember "{text[:100_000]}" -t x', env).returncode == 0
    cut = shell(f'ulimit -f 20; "$@" export --to - > {tmp_path / "out.jsonl"}', env)
    assert (cut.returncode, "Traceback" in cut.stderr) == (1, False), cut.stderr
    assert "cannot use standard input or output" in cut.stderr


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["UTC", "AAA+11", "BBB-11"])
def test_times_at_the_calendar_s_edges_are_shown(zone: str, tmp_path: Path) -> None:
    """A file that names the first or the last day of all keeps no other from being shown."""
    days = ("0001-01-01T00:00:00", "9999-12-31T23:59:59")
    base = tmp_path / "m"
    (base / "files").mkdir(parents=True)
    (tmp_path / "notes").mkdir()
    times = [f"{day}{offset}" for day in days for offset in ("Z", "+10:00", "-10:00")]
    for number, time_ in enumerate(times):
        head = f"id: {number:08x}\ntimestamp: {time_}\nagent: a\nuser: b\ntopics: [c]"
        (base / "files" / f"{number}.md").write_text(f"---\n{head}\n---\n\ntext\n")
        note = f"---\ncreated: {time_}\n---\n\nnote {number}\n"
        (tmp_path / "notes" / f"{number}.md").write_text(note)
    env = at(base, TZ=zone)
    ids = " ".join(f"{number:08x}" for number in range(len(times)))
    lines = tmp_path / "memories.jsonl"
    for verb in (
        *("list", "search text", "stats", f"show {ids}", f"export --to {lines}"),
        *("export --to - --format book", "export --to - --format site"),
        f"import {tmp_path / 'notes'} --yes",
    ):
        assert "Traceback" not in (done := run(*verb.split(), **env)).stderr, verb
        assert done.returncode == 0, verb
    other = at(tmp_path / "other", TZ=zone)
    assert "Added 6 memories." in run("import", str(lines), "--yes", **other).stdout
    assert len(list((tmp_path / "other" / "files").glob("????????_??????_????????.md"))) == 6


@pytest.mark.slow
def test_the_narrowest_terminal_has_room(tmp_path: Path) -> None:
    """However narrow the terminal says it is, each memory has its line."""
    env = at(tmp_path / "m")
    for topics in (["a"], ["漢字漢字漢字", "kitchen", "vegetarian", "restaurant"]):
        words = [word for topic in topics for word in ("-t", topic)]
        assert run("remember", "some text", *words, **env).returncode == 0
    for columns in ("1", "48", "50", "100000"):
        for verb in ("list", "search some", "stats"):
            done = run(*verb.split(), **env, COLUMNS=columns)
            assert (done.returncode, done.stderr) == (0, ""), (columns, verb)
        assert run("list", **env, COLUMNS=columns).stdout.count("some text") == 2


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps the home elsewhere as well")
def test_a_missing_home_is_a_sentence(tmp_path: Path) -> None:
    """Where nothing says which directory is the person's, clients cannot be looked for."""
    env = at(tmp_path / "m", HOME="~")
    for verb in ("install --list", "install cursor", "uninstall --all", "uninstall cursor"):
        done = run(*verb.split(), **env)
        said = "aiaml: HOME is not set; it must name your home directory\n"
        assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    assert '"mcpServers"' in run("install", "--print", "cursor", **env).stdout


def test_an_entry_that_starts_something_in_no_home_is_told(tmp_path: Path) -> None:
    """A command below the home of nobody is named as what it is: not there."""
    file = tmp_path / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"mcpServers": {"aiaml": {"command": "~no_such_person/aiaml"}}}')
    done = run("install", "--list", **at(tmp_path / "m"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "starts ~no_such_person/aiaml, which is not" in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such signals")
def test_ctrl_c_while_starting_is_quiet(tmp_path: Path) -> None:
    """The tenth of a second in which modules are imported can be ended as well."""
    kill = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nfor _ in range(10**8): pass\n"
    (tmp_path / "click.py").write_text(kill)
    done = run("list", **at(tmp_path / "m", PYTHONPATH=str(tmp_path)))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.skipif(sys.platform == "win32", reason="its shells quote in another way")
@pytest.mark.parametrize("memory_id", ["my id", "-all"])
def test_what_brings_a_memory_back_can_be_typed(memory_id: str, tmp_path: Path) -> None:
    """Ids by other hands have spaces and dashes, and the command that is named still works."""
    env = at(tmp_path / "m", AIAML_ENABLE_SYNC="true")
    file = tmp_path / "m" / "files" / "a.md"
    file.parent.mkdir(parents=True)
    head = f"id: {memory_id}\ntimestamp: 2026-01-02\nagent: a\nuser: b\ntopics: [c]"
    file.write_text(f"---\n{head}\n---\n\ntext\n")
    said = run("forget", "--yes", "--", memory_id, **env).stdout
    command = said.partition("`aiaml ")[2].partition("`")[0]
    assert not file.exists()
    done = shell(f'"$@" {command.replace("restore", "restore --yes")}', env)
    assert (done.returncode, done.stderr) == (0, "")
    assert file.exists()
