"""A real Chromium, if there is one: driven by Playwright, which brings none of its own here."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
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
