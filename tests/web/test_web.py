"""`aiaml web` over HTTP: who is let in, what is answered, and what a change does to the files."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlencode, urlsplit

import pytest

from aiaml_server import MemoryBank, Settings
from aiaml_server.format.memory import Memory, format, parse  # noqa: A004
from aiaml_server.index import Question
from paths import ROOT, TESTS
from waiting import wait_until
from web_process import HEADER, Web, one

SAMPLES = TESTS / "transcripts" / "store"
DOG = "20260620_120000_3d4e5f6a.md"
PYTHON = "20260415_183000_1b2c3d4e.md"
STATIC = ROOT / "src" / "aiaml_server" / "web" / "static"
PAGES = ["/", *(f"/{each.name}" for each in sorted(STATIC.iterdir()) if each.suffix != ".html")]
EVERYTHING = [*PAGES, "/api/memories", one(DOG), "/api/overview", "/api/forgotten", "/nothing"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """A page over the sample memories, for tests that change nothing."""
    base = tmp_path_factory.mktemp("web") / "store"
    shutil.copytree(SAMPLES, base)
    with Web(base) as web:
        yield web


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """The sample memories, for a test of its own."""
    shutil.copytree(SAMPLES, tmp_path / "store")
    return tmp_path / "store"


def version(text: str) -> str:
    """Return the version that a text is known by."""
    return hashlib.sha256(text.encode()).hexdigest()


# --- who is let in --------------------------------------------------------------------------------


def test_the_address_is_on_loopback_and_holds_a_long_secret(shared: Web) -> None:
    """Nobody reaches it from elsewhere, and nobody guesses it."""
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#token=[\w-]{43}", shared.address)
    outward = socket.gethostbyname_ex(socket.gethostname())[2]
    for address in [each for each in outward if not each.startswith("127.")]:
        with (
            pytest.raises(OSError, match=r".*"),
            socket.create_connection((address, shared.port), 2),
        ):
            pass


@pytest.mark.parametrize("path", PAGES)
def test_the_fixed_files_need_no_token(shared: Web, path: str) -> None:
    """The browser fetches them before the page can send one; they say nothing of anybody."""
    answer = shared.ask(path, headers={HEADER: None})
    assert answer.status == 200
    assert answer.headers["content-type"].split(";")[0] in (
        "text/html",
        "text/css",
        "text/javascript",
        "image/svg+xml",
    )
    assert b"Marco" not in answer.body


@pytest.mark.parametrize("path", [path for path in EVERYTHING if path not in PAGES])
@pytest.mark.parametrize("token", [None, "", "wrong", "\xff", "x" * 43])
def test_nothing_else_is_answered_without_the_token(
    shared: Web, path: str, token: str | None
) -> None:
    """Not even whether there is such a thing."""
    answer = shared.ask(path, headers={HEADER: token})
    assert answer.status == 403
    assert answer.json()["error"].startswith("the token is missing or wrong; open the address")


def test_the_token_counts_in_the_header_alone(shared: Web) -> None:
    """A link or a cookie, which other pages can make the browser send, opens nothing."""
    path = f"/api/memories?token={shared.token}"
    cookie = f"token={shared.token}; aiaml-token={shared.token}"
    assert shared.ask(path, headers={HEADER: None, "Cookie": cookie}).status == 403
    assert "set-cookie" not in shared.ask("/").headers


@pytest.mark.parametrize("path", EVERYTHING)
@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost", "evil.example:{port}", "[::1]"],
)
def test_another_host_name_is_refused(shared: Web, path: str, host: str) -> None:
    """A stranger's name that leads to this machine (DNS rebinding) gets nothing."""
    answer = shared.ask(path, headers={"Host": host.format(port=shared.port)})
    assert answer.status == 421
    assert "error" in answer.json()


def test_localhost_is_a_name_of_ours(shared: Web) -> None:
    """People type it."""
    assert shared.ask("/api/status", headers={"Host": f"localhost:{shared.port}"}).status == 200


FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "http://localhost:{port}"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("path", EVERYTHING)
@pytest.mark.parametrize("headers", FOREIGN)
def test_another_page_is_refused(shared: Web, path: str, headers: dict[str, str]) -> None:
    """Even with the token, and also one on another port of this machine."""
    named = {name: value.format(port=shared.port) for name, value in headers.items()}
    answer = shared.ask(path, headers=named)
    assert answer.status == 403
    assert answer.json()["error"].startswith("another page asked")


def test_the_page_itself_is_let_in(shared: Web) -> None:
    """With what browsers send for it."""
    own = f"http://127.0.0.1:{shared.port}"
    assert (
        shared.ask("/api/status", headers={"Origin": own, "Sec-Fetch-Site": "same-origin"}).status
        == 200
    )
    assert shared.ask("/", headers={"Sec-Fetch-Site": "none"}).status == 200


@pytest.mark.parametrize("path", EVERYTHING)
@pytest.mark.parametrize("token", [True, False])
def test_every_answer_forbids_what_it_does_not_need(shared: Web, path: str, token: bool) -> None:
    """Also refusals and errors: own scripts and styles only, no frame, no cache, no referrer."""
    headers = shared.ask(path, headers={HEADER: shared.token if token else None}).headers
    rules = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert rules["frame-ancestors"] == rules["form-action"] == rules["base-uri"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers
    assert not [name for name in headers if name.lower().startswith("access-control-")]


def test_no_other_page_gets_leave_to_ask(shared: Web) -> None:
    """The question that browsers send before a foreign request with our header is refused."""
    answer = shared.ask(
        one(DOG),
        "OPTIONS",
        headers={
            "Origin": "https://evil.example",
            "Access-Control-Request-Method": "DELETE",
            "Access-Control-Request-Headers": "x-aiaml-token",
            HEADER: None,
        },
    )
    assert answer.status == 403
    assert shared.ask(one(DOG), "OPTIONS").status == 405


def test_the_page_loads_nothing_from_elsewhere() -> None:
    """No file names another place, holds a script of its own, or makes HTML out of text."""
    for path in STATIC.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|//\w+\.\w+/|@import|url\(", text), path.name
        assert len(
            re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", text)
        ) == (1 if path.name == "elements.js" else 0), path.name
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"\son\w+=|\sstyle=|<style|<script(?! type=\"module\" src=)", page)


# --- malformed requests ---------------------------------------------------------------------------

BAD_PATHS = [
    "/../../etc/passwd",
    "/static/app.js",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/..%2f__init__.py",
    "/index.html",
    "//app.js",
    "/app.js/",
    "/api/memories/..%2f..%2f..%2fetc%2fpasswd",
    "/api/memories/..%2f.lock",
    "/api/memories/.hidden.md",
    "/api/memories/..%5c..%5cboot.md",
    "/api/memories/..md",
    "/api/memories/C:secret.md",
    "/api/memories/x%00.md",
    "/api/memories/nothing.md",
    "/api/memories/" + "x" * 300 + ".md",
    "/api/memories/%ff%fe.md",
    "/api/memories/",
    "/api",
]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_path_leads_to_a_memory_or_nowhere(shared: Web, path: str) -> None:
    """No name reaches a file outside, and none breaks the program."""
    answer = shared.ask(path)
    assert answer.status in (404, 422), answer
    assert set(answer.json()) == {"error"}
    assert shared.ask("/api/status").status == 200


