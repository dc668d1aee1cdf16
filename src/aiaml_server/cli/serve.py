"""`serve` and `demo`: the two verbs that speak MCP."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from aiaml_server.cli.serving import serve
from aiaml_server.toolset import at
from aiaml_server.toolsets import chosen


@click.command("serve")
@click.pass_obj
def serve_verb(toolsets: Sequence[str]) -> int:
    """Serve one MCP client on standard input and output.

    Clients start it so; `aiaml-server` without a word does the same.
    """
    return serve(toolsets)


@click.command("demo")
@click.pass_obj
def demo_verb(toolsets: Sequence[str]) -> int:
    """Watch the tools at work, in a throw-away place."""
    code = 0
    for manifest in chosen(toolsets, {}):
        play: Callable[[], int] = at(manifest.demo)
        code = max(code, play())
    return code
