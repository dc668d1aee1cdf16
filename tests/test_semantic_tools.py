"""The tools of `semantic` as agents use them: over MCP, in processes of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from client import SERVER, Client
from toolset_contract import Call, Contract


def person(place: Path, **embedding: object) -> dict[str, str]:
    """Return the variables of a person whose home is in a directory, at work on a project."""
    for name in ("home/.memory", "shop"):
        (place / name).mkdir(parents=True, exist_ok=True)
    settings = {"embedding": {"download": False, **embedding}}
    (place / "home/.memory/config.json").write_text(json.dumps(settings), encoding="utf-8")
    return {
        **dict.fromkeys(("HOME", "USERPROFILE"), str(place / "home")),
        "AIAML_SEMANTIC_PROJECT": str(place / "shop"),
    }


def serving(place: Path, **embedding: object) -> Client:
    """Start a server for that person."""
    command = (*SERVER, "--toolset", "semantic")
    return Client(place, command=command, environ=person(place, **embedding))


class TestSemantic(Contract):
    """What every toolset promises."""

    name = "semantic"

    def environ(self, place: Path) -> dict[str, str]:
        """Keep memories in the test's directory, and fetch no model."""
        return person(place)

    def story(self, call: Call) -> None:
        """Store, search, list, update, find duplicates, delete."""
        stored = call("store_memory", content="Prices are in cents.", tags=["billing"])
        name = stored["memory_id"]
        assert stored["success"] and name.startswith("project:")
        other = call("store_memory", content="I like green tea.", scope="global")
        found = call("search_memory", query="how are prices kept?", filters={"tags": ["billing"]})
        assert name in [each["id"] for each in found["memories"]]
        assert not found["meaning"] and "words only" in found["warnings"][0]
        listed = call("list_memories", filters={"scope": "project"}, sort_by="priority", limit=3)
        assert name in [each["id"] for each in listed["memories"]]
        changed = call("update_memory", memory_id=name, priority="HIGH", used=True)
        assert changed["memory"]["priority"] == "HIGH"
        assert call("deduplicate_memories")["groups"] == []
        call("delete_memory", memory_id=other["memory_id"])
        shown = call("import_markdown_memories", confirm_import=False)
        assert shown["success"] and not shown["imported"]

    def judge(self, result: Any, shape: Any) -> None:
        """Besides, a failure has a kind and a suggestion."""
        super().judge(result, shape)
        if result.is_error:
            value = result.structured_content
            assert not value["success"] and value["error"][0].isupper() and value["suggestion"]
