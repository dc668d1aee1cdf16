"""`aiaml sync --setup`: two homes and a place between them, with nothing of ours set anywhere."""

from __future__ import annotations

import getpass
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from client import PYTHON, Client
from machine import as_person, git
from paths import ROOT
from printed import completed, inherited

ANOTHER_DISK = Path("/dev") / "shm"  # in memory, on Linux


class Home:
    """A person's computer, on which no variable of ours is set."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.place.mkdir()
        self.environ = {
            **{name: value for name, value in inherited().items() if "AIAML" not in name},
            "HOME": str(place),
            "USERPROFILE": str(place),
            "XDG_STATE_HOME": str(place / "state"),
            "WIN_PD_OVERRIDE_LOCAL_APPDATA": str(place / "state"),
            "COLUMNS": "200",
        }

    def aiaml(self, *words: str, code: int = 0) -> str:
        """Type a line; return all that it says."""
        done = completed([PYTHON, "-m", "aiaml_server", *words], env=self.environ, cwd=self.place)
        assert done.returncode == code, done
        return done.stdout + done.stderr


@pytest.fixture
def homes(tmp_path: Path) -> tuple[Home, Home]:
    """Return two computers."""
    return Home(tmp_path / "one"), Home(tmp_path / "two")


@pytest.fixture
def stick(tmp_path: Path) -> Iterator[Path]:
    """Return a directory on another disk than the homes."""
    if not ANOTHER_DISK.is_dir() or ANOTHER_DISK.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is one disk")
    with TemporaryDirectory(dir=ANOTHER_DISK) as place:
        yield Path(place)


def test_setup_brings_memories_to_a_second_computer(homes: tuple[Home, Home], stick: Path) -> None:
    """The repository is made, tried and remembered; servers use it, whatever client starts them."""
    one, two = homes
    one.aiaml("remember", "Max likes the sea.", "-t", "dog")
    assert "Kept on this computer only" in one.aiaml("status")
    remote = str(stick / "far" / "memories.git")
    said = one.aiaml("sync", "--setup", remote)
    assert f"Made {remote}" in said and "1 memory sent" in said
    assert "All is well: there is a copy, of a moment ago" in one.aiaml("status")
    assert "1 memory arrived" in two.aiaml("sync", "--setup", remote)
    assert "Max likes the sea" in two.aiaml("list")
    status = two.aiaml("status")
    assert "never" not in status and "All is well" in status
    served = {"AIAML_MEMORY_DIR": str(two.place / ".aiaml"), "AIAML_ENABLE_SYNC": "true"}
    with Client(two.place, environ={**two.environ, **served}) as client:
        client.remember("Bo likes the hills.")
        while "Bo likes" not in one.aiaml("list"):
            one.aiaml("sync")
    assert "Bo likes the hills" in one.aiaml("list")


@pytest.mark.slow
def test_a_remote_on_the_same_disk_is_no_protection(
    homes: tuple[Home, Home], tmp_path: Path
) -> None:
    """Which setup, status, and doctor say; by a `file:` address, too."""
    one, _ = homes
    one.aiaml("remember", "Max likes the sea.", "-t", "dog")
    said = one.aiaml("sync", "--setup", str(tmp_path / "m.git"))
    assert "1 memory sent" in said
    said += one.aiaml("sync", "--setup", (tmp_path / "m.git").as_uri())
    told = "is on the same disk as the memories, and no protection"
    assert said.count(told) == 2, said
    for words in (["status"], ["doctor", "remote"]):
        said = one.aiaml(*words)
        assert told in said and "All is well" not in said and "docs/safe.md" in said, said
    assert '"on_one_disk": true' in one.aiaml("status", "--json")


@pytest.mark.slow
def test_setup_of_what_does_not_answer_remembers_nothing(homes: tuple[Home, Home]) -> None:
    """It says why, and what to do."""
    one, _ = homes
    one.aiaml("remember", "Max likes the sea.", "-t", "dog")
    for address in ("file:///no/such/repository.git", "ext::sh -c false"):
        one.aiaml("sync", "--setup", address, code=1 if address.startswith("file") else 2)
    said = one.aiaml("sync", "--setup", "ssh://127.0.0.1:1/m", code=1)
    assert "cannot be reached" in said and "again" not in said, said
    assert "Kept on this computer only" in one.aiaml("status")
    assert "no terminal to ask on" in one.aiaml("sync", "--setup", code=2)


@pytest.mark.slow
def test_setup_of_another_remote_that_refuses_says_that_there_is_no_copy(
    homes: tuple[Home, Home], stick: Path
) -> None:
    """What was known of the one before says nothing of this one."""
    one, _ = homes
    one.aiaml("remember", "Max likes the sea.", "-t", "dog")
    one.aiaml("sync", "--setup", str(stick / "first.git"))
    assert "All is well" in one.aiaml("status")
    other = stick / "other.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(other)], check=True)
    (other / "hooks" / "pre-receive").write_text("#!/bin/sh\nexit 1\n")
    (other / "hooks" / "pre-receive").chmod(0o755)
    one.aiaml("sync", "--setup", str(other), code=1)
    said = one.aiaml("status", code=1)
    assert "nothing sent yet" in said and "lacks 2 changes of ours" in said, said
    assert "All is well" not in said and "there is a copy" not in said, said


@pytest.mark.slow
def test_a_disk_that_is_away_is_told_as_that(homes: tuple[Home, Home], tmp_path: Path) -> None:
    """No key is spoken of, nor a variable that nobody set; once it is back, it goes on."""
    one, _ = homes
    one.aiaml("remember", "Max likes the sea.", "-t", "dog")
    stick = tmp_path / "stick"
    one.aiaml("sync", "--setup", str(stick / "m.git"))
    stick.rename(tmp_path / "pocket")
    one.aiaml("remember", "Bo likes the hills.", "-t", "dog")
    for words in (["sync"], ["status"], ["doctor", "sync", "remote"]):
        said = one.aiaml(*words, code=1)
        assert f"is not there (nothing is at {stick / 'm.git'})" in said, said
        assert "plug" in said and "by itself" in said, said
        assert "key" not in said and "AIAML_GITHUB_REMOTE" not in said, said
    (tmp_path / "pocket").rename(stick)
    assert "1 memory sent" in one.aiaml("sync")


@pytest.mark.gate_cases(3)
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("github.com/you/memories", "https://"),
        ("nonsense", "https://"),
        ("~nobody-of-this-name/m", "https://"),
        ("~/.aiaml", "itself"),
        ("./a\nb", "the address has a space or a control character"),
        ("./a\x9bb", "the address has a space or a control character"),
        ("./a\udcff", "the address has a space or a control character"),
        ("./" + "a" * 5000, "the address is longer than 4,096 characters"),
        ("ext::sh -c false", "the address is of the kind 'ext'"),
    ],
)
def test_setup_of_what_could_be_no_copy_is_refused(
    address: str, said: str, homes: tuple[Home, Home]
) -> None:
    """A forgotten `https://` makes no directory here; the memories' own is no second place."""
    one, _ = homes
    one.aiaml("remember", "Max likes the sea.", "-t", "dog")
    before = sorted(one.place.iterdir())
    assert said in one.aiaml("sync", "--setup", address, code=2)
    assert sorted(one.place.iterdir()) == before


