#!/usr/bin/env python3
"""Writes the files by which hosts and registries know this server, from what the package says.

python scripts/manifests.py            writes them
python scripts/manifests.py --check    changes nothing; ends with 1 and names those that differ

Name, description and addresses stand in pyproject.toml, the version in the package, and the
settings in the tables that the program reads.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from aiaml_server import __version__, settings, toolsets  # noqa: E402
from aiaml_server.toolset import Variable  # noqa: E402

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGE = PROJECT["name"]
DESCRIPTION = PROJECT["description"]
HOME = PROJECT["urls"]["Repository"]
OWNER, _, REPOSITORY = HOME.partition("https://github.com/")[2].partition("/")
AUTHOR = {"name": PROJECT["authors"][0]["name"], "url": HOME}
ENTRY, TITLE = "aiaml", "AIAML memory"
REGISTRY_NAME = f"io.github.{OWNER}/{REPOSITORY}"
COMPILED = {"UV_COMPILE_BYTECODE": "1"}  # uv leaves that to the first start, which hosts time
LATEST: dict[str, Any] = {"command": "uvx", "args": [PACKAGE], "env": COMPILED}
PINNED = {**LATEST, "args": [f"{PACKAGE}@{__version__}"]}

DRAWING = "src/aiaml_server/web/static/icon.svg"
PICTURE = "assets/icon.png"  # in `plugin/`; `scripts/icon.py` draws it
COLOUR = "#17645C"  # the icon's

ASKED = {
    "AIAML_MEMORY_DIR": ("Memory directory", "directory"),
    "AIAML_ENABLE_SYNC": ("Keep memories in git", "boolean"),
    "AIAML_GITHUB_REMOTE": ("Remote repository", "string"),
    "AIAML_TOOLSETS": ("Toolsets", "string"),
}
"""What a person is asked for where a host asks, with its title and kind."""


def variables() -> list[Variable]:
    """Return every setting of the program and of all toolsets, each once."""
    manifests = [each for name in toolsets.OWN for each in toolsets.manifest(name).variables]
    found = {each.name: each for each in (*settings.VARIABLES, *toolsets.VARIABLES, *manifests)}
    return list(found.values())


def sentence(text: str) -> str:
    """Return a help text as hosts show it."""
    return (text if text.startswith("true") else text[0].upper() + text[1:]) + "."


def asked() -> Iterable[tuple[Variable, str, str]]:
    """Yield what a person is asked for: the setting, its title and kind."""
    table = {each.name: each for each in variables()}
    for name, (title, kind) in ASKED.items():
        yield table[name], title, kind


def icons() -> list[dict[str, Any]]:
    """Return the icon as the registry has it: addresses of this version, a picture first."""
    raw = f"https://raw.githubusercontent.com/{OWNER}/{REPOSITORY}/v{__version__}"
    return [
        {"src": f"{raw}/plugin/{PICTURE}", "mimeType": "image/png", "sizes": ["512x512"]},
        {"src": f"{raw}/{DRAWING}", "mimeType": "image/svg+xml", "sizes": ["any"]},
    ]


def server() -> dict[str, Any]:
    """`server.json`, for the MCP registry."""
    return {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": REGISTRY_NAME,
        "title": TITLE,
        "description": DESCRIPTION,
        "repository": {"url": HOME, "source": "github"},
        "icons": icons(),
        "version": __version__,
        "packages": [
            {
                "registryType": "pypi",
                "identifier": PACKAGE,
                "version": __version__,
                "runtimeHint": "uvx",
                "transport": {"type": "stdio"},
                "environmentVariables": [
                    *({"name": name, "value": value} for name, value in COMPILED.items()),
                    *(registry_input(each) for each in variables()),
                ],
            }
        ],
    }


def registry_input(variable: Variable) -> dict[str, Any]:
    """Return a setting as the registry has it."""
    switch = variable.default in ("true", "false")
    number = re.fullmatch(r"[0-9]+", variable.default)
    kind = "boolean" if switch else "number" if number else "string"
    told = {
        "name": variable.name,
        "description": sentence(variable.help),
        "isRequired": False,
        "isSecret": variable.secret,
        "format": kind,
    }
    return {**told, "default": variable.default} if variable.default else told


def bundle() -> dict[str, Any]:
    """`manifest.json` of the bundle for Claude Desktop, which brings Python by uv itself."""
    manifests = [toolsets.manifest(toolsets.DEFAULT)]
    config: dict[str, Any] = {}
    environ = dict(COMPILED)
    for variable, title, kind in asked():
        key = variable.name.removeprefix("AIAML_").lower()
        default: object = variable.default.replace("~", "${HOME}")
        if kind == "boolean":
            default = variable.default == "true"
        config[key] = {
            "type": kind,
            "title": title,
            "description": sentence(variable.help),
            "required": False,
            "default": default,
            **({"sensitive": True} if variable.secret else {}),
        }
        environ[variable.name] = f"${{user_config.{key}}}"
    return {
        "manifest_version": "0.4",
        "name": PACKAGE,
        "display_name": TITLE,
        "version": __version__,
        "description": DESCRIPTION,
        "author": AUTHOR,
        "repository": {"type": "git", "url": HOME},
        "documentation": PROJECT["urls"]["Documentation"],
        "support": PROJECT["urls"]["Issues"],
        "icon": "icon.png",
        "server": {
            "type": "uv",
            "entry_point": "server.py",
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", "server.py"],
                "env": environ,
            },
        },
        "tools": [{"name": name} for manifest in manifests for name in manifest.tools],
        "tools_generated": True,
        "keywords": PROJECT["keywords"],
        "license": PROJECT["license"],
        "compatibility": {
            "platforms": ["darwin", "linux", "win32"],
            "runtimes": {"python": PROJECT["requires-python"]},
        },
        "user_config": config,
    }


BUNDLE_PROJECT = f"""\
[project]
name = "aiaml-bundle"
version = "{__version__}"
requires-python = "{PROJECT["requires-python"]}"
dependencies = ["{PACKAGE}=={__version__}"]
"""

BUNDLE_SERVER = '''\
"""What Claude Desktop starts."""

import sys

from aiaml_server.cli import main

sys.exit(main(["serve"]))
'''


def plugin() -> dict[str, Any]:
    """Return what the plugins' manifests have in common."""
    return {
        "name": ENTRY,
        "version": __version__,
        "description": DESCRIPTION,
        "author": AUTHOR,
        "homepage": HOME,
        "repository": HOME,
        "license": PROJECT["license"],
        "keywords": PROJECT["keywords"],
    }


