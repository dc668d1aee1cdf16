"""Running git, in processes that cannot prompt, hang, stray or outlive us.

GitPython starts them, through the `execute` of its `Git`. Four things that it does by itself are
kept from it here: its process object kills what it runs as soon as nobody holds it; it hands on all
variables of our own environment; its timeouts do not work on Windows and leave what git started;
and its `Repo` reads, and runs, what a repository has configured, so that there is none.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from aiaml_server.errors import AiamlError, GitMissing
from aiaml_server.storage import programs

if TYPE_CHECKING:
    from git.cmd import Git as Launcher

REMOTE_VERBS = ("ls-remote", "fetch", "push")  # what alone may talk to another repository
LOCAL_SECONDS = 300.0  # no command that stays on this machine takes longer
_MEANWHILE_SECONDS = 2.0
_MOST_AT_ONCE = 128  # MB that git may take, as for a message or a listing

# What a person or a repository may have configured must neither run anything nor change a byte.
_OPTIONS = {
    "init.defaultBranch": "main",
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.safecrlf": "false",
    "core.bigFileThreshold": "16m",  # from which on files are not held in memory as a whole
    "core.logAllRefUpdates": "true",
    "diff.orderFile": os.devnull,
    "commit.gpgSign": "false",
    "push.gpgSign": "false",
    "log.showSignature": "false",
    "gpg.program": "false",  # the program of this name, which does nothing
    "gpg.openpgp.program": "false",
    "gpg.x509.program": "false",
    "gpg.ssh.program": "false",
    "mailmap.file": os.devnull,
    "mailmap.blob": "",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "fastimport.unpackLimit": "1",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "http.lowSpeedLimit": "1",
    "http.lowSpeedTime": "30",
}

# With a person's umask, for a remote on a disk that others share: what is made here is private even
# so, and git takes none of its settings to another repository (`local_repo_env` in environment.c).
_PRIVATE = ("-c", "core.sharedRepository=0600")

# Of the variables that steer git, those by which a person says how to reach a remote and who they
# are. The others (GIT_DIR, GIT_INDEX_FILE, GIT_CONFIG_COUNT …) would lead us elsewhere.
_KEPT = re.compile(
    r"GIT_(SSH(_COMMAND|_VARIANT)?|SSL_\w+|HTTP_\w+|PROXY_\w+|EXEC_PATH"
    r"|CONFIG_(GLOBAL|SYSTEM|NOSYSTEM)|(AUTHOR|COMMITTER)_(NAME|EMAIL))"
)

# Also when it comes from a person's `url.*.insteadOf`, or git cuts the address in another place.
_WEB_USER = re.compile(r"(https?://)[^\s/'\"]+@", re.IGNORECASE)

_NEVER_ASK = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "aiaml-does-not-ask",  # no such program: what would be asked for is missing
    "SSH_ASKPASS": "aiaml-does-not-ask",
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file",  # also after url.*.insteadOf
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOC_LIMIT": f"{_MOST_AT_ONCE}m",  # see `memory_limit_check` in its wrapper.c
    "LC_ALL": "C",
    "LANGUAGE": "C",
}


class GitFailed(AiamlError):  # noqa: N818
    """A git command failed.

    Attributes:
        verb: the command, such as "fetch".
        output: what it said.
    """

    def __init__(self, verb: str, output: str) -> None:
        self.verb = verb
        self.output = output.strip()
        super().__init__(f"git {verb}: {self.output or 'it failed without a word'}")


class Git:
    """git in the directory `base`.

    Attributes:
        variables: the environment that it runs in.
        secrets: what is blotted out of whatever it says.
        prefix: a program, and its options, that runs it; empty for none.
    """

    def __init__(self, base: Path) -> None:
        self._base = base
        inherited = {name: each for name, each in os.environ.items() if not _leads_astray(name)}
        self.variables = {**inherited, **programs.variables(), **_NEVER_ASK}
        self.secrets: list[str] = []
        self.prefix: list[str] = []
        self._lock = threading.Lock()
        self._running: set[Launcher.AutoInterrupt] = set()
        self._ended = False

    def run(
        self,
        verb: str,
        *words: str,
        stdin: bytes | None = None,
        seconds: float = LOCAL_SECONDS,
        variables: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        meanwhile: Callable[[], object] | None = None,
    ) -> bytes:
        """Run one command and return what it printed.

        Args:
            verb: the command, such as "fetch".
            words: its arguments, all made by us.
            stdin: what it reads.
            seconds: after which it is killed with all that it started.
            variables: more of them, or other values.
            options: git's own, before the verb.
            meanwhile: called every two seconds while it runs.

        Raises:
            GitMissing: there is no git.
            GitFailed: it failed, or took too long.
        """
        fixed = [word for pair in _OPTIONS.items() for word in ("-c", "=".join(pair))]
        private = verb != "push"
        if not private:
            fixed.extend(_PRIVATE)
        # What is missing in a partial clone would be fetched, by a program that its configuration
        # names; `GIT_NO_LAZY_FETCH` is known to git 2.45 and the last of each version since 2.39.
        protocols = {} if verb in REMOTE_VERBS else {"GIT_ALLOW_PROTOCOL": ""}
        with self._lock:
            if self._ended:
                raise GitFailed(verb, "not run, because the server is closing")
            process = _start(
                self._base,
                [*self.prefix, _program(), *fixed, *options, verb, *words],
                {**self.variables, **protocols, **(variables or {})},
                with_input=stdin is not None,
                private=private,
            )
            self._running.add(process)
        try:
            output, complaint = _finish(process, stdin, seconds, meanwhile)
        except BaseException as error:
            _kill(process)
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=1)
            if isinstance(error, subprocess.TimeoutExpired):
                raise GitFailed(verb, f"no end after {seconds:g} s") from None
            raise
        finally:
            self._running.discard(process)
        if process.returncode:
            # These tell the half of it on standard output.
            said = complaint + output if verb in ("push", "fsck") else complaint or output
            text = said.decode("utf-8", "replace")
            if "attempting to allocate" in text:
                text = (
                    f"fatal: an object in the history takes more than {_MOST_AT_ONCE} MB of memory"
                )
            for secret in self.secrets:
                text = text.replace(secret, "***")
            raise GitFailed(verb, _WEB_USER.sub(r"\1***@", text))
        return output

    def end(self) -> None:
        """Kill what runs, and run nothing any more."""
        with self._lock:
            self._ended = True
            for process in list(self._running):
                _kill(process)


@cache
def _program() -> str:
    """Return where git is.

    Raises:
        GitMissing: there is none.
    """
    if found := programs.find("git"):
        return found
    raise GitMissing("there is no git on this machine")


def _leads_astray(name: str) -> bool:
    return name.startswith("GIT_") and not _KEPT.fullmatch(name)


_OUR_ENVIRONMENT = threading.Lock()


@contextmanager
def _cleared_environment(**added: str) -> Iterator[None]:
    """Take out of our own environment, for a moment, what must not reach git.

    GitPython copies all of it for what it starts, and can be told of more variables, but not of
    fewer (`Git.execute` in git/cmd.py, 3.2.1).
    """
    with _OUR_ENVIRONMENT:
        taken = {name: os.environ.pop(name) for name in list(os.environ) if _leads_astray(name)}
        os.environ.update(added)
        try:
            yield
        finally:
            for name in added:
                os.environ.pop(name, None)
            os.environ.update(taken)


@cache
def _launcher() -> type[Launcher]:
    """Import GitPython.

    It would run what it takes for git at once, found by a search of its own. The null device is
    named to it instead, which no system runs; our commands name their program.
    """
    before = {"GIT_PYTHON_GIT_EXECUTABLE": os.devnull, "GIT_PYTHON_REFRESH": "quiet"}
    with _cleared_environment(**before):
        from git.cmd import Git as Launcher  # noqa: PLC0415 (6 times as long as Python's own start)
    return Launcher


def ssh_command(configured: str) -> str:
    """Return a person's ssh command, made unable to ask or to wait forever.

    A program that is not OpenSSH (plink, a script) does not know the options and is left as it is.
    """
    words = shlex.split(configured) if configured else ["ssh"]
    if not words or Path(words[0]).stem != "ssh":
        return configured
    options = ("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=10", "ControlMaster=no")
    return " ".join([configured or "ssh", *(f"-o{option}" for option in options)])


def dying_with_us() -> list[str]:
    """Return the program that has Linux kill what it runs when we are killed, where it is there."""
    program = programs.find("setpriv") if sys.platform == "linux" else None
    return [program, "--pdeathsig", "KILL", "--"] if program else []


def _start(
    base: Path,
    words: Sequence[str],
    variables: Mapping[str, str],
    *,
    with_input: bool,
    private: bool,
) -> Launcher.AutoInterrupt:
    """Start a program in `base`. Whoever lets go of what is returned kills it.

    Raises:
        GitMissing: the program is gone.
        GitFailed: the directory is gone.
        OSError: it cannot be entered, or the system starts no process.
    """
    if not base.is_dir():
        raise GitFailed(words[0], f"{base} is gone")
    if not os.access(base, os.X_OK):  # GitPython would start it in the current directory then
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(base))
    launcher = _launcher()(base)
    umask = -1
    if private and sys.platform != "win32":
        umask = 0o077  # history is for the owner alone, as the memories are
    from git.exc import GitCommandNotFound  # noqa: PLC0415 (see `_launcher`)

    try:
        with _cleared_environment():
            return launcher.execute(
                words,
                istream=subprocess.PIPE if with_input else None,
                as_process=True,
                env=variables,
                start_new_session=True,  # no terminal to ask on, and one group to kill
                umask=umask,
            )
    except GitCommandNotFound as error:
        raise GitMissing("there is no git on this machine") from error


def _finish(
    process: Launcher.AutoInterrupt,
    data: bytes | None,
    seconds: float,
    meanwhile: Callable[[], object] | None,
) -> tuple[bytes, bytes]:
    ended: Callable[..., tuple[bytes, bytes]] = process.communicate
    while meanwhile and seconds > _MEANWHILE_SECONDS:
        with suppress(subprocess.TimeoutExpired):
            return ended(data, timeout=_MEANWHILE_SECONDS)
        seconds -= _MEANWHILE_SECONDS
        meanwhile()
    return ended(data, timeout=seconds)


def _kill(process: Launcher.AutoInterrupt) -> None:
    """Kill a process of ours and all that it started."""
    if sys.platform == "win32":
        if taskkill := programs.find("taskkill"):
            words = [taskkill, "/F", "/T", "/PID", str(process.pid)]
            subprocess.run(words, capture_output=True, check=False)  # noqa: S603
        process.kill()
    else:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
