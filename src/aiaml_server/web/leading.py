"""How the browser is led to the page without its address on a command line, which all may read.

A file that this user alone can read sends the browser on, as Jupyter has it (`use_redirect_file`).
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path

_PAGE = """\
<!doctype html>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0;url={address}">
<title>AIAML</title>
<a href="{address}">AIAML</a>
"""


def has_screen() -> bool:
    """Say whether a browser would open a window, and not take over this terminal."""
    if sys.platform in ("win32", "darwin"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


@contextmanager
def led_to(address: str) -> Iterator[None]:
    """Open the person's browser at an address; what leads it there is gone after the `with`.

    Raises:
        OSError: no file can be written.
    """
    with tempfile.TemporaryDirectory(
        prefix="aiaml-web-", dir=_place(), ignore_cleanup_errors=True
    ) as place:  # for its owner alone, as is the file
        page = Path(place, "aiaml.html")
        page.touch(0o600)
        page.write_text(_PAGE.format(address=escape(address)), encoding="utf-8")
        threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()
        yield


def _place() -> str | None:
    """Return where a browser can read a file; None for the system's temporary directory.

    A browser from a snap, as Ubuntu's are, has a temporary directory of its own, and reads in the
    home directory what is not hidden (snapcraft.io/docs/home-interface, 2025).
    """
    home = os.path.expanduser("~")  # noqa: PTH111 (a pathlib without a home raises)
    return home if sys.platform == "linux" and os.path.isdir(f"{home}/snap") else None  # noqa: PTH112