def codex_plugin() -> dict[str, Any]:
    """Codex's manifest, which says where the parts are and how they are shown."""
    return {
        **plugin(),
        "skills": "./skills/",
        "mcpServers": "./.mcp.json",
        "interface": {
            "displayName": TITLE,
            "shortDescription": "Memory for all of your agents",
            "longDescription": f"{DESCRIPTION}.",
            "developerName": AUTHOR["name"],
            "category": "Productivity",
            "capabilities": ["Read", "Write"],
            "websiteURL": HOME,
            "brandColor": COLOUR,
            "composerIcon": f"./{PICTURE}",
            "logo": f"./{PICTURE}",
        },
    }


def cursor_plugin() -> dict[str, Any]:
    """Cursor's manifest, which refuses an author's address; unnamed, it would find other files."""
    return {
        **plugin(),
        "displayName": TITLE,
        "author": {"name": AUTHOR["name"]},
        "logo": PICTURE,
        "skills": "./skills/",
        "mcpServers": "./.mcp.json",
        "hooks": "./hooks/cursor.json",
    }


def marketplace() -> dict[str, Any]:
    """Return what Claude Code's marketplace file says."""
    return {
        "name": ENTRY,
        "owner": AUTHOR,
        "metadata": {"description": DESCRIPTION, "version": __version__},
        "plugins": [{**plugin(), "source": "./plugin", "category": "productivity"}],
    }


def cursor_marketplace() -> dict[str, Any]:
    """Return what Cursor's marketplace file says; of a plugin it takes only these three."""
    return {
        "name": ENTRY,
        "owner": {"name": AUTHOR["name"]},
        "metadata": {"description": DESCRIPTION},
        "plugins": [{"name": ENTRY, "source": "./plugin", "description": DESCRIPTION}],
    }


