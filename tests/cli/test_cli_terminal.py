"""The command line on a real terminal: questions, editors, colours, Ctrl-C."""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_transcripts import HERE, environment

from aiaml_server.files import Lock
from waiting import wait_until

if sys.platform == "win32":
    pytest.skip("a pseudo-terminal is POSIX", allow_module_level=True)

import fcntl
import pty
import struct
import termios

AIAML = (sys.executable, "-m", "aiaml_server")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with five memories in its store."""
    shutil.copytree(HERE / "store", tmp_path / "store")
    return tmp_path


def plain(text: str) -> str:
    """Return what was printed without its styles."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]", "", text).replace("\r", "")


class Terminal:
    """A person at a terminal of 80 columns, who reads before typing."""

    def __init__(self, home: Path, *words: str, **env: str) -> None:
        plain = {key: value for key, value in environment(home).items() if key != "NO_COLOR"}
        command = words if words[:1] == AIAML[:1] else (*AIAML, *words)
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, {**plain, "TERM": "xterm", "PAGER": "", **env})  # noqa: S606
        self.seen = ""

    def read_until(self, text: str, seconds: float = 60.0) -> None:
        """Wait until something stands on the screen."""

        def is_seen() -> bool:
            if text not in self.seen and select.select([self._terminal], [], [], 0.1)[0]:
                self.seen += os.read(self._terminal, 4096).decode()
            return text in self.seen

        wait_until(is_seen, seconds)

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


def test_a_note_fits_the_terminal_where_the_answer_is_piped(home: Path) -> None:
    """It was broken for 80 columns, and again by the terminal, within a word."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 44, 0, 0))
    env = {key: value for key, value in environment(home).items() if key != "COLUMNS"}
    subprocess.run(
        [*AIAML, "list", "-n", "1"], env=env, stdout=subprocess.DEVNULL, stderr=theirs, check=True
    )
    os.close(theirs)
    said = os.read(ours, 4096).decode()
    os.close(ours)
    assert said.splitlines() == ["1 of 5: `--all` shows all of them."]


def names(home: Path) -> list[str]:
    """Return the memories in the store."""
    return sorted(path.name for path in (home / "store" / "files").glob("*.md"))


@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, 4), ("n\n", 1, 5), ("\n", 1, 5)])
def test_forgetting_asks_and_obeys(home: Path, answer: str, code: int, left: int) -> None:
    """Only yes deletes; what is meant is shown before."""
    terminal = Terminal(home, "forget", "3d4e")
    terminal.read_until("Forget 1 memory? [y/N]")
    assert "Max is allergic" in terminal.seen
    terminal.type(answer)
    assert terminal.code() == code
    assert len(names(home)) == left


def test_ctrl_c_at_a_question_changes_nothing(home: Path) -> None:
    """It ends with 130 and without a traceback."""
    terminal = Terminal(home, "forget", "3d4e")
    terminal.read_until("[y/N]: ")
    time.sleep(0.5)  # readline misses a signal that comes just before it waits
    terminal.type("\x03")
    assert terminal.code() == 130
    assert "Traceback" not in terminal.seen
    assert len(names(home)) == 5


def editor(home: Path, script: str) -> str:
    """Make an editor that is a line of shell with the file's name in `$1`."""
    path = home / "editor"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return str(path)


def test_a_memory_is_written_in_the_editor(home: Path) -> None:
    """What stands under the form is stored; the head can be changed."""
    before = names(home)
    program = editor(
        home,
        """python "$TOOLS/change.py" "topics: []" "topics: [garden]" "$1"; echo Roses >> "$1" """,
    )
    terminal = Terminal(home, "remember", EDITOR=program)
    assert terminal.code() == 0, terminal.seen
    (new,) = set(names(home)) - set(before)
    text = (home / "store" / "files" / new).read_text(encoding="utf-8")
    assert "agent: human\nuser: marco\ntopics: [garden]\n---\n\nRoses\n" in text


