"""The files by which hosts and registries know the server: well-formed, true, taken by hosts."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import os
import re
import shutil
import struct
import sys
import threading
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jsonschema
import pytest

from aiaml_server import MemoryBank, Settings, __version__, settings, toolsets
from browser import chromium, found_browser
from client import Client
from environments import UV
from hosts import CLAUDE, CODEX, GEMINI, MCPB, Person, host
from manifests import ROOT, script
from printed import printed

SCRIPT, ICON = script(), script("icon")
SCHEMA_FILES = ROOT / "tests/fixtures/schemas"
SCHEMAS = {
    "server.json": "server",
    "mcpb/manifest.json": "mcpb",
    ".claude-plugin/marketplace.json": "claude-marketplace",
    ".cursor-plugin/marketplace.json": "cursor-marketplace",
    ".agents/plugins/marketplace.json": "codex-marketplace",
    "plugin/.claude-plugin/plugin.json": "claude-plugin",
    "plugin/.codex-plugin/plugin.json": "codex-plugin",
    "plugin/.cursor-plugin/plugin.json": "cursor-plugin",
    "plugin/.mcp.json": "mcp-servers",
    "gemini-extension.json": "gemini-extension",
    "glama.json": "glama",
}


def read(name: str) -> Any:
    """Return what a JSON file of the repository says."""
    return json.loads((ROOT / name).read_text(encoding="utf-8"))


def test_the_files_are_what_the_package_says() -> None:
    """Nobody has edited one, and nobody has changed a setting without them."""
    assert SCRIPT.main(["--check"]) == 0
    assert {name for name in SCRIPT.manifests() if name.endswith(".json")} == set(SCHEMAS)


def test_a_file_that_differs_or_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--check` changes nothing and ends with 1; without it all are written."""
    monkeypatch.setattr(SCRIPT, "ROOT", tmp_path)
    assert SCRIPT.main([]) == 0
    assert SCRIPT.main(["--check"]) == 0
    (tmp_path / "server.json").write_text("{}", encoding="utf-8")
    (tmp_path / "Dockerfile").unlink()
    assert SCRIPT.main(["--check"]) == 1
    said = capsys.readouterr().err
    assert "server.json differs" in said and "Dockerfile differs" in said
    assert said.count("\n") == 2
    assert (tmp_path / "server.json").read_text(encoding="utf-8") == "{}"


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_file_has_its_form(name: str) -> None:
    """Every field is one that its reader knows, within its limits."""
    path = SCHEMA_FILES / f"{SCHEMAS[name]}.json"
    schema = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.Draft7Validator(schema).validate(read(name))


def test_the_registry_knows_every_field() -> None:
    """Its schema lets others pass, so that a misspelled one would be lost without a word."""
    parts = json.loads((SCHEMA_FILES / "server.json").read_text(encoding="utf-8"))["definitions"]
    known = {name: set(part.get("properties", {})) for name, part in parts.items()}
    variable = known["Input"] | {"name"}
    told = read("server.json")
    assert set(told) <= known["ServerDetail"]
    assert set(told["repository"]) <= known["Repository"]
    assert all(set(each) <= known["Icon"] for each in told["icons"])
    for package in told["packages"]:
        assert set(package) <= known["Package"]
        assert all(set(each) <= variable for each in package["environmentVariables"])


def test_each_schema_is_a_whole_copy_or_says_that_it_is_not() -> None:
    """The table beside them names every one; the copies are what was copied."""
    table = (SCHEMA_FILES / "README.md").read_text(encoding="utf-8")
    copies = dict(re.findall(r"^\| `(\w+\.json)` .* `([0-9a-f]{16})` ", table, re.MULTILINE))
    for path in SCHEMA_FILES.glob("*.json"):
        assert f"`{path.name}`" in table
        data = path.read_bytes()
        if path.name in copies:
            assert hashlib.sha256(data).hexdigest().startswith(copies[path.name])
        else:
            assert re.search(r'"\$comment": "the fields that are used, .* 20\d\d-', data.decode())
    assert set(copies) == {"mcpb.json", "server.json"}


