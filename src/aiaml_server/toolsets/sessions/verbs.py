"""`aiaml sessions …`: what repositories hold, for people, for CI and for pre-commit."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from aiaml_server.errors import ToolError
from aiaml_server.format.invisible import marked_line
from aiaml_server.terminal import (
    EXIT_NOTHING,
    EXIT_OK,
    EXIT_USAGE,
    Exit,
    bold,
    confirm,
    dim,
    echo,
    echo_ci_command,
    echo_json,
    echo_rows,
    json_option,
    notify,
    plural,
    rows_options,
    styled,
    wrap,
    yes_option,
)
from aiaml_server.toolset import Finding
from aiaml_server.toolsets.failures import annotation
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
      aiaml sessions setup
    """


@sessions.command("list")
@PATHS
@rows_options
def list_(paths: Sequence[str], data: str) -> int:
    """List the session logs of repositories, newest first.

    PATH is a repository, or anything in it; without one it is the repository around the working
    directory.

    \b
    Examples:
      aiaml sessions list
      aiaml sessions list ~/shop ~/site --json
    """
    refusals: list[str] = []
    found = list(_logs(paths, refusals))
    found.sort(key=lambda each: (each["date"], each["agent"]), reverse=True)
    for refusal in refusals:
        notify(wrap(marked_line(refusal), 4, err=True))
    code = EXIT_USAGE if refusals else EXIT_OK
    if data:
        echo_rows(found, data)
        return code
    wide = max((len(each["agent"]) for each in found), default=0)
    for each in found:
        name = f"{each['agent']:{wide}}"
        echo(wrap(f"{bold(each['date'])}  {name}  {dim(_shown(each['file']))}", 4))
    if not found and not refusals:
        notify("There are no session logs: an agent starts one with start_session.")
    return code


def _logs(paths: Sequence[str], refusals: list[str]) -> Iterator[dict[str, Any]]:
    """Yield each log; add what is refused to `refusals`, and go on."""
    from aiaml_server.toolsets.sessions.place import Place, agents, top_of  # noqa: PLC0415

    for root in dict.fromkeys(_located(top_of, each) for each in paths or ["."]):
        for agent in agents(root):
            try:
                place = Place(str(root), agent)
                dates = place.dates()
            except ToolError as error:
                refusals.append(f"{agent}: {error}")
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
@json_option
def show(agent: str, date: str | None, path: str, json: bool) -> None:
    """Show an agent's log of a date, or its summary.

    \b
    Examples:
      aiaml sessions show aristotle                 the summary
      aiaml sessions show aristotle 2025-01-20      the log of that day
      aiaml sessions show aristotle --in ~/shop
    """
    from aiaml_server.toolsets.sessions.place import SUMMARY, Place, check_date, top_of  # noqa: PLC0415

    root = _located(top_of, path)
    try:
        place = Place(str(root), agent)
        name = place.log(check_date(date)) if date else SUMMARY
        data = place.read(name)
    except ToolError as error:
        raise Exit(str(error), EXIT_USAGE) from error
    file = place.shown / name
    if data is None:
        raise Exit(f"there is no {_shown(file)}; `aiaml sessions list` shows what there is")
    text = data.decode("utf-8", "replace")
    if json:
        echo_json({"agent": agent, "date": date, "file": str(file), "text": text})
    else:
        echo(text.removesuffix("\n"))