def test_a_link_among_the_memories_is_not_followed(base: Path) -> None:
    """Whoever can put a link there could have the page show any file."""
    (base / "secret").write_text((base / "files" / DOG).read_text())
    link = base / "files" / "link.md"
    try:
        link.symlink_to(base / "secret")
    except OSError:
        pytest.skip("no links can be made here")
    with Web(base) as web:
        assert web.ask(one("link.md")).status == 422


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"])
@pytest.mark.parametrize("path", ["/", "/app.js", "/api/events", "/api/overview", "/api/status"])
def test_another_method_is_refused(shared: Web, path: str, method: str) -> None:
    """Only memories can be changed."""
    answer = shared.ask(path, method, b"")
    assert answer.status == 405
    assert "error" in answer.json()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("q=" + "x" * 1001, "a search has at most 1000 characters"),
        ("since=yesterday", "'yesterday' is no time"),
        ("from=-1", "from: must be a number"),
        ("from=many", "from: must be a number"),
        ("from=" + "9" * 40, "from: must be a number"),
    ],
)
def test_a_wrong_question_is_answered_with_what_is_wrong(
    shared: Web, query: str, said: str
) -> None:
    """A sentence, and the status of a caller's mistake."""
    answer = shared.ask(f"/api/memories?{query}")
    assert answer.status == 400
    assert said in answer.json()["error"]


@pytest.mark.parametrize(
    "query", ["q=%ff%fe", "q=%22", "q=%00", "q=%ed%a0%80", "topic=&topic=", "&&=", "q=((("]
)
def test_an_odd_question_finds_what_there_is(shared: Web, query: str) -> None:
    """Whatever a person types is a question."""
    assert "memories" in shared.get(f"/api/memories?{query}")
    assert "count" in shared.get(f"/api/overview?{query}")


