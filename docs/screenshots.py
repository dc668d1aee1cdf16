"""Makes the pictures of the page: starts the real program on sample memories, and looks at it.

    python docs/screenshots.py [directory]

It needs the development dependencies and a Chromium or Chrome. A picture is the same on every run
but for the fonts of the machine.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from io import BytesIO
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from PIL import Image  # noqa: E402
from playwright.sync_api import Browser, Page  # noqa: E402

from aiaml_server.format.memory import Memory, format  # noqa: A004, E402
from browser import chromium, found_browser  # noqa: E402
from web_process import Web  # noqa: E402

PICTURES = {
    "light": {
        "list": "web.png",
        "reader": "web-reader.png",
        "search": "web-search.png",
        "editor": "web-editor.png",
        "forget": "web-forget.png",
    },
    "dark": {"list": "web-dark.png", "reader": "web-reader-dark.png"},
}
LAST = datetime(2026, 11, 21, 18, 30, tzinfo=timezone.utc)

SAMPLES = """\
food home preferences | Marco is vegetarian and cooks on weekends. He likes small, quiet restaurants.
food travel restaurant | In Lisbon Anna liked the Taberna da Rua: no fish, good bread, book two days before.
food family preferences | Anna eats everything but fish; Leo (6) eats nothing green.
dog health | Max is allergic to chicken. The vet suggests lamb and rice, twice a day.
dog family home | Max stays with Marco's parents when the family travels; they have a key.
travel family | Summer 2027: two weeks in Portugal, by train if it can be had for under 900 euros.
travel preferences | Marco takes aisle seats, no flights before eight, and one cabin bag.
health running | Marco runs three times a week; his left knee wants a rest day after hills.
running preferences | Routes along the river, under ten kilometres, no music.
python preferences testing | Marco wants **type hints everywhere** and tests that use real files:\\n\\n- dataclasses over dictionaries\\n- `pytest` over `unittest`\\n- no mocks but for clocks
python project billing | The billing service is Python 3.13 with FastAPI; `uv run pytest` runs its tests.
project billing decision database | Billing moves to PostgreSQL 18, because the reports need window functions.
project billing deadline | The new invoices go live on 1 December; the old export stays until March.
project decision testing | Each endpoint gets one test over real HTTP, and no more; the rest is tested below it.
database postgres billing | The replica lags by up to two seconds at month's end; reports read from the primary.
deployment project billing | Deployments run on Tuesdays and Thursdays, from `main`, after Ines has looked.
deployment decision | No Kubernetes: two machines and systemd are enough for a hundred requests a second.
writing preferences | Short sentences, no exclamation marks, British spelling in everything public.
writing project docs | The handbook lies in `docs/`; each page begins with what the reader can do after it.
docs decision | Diagrams are drawn in plain text, so that they can be compared in a review.
family calendar | Leo has swimming on Wednesdays at four; Anna takes him, Marco fetches him.
calendar preferences | No meetings before ten or on Friday afternoons.
home energy | The heat pump's filter was changed in April and is due again in October.
home energy decision | Solar panels wait until the roof is done; the offer of 2026 is in the blue folder.
music preferences | When working: piano, quietly. Marco dislikes playlists that change by themselves.
reading preferences | Marco reads essays and history; for Leo, anything with maps in it.
python testing project | Flaky test `test_invoice_totals`: it depended on the time zone, fixed with a fixed clock.
python deployment | The image is built with `uv sync --frozen`; a build takes forty seconds.
team project | Ines reviews, Jonas runs the database, Marco decides on the API.
team calendar | The team meets on Mondays at eleven, twenty minutes, standing.
team preferences writing | Jonas wants the reason of a change in the first line of its message.
health food | Marco's iron was low in spring: lentils, and coffee an hour after meals.
travel calendar | The conference in Ghent is from 3 to 5 March; the hotel can be cancelled until February.
database testing | Tests run against a real PostgreSQL in a container, never SQLite.
garden home | The apple tree is pruned in February; the roses wait until the forsythia is in flower.
bicycle travel | Marco's bicycle gets its service in March; the frame's number is in the blue folder.
health calendar | The dentist is on 12 January at 8.20; Marco wants to be home by ten.
family birthday | Leo turns seven on 14 May and wishes for an atlas of stars.
food recipe | Lentil soup as Anna makes it: cumin first, lemon at the end, and never cream.
language learning | Marco learns Portuguese: twenty words a week, and one film on Sundays.
backup home | The photos are on the black disk in the cupboard, last copied on 1 November.
project billing customers | Two customers pay by the quarter; their invoices name the order's number.
project security decision | Tokens live for an hour; whoever is logged in gets a new one without asking.
team hiring project | The second interview is with Jonas; the task takes an hour at most.
"""  # noqa: E501
AGENTS = ["claude", "claude", "cursor", "cursor", "gemini", "codex"]


def samples() -> Iterator[Memory]:
    """Return memories of a year, more of them lately."""
    draw = random.Random(7)  # noqa: S311
    for line in SAMPLES.splitlines():
        topics, _, content = line.partition(" | ")
        made = LAST - timedelta(days=330 * draw.random() ** 1.7, minutes=draw.randrange(600))
        user = "anna" if content.startswith(("Anna", "In Lisbon")) else "marco"
        yield Memory(
            id=f"{draw.randrange(16**8):08x}",
            timestamp=made.isoformat(timespec="microseconds"),
            agent=draw.choice(AGENTS),
            user=user,
            topics=tuple(topics.split()),
            content=content.replace("\\n", "\n"),
        )


@contextmanager
def sample_store() -> Iterator[Path]:
    """Have a base directory with the samples inside the `with`."""
    with tempfile.TemporaryDirectory(prefix="aiaml-samples-") as base:
        files = Path(base, "files")
        files.mkdir()
        memories = list(samples())
        for memory in memories:
            (files / memory.file_name).write_text(format(memory), encoding="utf-8")
        yield Path(base)


def served(base: Path, **environ: str) -> Web:
    """Serve the samples, in the zone of the browser."""
    return Web(base, TZ="UTC", **environ)


@contextmanager
def uncopied() -> Iterator[Web]:
    """Serve the samples inside the `with`, kept in git, of which no copy can be made now."""
    with sample_store() as base:
        remote = str(base / "not-plugged-in" / "memories.git")
        with served(base, AIAML_ENABLE_SYNC="true", AIAML_GITHUB_REMOTE=remote,
                    GIT_CONFIG_GLOBAL=os.devnull) as web:  # fmt: skip
            yield web


def open_page(browser: Browser, web: Web, scheme: str = "light", width: int = 1280) -> Page:
    """Open the page where every run sees the same: size, language, zone and time."""
    page = browser.new_page(
        viewport={"width": width, "height": 800},
        locale="en-GB",
        timezone_id="UTC",
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    page.clock.set_fixed_time(LAST + timedelta(hours=1))
    page.goto(web.address)
    page.locator(".timeline").wait_for(state="attached")
    page.locator("#hits a").first.wait_for()
    return page


def every_view(
    browser: Browser, scheme: str = "light", width: int = 1280
) -> Iterator[tuple[str, Page]]:
    """Yield each view of the page with its name, while it is seen."""
    with sample_store() as base, served(base) as web:
        page = open_page(browser, web, scheme, width)
        yield from ((name, page) for name in views(page, web))
        page.close()
    with uncopied() as web:
        page = open_page(browser, web, scheme, width)
        yield from ((name, page) for name in _in_git(page))
        page.close()


def views(page: Page, web: Web) -> Iterator[str]:
    """Yield the name of each view of a page, while it is seen."""
    yield "list"
    page.keyboard.press("o")
    yield "overview"
    page.get_by_role("button", name="Menu").click()
    yield "menu"
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    yield from _one_memory(page)
    yield from _many_memories(page)
    page.evaluate("sessionStorage.clear()")
    page.goto(web.address.partition("#")[0])
    page.reload()
    page.locator(".door").wait_for()
    yield "door"


def _one_memory(page: Page) -> Iterator[str]:
    page.locator("#hits a", has_text="type hints").first.click()
    page.locator(".memory h1").wait_for()
    yield "reader"
    page.keyboard.press("r")
    page.locator("pre.file").wait_for()
    yield "file"
    page.keyboard.press("h")
    page.get_by_text("There is no earlier version").wait_for()
    yield "history"
    page.keyboard.press("h")
    page.keyboard.press("e")
    page.locator("#preview strong").wait_for()
    yield "editor"
    page.get_by_role("button", name="File").click()
    page.get_by_text("The whole file").wait_for()
    yield "editor-file"
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    page.get_by_label("What to remember").wait_for()
    yield "new"
    page.keyboard.press("Control+s")
    page.get_by_text("Not saved").wait_for()
    yield "new-wrong"
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")


def _many_memories(page: Page) -> Iterator[str]:
    page.keyboard.press("?")
    yield "keys"
    page.keyboard.press("Escape")
    page.locator("#sync").click()
    page.locator(".facts div").wait_for()
    yield "sync"
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    page.locator("#search").fill("agent:claude preferences")
    page.locator("#hits mark").first.wait_for()
    yield "search"
    page.locator("#hits a").first.focus()
    page.keyboard.press("x")
    page.get_by_role("toolbar").wait_for()
    yield "selection"
    page.keyboard.press("d")
    page.get_by_role("dialog").wait_for()
    yield "forget"
    page.keyboard.press("Escape")
    page.locator("#search").fill("")
    page.locator("#count", has_text="14 of 44 memories").wait_for()
    page.get_by_role("button", name="Select all").click()
    page.get_by_text("All 14 selected").wait_for()
    page.keyboard.press("d")
    page.get_by_role("dialog").get_by_text("and 6 more").wait_for()
    yield "forget-all"
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Forgotten ones").click()
    page.get_by_text("Nothing was forgotten so far").wait_for()
    yield "forgotten"
    page.locator("#search").fill("xyzzy")
    page.get_by_text("No memory holds any of these words").wait_for()
    yield "empty"


def _in_git(page: Page) -> Iterator[str]:
    page.get_by_role("button", name="Try again").wait_for()
    page.keyboard.press("o")
    page.locator(".lately").wait_for()
    yield "uncopied"
    page.locator("#sync").click()
    page.locator(".facts div").first.wait_for()
    yield "uncopied-sync"
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.locator("#hits a", has_text="Leo has swimming").first.click()
    page.locator(".memory").get_by_text("Leo has swimming").first.wait_for()
    page.keyboard.press("e")
    page.get_by_label("What to remember").fill(
        "Leo has swimming on Thursdays at four; Anna takes him, Marco fetches him."
    )
    page.get_by_label("Topics").fill("family, calendar, swimming")
    page.keyboard.press("Control+s")
    page.get_by_text("Saved").wait_for()
    page.keyboard.press("h")
    page.locator(".versions del").first.wait_for()
    yield "history-changes"


def main(directory: Path | None = None) -> None:
    """Write the pictures of the documents; into another directory, those of all views."""
    with tempfile.TemporaryDirectory() as state, chromium() as browser:
        os.environ["XDG_STATE_HOME"] = state  # of the samples and of who serves them
        for scheme, pictures in PICTURES.items():
            for name, page in every_view(browser, scheme):
                if directory:
                    page.screenshot(path=directory / f"{name}-{scheme}.png")
                elif name in pictures:
                    _save(page.screenshot(), HERE / pictures[name])


def _save(picture: bytes, path: Path) -> None:
    """Write a picture with 256 colours, which takes a third; a red word stays red."""
    way = Image.Quantize.FASTOCTREE
    few = Image.open(BytesIO(picture)).convert("RGB").quantize(256, way, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


if __name__ == "__main__":
    if not found_browser():
        sys.exit("docs/screenshots.py needs Chromium or Chrome; install one")
    main(*map(Path, sys.argv[1:]))