@pytest.mark.gate_cases(2)
@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("true", 1, "nothing was written"),
        ('echo Roses >> "$1"', 3, "topics: must be"),
        ('echo --- > "$1"', 3, "closes the frontmatter"),
        ("exit 1", 3, "$EDITOR says which one to use"),
        ('echo Roses >> "$1"; kill -9 $$', 3, "your text is in"),
        ('rm "$1"', 3, "the editor left no file"),
        ('echo Roses >> "$1"; kill -TERM $PPID; exec sleep 9', 143, "your text is in"),
    ],
)
def test_what_the_editor_leaves_is_checked(
    home: Path, script: str, code: int, said: str, tmp_path: Path
) -> None:
    """Nothing is stored, and what was written is kept."""
    terminal = Terminal(home, "remember", EDITOR=editor(home, script), TMPDIR=str(tmp_path))
    assert terminal.code() == code
    assert said in " ".join(terminal.seen.split())
    assert len(names(home)) == 5
    kept = list(tmp_path.glob("aiaml-*/memory.md"))
    assert len(kept) == (">" in script)


def test_what_an_editor_puts_beside_the_text_goes_too(home: Path, tmp_path: Path) -> None:
    """A backup in the temporary directory neither stays nor is in the way."""
    script = """cp "$1" "$1~"; sed -i 's/topics: .*/topics: [garden]/' "$1"; echo Roses >> "$1" """
    terminal = Terminal(home, "remember", EDITOR=editor(home, script), TMPDIR=str(tmp_path))
    assert terminal.code() == 0, terminal.seen
    assert len(names(home)) == 6
    assert list(tmp_path.glob("aiaml-*")) == []


def test_an_editor_s_name_with_an_open_quote_is_a_sentence(home: Path) -> None:
    """What $EDITOR holds may be no command at all."""
    terminal = Terminal(home, "remember", EDITOR="'nano")
    assert terminal.code() == 1
    assert "$EDITOR says which one to use" in " ".join(terminal.seen.split())
    assert "Traceback" not in terminal.seen


def test_colours_are_for_terminals_that_want_them(home: Path) -> None:
    """On a terminal words stand out; with NO_COLOR, as in a pipe, they do not."""
    colourful = Terminal(home, "list")
    assert colourful.code() == 0
    assert "\x1b[1m" in colourful.seen
    plain = Terminal(home, "list", NO_COLOR="1")
    assert plain.code() == 0
    assert "\x1b" not in plain.seen


def test_a_dumb_terminal_gets_plain_text(home: Path) -> None:
    """No sequence of any kind, also while something is under way."""
    for words in (["list"], ["show", "1b2c"], ["doctor", "files"]):
        terminal = Terminal(home, *words, TERM="dumb")
        terminal.code()
        assert "\x1b" not in terminal.seen


EVIL = "\x1b]52;c;b3duZWQ=\x07 \x1b[8m \x9b2J \u202e \x7f"


@pytest.mark.gate_cases(4)
@pytest.mark.parametrize(
    "line",
    [
        *("show abcd1234 --raw", "show abcd1234", "export --to -", "export --to - --format book"),
        *("list", "search evil", "stats", "show abcd1234 --json", "doctor files"),
        *("edit abcd", "forget abcd"),
    ],
)
def test_a_terminal_is_sent_nothing_but_our_own_sequences(home: Path, line: str) -> None:
    """Colours and the wiping of a line are ours; what a memory holds is shown."""
    head = f'id: {{}}\ntimestamp: 2026-01-02\nagent: "a{EVIL}"\nuser: u\ntopics: ["t{EVIL}"]'
    for number in (1, 2):
        file = home / "store" / "files" / f"evil{number}{EVIL.replace('/', '')}.md"
        memory_id = "abcd1234" if number == 1 else f"abcd{EVIL}"
        file.write_text(f"---\n{head.format(memory_id)}\n---\n\nevil {EVIL}\n", encoding="utf-8")
    terminal = Terminal(home, *line.split(), EDITOR="false")
    if line.startswith("forget"):
        terminal.type("n\n")
    terminal.code()
    rest = re.sub(r"\x1b\[(?:[0-9]|3[0-7])m|\x1b\[K|\x1b\[\?25[hl]", "", terminal.seen)
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]", rest), rest
    assert "‹U+" in rest or "u202e" in rest


