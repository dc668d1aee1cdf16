"""The command line on a real terminal: questions, editors, colours, Ctrl-C."""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_transcripts import HERE, environment

from aiaml_server.files import hold_lock
from command_line import at, call
from waiting import wait_until

if sys.platform == "win32":
    pytest.skip("a pseudo-terminal is POSIX", allow_module_level=True)

import pty

AIAML = (sys.executable, "-m", "aiaml_server")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with five memories in its store."""
    shutil.copytree(HERE / "store", tmp_path / "store")
    return tmp_path


class Terminal:
    """A person at a terminal of 80 columns, who reads before typing."""

    def __init__(self, home: Path, *words: str, **env: str) -> None:
        plain = {key: value for key, value in environment(home).items() if key != "NO_COLOR"}
        command = words if words[:1] == AIAML[:1] else (*AIAML, *words)
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, {**plain, "TERM": "xterm", "PAGER": "cat", **env})  # noqa: S606
        self.seen = ""

    def read_until(self, text: str, seconds: float = 60.0) -> None:
        """Wait until something stands on the screen."""

        def is_seen() -> bool:
            if text not in self.seen and select.select([self._terminal], [], [], 0.1)[0]:
                self.seen += os.read(self._terminal, 4096).decode()
            return text in self.seen

        wait_until(is_seen, seconds)

    def wait_until_it_sleeps(self) -> None:
        """Wait until the program waits, as it does for a key."""
        wait_until(lambda: self._ask("ps", "-o", "stat=", "-p", str(self.pid)).startswith("S"))

    def children(self) -> str:
        """Return the processes that the program has started and that still run."""
        return self._ask("pgrep", "-P", str(self.pid))

    @staticmethod
    def _ask(*words: str) -> str:
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._terminal, text.encode())

    def code(self) -> int:
        """Read the rest; return the exit code."""
        while True:
            try:
                data = os.read(self._terminal, 4096)
            except OSError:  # Linux says so when the other side is closed
                break
            if not data:
                break
            self.seen += data.decode()
        os.close(self._terminal)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def names(home: Path) -> list[str]:
    """Return the memories in the store."""
    return sorted(path.name for path in (home / "store" / "files").glob("*.md"))


def script(home: Path, text: str) -> str:
    """Make a program that is some lines of shell."""
    path = home / "script"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


def shown(terminal: Terminal) -> str:
    """Return what is seen at the end, without styles and the status line."""
    return re.sub("\r(?!\n)[^\n]*\r|\x1b\\[[0-9]*[mK]|\r", "", terminal.seen)


# --- questions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "code", "left"), [("y\n", 0, 4), ("\n", 1, 5), ("\x03", 130, 5)]
)
def test_forgetting_asks_and_obeys(home: Path, answer: str, code: int, left: int) -> None:
    """Only yes deletes; what is meant is shown before; Ctrl-C ends it without a traceback."""
    terminal = Terminal(home, "forget", "3d4e")
    terminal.read_until("Forget 1 memory? [y/N]: ")
    assert "Max is allergic" in terminal.seen
    terminal.wait_until_it_sleeps()  # readline misses a signal that comes just before it waits
    terminal.type(answer)
    assert terminal.code() == code
    assert "Traceback" not in terminal.seen
    assert len(names(home)) == left


def test_forgetting_everywhere_asks(home: Path) -> None:
    """It cannot be undone."""
    terminal = Terminal(home, "forget", "--everywhere", "3d4e", AIAML_ENABLE_SYNC="true")
    terminal.read_until("Forget this everywhere, for good? [y/N]: ")
    terminal.type("\n")
    assert terminal.code() == 1
    assert len(names(home)) == 5


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1)])
def test_restoring_asks_and_obeys(home: Path, answer: str, code: int) -> None:
    """What would change is shown before; only yes replaces what is there."""
    assert Terminal(home, "sync", AIAML_ENABLE_SYNC="true").code() == 0
    file = home / "store" / "files" / "20260620_120000_3d4e5f6a.md"
    before = file.read_bytes()
    file.write_bytes(before + b"And to nuts.\n")
    terminal = Terminal(home, "restore", "3d4e", AIAML_ENABLE_SYNC="true")
    terminal.read_until("Replace 1 memory? [y/N]: ")
    assert "-And to nuts." in terminal.seen
    terminal.type(answer)
    assert terminal.code() == code
    assert (file.read_bytes() == before) == (code == 0)


def test_sync_shows_what_it_does_and_wipes_it_away(home: Path) -> None:
    """One line, gone when the answer comes."""
    terminal = Terminal(home, "sync", AIAML_ENABLE_SYNC="true")
    assert terminal.code() == 0
    before, _, after = terminal.seen.rpartition("\r\x1b[K")
    assert "syncing …" in before
    assert after.startswith("5 saved.")
    address = "http://ada:sesame@127.0.0.1:9/"
    terminal = Terminal(home, "sync", "--setup", address, AIAML_ENABLE_SYNC="true")
    assert terminal.code() == 1
    assert "asking http://***@127.0.0.1:9/ …" in terminal.seen and "sesame" not in terminal.seen


# --- editors --------------------------------------------------------------------------------------


def test_a_memory_is_written_in_the_editor(home: Path, tmp_path: Path) -> None:
    """Its rarest words become topics, and no temporary file stays but of what is not stored."""
    before = names(home)
    program = script(home, 'echo "Roses in Ostuni" > "$1"; cp "$1" "$1~"')
    terminal = Terminal(home, "remember", EDITOR=program, TMPDIR=str(tmp_path))
    assert terminal.code() == 0, terminal.seen
    (new,) = set(names(home)) - set(before)
    text = (home / "store" / "files" / new).read_text(encoding="utf-8")
    assert "user: marco\ntopics: [ostuni, roses]\n" in text
    assert "Roses in Ostuni" in text
    assert list(tmp_path.glob("aiaml-*")) == []
    program = script(home, 'echo "it is of the" > "$1"')
    terminal = Terminal(home, "remember", EDITOR=program, TMPDIR=str(tmp_path))
    assert terminal.code() == 1 and "no topic" in terminal.seen
    (kept,) = tmp_path.glob("aiaml-*/*.md")
    assert kept.read_text(encoding="utf-8") == "it is of the\n"


EDITORS = {
    "true": "nothing was changed",
    'echo --- > "$1"': "not stored",
    "exit 1": "the editor failed",
    'echo Roses >> "$1"; kill -9 $$': "Your text is in",
    'rm "$1"': "left no text in UTF-8",
}


def test_what_the_editor_leaves_is_checked(home: Path, tmp_path: Path) -> None:
    """Nothing is stored, and what was written is kept."""
    file = home / "store" / "files" / "20260620_120000_3d4e5f6a.md"
    before = file.read_bytes()
    for line, said in EDITORS.items():
        place = tmp_path / str(len(list(tmp_path.iterdir())))
        place.mkdir()
        env = {**environment(home), "EDITOR": script(home, line), "TMPDIR": str(place)}
        command = [*AIAML, "edit", "3d4e"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert said in done.stderr, line
        assert done.returncode == 1
        assert file.read_bytes() == before
        assert len(list(place.glob("aiaml-*/*.md"))) == (">" in line), line


@pytest.mark.slow
def test_a_text_outlives_ctrl_c_after_the_editor(home: Path, tmp_path: Path) -> None:
    """While `edit` waits for another process's sync, the person may lose patience, not the text."""
    program = script(home, 'echo Roses >> "$1"; echo edited')
    where = {"AIAML_ENABLE_SYNC": "true", "TMPDIR": str(tmp_path)}
    before = (home / "store" / "files" / "20260620_120000_3d4e5f6a.md").read_bytes()
    with hold_lock(home / "store" / ".sync.lock", 1.0):
        terminal = Terminal(home, "edit", "3d4e", EDITOR=program, **where)
        terminal.read_until("edited")
        wait_until(lambda: not terminal.children())
        terminal.wait_until_it_sleeps()  # within an import, the signal is its exit code
        terminal.type("\x03")
        assert terminal.code() == 130, terminal.seen
    assert "Your text is in" in terminal.seen
    (kept,) = tmp_path.glob("aiaml-*/*.md")
    assert kept.read_text(encoding="utf-8").endswith("Roses\n")
    assert (home / "store" / "files" / "20260620_120000_3d4e5f6a.md").read_bytes() == before


