"""What stays on this machine: memories with a secret, and those that a person keeps here.

A person can release one whose secret is none; that is noted in git's directory, where nothing comes
from a remote. And a person can keep one here for good, by a line in `.keep-local` (the verb writes
it) or in git's own `.gitignore` or `info/exclude`; git itself is asked what these lines say.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from aiaml_server.errors import MalformedFile
from aiaml_server.files import make_directory, read_regular, replace_atomic
from aiaml_server.format.secrets import reason_to_skip
from aiaml_server.sync.command import GitFailed
from aiaml_server.sync.forgetting.erasure import erased
from aiaml_server.sync.forgetting.rewrite import is_erased
from aiaml_server.sync.place import HIDDEN, bytes_of, directory_of, git_directories
from aiaml_server.sync.reading import Reading
from aiaml_server.sync.status import KEPT_LOCAL, Busy, Problem
from aiaml_server.sync.union import is_memory

KEEP_LOCAL = ".keep-local"
_FORGOTTEN = Problem(
    "forgotten-everywhere",
    "it was forgotten everywhere",
    "delete the file; what of it may stay, remember as a new memory, without the rest.",
)
_TAKE_OUT = (
    "take the secret out with `aiaml edit`, and the memory travels; if it is none, `aiaml sync "
    "--release ID` lets it."
)
_TAKE_OUT_OF_YOURS = (
    "nothing, if it is to stay here; or take the secret out and commit that; if it is none, `aiaml "
    "sync --release` with the file's path lets it travel."
)
_RENAME = (
    "give the file another name, and the memory travels; if that is no secret, `aiaml sync "
    "--release ID` lets it."
)
_LET_GO = "nothing, if you still want it so; take its line out of `.keep-local` to let it travel."
_TAKE_AWAY = "nothing, if you still want it so; without the line it travels."
_HEAD = "# Memories that stay on this machine, as .gitignore has them.\n"
_REMEMBERED = 200_000
_MOST = 4 * 1024 * 1024


class Untold(Busy):
    """Nobody can tell what is to stay here: something else stands where a person says it."""

    def __init__(self, path: Path, why: str) -> None:
        remedy = (
            "put the file itself in its place. Nothing is committed meanwhile, since it may name "
            "memories that are to stay on this computer."
        )
        super().__init__(f"{path} {why}", remedy)


class Guard:
    """Says of each file why it must not travel; as a person's choices were when it was made.

    Attributes:
        choices: these; what two guards say of a file is the same where they are.
    """

    def __init__(self, repository: Reading, *, secrets: bool) -> None:
        """Read the choices for the memories of a repository.

        Raises:
            Untold: those for what is kept here cannot be read.
        """
        self._secrets = secrets
        self._released = released(repository.directory)
        self._erased = erased(repository.directory)
        self._kept = _kept(repository)
        self.choices = secrets, self._released, self._erased, self._kept
        self._harmless: set[int] = set()  # hashes of what was looked into, and may travel

    def __call__(self, path: bytes, data: bytes) -> Problem | None:
        """Say why a file must not travel; None when it may."""
        if self._erased and is_erased(path, data, self._erased):
            return _FORGOTTEN
        if where := self._kept.get(path):
            remedy = _LET_GO if where == KEEP_LOCAL else _TAKE_AWAY
            return Problem(KEPT_LOCAL, f"it is kept on this machine ({where})", remedy)
        if not self._secrets or path in self._released:
            return None
        if (seen := hash((path, data))) in self._harmless:
            return None
        if reason := reason_to_skip(path.decode("utf-8", "replace"), data):
            named = _RENAME if reason.startswith("its name") else _TAKE_OUT
            return Problem("secret", reason, named if is_memory(path) else _TAKE_OUT_OF_YOURS)
        if len(self._harmless) < _REMEMBERED:
            self._harmless.add(seen)
        return None


# --- released -------------------------------------------------------------------------------------


def released(directory: Path) -> frozenset[bytes]:
    """Return the paths of the files that may travel whatever they hold."""
    return frozenset(bytes_of(directory / "aiaml" / "released", _MOST).split(b"\0"))


def release(base: Path, paths: Iterable[str]) -> None:
    """Let these files travel, in this version and all later ones; paths are as git has them."""
    notes = directory_of(base) / "aiaml"
    make_directory(notes)
    text = bytes_of(notes / "released", _MOST)
    text += b"".join(os.fsencode(path) + b"\0" for path in paths)
    replace_atomic(notes / "released", text, 0o600)


# --- kept here ------------------------------------------------------------------------------------


def keep_local(base: Path, name: str) -> None:
    """Keep the memory in a file on this machine, in all later versions.

    Raises:
        Untold: it cannot be read which are kept already.
    """
    lines = _rules(base / KEEP_LOCAL).decode("utf-8", "surrogateescape") or _HEAD
    if _line(name) not in lines.splitlines():
        _write(base, f"{lines.rstrip()}\n{_line(name)}\n")


def let_go(base: Path, name: str) -> bool:
    """Undo that; return whether there was something to undo.

    Raises:
        Untold: it cannot be read which are kept.
    """
    lines = _rules(base / KEEP_LOCAL).decode("utf-8", "surrogateescape").splitlines(keepends=True)
    left = [line for line in lines if line.rstrip("\r\n") != _line(name)]
    if left != lines:
        _write(base, "".join(left))
    return left != lines


def _line(name: str) -> str:
    """Return the line that names one file, as gitignore(5) wants it: nothing in it is a pattern."""
    return "/files/" + "".join(f"\\{each}" if each in "\\*?[ " else each for each in name)


def _write(base: Path, text: str) -> None:
    replace_atomic(base / KEEP_LOCAL, text.encode("utf-8", "surrogateescape"), 0o600)


def _kept(repository: Reading) -> dict[bytes, str]:
    """Return which files a line names, with where it stands."""
    base = repository.base
    _, common = git_directories(base / ".git")
    excluded = _rules(common / "info" / "exclude").replace(HIDDEN, b"#\n")  # a line of ours
    rules = {
        "info/exclude": excluded,
        KEEP_LOCAL: _rules(base / KEEP_LOCAL),
        "tree/.gitignore": _rules(base / ".gitignore"),
        "tree/files/.gitignore": _rules(base / "files" / ".gitignore"),
    }
    if not any(map(_may_name_memories, rules.values())):
        return {}
    names: list[bytes] = []
    with suppress(OSError):
        paths = (base / "files").iterdir()
        names = sorted(b"files/" + os.fsencode(each.name) for each in paths)
    exact = {
        _line(os.fsdecode(name)[6:]).encode("utf-8", "surrogateescape"): name for name in names
    }
    lines = rules[KEEP_LOCAL].splitlines()
    kept = {exact[line]: KEEP_LOCAL for line in lines if line in exact}
    return _ignored(rules, repository, names) | kept


def _ignored(
    rules: Mapping[str, bytes], repository: Reading, names: list[bytes]
) -> dict[bytes, str]:
    """Ask git which files it would ignore, were none of them in it.

    It is asked in a repository that has nothing but these rules: ours has no work tree, and `files`
    may be a link, through which git does not look.
    """
    from tempfile import TemporaryDirectory  # noqa: PLC0415 (only where there are such lines)

    with TemporaryDirectory(prefix="aiaml-rules-") as name:
        place = Path(name)
        config = str(repository.directory / "config").replace("\\", "/").replace('"', '\\"')
        head, config = b"ref: refs/heads/main\n", f'[include]\n\tpath = "{config}"\n'
        for path, text in {**rules, "HEAD": head, "config": os.fsencode(config)}.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_bytes(text)
        for directory in ("objects", "refs"):
            (place / directory).mkdir()
        options = ("-c", f"core.excludesFile={place / KEEP_LOCAL}")
        words = ("--no-index", "--verbose", "-z", "--stdin")
        variables = {"GIT_DIR": name, "GIT_WORK_TREE": str(place / "tree")}
        variables["GIT_LITERAL_PATHSPECS"] = "0"
        asked = b"\0".join((*names, b""))
        try:
            output = repository.git.run(
                "check-ignore", *words, stdin=asked, variables=variables, options=options
            )
        except GitFailed as error:
            if error.output:
                raise
            return {}  # none
    fields = iter(output.split(b"\0"))
    return {
        path: f"{Path(os.fsdecode(source)).name}, line {line.decode()}"
        for source, line, pattern, path in zip(fields, fields, fields, fields, strict=False)
        if not pattern.startswith(b"!")
    }


def _may_name_memories(text: bytes) -> bool:
    """Whether there is a line that is no comment, and not for names with a dot before them."""
    lines = (line.strip() for line in text.splitlines())
    return any(line and line[:1] not in (b"#", b".") for line in lines)


def _rules(path: Path) -> bytes:
    """Return lines that say what is to stay here; none where there is no file.

    Raises:
        Untold: they cannot be read.
    """
    try:
        return read_regular(str(path), _MOST)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except MalformedFile as error:
        raise Untold(path, str(error).removeprefix("it ")) from error
    except OSError as error:
        raise Untold(path, f"cannot be read ({error.strerror})") from error