def codex_marketplace() -> dict[str, Any]:
    """Return what a marketplace file of Codex says."""
    return {
        "name": ENTRY,
        "interface": {"displayName": TITLE},
        "plugins": [
            {
                "name": ENTRY,
                "source": {"source": "local", "path": "./plugin"},
                "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
                "category": "Productivity",
            }
        ],
    }


def gemini() -> dict[str, Any]:
    """`gemini-extension.json`, which Gemini CLI wants at the top of the repository."""
    return {
        "name": ENTRY,
        "version": __version__,
        "description": DESCRIPTION,
        "mcpServers": {ENTRY: PINNED},
        "settings": [
            {
                "name": title,
                "description": sentence(variable.help),
                "envVar": variable.name,
                "sensitive": variable.secret,
            }
            for variable, title, _ in asked()
        ],
    }


def cursor_link() -> str:
    """Return the address that has Cursor offer to install the server.

    It leads to Cursor's own `cursor://` address, which pages of a code host may not link to.
    """
    config = base64.b64encode(json.dumps(LATEST, separators=(",", ":")).encode()).decode()
    return f"https://cursor.com/install-mcp?name={ENTRY}&config={quote(config, safe='')}"


def vscode_link() -> str:
    """Return the address that has VS Code offer to install the server."""
    config = quote(json.dumps(LATEST, separators=(",", ":")), safe="")
    return f"https://insiders.vscode.dev/redirect/mcp/install?name={ENTRY}&config={config}"


BRINGS = """\
The plugin brings the server, a skill that says when to remember, think and recall, and a hook: at the
start of a session the agent is told how many memories there are, of which topics and users, and when the
newest were stored, never what they say. When there are none, nothing is told. The hook needs Python 3 on
the PATH and no network, and reads the newest 500 memories at most. Codex runs it only when you have looked
at it and said so (`/hooks`)."""


def plugin_page() -> str:
    """`plugin/README.md`, which marketplaces show."""
    return f"""\
# {TITLE}

{DESCRIPTION}.

{BRINGS}

It needs [uv](https://docs.astral.sh/uv/), which fetches and starts the server. Where memories are kept, what
else there is, and how to take them out again: [{OWNER}/{REPOSITORY}]({HOME}).
"""


def packages_page() -> str:
    """`docs/packages.md`: every ready-made way in."""
    return f"""\
# Plugins, bundles and other ready-made ways in

`aiaml install` connects any client ([install](commands/install.md)). Where a program has a way of its
own, there is a package for it in this repository; each starts `uvx {PACKAGE}`, so that
[uv](https://docs.astral.sh/uv/) is all it needs.

| program | do |
|---|---|
| Claude Code | `claude plugin marketplace add {OWNER}/{REPOSITORY}`, then `claude plugin install {ENTRY}@{ENTRY}` |
| Claude Desktop | open the file `{PACKAGE}-{__version__}.mcpb` of the [release]({HOME}/releases) |
| Codex | `codex plugin marketplace add {OWNER}/{REPOSITORY}`, then `codex plugin add {ENTRY}@{ENTRY}` |
| Cursor | [install]({cursor_link()}); or the plugin in `plugin/` |
| Gemini CLI | `gemini extensions install {HOME}` |
| VS Code | [install]({vscode_link()}) |
| JetBrains AI Assistant | `aiaml install jetbrains` (IDEs since 2026.2); earlier ones keep their servers in files that they write over: add what `aiaml install --print generic` prints under *Settings, Tools, AI Assistant, Model Context Protocol* |
| Docker | `docker build -t {ENTRY} {HOME}.git`, then `docker run -i --rm -v {ENTRY}:/memory {ENTRY}` |

{BRINGS} In Claude Code and Codex it is tested in the programs themselves, in Cursor
against what Cursor's documentation says.

In a container, git has no keys of yours: memories are committed in the volume, and exchanged with a
remote only if you give the container what your git needs.

These files are written by `python scripts/manifests.py`.
"""


