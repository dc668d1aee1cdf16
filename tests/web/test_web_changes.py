"""What `aiaml web` writes, undoes and tells as it happens, over HTTP and in the files."""

from __future__ import annotations

import http.client
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from test_web import DOG, PYTHON, SAMPLES

from aiaml_server import MemoryBank, Settings
from aiaml_server.format.filters import Filter, words
from aiaml_server.format.memory import Memory, parse
from aiaml_server.storage.store import Store
from aiaml_server.timestamps import parse_timestamp
from aiaml_server.web.changes import Changes
from aiaml_server.web.edits import ADDRESS
from aiaml_server.web.overview import overview
from machine import as_person, git
from web_process import HEADER, SECONDS, Answer, Web, one

GIT = {"AIAML_ENABLE_SYNC": "true", "GIT_CONFIG_GLOBAL": os.devnull}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """The sample memories, for a test of its own."""
    shutil.copytree(SAMPLES, tmp_path / "store")
    return tmp_path / "store"


def put(web: Web, name: str, text: str | dict[str, Any]) -> Answer:
    """Edit a memory: its text as a text field sends it, or its fields."""
    headers = {"If-Match": web.get(one(name))["version"]}
    if isinstance(text, str):
        return web.ask(one(name), "PUT", text.encode(), headers)
    kind = {"Content-Type": "application/json"}
    return web.ask(one(name), "PUT", json.dumps(text).encode(), {**headers, **kind})


def post(web: Web, path: str, value: object) -> Answer:
    """Send JSON."""
    return web.ask(path, "POST", json.dumps(value).encode())


# --- byte for byte --------------------------------------------------------------------------------

HEAD = "---\nid: 3d4e5f6a\ntimestamp: 2026-06-20\nagent: gemini\nuser: marco\ntopics: [dog]\n---\n"
LINE_ENDS = [
    ("\nOne\r\ntwo\nthree\rfour\n", "two", "2", "\nOne\r\n2\nthree\rfour\n"),
    ("\nOne\r\ntwo\nthree\rfour\n", "two\n", "two\nnew\n", "\nOne\r\ntwo\nnew\nthree\rfour\n"),
    ("\nOne\r\ntwo\r\nthree\n", "two\n", "", "\nOne\r\nthree\n"),
    ("\na\rb\rc\rd\re\n", "c", "x", "\na\rb\rx\rd\re\n"),
    ("\nend\r\n", "end", "the end", "\nthe end\r\n"),
    ("\nno end\r\nat all", "all", "any", "\nno end\r\nat any"),
]


@pytest.mark.parametrize("fields", [False, True])
def test_an_edit_changes_no_other_byte(base: Path, fields: bool) -> None:
    """Line ends of every kind stay, also beside the change, however it is typed."""
    path = base / "files" / DOG
    with Web(base) as web:
        for body, find, typed, expected in LINE_ENDS:
            path.write_bytes((HEAD + body).encode())
            seen = web.get(one(DOG))
            shown = seen["content" if fields else "text"].replace("\r\n", "\n").replace("\r", "\n")
            head, mark, rest = shown.rpartition("---\n")
            after = f"{head}{mark}{rest.replace(find, typed, 1)}"
            words = {name: seen[name] for name in ("agent", "user", "topics")}
            answer = put(web, DOG, {**words, "content": after} if fields else after)
            assert answer.status == 200, answer
            assert path.read_bytes() == (HEAD + expected).encode()


def test_fields_are_written_where_they_differ(base: Path) -> None:
    """Other entries, their order, their quotes and the body stay as they are."""
    head = (
        "---\r\nmood: [a, b]  # ours\r\nid: '3d4e5f6a'\r\ntopics:\r\n  - dog\r\n  - a b\r\n"
        'timestamp: 2026-06-20\r\nagent: \r\nuser: "marco"\r\n\r\n---\r\n\r\n  Max \r\n'
    )
    path = base / "files" / DOG
    wrong: dict[str, Any]
    with Web(base) as web:
        path.write_bytes(head.encode())
        seen = web.get(one(DOG))
        words = {name: seen[name] for name in ("agent", "user", "topics", "content")}
        assert put(web, DOG, words).status == 200
        assert path.read_bytes() == head.encode()
        changed = {**words, "user": "yes", "content": "Max\nbarks"}
        assert put(web, DOG, changed).status == 200
        expected = head.replace('"marco"', '"yes"').replace("Max", "Max\r\nbarks")
        assert path.read_bytes() == expected.encode()
        assert put(web, DOG, {**changed, "topics": ["dog", "noise"]}).status == 200
        memory = parse(path.read_bytes().decode())
        assert (memory.topics, memory.user, memory.extra) == (
            ("dog", "noise"), "yes", ("mood: [a, b]  # ours",)
        )  # fmt: skip
        for wrong in ({"user": " "}, {"topics": []}, {"content": 3}, {"topics": [1]}):
            answer = put(web, DOG, {**changed, **wrong})
            assert (answer.status, next(iter(wrong)) in answer.json()["error"]) == (400, True)
        assert put(web, DOG, "x").status == 422
    assert parse(path.read_bytes().decode()) == memory


