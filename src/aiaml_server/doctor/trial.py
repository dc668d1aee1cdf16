"""A server, started as clients start it, that remembers, thinks and recalls."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from aiaml_server import toolsets
from aiaml_server.clients import launch
from aiaml_server.doctor.context import Context
from aiaml_server.doctor.conversation import NoAnswer, begun
from aiaml_server.doctor.finding import REPORT, Finding
from aiaml_server.errors import InvalidSetting
from aiaml_server.terminal import plural

_NOTE = {"agent": "doctor", "user": "nobody", "topics": ["trial"], "content": "a trial memory"}


def server(context: Context) -> Iterator[Finding]:
    """Shake hands, list the tools of what is served here; remember, think and recall."""
    with tempfile.TemporaryDirectory(prefix="aiaml-doctor-") as place:
        try:
            found = _tried(context, Path(place))
        except NoAnswer as error:
            yield Finding("server", "error", str(error), REPORT)
        else:
            yield Finding("server", "ok", found)


def _tried(context: Context, place: Path) -> str:
    """Have the whole conversation; return how long it took."""
    try:
        manifests = toolsets.chosen([], context.environ)
    except InvalidSetting:  # another check says so
        manifests = toolsets.chosen([], {})
    named = [word for manifest in manifests for word in (toolsets.OPTION, manifest.name)]
    start = time.perf_counter()
    with begun([*launch.command(), *named], context.environ, place) as server:
        answered = time.perf_counter() - start
        tools = server.tools()
        known = {name for manifest in manifests for name in manifest.tools}
        if not tools or not known.issuperset(tools):  # a setting may leave some out
            raise NoAnswer(f"it has the tools {sorted(tools)}")
        if toolsets.DEFAULT not in (manifest.name for manifest in manifests):
            count = plural(len(tools), "tool")
            return f"version {server.version} answered in {answered:.1f} s, with {count}"
        stored = server.call("remember", _NOTE)["memory_id"]
        found = [hit["id"] for hit in server.call("think", {"keywords": ["trial"]})]
        recalled = [each["content"] for each in server.call("recall", {"memory_ids": [stored]})]
        if (found, recalled) != ([stored], [_NOTE["content"]]):
            raise NoAnswer("what was remembered was not what was found")
        took = time.perf_counter() - start - answered
    return (
        f"version {server.version} answered in {answered:.1f} s, "
        f"and the three tools work ({took:.1f} s)"
    )