def test_what_is_no_http_harms_nothing(shared: Web) -> None:
    """Anybody may connect to a port."""
    for line in (
        b"\x16\x03\x01\x02\x00\x01",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", shared.port), 10) as stranger:
            stranger.sendall(line + b"\r\n\r\n")
            assert stranger.recv(100).startswith(b"HTTP/1.1 4")
    assert shared.ask("/api/status").status == 200


# --- reading --------------------------------------------------------------------------------------


def test_search_is_that_of_the_verb(shared: Web, base: Path) -> None:
    """The same memories, in the same order, with their scores and keywords."""
    bank = MemoryBank(Settings(base, sync=False))
    for words in (["marco", "dog"], ["python"], ["san francisco", "lisbon"], ["nothing like it"]):
        asked = " ".join(f'"{word}"' if " " in word else word for word in words)
        found = shared.get(f"/api/memories?{urlencode({'q': asked})}")
        expected = bank.ask(Question.parse(words)).found.hits
        assert [each["file"] for each in found["memories"]] == [hit.file_name for hit in expected]
        assert [each["score"] for each in found["memories"]] == [
            hit.relevance_score for hit in expected
        ]
        assert [tuple(part["word"] for part in each["why"]) for each in found["memories"]] == [
            hit.matching_keywords for hit in expected
        ]
        assert found["total"] == len(expected) and found["next"] is None
    bank.close()


def test_filters_narrow_a_search_and_the_newest(shared: Web) -> None:
    """By agent, user, topics and time, all at once."""

    def files(**words: object) -> list[str]:
        found = shared.get(f"/api/memories?{urlencode(words, doseq=True)}")
        return [each["id"] for each in found["memories"]]

    assert files() == ["4e5f6a7b", "3d4e5f6a", "2c3d4e5f", "1b2c3d4e", "0a1b2c3d"]
    assert files(agent="Cursor") == ["4e5f6a7b", "1b2c3d4e"]
    assert files(topic=["FOOD", "dog"]) == ["0a1b2c3d"]
    assert files(user="marco", since="2026-04-01", until="2026-07-01") == ["3d4e5f6a", "1b2c3d4e"]
    assert files(q="marco", agent="claude") == ["0a1b2c3d"]
    assert files(q="dog", topic="health") == ["3d4e5f6a"]
    assert files(agent="nobody") == []


def test_the_newest_come_by_the_page(tmp_path: Path) -> None:
    """All of them, each once, whatever the size of the store."""
    times = [f"2026-01-01T00:{n // 60:02}:{n % 60:02}.000000+00:00" for n in range(120)]
    many = [Memory(f"{n:08x}", time, "a", "u", ("t",), "x") for n, time in enumerate(times)]
    (tmp_path / "files").mkdir()
    for memory in many:
        (tmp_path / "files" / memory.file_name).write_text(format(memory))
    with Web(tmp_path) as web:
        for extra in ("", "&agent=a"):
            got: list[str] = []
            start: int | None = 0
            while start is not None:
                page = web.get(f"/api/memories?from={start}{extra}")
                got += [each["id"] for each in page["memories"]]
                start = page["next"]
                assert page["total"] == 120
            assert got == [memory.id for memory in reversed(many)]


def test_a_memory_comes_as_safe_html_and_as_its_file(shared: Web, base: Path) -> None:
    """Rendered for reading, exact for editing."""
    memory = shared.get(one(PYTHON))
    text = (base / "files" / PYTHON).read_text(encoding="utf-8")
    assert "<strong>Python</strong>" in memory["html"]
    assert memory["text"] == text
    assert memory["version"] == version(text)
    assert memory["topics"] == ["python", "preferences"]


def test_an_excerpt_shows_the_words_that_match(tmp_path: Path) -> None:
    """Also when they stand far down."""
    bank = MemoryBank(Settings(tmp_path, sync=False))
    bank.remember("a", "u", ["t"], "filler words " * 500 + "needle in the hay " + "more " * 500)
    bank.close()
    with Web(tmp_path) as web:
        (found,) = web.get("/api/memories?q=needle")["memories"]
    assert "needle in the hay" in found["excerpt"]
    assert found["excerpt"].startswith("…") and found["excerpt"].endswith("…")
    assert len(found["excerpt"]) < 300


def test_the_overview_counts_what_the_filters_let_through(shared: Web) -> None:
    """Agents, users, topics and bars over time; a choice can be changed."""
    everything = shared.get("/api/overview")
    assert (everything["all"], everything["count"], everything["malformed"]) == (5, 5, 0)
    assert dict(everything["agents"]) == {"claude": 2, "cursor": 2, "gemini": 1}
    assert dict(everything["users"]) == {"marco": 4, "anna": 1}
    assert dict(everything["topics"])["dog"] == 2
    assert everything["time"]["unit"] == "month"
    assert sum(count for _, _, count in everything["time"]["bars"]) == 5
    assert everything["time"]["bars"][0] == ["2026-03-01", "2026-04-01", 1]
    some = shared.get("/api/overview?agent=cursor&since=2026-05-01")
    assert (some["all"], some["count"]) == (5, 1)
    assert dict(some["agents"]) == {"claude": 1, "cursor": 1, "gemini": 1}
    assert dict(some["topics"]) == {"project": 1, "decision": 1}
    assert sum(count for _, _, count in some["time"]["bars"]) == 2


@pytest.mark.parametrize(
    "words", ["dog", "marco prefers", "dog agent:claude", '"type hints"', "xyzzy"]
)
def test_the_overview_counts_what_a_search_finds(shared: Web, words: str) -> None:
    """One number: that of the list, of the pictures, and of the choices."""
    found = shared.get(f"/api/memories?{urlencode({'q': words})}")
    counts = shared.get(f"/api/overview?{urlencode({'q': words})}")
    assert counts["count"] == found["total"] == sum(n for *_, n in counts["time"]["bars"])
    topics = Counter(topic for each in found["memories"] for topic in each["topics"])
    assert dict(counts["topics"]) == topics
    users = Counter(each["user"] for each in found["memories"])
    assert dict(counts["users"]) == users


def test_odd_files_do_not_harm_the_pictures(base: Path) -> None:
    """Times that are none or far away, empty topics, and files that are no memories."""
    for number, when in enumerate(["9999-12-31T23:59:59Z", "0001-01-01", "soon"]):
        text = f"---\nid: odd{number}\ntimestamp: {when}\nagent: \nuser: \ntopics: []\n---\n\nodd\n"
        (base / "files" / f"odd{number}.md").write_text(text)
    (base / "files" / "broken.md").write_text("no memory")
    with Web(base) as web:
        counts = web.get("/api/overview")
        assert (counts["all"], counts["malformed"]) == (8, 1)
        assert sum(count for _, _, count in counts["time"]["bars"]) == 5
        assert len(web.get("/api/memories")["memories"]) == 8
        assert web.ask(one("broken.md")).status == 422


def test_the_page_sees_what_others_change(base: Path) -> None:
    """Added, edited and deleted by whomever: the next answers have it."""
    with Web(base) as web:
        assert web.get("/api/overview")["count"] == 5
        bank = MemoryBank(Settings(base, sync=False))
        stored = bank.remember("codex", "marco", ["fresh"], "Quince jelly.")
        bank.close()
        assert web.get("/api/memories?q=quince")["memories"][0]["id"] == stored.id
        assert web.get("/api/overview")["count"] == 6
        (base / "files" / DOG).unlink()
        assert web.get("/api/overview?topic=health")["count"] == 0
        assert web.ask(one(DOG)).status == 404


@pytest.mark.slow
def test_the_page_sees_an_edit_in_place_within_a_second(base: Path) -> None:
    """Wherever the system does not say which file was touched; where it does, at once."""
    path = next((base / "files").glob("*.md"))
    with Web(base) as web:
        assert web.get("/api/overview")["count"] == 5
        time.sleep(0.1)  # past the tick in which the directory was filled
        assert web.get("/api/overview?topic=seenlater")["count"] == 0
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("topics: [", "topics: [seenlater, "), encoding="utf-8")
        time.sleep(1.1)
        assert web.get("/api/overview?topic=seenlater")["count"] == 1


