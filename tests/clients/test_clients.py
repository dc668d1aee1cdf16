"""Connecting AI clients: their files are changed where we are named, and nowhere else."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiaml_server import clients
from aiaml_server.clients import CLIENTS, Client, ConfigError, Machine, jsonc, launch, toml, yaml
from aiaml_server.clients.text import Refused, position
from client import PYTHON
from paths import ROOT, TESTS
from printed import completed, inherited

FIXTURES = (TESTS / "fixtures") / "clients"
SYSTEMS = ["linux", "darwin", "win32"]
BY_NAME = {client.name: client for client in CLIENTS}
COMMAND = {
    "linux": ["/home/ada/.local/bin/aiaml-server"],
    "darwin": ["/opt/homebrew/bin/uvx", "aiaml-server"],
    "win32": ["C:\\Users\\ada\\.local\\bin\\aiaml-server.exe"],
}
VARIABLES = {"AIAML_MEMORY_DIR": "/home/ada/Erinnerungen für später"}
ENTRY = {"command": "/x/aiaml-server", "args": ["é"], "env": {"AIAML_MEMORY_DIR": "C:\\m"}}


def connected(client: Client, machine: Machine, **variables: str) -> clients.Change:
    """Connect a client and write it."""
    change = clients.connect(client, machine, ["/x/aiaml-server"], variables)
    clients.save(change)
    return change


def disconnected(client: Client, machine: Machine) -> None:
    """Disconnect a client and write it."""
    for change in clients.disconnect(client, machine):
        clients.save(change)


@pytest.fixture
def home(tmp_path: Path) -> Machine:
    """A Linux home with Cursor in it."""
    (tmp_path / ".cursor").mkdir()
    return Machine("linux", tmp_path, {})


CURSOR = BY_NAME["cursor"]


def config(machine: Machine) -> Path:
    """Return Cursor's file."""
    return Path(machine.home) / ".cursor" / "mcp.json"


# Every client's file on every system.


EDITED = [client for client in CLIENTS if client.form != "yaml"]


@pytest.mark.parametrize("client", EDITED, ids=lambda client: client.name)
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_client_s_file_becomes_what_was_written_down(
    system: str, client: Client, tmp_path: Path
) -> None:
    """Before and after are compared byte for byte, then again after taking the entry out."""
    before, machine = FIXTURES / system, Machine(system, tmp_path / "home", {})
    shutil.copytree(before, tmp_path / "home", ignore=shutil.ignore_patterns("*.after"))
    change = clients.connect(client, machine, COMMAND[system], VARIABLES)
    clients.save(change)
    path = change.path
    expected = before / path.relative_to(tmp_path / "home")
    assert path.read_bytes() == expected.with_name(expected.name + ".after").read_bytes()
    again = clients.connect(client, machine, COMMAND[system], VARIABLES)
    assert again.before == again.after
    for other in before.rglob("*"):
        if other.is_file() and other.suffix != ".after" and other != expected:
            assert (tmp_path / "home" / other.relative_to(before)).read_bytes() == (
                other.read_bytes()
            )
    had_entry = not change.new
    disconnected(client, machine)
    found = clients.connections(machine)
    assert all(not one.connected for one in found if one.client is client)
    assert had_entry or path.read_bytes() == expected.read_bytes()


PLACES: dict[str, dict[str, Sequence[str]]] = {
    "claude-desktop": {
        "linux": ["~/.config/Claude/claude_desktop_config.json"],
        "darwin": ["~/Library/Application Support/Claude/claude_desktop_config.json"],
        "win32": [
            (
                "~/AppData/Local/Packages/Claude_*/LocalCache/Roaming/Claude/"
                "claude_desktop_config.json"
            ),
            "~/AppData/Roaming/Claude/claude_desktop_config.json",
        ],
    },
    "claude-code": dict.fromkeys(SYSTEMS, ("~/.claude.json",)),
    "cursor": dict.fromkeys(SYSTEMS, ("~/.cursor/mcp.json",)),
    "vscode": {
        "linux": ["~/.config/Code/User/mcp.json"],
        "darwin": ["~/Library/Application Support/Code/User/mcp.json"],
        "win32": ["~/AppData/Roaming/Code/User/mcp.json"],
    },
    "vscode-insiders": {
        "linux": ["~/.config/Code - Insiders/User/mcp.json"],
        "darwin": ["~/Library/Application Support/Code - Insiders/User/mcp.json"],
        "win32": ["~/AppData/Roaming/Code - Insiders/User/mcp.json"],
    },
    "codex": dict.fromkeys(SYSTEMS, ("~/.codex/config.toml",)),
    "gemini": dict.fromkeys(SYSTEMS, ("~/.gemini/settings.json",)),
    "windsurf": {
        "linux": ["~/.config/devin/mcp_config.json", "~/.codeium/windsurf/mcp_config.json"],
        "darwin": ["~/.config/devin/mcp_config.json", "~/.codeium/windsurf/mcp_config.json"],
        "win32": [
            "~/AppData/Roaming/devin/mcp_config.json",
            "~/.codeium/windsurf/mcp_config.json",
        ],
    },
    "zed": {
        "linux": ["~/.config/zed/settings.json"],
        "darwin": ["~/.config/zed/settings.json"],
        "win32": ["~/AppData/Roaming/Zed/settings.json"],
    },
    "antigravity": dict.fromkeys(
        SYSTEMS, ("~/.gemini/config/mcp_config.json", "~/.gemini/antigravity/mcp_config.json")
    ),
    "copilot": dict.fromkeys(SYSTEMS, ("~/.copilot/mcp-config.json",)),
    "cline": dict.fromkeys(SYSTEMS, ("~/.cline/data/settings/cline_mcp_settings.json",)),
    "junie": dict.fromkeys(SYSTEMS, ("~/.junie/mcp/mcp.json",)),
    "jetbrains": dict.fromkeys(SYSTEMS, ("~/.ai/mcp/mcp.json",)),
    "kiro": dict.fromkeys(SYSTEMS, ("~/.kiro/settings/mcp.json",)),
    "opencode": dict.fromkeys(
        SYSTEMS, ("~/.config/opencode/opencode.jsonc", "~/.config/opencode/opencode.json")
    ),
    "goose": {
        "linux": ["~/.config/goose/config.yaml"],
        "darwin": ["~/.config/goose/config.yaml"],
        "win32": ["~/AppData/Roaming/Block/goose/config/config.yaml"],
    },
    "lm-studio": dict.fromkeys(SYSTEMS, ("~/.lmstudio/mcp.json",)),
}


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_client_s_places_are_known_on_every_system(system: str, name: str) -> None:
    """Each system's rules can be asked for on any other."""
    homes: dict[str, PurePath] = {
        "linux": PurePosixPath("/home/ada"),
        "darwin": PurePosixPath("/Users/ada"),
        "win32": PureWindowsPath("C:/Users/ada"),
    }
    found = BY_NAME[name].places(Machine(system, homes[system], {}))
    files = [place.file.as_posix().replace(homes[system].as_posix(), "~") for place in found]
    assert files == list(PLACES[name][system])


