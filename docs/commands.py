"""Writes what is made from the program: a page for each verb, a picture and a recording.

    python docs/commands.py

`commands/` gets one page for each verb, those of toolsets too: its `--help`, and its transcript
from `tests/transcripts/`, which the tests run. `terminal.svg` shows what the program prints on a
terminal, `demo.svg` what `aiaml demo` does, as a film. `tests/test_docs.py` fails where they are
not as the program has them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from bisect import bisect_right
from pathlib import Path

import click

from aiaml_server.cli.app import aiaml

DOCS = Path(__file__).parent
TRANSCRIPTS = DOCS.parent / "tests" / "transcripts"
SHOWN = (
    "aiaml list",
    "aiaml search dog vegetarian",
    "aiaml show 1b2c",
    "aiaml stats topics",
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
    seen = "![What aiaml list, search, show and topics print](../terminal.svg)"
    overview = f"# aiaml\n\n{seen}\n\n{_help(aiaml, 'aiaml')}\n" + "\n".join(table) + "\n"
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
    with tempfile.TemporaryDirectory() as home:
        shutil.copytree(TRANSCRIPTS / "store", Path(home) / "store")
        return _drawn([[f"$ {command}", _printed(command, Path(home))] for command in SHOWN])


def recording() -> str:
    """Return what `aiaml demo` prints, as an SVG in which one paragraph comes after the other."""
    with tempfile.TemporaryDirectory() as home:
        printed = _printed("aiaml demo", Path(home)).partition("\n\n\x1b[1mTo connect")[0]
    for pattern, sample in _DEMO.items():
        printed = re.sub(pattern, sample, printed)
    shown = [f"{each}\n" for each in re.split(r"\n\n(?! )", printed)]
    return _drawn([["$ aiaml demo", shown[0]], *([each] for each in shown[1:])], film=True)


def _drawn(parts: list[list[str]], *, film: bool = False) -> str:
    """Return a terminal with commands and what they print; in a film, part after part."""
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    ends = []
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123
        console = Console(record=True, width=_COLUMNS, file=nowhere, force_terminal=True)
        for part in parts:
            for text in part:
                is_typed = text.startswith("$ ")
                console.print(Text(text, "bold green") if is_typed else Text.from_ansi(text))
            ends.append(console.export_text(clear=False).count("\n"))
    svg = console.export_svg(title="aiaml", unique_id="aiaml")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # nothing from elsewhere
    svg = _moving(svg, ends) if film else svg
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def _moving(svg: str, ends: list[int]) -> str:
    """Have the lines of a drawn terminal come in turn, again and again, where people like that."""
    times = [sum(_SECONDS[:number]) for number in range(len(ends))]
    whole = sum(_SECONDS)
    rules = [f".aiaml-matrix text {{ animation: {whole}s step-end infinite }}"]
    for number, at in enumerate(times):
        frames = f"0% {{ opacity: 0 }} {100 * at / whole:.1f}% {{ opacity: 1 }}"
        rules.append(f"@keyframes part{number} {{ {frames} }}")
        rules.append(f".aiaml-matrix .part{number} {{ animation-name: part{number} }}")
    style = "\n".join(["@media (prefers-reduced-motion: no-preference) {", *rules, "}"])

    svg = re.sub(
        r'(<text class="[^"]*)("[^>]* clip-path="url\(#aiaml-line-(\d+)\)")',
        lambda line: f"{line[1]} part{bisect_right(ends, int(line[3]))}{line[2]}",
        svg,
    )
    return svg.replace("</style>", f"{style}\n</style>", 1)


_DEMO = {
    r"\d{4}-\d\d-\d\dT[\d:.]+": "2026-11-21T18:30:12.345678",
    r"\d{8}_\d{6}_": "20261121_183012_",
    r"(?<![\d.])[0-9a-f]{8}(?=[\".,\n])": "9c760da6",
    r"Done in [\d.]+ s": "Done in 0.4 s",
}
"""What is new each time, as it looks in the recording."""
_SECONDS = (2, 4, 4, 4, 5, 5)
"""How long each part of the recording is the last."""


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
    (DOCS / "demo.svg").write_text(recording(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
