"""The toolset `compartments`: run, session and plan memory, as an API and over MCP."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from unittest import mock

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client as SdkClient

from aiaml_server import timestamps
from aiaml_server.errors import InvalidInput, InvalidSetting
from aiaml_server.files import Lock
from aiaml_server.server.arguments import Arguments
from aiaml_server.server.protocol import Server
from aiaml_server.toolsets import manifest
from aiaml_server.toolsets.compartments import (
    Busy,
    Compartments,
    DiskError,
    LimitExceeded,
    NotFound,
)
from client import Client
from printed import completed
from steps import killed, steps
from toolset_contract import HOSTILE, Call, Contract

ALL = ("run", "session", "plan")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file is."""
    return tmp_path / "memory.json"


class TestContract(Contract):
    """What every toolset promises."""

    name = "compartments"

    def environ(self, place: Path) -> dict[str, str]:
        """A file in the test's directory."""
        return {"AIAML_COMPARTMENTS_FILE": str(place / "memory.json")}

    def story(self, call: Call) -> None:
        """Save, get and clear in each compartment."""
        for compartment in ALL:
            saved = call("save_memory", compartment=compartment, content="tea", tags=["drink"])
            found = call("get_memory", compartment=compartment, query="TEA")
            assert saved["id"] in [each["id"] for each in found["entries"]]
            cleared = call("clear_memory", compartment=compartment, id=saved["id"])
            assert cleared == {"cleared": 1, "ids": [saved["id"]]}


# --- the operations -------------------------------------------------------------------------------


@pytest.mark.parametrize("compartment", ALL)
def test_an_entry_is_saved_found_changed_and_cleared(compartment: str, path: Path) -> None:
    """With all that the specification's entry has."""
    with Compartments(path) as memory:
        saved = memory.save(
            compartment, "Tea.", category="drink", tags=["hot", "hot", " "], metadata={"a": "b"}
        )
        assert saved.created
        (entry,) = memory.get(compartment, id=saved.id).entries
        assert (entry.content, entry.category, entry.tags) == ("Tea.", "drink", ("hot",))
        assert (entry.metadata, entry.priority, entry.access_count) == ({"a": "b"}, 5, 1)
        assert entry.created_at == entry.updated_at
        assert memory.save(compartment, id=saved.id, priority=9) == (saved.id, False)
        (changed,) = memory.get(compartment).entries
        assert changed.content == "Tea." and changed.priority == 9
        assert changed.created_at == entry.created_at < changed.updated_at
        assert memory.clear(compartment) == 1
        assert memory.get(compartment).total == 0


def test_an_update_may_take_things_away(path: Path) -> None:
    """Empty values are values; only what is not given stays."""
    with Compartments(path) as memory:
        saved = memory.save("plan", "x", category="c", tags=["t"], metadata={"a": "b"})
        memory.save("plan", id=saved.id, category="", tags=[], metadata={})
        (entry,) = memory.get("plan").entries
        assert (entry.category, entry.tags, entry.metadata) == ("", (), {})


def test_filters_join_and_pages_have_totals(path: Path) -> None:
    """All tags; every word, anywhere, in any case; best, then most important, then newest."""
    with Compartments(path) as memory:
        for number in range(5):
            memory.save("session", f"Tea {number}", tags=["a", f"n{number}"], priority=number + 1)
        memory.save("session", "tea tea TEA", category="best", metadata={"Where": "Kyoto"})
        found = memory.get("session", query="tea", limit=2, offset=1)
        assert found.total == 6
        assert [each.content for each in found.entries] == ["Tea 4", "Tea 3"]
        assert memory.get("session", query="tea").entries[0].content == "tea tea TEA"
        assert memory.get("session", tags=["a", "n3"]).total == 1
        assert memory.get("session", tags=["a", "other"]).total == 0
        assert memory.get("session", category="best", query="kyoto where").total == 1
        assert memory.get("session", query="coffee").total == 0
        assert memory.get("session", category="BEST", tags=[], metadata={"Where": "Kyoto"}).total
        assert memory.get("session", tags=["A", "N3"]).total == 1
        assert memory.get("session", metadata={"Where": "Osaka"}).total == 0
        assert memory.get("session", id="none").entries == []
        assert memory.clear("session", tags=["a"]) == 5


@pytest.mark.parametrize("wrong", [
    {"content": ""}, {"content": " \n"}, {"content": 5}, {"content": "x", "priority": 0},
    {"content": "x", "priority": 11}, {"content": "x", "priority": True},
    {"content": "x", "tags": "word"}, {"content": "x", "tags": [5]},
    {"content": "x", "metadata": {"a": 5}}, {"content": "x", "metadata": []}, {},
    {"content": "x", "category": 5}, {"content": "x", "tags": [str(n) for n in range(101)]},
])  # fmt: skip
def test_wrong_values_change_nothing(wrong: dict[str, Any], path: Path) -> None:
    """Each is an error that names the parameter."""
    with Compartments(path) as memory:
        with pytest.raises(InvalidInput) as refused:
            memory.save("session", **wrong)
        assert refused.value.field in (*wrong, "content")
        assert not path.exists()
        with pytest.raises(InvalidInput):
            memory.save("other", "x")


@pytest.mark.parametrize("kind", ["list", "objects", "words", "metadata", "texts"])
def test_too_many_values_are_refused_unseen(kind: str, tmp_path: Path) -> None:
    """By the server, the functions and the verb."""
    path = tmp_path / "m.json"
    values: dict[str, Any] = {
        "list": [["a"]] * 150_000,
        "objects": [{"path": "a"}] * 150_000,
        "words": ["a"] * 750_000,
        "metadata": {str(each): {} for each in range(150_000)},
        "texts": {str(each): "a" for each in range(150_000)},
    }
    name = "metadata" if kind in ("metadata", "texts") else "tags"
    given = {"compartment": "run", "content": "x", name: values[kind]}
    calls: list[Any] = [Arguments(built(path).tools[0]).read]
    with Compartments(path) as memory:
        save = memory.tools()[0].call
        calls += [lambda each: save(**each), lambda each: memory.save(**each)]
        for call in calls:
            try:
                answer = call(given)["message"]
            except InvalidInput as error:
                answer = str(error)
            assert answer.startswith(f"{name}: must be ") and len(answer) < 200


def test_refusal_shows_the_beginning_of_a_wrong_value(path: Path) -> None:
    """A value of megabytes is told by its first 80 characters."""
    with Compartments(path) as memory:
        long = "x" * 3_000_000
        save, _, _ = memory.tools()
        wrong = {"id": long}, {"compartment": long}, {"category": f"{long}\0"}, {long: 5}
        for each in wrong:
            answer = save.call(**{"compartment": "run", "content": "y", **each})
            assert "error" in answer and len(answer["message"]) < 200, answer["message"][:300]


