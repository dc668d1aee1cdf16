"""The laboratory stands alone, finds the faults that it should, and loses no result."""

from __future__ import annotations

import ast
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import cast

import pytest
from lab import skew
from lab.adapter import Adapter
from lab.client import Client
from lab.disk import Disk
from lab.measures import texts, together
from lab.measures.person import Person
from lab.run import Plan, _Stop, run
from lab.trace import Call, calls

import strace
from environments import ROOT
from printed import completed, inherited
from waiting import wait_until

LAB = ROOT / "lab"
COMMAND = [sys.executable, "-m", "lab"]
pytestmark = pytest.mark.slow
posix = pytest.mark.skipif(
    sys.platform == "win32", reason="the lab's own server locks as POSIX does"
)


def lab(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a verb of it in the checkout."""
    return completed([*COMMAND, *map(str, words)], cwd=ROOT, env=inherited())


def test_lab_imports_nothing_but_the_standard_library() -> None:
    """So that a stranger runs it on any server, and it cannot be kind to ours."""
    for path in LAB.rglob("*.py"):
        for each in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in each.names] if isinstance(each, ast.Import) else []
            if isinstance(each, ast.ImportFrom) and not each.level:
                names.append(each.module or "")
            assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names, path


@pytest.mark.parametrize("path", sorted(LAB.glob("adapters/*.py")), ids=lambda path: path.stem)
def test_lab_adapters_are_short(path: Path) -> None:
    """Whoever wants a server measured writes no more than a page."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 60


@strace.needed
def test_lab_catches_each_fault_by_name() -> None:
    """Twelve faults in a server, one at a time, and none in the sound one."""
    done = lab("mutations")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "12 of 12 faults caught" in done.stdout
    assert "MISSED" not in done.stdout and "WRONGLY" not in done.stdout


@posix
def test_lab_says_which_fault_it_missed() -> None:
    """A fault that nobody put in cannot be caught, and is no success."""
    done = lab("mutations", "a fault that no server has")
    assert done.returncode == 1
    assert "MISSED: a fault that no server has" in done.stdout


def rounds(folder: Path) -> list[tuple[str, int]]:
    """Return which rounds are in the results of the lab's own server."""
    lines = (folder / "files.jsonl").read_text(encoding="utf-8").splitlines()
    return [(each["measure"], each["number"]) for each in map(json.loads, filter(None, lines))]


@posix
def test_lab_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """What is there is not done again; what was cut off is."""
    words = ("run", "--servers", "files", "--measures", "protocol", "--results", tmp_path)
    assert lab(*words, "--rounds", "2").returncode == 0
    assert rounds(tmp_path) == [("protocol", 0), ("protocol", 1)]
    file = tmp_path / "files.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])  # as a power cut leaves it
    assert "protocol 0" not in lab(*words, "--rounds", "3").stdout
    again = [line for line in file.read_bytes().splitlines() if line.endswith(b"}")]
    assert [json.loads(line)["number"] for line in again] == [0, 1, 2]


@posix
def test_lab_ends_when_its_time_is_over(tmp_path: Path) -> None:
    """What is left is named, and done by the same command later."""
    words = ("run", "--servers", "files", "--measures", "protocol,start,kill", "--rounds", "500")
    done = lab(*words, "--seconds", "0.1", "--results", tmp_path)
    assert done.returncode == 0, done.stderr
    made = [measure for measure, _ in rounds(tmp_path)]
    assert 0 < len(made) < 3 and made == ["protocol", "kill"][: len(made)]
    left = 3 - len(made)
    assert f"the time is over; the same command does the other {left}" in done.stdout


@posix
def test_lab_does_one_round_of_everything_first(tmp_path: Path) -> None:
    """So that a short run has all, and a slow server takes the second rounds alone."""
    words = ("run", "--servers", "files", "--measures", "start,protocol", "--rounds", "2")
    assert lab(*words, "--results", tmp_path).returncode == 0
    assert rounds(tmp_path) == [("protocol", 0), ("start", 0), ("protocol", 1), ("start", 1)]


@posix
def test_lab_has_two_rounds_under_way_but_none_beside_what_measures_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those come last, in their order; of two others the quicker one ends first."""
    monkeypatch.setenv("LAB_SOAK", "6")  # longer than starts take
    words = ["--servers", "files", "--measures", "soak,start,kill,protocol", "--rounds", "1"]
    done = lab("run", "--quick", *words, "--results", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [measure for measure, _ in rounds(tmp_path)] == ["protocol", "kill", "soak", "start"]


@posix
def test_lab_begins_nothing_that_took_longer_than_what_is_left(tmp_path: Path) -> None:
    """So `--quick` ends in time, also with a server that is slow."""
    words = ("run", "--servers", "files", "--measures", "protocol", "--results", tmp_path)
    assert lab(*words).returncode == 0
    file = tmp_path / "files.jsonl"
    [line] = file.read_text(encoding="utf-8").splitlines()
    older = {"seconds": 60, "version": "older"}
    file.write_text(json.dumps(json.loads(line) | older) + "\n", encoding="utf-8")
    done = lab(*words, "--rounds", "2", "--seconds", "30")
    assert "a round took longer than what is left" in done.stdout
    assert rounds(tmp_path) == [("protocol", 0)]


@posix
def test_lab_ends_what_is_not_over_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round that is much too long leaves no server, no folder and no result."""
    monkeypatch.setattr("lab.run.LATE", 2.0)
    monkeypatch.setenv("LAB_SOAK", "600")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    said: list[str] = []
    plan = Plan(["files"], ["soak"], 1, 1, 2.0, 1, tmp_path / "results", said.append)
    assert run(plan)
    assert said == ["ended since the time is over: files"]
    assert not list(tmp_path.iterdir())


@posix
def test_lab_loses_nothing_to_ctrl_c(tmp_path: Path) -> None:
    """The round that is under way ends and is kept; the next run goes on behind it."""
    words = ["run", "--servers", "files", "--measures", "protocol", "--rounds", "500"]
    command = [*COMMAND, *words, "--results", str(tmp_path)]
    with subprocess.Popen(
        command, cwd=ROOT, env=inherited(), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        said = process.stdout.read()
    assert process.returncode == 130
    assert "goes on from here" in said
    done = rounds(tmp_path)
    assert done == [("protocol", number) for number in range(len(done))]
    assert 0 < len(done) < 500
    assert "protocol 0:" not in lab(*words[:-1], str(len(done)), "--results", tmp_path).stdout


def test_lab_takes_a_ctrl_c_while_it_prints() -> None:
    """Python refuses a second print inside of the first, to the same stream."""

    def inside(_: str) -> None:
        raise RuntimeError("reentrant call inside <_io.BufferedWriter name='<stdout>'>")

    stop = _Stop(inside)
    stop(signal.SIGINT, None)
    assert stop.asked


@pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="it wants a C compiler on Linux"
)
def test_lab_skew_moves_the_clock_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine's clock is wrong; how long it sleeps is not."""
    monkeypatch.setenv("LAB_CACHE", str(tmp_path))
    code = "from time import *; b = monotonic(); sleep(0.1); print(time(), monotonic() - b)"
    done = completed([sys.executable, "-c", code], env={**inherited(), **skew.by(-7200)})
    told, slept = map(float, done.stdout.split())
    assert -7200 - 60 < told - time.time() < -7200 + 60
    assert 0.1 <= slept < 60


class Shelf(Adapter):
    """A server that reads the files of its folder anew, or never again."""

    def __init__(self, folder: Path, *, anew: bool) -> None:
        """Take the folder."""
        super().__init__(folder, "")
        self.anew = anew
        self.texts = self.read_all()

    def read_all(self) -> list[str]:
        """Return all texts that are there."""
        return [path.read_text(encoding="utf-8") for path in self.home.glob("*.md")]

    def find(self, client: Client, key: str) -> str:  # noqa: ARG002 (an adapter's)
        """Return the texts with this key."""
        held = self.read_all() if self.anew else self.texts
        return "\n".join(each for each in held if key in each)

    def read(self, client: Client, handle: str) -> str:
        """Return the text with this key."""
        return self.find(client, handle)


def test_lab_person_sees_whether_a_server_does(tmp_path: Path) -> None:
    """Edits and deletions by hand must show in answers, and files by hand stay as they are."""
    for number in range(40):
        (tmp_path / f"{number}.md").write_text(f"begin key{number:02} amber end", encoding="utf-8")
    blind = Shelf(tmp_path, anew=False)
    person = Person(tmp_path, Random(1))
    person.start()
    wait_until(lambda: bool(person.deleted and person.edited and person.added))
    person.over.set()
    person.join()
    nobody = cast("Client", None)
    assert person.wrong(Shelf(tmp_path, anew=True), nobody) == {}
    assert person.wrong(blind, nobody).keys() == {"deleted and there", "edit not seen"}
    next(iter(person.added)).unlink()
    assert "file by hand gone" in person.wrong(blind, nobody)


def test_lab_asks_each_server_for_its_own_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While others write: a text that is not to be found counts, unless a person deleted it."""
    monkeypatch.setattr(texts, "PATIENCE", 0.1)
    blind = Shelf(tmp_path, anew=False)
    whole = "begin key01 amber end key01"
    (tmp_path / "1.md").write_text(whole, encoding="utf-8")
    person, nobody = Person(tmp_path, Random(1)), cast("Client", None)
    assert together.is_there(Shelf(tmp_path, anew=True), nobody, "key01", whole, person)
    assert not together.is_there(blind, nobody, "key01", whole, person)
    person.deleted.add("key01")
    assert together.is_there(blind, nobody, "key01", whole, person)


@posix
def test_lab_syncs_five_machines_in_every_other_round(tmp_path: Path) -> None:
    """All of them have all; the first round is for two."""
    done = lab(
        "run", "--servers", "files", "--measures", "sync", "--rounds", "2", "--results", tmp_path
    )
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "files.jsonl").read_text(encoding="utf-8").splitlines()
    figures = [json.loads(line)["figures"] for line in lines]
    assert [each["machines"] for each in figures] == [2, 5]
    assert not any(each.get("not on all machines") or each.get("lost") for each in figures)


def test_lab_pages_are_what_the_results_say(tmp_path: Path) -> None:
    """`python -m lab report` writes them; with other results they would be others."""
    done = lab("report", "--check")
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "none.jsonl").touch()
    assert lab("report", "--check", "--results", tmp_path).returncode == 1


# --- the disk after the power failed --------------------------------------------------------------

DIRECTORY = "/s"
OLD: dict[str, bytes | None] = {"/s/old": b"old"}
"""What was there before the calls."""


def played(*lines: str, like_ext4: bool = False) -> Disk:
    """Return a disk after calls, each written as strace does, without the thread."""
    disk = Disk(Path(DIRECTORY), OLD, like_ext4=like_ext4)
    entries = (line.partition("(") for line in lines)
    disk.play([Call("1", name, rest, at) for at, (name, _, rest) in enumerate(entries)])
    return disk


WRITTEN = (
    'openat(AT_FDCWD</>, "/s/a.tmp", O_WRONLY|O_CREAT, 0600) = 3</s/a.tmp>',
    'write(3</s/a.tmp>, "text", 4) = 4',
)
SYNCED = (*WRITTEN, "fsync(3</s/a.tmp>) = 0")
NAMED = (*SYNCED, 'rename("/s/a.tmp", "/s/a") = 0')
DURABLE = (*NAMED, "fsync(4</s>) = 0")


@pytest.mark.parametrize(
    ("done", "left"),
    [
        (WRITTEN, {}),
        (SYNCED, {}),
        (NAMED, {}),
        (DURABLE, {"/s/a": b"text"}),
        ((*DURABLE, 'write(3</s/a>, "more", 4) = 4'), {"/s/a": b"text"}),
        ((*DURABLE, 'unlink("/s/a") = 0'), {"/s/a": b"text"}),
        ((*DURABLE, 'unlink("/s/a") = 0', "fsync(4</s>) = 0"), {}),
        ((*WRITTEN, 'rename("/s/a.tmp", "/s/a") = 0', "fsync(4</s>) = 0"), {"/s/a": b""}),
        ((*DURABLE, 'pwrite64(3</s/a>, "T", 1, 0) = 1', "fsync(3</s/a>) = 0"), {"/s/a": b"Text"}),
        ((*DURABLE, "ftruncate(3</s/a>, 2) = 0", "fsync(3</s/a>) = 0"), {"/s/a": b"te"}),
        ((*DURABLE, 'write(3</s/a>, "!", 1) = -1 EIO', "fsync(3</s/a>) = 0"), {"/s/a": b"text"}),
    ],
)
def test_lab_disk_has_what_was_synced(done: tuple[str, ...], left: dict[str, bytes]) -> None:
    """Bytes when their file was, names when their directory was."""
    there = played(*done).after(None)
    assert {path: text for path, text in there.items() if text is not None} == {**OLD, **left}


def test_lab_disk_like_ext4_has_the_names_before_any_sync() -> None:
    """Its journal brings them along."""
    assert played(*SYNCED, like_ext4=True).after(None)["/s/a.tmp"] == b"text"
    assert "/s/a" not in played(*NAMED, like_ext4=True).after(None)


def test_lab_disk_at_random_has_the_beginning_of_what_was_not_synced() -> None:
    """In the order in which it was written."""
    more = ('write(3</s/a>, "1", 1) = 1', 'write(3</s/a>, "2", 1) = 1')
    disk = played(*DURABLE, *more)
    found = {disk.after(Random(seed))["/s/a"] for seed in range(50)}
    assert found == {b"text", b"text1", b"text12"}


def test_lab_reads_calls_in_the_order_in_which_they_ended(tmp_path: Path) -> None:
    """A call that another thread interrupts is one call, with all its bytes."""
    log = tmp_path / "log"
    log.write_text(
        '7 write(3</s/a>, "\\1\\"\\n\\377", 4 <unfinished ...>\n'
        "8 fsync(4</s>) = 0\n"
        "7 <... write resumed>) = 4\n"
        "9 +++ killed by SIGKILL +++\n"
    )
    sync, write = calls(log)
    assert (sync.name, sync.descriptor, sync.result) == ("fsync", (4, "/s"), 0)
    assert (write.thread, write.strings, write.result) == ("7", [b'\1"\n\xff'], 4)
