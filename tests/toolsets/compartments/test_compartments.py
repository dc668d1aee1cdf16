"""Run, session and plan memory: through the Python API and as tools."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aiaml_server import toolsets
from aiaml_server.errors import AiamlError
from aiaml_server.files import hold_lock, read_regular
from aiaml_server.toolsets.compartments import (
    Busy,
    Compartments,
    DiskError,
    InvalidInput,
    LimitExceeded,
    NotFound,
    cli,
)
from aiaml_server.toolsets.compartments import file as file_module
from loop_disk import memory_disk
from printed import completed
from steps import killed
from toolset_contract import Call, Contract

ALL = ("run", "session", "plan")


class TestContract(Contract):
    """What every toolset promises."""

    name = "compartments"

    def environ(self, place: Path) -> dict[str, str]:
        """A file in the test's directory."""
        return {"AIAML_COMPARTMENTS_FILE": str(place / "memory.json")}

    def story(self, call: Call) -> None:
        """An entry is saved, found, changed and cleared."""
        saved = call("save_memory", compartment="session", content="Invoices are in euros.")
        found = call("get_memory", compartment="session", query="which invoices?")
        assert saved["id"] in [entry["id"] for entry in found["entries"]]
        changed = call("save_memory", compartment="session", id=saved["id"], priority=8)
        assert changed == {"id": saved["id"], "created": False}
        assert call("clear_memory", compartment="session", id=saved["id"])["cleared"] == 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file will be."""
    return tmp_path / "memory.json"


# --- entries --------------------------------------------------------------------------------------


def test_an_entry_is_saved_found_changed_and_cleared(path: Path) -> None:
    """In each compartment; a change touches only what is given."""
    with Compartments(path) as memory:
        for name in ALL:
            saved = memory.save(name, "euros", category=" rule ", tags=["money", "money", " "])
            assert saved.created
            (entry,) = memory.get(name).entries
            assert (entry.content, entry.category, entry.tags) == ("euros", "rule", ("money",))
            assert (entry.priority, entry.access_count, entry.metadata) == (5, 1, {})
            assert memory.save(name, id=saved.id, metadata={"by": "Ada"}) == (saved.id, False)
            (entry,) = memory.get(name, id=saved.id).entries
            assert (entry.content, entry.metadata, entry.access_count) == (
                "euros",
                {"by": "Ada"},
                2,
            )
            assert entry.created_at < entry.updated_at
            assert memory.clear(name, id=saved.id) == [saved.id]
            assert memory.get(name) == ([], 0)


def test_filters_and_pages(path: Path) -> None:
    """All that is given must fit; without a query the most important and the newest come first."""
    with Compartments(path) as memory:
        for number in range(6):
            tags = ["even"] if number % 2 == 0 else ["odd"]
            metadata = {"n": str(number)}
            memory.save("plan", f"step {number}", tags=tags, metadata=metadata, priority=number + 1)
        even = memory.get("plan", tags=["EVEN"], limit=2)
        assert ([entry.content for entry in even.entries], even.total) == (["step 4", "step 2"], 3)
        (last,) = memory.get("plan", tags=["even"], limit=2, offset=2).entries
        assert last.content == "step 0"
        assert memory.get("plan", metadata={"n": "3"}, tags=["odd"]).total == 1
        assert memory.words("plan") == ([], ["even", "odd"])


def test_a_query_ranks(path: Path) -> None:
    """Rare words first; common words count for nothing, and a plural finds its singular."""
    with Compartments(path) as memory:
        memory.save("session", "The customer pays invoices in euros.")
        memory.save("session", "The customer is in Cologne.", category="address")
        memory.save("session", "Ask about fees.", priority=10)
        found = memory.get("session", query="Where is the customer of the invoice?").entries
        assert [entry.content[:20] for entry in found] == [
            "The customer pays in",
            "The customer is in C",
        ]
        assert memory.get("session", query="ADDRESSES").total == 0
        assert memory.get("session", query="addres").total == 1


def test_unicode_forms_are_compared_alike(path: Path) -> None:
    """Filters regard neither case nor form; a query regards no accents either."""
    with Compartments(path) as memory:
        for name in ("run", "session"):
            memory.save(name, "Cafe\u0301 in der Stra\u00dfe \U0001f680", tags=["Cafe\u0301"])
            memory.save(name, "\uff21\uff30\uff29", category="Re\u0301gle", tags=["\uff28"])
            for query in ("caf\u00e9", "CAFE", "strasse", "what is \U0001f680?"):
                assert memory.get(name, query=query).total == 1, query
            assert memory.get(name, query="api").total == 1
            assert memory.get(name, tags=["CAF\u00c9"]).total == 1
            assert memory.get(name, tags=["cafe"]).total == 0
            assert memory.get(name, tags=["h"], category="R\u00c9GLE ").total == 1
            assert len(memory.clear(name, category="r\u00e9gle")) == 1


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("compartment", {"compartment": "other", "content": "x"}),
    ("content", {"compartment": "run"}),
    ("content", {"compartment": "run", "content": " "}),
    ("content", {"compartment": "run", "content": 3}),
    ("tags", {"compartment": "run", "content": "x", "tags": "word"}),
    ("tags", {"compartment": "run", "content": "x", "tags": [3]}),
    ("tags", {"compartment": "run", "content": "x", "tags": [str(n) for n in range(101)]}),
    ("metadata", {"compartment": "run", "content": "x", "metadata": {"a": 1}}),
    ("priority", {"compartment": "run", "content": "x", "priority": 11}),
    ("priority", {"compartment": "run", "content": "x", "priority": True}),
    ("priority", {"compartment": "run", "content": "x", "priority": "8"}),
]


def test_wrong_values_are_named_and_change_nothing(path: Path) -> None:
    """The error says which parameter, and what it must be."""
    with Compartments(path) as memory:
        for name, values in WRONG:
            with pytest.raises(InvalidInput, match=rf"^{name}: must be "):
                memory.save(**values)
        for content, code in (("\x07", "0007"), ("a\x1b[0m", "001B"), ("a\ud83d", "D83D")):
            with pytest.raises(InvalidInput, match=f"content: contains the character U\\+{code}"):
                memory.save("run", content)
            with pytest.raises(InvalidInput, match=f"tags: contains the character U\\+{code}"):
                memory.save("run", "x", tags=[content])
        with pytest.raises(InvalidInput):
            memory.get("run", limit=0)
        with pytest.raises(InvalidInput):
            memory.get("run", offset=-1)
        filters: list[dict[str, Any]] = [{"id": ""}, {"category": ""}, {"tags": []}]
        for empty in filters:
            with pytest.raises(InvalidInput, match="leave it out to clear"):
                memory.clear("run", **empty)
        with pytest.raises(NotFound):
            memory.save("run", "x", id="0a1b2c3d")
        assert memory.usage()["run"].entries == 0
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"session": ""}, "session: must be"),
        ({"session": "a\nb"}, "session: must be"),
        ({"plan_scope": "x"}, "plan_scope: must be"),
        ({"limit": 0}, "limit: must be from 1"),
        ({"limit": {"rnu": 3}}, "limit: names 'rnu'; there are run, session, plan"),
    ]
    for arguments, message in wrong:
        with pytest.raises(InvalidInput, match=f"^{message}"):
            Compartments(path, **arguments)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(min_size=1), st.lists(st.text()), st.dictionaries(st.text(), st.text()))
def test_what_was_saved_comes_back(
    tmp_path: Path, content: str, tags: list[str], metadata: dict[str, str]
) -> None:
    """Byte for byte, from another process' view of the file; or it is refused."""
    path = tmp_path / "any.json"
    with Compartments(path, limit=10**6) as memory:
        memory.clear("session")
        try:
            memory.save("session", content, tags=tags, metadata=metadata)
        except InvalidInput:
            return
    with Compartments(path) as memory:
        (entry,) = memory.get("session").entries
    assert (entry.content, entry.metadata) == (content, metadata)
    assert list(entry.tags) == list(dict.fromkeys(filter(None, map(str.strip, tags))))


