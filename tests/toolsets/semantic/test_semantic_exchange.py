"""Memories of `semantic` on several machines and days: exchanged as files, and backed up."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from aiaml_server.format.memory import parse
from aiaml_server.storage.store import Store
from aiaml_server.toolsets.semantic import backups, failures
from aiaml_server.toolsets.semantic.config import Config
from aiaml_server.toolsets.semantic.exchanging import exchange
from aiaml_server.toolsets.semantic.memories import Memories
from aiaml_server.toolsets.semantic.memory import Draft, instant_of
from client import PYTHON
from printed import inherited


class Machine:
    """A person's memories on one computer."""

    def __init__(self, place: Path) -> None:
        """Make a home."""
        place.mkdir()
        self.home = place
        self.store = Store(place / ".aiaml")
        self.memories = Memories(place / ".memory", None, None, Config())

    def sync(self) -> dict[str, int]:
        """Exchange with the files."""
        result = exchange(self.memories, self.store)
        assert result.skipped == []
        return dict(result.done)

    def contents(self) -> dict[str, tuple[str, ...]]:
        """Return the texts and their tags."""
        return {each.content: each.tags for each in self.memories.every()}


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Machine, Machine]]:
    """Two computers."""
    pair = Machine(tmp_path / "one"), Machine(tmp_path / "two")
    yield pair
    for each in pair:
        each.memories.close()


def carried(source: Machine, target: Machine) -> None:
    """Carry all files over, as git would where one side alone has changed."""
    shutil.rmtree(target.store.directory, ignore_errors=True)
    shutil.copytree(source.store.directory, target.store.directory)


def test_exchange_carries_new_changed_and_deleted(two: tuple[Machine, Machine]) -> None:
    """To the other machine and back; a second exchange does nothing."""
    one, two_ = two
    one.memories.store("Ada likes tea.", ["drink"], "HIGH", "fact")
    one.memories.store("Short answers.")
    assert one.sync() == {"written": 2} and one.sync() == {}
    carried(one, two_)
    assert two_.sync() == {"new": 2} and two_.sync() == {}
    assert one.contents() == two_.contents()
    first = next(each for each in two_.memories.every() if "tea" in each.content)
    assert (first.priority, first.category) == ("HIGH", "fact")
    assert first.created_at == one.memories.get("global:1").created_at
    two_.memories.update(first.id, "Ada likes green tea.", ["drink", "tea"])
    two_.memories.delete("global:2" if first.id == "global:1" else "global:1")
    assert two_.sync() == {"written": 1, "file deleted": 1}
    carried(two_, one)
    assert one.sync() == {"changed": 1, "deleted": 1}
    assert one.contents() == {"Ada likes green tea.": ("drink", "tea")}
    assert one.sync() == two_.sync() == {}
    again = one.memories.undo()  # what came from elsewhere is not final either
    assert [each.content for each in again] in (["Short answers."], ["Ada likes tea."])


def test_exchange_of_two_changes_keeps_the_later(two: tuple[Machine, Machine]) -> None:
    """Both changed, one offline: the later text everywhere, the earlier one in the history."""
    one, two_ = two
    one.memories.store("Deploys on Tuesdays.")
    one.sync()
    carried(one, two_)
    two_.sync()
    one.memories.update("global:1", "Deploys on Mondays.")
    time.sleep(0.01)
    two_.memories.update("global:1", "Deploys on Fridays.")
    two_.memories.store("Written offline.")
    one.sync()
    carried(one, two_)  # the file says Mondays, the database Fridays, which is later
    assert two_.sync() == {"written": 2}
    carried(two_, one)
    assert one.sync() == {"changed": 1, "new": 1}
    assert set(one.contents()) == {"Deploys on Fridays.", "Written offline."}
    assert one.contents() == two_.contents()
    assert [each.was["content"] for each in one.memories.history("global:1")] == [
        "Deploys on Mondays.",
        "Deploys on Tuesdays.",
    ]


def test_exchange_of_a_deletion_and_a_change_keeps_the_memory(
    two: tuple[Machine, Machine],
) -> None:
    """What was changed on one side is not deleted because the other side has."""
    one, two_ = two
    one.memories.store("Tea at four.")
    one.sync()
    carried(one, two_)
    two_.sync()
    one.memories.delete("global:1")
    two_.memories.update("global:1", "Tea at five.")
    assert one.sync() == {"file deleted": 1}
    carried(one, two_)
    assert two_.sync() == {"written": 1}
    carried(two_, one)
    assert one.sync() == {"new": 1} and set(one.contents()) == {"Tea at five."}