@pytest.mark.parametrize(
    ("name", "system", "variable", "expected"),
    [
        ("claude-desktop", "linux", "XDG_CONFIG_HOME", "/d/Claude/claude_desktop_config.json"),
        ("claude-desktop", "win32", "APPDATA", "/d/Claude/claude_desktop_config.json"),
        ("claude-code", "darwin", "CLAUDE_CONFIG_DIR", "/d/.claude.json"),
        ("vscode", "linux", "XDG_CONFIG_HOME", "/d/Code/User/mcp.json"),
        ("vscode", "win32", "APPDATA", "/d/Code/User/mcp.json"),
        ("codex", "linux", "CODEX_HOME", "/d/config.toml"),
        ("gemini", "win32", "GEMINI_CLI_HOME", "/d/.gemini/settings.json"),
        ("zed", "linux", "XDG_CONFIG_HOME", "/d/zed/settings.json"),
        ("zed", "win32", "APPDATA", "/d/Zed/settings.json"),
        ("windsurf", "win32", "APPDATA", "/d/devin/mcp_config.json"),
    ],
)
def test_a_variable_moves_what_its_client_moves(
    name: str, system: str, variable: str, expected: str
) -> None:
    """Where the client looks at a variable, so do we; blank counts as not set."""
    client, home = BY_NAME[name], PurePosixPath("/home/ada")
    places = client.places(Machine(system, home, {variable: "/d"}))
    assert expected in [str(place.file) for place in places]
    assert client.places(Machine(system, home, {variable: " "})) == client.places(
        Machine(system, home, {})
    )


def test_of_claude_desktop_s_two_files_on_windows_the_one_in_use_is_found(tmp_path: Path) -> None:
    """MSIX before classic, a file before a directory; two packages are refused, not guessed."""
    client, machine = BY_NAME["claude-desktop"], Machine("win32", tmp_path, {})
    classic = tmp_path / "AppData/Roaming/Claude/claude_desktop_config.json"
    package = tmp_path / "AppData/Local/Packages/Claude_pzs8sxrjxfjjc"
    inside = package / "LocalCache/Roaming/Claude/claude_desktop_config.json"
    assert clients.located(client, machine) == (classic, False)
    package.mkdir(parents=True)
    assert clients.located(client, machine) == (inside, True)
    classic.parent.mkdir(parents=True)
    classic.write_text("{}")
    assert clients.located(client, machine) == (classic, True)
    inside.parent.mkdir(parents=True)
    inside.write_text("{}")
    assert clients.located(client, machine) == (inside, True)
    second = tmp_path / "AppData/Local/Packages/Claude_other"
    shutil.copytree(package, second)
    with pytest.raises(ConfigError, match="more than one directory"):
        clients.located(client, machine)
    for path in (inside, second / inside.relative_to(package), classic):
        path.unlink()
    (found, *_) = clients.connections(machine)
    assert (found.client, found.connected) == (client, False)
    assert found.problems[0].remedy == (
        "put in by hand what `aiaml install --print claude-desktop` prints"
    )


def test_what_is_in_an_older_file_of_a_client_is_taken_out_too(tmp_path: Path) -> None:
    """A renamed client leaves its old file behind, with our entry in it."""
    client, machine = BY_NAME["windsurf"], Machine("linux", tmp_path, {})
    old = tmp_path / ".codeium/windsurf/mcp_config.json"
    old.parent.mkdir(parents=True)
    old.write_text('{"mcpServers": {}}')
    assert connected(client, machine).path == old
    new = tmp_path / ".config/devin/mcp_config.json"
    new.parent.mkdir(parents=True)
    shutil.copy(old, new)
    disconnected(client, machine)
    assert b"aiaml" not in old.read_bytes() + new.read_bytes()


# JSON with comments.


def white(draw: Callable[..., Any], newline: str, room: str) -> str:
    """Draw white space and comments."""
    pieces = ["", " ", "  ", "\t", newline, f"{newline}  ", "/* { */", "/*//*/", "/* a\n} */"]
    pieces += [f'// "x": {{{newline}', f"//{newline}"]
    found: str = draw(st.lists(st.sampled_from(pieces), max_size=2).map("".join))
    return room + found


@st.composite
def documents(draw: Callable[..., Any], depth: int = 3, newline: str = "") -> tuple[str, Any]:
    """Draw a text of JSON with comments, and what it says."""
    newline = newline or draw(st.sampled_from(["\n", "\r\n"]))
    kind = draw(st.sampled_from("{{[v" if depth else "v"))
    if kind == "v":
        value = draw(st.sampled_from([0, -1.5e3, True, None, "", 'a"b', "//", "/*", "\u00fc\n\\"]))
        return json.dumps(value, ensure_ascii=draw(st.booleans())), value
    room = draw(st.sampled_from(["", newline + "  " * (4 - depth), newline + "\t" * (4 - depth)]))
    inner = draw(st.lists(documents(depth - 1, newline), max_size=3))
    names = ["mcpServers", "b", "c/*"]
    parts = []
    for name, (text, _) in zip(names, inner, strict=False):
        key = json.dumps(name) + white(draw, newline, "") + ":" + white(draw, newline, " ")
        parts.append((key if kind == "{" else "") + text)
    body = "".join(
        white(draw, newline, room) + part + white(draw, newline, "") + ("," if more else "")
        for part, more in zip(
            parts, [*[True] * (len(parts) - 1), draw(st.booleans())], strict=False
        )
    )
    end = white(draw, newline, room[: -len("  ")] if room else "")
    values = [value for _, value in inner]
    if kind == "{":
        return "{" + body + end + "}", dict(zip(names, values, strict=False))
    return "[" + body + end + "]", values


def words(text: str) -> str:
    """Return what of a text is not white space."""
    return "".join(text.split())


def is_within(part: str, whole: str) -> bool:
    """Say whether all characters of a text occur in another, in order."""
    rest = iter(whole)
    return all(character in rest for character in part)


