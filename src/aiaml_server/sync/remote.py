"""The remote repository: its address, fetch and push, and what may be in it."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

from aiaml_server.files import replace_atomic
from aiaml_server.git import Git, GitFailed
from aiaml_server.identity import is_trusted
from aiaml_server.settings import Settings, parse_remote
from aiaml_server.sync.merge import is_memory_path
from aiaml_server.sync.purge import PURGE_FILE
from aiaml_server.sync.repository import FETCHED, MAIN, ORIGIN, Repository, open_repository
from aiaml_server.sync.status import Problem, SyncError

_SET_UP = "remote"  # our note of the remote that was set up: address, user and password
CALL_SECONDS = 120.0
_TRY_SECONDS = 15.0
FIRST_CALL_SECONDS = 1800.0  # for everything that there is
_URL = re.compile(r'(?m)^\turl = "?(.*?)"?$')
# What a host's web page puts into a new repository. It stays in git and is never written to disk.
_HARMLESS = re.compile(r"\.gitignore|\.gitattributes|README(\.\w+)?|LICENSE(\.\w+)?", re.IGNORECASE)
_REJECTED = (
    "fetch first|non-fast-forward|failed to update ref|cannot lock ref|incorrect old value"
    "|failed to lock|stale info|already exists"
)
# A remote on a disk is not more trusted than one on a network: it runs nothing of its own.
_LOCAL_RECEIVE_PACK = (
    "git -c core.hooksPath=/dev/null -c core.alternateRefsCommand=true"
    " -c receive.denyCurrentBranch=refuse receive-pack"
)
_CREDENTIAL_HELPER = (
    "!f() { test \"$1\" != get || printf 'username=%s\\npassword=%s\\n'"
    ' "$AIAML_GIT_USER" "$AIAML_GIT_PASSWORD"; }; f'
)


class PushRejected(Exception):  # noqa: N818
    """Another computer has pushed first. What it pushed is to be fetched and merged."""


class Remote:
    """The remote of a repository."""

    def __init__(self, repository: Repository, address: str) -> None:
        """Let the repository have this remote.

        Args:
            repository: the repository.
            address: where the remote is; a password in it is used and not stored.
        """
        self._repository = repository
        self.address, user, password = split_login(address)
        stored, *login = _stored_remote(repository)
        if not password and stored == self.address:
            user, password = login
        _log_in(repository.git, user, password)
        if _configured_address(repository) != self.address:
            repository.git.run("config", "remote.origin.url", self.address)
            repository.point(ORIGIN, "")

    def fetch(self) -> str:
        """Fetch the branch main and return its newest commit; an empty string if there is none.

        Raises:
            GitFailed: the remote cannot be reached or read.
            SyncError: it holds something other than memories.
        """
        known = self._repository.resolve(ORIGIN)
        self.download(CALL_SECONDS if known else FIRST_CALL_SECONDS)
        fetched = self._repository.resolve(FETCHED)
        if fetched != known:
            self._check_contents(fetched)
            self._repository.point(ORIGIN, fetched)
        return fetched

    def download(self, seconds: float = CALL_SECONDS) -> None:
        """Fetch the branch main without looking at what came."""
        options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc", "origin")
        try:
            self._repository.git.run("fetch", *options, f"+{MAIN}:{FETCHED}", seconds=seconds)
        except GitFailed as error:
            if "couldn't find remote ref" not in error.output.lower():
                raise
            if branches := re.findall(r"refs/heads/(\S+)", self.list_branches()):
                raise _not_empty(f"the branch {branches[0]}") from error
            self._repository.point(FETCHED, "")

    def list_branches(self) -> str:
        """Return what git prints of the remote's branches; empty if there are none."""
        output = self._repository.git.run("ls-remote", "--heads", "origin", seconds=_TRY_SECONDS)
        return output.decode("utf-8", "replace")

    def _check_contents(self, commit: str) -> None:
        for mode, _, path in self._repository.entries(commit):
            is_file = mode in ("100644", "100755")
            is_known = is_memory_path(path) or path == PURGE_FILE or _HARMLESS.fullmatch(path)
            if not (is_file and is_known):
                raise _not_empty(repr(path))

    def push(self, commit: str, replaced: str = "") -> None:
        """Let the remote's main be a commit that holds all that is there.

        Args:
            commit: the commit.
            replaced: the remote's commit, if the history of `commit` does not hold it.

        Raises:
            PushRejected: another computer was faster.
            GitFailed: the remote cannot be reached, or refuses.
        """
        options = ["--porcelain", "--no-verify"]
        if replaced:
            options.append(f"--force-with-lease={MAIN}:{replaced}")
        if is_local(self.address):
            options.append(f"--receive-pack={_LOCAL_RECEIVE_PACK}")
        try:
            self._repository.git.run(
                "push", *options, "origin", f"{commit}:{MAIN}", seconds=FIRST_CALL_SECONDS
            )
        except GitFailed as error:
            is_late = "stale info" if replaced else _REJECTED
            if re.search(is_late, error.output):
                raise PushRejected from error
            raise
        self._repository.point(ORIGIN, commit)


