"""`aiaml web` as a person sees it: in a real Chromium, with real memories and a real keyboard."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import BytesIO
from pathlib import Path

import pytest
import screenshots
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pypdf import PdfReader
from test_cli_output import BELONGING, ELSEWHERE, is_visible
from test_cli_output import HOSTILE as INVISIBLE

from aiaml_server import MemoryBank, Settings
from aiaml_server.format.invisible import marked
from browser import Held, chromium, found_browser
from paths import TESTS
from waiting import wait_until
from web_process import Web

pytestmark = pytest.mark.skipif(
    not found_browser(), reason="neither Chromium nor Chrome is installed, so no page can be seen"
)

DOCS = Path(screenshots.__file__).parent
VIEWS = TESTS / "web_views.txt"
SAMPLES = TESTS / "transcripts" / "store"
DOG = "20260620_120000_3d4e5f6a.md"
BILLING = "The billing service moves to PostgreSQL 18"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start one browser for all tests."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    """Serve the sample memories to one test."""
    shutil.copytree(SAMPLES, tmp_path / "store")
    with Web(tmp_path / "store") as web:
        yield web


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """Serve the sample memories to the tests that only look."""
    base = tmp_path_factory.mktemp("shared") / "store"
    shutil.copytree(SAMPLES, base)
    with Web(base) as web:
        yield web


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Where the memories of `web` lie."""
    return tmp_path / "store" / "files"


@pytest.fixture
def context(browser: Browser, web: Web) -> Iterator[BrowserContext]:
    """A fresh profile; at the end, nothing but the page itself must have been asked for."""
    context = browser.new_context(locale="en-GB", timezone_id="UTC")
    context.set_default_timeout(60_000)
    expect.set_options(timeout=60_000)
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    yield context
    context.close()
    assert [url for url in asked if not url.startswith(web.address.partition("#")[0])] == []


@pytest.fixture
def page(context: BrowserContext, web: Web) -> Iterator[Page]:
    """The page with its list and overview there; at the end, no script must have failed."""
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: errors.append(f"a dialog: {dialog.message}"))
    page.goto(web.address)
    expect(page.locator("#hits a")).to_have_count(5)
    expect(page.locator("#count")).to_have_text("5 memories")
    yield page
    assert errors == []


def hit(page: Page, words: str) -> None:
    """Open the listed memory that says so."""
    page.locator("#hits a", has_text=words).click()
    page.locator(".memory").wait_for()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="the stand-in for a browser is a shell script")
def test_the_file_leads_the_browser_to_the_memories(browser: Browser, tmp_path: Path) -> None:
    """A real one comes from the file to the page, and can load it again."""
    shutil.copytree(SAMPLES, tmp_path / "store")
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


