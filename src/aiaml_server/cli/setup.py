"""`sync --setup`: a private repository for the memories, tried, and remembered for all clients."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from aiaml_server.cli.context import REMOTE
from aiaml_server.clients import connections, this_machine
from aiaml_server.errors import AiamlError, GitMissing, NoStateDirectory, StoreError
from aiaml_server.files import make_directory
from aiaml_server.settings import Settings, hide_password, remote_problem
from aiaml_server.storage.chosen import choose_remote
from aiaml_server.storage.programs import find
from aiaml_server.sync import Problem, survey
from aiaml_server.terminal import (
    EXIT_FAILED,
    EXIT_USAGE,
    Exit,
    confirm,
    join_words,
    notify,
    plural,
    prompt,
    wrap,
)
from aiaml_server.timestamps import format_elapsed

REMOTE_SECONDS = 10.0
LOOK_SECONDS = 60.0
_NAMED = 4  # of what is there
_BY_ITSELF = r" (It is tried again|A server tries it again)[^.\n]{0,100}\."
_QUESTION = "Address of an empty private repository, or a directory on another disk"
_KEYS = {
    "github": "https://github.com/settings/keys, New SSH key",
    "gitlab": "https://gitlab.com/-/user_settings/ssh_keys, Add new key",
    "codeberg": "https://codeberg.org/user/settings/keys, Add key",
    "": "the host's page for SSH keys (Forgejo: Settings, SSH / GPG keys)",
}


def set_up(setting: Settings, address: str, *, yes: bool) -> Settings:
    """Choose a remote: make it, if it is a directory; look what it has; note it for all servers.

    Args:
        setting: for which directory, in its `base`.
        address: the remote's; empty to ask for it.
        yes: whether it may have something else than memories.

    Raises:
        Ended: there is nobody to ask, it is no address, or the remote did not answer; the sentence
            says what to do.
    """
    if not address.strip():
        if not sys.stdin.isatty():
            raise Exit("there is no terminal to ask on; `--setup ADDRESS` names it", EXIT_USAGE)
        address = prompt(_QUESTION)
    if reason := remote_problem(address.strip()):
        raise Exit(f"the address {reason}", EXIT_USAGE)
    setting = replace(setting, remote=_made(address.strip(), setting.base))
    notify(f"Asking {hide_password(setting.remote)} …")
    if refs := _ask(setting):
        _agree(setting, refs, yes=yes)
    try:
        make_directory(setting.base)
        choose_remote(setting.base, setting.remote)
    except NoStateDirectory as error:
        raise Exit(f"it cannot be remembered: {error.reason}", EXIT_FAILED) from error
    except OSError as error:
        raise StoreError("write", error.filename or setting.base, error) from error
    notify(
        f"It answers. From their next start, servers that keep memories in {setting.base} use it."
    )
    if survey.on_one_disk(setting):
        notify(f"But {survey.ONE_DISK}.")
    for exception in _exceptions():
        notify(f"But not {exception}.")
    if os.environ.get(REMOTE):
        notify(wrap(f"But {REMOTE} is set here, and where it is set, it wins.", err=True))
    return setting


def _made(address: str, base: Path) -> str:
    """Return an address, a path made absolute; where there is nothing, make a bare repository.

    Raises:
        Ended: it is no place for a copy; there is no git, or it cannot be made.
    """
    if "://" in address or re.match(r"[^/\\]{2,}:", address):
        return address
    path = Path(os.path.abspath(os.path.expanduser(address)))  # noqa: PTH100, PTH111 (no link is followed)
    if not re.match(r"[./\\]|~[/\\]|[A-Za-z]:", address):
        raise Exit(f"https:// or git@ is missing; `./{address}` is a directory here", EXIT_USAGE)
    if path == base or base in path.parents:
        raise Exit(f"{path} is the memories' own directory itself, and no second place", EXIT_USAGE)
    if not path.exists() or not any(path.iterdir()):
        git = find("git")
        if not git:
            raise Exit(str(GitMissing()), EXIT_FAILED)
        private = "--shared=0600"  # for its owner alone, whatever the umask
        words = [git, "init", "--quiet", "--bare", private, "--initial-branch=main", str(path)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise Exit(f"{path} cannot be made: {done.stderr.strip()}", EXIT_FAILED)
        notify(f"Made {path}.")
    return str(path)


def _exceptions() -> Iterator[str]:
    """Say which entries of clients name a remote of their own."""
    for one in connections(this_machine()):
        if one.name and REMOTE in one.variables:
            yield f"{one.client.title}, whose entry {one.name} has {REMOTE} ({one.path})"


def _agree(setting: Settings, refs: Mapping[str, str], *, yes: bool) -> None:
    """Say what a remote that is not empty has; where that is no memory, ask whether it is meant.

    Raises:
        Ended: it is not, or there is nobody to ask.
    """
    try:
        has = survey.look(setting, refs, LOOK_SECONDS)
    except AiamlError as error:
        told = f"is not empty, and cannot be looked into: {Problem.of(error).sentence}"
    else:
        if has.memories:
            notify(f"It has {plural(has.memories, 'memory')}.")
        if has.memories or (has.branch and not has.others):
            return
        told = f"holds something else than memories: {_told(has, refs)}"
    told = f"{hide_password(setting.remote)} {told}"
    if yes:
        notify(f"{told}.")
        return
    if not sys.stdin.isatty():
        todo = "Make an empty repository, or say yes to have memories there too (`--yes`)"
        raise Exit(f"{told}. {todo}", EXIT_USAGE)
    notify(f"{told}.")
    confirm("Put memories there too, for all to read who read that?")


def _told(has: survey.Contents, refs: Mapping[str, str]) -> str:
    """Name what a repository holds in which there are no memories."""
    if not has.branch:
        names = [ref.removeprefix("refs/heads/") for ref in refs if ref.startswith("refs/heads/")]
        return f"the branches {join_words(names[:_NAMED])}"
    names = list(dict.fromkeys(path.partition("/")[0] for path in has.others))
    some = join_words([*names[:_NAMED], *(["others"] if len(names) > _NAMED else [])])
    by = f"its newest commit is {has.author}'s, of {format_elapsed(has.time * 1_000_000)}"
    return f"{plural(len(has.others), 'file')} on its branch {has.branch} ({some}); {by}"


def _ask(setting: Settings) -> dict[str, str]:
    """Ask the remote what it has; where that is no repository yet, have it make one, by ssh.

    Raises:
        Ended: it does not answer, with what to do in plain words.
    """
    try:
        return survey.ask_remote(setting, REMOTE_SECONDS)
    except AiamlError as error:
        problem = Problem.of(error)
        by_ssh = re.match(r"(?i)ssh://|[^/\\]{2,}:(?!//)", setting.remote)
        if by_ssh and problem.kind == "no-repository":
            with suppress(AiamlError):
                survey.ask_remote(setting, REMOTE_SECONDS, make=True)
                notify(f"Made {hide_password(setting.remote)}.")
                return {}
        todo = _key(setting.remote) if problem.kind == "not-let-in" else problem.remedy
        todo = re.sub(_BY_ITSELF, "", todo)  # which holds of a remote that is in use
        raise Exit(f"{problem.sentence}.\nWhat to do: {todo}", EXIT_FAILED) from error


def _key(address: str) -> str:
    """Say how this computer is let in."""
    if address.startswith("http"):
        return (
            "make a token there that may read and write this repository, and have git keep it: "
            "`git config --global credential.helper store`, then `git ls-remote` with the address "
            "asks for it once. Or use the SSH address."
        )
    where = next(page for host, page in _KEYS.items() if host in address.lower())
    return (
        "this computer needs a key that it may use without asking. `ssh-keygen -t ed25519 -N ''` "
        f"makes one (if ~/.ssh/id_ed25519.pub is not there); put what is in ~/.ssh/id_ed25519.pub "
        f"into {where}; on a computer of your own, `ssh-copy-id HOST` does that. Then `git "
        "ls-remote` with the address must answer, once you have said yes to the host's name."
    )
