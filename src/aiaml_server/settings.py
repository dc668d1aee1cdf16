"""Settings, read once from the environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from aiaml_server.errors import InvalidSetting

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_TRUE = ("true", "1", "yes", "on")
_FALSE = ("false", "0", "no", "off")


class Setting(NamedTuple):
    """One setting, which an environment variable gives.

    Attributes:
        name: the environment variable.
        default: its value if it is unset or empty.
        parse: a function from the name and a value to the setting; raises `InvalidSetting`.
        help: its meaning, in a few words.
        secret: whether the value may hold a password and must not be shown.
    """

    name: str
    default: str
    parse: Callable[[str, str], Any]
    help: str
    secret: bool = False

    def value(self, environ: Mapping[str, str]) -> Any:
        """Return the setting's value in an environment.

        Raises:
            InvalidSetting: the value cannot be used.
        """
        return self.parse(self.name, environ.get(self.name) or self.default)


class Settings(NamedTuple):
    """The settings of one process; `SETTINGS` describes each.

    Attributes:
        base: the directory that holds `files/`. It is absolute, because clients start servers in
            any working directory.
        remote: the address of the git remote; empty for none. It may hold a password.
        sync_interval: seconds between two syncs with the remote.
    """

    base: Path
    sync: bool = True
    remote: str = ""
    sync_interval: float = 60.0
    check_secrets: bool = True
    hooks: bool = True
    log_level: str = "WARNING"

    def __repr__(self) -> str:
        """Return the directory alone: the remote's address may hold a password."""
        return f"Settings({self.base})"

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Settings:
        """Read the settings from environment variables.

        Raises:
            InvalidSetting: a value cannot be used.
        """
        return cls(**{field: setting.value(environ) for field, setting in _BY_FIELD.items()})

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Settings:
        """Make the settings from parsed values, by the variable's name."""
        return cls(**{field: values[setting.name] for field, setting in _BY_FIELD.items()})

    def items(self) -> list[tuple[Setting, Any]]:
        """Return each setting with its value."""
        return [(setting, getattr(self, field)) for field, setting in _BY_FIELD.items()]


# --- values ---------------------------------------------------------------------------------------


def parse_text(_name: str, value: str) -> str:
    """Accept any text."""
    return value


def parse_directory(name: str, value: str) -> Path:
    """Parse an absolute path, or one that begins with `~`."""
    try:
        path = Path(value).expanduser()
    except RuntimeError as error:
        missing = f"is {value!r}, but there is no such home directory"
        raise InvalidSetting(name, missing) from error
    if not path.is_absolute() or "\0" in value:
        wanted = "must be an absolute path or begin with ~, because clients start servers anywhere"
        raise InvalidSetting(name, f"is {value!r}; it {wanted}")
    return path


def parse_bool(name: str, value: str) -> bool:
    """Parse true or false; also yes and no, on and off, 1 and 0."""
    word = value.strip().lower()
    if word not in _TRUE + _FALSE:
        raise InvalidSetting(name, f"is {value!r}; it must be true or false")
    return word in _TRUE


def _parse_log_level(name: str, value: str) -> str:
    level = value.strip().upper()
    if level not in LOG_LEVELS:
        raise InvalidSetting(name, f"is {value!r}; it must be one of {', '.join(LOG_LEVELS)}")
    return level


def _parse_interval(name: str, value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 86400:
        raise InvalidSetting(name, f"is {value!r}; it must be seconds, from 0.1 to 86400")
    return seconds


# --- addresses of remotes -------------------------------------------------------------------------


def parse_remote(name: str, value: str) -> str:
    """Parse the address of a git remote. Git itself refuses what it cannot use, but for an option.

    Raises:
        InvalidSetting: it begins with a dash, is a relative path (git would look for it in the
            memory directory), or was copied from where its password was hidden.
    """
    address = value.strip()
    if re.fullmatch(r"-.*|[^/\\:][^:]*", address):
        raise InvalidSetting(name, "must be a git URL, HOST:PATH or an absolute path")
    if "***" in address:
        raise InvalidSetting(name, "has no password; put the password where *** stands")
    return address


def hide_password(address: str) -> str:
    """Return a remote's address without password, token and query, so that it may be shown."""
    login = (
        r"(?i)((?<=://)(?<!ssh://)(?<!file://)|(?<=ssh://)[^/@]*:"
        r"|^[^/:@]+:(?!//)).*@"  # user:password@host:path
    )
    return re.sub(r"(://[^?#]*)[?#].*", r"\1?***", re.sub(login, "***@", address))


# --- the settings ---------------------------------------------------------------------------------

MEMORY_DIR = "AIAML_MEMORY_DIR"

LOG_LEVEL = Setting(
    "AIAML_LOG_LEVEL",
    "WARNING",
    _parse_log_level,
    "DEBUG, INFO, WARNING, ERROR or CRITICAL; the log goes to stderr",
)

CHECK_SECRETS = Setting(
    "AIAML_CHECK_SECRETS",
    "true",
    parse_bool,
    "true keeps memories that seem to hold a key or password out of git; our toolsets warn of them",
)

_BY_FIELD = {
    "base": Setting(MEMORY_DIR, "~/.aiaml", parse_directory, "where memories are kept"),
    "sync": Setting(
        "AIAML_ENABLE_SYNC", "true", parse_bool, "true keeps memories in git; false commits nothing"
    ),
    "remote": Setting(
        "AIAML_GITHUB_REMOTE",
        "",
        parse_remote,
        "a git URL or path to exchange memories with; without it git stays on this computer",
        secret=True,
    ),
    "sync_interval": Setting(
        "AIAML_SYNC_INTERVAL", "60", _parse_interval, "seconds between two looks at the remote"
    ),
    "check_secrets": CHECK_SECRETS,
    "hooks": Setting(
        "AIAML_HOOKS",
        "true",
        parse_bool,
        "false: hooks that are installed (`aiaml install CLIENT --hooks`) tell nothing",
    ),
    "log_level": LOG_LEVEL,
}
SETTINGS = tuple(_BY_FIELD.values())
"""The settings of the default server. `Settings` and all lists of settings are made from it."""