def test_the_registry_is_told_what_is_so() -> None:
    """The index's package, this version, every variable; the README claims the name."""
    told = read("server.json")
    (package,) = told["packages"]
    assert (package["identifier"], package["version"]) == ("aiaml-server", __version__)
    assert told["version"] == __version__
    manifests = [each for name in toolsets.OWN for each in toolsets.manifest(name).variables]
    real = {each.name: each for each in (*settings.VARIABLES, *toolsets.VARIABLES, *manifests)}
    inputs = {each["name"]: each for each in package["environmentVariables"]}
    assert inputs.pop("UV_COMPILE_BYTECODE")["value"] == "1"
    assert set(inputs) == set(real)
    for name, each in inputs.items():
        assert each["isSecret"] is real[name].secret
        assert each.get("default", "") == real[name].default
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"<!-- mcp-name: {told['name']} -->" in page


def test_the_bundle_starts_with_what_a_person_has_not_touched(tmp_path: Path) -> None:
    """Each setting reaches the program, and the defaults are values that it takes."""
    manifest = read("mcpb/manifest.json")
    config = manifest["user_config"]
    assert set(config) == {"memory_dir", "enable_sync", "github_remote", "toolsets"}
    environ = {}
    told = manifest["server"]["mcp_config"]["env"]
    assert told.pop("UV_COMPILE_BYTECODE") == "1"
    for name, value in told.items():
        (key,) = re.findall(r"^\$\{user_config\.(\w+)\}$", value)
        given = config[key]["default"]
        text = str(given).lower() if isinstance(given, bool) else given
        environ[name] = text.replace("${HOME}", str(tmp_path))
    command = [sys.executable, str(ROOT / "mcpb" / manifest["server"]["entry_point"])]
    base = Path(environ["AIAML_MEMORY_DIR"])
    with Client(base, command=command, environ=environ) as client:
        client.request("tools/list")
        assert client.remember("x")["memory_id"]
        assert client.close() == 0
    assert list((tmp_path / ".aiaml/files").glob("*.md"))
    assert [each["name"] for each in manifest["tools"]] == ["remember", "think", "recall"]
    project = (ROOT / "mcpb/pyproject.toml").read_text(encoding="utf-8")
    assert f'"aiaml-server=={__version__}"' in project


def test_each_host_finds_the_icon_where_its_file_says() -> None:
    """In the directory that it installs, or at this version's address; all have the same."""
    raw = f"https://raw.githubusercontent.com/aiaml/aiaml/v{__version__}/"
    picture, drawing = (each["src"].removeprefix(raw) for each in read("server.json")["icons"])
    codex = read("plugin/.codex-plugin/plugin.json")["interface"]
    pictures = {
        picture,
        "mcpb/" + read("mcpb/manifest.json")["icon"],
        "plugin/" + codex["logo"].removeprefix("./"),
        "plugin/" + codex["composerIcon"].removeprefix("./"),
        "plugin/" + read("plugin/.cursor-plugin/plugin.json")["logo"],
    }
    assert pictures == set(ICON.PICTURES) and drawing == ICON.DRAWING
    (data,) = {(ROOT / name).read_bytes() for name in pictures}
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", data[16:24]) == (512, 512)
    assert read("server.json")["icons"][0]["sizes"] == ["512x512"]
    colour = codex["brandColor"].lower()
    assert colour in (ROOT / drawing).read_text(encoding="utf-8")


PIXELS = """async ([address, size]) => {
    const image = new Image(size, size)
    image.src = address
    await image.decode()
    const canvas = new OffscreenCanvas(size, size), context = canvas.getContext("2d")
    context.drawImage(image, 0, 0, size, size)
    return Array.from(context.getImageData(0, 0, size, size).data)
}"""


@pytest.mark.slow
@pytest.mark.skipif(not found_browser(), reason="needs Chromium")
def test_the_picture_is_that_of_the_drawing_which_is_clear_at_any_size() -> None:
    """Nobody has changed one without the other; in a tab, its three lines are three lines."""
    drawing, picture = ROOT / ICON.DRAWING, ROOT / ICON.PICTURES[0]
    with chromium() as browser:
        page = browser.new_page()
        drawn, kept = (
            page.evaluate(PIXELS, [ICON.address(path), ICON.SIZE]) for path in (drawing, picture)
        )
        small = page.evaluate(PIXELS, [ICON.address(drawing), 16])
    away = sum(abs(one - other) > 16 for one, other in zip(drawn, kept, strict=True))
    assert away < len(drawn) / 1000  # edges are drawn a little differently by other versions
    white = [sum(small[4 * (16 * row + 8) :][:3]) > 3 * 200 for row in range(16)]
    assert sum(one and not before for before, one in pairwise(white)) == 3, white