# --- scopes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["session", "run"])
def test_who_sees_what(scope: str, path: Path) -> None:
    """The run ends with its `with`; a sub-agent has its own; another session sees nothing."""
    with Compartments(path, plan_scope=scope) as memory:
        for name in ALL:
            memory.save(name, name)
        with Compartments(path, plan_scope=scope) as helper:
            totals = [helper.get(name).total for name in ALL]
        with Compartments(path, session="other", plan_scope=scope) as other:
            assert [other.get(name).total for name in ALL] == [0, 0, 0]
        assert [memory.get(name).total for name in ALL] == [1, 1, 1]
        memory.begin_run()
        assert memory.get("run").total == 0
    assert totals == [0, 1, 1 if scope == "session" else 0]
    with pytest.raises(InvalidInput, match="inside of the `with`"):
        memory.get("session")
    assert b'"run"' not in path.read_bytes()


def test_only_the_run_memory_goes_into_each_call(path: Path) -> None:
    """As text, in the order in which it was made; a change is announced."""
    changes: list[str] = []
    with Compartments(path, on_run_change=lambda: changes.append("x")) as memory:
        assert memory.run_text() == ""
        first = memory.save("run", "12 of 40\nare read.", category="progress", tags=["orders"])
        memory.save("run", "More.", priority=10)
        memory.save("session", "Euros.")
        lines = memory.run_text().splitlines()
        assert lines[:3] == [
            "Memory of this run:",
            f"- [{first.id}] progress: 12 of 40",
            "  are read. (orders)",
        ]
        assert len(lines) == 4
    assert len(changes) == 3  # the run began, and two entries