def test_exchange_brings_nothing_back_that_was_forgotten(two: tuple[Machine, Machine]) -> None:
    """Also where git has joined another machine's edit since, or kept it as a file of its own."""
    one, two_ = two
    one.memories.store("Tea at four.")
    one.sync()
    carried(one, two_)
    two_.sync()
    two_.memories.update("global:1", "Tea at five.")
    two_.sync()
    carried(two_, one)
    (name,) = one.store.names()
    text = one.store.present(name) or ""
    uid = parse(text).id
    copy = text.replace(f"id: {uid}", "id: abcd1234").replace("five", "six")
    (one.store.directory / "copy.md").write_text(copy, encoding="utf-8")
    one.memories.forget("global:1")
    assert one.sync() == {"file deleted": 2}
    assert one.contents() == {} and list(one.store.names()) == []
    carried(two_, one)  # the other machine has it still, and brings it once more
    assert one.sync() == {"file deleted": 1} and one.contents() == {}
    carried(one, two_)
    assert two_.sync() == {"deleted": 1} and two_.contents() == {}


def test_exchange_tells_apart_what_was_made_at_the_same_time(two: tuple[Machine, Machine]) -> None:
    """Two notes of one day, as an import dates them: none stands for the other, or goes with it."""
    one, two_ = two
    day = instant_of("2026-11-22")
    one.memories.store_all([Draft("Tea at four.", created=day), Draft("Cake.", created=day)])
    one.sync()
    carried(one, two_)
    two_.sync()
    two_.memories.store_all([Draft("Salt.", created=day)])
    assert two_.sync() == {"written": 1}
    carried(two_, one)
    assert one.sync() == {"new": 1} and set(one.contents()) == {"Tea at four.", "Cake.", "Salt."}
    one.memories.forget("global:1")
    assert one.sync() == {"file deleted": 1} and set(one.contents()) == {"Cake.", "Salt."}
    carried(one, two_)
    assert two_.sync() == {"deleted": 1} and set(two_.contents()) == {"Cake.", "Salt."}


def test_exchange_of_the_same_text_unites_it(two: tuple[Machine, Machine]) -> None:
    """Stored on each machine before they met: one memory and one file, the same on both."""
    one, two_ = two
    one.memories.store("The same.", ["a", "b"], "HIGH")
    two_.memories.store("The same.", ["b", "c"], category="fact")
    two_.memories.update("global:1", used=True)
    one.sync()
    two_.sync()
    for source, target in (two, two[::-1]):  # as git merges what both have added
        for path in source.store.directory.iterdir():
            shutil.copy(path, target.store.directory)
    for each in two:
        assert each.sync()["joined"] == 1 and each.sync() == {}
    files = [{path.name: path.read_bytes() for path in each.store.directory.iterdir()}
             for each in two]  # fmt: skip
    assert len(files[0]) == 1 and files[0] == files[1]
    ((held,), (other,)) = (list(each.memories.every()) for each in two)
    assert held.tags == other.tags and {*held.tags} == {"a", "b", "c"}
    assert (held.priority, held.category) == (other.priority, other.category) == ("HIGH", "fact")
    assert held.created_at == other.created_at and other.access_count == 1
    (again,) = one.memories.undo()
    assert again.tags == ("a", "b")


def test_exchange_of_the_same_text_before_the_first_one(two: tuple[Machine, Machine]) -> None:
    """A file that comes before the memory was ever written; a third machine has both."""
    one, two_ = two
    one.memories.store("The same.", ["a"])
    one.sync()
    carried(one, two_)
    two_.memories.store("The same.", ["b"])
    assert two_.sync()["joined"] == 1 and two_.sync() == {}
    (path,) = two_.store.directory.iterdir()
    carried(two_, one)
    one.sync()
    assert one.sync() == {} and one.contents() == two_.contents()
    text = path.read_text(encoding="utf-8").replace("topics: [", "topics: [z, ")
    for before, now in ((parse(text).id, "ffffffff"), (parse(text).timestamp, "2024-01-05")):
        text = text.replace(before, now)
    path.with_name("20240105_000000_ffffffff.md").write_text(text, encoding="utf-8")
    for each in two:
        shutil.rmtree(each.memories.home)
    third = Machine(two_.home.parent / "third")
    carried(two_, third)
    third.sync()
    assert third.sync() == {} and len(list(third.store.directory.iterdir())) == 1
    ((_, tags),) = third.contents().items()
    assert {*tags} == {"a", "b", "z"}
    third.memories.close()


def test_exchange_of_a_file_that_became_the_text_of_another(two: tuple[Machine, Machine]) -> None:
    """Whose memory was deleted here meanwhile: it is named, and the rest goes on."""
    one, _ = two
    one.memories.store("First.")
    one.memories.store("Second.")
    one.sync()
    one.memories.delete("global:1")
    for path in one.store.directory.iterdir():
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("First.", "Second."), encoding="utf-8")
    result = exchange(one.memories, one.store)
    assert [each.partition(": ")[2] for each in result.skipped] == ["global:2 has that text"]
    assert set(one.contents()) == {"Second."}