@pytest.mark.slow
@given(documents(), st.sampled_from(["", "\n", "// end\n"]), st.sampled_from(["", "\ufeff"]))
def test_a_json_document_keeps_everything_that_is_not_ours(
    document: tuple[str, Any], end: str, bom: str
) -> None:
    """What was read, and every character of it, is still there; taking out undoes putting in."""
    text, value = bom + document[0] + end, document[1]
    node = jsonc.parse(text)
    assert node is not None and node.value == value
    servers = value.get("mcpServers", {}) if isinstance(value, dict) else None
    if not isinstance(servers, dict):
        with pytest.raises(Refused):
            jsonc.put(text, ("mcpServers", "aiaml"), ENTRY)
        return
    new = jsonc.put(text, ("mcpServers", "aiaml"), ENTRY)
    found = jsonc.parse(new)
    assert found and found.value == {**value, "mcpServers": {**servers, "aiaml": ENTRY}}
    assert is_within(words(text), words(new))
    assert list(found.value) == list({**value, "mcpServers": 0})
    assert jsonc.put(new, ("mcpServers", "aiaml"), ENTRY) == new
    back = jsonc.remove(new, ("mcpServers", "aiaml"))
    left = jsonc.parse(back)
    assert left and left.value == {**value, "mcpServers": servers}
    assert is_within(words(text), words(back)) or not servers
    assert back == text or not servers


@given(documents(), st.integers(0, 2))
def test_a_key_may_be_taken_out_from_anywhere(document: tuple[str, Any], index: int) -> None:
    """First, middle, last or only; the others are what they were."""
    text, value = document
    if not isinstance(value, dict) or len(value) <= index:
        return
    name = list(value)[index]
    try:
        left = jsonc.parse(jsonc.remove(text, (name,)))
    except Refused as refused:
        pytest.fail(f"{refused} in {text!r}")
    assert left and left.value == {key: value[key] for key in value if key != name}


@pytest.mark.slow
@given(documents())
def test_a_file_gets_back_its_very_bytes(document: tuple[str, Any]) -> None:
    """Connected and disconnected, a file is what it was, and no backup is left."""
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        machine = Machine("linux", Path(directory), {})
        path = config(machine)
        path.parent.mkdir()
        path.write_bytes(document[0].encode())
        try:
            connected(CURSOR, machine, AIAML_LOG_LEVEL="DEBUG")
        except ConfigError:
            assert path.read_bytes() == document[0].encode()
            return
        assert clients.connections(machine)[2].connected
        disconnected(CURSOR, machine)
        assert path.read_bytes() == document[0].encode()
        assert os.listdir(path.parent) == ["mcp.json"]  # noqa: PTH208


@pytest.mark.slow
@given(documents(), st.sampled_from([{"hooks": [{"type": "command"}]}, "x", 5]))
def test_a_list_gets_more_and_loses_that_again(document: tuple[str, Any], new: Any) -> None:
    """What it had stays where it was, byte for byte."""
    text, value = document
    had = value.get("mcpServers") if isinstance(value, dict) else "no object"
    had = [] if had is None else had  # null is none
    if not isinstance(had, list):
        with pytest.raises(Refused):
            jsonc.extend(text, ("mcpServers",), [new])
        return
    longer = jsonc.extend(text, ("mcpServers",), [new])
    assert jsonc.entry(longer, ("mcpServers",)) == [*had, new]
    assert is_within(words(text), words(longer)) or not had
    back = jsonc.discard(longer, ("mcpServers",), lambda each: each == new)
    assert jsonc.entry(back, ("mcpServers",)) == had
    assert back == text or not had
    rest = [each for each in had if each != 0]
    left = jsonc.discard(text, ("mcpServers",), lambda each: each == 0)
    assert jsonc.entry(left, ("mcpServers",)) in (rest, None)


WRONG_JSON = {
    '{"a": 1 "b"}': (1, 9, "a comma or } should be here"),
    '{\n  "a" 1}': (2, 7, "a : should be here"),
    '\ufeff{"a": tru}': (1, 7, "a value should be here"),
    '{\r\n"a": NaN}': (2, 6, "NaN is no value in JSON"),
    '{"a": "x\n"}': (1, 9, "invalid control character"),
    "{'a': 1}": (1, 2, "a name in double quotes, or }, should be here"),
    '{"a": /* x': (1, 7, "this comment has no end"),
    "{": (1, 2, "a name in double quotes, or }, should be here"),
    "{} {}": (1, 4, "there is more after the end of the value"),
    "[" * 300: (1, 202, "values are nested more than 200 deep"),
    "[]": (1, 1, "the whole should be an object in { }"),
    '{"mcpServers": null}': (1, 16, 'the value of "mcpServers" should be an object in { }'),
    '{"mcpServers": {"aiaml": 3}}': (
        1,
        26,
        'the value of "mcpServers.aiaml" should be an object in { }',
    ),
    '{"mcpServers": {"aiaml": {"env": []}}}': (
        1,
        34,
        'the value of "mcpServers.aiaml.env" should be an object in { }',
    ),
    '{"mcpServers": {},\n "mcpServers": {}}': (
        2,
        2,
        '"mcpServers" is here a second time; keep one of them',
    ),
}


@pytest.mark.parametrize("text", WRONG_JSON)
def test_a_wrong_json_file_is_refused_with_its_place(text: str, home: Machine) -> None:
    """Line and column are said, and the file stays."""
    config(home).write_bytes(text.encode())
    line, column, reason = WRONG_JSON[text]
    with pytest.raises(ConfigError) as raised:
        connected(CURSOR, home, AIAML_LOG_LEVEL="DEBUG")
    assert str(raised.value) == f"{config(home)}: line {line}, column {column}: {reason}"
    assert config(home).read_bytes() == text.encode()
    assert os.listdir(config(home).parent) == ["mcp.json"]  # noqa: PTH208


@pytest.mark.parametrize("env", ["5", "true", "null", "[{}]", '"x"'])
def test_an_env_that_is_none_is_left_alone_or_refused(env: str, home: Machine) -> None:
    """Where nothing of ours goes in there, the entry is mended around it; else it is refused."""
    config(home).write_text(f'{{"mcpServers": {{"aiaml": {{"command": "x", "env": {env}}}}}}}')
    connected(CURSOR, home)
    entry = json.loads(config(home).read_text())["mcpServers"]["aiaml"]
    assert entry["env"] == json.loads(env)
    assert entry["command"] != "x"
    if env != "null":
        with pytest.raises(ConfigError, match="should be an object"):
            connected(CURSOR, home, AIAML_LOG_LEVEL="DEBUG")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ('{"a": 1}'.encode("utf-16"), "it is written in UTF-16; save it as UTF-8 and try again"),
        (b'{\n"a": "\xff"}', "line 2, column 7: it is not text in UTF-8"),
    ],
)
def test_a_file_in_another_encoding_is_refused(data: bytes, reason: str, home: Machine) -> None:
    """It is named, and stays."""
    config(home).write_bytes(data)
    with pytest.raises(ConfigError) as raised:
        connected(CURSOR, home)
    assert reason in str(raised.value)
    assert config(home).read_bytes() == data