def test_the_status_says_where_memories_lie_and_how_sync_stands(shared: Web) -> None:
    """Sync is off here, and it says so."""
    status = shared.get("/api/status")
    assert status["sync"] is False
    assert Path(status["base"]).name == "store"
    assert {"remote", "ahead", "behind", "problem", "held_back"} <= set(status)


def test_an_empty_directory_is_an_empty_page(tmp_path: Path) -> None:
    """And looking creates nothing."""
    with Web(tmp_path / "none") as web:
        nothing = {"memories": [], "total": 0, "next": None, "apart": 0}
        assert web.get("/api/memories") == nothing
        assert web.get("/api/overview")["all"] == 0
        assert web.get("/api/memories?q=x&agent=y")["total"] == 0
    assert list(tmp_path.iterdir()) == []


# --- changing -------------------------------------------------------------------------------------


def test_an_edit_is_in_the_file(base: Path) -> None:
    """The text as it was typed, and the memory that it states comes back."""
    with Web(base) as web:
        before = web.get(one(DOG))
        after = before["text"].replace("chicken", "beef").replace("[dog, health]", "[dog]")
        answer = web.ask(one(DOG), "PUT", after.encode(), headers={"If-Match": before["version"]})
        assert answer.status == 200
        assert answer.json()["topics"] == ["dog"]
        assert answer.json()["version"] == version(after)
        assert web.get("/api/memories?q=beef")["memories"][0]["file"] == DOG
    assert (base / "files" / DOG).read_bytes() == after.encode()


def test_an_edit_keeps_the_line_ends_of_windows(base: Path) -> None:
    """A browser's text field has only line feeds; the rest of the file stays as it is."""
    path = base / "files" / DOG
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    with Web(base) as web:
        seen = web.get(one(DOG))
        typed = seen["text"].replace("\r\n", "\n").replace("chicken", "beef")
        assert (
            web.ask(one(DOG), "PUT", typed.encode(), headers={"If-Match": seen["version"]}).status
            == 200
        )
    assert path.read_bytes().count(b"\r\n") == path.read_bytes().count(b"\n") > 5
    assert b"beef" in path.read_bytes()


