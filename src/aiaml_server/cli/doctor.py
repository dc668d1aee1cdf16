"""The verb `doctor`: every check in turn, each line as soon as it is known; then the fixes."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from pkgutil import resolve_name

import click

from aiaml_server.doctor.context import Context
from aiaml_server.doctor.finding import Finding, Fix, guarded
from aiaml_server.errors import os_reason
from aiaml_server.format.invisible import marked_line
from aiaml_server.terminal import (
    EXIT_FAILED,
    EXIT_NOTHING,
    EXIT_OK,
    confirm,
    dim,
    echo,
    echo_rows,
    notify,
    plural,
    rows_options,
    show_status,
    styled,
    wrap,
    yes_option,
)

# Each check's module in `doctor/`, which is imported when it is made, and its function there.
CHECKS = {
    "version": "program:version",
    "python": "program:python",
    "packages": "program:packages",
    "settings": "environment:settings",
    "toolsets": "offered:served",
    "directory": "place:directory",
    "disk": "place:writable",
    "access": "place:access",
    "space": "place:space",
    "files": "memories:files",
    "clock": "place:clock",
    "index": "answers:index",
    "git": "syncing:git",
    "sync": "syncing:status",
    "remote": "syncing:remote",
    "clients": "connected:clients",
    "server": "trial:server",
}
_COLOURS = {"ok": "green", "warning": "yellow", "error": "red"}
_CODES = {"ok": EXIT_OK, "warning": EXIT_NOTHING, "error": EXIT_FAILED}
_SHOWN = 10  # findings with the same remedy, on a screen
_HANG = 20  # columns of level and check


@click.command("doctor")
@click.argument("only", metavar="[CHECK]...", nargs=-1, type=click.Choice(list(CHECKS)))
@click.option("--fix", "mend", is_flag=True, help="Mend what is safe to mend, after asking.")
@click.option("--offline", is_flag=True, help="Do not ask the remote.")
@yes_option
@rows_options
def doctor(only: tuple[str, ...], mend: bool, offline: bool, yes: bool, data: str) -> int:
    """Check everything, and say what to do.

    The program, the directory, the files, the index, git, clients and a real server: each line is
    ok, a warning or an error, with what to do about it. The exit code is 0 where all is
    ok, else 1.

    `--fix` makes the directory private and deletes what can be made anew or nobody needs: a wrong
    index, and what was left by a writer that died. It says so first, and never touches a memory.

    \b
    Examples:
      aiaml doctor
      aiaml doctor --fix
      aiaml doctor files index            only these checks
      aiaml doctor --json --offline
    """
    logging.getLogger("aiaml_server").addHandler(logging.NullHandler())  # what matters is found
    context = Context(os.environ, offline)
    found = list(_findings(context, only or tuple(CHECKS), shown=not data))
    fixes = [each.fix for each in found if each.fix]
    if not data:
        _summary(found, len(fixes) if not mend else 0)
    if mend and not fixes:
        notify("There is nothing that --fix may mend.")
    elif mend:
        fixed = _mended(fixes, ask=not yes)
        for number, each in enumerate(found):
            if each.fix in fixed:
                said = f"{each.found}; mended"
                found[number] = replace(each, level="ok", found=said, remedy="")
    if data:
        echo_rows([each.fields() for each in found], data)
    return max((_CODES[each.level] for each in found), default=EXIT_OK)


def _findings(context: Context, names: Iterable[str], *, shown: bool) -> Iterator[Finding]:
    """Make checks, and show what each finds."""
    for name in names:
        show_status(f"{name} …")  # the finding goes over it
        findings = guarded(name, resolve_name(f"aiaml_server.doctor.{CHECKS[name]}"), context)
        yield from _show(findings) if shown else findings


def _show(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Print findings as they come; of many with one remedy, the first."""
    for (level, remedy), group in groupby(findings, lambda each: (each.level, each.remedy)):
        count = 0
        for count, finding in enumerate(group, 1):
            if count <= _SHOWN:
                line = wrap(f"{level:7}  {finding.check:9}  {marked_line(finding.found)}", _HANG)
                echo(styled(line[:7], _COLOURS[level]) + line[7:])
            yield finding
        if count > _SHOWN:
            echo(f"{'':{_HANG}}… and {count - _SHOWN:,} more, which `--json` names")
        if remedy:
            echo(dim(wrap(f"{'':{_HANG}}{remedy}")))


def _summary(found: list[Finding], fixes: int) -> None:
    counts = {level: sum(each.level == level for each in found) for level in ("error", "warning")}
    if not any(counts.values()):
        copied = any(each.check == "remote" and "has memories" in each.found for each in found)
        notify("\nAll is well." if copied else "\nNothing is wrong.")
        return
    words = [plural(count, level) for level, count in counts.items() if count]
    more = f"; `aiaml doctor --fix` can mend {fixes} of them" if fixes else ""
    notify(wrap(f"\n{' and '.join(words)}{more}.", err=True))


def _mended(fixes: list[Fix], *, ask: bool) -> list[Fix]:
    """Say what will be done, ask, do it; return what was done."""
    notify("\nThis will:")
    for fix in fixes:
        notify(f"  {fix.what}")
    if ask:
        confirm("Go on?")
    done = []
    for fix in fixes:
        try:
            fix.do()
        except OSError as error:
            notify(f"Not done: {fix.what}: {os_reason(error)}")
        else:
            notify(f"Done: {fix.what}")
            done.append(fix)
    return done
