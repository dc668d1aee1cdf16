"""Everything that can be set, read once from the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .errors import InvalidSetting

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


@dataclass(frozen=True)
class Settings:
    """One process's settings.

    Attributes:
        base: the directory that holds `files/` (`AIAML_MEMORY_DIR`, default `~/.aiaml`). Absolute:
            clients start servers in any working directory.
        log_level: the least severe level that reaches stderr (`AIAML_LOG_LEVEL`).
        check_index: compare every answer of the index with a scan of all files, and fail where they
            differ (`AIAML_CHECK_INDEX`); slow, for tests and for doubts.
    """

    base: Path
    log_level: str = "WARNING"
    check_index: bool = False

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Settings:
        """Read the `AIAML_*` variables; an empty one counts as not set.

        Raises:
            InvalidSetting: a value cannot be used; the sentence says what would be right.
        """
        return cls(
            base=_directory("AIAML_MEMORY_DIR", environ.get("AIAML_MEMORY_DIR") or "~/.aiaml"),
            check_index=_switch("AIAML_CHECK_INDEX", environ.get("AIAML_CHECK_INDEX") or "false"),
            log_level=_log_level("AIAML_LOG_LEVEL", environ.get("AIAML_LOG_LEVEL") or "WARNING"),
        )


def _directory(variable: str, value: str) -> Path:
    try:
        path = Path(value).expanduser()
    except RuntimeError as error:
        raise InvalidSetting(
            variable, f"is {value!r}, but there is no such home directory"
        ) from error
    if not path.is_absolute() or "\0" in value:
        wanted = "must be an absolute path or begin with ~, because clients start servers anywhere"
        raise InvalidSetting(variable, f"is {value!r}; it {wanted}")
    return path


def _log_level(variable: str, value: str) -> str:
    level = value.strip().upper()
    if level not in LOG_LEVELS:
        raise InvalidSetting(variable, f"is {value!r}; it must be one of {', '.join(LOG_LEVELS)}")
    return level


def _switch(variable: str, value: str) -> bool:
    word = value.strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise InvalidSetting(variable, f"is {value!r}; it must be true or false")
