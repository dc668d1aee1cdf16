"""`aiaml citations …`: the same verbs as on a bare Python, and what doctor looks at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from aiaml_server.format.invisible import marked_line
from aiaml_server.terminal import (
    confirm,
    echo,
    echo_ci_command,
    echo_json,
    notify,
    plural,
    wrap,
)
from aiaml_server.toolset import Finding
from aiaml_server.toolsets.citations import MANIFEST, REPOSITORY
from aiaml_server.toolsets.citations.command import VERBS, Option, Screen, Verb, run
from aiaml_server.toolsets.citations.failures import InvalidConfig, NoRepository, ToolError
from aiaml_server.toolsets.citations.memories import Memories, find_root

_HANG = 4  # columns by which what a line goes on with is indented


class _Screen(Screen):
    """The terminal as all verbs use it."""

    out_command = staticmethod(echo_ci_command)
    out_source = staticmethod(echo)
    out_json = staticmethod(echo_json)

    def out(self, line: str) -> None:
        echo(wrap(marked_line(line), _HANG))

    def out_text(self, text: str) -> None:
        echo(wrap(text))

    def note(self, line: str) -> None:
        notify(wrap(marked_line(line), _HANG, err=True))

    def fail(self, line: str) -> None:
        self.note(f"{click.get_current_context().find_root().info_name}: {line}")

    def confirm(self, question: str) -> None:
        confirm(marked_line(question))


@click.group("citations")
def citations() -> None:
    """Search, save and verify the memories of a code base.

    \b
    Examples:
      aiaml citations search api versioning
      aiaml citations save "Prices are in cents" --cite shop/prices.py:12 < text.md
      aiaml citations verify
    """


def _parameter(option: Option) -> click.Parameter:
    kind: Any = int if option.number else click.Choice(option.choices) if option.choices else str
    metavar = f"{option.metavar}..." if option.many else option.metavar
    if not option.name.startswith("-"):
        return click.Argument(
            [option.name],
            metavar=metavar if option.needed else f"[{metavar}]",
            nargs=-1 if option.many else 1,
            required=option.needed,
        )
    if not option.metavar:
        return click.Option([option.name, option.key], is_flag=True, help=option.help)
    unsaid: dict[str, Any] = {}
    if option.unsaid:
        unsaid = {"is_flag": False, "flag_value": option.unsaid}
    return click.Option(
        [option.name, option.key],
        type=kind,
        metavar=None if option.choices else option.metavar,
        multiple=option.many,
        default=option.default,
        help=option.help,
        **unsaid,
    )


def _command(verb: Verb) -> click.Command:
    def call(**given: Any) -> int:
        return run(verb, _Screen(), given)

    examples = "\n".join(f"  aiaml citations {each}" for each in verb.examples)
    return click.Command(
        verb.name,
        callback=call,
        params=[_parameter(each) for each in verb.options],
        help=f"{verb.does}\n\n\b\nExamples:\n{examples}",
    )


for _verb in VERBS:
    citations.add_command(_command(_verb))


# --- doctor ---------------------------------------------------------------------------------------


def checks(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Say which repository's memories are served, and whether they are in order."""
    values = MANIFEST.read_settings(environ)
    given = values[REPOSITORY]
    try:
        memories = Memories(find_root(given), check_secrets=values["AIAML_CHECK_SECRETS"])
        results, broken = memories.verify_all()
    except NoRepository as error:
        if given:
            yield Finding("citations", "error", str(error), f"correct {REPOSITORY}")
        else:
            remedy = f"start the client in a repository of yours, or set {REPOSITORY}"
            yield Finding("citations", "warning", str(error), remedy)
        return
    except ToolError as error:
        can_be_read = isinstance(error, InvalidConfig)
        remedy = "correct the file" if can_be_read else "make it a directory that can be read"
        yield Finding("citations", "error", str(error), remedy)
        return
    for sentence in broken.values():
        yield Finding("citations", "error", sentence, "correct the file, or delete it")
    stale = sum(bool(each.stale) for each in results)
    found = f"{memories.root}: {plural(len(results), 'memory', 'memories')}"
    if stale:
        remedy = "`aiaml citations verify` names each line"
        yield Finding("citations", "warning", f"{found}, {stale} stale", remedy)
    else:
        yield Finding("citations", "ok", found)
    for each in results:
        if each.leak:
            found = f"{each.path}, line {each.leak.line}, seems to hold {each.leak.kind}"
            remedy = "take it out; change it if it was a real one, for git keeps what was committed"
            yield Finding("citations", "warning", found, remedy)
    if not memories.index.health_check():
        name = memories.index.name
        remedy = "`aiaml citations sync-index` says why; search is by words until then"
        yield Finding("citations", "warning", f"the index {name} does not answer", remedy)