# --- reading --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_search_answers_while_one_types(page: Page) -> None:
    """With the words marked, the score beside them, and how many there are said aloud."""
    page.get_by_label("Search memories").press_sequentially("chicken", delay=20)
    expect(page.locator("#hits a")).to_have_count(1)
    expect(page.locator("#hits mark")).to_have_text(["chicken"])
    expect(page.locator("#hits .score")).to_have_text(re.compile("[0-9]+"))
    expect(page.get_by_role("heading", name="1 of 5 memories")).to_be_visible()
    page.get_by_label("Search memories").fill("xyzzy")
    expect(page.locator(".empty")).to_contain_text("No memory holds any of these words")
    page.get_by_label("Search memories").fill("")
    expect(page.locator("#hits a")).to_have_count(5)


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_what_is_found_is_seen_in_its_row(page: Page, files: Path, width: int) -> None:
    """Wherever in a text it stands, and as a word before it stands inside of another."""
    page.set_viewport_size({"width": width, "height": 800})
    with closing(MemoryBank(Settings(files.parent, sync=False))) as bank:
        for before in (0, 60, 118, 122, 700):
            words = "quincelike " + "other words " * (before // 12)
            bank.remember("claude", "marco", ["far"], f"{words}and quince {'more ' * 60}")
    page.get_by_label("Search memories").fill("quince")
    expect(page.locator("#hits a:has(mark)")).to_have_count(5)
    hidden = page.evaluate(
        """() => [...document.querySelectorAll("#hits a")].filter((row) =>
            ![...row.querySelectorAll("mark")].some((mark) => mark.getBoundingClientRect().right
                <= mark.parentElement.getBoundingClientRect().right)).map((row) => row.innerText)"""
    )
    assert hidden == []


@pytest.mark.slow
def test_sync_that_fails_is_told_and_tried_again(browser: Browser) -> None:
    """In a sentence that says that nothing is lost, with a button; when it works, it goes."""
    with screenshots.uncopied() as web:
        page = browser.new_page(locale="en-GB")
        page.goto(web.address)
        told = page.locator("#uncopied")
        expect(told).to_contain_text("It is safe here")
        remote = Path(web.get("/api/status")["base"]) / "not-plugged-in" / "memories.git"
        subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
        page.get_by_role("button", name="Try again").click()
        expect(told).to_be_hidden()
        expect(page.locator("#sync")).to_contain_text("On this disk only")
        page.close()


@pytest.mark.slow
def test_where_copies_are_kept_is_chosen(browser: Browser, tmp_path: Path) -> None:
    """In what the button of sync opens: why an address is not taken, then that it is."""
    shutil.copytree(SAMPLES, tmp_path / "base")
    with Web(tmp_path / "base", AIAML_ENABLE_SYNC="true", GIT_CONFIG_GLOBAL=os.devnull) as web:
        page = browser.new_page()
        page.goto(web.address)
        page.locator("#sync", has_text="On this computer only").click()
        address = page.get_by_label("Its address")
        address.fill("memories.git")
        page.get_by_role("button", name="Keep copies there").click()
        expect(page.locator(".said")).to_contain_text("must be an address")
        address.fill(str(tmp_path / "stick" / "memories.git"))
        page.keyboard.press("Enter")
        expect(page.locator("#toast")).to_contain_text("sent")
        expect(page.locator("#sync")).to_contain_text("On this disk only")
        expect(page.get_by_text("which is no protection")).to_be_visible()
        page.close()


@pytest.mark.slow
def test_a_history_tells_in_words(browser: Browser, tmp_path: Path) -> None:
    """What went and what came, in its sentence, and fields by their names; no frontmatter."""
    shutil.copytree(SAMPLES, tmp_path / "git")
    with Web(tmp_path / "git", AIAML_ENABLE_SYNC="true", GIT_CONFIG_GLOBAL=os.devnull) as web:
        page = browser.new_page()
        page.goto(web.address)
        hit(page, "allergic")
        page.keyboard.press("e")
        page.get_by_label("What to remember").fill("Marco's dog Max is allergic to beef.")
        page.get_by_label("Topics").fill("dog, health, food")
        page.keyboard.press("Control+s")
        page.locator("#toast", has_text="Saved").wait_for()
        page.keyboard.press("h")
        expect(page.locator(".versions .words").first).to_have_text(
            "Marco's dog Max is allergic to chicken. \N{RIGHTWARDS ARROW} beef."
        )
        expect(page.locator(".versions .facts")).to_have_text(
            "Topicsdog, health \N{RIGHTWARDS ARROW} dog, health, food"
        )
        expect(page.locator(".versions")).not_to_contain_text("---")
        page.close()


@pytest.mark.slow
def test_a_memory_is_read_rendered_and_as_its_file(page: Page, files: Path) -> None:
    """Its markdown as it is meant, and as it stands."""
    hit(page, "type hints for backend")
    expect(page.locator(".rendered strong")).to_have_text("Python")
    expect(page.locator(".rendered li")).to_have_count(2)
    expect(page.locator("#view")).to_contain_text("type hints for backend")
    expect(page.locator(".by time")).to_have_attribute(
        "title", re.compile("^15 April 2026 at 18:30")
    )
    page.get_by_role("button", name="File").click()
    text = (files / "20260415_183000_1b2c3d4e.md").read_text(encoding="utf-8")
    assert page.locator("pre.file").text_content() == text


@pytest.mark.slow
def test_filters_can_be_chosen_and_cleared(page: Page) -> None:
    """Agent, person, topic and days, chosen or typed, stand as chips; list and pictures follow."""
    page.get_by_role("button", name="Filters").click()
    page.get_by_label("Agent", exact=True).select_option(label="cursor (2)")
    expect(page.locator("#hits a")).to_have_count(2)
    expect(page.locator("#count")).to_have_text("2 of 5 memories")
    page.get_by_label("Topic", exact=True).select_option("python")
    expect(page.locator("#hits a")).to_have_count(1)
    page.get_by_role("button", name="topic:python").first.click()
    expect(page.locator("#hits a")).to_have_count(2)
    page.get_by_label("Search memories").press("Backspace")
    expect(page.locator("#hits a")).to_have_count(5)
    page.get_by_label("From").fill("2026-05-02")
    page.get_by_label("To", exact=True).fill("2026-06-20")
    expect(page.locator("#hits a")).to_have_count(2)
    page.keyboard.press("Escape")  # from the filters,
    page.keyboard.press("Escape")  # and from what they chose
    expect(page.locator("#hits a")).to_have_count(5)
    page.get_by_label("Search memories").press_sequentially("agent:claude since:2026-03-02 dog")
    expect(page.locator(".chip")).to_contain_text(["agent:claude", "since:2026-03-02"])
    expect(page.get_by_label("Search memories")).to_have_value("dog")
    page.get_by_label("Search memories").fill("since:soon ")
    expect(page.locator(".empty")).to_contain_text("'soon' is no time")
    page.reload()
    expect(page.locator(".chip").first).to_contain_text("agent:claude")


@pytest.mark.slow
def test_the_pictures_can_be_clicked(page: Page) -> None:
    """A bar is a span of time, a point a topic; each table does the same by keyboard."""
    page.locator(".bar .ink").first.click()
    expect(page.locator("#hits a")).to_have_count(1)
    expect(page.locator(".chip")).to_contain_text(["since:2026-03-01", "until:2026-04-01"])
    page.locator(".bar .ink").first.click()
    expect(page.locator("#hits a")).to_have_count(5)
    page.locator("[data-key='tag dog']").click()
    expect(page.locator("#hits a")).to_have_count(2)
    page.locator("[data-key='tag dog']").press("Enter")
    expect(page.locator("#hits a")).to_have_count(5)
    expect(page.locator("[data-key='tag dog']")).to_be_focused()
    page.locator(".pairs button").first.click()
    expect(page.locator(".chip")).to_have_count(1)
    with page.expect_response(re.compile("/api/overview")):  # then the pictures are drawn anew
        page.locator(".chip").click()
    expect(page.locator("#hits a")).to_have_count(5)
    page.get_by_text("As a table").first.press("Enter")
    page.get_by_role("button", name="June 2026").press("Enter")
    expect(page.locator("#hits a")).to_have_count(1)
    expect(page.get_by_role("button", name="June 2026")).to_be_focused()


@pytest.mark.slow
def test_the_address_keeps_what_is_seen_but_not_the_token(page: Page) -> None:
    """Back and forward work, so does a reload; the token is gone from the address at once."""
    page.get_by_label("Search memories").fill("dog")
    expect(page.locator("#hits a")).to_have_count(2)
    hit(page, "allergic")
    assert "token" not in page.url
    page.reload()
    expect(page.locator(".memory")).to_be_visible()
    expect(page.get_by_label("Search memories")).to_have_value("dog")
    page.go_back()
    expect(page.locator(".overview")).to_be_visible()
    page.go_forward()
    expect(page.locator(".memory")).to_be_visible()


@pytest.mark.slow
def test_more_than_a_page_comes_when_asked_for(page: Page, files: Path) -> None:
    """And the first that is new has the focus."""
    bank = MemoryBank(Settings(files.parent, sync=False))
    for number in range(60):
        bank.remember("claude", "marco", ["many"], f"Number {number}")
    bank.close()
    page.reload()
    expect(page.locator("#hits a")).to_have_count(50)
    expect(page.locator("#count")).to_have_text("65 memories")
    page.get_by_role("button", name="Show more").click()
    expect(page.locator("#hits a")).to_have_count(65)
    expect(page.locator("#hits a").nth(50)).to_be_focused()
    expect(page.get_by_role("button", name="Show more")).to_be_hidden()


@pytest.mark.slow
def test_more_comes_though_something_is_stored_meanwhile(page: Page, files: Path) -> None:
    """The list is made anew while the rest is under way, and then with the rest."""
    with closing(MemoryBank(Settings(files.parent, sync=False))) as bank:
        for number in range(60):
            bank.remember("claude", "marco", ["many"], f"Number {number}")
        page.reload()
        expect(page.locator("#count")).to_have_text("65 memories")
        more = Held(page, "from=50")
        page.get_by_role("button", name="Show more").click()
        more.arrive()
        bank.remember("claude", "marco", ["many"], "Meanwhile")
        expect(page.locator("#hits a")).to_have_count(66)
        expect(page.locator("#hits a").nth(50)).to_be_focused()


@pytest.mark.slow
def test_it_can_be_used_without_a_mouse(page: Page) -> None:
    """Search, move, open, edit, close: each has its key."""
    page.keyboard.press("/")
    expect(page.get_by_label("Search memories")).to_be_focused()
    page.keyboard.type("marco")
    expect(page.locator("#count")).to_have_text("4 of 5 memories")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#hits a").nth(0)).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator("#hits a").nth(1)).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.locator(".memory")).to_be_visible()
    expect(page.get_by_label("Memory", exact=True)).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator("#hits a[aria-current]")).to_have_count(1)
    expect(page.locator("#hits a").nth(1)).to_have_attribute("aria-current", "true")
    page.keyboard.press("e")
    expect(page.locator("textarea")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("textarea")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.locator(".overview")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Search memories")).to_have_value("")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()


def opening_next(page: Page) -> Held:
    """Open the next memory by its key, and hold what the server answers back."""
    files = page.locator("#hits a").evaluate_all("all => all.map((each) => each.dataset.file)")
    here = page.locator("#hits a[aria-current]").get_attribute("data-file")
    memory = Held(page, f"/api/memories/{files[files.index(here) + 1]}")
    page.keyboard.press("j")
    memory.arrive()
    return memory


@pytest.mark.slow
@pytest.mark.parametrize("key", ["e", "d"])
def test_a_key_is_about_the_memory_that_is_being_opened(page: Page, key: str) -> None:
    """Not about the one that still stands there while the next is under way."""
    hit(page, "allergic")
    memory = opening_next(page)
    page.keyboard.press(key)
    page.wait_for_timeout(300)
    opened = page.locator("#hits a[aria-current] .title").inner_text()
    memory.let_go()
    if key == "e":
        expect(page.locator("textarea")).to_be_focused()
        text = page.locator("textarea").input_value()
    else:
        text = page.get_by_role("dialog").locator("blockquote").inner_text()
    assert opened in text
    assert "allergic" not in text


@pytest.mark.slow
def test_an_editor_opened_while_a_memory_is_under_way_is_asked_about(page: Page) -> None:
    """What is typed in it is not lost in silence."""
    hit(page, "allergic")
    memory = opening_next(page)
    page.get_by_role("button", name="Edit").click()
    page.locator("textarea").fill("My words")
    memory.let_go()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.locator("textarea")).to_have_value("My words")


