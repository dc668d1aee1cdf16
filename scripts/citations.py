#!/usr/bin/env python3
"""Runs the verbs of the toolset `citations` from a checkout: Python alone, nothing installed.

python scripts/citations.py verify            as `aiaml citations verify`
python scripts/citations.py --zip FILE        makes one file of it: `python FILE verify`
"""

from __future__ import annotations

import sys
import tempfile
import zipapp
from pathlib import Path
from shutil import copyfile

SOURCE = Path(__file__).resolve().parent.parent / "src"
PARTS = (
    *("__init__.py", "errors.py", "files.py", "settings.py", "toolset.py"),
    *(
        "format/__init__.py",
        "format/invisible.py",
        "format/spreadsheet.py",
        "storage/__init__.py",
        "storage/programs.py",
    ),
)
ROOMS = ("format/leaks", "toolsets", "toolsets/citations")
SERVED = {"answering.py", "demo.py", "descriptions.py", "hooks.py", "tools.py", "verbs.py"}
"""What needs a library, for the server, its hooks and `aiaml citations`."""
MAIN = """\
import sys

if sys.version_info < (3, 10):
    sys.stderr.write("this needs Python 3.10 or later\\n")
    sys.exit(2)

from aiaml_server.toolsets.citations.bare import main

sys.exit(main(prog="citations"))
"""


def make_zip(target: Path) -> None:
    """Put what the command needs into one file that Python runs."""
    with tempfile.TemporaryDirectory() as place:
        package = Path("aiaml_server")
        parts = [package / each for each in PARTS]
        for room in ROOMS:
            every = (SOURCE / package / room).glob("*.*")
            parts += (each.relative_to(SOURCE) for each in every if each.name not in SERVED)
        for part in parts:
            (place / part).parent.mkdir(parents=True, exist_ok=True)
            copyfile(SOURCE / part, place / part)
        (Path(place) / "__main__.py").write_text(MAIN, encoding="utf-8")
        zipapp.create_archive(place, target, "/usr/bin/env python3", compressed=True)


if __name__ == "__main__":
    if sys.version_info < (3, 10):  # noqa: UP036 (who runs it may have an older one)
        sys.stderr.write("this needs Python 3.10 or later\n")
        sys.exit(2)  # 1 would mean stale
    if sys.argv[1:2] == ["--zip"] and len(sys.argv) == 3:
        make_zip(Path(sys.argv[2]))
        sys.exit()
    sys.path.insert(0, str(SOURCE))
    from aiaml_server.toolsets.citations.bare import main

    sys.exit(main(prog="citations"))
