"""What is found upwards from the working directory: whether it is the person's.

Whoever may write to a directory above the one that a program starts in can put something there
that is found. So what belongs to another user is not taken without the person's word, as git has it
since 2022 (CVE-2022-24765; https://git-scm.com/docs/git-config, `safe.directory`). What a person
names themselves, by a setting or an option, is their word already.

On Windows nothing is looked at: `os.stat` tells no owner there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from aiaml_server.errors import InvalidSetting
from aiaml_server.toolset import Setting

EVERY = "*"
_CONTAINERS = (".dockerenv", "run/.containerenv")  # what Docker and Podman put into theirs


def _directories(variable: str, value: str) -> tuple[str, ...]:
    """Read directories, separated as in PATH; `*` among them stands for every one."""
    paths = [os.path.expanduser(each) for each in value.split(os.pathsep) if each]  # noqa: PTH111
    for each in paths:
        if each != EVERY and not os.path.isabs(each):  # noqa: PTH117 (cheap to import)
            raise InvalidSetting(variable, f"holds {each!r}; each must be an absolute path, or *")
    return tuple(each if each == EVERY else os.path.realpath(each) for each in paths)


SAFE = Setting(
    "AIAML_SAFE_DIRECTORIES",
    "",
    _directories,
    "directories of other users whose memories are taken when they are found upwards from the"
    " working directory, separated as in PATH; * for all",
)


def foreign_owner(
    top: Path, names: Iterable[str], environ: Mapping[str, str] = os.environ, root: Path = Path("/")
) -> str:
    """Say that what was found is another user's, and how to allow it; empty where all is well.

    Args:
        top: the directory that was found, which the setting names.
        names: what in it made it be found, and what in it is opened; it need not be there.
        environ: the environment variables.
        root: where the system begins.

    Raises:
        InvalidSetting: the setting cannot be used.
    """
    if sys.platform == "win32":
        return ""
    top = Path(os.path.realpath(top))
    safe = SAFE.value(environ)
    if EVERY in safe or str(top) in safe:
        return ""
    for path in (top, *(top / each for each in names)):
        with suppress(OSError):  # nobody opens it then
            uid = path.lstat().st_uid
            if not (_is_ours(uid, environ) or _has_mounted(uid, top, root)):
                return (
                    f"{path} belongs to {_called(uid)}, and what another user has put there is not"
                    f" taken; if you trust it, add {top} to {SAFE.name}"
                )
    return ""


def leaves_directory(name: str) -> str:
    """Say that a path below the working directory leads elsewhere; empty where it does not.

    Whoever gives a person a directory, such as a repository to clone, can put a link into it.
    """
    plain = os.path.normpath(os.path.join(os.path.realpath(os.curdir), name))  # noqa: PTH118
    real = os.path.realpath(plain)
    if os.path.normcase(real) == os.path.normcase(plain) and not os.path.islink(plain):  # noqa: PTH114
        return ""
    return (
        f"{plain} leads to {real}, and what a link in the working directory leads to is not taken;"
        " remove the link, or name the file by an absolute path"
    )


def _is_ours(uid: int, environ: Mapping[str, str]) -> bool:
    """Say whether a user is this one, root (who can do anything), or who became root by sudo."""
    by_sudo = os.geteuid() == 0 and environ.get("SUDO_UID") == str(uid)
    return uid in (os.geteuid(), 0) or by_sudo


def _has_mounted(uid: int, top: Path, root: Path) -> bool:
    """Say whether a user can only be whoever has mounted a directory into this container.

    That is so where this is a container, no account in it has the number, and the whole of what is
    mounted there belongs to it: nobody in here can be that user, and who is outside and has given
    the mount decides what runs in here.
    """
    if not any((root / each).exists() for each in _CONTAINERS):
        return False
    mount = next(each for each in (top, *top.parents) if os.path.ismount(each))
    return mount.parent != mount and mount.lstat().st_uid == uid and not _account(uid)


def _account(uid: int) -> str:
    """Return the name of a user; empty where the system knows none of that number."""
    import pwd  # noqa: PLC0415 (not there on Windows)

    with suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return ""


def _called(uid: int) -> str:
    name = _account(uid)
    return f"the user {name} ({uid})" if name else f"the user {uid}"
