"""What is said of a command line that no verb understands, in our own words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

import click

SYNONYMS = {
    "add": "remember", "new": "remember", "create": "remember", "save": "remember",
    "store": "remember", "rm": "forget", "del": "forget", "delete": "forget", "remove": "forget",
    "find": "search", "grep": "search", "query": "search", "think": "search", "ls": "list",
    "cat": "show", "view": "show", "get": "show", "read": "show", "recall": "show",
    "update": "edit", "change": "edit", "revert": "restore", "undo": "restore",
    "recover": "restore", "diff": "history", "versions": "history", "tail": "log",
    "activity": "log", "push": "sync", "pull": "sync", "commit": "sync", "check": "doctor",
    "config": "where", "settings": "where", "path": "where", "info": "where", "tags": "topics",
    "count": "stats", "open": "web", "ui": "web", "browse": "web", "setup": "install",
    "connect": "install", "disconnect": "uninstall", "backup": "export", "dump": "export",
    "load": "import", "tools": "toolsets", "start": "serve", "run": "serve", "mcp": "serve",
}  # fmt: skip
"""What other programs call our verbs. Told, and not run: `rm` may mean more there."""

_EXTRA = re.compile(r"Got unexpected extra arguments? \((.*)\)", re.DOTALL)


def no_verb(name: str, verbs: Iterable[str]) -> str:
    """Say that there is no verb of a name, and which was meant."""
    return f"there is no verb {name!r}{_but(SYNONYMS.get(name.lower()) or name, verbs)}"


def in_our_words(error: click.ClickException) -> str:
    """Return the sentence for what click refused, without its full stop."""
    said = _plain(error.format_message())
    if isinstance(error, click.BadParameter):
        said = _of_parameter(error)
    elif isinstance(error, click.NoSuchOption):
        said = f"there is no option {error.option_name}{_but('', error.possibilities or ())}"
        if error.option_name == "--dir":
            said = "--dir stands before the verb: `aiaml --dir DIR VERB`"
    elif isinstance(error, click.BadOptionUsage):
        said = f"{error.option_name} takes {'no' if 'not take' in error.message else 'a'} value"
    elif isinstance(error, click.exceptions.NoSuchCommand):
        group = error.ctx.command if error.ctx else None
        said = no_verb(error.command_name, group.commands if isinstance(group, click.Group) else ())
    elif extra := _EXTRA.match(error.message):
        said = f"too many words: {extra[1]}"
    return said


def _of_parameter(error: click.BadParameter) -> str:
    if not error.param:
        return f"{error.param_hint}: {_plain(error.message)}"
    kind, name = error.param.type, _name_of(error.param)
    if isinstance(error, click.MissingParameter):
        return f"{name} is missing{_one_of(getattr(kind, 'choices', ()))}"
    if isinstance(kind, click.IntRange | click.FloatRange):
        return f"{name}: must be {_number(kind)}"
    if isinstance(kind, click.Choice):
        given = error.message.partition(" is not ")[0]
        near = get_close_matches(given.strip("'"), [*map(str, kind.choices)], 1)
        other = f", but {near[0]!r}" if near else _one_of(kind.choices)
        return f"{name}: there is no {given}{other}"
    return f"{name}: {_plain(error.message).removeprefix('Path ')}"


def _but(name: str, known: Iterable[str]) -> str:
    """Return the nearest of the known names; the first where nothing is said to be near to."""
    known = list(known)
    near = [name] if name in known else get_close_matches(name, known, 1) if name else known[:1]
    return f", but {near[0]!r}" if near else ""


def _name_of(param: click.Parameter) -> str:
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    return param.make_metavar(click.Context(click.Command(""))).strip("[].")


def _number(kind: click.IntRange | click.FloatRange) -> str:
    noun = "a whole number" if isinstance(kind, click.IntRange) else "a number"
    least = "" if kind.min is None else f" from {kind.min}"
    return f"{noun}{least}" + ("" if kind.max is None else f" to {kind.max}")


def _one_of(choices: Iterable[object]) -> str:
    names = ", ".join(map(str, choices))
    return f"; there are {names}" if names else ""


def _plain(text: str) -> str:
    return " ".join(text.split()).rstrip(".?")