BAD_TEXTS = [
    (r"(?s).*", "hello", "the first line is not ---"),
    (r"(?s).*", "", "the first line is not ---"),
    ("agent: gemini\n", "", "no field 'agent'"),
    ("3d4e5f6a", "11111111", "the id must stay 3d4e5f6a"),
]


@pytest.mark.parametrize(("found", "typed", "reason"), BAD_TEXTS)
def test_an_edit_that_is_no_memory_is_refused_with_the_reason(
    base: Path, found: str, typed: str, reason: str
) -> None:
    """The file stays as it is."""
    before = (base / "files" / DOG).read_text()
    after = re.sub(found, typed, before, count=1).encode()
    with Web(base) as web:
        answer = web.ask(one(DOG), "PUT", after, {"If-Match": version(before)})
    assert answer.status == 422
    assert reason in answer.json()["error"]
    assert (base / "files" / DOG).read_text() == before


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_change_to_another_version_is_refused(base: Path, method: str) -> None:
    """What somebody else wrote meanwhile is not lost."""
    path = base / "files" / DOG
    seen = path.read_text()
    path.write_text(seen.replace("chicken", "wheat"))
    mine = seen.replace("chicken", "beef").encode()
    with Web(base) as web:
        answer = web.ask(one(DOG), method, mine, headers={"If-Match": version(seen)})
        assert answer.status == 412
        assert "changed by somebody else" in answer.json()["error"]
        assert web.ask(one(DOG), method, mine).status == 428
    assert "wheat" in path.read_text()


def test_forgetting_deletes_the_file(base: Path) -> None:
    """And nothing finds it again."""
    seen = (base / "files" / DOG).read_text()
    with Web(base) as web:
        assert web.ask(one(DOG), "DELETE", headers={"If-Match": version(seen)}).status == 200
        assert web.ask(one(DOG)).status == 404
        assert web.ask(one(DOG), "DELETE", headers={"If-Match": version(seen)}).status == 404
        assert web.get("/api/memories?q=chicken")["memories"] == []
    assert not (base / "files" / DOG).exists()


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PATCH"])
def test_no_other_method_writes(base: Path, method: str) -> None:
    """No link and no form changes anything."""
    before = {path.name: path.read_bytes() for path in (base / "files").iterdir()}
    override = {"If-Match": version(before[DOG].decode()), "X-HTTP-Method-Override": "DELETE"}
    with Web(base) as web:
        for path in (one(DOG), f"{one(DOG)}?_method=DELETE", "/api/memories?delete=1"):
            web.ask(path, method, b"x", headers=override)
    assert {path.name: path.read_bytes() for path in (base / "files").iterdir()} == before


def test_a_large_body_is_refused(base: Path) -> None:
    """Without keeping more of it than a memory may have."""
    seen = (base / "files" / DOG).read_text()
    with Web(base) as web:
        large = b"x" * (4 * 1024 * 1024 + 1)
        answer = web.ask(one(DOG), "PUT", large, headers={"If-Match": version(seen)})
        assert answer.status == 413
        assert "4 MiB" in answer.json()["error"]
        answer = web.ask(one(DOG), "PUT", b"\xff", headers={"If-Match": version(seen)})
        assert answer.status == 400


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can limit another process")
def test_a_disk_that_refuses_is_said(base: Path) -> None:
    """A sentence, and the file is as it was."""
    import resource

    seen = (base / "files" / DOG).read_text()
    with Web(base) as web:
        assert web.get("/api/memories?q=dog")["total"] == 2
        resource.prlimit(web.process.pid, resource.RLIMIT_FSIZE, (10, 10))
        after = seen.replace("chicken", "beef").encode()
        answer = web.ask(one(DOG), "PUT", after, {"If-Match": version(seen)})
        assert answer.status == 503
        assert "the system does not allow a file of this size" in answer.json()["error"]
    assert (base / "files" / DOG).read_text() == seen
    assert len(list((base / "files").iterdir())) == 5