@pytest.mark.slow
def test_exchange_by_git_of_two_machines(tmp_path: Path) -> None:
    """With `aiaml semantic sync` and `aiaml sync` over a remote, both changed while apart."""
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", remote], check=True)
    aiaml = str(Path(PYTHON).with_name("aiaml.exe" if os.name == "nt" else "aiaml"))

    def machine(name: str) -> Callable[..., None]:
        home = tmp_path / name
        home.mkdir()
        environ = {
            **inherited("AIAML_", "XDG_", "GIT_"),
            **dict.fromkeys(("HOME", "USERPROFILE"), str(home)),
            "AIAML_GITHUB_REMOTE": str(remote),
        }

        def run(*words: str) -> None:
            done = subprocess.run(
                [aiaml, *words], env=environ, cwd=home, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr

        return run

    def met(run: Callable[..., None]) -> None:
        for words in (("semantic", "sync"), ("sync",), ("semantic", "sync")):
            run(*words)

    one, other = machine("one"), machine("two")
    one("semantic", "add", "Deploys on Tuesdays.")
    met(one)
    met(other)
    one("semantic", "edit", "global:1", "--content", "Deploys on Mondays.")
    other("semantic", "edit", "global:1", "--content", "Deploys on Fridays.")
    other("semantic", "add", "Written offline.")
    for run in (one, other, one, other):
        met(run)
    told = []
    for name in ("one", "two"):
        with closing(Memories(tmp_path / name / ".memory", None, None, Config())) as memories:
            told.append({each.content for each in memories.every()})
    assert told[0] == told[1] == {"Deploys on Fridays.", "Written offline."}


# --- backups --------------------------------------------------------------------------------------


def test_backup_of_each_day_and_restored(two: tuple[Machine, Machine]) -> None:
    """Three generations; what was there when one is restored is kept beside it."""
    memories = two[0].memories
    database = memories.databases["global"]
    assert backups.make(database) is None
    memories.store("Tea at four.")
    made = backups.make(database)
    assert made and backups.make(database) is None
    for day in ("2026-01-01", "2026-01-02", "2026-01-03"):
        shutil.copy(made, made.with_name(f"db-{day}"))
    made.unlink()
    memories.update("global:1", "X")
    assert backups.make(database)
    assert [each.name for each in backups.made(database)][1:] == ["db-2026-01-03", "db-2026-01-02"]
    memories.close()
    database.path.write_bytes(b"no database " * 1000)
    with pytest.raises(failures.Damaged, match="no database") as refused:
        memories.list()
    assert "`aiaml semantic restore`" in refused.value.suggestion
    taken, aside = backups.restore(database, "2026-01-03")
    assert taken.name == "db-2026-01-03" and aside and aside.read_bytes().startswith(b"no data")
    assert [each.content for each in memories.every()] == ["Tea at four."]
    with pytest.raises(failures.NotFound, match="no backup of 2020-01-01"):
        backups.restore(database, "2020-01-01")
    if os.name == "posix":
        assert made.parent.stat().st_mode & 0o777 == 0o700
        assert taken.stat().st_mode & 0o777 == 0o600


def test_backup_of_a_database_that_is_empty_is_named(two: tuple[Machine, Machine]) -> None:
    """A file of 0 bytes is no database without memories where there is a backup of one."""
    memories = two[0].memories
    database = memories.databases["global"]
    memories.close()
    database.path.parent.mkdir()
    database.path.touch()
    memories.store("Tea at four.")  # nothing was lost: there was never more
    made = backups.make(database)
    assert made
    memories.close()
    database.path.write_bytes(b"")
    day = made.name.removeprefix("db-")
    said = f"is empty; `aiaml semantic restore global {day}` puts {made} in its place"
    for call in (memories.list, lambda: memories.store("Coffee.")):
        with pytest.raises(failures.Damaged, match=re.escape(said)):
            call()
    assert backups.made(database) == [made] and database.path.read_bytes() == b""
    backups.restore(database, day)
    assert set(two[0].contents()) == {"Tea at four."}
    database.path.unlink()
    memories.store("Begun anew.")


def test_backups_hold_nothing_that_was_forgotten(two: tuple[Machine, Machine]) -> None:
    """They are made anew then."""
    memories = two[0].memories
    memories.store("The secret is zq17x.")
    memories.store("Tea at four.")
    assert backups.make(memories.databases["global"])
    memories.forget("global:1")
    files = [path for path in two[0].home.rglob("*") if path.is_file()]
    assert not any(b"zq17x" in path.read_bytes() for path in files)
    assert len(backups.made(memories.databases["global"])) == 1