def test_a_full_compartment_refuses_and_names_what_could_go(path: Path) -> None:
    """Nothing is deleted; what becomes smaller always fits."""
    with Compartments(path, limit={"run": 30}) as memory:
        keep = memory.save("run", "x" * 15, priority=9)
        least = memory.save("run", "y" * 15, priority=1)
        with pytest.raises(LimitExceeded, match=rf"31 of 30 .*: {least.id} .*; {keep.id}"):
            memory.save("run", "z")
        with pytest.raises(LimitExceeded, match="alone has 31 characters"):
            memory.save("run", "z" * 31)
        memory.save("run", "y" * 14, id=least.id)
        memory.save("run", "z")
        assert memory.usage()["run"] == (3, 30, 30)
        memory.save("session", "z" * 31)
    with Compartments(path, limit=20) as memory:
        (large,) = memory.get("session").entries
        with pytest.raises(LimitExceeded):
            memory.save("session", "z" * 32, id=large.id)
        memory.save("session", "z" * 25, id=large.id)


# --- the file -------------------------------------------------------------------------------------


def test_the_file_is_private_and_keeps_what_it_does_not_know(path: Path) -> None:
    """Mode 0600; other keys, and other fields of entries; two entries of one id both stay."""
    entry = {"id": "a", "content": "x", "by": "another program"}
    value = {"format": 1, "note": "mine", "sessions": {"default": {"session": [entry, entry]}}}
    path.write_text(json.dumps(value), "utf-8")
    with Compartments(path) as memory:
        assert [entry.id for entry in memory.get("session").entries] == ["a", "a-2"]
        memory.save("session", "y")
    changed = json.loads(path.read_text("utf-8"))
    assert changed["note"] == "mine"
    assert changed["sessions"]["default"]["session"][0]["by"] == "another program"
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600


def test_an_invalid_entry_is_named_in_plain_words(path: Path) -> None:
    """With its session, compartment, number and field."""
    for entry, message in (
        ({"content": "x", "priority": 11}, "id: must be the id of an entry, as text"),
        ({"id": "a", "content": "x", "priority": 11}, "priority: must be a whole number from 1 to"),
        ({"id": "a", "content": "x", "access_count": "3"}, "access_count: must be a whole number"),
        ({"id": "a", "content": "x", "updated_at": 3}, "updated_at: must be a text"),
        ({"id": "a", "content": "\x07"}, "content: contains the character U+0007"),
    ):
        rows = [{"id": "0", "content": "x"}, entry]
        value = {"format": 1, "sessions": {"shop": {"plan": rows}}}
        path.write_text(json.dumps(value), encoding="utf-8")
        with Compartments(path) as memory, pytest.raises(DiskError) as caught:
            memory.get("plan")
        assert str(caught.value).startswith(f"{path}, session 'shop', plan, entry 2, {message}"), (
            entry
        )
        assert "\n" not in str(caught.value) and "pydantic" not in str(caught.value)