def test_what_is_piped_is_exact(home: Path) -> None:
    """`show --raw` gives a program the bytes of the file."""
    file = home / "store" / "files" / "evil.md"
    head = "id: abcd1234\ntimestamp: 2026-01-02\nagent: a\nuser: u\ntopics: [t]"
    file.write_bytes(f"---\n{head}\n---\n\n{EVIL}\r\nend".encode())
    done = subprocess.run(
        [*AIAML, "show", "abcd1234", "--raw"],
        env=environment(home),
        capture_output=True,
        check=True,
    )
    assert done.stdout == file.read_bytes()


def test_what_ends_a_thread_is_shown_safely() -> None:
    """A traceback quotes what it failed with."""
    script = (
        "import threading; from aiaml_server.terminal import take_streams; take_streams()\n"
        f"thread = threading.Thread(target=lambda: [][{EVIL!r}]); thread.start(); thread.join()\n"
        f"def fail(): raise ValueError({EVIL!r})\n"
        "thread = threading.Thread(target=fail); thread.start(); thread.join()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    said = done.stderr.decode()
    assert "ValueError: ‹U+001B›]52" in said
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", said)


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\x03", 130)])
def test_restoring_asks_and_obeys(home: Path, answer: str, code: int) -> None:
    """What it would be is shown before; only yes replaces what is there."""
    assert Terminal(home, "sync", AIAML_ENABLE_SYNC="true").code() == 0
    file = home / "store" / "files" / "20260620_120000_3d4e5f6a.md"
    before = file.read_bytes()
    file.write_bytes(before + b"And to nuts.\n")
    terminal = Terminal(home, "restore", "3d4e", AIAML_ENABLE_SYNC="true")
    terminal.read_until("Bring this version back? [y/N]: ")
    assert "-And to nuts." in terminal.seen
    time.sleep(0.5)  # readline misses a signal that comes just before it waits
    terminal.type(answer)
    assert terminal.code() == code
    assert (file.read_bytes() == before) == (code == 0)


def test_restoring_what_is_gone_asks_nothing(home: Path) -> None:
    """Nothing can be lost by it."""
    assert Terminal(home, "sync", AIAML_ENABLE_SYNC="true").code() == 0
    (home / "store" / "files" / "20260620_120000_3d4e5f6a.md").unlink()
    terminal = Terminal(home, "restore", "3d4e", AIAML_ENABLE_SYNC="true")
    assert terminal.code() == 0
    assert "Restored memory 3d4e5f6a" in terminal.seen
    assert len(names(home)) == 5


def test_sync_shows_what_it_does_and_wipes_it_away(home: Path) -> None:
    """One line, gone when the answer comes."""
    terminal = Terminal(home, "sync", AIAML_ENABLE_SYNC="true")
    assert terminal.code() == 0
    before, _, after = terminal.seen.rpartition("\r\x1b[K")
    assert "saving …" in before
    assert after.startswith("5 memories saved.")
    assert "saving" not in after


def test_a_text_outlives_a_disk_that_refuses_it(home: Path, tmp_path: Path) -> None:
    """What was written for `remember` is kept when it cannot be stored."""
    change = 'python "$TOOLS/change.py" "topics: []" "topics: [garden]" "$1"; echo Roses >> "$1"'
    program = editor(home, f'{change}; touch "$AIAML_MEMORY_DIR"')  # now it is a file
    where = {"AIAML_MEMORY_DIR": str(home / "new"), "TMPDIR": str(tmp_path)}
    terminal = Terminal(home, "remember", "--user", "marco", EDITOR=program, **where)
    assert terminal.code() == 1, terminal.seen
    (kept,) = tmp_path.glob("aiaml-*/memory.md")
    assert kept.read_text(encoding="utf-8").endswith("Roses\n")
    assert kept.name in "".join(terminal.seen.split())


@pytest.mark.slow
def test_a_text_outlives_ctrl_c_after_the_editor(home: Path, tmp_path: Path) -> None:
    """While `edit` waits for another process's sync, the person may lose patience, not the text."""
    program = editor(home, 'echo Roses >> "$1"; echo edited')
    where = {"AIAML_ENABLE_SYNC": "true", "TMPDIR": str(tmp_path)}
    before = (home / "store" / "files" / "20260620_120000_3d4e5f6a.md").read_bytes()
    with Lock(home / "store" / ".sync.lock").held(1.0):
        terminal = Terminal(home, "edit", "3d4e", EDITOR=program, **where)
        terminal.read_until("edited")
        time.sleep(2.0)
        terminal.type("\x03")
        assert terminal.code() == 130, terminal.seen
    (kept,) = tmp_path.glob("aiaml-*/*.md")
    assert kept.read_text(encoding="utf-8").endswith("Roses\n")
    assert (home / "store" / "files" / "20260620_120000_3d4e5f6a.md").read_bytes() == before


@pytest.fixture
def code(home: Path) -> Path:
    """A repository."""
    repo = home / "code"
    subprocess.run(["git", "init", "--quiet", str(repo)], check=True)
    return repo


@pytest.mark.gate_cases(16)
@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.parametrize(
    "verb",
    [
        "sessions check", "compartments show", "compartments stats",
        "status", "stats", "show 0a1b", "install --list",
    ],
)  # fmt: skip
def test_lines_break_between_words(home: Path, code: Path, verb: str, columns: int) -> None:
    """At any width, so that each word of what is piped stands there whole."""
    words = verb.split()
    env = {"COLUMNS": str(columns), "AIAML_COMPARTMENTS_FILE": str(code / "entries.json")}
    if words[0] == "compartments":
        fill = [sys.executable, str(HERE / "compartments.py"), env["AIAML_COMPARTMENTS_FILE"]]
        subprocess.run(fill, check=True, capture_output=True)
    elif words[0] == "sessions":
        log = code / ".github" / "agent-memory" / "ada" / "logs" / "2026-01-02.md"
        log.parent.mkdir(parents=True)
        log.write_text("no log of a day\n")
        words += [str(code)]
    environ = {**environment(home), **env}
    piped = subprocess.run([*AIAML, *words], env=environ, capture_output=True, check=False)
    said = (piped.stdout + piped.stderr).decode()
    assert max(map(len, said.splitlines())) > 40, said
    terminal = Terminal(home, *words, **env, NO_COLOR="1")
    terminal.code()
    shown = re.sub("\r(?!\n)[^\n]*\r|\x1b\\[[0-9]*[mK]|\r", "", terminal.seen)
    for line in shown.splitlines():
        assert len(line) <= columns or len(line.split()) == 1, line
    assert set(said.split()) <= set(shown.split())


@pytest.mark.slow
def test_the_demo_breaks_between_words(home: Path) -> None:
    """Also what the tools are called with and answer; but not what is to be copied."""
    terminal = Terminal(home, "demo", COLUMNS="40")
    assert terminal.code() == 0
    seen = re.sub("\x1b\\[[0-9]*m|\r", "", terminal.seen)
    before, _, entry = seen.partition("\nTo connect")
    for line in before.splitlines():
        assert len(line) <= 40 or len(line.split()) == 1, line
    assert "install --all" in entry


@pytest.mark.gate_cases(2)
@pytest.mark.parametrize("words", ["--help", "import --help", "search --help"])
def test_help_breaks_between_words(home: Path, words: str) -> None:
    """Examples, tables and options as well, on a narrow terminal; piped, an example is one line."""
    env = {**environment(home), "COLUMNS": "100"}
    piped = subprocess.run([*AIAML, *words.split()], env=env, capture_output=True, check=True)
    terminal = Terminal(home, *words.split(), COLUMNS="40")
    assert terminal.code() == 0
    shown = terminal.seen.replace("\r", "")
    assert max(map(len, shown.splitlines())) <= 40
    said = piped.stdout.decode()
    assert max(map(len, said.splitlines())) > 40
    assert re.sub("[|]\\s+", "|", shown).split() == said.split()