@pytest.mark.parametrize("text", ["", " \r\n", "\ufeff", "// nothing yet\n"])
def test_an_empty_file_is_filled(text: str, home: Machine) -> None:
    """Nothing, white space or a comment is as good as an empty object."""
    config(home).write_bytes(text.encode())
    connected(CURSOR, home)
    new = config(home).read_bytes().decode()
    assert new.startswith(text.rstrip())
    assert jsonc.entry(new, ("mcpServers", "aiaml")) == {"command": "/x/aiaml-server", "args": []}
    disconnected(CURSOR, home)
    assert config(home).read_bytes() == text.encode()


def test_what_a_person_added_to_the_entry_stays(home: Machine) -> None:
    """Command, args and our variables are brought up to date; keys besides, and comments, stay."""
    config(home).write_text(
        '{"mcpServers": {"aiaml": {"timeout": 9, /* old */ "command": "uvx",\n'
        '  "args": ["x"], "env": {"MINE": "1", "AIAML_LOG_LEVEL": "INFO"}, "disabled": true}}}'
    )
    connected(CURSOR, home, AIAML_LOG_LEVEL="DEBUG", AIAML_CHECK_INDEX="true")
    assert config(home).read_text() == (
        '{"mcpServers": {"aiaml": {"timeout": 9, /* old */ "command": "/x/aiaml-server",\n'
        '  "args": [], "env": {"MINE": "1", "AIAML_LOG_LEVEL": "DEBUG", "AIAML_CHECK_INDEX": '
        '"true"}, "disabled": true}}}'
    )


# TOML.

STATEMENTS = [
    "a = 1",
    'b = "[mcp_servers.aiaml]" # no',
    "c = '''\n[mcp_servers.aiaml]\n''''",
    'd = """\\"""\n[x]\n"""',
    "e = [ # list\n  '[x]', { f = \"]\" },\n]",
    "f.g = 1979-05-27T07:32:00Z",
    "h = nan",
    "# a comment",
    "",
    "  ",
]
TABLES = ["[t]", "[mcp_servers.other]", "[ mcp_servers . 'aiaml2' ]  # x", "[[u]]", "[t.'a.b']"]


@st.composite
def toml_documents(draw: Callable[..., Any]) -> str:
    """Draw a TOML text."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    lines: list[str] = []
    for table in ["", *draw(st.permutations(TABLES))[: draw(st.integers(0, 4))]]:
        lines += [table, *draw(st.lists(st.sampled_from(STATEMENTS), unique=True))]
    text: str = "\n".join(lines[1:]) + draw(st.sampled_from(["", "\n", "  \n\n", " "]))
    bom: str = draw(st.sampled_from(["", "\ufeff"]))
    return bom + text.replace("\n", newline)


@given(toml_documents())
def test_a_toml_document_keeps_everything_that_is_not_ours(text: str) -> None:
    """The table comes in at the end, and goes without a trace."""
    keys = ("mcp_servers", "aiaml")
    new = toml.put(text, keys, ENTRY)
    assert toml.entry(new, keys) == ENTRY
    assert is_within(text, new)
    assert toml.put(new, keys, ENTRY) == new
    assert toml.remove(text, keys) == text
    back = toml.remove(new, keys)
    assert back == text or not text.strip("\ufeff \r\n")


@given(toml_documents(), st.integers(0, 30))
def test_a_toml_table_may_be_written_anew_and_taken_out_anywhere(text: str, line: int) -> None:
    """Whatever comes before and after it is what it was."""
    table = "[mcp_servers.aiaml]\ncommand = 'x'\n[mcp_servers.aiaml.env]\nA = '1'\n\n"
    tables = [at for at, sign in enumerate(text) if sign == "[" and text[at - 1 : at] == "\n"]
    places = [at for at in tables if text.startswith(tuple(TABLES), at)]
    if not places:
        return
    at = places[line % len(places)]
    back = toml.remove(text[:at] + table + text[at:], ("mcp_servers", "aiaml"))
    assert words(back) == words(text)
    new = toml.put(text[:at] + table + text[at:], ("mcp_servers", "aiaml"), ENTRY)
    assert new.startswith(text[:at])
    assert new.endswith(f"\n{text[at:]}")
    assert text.count("#") == new.count("#")


WRONG_TOML = {
    "a = \n": "line 1, column 5: invalid value",
    'model = "x"\n[mcp_servers\n': "line 2, column 13: ",
    "a = [1,\n": "line 2, column 1: ",
    "a = 1\na = 2\n": "line 2, column 6: ",
    "\ufeffx = 1\nmcp_servers = 3\n": "line 2, column 1: mcp_servers should be a table",
    "[mcp_servers]\nx.a = 1\naiaml = 3\n": "line 3, column 1: mcp_servers.aiaml should be a table",
    "[k]\n[mcp_servers]\naiaml = {command = 'x'}\n": "line 3, column 1: mcp_servers.aiaml can be",
    "mcp_servers = {a = {command = 'x'}}\n": "line 1, column 1: mcp_servers.aiaml can be",
    "[[mcp_servers.aiaml]]\ncommand = 'x'\n": "line 1, column 1: mcp_servers.aiaml should be",
    "[mcp_servers.aiaml]\nenv = 3\n": "line 2, column 1: env should be a table",
}


@pytest.mark.parametrize("text", WRONG_TOML)
def test_a_wrong_toml_file_is_refused_with_its_place(text: str, tmp_path: Path) -> None:
    """Line and column are said, and the file stays; so with forms that cannot be edited."""
    path = tmp_path / "config.toml"
    path.write_bytes(text.encode())
    machine = Machine("linux", tmp_path, {"CODEX_HOME": str(tmp_path)})
    with pytest.raises(ConfigError) as raised:
        connected(BY_NAME["codex"], machine, AIAML_LOG_LEVEL="DEBUG")
    assert str(raised.value).startswith(f"{path}: {WRONG_TOML[text]}")
    assert path.read_bytes() == text.encode()


def test_a_toml_file_without_a_bottom_is_refused(tmp_path: Path) -> None:
    """Values in values in values end in a sentence, and the file stays."""
    path = tmp_path / "config.toml"
    path.write_text(f"x = {'[' * 50_000}")
    machine = Machine("linux", tmp_path, {"CODEX_HOME": str(tmp_path)})
    with pytest.raises(ConfigError, match=r"nested|invalid"):
        connected(BY_NAME["codex"], machine)
    assert path.read_text() == f"x = {'[' * 50_000}"


def test_what_a_client_gets_besides_is_only_a_start(tmp_path: Path) -> None:
    """A person's own value for it stays."""
    machine = Machine("linux", tmp_path, {"CODEX_HOME": str(tmp_path)})
    path = connected(BY_NAME["codex"], machine).path
    assert "startup_timeout_sec = 60\n" in path.read_text()
    path.write_text("[mcp_servers.aiaml]\nstartup_timeout_sec = 5\n")
    connected(BY_NAME["codex"], machine)
    assert path.read_text() == (
        '[mcp_servers.aiaml]\nstartup_timeout_sec = 5\ncommand = "/x/aiaml-server"\nargs = []\n'
    )