@pytest.mark.parametrize(("wrong", "said"), [
    ({"content": "x" * 3_000_000}, "content: with it the session memory"),
    ({"content": " "}, "content: must be"),
    ({"content": "a\0"}, "content: holds U+0000"),
    ({"access_count": 10**30}, "access_count: must be"),
    ({"access_count": -1}, "access_count: must be"),
    ({"priority": -9}, "priority: must be"),
    ({"priority": "5"}, "priority: must be"),
    ({"tags": ["a"] * 5_000}, "tags: must be"),
    ({"tags": "word"}, "tags: must be"),
    ({"metadata": {"a": 5}}, "metadata: must be"),
    ({"category": 5}, "category: must be"),
    ({"id": "x" * 5_000}, "id: must be"),
    ({"id": ""}, "id: must be"),
    ({"created_at": "yesterday"}, "created_at: must be"),
    ({"expires_at": "x" * 5_000}, "expires_at: must be"),
    ({"session": "x" * 5_000}, "names no compartment, or no session"),
])  # fmt: skip
def test_import_takes_what_save_takes(wrong: dict[str, Any], said: str, path: Path) -> None:
    """A line that is not so is named with its field and rule, and nothing is stored."""
    with Compartments(path) as memory:
        memory.save("session", "there")
    before = path.read_bytes()
    words = [sys.executable, "-m", "aiaml_server", "compartments", "--file", str(path)]
    good = json.loads(completed([*words, "export"]).stdout)
    lines = [{**good, "id": each} for each in ("0a1b2c3d", "0a1b2c3e")]
    lines[1] |= wrong
    archive = path.with_name("archive.jsonl")
    archive.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    done = completed([*words, "import", str(archive)])
    shown = " ".join(done.stderr.split())
    assert done.returncode == 2 and "line 2" in shown and said in shown, done.stderr
    assert len(shown) < 400 and path.read_bytes() == before
    archive.write_text(json.dumps(lines[0]), "utf-8")
    assert completed([*words, "import", str(archive)]).returncode == 0
    with Compartments(path) as memory:
        assert len(memory.get("session").entries) == 2


@pytest.mark.parametrize(("name", "values"), [
    ("limit", ["5", None, 0, -1, True, 5.0, 10**12, [], {"run": "x"}, {"run": 0}, {"bad": 5},
               {"run": True}, {5: 5}]),
    ("session", [5, None, "", "x" * 5_000, "a\nb", "\x1b[0m", "\ud800"]),
    ("plan_scope", ["forever", None, [], 5, ""]),
    ("path", [None, 5, "", "a\0b", b"memory.json"]),
    ("changed", [5, "x"]),
])  # fmt: skip
def test_wrong_arguments_are_refused_at_once(name: str, values: list[Any], path: Path) -> None:
    """As the variables refuse them, and by their name."""
    for value in values:
        with pytest.raises(InvalidInput) as refused:
            Compartments(**{"path": path, name: value})
        assert refused.value.field == name, value
    Compartments(path, limit={"run": 10**12 - 1}, session="x" * 200)
    Compartments(os.fspath(path), limit={})


@pytest.mark.parametrize("scope", ["session", "run"])
def test_there_is_no_memory_outside_of_a_run(scope: str, path: Path) -> None:
    """Before its beginning and after its end all is refused, and nothing stays in the file."""
    memory = Compartments(path, plan_scope=scope)
    save, get, clear = memory.tools()

    def refused() -> None:
        for compartment in ALL:
            for call in (
                lambda name: memory.save(name, "x"),
                memory.get,
                memory.clear,
            ):
                with pytest.raises(InvalidInput, match="inside of the `with`"):
                    call(compartment)
            for tool in (save, get, clear):
                assert tool.call(compartment=compartment)["error"] == "InvalidInput"
        with pytest.raises(InvalidInput, match="inside of the `with`"):
            memory.run_text()

    refused()
    assert not path.exists()
    with memory:
        memory.save("run", "x")
        memory.save("plan", "y")
    before = path.read_bytes()
    refused()
    assert path.read_bytes() == before and json.loads(before)["runs"] == {}
    with memory:  # it may begin again
        assert memory.get("run").total == 0


def test_what_its_failures_are_can_be_imported_from_one_place() -> None:
    """Also the one that all of the program has."""
    import aiaml_server.compartments as found
    from aiaml_server.toolsets import compartments

    assert found.__all__ == [each for each in compartments.__all__ if each != "MANIFEST"]
    assert all(getattr(found, each) is getattr(compartments, each) for each in found.__all__)
    assert compartments.InvalidInput is InvalidInput
    assert {"InvalidInput", "NotFound", "LimitExceeded", "Busy", "DiskError"} <= set(
        compartments.__all__
    )
    for each in compartments.__all__:
        assert getattr(compartments, each)


@pytest.mark.parametrize("empty", [{"id": ""}, {"category": ""}, {"tags": []},
    {"category": " "}, {"tags": [" "]},
])  # fmt: skip
def test_an_empty_filter_clears_nothing(empty: dict[str, Any], path: Path) -> None:
    """It might mean all or nothing."""
    with Compartments(path) as memory:
        memory.save("session", "x")
        with pytest.raises(InvalidInput, match="must not be empty"):
            memory.clear("session", **empty)
        assert memory.get("session").total == 1


def test_an_id_that_is_not_there_is_not_made(path: Path) -> None:
    """Also not one of another compartment."""
    with Compartments(path) as memory:
        saved = memory.save("session", "x")
        for compartment in ("run", "plan"):
            with pytest.raises(NotFound):
                memory.save(compartment, "y", id=saved.id)


# --- runs, sessions, plans ------------------------------------------------------------------------


def test_a_run_s_memory_ends_with_it(path: Path) -> None:
    """The session's and the plan's stay."""
    with Compartments(path) as memory:
        for compartment in ALL:
            memory.save(compartment, compartment)
    with Compartments(path) as memory:
        assert [memory.get(each).total for each in ALL] == [0, 1, 1]
    assert json.loads(path.read_text("utf-8"))["runs"] == {}
    assert [each.name for each in path.parent.iterdir() if "run" in each.name] == []


def test_a_sub_agent_sees_session_and_plan_but_not_the_run(path: Path) -> None:
    """Nor does another session see any of it."""
    with Compartments(path) as memory, Compartments(path) as helper:
        for compartment in ALL:
            memory.save(compartment, compartment)
        assert [helper.get(each).total for each in ALL] == [0, 1, 1]
        with Compartments(path, session="other") as other:
            assert [other.get(each).total for each in ALL] == [0, 0, 0]


def test_a_plan_may_be_the_run_s(path: Path) -> None:
    """Then it ends with the run."""
    with Compartments(path, plan_scope="run") as memory, Compartments(path) as helper:
        memory.save("plan", "x")
        assert helper.get("plan").total == 0
    with Compartments(path, plan_scope="run") as memory:
        assert memory.get("plan").total == 0


RUN = """
import sys, time
from aiaml_server.toolsets.compartments import Compartments
with Compartments(sys.argv[1]) as memory:
    memory.save("run", "mine")
    memory.save("session", "ours")
    print("saved", flush=True)
    sys.stdin.read()
"""