# --- how it looks ---------------------------------------------------------------------------------


def test_long_answers_are_shown_by_the_pager(home: Path) -> None:
    """The person's own, on a terminal alone; leaving it early is no error."""
    pager = script(home, "echo paged; head -n 1")
    terminal = Terminal(home, "list", PAGER=pager)
    assert terminal.code() == 0
    assert terminal.seen.count("\n") == 2 and terminal.seen.startswith("paged")
    short = Terminal(home, "status", PAGER=pager)
    assert short.code() == 0
    assert "paged" not in short.seen
    assert "paged" not in call(at(home / "store", PAGER=pager), "list").stdout


def test_a_short_answer_has_no_empty_line(home: Path) -> None:
    """Neither at its end, nor alone where there is none."""
    for words, lines in ((["list", "-n", "1"], 3), (["list", "topic:none"], 1)):
        terminal = Terminal(home, *words)
        assert terminal.code() == 0
        rows = shown(terminal).split("\n")
        assert len(rows) == lines + 1 and rows.index("") == lines, rows


def test_colours_are_for_terminals_that_want_them(home: Path) -> None:
    """Not with NO_COLOR, and no sequence of any kind on a dumb terminal."""
    for env, is_coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        for words in (["list"], ["show", "1b2c"], ["status"]):
            terminal = Terminal(home, *words, **env)
            assert terminal.code() == 0
            assert ("\x1b[1m" in terminal.seen) == is_coloured, (env, words)
            assert is_coloured or "\x1b" not in terminal.seen


