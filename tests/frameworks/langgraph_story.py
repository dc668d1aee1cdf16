"""Two runs of a graph of LangGraph whose nodes keep things in a compartment."""

from __future__ import annotations

import json
import sys
from typing import Any

from connect import graph_with

from aiaml_server.compartments import Compartments, LimitExceeded
from aiaml_server.compartments.langgraph import Store

path = sys.argv[1]
seen: dict[str, Any] = {}
with Compartments(path) as memory:
    graph_with(memory).invoke({"said": "Invoices are in euros.", "known": []})
with Compartments(path) as memory:
    seen["asked"] = graph_with(memory).invoke({"said": "", "known": []})["known"]
    store = Store(memory)
    for key, weight in (("a", 1), ("b", 2), ("c", 3)):
        store.put(("plans", "old"), key, {"weight": weight})
    store.put(("plans", "old"), "d", {"text": "of no weight"})
    store.put(("customers",), "1", {"text": "Invoices are in euros.", "weight": 3})
    seen["found"] = [each.value for each in store.search(("customers",), query="euro?")]
    found = store.search(("plans",), filter={"weight": {"$gte": 2}})
    seen["filtered"] = sorted(each.key for each in found)
    found = store.search(("plans",), filter={"weight": 2}, limit=1)
    seen["page"] = [each.key for each in found]
    seen["namespaces"] = store.list_namespaces(max_depth=2)
    store.delete(("plans", "old"), "a")
    seen["gone"] = store.get(("plans", "old"), "a")
    store.put(("plans", "old"), "b", {"weight": 5}, ttl=90)
    item = store.get(("plans", "old"), "b")
    assert item and item.value == {"weight": 5} and item.namespace == ("plans", "old")
    (entry,) = memory.get("session", metadata={"key": "b"}).entries
    seen["expires"] = entry.expires_at > entry.updated_at
    try:
        store.put(("plans",), "d", {"text": "x" * 20_000})
    except LimitExceeded as error:
        seen["refused"] = str(error)
    seen["to the tools"] = str(memory.tools()[1].call(compartment="session", query="euros"))
json.dump(seen, sys.stdout)