@pytest.mark.parametrize("data", [b"", b'{"format": 1, "sessions": {"default"', b'{"format":\xff'])
def test_a_damaged_file_is_kept_under_another_name(data: bytes, path: Path) -> None:
    """By the first change; reading leaves it alone. The person reads of each once."""
    path.write_bytes(data)
    with Compartments(path) as memory:
        assert memory.get("session").total == 0
        assert path.read_bytes() == data
        assert ["counts as empty" in notice for notice in memory.notices()] == [True]
        memory.save("session", "x")
        assert path.with_name("memory.json.damaged-1").read_bytes() == data
        assert ["kept as memory.json.damaged-1" in each for each in memory.notices()] == [True]
        assert memory.notices() == []


@pytest.mark.parametrize(
    "data",
    [
        b"alias ls='ls -l'\n",
        b"[1, 2]",
        b'["format"]',
        b"5",
        b' {"format": 1, "sessions": {"default"',
        b'\0"format": 1, "sessions": {}}',
        b'{"other": true}',
        b'{"format": 2}',
        b'{"format": 1, "sessions": {"default": {"plan": [{"id": "a", "content": 1}]}}}',
        b'{"format": 1, "sessions": []}',
        b'{"format": 1, "sessions": {"default": {"plan": ["a"]}}}',
    ],
)
def test_a_file_that_is_not_ours_is_left_alone(data: bytes, path: Path) -> None:
    """Another program's, of a later version, or with a wrong entry: an error, and no change.

    So is one that is damaged at its beginning, which may be another program's.
    """
    path.write_bytes(data)
    remedies = "(name another file in AIAML_COMPARTMENTS_FILE|correct it|use a later version)"
    with Compartments(path) as memory:
        for call in (lambda: memory.get("session"), lambda: memory.save("session", "x")):
            with pytest.raises(DiskError, match=rf"memory\.json.*{remedies}"):
                call()
        memory.save("run", "the run memory still works")
    assert path.read_bytes() == data
    assert list(path.parent.glob("memory.json*")) == [path]


@pytest.mark.skipif(os.name == "nt", reason="Windows gives another reason")
def test_what_is_no_file_is_named_with_a_remedy(tmp_path: Path) -> None:
    """Such as a directory, and the root, which has no name."""
    for place in (tmp_path, Path("/")):
        with Compartments(place) as memory:
            for call in (lambda: memory.get("session"), lambda: memory.save("session", "x")):
                with pytest.raises(
                    DiskError, match=r"it is a directory\. .*another file in AIAML_"
                ):
                    call()
        command = [sys.executable, "-m", "aiaml_server", "compartments", "--file", str(place)]
        shown = completed([*command, "show"])
        assert shown.returncode == 2 and "it is a directory" in shown.stderr


