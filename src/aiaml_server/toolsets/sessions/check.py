"""Check the logs, summaries and schemas of repositories, line by line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePath

from aiaml_server.errors import ToolError
from aiaml_server.toolsets.sessions.errors import InvalidFile
from aiaml_server.toolsets.sessions.markdown import Document, Problem, hidden_characters
from aiaml_server.toolsets.sessions.paths import (
    SCHEMA,
    SUMMARY,
    AgentDirectory,
    check_date,
    find_repository,
    list_agents,
)
from aiaml_server.toolsets.sessions.schema import Schema, schema_problems, summary_problems
from aiaml_server.toolsets.warning import find_leak


def check(
    path: str | os.PathLike[str], *, check_secrets: bool = True
) -> Iterator[tuple[Path, list[Problem]]]:
    """Yield each file at or below a path in a repository, with what is wrong in it.

    Args:
        path: a file or directory in a repository. A schema stands for all its agent's files, and
            what is not below `.github/agent-memory` for the whole repository.
        check_secrets: whether to look for secrets.

    Raises:
        NotARepository: the path is in no repository.
        OutsideRepository: the memories of the repository must not be read, as the tools say.
        DiskError: something cannot be read.
    """
    root = find_repository(path)
    wanted = Path(os.path.abspath(path))  # noqa: PTH100 (links are not resolved)
    if wanted.name == SCHEMA:
        wanted = wanted.parent
    # Any name does: where the tools refuse all agents, nothing can be checked.
    memories = AgentDirectory(str(root), "any").path.parent
    if memories not in wanted.parents:
        wanted = memories
    for agent in list_agents(root):
        for name, problems in _check_agent(root, agent, check_secrets):
            file = memories / agent / name
            if wanted in (file, *file.parents):
                yield file, problems


def _check_agent(
    root: Path, agent: str, check_secrets: bool
) -> Iterator[tuple[str, list[Problem]]]:
    """Yield the name of each file of an agent, relative to its directory, with its problems."""
    try:
        directory = AgentDirectory(str(root), agent)
        data = directory.read(SCHEMA)
    except ToolError as error:
        yield "", [Problem(1, str(error))]
        return
    problems = schema_problems(Document(data or b""))
    yield SCHEMA, problems
    if problems:
        return
    schema = Schema.parse(data or b"")
    summary = [SUMMARY] if os.path.lexists(directory.path / SUMMARY) else []
    for name in (*summary, *directory.log_names()):
        try:
            problems = _file_problems(directory, schema, name, check_secrets)
        except InvalidFile as error:
            problems = [Problem(error.line, error.reason)]
        except ToolError as error:
            problems = [Problem(1, str(error))]
        yield name, sorted(problems)


def _file_problems(
    directory: AgentDirectory, schema: Schema, name: str, check_secrets: bool
) -> list[Problem]:
    """Return what is wrong with a summary or a log."""
    data = directory.read(name) or b""
    document = Document(data)
    if name == SUMMARY:
        problems = summary_problems(document, directory.agent)
    else:
        day = check_date(PurePath(name).stem)
        problems = schema.log_problems(document, directory.agent, day)
    problems += hidden_characters(data.decode("utf-8", "replace"))
    if secret := find_leak(data, check=check_secrets):
        problems.append(Problem(secret.line, f"this seems to hold {secret.kind}"))
    return problems
