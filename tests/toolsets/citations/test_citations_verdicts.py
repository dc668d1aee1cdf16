"""What becomes of a citation when its line, its file or what is around it was edited.

Never valid where something else is there. Still valid where code has moved or was formatted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from shop import commit, write

from aiaml_server.toolsets.citations import Citation
from aiaml_server.toolsets.citations.citing import build_citation
from aiaml_server.toolsets.citations.errors import InvalidCitation
from aiaml_server.toolsets.citations.sources import SourceTree
from aiaml_server.toolsets.citations.verify import CheckedCitation, check_citations
from machine import git

FILE = """\
import os

DEBUG = True
INDENT = "  "


def grant(user):
    if user.is_admin:
        grant_access(user)
    return user.balance


def other(user):
    check_permission(user, "admin")
"""


def cite(root: Path, path: str, *lines: int) -> list[Citation]:
    """Return citations of some lines as the tool records them."""
    return [build_citation(Citation(path, line), SourceTree(root))[0] for line in lines]


def check(
    root: Path, citations: Sequence[Citation], path: str = "", text: str = ""
) -> list[CheckedCitation]:
    """Return the verdicts, once a file has another text."""
    if path:
        write(root, path, text)
    return check_citations(citations, SourceTree(root))


def line_of(text: str, part: str) -> int:
    """Return the number of the first line with a part."""
    return next(n for n, line in enumerate(text.split("\n"), 1) if part in line)


def test_an_edit_in_place_is_changed(tmp_path: Path) -> None:
    """Whatever is put before or behind a line, and on whichever line it stands then."""
    for old, new in (
        ("DEBUG = True", "# DEBUG = True"),
        ("DEBUG = True", "NO_DEBUG = True"),
        ("DEBUG = True", "settings.DEBUG = True"),
        ("DEBUG = True", "DEBUG = True and os.name"),
        ("DEBUG = True", 'DEBUG = "True"'),
        ('INDENT = "  "', 'INDENT = "    "'),
        ("    if user.is_admin:", "    pass  # was: if user.is_admin:"),
        ("    if user.is_admin:", "    if not user.is_admin:"),
        ("        grant_access(user)", "        return not grant_access(user)"),
        ("        grant_access(user)", "        await grant_access(user)"),
        ("        grant_access(user)", "        grant_access(user, force)"),
        ("    return user.balance", "    # return user.balance"),
        ("    return user.balance", "    if paid: return user.balance"),
        ("    return user.balance", "    return user.balance if paid else 0"),
        ("    return user.balance", "    return\n    user.balance"),
        ("    return user.balance", "    return user.balance  # in euros"),
        ("def other(user):", "async def other(user):"),
        ('    check_permission(user, "admin")', '    check_permission(user, "admin ")'),
        ('    check_permission(user, "admin")', '    check_permission((user, "admin"))'),
    ):
        write(tmp_path, "a.py", FILE)
        kept = cite(tmp_path, "a.py", line_of(FILE, old.strip()))
        for above in ("", "\n\n"):
            (found,) = check(tmp_path, kept, "a.py", above + FILE.replace(old, new))
            assert found.verdict == "changed", (old, new)


def test_a_part_of_a_line_that_a_person_typed(tmp_path: Path) -> None:
    """It is accepted as whole words; the tools record whole lines."""
    write(tmp_path, "a.py", FILE)
    for snippet, line, verdict in (
        ("user.balance", "    return user.balance  # in cents", "ok"),
        ("user.balance", "    return round(user.balance)", "ok"),
        ("user.balance", "    return the.user.balance", "changed"),
        ("user.balance", "    return user.balances", "changed"),
        ("return user", "    return user.balance", "changed"),
    ):
        text = FILE.replace("    return user.balance", line)
        (found,) = check(tmp_path, [Citation("a.py", 10, snippet)], "a.py", text)
        assert found.verdict == verdict, line


def test_code_that_a_formatter_has_laid_out_is_reformatted(tmp_path: Path) -> None:
    """Valid at 0.9, with the line on which it begins."""
    for kind, old, new in (
        ("py", "x = call(first, second)", "x = call(\n    first,\n    second,\n)"),
        ("py", "x = call(\n    first,\n    second,\n)", "x = call(first, second)"),
        ("py", "def f(a, b=1):", "def f(\n    a,\n    b=1,\n):"),
        ("py", "x = 'it' + \"s\"", 'x = "it" + "s"'),
        ("py", "import_it(first, second)", "import_it(first, second)  # noqa: E501"),
        ("py", "x = call(first)  # type: ignore", "x = call(first)"),
        ("py", "items = [first, second]", "items = [\n    first,\n    second,\n]"),
        ("ts", "const x = call(first, 'a')", 'const x = call(\n  first,\n  "a",\n)'),
        ("go", "x := call(first, second)", "x := call(\n\tfirst,\n\tsecond,\n)"),
    ):
        path = f"a.{kind}"
        write(tmp_path, path, f"first_line()\n\n{old}\n\nlast_line()\n")
        kept = [
            build_citation(Citation(f"{path}:3-{3 + old.count(chr(10))}"), SourceTree(tmp_path))[0]
        ]
        now = f"zeroth()\nfirst_line()\n\n{new}\n\nlast_line()\n"
        (found,) = check(tmp_path, kept, path, now)
        assert (found.verdict, found.confidence) == ("reformatted", 0.9), (old, new)
        assert found.is_valid and found.places[0][1] == 4


def test_code_that_means_something_else_is_changed(tmp_path: Path) -> None:
    """However alike its tokens are."""
    for kind, old, new in (
        ("py", "x = (first,)", "x = (first)"),
        ("py", "return first", "return\nfirst"),
        ("py", "x = first - second", "x = first\n- second"),
        ("py", "x = (first + second) * third", "x = first + second * third"),
        ("py", "assert first, second", "assert (\n    first, second\n)"),
        ("py", "LIMIT: int = 30", "LIMIT: str = 30"),
        ("py", "x = 'first'", "x = f'first'"),
        ("py", "x = call(first)  # in cents", "x = call(first)"),
        ("ts", "return first + second", "return\n  first + second"),
        ("ts", "x = first++ + second", "x = first + ++second"),
        ("ts", "print(`${prefix} ${path}`)", "print(`  ${prefix} ${path}`)"),
        ("go", "x := 'a' + first", 'x := "a" + first'),
        ("go", "x := `first  second`", "x := `first second`"),
        ("sh", "rm first second", "rm first\nsecond"),
    ):
        path = f"a.{kind}"
        write(tmp_path, path, f"first_line()\n\n{old}\n\nlast_line()\n")
        kept = cite(tmp_path, path, 3)
        (found,) = check(tmp_path, kept, path, f"first_line()\n\n{new}\n\nlast_line()\n")
        assert found.verdict == "changed", (old, new)


def test_one_of_several_equal_lines(tmp_path: Path) -> None:
    """It is told by its neighbours, then by its place among them; else it is ambiguous."""
    text = "def a(x):\n    x.close()\n    return 1\n\n\ndef b(x):\n    x.close()\n    return 2\n"
    same = "a\nwait()\nb\na\nwait()\nb\n"
    for before, line, now, verdict, place in (
        (text, 2, text.replace("x.close()", "# x.close()", 1), "changed", None),
        (text, 7, f"\n{text}", "moved", 8),
        (text, 7, "\n" + text[text.index("def b") :], "moved", 3),
        (same, 5, f"new\n{same}", "moved", 6),
        ("a\nwait()\nb\n" * 2 + "a\nwait()", 8, "a\nwait()\nb\na\nwait()", "ambiguous", None),
        ("y\nx = 1\nz\n", 2, "a\nx = 1\nb\nx = 1\n", "ambiguous", None),
    ):
        write(tmp_path, "a.py", before)
        kept = cite(tmp_path, "a.py", line)
        (found,) = check(tmp_path, kept, "a.py", now)
        assert found.verdict == verdict, (before, now)
        if place:
            assert list(found.places) == [("a.py", place)]
    assert found.to_dict()["today"] == [{"path": "a.py", "line": 2}, {"path": "a.py", "line": 4}]
    assert found.confidence == 0.5 and not found.is_valid and not found.is_stale


def test_blanks_do_not_count(tmp_path: Path) -> None:
    """Indentation, runs of blanks, line ends, and those in the quotes of a docstring."""
    write(tmp_path, "a.py", 'def f():\n    """ Return the price. """\n    return  1\n')
    kept = cite(tmp_path, "a.py", 2, 3)
    now = 'def f():\r\n  """Return the price."""\r\n  return 1\r\n'
    assert [found.verdict for found in check(tmp_path, kept, "a.py", now)] == ["ok", "ok"]


def test_a_file_that_moved(tmp_path: Path) -> None:
    """It is found by its name, then by its text; with git only among the files that git has."""
    git(tmp_path, "init", "--quiet")
    write(tmp_path, "src/net/connect.py", FILE)
    kept = cite(tmp_path, "src/net/connect.py", line_of(FILE, "check_permission"))
    for place, verdict in (("lib/connect.py", "renamed"), ("src/other.py", "renamed")):
        (tmp_path / "src/net/connect.py").unlink(missing_ok=True)
        write(tmp_path, place, FILE)
        (found,) = check(tmp_path, kept)
        assert found.verdict == "missing"  # git does not have it yet
        git(tmp_path, "add", "--all")
        (found,) = check(tmp_path, kept)
        assert (found.verdict, found.places[0][0]) == (verdict, place)
        (tmp_path / place).unlink()
        git(tmp_path, "add", "--all")
    (found,) = check(tmp_path, [Citation("gone.py", 1)])
    assert found.verdict == "missing" and found.note == "there is no such file"


def test_what_is_not_checked_out_is_unseen(tmp_path: Path) -> None:
    """A sparse checkout, an absent submodule, a Git LFS pointer: neither stale nor valid."""
    inner, outer, clone = tmp_path / "inner", tmp_path / "outer", tmp_path / "clone"
    for place in (inner, outer):
        write(place, "lib/a.py", FILE)
        write(place, "doc/prices.csv", "sku,cents\nTEA-1,450 cents each\n")
        git(place, "init", "--quiet")
        commit(place)
    kept = [Citation("vendored/lib/a.py", 3, "DEBUG = True"), *cite(outer, "lib/a.py", 3)]
    kept += cite(outer, "doc/prices.csv", 2)
    allow = ("-c", "protocol.file.allow=always")
    git(outer, *allow, "submodule", "add", "--quiet", str(inner), "vendored")
    commit(outer)
    present = check(outer, kept[:1])
    git(tmp_path, "clone", "--quiet", str(outer), str(clone))
    git(clone, "sparse-checkout", "set", "doc")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 39\n"
    found = [*check(clone, kept, "doc/prices.csv", pointer), *present]
    assert {entry.verdict for entry in found} == {"unseen"}
    for entry, part in zip(
        found,
        ("repository, vendored", "sparse checkout", "git lfs pull", "repository, vendored"),
        strict=True,
    ):
        assert part in entry.note
    with pytest.raises(InvalidCitation, match="Git LFS pointer"):
        cite(clone, "doc/prices.csv", 2)


def test_a_name_in_another_unicode_form_is_told_apart(tmp_path: Path) -> None:
    """The suggestion shows code points, because it looks the same as what was given."""
    git(tmp_path, "init", "--quiet")
    write(tmp_path, "cafe\u0301.py", FILE)
    commit(tmp_path)
    with pytest.raises(InvalidCitation, match=r"did you mean 'cafe\\u0301\.py'"):
        cite(tmp_path, "caf\u00e9.py", 3)
