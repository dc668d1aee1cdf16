"""`completion`: the Tab key. What it offers, and the verb that teaches it to a shell.

`teach` gives a verb's parameters what can stand there, by the words that its help has for them. It
is called while a word is completed, and never else. Nothing is said then: not even of an error.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    ShellComplete,
    add_completion_class,
    get_completion_class,
)

from aiaml_server import toolsets
from aiaml_server.cli.app import aiaml
from aiaml_server.cli.context import opened
from aiaml_server.errors import MalformedFile
from aiaml_server.format.filters import FIELDS, NAMES
from aiaml_server.format.invisible import marked_line
from aiaml_server.terminal import EXIT_FAILED, Exit, echo, truncate

_SHELLS = ("bash", "zsh", "fish", "powershell")
_MOST = 200  # that are offered
_FEW = 20  # values of each field, before one is chosen
_LOOKED_INTO = 40  # whose first words are shown beside
_OUR_NAME = re.compile(r"\d{8}_\d{6}_(.+)\.md")

_PLAIN = re.compile(r"[\w./:+=%-]+")
_QUOTES = re.compile("['\u2018-\u201b]")  # all of these end a string in PowerShell
_TWICE = r"\g<0>\g<0>"

Item = CompletionItem
Offer = Callable[[click.Context, str], Iterable[Item]]
"""What can stand in a place, given what was typed before it and of it."""


@click.command("completion")
@click.argument("shell", metavar="SHELL", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what makes a shell complete with the Tab key.

    It completes verbs, options and their values: ids, topics, agents, users, revisions, files;
    also behind the colon of a field, such as agent:.

    \b
    Examples:
      echo 'eval "$(aiaml completion bash)"' >> ~/.bashrc
      echo 'eval "$(aiaml completion zsh)"' >> ~/.zshrc
      aiaml completion fish > ~/.config/fish/completions/aiaml.fish
      aiaml completion powershell >> $PROFILE
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise Exit(f"nothing is known about the shell {shell}", EXIT_FAILED)
    try:
        source = kind(context.find_root().command, {}, "aiaml", "_AIAML_COMPLETE").source()
    except RuntimeError as error:  # a bash that is too old
        raise Exit(str(error), EXIT_FAILED) from error
    echo(source)


@add_completion_class
class Bash(BashComplete):
    """Bash, which puts on the line what it is told: a name that anyone chose comes in quotes."""

    # It also takes what is told for patterns of files' names, if that is not turned off.
    source_template = BashComplete.source_template.replace(
        "local response", "local response -\n    set -f"
    )

    def format_completion(self, item: Item) -> str:
        """Return a line: what kind it is, and the value as the shell takes it for one word."""
        return f"{item.type},{shlex.quote(item.value) if item.type == 'plain' else item.value}"


@add_completion_class
class PowerShell(ShellComplete):
    """Windows PowerShell and PowerShell, which complete files where nothing is told.

    Like Bash, they put on the line what they are told.
    """

    name = "powershell"
    source_template = """\
Register-ArgumentCompleter -Native -CommandName %(prog_name)s -ScriptBlock {
    param($word, $line, $position)
    $words = $line.CommandElements | Where-Object { $_.Extent.EndOffset -lt $position }
    $env:COMP_WORDS = ($words | ForEach-Object { $_.ToString() }) -join "`n"
    $env:COMP_WORD = $word
    $env:%(complete_var)s = "powershell_complete"
    try {
        %(prog_name)s | ForEach-Object {
            $value, $help = $_ -split "`t", 2
            $kind = "ParameterValue"
            [System.Management.Automation.CompletionResult]::new($value, $value, $kind, $help)
        }
    } finally {
        Remove-Item Env:COMP_WORDS, Env:COMP_WORD, Env:%(complete_var)s
    }
}
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one that is completed, and what is typed of that."""
        words = os.environ.get("COMP_WORDS", "").split("\n")
        return [word.strip("'\"") for word in words[1:]], os.environ.get("COMP_WORD", "")

    def format_completion(self, item: Item) -> str:
        """Return a line: the value, and what is shown beside it, which cannot be empty."""
        if item.type != "plain":
            return ""
        plain = _PLAIN.fullmatch(item.value)
        value = item.value if plain else f"'{_QUOTES.sub(_TWICE, item.value)}'"
        return f"{value}\t{item.help or item.value}"


# --- what is offered ------------------------------------------------------------------------------


def teach(verb: click.Command) -> click.Command:
    """Let the parameters of a verb know what can stand there."""
    for param in verb.params:
        if offer := _offer(param):
            param.type = _Offered(offer)
    return verb


def offered(names: Iterable[tuple[str, str]], beginning: str) -> list[Item]:
    """Return the names that begin so, each with what is shown beside it."""
    return [Item(name, help=told) for name, told in names if name.startswith(beginning)]


class _Offered(click.types.StringParamType):
    """A word of which some can be told."""

    def __init__(self, offer: Offer) -> None:
        self._offer = offer

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[Item]:
        with suppress(Exception):  # nobody is told anything in the middle of a line
            return list(islice(filter(_is_one_word, self._offer(ctx, incomplete)), _MOST))
        return []


def _is_one_word(item: Item) -> bool:
    """Say whether a value is no option, and nothing in it ends the line that tells of it."""
    value: str = item.value
    return item.type != "plain" or (
        value != "" and not value.startswith("-") and marked_line(value) == value
    )


def _offer(param: click.Parameter) -> Offer | None:
    by_option = (_OPTIONS[each] for each in param.opts if each in _OPTIONS)
    return next(by_option, None) or _WORDS.get((param.metavar or "").strip("[]."))


def _ids(context: click.Context, beginning: str) -> Iterator[Item]:
    """Offer ids, the newest memories' first, each once."""
    lists = [value for value in context.params.values() if isinstance(value, tuple)]
    given = {word for value in lists for word in value}
    from aiaml_server.format.memory import parse  # noqa: PLC0415 (which `opened` loads)

    with opened() as bank:
        known = sorted(bank.names(), reverse=True)
        names = {_id_of(name): name for name in reversed(known)}
        begin = [each for each in reversed(names) if each.startswith(beginning)]
        for number, each in enumerate(each for each in begin if each not in given):
            words = ""
            with suppress(MalformedFile, OSError):
                words = parse(bank.text(names[each])).content if number < _LOOKED_INTO else ""
            yield Item(each, help=truncate(words, 50) or None)
    if context.info_name in ("history", "restore"):
        from aiaml_server.cli.history import git_history  # noqa: PLC0415 (starts git)

        gone = map(_id_of, git_history().lately_forgotten())
        yield from offered(((each, "forgotten") for each in gone if each not in names), beginning)