# --- new, forgotten, brought back -----------------------------------------------------------------


def test_a_new_memory_is_stored(base: Path) -> None:
    """By the rules of `remember`, and found at once."""
    said = {"agent": "marco", "user": "marco", "topics": ["quince"], "content": "Jelly\nset"}
    with Web(base) as web:
        answer = post(web, "/api/memories", said)
        assert (answer.status, answer.json()["secret"]) == (201, "")
        assert web.get("/api/memories?q=jelly")["memories"][0]["title"] == "Jelly"
        for wrong, field in (({"topics": []}, "topics"), ({"content": " "}, "content")):
            refused = post(web, "/api/memories", {**said, **wrong})
            assert (refused.status, refused.json()["error"].split(":")[0]) == (400, field)
        for body in (b"", b"[]", b"{", b'{"content": "\\ud800"}'):
            assert web.ask("/api/memories", "POST", body).status == 400
    assert (base / "files" / answer.json()["file"]).read_text().endswith("Jelly\nset\n")


@pytest.mark.parametrize("environ", [{}, GIT])
def test_what_is_forgotten_comes_back_as_it_was(base: Path, environ: dict[str, str]) -> None:
    """Several at once, with the text that the page kept, byte for byte."""
    before = {path.name: path.read_bytes() for path in (base / "files").glob("*.md")}
    with Web(base, **environ) as web:
        answer = post(web, "/api/forget", [DOG, PYTHON]).json()
        assert answer["kept"] is bool(environ)
        assert {path.name for path in (base / "files").glob("*.md")} == set(before) - {DOG, PYTHON}
        assert post(web, "/api/forget", [DOG]).status == 404
        if environ:
            gone = web.get("/api/forgotten")
            assert {each["file"] for each in gone} == {DOG, PYTHON}
        assert post(web, "/api/restore", answer["forgotten"]).status == 200
        outside = {"../x.md": before[DOG].decode()}
        for wrong in ('{"a.md": "no memory"}', f'{{"{DOG}": 3}}', json.dumps(outside), "[]"):
            assert web.ask("/api/restore", "POST", wrong.encode()).status in (400, 404, 422)
    assert {path.name: path.read_bytes() for path in (base / "files").glob("*.md")} == before


def test_versions_are_shown_with_differences_and_come_back(base: Path) -> None:
    """The newest first; what git does not have is never replaced."""
    first = (base / "files" / DOG).read_text()
    with Web(base, **GIT) as web:
        assert put(web, DOG, first.replace("chicken", "beef")).status == 200
        versions = web.get(f"{one(DOG)}/history")
        assert [each["what"] for each in versions] == ["Updated", "Added"]
        assert ["chicken.", "beef."] in versions[0]["words"]
        assert versions[0]["fields"] == []
        assert versions[1]["text"] == first
        assert post(web, "/api/restore", {DOG: first}).status == 200
        assert (base / "files" / DOG).read_text() == first
        lately = web.get("/api/lately")
        assert {each["what"] for each in lately} <= {"Added", "Updated"} and lately
        assert all(each["machine"] is None for each in lately)
    with Web(base) as web:
        assert put(web, DOG, first.replace("chicken", "fish")).status == 200
        assert post(web, "/api/restore", {DOG: first}).status == 503
    assert "fish" in (base / "files" / DOG).read_text()


def test_all_that_is_wrong_with_a_memory_is_told_at_once(base: Path) -> None:
    """Each field by its name, of a new one and of one that is edited; nothing is stored."""
    before = {path.name: path.read_bytes() for path in (base / "files").iterdir()}
    wrong = {"agent": "two\nlines", "user": "", "topics": [], "content": " "}
    with Web(base) as web:
        answer = post(web, "/api/memories", wrong)
        assert (answer.status, set(answer.json()["fields"])) == (400, set(wrong))
        version = web.get(one(DOG))["version"]
        headers = {"If-Match": version, "Content-Type": "application/json"}
        edited = web.ask(
            one(DOG), "PUT", json.dumps({**wrong, "agent": "claude"}).encode(), headers
        )
        assert (edited.status, set(edited.json()["fields"])) == (400, {"user", "topics", "content"})
    assert {path.name: path.read_bytes() for path in (base / "files").iterdir()} == before


