"""Whether a directory that a toolset found belongs to this user.

Whoever may write to a directory above the working directory can place files there.
So another user's files are used only if the person trusts the directory, as git does since
CVE-2022-24765 (`safe.directory`). A directory that a setting names needs no confirmation,
except in `sessions`.
On Windows no owner is known, so nothing is checked there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from aiaml_server.identity import SAFE_DIRECTORIES, is_trusted


def foreign_owner(top: Path, names: Iterable[str], environ: Mapping[str, str] = os.environ) -> str:
    """Return a sentence if the directory belongs to another user; empty if it may be used.

    Args:
        top: the directory that was found.
        names: paths in it that are opened; they need not exist.
        environ: the environment variables.

    Raises:
        InvalidSetting: AIAML_SAFE_DIRECTORIES cannot be used.
    """
    if sys.platform == "win32" or is_trusted(top, environ):
        return ""
    top = Path(os.path.realpath(top))
    for path in (top, *(top / name for name in names)):
        with suppress(OSError):  # it does not exist, so it is not opened
            user = path.lstat().st_uid
            if not _is_own(user, environ):
                return (
                    f"{path} belongs to {_format_user(user)}, so it is not used. If you trust it,"
                    f" run `aiaml trust {top}`, or add {top} to {SAFE_DIRECTORIES.name}"
                )
    return ""


def leaves_directory(name: str) -> str:
    """Return a sentence if a relative path leads out of the working directory, also by a link."""
    if os.pardir in Path(name).parts:
        return f"{name} must not contain {os.pardir}: give the file's absolute path"
    plain = os.path.normpath(os.path.join(os.path.realpath(os.curdir), name))  # noqa: PTH118
    real = os.path.realpath(plain)
    if os.path.normcase(real) == os.path.normcase(plain) and not os.path.islink(plain):  # noqa: PTH114
        return ""
    return (
        f"{plain} leads to {real}. Links in the working directory are not followed:"
        " remove the link, or give the file's absolute path"
    )


def _is_own(user: int, environ: Mapping[str, str]) -> bool:
    """Return whether a user is this one, root, or the one who became root with sudo."""
    by_sudo = os.geteuid() == 0 and environ.get("SUDO_UID") == str(user)
    return by_sudo or user in (os.geteuid(), 0)


def _format_user(user: int) -> str:
    import pwd  # noqa: PLC0415 (not on Windows)

    with suppress(KeyError):
        return f"the user {pwd.getpwuid(user).pw_name} ({user})"
    return f"the user {user}"