@pytest.mark.slow
def test_a_memory_that_was_left_and_is_gone_does_not_close_the_one_being_opened(
    page: Page, files: Path
) -> None:
    """What is learned late of one memory is not about the next."""
    hit(page, "allergic")
    left = page.locator("#hits a[aria-current]").get_attribute("data-file")
    assert left is not None
    again = Held(page, f"/api/memories/{left}")
    text = (files / left).read_text()
    (files / "20260903_101112_6a7b8c9d.md").write_text(text.replace("chicken", "beef"))
    again.arrive()
    memory = opening_next(page)
    again.answer(404, {"error": "There is no such memory."})
    page.wait_for_timeout(300)
    memory.let_go()
    expect(page.locator(".memory")).not_to_contain_text("allergic")
    assert left not in page.url
    assert "open=2026" in page.url
    expect(page.get_by_text("This memory was forgotten meanwhile")).to_have_count(0)


@pytest.mark.slow
def test_how_sync_stands_can_be_read(page: Page, files: Path) -> None:
    """In words, with the directory."""
    page.get_by_role("button", name="On this computer only").click()
    dialog = page.get_by_role("dialog", name="Sync")
    expect(dialog).to_contain_text("AIAML_ENABLE_SYNC")
    expect(dialog).to_contain_text(str(files.parent))


# --- changing -------------------------------------------------------------------------------------


def test_an_edit_is_saved(page: Page, files: Path) -> None:
    """In the file, in the pane and in the list."""
    hit(page, "allergic")
    page.get_by_role("button", name="Edit").click()
    area = page.locator("textarea")
    area.fill(area.input_value().replace("chicken", "beef"))
    page.keyboard.press("Control+s")
    expect(page.locator("#view")).to_have_text("Marco's dog Max is allergic to beef.")
    expect(page.locator("#hits a", has_text="beef")).to_have_count(1)
    assert "allergic to beef" in (files / DOG).read_text()


