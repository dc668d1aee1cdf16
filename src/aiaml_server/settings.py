"""Everything that can be set, read once from the environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from aiaml_server.errors import InvalidSetting

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class Variable(NamedTuple):
    """One setting, read from an environment variable.

    Attributes:
        name: the variable, such as `AIAML_MEMORY_DIR`.
        default: its value where it is unset or empty.
        read: turns the name and a value into what the program uses; raises `InvalidSetting`.
        help: what it means, in a few words.
        secret: whether the value may hold a password, and is never shown.
        told: whether it changes what clients are told before a call, such as the list of tools.
    """

    name: str
    default: str
    read: Callable[[str, str], Any]
    help: str
    secret: bool = False
    told: bool = False

    def value(self, environ: Mapping[str, str]) -> Any:
        """Return the setting as an environment has it; an empty variable counts as unset.

        Raises:
            InvalidSetting: the value cannot be used; the sentence says what would be right.
        """
        return self.read(self.name, environ.get(self.name) or self.default)


def as_given(_variable: str, value: str) -> str:
    """Take a value as it is; whether it can be used is seen when it is."""
    return value


@dataclass(frozen=True)
class Settings:
    """One process's settings.

    Attributes:
        base: the directory that holds `files/` (`AIAML_MEMORY_DIR`, default `~/.aiaml`). Absolute:
            clients start servers in any working directory.
        log_level: the least severe level that reaches stderr (`AIAML_LOG_LEVEL`).
        check_index: compare every answer of the index with a scan of all files, and fail where they
            differ (`AIAML_CHECK_INDEX`); slow, for tests and for doubts.
        sync: whether memories are kept in git (`AIAML_ENABLE_SYNC`).
        remote: the git repository that they are exchanged with, a URL or a path; empty for none
            (`AIAML_GITHUB_REMOTE`). It may hold a password.
        sync_interval: seconds between two looks at the remote (`AIAML_SYNC_INTERVAL`).
        check_secrets: whether a memory that seems to hold a key or password is kept out of
            git (`AIAML_CHECK_SECRETS`).
        hooks: whether the hooks that a person has installed tell anything (`AIAML_HOOKS`).
    """

    base: Path
    log_level: str = "WARNING"
    check_index: bool = False
    sync: bool = True
    remote: str = field(default="", repr=False)
    sync_interval: float = 60.0
    check_secrets: bool = True
    hooks: bool = True

    @property
    def remote_error(self) -> InvalidSetting | None:
        """What is wrong with the remote's address; then it is shown to no git, and all else works.

        A bad remote is no reason to keep memory away. A bad value of any other setting ends the
        start, since nobody could say where, or with what care, memories were to be kept.
        """
        reason = wrong_remote(self.remote)
        return InvalidSetting("AIAML_GITHUB_REMOTE", reason) if reason else None

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Settings:
        """Read the `AIAML_*` variables; an empty one counts as not set.

        Raises:
            InvalidSetting: a value cannot be used; the sentence says what would be right.
        """
        return cls(**{field: each.value(environ) for field, each in _BY_FIELD.items()})

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Settings:
        """Return the settings with these values, by variable."""
        return cls(**{field: values[each.name] for field, each in _BY_FIELD.items()})

    def by_variable(self) -> list[tuple[Variable, Any]]:
        """Return each variable with the value in use."""
        return [(each, getattr(self, field)) for field, each in _BY_FIELD.items()]


def without_password(address: str) -> str:
    """Return a remote's address as it may be shown: without password, token or query."""
    scheme, slashes, rest = address.partition("://") if "://" in address else ("", "", address)
    who, at, place = rest.rpartition("@")
    if scheme and at:
        user = who if scheme.lower() == "ssh" and ":" not in who else "***"
    else:  # host:path as ssh has it; a colon before the @ is somebody's mistake
        user = "***" if ":" in who and "/" not in who.partition(":")[0] else who
    place = re.sub(r"[?#].*", "?***", place) if scheme else place
    return f"{scheme}{slashes}{user}{at}{place}"


