"""Running git: GitPython's `Git`, with processes that cannot prompt, hang, stray or outlive us."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiaml_server import programs
from aiaml_server.errors import AiamlError

os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")  # or a machine without git cannot import it
# GitPython runs git while it is imported, and so it must not look for it by itself.
GIT = programs.find("git") or str(Path(sys.executable).with_name("no-git-was-found"))
os.environ["GIT_PYTHON_GIT_EXECUTABLE"] = GIT

import git  # noqa: E402 (see above)

LOCAL_SECONDS = 300.0  # no command that stays on this machine takes longer
_MEANWHILE_SECONDS = 2.0

# What a person or a repository may have configured must neither run anything nor change a byte.
_OPTIONS = {
    "init.defaultBranch": "main",
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.safecrlf": "false",
    "core.logAllRefUpdates": "true",
    "diff.orderFile": os.devnull,
    "commit.gpgSign": "false",
    "push.gpgSign": "false",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "fastimport.unpackLimit": "1",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "http.lowSpeedLimit": "1",
    "http.lowSpeedTime": "30",
}

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


class GitMissing(AiamlError):  # noqa: N818
    """There is no git on this machine."""


class Command(git.Git):
    """git in the directory `base`, called as GitPython does: `command.status("-z")` → bytes.

    `istream` takes the bytes of standard input, `kill_after_timeout` a time limit in seconds, `env`
    more variables. All that is in these calls is made by us, so GitPython's checks of arguments
    that come from others are not needed.
    """

    def __init__(self, base: Path) -> None:
        super().__init__(str(base))
        self.variables = _environment()
        self.secrets: list[str] = []  # blotted out of whatever git says
        self.prefix: list[str] = []  # a program, and its options, that runs git
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._ended = False

    def execute(  # type: ignore[override]
        self,
        command: Sequence[str],
        istream: bytes | None = None,
        *,
        kill_after_timeout: float = LOCAL_SECONDS,
        env: Mapping[str, str] | None = None,
        output_stream: Callable[[], object] | None = None,
        **_: Any,
    ) -> bytes:
        """Run one command and return what it printed.

        Args:
            command: the words, the first being git.
            istream: what it reads.
            kill_after_timeout: seconds, after which it is killed with all that it started.
            env: more variables.
            output_stream: called every two seconds while the command runs.

        Raises:
            GitMissing: there is no git.
            GitFailed: it failed, or took too long.
        """
        options = [word for pair in _OPTIONS.items() for word in ("-c", "=".join(pair))]
        verb = command[1]
        with self._lock:
            if self._ended:
                raise GitFailed(verb, "not run, because the server is closing")
            process = _start(
                [*self.prefix, command[0], *options, *command[1:]],
                Path(str(self.working_dir)),
                {**self.variables, **(env or {})},
                with_input=istream is not None,
                private=verb != "push",  # which may write to a remote on a disk that others share
            )
            self._running.add(process)
        try:
            output, complaint = _finish(process, istream, kill_after_timeout, output_stream)
        except BaseException as error:
            _kill(process)
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=1)
            if isinstance(error, subprocess.TimeoutExpired):
                raise GitFailed(verb, f"no end after {kill_after_timeout:g} s") from None
            raise
        finally:
            self._running.discard(process)
        if process.returncode:
            # These tell the half of it on standard output.
            said = complaint + output if verb in ("push", "fsck") else complaint or output
            raise GitFailed(verb, self._without_secrets(said))
        return output

    def _without_secrets(self, output: bytes) -> str:
        text = output.decode("utf-8", "replace")
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return _WEB_USER.sub(r"\1***@", text)

    def end(self) -> None:
        """Kill what runs, and run nothing any more."""
        with self._lock:
            self._ended = True
            for process in list(self._running):
                _kill(process)


def _environment() -> dict[str, str]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or _KEPT.fullmatch(name)
    }
    return {**inherited, **programs.variables(), **_NEVER_ASK}


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
    words: Sequence[str],
    base: Path,
    variables: Mapping[str, str],
    *,
    with_input: bool,
    private: bool,
) -> subprocess.Popen[bytes]:
    flags, umask = 0, -1
    if private and sys.platform != "win32":
        umask = 0o077  # history is for the owner alone, as the memories are
    if sys.platform == "win32":
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
    try:
        return subprocess.Popen(  # noqa: S603 (the words are ours)
            words,
            cwd=base,
            env=dict(variables),
            stdin=subprocess.PIPE if with_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # no terminal to ask on, and one group to kill
            creationflags=flags,
            umask=umask,
        )
    except FileNotFoundError as error:
        if base.is_dir():
            raise GitMissing("there is no git on this machine") from error
        raise GitFailed(words[-1], f"{base} is gone") from error


def _finish(
    process: subprocess.Popen[bytes],
    data: bytes | None,
    seconds: float,
    meanwhile: Callable[[], object] | None,
) -> tuple[bytes, bytes]:
    while meanwhile and seconds > _MEANWHILE_SECONDS:
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(data, timeout=_MEANWHILE_SECONDS)
        seconds -= _MEANWHILE_SECONDS
        meanwhile()
    return process.communicate(data, timeout=seconds)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process of ours and all that it started."""
    if sys.platform == "win32":
        if taskkill := programs.find("taskkill"):
            words = [taskkill, "/F", "/T", "/PID", str(process.pid)]
            subprocess.run(words, capture_output=True, check=False)  # noqa: S603
        process.kill()
    else:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
