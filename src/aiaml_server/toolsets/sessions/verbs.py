"""`aiaml sessions …`: what repositories hold, for people, for CI and for pre-commit."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from aiaml_server.errors import InvalidSetting, Refused
from aiaml_server.format.invisible import marked_line
from aiaml_server.terminal import (
    DONE,
    NOTHING,
    USAGE,
    Ended,
    as_json,
    bold,
    dim,
    note,
    out,
    out_json,
    plural,
    styled,
    wrapped,
)
from aiaml_server.toolset import Finding
from aiaml_server.toolsets.sessions import MANIFEST
from aiaml_server.toolsets.warning import CHECK_SECRETS

PATHS = click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path())


@click.group("sessions")
def sessions() -> None:
    """Read and check the session logs that repositories keep.

    \b
    Examples:
      aiaml sessions list
      aiaml sessions show aristotle 2025-01-20
      aiaml sessions check
    """


@sessions.command("list")
@PATHS
@as_json
def list_(paths: Sequence[str], json: bool) -> None:
    """List the session logs of repositories, newest first.

    PATH is a repository, or anything in it; without one it is the repository around the working
    directory.

    \b
    Examples:
      aiaml sessions list
      aiaml sessions list ~/shop ~/site --json
    """
    found = sorted(_logs(paths), key=lambda each: (each["date"], each["agent"]), reverse=True)
    if json:
        out_json(found)
        return
    wide = max((len(each["agent"]) for each in found), default=0)
    for each in found:
        name = f"{each['agent']:{wide}}"
        out(wrapped(f"{bold(each['date'])}  {name}  {dim(_shown(each['file']))}", 4))
    if not found:
        note("There are no session logs: an agent starts one with start_session.")


def _logs(paths: Sequence[str]) -> Iterator[dict[str, Any]]:
    from aiaml_server.toolsets.sessions.checking import agents, top_of  # noqa: PLC0415 (imports the markdown parser)
    from aiaml_server.toolsets.sessions.place import Place  # noqa: PLC0415

    for root in dict.fromkeys(_located(top_of, each) for each in paths or ["."]):
        for agent in agents(root):
            try:
                place = Place(str(root), agent)
                dates = place.dates()
            except Refused as error:
                note(wrapped(marked_line(f"{agent}: {error}"), 4, err=True))
                continue
            for date in dates:
                file = str(place.shown / place.log(date))
                yield {"date": date, "agent": agent, "file": file, "repository": str(root)}


@sessions.command("show")
@click.argument("agent")
@click.argument("date", required=False)
@click.option(
    "--in", "path", metavar="PATH", default=".", help="The repository, or anything in it."
)
@as_json
def show(agent: str, date: str | None, path: str, json: bool) -> None:
    """Show an agent's log of a date, or its summary.

    \b
    Examples:
      aiaml sessions show aristotle                 the summary
      aiaml sessions show aristotle 2025-01-20      the log of that day
      aiaml sessions show aristotle --in ~/shop
    """
    from aiaml_server.toolsets.sessions.checking import top_of  # noqa: PLC0415
    from aiaml_server.toolsets.sessions.place import SUMMARY, Place, check_date  # noqa: PLC0415

    root = _located(top_of, path)
    try:
        place = Place(str(root), agent)
        name = place.log(check_date(date)) if date else SUMMARY
        data = place.read(name)
    except Refused as error:
        raise Ended(str(error), USAGE) from error
    file = place.shown / name
    if data is None:
        raise Ended(f"there is no {_shown(file)}; `aiaml sessions list` shows what there is")
    text = data.decode("utf-8", "replace")
    if json:
        out_json({"agent": agent, "date": date, "file": str(file), "text": text})
    else:
        out(text.removesuffix("\n"))


@sessions.command("check")
@PATHS
@as_json
def check_(paths: Sequence[str], json: bool) -> int:
    """Check every log, summary and schema; a line for each problem.

    PATH is a repository, a folder or a file, as pre-commit passes them; without one it is the
    repository around the working directory. Exit codes: 0 where all is in order, 1 where there
    are problems, 2 where it could not look. What seems to hold a secret is a problem, unless
    AIAML_CHECK_SECRETS is false.

    \b
    Examples:
      aiaml sessions check
      aiaml sessions check .github/agent-memory/aristotle --json
    """
    from aiaml_server.toolsets.sessions.checking import check  # noqa: PLC0415

    checked = partial(check, check_secrets=CHECK_SECRETS.value(os.environ))
    found_in = (_located(lambda p: [*checked(p)], path) for path in paths or ["."])
    files = dict(each for found in found_in for each in found)
    found = [(path, remark) for path, remarks in files.items() for remark in remarks]
    problems = sum(remark.level == "error" for _, remark in found)
    if json:
        out_json([{"path": str(path), **remark._asdict()} for path, remark in found])
        return NOTHING if problems else DONE
    for path, remark in found:
        mark = "" if remark.level == "error" else styled(f"{remark.level}: ", "yellow")
        out(wrapped(f"{_shown(path)}:{remark.line}: {mark}{marked_line(remark.what)}", 4))
    if problems:
        note(f"{plural(problems, 'problem')} in {plural(len(files), 'file')}.")
        return NOTHING
    note(f"{plural(len(files), 'file')}, all in order." if files else "There is nothing to check.")
    return DONE


def _located(function: Any, path: str) -> Any:
    """Call a function with a path.

    Raises:
        Ended: the path is in no repository, or the disk refused.
    """
    try:
        return function(path)
    except Refused as error:
        raise Ended(str(error), USAGE) from error


def _shown(path: str | os.PathLike[str]) -> str:
    """Return a path as it is from the working directory, where it lies below that."""
    whole = Path(path)
    try:
        return marked_line(str(whole.relative_to(Path.cwd())))
    except (ValueError, OSError):
        return marked_line(str(whole))


# --- doctor ---------------------------------------------------------------------------------------


def checks(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Say which repositories agents may touch, and whether those that are named are in order."""
    variable = MANIFEST.variables[0]
    try:
        roots = variable.value(environ)
    except InvalidSetting as error:
        yield Finding("sessions", "error", str(error), f"correct {error.variable}, or remove it")
        return
    if not roots:
        yield Finding("sessions", "ok", f"any repository ({variable.name} is not set)")
    for root in roots:
        yield _root_finding(variable.name, Path(root), CHECK_SECRETS.value(environ))


def _root_finding(variable: str, root: Path, check_secrets: bool) -> Finding:
    from aiaml_server.toolsets.sessions.checking import agents, check  # noqa: PLC0415
    from aiaml_server.toolsets.sessions.place import git_directory  # noqa: PLC0415

    if not root.is_dir():
        remedy = f"correct {variable}: no repository below it can be used"
        return Finding("sessions", "warning", f"{root} is no directory", remedy)
    if not git_directory(root):
        return Finding("sessions", "ok", f"repositories below {root}")
    try:
        checked = check(root, check_secrets=check_secrets)
        remarks = [remark for _, remarks in checked for remark in remarks]
    except Refused as error:
        return Finding("sessions", "error", f"{root}: {error}", "make it readable")
    if count := sum(each.level == "error" for each in remarks):
        remedy = f"`aiaml sessions check {root}` names each"
        return Finding("sessions", "warning", f"{root}: {plural(count, 'problem')}", remedy)
    return Finding("sessions", "ok", f"{root}: {plural(len(agents(root)), 'agent')}, in order")