def test_sync_that_failed_is_tried_again(base: Path, tmp_path: Path) -> None:
    """At once, and it is told how it stands then."""
    remote = tmp_path / "remote.git"
    with Web(base, **GIT, AIAML_GITHUB_REMOTE=str(remote)) as web:
        assert post(web, "/api/sync", None).json()["problem"]
        subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
        status = post(web, "/api/sync", None).json()
        assert (status["problem"], status["ahead"]) == (None, 0)
        assert status["last_push"]


def somebodys(path: Path) -> Path:
    """Make a repository with a file in it that is no memory."""
    path.mkdir()
    (path / "me; or `--yes`").write_text("theirs")
    git(path, "init", "--quiet", "--initial-branch=main")
    git(path, "add", "--all")
    as_person(path, "commit", "--quiet", "-m", "Theirs")
    return path


@pytest.mark.slow
def test_a_remote_is_chosen_on_the_page(base: Path, tmp_path: Path) -> None:
    """As `aiaml sync --setup` does it: made, asked, noted for all servers, and exchanged with."""
    copy = tmp_path / "stick" / "copy.git"
    with Web(base, **GIT) as web:
        wrong = post(web, "/api/remote", {"address": "somewhere"})
        assert (wrong.status, wrong.json()["error"]) == (400, "address: " + ADDRESS)
        for option in ("--setup=/a:b", "-oProxyCommand=touch:x"):
            assert post(web, "/api/remote", {"address": option}).status == 400
        bare = {path.name for path in tmp_path.iterdir()}
        for unfit in (f"{copy}\nb", f"{copy}\x07", f"{copy}{'a' * 3_000_000}"):
            answer = post(web, "/api/remote", {"address": unfit})
            assert (answer.status, answer.json()["error"][:9]) == (400, "address: ")
        assert {path.name for path in tmp_path.iterdir()} == bare
        away = post(web, "/api/remote", {"address": f"file://{tmp_path}/away.git"})
        assert away.status == 409
        assert "What to do: " in away.json()["error"]
        assert not web.get("/api/status")["remote"]
        asked = post(web, "/api/remote", {"address": str(somebodys(tmp_path / "theirs"))})
        assert (asked.status, list(asked.json()["fields"])) == (409, ["yes"])
        assert "1 file on its branch main (me; or `--yes`)" in asked.json()["error"]
        assert not web.get("/api/status")["remote"]
        said = post(web, "/api/remote", {"address": str(copy)}).json()["said"]
        assert "sent" in said
        assert web.get("/api/status")["last_push"]
        assert git(copy, "log", "--oneline", "main")
        assert post(web, "/api/sync", None).json()["problem"] is None


def test_without_git_there_is_no_past(base: Path) -> None:
    """Which is an empty answer, no error."""
    with Web(base) as web:
        assert web.get("/api/lately") == web.get("/api/forgotten") == []
        assert web.get(f"{one(DOG)}/history") == []


