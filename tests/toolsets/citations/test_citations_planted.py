"""Repositories that a stranger has made: what `citations` looks at in a call has an end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from aiaml_server.toolsets.citations import repository
from aiaml_server.toolsets.citations.effort import TooMuch
from aiaml_server.toolsets.citations.failures import InvalidInput
from aiaml_server.toolsets.citations.memories import Memories
from aiaml_server.toolsets.citations.model import Citation
from aiaml_server.toolsets.citations.verify import check
from printed import completed

linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as Linux counts it")

MOST = 150 * 1024  # KiB of memory above a healthy repository
HEAD = 64 * 1024  # bytes
SAYS = "word {n} is here. "
LINES = 190_000


def memory(number: int, entries: str = "", content: str = "Fact.", key: str = "citations") -> str:
    """Return a memory's file, in which a key has some entries."""
    stated = dict.fromkeys(("citations", "links", "tags"), entries or " []")
    stated = {name: entries if name == key and entries else " []" for name in stated}
    head = f"id: mem-a-{number:08d}\nsubject: s{number}\ncreated: 2025-01-20T10:00:00Z"
    lists = "\n".join(f"{name}:{each}" for name, each in stated.items())
    return f"---\n{head}\nverified: null\nconfidence: null\n{lists}\n---\n\n{content}\n"


def filled(entry: str, most: int = HEAD - 300) -> str:
    """Return as many entries, numbered, as a head may have."""
    parts: list[str] = []
    room = most
    while room > 0:
        parts.append(entry.format(n=len(parts)))
        room -= len(parts[-1])
    return "".join(parts[:-1])


def citing(path: str, line: str, snippet: str, more: str = "") -> str:
    """Return an entry that cites a line."""
    return f'\n  - path: {path}\n    line: {line}\n    snippet: "{snippet}"{more}'


Files = Iterator[tuple[str, str]]
AROUND = '\n    before: "foo = bar(1, 2)"\n    after: "foo = bar(1, 2)"'


def sources(kind: str) -> Files:
    """Yield the sources of a planted repository."""
    if kind == "other lines":
        yield "a.py", "".join(f"value_{n} = compute({n}, it)\n" for n in range(LINES))
    elif kind == "empty lines":
        yield "a.py", "\n" * LINES + "x = 1\n"
    elif kind in ("the same line", "many places"):
        yield "a.py", "foo = bar(1, 2)\n" * LINES
    elif kind == "one long line":
        yield "a.py", "x y " * 2_000_000 + "\nz\nv w\n"
    elif kind == "large files":
        for number in range(20):
            yield f"f{number}.py", "".join(f"x = {n}\n" for n in range(LINES))
    elif kind == "much to look through":
        for number in range(80):
            yield f"f{number}.py", "x = 1  # yes\n" * 80_000
    elif kind == "long and alike":
        yield "a.py", "".join(f"foo {n % 3000} = {'x y ' * 50}\n" for n in range(20_000))
    else:
        yield from code(kind)


def code(kind: str) -> Files:
    """Yield the sources of those in which it is the code that costs."""
    if kind == "one line of code":
        yield "a.py", "x = (1, \"a\", 'b') + " * 400_000
    elif kind == "long snippets":
        yield "a.py", "def f(a: int = 1, b: str = 2) -> None:\n" * 25_000
    elif kind == "gone files":
        for number in range(2000):
            text = f"longer line of code number {number % 7} here\nother line {number}\n"
            yield f"f{number}.py", text * 300
    elif kind == "many ignores":
        yield ".gitignore", "".join(f"**/a*b*c*{n}*d*e*f*g*/**/x*{n}\n" for n in range(1000))
        for number in range(2000):
            yield f"d{number}/e/f/a{number}.py", "x"


