"""Where the repository lies that is ours alone, and whose lies beside it.

It is bare: `git log`, `show` and `clone` work in the base directory, and git itself refuses what
needs a work tree, so that no command of a person's changes a memory. It is `.git` of the base
directory, or `.aiaml.git` where a person has a repository there or around it.
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from pathlib import Path

from aiaml_server.errors import MalformedFile, StoreError, UnsafePath
from aiaml_server.files import check_own, format_limit, read_regular

BESIDE = ".aiaml.git"
HIDDEN = b"/files/*.md\n"  # by which earlier versions hid memories from a person's git
EARLIER = "refs/heads/aiaml"  # where earlier versions committed memories, in a person's repository
_SMALL = ("HEAD", "config", "packed-refs", "shallow")  # which git reads whole
_MOST = 1024 * 1024  # bytes of a file of git's
_INCLUDED = "aiaml/remote"  # what the configuration of every repository that we made includes
# What the configuration of ours may hold: what git writes into a new one, what a person may want of
# their own git there, and nothing by which git would act in what we ask of it (see git-config(1)).
_SECTIONS = """
    advice alias author branch color committer credential fetch gc gui http lfs maintenance
    pull push receive rerere url user
"""
_CONFIGURED = """
    core.abbrev core.autocrlf core.bare core.compression core.editor core.eol core.filemode
    core.fscache core.hidedotfiles core.ignorecase core.logallrefupdates core.longpaths
    core.pager core.precomposeunicode core.protecthfs core.protectntfs core.quotepath
    core.repositoryformatversion core.safecrlf core.sharedrepository core.sshcommand
    core.symlinks extensions.objectformat extensions.refstorage remote.fetch remote.mirror
    remote.prune remote.push remote.pushurl remote.skipdefaultupdate remote.skipfetchall
    remote.tagopt remote.url
"""
_SECTION = r'\[([A-Za-z][A-Za-z0-9-]*)(?:[ \t]+"(?:[^"\\]|\\.)*")?\]'
_ASSIGNED = r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(=.*)?"


def check_base(base: Path) -> None:
    """See that the base directory is one, or can be made.

    Raises:
        StoreError: part of its path is a file.
    """
    there = next(each for each in (base, *base.parents) if each.exists())
    if not there.is_dir():
        raise StoreError("read", base, NotADirectoryError(errno.ENOTDIR, "", str(there)))


def directory_of(base: Path) -> Path:
    """Return the directory of our repository, which is there or to be made.

    Raises:
        NotOurs: something else has its name.
    """
    usual, beside = base / ".git", base / BESIDE
    if check_own(beside, directory=True):
        return beside
    if not os.path.lexists(usual):
        return beside if persons(base) else usual
    if not is_ours(usual):
        return beside
    check_own(usual, directory=True)
    return usual


def notes_of(base: Path) -> Path:
    """Return the git directory that has what sync noted: ours, or the earlier one until then."""
    directory = directory_of(base)
    found = None if directory.is_dir() else earlier(base)
    return found[0] if found else directory


def persons(base: Path) -> Path | None:
    """Return the `.git` of the person's repository that a directory is in; None without one."""
    place = base.resolve()
    for directory in (place, *place.parents):
        found = directory / ".git"
        if os.path.lexists(found) and not is_ours(found):
            return found
    return None


def is_ours(directory: Path) -> bool:
    """Whether a `.git` is a bare repository that we made."""
    bare = re.search(r"(?mi)^[ \t]*bare[ \t]*=[ \t]*true[ \t]*\r?$", config_of(directory))
    return bool(bare) and is_made_by_us(directory)


def is_made_by_us(directory: Path) -> bool:
    """Whether this version or an earlier one made a `.git`, and not a person."""
    return not directory.is_symlink() and _INCLUDED in config_of(directory)