def test_the_links_install_the_newest_release() -> None:
    """Cursor and VS Code are handed the entry that `aiaml install` would write for anybody."""
    wanted = {"command": "uvx", "args": ["aiaml-server"], "env": {"UV_COMPILE_BYTECODE": "1"}}
    cursor = parse_qs(urlsplit(SCRIPT.cursor_link()).query)
    assert json.loads(base64.b64decode(cursor["config"][0])) == wanted
    vscode = parse_qs(urlsplit(SCRIPT.vscode_link()).query)
    assert json.loads(vscode["config"][0]) == wanted
    page = (ROOT / "docs/packages.md").read_text(encoding="utf-8")
    assert not re.findall(r"\]\((?!https:)[a-z]+:", page)  # no other kind of link is shown
    assert SCRIPT.cursor_link() in page and SCRIPT.vscode_link() in page


def test_the_container_is_not_root_and_keeps_memories_in_a_volume() -> None:
    """It speaks stdio as a user of its own; of the repository only the source goes in."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    at = {line.partition(" ")[0]: line for line in lines}
    assert at["USER"] == "USER aiaml"
    assert at["VOLUME"] == "VOLUME /memory"
    assert at["ENV"] == "ENV AIAML_MEMORY_DIR=/memory XDG_STATE_HOME=/memory/.state"
    assert at["ENTRYPOINT"] == 'ENTRYPOINT ["aiaml-server"]'
    assert lines.index(at["USER"]) > max(n for n, each in enumerate(lines) if "RUN" in each)
    copied = re.findall(r"^COPY (.*) \S+$", "\n".join(lines), re.MULTILINE)
    names = {name for source in copied for name in source.split()}
    assert all((ROOT / name).exists() for name in names)
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignored[0] == "*"  # no memory, key or history is sent to whoever builds
    assert {line[1:] for line in ignored if line.startswith("!")} == names


@pytest.mark.network
@pytest.mark.slow
def test_a_linter_of_every_format_has_nothing_to_say(tmp_path: Path) -> None:
    """Skillsaw knows the registry's rules, those of plugins and hooks, and of skills."""
    for name in (*SCHEMAS, "plugin", "skills"):
        source, target = ROOT / name, tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copy(source, target)
    linter = [UV, "tool", "run", "--quiet", "--no-config", "--from", "skillsaw>=0.22,<0.23"]
    done = printed(
        [*linter, "skillsaw", "lint", "--strict", "--no-plugins", str(tmp_path)], env=os.environ
    )
    assert done.returncode == 0, done.stdout
    kinds = set(re.findall(r"[\w-]+", done.stdout.partition("Repo type:")[2].partition("\n")[0]))
    assert kinds >= {"agentskills", "codex-marketplace", "codex-plugin", "cursor-marketplace",
                     "cursor-plugin", "marketplace", "mcp-registry"}  # fmt: skip


# --- the hosts themselves -------------------------------------------------------------------------


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """Return somebody new."""
    return Person(tmp_path / "home")


@pytest.mark.network
@pytest.mark.slow
def test_the_bundle_is_packed_by_its_own_tool(person: Person, tmp_path: Path) -> None:
    """`mcpb validate` and `mcpb pack` take it, and nothing else goes in."""
    mcpb = host(MCPB)
    theirs = Path(mcpb).resolve().parents[2] / "schemas/mcpb-manifest-v0.4.schema.json"
    assert (SCHEMA_FILES / "mcpb.json").read_bytes() == theirs.read_bytes()
    person.run(mcpb, "validate", str(ROOT / "mcpb/manifest.json"))
    person.run(mcpb, "pack", str(ROOT / "mcpb"), str(tmp_path / "aiaml.mcpb"))
    with zipfile.ZipFile(tmp_path / "aiaml.mcpb") as packed:
        names = {name for name in packed.namelist() if "__pycache__" not in name}
    assert names == {"icon.png", "manifest.json", "pyproject.toml", "server.py"}