NOTES = """\
Whoever has this address can read and change your memories, as long as this runs.
Ctrl-C ends it, and so do 30 minutes without a visit.
"""


# --- beginning and end ----------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="Windows ends a process group otherwise")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_at_once(base: Path, number: signal.Signals) -> None:
    """Exit code 0, nothing said, and the port is free again, whoever was connected."""
    web = Web(base)
    with socket.create_connection(("127.0.0.1", web.port), 10):
        assert web.end(number) == 0
    assert NOTES.startswith(web.said)  # it may not have come to all of them
    with Web(base, "--port", str(web.port)) as again:
        assert again.port == web.port


@pytest.mark.skipif(os.name != "posix", reason="the stand-in for a browser is a shell script")
@pytest.mark.parametrize("snap", [False, True])
def test_the_browser_is_led_by_a_file_of_ours_alone(base: Path, tmp_path: Path, snap: bool) -> None:
    """The token is on no command line, and what leads to it is nobody else's and goes."""
    browser, home = tmp_path / "browser", tmp_path / "home"
    browser.write_text('#!/bin/sh\nprintf %s "$1" > "$0.part"; mv "$0.part" "$0.opened"\n')
    browser.chmod(0o700)
    home.joinpath("snap" if snap else "other").mkdir(parents=True)
    loose = ("sh", "-c", 'umask 0; exec "$@"', "sh")
    web = Web(base, before=loose, BROWSER=str(browser), HOME=str(home), TMPDIR=str(tmp_path))
    wait_until((tmp_path / "browser.opened").exists)
    address = (tmp_path / "browser.opened").read_text()
    page = Path(unquote(urlsplit(address).path))
    assert address.startswith("file:///") and web.token not in address
    assert page.parent.parent == (home if snap and sys.platform == "linux" else tmp_path)
    assert f"0;url={web.address}" in page.read_text()
    assert [stat.S_IMODE(each.stat().st_mode) for each in (page, page.parent)] == [0o600, 0o700]
    assert "paste the address" in web.said
    assert web.end() == 0
    assert not page.parent.exists()


@pytest.mark.parametrize("led", [True, False])
def test_another_page_leads_here_only_until_the_first_visit(base: Path, led: bool) -> None:
    """A browser calls a file that leads it another page, which otherwise may not."""
    coming = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    with Web(base, **({"BROWSER": "true"} if led else {})) as web:
        assert web.ask("/", headers=coming).status == (200 if led else 403)
        assert web.ask("/api/status", headers=coming).status == 403
        assert web.ask("/", headers={"Sec-Fetch-Site": "cross-site"}).status == 403
        assert web.ask("/api/status").status == 200
        assert web.ask("/", headers=coming).status == 403


def test_it_ends_by_itself_when_nobody_comes(base: Path) -> None:
    """So nothing stays behind."""
    web = Web(base, "--idle", "0.02")
    assert web.ended() == 0
    assert web.said.endswith("Ended: nobody came for 0.02 minutes.\n")


@pytest.mark.slow
def test_visits_keep_it_open_and_strangers_do_not(base: Path) -> None:
    """Only who may come counts as a visitor."""
    web = Web(base, "--idle", "0.03")  # 1.8 s
    for _ in range(3):
        time.sleep(0.9)
        assert web.ask("/api/status").status == 200
    while web.process.poll() is None:
        try:
            web.ask("/api/status", headers={HEADER: "wrong"})
        except OSError:
            break
        time.sleep(0.3)
    assert web.ended() == 0


def test_the_port_can_be_taken(shared: Web, base: Path) -> None:
    """Then it says so, with the exit code of what refused."""
    done = subprocess.run(
        [sys.executable, "-m", "aiaml_server", "web", "--no-browser", "--port", str(shared.port)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "false"},
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"aiaml: cannot listen on port {shared.port}: ")
    assert "leave `--port` out" in done.stderr


