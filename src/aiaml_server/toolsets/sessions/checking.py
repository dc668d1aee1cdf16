"""Whether what repositories hold is in order: every log, summary and schema, line by line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePath
from typing import NamedTuple

from aiaml_server.toolsets.sessions.document import Document
from aiaml_server.toolsets.sessions.failures import DiskError, Faulty, InvalidDate, ToolError
from aiaml_server.toolsets.sessions.history import logs_at, lost
from aiaml_server.toolsets.sessions.place import (
    DIRECTORY,
    LOGS,
    SCHEMA,
    SUMMARY,
    Place,
    agents,
    check_date,
    top_of,
)
from aiaml_server.toolsets.sessions.remarks import Remark, hidden, repeated
from aiaml_server.toolsets.sessions.schema import (
    HEADER,
    Schema,
    schema_problems,
    summary_problems,
    unreadable,
)
from aiaml_server.toolsets.warning import find_leak


class Checked(NamedTuple):
    """A file that was checked, or a directory that cannot be, and what there is to say of it."""

    path: Path
    remarks: list[Remark]


def check(path: str | os.PathLike[str], *, check_secrets: bool = True) -> Iterator[Checked]:
    """Check what lies at or below a path in a repository; a schema stands for all that it decides.

    Args:
        path: a repository's, or one in it.
        check_secrets: whether summaries and logs are looked into for secrets.

    Raises:
        NotARepository: the path lies in none.
        DiskError: something cannot be read.
    """
    root = top_of(path)
    below = PurePath(os.path.abspath(path)).relative_to(root)  # noqa: PTH100
    if below.name == SCHEMA:
        below = below.parent
    names: dict[str, str] = {}
    for agent in agents(root):
        directory = PurePath(*DIRECTORY, agent)
        other = names.setdefault(agent.lower(), agent)
        if other != agent and below in (directory, *directory.parents):
            what = f"this and {other} differ by case only, and are one on some disks; rename one"
            yield Checked(root / directory, [Remark(1, what)])
        if below in (directory, *directory.parents) or directory in below.parents:
            for name, remarks in _check_agent(root, agent, check_secrets):
                if below in (directory / name, *(directory / name).parents):
                    yield Checked(root / directory / name, remarks)


def check_against(path: str | os.PathLike[str], revision: str) -> Iterator[Checked]:
    """Compare the logs at or below a path with what git's revision and this branch had in common.

    Raises:
        NotARepository: the path lies in none, or git does not know the revision.
        DiskError: git cannot be run, or something cannot be read.
    """
    root = top_of(path)
    below = PurePath(os.path.abspath(path)).relative_to(root)  # noqa: PTH100
    for name, before in logs_at(root, revision):
        file = PurePath(name)
        if below in (file, *file.parents):
            agent = file.parts[len(DIRECTORY)]
            try:
                now = Place(str(root), agent).read(f"{LOGS}/{file.name}")
            except DiskError:
                raise
            except ToolError as error:
                yield Checked(root / file, [Remark(1, str(error))])
            else:
                is_kept = now is None and _is_renamed(root, agent, file.name, before)
                yield Checked(root / file, [] if is_kept else list(lost(before, now, revision)))


def _is_renamed(root: Path, agent: str, name: str, before: bytes) -> bool:
    """Say whether another agent has all of a log, with its own name in the header."""
    document = Document(before)
    header = document.find(HEADER)
    end = document.body(header)[1] if header else 0
    for other in agents(root):
        with suppress(ToolError):
            now = Place(str(root), other).read(f"{LOGS}/{name}")
            wanted = before[:end].replace(agent.encode(), other.encode()) + before[end:]
            if now is not None and not any(lost(wanted, now, "")):
                return True
    return False


def _check_agent(root: Path, agent: str, check_secrets: bool) -> Iterator[tuple[str, list[Remark]]]:
    """Check an agent's files; yield each one's name below the agent's directory."""
    try:
        place = Place(str(root), agent)
        schema, remarks = _check_schema(place)
    except DiskError:
        raise
    except ToolError as error:
        yield "", [Remark(1, str(error))]
        return
    yield SCHEMA, remarks
    summary = [SUMMARY] if os.path.lexists(place.directory / SUMMARY) else []
    for name in (*summary, *place.log_names()):
        yield name, _check_file(place, schema, name, check_secrets)


def _check_schema(place: Place) -> tuple[Schema | None, list[Remark]]:
    """Return an agent's schema, where it has one, and what there is to say of it."""
    data = place.read(SCHEMA)
    if data is None:
        return None, [Remark(1, "there is no schema; start_session makes it")]
    document = Document(data)
    said = _said_of_all(document, check_secrets=False)
    if found := list(schema_problems(document)):
        return None, sorted(found + said)
    schema = Schema.parse(data)
    return schema, sorted([*said, *(Remark(1, each, "warning") for each in schema.warnings())])


def _check_file(
    place: Place, schema: Schema | None, name: str, check_secrets: bool
) -> list[Remark]:
    """Return what there is to say of a summary or a log; without a schema, less of a log."""
    try:
        document = Document(place.read(name) or b"")
        said = _said_of_all(document, check_secrets=check_secrets)
        if name == SUMMARY:
            wrong = summary_problems(document, place.agent)
            return sorted([*wrong, *said, *repeated(document)])
        date = check_date(PurePath(name).stem)
        if not schema:
            return sorted([*unreadable(document), *said])
        found = [*schema.log_problems(document, place.agent, date), *said, *repeated(document)]
        warnings = () if found else schema.log_warnings(name, document)
        return sorted([*found, *(Remark(1, each, "warning") for each in warnings)])
    except DiskError:
        raise
    except InvalidDate:
        return [Remark(1, "its name must be a real date, as in 2025-01-20.md")]
    except Faulty as error:
        return [Remark(error.line, error.why)]
    except ToolError as error:
        return [Remark(1, str(error))]


def _said_of_all(document: Document, *, check_secrets: bool) -> list[Remark]:
    """Return what there is to say of any file: the first secret, and what nobody sees."""
    leak = find_leak(document.data, check=check_secrets)
    secret = [Remark(leak.line, f"this seems to hold {leak.kind}")] if leak else []
    return [*secret, *hidden(document.data.decode("utf-8-sig", "replace"))]
