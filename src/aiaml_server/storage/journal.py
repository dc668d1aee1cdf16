"""The files that SQLite opens beside a database: whether it may.

SQLite rolls back what an interrupted transaction has left in `NAME-journal` before anything else is
read. A journal may end with the name of a super-journal, that of a transaction over several
databases, and many versions then delete the file of that name, wherever it is: 3.40.1 and 3.53.0
do, 3.54.0 does not (tried in November 2026; pager.c, `pager_delsuper`). Nothing here attaches a
database to another, so no journal of ours ends so.
"""

from __future__ import annotations

import os
from io import FileIO
from pathlib import Path

from aiaml_server.errors import UnsafePath
from aiaml_server.files import check_own, open_own

BESIDE = ("-journal", "-wal", "-shm")
"""What is put behind a database's name."""
_SUPER = bytes.fromhex("d9d505f920a163d7")
"""The last eight bytes of a journal that names a super-journal: those that a journal begins with.

https://www.sqlite.org/fileformat2.html#the_rollback_journal and pager.c, `readSuperJournal`.
"""
_SHORTEST = 16  # bytes; SQLite looks for no name in less


def check_beside(database: Path) -> None:
    """See that what lies beside a database are files of ours that harm no others.

    Raises:
        NotOurs: one is a link, a pipe or another user's, or a journal that names another file.
        OSError: that cannot be found out.
    """
    for suffix in BESIDE:
        path = database.with_name(database.name + suffix)
        if check_own(path) and suffix == "-journal" and _ending(path) == _SUPER:
            raise UnsafePath(path, "a journal that names another file, which SQLite could delete")


def _ending(path: Path) -> bytes:
    """Return the last bytes of a journal; none of one that is too short to name another.

    Another process may begin it between two steps here, and it begins with the same bytes.
    """
    with FileIO(open_own(path, os.O_RDONLY)) as journal:
        size = journal.seek(0, os.SEEK_END)
        if size < _SHORTEST:
            return b""
        journal.seek(size - len(_SUPER))
        return journal.read(len(_SUPER))