def _not_empty(what: str) -> SyncError:
    sentence = f"the remote repository holds something other than memories: {what}"
    remedy = "Make an empty private repository for the memories, and use its address."
    return SyncError(Problem("not-empty", sentence, remedy))


def split_login(address: str) -> tuple[str, str, str]:
    """Split an address into one without a password, the user and the password; "" for none."""
    found = re.fullmatch(r"(\w+://)([^/@:]*):([^/@]*)@(.*)", address)
    if not found:
        return address, "", ""
    scheme, user, password, rest = found.groups()
    kept_user = f"{user}@" if scheme.lower() == "ssh://" else ""
    return f"{scheme}{kept_user}{rest}", unquote(user), unquote(password)


def _log_in(git: Git, user: str, password: str) -> None:
    """Let git use a password, if there is one, and nothing that stores it."""
    if password:
        git.variables |= {
            "AIAML_GIT_USER": user,
            "AIAML_GIT_PASSWORD": password,
            "GIT_CONFIG_COUNT": "2",
            "GIT_CONFIG_KEY_0": "credential.helper",
            "GIT_CONFIG_VALUE_0": "",
            "GIT_CONFIG_KEY_1": "credential.helper",
            "GIT_CONFIG_VALUE_1": _CREDENTIAL_HELPER,
        }


def is_local(address: str) -> bool:
    """Return whether an address is a path on this computer."""
    return address.startswith("file:") or not re.match(r"\w[\w.+-]*://|[^/\\:]{2,}:", address)


def _configured_address(repository: Repository) -> str:
    """Return the address in a repository's configuration; an empty string for none."""
    config = repository.read_note("../config")  # git would take a process for this
    found = _URL.search(config.decode("utf-8", "replace"))
    return found[1].replace('\\"', '"').replace("\\\\", "\\") if found else ""


def remote_in_use(settings: Settings) -> str:
    """Return the remote's address: that of the settings, or the one that was set up.

    A directory that came from elsewhere has none until the person trusts it.
    """
    if settings.remote:
        return settings.remote
    return _stored_remote(Repository(settings.base))[0] if is_trusted(settings.base) else ""


def _stored_remote(repository: Repository) -> list[str]:
    """Return address, user and password of the remote that was set up; "" for what it lacks.

    Where none was set up, the address is the one that a setting last named.
    """
    set_up = repository.read_note(_SET_UP).decode()
    return (set_up or f"{_configured_address(repository)}\n\n").split("\n", 2)


def try_remote(settings: Settings) -> bool:
    """Ask the remote for its branches; return whether it has any. Nothing is fetched.

    Raises:
        LockTimeout: another process is syncing.
        GitFailed: it cannot be reached.
    """
    repository = Repository(settings.base)
    address = remote_in_use(settings)
    if repository.exists:
        with repository.locked():
            return bool(Remote(repository, address).list_branches())
    git = Git(settings.base.parent)
    address, *login = split_login(address)
    _log_in(git, *login)
    return bool(git.run("ls-remote", "--heads", address, seconds=_TRY_SECONDS))


def setup_remote(base: Path, address: str) -> int:
    """Try a remote, check that it holds memories or nothing, and store it, under the lock.

    It is kept, with a password in the address, in a file for the owner alone. After a failure the
    remote is the same as before.

    Returns:
        How many memories it has.

    Raises:
        InvalidSetting: the address cannot be used.
        GitFailed: it cannot be reached.
        SyncError: it holds something other than memories.
    """
    address = parse_remote("the remote's address", address)
    repository = open_repository(base, create=True)
    before = _stored_remote(repository)[0]
    note_before = repository.read_note(_SET_UP)
    note = repository.notes / _SET_UP
    with repository.locked():
        try:
            replace_atomic(note, "\n".join(split_login(address)).encode())
            fetched = Remote(repository, address).fetch()
        except BaseException:
            replace_atomic(note, note_before)
            Remote(repository, before)
            raise
    return sum(map(is_memory_path, repository.tree(fetched)))