@sessions.command("check")
@PATHS
@click.option(
    "--against",
    metavar="REV",
    help="See also that every line of git's revision REV is still in the logs, in its order.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "github", "json"]),
    help="How problems are shown: github is for its annotations.",
)
@rows_options
def check_(paths: Sequence[str], against: str | None, form: str | None, data: str) -> int:
    """Check every log, summary and schema; a line for each problem.

    PATH is a repository, a folder or a file, as pre-commit passes them; without one it is the
    repository around the working directory. Exit codes: 0 where all is in order, 1 where there
    are problems, 2 where it could not look. What seems to hold a secret is a problem, unless
    AIAML_CHECK_SECRETS is false. With --against, so is a line that a log no longer has: of what
    REV and the present branch had in common, as in a pull request.

    \b
    Examples:
      aiaml sessions check
      aiaml sessions check --against origin/main
      aiaml sessions check .github/agent-memory/aristotle --json
    """
    from aiaml_server.toolsets.sessions.checking import check, check_against  # noqa: PLC0415
    from aiaml_server.toolsets.sessions.driver import ATTRIBUTES, unknown  # noqa: PLC0415
    from aiaml_server.toolsets.sessions.place import top_of  # noqa: PLC0415

    if against == "":
        raise click.UsageError("--against must name a revision, such as origin/main")
    checked = partial(check, check_secrets=CHECK_SECRETS.value(os.environ))
    files: dict[Path, list[Any]] = {}
    for path in paths or ["."]:
        files |= _located(lambda p: dict(checked(p)), path)
        for file, more in _located(lambda p: [*check_against(p, against)] if against else [], path):
            files[file] = sorted({*files.get(file, ()), *more})
    roots = sorted({top_of(path) for path in paths or ["."]})
    if form != "github":  # nothing is merged in what a runner has checked out
        files |= {root / ATTRIBUTES: said for root in roots if (said := unknown(root))}
    found = [(file, remark) for file, remarks in files.items() for remark in remarks]
    problems = sum(remark.level == "error" for _, remark in found)
    if form == "github":
        for file, remark in found:
            name = _shown(file).replace(os.sep, "/")
            what = marked_line(remark.what)
            echo_ci_command(annotation(remark.level, what, file=name, line=remark.line))
        return EXIT_NOTHING if problems else EXIT_OK
    if data or form == "json":
        rows = [{"path": str(file), **remark._asdict()} for file, remark in found]
        echo_rows(rows, data or "json")
        return EXIT_NOTHING if problems else EXIT_OK
    for file, remark in found:
        mark = "" if remark.level == "error" else styled(f"{remark.level}: ", "yellow")
        echo(wrap(f"{_shown(file)}:{remark.line}: {mark}{marked_line(remark.what)}", 4))
    _note_unasked(roots if files else ())
    if problems:
        notify(f"{plural(problems, 'problem')} in {plural(len(files), 'file')}.")
        return EXIT_NOTHING
    state = "no problem" if found else "all in order"
    notify(f"{plural(len(files), 'file')}, {state}." if files else "There is nothing to check.")
    return EXIT_OK


def _note_unasked(roots: Iterable[Path]) -> None:
    """Say where git is not asked to keep both sides of a log."""
    from aiaml_server.toolsets.sessions.driver import asked_for  # noqa: PLC0415

    for root in roots:
        if not asked_for(root):
            where = f" {_shown(root)}" if root != Path.cwd() else ""
            notify(
                "Two branches that log on one day conflict when they are merged; "
                f"`aiaml sessions setup{where}` has git keep both."
            )


@sessions.command("setup")
@click.argument("path", default=".", type=click.Path())
@click.option(
    "--check",
    type=click.Choice(["github", "pre-commit", "none"]),
    help="What checks the logs; else pre-commit where the repository uses it, or GitHub.",
)
@yes_option
def setup(path: str, check: str | None, yes: bool) -> int:
    """Prepare a repository for agents on several branches, after asking.

    Has git keep both sides where two branches have written to one log (.gitattributes, and git's
    configuration of this clone), has the logs checked before a commit or in a pull request, and
    tells agents of their memory in AGENTS.md or CLAUDE.md. Each is added to what is there; commit
    it like any change. Whoever clones the repository does this once, for the configuration.

    \b
    Examples:
      aiaml sessions setup
      aiaml sessions setup ~/shop --check none --yes
    """
    from aiaml_server.toolsets.sessions.driver import (  # noqa: PLC0415
        check_configuration,
        tell,
        told,
        words,
    )
    from aiaml_server.toolsets.sessions.place import top_of  # noqa: PLC0415
    from aiaml_server.toolsets.sessions.setup import plan, write  # noqa: PLC0415

    root = _located(top_of, path)
    parts, by_hand = _located(lambda root: plan(root, check), root)
    has = _located(told, root) == words()
    if not has:
        _located(check_configuration, root)
    for part in parts:
        echo(
            bold(f"{part.name}:" if (root / part.name).exists() else f"{part.name}, which is new:")
        )
        for line in part.added.splitlines():
            echo(f"    {line}".rstrip())
        echo()
    if not has:
        echo(f"{bold('git config')}, of this clone: what git asks to merge these files\n")
    if not yes and not (has and not parts):
        files = plural(len(parts), "file") if parts else "git's configuration"
        confirm(f"Write {files} in {_shown(root)}?")
    _located(lambda root: write(root, parts), root)
    if not has:
        _located(tell, root)
    for each in by_hand:
        echo(each)
    if parts:
        names = " ".join(part.name for part in parts)
        notify(f"Written. Commit it: git add {names}")
        notify("In each clone, `aiaml sessions setup` has git ask this program to merge.")
    elif not by_hand:
        notify("All of it is there already." if has else "This clone is set up.")
    return EXIT_NOTHING if by_hand else EXIT_OK


