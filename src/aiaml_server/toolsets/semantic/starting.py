"""`init`: the databases of a person and of the project that they stand in."""

from __future__ import annotations

import os
from pathlib import Path

import click

from aiaml_server.format.invisible import marked_line
from aiaml_server.terminal import EXIT_OK, echo, echo_json, json_option, notify
from aiaml_server.toolsets.semantic import MANIFEST, PROJECT, importing, place
from aiaml_server.toolsets.semantic.memories import Memories


@click.command("init")
@json_option
def init(json: bool) -> int:
    """Make the databases: yours, and one for the project that you stand in.

    The project is the directory with a .memory in it, upwards from here; where there is none, this
    directory becomes one, unless it is your home directory. Git does not see its memories.

    \b
    Examples:
      cd ~/shop; memory-server init
    """
    given = MANIFEST.read_settings(os.environ)[PROJECT]
    here = Path.cwd()
    project = place.find_project(here, given, by=PROJECT)
    if project is None and here.resolve() != place.person().resolve():
        project = here.resolve()
    memories = Memories(place.home(), project)
    offered = importing.offer(memories)
    was = {name: database.there for name, database in memories.databases.items()}
    for database in memories.databases.values():
        with database.writing():
            pass
    memories.close()
    if json:
        made = [
            {"scope": name, "file": str(database.path), "made": not was[name]}
            for name, database in memories.databases.items()
        ]
        echo_json({"databases": made, "offer": offered})
        return EXIT_OK
    for name, database in memories.databases.items():
        state = "are there" if was[name] else "are ready"
        echo(marked_line(f"The {name} memories {state}: {database.path}"))
    if offered:
        notify(marked_line(f"By the way: {offered}."))
    return EXIT_OK
