"""Open the person's browser without the token on a command line.

Everybody on a machine can read the command lines of all processes. So the browser is given a file
that only this user can read, and the file redirects it to the page, as Jupyter's
`use_redirect_file` does.
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

_REDIRECT = """\
<!doctype html>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0;url={address}">
<title>AIAML</title>
<a href="{address}">AIAML</a>
"""


def has_screen() -> bool:
    """Return whether a browser would open a window, instead of taking over this terminal."""
    if sys.platform in ("win32", "darwin"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


@contextmanager
def browser_at(address: str) -> Iterator[None]:
    """Open the browser at an address. The file that redirects it is removed at the end.

    Raises:
        OSError: the file cannot be written.
    """
    with tempfile.TemporaryDirectory(
        prefix="aiaml-web-", dir=_readable_directory(), ignore_cleanup_errors=True
    ) as directory:
        page = Path(directory, "aiaml.html")
        page.touch(0o600)
        page.write_text(_REDIRECT.format(address=escape(address)), encoding="utf-8")
        threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()
        yield


def _readable_directory() -> str | None:
    """Return where a browser can read a file; None for the system's temporary directory.

    A browser from a snap has a temporary directory of its own, but reads files in the home
    directory that are not hidden.
    """
    home = os.path.expanduser("~")  # noqa: PTH111 (Path.home raises where there is none)
    if sys.platform == "linux" and Path(home, "snap").is_dir():
        return home
    return None