@pytest.mark.slow
def test_a_refused_edit_says_why_and_loses_nothing(page: Page, files: Path) -> None:
    """The text stays in the editor, the file as it is; leaving asks first."""
    before = (files / DOG).read_text()
    hit(page, "allergic")
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("button", name="File").click()
    page.locator("textarea").fill("no memory at all")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text="Not saved")).to_contain_text(
        "the first line is not ---"
    )
    expect(page.locator("textarea")).to_have_value("no memory at all")
    page.get_by_role("button", name="Cancel").click()
    asked = page.get_by_role("dialog", name="Discard your changes?")
    asked.get_by_role("button", name="Cancel").click()
    expect(page.locator("textarea")).to_have_value("no memory at all")
    page.keyboard.press("Escape")
    asked.get_by_role("button", name="Discard").click()
    expect(page.locator("#view")).to_contain_text("chicken")
    assert (files / DOG).read_text() == before


@pytest.mark.slow
def test_two_edits_at_once_are_both_seen(page: Page, files: Path) -> None:
    """What somebody else wrote is shown, and replaced only by saving again."""
    hit(page, "allergic")
    page.get_by_role("button", name="Edit").click()
    text = (files / DOG).read_text()
    (files / DOG).write_text(text.replace("chicken", "wheat"))
    page.locator("textarea").fill("Max is allergic to beef.")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#trouble")).to_contain_text("somebody changed this memory meanwhile")
    expect(page.locator("#trouble pre")).to_contain_text("allergic to wheat")
    assert "wheat" in (files / DOG).read_text()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#view")).to_contain_text("beef")
    assert "beef" in (files / DOG).read_text()