def repository_with(path: Path, branch: str, *names: str) -> Path:
    """Make a repository of somebody's, with files of these names."""
    work = path.parent / "work"
    work.mkdir()
    git(work, "init", "--quiet", f"--initial-branch={branch}")
    for name in names:
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text("theirs", encoding="utf-8")
    git(work, "add", "-A")
    as_person(work, "commit", "--quiet", "-m", "Theirs")
    git(work, "clone", "--quiet", "--bare", ".", str(path))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("branch", "head"), [("main", ""), ("trunk", ""), ("trunk", "refs/heads/none")]
)
def test_setup_asks_before_it_joins_something_else_than_memories(
    branch: str, head: str, homes: tuple[Home, Home], stick: Path
) -> None:
    """It says what is there; without a terminal it is refused, unless `--yes` says yes."""
    one, two = homes
    one.aiaml("remember", "Max likes the sea.", "-t", "dog")
    theirs = repository_with(stick / "code.git", branch, "README.md", "src/a.py", "src/b.py")
    if head:
        (theirs / "HEAD").write_text(f"ref: {head}\n", encoding="utf-8")
    refs = git(theirs, "for-each-ref")
    said = one.aiaml("sync", "--setup", str(theirs), code=2)
    holds = f"3 files on its branch {branch} (README.md and src)"
    assert (f"the branches {branch}" if head else holds) in said, said
    assert head or "newest commit is Marco's, of a moment ago" in said, said
    assert "--yes" in said and "empty repository" in said, said
    assert git(theirs, "for-each-ref") == refs
    assert "Kept on this computer only" in one.aiaml("status")
    said = one.aiaml("sync", "--setup", str(theirs), "--yes")
    assert "something else" in said and "1 memory sent" in said, said
    said = two.aiaml("sync", "--setup", str(theirs))
    assert "It has 1 memory." in said and "1 memory arrived" in said, said