@pytest.mark.parametrize(
    "before",
    [
        "[mcp_servers.aiaml]\nargs = [\n 'x', # y\n]\ncommand = 'uvx' # c\nenv = {A = '1'}\n",
        "  [mcp_servers.aiaml]\n  args = 1\n  command = 'x'\n  env.A = '1'\n  env.B = '1'\n",
        "[mcp_servers.aiaml]\nargs = []\ncommand = ''\n\n[mcp_servers.aiaml.env]\nA = '1'\n",
        "[ mcp_servers . 'aiaml' ]\nargs = []\ncommand = ''\n# e\n[mcp_servers.aiaml.env]\nA='1'\n",
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_toml_table_is_written_anew(before: str, newline: str) -> None:
    """However it was written; what comes before and after it, comments too, stays as it is."""
    value = {"command": "/x", "args": [], "env": {"B": "2"}}
    new = '[mcp_servers.aiaml]\nargs = []\ncommand = "/x"\nenv = { A = "1", B = "2" }\n'
    top, end = "\ufeff# top\n[a]\n  b =  '\\' # b\n\n", " \n# end\n\n  [[z]]\n x = 1.50"
    indent = "  " if before.startswith(" ") else ""
    text, expected = ((top + each + end).replace("\n", newline) for each in (before, indent + new))
    assert toml.put(text, ("mcp_servers", "aiaml"), value) == expected
    assert toml.put(expected, ("mcp_servers", "aiaml"), value) == expected


def test_a_toml_table_in_pieces_becomes_one() -> None:
    """What stands between the pieces stays."""
    text = "[m.x.env]\nA = '1'\n\n[m.y]\nb = 1\n\n[m.x]\ncommand = 'x'\n# end\n"
    new = '[m.x]\nenv = { A = "1" }\ncommand = "y"\n\n[m.y]\nb = 1\n# end\n'
    assert toml.put(text, ("m", "x"), {"command": "y"}) == new


@pytest.mark.parametrize(
    "value",
    [
        *("1.50", "-1e-9", "nan", "-inf", "0x1F", "[1, 2.0, '3']", "[]", "[{a = 1}, {b.c = true}]"),
        *("1979-05-27T07:32:00.5-07:00", "1979-05-27", "07:32:00", "{ 'a b' = {} }", '"\\u007e"'),
        "'''\na\n\t\"\\'''",
    ],
)
def test_a_person_s_values_in_a_toml_table_stay_what_they_are(value: str) -> None:
    """Whatever they are, they are written anew with ours."""
    before = f"[m.x]\ncommand = 'x'\nmine = {value}\n"
    new = toml.put(before, ("m", "x"), {"command": "y"})
    assert toml.entry(new, ("m", "x")) == {**toml.entry(before, ("m", "x")), "command": "y"}


def test_what_cannot_be_proven_is_refused() -> None:
    """JSON has a character in its strings that TOML has not."""
    with pytest.raises(Refused, match="edit the file by hand"):
        toml.put('[m.x]\ncommand = "\\u007f"\n', ("m", "x"), {"args": []})


def test_a_key_that_is_quoted_or_spaced_is_found_in_toml() -> None:
    """These are names of the same table."""
    for header in ('[mcp_servers."aiaml"]', "[ mcp_servers . aiaml ]", "['mcp_servers'.'aiaml']"):
        new = toml.put(f"{header}\ncommand = 'x'\n", ("mcp_servers", "aiaml"), {"command": "y"})
        assert new == '[mcp_servers.aiaml]\ncommand = "y"\n'
        assert toml.remove(f"{header}\ncommand = 'x'\n", ("mcp_servers", "aiaml")) == ""


# Files.


def test_a_new_file_comes_with_its_directories_for_its_owner_alone(tmp_path: Path) -> None:
    """Entries of MCP servers hold keys; and what was not there goes again."""
    machine = Machine("linux", tmp_path, {})
    path = connected(BY_NAME["zed"], machine).path
    assert path == tmp_path / ".config/zed/settings.json"
    assert os.name != "posix" or stat.S_IMODE(path.stat().st_mode) == 0o600
    disconnected(BY_NAME["zed"], machine)
    assert not path.exists()


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such modes")
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o755])
def test_a_file_s_mode_stays(mode: int, home: Machine) -> None:
    """The backup has it too: it holds the same keys."""
    config(home).write_text('{"a": 1}')
    config(home).chmod(mode)
    connected(CURSOR, home)
    for path in (config(home), config(home).with_name("mcp.json.aiaml-backup")):
        assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(os.name != "posix", reason="links need a privilege on Windows")
def test_a_linked_file_stays_a_link(home: Machine, tmp_path: Path) -> None:
    """Dotfile managers keep the file elsewhere; it is changed there."""
    real = tmp_path / "dotfiles" / "cursor.json"
    real.parent.mkdir()
    real.write_text('{"a": 1}')
    config(home).symlink_to(real)
    connected(CURSOR, home)
    assert config(home).is_symlink()
    assert "aiaml" in real.read_text()
    assert os.listdir(real.parent) == ["cursor.json"]  # noqa: PTH208
    disconnected(CURSOR, home)
    assert config(home).is_symlink()
    assert real.read_text() == '{"a": 1}'


def test_the_first_state_is_kept_and_there_are_never_more_than_two(home: Machine) -> None:
    """The oldest backup stays; the other holds the state before the last change."""
    path = config(home)
    path.write_text('{"a": 1}')
    connected(CURSOR, home)
    path.write_text('{"a": 1}')
    connected(CURSOR, home)
    assert len(os.listdir(path.parent)) == 2  # noqa: PTH208
    for number in range(4):
        connected(CURSOR, home, AIAML_SYNC_INTERVAL=str(number + 1))
        path.write_text(path.read_text() + "\n")
    assert path.with_name("mcp.json.aiaml-backup").read_text() == '{"a": 1}'
    assert '"AIAML_SYNC_INTERVAL": "3"' in path.with_name("mcp.json.aiaml-backup-last").read_text()
    assert len(os.listdir(path.parent)) == 3  # noqa: PTH208
    disconnected(CURSOR, home)
    assert path.with_name("mcp.json.aiaml-backup").read_text() == '{"a": 1}'


def test_a_file_that_another_program_changed_meanwhile_is_left(home: Machine) -> None:
    """What was worked out from an old state is not written over a new one."""
    config(home).write_text("{}")
    change = clients.connect(CURSOR, home, ["/x"], {})
    config(home).write_text('{"new": 1}')
    with pytest.raises(ConfigError, match="another program has just changed it"):
        clients.save(change)
    assert config(home).read_text() == '{"new": 1}'


def test_what_is_no_file_is_refused(home: Machine) -> None:
    """A directory in its place is named."""
    config(home).mkdir()
    with pytest.raises(ConfigError, match="it is a directory"):
        connected(CURSOR, home)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="for root nothing is read-only")