PLANTED: dict[str, tuple[int, Callable[[int], str]]] = {
    "long contents": (60, lambda n: memory(n, content=filled(f"w{n}x{{n}} ", 1_000_000))),
    "many tags": (100, lambda n: memory(n, filled("\n  - t{n}"), key="tags")),
    "unusual tags": (60, lambda n: memory(n, filled("\n  - 't{n}'"), key="tags")),
    "other YAML": (60, lambda n: memory(n, filled("\n  - &a{n} t"), key="tags")),
    "many citations": (60, lambda n: memory(n, filled("\n  - path: a{n}.py"))),
    "many links": (
        60,
        lambda n: memory(n, filled("\n  - type: related\n    target: mem-a-{n:08d}"), key="links"),
    ),
    "other lines": (20, lambda n: memory(n, filled(citing("a.py", "1{n}", f"v_{n} = {{n}}, it")))),
    "empty lines": (20, lambda n: memory(n, filled(citing("a.py", "1{n}", "y = {n}", AROUND)))),
    "the same line": (20, lambda n: memory(n, filled(citing("a.py", "1{n}", "foo = bar(1, {n}")))),
    "many places": (
        20,
        lambda n: memory(
            n, filled(citing("a.py", "{n}000000", "foo = bar(1, 2)", AROUND + "\n    times: 2"))
        ),
    ),
    "one long line": (20, lambda n: memory(n, filled(citing("a.py", "1", "q {n}", AROUND)))),
    "large files": (20, lambda n: memory(n, filled(citing("f{n}.py", "1", "q", AROUND), 2500))),
    "much to look through": (
        20, lambda n: memory(n, filled(citing("z{n}.py", "1", f"no such line is anywhere {n}")))
    ),
    "long and alike": (
        20, lambda n: memory(n, filled(citing("a.py", "1{n}", "foo {n} = " + "x y " * 40)))
    ),
    "one line of code": (
        20, lambda n: memory(n, filled(citing("a.py", "1{n}", "x = (1, 'a', 'c')", AROUND)))
    ),
    "long snippets": (20, lambda n: memory(n, citing("a.py", "1", "def f(a, b, " * 4900))),
    "gone files": (
        20,
        lambda n: memory(
            n,
            filled(
                citing(
                    "gone{n}.py", "1", f"longer line of code number {n % 7} here",
                    '\n    before: "other line {n}"',
                )
            ),
        ),
    ),
    "many ignores": (
        20, lambda n: memory(n, filled(citing("gone{n}.py", "1", "no such line is anywhere")))
    ),
}  # fmt: skip
"""For each kind of repository how many memories it has, and each of them by its number."""

ASKED = """
import json, resource, sys
from aiaml_server.toolsets.citations.tools import CitationTools
healthy, planted = map(CitationTools, sys.argv[1:])
calls = {
    "search": lambda of: of.memory_search("which word is it", limit=1000, verify=True),
    "list": lambda of: of.memory_list(),
    "verify": lambda of: of.memory_verify("mem-a-00000001"),
    "verify all": lambda of: of.memory_batch_verify(),
    "related": lambda of: of.memory_graph_related("mem-a-00000001"),
    "walk": lambda of: of.memory_graph_traverse("mem-a-00000001", max_depth=2),
}
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for call in calls.values():
    call(healthy)
before, said = peak(), {}
for name, call in calls.items():
    try:
        said[name] = str(call(planted))
    except Exception as error:
        said[name] = f"{type(error).__name__}: {error}"
print(json.dumps({"more": peak() - before, "said": said}))
"""


def planted(root: Path, kind: str, count: int = 0) -> Path:
    """Make a repository; return its top."""
    (root / "memories").mkdir(parents=True)
    for name, text in sources(kind):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    most, made = PLANTED.get(kind, (5, lambda n: memory(n, content=filled(SAYS, 1000))))
    for number in range(count or most):
        (root / "memories" / f"mem-a-{number:08d}.md").write_text(made(number))
    if kind != "many ignores":  # which are read where there is no git
        subprocess.run(["git", "init", "-q", root], check=True)
        subprocess.run(["git", "-C", root, "add", "."], check=True)
    return root


@pytest.mark.slow
@linux
@pytest.mark.parametrize("kind", PLANTED)
def test_planted_repository_costs_little(tmp_path: Path, kind: str) -> None:
    """No call takes much memory, and none says that all is valid."""
    healthy, hostile = planted(tmp_path / "healthy", ""), planted(tmp_path / "planted", kind)
    done = completed([sys.executable, "-c", ASKED, healthy, hostile], timeout=120)
    found: dict[str, Any] = json.loads(done.stdout)
    assert not [each for each in found["said"].values() if "Error" in each[:40]]
    assert found["more"] < MOST
    assert "'valid': False" in found["said"]["verify all"]


@pytest.mark.slow
def test_planted_memories_leave_the_others_found(tmp_path: Path) -> None:
    """The largest are left out, with how many, whatever they are called; the person's are found."""
    root = planted(tmp_path, "long contents")
    own = Memories(root).save("Prices are in cents", "**Fact**: zebra.", []).id
    found = Memories(root).search("zebra")
    assert [each.memory.id for each in found.hits] == [own]
    (said,) = found.broken.values()
    assert "memories, the largest, were not looked at" in said
    assert "name some by their ids" in said
    scan = Memories(root).list()
    assert said.startswith(f"memories: {61 - len(scan.memories)} of 61 ")


