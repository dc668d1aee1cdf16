"""Whether what repositories hold is in order: every log, summary and schema, line by line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePath
from typing import NamedTuple

from .document import Document
from .failures import DiskError, Faulty, InvalidDate, NotARepository, Refused
from .place import DIRECTORY, SCHEMA, SUMMARY, Place, check_date, git_directory
from .schema import Problem, Schema, schema_problems, summary_problems


class Remark(NamedTuple):
    """One line of the report.

    Attributes:
        path: the file, below the repository's top.
        line: where in it, from 1.
        what: what there is to say.
        wrong: whether it is a problem, and not only worth knowing.
    """

    path: PurePath
    line: int
    what: str
    wrong: bool = True


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


def check(path: str | os.PathLike[str]) -> Iterator[Remark]:
    """Check what lies at or below a path in a repository; a schema stands for all that it decides.

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
            for remark in _check_agent(root, agent):
                if below in (remark.path, *remark.path.parents):
                    yield remark._replace(path=PurePath(root) / remark.path)


def _check_agent(root: Path, agent: str) -> Iterator[Remark]:
    directory = PurePath(*DIRECTORY, agent)
    try:
        place = Place(str(root), agent)
        schema, found = _schema(place)
    except DiskError:
        raise
    except Refused as error:
        yield Remark(directory, 1, str(error))
        return
    yield from (Remark(directory / SCHEMA, *each) for each in sorted(found))
    for each in schema.warnings() if schema else []:
        yield Remark(directory / SCHEMA, 1, each, wrong=False)
    for name in (SUMMARY, *place.log_names()):
        for remark in _check_file(place, schema, name):
            yield remark._replace(path=directory / name)


def _schema(place: Place) -> tuple[Schema | None, list[Problem]]:
    """Return an agent's schema, where it has one, and else what is wrong with it."""
    data = place.read(SCHEMA)
    if data is None:
        return None, [Problem(1, "there is no schema; start_session makes it")]
    found = list(schema_problems(Document(data)))
    return (None if found else Schema.parse(data)), found


def _check_file(place: Place, schema: Schema | None, name: str) -> Iterator[Remark]:
    """Yield what there is to say of a summary or a log; without a schema, less of a log."""
    path = PurePath(name)
    found: list[Problem] = []
    warnings: list[str] = []
    try:
        document = Document(place.read(name) or b"")
        if name == SUMMARY:
            found = sorted(summary_problems(document))
        else:
            date = check_date(path.stem)
            found = sorted(schema.log_problems(document, place.agent, date)) if schema else []
            warnings = schema.log_warnings(name, document) if schema and not found else []
    except DiskError:
        raise
    except InvalidDate:
        found = [Problem(1, "its name must be a real date, as in 2025-01-20.md")]
    except Faulty as error:
        found = [Problem(error.line, error.why)]
    except Refused as error:
        found = [Problem(1, str(error))]
    yield from (Remark(path, *each) for each in found)
    yield from (Remark(path, 1, each, wrong=False) for each in warnings)