def test_a_file_that_is_read_only_is_left(home: Machine) -> None:
    """A person, or a system that makes the file, wants it so."""
    config(home).write_text("{}")
    config(home).chmod(0o400)
    with pytest.raises(ConfigError, match="permission denied"):
        connected(CURSOR, home)
    assert config(home).read_text() == "{}"


# How clients stand.


def test_connections_say_what_is_wrong(home: Machine, tmp_path: Path) -> None:
    """A command that is gone, a switched-off entry, a damaged file: each is a sentence."""

    def cursor() -> clients.Connection:
        (found,) = [one for one in clients.connections(home) if one.client is CURSOR]
        return found

    assert cursor() == clients.Connection(CURSOR, config(home), installed=True)
    clients.save(clients.connect(CURSOR, home, [sys.executable, "-m", "aiaml_server"], {}))
    assert cursor().connected and cursor().problems == ()
    assert cursor().command == (sys.executable, "-m", "aiaml_server")
    gone = str(tmp_path / "gone")
    again = "`aiaml install cursor` puts it right"
    for entry, what, remedy in [
        ({"command": gone}, f"starts {gone}, which is not there", again),
        ({"command": "no-such-uvx"}, "starts no-such-uvx, which is not on the PATH", again),
        (
            {"command": sys.executable, "args": ["/c", gone]},
            f"starts {gone}, which is not there",
            again,
        ),
        (
            {"command": sys.executable, "args": ["/c", "call", gone]},
            f"starts {gone}, which is not there",
            again,
        ),
        ({"url": "http://x"}, "has no command", again),
        ([], "has no command", again),
        (
            {"command": sys.executable, "disabled": True},
            "is switched off there",
            "switch it on in the client, or in the file",
        ),
    ]:
        config(home).write_text(json.dumps({"mcpServers": {"aiaml": entry}}))
        found = clients.Problem(f"{config(home)}: the entry aiaml {what}", remedy)
        assert cursor().problems == (found,)
    config(home).write_text("{,}")
    (problem,) = cursor().problems
    assert problem.what.startswith(f"{config(home)}: line 1, column 2: ")
    assert not cursor().connected


def test_a_snippet_is_what_goes_into_the_file() -> None:
    """What is printed for a hand is what would be written."""
    text = clients.snippet(None, ["uvx", "aiaml-server"], {})
    assert json.loads(text) == {
        "mcpServers": {"aiaml": {"command": "uvx", "args": ["aiaml-server"]}}
    }
    assert json.loads(clients.snippet(BY_NAME["vscode"], ["x"], {"AIAML_X": "1"})) == {
        "servers": {"aiaml": {"type": "stdio", "command": "x", "args": [], "env": {"AIAML_X": "1"}}}
    }
    assert clients.snippet(BY_NAME["codex"], ["x"], {}).startswith("[mcp_servers.aiaml]\n")


@pytest.mark.parametrize(
    "client", [each for each in CLIENTS if each.project], ids=lambda client: client.name
)
def test_a_project_has_an_entry_of_its_own(client: Client, tmp_path: Path) -> None:
    """It goes into the file of the project, in the client's form, and leaves the person's alone."""
    home, project = tmp_path / "home", tmp_path / "project"
    machine, there = Machine("linux", home, {}), client.within(project)
    project.mkdir()
    change = connected(there, machine)
    assert change.path == project / client.project
    text = change.path.read_text(encoding="utf-8")
    entry = {"json": jsonc, "toml": toml}[client.form].entry(text, [client.keys[0], "aiaml"])
    one = {"command": ["/x/aiaml-server"]}
    starting = one if client.one_list else {"command": "/x/aiaml-server", "args": []}
    assert entry == {**client.extras, **starting}
    disconnected(there, machine)
    assert not change.path.exists()
    assert not home.exists()


def test_the_settings_of_a_project_in_zed_stay_as_they_are(tmp_path: Path) -> None:
    """They hold much else, with comments and last commas; only the entry comes and goes."""
    text = (
        '\ufeff// Of the team.\r\n{\r\n\t"tab_size": 8, // kernel\r\n\t"context_servers": {\r\n'
        '\t\t"other": {"command": "x", "args": [], "env": null,},\r\n\t},\r\n}\r\n'
    )
    file = tmp_path / ".zed" / "settings.json"
    file.parent.mkdir()
    file.write_bytes(text.encode())
    machine, there = Machine("linux", tmp_path / "home", {}), BY_NAME["zed"].within(tmp_path)
    connected(there, machine)
    after = file.read_bytes().decode()
    assert jsonc.entry(after, ["context_servers", "aiaml"])["command"] == "/x/aiaml-server"
    assert jsonc.entry(after, ["context_servers", "other"]) and "// kernel\r\n" in after
    disconnected(there, machine)
    assert file.read_bytes() == text.encode()


def test_help_and_readme_name_every_client() -> None:
    """What can be connected is said where a person looks first."""
    from aiaml_server.cli.install import install

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for client in CLIENTS:
        assert f" {client.name}" in (install.help or "")
        assert client.title.split(" (")[0].removesuffix(" Insiders") in readme


def test_places_in_a_text_are_counted_as_editors_do() -> None:
    """Lines end with LF, CRLF or CR; a BOM takes no column."""
    assert position("\ufeffab", 2) == (1, 2)
    assert position("a\r\nb\rc\nd", 7) == (4, 1)


# What starts this installation.


def program(directory: Path, name: str) -> str:
    """Put an executable file into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / (name + (".exe" if os.name == "nt" else ""))
    path.write_text("")
    path.chmod(0o755)
    return str(path)


def test_a_checkout_is_started_by_its_script() -> None:
    """`run_server.sh` says what it is; a batch file goes through the shell that reads it."""
    assert launch.command_of({"AIAML_LAUNCHER": "/c/run_server.sh"}, "x", "/p", "/py") == [
        "/c/run_server.sh"
    ]
    windows = {"AIAML_LAUNCHER": "C:\\my c\\run_server.cmd", "COMSPEC": "C:\\W\\cmd.exe"}
    assert launch.command_of(windows, "x", "/p", "/py") == [
        "C:\\W\\cmd.exe",
        "/c",
        "call",
        windows["AIAML_LAUNCHER"],
    ]


@pytest.mark.parametrize("cache", ["archive-v0/x", "environments-v2/x"])
def test_what_uv_keeps_for_a_while_is_started_by_uvx(cache: str, tmp_path: Path) -> None:
    """The environment in uv's cache goes; uvx, by its absolute path, makes it anew."""
    uv, uvx = program(tmp_path / "a", "uv"), program(tmp_path / "a", "uvx")
    prefix = str(tmp_path / "cache" / "uv" / cache)
    argv0 = program(Path(prefix) / "bin", "aiaml-server")
    assert launch.command_of({"UV": uv, "PATH": ""}, argv0, prefix, "/py") == [uvx, "aiaml-server"]
    other = program(tmp_path / "b", "uvx")
    path = str(Path(other).parent)
    assert launch.command_of({"UV": uv, "PATH": path}, argv0, prefix, "/py") == [
        uvx,
        "aiaml-server",
    ]
    assert launch.command_of({"PATH": path}, argv0, prefix, "/py") == [other, "aiaml-server"]
    assert launch.command_of({"UV": uv, "PATH": ""}, argv0, prefix, "/py", "git+https://x/y@z") == [
        *[uvx, "--from", "aiaml-server @ git+https://x/y@z", "aiaml-server"]
    ]
    Path(uvx).unlink()
    assert launch.command_of({"UV": uv, "PATH": ""}, argv0, prefix, "/py") == [
        *[uv, "tool", "run", "aiaml-server"]
    ]