@pytest.mark.slow
def test_planted_citations_are_unseen_and_not_green(tmp_path: Path) -> None:
    """What was not looked at has a verdict of its own, exit code 2; alone it is looked at."""
    root = planted(tmp_path, "other lines", 3)
    (root / "b.py").write_text("price = 3  # cents\n")
    own = Memories(root).save("Prices", "**Fact**: z.", [Citation("b.py", 1)], id="mem-z-1").id
    results, broken = Memories(root).verify_all()
    assert not broken
    verdicts = {each.memory.id: {one.verdict for one in each.checked} for each in results}
    assert verdicts["mem-a-00000002"] == {"unseen"}
    assert not any(each.valid for each in results if each.memory.id != own)
    (alone,), _ = Memories(root).verify_all([own])
    assert alone.valid
    command = [sys.executable, "-m", "aiaml_server", "citations", "verify", "--repo", str(root)]
    assert completed(command).returncode == 2


@pytest.mark.slow
def test_planted_walk_is_refused_with_what_helps(tmp_path: Path) -> None:
    """A walk that reaches too much is refused by name, and a nearer one is not."""
    root = planted(tmp_path, "long contents")
    others = [f"{name}" for name in Memories(root).store.ids()]
    entries = "".join(f"\n  - type: related\n    target: {each}" for each in others)
    (root / "memories" / "mem-b-1.md").write_text(
        memory(1, entries, key="links").replace("mem-a-00000001", "mem-b-1", 1)
    )
    with pytest.raises(TooMuch, match="ask for fewer by ids"):
        Memories(root).traverse("mem-b-1", 1)
    assert issubclass(TooMuch, InvalidInput)
    assert list(Memories(root).traverse("mem-b-1", 0).nodes) == ["mem-b-1"]


# --- what git would run ---------------------------------------------------------------------------