def _id_of(name: str) -> str:
    """Return the id in a file's name: of our own form, or as other programs chose it."""
    ours = _OUR_NAME.fullmatch(name)
    return ours[1] if ours else name.removesuffix(".md")


def _names(field: str, _: click.Context, beginning: str) -> Iterator[Item]:
    """Offer the agents, users or topics, the most frequent first."""
    with opened() as bank:
        for name, uses in bank.labels(field):
            if name.casefold().startswith(beginning.casefold()):
                yield Item(name, help=f"{uses:,}")


def _ids_or_fields(context: click.Context, beginning: str) -> Iterator[Item]:
    yield from _ids(context, beginning)
    yield from _fields(context, beginning)


def _fields(context: click.Context, beginning: str) -> Iterator[Item]:
    """Offer the values of a field behind its colon; before, each field with its values."""
    given = [*(context.params.get("said") or context.params.get("words") or ()), *context.args]
    if beginning == ":":  # for bash, a colon is a word, and what it completes stands behind
        given, beginning = [*given, ":"], ""
    field, colon, value = beginning.partition(":")
    if given[-1:] == [":"]:
        yield from _values(given[-2] if given[1:] else "", context, beginning)
    elif colon:
        for each in _values(field, context, value):
            yield Item(f"{field}:{each.value}", help=each.help)
    elif beginning or context.info_name == "list":
        for name in (name for name in _VALUES if name.startswith(beginning)):
            for each in islice(_values(name, context, ""), _FEW):
                yield Item(f"{name}:{each.value}", help=each.help)


def _values(field: str, context: click.Context, beginning: str) -> Iterator[Item]:
    """Return what can stand behind a field, as one word of a shell."""
    found = _VALUES[field](context, beginning) if field in _VALUES else ()
    return (each for each in found if not set(each.value) & set(" \t\"'"))


def _revisions(context: click.Context, beginning: str) -> list[Item]:
    """Offer the revisions of the memory that was named before."""
    from aiaml_server.cli.history import Past, git_history, revisions  # noqa: PLC0415 (starts git)

    named = [*context.params["ids"], *context.args]  # click stops at an option without value
    with opened() as bank:
        past = Past.of(next(filter(None, named)), bank, git_history())
        return offered(revisions(past), beginning)


def _verbs(context: click.Context, beginning: str) -> list[Item]:
    root = context.find_root()
    return root.command.shell_complete(root, beginning)


def _times(_: click.Context, beginning: str) -> list[Item]:
    told = {
        "1h": "an hour ago",
        "24h": "a day",
        "7d": "a week",
        "4w": "four weeks",
        "52w": "a year",
    }
    return offered(told.items(), beginning)


_WORDS: dict[str, Offer] = {
    "ID": _ids, "REV": _revisions, "VERB": _verbs, "TIME": _times, "WORD": _fields,
    "FIELD:VALUE": _fields, "ID|FIELD:VALUE": _ids_or_fields,
    "FILE": lambda _, beginning: [Item(beginning, type="file")],
}  # fmt: skip
_VALUES: dict[str, Offer] = {
    **{field: partial(_names, field) if field in NAMES else _times for field in FIELDS},
}
_OPTIONS: dict[str, Offer] = {
    **{f"--{field}": partial(_names, field) for field in NAMES},
    toolsets.OPTION: lambda _, beginning: offered(
        ((name, toolsets.manifest(name).summary) for name in toolsets.OWN), beginning
    ),
    "--dir": lambda _, beginning: [Item(beginning, type="dir")],
}

teach(aiaml)
