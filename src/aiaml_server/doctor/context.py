"""The environment, settings and directory that all checks read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import click

from aiaml_server.errors import AiamlError, InvalidSetting, MalformedFile
from aiaml_server.format.memory import Memory
from aiaml_server.settings import MEMORY_DIR, SETTINGS, Settings
from aiaml_server.storage.store import Store
from aiaml_server.toolset import Finding, Fix

REPORT = "please report this, with what `aiaml doctor --json` prints"
Subject = TypeVar("Subject")
_MANY = 2000  # files that are worth a progress bar


@dataclass
class Context:
    """The subject of the checks.

    Attributes:
        environ: the environment variables.
        offline: whether the remote must not be contacted.
        wrong: the settings that cannot be used, by name.
        settings: the others; None if they do not say where the memories are.
    """

    environ: Mapping[str, str] = field(repr=False)
    offline: bool = False
    wrong: dict[str, InvalidSetting] = field(init=False, default_factory=dict)
    settings: Settings | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Read each setting, so that all that cannot be used are named."""
        for setting in SETTINGS:
            try:
                setting.value(self.environ)
            except InvalidSetting as error:
                self.wrong[setting.name] = error
        usable = {name: value for name, value in self.environ.items() if name not in self.wrong}
        if MEMORY_DIR not in self.wrong:
            self.settings = Settings.from_environ(usable)

    @property
    def base(self) -> Path | None:
        """The memory directory, if it exists."""
        base = self.settings.base if self.settings else None
        return base if base and base.is_dir() else None

    @cached_property
    def memories(self) -> dict[str, Memory | MalformedFile]:
        """All memories by file name; for other files, the reason why they are not memories."""
        found: dict[str, Memory | MalformedFile] = {}
        if self.base is None:
            return found
        store = Store(self.base)
        names = sorted(store.names())
        hidden = len(names) < _MANY or not sys.stderr.isatty()
        with click.progressbar(names, label="reading", file=sys.stderr, hidden=hidden) as shown:
            for name in shown:
                try:
                    found[name] = store.read(name)
                except MalformedFile as error:
                    found[name] = error
                except FileNotFoundError:
                    continue
        return found


def warning(check: str, found: str, remedy: str, fix: Fix | None = None) -> Finding:
    """Return the finding that something is wrong, though the program works."""
    return Finding(check, "warning", found, remedy, fix)


def guarded(
    name: str, check: Callable[[Subject], Iterable[Finding]], subject: Subject
) -> Iterator[Finding]:
    """Yield the findings of a check; an error that it raises is one more finding."""
    try:
        yield from check(subject)
    except InvalidSetting as error:
        yield wrong_setting(name, error)
    except (AiamlError, OSError) as error:
        remedy = "correct what it names, then run `aiaml doctor` again"
        yield Finding(name, "error", f"the check could not run: {error}", remedy)
    except Exception as error:  # noqa: BLE001 (the checks after it are needed all the more)
        found = f"the check itself failed: {type(error).__name__}: {error}"
        yield Finding(name, "error", found, REPORT)


def wrong_setting(name: str, error: InvalidSetting) -> Finding:
    """Return the finding for a setting that cannot be used."""
    found, _, command = str(error).partition("; install it: ")
    remedy = f"correct {error.variable}, or remove it, where the server's environment is set"
    if command:
        remedy = f"run `{command}`, or take the toolset out of {error.variable}"
    return Finding(name, "error", found, remedy)
