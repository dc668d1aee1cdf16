"""A memory's file: readable by any YAML parser, changed byte by byte, safe from strangers."""

from __future__ import annotations

import os
import random
import sys
import threading
from collections import Counter
from itertools import pairwise
from pathlib import Path
from unittest import mock

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from shop import FACT, make_shop, save, write

from aiaml_server.errors import DiskError
from aiaml_server.format.frontmatter import split
from aiaml_server.toolsets.citations import Citation, Memory, MemoryService
from aiaml_server.toolsets.citations.citing import build_citation
from aiaml_server.toolsets.citations.errors import InvalidCitation, MalformedMemory
from aiaml_server.toolsets.citations.frontmatter import parse, parse_canonical, render
from aiaml_server.toolsets.citations.sources import SourceTree
from aiaml_server.toolsets.citations.verify import check_citations
from machine import git
from secrets_corpus import ALNUM, of

VALUE = of(ALNUM, 32)(random.Random(28))
TEXTS = st.text(
    st.one_of(
        st.sampled_from(" \n\t#:-'\"\\[]{}&*!|%@`,?~.=nulltrue1"), st.characters(codec="utf-8")
    )
)

pytestmark = pytest.mark.usefixtures("nobodys_configuration")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with a file of code."""
    return make_shop(tmp_path / "shop")


@given(st.lists(TEXTS, min_size=3), st.dictionaries(st.sampled_from("abc"), TEXTS, min_size=1))
def test_what_is_written_is_read_by_all_alike(texts: list[str], entry: dict[str, str]) -> None:
    """By the standard library alone and by PyYAML: any text, in a scalar, a list and a map."""
    fields = {"subject": texts[0], "confidence": 0.5, "tags": texts, "links": [entry, entry]}
    head = split(render(fields, "content")).head
    expected = {**fields, "confidence": "0.5"}
    assert parse_canonical(head) == expected
    assert yaml.load(head, yaml.BaseLoader) == expected  # noqa: S506
    assert yaml.safe_load(head)["subject"] == texts[0]


def test_other_yaml_is_read_by_pyyaml() -> None:
    """What is not canonical is left to it, and nothing is guessed."""
    example = "id: mem-a\nsubject: API version must match\nconfidence: 0.92\n"
    example += "links:\n  - type: related\n    target: mem-b"
    assert parse_canonical(example) == yaml.load(example, yaml.BaseLoader)  # noqa: S506
    for head in ("a: 'x'", "a: [x]", "a: {b: c}", "a: |\n  x", "a: x # c", 'a: "\\x41"', "a: b: c",
                 "  - x", "a: x\n  - y", "a:\n- x", "a: &x y\nb: *x", "a: x\na: y"):  # fmt: skip
        assert parse_canonical(head) is None, head
    assert parse("a: 'x'") == {"a": "x"}
    bomb = "a: &a [x, x]\n"
    for first, second in pairwise("abcdefghijklmnopqrstuvwxyz"):
        bomb += f"{second}: &{second} [*{first}, *{first}]\n"
    for head in (bomb, "a: b: c", "- a", "a: \x07", "[" * 5000):
        with pytest.raises(MalformedMemory):
            parse(head)


def test_malformed_memories_say_what_is_wrong(shop: Path) -> None:
    """One sentence for each."""
    head = "id: mem-x\nsubject: s\n"
    for text, part in (
        ("x\n", "first line is not ---"),
        (f"---\n{head}", "no second line"),
        ("---\nid: mem-x\n---\n", "subject"),
        (f"---\n{head}created: yesterday\n---\n", "times such as"),
        (f"---\n{head}confidence: 1.5\n---\n", "confidence"),
        (f"---\n{head}tags: x\n---\n", "tags must be a list"),
        (f"---\n{head}citations:\n  - x\n---\n", "citations must be a list of maps"),
        (f"---\n{head}citations:\n  - path: a\n    line: 0\n---\n", "line is missing or wrong"),
        (f"---\n{head}links:\n  - type: likes\n    target: mem-y\n---\n", "type"),
        (f"---\n{head}tags:\n" + "  - x\n" * 20_000 + "---\n", "longer than 65,536"),
        (f"---\n{head}<<<<<<< HEAD\nverified: x\n=======\n---\n", "left of an unfinished merge"),
        ("x" * 1_100_000, "larger than 1,048,576 bytes"),
    ):
        write(shop, "memories/mem-x.md", text)
        with pytest.raises(MalformedMemory, match=part) as raised:
            MemoryService(shop).store.get("mem-x")
        assert str(raised.value).startswith("memories/mem-x.md: ")
    (shop / "memories/mem-x.md").write_bytes(b"---\n\xff\n")
    with pytest.raises(MalformedMemory, match="utf-8"):
        MemoryService(shop).store.get("mem-x")


def test_an_update_changes_no_other_byte(shop: Path) -> None:
    """Comments, unknown keys, other YAML, line ends and the order of entries stay."""
    before = (
        "---\r\nid: mem-x\r\n# a remark\r\nsubject: 'quoted'\r\nowner: {name: Ada}\r\n"
        "verified: 2020-01-01  # old\r\ntags: [a,\r\n  b]\r\n---\r\n\r\nText.\r\n\r\n"
    )
    for changes, old, new in (
        ({"tags": ["c"]}, "tags: [a,\r\n  b]\r\n", "tags:\r\n  - c\r\n"),
        ({"subject": "Other"}, "'quoted'", "Other"),
        ({"content": "More\ntext."}, "\r\nText.\r\n\r\n", "\r\nMore\r\ntext.\r\n"),
        ({"content": "Text."}, "", ""),
    ):
        write(shop, "memories/mem-x.md", before)
        MemoryService(shop).save(id="mem-x", **changes)
        assert (shop / "memories/mem-x.md").read_bytes().decode() == before.replace(old, new)
    write(shop, "memories/mem-x.md", "---\nid: mem-x\nsubject: &s x\nowner: *s\n---\n")
    with pytest.raises(MalformedMemory, match="not a YAML map"):
        MemoryService(shop).save("y", id="mem-x")


def test_eight_writers_lose_nothing(shop: Path) -> None:
    """And leave no unfinished file; what a killed writer has left is removed."""
    write(shop, "memories/.aiaml-0123456789abcdef0.tmp", "half")

    def work(number: int) -> None:
        for count in range(5):
            MemoryService(shop).save(f"Memory {number} {count}", FACT)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(MemoryService(shop).store.scan().memories) == 40
    assert all(path.suffix == ".md" for path in (shop / "memories").iterdir())
    with pytest.raises(Exception, match="is taken by"):
        MemoryService(shop).save(
            "a", FACT, id=MemoryService(shop).store.ids()[0].upper().replace("MEM-", "mem-")
        )


@pytest.mark.skipif(sys.platform == "win32", reason="it cannot sync a directory")
def test_a_deletion_is_durable_before_it_is_acknowledged(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the directory cannot be synced, it is no success."""
    memory_id = save(shop, "prices.py:2")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(DiskError, match="no space left"):
        MemoryService(shop).delete(memory_id)
    monkeypatch.undo()
    assert not MemoryService(shop).store.scan().memories


