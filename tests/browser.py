"""A real Chromium, if there is one: driven by Playwright, which brings none of its own here."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)

# In the page itself: handlers of Playwright's own for requests can leave its loop waiting for ever.
_HOLD = """([part, answered]) => {
  const fetch = window.fetch;
  const held = {};
  const decided = new Promise((decide) => { held.decide = decide; });
  held.asked = new Promise((arrive) => {
    let first = true;
    window.fetch = async (path, options) => {
      if (!first || !path.includes(part)) return fetch(path, options);
      first = false;
      const answer = answered ? await fetch(path, options) : null;
      arrive();
      const instead = await Promise.race([decided, new Promise((_, fail) => {
        const { signal } = options;
        signal?.addEventListener("abort", () => fail(signal.reason));
      })]);
      if (instead) return new Response(JSON.stringify(instead.json), { status: instead.status });
      return answer ?? fetch(path, options);
    };
  });
  return held;
}"""


class Held:
    """The page's next request of some address, held back until the test says how it goes on."""

    def __init__(self, page: Page, part: str, *, answered: bool = False) -> None:
        """Hold the request that has `part` in its path; or, once it is answered, the answer."""
        self._held = page.evaluate_handle(_HOLD, [part, answered])

    def arrive(self) -> None:
        """Wait until the page has asked; and, where the answer is held, until there is one."""
        self._held.evaluate("(held) => held.asked")

    def let_go(self) -> None:
        """Have it go on."""
        self._held.evaluate("(held) => held.decide(null)")

    def answer(self, status: int, json: object) -> None:
        """Answer in the server's place."""
        self._held.evaluate(
            "(held, instead) => held.decide(instead)", {"status": status, "json": json}
        )


def found_browser() -> str | None:
    """Return the program of an installed Chromium, Chrome or Edge."""
    named = (shutil.which(name) for name in _NAMES)
    placed = (place for place in _PLACES if Path(place).exists())
    return next(filter(None, (*named, *placed)), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Have a headless browser inside the `with`."""
    # Its sandbox cannot be had as root, which is what a container's tests are.
    root = sys.platform != "win32" and os.geteuid() == 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found_browser(), args=["--no-sandbox"] if root else []
        )
        try:
            yield browser
        finally:
            browser.close()
