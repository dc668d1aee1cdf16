"""The other end: asked for what it has, and given what it lacks.

It is spoken to from a small bare repository of our own inside `.git`, which shares the objects.
So nothing that the base directory's repository has configured (it may come from elsewhere: an ssh
command, a credential helper, another address) takes effect, nothing of it is changed, and the
address with the password that it may hold is in one private file and on no command line of ours.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from aiaml_server.files import check_own, make_own_directory, read_own, replace_atomic
from aiaml_server.sync.address import path_of, remember, section
from aiaml_server.sync.command import Git, GitFailed, dying_with_us, ssh_command
from aiaml_server.sync.pace import CALL_SECONDS, Pace
from aiaml_server.sync.problem import problem_of
from aiaml_server.sync.reading import MAIN, name_of
from aiaml_server.sync.repository import REMOTE, Repository
from aiaml_server.sync.trees import check_size

_FIRST = 10.0  # times as long, for all that there is
_HELPER_SECONDS = 7.0  # for a credential helper at first; more after each failure, like the call


class Remote:
    """The remote at `url`, as seen from `repository`.

    Attributes:
        was_another: whether the one before it had another address.
    """

    def __init__(
        self,
        repository: Repository,
        url: str,
        meanwhile: Callable[[], object],
        pace: Pace,
    ) -> None:
        self._repository = repository
        self._url = os.path.expanduser(url) if url.startswith("~") else url  # noqa: PTH111
        self._meanwhile = meanwhile
        self.git = Git(repository.base)
        self.git.secrets = _credentials(self._url)
        self.git.prefix = dying_with_us()
        self._receiving: list[str] = []  # options of a push
        self._pace = pace
        self.was_another = False

    def prepare(self) -> None:
        """Set up the repository of our own."""
        directory = self._repository.directory / "aiaml"
        for each in (directory.parent, directory, directory / "refs", directory / "objects"):
            make_own_directory(each)
        sha256 = len(self._repository.head()) > 40
        address, who = _apart(self._url)
        config = (_SHA256 if sha256 else _SHA1) + _CHECKED + section(address, f"+{MAIN}:{REMOTE}")
        if who:
            self.git.variables |= {_USER: who[0], _PASSWORD: who[1]}
            config += _HELPER
        _have(directory / "config", config)
        was_another = _have(directory / "remote", section(self._url))
        remember(self._repository.base, self._url)
        _have(directory / "HEAD", f"ref: {MAIN}\n")
        variables = self.git.variables
        if variables.get("GIT_DIR") == str(directory):
            return
        variables["GIT_DIR"] = variables["GIT_COMMON_DIR"] = str(directory)
        variables["GIT_OBJECT_DIRECTORY"] = str(self._repository.directory / "objects")
        if was_another and self._known():  # what was seen at another address
            self.git.run("update-ref", "-d", REMOTE)
            self._repository.git.run("update-ref", "-d", REMOTE)
            self.was_another = True
        persons = self._repository.configured("system", "global")
        configured = variables.get("GIT_SSH_COMMAND") or persons.get("core.sshcommand", "")
        if configured or "GIT_SSH" not in variables:
            variables["GIT_SSH_COMMAND"] = ssh_command(configured)
        self._receiving = self._receive_pack() if persons.get("core.hookspath") else []

    def fetch(self) -> tuple[str, bool]:
        """Return the commit that the remote has, once it is here too, and whether it is on main.

        Where there is no main yet, it is that of the remote's own default branch. Empty where there
        is none.

        Raises:
            GitFailed: it cannot be reached.
        """
        known = self._known()
        if known:  # main is fetched without asking first what there is: one connection
            try:
                self._fetch(MAIN, self._pace.call)
            except GitFailed as error:
                if "couldn't find remote ref" not in error.output:
                    raise
            else:
                if theirs := self._known():
                    self._check(theirs, known)
                    return theirs, True
        refs = self.refs()
        branch = joined_branch(refs)
        if not branch:
            return "", False
        theirs = refs[branch]
        if theirs != known:
            self._fetch(branch, self._pace.call * (1.0 if known else _FIRST))
            theirs = self._known()
            self._check(theirs, known)
        return theirs, branch == MAIN

    def _check(self, theirs: str, known: str) -> None:
        """See that what was fetched can be looked through, or forget it."""
        if theirs in ("", known):
            return
        try:
            check_size(self.git, theirs)
        except GitFailed:
            self.git.run("update-ref", "-d", REMOTE)
            raise

    def record(self) -> None:
        """Have the repository know what the remote was last seen to have."""
        theirs = self._known()
        if theirs and theirs != self._repository.name_of(REMOTE):
            self._repository.git.run("update-ref", REMOTE, theirs)

    def _fetch(self, branch: str, seconds: float) -> None:
        words = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head")
        self._call("fetch", *words, "origin", f"+{branch}:{REMOTE}", seconds=seconds)

    def push(self, commit: str, instead_of: str = "") -> None:
        """Make the remote's main the given commit, if that holds all that is there.

        What is too large for a web server's limit goes in pieces, which end with a commit each.

        Args:
            commit: what it is to be.
            instead_of: what it must be for that, where its history is not that of `commit`.

        Raises:
            GitFailed: it cannot be reached, or refuses.
        """
        try:
            words = ["--porcelain", "--no-verify", "--recurse-submodules=no", *self._receiving]
            if instead_of:
                words.append(f"--force-with-lease={MAIN}:{instead_of}")
            self._call("push", *words, "origin", f"{commit}:{MAIN}")
        except GitFailed as error:
            commits = self._commits_up_to(commit, instead_of)
            if problem_of(error).kind != "too-large" or len(commits) < 2:
                raise
            middle = len(commits) // 2
            self.push(commits[middle - 1], instead_of)
            self.push(commit)

    def _commits_up_to(self, commit: str, instead_of: str) -> list[str]:
        """Return the commits that lead from what the remote has to this one."""
        known = "" if instead_of else self._known()
        words = ("--ancestry-path", f"^{known}") if known else ()
        found = self._repository.git.run("rev-list", "--reverse", "--first-parent", *words, commit)
        return found.decode().split()

    def _receive_pack(self) -> list[str]:
        """Say how a remote on this machine is to receive: by its own hooks, not the person's.

        git does not let our options reach the git at the other end, so that one would run what the
        person's `core.hooksPath` names.
        """
        try:
            address = self.git.run("ls-remote", "--get-url", "origin").decode().strip()
        except GitFailed:
            return []
        here = Path(address).is_absolute() or address.startswith("file:") or ":" not in address
        # It is relative to the remote repository, where hooks of a push are run.
        return [f"--receive-pack={_RECEIVE_PACK}"] if here else []

    def refs(self) -> dict[str, str]:
        """Return the branches that the remote has, and as "ref: HEAD" the name of its default.

        Nothing is fetched.

        Raises:
            GitFailed: it cannot be reached.
        """
        lines = self._call("ls-remote", "--symref", "origin", "HEAD", "refs/heads/*").decode()
        refs = {}
        for value, name in (line.split("\t") for line in lines.splitlines() if "\t" in line):
            if value.startswith("ref: "):
                refs["ref: HEAD"] = value.removeprefix("ref: ")
            else:
                refs[name] = value
        return refs

    def look(self, branch: str, seconds: float) -> tuple[list[bytes], str, int]:
        """Return the paths in a branch; by whom its newest commit is; and when that was made.

        That is in seconds since 1970. Nothing of files is fetched where the other end can do so.

        Raises:
            GitFailed: it cannot be reached, or looked into.
        """
        words = ("--quiet", "--no-tags", "--depth=1", "--filter=blob:none")
        self._call("fetch", *words, "origin", f"+{branch}:{REMOTE}", seconds=seconds)
        check_size(self.git, REMOTE)
        listed = self.git.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", REMOTE)
        said = os.fsdecode(self.git.run("log", "-1", "--format=%ct %an", REMOTE, "--"))
        time_, _, author = said.strip().partition(" ")
        return listed.split(b"\0")[:-1], author, int(time_)

    def make(self) -> None:
        """Have the other computer make a bare repository where it has nothing, by ssh.

        Raises:
            GitFailed: it does not run what we say (a host like GitHub), or there is something else.
        """
        self._call("ls-remote", f"--upload-pack={_MADE_FIRST}", "origin")

    def _known(self) -> str:
        place = self._repository.directory / "aiaml"
        try:
            return name_of(self.git, place, REMOTE)
        except GitFailed:
            return ""

    def _call(self, verb: str, *words: str, seconds: float = 0.0) -> bytes:
        trace = self._repository.directory / "aiaml" / "trace"
        web = self._url.lower().startswith(("http:", "https:"))
        patience = _HELPER_SECONDS * self._pace.call / CALL_SECONDS
        started = time.monotonic()

        def meanwhile() -> None:
            if web and time.monotonic() - started > patience and _helper_waits(trace):
                raise GitFailed(verb, f"the credential helper did not answer for {patience:g} s")
            self._meanwhile()

        trace.unlink(missing_ok=True)
        try:
            return self.git.run(
                verb,
                *words,
                seconds=seconds or self._pace.call,
                meanwhile=meanwhile,
                variables={"GIT_TRACE2_EVENT": str(trace)} if web else {},
            )
        except GitFailed as error:
            path = path_of(self._url, self._repository.base)
            with suppress(OSError):
                if path and not path.exists():
                    raise GitFailed(verb, f"fatal: nothing is at {path}") from error
            raise
        finally:
            with suppress(OSError):
                trace.unlink(missing_ok=True)


def joined_branch(refs: Mapping[str, str]) -> str:
    """Return the branch that ours is joined with, by what `Remote.refs` says; empty for none."""
    branch = MAIN if MAIN in refs else refs.get("ref: HEAD", "")
    return branch if branch in refs else ""


def _helper_waits(trace: Path) -> bool:
    """Whether a credential helper was started and has not ended, by what git notes meanwhile.

    A helper is started by a shell, with what it is asked as the last word (gitcredentials(7)).
    """
    running = set()
    with suppress(OSError, ValueError, LookupError, TypeError):
        for line in trace.read_text("utf-8", "replace").splitlines():
            event = json.loads(line)
            child = event["sid"], event.get("child_id")
            if event["event"] == "child_start" and event["argv"][-1].endswith(" get"):
                running.add(child)
            elif event["event"] == "child_exit":
                running.discard(child)
    return bool(running)


def _credentials(url: str) -> list[str]:
    """Return what of an address must not be shown (see `without_password`), the longest first."""
    scheme, _, rest = url.partition("://") if "://" in url else ("", "", url)
    who, _, place = rest.rpartition("@")
    if ":" not in who and scheme.lower() in ("ssh", ""):
        who = ""
    query = re.search(r"[?#](.+)", place) if scheme else None
    password = who.partition(":")[2]
    found = {who, password, unquote(password), query[1] if query else ""}
    return sorted(filter(None, found), key=len, reverse=True)


# What git has the other computer run, in whatever shell that has; git puts the path behind it. What
# is made there is for its owner alone, also what is pushed later, whatever the umask.
_MADE_FIRST = """\
sh -c 'there=${1#"~/"}; test -e "$there" || (umask 077; git init --quiet --bare --shared=0600 \
--initial-branch=main "$there" >&2); exec git-upload-pack "$1"' sh"""
_RECEIVE_PACK = "git -c core.hooksPath=hooks receive-pack"


def _apart(url: str) -> tuple[str, tuple[str, str] | None]:
    """Return an address as git may be told on a command line, and the user and password in it.

    git gives a web address to a program of its own as a word of a command line, which everybody on
    the machine can read. ssh and git's own protocol have no use for a password.
    """
    scheme, slashes, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    who, _, host = authority.rpartition("@")
    user, colon, password = who.partition(":")
    if not colon or scheme.lower() not in ("http", "https", "ssh", "git"):
        return url, None
    if scheme.lower() in ("ssh", "git"):
        user = f"{user}@" if scheme.lower() == "ssh" else ""
        return f"{scheme}{slashes}{user}{host}{slash}{path}", None
    return f"{scheme}{slashes}{host}{slash}{path}", (unquote(user), unquote(password))


_USER, _PASSWORD = "AIAML_REMOTE_USER", "AIAML_REMOTE_PASSWORD"
# The first line leaves out the person's own helpers, which are neither asked nor told.
_HELPER = f"""\
[credential]
	helper =
	helper = "!f() {{ test \\"$1\\" != get || printf 'username=%s\\\\npassword=%s\\\\n' \
\\"${_USER}\\" \\"${_PASSWORD}\\"; }}; f"
"""
# Objects are checked before they are taken in. What harms nobody is let be, or one old commit with
# an odd date would keep a whole remote away; and nothing but memories is ever checked out.
_HARMLESS = (
    "badDate badDateOverflow badEmail badFilemode badName badTagName badTimezone extraHeaderEntry "
    "missingEmail missingNameBeforeEmail missingSpaceBeforeDate missingSpaceBeforeEmail "
    "missingTaggerEntry multipleAuthors nulInCommit zeroPaddedDate zeroPaddedFilemode "
    "gitmodulesBlob gitmodulesLarge gitmodulesMissing gitmodulesName gitmodulesParse "
    "gitmodulesPath gitmodulesSymlink gitmodulesUpdate gitmodulesUrl gitattributesBlob "
    "gitattributesLarge gitattributesLineLength gitattributesMissing gitattributesSymlink "
    "gitignoreSymlink mailmapSymlink symlinkTargetBlob symlinkTargetLength symlinkTargetMissing"
)
_CHECKED = '[fetch]\n\tfsckObjects = true\n[fetch "fsck"]\n' + "".join(
    f"\t{kind} = ignore\n" for kind in _HARMLESS.split()
)
_SHA1 = """\
[core]
	repositoryformatversion = 0
	bare = true
"""
_SHA256 = _SHA1.replace("= 0", "= 1") + "[extensions]\n\tobjectformat = sha256\n"


_MOST = 1024 * 1024  # bytes of a file of this repository


def _have(path: Path, text: str) -> bool:
    """Have a file with this text, for the owner alone; say whether it had another."""
    data = text.encode()
    before = read_own(path, _MOST) if check_own(path) else b""
    if before != data:
        replace_atomic(path, data, 0o600)
    return before not in (b"", data)
