"""What a check found: a line for a person, a record for a program, and perhaps a remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from aiaml_server.errors import AiamlError

Level = Literal["ok", "warning", "error"]
Subject = TypeVar("Subject")
REPORT = "please report this, with what `aiaml doctor --json` prints"


@dataclass(frozen=True)
class Fix:
    """Something safe that mends what was found.

    Attributes:
        what: what it will do, as a person would be asked: "make … private".
        do: does it; raises OSError where the system refuses.
    """

    what: str
    do: Callable[[], object]


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes:
        check: the check's name.
        level: how it is.
        found: what was found, in words.
        remedy: what to do about it; empty when all is well.
        fix: what `--fix` may do about it.
    """

    check: str
    level: Level
    found: str
    remedy: str = ""
    fix: Fix | None = field(default=None, compare=False)


def guarded(
    name: str, check: Callable[[Subject], Iterable[Finding]], subject: Subject
) -> Iterator[Finding]:
    """Yield a check's findings; what it raises is one more, so that the others still come."""
    try:
        yield from check(subject)
    except (AiamlError, OSError) as error:
        remedy = "mend what it names, then run `aiaml doctor` again"
        yield Finding(name, "error", f"the check could not be made: {error}", remedy)
    except Exception as error:  # noqa: BLE001 (the checks behind it are wanted all the more)
        found = f"the check itself failed: {type(error).__name__}: {error}"
        yield Finding(name, "error", found, REPORT)
