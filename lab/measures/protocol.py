"""What the Model Context Protocol asks of a server over stdio, the part that decides."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from ..adapter import Adapter
from ..client import Client, GoneError

ABOUT = "fourteen things that the protocol asks of every server over stdio"
ZERO = ("failed",)


def measure(server: Adapter, place: Path, random: Random, number: int) -> dict[str, Any]:
    """Check each."""
    with server.start(place) as client:
        checks = _checks(client)
        checks["ends when its input does"] = client.close() is not None
        client.drain()
        checks["nothing but messages on its output"] = not client.noise
        checks["every message says jsonrpc 2.0"] = all(
            m.get("jsonrpc") == "2.0" for m in client.told
        )
    failed = [name for name, passed in checks.items() if not passed]
    return {"checks": len(checks), "failed": len(failed), "which": failed}


def _checks(client: Client) -> dict[str, bool]:
    hello = client.greeting.get("result", {})
    found = {
        "initialize has a version": isinstance(hello.get("protocolVersion"), str),
        "initialize has capabilities": isinstance(hello.get("capabilities"), dict),
        "initialize has the server's name": "name" in hello.get("serverInfo", {}),
        "tools are announced": "tools" in hello.get("capabilities", {}),
    }
    tools = client.tools()
    found["tools have names"] = bool(tools) and all(each.get("name") for each in tools)
    schemas = [each.get("inputSchema", {}) for each in tools]
    found["tools have schemas of objects"] = all(each.get("type") == "object" for each in schemas)
    found["ping is answered"] = _answer(client, "ping").get("result") == {}
    unknown = _answer(client, "no/such/method")
    found["an unknown method is an error"] = "error" in unknown
    found["an unknown method has the code -32601"] = unknown.get("error", {}).get("code") == -32601
    call = _answer(client, "tools/call", {"name": "no_such_tool", "arguments": {}})
    refused = "error" in call or bool(call.get("result", {}).get("isError"))
    found["an unknown tool is an error"] = refused
    client.send({"jsonrpc": "2.0", "id": "a text", "method": "ping"})
    try:
        found["an id may be a text"] = client.answer("a text", 20).get("result") == {}
    except GoneError:
        found["an id may be a text"] = False
    return found


def _answer(client: Client, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    try:
        return client.answer(client.request(method, params), 20)
    except GoneError:
        return {}
