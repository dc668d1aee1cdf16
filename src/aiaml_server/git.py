"""Run git safely: no prompt, no hook, no foreign configuration, no process that outlives its call.

GitPython starts the processes. Its timeouts are not used, because they neither work on Windows nor
reach the programs that git starts.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiaml_server.errors import AiamlError, GitMissing
from aiaml_server.storage import programs

Process = Any  # a `subprocess.Popen`, or GitPython's object with the same methods
NETWORK_COMMANDS = ("ls-remote", "fetch", "push")
DEFAULT_SECONDS = 300.0
TIMED_OUT = 124  # the exit code of timeout(1)
_KILLED = -9

# Nothing that a person or a repository has configured may run a program or change a byte.
_CONFIG = """
-c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.untrackedCache=false
-c core.attributesFile=/dev/null -c core.autocrlf=false -c core.safecrlf=false
-c core.fileMode=false -c core.precomposeUnicode=false -c core.quotePath=false
-c core.alternateRefsCommand=true
-c commit.gpgSign=false -c push.gpgSign=false -c log.showSignature=false
-c mailmap.file=/dev/null -c mailmap.blob= -c diff.orderFile=/dev/null
-c submodule.recurse=false -c fetch.recurseSubmodules=false
-c gc.auto=0 -c gc.autoDetach=false -c maintenance.auto=false -c maintenance.autoDetach=false
-c safe.bareRepository=explicit -c http.lowSpeedLimit=1 -c http.lowSpeedTime=30
"""

# A question is answered by a program that does not exist, so it fails at once.
_ENVIRONMENT = """
GIT_TERMINAL_PROMPT=0 GIT_ASKPASS=aiaml-never-asks SSH_ASKPASS=aiaml-never-asks
SSH_ASKPASS_REQUIRE=never GCM_INTERACTIVE=never GIT_NO_LAZY_FETCH=1 GIT_OPTIONAL_LOCKS=0
GIT_ATTR_NOSYSTEM=1 GIT_DEFAULT_REF_FORMAT=files GIT_ALLOC_LIMIT=128m
GIT_ALLOW_PROTOCOL= LC_ALL=C LANGUAGE=C
"""

# How the person reaches a remote, and who they are. Other variables would redirect our commands.
_ALLOWED_VARIABLE = re.compile(
    r"GIT_(SSH(_COMMAND|_VARIANT)?|SSL_\w+|HTTP_\w+|PROXY_\w+|EXEC_PATH"
    r"|CONFIG_(GLOBAL|SYSTEM|NOSYSTEM)|(AUTHOR|COMMITTER)_(NAME|EMAIL))"
)


class GitFailed(AiamlError):  # noqa: N818
    """A git command failed.

    Attributes:
        command: the command, such as "fetch".
        output: what it printed on standard error and standard output, without passwords.
        exit_code: how it ended; `TIMED_OUT` if it was killed or not started.
        stdout: what it printed on standard output: some commands answer "no" by exit code 1.
    """

    def __init__(self, command: str, output: str, exit_code: int = 1, stdout: bytes = b"") -> None:
        self.command = command
        self.exit_code = exit_code
        self.stdout = stdout
        self.output = output.strip()
        super().__init__(f"git {command} failed: {self.output}")


class Git:
    """Run git commands in one directory.

    Attributes:
        directory: where commands run.
        variables: environment variables for every command, such as GIT_DIR.
        inherited: descriptors that local commands inherit. With that of a lock file, the lock
            stays held until a command has ended even if this process is killed (POSIX only).
    """

    def __init__(self, directory: Path, variables: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self.variables = dict(variables or {})
        self.inherited: tuple[int, ...] = ()
        self._lock = threading.Lock()
        self._running: set[Process] = set()
        self._stopped = False

    def run(
        self,
        command: str,
        *arguments: str,
        stdin: bytes | None = None,
        seconds: float = DEFAULT_SECONDS,
    ) -> bytes:
        """Run a command and return what it printed.

        Raises:
            GitMissing: git is not installed.
            GitFailed: the command failed or took longer than `seconds`, the directory cannot be
                entered, or `stop` was called.
        """
        environment = dict(entry.split("=", 1) for entry in _ENVIRONMENT.split())
        environment |= programs.variables() | self.variables
        if command in NETWORK_COMMANDS:
            environment["GIT_ALLOW_PROTOCOL"] = "https:http:ssh:git:file:gcrypt"
        process = self._start([command, *arguments], environment, has_input=stdin is not None)
        try:
            output, errors = process.communicate(stdin, timeout=seconds)
        except subprocess.TimeoutExpired:
            raise GitFailed(command, f"no answer within {seconds:g} s", TIMED_OUT) from None
        finally:
            self._running.discard(process)
            if process.returncode is None:  # also if it ended meanwhile: its pipes are open
                _kill(process)
                process.communicate()
                if process.stdin:
                    process.stdin.close()
        if process.returncode:
            text = (errors + b"\n" + output).decode("utf-8", "replace")
            hidden = re.sub(r"(https?://)[^\s/'\"@]+@", r"\1***@", text)
            code = TIMED_OUT if process.returncode == _KILLED else process.returncode
            raise GitFailed(command, hidden, code, output)
        return bytes(output)

    def _start(
        self, words: Sequence[str], environment: dict[str, str], *, has_input: bool
    ) -> Process:
        program = programs.find("git")
        if not program:
            raise GitMissing("git is not installed on this computer")
        if not os.access(self.directory, os.X_OK):  # GitPython would use the current directory
            raise GitFailed(words[0], f"{self.directory} cannot be entered")
        for name in list(os.environ):  # what git would inherit, and what would redirect it
            if name.startswith("GIT_") and not _ALLOWED_VARIABLE.fullmatch(name):
                del os.environ[name]
        with self._lock:
            if self._stopped:
                raise GitFailed(words[0], "not run, because the server is closing", TIMED_OUT)
            process = self.execute(
                [program, *_CONFIG.split(), *words],
                istream=subprocess.PIPE if has_input else None,
                env=environment,
                start_new_session=True,  # no terminal to ask on, and one group to kill
                umask=-1 if words[0] == "push" else 0o077,
                pass_fds=() if words[0] in NETWORK_COMMANDS else self.inherited,
            )
            self._running.add(process)
        return process

    def execute(self, words: Sequence[str], **options: Any) -> Process:
        """Start a process with GitPython, and with options of `subprocess.Popen`."""
        # While it is imported, it must not search for a git and run it.
        os.environ.update(GIT_PYTHON_GIT_EXECUTABLE=os.devnull, GIT_PYTHON_REFRESH="quiet")
        from git.cmd import Git as GitPython  # noqa: PLC0415 (slow, and many commands need no git)

        return GitPython(self.directory).execute(words, as_process=True, **options)

    def stop(self) -> None:
        """Kill the running commands and refuse new ones."""
        with self._lock:
            self._stopped = True
            for process in list(self._running):
                _kill(process)


def _kill(process: Process) -> None:
    """Kill a command with everything that it started."""
    if sys.platform == "win32":
        program = programs.find("taskkill") or "taskkill"
        subprocess.run([program, "/F", "/T", "/PID", str(process.pid)], check=False)  # noqa: S603
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
