"""The page's server in process: who is let in, what is answered, and what a change does."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from aiaml_server.bank import MemoryBank
from aiaml_server.format.filters import Filter
from aiaml_server.format.memory import Memory, format, parse  # noqa: A004
from aiaml_server.index import Question
from aiaml_server.settings import Settings
from aiaml_server.web.app import create_app
from machine import TOKEN as SECRET
from paths import ROOT, TESTS

SAMPLES = TESTS / "transcripts" / "store"
DOG = "20260620_120000_3d4e5f6a.md"
STATIC = ROOT / "src" / "aiaml_server" / "web" / "static"
PAGES = ["/", *(f"/{path.name}" for path in sorted(STATIC.iterdir()) if path.suffix != ".html")]
PRIVATE = ["/api/status", "/api/memories", f"/api/memories/{DOG}", "/api/forgotten", "/nothing"]
PORT = 8642
TOKEN = "t" * 43
HEADER = "X-AIAML-Token"


class Page:
    """A page over some memories, and a client that has the token."""

    def __init__(self, base: Path, *, sync: bool = False, redirected: bool = False) -> None:
        """Make the page of a directory."""
        settings = Settings(base, sync=sync)
        self.base = base
        self.bank = MemoryBank(settings)
        app = create_app(self.bank, settings, port=PORT, token=TOKEN, redirected=redirected)
        self.client = TestClient(
            app,
            f"http://127.0.0.1:{PORT}",
            headers={HEADER: TOKEN},
            raise_server_exceptions=False,
        )

    def get(self, path: str) -> Any:
        """Return the JSON of an answer with status 200."""
        answer = self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def search(self, question: str, start: int = 0) -> Any:
        """Return what a search finds."""
        return self.get(f"/api/memories?q={quote(question)}&from={start}")

    def change(self, method: str, path: str, text: str = "", **headers: str) -> Any:
        """Send a change; `if_match` and the like are headers."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.request(method, path, content=text.encode(), headers=named)

    def version(self, name: str) -> str:
        """Return the version of a memory."""
        return str(self.get(f"/api/memories/{name}")["version"])

    def text(self, name: str) -> str:
        """Return the text of a file, with its line ends."""
        return (self.base / "files" / name).read_bytes().decode()


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """A page over the sample memories, without sync."""
    shutil.copytree(SAMPLES, tmp_path / "store")
    page = Page(tmp_path / "store")
    yield page
    page.bank.close()


@pytest.fixture
def synced(tmp_path: Path) -> Iterator[Page]:
    """A page over the sample memories, which are kept in git."""
    shutil.copytree(SAMPLES, tmp_path / "store")
    page = Page(tmp_path / "store", sync=True)
    yield page
    page.bank.close()


# --- the guard ------------------------------------------------------------------------------------


def test_fixed_files_need_no_token_and_hold_nothing_private(page: Page) -> None:
    """The browser fetches them before the page can send a token."""
    for path in PAGES:
        answer = page.client.get(path, headers={HEADER: ""})
        assert answer.status_code == 200
        kind = answer.headers["content-type"].split(";")[0]
        assert kind in ("text/html", "text/css", "text/javascript", "image/svg+xml")
        assert "Marco" not in answer.text
    assert len([path for path in PAGES if path.endswith((".js", ".css"))]) == 2


def test_all_else_needs_the_token_in_its_header(page: Page) -> None:
    """A link or a cookie, which other sites can make the browser send, opens nothing."""
    cookie = {"cookie": f"token={TOKEN}; {HEADER}={TOKEN}"}
    for path in PRIVATE:
        for token in ("", "wrong", "x" * 43, "\xff"):
            answer = page.client.get(path, headers={HEADER.encode(): token.encode("latin-1")})
            assert answer.status_code == 403
            assert "token is missing or wrong" in answer.json()["error"]
        answer = page.client.get(f"{path}?token={TOKEN}", headers={HEADER: "", **cookie})
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers


def test_another_host_name_is_refused(page: Page) -> None:
    """A name that resolves to this computer (DNS rebinding) gets nothing."""
    for path in (*PAGES, *PRIVATE):
        for host in ("evil.example", "127.0.0.1", "127.0.0.1:1", "localhost", "[::1]"):
            assert page.client.get(path, headers={"host": host}).status_code == 421
        host = f"evil.example:{PORT}"
        assert page.client.get(path, headers={"host": host}).status_code == 421
    localhost = {"host": f"localhost:{PORT}"}
    assert page.client.get("/api/status", headers=localhost).status_code == 200


def test_another_page_is_refused(page: Page) -> None:
    """Even with the token, and also one on another port of this computer."""
    own = f"http://127.0.0.1:{PORT}"
    foreign = [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": f"http://localhost:{PORT}"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": own, "sec-fetch-site": "same-site"},
    ]
    for path in (*PAGES, *PRIVATE):
        for headers in foreign:
            assert page.client.get(path, headers=headers).status_code == 403
    for headers in ({"origin": own, "sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}):
        assert page.client.get("/api/status", headers=headers).status_code == 200


def test_the_redirecting_file_is_let_in_until_the_first_visit(tmp_path: Path) -> None:
    """A browser counts a local file as another site."""
    coming = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    page = Page(tmp_path, redirected=True)
    assert page.client.get("/", headers=coming).status_code == 200
    assert page.client.get("/api/status", headers=coming).status_code == 403
    assert page.client.get("/", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    page.get("/api/status")
    assert page.client.get("/", headers=coming).status_code == 403
    assert Page(tmp_path).client.get("/", headers=coming).status_code == 403


def test_every_answer_forbids_what_it_does_not_need(page: Page) -> None:
    """Refusals too; and no other site may read an answer (CORS)."""
    for path in (*PAGES, *PRIVATE):
        for token in (TOKEN, "wrong"):
            headers = page.client.get(path, headers={HEADER: token}).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy and "script-src 'self';" in policy
            assert "frame-ancestors 'none'" in policy and "unsafe" not in policy
            assert "base-uri 'none'; form-action 'none'" in policy
            assert "require-trusted-types-for 'script'" in policy
            assert headers["cache-control"] == "no-store"
            assert headers["x-content-type-options"] == "nosniff"
            assert not [name for name in headers if name.startswith("access-control")]


def test_a_body_states_its_length_of_at_most_a_mebibyte(page: Page) -> None:
    """A refused body is not read, and nothing is written."""
    path = f"/api/memories/{DOG}"
    before = page.text(DOG)
    large = page.change("PUT", path, "x" * (1024 * 1024 + 1), if_match=page.version(DOG))
    assert (large.status_code, large.headers["connection"]) == (413, "close")
    assert page.change("PUT", path, content_length="9" * 30).status_code == 413
    assert page.change("PUT", path, content_length="-1").status_code == 400
    assert page.client.put(path, content=iter([b"chunk"])).status_code == 411
    headers = {"if-match": page.version(DOG)}
    assert page.client.put(path, content=b"\xff", headers=headers).status_code == 400
    assert page.text(DOG) == before


def test_only_names_of_memories_lead_to_files(page: Page, tmp_path: Path) -> None:
    """No path leaves the directory, and no link is followed."""
    (tmp_path / "secret.md").write_text(page.text(DOG))
    (page.base / "files" / "link.md").symlink_to(tmp_path / "secret.md")
    (page.base / "files" / ".hidden.md").write_text(page.text(DOG))
    names = ["..%2F..%2Fsecret.md", "../secret.md", "%2Fetc%2Fpasswd", "a%00.md", ".hidden.md"]
    names += ["%2E%2E%2Fsecret.md", "nothing.md", "passwd", "%FF.md"]
    for name in names:
        assert page.client.get(f"/api/memories/{name}").status_code == 404, name
    assert page.client.get("/api/memories/link.md").status_code in (404, 422)


def test_other_methods_are_refused(page: Page) -> None:
    """Nothing is written by a method that no route has."""
    for path in (*PAGES, "/api/memories", "/api/status"):
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"):
            assert page.client.request(method, path).status_code == 405
    assert len(list((page.base / "files").iterdir())) == 5


def test_a_bug_is_answered_without_its_details(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log has the traceback; the page has the name of the error."""

    def fail(_: str) -> str:
        raise RuntimeError("details")

    monkeypatch.setattr(page.bank, "text", fail)
    answer = page.client.get(f"/api/memories/{DOG}")
    assert answer.status_code == 500
    assert answer.json()["error"].startswith("That failed (RuntimeError)")


# --- read -----------------------------------------------------------------------------------------


def test_a_search_finds_what_the_command_finds(page: Page) -> None:
    """With words, filters and phrases."""
    for question in ("dog", "python billing", '"allergic to"', "topic:dog chicken", "agent:claude"):
        found = page.search(question)
        wanted, rest = Filter().with_fields(question.replace('"', "").split())
        if not rest:
            names = [name for _, name in page.bank.index.dated(wanted)]
        elif '"' in question:
            names = [DOG]
        else:
            answer = page.bank.index.search(Question.parse(rest), wanted)
            names = [hit.file_name for hit in answer.found.hits]
        assert [memory["file"] for memory in found["memories"]] == names, question
        assert (found["total"], found["next"], found["all"]) == (len(names), None, 5)


def test_a_search_that_cannot_be_understood_says_why(page: Page) -> None:
    """Odd but valid searches are answered."""
    for question, reason in (
        ("since:yesterday", "is not a time"),
        ("topic:", "must have a value"),
        ("x" * 1001, "at most 1000 characters"),
    ):
        answer = page.client.get("/api/memories", params={"q": question})
        assert answer.status_code == 400
        assert reason in answer.json()["error"]
    assert page.client.get("/api/memories?from=-1").status_code == 400
    for question in ("", "  ", '""', "++", "\x00", "ğ‍", "a:b", "%"):
        assert page.client.get("/api/memories", params={"q": question}).status_code == 200


def test_a_long_list_comes_in_pages(tmp_path: Path) -> None:
    """The first page also counts the topics and the bars of the chart."""
    (tmp_path / "files").mkdir()
    for number in range(60):
        made = f"2026-0{number // 28 + 1}-{number % 28 + 1:02}T10:00:00.000000+00:00"
        memory = Memory(f"{number:08x}", made, "claude", "ann", ("food",), f"Note {number}")
        (tmp_path / "files" / memory.file_name).write_text(format(memory))
    page = Page(tmp_path)
    first, second = page.search(""), page.search("", 50)
    titles = [memory["title"] for memory in first["memories"] + second["memories"]]
    assert titles == [f"Note {number}" for number in reversed(range(60))]
    assert (first["next"], second["next"]) == (50, None)
    assert first["topics"] == [["food", 60]]
    assert first["bars"] == [["2026-01", 28], ["2026-02", 28], ["2026-03", 4]]
    assert page.search("since:2026-03-01")["bars"] == [
        [f"2026-03-0{day}", 1] for day in range(1, 5)
    ]
    page.bank.close()


def test_a_match_is_shown_with_the_words_around_it(page: Page) -> None:
    """Without markup, and with what is to be highlighted."""
    page.bank.remember("claude", "ann", ["x"], f"# Title\n\n{'filler ' * 60}the *needle* is here")
    [found] = page.search("needle")["memories"]
    assert found["title"] == "Title"
    assert found["excerpt"].startswith("…") and "the needle is here" in found["excerpt"]
    assert found["words"] == ["needle"]


def test_a_list_shows_text_without_markup(page: Page) -> None:
    """Neither addresses of links nor boxes, fences and their languages."""
    text = "see [the docs](https://a.test/x)\n- [ ] one\n- [x] two\n```python\ncode()\n```"
    page.bank.remember("claude", "ann", ["x"], f"# Title\n\n{text}")
    [found] = page.search("docs")["memories"]
    assert found["excerpt"] == "see the docs one two code()"


def test_a_memory_is_shown_as_safe_html_and_as_its_file(page: Page) -> None:
    """Invisible characters are marked wherever they are shown."""
    content = "<script>x</script> [a](javascript:x) **b**\u202e"
    page.bank.remember("cla\u200bude", "ann", ["x"], content)
    name = page.search("")["memories"][0]["file"]
    found = page.get(f"/api/memories/{name}")
    assert found["text"] == page.text(name)
    assert "<strong>b</strong>" in found["html"] and "‹U+202E›" in found["html"]
    assert "<script" not in found["html"] and 'href="javascript' not in found["html"]
    assert found["agent"] == "cla‹U+200B›ude"
    assert found["invisible"] == ["‹U+200B›", "‹U+202E›"]


def test_similar_and_replaced_memories_are_listed(page: Page) -> None:
    """With a memory, and in the status."""
    old = page.bank.remember("claude", "ann", ["tea"], "Ann drinks green tea in the morning.")
    new = page.bank.remember(
        "claude", "ann", ["tea"], f"Ann drinks black tea in the morning. Replaces {old.id}."
    )
    found = page.get(f"/api/memories/{new.file_name}")
    assert [other["file"] for other in found["similar"]] == [old.file_name]
    replaced = page.get("/api/status")["replaced"]
    assert [(other["id"], other["by"]) for other in replaced] == [(old.id, new.id)]


def test_a_file_that_is_no_memory_is_named_as_one(page: Page) -> None:
    """It can be neither read nor listed."""
    (page.base / "files" / "broken.md").write_text("no memory")
    assert page.client.get("/api/memories/broken.md").status_code == 422
    assert "not readable memories: 1" in page.get("/api/status")["warnings"][0]


def test_a_directory_that_cannot_be_read_is_an_error_with_a_reason(tmp_path: Path) -> None:
    """A sentence, not a traceback."""
    (tmp_path / "files").write_text("a file")
    page = Page(tmp_path)
    answer = page.client.get("/api/memories")
    assert answer.status_code == 503 and "files" in answer.json()["error"]


# --- change ---------------------------------------------------------------------------------------


def test_an_edit_is_written_as_it_was_sent(page: Page) -> None:
    """With its line ends; and it is found at once."""
    after = page.text(DOG).replace("chicken", "beef").replace("\n", "\r\n")
    answer = page.change("PUT", f"/api/memories/{DOG}", after, if_match=page.version(DOG))
    assert answer.status_code == 200 and "beef" in answer.json()["html"]
    assert page.text(DOG) == after
    assert page.search("beef")["total"] == 1


def test_an_edit_that_is_no_memory_changes_nothing(page: Page) -> None:
    """Nor does one with another id."""
    before = page.text(DOG)
    version = page.version(DOG)
    for text in ("", "x", before.replace("agent:", "agnt:"), before.replace("3d4e5f6a", "0" * 8)):
        answer = page.change("PUT", f"/api/memories/{DOG}", text, if_match=version)
        assert answer.status_code == 422 and answer.json()["error"]
    assert page.text(DOG) == before


def test_a_change_names_the_version_that_it_changes(page: Page) -> None:
    """No change overwrites what the person has not seen."""
    path = f"/api/memories/{DOG}"
    before = page.text(DOG)
    for method, address in (("PUT", path), ("DELETE", path), ("POST", f"{path}/restore")):
        assert page.change(method, address, before).status_code == 428
        other = page.change(method, address, before, if_match="0" * 64)
        assert other.status_code == 412 and "meanwhile" in other.json()["error"]
    restored = page.change("POST", f"{path}/restore", before, if_none_match="*")
    assert restored.status_code == 412
    assert page.text(DOG) == before


def test_a_forgotten_memory_comes_back_as_it_was(page: Page) -> None:
    """Byte for byte, also without git."""
    path, before = f"/api/memories/{DOG}", page.text(DOG)
    assert page.change("DELETE", path, if_match=page.version(DOG)).json() == {"kept": False}
    assert not (page.base / "files" / DOG).exists()
    assert page.client.get(path).status_code == 404
    assert page.change("POST", f"{path}/restore", "x", if_none_match="*").status_code == 422
    answer = page.change("POST", f"{path}/restore", before, if_none_match="*")
    assert answer.status_code == 200 and page.text(DOG) == before


# --- history --------------------------------------------------------------------------------------


def test_versions_are_listed_and_opened_one_by_one(synced: Page) -> None:
    """The list holds no texts; each version has its text and its diff."""
    path, before = f"/api/memories/{DOG}", synced.text(DOG)
    after = before.replace("chicken", "beef")
    assert synced.change("PUT", path, after, if_match=synced.version(DOG)).status_code == 200
    versions = synced.get(f"{path}/versions")
    assert [version["action"] for version in versions] == ["edited", "added"]
    assert not [version for version in versions if "text" in version]
    opened = [synced.get(f"{path}/versions/{version['commit']}") for version in versions]
    assert [version["text"] for version in opened] == [after, before]
    assert "-Marco's dog Max is allergic to chicken." in opened[0]["diff"]
    assert synced.client.get(f"{path}/versions/{'0' * 40}").status_code == 404
    answer = synced.change("POST", f"{path}/restore", before, if_match=synced.version(DOG))
    assert answer.status_code == 200 and synced.text(DOG) == before


def test_forgotten_memories_are_listed_until_they_are_back(synced: Page) -> None:
    """Git has their last text, also what was typed just before."""
    path = f"/api/memories/{DOG}"
    assert synced.get("/api/forgotten") == []
    before = synced.text(DOG).replace("chicken", "beef")
    (synced.base / "files" / DOG).write_bytes(before.encode())
    assert synced.change("DELETE", path, if_match=synced.version(DOG)).json() == {"kept": True}
    synced.bank.commit()
    [gone] = synced.get("/api/forgotten")
    assert (gone["file"], gone["title"]) == (DOG, parse(before).content)
    version = synced.get(f"{path}/versions/{gone['version']['commit']}")
    answer = synced.change("POST", f"{path}/restore", version["text"], if_none_match="*")
    assert answer.status_code == 200 and synced.text(DOG) == before
    assert synced.get("/api/forgotten") == []
    file = synced.bank.directory / DOG
    file.rename(file.with_name("dog.md"))  # its id exists: it is not forgotten
    synced.bank.commit()
    assert synced.get("/api/forgotten") == []


def test_a_restore_never_loses_what_git_lacks(page: Page) -> None:
    """Without sync, the present version would be gone."""
    path, before = f"/api/memories/{DOG}", page.text(DOG)
    other = before.replace("chicken", "beef")
    answer = page.change("POST", f"{path}/restore", other, if_match=page.version(DOG))
    assert answer.status_code == 409 and "sync is off" in answer.json()["error"]
    assert page.text(DOG) == before


def test_the_status_says_how_sync_stands(page: Page) -> None:
    """In a few words."""
    status = page.get("/api/status")
    assert (status["base"], status["sync"]) == (str(page.base), "Sync is off")
    assert status["warnings"] == []


def test_what_is_held_back_is_not_called_synced(synced: Page) -> None:
    """The warning beside it says why."""
    synced.bank.remember("claude", "ann", ["x"], f"The key is {SECRET}")
    synced.bank.commit()
    status = synced.get("/api/status")
    assert status["sync"] == "1 not committed"
    assert "seems to hold" in status["warnings"][0]


def test_the_history_of_an_untrusted_directory_is_not_opened(synced: Page, tmp_path: Path) -> None:
    """Its memories are still found."""
    synced.bank.commit()
    assert synced.get("/api/status")["sync"] == "On this computer only"
    shutil.copytree(synced.base, tmp_path / "copy")
    copy = Page(tmp_path / "copy", sync=True)
    [warning] = copy.get("/api/status")["warnings"]
    assert "aiaml trust" in warning
    for path in ("/api/forgotten", f"/api/memories/{DOG}/versions"):
        answer = copy.client.get(path)
        assert answer.status_code == 503 and "aiaml trust" in answer.json()["error"]
    assert copy.search("chicken")["total"] == 1
    copy.bank.close()
    messages: list[str] = []
    bank = MemoryBank(Settings(tmp_path / "copy"), report=messages.append)
    assert bank.commit() is None
    bank.close()
    [message] = messages
    assert message.startswith("Not committed to git yet: this memory directory")
    assert "aiaml trust" in message