def test_forgetting_asks_first(page: Page, files: Path) -> None:
    """It shows what, says whether git keeps it, and then the file is gone."""
    hit(page, "allergic")
    page.get_by_role("button", name="Forget…").click()
    asked = page.get_by_role("dialog", name="Forget this memory?")
    expect(asked).to_contain_text("allergic to chicken")
    expect(asked).to_contain_text("what the history does not have from before is gone for good")
    expect(asked.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Escape")
    assert (files / DOG).exists()
    page.get_by_role("button", name="Forget…").click()
    asked.get_by_role("button", name="Forget").click()
    expect(page.locator("#hits a")).to_have_count(4)
    expect(page.locator("#count")).to_have_text("4 memories")
    assert not (files / DOG).exists()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#hits a")).to_have_count(5)
    assert (files / DOG).exists()


@pytest.mark.slow
def test_undo_takes_back_the_last_change_until_the_next(page: Page, files: Path) -> None:
    """Also long after the sentence about it went; without a change it says that there is none."""
    page.keyboard.press("u")
    expect(page.locator("#toast")).to_have_text("Nothing to undo")
    hit(page, "allergic")
    before = (files / DOG).read_bytes()
    page.keyboard.press("e")
    page.get_by_label("What to remember").fill("Max eats everything.")
    page.keyboard.press("Control+s")
    expect(page.locator("#view")).to_have_text("Max eats everything.")
    page.evaluate("document.querySelector('#toast').classList.remove('on')")
    page.keyboard.press("u")
    expect(page.locator("#toast")).to_have_text("As it was before")
    expect(page.locator("#view")).to_contain_text("allergic")
    assert (files / DOG).read_bytes() == before
    page.keyboard.press("u")
    expect(page.locator("#toast")).to_have_text("Nothing to undo")


@pytest.mark.slow
def test_the_page_is_left_and_gone_on_from(page: Page) -> None:
    """The tab names what is open; a history does not stay; nothing found has a way on."""
    hit(page, "allergic")
    expect(page).to_have_title(re.compile("allergic.* · Memories"))
    expect(page.locator(".rendered")).to_have_attribute("dir", "auto")
    page.keyboard.press("h")
    page.locator(".versions, #view .hint").first.wait_for()
    hit(page, "Lisbon")
    expect(page.locator("#view article")).to_have_count(1)
    page.keyboard.press("o")
    expect(page).to_have_title("Memories")
    page.get_by_label("Search memories").fill("xyzzy")
    page.get_by_role("button", name="Clear search").click()
    expect(page.locator("#hits a")).to_have_count(5)
    page.get_by_label("Search memories").fill("dog")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    expect(page.get_by_label("Search memories")).to_have_value("")
    expect(page.locator("#hits a").first).to_be_focused()


@pytest.mark.slow
def test_a_new_memory_says_all_that_is_missing_at_its_field(page: Page) -> None:
    """At once, by the names of the fields; whom it is about, and by whom, is there already."""
    page.keyboard.press("n")
    expect(page.get_by_label("What to remember")).to_be_focused()
    expect(page.locator("#edit-user")).to_have_value("marco")
    expect(page.locator("#edit-agent")).to_have_value("human")
    page.locator("#edit-user").fill("")
    page.keyboard.press("Control+s")
    expect(page.locator("[aria-invalid]")).to_have_count(3)
    for label, words in (
        ("What to remember", "Write what to remember"),
        ("Topics", "A word to find it by"),
        ("About", "Whom it is about"),
    ):
        expect(page.locator(".editor").get_by_label(label)).to_have_accessible_description(
            re.compile(words)
        )
    expect(page.get_by_role("alert").filter(has_text="Not saved")).to_contain_text("Topics, About")
    expect(page.get_by_label("What to remember")).to_be_focused()


@pytest.mark.slow
def test_news_of_what_was_forgotten_here_leaves_its_undoing(page: Page) -> None:
    """Also where the page hears that it changed before it hears that it was forgotten."""
    hit(page, "allergic")
    forgotten = Held(page, "/api/forget", answered=True)
    again = Held(page, f"/api/memories/{DOG}")
    page.get_by_role("button", name="Forget…").click()
    page.get_by_role("dialog").get_by_role("button", name="Forget").click()
    forgotten.arrive()
    again.arrive()
    forgotten.let_go()
    undo = page.get_by_role("button", name="Undo")
    undo.wait_for()
    with page.expect_response(f"**/{DOG}*"):
        again.let_go()
    page.wait_for_timeout(300)
    expect(undo).to_be_visible()


@pytest.mark.slow
def test_the_end_of_the_program_is_said(page: Page, web: Web) -> None:
    """What is typed then is not lost in silence."""
    web.end()
    page.get_by_label("Search memories").fill("dog")
    expect(page.locator("#banner")).to_contain_text("aiaml web is no longer running")


# --- following ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_an_agent_does_appears_by_itself(page: Page, files: Path) -> None:
    """Stored, edited, forgotten: in the list, in the overview, and in what is open."""
    bank = MemoryBank(Settings(files.parent, sync=False))
    bank.remember("codex", "marco", ["fresh"], "Quince jelly.")
    expect(page.locator("#hits a", has_text="Quince jelly.")).to_have_count(1)
    expect(page.locator("#count")).to_have_text("6 memories")
    hit(page, "allergic")
    text = (files / DOG).read_text()
    bank.edit(DOG, text, text.replace("chicken", "beef"))
    expect(page.locator("#view")).to_contain_text("allergic to beef")
    page.keyboard.press("e")
    page.locator("textarea").fill("half written")
    bank.edit(DOG, text.replace("chicken", "beef"), text)
    expect(page.locator("#hits a", has_text="allergic to chicken")).to_have_count(1)
    expect(page.locator("textarea")).to_have_value("half written")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Discard").click()
    bank.forget({DOG: text})
    bank.close()
    expect(page.locator("#toast")).to_contain_text("forgotten meanwhile")
    expect(page.locator("#count")).to_have_text("5 memories")


@pytest.mark.slow
def test_a_new_memory_is_written_with_a_preview(page: Page, files: Path) -> None:
    """By one key, and stored by another."""
    page.keyboard.press("n")
    page.get_by_label("Topics").fill("quince, food")
    page.get_by_label("About", exact=True).last.fill("marco")
    page.get_by_label("What to remember").fill("# Quince\n\nIs **ripe** in October.")
    expect(page.locator("#preview strong")).to_have_text("ripe")
    page.keyboard.press("Control+s")
    expect(page.get_by_role("heading", name="Quince", level=1).first).to_be_visible()
    expect(page.locator("#hits a", has_text="Quince")).to_have_count(1)
    assert any("topics: [quince, food]" in each.read_text() for each in files.glob("*.md"))


@pytest.mark.slow
def test_a_forgotten_memory_is_looked_at_and_brought_back(browser: Browser, tmp_path: Path) -> None:
    """With its history before, and open again afterwards."""
    shutil.copytree(SAMPLES, tmp_path / "git")
    with Web(tmp_path / "git", AIAML_ENABLE_SYNC="true", GIT_CONFIG_GLOBAL=os.devnull) as web:
        page = browser.new_page()
        page.goto(web.address)
        hit(page, "allergic")
        page.keyboard.press("h")
        expect(page.locator(".versions .words")).to_have_text(
            "Marco's dog Max is allergic to chicken."
        )
        page.keyboard.press("d")
        page.get_by_role("dialog").get_by_role("button", name="Forget").click()
        expect(page.locator("#hits a")).to_have_count(4)
        page.keyboard.press("f")
        page.get_by_role("button", name="Forgotten ones").click()
        page.locator("#hits a", has_text="allergic").click()
        page.get_by_role("button", name="Bring back").click()
        expect(page.locator("#hits a")).to_have_count(5)
        expect(page.get_by_role("button", name="Edit")).to_be_visible()
        page.close()


@pytest.mark.slow
def test_several_are_selected_exported_and_forgotten(page: Page, files: Path) -> None:
    """With x and Shift, all at once, and undone as a whole."""
    page.locator("#hits a").first.focus()
    page.keyboard.press("x")
    page.locator("#hits a").nth(2).click(modifiers=["Shift"])
    expect(page.get_by_role("toolbar")).to_contain_text("3 selected")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert len({json.loads(line)["id"] for line in lines}) == 3
    page.keyboard.press("d")
    asked = page.get_by_role("dialog", name="Forget 3 memories?")
    asked.get_by_role("button", name="Forget").click()
    expect(page.locator("#toast")).to_contain_text("forgotten")
    expect(page.locator("#hits a")).to_have_count(2)
    page.keyboard.press("u")
    expect(page.locator("#hits a")).to_have_count(5)
    assert len(list(files.glob("*.md"))) == 5


@pytest.mark.slow
def test_a_whole_result_is_exported_forgotten_and_undone(page: Page, files: Path) -> None:
    """Also what is not on the screen: by one key, after its number and its first ones are shown."""
    bank = MemoryBank(Settings(files.parent, sync=False))
    for number in range(60):
        bank.remember("codex", "marco", ["many"], f"Number {number}")
    bank.close()
    expect(page.locator("#count")).to_have_text("65 memories")
    page.get_by_label("Search memories").fill("topic:many ")
    expect(page.locator("#count")).to_have_text("60 of 65 memories")
    page.get_by_role("button", name="Select all").click()
    expect(page.get_by_role("toolbar")).to_contain_text("All 60 selected")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert len({json.loads(line)["id"] for line in lines}) == 60
    page.keyboard.press("d")
    asked = page.get_by_role("dialog", name="Forget 60 memories?")
    expect(asked).to_contain_text("Number 59")
    expect(asked).to_contain_text("and 52 more")
    asked.get_by_role("button", name="Forget").click()
    expect(page.locator("#toast")).to_contain_text("60 memories forgotten")
    expect(page.locator(".empty")).to_contain_text("No memory is like that")
    assert len(list(files.glob("*.md"))) == 5
    page.keyboard.press("u")
    expect(page.locator("#count")).to_have_text("60 of 65 memories")
    assert len(list(files.glob("*.md"))) == 65
    page.locator("#hits a").first.focus()
    page.keyboard.press("a")
    page.get_by_label("Search memories").fill("59")
    expect(page.get_by_role("toolbar")).to_be_hidden()


@pytest.mark.slow
def test_a_memory_is_copied_as_it_is_written(
    context: BrowserContext, page: Page, files: Path
) -> None:
    """Its markdown and nothing of the page, by the button and by the key."""
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    hit(page, "type hints for backend")
    content = MemoryBank(Settings(files.parent, sync=False)).find("1b2c3d4e")[0][1].content
    for by_key in (False, True):
        page.evaluate("navigator.clipboard.writeText('before')")
        if by_key:
            page.keyboard.press("c")
        else:
            page.get_by_role("button", name="Copy").click()
        expect(page.locator("#toast")).to_contain_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == content


@pytest.mark.slow
def test_a_printed_memory_is_its_text_alone(page: Page) -> None:
    """All of it, over several sheets, dark ink on white also in the dark; no button, no list."""
    page.emulate_media(color_scheme="dark")
    page.get_by_role("button", name="New", exact=True).click()
    page.get_by_label("Topics").fill("quince")
    page.get_by_label("About", exact=True).last.fill("marco")
    long = "\n\n".join(f"Paragraph {number} of the quince." for number in range(120))
    page.get_by_label("What to remember").fill(f"# Quince\n\n{long}")
    page.keyboard.press("Control+s")
    expect(page.locator(".rendered")).to_contain_text("Paragraph 119")
    pages = [each.extract_text() for each in PdfReader(BytesIO(page.pdf())).pages]
    text = " ".join(" ".join(pages).split())
    assert len(pages) > 2
    assert text.startswith("Quince")
    assert [int(number) for number in re.findall(r"Paragraph (\d+)", text)] == list(range(120))
    for chrome in ("Forget", "Filters", "allergic", "Search", "Saved", "files/"):
        assert chrome not in text
    page.emulate_media(media="print", color_scheme="dark")
    ink = page.locator(".rendered p").first.evaluate("(each) => getComputedStyle(each).color")
    ground = page.locator("body").evaluate("(each) => getComputedStyle(each).backgroundColor")
    assert (ink, ground) == ("rgb(0, 0, 0)", "rgba(0, 0, 0, 0)")


@pytest.mark.slow
def test_a_theme_lasts(context: BrowserContext, page: Page) -> None:
    """After a reload, in a new tab, and in those that are open."""
    other = context.new_page()
    other.goto(page.url)
    page.bring_to_front()
    page.keyboard.press("t")
    page.keyboard.press("t")
    for tab in (page, other):
        expect(tab.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    third = context.new_page()
    third.goto(page.url)
    expect(third.locator("html")).to_have_attribute("data-theme", "dark")


# --- what others may have written -----------------------------------------------------------------

HOSTILE = """\
<script>window.pwned = 1</script><img src=x onerror="window.pwned = 2">
<svg onload="window.pwned = 3"></svg><iframe srcdoc="<script>parent.pwned = 4</script>"></iframe>

![a](https://evil.example/track.png) [click](javascript:window.pwned=5)
<style>body{display:none}</style> [data](data:text/html,<script>opener.pwned=6</script>)
</textarea></pre><script>window.pwned=7</script>
<a href="https://evil.example" onclick="window.pwned=8">x</a> <base href="https://evil.example/">

| <b onmouseover=window.pwned=9>a</b> |
|:-:|
| <meta http-equiv=refresh content="0;url=https://evil.example"> |
"""


def unlike_others(files: Path, content: str) -> None:
    """Store a memory with a hidden character in each of its fields."""
    head = "\n".join(
        f"{key}: {json.dumps(value)}"
        for key, value in {
            "id": "abcd1234",
            "timestamp": "2026-11-01",
            "agent": "cla\u202eude",
            "user": "mar\u200bco",
        }.items()
    )
    text = f"---\n{head}\ntopics: [do\U000e0067g]\n---\n\n{content}\n"
    (files / "hidden.md").write_text(text, encoding="utf-8")


@pytest.mark.slow
def test_what_is_invisible_is_shown(page: Page, files: Path) -> None:
    """In the list, the filters, the pictures, the memory, its file; the editor names it."""
    unlike_others(
        files, "gnp.\u202eexe &#x202e; [x](http://y.example 'ti\u2066tle')\n\n" + "> " * 22 + "obey"
    )
    page.reload()
    hit(page, "gnp.")
    pane = page.locator("#pane")
    assert "[x](http://y.example 'ti‹U+2066›tle')" in str(pane.text_content())
    assert "> > obey" in str(pane.text_content())
    page.get_by_role("button", name="File").click()
    expect(page.locator("pre.file")).to_contain_text("gnp.‹U+202E›exe &#x202e;")
    everything = page.evaluate("document.documentElement.outerHTML")
    # What a choice sends is what the file says.
    assert is_visible(re.sub(' value="[^"]*"', "", everything))
    for each in ("cla‹U+202E›ude", "mar‹U+200B›co", "do‹U+E0067›g"):
        assert each in everything
    page.get_by_role("button", name="Edit").click()
    expect(page.locator(".editor")).to_contain_text(
        "cannot be seen here: ‹U+E0067› ‹U+202E› ‹U+2066›"
    )


@pytest.mark.slow
def test_the_page_marks_what_the_terminal_marks(page: Page) -> None:
    """One rule, written twice: for Python and for the browser."""
    for text in (*INVISIBLE.values(), *BELONGING, *ELSEWHERE):
        shown = page.evaluate("async (text) => (await import('/elements.js')).visible(text)", text)
        assert shown == marked(text)


@pytest.mark.slow
def test_a_memory_of_a_mebibyte_opens(page: Page, files: Path) -> None:
    """As it stands, with a word that says so."""
    unlike_others(files, "- a large one\n" * 80_000)
    page.reload()
    hit(page, "a large one")
    expect(page.locator(".rendered .aside")).to_have_text(re.compile("longer than 32 KiB"))
    expect(page.locator(".rendered pre")).to_contain_text("- a large one", timeout=5_000)


def test_a_hostile_memory_is_text(page: Page, files: Path) -> None:
    """Wherever it appears, nothing of it runs, and nothing is loaded or hidden."""
    bad = "<img/src=x/onerror=window.pwned=10>"
    bank = MemoryBank(Settings(files.parent, sync=False))
    bank.remember(bad, bad, [bad, '"><script>window.pwned=11</script>', "</option>"], HOSTILE)
    bank.close()
    page.reload()
    expect(page.locator("#count")).to_have_text("6 memories")
    expect(page.locator("#hits a").first).to_contain_text("<script>window.pwned = 1</script>")
    page.get_by_label("Search memories").fill("<script> pwned </textarea>")
    expect(page.locator("#hits mark").first).to_be_visible()
    hit(page, "pwned")
    expect(page.locator(".rendered")).to_contain_text("<script>window.pwned = 1</script>")
    inside = page.locator(".memory").locator(
        "script, img, svg, iframe, style, base, meta, [onclick]"
    )
    expect(inside).to_have_count(0)
    for link in page.locator(".rendered a").all():
        assert str(link.get_attribute("href")).startswith("https://evil.example")
        assert link.get_attribute("rel") == "noopener noreferrer"
    page.locator(".rendered b, .rendered td").first.hover()
    page.keyboard.press("r")
    expect(page.locator("pre.file")).to_contain_text("onerror")
    page.keyboard.press("e")
    expect(page.locator("textarea")).to_have_value(page.locator("textarea").input_value())
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Forget…").click()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Close", exact=True).first.click()
    expect(page.locator(".overview")).to_be_visible()
    assert page.evaluate("window.pwned") is None


@pytest.mark.slow
def test_the_browser_itself_forbids_scripts_in_the_page(page: Page) -> None:
    """Were a hole in the page, the policy would still hold: no inline script, no foreign image."""
    assert page.evaluate(
        """() => new Promise((resolve) => {
            const image = document.createElement("img");
            image.onerror = () => resolve([window.pwned === undefined, "refused"]);
            image.onload = () => resolve([window.pwned === undefined, "loaded"]);
            const button = document.createElement("button");
            try { button.setAttribute("onclick", "window.pwned = 1"); } catch { }
            document.body.append(button);
            button.click();
            image.src = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=";
            document.body.append(image);
        })"""
    ) == [True, "refused"]
    refused = page.evaluate(
        "() => { try { document.body.innerHTML = '<p>x'; return false } catch { return true } }"
    )
    assert refused, "trusted types"


class _Evil(BaseHTTPRequestHandler):
    """A page of somebody else's, on another port of this machine."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>elsewhere</title><p>elsewhere")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """The address of somebody else's page."""
    with HTTPServer(("127.0.0.1", 0), _Evil) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


TRIES = """async ([target, token]) => {
    const tried = async (options) => {
        try { const answer = await fetch(target + "api/memories", options); return answer.status; }
        catch { return "failed"; }
    };
    const framed = await new Promise((resolve) => {
        const frame = document.createElement("iframe");
        frame.onload = () => resolve(frame.contentDocument === null ? "closed" : "open");
        frame.src = target;
        document.body.append(frame);
    });
    return {
        plain: await tried({}),
        withToken: await tried({ headers: { "X-AIAML-Token": token } }),
        remove: await tried({ method: "DELETE", headers: { "X-AIAML-Token": token } }),
        opaque: await tried({ mode: "no-cors", credentials: "include" }),
        framed,
    };
}"""


def test_a_page_from_elsewhere_learns_and_changes_nothing(
    browser: Browser, web: Web, elsewhere: str, files: Path
) -> None:
    """Even a neighbour on this machine, and even with the token."""
    before = sorted(path.name for path in files.iterdir())
    context = browser.new_context()
    page = context.new_page()
    page.goto(elsewhere)
    found = page.evaluate(TRIES, [web.address.partition("#")[0], web.token])
    assert found.pop("opaque") in (0, "failed")
    assert found == {
        "plain": "failed",
        "withToken": "failed",
        "remove": "failed",
        "framed": "closed",
    }
    frame = page.frames[1]
    assert "Search memories" not in frame.content()
    context.close()
    assert sorted(path.name for path in files.iterdir()) == before


@pytest.mark.slow
def test_without_the_token_the_page_says_what_to_do(context: BrowserContext, web: Web) -> None:
    """A page of its own, which takes the address; nothing else is shown."""
    page = context.new_page()
    page.goto(web.address.partition("#")[0])
    expect(page.locator(".door")).to_contain_text("Paste the address that aiaml web printed")
    expect(page.locator("#hits")).to_have_count(0)
    page.get_by_label("Address").fill(web.address)
    page.get_by_role("button", name="Open").click()
    expect(page.locator("#hits a")).to_have_count(5)


@pytest.mark.slow
def test_a_new_tab_is_handed_the_token(context: BrowserContext, page: Page) -> None:
    """And a bookmark opens what it did, as long as another tab is there."""
    with context.expect_page() as opened:
        page.locator("#hits a", has_text="allergic").click(modifiers=["ControlOrMeta"])
    other = opened.value
    expect(other.locator("#view")).to_contain_text("allergic")
    expect(other.locator("#hits a")).to_have_count(5)


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A script that examines whether everybody can use a page, installed for these tests."""
    npm = shutil.which("npm")
    if not npm:
        pytest.skip("axe-core comes with npm, which is not installed")
    where = tmp_path_factory.mktemp("axe")
    install = [npm, "install", "--prefix", str(where), "--no-audit", "--no-fund", "axe-core@4"]
    if subprocess.run(install, check=False, capture_output=True, timeout=120).returncode:
        pytest.skip("axe-core cannot be installed here")
    return (where / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


VIOLATIONS = """async () => (await axe.run()).violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`)"""
SMALL = """() => [...document.querySelectorAll("button, a, input, select, summary")]
    .filter((each) => each.checkVisibility({ visibilityProperty: true, opacityProperty: true })
        && !each.closest(".skip, .rendered, .brand")
        && each.getBoundingClientRect().height < 43.9)
    .map((each) => each.outerHTML)"""
STRUCTURE = """() => [...document.querySelectorAll("h1, h2, button, label, summary")]
    .filter((each) => each.checkVisibility() && !each.closest("#hits, [data-key], .tags, #chips"))
    .map((each) => `${each.localName} ${each.textContent.trim()}`)"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
)
def test_everybody_can_use_every_view(browser: Browser, axe: str, width: int, scheme: str) -> None:
    """No rule of axe is broken: names, contrast, landmarks, headings; a finger meets its aim."""
    for name, page in screenshots.every_view(browser, scheme, width):
        page.evaluate(f"{axe}; 0")
        assert page.evaluate(VIOLATIONS) == [], name
        assert width > 800 or page.evaluate(SMALL) == [], name
        fits(page)


@pytest.mark.slow
def test_the_pictures_in_the_documents_can_be_made(browser: Browser, tmp_path: Path) -> None:
    """By their script, from the real program; what each view offers is as it is written down."""
    lines = []
    for name, page in screenshots.every_view(browser):
        picture = page.screenshot(path=tmp_path / f"{name}.png")
        assert 10_000 < len(picture) < 400_000
        lines += [f"# {name}", *page.evaluate(STRUCTURE), ""]
    assert "\n".join(lines) == VIEWS.read_text(encoding="utf-8"), "\n".join(lines)
    for path in DOCS.glob("web*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
        assert 20_000 < path.stat().st_size < 300_000


@pytest.mark.slow
def test_a_screen_holds_eighteen_memories(browser: Browser) -> None:
    """At 1280 by 800, under their days."""
    with screenshots.sample_store() as base, screenshots.served(base) as web:
        page = screenshots.open_page(browser, web)
        next(screenshots.views(page, web))
        expect(page.locator("#hits a").nth(17)).to_be_visible()
        seen = page.evaluate(
            "[...document.querySelectorAll('#hits a')]"
            ".filter((each) => each.getBoundingClientRect().bottom <= innerHeight).length"
        )
        page.close()
    assert seen >= 18


# --- looks ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "scheme"),
    [(320, "light"), (390, "dark"), (768, "light"), (1280, "dark"), (2000, "light")],
)
def test_it_fits_every_width(browser: Browser, shared: Web, width: int, scheme: str) -> None:
    """No page is scrolled sideways, in any of its states; and dark is dark."""
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(shared.address)
    expect(page.locator("#hits a")).to_have_count(5)
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, colour[4:-1].split(","))) < 384) == (scheme == "dark")
    fits(page)
    if width <= 800:
        page.get_by_role("button", name="Filters").click()
        overview(page)
    expect(page.locator(".pairs")).to_be_visible()
    fits(page)
    if width <= 800:
        page.get_by_role("button", name="Close").first.click()
    hit(page, "type hints")
    fits(page)
    page.get_by_role("button", name="Edit").click()
    fits(page)
    context.close()


@pytest.mark.slow
def test_the_focus_is_never_lost(page: Page) -> None:
    """By a list that is filled anew, nor by a dialog; Esc leaves the filters, not the words."""
    focused = "() => document.activeElement.closest('[id]').id"
    page.keyboard.press("j")
    held = Held(page, "/api/memories", answered=True)
    page.locator("#search").evaluate("(field) => { field.value = 'chicken'; }")
    page.locator("#search").dispatch_event("input")
    held.arrive()
    held.let_go()
    expect(page.locator("#hits a")).to_have_count(1)
    expect(page.locator("#hits a")).to_be_focused()
    page.keyboard.press("f")
    assert page.evaluate(focused) == "agent"
    page.keyboard.press("Escape")
    assert page.evaluate(focused) == "filters-toggle"
    expect(page.locator("#filters")).to_be_hidden()
    expect(page.locator("#hits a")).to_have_count(1)
    page.locator("#sync").focus()
    page.keyboard.press("Enter")
    page.locator("#sync-facts p").first.wait_for()
    assert page.evaluate(focused) == "sync-title"


@pytest.mark.slow
def test_on_a_phone_a_search_shows_what_it_finds(browser: Browser, shared: Web) -> None:
    """Also when a memory, or the overview, covers the list."""
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(shared.address)
    hit(page, "type hints")
    expect(page.locator("#hits a").first).to_be_hidden()
    page.get_by_label("Search memories").fill("chicken")
    expect(page.locator("#hits a")).to_have_count(1)
    expect(page.locator("#hits a")).to_be_visible()
    overview(page)
    expect(page.locator("#hits a")).to_be_hidden()
    page.get_by_label("Search memories").fill("lisbon")
    expect(page.locator("#hits a")).to_be_visible()
    page.close()


def overview(page: Page) -> None:
    """Show the pictures where there is one column."""
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("button", name="Overview").click()


def fits(page: Page) -> None:
    """Check that nothing is wider than what it lies in."""
    wide = page.evaluate(
        """() => [document.documentElement, ...document.querySelectorAll("main, .list, .pane")]
            .filter((each) => each.scrollWidth > each.clientWidth + 1 && each.clientWidth)
            .map((each) => each.className || each.tagName)"""
    )
    assert wide == []