@pytest.mark.slow
def test_setup_counts_only_what_has_the_name_of_a_memory(
    homes: tuple[Home, Home], stick: Path
) -> None:
    """A file of somebody's is none, though it lies in `files` and ends in `.md`."""
    one, _ = homes
    one.aiaml("remember", "Max likes the sea.", "-t", "dog")
    theirs = repository_with(stick / "code.git", "main", "files/README.md", "files/notes.md")
    said = one.aiaml("sync", "--setup", str(theirs), code=2)
    assert "something else than memories: 2 files on its branch main (files)" in said, said
    said = one.aiaml("sync", "--setup", str(theirs), "--yes")
    assert "1 sent" in said, said
    assert "It has 1 memory." in one.aiaml("sync", "--setup", str(theirs))


def test_setup_asks_before_it_joins_over_ssh(homes: tuple[Home, Home], server: Server) -> None:
    """As on a disk."""
    one, _ = homes
    server.known_to(one)
    server.let_in(one)
    one.aiaml("remember", "Max likes the sea.", "-t", "dog")
    theirs = repository_with(server.place / "code.git", "main", "README.md")
    said = one.aiaml("sync", "--setup", server.address(theirs), code=2)
    assert "1 file on its branch main (README.md)" in said, said


@pytest.mark.slow
def test_setup_names_clients_that_go_elsewhere(homes: tuple[Home, Home], stick: Path) -> None:
    """Whose entry names a remote itself."""
    one, _ = homes
    for client, variable, value in [
        ("claude-code", "AIAML_GITHUB_REMOTE", "https://example.org/m.git"),
        ("codex", "AIAML_SYNC_INTERVAL", "30"),
    ]:
        one.environ[variable] = value
        one.aiaml("install", client)
        del one.environ[variable]
    said = one.aiaml("sync", "--setup", str(stick / "m.git"))
    assert f"servers that keep memories in {one.place / '.aiaml'} use it" in said, said
    assert "But not Claude Code, whose entry aiaml has AIAML_GITHUB_REMOTE" in said, said
    assert "Codex" not in said, said


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="there are no such modes")
def test_setup_makes_a_repository_for_its_owner_alone(
    homes: tuple[Home, Home], tmp_path: Path
) -> None:
    """Whatever the umask; also what is pushed later."""
    one, _ = homes
    one.aiaml("remember", "Max likes the sea.", "-t", "dog")
    one.aiaml("sync", "--setup", str(tmp_path / "m.git"))
    assert all(not path.stat().st_mode & 0o077 for path in [tmp_path / "m.git"])
    one.aiaml("remember", "Bo likes the hills.", "-t", "dog")
    one.aiaml("sync")
    open_ = [
        path for path in (tmp_path / "m.git" / "objects").rglob("*") if path.stat().st_mode & 0o077
    ]
    assert open_ == []


# --- over ssh -------------------------------------------------------------------------------------


