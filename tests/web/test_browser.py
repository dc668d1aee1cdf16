"""The page as a person uses it: in a real Chromium, with real memories and a real keyboard."""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from aiaml_server.bank import MemoryBank
from aiaml_server.settings import Settings
from browser import chromium, found_browser
from paths import TESTS
from waiting import wait_until
from web_process import Web

pytestmark = pytest.mark.skipif(not found_browser(), reason="no Chromium or Chrome is installed")

DOG = "20260620_120000_3d4e5f6a.md"
TIMEOUT_MS = 60_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    expect.set_options(timeout=TIMEOUT_MS)
    with chromium() as browser:
        yield browser


@pytest.fixture
def web(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Web]:
    """The page of the sample memories; without sync, unless a test asks for it."""
    shutil.copytree(TESTS / "transcripts" / "store", tmp_path / "store")
    (tmp_path / "nobody").mkdir()
    sync = getattr(request, "param", "false")
    with Web(tmp_path / "store", AIAML_ENABLE_SYNC=sync, GIT_CONFIG_GLOBAL=os.devnull) as web:
        yield web


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Where the memories of `web` lie."""
    return tmp_path / "store" / "files"


@pytest.fixture
def context(browser: Browser, web: Web) -> Iterator[BrowserContext]:
    """A fresh profile. At the end, nothing but the page itself must have been requested."""
    context = browser.new_context(locale="en-GB", timezone_id="UTC")
    context.set_default_timeout(TIMEOUT_MS)
    requested: list[str] = []
    context.on("request", lambda request: requested.append(request.url))
    yield context
    context.close()
    own = f"http://127.0.0.1:{web.port}/"
    assert [url for url in requested if not url.startswith(own)] == []


@pytest.fixture
def page(context: BrowserContext, web: Web) -> Iterator[Page]:
    """The page with its list. At the end, no script must have failed."""
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(web.address)
    expect(page.locator("#hits a")).to_have_count(5)
    expect(page.locator("#count")).to_have_text("5 memories")
    yield page
    assert errors == []


def open_memory(page: Page, words: str) -> None:
    """Open the listed memory that says so."""
    page.locator("#hits a", has_text=words).click()
    page.locator("#reader article").wait_for()


def test_a_search_answers_while_one_types(page: Page) -> None:
    """Matches are marked; topics and the chart are filters."""
    search = page.get_by_label("Search memories")
    search.press_sequentially("chicken")
    expect(page.locator("#count")).to_have_text("1 memory")
    expect(page.locator("#hits mark")).to_have_text("chicken")
    expect(page).to_have_url(re.compile("#q=chicken$"))
    search.fill("nothing-like-this")
    expect(page.locator("#count")).to_have_text("No memory matches.")
    search.fill("since:yesterday")
    expect(page.locator("#count")).to_contain_text("is not a time")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator("#hits a")).to_have_count(5)
    topic = page.locator("#topics button", has_text="dog")
    topic.click()
    expect(page.get_by_label("Search memories")).to_have_value("topic:dog")
    expect(page.locator("#hits a")).to_have_count(2)
    expect(topic).to_have_attribute("aria-pressed", "true")
    topic.click()
    expect(page.locator("#hits a")).to_have_count(5)
    page.locator("#chart .space").last.click()
    expect(page.locator("#hits a")).to_have_count(1)
    expect(page.get_by_label("Search memories")).to_have_value(re.compile(r"^since:2026-\d\d-01$"))


def test_a_memory_is_read_and_the_address_keeps_it_but_not_the_token(page: Page, web: Web) -> None:
    """It can be loaded again, and left with the back button."""
    open_memory(page, "allergic")
    expect(page.locator("#reader article")).to_contain_text("allergic to chicken")
    expect(page.locator("#reader .topics")).to_contain_text("dog")
    assert web.token not in page.url and DOG in page.url
    page.reload()
    expect(page.locator("#reader article")).to_contain_text("allergic to chicken")
    page.go_back()
    expect(page.locator("#overview")).to_be_visible()


def test_the_page_is_used_without_a_mouse(page: Page) -> None:
    """Every action has a key."""
    page.keyboard.press("j")
    first = page.locator("#hits a").first
    expect(first).to_have_attribute("aria-current", "true")
    page.locator("#reader article").wait_for()
    page.keyboard.press("j")
    expect(page.locator("#hits a").nth(1)).to_be_focused()
    page.keyboard.press("k")
    expect(first).to_be_focused()
    page.keyboard.press("e")
    expect(page.locator("textarea")).to_be_focused()
    page.keyboard.type("x")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Discard").click()
    page.locator("#reader article").wait_for()
    page.keyboard.press("d")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator("#overview")).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_label("Search memories")).to_be_focused()


def test_an_edit_is_saved_with_the_line_ends_of_the_file(page: Page, files: Path) -> None:
    """What is no memory is refused, and the typed text stays."""
    path = files / DOG
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    before = path.read_bytes()
    open_memory(page, "allergic")
    page.get_by_role("button", name="Edit").click()
    text = page.locator("textarea").input_value()
    page.locator("textarea").fill(text.replace("agent:", "agnt:"))
    page.keyboard.press("Control+s")
    expect(page.get_by_role("alert")).to_contain_text("agent")
    page.locator("textarea").fill(text.replace("chicken", "beef"))
    page.keyboard.press("Control+s")
    expect(page.locator("#reader article")).to_contain_text("allergic to beef")
    expect(page.locator("#hits a", has_text="beef")).to_have_count(1)
    assert path.read_bytes() == before.replace(b"chicken", b"beef")


def test_the_editor_of_a_long_text_begins_at_its_beginning(page: Page, files: Path) -> None:
    """With its buttons in sight."""
    path = files / DOG
    path.write_text(path.read_text("utf-8") + "more of it\n" * 300, "utf-8")
    page.reload()
    open_memory(page, "chicken")
    page.locator("#reader").evaluate("pane => { pane.scrollTop = 2000 }")
    page.keyboard.press("e")
    expect(page.get_by_role("button", name="Save")).to_be_in_viewport()


def test_an_edit_of_somebody_else_is_shown_before_it_is_replaced(page: Page, files: Path) -> None:
    """The person decides, with both texts in view."""
    open_memory(page, "allergic")
    page.keyboard.press("e")
    text = page.locator("textarea").input_value()
    (files / DOG).write_text(text.replace("chicken", "fish"))
    page.locator("textarea").fill(text.replace("chicken", "beef"))
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("allergic to fish")
    assert "fish" in (files / DOG).read_text()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#reader article")).to_contain_text("allergic to beef")


def test_forgetting_asks_and_can_be_undone(page: Page, files: Path) -> None:
    """Byte for byte."""
    before = (files / DOG).read_bytes()
    open_memory(page, "allergic")
    page.get_by_role("button", name="Forget…").first.click()
    expect(page.get_by_role("dialog")).to_contain_text("Sync is off")
    page.get_by_role("button", name="Cancel").click()
    assert (files / DOG).exists()
    page.get_by_role("button", name="Forget…").first.click()
    page.get_by_role("button", name="Forget", exact=True).click()
    expect(page.locator("#hits a")).to_have_count(4)
    expect(page.locator("#overview")).to_be_visible()
    assert not (files / DOG).exists()
    expect(page.locator("#toast")).to_contain_text("Git has no copy.")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#reader article")).to_contain_text("allergic")
    assert (files / DOG).read_bytes() == before


@pytest.mark.parametrize("web", ["true"], indirect=True)
def test_versions_and_forgotten_memories_are_restored(page: Page, files: Path) -> None:
    """From git, also after the memory is gone."""
    before = (files / DOG).read_bytes()
    open_memory(page, "allergic")
    page.keyboard.press("e")
    text = page.locator("textarea").input_value()
    page.locator("textarea").fill(text.replace("chicken", "beef"))
    page.keyboard.press("Control+s")
    expect(page.locator("#reader article")).to_contain_text("beef")
    page.get_by_text("Versions", exact=True).click()
    page.locator("details details summary").last.click()
    page.get_by_role("button", name="Restore this version").click()
    expect(page.locator("#reader article")).to_contain_text("chicken")
    assert (files / DOG).read_bytes() == before
    page.keyboard.press("d")
    page.get_by_role("button", name="Forget", exact=True).click()
    expect(page.locator("#hits a")).to_have_count(4)
    page.get_by_text("Forgotten memories", exact=True).click()
    page.locator("#forgotten details summary", has_text="allergic").click()
    page.get_by_role("button", name="Restore this version").click()
    expect(page.locator("#hits a")).to_have_count(5)
    assert (files / DOG).read_bytes() == before


def test_what_an_agent_does_appears_when_the_person_comes_back(page: Page, files: Path) -> None:
    """In the list and in the open memory."""
    open_memory(page, "allergic")
    bank = MemoryBank(Settings(files.parent, sync=False))
    bank.remember("claude", "ann", ["news"], "Something new")
    bank.close()
    text = (files / DOG).read_text()
    (files / DOG).write_text(text.replace("chicken", "beef"))
    page.evaluate("dispatchEvent(new Event('focus'))")
    expect(page.locator("#hits a").first).to_contain_text("Something new")
    expect(page.locator("#reader article")).to_contain_text("beef")


HOSTILE = """\
<script>window.pwned = 1</script> <img src=x onerror="window.pwned = 2">