# --- repositories of strangers --------------------------------------------------------------------


def test_text_of_ignored_files_is_never_copied_or_shown(shop: Path) -> None:
    """Neither by saving nor by verifying, nor through a link; a tracked file is not ignored."""
    write(shop, ".gitignore", "*.ini\nprices.py\n")
    write(shop, "local.ini", f"[api]\nsecond = {VALUE}\n")
    write(shop, "conf/.gitignore", "*.local\n")
    write(shop, "conf/db.local", f"first\nsecond = {VALUE}\n")
    (shop / "link").symlink_to("local.ini")
    git(shop, "add", "--force", "prices.py")
    for path in ("local.ini", "conf/db.local", "./conf//db.local", "link"):
        for snippet in (None, f"second = {VALUE}"):
            citation, warning = build_citation(Citation(path, 2, snippet), SourceTree(shop))
            assert citation.snippet is None and citation.line == 2
            assert "git ignores it, so none of its text is kept" in warning
        answers = []
        for line, text in ((2, "second = "), (2, f"second = {VALUE}"), (900, "first = 3")):
            (found,) = check_citations([Citation(path, line, text)], SourceTree(shop))
            answers.append((found.verdict, found.note, found.places))
        assert len(set(map(str, answers))) == 1 and answers[0][0] == "unseen"
    assert build_citation(Citation("prices.py", 2), SourceTree(shop))[0].snippet