class Server:
    """A computer that both homes reach by ssh, with keys of its own: sshd on loopback."""

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir()
        self.port = _free_port()
        self.authorized = place / "authorized_keys"
        self.authorized.touch(0o600)
        _make_key(place / "host")
        lines = [
            f"HostKey {place / 'host'}",
            f"AuthorizedKeysFile {self.authorized}",
            f"PidFile {place / 'pid'}",
            "ListenAddress 127.0.0.1",
            "StrictModes no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin prohibit-password",
        ]
        (place / "config").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def address(self, path: Path) -> str:
        """Return what a person types for a repository there."""
        return f"ssh://{getpass.getuser()}@127.0.0.1:{self.port}{path}"

    def known_to(self, home: Home) -> None:
        """Give a home a key of its own, and the host's."""
        _make_key(home.place / "key")
        public = (self.place / "host.pub").read_text(encoding="utf-8")
        (home.place / "hosts").write_text(f"[127.0.0.1]:{self.port} {public}", encoding="utf-8")
        files = {"IdentityFile": "key", "UserKnownHostsFile": "hosts"}
        options = [f"-o {name}={home.place / file}" for name, file in files.items()]
        words = ["ssh", "-F", "none", "-o IdentitiesOnly=yes", "-o IdentityAgent=none", *options]
        home.environ["GIT_SSH_COMMAND"] = " ".join(words)

    def let_in(self, home: Home) -> None:
        """Have a home's key authorized here, as `ssh-copy-id` does."""
        with self.authorized.open("a", encoding="utf-8") as keys:
            keys.write((home.place / "key.pub").read_text(encoding="utf-8"))


def _make_key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Start sshd, which ends with the test, and by itself after five minutes."""
    sshd = shutil.which("sshd", path=f"{Path('/usr/sbin')}:{Path('/usr/bin')}")
    if not (sshd and shutil.which("ssh") and shutil.which("timeout")) or " " in str(tmp_path):
        pytest.skip("needs sshd, ssh and timeout")
    if sys.platform != "linux" or not Path("/run/sshd").is_dir():
        pytest.skip("needs the directory /run/sshd, which sshd's package makes")
    server = Server(tmp_path / "server")
    words = [shutil.which("timeout") or "", "300", sshd, "-D", "-e", "-p", str(server.port)]
    log = (server.place / "log").open("wb")
    with log, subprocess.Popen([*words, "-f", str(server.place / "config")], stderr=log) as sshd_:
        try:
            while sshd_.poll() is None:
                with socket.socket() as one:
                    if not one.connect_ex(("127.0.0.1", server.port)):
                        break
                time.sleep(0.05)
            assert sshd_.poll() is None, (server.place / "log").read_text(encoding="utf-8")
            yield server
        finally:
            sshd_.terminate()


def test_setup_over_ssh_brings_memories_to_a_second_computer(
    homes: tuple[Home, Home], server: Server
) -> None:
    """A repository is made on a third one; a key that is not known there is explained."""
    one, two = homes
    remote = server.place / "far" / "memories.git"
    one.aiaml("remember", "Max likes the sea.", "-t", "dog")
    server.known_to(one)
    said = one.aiaml("sync", "--setup", server.address(remote), code=1)
    assert "this computer needs a key" in said and "ssh-copy-id" in said
    assert not remote.exists()
    server.let_in(one)
    server.known_to(two)
    server.let_in(two)
    said = one.aiaml("sync", "--setup", server.address(remote))
    assert "Made ssh://" in said and "1 memory sent" in said
    said = two.aiaml("sync", "--setup", server.address(remote))
    assert "Made" not in said and "1 memory arrived" in said
    two.aiaml("remember", "Bo likes the hills.", "-t", "dog")
    assert "1 memory sent" in two.aiaml("sync")
    assert "1 memory arrived" in one.aiaml("sync")
    assert "All is well: there is a copy" in one.aiaml("status")
    made = [remote.parent, remote, *remote.rglob("*")]
    assert [path for path in made if path.stat().st_mode & 0o077] == []


def test_setup_over_ssh_leaves_what_is_there_alone(
    homes: tuple[Home, Home], server: Server
) -> None:
    """A directory that is no repository stays as it is, and the sentence is git's cause."""
    one, _ = homes
    server.known_to(one)
    server.let_in(one)
    (server.place / "mine").mkdir()
    said = one.aiaml("sync", "--setup", server.address(server.place / "mine"), code=1)
    assert "no git repository" in said
    assert not any((server.place / "mine").iterdir())