def running(path: Path) -> subprocess.Popen[str]:
    """Start a run that lasts until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout and process.stdout.readline() == "saved\n"
    return process


def test_what_a_killed_run_left_is_cleared_and_a_living_one_s_is_not(path: Path) -> None:
    """By whoever opens next."""
    with running(path) as dead, running(path) as living:
        assert len(json.loads(path.read_text("utf-8"))["runs"]) == 2
        dead.kill()
        dead.wait()
        with Compartments(path) as memory:
            assert len(json.loads(path.read_text("utf-8"))["runs"]) == 1
            assert memory.get("session").total == 2
        assert living.stdin
        living.stdin.close()
        assert living.wait(60) == 0
    assert json.loads(path.read_text("utf-8"))["runs"] == {}


# --- limits ---------------------------------------------------------------------------------------


def test_what_would_exceed_the_limit_is_refused(path: Path) -> None:
    """Content, category, tags and metadata count; the answer says what can go."""
    with Compartments(path, limit=100) as memory:
        first = memory.save("session", "x" * 40, category="cc", tags=["tt"], metadata={"m": "v"})
        second = memory.save("session", "y" * 40, priority=1)
        assert memory.usage()["session"] == (2, 86, 100)
        with pytest.raises(LimitExceeded) as refused:
            memory.save("session", "z" * 15)
        error = refused.value
        assert (error.used, error.allowed, error.asked) == (86, 100, 101)
        assert [each.id for each in error.oldest] == [second.id]
        for part in ("86", "100", "101", second.id, "clear_memory"):
            assert part in str(error)
        memory.save("session", "z" * 14)
        memory.save("run", "z" * 100)
        memory.save("session", id=first.id, content="shorter")


def test_limits_may_differ(path: Path) -> None:
    """And what is over a limit that was lowered can still be made smaller."""
    with Compartments(path) as memory:
        saved = memory.save("plan", "x" * 500)
    with Compartments(path, limit={"plan": 100}) as memory:
        memory.save("plan", "y" * 200, id=saved.id)
        with pytest.raises(LimitExceeded):
            memory.save("plan", "z")
        memory.save("session", "x" * 9_999)


def test_limit_content_alone(path: Path) -> None:
    """What can never fit says so, and names nothing that should go."""
    with Compartments(path, limit=100) as memory:
        kept = memory.save("session", "x" * 30, priority=9)
        for name in (None, kept.id):
            with pytest.raises(LimitExceeded, match=r"alone has 200 .* holds 100") as e:
                memory.save("session", "y" * 200, id=name)
            assert e.value.oldest == () and kept.id not in str(e.value)


@given(
    sizes=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 10)), min_size=1, max_size=6),
    asked=st.integers(1, 100),
    changed=st.booleans(),
)
def test_limit_names_what_suffices(
    sizes: list[tuple[int, int]],
    asked: int,
    changed: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Without all that is named the entry fits, without all but one it does not; never itself."""
    path = tmp_path_factory.mktemp("file") / "memory.json"
    with Compartments(path, limit=240) as memory:
        ids = [memory.save("plan", "x" * size, priority=rank).id for size, rank in sizes]
    target = ids[0] if changed else None
    with Compartments(path, limit=100) as memory:
        refused: list[LimitExceeded] = []
        try:
            memory.save("plan", "y" * asked, id=target)
        except LimitExceeded as error:
            refused.append(error)
        for told in refused:
            named = [each.size for each in told.oldest]
            missing = told.asked - told.allowed
            assert sum(named) >= missing > sum(named) - min(named)
            assert target not in [each.id for each in told.oldest]
            assert f"{missing} are missing" in str(told)
            for each in told.oldest:
                assert each.id in str(told)
                memory.clear("plan", id=each.id)
            memory.save("plan", "y" * asked, id=target)


