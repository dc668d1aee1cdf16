"""Builds the documentation as a site: python scripts/make_site.py [DIRECTORY].

The pages are those of the repository, in the order of `PAGES`, and two that are made from the
program: how each client is connected, and every setting. A link to a page leads to that page of the
site, one to another file to the repository; one that leads nowhere ends the build. Needs the group
`site` of `pyproject.toml`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from aiaml_server import clients, settings, toolsets
from aiaml_server.clients import launch
from aiaml_server.clients.places import CLIENTS, Client, Machine
from aiaml_server.toolset import Variable

ROOT = Path(__file__).resolve().parent.parent
REPOSITORY = "https://github.com/aiaml/aiaml"
STYLE, ICON = "site.css", "icon.svg"
CLIENTS_PAGE, SETTINGS_PAGE = "clients.md", "settings.md"

Parts = dict[str, str | dict[str, str]]
PAGES: Parts = {
    "Start": "README.md",
    "Connect a client": CLIENTS_PAGE,
    "The first ten minutes": "docs/first-ten-minutes.md",
    "Plugins and bundles": "docs/packages.md",
    "Are my memories safe?": "docs/safe.md",
    "The tools do not appear": "docs/missing-tools.md",
    "Why not …": "docs/others.md",
    "Your side": {
        "Find": "docs/search.md",
        "By itself": "docs/hooks.md",
        "The page": "docs/web.md",
        "Import and export": "docs/import.md",
        "Several machines": "docs/sync.md",
        "Settings": SETTINGS_PAGE,
        "Verbs": "docs/commands/README.md",
    },
    "Toolsets": {
        "citations": "docs/toolsets/citations.md",
        "compartments": "docs/toolsets/compartments.md",
        "semantic": "docs/toolsets/semantic.md",
        "sessions": "docs/toolsets/sessions.md",
        "From Serena": "docs/toolsets/citations-from-serena.md",
    },
    "The format": {
        "A memory": "docs/format.md",
        "Conformance": "conformance/README.md",
    },
    "Figures": "benchmarks/RESULTS.md",
    "Reliability": "docs/reliability.md",
    "Comparison": "docs/comparison.md",
    "The laboratory": "lab/README.md",
    "Security": ".github/SECURITY.md",
    "Contribute": {
        "How": ".github/CONTRIBUTING.md",
        "A release": ".github/RELEASING.md",
        "Architecture": "docs/architecture.md",
        "Decisions": "docs/decisions/README.md",
        "A toolset, a verb": "docs/extending.md",
        "citations, line by line": "docs/toolsets/citations-tests.md",
        "semantic, line by line": "docs/toolsets/semantic-tests.md",
    },
    "What is new": "docs/whats-new.md",
    "Changes": "CHANGELOG.md",
}
"""What the site shows, in its order: a file of the repository, or one that is made here."""

SYSTEMS = {
    "Linux": Machine("linux", PurePosixPath("~"), {}),
    "macOS": Machine("darwin", PurePosixPath("~"), {}),
    "Windows": Machine("win32", PurePosixPath("%USERPROFILE%"), {}),
}
_BY_HAND = """\
`aiaml install NAME` writes the entry `aiaml` into the client's file and leaves every other byte
as it is; `--all` instead of a name does so for all that are found on this computer. With
[uv](https://docs.astral.sh/uv/), `uvx aiaml-server install NAME` needs nothing else. Here is what
goes where, for who would rather do it by hand."""
_LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)\s]*)?\))")
_FENCE = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)$", re.MULTILINE | re.DOTALL)


def files() -> list[str]:
    """Return all files that are pages, in order."""
    found: list[str] = []
    for part in PAGES.values():
        found += [part] if isinstance(part, str) else part.values()
    for folder in ("commands", "decisions"):
        names = sorted(path.name for path in (ROOT / "docs" / folder).glob("*.md"))
        found += [f"docs/{folder}/{name}" for name in names if name != "README.md"]
    return found


def place(file: str) -> str:
    """Return where a page lies below the site's source."""
    if file == "README.md":
        return "index.md"
    name = file.removeprefix("docs/").removeprefix(".github/").removeprefix("benchmarks/").lower()
    return name.replace("readme.md", "index.md")


def clients_page() -> str:
    """Return the page that says how each client is connected."""
    lines = [
        "# Connect a client",
        "",
        _BY_HAND,
        "",
    ]
    for client in CLIENTS:
        lines += [f"## {client.title}", "", f"    aiaml install {client.name}", ""]
        lines += _where(client)
        text = clients.snippet(client, ["uvx", "aiaml-server"], launch.COMPILED)
        lines += ["", f"```{client.form}", text.rstrip("\n"), "```", ""]
        lines += [client.then.format(name="aiaml"), ""]
    return "\n".join(lines)


def _where(client: Client) -> list[str]:
    """Return a line for each file that a client may read, with the systems on which it is that."""
    found: dict[str, list[str]] = {}
    for system, machine in SYSTEMS.items():
        for at in client.places(machine):
            text = str(at.file).replace("%USERPROFILE%/AppData/Roaming", "%APPDATA%")
            found.setdefault(text.replace("/", "\\") if "%" in text else text, []).append(system)
    return [f"- `{file}` ({', '.join(systems)})" for file, systems in found.items()]


def settings_page() -> str:
    """Return the page that lists every setting."""
    lines = ["# Settings", "", "Environment variables; all of them may be left out.", ""]
    lines += _table([*settings.VARIABLES, *toolsets.VARIABLES, settings.PAGER])
    for name in toolsets.OWN:
        if name != toolsets.DEFAULT and (variables := toolsets.manifest(name).variables):
            lines += ["", f"## Of the toolset `{name}`", "", *_table(variables)]
    return "\n".join(lines) + "\n"


def _table(variables: Iterable[Variable]) -> list[str]:
    rows = [
        f"| `{each.name}` | {each.help.replace('|', '&#124;')} | {each.default or ''} |"
        for each in variables
    ]
    return ["| variable | meaning | default |", "|---|---|---|", *rows]


def page(file: str, places: Mapping[str, str]) -> str:
    """Return a page's text, with its links as the site has them.

    Raises:
        SystemExit: a link leads nowhere.
    """
    if file == CLIENTS_PAGE:
        return clients_page()
    if file == SETTINGS_PAGE:
        return settings_page()
    text = (ROOT / file).read_text(encoding="utf-8")

    def led(match: re.Match[str]) -> str:
        target = os.path.normpath(ROOT / PurePosixPath(file).parent / match[2])
        if not os.path.exists(target):  # noqa: PTH110
            raise SystemExit(f"{file}: {match[2]} leads nowhere")
        wanted = Path(target).relative_to(ROOT).as_posix()
        if wanted not in places and not wanted.startswith("docs/"):
            return f"{match[1]}{REPOSITORY}/blob/main/{wanted}{match[3]}"
        to = places.get(wanted) or place(wanted)
        above = PurePosixPath(places[file]).parent
        return f"{match[1]}{PurePosixPath(os.path.relpath(to, above)).as_posix()}{match[3]}"

    parts, end = [], 0
    for fence in _FENCE.finditer(text):  # what stands in code is no link
        parts += [_LINK.sub(led, text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, _LINK.sub(led, text[end:])])


def style() -> str:
    """Return a style sheet: where no script chooses the theme's dark colours, the system does.

    Names at the beginning of a table's row stay in one line.
    """
    theme = Path(import_module("material").__file__ or "").parent
    scheme, ours = "[data-md-color-scheme=slate]", ".no-js [data-md-color-scheme]"
    rules: list[str] = []
    for sheet in sorted(theme.glob("templates/assets/stylesheets/*.min.css")):
        for found in re.finditer(r"([^{}]+)\{([^{}]*)\}", sheet.read_text(encoding="utf-8")):
            chosen = [each for each in found[1].split(",") if each.startswith(scheme)]
            if chosen:
                rules.append(f"{','.join(chosen).replace(scheme, ours)}{{{found[2]}}}")
    dark = "@media screen and (prefers-color-scheme: dark) {\n" + "\n".join(rules) + "\n}\n"
    return dark + ".md-typeset td:first-child code {white-space: nowrap}\n"


SOURCE = """\
<a href="{{ config.repo_url }}" class="md-source">
  <div class="md-source__icon md-icon">{% include ".icons/fontawesome/brands/git-alt.svg" %}</div>
  <div class="md-source__repository">{{ config.repo_name }}</div>
</a>
"""
"""The link to the repository; with the theme's, every reader's browser asks the code host."""


def configuration(source: Path, built: Path) -> dict[str, Any]:
    """Return what the generator is told."""
    nav: list[dict[str, Any]] = []
    for title, part in PAGES.items():
        below = part if isinstance(part, str) else [{name: place(at)} for name, at in part.items()]
        nav.append({title: place(below) if isinstance(below, str) else below})
    return {
        "site_name": "AIAML",
        "site_description": "One memory, in plain files, for every AI agent that you use",
        "site_url": "https://aiaml.github.io/aiaml/",
        "repo_url": REPOSITORY,
        "docs_dir": str(source),
        "site_dir": str(built),
        "use_directory_urls": False,  # so that the files can be read without a server
        "nav": nav,
        "not_in_nav": "/commands/*",
        "strict": True,
        "validation": {
            "nav": {"omitted_files": "warn", "not_found": "warn", "absolute_links": "warn"},
            "links": {"not_found": "warn", "anchors": "warn", "absolute_links": "warn",
                      "unrecognized_links": "warn"},
        },
        "theme": {
            "name": "material",
            "custom_dir": str(source.parent / "theme"),
            "font": False,  # nothing is loaded from elsewhere
            "logo": ICON,
            "favicon": ICON,
            "features": ["navigation.sections", "content.code.copy", "search.highlight"],
            "palette": [
                {"scheme": scheme, "media": f"(prefers-color-scheme: {when})", "primary": "teal"}
                for when, scheme in (("light", "default"), ("dark", "slate"))
            ],
        },
        "extra_css": [STYLE],
        "plugins": ["material/search"],
        "markdown_extensions": [
            "tables", "attr_list", "sane_lists", "pymdownx.superfences", "pymdownx.highlight",
            {"toc": {"permalink": True}},
        ],
    }  # fmt: skip


def build(built: Path) -> None:
    """Build the site into a directory, which it takes the place of.

    Raises:
        SystemExit: a link leads nowhere, or the generator found something.
    """
    with tempfile.TemporaryDirectory(prefix="aiaml-site-") as directory:
        source = Path(directory) / "source"
        places = {file: place(file) for file in files()}
        for file, at in places.items():
            (source / at).parent.mkdir(parents=True, exist_ok=True)
            (source / at).write_text(page(file, places), encoding="utf-8")
        for picture in (ROOT / "docs").glob("*.[ps][nv]g"):
            shutil.copy(picture, source)
        shutil.copy(ROOT / "src/aiaml_server/web/static" / ICON, source)
        (source / STYLE).write_text(style(), encoding="utf-8")
        link = Path(directory) / "theme" / "partials" / "source.html"
        link.parent.mkdir(parents=True)
        link.write_text(SOURCE, encoding="utf-8")
        told = Path(directory) / "mkdocs.yml"
        told.write_text(yaml.dump(configuration(source, built), sort_keys=False), encoding="utf-8")
        words = ["-m", "mkdocs", "build", "--strict", "--quiet", "--clean", "--config-file"]
        done = subprocess.run(
            [sys.executable, *words, str(told)],
            env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
            check=False,
        )
    if done.returncode:
        raise SystemExit(done.returncode)


def main() -> None:
    """Run the command line."""
    built = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / ".cache" / "site").resolve()
    build(built)
    print(f"{len(list(built.rglob('*.html')))} pages: {built / 'index.html'}")  # noqa: T201


if __name__ == "__main__":
    main()