<b onclick="window.pwned = 3">bold</b> [link](javascript:window.pwned=4) ![](https://evil.example/x)
</textarea><style>* { display: none }</style>
"""

FORBIDDEN = """() => {
    const button = document.createElement("button");
    try { button.setAttribute("onclick", "window.pwned = 1"); } catch { }
    document.body.append(button);
    button.click();
    try { document.body.innerHTML = "<p>x"; return "not refused"; } catch { return "refused"; }
}"""


def test_a_hostile_memory_is_text(page: Page, files: Path) -> None:
    """Wherever it appears; and the policy refuses scripts in any case."""
    bad = "<img/src=x/onerror=window.pwned=10>"
    bank = MemoryBank(Settings(files.parent, sync=False))
    bank.remember(bad, bad, [bad, '"><script>window.pwned=11</script>'], HOSTILE)
    bank.close()
    page.reload()
    page.get_by_label("Search memories").fill("pwned </textarea>")
    expect(page.locator("#hits mark").first).to_be_visible()
    open_memory(page, "pwned")
    expect(page.locator("#reader article")).to_contain_text("<script>window.pwned = 1</script>")
    active = "script, img, iframe, style, base, meta, [onclick]"
    expect(page.locator("#reader").locator(active)).to_have_count(0)
    for link in page.locator("#reader article a").all():
        assert str(link.get_attribute("href")).startswith("https://evil.example")
    page.keyboard.press("e")
    expect(page.locator("textarea")).to_have_value(re.compile("</textarea><style>"))
    page.keyboard.press("Escape")
    assert page.evaluate(FORBIDDEN) == "refused"
    assert page.evaluate("window.pwned") is None


class _Elsewhere(BaseHTTPRequestHandler):
    """Another site, on another port of this computer."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>elsewhere</title><p>elsewhere")

    def log_message(self, *_: object) -> None:
        """Log nothing."""