def test_ignored_files_of_odd_repositories(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings that name another work tree, git that fails, no git: no secret is copied."""
    write(shop, ".gitignore", "local.ini\n")
    write(shop, "local.ini", f"second = {VALUE}\n")
    write(shop, ".env", f"second = {VALUE}\n")
    other = make_shop(shop.parent / "other")
    write(other, "local.ini", "tracked there\n")
    git(other, "add", "local.ini")
    write(shop.parent, "evil", f"#!/bin/sh\ntouch {shop.parent / 'ran'}\n")
    (shop.parent / "evil").chmod(0o755)
    git(shop, "config", "core.fsmonitor", str(shop.parent / "evil"))
    for worktree in ("/", str(other)):
        git(shop, "config", "core.worktree", worktree)
        citation, warning = build_citation(Citation("local.ini", 1), SourceTree(shop))
        assert citation.snippet is None and "git ignores it" in warning
    with pytest.MonkeyPatch.context() as hook:  # git sets it for its hooks
        hook.setenv("GIT_DIR", str(other / ".git"))
        citation, warning = build_citation(Citation("local.ini", 1), SourceTree(shop))
    assert citation.snippet is None and "git ignores it" in warning
    assert not (shop.parent / "ran").exists()
    write(shop, ".git/HEAD", "broken")
    citation, warning = build_citation(Citation("prices.py", 1), SourceTree(shop))
    assert citation.snippet is None and "git does not say" in warning and "fatal" in warning
    slow = mock.patch("aiaml_server.toolsets.git.GIT_SECONDS", 0)
    full = mock.patch("subprocess.Popen", side_effect=OSError("no memory"))
    for fault, reason in ((slow, "no answer within 0 s"), (full, "no memory")):
        with fault:
            citation, warning = build_citation(Citation("prices.py", 1), SourceTree(shop))
        assert citation.snippet is None and reason in warning
    monkeypatch.setenv("PATH", "")
    for name, kept in ((".env", False), ("prices.py", True)):
        citation, warning = build_citation(Citation(name, 1), SourceTree(shop))
        assert (citation.snippet is not None) is kept
        assert ("hold secrets" in warning) is not kept


def test_nothing_outside_is_read_or_written(shop: Path, tmp_path: Path) -> None:
    """Links, parents, `.git`, absolute paths, and a directory of memories that is a link."""
    write(tmp_path, "outside/secret.py", f"{VALUE}\n")
    (shop / "out").symlink_to(tmp_path / "outside")
    (shop / "file.py").symlink_to(tmp_path / "outside/secret.py")
    for path in ("out/secret.py", "file.py", "../outside/secret.py", ".git/config", "a/../.git/x",
                 "/etc/passwd", "C:/x", "a\0b"):  # fmt: skip
        (found,) = check_citations([Citation(path, 1, VALUE)], SourceTree(shop))
        assert found.verdict == "outside" and VALUE not in found.note, path
        with pytest.raises(InvalidCitation):
            build_citation(Citation(path, 1), SourceTree(shop))
    (shop / "memories").symlink_to(tmp_path / "outside")
    with pytest.raises(DiskError, match="link"):
        save(shop, "prices.py:1")
    (shop / "memories").unlink()
    (shop / "memories").mkdir()
    (shop / "memories/mem-x.md").symlink_to(tmp_path / "outside/secret.py")
    assert "symbolic link" in MemoryService(shop).store.scan().unread["memories/mem-x.md"]
    assert sorted(path.name for path in (tmp_path / "outside").iterdir()) == ["secret.py"]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes in its file system")
def test_pipes_and_huge_files_are_not_opened(shop: Path) -> None:
    """As a cited file, a memory, the configuration; the file is missing or unseen."""
    os.mkfifo(shop / "pipe.py")
    with (shop / "huge.py").open("wb") as file:
        file.truncate(1 << 40)
    for path, verdict in (("pipe.py", "missing"), ("huge.py", "unseen"), ("memories", "missing")):
        (found,) = check_citations([Citation(path, 1, "x = 1")], SourceTree(shop))
        assert found.verdict == verdict, path
    (shop / "memories").mkdir()
    os.mkfifo(shop / "memories/mem-pipe.md")
    assert "pipe" in MemoryService(shop).store.scan().unread["memories/mem-pipe.md"]
    os.mkfifo(shop / ".memory-config.yaml")
    with pytest.raises(Exception, match="pipe"):
        MemoryService(shop)


def test_a_verification_ends_in_any_repository(shop: Path) -> None:
    """It stops reading after a time and an amount, and takes no step for each pair of lines."""
    save(shop, "prices.py:2")
    (cited,) = MemoryService(shop).store.scan().memories.values()
    (found,) = check_citations(cited.citations, SourceTree(shop, seconds=-1))
    assert found.verdict == "unseen" and "60 seconds" in found.note

    (shop / "f0.tx").write_bytes(b"x\n" * (1 << 21))  # 4 MiB
    for number in range(1, 40):
        os.link(shop / "f0.tx", shop / f"f{number}.tx")
    git(shop, "add", "--all")
    tree = SourceTree(shop)
    gone = Citation("gone.tx", 1, "not there", "x")
    found, other = check_citations([gone, Citation("prices.py", 2)], tree)
    assert (found.verdict, other.verdict) == ("missing", "unseen")
    assert "128 MiB" in other.note

    write(shop, "equal.py", "x\n" * 50_000)
    (found,) = check_citations([Citation("equal.py", 1, "x", "y")], SourceTree(shop))
    assert found.verdict == "ambiguous"


def test_a_missing_file_costs_no_path_object_for_each_tracked_file(shop: Path) -> None:
    """Otherwise a hundred missing citations among 50,000 files take half a minute."""
    for number in range(1_000):
        (shop / f"{number}.py").touch()
    git(shop, "add", "--all")
    tree = SourceTree(shop)
    check_citations([Citation("gone.py", 1, "not there")], tree)  # reads all files
    events: Counter[bool] = Counter()
    sys.setprofile(lambda frame, *_: events.update(["pathlib" in frame.f_code.co_filename]))
    try:
        check_citations([Citation("other.py", 1, "not there")], tree)
    finally:
        sys.setprofile(None)
    assert 0 < events[True] < 10_000


def test_memories_beyond_10_000_are_named(shop: Path) -> None:
    """So a planted directory does not fill the memory, and nothing is left out silently."""
    (shop / "memories").mkdir()
    for number in range(10_001):
        (shop / "memories" / f"mem-{number}.md").touch()
    scan = MemoryService(shop).store.scan()
    assert len(scan.unread) == 10_001 and "only the first 10,000" in scan.unread["memories"]


def test_a_repository_of_another_user_is_not_taken(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it was only found upwards; one that is named is served."""
    from aiaml_server.toolsets.citations import service

    monkeypatch.setattr(service, "foreign_owner", lambda *_: "it belongs to another user")
    (shop / "lib").mkdir()
    with pytest.raises(Exception, match="another user"):
        service.find_repository("", shop / "lib")
    assert service.find_repository(str(shop)) == shop
    with pytest.raises(Exception, match="not in a repository"):
        service.find_repository(str(shop / "lib"))


def test_the_library_is_used_directly(shop: Path) -> None:
    """As the documentation shows it."""
    saved = MemoryService(shop).save("Prices", FACT, [Citation("prices.py", 2)])
    memory = MemoryService(shop).store.get(saved["id"])
    assert isinstance(memory, Memory) and memory.fact == "Prices are in cents."
