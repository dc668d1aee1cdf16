"""`Memories`: what the tools, the hooks and Python programs do with memories."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import config, memory, place
from .config import Config
from .database import Database
from .failures import InvalidProject
from .memory import COLUMNS, Memory, of_row
from .model import Provider


@dataclass
class Stored:
    """What storing has done.

    Attributes:
        memory: as it is kept now.
        created: whether it is new; else it was merged into one that was there.
        warnings: what should be known.
    """

    memory: Memory
    created: bool
    warnings: list[str] = field(default_factory=list)


class Memories:
    """The memories of a person, and those of a project where one is active."""

    def __init__(
        self,
        home: Path,
        project: Path | None = None,
        model: Provider | None = None,
        settings: Config | None = None,
    ) -> None:
        """Take the places; nothing is opened or made.

        Args:
            home: the person's directory, `~/.memory`.
            project: the project's top directory; None for none.
            model: what turns texts into vectors; None for words only.
            settings: else they are read from `config.json`.

        Raises:
            InvalidConfig: the settings are not as they must be.
        """
        self.home, self.project, self.model = home, project, model
        self.config = config.load(home) if settings is None else settings
        self.databases: dict[str, Database] = {}
        if project is not None:
            directory = project / place.NAME
            self.databases["project"] = Database(
                directory / place.DATABASE, "project", project.name or "project"
            )
        self.databases["global"] = Database(home / place.DATABASE, "global")

    @classmethod
    def at(cls, start: Path | str, model: Provider | None = None) -> Memories:
        """Return the memories for whoever works in a directory.

        Raises:
            InvalidConfig: the settings are not as they must be.
        """
        return cls(place.home(), place.find_project(Path(start)), model)

    def close(self) -> None:
        """Close the databases; they are opened again when they are needed."""
        for each in self.databases.values():
            each.close()

    def store(
        self,
        content: str,
        tags: Sequence[str] = (),
        priority: str | None = None,
        category: str | None = None,
        source: str = "manual",
        scope: str | None = None,
        path: str | None = None,
    ) -> Stored:
        """Store a memory; what is equal but for case and white space is merged into one.

        Args:
            content: the text.
            tags: words to filter by.
            priority: one of `PRIORITIES`; NORMAL where none is given.
            category: a word for its kind.
            source: one of `SOURCES`.
            scope: `project` or `global`; the project where one is active.
            path: the file that it was imported from.

        Raises:
            InvalidInput, InvalidProject: see there; so for what the databases raise.
        """
        content = memory.check_content(content)
        database = self._database(scope)
        given = memory.check_choice("priority", priority or "NORMAL", memory.PRIORITIES)
        source = memory.check_choice("source", source, memory.SOURCES)
        category = None if category is None else memory.check_line("category", category)
        moment = memory.now()
        with database.writing() as sql:
            rows = sql.execute(
                f"SELECT {COLUMNS} FROM memories WHERE content_hash = ?",
                (memory.digest(content),),
            ).fetchall()
            if rows:
                return Stored(of_row(database.name, rows[0]), created=False)
            number = database.add(
                sql,
                (content, memory.digest(content), memory.folded(content), given, category,
                 json.dumps(memory.check_tags(tags), ensure_ascii=False),
                 database.project_id(sql), source, moment, moment, 0, None, "[]", path, None),
            )  # fmt: skip
            rows = sql.execute(f"SELECT {COLUMNS} FROM memories WHERE id = ?", (number,)).fetchall()
        return Stored(of_row(database.name, rows[0]), created=True)

    def list(self) -> Sequence[Memory]:
        """Return all memories, newest first."""
        found = []
        for database in self.databases.values():
            if database.there:
                with database.reading() as sql:
                    rows = sql.execute(f"SELECT {COLUMNS} FROM memories").fetchall()
                found += [of_row(database.name, row) for row in rows]
        return sorted(found, key=lambda each: each.created_at, reverse=True)

    def _database(self, scope: str | None) -> Database:
        if scope is None:
            return next(iter(self.databases.values()))
        scope = memory.check_choice("scope", scope, memory.SCOPES)
        if scope not in self.databases:
            raise InvalidProject("scope: is project, and no project is active here")
        return self.databases[scope]