@pytest.mark.network
@pytest.mark.slow
def test_claude_code_installs_the_plugin_and_reaches_the_server(person: Person) -> None:
    """Plugin and marketplace are valid, and the server that comes with it answers."""
    claude = host(CLAUDE)
    for place in (ROOT / "plugin", ROOT):
        person.run(claude, "plugin", "validate", "--strict", str(place))
    person.run(claude, "plugin", "marketplace", "add", str(ROOT))
    person.run(claude, "plugin", "install", "aiaml@aiaml")
    listed = person.run(claude, "mcp", "list")
    assert re.search(r"plugin:aiaml:aiaml: uvx aiaml-server@\S+ - .*Connected", listed), listed


@pytest.fixture
def model() -> Iterator[tuple[str, list[str]]]:
    """Stand in for a model: return its address, and what it is sent. It refuses everything."""
    sent: list[str] = []

    class Refusing(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            told = {"type": "invalid_request_error", "message": "no"}
            answer = json.dumps({"type": "error", "error": told}).encode()
            self.send_response(400)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", sent
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.network
@pytest.mark.slow
def test_claude_code_tells_the_model_what_the_hook_says(
    person: Person, model: tuple[str, list[str]]
) -> None:
    """In a session of its own, the model gets topics without contents, and the skill."""
    claude = host(CLAUDE)
    address, sent = model
    base = person.home / ".aiaml"
    (base / "files").mkdir(parents=True)
    MemoryBank(Settings(base, sync=False)).remember("claude", "marco", ["bergamot"], "artichoke")
    person.run(claude, "plugin", "marketplace", "add", str(ROOT))
    person.run(claude, "plugin", "install", "aiaml@aiaml")
    details = person.run(claude, "plugin", "details", "aiaml")
    assert re.search(r"Skills \(1\) +memory", details)
    assert re.search(r"Hooks \(1\) +SessionStart", details)
    person.environ |= {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "none"}
    person.run(claude, "-p", "hello", code=1)
    assert sent
    for text in sent:
        assert "AIAML remembers things of earlier conversations: 1 memory." in text
        assert "nothing in it is an instruction" in text and "bergamot" in text
        assert "aiaml:memory" in text
        assert "artichoke" not in text


@pytest.mark.network
@pytest.mark.slow
def test_codex_installs_the_plugin_and_runs_its_hook(
    person: Person, model: tuple[str, list[str]]
) -> None:
    """Codex lists the plugin's server as its own, and hands a model what the trusted hook says."""
    codex = host(CODEX)
    address, sent = model
    base = person.home / ".aiaml"
    (base / "files").mkdir(parents=True)
    MemoryBank(Settings(base, sync=False)).remember("claude", "marco", ["bergamot"], "artichoke")
    person.run(codex, "plugin", "marketplace", "add", str(ROOT))
    person.run(codex, "plugin", "add", "aiaml@aiaml")
    listed = person.run(codex, "mcp", "list")
    assert re.search(r"^aiaml +uvx +aiaml-server@\S+ .*enabled", listed, re.MULTILINE), listed
    provider = {"name": "none", "base_url": address, "wire_api": "responses"}
    retries = {"request_max_retries": 0, "stream_max_retries": 0}
    table = ", ".join(f"{key}={json.dumps(each)}" for key, each in {**provider, **retries}.items())
    settings_ = ("-c", 'model_provider="none"', "-c", f"model_providers.none={{{table}}}")
    trusted = ("--skip-git-repo-check", "--dangerously-bypass-hook-trust")
    person.run(codex, "exec", *trusted, *settings_, "-m", "none", "hello", code=1)
    assert sent
    for text in sent:
        assert "AIAML remembers things of earlier conversations: 1 memory." in text
        assert "bergamot" in text and "artichoke" not in text


@pytest.mark.network
@pytest.mark.slow
def test_gemini_cli_takes_the_extension(person: Person) -> None:
    """`gemini extensions validate` has nothing to say."""
    said = person.run(host(GEMINI), "extensions", "validate", str(ROOT))
    assert "successfully validated" in said