def git(place: Path, *words: str) -> str:
    """Return what git prints, as somebody who plants a repository runs it."""
    who = (
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@example.org",
        "-c",
        "protocol.file.allow=always",
    )
    done = completed(["git", "-C", place, *who, *words])
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def fetched_lazily(place: Path, program: Path) -> None:
    """Make a repository of which a tree is missing, which a program is to bring."""
    for name in ("keep/a.py", "other/b.py", "memories/x.txt"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("x = 1\ny = 2\n")
    git(place, "init", "-q")
    git(place, "add", ".")
    git(place, "commit", "-q", "-m", "x")
    missing = git(place, "rev-parse", "HEAD:other")
    git(place, "sparse-checkout", "set", "--cone", "--sparse-index", "keep")
    (place / ".git" / "objects" / missing[:2] / missing[2:]).unlink()
    settings = {
        "core.repositoryformatversion": "1", "extensions.partialClone": "origin",
        "remote.origin.url": ".", "remote.origin.promisor": "true",
        "remote.origin.uploadpack": str(program),
    }  # fmt: skip
    for name, value in settings.items():
        git(place, "config", name, value)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that leaves a mark where it is run."""
    path = tmp_path / "program.sh"
    path.write_text(f"#!/bin/sh\necho ran >> '{tmp_path}/ran'\n")
    path.chmod(0o755)
    return path


def used(root: Path) -> None:
    """Do all that asks git."""
    memories = Memories(root)
    memories.save("s", "**Fact**: x is 1.", [Citation("keep/a.py", 1)])
    memories.save("t", "**Fact**: y is 2.", [Citation("keep/a.py", 2)])
    (root / "keep" / "a.py").unlink()
    memories.verify_all(update_timestamp=False)
    with suppress(InvalidInput):
        memories.changed("HEAD")


@pytest.mark.skipif(os.name == "nt", reason="the program is a script of a shell")
@pytest.mark.parametrize("bare", [False, True])
def test_git_fetches_nothing_by_a_planted_program(
    tmp_path: Path, program: Path, bare: bool
) -> None:
    """Neither in a repository that was unpacked nor where a clone has a bare one in it."""
    root = tmp_path / "root"
    root.mkdir()
    if bare:
        git(root, "init", "-q")
        root = root / "inner"
        root.mkdir()
        (root / ".memory-config.yaml").write_text("{}\n")
    fetched_lazily(root, program)
    if bare:
        for each in (root / ".git").iterdir():
            each.rename(root / each.name)
        (root / ".git").rmdir()
        git(root, "config", "--file", "config", "core.worktree", ".")
    used(root)
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(os.name == "nt", reason="the program is a script of a shell")
def test_changed_runs_no_filter(tmp_path: Path, program: Path) -> None:
    """Files are compared with a commit by us; one that was only touched is the same."""
    root = tmp_path / "root"
    root.mkdir()
    for name in ("a.py", "b.py", "c.py"):
        (root / name).write_text("x = 1\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "x")
    (root / ".gitattributes").write_text("*.py filter=x\n")
    git(root, "config", "filter.x.clean", str(program))
    git(root, "config", "filter.x.process", str(program))
    memories = Memories(root)
    memories.save("s", "**Fact**: x.", [Citation(f"{each}.py", 1) for each in "abc"])
    os.utime(root / "a.py", (1, 1))
    (root / "b.py").write_text("x = 2\n")
    (root / "c.py").unlink()
    with pytest.raises(InvalidInput, match="git knows no commit 'nothing'"):
        memories.changed("nothing")
    assert sorted(memories.changed("HEAD")[0]) == ["b.py", "c.py"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(os.name == "nt", reason="the program is a script of a shell")
def test_changed_shows_no_commit(tmp_path: Path, program: Path) -> None:
    """Where a tree has a commit for a file, git would show it: signature, conversions and all."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.py").write_text("x = 1\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "x")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n"
    signed = git(root, "cat-file", "commit", "HEAD").replace("\n\n", f"\n{signature}", 1)
    (tmp_path / "commit").write_text(f"{signed}\n")
    name = git(root, "hash-object", "-t", "commit", "-w", str(tmp_path / "commit"))
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{name},b.py")
    git(root, "commit", "-q", "-m", "y")
    (root / ".gitattributes").write_text("*.py diff=x\n")
    git(root, "config", "log.showSignature", "true")
    git(root, "config", "gpg.program", str(program))
    git(root, "config", "diff.x.textconv", str(program))
    git(root, "config", "pager.show", str(program))
    memories = Memories(root)
    memories.save("s", "**Fact**: x.", [Citation("a.py", 1)])
    for each in (root / "memories").iterdir():
        each.write_text(each.read_text().replace("a.py", "b.py"))
    _, past = memories.changed("HEAD")
    for result in memories.verify_all()[0]:
        for one in result.stale:
            assert check(one.citation, past).verdict == "missing"
    assert not (tmp_path / "ran").exists()


def test_no_line_is_copied_that_a_submodule_ignores(tmp_path: Path) -> None:
    """Nor one whose path means another file to git."""
    inner, root = tmp_path / "inner", tmp_path / "root"
    for place in (inner, root):
        place.mkdir()
        git(place, "init", "-q")
        (place / "a.py").write_text("x = 1\n")
    (inner / ".gitignore").write_text("local.py\n")
    (root / ".gitignore").write_text("/:/\n")
    for place in (inner, root):
        git(place, "add", ".")
        git(place, "commit", "-q", "-m", "x")
    git(root, "submodule", "--quiet", "add", str(inner), "sub")
    (root / "sub" / "local.py").write_text("key = 'value of the key'\n")
    (root / "conf.py").write_text("z = 1\n")
    places = [Citation("sub/local.py", 1), Citation("sub/a.py", 1)]
    if os.name != "nt":  # where no name has a colon
        (root / ":").mkdir()
        (root / ":" / "conf.py").write_text("key = 'value of the key'\n")
        places.append(Citation(":/conf.py", 1))
    memories = Memories(root)
    saved = memories.save("s", "**Fact**: x.", places)
    kept = {each.path: each.snippet for each in memories.get(saved.id).citations}
    assert kept["sub/a.py"] == "x = 1"
    assert [path for path, snippet in kept.items() if snippet] == ["sub/a.py"]


@pytest.mark.skipif(os.name == "nt", reason="there are no such pipes")
def test_git_that_does_not_end_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where it does not say whether a file is ignored, no line of it is copied."""
    monkeypatch.setattr(repository, "_AT_ONCE", 0.3)
    (tmp_path / "a.py").write_text("x = 1\n")
    git(tmp_path, "init", "-q")
    os.mkfifo(tmp_path / ".git" / "pipe")
    git(tmp_path, "config", "include.path", "pipe")
    for number in range(3):
        saved = Memories(tmp_path).save(f"s{number}", "**Fact**: x.", [Citation("a.py", 1)])
        assert "git does not say whether it ignores it" in " ".join(saved.warnings)
        assert not Memories(tmp_path).get(saved.id).citations[0].snippet


@pytest.mark.skipif(os.name == "nt", reason="there are no such pipes")
@pytest.mark.parametrize("name", ["index", "HEAD", "config", "refs/heads/pipe"])
def test_git_is_not_asked_where_it_would_wait(tmp_path: Path, name: str) -> None:
    """A pipe among its files: it waited half a minute for one that nobody writes into."""
    git(tmp_path, "init", "-q")
    (tmp_path / "memories").mkdir()
    text = memory(1, citing("gone.py", "1", "a line that was long enough"))
    (tmp_path / "memories" / "mem-a-00000001.md").write_text(text)
    (tmp_path / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / ".git" / name)
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / ".git").write_text("gitdir: ../.git\n")
    (tmp_path / "memories").rename(inner / "memories")
    (found,), _ = Memories(inner).verify_all()
    assert [each.verdict for each in found.checked] == ["unseen"]
    with pytest.raises(InvalidInput):
        Memories(inner).changed("pipe")