@pytest.mark.skipif(os.name != "posix", reason="links need a privilege on Windows")
def test_uvx_is_named_as_the_path_has_it(tmp_path: Path) -> None:
    """A package manager's directory has a version in its name; the link to it has not."""
    uv, uvx = program(tmp_path / "Cellar/0.9.1", "uv"), program(tmp_path / "Cellar/0.9.1", "uvx")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "uvx").symlink_to(uvx)
    environ = {"UV": uv, "PATH": str(tmp_path / "bin")}
    found = launch.command_of(environ, "x", str(tmp_path / "archive-v0" / "x"), "/py")
    assert found == [str(tmp_path / "bin" / "uvx"), "aiaml-server"]


def test_an_installed_command_is_started_by_its_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it was called: absolute, relative, by name, as `aiaml`, without its .exe."""
    server = program(tmp_path / "bin", "aiaml-server")
    aiaml = program(tmp_path / "bin", "aiaml")
    monkeypatch.chdir(tmp_path)
    path = {"PATH": str(tmp_path / "bin")}
    relative = os.path.join("bin", "aiaml")  # noqa: PTH118
    for argv0 in (server, aiaml, relative, "aiaml", "aiaml-server", server.removesuffix(".exe")):
        assert launch.command_of(path, argv0, "/p", "/py") == [server], argv0


def test_a_windows_command_is_found_with_its_exe(tmp_path: Path) -> None:
    """Launchers of pip and uv say the name with or without it."""
    (tmp_path / "aiaml-server.exe").write_text("")
    for name in ("aiaml", "aiaml.exe", "aiaml-server", "aiaml-server.exe"):
        found = launch.command_of({}, str(tmp_path / name), "/p", "/py")
        assert found == [str(tmp_path / "aiaml-server.exe")]


def test_what_pipx_runs_once_is_run_by_pipx(tmp_path: Path) -> None:
    """Its environment goes after two weeks; that of `pipx install` stays."""
    pipx = program(tmp_path / "bin", "pipx")
    path = {"PATH": str(tmp_path / "bin")}
    prefix = str(tmp_path / ".cache" / "pipx" / "1a2b")
    argv0 = program(Path(prefix) / "bin", "aiaml-server")
    assert launch.command_of(path, argv0, prefix, "/py") == [pipx, "run", "aiaml-server"]
    assert launch.command_of(path, argv0, prefix, "/py", "file:///x.whl") == [
        *[pipx, "run", "--spec", "file:///x.whl", "aiaml-server"]
    ]


def test_without_a_command_python_is_started() -> None:
    """`python -m aiaml_server` is always there."""
    for argv0 in ("-c", "/site-packages/aiaml_server/__main__.py", "/nowhere/aiaml-server"):
        assert launch.command_of({"PATH": ""}, argv0, "/p", "/py") == ["/py", "-m", "aiaml_server"]


def test_started_as_a_module_it_is_the_command_beside_python(tmp_path: Path) -> None:
    """`-m` would import what lies in the directory where a client starts it."""
    python = tmp_path / "python"
    command = tmp_path / ("aiaml-server.exe" if sys.platform == "win32" else "aiaml-server")
    command.touch()
    module = "/site-packages/aiaml_server/__main__.py"
    assert launch.command_of({"PATH": ""}, module, "/p", str(python)) == [str(command)]


def test_this_installation_s_command_is_absolute() -> None:
    """A client has another PATH and another directory."""
    assert Path(launch.command()[0]).is_absolute()


# YAML, which one client has.

GOOSE = ("extensions", "aiaml")
ADDED = {"cmd": "/x", "args": ["a b", "-q"], "on": True, "envs": {"YES": "no", "empty": ""}}


def test_yaml_put_gives_what_a_person_can_copy() -> None:
    """Read again, it says the same; also where a word alone would mean something else."""
    text = yaml.put("", GOOSE, ADDED)
    assert text.startswith("extensions:\n  aiaml:\n    cmd: /x\n")
    assert yaml.entry(text, GOOSE) == ADDED


@pytest.mark.parametrize("edit", [lambda text: yaml.put(text, GOOSE, ADDED),
                                  lambda text: yaml.remove(text, GOOSE)])  # fmt: skip
def test_yaml_is_not_edited(edit: Callable[[str], str]) -> None:
    """A sentence says so."""
    with pytest.raises(Refused, match="edited by hand"):
        edit("extensions:\n  aiaml:\n    cmd: /x\n")


@pytest.mark.parametrize("text", ["- a\n", "a: [\n", "extensions: [x]\n", "a: " + "[" * 5000])
def test_yaml_that_cannot_be_read_is_refused(text: str) -> None:
    """A sentence says why."""
    with pytest.raises(Refused) as refused:
        yaml.entry(text, GOOSE)
    assert refused.value.reason


def test_goose_is_connected_by_hand(tmp_path: Path) -> None:
    """Its file is not touched; what goes into it is told, and what stands in it is known."""
    path = tmp_path / ".config" / "goose" / "config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("extensions: {} # mine\n", encoding="utf-8")
    machine, goose = Machine("linux", tmp_path, {}), BY_NAME["goose"]
    with pytest.raises(ConfigError, match="edited by hand"):
        clients.connect(goose, machine, ["/x/aiaml-server"], {})
    assert clients.disconnect(goose, machine) == []
    assert path.read_text(encoding="utf-8") == "extensions: {} # mine\n"
    by_hand = clients.snippet(goose, ["/x/aiaml-server"], {})
    path.write_text(f"# mine\n{by_hand}", encoding="utf-8")
    (found,) = (one for one in clients.connections(machine) if one.client is goose)
    assert (found.connected, found.command) == (True, ("/x/aiaml-server",))
    with pytest.raises(ConfigError, match="of it"):
        clients.disconnect(goose, machine)


# --- adding, and taking nothing away --------------------------------------------------------------


def typed(home: Path, *words: str, code: int = 0) -> str:
    """Type a line as somebody with this home and this current directory."""
    environ = {**inherited(), "HOME": str(home), "USERPROFILE": str(home)}
    environ |= {"XDG_CONFIG_HOME": str(home / ".config"), "COLUMNS": "200"}
    line = [PYTHON, "-m", "aiaml_server", *words]
    done = completed(line, env=environ, cwd=home)
    assert done.returncode == code, done
    return done.stdout or done.stderr


def test_install_adds_a_toolset_to_the_default(tmp_path: Path) -> None:
    """`remember` is not taken away by installing another; `--only` does that."""
    path = tmp_path / ".cursor" / "mcp.json"
    typed(tmp_path, "install", "cursor")
    said = typed(tmp_path, "install", "cursor", "--toolset", "citations")
    entry = json.loads(path.read_text("utf-8"))["mcpServers"]["aiaml"]
    assert entry["env"] == {"AIAML_TOOLSETS": "aiaml,citations"}
    assert "it serves aiaml and citations" in said and "--only" in said
    typed(tmp_path, "install", "cursor", "--toolset", "citations", "--only")
    entry = json.loads(path.read_text("utf-8"))["mcpServers"]["aiaml"]
    assert entry["env"] == {"AIAML_TOOLSETS": "citations"}


@pytest.mark.parametrize("client", ["cursor", "codex"])
@pytest.mark.parametrize("toolset_first", [True, False])
def test_uninstall_after_several_installs_leaves_no_file_that_was_not_there(
    toolset_first: bool, client: str, tmp_path: Path
) -> None:
    """Whatever was installed first; a file with something else in it stays."""
    path = tmp_path / {"cursor": ".cursor/mcp.json", "codex": ".codex/config.toml"}[client]
    path.parent.mkdir()
    more = [["--toolset", "citations"], ["--dir", str(tmp_path / "other")]]
    for words in [[], *(more if toolset_first else reversed(more))]:
        typed(tmp_path, "install", client, *words)
    typed(tmp_path, "uninstall", client)
    assert not path.exists()
    assert not (toolset_first and list(path.parent.iterdir()))
    typed(tmp_path, "install", client)
    typed(tmp_path, "install", client, *more[0])
    theirs = {"cursor": "{", "codex": "[tui]\nx = 1\n"}[client]
    text = path.read_text(encoding="utf-8")
    other = '{"theirs": 1,' + text[1:] if client == "cursor" else theirs + text
    path.write_text(other, encoding="utf-8")
    typed(tmp_path, "uninstall", client)
    assert ("theirs" if client == "cursor" else "[tui]") in path.read_text(encoding="utf-8")


def test_install_says_what_it_replaces(tmp_path: Path) -> None:
    """What stood in the entry's environment is told beside what stands there now."""
    path = tmp_path / ".cursor" / "mcp.json"
    path.parent.mkdir()
    env = {"AIAML_MEMORY_DIR": str(tmp_path / "m"), "AIAML_TOOLSETS": "citations"}
    entry = {"command": "x", "args": [], "env": env}
    path.write_text(json.dumps({"mcpServers": {"aiaml": entry}}), encoding="utf-8")
    said = typed(tmp_path, "install", "cursor", "--toolset", "sessions", "--only")
    assert "AIAML_TOOLSETS=sessions, before: citations" in said
    assert "AIAML_MEMORY_DIR as before" in said


