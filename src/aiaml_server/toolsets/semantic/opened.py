"""What `Memories` stands on: the databases of a person and of a project, and what is in them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiaml_server.toolset import replace_surrogates
from aiaml_server.toolsets.semantic import config, logs, memory, place
from aiaml_server.toolsets.semantic.config import Config
from aiaml_server.toolsets.semantic.database import LAST, Database, rows
from aiaml_server.toolsets.semantic.failures import (
    Busy,
    Damaged,
    DiskError,
    InvalidInput,
    InvalidProject,
    NotFound,
    Refused,
)
from aiaml_server.toolsets.semantic.filters import Filters
from aiaml_server.toolsets.semantic.memory import COLUMNS, Memory, of_row

if TYPE_CHECKING:
    import apsw

SELECT = f"SELECT {COLUMNS} FROM memories"
_WIDTH = len(Memory.__dataclass_fields__)
_NAMED = 5  # damaged memories that a warning and the log name
_MOST_DAMAGED = 10_000  # that are passed over at once, in 0.3 s


class Opened:
    """The databases of whoever works here, and the memories in them by their ids."""

    def __init__(self, home: Path, project: Path | None, settings: Config | None) -> None:
        """Take the places; nothing is opened or made.

        Args:
            home: the person's directory, `~/.memory`.
            project: the project's top directory; None for none.
            settings: else they are read from `config.json`.

        Raises:
            InvalidConfig: the settings are not as they must be.
            InvalidProject: the project is the home directory, or has a name that is no text.
        """
        self.home, self.project = home, project
        self.config = config.load(home) if settings is None else settings
        self.compares = False  # whether there is a model, which vectors are missed for
        self.databases: dict[str, Database] = {}
        for path in filter(None, (home, project)):
            if replace_surrogates(os.fspath(path)) != os.fspath(path):
                raise InvalidProject(f"{path} is no text in UTF-8, and SQLite opens no such path")
        if project is not None:
            directory = project / place.NAME
            if os.path.realpath(directory) == os.path.realpath(home):
                raise InvalidProject(f"{project} is the home directory, which is no project")
            self.databases["project"] = Database(
                directory / place.DATABASE, "project", project.name or "project"
            )
        self.databases["global"] = Database(home / place.DATABASE, "global")

    def close(self) -> None:
        """Close the databases; another call opens them."""
        for each in self.databases.values():
            each.close()

    def database(self, scope: str | None) -> Database:
        """Return the database for what is new."""
        if scope is None:
            return next(iter(self.databases.values()))
        scope = memory.check_choice("scope", scope, memory.SCOPES)
        if scope not in self.databases:
            raise InvalidProject("scope: is project, and no project is active here")
        return self.databases[scope]

    def at(self, memory_id: str, field: str = "memory_id") -> tuple[Database, int]:
        """Return the database and the number that an id names."""
        scope, _, number = memory_id.strip().partition(":")
        database = self.databases.get(scope)
        is_number = number.isascii() and number.isdigit() and len(number) < 20
        if scope not in memory.SCOPES or not is_number or int(number) > LAST:
            raise InvalidInput(
                f"{field}: must be an id such as project:12 or global:12",
                NotFound.suggestion,
            )
        if database is None:
            raise InvalidProject(f"{field}: {scope}:{number} is a project's, and none is active")
        return database, int(number)

    def held(self, database: Database, number: int, memory_id: str) -> Memory:
        """Return a memory, opening its database."""
        if not database.there:
            raise NotFound(f"there is no memory {memory_id.strip()}")
        with database.reading() as sql:
            return self.row(sql, database, number)

    def row(self, sql: apsw.Connection, database: Database, number: int) -> Memory:
        """Return a memory by its number, from a connection that is open."""
        found = rows(sql, f"{SELECT} WHERE id = ?", (number,))
        if not found:
            raise NotFound(f"there is no memory {database.name}:{number}")
        try:
            return of_row(database.name, found[0])
        except Damaged as error:
            forget = f"`aiaml semantic forget {database.name}:{number}` takes it away for good."
            raise Damaged(str(error), forget) from error

    def first(
        self,
        sql: apsw.Connection,
        database: Database,
        question: str,
        values: dict[str, Any],
        most: int,
        warnings: list[str],
        besides: str = "NULL",
    ) -> Iterator[tuple[Memory, Sequence[Any]]]:
        """Yield the first memories of a question that are whole, as `whole` does.

        Args:
            sql: the database's connection.
            database: which.
            question: a statement that gives their numbers in an order, without a limit.
            values: of its parameters.
            most: how many.
            warnings: where it is said what was left out.
            besides: expressions for the rest of each row.

        Raises:
            Damaged: more are left out than anybody's accident makes.
        """
        row = f"SELECT {COLUMNS}, {besides} FROM memories WHERE id = ?"

        def every() -> Iterator[Sequence[Any]]:
            seen, step = 0, most
            while True:
                numbers = rows(sql, f"{question} LIMIT {step} OFFSET {seen}", values)
                for number in numbers:
                    yield from rows(sql, row, number)
                if len(numbers) < step:
                    return
                seen += step
                step = seen

        return self.whole(database, every(), warnings, most)

    def whole(
        self,
        database: Database,
        found: Iterable[Sequence[Any]],
        warnings: list[str],
        most: int | None = None,
    ) -> Iterator[tuple[Memory, Sequence[Any]]]:
        """Yield the memories of rows that begin with `COLUMNS`, each with the rest of its row.

        One that is damaged is left out and counted in a warning; the first are named there and in
        the log. After `most` no row is looked at.
        """
        damaged: list[str] = []
        count = 0
        for row in found:
            try:
                held = of_row(database.name, row[:_WIDTH])
            except Damaged as error:
                damaged.append(f"{database.name}:{row[0]}")
                if len(damaged) <= _NAMED:
                    logs.record(self.home, f"read {damaged[-1]}", error)
                elif len(damaged) > _MOST_DAMAGED:
                    many = f"more than {_MOST_DAMAGED:,} of its memories are"
                    raise Damaged(f"{database.path} is damaged: {many}") from error
            else:
                yield held, row[_WIDTH:]
                count += 1
                if count == most:
                    break
        if damaged:
            more = len(damaged) - _NAMED
            named = ", ".join(damaged[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
            warnings.append(f"without {named}: damaged; `aiaml semantic doctor` says more")

    def there(self) -> list[Database]:
        """Return the databases that have a file."""
        return [each for each in self.databases.values() if each.there]

    def readable(self, filters: Filters, warnings: list[str]) -> Iterator[Database]:
        """Yield the databases that can be read; warn of one that cannot, unless it is the only."""
        meant = [each for each in self.there() if filters.meant(each.name)]
        failed: list[Refused] = []
        for database in meant:
            try:
                with database.reading():
                    pass
            except (Busy, Damaged, DiskError) as error:
                failed.append(error)
                logs.record(self.home, f"open_{database.name}", error)
                warnings.append(f"without the {database.name} memories: {error}")
            else:
                if database.problem and self.compares:
                    warnings.append(f"words only: {database.problem}")
                yield database
        if failed and len(failed) == len(meant):
            raise failed[0]

    @contextmanager
    def reading(
        self, database: Database, filters: Filters | None, warnings: list[str]
    ) -> Iterator[apsw.Connection]:
        """Hold a readable database open; warn of damage found on the way.

        Raises:
            Damaged: it is, and the only one that `filters` mean; never without any.
        """
        try:
            with database.reading() as sql:
                yield sql
        except Damaged as error:
            if filters and [each for each in self.there() if filters.meant(each.name)] == [
                database
            ]:
                raise
            logs.record(self.home, f"read_{database.name}", error)
            warnings.append(f"without the {database.name} memories: {error}")
