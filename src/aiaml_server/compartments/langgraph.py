"""A store of LangGraph in a compartment: `graph.compile(store=Store(memory))`.

Each item is an entry: its value as JSON is the content, namespace and key are metadata. So what a
graph stores is seen by the tools, by people, and counts against the limit.
"""

from __future__ import annotations

import asyncio
import json
import math
import operator
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

if TYPE_CHECKING:
    from aiaml_server.toolsets.compartments.entries import Entry
    from aiaml_server.toolsets.compartments.memory import Compartments

_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


class Store(BaseStore):
    """A store in one compartment. A time to live is in minutes; `query` ranks by words.

    Whatever fails is a failure of `Compartments`, such as `LimitExceeded`.
    """

    supports_ttl = True

    def __init__(self, memory: Compartments, compartment: str = "session") -> None:
        """Name the compartment: "run", "session" or "plan"."""
        self._memory = memory
        self._compartment = compartment
        self._lock = threading.Lock()  # looking for a key and changing it are one step

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do some operations, one after the other."""
        with self._lock:
            return [self._done(each) for each in ops]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the same in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _done(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            found = self._found(op.namespace, op.key)
            return _item(found, Item) if found else None
        if isinstance(op, PutOp):
            return self._put(op)
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        raise ValueError(f"{type(op).__name__} is no operation that is known here")

    def _found(self, namespace: tuple[str, ...], key: str) -> Entry | None:
        wanted = {"namespace": json.dumps(namespace), "key": key}
        found = self._memory.get(self._compartment, metadata=wanted, limit=1).entries
        return found[0] if found else None

    def _put(self, op: PutOp) -> None:
        found = self._found(op.namespace, op.key)
        if op.value is None:
            if found:
                self._memory.clear(self._compartment, id=found.id)
            return
        self._memory.save(
            self._compartment,
            json.dumps(op.value, ensure_ascii=False),
            id=found.id if found else None,
            metadata={"namespace": json.dumps(op.namespace), "key": op.key},
            expires=f"{max(1, math.ceil(op.ttl))}m" if op.ttl is not None else "",
        )

    def _search(self, op: SearchOp) -> list[SearchItem]:
        found = []
        for entry in self._memory.get(self._compartment, query=op.query).entries:
            namespace = _namespace(entry)
            if namespace is None or namespace[: len(op.namespace_prefix)] != op.namespace_prefix:
                continue
            item = _item(entry, SearchItem)
            if all(_fits(item.value.get(name), said) for name, said in (op.filter or {}).items()):
                found.append(item)
        return found[op.offset : op.offset + op.limit]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        found = set()
        for entry in self._memory.get(self._compartment).entries:
            namespace = _namespace(entry)
            if namespace and all(_matches(each, namespace) for each in op.match_conditions or ()):
                found.add(namespace[: op.max_depth])
        return sorted(found)[op.offset : op.offset + op.limit]


def _namespace(entry: Entry) -> tuple[str, ...] | None:
    """Return an entry's namespace; None where no store has made it."""
    try:
        return tuple(json.loads(entry.metadata["namespace"]))
    except (KeyError, TypeError, ValueError):
        return None


def _item(entry: Entry, kind: Any) -> Any:
    return kind(
        value=json.loads(entry.content),
        key=entry.metadata["key"],
        namespace=_namespace(entry),
        created_at=datetime.fromisoformat(entry.created_at.replace("Z", "+00:00")),
        updated_at=datetime.fromisoformat(entry.updated_at.replace("Z", "+00:00")),
    )


def _fits(value: Any, wanted: Any) -> bool:
    """Say whether a value is as a filter has it: equal, or by operators such as {"$gt": 5}."""
    if isinstance(wanted, dict) and wanted and all(each in _COMPARE for each in wanted):
        with suppress(TypeError):  # one that is not there, or of another kind, is no such value
            return all(_COMPARE[name](value, said) for name, said in wanted.items())
        return False
    return bool(value == wanted)


def _matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = tuple(condition.path)
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return all(said in ("*", name) for name, said in zip(part, path, strict=True))