def test_install_in_a_project_writes_nothing_of_this_computer(tmp_path: Path) -> None:
    """An entry of its own for each toolset, by a name that every teammate's computer has."""
    path = tmp_path / ".mcp.json"
    words = ("claude-code", "--project", "--toolset", "citations", "--toolset", "sessions")
    typed(tmp_path, "install", *words)
    text = path.read_text("utf-8")
    servers = json.loads(text)["mcpServers"]
    assert list(servers) == ["aiaml-sessions", "aiaml-citations"]
    for name, entry in servers.items():
        assert entry["command"] in ("uvx", "aiaml-server")
        assert entry["env"]["AIAML_TOOLSETS"] == name.removeprefix("aiaml-")
    assert str(tmp_path) not in text and sys.prefix not in text
    typed(tmp_path, "uninstall", "claude-code", "--project")
    assert not path.exists()


def test_install_has_codex_wait_where_it_is_asked_to(tmp_path: Path) -> None:
    """Not otherwise: a server that does not start would keep Codex from starting."""
    path = tmp_path / ".codex" / "config.toml"
    typed(tmp_path, "install", "codex")
    assert "required" not in path.read_text("utf-8")
    typed(tmp_path, "install", "codex", "--required")
    assert "required = true" in path.read_text("utf-8")
    typed(tmp_path, "install", "cursor", "--required", code=2)


def test_install_says_what_of_one_s_own_does_not_count_in_a_project(tmp_path: Path) -> None:
    """Gemini CLI and OpenCode take the project's entry where both have one name."""
    typed(tmp_path, "install", "gemini", "--dir", str(tmp_path / "work"))
    (tmp_path / "project").mkdir()
    said = typed(tmp_path, "install", "gemini", "--project", str(tmp_path / "project"))
    assert "in place of your own entry, with AIAML_MEMORY_DIR of it unused" in said


def test_install_puts_no_entry_over_an_extension(tmp_path: Path) -> None:
    """Gemini CLI would leave the extension's server out, with all that was set for it."""
    path = tmp_path / ".gemini" / "extensions" / "aiaml" / "gemini-extension.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    said = typed(tmp_path, "install", "gemini", "--toolset", "citations", code=3)
    assert "has it by the extension aiaml" in said and "gemini extensions config aiaml" in said
    assert not (tmp_path / ".gemini" / "settings.json").exists()


@pytest.mark.parametrize("client", ["claude-code", "gemini", "vscode"])
def test_install_names_what_a_client_has_twice(client: str, tmp_path: Path) -> None:
    """By a plugin, an extension or a project's file; so do the list and the doctor."""
    if client == "claude-code":
        path = tmp_path / ".claude" / "settings.json"
        path.parent.mkdir()
        path.write_text('{"enabledPlugins": {"aiaml@aiaml": true, "other@x": true}}')
        what = "the plugin aiaml@aiaml"
    elif client == "gemini":
        typed(tmp_path, "install", client)  # before there was the extension
        path = tmp_path / ".gemini" / "extensions" / "aiaml" / "gemini-extension.json"
        path.parent.mkdir(parents=True)
        path.write_text("{}")
        what = "the extension aiaml"
    else:
        (tmp_path / ".vscode").mkdir()
        typed(tmp_path, "install", client, "--project")
        what = "the project's .vscode/mcp.json"
    assert what in typed(tmp_path, "install", client)
    assert what in typed(tmp_path, "install", "--list")
    assert what in typed(tmp_path, "doctor", "clients", code=1)
