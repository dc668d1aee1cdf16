"""Writes what is made from the program: a page for each verb, and the picture of a terminal.

    python docs/commands.py

`commands/` gets one page for each verb, those of toolsets too: its `--help`, and its transcript
from `tests/transcripts/`, which the tests run. `terminal.svg` shows what the program prints on a
terminal. `tests/test_docs.py` fails where they are not as the program has them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from aiaml_server.cli.app import aiaml

DOCS = Path(__file__).parent
TRANSCRIPTS = DOCS.parent / "tests" / "transcripts"
SHOWN = (
    "aiaml list",
    "aiaml search dog vegetarian",
    "aiaml show 1b2c",
    "aiaml topics",
)
_COLUMNS = 88
_SAMPLES = {
    "????-??-?? ??:??": "2026-11-21 18:30",
    "????-??-??T??:??:??.??????+00:00": "2026-11-21T18:30:12.345678+00:00",
    "????-??-??T??:??:??.??????Z": "2026-11-21T18:30:12.345678Z",
    "????-??-??T??:??:??Z": "2026-11-21T18:30:12Z",
    "????-??-??": "2026-11-21",
    "????????": "9c760da6",
}
"""What transcripts cannot foresee, as it looks."""


def pages() -> dict[str, str]:
    """Return the pages of `commands/` by file name."""
    verbs = aiaml.list_commands(click.Context(aiaml))
    written = {f"{verb}.md": _page(verb) for verb in verbs}
    lines = [f"| [{verb}]({verb}.md) | {_short(verb)} |" for verb in verbs]
    table = ["| verb | does |", "|---|---|", *lines]
    overview = f"# aiaml\n\n{_help(aiaml, 'aiaml')}\n" + "\n".join(table) + "\n"
    return {"README.md": overview, **written}


def _page(verb: str) -> str:
    command = _verb(verb)
    parts = [f"# aiaml {verb}\n\n{_help(command, f'aiaml {verb}')}"]
    for name, below in (command.commands if isinstance(command, click.Group) else {}).items():
        parts.append(f"## aiaml {verb} {name}\n\n{_help(below, f'aiaml {verb} {name}')}")
    transcript = TRANSCRIPTS / f"{verb}.txt"
    if transcript.exists():
        parts.append(f"## How it looks\n\n{_transcript(transcript)}")
    return "\n".join(parts)


def _verb(name: str) -> click.Command:
    return aiaml.get_command(click.Context(aiaml), name)


def _short(verb: str) -> str:
    return _verb(verb).get_short_help_str(200)


def _help(command: click.Command, name: str) -> str:
    settings = {**command.context_settings, "terminal_width": 80, "max_content_width": 80}
    names = {"help_option_names": ["-h", "--help"]}
    with click.Context(command, info_name=name, **{**settings, **names}) as context:
        return f"```text\n{command.get_help(context)}\n```\n"


def _transcript(path: Path) -> str:
    """Return a transcript as markdown: prose, and blocks of commands with what they print."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r" \(glob\)$", "", text, flags=re.MULTILINE)
    for pattern, sample in _SAMPLES.items():
        text = text.replace(pattern, sample)
    blocks = [_console(each) if each[0] == "$" else each for each in text.strip().split("\n\n")]
    return "\n\n".join(blocks).replace("\n```\n\n```console\n", "\n\n") + "\n"


def _console(block: str) -> str:
    block = re.sub(r"^\.$", "", block, flags=re.MULTILINE)
    block = re.sub(r"\n\[(\d+)\]$", r"\n(exit code \1)", block)
    return f"```console\n{block}\n```"


def picture() -> str:
    """Return what `SHOWN` prints, as an SVG picture of a terminal."""
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    with open(os.devnull, "w") as nowhere, tempfile.TemporaryDirectory() as home:  # noqa: PTH123
        shutil.copytree(TRANSCRIPTS / "store", Path(home) / "store")
        console = Console(record=True, width=_COLUMNS, file=nowhere, force_terminal=True)
        for command in SHOWN:
            console.print(Text(f"$ {command}", style="bold green"))
            console.print(Text.from_ansi(_printed(command, Path(home))))
    svg = console.export_svg(title="aiaml", unique_id="aiaml")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # nothing from elsewhere
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def _printed(command: str, home: Path) -> str:
    script = "import sys, click; from aiaml_server.cli import app; sys.argv[0] = 'aiaml'; "
    # Colours although it is no terminal.
    script += "click.utils.should_strip_ansi = lambda *_: False; sys.exit(app.run(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", script, *command.split()[1:]],
        env={
            **{key: value for key, value in os.environ.items() if not key.startswith("AIAML_")},
            "AIAML_MEMORY_DIR": str(home / "store"),
            "AIAML_ENABLE_SYNC": "false",
            "COLUMNS": str(_COLUMNS),
            "FORCE_TTY": "1",
            "NO_COLOR": "",
            "FORCE_COLOR": "1",
            "TERM": "xterm-256color",
            "TZ": "UTC",
            "PYTHONUTF8": "1",
        },
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return done.stdout


def main() -> None:
    """Write them."""
    directory = DOCS / "commands"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    for name, text in pages().items():
        (directory / name).write_text(text, encoding="utf-8", newline="\n")
    (DOCS / "terminal.svg").write_text(picture(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
