"""Whether what repositories hold is in order: every log, summary and schema, line by line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePath
from typing import NamedTuple

from aiaml_server.toolsets.sessions.document import Document, controls
from aiaml_server.toolsets.sessions.failures import (
    DiskError,
    Faulty,
    InvalidDate,
    NotARepository,
    Refused,
)
from aiaml_server.toolsets.sessions.place import (
    DIRECTORY,
    SCHEMA,
    SUMMARY,
    Place,
    check_date,
    git_directory,
)
from aiaml_server.toolsets.sessions.schema import Remark, Schema, schema_problems, summary_problems
from aiaml_server.toolsets.warning import leak_in


class Checked(NamedTuple):
    """A file that was checked, or a directory that cannot be, and what there is to say of it."""

    path: Path
    remarks: list[Remark]


def top_of(path: str | os.PathLike[str]) -> Path:
    """Return the top of the git work tree that a path lies in.

    Raises:
        NotARepository: it lies in none, or is not there.
    """
    whole = Path(os.path.abspath(path))  # noqa: PTH100 (links on the way stay)
    if os.path.lexists(whole):
        for each in (whole, *whole.parents):
            if git_directory(each):
                return each
        raise NotARepository(f"{whole} is in no git repository")
    raise NotARepository(f"{whole} is not there")


def agents(root: Path) -> list[str]:
    """Return the names of the directories that agents have in a repository."""
    directory = root.joinpath(*DIRECTORY)
    with suppress(FileNotFoundError, NotADirectoryError):
        return sorted(each.name for each in directory.iterdir() if each.is_dir())
    return []


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
    for agent in agents(root):
        directory = PurePath(*DIRECTORY, agent)
        if below in (directory, *directory.parents) or directory in below.parents:
            for name, remarks in _check_agent(root, agent, check_secrets):
                if below in (directory / name, *(directory / name).parents):
                    yield Checked(root / directory / name, remarks)


def _check_agent(root: Path, agent: str, check_secrets: bool) -> Iterator[tuple[str, list[Remark]]]:
    """Check an agent's files; yield each one's name below the agent's directory."""
    try:
        place = Place(str(root), agent)
        schema, remarks = _check_schema(place)
    except DiskError:
        raise
    except Refused as error:
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
    unseen = _controls(document)
    if found := list(schema_problems(document)):
        return None, sorted(found + unseen)
    schema = Schema.parse(data)
    return schema, unseen or [Remark(1, each, "warning") for each in schema.warnings()]


def _check_file(
    place: Place, schema: Schema | None, name: str, check_secrets: bool
) -> list[Remark]:
    """Return what there is to say of a summary or a log; without a schema, less of a log."""
    try:
        document = Document(place.read(name) or b"")
        unseen = _controls(document) + _secrets(document, check_secrets)
        if name == SUMMARY:
            return sorted([*summary_problems(document), *unseen])
        date = check_date(PurePath(name).stem)
        if schema:
            warnings = schema.log_warnings(name, document)
            found = schema.log_problems(document, place.agent, date)
            return sorted([*found, *unseen]) or [Remark(1, each, "warning") for each in warnings]
    except DiskError:
        raise
    except InvalidDate:
        return [Remark(1, "its name must be a real date, as in 2025-01-20.md")]
    except Faulty as error:
        return [Remark(error.line, error.why)]
    except Refused as error:
        return [Remark(1, str(error))]
    return unseen


def _secrets(document: Document, check: bool) -> list[Remark]:
    """Return what there is to say of the first secret in a file."""
    found = leak_in(document.data, check=check)
    return [Remark(found.line, f"this seems to hold {found.kind}")] if found else []


def _controls(document: Document) -> list[Remark]:
    """Return what there is to say of characters that `append_entry` would refuse."""
    text = document.data.decode("utf-8", "replace")
    return [
        Remark(line, f"this holds the control character {name}") for line, name in controls(text)
    ]