def directory(variable: str, value: str) -> Path:
    """Read an absolute path, or one that begins with `~`."""
    try:
        path = Path(value).expanduser()
    except RuntimeError as error:
        lacking = f"is {value!r}, but there is no such home directory"
        raise InvalidSetting(variable, lacking) from error
    if not path.is_absolute() or "\0" in value:
        wanted = "must be an absolute path or begin with ~, because clients start servers anywhere"
        raise InvalidSetting(variable, f"is {value!r}; it {wanted}")
    return path


def _log_level(variable: str, value: str) -> str:
    level = value.strip().upper()
    if level not in LOG_LEVELS:
        raise InvalidSetting(variable, f"is {value!r}; it must be one of {', '.join(LOG_LEVELS)}")
    return level


_SWITCH = {"true": True, "1": True, "yes": True, "on": True} | {
    "false": False, "0": False, "no": False, "off": False,
}  # fmt: skip


def switch(variable: str, value: str) -> bool:
    """Read true or false, as people write them: also yes and no, on and off, 1 and 0."""
    try:
        return _SWITCH[value.strip().lower()]
    except KeyError:
        raise InvalidSetting(variable, f"is {value!r}; it must be true or false") from None


def _seconds(variable: str, value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 86400:
        raise InvalidSetting(variable, f"is {value!r}; it must be seconds, from 0.1 to 86400")
    return seconds


def wrong_remote(value: str) -> str:
    """Say what is wrong with an address. It is not repeated: it may hold a password."""
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):(:|//)", value)
    if len(value) > _LONGEST_REMOTE:
        return f"is longer than {_LONGEST_REMOTE:,} characters"
    if re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]", value) or value != value.strip():
        return "has a space or a control character that no address has"
    if value.startswith("-"):
        return "begins with a dash; it must be a git URL or a path"
    if scheme and (scheme[2] == ":" or scheme[1].lower() not in _SCHEMES):
        wanted = f"it must be a path, host:path, or a URL of {', '.join(_SCHEMES)}"
        return f"is of the kind {scheme[1]!r}; {wanted}"
    return ""


_LONGEST_REMOTE = 4096  # the longest path that Linux takes
_SCHEMES = ("https", "http", "ssh", "git", "file")


LOG_LEVEL = Variable(
    "AIAML_LOG_LEVEL",
    "WARNING",
    _log_level,
    "DEBUG, INFO, WARNING, ERROR or CRITICAL; the log goes to stderr",
)

PAGER = Variable(
    "AIAML_PAGER",
    "",
    as_given,
    "what shows long answers on a terminal; without it $PAGER, or less; `cat` for none",
)
"""Of the command line alone: servers do not read it."""

CHECK_SECRETS = Variable(
    "AIAML_CHECK_SECRETS",
    "true",
    switch,
    "true keeps memories that seem to hold a key or password out of git; our toolsets warn of them",
)
"""Of the toolsets, too."""

BASE = "AIAML_MEMORY_DIR"
_BY_FIELD = {
    "base": Variable(BASE, "~/.aiaml", directory, "where memories are kept"),
    "sync": Variable(
        "AIAML_ENABLE_SYNC",
        "true",
        switch,
        "true keeps memories in git; false: no git at all",
    ),
    "remote": Variable(
        "AIAML_GITHUB_REMOTE",
        "",
        as_given,
        "a git URL or path to exchange memories with; without it git stays on this computer",
        secret=True,
    ),
    "sync_interval": Variable(
        "AIAML_SYNC_INTERVAL",
        "60",
        _seconds,
        "seconds between two looks at the remote",
    ),
    "check_secrets": CHECK_SECRETS,
    "check_index": Variable(
        "AIAML_CHECK_INDEX",
        "false",
        switch,
        "true: compare every answer with a scan of all files (slow)",
    ),
    "hooks": Variable(
        "AIAML_HOOKS",
        "true",
        switch,
        "false: hooks that are installed (`aiaml install CLIENT --hooks`) tell nothing",
    ),
    "log_level": LOG_LEVEL,
}
VARIABLES = tuple(_BY_FIELD.values())
"""Every setting; `Settings`, `--help`, `where` and doctor are made of this table."""