def agents_page() -> str:
    """`llms-install.md`, for an agent that is asked to install the server."""
    rows = "\n".join(f"- `{each.name}`: {each.help}" for each, _, _ in asked())
    config = json.dumps({"mcpServers": {ENTRY: LATEST}}, indent=2)
    return f"""\
# Installing AIAML, for agents

1. `uv --version` must work; if it does not, ask the person to install uv.
2. Run `uvx {PACKAGE} install CLIENT`, with CLIENT one of those that `uvx {PACKAGE} install --list`
   names. It writes one entry into the client's configuration file and keeps the rest as it is.
3. Where the client is not among them, put this into its configuration:

```json
{config}
```

4. Run `uvx {PACKAGE} doctor`; it says what is wrong, and what to do. Then ask the person to start the
   client again.

No setting is needed. Set these in the entry's `env` only if the person asks for it:

{rows}

Do not set a remote without being asked: memories would leave this computer.
"""


DOCKERFILE = f"""\
FROM python:3.13-slim
RUN apt-get update \\
    && apt-get install -y --no-install-recommends git openssh-client \\
    && rm -rf /var/lib/apt/lists/* \\
    && useradd --uid 10001 --create-home aiaml \\
    && install -d -o aiaml -m 700 /memory
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir .
LABEL io.modelcontextprotocol.server.name="{REGISTRY_NAME}"
# The state is a key that names the index: it stays with the memories, as no container does.
ENV AIAML_MEMORY_DIR=/memory XDG_STATE_HOME=/memory/.state
USER aiaml
WORKDIR /memory
VOLUME /memory
ENTRYPOINT ["aiaml-server"]
"""


DOCKERIGNORE = """\
*
!LICENSE
!README.md
!pyproject.toml
!src
**/__pycache__
"""


def citation() -> str:
    """`CITATION.cff`: how the software is cited."""
    told = {
        "cff-version": "1.2.0",
        "message": "If you use this software, please cite it as below.",
        "type": "software",
        "title": PACKAGE,
        "abstract": DESCRIPTION,
        "authors": [{"name": AUTHOR["name"]}],
        "version": __version__,
        "license": PROJECT["license"],
        "repository-code": HOME,
        "keywords": PROJECT["keywords"],
    }
    lines = (f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in told.items())
    return "\n".join(lines) + "\n"


def in_json(value: object) -> str:
    """Return a file's text."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def manifests() -> dict[str, str]:
    """Return each file's text, by its path in the repository."""
    return {
        "server.json": in_json(server()),
        "mcpb/manifest.json": in_json(bundle()),
        "mcpb/pyproject.toml": BUNDLE_PROJECT,
        "mcpb/server.py": BUNDLE_SERVER,
        ".claude-plugin/marketplace.json": in_json(marketplace()),
        ".cursor-plugin/marketplace.json": in_json(cursor_marketplace()),
        ".agents/plugins/marketplace.json": in_json(codex_marketplace()),
        "plugin/.claude-plugin/plugin.json": in_json(plugin()),
        "plugin/.codex-plugin/plugin.json": in_json(codex_plugin()),
        "plugin/.cursor-plugin/plugin.json": in_json(cursor_plugin()),
        "plugin/README.md": plugin_page(),
        "plugin/.mcp.json": in_json({"mcpServers": {ENTRY: PINNED}}),
        "gemini-extension.json": in_json(gemini()),
        "glama.json": in_json(
            {"$schema": "https://glama.ai/mcp/schemas/server.json", "maintainers": [OWNER]}
        ),
        "docs/packages.md": packages_page(),
        "llms-install.md": agents_page(),
        "Dockerfile": DOCKERFILE,
        ".dockerignore": DOCKERIGNORE,
        "CITATION.cff": citation(),
    }


def main(words: list[str]) -> int:
    """Write the files, or compare them; return the exit code."""
    if words not in ([], ["--check"]):
        sys.stderr.write("usage: manifests.py [--check]\n")
        return 2
    wrong = 0
    for name, text in manifests().items():
        path = ROOT / name
        if words:
            there = path.read_text(encoding="utf-8") if path.is_file() else None
            if there != text:
                wrong = 1
                sys.stderr.write(f"{name} differs; `python scripts/manifests.py` writes it\n")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