TRIES = """async ([target, token]) => {
    const tried = async (options) => {
        try { return (await fetch(target + "api/memories", options)).status; }
        catch { return "failed"; }
    };
    const headers = { "X-AIAML-Token": token };
    const framed = await new Promise((resolve) => {
        const frame = document.createElement("iframe");
        frame.onload = () => resolve(frame.contentDocument === null ? "closed" : "open");
        frame.src = target;
        document.body.append(frame);
    });
    const answers = [{}, { headers }, { method: "DELETE", headers }].map(tried);
    return [...await Promise.all(answers), framed];
}"""


def test_another_site_learns_and_changes_nothing(browser: Browser, web: Web, files: Path) -> None:
    """Even with the token, from another port of this computer."""
    with HTTPServer(("127.0.0.1", 0), _Elsewhere) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        found = page.evaluate(TRIES, [f"http://127.0.0.1:{web.port}/", web.token])
        assert found == ["failed", "failed", "failed", "closed"]
        assert "Search memories" not in page.frames[1].content()
        page.close()
        server.shutdown()
        thread.join()
    assert len(list(files.iterdir())) == 5


def test_without_the_token_or_the_program_the_page_says_what_to_do(
    context: BrowserContext, web: Web
) -> None:
    """Instead of an empty page."""
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{web.port}/")
    expect(page.locator("#count")).to_contain_text("Open the address that `aiaml web` printed")
    page.goto(web.address)
    expect(page.locator("#hits a")).to_have_count(5)
    web.end()
    page.locator("#hits a").first.click()
    expect(page.locator("body")).to_contain_text("no longer running")


def test_the_page_fits_phones_and_both_color_schemes(page: Page) -> None:
    """Nothing is wider than the screen."""
    for scheme, expected in (("light", "rgb(247, 246, 243)"), ("dark", "rgb(21, 23, 26)")):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == expected
    for width in (320, 390, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        open_memory(page, "allergic")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.keyboard.press("e")
        page.locator("textarea").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Back").click()
        expect(page.locator("#topics")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="the stand-in for a browser is a shell script")
def test_the_file_sends_a_browser_to_the_page(browser: Browser, tmp_path: Path) -> None:
    """A real browser comes from the file, and can load the page again."""
    shutil.copytree(TESTS / "transcripts" / "store", tmp_path / "store")
    opener = tmp_path / "opener"
    opener.write_text('#!/bin/sh\nprintf %s "$1" > "$0.part"; mv "$0.part" "$0.opened"\n')
    opener.chmod(0o700)
    with Web(tmp_path / "store", BROWSER=str(opener)) as web:
        wait_until((tmp_path / "opener.opened").exists)
        page = browser.new_page()
        page.goto((tmp_path / "opener.opened").read_text())
        for _ in range(2):
            expect(page.locator("#hits a")).to_have_count(5)
            assert page.url.rstrip("#") == web.address.partition("#")[0]
            page.reload()
        page.close()
