"""What is read from outside has a largest size. What is larger is refused, with the limit."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from aiaml_server.cli import main
from aiaml_server.errors import AiamlError, InvalidInput, MalformedFile
from aiaml_server.format.frontmatter import MAX_HEAD
from aiaml_server.format.memory import MAX_CONTENT, parse
from aiaml_server.format.scorer import clean, score
from aiaml_server.storage.store import MAX_FILE, Store

KIB, MIB = 1024, 1024 * 1024


def test_a_file_that_is_too_large_is_no_memory(tmp_path: Path) -> None:
    """It is not read, whatever is in it."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.md").write_bytes(b"x" * (MAX_FILE + KIB))
    with pytest.raises(MalformedFile, match="larger than 4,194,304 bytes"):
        Store(tmp_path).read("a.md")


def test_a_memory_that_is_too_long_is_not_stored(
    bank: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Piped into the command."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x " * MAX_CONTENT)))
    assert main(["remember", "-", "-t", "x"]) != 0
    assert "content" in capsys.readouterr().err
    assert bank.names() == []


def git_directory(place: Path) -> None:
    """Make what counts as the top of a work tree."""
    (place / ".git").mkdir(exist_ok=True)
    (place / ".git" / "HEAD").write_text("ref: refs/heads/main\n")


def compartments(place: Path) -> object:
    """Open the file of the entries."""
    from aiaml_server.toolsets.compartments import Compartments

    with Compartments(place / "entries.json") as memory:
        return memory.get("session")


@pytest.mark.parametrize(
    ("name", "size", "read", "limit"),
    [
        ("entries.json", 5 * MIB, compartments, "larger than 5,242,880 bytes"),
    ],
)
def test_a_file_of_a_toolset_that_is_too_large_is_named(
    name: str, size: int, read: Callable[[Path], object], limit: str, tmp_path: Path
) -> None:
    """It is refused or left out, and the limit is in the answer."""
    git_directory(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"---\n" + b"a: b\n" * (size // 5 + KIB) + b"---\nx\n")
    try:
        output = str(read(tmp_path))
    except (AiamlError, ValueError) as error:
        output = str(error)
    assert re.search(limit, output)


def test_compartments_write_no_more_than_they_read(tmp_path: Path) -> None:
    """The change that would make the file too large is refused, and the file stays as it was."""
    from aiaml_server.toolsets.compartments import Compartments, DiskError

    path = tmp_path / "entries.json"
    with Compartments(path, limit=10 * MIB) as memory:
        memory.save("session", "x")
        before = path.read_bytes()
        with pytest.raises(DiskError, match=r"would have .* and the limit is 5,242,880"):
            memory.save("session", "x" * 5 * MIB)
        assert path.read_bytes() == before
        assert memory.get("session").total == 1


# --- a frontmatter --------------------------------------------------------------------------------

HEAD = "---\nid: x\ntimestamp: y\nagent: a\nuser: u\nnote: n\ntopics: {}\n---\n\ncontent\n"
TOPICS: dict[str, Callable[[int], str]] = {
    "white space inside an item": lambda size: f"[a{' ' * size}b]",
    "white space after a quoted item": lambda size: f'["a"{" " * size}b]',
    "items": lambda size: "a," * (size // 2),
    "opening quotes": lambda size: '"a,' * (size // 3),
    "quotes of both kinds": lambda size: "\"a,'" * (size // 4),
    "escaped quotes": lambda size: '"' + r"\"" * (size // 2),
    "doubled quotes": lambda size: "'" * (size + size % 2) + "x",
    "a YAML list": lambda size: "\n" + "- a\n" * (size // 4),
    "a YAML list in one line": lambda size: "\n [" + "a," * (size // 2) + "]",
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("case", TOPICS)
def test_a_frontmatter_has_a_bound_that_is_named(case: str) -> None:
    """A file of 4 MiB is refused before a YAML parser sees it, which would take 20 seconds."""
    with pytest.raises(MalformedFile, match="frontmatter is longer than 65,536 characters"):
        parse(HEAD.format(TOPICS[case](4 * 1024 * 1024 - 200)))


def test_the_bound_is_the_same_for_the_usual_form() -> None:
    """What one way of reading takes, the other takes, too."""
    usual = HEAD.replace("note: n\n", "")
    assert parse(usual.format("[a]")).topics == ("a",)
    longest = MAX_HEAD - (len(usual.format("[]")) - len("\ncontent\n"))
    assert parse(usual.format(f"[{'a' * longest}]")).topics == ("a" * longest,)
    with pytest.raises(MalformedFile, match="frontmatter"):
        parse(usual.format(f"[{'a' * (longest + 1)}]"))


# --- a question -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keywords", "fits"),
    [
        ([str(number) for number in range(1000)], True),
        ([str(number) for number in range(1001)], False),
        (["a", " A "] * 1000, True),
        (["a" * 1000], True),
        (["a" * 1001], False),
        ([f"{number:0992}" for number in range(66)], True),
        ([f"{number:0993}" for number in range(66)], False),
    ],
)
def test_a_question_has_bounds_that_are_named(keywords: list[str], fits: bool) -> None:
    """What is beyond them is refused, and nothing is searched for it."""
    if fits:
        assert clean(keywords)
    else:
        with pytest.raises(InvalidInput, match=r"keywords: must be .* 1,000 .* 65,536") as refused:
            clean(keywords)
        assert refused.value.field == "keywords"


def test_every_keyword_of_a_question_is_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for each memory again, however many keywords there are, nor kept beyond the bounds."""
    compiled: list[str] = []

    def counted(pattern: str, original: Callable[[str], re.Pattern[str]] = re.compile) -> object:
        compiled.append(pattern)
        return original(pattern)

    monkeypatch.setattr(re, "compile", counted)
    first, second = ([f"{name}{number}" for number in range(1000)] for name in ("x", "y"))
    texts = ((1, " ".join(first + second)),)
    for keyword in (*first, *second):
        assert score(texts, keyword) >= 2
    compiled.clear()
    for keyword in second * 3:
        score(texts, keyword)
    assert len(compiled) <= len(second)