@sessions.command("merge")
@click.argument("base", type=click.Path())
@click.argument("ours", type=click.Path())
@click.argument("theirs", type=click.Path())
def merge(base: str, ours: str, theirs: str) -> int:
    """Merge two versions of a log or a summary, as git asks its driver; into OURS.

    Where both sides only added to sections, both are kept, each in its section. Where they did
    anything else, git's marks of a conflict are put in, and the exit code is 5; so it is where both
    together are larger than the 1 MiB that is read.

    \b
    Examples:
      git config merge.aiaml-sessions.driver 'aiaml sessions merge %O %A %B'
    """
    from aiaml_server.toolsets.sessions.driver import MARKED  # noqa: PLC0415
    from aiaml_server.toolsets.sessions.merging import bring_together  # noqa: PLC0415
    from aiaml_server.toolsets.sessions.place import MAX_FILE  # noqa: PLC0415

    whole = _located(lambda name: bring_together(Path(base), Path(name), Path(theirs)), ours)
    if (size := Path(ours).stat().st_size) > MAX_FILE:
        raise Exit(
            f"{_shown(ours)}: both sides together have {size:,} bytes, and a file has at most "
            f"{MAX_FILE:,}; shorten it, or move entries into the log of another date",
            MARKED,
        )
    return EXIT_OK if whole else MARKED


def _located(function: Any, path: str) -> Any:
    """Call a function with a path.

    Raises:
        Ended: the path is in no repository, or the disk refused.
    """
    try:
        return function(path)
    except ToolError as error:
        raise Exit(str(error), EXIT_USAGE) from error


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
    variable = MANIFEST.settings[0]
    values = MANIFEST.read_settings(environ)
    roots = [*values[variable.name], *filter(None, [values["AIAML_SESSIONS_REPO"]])]
    if not values[variable.name]:
        yield Finding("sessions", "ok", f"any repository ({variable.name} is not set)")
    for root in roots:
        yield _root_finding(variable.name, Path(root), values["AIAML_CHECK_SECRETS"])


def _read(data: bytes, title: str) -> str:
    """Return what a log or a summary says under a title: no header, nor what is left empty."""
    from aiaml_server.toolsets.sessions.document import Document  # noqa: PLC0415 (imports the markdown parser)

    document = Document(data)
    for section in reversed(document.sections):
        start, end = document.body(section)
        if section.text == "Header" or not data[start:end].strip():
            data = data[: section.start] + data[end:]
    name = document.headings[:1]
    if name and name[0].level == 1:
        data = data[: name[0].start] + data[name[0].end :]
    return f"# {title}\n\n{data.decode('utf-8', 'replace').lstrip()}"


def _root_finding(variable: str, root: Path, check_secrets: bool) -> Finding:
    from aiaml_server.toolsets.sessions.checking import check  # noqa: PLC0415 (imports the markdown parser)
    from aiaml_server.toolsets.sessions.place import agents, git_directory  # noqa: PLC0415

    if not root.is_dir():
        remedy = f"correct {variable}: no repository below it can be used"
        return Finding("sessions", "warning", f"{root} is no directory", remedy)
    if not git_directory(root):
        return Finding("sessions", "ok", f"repositories below {root}")
    try:
        checked = check(root, check_secrets=check_secrets)
        remarks = [remark for _, remarks in checked for remark in remarks]
    except ToolError as error:
        return Finding("sessions", "error", f"{root}: {error}", "make it readable")
    if count := sum(each.level == "error" for each in remarks):
        remedy = f"`aiaml sessions check {root}` names each"
        return Finding("sessions", "warning", f"{root}: {plural(count, 'problem')}", remedy)
    return Finding("sessions", "ok", f"{root}: {plural(len(agents(root)), 'agent')}, in order")