def check_ours(directory: Path) -> None:
    """See that our repository holds nothing by which git would act or wait elsewhere.

    A base directory that was unpacked or cloned brings one that anybody may have made.

    Raises:
        NotOurs: it is not made by us, has a link, a pipe or objects that lie elsewhere, is
            configured to do more than ours are, or a name in it is too long to be one.
    """
    if not is_made_by_us(directory):
        raise UnsafePath(directory, "a repository that this program did not make")
    _check_plain(directory)
    for name in ("commondir", "objects/info/alternates", "objects/info/http-alternates"):
        if os.path.lexists(directory / name):
            raise UnsafePath(directory / name, "what makes git use another repository")
    _check_configuration(directory)


def _check_configuration(directory: Path) -> None:
    """See that git would do nothing that is configured there, and read no other file for it.

    Each line is read as git writes it. What can be written otherwise, such as a value that goes on
    in the next line, or a section and a key in one, is not looked into, but refused.
    """
    section = ""
    for number, each in enumerate(config_of(directory).split("\n"), 1):
        line = each.removesuffix("\r").strip(" \t")
        if not line or line[0] in "#;":
            continue
        if found := re.fullmatch(_SECTION, line):
            section = found[1].lower()
            continue
        found = re.fullmatch(_ASSIGNED, line)
        key = f"{section}.{found[1].lower()}" if found and not line.endswith("\\") else ""
        value = (found[2] or "")[1:].strip(" \t") if found else ""
        is_included = key == "include.path" and value in (_INCLUDED, f'"{_INCLUDED}"')
        is_known = key in _CONFIGURED.split() or section in _SECTIONS.split()
        if not is_included and not (key and is_known):
            what = f"a repository with {key or 'what is no plain setting'} in its configuration"
            remedy = f"take line {number} out of the file `config` in it, or move it away"
            raise UnsafePath(directory, f"{what}, which sync has no use for", remedy)


def _check_plain(directory: Path) -> None:
    """See that all below it but its hooks, which never run, are files and directories.

    And that what git reads whole is small. What another git removes meanwhile is not there.
    """
    places = [directory]
    while places:
        place = places.pop()
        is_ref = place.is_relative_to(directory / "refs")
        with suppress(FileNotFoundError), os.scandir(place) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    places.append(place / entry.name)
                elif not entry.is_file(follow_symlinks=False):
                    check_own(place / entry.name)
                elif is_ref or (place == directory and entry.name in _SMALL):
                    _check_small(place / entry.name)
        if place == directory:
            places = [each for each in places if each.name != "hooks"]


def _check_small(path: Path) -> None:
    with suppress(FileNotFoundError):
        if path.stat().st_size > _MOST:
            raise UnsafePath(path, f"larger than {format_limit(_MOST)}")


def config_of(directory: Path) -> str:
    """Return what the configuration of a git directory says; empty where it cannot be read."""
    return text_of(directory / "config")


def text_of(path: Path) -> str:
    """Return what a small file of git's says; empty where it cannot be read."""
    return bytes_of(path, _MOST).decode("utf-8", "replace").strip()


def bytes_of(path: Path, most: int) -> bytes:
    """Return what a file of at most `most` bytes holds; nothing where it cannot be read."""
    with suppress(OSError, MalformedFile):
        return read_regular(str(path), most)
    return b""


def git_directories(path: Path) -> tuple[Path, Path]:
    """Return the git directory that a `.git` is or names, and the one that its objects are in.

    `.git` is a file in a submodule, with `--separate-git-dir` and in a worktree; the two differ in
    the last of these only (see "gitrepository-layout" in git's manual).
    """
    directory = path.resolve() if path.is_symlink() else path
    if directory.is_file():
        named = text_of(directory).removeprefix("gitdir: ").replace("\0", "\ufffd")
        directory = path.parent / named
    common = text_of(directory / "commondir")
    return directory, directory / common if common else directory


def earlier(base: Path) -> tuple[Path, str] | None:
    """Return where an earlier version kept memories: the git directory, and the branch.

    None where there is no repository in the directory itself.
    """
    if not os.path.lexists(base / ".git"):
        return None
    directory, common = git_directories(base / ".git")
    if directory == common:
        return common, EARLIER
    return common, f"{EARLIER}-{directory.name}"  # one of several worktrees
