"""What an error of git or of the system means; no other place reads their words.

It is told as a `Problem`, whose sentence nobody reads again to find out what was meant.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from typing import NamedTuple

from aiaml_server.errors import GitMissing, InvalidSetting, NotOurs, StoreError
from aiaml_server.sync.command import GitFailed
from aiaml_server.sync.convert import Unreadable
from aiaml_server.sync.guard import Untold
from aiaml_server.sync.repository import Busy
from aiaml_server.sync.status import TRY_AGAIN, Problem

REMOTE_VERBS = ("ls-remote", "fetch", "push")
_READ = 32 * 1024  # characters at the beginning and the end of what git said
_LONGEST = 300  # characters of git's own words
_BOILERPLATE = re.compile(
    r"failed to push some refs|could not read from remote repository|correct access rights"
    r"|and the repository exists|^to |unpacker error$|pre-receive hook declined$|^$",
    re.IGNORECASE,
)


class Cause(NamedTuple):
    """One cause of failure that can be told from git's words.

    Attributes:
        kind: the problem's kind.
        words: what git says then, in lower case; each stands in one line.
        sentence: what that means.
        remedy: what to do about it.
        verbs: the commands of git that may say it; empty for all.
        quoted: whether git's own words are told as well.
    """

    kind: str
    words: str
    sentence: str
    remedy: str
    verbs: tuple[str, ...] = ()
    quoted: bool = True


def problem_of(error: Exception) -> Problem:
    """Say what an error of a round means."""
    if isinstance(error, GitMissing):
        return NO_GIT
    if isinstance(error, GitFailed):
        return _of_git(error.verb, error.output)
    if isinstance(error, (Busy, Unreadable, Untold)):
        return Problem("waiting", str(error), error.remedy)
    if isinstance(error, (StoreError, OSError)):
        return _of_system(str(error), error.cause if isinstance(error, StoreError) else error)
    if isinstance(error, InvalidSetting):
        return Problem("address", str(error), _CORRECT)
    return Problem("git", str(error), TRY_AGAIN)


_DIRECTORY = "name a directory in AIAML_MEMORY_DIR, or move away the file that is in its path."


def _of_git(verb: str, output: str) -> Problem:
    if len(output) > 2 * _READ:
        output = f"{output[:_READ]}\n{output[-_READ:]}"
    text = output.lower()
    for cause in _CAUSES:
        if (not cause.verbs or verb in cause.verbs) and re.search(cause.words, text):
            reason = _reason(output, ours=cause.quoted)
            return Problem(cause.kind, f"{cause.sentence}{reason}", cause.remedy)
    if verb == "push":
        return Problem("refused", f"{_REFUSED}{_reason(output, ours=True)}", _MAY_WRITE)
    words = " / ".join(_telling(output)) or "it failed without a word"
    sentence = f"git {verb} failed: {words[:_LONGEST]}"
    return Problem("remote" if verb in REMOTE_VERBS else "git", sentence, TRY_AGAIN)


def _of_system(sentence: str, error: OSError) -> Problem:
    if isinstance(error, NotOurs):
        return Problem("not-ours", f"{error.path} is {error.what}", _MOVE_AWAY)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Problem("disk-full", sentence, _MAKE_ROOM)
    if error.errno == errno.EROFS:
        return Problem("disk-read-only", sentence, _MOUNT)
    if error.errno in (errno.EACCES, errno.EPERM):
        return Problem("not-ours", sentence, _OWN)
    return Problem("disk", sentence, _DIRECTORY if error.errno == errno.ENOTDIR else TRY_AGAIN)


def _reason(output: str, *, ours: bool) -> str:
    """Return the server's own words in brackets; with `ours`, those of our git where it has none.

    What comes over a connection bears the mark "remote: ", what an ssh server says often "ERROR: ".
    """
    lines = list(_telling(output))
    theirs = [line for line in lines if line.startswith(("remote: ", "ERROR: "))]
    said = [re.sub(r"^(remote|ERROR|fatal|error): (fatal: |error: )?", "", line) for line in
            theirs or (lines if ours else [])]  # fmt: skip
    words = "; ".join(dict.fromkeys(line for line in said if not _BOILERPLATE.search(line)))
    return f" ({words[:_LONGEST]})" if words else ""


def _telling(output: str) -> Iterator[str]:
    """Yield the lines that say why, or all where none is marked so."""
    lines = [" ".join(line.split()) for line in output.splitlines()]
    marked = [line for line in lines if re.match(r"remote: |fatal: |error: |ERROR: |!", line)]
    yield from marked or filter(None, lines)


# --- what to do ---------------------------------------------------------------------------------

_WITHOUT = "or set AIAML_ENABLE_SYNC to false to do without."
_BY_ITSELF = "It is tried again by itself."
_CORRECT = "correct it, or remove it, where the server's environment is set."
_MAKE_ROOM = "make room on the disk that holds the memories. Nothing is lost."
_MOUNT = "the disk is mounted read-only; mount it so that it can be written."
_OWN = "see that the memory directory and all in it belongs to you and can be written."
_MOVE_AWAY = (
    "move it away; or, where it is yours and only belongs to another user, make it your own "
    "(`chown`). Then sync goes on by itself."
)
_REFUSED = "the remote refuses what is pushed"
_MAY_WRITE = (
    "see that the key or token may write, and that no rule or hook of the host protects `main` or "
    "forbids what its words name."
)

NO_GIT = Problem(
    "no-git",
    "there is no git on this machine",
    f"install git (https://git-scm.com), version 2.33 or newer; {_WITHOUT}",
)
OUTRUN = Problem(
    "outrun",
    "other machines have been faster with every push",
    f"nothing: memories are safe on this computer, and those of the others arrive. {_BY_ITSELF}",
)


def too_old(version: str) -> Problem:
    """Say that a git is older than sync can use."""
    remedy = f"install git 2.33 or newer; {_WITHOUT}"
    return Problem("old-git", f"git {version} is too old", remedy)


# --- what git says ------------------------------------------------------------------------------

# The first that fits holds, so what is special comes before what is general. Each pattern stays
# within a line and repeats at most a bounded number of characters, so that its time is linear.
_CAUSES = (
    Cause(
        "helper-hangs",
        r"credential helper did not answer",
        "the credential helper did not answer",
        "run `git ls-remote` with the remote's address by hand and see what asks: answer it once, "
        "or set up a helper that needs no answer (or an SSH key).",
        quoted=False,
    ),
    Cause(
        "timeout",
        r"no end after|operation too slow",
        "the remote did not answer in time",
        "check the network or the VPN. It is tried again by itself, with more patience each time.",
        quoted=False,
    ),
    Cause(
        "object-format",
        r"object.format|hash algorithm|mismatched algorithms|algorithm mismatch",
        "the remote names its objects by another algorithm (SHA-1 or SHA-256) than the repository "
        "in the memory directory",
        "make the remote anew with the algorithm of the memory directory (`git rev-parse "
        "--show-object-format` there says which; `git init --bare --object-format=…`).",
        REMOTE_VERBS,
    ),
    Cause(
        "history-kept",
        r"denying non-fast-forward|force.push(es|ing)?[^\n]{0,99}(not|n't|cannot|forbid|protect)"
        r"|(not|n't|cannot|forbid)[^\n]{0,99}force.push",
        "the remote does not let its history be replaced, as forgetting everywhere takes",
        "allow it for once: in a repository of your own, `git config receive.denyNonFastForwards "
        "false`; at a host, let `main` be force-pushed. Until then nothing is pushed from here.",
        ("push",),
    ),
    Cause(
        "too-large",
        r"\b413\b|entity too large|payload too large|content too large",
        "the remote's web server takes no request of this size",
        "even one commit alone is too large for it: have its limit raised (nginx: "
        "`client_max_body_size`), or use an SSH address.",
        REMOTE_VERBS,
    ),
    Cause(
        "too-many",
        r"\b429\b|too many requests|rate limit",
        "the remote takes no more requests for a while",
        f"wait; with a longer AIAML_SYNC_INTERVAL it is asked less often. {_BY_ITSELF}",
        REMOTE_VERBS,
    ),
    Cause(
        "server-error",
        r"returned error: 5\d\d|internal server error|bad gateway|service unavailable",
        "the remote's server has a problem of its own",
        f"see the status page of the host, or the server's log if it is yours. {_BY_ITSELF}",
        REMOTE_VERBS,
    ),
    Cause(
        "portal",
        r"info/refs not valid|unable to update url base from redirection|not a git-upload-pack"
        r"|unexpected content.type|git-http-push failed",
        "what answered at the remote's address is no git server",
        "open a browser: a network that asks for a sign-in answers in the place of everybody. "
        "Otherwise compare AIAML_GITHUB_REMOTE with the address that the host shows.",
        REMOTE_VERBS,
        quoted=False,
    ),
    Cause(
        "read-only",
        r"\b(key|token|access|repository)\b[^\n]{0,99}\b(is|marked as) read.only"
        r"|write access to repository not granted|read.only access|archived so it is read.only"
        r"|service not enabled",
        "the remote may be read, but not written",
        "give the key or token the right to write (on GitHub: the deploy key's \"Allow write "
        'access", or a token with "Contents: read and write"); git\'s own server needs '
        "`--enable=receive-pack`.",
        REMOTE_VERBS,
    ),
    Cause(
        "remote-disk-full",
        r"no space left|out of disk.?space|disk quota|quota exceeded|file system is full",
        "the disk at the remote is full",
        "make room where the remote repository lies, or ask its host. Nothing is lost.",
        ("push",),
    ),
    Cause(
        "remote-not-writable",
        r"unable to create temporary object directory|insufficient permission for adding an object",
        "the remote cannot write its own files",
        "see there that the repository belongs to the user who serves it, and that its disk has "
        "room.",
        ("push",),
    ),
    Cause(
        "disk-full",
        r"no space left|out of disk.?space|disk quota",
        "the disk is full",
        _MAKE_ROOM,
        quoted=False,
    ),
    Cause(
        "remote-ownership",
        r"dubious ownership",
        "the repository at the remote belongs to another user than the one who serves it",
        "there, as the user who serves it: `chown` the repository, or `git config --global --add "
        "safe.directory` with its path.",
        REMOTE_VERBS,
        quoted=False,
    ),
    Cause(
        "noisy-shell",
        r"bad line length character",
        "the login shell at the remote prints something of its own before git answers",
        "log in there and have its start files (`~/.bashrc`, `~/.profile`) print nothing where no "
        "person sits: `ssh HOST true` must show nothing.",
        REMOTE_VERBS,
    ),
    Cause(
        "offline",
        r"could not resolve host|unable to look up",
        "the remote's name cannot be resolved (is this machine offline?)",
        "check the network, and the host's name in AIAML_GITHUB_REMOTE. A server tries it again.",
        quoted=False,
    ),
    Cause(
        "not-let-in",
        r"authentication failed|permission denied \(|could not read (username|password)|askpass"
        r"|host key verification|returned error: 40[13]|permission[^\n]{0,199} denied to ",
        "the remote did not let us in: check the key, token or known host",
        "`git ls-remote` with the remote's address must answer without a question, as the user who "
        "runs the server: it takes an SSH key without a passphrase (or in an agent) and a known "
        "host, or a credential helper that has a valid token.",
        quoted=False,
    ),
    Cause(
        "not-exported",
        r"repository not exported",
        "git's own server does not give out the repository at the remote address",
        "compare the path in AIAML_GITHUB_REMOTE with the server's; there, the repository needs "
        "the file `git-daemon-export-ok`, and pushing `--enable=receive-pack`.",
        REMOTE_VERBS,
        quoted=False,
    ),
    Cause(
        "no-repository",
        r"does not appear to be a git repository|repository [^\n]{0,999}not found",
        "there is no git repository at the remote address, or we may not see it",
        "compare AIAML_GITHUB_REMOTE with the address that the host shows; make the repository "
        "(empty and private) if there is none; see that your key or token may read and write it.",
        quoted=False,
    ),
    Cause(
        "unreachable",
        r"connection (refused|timed out|reset|closed)|(unable|failed) to connect"
        r"|network is unreachable|no route to host|remote end hung up|early eof",
        "the remote cannot be reached",
        "check the network, the host and the port in AIAML_GITHUB_REMOTE, and any proxy. It is "
        "tried again by itself.",
        REMOTE_VERBS,
        quoted=False,
    ),
    Cause(
        "certificate",
        r"certificate|ssl|tls",
        "the remote's certificate is not trusted",
        "check the clock and the network, or tell git of your organisation's certificates (`git "
        "config --global http.sslCAInfo FILE`).",
        REMOTE_VERBS,
    ),
    Cause(
        "malformed",
        r"fsck error|error in (tree|commit|tag|blob)|error in object|index-pack failed",
        "the remote's history holds an object that git does not take",
        "nothing of it was taken in. In the remote repository, `git log --all --find-object=NAME` "
        "with the object's name says which commit has it (or it is that commit), and `git push "
        "--force` from a clone without it takes it out; or name a new, empty repository as remote, "
        "which is filled from this computer.",
        ("fetch",),
    ),
    Cause(
        "address",
        r"transport .{0,99} not allowed|unable to find remote helper|malformed|bad port"
        r"|url rejected|illegal format|no such remote",
        "git cannot use the remote's address",
        "AIAML_GITHUB_REMOTE must be a git URL (https, http, ssh, git, file), host:path or a path.",
        REMOTE_VERBS,
    ),
    Cause(
        "locked",
        r"\.lock['\":]|another git process|could not lock config",
        "another git is at work in the memory directory",
        "let it end. If none runs, delete the file that the message names.",
    ),
    Cause(
        "disk-read-only", r"read-only file system", "the disk is read-only", _MOUNT, quoted=False
    ),
    Cause(
        "not-ours",
        r"permission denied|not permitted|access is denied",
        "the system does not let git write in the memory directory",
        _OWN,
    ),
)