# --- what a text may hold -------------------------------------------------------------------------

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.binary(max_size=3)
    | st.text(st.characters(), max_size=6) | st.sampled_from(["session", "run", "\ud83d", "a\0b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner)
    | st.tuples(inner) | st.frozensets(st.text(max_size=3), max_size=2),
    max_leaves=4,
)  # fmt: skip
VERBS: dict[str, tuple[str, ...]] = {
    "save": ("content", "id", "category", "tags", "metadata", "priority", "expires"),
    "get": ("id", "category", "tags", "metadata", "query", "limit", "offset"),
    "clear": ("id", "category", "tags"),
    "words": (),
}


@pytest.mark.slow
@given(data=st.data())
def test_any_values_are_refused_or_do_no_harm(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Of every verb and function: a failure that names the field, and a run that can go on."""
    path = tmp_path_factory.mktemp("file") / "memory.json"
    with Compartments(path) as memory:
        tools = dict(zip(("save", "get", "clear"), memory.tools(), strict=True))
        for _ in range(4):
            verb = data.draw(st.sampled_from([*VERBS]))
            names = data.draw(st.lists(st.sampled_from([*VERBS[verb], "compartment"]), unique=True))
            given_ = {"compartment": "run", **{name: data.draw(ANY) for name in names}}
            if verb == "save":
                given_.setdefault("content", "tea")
            fields = []
            try:
                getattr(memory, verb)(**given_)
            except InvalidInput as error:
                fields.append(error.field)
            except NotFound:
                fields.append("id")
            assert {*fields} <= {*given_}
            if verb in tools:
                answer = tools[verb].call(**given_)
                json.dumps(answer, ensure_ascii=False).encode()
            memory.run_text().encode()
    with Compartments(path) as memory:
        assert memory.notices() == []


@pytest.mark.parametrize("bad", ["a\ud83d", "a\0b", "a\x1b[0m", "a\x9fb"])
def test_what_no_text_may_hold_is_refused_or_replaced(bad: str, path: Path) -> None:
    """By every verb and function; in a file that has it, it is replaced, and the run goes on."""
    with Compartments(path) as memory:
        wrong: list[dict[str, Any]] = [
            {"content": bad}, {"category": bad}, {"tags": [bad]}, {"metadata": {bad: "x"}},
            {"metadata": {"x": bad}}, {"id": bad}, {"expires": bad},
        ]  # fmt: skip
        for each in wrong:
            with pytest.raises(InvalidInput) as refused:
                memory.save("run", **{"content": "x", **each})
            assert refused.value.field == next(iter(each))
            assert memory.tools()[0].call(compartment="run", **each)["error"] == "InvalidInput"
        for filters in ({"id": bad}, {"category": bad}, {"tags": [bad]}, {"query": bad}):
            with pytest.raises(InvalidInput):
                memory.get("run", **filters)
        memory.save("session", "x", tags=["t"], metadata={"a": "b"})
        value = json.loads(path.read_text("utf-8"))
        (entry,) = value["sessions"]["default"]["session"]
        entry |= {"content": bad, "tags": [bad], "metadata": {bad: bad}, "priority": 50}
        path.write_text(json.dumps(value), "utf-8")
        (found,) = memory.get("session").entries
        assert "\ufffd" in found.content and found.priority == 10
        json.dumps(found.as_json(), ensure_ascii=False).encode()


# --- finding, forgetting, bringing back -----------------------------------------------------------


def test_query_ranks(path: Path) -> None:
    """A question finds what has some of its words; the rarest count most, common ones do not."""
    with Compartments(path) as memory:
        euros = memory.save("session", "The customer wants invoices in euros.").id
        memory.save("session", "What does the weather do?")
        asked = memory.save("session", "A customer asked.", priority=9).id
        found = memory.get("session", query="What currency does the customer want?")
        assert [each.id for each in found.entries] == [euros, asked]
        assert [each.id for each in memory.get("session", query="Customers").entries] == [
            asked, euros,
        ]  # fmt: skip
        assert memory.get("session", query="invoice weather").total == 2
        assert memory.get("session", query="the").total == 2  # there is no other word


def test_nothing_found_says_what_there_is(path: Path) -> None:
    """Which categories and tags; where there is nothing at all, nothing."""
    with Compartments(path) as memory:
        _, get, _ = memory.tools()
        assert get.call(compartment="plan", query="x") == {"entries": [], "total": 0}
        memory.save("plan", "x", category="step", tags=["b", "a"])
        answer = get.call(compartment="plan", category="steps")
        assert answer["there_are"] == {"categories": ["step"], "tags": ["a", "b"]}
        assert memory.words("plan") == (["step"], ["a", "b"])


def test_what_has_expired_is_gone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From every answer at its time, and from the file with the next change."""
    with Compartments(path) as memory:
        saved = memory.save("run", "soon", expires="2h")
        memory.save("run", "later", expires="2999-01-31")
        assert "expires_at" in memory.get("run", id=saved.id).entries[0].as_json()
        for wrong in ("2000-01-01", "never", "-1h", "0h", "5"):
            with pytest.raises(InvalidInput, match="expires"):
                memory.save("run", "x", expires=wrong)
        now = timestamps.now_micros()
        for module in ("memory", "file", "entries"):
            place = f"aiaml_server.toolsets.compartments.{module}.present"
            monkeypatch.setattr(place, lambda: now + 7_201_000_000)
        assert [each.content for each in memory.get("run").entries] == ["later"]
        assert "soon" not in memory.run_text() and memory.usage()["run"][0] == 1
        assert "soon" in path.read_text("utf-8")
        with pytest.raises(NotFound):
            memory.save("run", id=saved.id, priority=9)
        memory.save("session", "a change")
        assert "soon" not in path.read_text("utf-8")


def test_what_was_cleared_can_be_brought_back(path: Path) -> None:
    """By its id, until the process ends; as it was, but for what is given."""
    with Compartments(path) as memory:
        saved = memory.save("session", "tea", category="drink", priority=8)
        memory.save("session", "more")
        assert memory.clear("session") == 2
        with pytest.raises(NotFound):
            memory.save("plan", id=saved.id)
        assert memory.save("session", id=saved.id, priority=9) == (saved.id, False)
        (entry,) = memory.get("session").entries
        assert (entry.content, entry.category, entry.priority) == ("tea", "drink", 9)
    with Compartments(path) as memory, pytest.raises(NotFound):
        memory.save("session", id="nope")


def test_a_run_can_be_begun_anew(path: Path) -> None:
    """Without a new process: the run's memory is empty, and the others stay."""
    with Compartments(path) as memory:
        for compartment in ALL:
            memory.save(compartment, "x")
        memory.begin_run()
        assert [memory.get(each).total for each in ALL] == [0, 1, 1]
        memory.save("run", "y")
    assert json.loads(path.read_text("utf-8"))["runs"] == {}
    assert {each.name for each in path.parent.iterdir()} == {"memory.json", "memory.json.lock"}


@pytest.mark.anyio
async def test_a_server_begins_a_run_after_a_pause(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`AIAML_RUN_MINUTES`: what was asked for before the pause was another run."""
    clock = [0.0]
    monkeypatch.setattr(
        "aiaml_server.toolsets.compartments.tools.current_seconds", lambda: clock[0]
    )
    counts = []
    async with SdkClient(Server([built(path, AIAML_RUN_MINUTES="30")])) as client:
        await client.call_tool("save_memory", {"compartment": "run", "content": "x"})
        for pause in (1_799, 1_799, 1_800):
            clock[0] += pause
            found = await client.call_tool("get_memory", {"compartment": "run"})
            counts.append((found.structured_content or {})["total"])
    assert counts == [1, 1, 0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_does_not_end_the_run(path: Path) -> None:
    """Leaving the `with` in the child is not the parent's end."""
    script = (
        "import os, sys; from aiaml_server.compartments import Compartments\n"
        "with Compartments(sys.argv[1]) as memory:\n"
        "    memory.save('run', 'x')\n"
        "    child = os.fork()\n"
        "    if child: os.waitpid(child, 0); print(memory.get('run').total)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, check=True)
    assert done.stdout == b"1\n"


@pytest.mark.anyio
async def test_every_verb_has_a_twin_for_asyncio(path: Path) -> None:
    """`async with` is a run, and what a twin answers is what its verb does."""
    async with Compartments(path) as memory:
        saved = await memory.asave("run", "tea", tags=["drink"])
        assert (await memory.aget("run", query="tea")).entries[0].id == saved.id
        assert "tea" in await memory.arun_text()
        assert await memory.awords("run") == ([], ["drink"])
        assert (await memory.ausage())["run"][0] == 1
        assert await memory.aclear("run") == 1
        assert (await memory.tools()[1].acall(compartment="run"))["total"] == 0
        with pytest.raises(InvalidInput):
            await memory.asave("run", 5)  # type: ignore[arg-type]
    assert json.loads(data_of(path))["runs"] == {}


def test_a_file_that_is_gone_is_told(path: Path) -> None:
    """Whoever deleted it under a run: what it held is gone, and the next answer says so."""
    with Compartments(path) as memory:
        memory.save("session", "x")
        path.unlink()
        assert memory.get("session").total == 0
        (notice,) = memory.notices()
        assert "memory.json is gone" in notice


def test_two_entries_of_one_id_both_stay(path: Path) -> None:
    """As somebody wrote by hand."""
    with Compartments(path) as memory:
        memory.save("session", "x")
        value = json.loads(path.read_text("utf-8"))
        listed = value["sessions"]["default"]["session"]
        listed.append({**listed[0], "content": "y"})
        path.write_text(json.dumps(value), "utf-8")
        memory.save("session", "z")
        assert {each.content for each in memory.get("session").entries} == {"x", "y", "z"}


# --- into every call ------------------------------------------------------------------------------


def test_only_the_run_memory_goes_into_every_call(path: Path) -> None:
    """In the order in which it was made; nothing when there is nothing."""
    with Compartments(path) as memory:
        assert memory.run_text() == ""
        memory.save("session", "secret")
        first = memory.save("run", "one", priority=1).id
        second = memory.save("run", "two\nlines", category="c", tags=["t"]).id
        text = f"Memory of this run:\n- [{first}] one\n- [{second}] c: two\n  lines (t)"
        assert memory.run_text() == text
        memory.save("run", id=first, priority=10)
        assert memory.run_text() == text


def test_the_tools_are_plain_functions(path: Path) -> None:
    """With JSON schemas; a failure is a value, for the model to read."""
    with Compartments(path) as memory:
        save, get, clear = memory.tools()
        assert [each.name for each in (save, get, clear)] == list(manifest("compartments").tools)
        assert save.parameters["required"] == ["compartment"]
        for tool in (save, get, clear):
            for schema in tool.parameters["properties"].values():
                assert schema["description"] and isinstance(schema["type"], str)
        assert save.parameters["properties"]["compartment"]["enum"] == list(ALL)
        saved = save.call(compartment="session", content="tea", tags=["drink"])
        assert get.call(compartment="session", query="tea")["entries"][0]["id"] == saved["id"]
        assert save.call(compartment="session", id="nope")["error"] == "NotFound"
        assert get.call(compartment="session", limit="five") == {
            "error": "InvalidInput",
            "message": "limit: must be a whole number from 1",
        }
        assert get.call()["error"] == "InvalidInput"
        assert clear.call(compartment="session")["cleared"] == 1
        json.dumps([each.parameters for each in memory.tools()])


def test_the_api_needs_no_sdk(tmp_path: Path) -> None:
    """Importing it imports neither MCP nor pydantic."""
    script = (
        "import sys; from aiaml_server.compartments import Compartments\n"
        "with Compartments(sys.argv[1]) as memory: memory.save('run', 'x'); memory.run_text()\n"
        "print([each for each in ('mcp', 'pydantic', 'click') if each in sys.modules])"
    )
    words = [sys.executable, "-c", script, "memory.json"]
    done = subprocess.run(words, capture_output=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == b"[]"


# --- the file -------------------------------------------------------------------------------------

FIT = st.characters(exclude_categories=["Cs", "Cc"], include_characters="\t\r\n")
TEXTS = st.text(FIT, min_size=1, max_size=20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    entries=st.lists(
        st.fixed_dictionaries(
            {"content": TEXTS.filter(str.strip)},
            optional={
                "category": TEXTS,
                "tags": st.lists(TEXTS, max_size=3),
                "metadata": st.dictionaries(TEXTS, TEXTS, max_size=3),
                "priority": st.integers(1, 10),
            },
        ),
        max_size=5,
    )
)
def test_what_was_saved_comes_back(
    entries: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever the texts hold."""
    path = tmp_path_factory.mktemp("file") / "memory.json"
    with Compartments(path) as memory:
        saved = {memory.save("session", **each).id: each for each in entries}
    with Compartments(path) as memory:
        found = {each.id: each for each in memory.get("session").entries}
    assert set(found) == set(saved)
    for name, given_ in saved.items():
        assert found[name].content == given_["content"]
        assert found[name].metadata == given_.get("metadata", {})
        assert set(found[name].tags) == {each.strip() for each in given_.get("tags", [])} - {""}


def test_it_is_private_and_keeps_what_it_does_not_know(path: Path) -> None:
    """Mode 0600; keys of other programs survive."""
    with Compartments(path) as memory:
        memory.save("session", "x")
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    value = json.loads(path.read_text("utf-8"))
    value["theirs"] = {"a": 1}
    value["sessions"]["default"]["session"][0]["theirs"] = 2
    value["sessions"]["default"]["notes"] = ["kept"]
    path.write_text(json.dumps(value), "utf-8")
    with Compartments(path) as memory:
        memory.save("session", "y")
    after = json.loads(path.read_text("utf-8"))
    assert after["theirs"] == {"a": 1}
    assert after["sessions"]["default"]["session"][0]["theirs"] == 2
    assert after["sessions"]["default"]["notes"] == ["kept"]


@pytest.mark.parametrize("data", [
    b"", b'{"format": 1', b'\xef\xbb\xbf{"format": 1,', b'{ "format":1, "runs": []}',
    b'{"format": 1, "sessions": {"default": {"session": [{"id": 5}]}}}',
    b'{"format": 1, "x": ' + b"[" * 100_000, b'{"format": 1, "x": ' + b"9" * 5_000 + b"}",
    b'{"format": 1, "runs": {"../../other": {"run": []}}}',
])  # fmt: skip
def test_a_damaged_file_is_set_aside(data: bytes, path: Path) -> None:
    """Under another name, and said; never overwritten."""
    path.write_bytes(data)
    with Compartments(path) as memory:
        memory.save("session", "x")
        (notice,) = memory.notices()
        assert "damaged" in notice and "sys." not in notice and memory.notices() == []
    assert path.with_name("memory.json.damaged-1").read_bytes() == data
    with Compartments(path) as memory:
        assert memory.get("session").total == 1


def test_doctor_names_what_was_set_aside(tmp_path: Path) -> None:
    """Also where the file's name has signs that a pattern of names would."""
    path = tmp_path / "memory[1].json"
    path.write_text('{"format": 1', "utf-8")
    with Compartments(path):
        pass
    environ = {"AIAML_COMPARTMENTS_FILE": str(path)}
    found = [each.found for each in resolve_name(manifest("compartments").checks)(environ)]
    assert "memory[1].json.damaged-1 was damaged, and is kept" in found


@pytest.mark.parametrize("data", [
    b"{", b"[]", b"null", b"\xff\xfe", b"alias ls='ls -l'\n", b'{"format": "1"}', b'{"name": "x"}',
    b"[" * 100_000,
])  # fmt: skip
def test_a_file_that_was_never_ours_is_left_alone(data: bytes, path: Path) -> None:
    """It is refused by name, and nothing is renamed, and nothing made beside it."""
    path.write_bytes(data)
    memory = Compartments(path)
    with pytest.raises(DiskError, match=r"memory\.json .*name another"):
        memory.open()
    with pytest.raises(DiskError, match=r"memory\.json .*name another"):
        memory.save("session", "x")
    with pytest.raises(DiskError, match=r"memory\.json .*name another"):
        memory.close()
    assert [each.name for each in path.parent.iterdir()] == ["memory.json"]
    assert path.read_bytes() == data


def test_a_later_format_is_left_alone(path: Path) -> None:
    """An older program must not lose what it does not understand."""
    path.write_text('{"format": 2}', "utf-8")
    with pytest.raises(DiskError, match="format 2"), Compartments(path) as memory:
        memory.save("session", "x")
    assert path.read_text("utf-8") == '{"format": 2}'


def test_reading_costs_one_look_at_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And counting accesses writes nothing of its own."""
    with Compartments(path) as memory:
        memory.save("session", "x")
        before = path.stat()
        memory.get("session")
        opened: list[Any] = []
        monkeypatch.setattr("builtins.open", opened.append)
        monkeypatch.setattr("os.open", opened.append)
        for _ in range(3):
            memory.get("session")
        monkeypatch.undo()
        assert opened == [] and path.stat() == before
    with Compartments(path) as memory:
        assert memory.get("session").entries[0].access_count == 5


def test_another_process_s_change_is_seen_at_once(path: Path) -> None:
    """By the file's stamp."""
    with Compartments(path) as memory:
        assert memory.get("session").total == 0
        with running(path) as other:
            assert memory.get("session").total == 1
            assert other.stdin
            other.stdin.close()


WRITER = """
import sys
from aiaml_server.toolsets.compartments import Compartments
with Compartments(sys.argv[1], limit=1_000_000) as memory:
    for number in range(int(sys.argv[3])):
        memory.save("session", f"{sys.argv[2]}.{number}.")
        print(f"{sys.argv[2]}.{number}.", flush=True)
"""


def test_eight_processes_lose_nothing(path: Path) -> None:
    """Every acknowledged entry is there."""

    def run(name: int) -> None:
        words = [sys.executable, "-c", WRITER, str(path), f"p{name}", "8"]
        subprocess.run(words, check=True, capture_output=True)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, range(8)))
    with Compartments(path) as memory:
        contents = {each.content for each in memory.get("session").entries}
    assert contents == {f"p{name}.{number}." for name in range(8) for number in range(8)}


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
@pytest.mark.parametrize("moment", [0.0, 0.003, 0.01, 0.03])
def test_a_kill_leaves_the_file_before_or_after(moment: float, path: Path) -> None:
    """Nothing acknowledged is lost, nothing is torn."""
    words = [sys.executable, "-c", WRITER, str(path), "k", "100000"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        first = process.stdout.readline().strip()
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        told = {first, *process.stdout.read().split()}
    with Compartments(path) as memory:
        assert memory.notices() == []
        assert told <= {each.content for each in memory.get("session").entries}


STEPS = """
import sys
from aiaml_server.toolsets.compartments import Compartments
with Compartments(sys.argv[1]) as memory:
    print("session", memory.save("session", "one").id, flush=True)
    print("run", memory.save("run", "two").id, flush=True)
    print("session", memory.save("session", "three").id, flush=True)
    memory.get("session")
"""


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_kill_at_any_step_leaves_the_file_before_or_after(path: Path) -> None:
    """Before each file that is opened, written, renamed or made durable, one after the other."""
    count = 0
    for count, told in enumerate(killed(STEPS, path.parent, [str(path)]), 1):  # noqa: B007
        answered = {line.partition(" ")[2] for line in told if line.startswith("session")}
        with Compartments(path) as memory:
            assert memory.notices() == []
            assert answered <= {each.id for each in memory.get("session").entries}
            memory.save("session", "after")
        value = json.loads(path.read_text("utf-8"))
        assert value["runs"] == {}, "what the killed run left is cleared"
        left = {each.name for each in path.parent.iterdir()}
        assert left == {"memory.json", "memory.json.lock"}, "nothing of the killed one is left"
        path.unlink()
    assert count > 20


def test_no_network_and_no_program(path: Path) -> None:
    """Only the file, its lock, and its temporary names are touched."""
    done = steps(STEPS, path.parent, [str(path)])
    assert {"open", "fsync", "os.rename"} <= {event for event, _ in done}
    assert {event for event, _ in done} <= {"open", "os.rename", "os.remove", "fsync"}
    removed = {Path(name).name for event, name in done if event == "os.remove"}
    assert all(name.startswith("memory.json.") for name in removed)


def test_two_processes_set_a_damaged_file_aside_once(path: Path) -> None:
    """Whoever comes second finds the new file, and leaves it where it is."""
    path.write_text('{"format": 1', "utf-8")

    def run(name: int) -> None:
        words = [sys.executable, "-c", WRITER, str(path), f"p{name}", "3"]
        subprocess.run(words, check=True, capture_output=True)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(4)))
    assert [each.name for each in path.parent.glob("*.damaged-*")] == ["memory.json.damaged-1"]
    with Compartments(path) as memory:
        assert memory.get("session").total == 12


def test_who_waits_too_long_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing was changed; reading waits for nobody."""
    with Compartments(path) as memory:
        saved = memory.save("session", "x")
        before = path.read_bytes()
        monkeypatch.setattr("aiaml_server.toolsets.compartments.file.LOCK_SECONDS", 0.05)
        with Lock(path.with_name("memory.json.lock")).held(1) as hold:
            assert hold.acquired
            for call in (
                lambda: memory.save("session", "y"),
                lambda: memory.save("session", id=saved.id, priority=9),
                lambda: memory.clear("session"),
            ):
                with pytest.raises(Busy):
                    call()
            assert memory.get("session").total == 1
        assert path.read_bytes() == before


def test_what_the_disk_refuses_is_told(path: Path) -> None:
    """A full disk while writing, and a directory that has the file's name."""
    with Compartments(path) as memory:
        memory.save("session", "x")
        before = path.read_bytes()
        full = OSError(errno.ENOSPC, "No space left on device")
        with mock.patch("os.fsync", side_effect=full), pytest.raises(DiskError, match="no space"):
            memory.save("session", "y")
        assert path.read_bytes() == before and memory.get("session").total == 1
    path.unlink()
    path.mkdir()
    with pytest.raises(DiskError, match="directory"), Compartments(path):
        pass


def test_a_directory_that_is_missing_is_made(tmp_path: Path) -> None:
    """With the first run, and for its user alone; asking where the file is makes nothing."""
    path = tmp_path / "agent" / "notes" / "memory.json"
    environ = {"AIAML_COMPARTMENTS_FILE": str(path)}
    assert manifest("compartments").read_settings(environ)["AIAML_COMPARTMENTS_FILE"] == path
    Compartments(path)
    assert not path.parent.parent.exists()
    command = (sys.executable, "-m", "aiaml_server", "--toolset", "compartments")
    with Client(tmp_path / "base", command=command, environ=environ) as client:
        assert client.call("save_memory", compartment="session", content="x")["created"]
    with Compartments(path) as memory:
        assert memory.get("session").total == 1
    if os.name == "posix":
        for each in (path.parent, path.parent.parent):
            assert stat.S_IMODE(each.stat().st_mode) == 0o700


UNUSABLE = [
    "file",
    pytest.param("proc", marks=pytest.mark.skipif(sys.platform != "linux", reason="/proc")),
]


@pytest.mark.parametrize("place", UNUSABLE)
def test_a_place_that_cannot_be_written_is_no_waiting(place: str, tmp_path: Path) -> None:
    """At once, by its name: trying again would not help."""
    (tmp_path / "file").write_text("")
    path = Path("/proc/x.json") if place == "proc" else tmp_path / "file" / "memory.json"
    with pytest.raises(DiskError, match=place), Compartments(path):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_lock_that_cannot_be_had_is_no_waiting(path: Path) -> None:
    """Such as one that leads elsewhere."""
    with Compartments(path) as memory:
        memory.save("session", "x")
        path.with_name("memory.json.lock").unlink()
        path.with_name("memory.json.lock").symlink_to(path)
        with pytest.raises(DiskError, match="symbolic link"):
            memory.save("session", "y")
        path.with_name("memory.json.lock").unlink()
        memory.save("session", "z")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.anyio
async def test_a_disk_that_refuses_is_told_to_the_agent() -> None:
    """By its code, and no traceback."""
    async with SdkClient(Server([built(Path("/proc/x.json"))])) as client:
        given_ = {"compartment": "session", "content": "x"}
        answer = (await client.call_tool("save_memory", given_)).structured_content
    assert answer and answer["error"] == "DiskError" and "/proc/x.json" in answer["message"]


# --- over MCP -------------------------------------------------------------------------------------


@pytest.fixture
def damaged(path: Path) -> Path:
    """A file of ours that is no JSON."""
    path.write_text('{"format": 1', "utf-8")
    return path


def built(path: Path, **environ: str) -> Any:
    """Build the toolset."""
    entrance = manifest("compartments")
    return resolve_name(entrance.build)(
        entrance.read_settings({"AIAML_COMPARTMENTS_FILE": str(path), **environ})
    )


@pytest.mark.anyio
async def test_a_host_can_put_the_run_memory_into_each_call(path: Path) -> None:
    """By a resource and by a prompt."""
    async with SdkClient(Server([built(path)])) as client:
        await client.call_tool("save_memory", {"compartment": "run", "content": "tea"})
        (content,) = (await client.read_resource("memory://run")).contents
        assert "tea" in content.text  # type: ignore[union-attr]
        (message,) = (await client.get_prompt("run_memory")).messages
        assert "tea" in message.content.text  # type: ignore[union-attr]


def test_a_change_of_the_run_memory_is_announced(tmp_path: Path) -> None:
    """To who has subscribed; the other compartments' changes are not."""
    command = (sys.executable, "-m", "aiaml_server", "--toolset", "compartments")
    environ = {"AIAML_COMPARTMENTS_FILE": str(tmp_path / "m.json")}
    with Client(tmp_path, command=command, environ=environ) as client:
        client.answer(client.request("resources/subscribe", {"uri": "memory://run"}))
        client.call("save_memory", compartment="session", content="x")
        client.call("save_memory", compartment="run", content="y")
        told = client.notification("notifications/resources/updated")
        assert told["params"]["uri"] == "memory://run"
        listed = client.answer(client.request("tools/list"))["result"]["tools"]
    assert [each["name"] for each in listed] == ["save_memory", "get_memory", "clear_memory"]


GOOD: dict[str, dict[str, Any]] = {
    "save_memory": {
        "content": "tea", "category": "drink", "tags": ["hot"], "metadata": {"a": "b"},
        "priority": 5,
    },
    "get_memory": {
        "id": "0a1b2c3d", "category": "drink", "tags": ["hot"], "query": "tea", "limit": 3,
        "offset": 0,
    },
    "clear_memory": {"id": "0a1b2c3d", "category": "drink", "tags": ["hot"]},
}  # fmt: skip
TRICKS: list[Any] = [
    "../../x", "a\nb", "\u202eabc", "RUN", "run ", "runs", 0, 11, 10**30, -(10**30), 1e308, "5",
    ["a"] * 101, ["\x00"], {"a": "\x1b[0m"}, {"a": None}, {"": ""}, "🙂" * 3000,
]  # fmt: skip
CODES = {"InvalidInput", "NotFound", "LimitExceeded", "Busy", "DiskError"}


def data_of(path: Path) -> bytes:
    """Return what the file holds."""
    return path.read_bytes()


@pytest.mark.anyio
@pytest.mark.parametrize("tool", GOOD)
async def test_whatever_a_parameter_holds_the_answer_has_its_shape(tool: str, path: Path) -> None:
    """One hostile value at a time among good ones: a code of the list, and nothing changed."""
    good = {"compartment": "session", **GOOD[tool]}
    parameters = [*good, "id"] if tool == "save_memory" else [*good]
    async with SdkClient(Server([built(path)])) as client:
        await client.call_tool("save_memory", {"compartment": "session", "content": "kept"})
        for parameter in parameters:
            for value in (*HOSTILE, *TRICKS):
                if isinstance(value, str):
                    value = value.encode("utf-8", "replace").decode()  # noqa: PLW2901
                before = data_of(path)
                result = await client.call_tool(tool, {**good, parameter: value})
                answer = result.structured_content
                assert answer and "Traceback" not in str(answer)
                if result.is_error:
                    assert set(answer) == {"error", "message"} and answer["error"] in CODES, value
                    assert data_of(path) == before
                else:
                    await client.call_tool("clear_memory", {"compartment": "session"})
        found = await client.call_tool("get_memory", {"compartment": "session"})
        assert not found.is_error
    assert {each.name for each in path.parent.iterdir()} == {"memory.json", "memory.json.lock"}


def test_answers_are_those_of_the_specification(path: Path, tmp_path: Path) -> None:
    """Their keys, to a real client of a real server; what is empty is left out."""
    command = (sys.executable, "-m", "aiaml_server", "--toolset", "compartments")
    environ = {"AIAML_COMPARTMENTS_FILE": str(path)}
    everything = {"category": "a", "tags": ["b"], "metadata": {"c": "d"}, "priority": 7}
    with Client(tmp_path, command=command, environ=environ) as client:
        plain = client.call("save_memory", compartment="plan", content="x")
        full = client.call("save_memory", compartment="plan", content="y", **everything)
        assert (set(plain), plain["created"]) == ({"id", "created"}, True)
        found = client.call("get_memory", compartment="plan")
        assert set(found) == {"entries", "total"} and found["total"] == 2
        usual = {"id", "content", "created_at", "updated_at", "access_count", "priority"}
        first, second = found["entries"]
        assert set(first) == usual | {"category", "tags", "metadata"} and set(second) == usual
        assert (first["id"], first["priority"], second["priority"]) == (full["id"], 7, 5)
        changed = client.call("save_memory", compartment="plan", id=plain["id"], priority=9)
        assert changed == {"id": plain["id"], "created": False}
        cleared = client.call("clear_memory", compartment="plan")
        assert cleared == {"cleared": 2, "ids": [plain["id"], full["id"]]}
        missing = client.call("save_memory", compartment="plan", id="nope", priority=9)
        assert missing["error"] == "NotFound"


def test_the_file_is_in_the_working_directory_where_none_is_named(tmp_path: Path) -> None:
    """Under the name that the page has."""
    command = (sys.executable, "-m", "aiaml_server", "--toolset", "compartments")
    with Client(tmp_path, command=command, cwd=tmp_path) as client:
        client.call("save_memory", compartment="session", content="x")
        assert (tmp_path / ".aiaml-compartments.json").exists()


@pytest.mark.anyio
async def test_arguments_as_clients_send_them(path: Path) -> None:
    """Plain types in the schemas; numbers as text or 1.0, empty texts and null as left out."""
    nothing = {"id": "", "category": "", "expires": "", "priority": None}
    async with SdkClient(Server([built(path)])) as client:
        for tool in (await client.list_tools()).tools:
            for name, schema in tool.input_schema["properties"].items():
                assert isinstance(schema["type"], str), (tool.name, name)
        saved = await client.call_tool(
            "save_memory", {"compartment": "plan", "content": "null", **nothing}
        )
        assert not saved.is_error
        for limit, offset in ((1, 0), (1.0, 0.0), ("1", "0"), (None, None), ("", "")):
            asked = {"compartment": "plan", "limit": limit, "offset": offset, "query": ""}
            found = (await client.call_tool("get_memory", asked)).structured_content
            assert found and found["entries"][0]["content"] == "null", (limit, offset)
        for empty in ("id", "category"):
            cleared = await client.call_tool("clear_memory", {"compartment": "plan", empty: ""})
            assert cleared.is_error, empty


@given(text=st.sampled_from(["null", "true", "5", '{"a": 1}', "[1]", '"x"']), changed=st.booleans())
def test_what_is_sent_is_what_is_stored(
    text: str, changed: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A text that looks like JSON is a text, in every parameter that is one."""
    path = tmp_path_factory.mktemp("file") / "memory.json"
    given_: dict[str, Any] = {"content": text, "category": text, "tags": [text]}

    async def story() -> dict[str, Any]:
        async with SdkClient(Server([built(path)])) as client:
            call = {"compartment": "plan", "content": "x"} if changed else {}
            if changed:
                made = (await client.call_tool("save_memory", call)).structured_content
                call = {"id": (made or {})["id"]}
            asked = {**given_, **call, "metadata": {"a": text}, "compartment": "plan"}
            assert not (await client.call_tool("save_memory", asked)).is_error
            asked = {
                "compartment": "plan",
                "category": text,
                "query": text,
                "metadata": {"a": text},
            }
            return (await client.call_tool("get_memory", asked)).structured_content or {}

    (entry,) = anyio.run(story)["entries"]
    assert {name: entry[name] for name in given_} == given_ and entry["metadata"] == {"a": text}


@pytest.mark.anyio
async def test_a_damaged_file_is_said_to_the_agent(damaged: Path) -> None:
    """In a block behind the answer."""
    async with SdkClient(Server([built(damaged)])) as client:
        given_ = {"compartment": "session", "content": "x"}
        result = await client.call_tool("save_memory", given_)
        assert not result.is_error and len(result.content) == 2
        assert "damaged" in result.content[1].text  # type: ignore[union-attr]


@pytest.mark.anyio
async def test_limits_are_settings(path: Path) -> None:
    """A general one, and one for each compartment."""
    environ = {"AIAML_COMPARTMENT_LIMIT": "5", "AIAML_COMPARTMENT_LIMIT_RUN": "50"}
    async with SdkClient(Server([built(path, **environ)])) as client:
        codes = {}
        for compartment in ALL:
            given_ = {"compartment": compartment, "content": "x" * 20}
            codes[compartment] = (await client.call_tool("save_memory", given_)).structured_content
    assert codes["run"] and codes["run"]["created"]
    for compartment in ("session", "plan"):
        found = codes[compartment]
        assert found and found["error"] == "LimitExceeded" and "memory holds 5" in found["message"]


@pytest.mark.parametrize(("variable", "value"), [
    ("AIAML_COMPARTMENT_LIMIT", "0"), ("AIAML_COMPARTMENT_LIMIT", "many"),
    ("AIAML_PLAN_SCOPE", "forever"), ("AIAML_SESSION", "a\nb"),
    ("AIAML_COMPARTMENTS_FILE", f"{__file__}/at/all/memory.json"),
])  # fmt: skip
def test_a_wrong_setting_is_one_sentence(variable: str, value: str) -> None:
    """Before anything is served."""
    with pytest.raises(InvalidSetting, match=variable):
        manifest("compartments").read_settings({variable: value})


def test_a_file_that_cannot_be_used_does_not_end_the_server(path: Path, tmp_path: Path) -> None:
    """Each call says so, and so does the log; when the file is usable again, all goes on."""
    path.write_text('{"format": 2}', "utf-8")
    command = (sys.executable, "-m", "aiaml_server", "--toolset", "compartments")
    environ = {"AIAML_COMPARTMENTS_FILE": str(path)}
    with Client(tmp_path / "base", command=command, environ=environ) as client:
        refused = client.call("save_memory", compartment="run", content="x")
        assert refused["error"] == "DiskError" and "format 2" in refused["message"]
        path.unlink()
        assert client.call("save_memory", compartment="run", content="x")["created"]
        path.write_text('{"format": 2}', "utf-8")
        assert client.close() == 0
        assert client.log().count("format 2") == 2 and "Traceback" not in client.log()
    assert [each.name for each in tmp_path.glob("*.run-*")] == []


def test_a_working_directory_that_is_no_agent_s_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to set."""
    monkeypatch.chdir(Path.cwd().anchor)
    with pytest.raises(InvalidSetting, match=r"AIAML_COMPARTMENTS_FILE .* absolute path"):
        manifest("compartments").read_settings({})


LINKS = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
NAME = ".aiaml-compartments.json"
OURS = b'{"format": 1, "runs": {}, "sessions": {"default": {"session": []}}}'


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a link in the working directory leads to, under the name that the file has there."""
    target = tmp_path / "home" / ".bashrc"
    target.parent.mkdir()
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / NAME).symlink_to("../home/.bashrc")
    monkeypatch.chdir(clone)
    return target


@LINKS
@pytest.mark.parametrize("data", [None, b"alias ls='ls -l'\n", OURS])
def test_a_planted_link_is_not_followed(data: bytes | None, planted: Path) -> None:
    """The server, the verbs and the API refuse it by its name, and nothing is changed or made."""
    if data is not None:
        planted.write_bytes(data)
    command = (sys.executable, "-m", "aiaml_server", "--toolset", "compartments")
    served = subprocess.run(
        command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert served.returncode and f"{NAME} leads to" in served.stderr
    assert "remove the link" in served.stderr
    for named in ([], ["--file", NAME]):
        words = [sys.executable, "-m", "aiaml_server", "compartments", *named, "clear", "session"]
        asked = subprocess.run(
            [*words, "--yes"], check=False, capture_output=True, text=True, timeout=60
        )
        assert asked.returncode and "remove the link" in asked.stderr
    with pytest.raises(InvalidInput, match="remove the link"):
        Compartments()
    assert [each.name for each in Path().iterdir()] == [NAME]
    assert [each.read_bytes() for each in planted.parent.iterdir()] == ([data] if data else [])


@LINKS
@pytest.mark.parametrize("name", ["notes/memory.json", "round"])
def test_no_relative_path_leads_elsewhere(name: str, planted: Path) -> None:
    """Also not through a directory that is a link, or a link that leads to itself."""
    Path("notes").symlink_to(planted.parent)
    Path("round").symlink_to("round")
    with pytest.raises(InvalidSetting, match="remove the link"):
        manifest("compartments").read_settings({"AIAML_COMPARTMENTS_FILE": name})
    with pytest.raises(InvalidInput, match="remove the link"):
        Compartments(name)


@LINKS
def test_an_absolute_path_may_be_a_link(planted: Path) -> None:
    """It was named, so the server, the verbs and the API follow it alike."""
    planted.write_bytes(OURS)
    named = str(Path.cwd() / NAME)
    with Compartments(named) as memory:
        memory.save("session", "tea")
    assert b"tea" in planted.read_bytes() and Path(NAME).is_symlink()
    words = [sys.executable, "-m", "aiaml_server", "compartments", "--file", named, "show"]
    assert "tea" in subprocess.run(words, capture_output=True, text=True, check=True).stdout


@LINKS
def test_a_working_directory_behind_a_link_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies above the working directory is the person's own affair."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path / "link")
    with Compartments() as memory:
        memory.save("session", "tea")
    assert (tmp_path / "real" / NAME).exists()
