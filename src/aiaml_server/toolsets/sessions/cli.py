"""The commands `aiaml sessions …`, for people, CI and pre-commit."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from aiaml_server.errors import GitMissing, ToolError
from aiaml_server.format.invisible import marked_line
from aiaml_server.settings import CHECK_SECRETS
from aiaml_server.terminal import (
    EXIT_NOTHING,
    EXIT_OK,
    EXIT_USAGE,
    Exit,
    bold,
    confirm,
    echo,
    echo_json,
    json_option,
    notify,
    plural,
    yes_option,
)

paths_argument = click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path())


@click.group("sessions")
def sessions() -> None:
    """Check and merge the session logs that repositories keep.

    \b
    Examples:
      aiaml sessions check
      aiaml sessions setup
    """


@sessions.command("check")
@paths_argument
@json_option
def check_command(paths: Sequence[str], json: bool) -> int:
    """Check every log, summary and schema; print a line for each problem.

    PATH is a repository, a directory or a file, as pre-commit passes them; by default the
    repository around the working directory. Exit codes: 0 if all is in order, 1 if there are
    problems, 2 if a path cannot be checked. A secret is a problem, unless AIAML_CHECK_SECRETS is
    false.

    \b
    Examples:
      aiaml sessions check
      aiaml sessions check .github/agent-memory/aristotle --json
    """
    from aiaml_server.toolsets.sessions.check import check  # noqa: PLC0415

    check_secrets = CHECK_SECRETS.value(os.environ)
    files: dict[Path, list[Any]] = {}
    with exit_on_error():
        for path in paths or ["."]:
            files |= dict(check(path, check_secrets=check_secrets))
    found = [(file, problem) for file, problems in files.items() for problem in problems]
    if json:
        echo_json([{"path": str(file), **problem._asdict()} for file, problem in found])
    else:
        for file, problem in found:
            echo(marked_line(f"{os.path.relpath(file)}:{problem.line}: {problem.text}"))
        notify(f"{plural(len(found), 'problem')} in {plural(len(files), 'file')}.")
    return EXIT_NOTHING if found else EXIT_OK


@sessions.command("setup")
@click.argument("path", default=".", type=click.Path())
@yes_option
def setup_command(path: str, yes: bool) -> None:
    """Have git keep both sides where two branches wrote to one log.

    This adds two lines to .gitattributes, to be committed, and configures this clone. Everybody
    who merges runs it once in their clone.

    \b
    Examples:
      aiaml sessions setup
      aiaml sessions setup ~/shop --yes
    """
    from aiaml_server.toolsets.git import find_ignored  # noqa: PLC0415
    from aiaml_server.toolsets.sessions.merge import (  # noqa: PLC0415
        ANY_LOG,
        ATTRIBUTES,
        ATTRIBUTES_FILE,
        has_attributes,
        set_up,
    )
    from aiaml_server.toolsets.sessions.paths import find_repository  # noqa: PLC0415

    with exit_on_error():
        root = find_repository(path)
        if has_attributes(root):
            echo(f"{ATTRIBUTES_FILE} is there already.")
        else:
            echo(f"{bold(ATTRIBUTES_FILE)}:\n{ATTRIBUTES}")
        echo(f"{bold('git config')} of this clone: the program that merges session logs\n")
        if not yes:
            confirm(f"Write this in {root}?")
        set_up(root)
    notify(f"Done. Commit {ATTRIBUTES_FILE}, and run `aiaml sessions setup` in each other clone.")
    if ANY_LOG in find_ignored(str(root), [ANY_LOG])[0]:
        notify(
            "Git ignores the session logs, so they are never committed."
            " Add the line !/.github/agent-memory/*/logs to .gitignore."
        )


@sessions.command("merge")
@click.argument("base", type=click.Path())
@click.argument("ours", type=click.Path())
@click.argument("theirs", type=click.Path())
def merge_command(base: str, ours: str, theirs: str) -> int:
    """Merge two versions of a log or a summary into OURS; git runs this.

    If both sides only added to sections, both are kept. Otherwise git's conflict marks are
    written, and the exit code is 5.

    \b
    Example:
      git config merge.aiaml-sessions.driver 'aiaml sessions merge %O %A %B'
    """
    from aiaml_server.toolsets.sessions.merge import (  # noqa: PLC0415
        CONFLICT_EXIT_CODE,
        merge_files,
    )

    with exit_on_error():
        merged = merge_files(Path(base), Path(ours), Path(theirs))
    return EXIT_OK if merged else CONFLICT_EXIT_CODE


@contextmanager
def exit_on_error() -> Iterator[None]:
    """End the command with the sentence of an error."""
    try:
        yield
    except (ToolError, GitMissing) as error:
        raise Exit(str(error), EXIT_USAGE) from error
