"""Which files are not committed, and why: secrets, the person's exclusions, invalid files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from aiaml_server.errors import MalformedFile
from aiaml_server.files import read_regular
from aiaml_server.format.memory import parse
from aiaml_server.format.secrets import reason_to_skip
from aiaml_server.git import Git, GitFailed
from aiaml_server.sync.merge import is_memory_path
from aiaml_server.sync.purge import is_purged
from aiaml_server.sync.repository import Repository, open_repository
from aiaml_server.sync.status import KEPT_LOCAL, Problem, SyncError

KEEP_LOCAL = ".keep-local"
_RELEASED = "released"
NEVER_SENT = ("secret", KEPT_LOCAL, "forgotten-everywhere")
"""The kinds of reasons for which unsent commits are made anew."""
_MAX_BYTES = 4 * 1024 * 1024
_FORGOTTEN = Problem(
    "forgotten-everywhere",
    "it was forgotten everywhere",
    "Delete the file. What may stay of it can be remembered as a new memory.",
)
_EXCLUDED = Problem(
    KEPT_LOCAL,
    "you keep it on this computer",
    f"Nothing, if that is still right. Otherwise take its line out of {KEEP_LOCAL}.",
)
_TAKE_OUT = "Remove it with `aiaml edit {0}`. If it is not a secret: `aiaml sync --release {0}`."
_CORRECT = "Correct the file in an editor, or move it away."


class SkipRules:
    """Say of each file why it must not be committed, as the person's choices were when made."""

    def __init__(
        self, repository: Repository, purged: frozenset[str], *, check_secrets: bool
    ) -> None:
        self._repository = repository
        self._purged = purged
        self._check_secrets = check_secrets
        self._released = repository.read_paths(_RELEASED)
        self._has_exclusions = _has_exclusions(repository.base)
        self._excluded: dict[str, bool] = {}

    def prepare(self, paths: Iterable[str]) -> None:
        """Ask git once which of these paths are excluded."""
        unknown = [path for path in paths if path not in self._excluded]
        if not (self._has_exclusions and unknown):
            return
        repository = self._repository
        variables = {
            "GIT_DIR": str(repository.directory),
            "GIT_WORK_TREE": str(repository.notes),  # an empty one
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "core.excludesFile",
            "GIT_CONFIG_VALUE_0": str(repository.base / KEEP_LOCAL),
        }
        text = os.fsencode("\0".join(unknown))
        found = []
        try:
            output = Git(repository.notes, variables).run(
                "check-ignore", "--no-index", "-z", "--stdin", stdin=text
            )
            found = os.fsdecode(output).split("\0")
        except GitFailed as error:
            if error.exit_code != 1:  # which means that none is excluded
                raise
        self._excluded |= {path: path in found for path in unknown}

    def reason(self, path: str, name: str, data: bytes) -> Problem | None:
        """Return why a file must not be committed; None if it may.

        Args:
            path: its path in the repository.
            name: the object name of its content.
            data: its content.
        """
        if is_purged(self._purged, path) or is_purged(self._purged, name):
            return _FORGOTTEN
        self.prepare([path])
        if self._excluded.get(path):
            return _EXCLUDED
        if not is_memory_path(path):
            return None
        try:
            memory = parse(data.decode("utf-8"))
        except (MalformedFile, UnicodeDecodeError) as error:
            return Problem("invalid", f"it is not a valid memory: {error}", _CORRECT)
        is_checked = self._check_secrets and path not in self._released
        if is_checked and (secret := reason_to_skip(path, data)):
            return Problem("secret", secret, _TAKE_OUT.format(memory.id))
        return None


def _has_exclusions(base: Path) -> bool:
    """Return whether `.keep-local` has rules.

    Raises:
        SyncError: it cannot be read, so nobody can say what must stay here.
    """
    try:
        return bool(read_regular(str(base / KEEP_LOCAL), _MAX_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, MalformedFile) as error:
        sentence = f"{base / KEEP_LOCAL} cannot be read: {error}"
        remedy = "Put the file back. Nothing is committed meanwhile, as it may name memories."
        raise SyncError(Problem("unreadable", sentence, remedy)) from error


def release_secret(base: Path, names: Sequence[str]) -> None:
    """Let memory files be committed although they look as if they held a secret."""
    open_repository(base, create=True).append_paths(_RELEASED, names)