def test_edits_are_committed(base: Path) -> None:
    """The page keeps memories in git while it is open, as a server does."""
    text = (base / "files" / DOG).read_text()
    environ = {"AIAML_ENABLE_SYNC": "true", "GIT_CONFIG_GLOBAL": os.devnull}
    with Web(base, **environ) as web:
        web.ask(
            one(DOG),
            "PUT",
            text.replace("chicken", "beef").encode(),
            headers={"If-Match": version(text)},
        )
        wait_until(lambda: web.get("/api/status")["last_commit"])
        status = web.get("/api/status")
        assert status["sync"] is True and status["problem"] is None
    log = subprocess.run(
        ["git", "-C", str(base), "show", f"HEAD:files/{DOG}"], capture_output=True, check=True
    )
    assert parse(log.stdout.decode()).content == "Marco's dog Max is allergic to beef."


def test_edits_one_after_the_other_are_all_in_the_history(base: Path) -> None:
    """However fast they come, and the version before the first of them too."""
    texts = [(base / "files" / DOG).read_text()]
    texts += [texts[0].replace("chicken", each) for each in ("beef", "duck", "fish")]
    environ = {"AIAML_ENABLE_SYNC": "true", "GIT_CONFIG_GLOBAL": os.devnull}
    with Web(base, **environ) as web:
        for before, after in pairwise(texts):
            headers = {"If-Match": version(before)}
            assert web.ask(one(DOG), "PUT", after.encode(), headers=headers).status == 200
    history = [sys.executable, "-m", "aiaml_server", "log", "3d4e5f6a", "--json"]
    settings = {**os.environ, **environ, "AIAML_MEMORY_DIR": str(base)}
    told = subprocess.run(history, check=True, env=settings, capture_output=True, timeout=60)
    assert [each["text"] for each in json.loads(told.stdout)] == texts[::-1]


@pytest.mark.slow
def test_what_is_forgotten_can_be_restored(base: Path) -> None:
    """Git is given it before it goes; and where git has it not, nobody says so."""
    text = (base / "files" / DOG).read_text()
    environ = {"AIAML_ENABLE_SYNC": "true", "GIT_CONFIG_GLOBAL": os.devnull}
    with Web(base, **environ) as web:
        answer = web.ask(one(DOG), "DELETE", headers={"If-Match": version(text)})
        assert answer.json() == {"forgotten": DOG, "kept": True}
    assert not (base / "files" / DOG).exists()
    restore = [sys.executable, "-m", "aiaml_server", "restore", "3d4e5f6a", "--yes"]
    settings = {**os.environ, **environ, "AIAML_MEMORY_DIR": str(base)}
    subprocess.run(restore, check=True, env=settings, capture_output=True, timeout=60)
    assert (base / "files" / DOG).read_text() == text
    with Web(base) as web:
        answer = web.ask(one(DOG), "DELETE", headers={"If-Match": version(text)})
        assert answer.json()["kept"] is False


@pytest.mark.slow
def test_ten_thousand_memories_are_no_burden(tmp_path: Path) -> None:
    """What the page asks for first stays small."""
    (tmp_path / "files").mkdir()
    for n in range(10_000):
        memory = Memory(
            f"{n:08x}",
            f"2026-{n % 12 + 1:02}-{n % 28 + 1:02}T10:00:00.000000+00:00",
            f"agent{n % 5}",
            f"user{n % 3}",
            (f"topic{n % 40}", f"topic{n % 7}"),
            f"Memory number {n} says word{n % 997} and word{n % 13} and some more of the same.",
        )
        (tmp_path / "files" / memory.file_name).write_text(format(memory))
    with Web(tmp_path) as web:
        assert len(web.ask("/api/overview").body) < 30_000
        assert len(web.ask("/api/memories").body) < 50_000
