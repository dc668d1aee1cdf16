"""The command doctor: it runs all checks, prints each finding, and offers fixes."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence

import click

from aiaml_server.doctor import CHECKS, run_checks
from aiaml_server.errors import os_reason
from aiaml_server.format.invisible import marked_line
from aiaml_server.terminal import (
    EXIT_FAILED,
    EXIT_OK,
    confirm,
    dim,
    echo,
    echo_json,
    json_option,
    notify,
    styled,
    wrap,
    yes_option,
)
from aiaml_server.toolset import Finding, Fix

_COLOURS = {"ok": "green", "warning": "yellow", "error": "red"}
_INDENT = 20


@click.command("doctor")
@click.argument("names", metavar="[CHECK]...", nargs=-1, type=click.Choice(list(CHECKS)))
@click.option("--fix", "is_fixing", is_flag=True, help="Fix what is safe to fix, after asking.")
@click.option("--offline", is_flag=True, help="Do not ask the remote.")
@yes_option
@json_option
def doctor(names: tuple[str, ...], is_fixing: bool, offline: bool, yes: bool, json: bool) -> int:
    """Check the installation and suggest fixes.

    The checks cover the program, the directory, the files, the index, git, the clients and a real
    server. The exit code is 0 if all is ok, else 1. --fix never touches a memory.

    \b
    Examples:
      aiaml doctor
      aiaml doctor --fix
      aiaml doctor files index
      aiaml doctor --json --offline
    """
    logging.getLogger("aiaml_server").addHandler(logging.NullHandler())  # the findings contain it
    findings: list[Finding] = []
    for finding in run_checks(names or CHECKS, os.environ, offline=offline):
        findings.append(finding)
        if not json:
            _print_finding(finding)
    fixes = [finding.fix for finding in findings if finding.fix]
    done = _fix(fixes, ask=not yes) if fixes and is_fixing else []
    open_findings = [row for row in findings if row.level != "ok" and row.fix not in done]
    if json:
        echo_json([finding.fields() for finding in findings])
    elif not open_findings:
        notify("\nNothing is wrong.")
    elif fixes and not is_fixing:
        notify(f"\n`aiaml doctor --fix` can fix {len(fixes):,} of them.")
    return EXIT_FAILED if open_findings else EXIT_OK


def _print_finding(finding: Finding) -> None:
    line = f"{finding.level:7}  {finding.check:9}  {marked_line(finding.found)}"
    line = wrap(line, _INDENT)
    echo(styled(line[:7], _COLOURS[finding.level]) + line[7:])
    if finding.remedy:
        echo(dim(wrap(f"{'':{_INDENT}}{finding.remedy}")))


def _fix(fixes: Sequence[Fix], *, ask: bool) -> list[Fix]:
    """Ask, then apply the fixes; return those that worked."""
    notify("\nThis will:\n" + "\n".join(f"  {fix.what}" for fix in fixes))
    if ask:
        confirm("Go on?")
    done = []
    for fix in fixes:
        try:
            fix.do()
            done.append(fix)
        except OSError as error:
            notify(f"Not done: {fix.what}: {os_reason(error)}")
    return done
