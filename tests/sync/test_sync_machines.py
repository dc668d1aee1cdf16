"""Many machines at one remote: losing a race to another is no failure, and nobody is starved."""

from __future__ import annotations

import heapq
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiaml_server.sync import once, pace
from aiaml_server.sync.history import History
from aiaml_server.sync.pace import FIRST_PAUSE, Pace
from aiaml_server.sync.remote import Remote
from aiaml_server.sync.union import Entry, union
from machine import Machine, append, as_person, content_of, git, settle

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts stand in for git")


def outrun_always(machine: Machine, other: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have another machine push something new just before each push of this one."""
    push = Remote.push

    def late(remote: Remote, commit: str, instead_of: str = "") -> None:
        if remote is machine.rounds._remote:
            other.remember("faster")
            other.synced()
        push(remote, commit, instead_of)

    monkeypatch.setattr(Remote, "push", late)


@pytest.mark.slow
def test_a_lost_race_is_no_failure(
    ada: Machine, bob: Machine, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No problem in the status, no pause that grows as after a failure; and what is new arrives."""
    ada.remember("slower")
    outrun_always(ada, bob, monkeypatch)
    for _ in range(3):
        status = ada.sync()
        assert (status.problem, status.failing_since) == (None, None)
        assert ada.rounds.pace.next_round(done=True) <= FIRST_PAUSE
        assert status.ahead
    assert len(ada.files) == 1 + len(bob.files)
    monkeypatch.undo()
    ada.synced()
    assert content_of(remote) == ada.files


@pytest.mark.slow
def test_a_race_that_is_lost_for_long_is_told_as_such(
    ada: Machine, bob: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is told to look at a key that is right."""
    ada.remember("slower")
    outrun_always(ada, bob, monkeypatch)
    ada.rounds.pace.outrun = 100
    trouble = ada.sync().trouble
    assert trouble
    assert trouble.kind == "outrun"


@pytest.mark.slow
@posix_only
def test_a_refusal_is_a_failure_however_often_others_push(
    ada: Machine, bob: Machine, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that may not write does not look like a lost race."""
    hook = remote / "hooks" / "pre-receive"
    ada.remember("refused")
    push = Remote.push

    def refused(remote: Remote, commit: str, instead_of: str = "") -> None:
        if remote is not ada.rounds._remote:
            return push(remote, commit, instead_of)
        hook.write_text("#!/bin/sh\necho no entry; exit 1\n")
        hook.chmod(0o755)
        try:
            return push(remote, commit, instead_of)
        finally:
            hook.unlink()
            bob.remember("another")
            bob.synced()

    monkeypatch.setattr(Remote, "push", refused)
    trouble = ada.sync().trouble
    assert trouble
    assert (trouble.kind, "no entry" in trouble.sentence) == ("refused", True)


def test_the_first_try_after_an_outage_comes_soon(tmp_path: Path) -> None:
    """Within ten seconds, with the interval as shipped."""
    machine = Machine(tmp_path / "base", tmp_path / "nowhere")
    object.__setattr__(machine.settings, "sync_interval", 60.0)
    machine.restart()
    assert machine.sync().problem
    assert 1 < machine.rounds.pace.next_round(done=True) <= 10


def test_who_pushes_all_the_time_leaves_room_for_the_slow() -> None:
    """A few pushes may follow each other at once; then they are gathered."""
    pace = Pace(1.0)
    due = []
    for _ in range(10):
        pace.succeeded(pushed=True)
        due.append(pace.is_due())
    assert due == [True] * 4 + [False] * 6
    pace.succeeded(pushed=False)
    assert pace.is_due()


class Line(NamedTuple):
    """A machine's way to the remote.

    Attributes:
        seconds: from the look at the remote to the answer to a push.
        every: seconds between two memories there, on average.
        skew: how far its clock is off, in seconds.
    """

    seconds: float
    every: float
    skew: float


class Race:
    """Machines that push to one remote, each with a `Pace`, in a time that is only counted."""

    def __init__(self, lines: Sequence[Line], monkeypatch: pytest.MonkeyPatch) -> None:
        """Begin now, which any machine's clock may show in its own way."""
        self.now = 0.0
        self.head = 0  # what the remote has
        self.waits: dict[Line, list[float]] = {line: [] for line in lines}
        self._clock = random.uniform(0, 100)
        self._turn = lines[0]
        monkeypatch.setattr(pace, "time", self)
        machines = [(0.0, each, line, self._machine(line)) for each, line in enumerate(lines)]
        while machines[0][0] < 300:
            self.now, number, self._turn, machine = heapq.heappop(machines)
            heapq.heappush(machines, (self.now + next(machine), number, self._turn, machine))

    def monotonic(self) -> float:
        """Return the time since any moment."""
        return self.now

    def time(self) -> float:
        """Return what the machine's clock shows whose turn it is."""
        return self.now + self._clock + self._turn.skew

    def _machine(self, line: Line) -> Iterator[float]:
        """Remember and push as a round does, and yield the time until what comes next."""
        patience = Pace(1.0)
        while True:
            yield random.expovariate(1 / line.every)
            begun, lost = self.now, True
            while lost:
                yield max(patience.not_before - self.now, 0)
                for attempt in range(6):
                    seconds = line.seconds * random.uniform(0.8, 1.2)
                    yield seconds / 4  # until it is known what the remote has
                    seen = self.head
                    yield seconds * 3 / 4
                    lost = self.head != seen
                    if not lost:
                        self.head += 1
                        self.waits[line].append(self.now - begun)
                        patience.succeeded(pushed=True)
                        break
                    if attempt == 5:
                        patience.gave_up(seconds, attempt)
                    else:
                        yield patience.lost(seconds, attempt)


def test_a_slow_line_has_its_turn_among_machines_that_never_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nearly always within half a minute, and never after two."""
    slow, fast = [], []
    for seed in range(40):
        random.seed(seed)
        lines = [Line(0.5, 1.0, random.uniform(-2, 2) + each / 1000) for each in range(5)]
        lines.append(Line(4.0, 20.0, 0.0))
        waits = Race(lines, monkeypatch).waits
        slow += waits.pop(lines[-1])
        fast += [each for several in waits.values() for each in several]
    slow.sort()
    assert len(slow) > 300  # of 600 at most, for one machine with nothing to wait for
    assert slow[len(slow) * 95 // 100] < 32
    assert slow[-1] < 120
    assert sorted(fast)[len(fast) // 2] < 12
    assert max(fast) < 45


def test_who_comes_second_is_put_on_top_and_nothing_is_joined(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """One line of history, as a person would make it who pulls with `--rebase`."""
    ada.remember("zero")
    settle([ada, bob])
    start = git(remote, "rev-parse", "main")
    for number in range(3):
        ada.remember(f"a {number}")
        bob.remember(f"b {number}")
    dates = {}
    for machine in (ada, bob):
        assert once(machine.settings, local=True).problem is None
        dates[machine] = machine.git("log", "--format=%s|%an|%at|%ct", "-3").splitlines()
    settle([ada, bob])
    settle([ada, bob])
    assert ada.files == bob.files == content_of(remote)
    assert git(remote, "rev-list", "--merges", f"{start}..main") == ""
    told = git(remote, "log", "--format=%s|%an|%at|%ct", f"{start}..main").splitlines()
    assert sorted(dates[ada] + dates[bob]) == sorted(told)
    for machine, other in ((ada, bob), (bob, ada)):
        arrived = {c.commit.subject: c.arrived for cs in History(machine.base).latest() for c in cs}
        assert all(arrived[line.split("|")[0]] is False for line in dates[machine])
        assert all(arrived[line.split("|")[0]] is True for line in dates[other])


@pytest.mark.parametrize("change", ["an edit", "a deletion"])
def test_what_was_undone_does_not_undo_what_another_machine_did(
    ada: Machine, bob: Machine, remote: Path, change: str
) -> None:
    """It comes to nothing, and the other machine's edit is all that has happened."""
    memory = ada.remember("zero")
    settle([ada, bob])
    before = ada.path(memory).read_bytes()
    append(bob.path(memory), "by bob")
    bob.synced()
    if change == "an edit":
        append(ada.path(memory), "by ada")
    else:
        ada.path(memory).unlink()
    assert once(ada.settings, local=True).problem is None
    ada.path(memory).write_bytes(before)
    ada.remember("one")
    settle([ada, bob])
    for machine in (ada, bob):
        machine.restart()
    settle([ada, bob])
    assert ada.path(memory).read_bytes() == before + b"by bob\n"
    assert ada.files == bob.files == content_of(remote)


def test_what_was_forgotten_before_it_was_sent_stays_in_the_history(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """From where a person can bring it back, as they are told."""
    ada.remember("zero")
    settle([ada, bob])
    bob.remember("one")
    bob.synced()
    memory = ada.remember("two")
    assert once(ada.settings, local=True).problem is None
    ada.path(memory).unlink()
    settle([ada, bob])
    assert ada.files == bob.files == content_of(remote)
    told = git(remote, "log", "--format=%s", "main", "--", f"files/{memory.file_name}").splitlines()
    assert [line.split()[0] for line in told] == ["Forget", "Add"]


def test_a_new_machine_adds_nothing_to_the_history(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """What every machine begins with is there already, so there is nothing to join or to push."""
    ada.remember("one")
    ada.synced()
    tip = git(remote, "rev-parse", "main")
    bob.synced()
    assert bob.files == ada.files
    assert bob.git("rev-parse", "main") == tip
    assert git(remote, "rev-parse", "main") == tip


def test_what_a_new_machine_remembered_before_it_joined_is_kept(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """It has commits of its own then, and these are joined."""
    ada.remember("one")
    ada.synced()
    bob.remember("two")
    settle([bob, ada])
    assert len(bob.files) == 2
    assert bob.files == ada.files == content_of(remote)


@pytest.mark.slow
def test_two_edits_of_one_memory_are_joined_once(
    ada: Machine, bob: Machine, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A join that lost its race is made anew, not joined again; both versions are kept."""
    memory = ada.remember("zero")
    settle([ada, bob])
    start = git(remote, "rev-parse", "main")
    ada.path(memory).write_bytes(ada.path(memory).read_bytes() + b"by ada\n")
    bob.path(memory).write_bytes(bob.path(memory).read_bytes() + b"by bob\n")
    bob.synced()
    outrun_always(ada, bob, monkeypatch)
    for _ in range(2):
        ada.sync()
    monkeypatch.undo()
    settle([ada, bob])
    assert ada.files == bob.files == content_of(remote)
    texts = b"".join(ada.files.values())
    assert (texts.count(b"by ada"), texts.count(b"by bob")) == (1, 1)
    assert len(git(remote, "rev-list", "--merges", f"{start}..main").splitlines()) == 1


SIDES = st.dictionaries(
    st.sampled_from([b"files/a_1.md", b"files/b_2.md", b"files/c_3.md"]),
    st.one_of(st.none(), st.builds(Entry, st.just(b"100644"), st.sampled_from([b"1", b"2", b"3"]))),
)


@given(SIDES, SIDES)
def test_two_machines_that_join_apart_come_to_the_same(
    ours: dict[bytes, Entry | None], theirs: dict[bytes, Entry | None]
) -> None:
    """Whichever joins, and both if neither knows of the other's join: files and copies agree."""
    (mine, copies), (their, others) = union(ours, theirs), union(theirs, ours)
    assert {**ours, **mine} == {**theirs, **their}
    assert set(copies) == set(others)


def test_a_commit_by_a_person_is_joined_as_it_is(ada: Machine, bob: Machine, remote: Path) -> None:
    """What somebody committed by hand keeps its name in the history."""
    ada.remember("zero")
    settle([ada, bob])
    clone = ada.base.parent / "clone"
    git(clone.parent, "clone", "--quiet", str(remote), clone.name)
    (clone / "files" / "by hand.md").write_text("x")
    git(clone, "add", "-f", "files/by hand.md")
    as_person(clone, "commit", "--quiet", "-m", "My own words")
    mine = git(clone, "rev-parse", "HEAD")
    git(clone, "push", "--quiet")
    bob.remember("one")
    ada.remember("two")
    bob.synced()
    settle([ada, bob])
    assert content_of(remote) == ada.files == bob.files
    git(remote, "merge-base", "--is-ancestor", mine, "main")


def test_many_commits_are_joined_at_once(ada: Machine, bob: Machine, remote: Path) -> None:
    """Putting each on top of another machine's would take time for each, at every try."""
    ada.remember("zero")
    settle([ada, bob])
    start = git(remote, "rev-parse", "main")
    bob.remember("one")
    bob.synced()
    for number in range(30):
        ada.remember(f"{number}")
    settle([ada, bob])
    assert content_of(remote) == ada.files == bob.files
    assert len(git(remote, "rev-list", "--merges", f"{start}..main").splitlines()) == 1