EVIL = "\x1b]52;c;b3duZWQ=\x07 \x1b[8m \x9b2J \u202e \x7f"


@pytest.mark.gate_cases(3)
@pytest.mark.parametrize(
    "line", ["show abcd1234", "list", "export --to -", "search evil", "edit abcd"]
)
def test_a_terminal_is_sent_nothing_but_our_own_sequences(home: Path, line: str) -> None:
    """Colours and the wiping of a line are ours; what a memory holds is shown."""
    head = f'id: {{}}\ntimestamp: 2026-01-02\nagent: "a{EVIL}"\nuser: u\ntopics: ["t{EVIL}"]'
    for number in (1, 2):
        file = home / "store" / "files" / f"evil{number}{EVIL.replace('/', '')}.md"
        memory_id = "abcd1234" if number == 1 else f"abcd{EVIL}"
        file.write_text(f"---\n{head.format(memory_id)}\n---\n\nevil {EVIL}\n", encoding="utf-8")
    terminal = Terminal(home, *line.split(), EDITOR="false")
    terminal.code()
    rest = re.sub(r"\x1b\[(?:[0-2]|3[1-3])m|\x1b\[K|\x1b\[\?25[hl]", "", terminal.seen)
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]", rest), rest
    assert "‹U+" in rest or "u202e" in rest


def test_what_ends_a_thread_is_shown_safely() -> None:
    """A traceback quotes what it failed with."""
    source = (
        "import threading; from aiaml_server.terminal import configure_streams\n"
        "configure_streams()\n"
        f"def fail(): raise ValueError({EVIL!r})\n"
        "thread = threading.Thread(target=fail); thread.start(); thread.join()"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, check=True)
    said = done.stderr.decode()
    assert "ValueError: ‹U+001B›]52" in said
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", said)


@pytest.mark.gate_cases(3)
@pytest.mark.parametrize("line", ["status", "show 0a1b", "import --help", "--help"])
def test_lines_break_between_words(home: Path, line: str) -> None:
    """On a narrow terminal, so that each word of what is piped is there whole."""
    words = line.split()
    env = {**environment(home), "COLUMNS": "40", "FORCE_TTY": "1"}
    piped = subprocess.run([*AIAML, *words], env=env, capture_output=True, check=True)
    terminal = Terminal(home, *words, COLUMNS="40", NO_COLOR="1")
    assert terminal.code() == 0
    for row in shown(terminal).splitlines():
        assert len(row) <= 40 or len(row.split()) == 1, row
    assert set(piped.stdout.decode().split()) <= set(shown(terminal).split())


def test_errors_break_between_words(home: Path) -> None:
    """As answers do."""
    terminal = Terminal(home, "list", "--since", "foo", COLUMNS="40", NO_COLOR="1")
    assert terminal.code() == 2
    rows = shown(terminal).splitlines()
    assert len(rows) > 1 and all(len(row) <= 40 for row in rows), rows
