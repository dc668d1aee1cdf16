"""Arguments and lines that nobody means well: an answer to each, and no harm."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from ..adapter import Adapter
from ..client import Client, GoneError
from .kill import again
from .texts import Kept, ask

ABOUT = (
    "wrong types, huge and empty values, paths that lead out, lines that are no messages; files "
    "outside must not be read or made"
)
ZERO = ("died", "no answer", "led out", "lost", "not started again")
CALLS = 40
SLOW = 10.0
SECRET = "what lies outside is nobody's business"  # noqa: S105 (a file that must stay unread)
DESTROYING = ("delete", "remove", "clear", "clean", "forget", "update", "edit", "move", "merge")
LINES = (
    b"",
    b"{",
    b"null",
    b"[]",
    b"\xff\xfe\x00",
    b'"text"',
    b'{"jsonrpc": "2.0", "id": 1e999, "method": "ping"}',
    b'{"jsonrpc": "2.0", "method": "tools/call", "params": 7}',
    b"[" * 20_000,
    b'{"jsonrpc": "2.0", "method": "' + b"x" * 1_000_000 + b'"}',
    b'{"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": null}',
    b'{"jsonrpc": "2.0", "id": "b", "method": "tools/call", "params": {"name": []}}',
    b'{"jsonrpc": "2.0", "id": "c", "method": "no/such/method"}',
)


def measure(server: Adapter, place: Path, random: Random, number: int) -> dict[str, Any]:
    """Send some of each to one server, which must go on as if nothing had been."""
    figures: Counter[str] = Counter()
    kept = Kept()
    root = place / "deep"
    inner = root / "a" / "b" / "c"
    inner.mkdir(parents=True)
    secret = root / "secret.txt"
    secret.write_text(SECRET)
    client = server.start(inner)
    ask(server, client, kept, random, 60)
    tools = [each for each in client.tools() if not any(w in each["name"] for w in DESTROYING)]
    sendings: list[tuple[str, Any]] = [("line", line) for line in LINES]
    sendings += [("call", _call(random, tools, secret)) for _ in range(CALLS)]
    random.shuffle(sendings)
    for kind, what in sendings:
        try:
            answer = _send(client, kind, what)
            figures["led out"] += SECRET in answer
        except GoneError:
            figures["died" if client.process.poll() is not None else "no answer"] += 1
            client.process.kill()
            client.__exit__(None, None, None)
            client = server.start(inner)
        figures["sent"] += 1
    ask(server, client, kept, random, 60)
    client.__exit__(None, None, None)
    stray = [path for path in root.rglob("*escaped*") if inner not in path.parents]
    figures["led out"] += len(stray)
    figures["acknowledged"] = kept.count()
    figures += again(server, inner, kept)
    return dict(figures)


def _send(client: Client, kind: str, what: Any) -> str:
    """Send one; return what came back, after a ping that shows that the server goes on."""
    answer = ""
    if kind == "line":
        client.send_line(what)
    else:
        answer = json.dumps(client.answer(client.start(*what), SLOW))
    client.answer(client.request("ping"), SLOW)
    return answer


def _call(random: Random, tools: list[dict[str, Any]], secret: Path) -> tuple[str, dict[str, Any]]:
    """Return a call with a few arguments that are not what they should be."""
    tool = random.choice(tools)
    properties = tool["inputSchema"].get("properties") or {}
    wrong = {name: _usual(each) for name, each in properties.items()}
    for name in random.sample(sorted(properties), k=min(len(properties), random.randint(1, 2))):
        wrong[name] = random.choice(_values(secret))
    return tool["name"], wrong


def _usual(schema: dict[str, Any]) -> Any:
    """Return a value that the schema allows, as a rule."""
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "string")
    return {"integer": 1, "number": 1, "boolean": False, "array": [], "object": {}}.get(
        kind, "word"
    )


def _values(secret: Path) -> list[Any]:
    """Return values that are wrong in some way."""
    out = "../" * 4
    return [
        None,
        7,
        -(10**30),
        1e308,
        True,
        "",
        [],
        {},
        [[[]]],
        {"a": {"b": [None]}},
        "\0",
        "\x1b[2J\u202e\u200b",
        "\ud800",
        "a" * 2_000_000,
        ["x"] * 5_000,
        out + "secret.txt",
        out + "secret",
        out + "escaped",
        str(secret),
        str(secret.with_name("escaped")),
        f"file://{secret}",
        "%2e%2e%2fsecret.txt",
        "'; DROP TABLE memories; --",
        '" OR 1=1',
        "(" * 5_000,
        "*",
        "-" * 500,
    ]