def test_reading_looks_at_the_stamp_only(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is read again only after it has changed; a change of others is seen."""
    with Compartments(path) as memory:
        memory.save("session", "x")
        memory.get("session")
        reads: list[str] = []

        def counted(name: str, limit: int) -> bytes:
            reads.append(name)
            return read_regular(name, limit)

        monkeypatch.setattr(file_module, "read_regular", counted)
        for _ in range(5):
            memory.get("session")
        assert reads == []
        with Compartments(path) as other:
            other.save("session", "y")
        reads.clear()
        assert memory.get("session").total == 2
        assert len(reads) == 1


WRITER = """
import sys
from aiaml_server.toolsets.compartments import Compartments
with Compartments(sys.argv[1], limit=10**6) as memory:
    for number in range(int(sys.argv[3])):
        memory.save("session", f"{sys.argv[2]}-{number}")
        print(number, flush=True)
"""


def test_several_processes_lose_nothing(path: Path) -> None:
    """Four at a time save ten entries each."""
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = [subprocess.Popen([*command, name, "10"]) for name in "abcd"]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    with Compartments(path) as memory:
        contents = {entry.content for entry in memory.get("session").entries}
    assert contents == {f"{name}-{number}" for name in "abcd" for number in range(10)}


@pytest.mark.skipif(os.name == "nt", reason="kills are signals")
def test_a_kill_leaves_a_whole_file(path: Path) -> None:
    """What was acknowledged is there, and the run memory of the killed process is nowhere."""
    for kill_after in (1, 3, 5):
        command = [sys.executable, "-c", WRITER, str(path), f"k{kill_after}", "1000"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(kill_after):
                writer.stdout.readline()
            writer.kill()
        with Compartments(path, limit=10**6) as memory:
            contents = {entry.content for entry in memory.get("session").entries}
            assert {f"k{kill_after}-{number}" for number in range(kill_after)} <= contents
            memory.save("session", "goes on")


def test_a_change_replaces_the_file(path: Path) -> None:
    """It is never written in place, where a kill would leave a part."""
    with Compartments(path) as memory:
        memory.save("session", "x")
        before = path.read_bytes()
        os.link(path, path.with_name("linked"))
        memory.save("session", "y")
        memory.clear("session")
    assert path.with_name("linked").read_bytes() == before != path.read_bytes()


SAVING = """
import sys
from aiaml_server.toolsets.compartments import Compartments
with Compartments(sys.argv[1]) as memory:
    for number in range(2):
        print(memory.save("session", f"entry {number}").id, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills are signals")
def test_a_kill_at_each_step_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """Before each opening, sync and rename of two changes, with a file that was there before."""
    path = tmp_path / "disk" / "memory.json"
    kills = 0
    path.parent.mkdir()
    for acknowledged in killed(SAVING, path.parent, [str(path)]):
        with Compartments(path) as memory:
            stored = {entry.id for entry in memory.get("session").entries}
            assert set(acknowledged) <= stored and len(stored) <= 2
            assert memory.notices() == []
        for each in path.parent.iterdir():
            each.unlink()
        kills += 1
    assert kills > 8


@pytest.mark.slow
def test_seventy_two_writers_lose_nothing(path: Path) -> None:
    """Eight processes with nine threads each, every thread with its own `Compartments`."""
    writers = [
        subprocess.Popen([sys.executable, "-c", THREADS, str(path), str(n)]) for n in range(8)
    ]
    assert [writer.wait(150) for writer in writers] == [0] * 8
    with Compartments(path) as memory:
        contents = {entry.content for entry in memory.get("session").entries}
    assert contents == {f"{p}-{t}-{n}" for p in range(8) for t in range(9) for n in range(3)}


THREADS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from aiaml_server.toolsets.compartments import Busy, Compartments
def write(thread):
    with Compartments(sys.argv[1]) as memory:
        for number in range(3):
            while True:
                try:
                    memory.save("session", f"{sys.argv[2]}-{thread}-{number}")
                    break
                except Busy:
                    pass
with ThreadPoolExecutor(9) as pool:
    list(pool.map(write, range(9)))
"""


@pytest.mark.slow
def test_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    """A real one: the error says so, what was acknowledged stays, and room makes it go on."""
    with memory_disk(tmp_path / "disk", "size=64k") as place:
        path = place / "memory.json"
        with Compartments(path, limit=10**6) as memory:
            saved: list[str] = []

            def fill() -> None:
                saved.extend(memory.save("session", "x" * 4_000).id for _ in range(99))

            with pytest.raises(DiskError, match=r"no space left .*\. Free some space, .*FILE$"):
                fill()
            assert [entry.id for entry in memory.get("session", limit=99).entries] == saved[::-1]
            memory.clear("session", id=saved[0])
            assert memory.save("session", "y").created
        assert sorted(each.name for each in place.iterdir()) == ["memory.json", "memory.json.lock"]


def test_a_disk_that_refuses_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is DiskError, and the next change succeeds."""
    with Compartments(path) as memory:
        memory.save("session", "x")
        before = path.read_bytes()

        def refuse(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", refuse)
        with pytest.raises(DiskError):
            memory.save("session", "y")
        monkeypatch.undo()
        assert path.read_bytes() == before
        assert memory.get("session").total == 1
        memory.save("session", "z")
        assert memory.get("session").total == 2


def test_what_cannot_be_written_can_be_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that only reads ends without an error where accesses cannot be counted."""
    with Compartments(path) as memory:
        memory.save("session", "x")

    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(file_module, "hold_lock", refuse)
    with Compartments(path) as memory:
        assert memory.get("session").total == 1
        with pytest.raises(DiskError, match="read-only file system"):
            memory.save("session", "y")


def test_a_file_that_would_be_too_large_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a remedy; the file stays, and can be read."""
    monkeypatch.setattr(file_module, "MAX_FILE_BYTES", 1_000)
    with Compartments(path) as memory:
        saved = memory.save("session", "x" * 500)
        with pytest.raises(DiskError, match=r"and the limit is 1,000; clear what is no longer"):
            memory.save("session", "y" * 500)
        assert [entry.id for entry in memory.get("session").entries] == [saved.id]
        memory.clear("session")
        assert memory.save("session", "y" * 500).created


def test_a_removed_file_is_begun_anew(path: Path) -> None:
    """While it is in use: the person reads of it once."""
    with Compartments(path) as memory:
        memory.save("session", "x")
        assert memory.get("session").total == 1
        path.unlink()
        assert memory.get("session").total == 0
        assert memory.notices() == [f"{path} was removed; a new file is begun"]
        memory.save("session", "y")
        assert memory.get("session").total == 1 and memory.notices() == []


def test_threads_of_one_run_lose_nothing(path: Path) -> None:
    """A change waits for the one that another thread has begun."""
    with Compartments(path) as memory:
        for name in ALL:
            memory.save(name, "old", tags=["old"])
            saving = threading.Thread(target=memory.save, args=(name, "new"))

            class Tags(list[str]):
                """Tags, at whose reading another thread saves."""

                def __iter__(self) -> Iterator[str]:
                    saving.start()  # noqa: B023 (used in this round only)
                    saving.join(0.3)  # noqa: B023
                    return super().__iter__()

            memory.clear(name, tags=Tags(["old"]))
            saving.join()
            assert [entry.content for entry in memory.get(name).entries] == ["new"]


def test_a_lock_that_stays_held_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Busy, and nothing is written."""
    monkeypatch.setattr(file_module, "LOCK_SECONDS", 0.0)
    with Compartments(path) as memory:
        memory.save("session", "x")
        with hold_lock(path.with_name("memory.json.lock"), 0), pytest.raises(Busy):
            memory.save("session", "y")
        assert memory.get("session").total == 1


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_a_planted_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path must not lead elsewhere; an absolute one is the person's own choice."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    Path(".aiaml-compartments.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(InvalidInput):
        Compartments()
    manifest = toolsets.manifest("compartments")
    with pytest.raises(AiamlError, match="AIAML_COMPARTMENTS_FILE"):
        manifest.read_settings({})
    with Compartments(tmp_path / "work" / ".aiaml-compartments.json") as memory:
        memory.save("session", "x")
    assert (tmp_path / "elsewhere.json").exists()


def test_a_relative_path_stays_below_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no `..`, which a link before it would change; an absolute path may have some."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    manifest = toolsets.manifest("compartments")
    for name in ("../x.json", "below/../x.json"):
        with pytest.raises(InvalidInput, match="absolute path"):
            Compartments(name)
        with pytest.raises(AiamlError, match=r"AIAML_COMPARTMENTS_FILE.*absolute path"):
            manifest.read_settings({"AIAML_COMPARTMENTS_FILE": name})
    assert manifest.read_settings({"AIAML_COMPARTMENTS_FILE": f"{tmp_path}/store/../x.json"})


# --- settings, tools and commands -----------------------------------------------------------------

BAD_SETTINGS = [
    ("AIAML_SESSION", "a\nb"),
    ("AIAML_PLAN_SCOPE", "project"),
    ("AIAML_COMPARTMENT_LIMIT", "0"),
    ("AIAML_COMPARTMENT_LIMIT", "many"),
    ("AIAML_COMPARTMENT_LIMIT", "page=3"),
]


def test_settings(tmp_path: Path) -> None:
    """One limit for all, or for some; a wrong one is a sentence that names the variable."""
    manifest = toolsets.manifest("compartments")
    environ = {"AIAML_COMPARTMENTS_FILE": str(tmp_path / "x.json")}
    values = manifest.read_settings({**environ, "AIAML_COMPARTMENT_LIMIT": "9,run=2000"})
    assert values["AIAML_COMPARTMENT_LIMIT"] == {"run": 2000, "session": 9, "plan": 9}
    for name, value in BAD_SETTINGS:
        with pytest.raises(AiamlError, match=name):
            manifest.read_settings({**environ, name: value})


def test_the_tools_are_plain_functions(path: Path) -> None:
    """With a JSON schema each; an error is a value; a secret is named and never shown."""
    with Compartments(path) as memory:
        functions = {function.name: function for function in memory.functions()}
        assert list(functions) == ["save_memory", "get_memory", "clear_memory"]
        assert functions["save_memory"].parameters["required"] == ["compartment"]
        save, get = functions["save_memory"].call, functions["get_memory"].call
        assert save(compartment="run", content="x", tags=["a"])["created"] is True
        found = get(compartment="run", query="nothing")
        assert found["there_are"] == {"categories": [], "tags": ["a"]}
        assert save(compartment="run", content="x", priority=11)["error"] == "InvalidInput"
        assert save(compartment="run", content="x", id="0")["error"] == "NotFound"
        assert "must be a list" in save(compartment="run", content="x", tags=3)["message"]
        (warning,) = save(compartment="run", content="password: horse-battery-7")["warnings"]
        assert "seems to hold a password" in warning
        assert "horse" not in warning


def test_the_commands_show_and_clear(path: Path) -> None:
    """What sessions and plans hold, also as JSON; nothing is cleared without a yes."""
    with Compartments(path, session="shop") as memory:
        memory.save("session", "Euros.\x09", category="rule", tags=["money"])
        memory.save("plan", "Step.")
    command = [sys.executable, "-m", "aiaml_server", "compartments", "--file", str(path)]
    shown = completed([*command, "show"]).stdout
    assert "shop / session" in shown
    assert "Euros." in shown
    (row,) = json.loads(completed([*command, "show", "plan", "--json"]).stdout)
    assert (row["session"], row["compartment"], row["content"]) == ("shop", "plan", "Step.")
    assert completed([*command, "clear", "plan", "--session", "shop"]).returncode != 0
    for said in ("Deleted 1.", "There is nothing to clear."):
        done = completed([*command, "clear", "plan", "--session", "shop", "--yes"])
        assert (done.returncode, done.stderr.strip()) == (0, said)
    assert json.loads(completed([*command, "show", "--json"]).stdout)[0]["content"].startswith(
        "Eur"
    )
    with Compartments(path, session="shop") as memory:
        memory.save("plan", "Step.")
    named = completed(
        [*command, "clear", "plan", "--yes"], env={**os.environ, "AIAML_SESSION": "shop"}
    )
    assert (named.returncode, named.stderr.strip()) == (0, "Deleted 1.")
    path.write_bytes(b'{"format": 9}')
    assert completed([*command, "show"]).returncode == 2
    path.write_bytes(b'{"format": 1, "sess')
    damaged = completed([*command, "show"])
    assert (damaged.returncode, damaged.stdout) == (1, "") and "is damaged" in damaged.stderr
    (finding,) = cli.doctor_findings({"AIAML_COMPARTMENTS_FILE": str(path)})
    assert finding.level == "error" and "is damaged" in finding.found