def test_a_selection_is_exported_as_aiaml_export_writes_it(base: Path, tmp_path: Path) -> None:
    """Line by line the same."""
    with Web(base) as web:
        lines = post(web, "/api/export", [DOG]).json()["lines"]
    export = [
        sys.executable,
        "-m",
        "aiaml_server",
        "export",
        "--to",
        str(tmp_path / "all.jsonl"),
    ]
    subprocess.run(
        export,
        check=True,
        capture_output=True,
        env={**os.environ, "AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "false"},
    )
    assert lines in (tmp_path / "all.jsonl").read_text(encoding="utf-8")


def test_a_selection_without_what_went_meanwhile(base: Path) -> None:
    """What is left is exported or forgotten, and how much is gone is said; nothing left is 404."""
    cat = next(path.name for path in (base / "files").glob("*.md") if path.name != DOG)
    with Web(base) as web:
        (base / "files" / DOG).unlink()
        said = post(web, "/api/export", [DOG, cat]).json()
        assert (said["lines"].count("\n"), said["gone"]) == (1, 1)
        assert post(web, "/api/export", [DOG]).json() == {"lines": "", "gone": 1}
        assert post(web, "/api/forget", [DOG, cat]).json()["count"] == 1
        assert post(web, "/api/forget", [DOG, cat]).status == 404


# --- all that a question means --------------------------------------------------------------------


@pytest.mark.parametrize("environ", [{}, GIT])
def test_all_that_a_question_means_goes_and_comes_back(base: Path, environ: dict[str, str]) -> None:
    """Also what no page showed; after it was told how many, and only these; undone as a whole."""
    bank = MemoryBank(Settings(base, sync=False))
    for number in range(70):
        bank.remember("codex", "marco", ["many"], f"Number {number}")
    before = {path.name: path.read_bytes() for path in (base / "files").glob("*.md")}
    with Web(base, **environ) as web:
        told = web.get("/api/chosen?q=topic:many")
        assert (told["count"], len(told["titles"]), told["titles"][0]) == (70, 8, "Number 69")
        assert web.get("/api/chosen?q=topic:many+number")["count"] == 70
        version = {"If-Match": told["version"]}
        lines = web.ask("/api/export?q=topic:many", "POST", b"", version).json()["lines"]
        assert len(lines.splitlines()) == 70
        for headers in ({}, {"If-Match": "other"}):
            refused = web.ask("/api/forget?q=topic:many", "POST", b"", headers)
            assert refused.status == (412 if headers else 428)
        bank.remember("codex", "marco", ["many"], "One that nobody was told of")
        assert web.ask("/api/forget?q=topic:many", "POST", b"", version).status == 412
        other = web.get("/api/chosen?q=topic:many+number")["version"]
        version = {"If-Match": other}
        gone = web.ask("/api/forget?q=topic:many+number", "POST", b"", version).json()
        assert (gone["count"], gone["kept"], gone["problem"]) == (70, bool(environ), "")
        assert len(list((base / "files").glob("*.md"))) == len(before) - 70 + 1
        assert post(web, "/api/undo", gone["undo"]).json() == {"restored": 70}
        assert post(web, "/api/undo", gone["undo"]).status == 410
        assert post(web, "/api/undo", [1]).status == 400
    after = {path.name: path.read_bytes() for path in (base / "files").glob("*.md")}
    assert {name: after.get(name) for name in before} == before
    bank.close()


def test_an_undo_replaces_nothing(base: Path) -> None:
    """What came back under a name by other ways stays."""
    with Web(base) as web:
        gone = post(web, "/api/forget", [DOG, PYTHON]).json()
        (base / "files" / DOG).write_text(gone["forgotten"][DOG] + "and more\n")
        assert post(web, "/api/undo", gone["undo"]).json() == {"restored": 1}
    assert "and more" in (base / "files" / DOG).read_text()
    assert (base / "files" / PYTHON).exists()


# --- told as it happens ---------------------------------------------------------------------------


@contextmanager
def listening(
    web: Web, words: str = "", **headers: str | None
) -> Iterator[http.client.HTTPResponse]:
    """Hold the stream of events inside the `with`."""
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=SECONDS)
    wanted = {HEADER: web.token, **headers}
    try:
        said = {name: value for name, value in wanted.items() if value}
        connection.request("GET", f"/api/events?{words}", headers=said)
        yield connection.getresponse()
    finally:
        connection.close()


def told(stream: http.client.HTTPResponse) -> Any:
    """Return the next event."""
    while not (line := stream.readline()).startswith(b"data: "):
        assert line, "the stream ended"
    return json.loads(line.removeprefix(b"data: "))


@pytest.mark.slow
def test_what_others_do_is_told(base: Path) -> None:
    """Stored, edited by a program, deleted: an event each, to whoever has the token."""
    with Web(base) as web:
        with listening(web) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            memories, status = told(stream)
            bank = MemoryBank(Settings(base, sync=False))
            name = bank.remember("codex", "marco", ["t"], "Quince.").file_name
            assert told(stream)[0] > memories
            text = bank.text(name)
            bank.close()
            time.sleep(1.1)  # longer than two looks: what is told from here on is the edit
            (base / "files" / name).write_text(text.replace("Quince", "Pear"))
            assert told(stream)[0] > memories + 1
            (base / ".sync-status.json").write_text("{}")
            while told(stream)[1] == status:
                pass
        with listening(web, "", **{HEADER: None}) as refused:
            assert refused.status == 403
        with listening(web, Origin="https://evil.example") as refused:
            assert refused.status == 403


