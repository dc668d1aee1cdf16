"""Making a check, so that what it raises is one more finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from aiaml_server.errors import AiamlError, InvalidSetting
from aiaml_server.toolset import Finding, Fix, Level

__all__ = ["Finding", "Fix", "Level", "guarded", "unusable"]

Subject = TypeVar("Subject")
REPORT = "please report this, with what `aiaml doctor --json` prints"


def guarded(
    name: str, check: Callable[[Subject], Iterable[Finding]], subject: Subject
) -> Iterator[Finding]:
    """Yield a check's findings; what it raises is one more, so that the others still come."""
    try:
        yield from check(subject)
    except InvalidSetting as error:
        yield unusable(name, error)
    except (AiamlError, OSError) as error:
        remedy = "mend what it names, then run `aiaml doctor` again"
        yield Finding(name, "error", f"the check could not be made: {error}", remedy)
    except Exception as error:  # noqa: BLE001 (the checks behind it are wanted all the more)
        found = f"the check itself failed: {type(error).__name__}: {error}"
        yield Finding(name, "error", found, REPORT)


def unusable(name: str, error: InvalidSetting) -> Finding:
    """Return what a check says of a setting that cannot be used."""
    remedy = f"correct {error.variable}, or remove it, where the server's environment is set"
    return Finding(name, "error", str(error), remedy)
