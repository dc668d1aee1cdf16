"""The documentation as a site: built strictly, complete, readable without scripts or a network."""

from __future__ import annotations

import html
import importlib.util
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from urllib.parse import urljoin, urlsplit

import pytest

from aiaml_server import settings, toolsets
from aiaml_server.clients import CLIENTS
from browser import chromium, found_browser
from environments import ROOT, environment


def script() -> ModuleType:
    """Import the script."""
    spec = importlib.util.spec_from_file_location("site_script", ROOT / "scripts" / "make_site.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SITE = script()


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the generator and this package; return the interpreter."""
    group = f"{ROOT / 'pyproject.toml'}:site"
    place = tmp_path_factory.mktemp("site") / "environment"
    return environment(place, str(ROOT), "--group", group)


@pytest.fixture(scope="module")
def site(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site; warnings are errors."""
    built = tmp_path_factory.mktemp("built")
    done = subprocess.run(
        [python, ROOT / "scripts" / "make_site.py", built],
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr
    return built


def text_of(page: Path) -> str:
    """Return what a reader sees of a page's article without scripts."""
    article = page.read_text("utf-8").partition("<article")[2].partition("</article>")[0]
    return html.unescape(re.sub(r"<[^>]+>", "", article))


def tags(site: Path) -> Iterator[str]:
    """Yield every tag of every page."""
    for page in site.rglob("*.html"):
        yield from re.findall(r"<[a-z][^>]*>", page.read_text("utf-8"))


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_page_of_the_documentation_is_there(site: Path) -> None:
    """With its whole text in the page itself, and in what the search looks through."""
    shown = set(SITE.files())
    for path in (ROOT / "docs").rglob("*.md"):
        assert path.relative_to(ROOT).as_posix() in shown
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    found = {each["location"].partition("#")[0] for each in index["docs"]}
    for file in shown:
        at = Path(SITE.place(file)).with_suffix(".html")
        assert at.as_posix() in found
        if (ROOT / file).exists():
            heading = re.search(r"^# (.+)$", (ROOT / file).read_text("utf-8"), re.MULTILINE)
            assert heading and heading[1].replace("`", "") in text_of(site / at)


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    """Links may lead away; scripts, styles, fonts and pictures are the site's own."""
    for tag in tags(site):
        loads = re.search(r'\b(?:src|data)="([^"]*)"', tag)
        if tag.startswith("<link") and not re.search(r'rel="(?:canonical|prev|next)"', tag):
            loads = re.search(r'href="([^"]*)"', tag)
        assert not loads or not re.match(r"(?:https?:)?//", loads[1]), tag
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//", style.read_text("utf-8"))


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_is_made_from_the_program_is_whole(site: Path) -> None:
    """Every client with its entry, every setting with its default."""
    clients = text_of(site / "clients.html")
    for client in CLIENTS:
        assert client.title in clients and f"aiaml install {client.name}" in clients
    shown = text_of(site / "settings.html")
    for name in toolsets.OWN:
        for variable in toolsets.manifest(name).variables:
            assert variable.name in shown
    assert all(each.name in shown for each in settings.VARIABLES)


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_light_and_dark_and_a_search_are_there(site: Path) -> None:
    """Each page offers them."""
    start = (site / "index.html").read_text("utf-8")
    assert "prefers-color-scheme: dark" in start and "prefers-color-scheme: light" in start
    assert 'data-md-component="search"' in start


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_each_page_has_the_icon(site: Path) -> None:
    """As its own, in the browser's tab and beside the title."""
    drawing = (ROOT / "src/aiaml_server/web/static/icon.svg").read_bytes()
    for page in (site / "index.html", site / "toolsets" / "semantic.html"):
        text = page.read_text("utf-8")
        for found in (r'<link rel="icon" href="([^"]+)"', r'<img src="([^"]+)" alt="logo"'):
            named = re.search(found, text)
            assert named and (page.parent / named[1]).read_bytes() == drawing


COLOURS = """names => names.map(name => {
    const style = getComputedStyle(document.querySelector(name))
    return [style.color, style.backgroundColor]
})"""


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.skipif(not found_browser(), reason="needs Chromium")
@pytest.mark.timeout(600)
def test_the_system_chooses_the_colours_also_without_scripts(site: Path) -> None:
    """Text, links, headings and code have the very colours that a script would have chosen."""
    shown = {}
    address = (site / "clients.html").as_uri()
    with chromium() as browser:
        for scheme in ("light", "dark"):
            for scripts in (True, False):
                page = browser.new_page(color_scheme=scheme, java_script_enabled=scripts)
                page.goto(address)
                names = ["body", "article h1", "article p a", "article p code", "header"]
                shown[scheme, scripts] = page.evaluate(COLOURS, names)
    assert shown["light", True] == shown["light", False] != shown["dark", False]
    assert shown["dark", True] == shown["dark", False]


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and prints nothing."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    """Serve the site; return its address."""
    handler = partial(Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.skipif(not found_browser(), reason="needs Chromium")
@pytest.mark.timeout(600)
def test_the_search_finds_what_a_page_says(address: str, site: Path) -> None:
    """From a page further down, and the way that it names is the page's."""
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        page.goto(f"{address}/toolsets/sessions.html")
        page.locator(".md-search__input").press_sequentially("vegetarian")  # it listens for keys
        found = page.locator(".md-search-result__link").first
        found.wait_for(timeout=20_000)
        led = urlsplit(urljoin(page.url, found.get_attribute("href") or ""))
    assert (site / led.path.removeprefix("/")).is_file(), led


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.skipif(not found_browser(), reason="needs Chromium")
@pytest.mark.timeout(600)
def test_every_page_fits_a_telephone(address: str) -> None:
    """No page is wider, no picture missing, no name broken; no script fails or asks elsewhere."""
    wrong: list[object] = []
    asked: list[str] = []
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 400, "height": 800})
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda sent: asked.append(sent.url))
        for file in SITE.files():
            page.goto(f"{address}/{Path(SITE.place(file)).with_suffix('.html').as_posix()}")
            wider, missing, broken = page.evaluate(FITS)
            if wider > 0 or missing or broken:
                wrong.append((file, wider, missing, broken))
    assert not wrong
    assert asked and all(each.startswith(f"{address}/") for each in asked)


FITS = """() => [
    document.documentElement.scrollWidth - innerWidth,
    [...document.images].filter(each => each.complete && !each.naturalWidth).map(each => each.src),
    [...document.querySelectorAll("td:first-child code")]
        .filter(each => each.getClientRects().length > 1).map(each => each.textContent)
]"""


def test_a_link_that_leads_nowhere_ends_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one from a page to a file that is no page."""
    places = {file: SITE.place(file) for file in SITE.files()}
    monkeypatch.setattr(SITE.Path, "read_text", lambda *_, **__: "# A\n\n[a](not-there.md)\n")
    with pytest.raises(SystemExit, match=r"docs/sync\.md: not-there\.md leads nowhere"):
        SITE.page("docs/sync.md", places)


def test_what_stands_in_code_is_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """An example stays as it is; a page is linked as the site has it, a file in the repository."""
    places = {file: SITE.place(file) for file in SITE.files()}
    text = "[f](format.md#the-name)\n\n```md\n[a](x.md)\n```\n\n[l](../LICENSE)\n"
    monkeypatch.setattr(SITE.Path, "read_text", lambda *_, **__: text)
    assert SITE.page("docs/sync.md", places) == (
        "[f](format.md#the-name)\n\n```md\n[a](x.md)\n```\n\n"
        f"[l]({SITE.REPOSITORY}/blob/main/LICENSE)\n"
    )