# --- the recipes of docs/safe.md, as they stand ---------------------------------------------------

ADDRESS = "git@github.com:you/memories.git"


def recipes(title: str) -> list[str]:
    """Return the blocks of shell under a heading of docs/safe.md."""
    text = (ROOT / "docs" / "safe.md").read_text(encoding="utf-8")
    section = text.partition(f"\n### {title}\n")[2].partition("\n### ")[0]
    return re.findall(r"```sh\n(.*?)```", section, re.DOTALL)


def in_shell(home: Home, lines: str) -> str:
    """Run lines in somebody's shell, with `aiaml` and keys of its own; return the text."""
    program = home.place / "bin" / "aiaml"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec "{PYTHON}" -m aiaml_server "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    (home.place / ".gnupg").mkdir(mode=0o700, exist_ok=True)
    environ = {**home.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    environ["GNUPGHOME"] = str(home.place / ".gnupg")
    for who in ("AUTHOR", "COMMITTER"):
        environ |= {f"GIT_{who}_NAME": "Ann", f"GIT_{who}_EMAIL": "ann@example.org"}
    done = completed(["sh", "-c", lines], env=environ, cwd=home.place)
    assert done.returncode == 0, done
    return done.stdout + done.stderr


def needs(*programs: str) -> None:
    """Leave a test out where a program is missing."""
    missing = [program for program in ("sh", *programs) if not shutil.which(program)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")


@pytest.mark.slow
def test_encrypted_remote_brings_two_computers_together(homes: tuple[Home, Home]) -> None:
    """Also where both exchange at once; whoever hosts it finds no word of a memory."""
    needs("gpg", "git-remote-gcrypt")
    key, setup, exchange = recipes("An encrypted remote")
    one, two = homes
    host = one.place.parent / "host.git"
    in_shell(one, f"git init --quiet --bare '{host}'")
    in_shell(one, key.replace("gpg ", "gpg --batch --pinentry-mode loopback --passphrase '' "))
    in_shell(one, f"gpg --batch --export-secret-keys memories > '{two.place}/keys'")
    in_shell(two, "gpg --batch --import keys")
    try:
        for home in homes:
            in_shell(home, setup.replace(ADDRESS, str(host)))
            in_shell(home, f"aiaml remember 'From {home.place.name}, by the harbour.' -t test")
            in_shell(home, "aiaml sync")
        push = exchange.rpartition(";")[2]
        in_shell(one, f"cd memories.git; {push}")  # which the second one does not see first,
        in_shell(two, f"cd memories.git; {push}")  # so that it is written over
        for home in (two, one, two):
            in_shell(home, exchange)
        for home in homes:
            said = home.aiaml("list", "--all")
            assert "From one" in said and "From two" in said, said
        read = "git --git-dir '{}' cat-file --batch-all-objects --batch | grep -a -c {} || true"
        for word in ("harbour", r"'\.md'"):
            assert in_shell(one, read.format(host, word)).strip() == "0"
            assert in_shell(one, read.format("memories.git", word)).strip() != "0"
    finally:
        for home in homes:
            in_shell(home, "gpgconf --kill all")


def test_encrypted_copy_comes_back(homes: tuple[Home, Home]) -> None:
    """One file, made and read by age, in which no word can be read."""
    needs("age", "age-keygen")
    key, copy, back = recipes("An encrypted copy")
    one, two = homes
    one.aiaml("remember", "By the harbour.", "-t", "test")
    one.aiaml("sync")
    in_shell(one, key + copy)
    made = (one.place / "memories.age").read_bytes()
    assert made.startswith(b"age-encryption.org/v1") and b"harbour" not in made
    for name in ("memories.age", "memories.key"):
        shutil.copy(one.place / name, two.place)
    in_shell(two, back)
    assert "By the harbour." in two.aiaml("list")
