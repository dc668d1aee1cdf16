"""Random documents keep everything that is not ours. The seeds are fixed."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest

from aiaml_server.clients import jsonc, toml
from aiaml_server.clients.text import RefusedEdit

ENTRY = {"command": "/x/aiaml-server", "args": ["é"], "env": {"AIAML_MEMORY_DIR": "C:\\m"}}
SCALARS = [0, -1.5e3, True, None, "", 'a"b', "//", "/*", "\u00fc\n\\", ",]"]
BLANKS = [
    "",
    "",
    " ",
    "\t",
    "\n",
    "\n  ",
    "/* { */",
    "/*//*/",
    "/* a,\n} */",
    '// "x": {\n',
    "//\n",
]


def blank(rng: random.Random) -> str:
    """Return white space and comments."""
    return "".join(rng.choices(BLANKS, k=rng.randint(0, 2)))


def json_document(rng: random.Random, depth: int = 3) -> tuple[str, Any]:
    """Return a text of JSON with comments and trailing commas, and its value."""
    kind = rng.choice("{{[v") if depth else "v"
    if depth == 3:
        kind = "{"
    if kind == "v":
        value = rng.choice(SCALARS)
        return json.dumps(value, ensure_ascii=rng.random() < 0.5), value
    names = rng.sample(["mcpServers", "other", "c/*", "é"], rng.randint(0, 3))
    pieces: list[str] = []
    values: list[Any] = []
    for name in names:
        text, value = json_document(rng, depth - 1)
        label = f"{json.dumps(name)}{blank(rng)}:" if kind == "{" else ""
        pieces.append(blank(rng) + label + blank(rng) + text + blank(rng))
        values.append(value)
    body = ",".join(pieces) + ("," if pieces and rng.random() < 0.3 else "") + blank(rng)
    if kind == "{":
        return "{" + body + "}", dict(zip(names, values, strict=True))
    return "[" + body + "]", values


def is_within(part: str, whole: str) -> bool:
    """Return whether all characters of a text, but for blanks, occur in another in this order."""
    rest = iter(whole)
    return all(character in rest for character in "".join(part.split()))


def test_150_json_documents_keep_what_is_not_ours() -> None:
    """An entry goes in, is changed and comes out. What cannot be edited safely is refused."""
    rng = random.Random(46)
    counts: Counter[str] = Counter()
    for _ in range(150):
        text, value = json_document(rng)
        text = rng.choice(["", "\ufeff"]) + text.replace("\n", rng.choice(["\n", "\r\n"]))
        assert jsonc.load(text) == value
        servers = value.get("mcpServers", {})
        if not isinstance(servers, dict):
            with pytest.raises((RefusedEdit, LookupError, TypeError, ValueError)):
                jsonc.put(text, ("mcpServers", "aiaml"), ENTRY)
            counts["refused"] += 1
            continue
        new = jsonc.put(text, ("mcpServers", "aiaml"), ENTRY)
        assert jsonc.load(new) == {**value, "mcpServers": {**servers, "aiaml": ENTRY}}
        assert is_within(text, new)
        changed = jsonc.put(new, ("mcpServers", "aiaml"), {"command": "/y"})
        assert is_within(text, changed)
        try:
            left = jsonc.remove(changed, ("mcpServers", "aiaml"))
        except RefusedEdit:
            counts["not removed"] += 1
            continue
        assert jsonc.load(left) == {**value, "mcpServers": servers}
        assert is_within(text.replace(",", ""), left)
        counts["edited"] += 1
    assert counts["edited"] > 100 and counts["not removed"] < 5, counts


def test_a_member_is_removed_from_anywhere() -> None:
    """First, middle, last or only; the others and their comments stay."""
    rng = random.Random(8)
    for _ in range(60):
        text, value = json_document(rng)
        for name in value:
            try:
                left = jsonc.remove(text, (name,))
            except RefusedEdit:
                continue
            assert jsonc.load(left) == {key: each for key, each in value.items() if key != name}


def test_items_of_a_list_come_and_go() -> None:
    """Hooks of clients stand in lists, which are made if they are missing."""
    keys = ("hooks", "Stop")
    for text in ("{}", '{"hooks": {"Stop": [ {"a": 1}, // mine\n ]}}', '{"hooks": {"Stop": []}}'):
        had = ((jsonc.load(text) or {}).get("hooks") or {}).get("Stop", [])
        longer = jsonc.put(text, (*keys, len(had)), {"b": 2})
        assert jsonc.load(longer)["hooks"]["Stop"] == [*had, {"b": 2}]
        assert is_within(text, longer)
        assert jsonc.load(jsonc.remove(longer, (*keys, len(had))))["hooks"]["Stop"] == had


STATEMENTS = [
    "a = 1",
    'b = "[mcp_servers.aiaml]" # no',
    "c = '''\n[mcp_servers.x]\n''''",
    "e = [ # list\n  '[x]', { f = \"]\" },\n]",
    "f.g = 1979-05-27T07:32:00Z",
    "h = 1.50",
    "# a comment",
    "",
    "  ",
]
TABLES = ["[t]", "[mcp_servers.other]", "[ mcp_servers . 'aiaml2' ]  # x", "[[u]]", "[t.'a.b']"]


def toml_document(rng: random.Random) -> str:
    """Return a TOML text."""
    lines: list[str] = []
    for table in ["", *rng.sample(TABLES, rng.randint(0, 4))]:
        lines += [table, *rng.sample(STATEMENTS, rng.randint(0, 5))]
    text = "\n".join(lines[1:]) + rng.choice(["", "\n", "  \n\n", " "])
    return rng.choice(["", "\ufeff"]) + text.replace("\n", rng.choice(["\n", "\r\n"]))


def test_120_toml_documents_keep_what_is_not_ours() -> None:
    """A table goes in, is changed and comes out; line ends and comments stay."""
    rng = random.Random(46)
    keys = ("mcp_servers", "aiaml")
    for _ in range(120):
        text = toml_document(rng)
        value = toml.load(text)
        servers = value.get("mcp_servers", {})
        new = toml.put(text, keys, ENTRY)
        assert toml.load(new) == {**value, "mcp_servers": {**servers, "aiaml": ENTRY}}
        assert new.startswith(text) and ("\r\n" in text) == ("\r\n" in new)
        assert toml.put(new, keys, ENTRY).split() == new.split()
        changed = toml.put(new, keys, {"command": "/y"})
        assert toml.load(changed)["mcp_servers"]["aiaml"] == {"command": "/y"}
        left = toml.remove(changed, keys)
        assert toml.load(left) == value
        assert left.split() == text.split()


@pytest.mark.parametrize(
    "table",
    [
        "[mcp_servers.aiaml]\nargs = [\n 'x', # y\n]\ncommand = 'uvx' # c\nenv = {A = '1'}\n",
        "[mcp_servers.\"aiaml\"]\nargs = []\n\n[mcp_servers.aiaml.env]\nA = '1'\n",
        "  [ mcp_servers . 'aiaml' ]\n  command = ''\n# ours\n[mcp_servers.aiaml.env]\nA='1'\n",
    ],
)
def test_a_toml_table_goes_however_it_was_written(table: str) -> None:
    """What comes before and behind it stays, with the comments of the next table."""
    for newline in ("\n", "\r\n"):
        top = "\ufeff# top\n[a]\n  b =  '\\' # b\n\n".replace("\n", newline)
        end = "\n# end\n\n  [[z]]\n x = 1.50".replace("\n", newline)
        text = top + table.replace("\n", newline) + end
        assert toml.remove(text, ("mcp_servers", "aiaml")).split() == (top + end).split()


@pytest.mark.parametrize(
    "text",
    [
        "a = \n",
        'model = "x"\n[mcp_servers\n',
        "a = 1\na = 2\n",
        "mcp_servers = {a = {command = 'x'}}\n",
        "[mcp_servers]\naiaml = {command = 'x'}\n",
        "[[mcp_servers]]\ncommand = 'x'\n",
    ],
)
def test_a_toml_text_that_cannot_be_edited_is_refused(text: str) -> None:
    """The text to paste is printed instead."""
    with pytest.raises((RefusedEdit, TypeError)):
        toml.put(text, ("mcp_servers", "aiaml"), ENTRY)