def test_few_streams_are_held_and_none_hinders_the_end(base: Path) -> None:
    """A fifth is refused; those who left are forgotten; a signal ends all at once."""
    with Web(base) as web, listening(web) as a, listening(web) as b, listening(web) as c:
        for each in (a, b, c):
            told(each)
        with listening(web) as d:
            told(d)
            with listening(web) as fifth:
                assert fifth.status == 503
        while True:
            with listening(web) as again:
                if again.status == 200:
                    break
            time.sleep(0.2)
        assert web.end() == 0


@pytest.mark.slow
def test_a_stream_is_a_visit_until_it_is_closed(base: Path) -> None:
    """Whoever looks is there; afterwards it ends by itself."""
    web = Web(base, "--idle", "0.02")  # 1.2 s
    with listening(web) as stream:
        told(stream)
        time.sleep(2.5)
        assert web.process.poll() is None
    assert web.ended() == 0


# --- counted, without reading files ---------------------------------------------------------------


QUESTIONS = [
    *("", "agent:CLAUDE", "user:ann topic:dog", "topic:STRASSE", "agent:nobody"),
    *("since:2026-03-29", "until:2026-06-01 agent:codex", "topic:e topic:f"),
]


def test_changes_a_directory_that_took_the_place_of_another(tmp_path: Path) -> None:
    """It is looked at, as after a backup was put back above it."""
    for each in ("vault", "backup"):
        (tmp_path / each / "base" / "files").mkdir(parents=True)
    base = tmp_path / "vault" / "base"
    bank = MemoryBank(Settings(base, sync=False))
    changes = Changes(bank)
    changes.look()
    (tmp_path / "vault").rename(tmp_path / "old")
    (tmp_path / "backup").rename(tmp_path / "vault")
    memory = bank.remember("claude", "ann", ["t"], "Max")
    time.sleep(0.1)  # past the tick in which it was written
    assert changes.look()[0] == 2
    (base / "files" / memory.file_name).unlink()
    assert changes.look()[0] == 3
    changes.close()
    bank.close()


def some_memories() -> Iterator[Memory]:
    """Yield memories whose fields repeat, in several cases, at times of every kind."""
    draw = random.Random(3)
    times = ["2026-03-01", "2026-03-29T01:59:59.999999+01:00", "soon", "1969-01-01", "2300-01-01"]
    times += [f"2026-{month:02}-11T23:30:00-11:00" for month in range(1, 13)]
    for number in range(300):
        topics = draw.choices(["dog", "DOG", "Straße", "strasse", "a, b", "h", "e", "f", "g"], k=3)
        yield Memory(
            f"{number:08x}",
            draw.choice(times),
            draw.choice(["claude", "Claude", "codex", ""]),
            draw.choice(["ann", "bob"]),
            tuple(dict.fromkeys(topics)),
            f"word{number % 7}",
        )


def test_counts_are_those_of_the_memories_and_read_few_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is filtered by; all these questions together read no file twice."""
    memories = list(some_memories())
    bank = MemoryBank(Settings(tmp_path, sync=False))
    for each in memories:
        bank.add(each)
    overview(bank, Filter())
    read: list[str] = []
    text = Store.text

    def noted(store: Store, name: str) -> str:
        read.append(name)
        return text(store, name)

    monkeypatch.setattr(Store, "text", noted)
    for said in QUESTIONS:
        wanted, _ = Filter().and_said(words(said))
        counts = overview(bank, wanted)
        assert counts["all"] == len(memories)
        meant = [each for each in memories if wanted.matches(each)]
        assert counts["count"] == len(meant)
        assert counts["topics"] == sorted(counts["topics"], key=lambda each: -each[1])
        found = Counter(topic.casefold() for each in meant for topic in each.topics)
        assert {name.casefold(): count for name, count in counts["topics"]} == found
        for field, others in (
            ("agent", wanted._replace(agent="")),
            ("user", wanted._replace(user="")),
        ):
            matching = filter(others.matches, memories)
            people = Counter(getattr(each, field).casefold() for each in matching)
            told = {name.casefold(): count for name, count in counts[f"{field}s"]}
            assert told == people
        times = [
            moment
            for each in filter(wanted._replace(since=None, before=None).matches, memories)
            if (moment := parse_timestamp(each.timestamp)) and 0 < moment < 4_102_444_800_000_000
        ]
        assert sum(count for *_, count in counts["time"]["bars"]) == len(times)
        bank.search(["word3"], wanted)
        bank.dated(wanted)
    assert len(read) <= len(memories)  # those that were just written are looked at once more
    bank.close()
