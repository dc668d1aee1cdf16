"""What becomes of a citation of which its line, its file or what is around it was edited.

Never green where something else is there, never red where a formatter has been.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from aiaml_server.toolsets.citations import Checked, Citation
from aiaml_server.toolsets.citations.citing import recorded
from aiaml_server.toolsets.citations.sources import Sources
from aiaml_server.toolsets.citations.verify import check_all
from machine import as_person, git

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


def write(root: Path, path: str, text: str) -> None:
    """Write a file of the repository."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, "utf-8")


def cited(root: Path, path: str, *lines: int) -> list[Citation]:
    """Return citations of some lines as the tool takes them down."""
    return [recorded(Citation(path, line), Sources(root))[0] for line in lines]


def after(root: Path, citations: Sequence[Citation], path: str, text: str) -> list[Checked]:
    """Return what became of citations once a file has another text."""
    write(root, path, text)
    return check_all(citations, Sources(root))


def line_of(text: str, part: str) -> int:
    """Return the number of the first line with a part."""
    return next(n for n, line in enumerate(text.split("\n"), 1) if part in line)


# --- never green ---


@pytest.mark.parametrize(
    ("old", "new"),
    [
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
    ],
)
@pytest.mark.parametrize("above", ["", "\n\n"])
def test_edit_in_place_is_changed(tmp_path: Path, old: str, new: str, above: str) -> None:
    """Whatever is put before or behind a line, and on whichever line it stands then."""
    write(tmp_path, "a.py", FILE)
    kept = cited(tmp_path, "a.py", line_of(FILE, old.strip()))
    (found,) = after(tmp_path, kept, "a.py", above + FILE.replace(old, new))
    assert found.verdict == "changed"


@pytest.mark.parametrize(
    ("snippet", "line", "verdict"),
    [
        ("user.balance", "    return user.balance  # in cents", "ok"),
        ("user.balance", "    # return user.balance", "changed"),
        ("user.balance", "    return not user.balance", "changed"),
        ("user.balance", "    if paid: return user.balance", "changed"),
        ("user.balance", "    return user.balance if paid else 0", "changed"),
        ("user.balance", "    return await user.balance", "changed"),
        ("user.balance", "    return the.user.balance", "changed"),
        ("user.balance", '    log("user.balance")', "changed"),
        ("return user", "    return user.balance", "changed"),
    ],
)
@pytest.mark.parametrize("above", ["", "\n\n"])
def test_part_of_a_line_that_a_person_wrote(
    tmp_path: Path, snippet: str, line: str, verdict: str, above: str
) -> None:
    """Is believed, but not behind what turns its meaning; on its line and on any other."""
    given = [Citation("a.py", 10, snippet)]
    text = above + FILE.replace("    return user.balance", line)
    (found,) = after(tmp_path, given, "a.py", text)
    assert found.verdict == ("moved" if above and verdict == "ok" else verdict)


def test_line_that_is_edited_beside_a_copy_is_changed(tmp_path: Path) -> None:
    """The copy is not taken for it, though one neighbour is alike."""
    text = "def a(x):\n    x.close()\n    return 1\n\n\ndef b(x):\n    x.close()\n    return 2\n"
    write(tmp_path, "a.py", text)
    kept = cited(tmp_path, "a.py", 2)
    (found,) = after(tmp_path, kept, "a.py", text.replace("x.close()", "# x.close()", 1))
    assert found.verdict == "changed"


# --- never red ---


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("py", "x = call(first, second)", "x = call(\n    first,\n    second,\n)"),
        ("py", "x = call(\n    first,\n    second,\n)", "x = call(first, second)"),
        ("py", "def f(a, b=1):", "def f(\n    a,\n    b=1,\n):"),
        ("py", "return first and second", "return (\n    first\n    and second\n)"),
        ("py", "x = 'it' + \"s\"", 'x = "it" + "s"'),
        ("py", "x = 'say \"a\"' or b", 'x = "say \\"a\\"" or b'),
        ("py", "import_it(first, second)", "import_it(first, second)  # noqa: E501"),
        ("py", "x = call(first)  # type: ignore", "x = call(first)"),
        ("py", "LIMIT = 30", "LIMIT: int = 30"),
        ("py", "MAPPING: dict[str, int] = {", "MAPPING = {"),
        ("py", "def f(a, b=1):", "def f(a: int, b: int = 1) -> str:"),
        ("py", "def f(a: Optional[List[int]]):", "def f(a: list[int] | None):"),
        ("py", "items = [first, second]", "items = [\n    first,\n    second,\n]"),
        ("ts", "const x = call(first, 'a')", 'const x = call(\n  first,\n  "a",\n)'),
        ("ts", "return first && second", "return first &&\n  second"),
        ("go", "x := call(first, second)", "x := call(\n\tfirst,\n\tsecond,\n)"),
        ("go", "func Bind(it interface{}) error {", "func Bind(it any) error {"),
        ("go", "var all map[string]any", "var all map[string]interface{}"),
    ],
)
def test_line_that_is_set_anew_is_reformatted(
    tmp_path: Path, kind: str, old: str, new: str
) -> None:
    """Valid at 0.9, with the line on which it begins; and told."""
    path = f"a.{kind}"
    write(tmp_path, path, f"first_line()\n\n{old}\n\nlast_line()\n")
    kept = cited(tmp_path, path, 3)
    (found,) = after(tmp_path, kept, path, f"zeroth()\nfirst_line()\n\n{new}\n\nlast_line()\n")
    assert (found.verdict, found.confidence, found.line) == ("reformatted", 0.9, 4)
    assert found.valid and "set differently" in found.note


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("py", "x = (first,)", "x = (first)"),
        ("py", "return first", "return\nfirst"),
        ("py", "x = first - second", "x = first\n- second"),
        ("py", "x = (first + second) * third", "x = first + second * third"),
        ("py", "assert first, second", "assert (\n    first, second\n)"),
        ("py", "LIMIT: int = 30", "LIMIT: str = 30"),
        ("py", "other_column: Optional[str]", "other_column: Optional[str] = field()"),
        ("py", "x = 'first'", "x = f'first'"),
        ("py", "x = call(first)  # in cents", "x = call(first)"),
        ("ts", "return first + second", "return\n  first + second"),
        ("ts", "x = first++ + second", "x = first + ++second"),
        ("ts", "print(`${prefix} ${path}`)", "print(`  ${prefix} ${path}`)"),
        ("go", "x := 'a' + first", 'x := "a" + first'),
        ("go", "x := `first  second`", "x := `first second`"),
        ("go", "func Bind(it interface{}) error {", "func Bind(it error) error {"),
        ("go", "var it interface{ Close() }", "var it any"),
        ("sh", "rm first second", "rm first\nsecond"),
    ],
)
def test_line_that_means_something_else_is_changed(
    tmp_path: Path, kind: str, old: str, new: str
) -> None:
    """However alike its tokens are."""
    path = f"a.{kind}"
    write(tmp_path, path, f"first_line()\n\n{old}\n\nlast_line()\n")
    kept = cited(tmp_path, path, 3)
    (found,) = after(tmp_path, kept, path, f"first_line()\n\n{new}\n\nlast_line()\n")
    assert found.verdict == "changed"


def test_blanks_within_the_quotes_of_a_docstring_count_for_nothing(tmp_path: Path) -> None:
    """As Black takes them away, in its first line and its last."""
    write(tmp_path, "a.py", 'def f():\n    """ Return the price. """\n')
    (found,) = after(
        tmp_path, cited(tmp_path, "a.py", 2), "a.py", 'def f():\n    """Return the price."""\n'
    )
    assert found.verdict == "ok"


def test_code_that_moved_to_another_file_is_renamed(tmp_path: Path) -> None:
    """Where its own file stays: a long line with a neighbour, both gone from there."""
    block = "def connect(host, port, timeout=30):\n    return open_socket(host, port, timeout)\n"
    write(tmp_path, "a.py", f"import os\n\n{block}\n\nprint(os)\n")
    kept = cited(tmp_path, "a.py", 3, 4)
    write(tmp_path, "net.py", block)
    for found in after(tmp_path, kept, "a.py", "import os\n\nprint(os)\n"):
        assert (found.verdict, found.path) == ("renamed", "net.py")
    edited = block.replace("timeout)", "timeout or 1)")
    found = after(tmp_path, kept, "a.py", f"import os\n\n{edited}\n\nprint(os)\n")[1]
    assert found.verdict == "changed"


def test_script_that_becomes_typescript_is_renamed(tmp_path: Path) -> None:
    """One language to its users."""
    write(tmp_path, "a.js", "export function price(order, currency) {\n}\n")
    kept = cited(tmp_path, "a.js", 1)
    (tmp_path / "a.js").rename(tmp_path / "a.ts")
    (found,) = check_all(kept, Sources(tmp_path))
    assert (found.verdict, found.path) == ("renamed", "a.ts")


@pytest.mark.parametrize("stays", [True, False])
def test_mirror_elsewhere_is_not_where_code_has_gone(tmp_path: Path, stays: bool) -> None:
    """Of two files that have a line, the only one in the directory that it was in is meant."""
    block = (
        "export function connect(host: string) {\n  return openSocket(host, standardPort, 30)\n}\n"
    )
    write(tmp_path, "src/net/connect.ts", f"first()\n\n{block}")
    kept = cited(tmp_path, "src/net/connect.ts", 3, 4)
    if stays:
        write(tmp_path, "src/net/connect.ts", "export * from './index'\n")
    else:
        (tmp_path / "src/net/connect.ts").unlink()
    write(tmp_path, "dist/net/index.ts", block)
    write(tmp_path, "src/net/index.ts", block)
    for found in check_all(kept, Sources(tmp_path)):
        assert (found.verdict, found.path) == ("renamed", "src/net/index.ts")


# --- which of several ---

TWICE = """\
def upsert(self):
    try:
        run()
    except Error as e:
        if alter and (" column" in e.args[0]):
            self.add_columns()


def insert(self):
    try:
        run()
    except Error as e:
        if alter and (" column" in e.args[0]):
            self.add_columns()
"""


def test_one_of_several_is_told_by_its_definition(tmp_path: Path) -> None:
    """Where the lines around are the same."""
    write(tmp_path, "a.py", TWICE)
    kept = cited(tmp_path, "a.py", 13)
    assert (kept[0].times, kept[0].nth, kept[0].within) == (2, 2, "insert")
    (found,) = after(tmp_path, kept, "a.py", f"import os\n\n{TWICE}")
    assert (found.verdict, found.line) == ("moved", 15)


def test_one_of_several_decorators_stays_with_its_definition(tmp_path: Path) -> None:
    """Whatever became of its arguments, and of another one."""
    write(tmp_path, "a.py", "@fixture\ndef one():\n    pass\n\n\n@fixture\ndef two(a):\n    pass\n")
    kept = cited(tmp_path, "a.py", 6)
    (found,) = after(tmp_path, kept, "a.py", "import os\n\n\n@fixture\ndef two(b):\n    pass\n")
    assert (found.verdict, found.line) == ("moved", 4)


def test_one_of_several_that_was_annotated_is_reformatted(tmp_path: Path) -> None:
    """In its own definition, whatever others stay as they were."""
    text = "class A:\n    def dump(self, bucket):\n        a()\n\n\n"
    text += "class B:\n    def dump(self, bucket):\n        b()\n"
    write(tmp_path, "a.py", text)
    kept = cited(tmp_path, "a.py", 7)
    now = text.replace("dump(self, bucket):\n        b", "dump(self, bucket: Bucket):\n        b")
    (found,) = after(tmp_path, kept, "a.py", now)
    assert (found.verdict, found.line) == ("reformatted", 7)
    (found,) = after(tmp_path, kept, "a.py", now.replace("class B", "class C"))
    assert found.verdict == "changed"


def test_one_of_several_is_followed_into_a_function_within(tmp_path: Path) -> None:
    """Its definition's, with a neighbour that stands beside it still."""
    text = "def start():\n    open_it()\n    task.result()\n\n\ndef stop():\n    task.result()\n"
    write(tmp_path, "a.py", text)
    kept = cited(tmp_path, "a.py", 3)
    now = "def start():\n    async def receive():\n        open_it()\n        task.result()\n"
    (found,) = after(tmp_path, kept, "a.py", f"{now}        more()\n")
    assert (found.verdict, found.line) == ("moved", 4)


def test_one_of_several_long_lines_of_which_one_has_gone_is_ambiguous(tmp_path: Path) -> None:
    """Where one stands in another definition beside one of its neighbours, and is not edited."""
    line = "if silent and error.errno in (ENOENT, EISDIR):"
    text = "def one():\n    try()\n    LINE\n    first()\n\n\n"
    text += "def two():\n    go()\n    LINE\n    end()\n"
    write(tmp_path, "a.py", text.replace("LINE", line))
    kept = cited(tmp_path, "a.py", 3)
    now = "def one():\n    pass\n\n\ndef three():\n    try()\n    LINE\n    last()\n"
    (found,) = after(tmp_path, kept, "a.py", now.replace("LINE", line))
    assert (found.verdict, found.places) == ("ambiguous", (("a.py", 7),))
    (found,) = after(tmp_path, kept, "a.py", now.replace("try()", "go()").replace("LINE", line))
    assert found.verdict == "changed"


def test_one_of_several_is_told_by_its_siblings(tmp_path: Path) -> None:
    """By what the memory cites beside it, and otherwise by its place among them."""
    text = "a()\nwait()\nb()\nwait()\nc()\n"
    write(tmp_path, "a.txt", text)
    kept = cited(tmp_path, "a.txt", 4, 5)
    now = "new()\nwait()\na()\nwait()\nold()\nwait()\nc()\n"
    found, _ = after(tmp_path, kept, "a.txt", now)
    assert (found.verdict, found.line) == ("moved", 6)
    (alone,) = after(tmp_path, kept[:1], "a.txt", "1\nwait()\n2\nwait()\n3\n")
    assert (alone.verdict, alone.line) == ("ok", 4)


def test_what_stays_ambiguous_has_a_list_of_places(tmp_path: Path) -> None:
    """Instead of one of them, which may be the wrong one."""
    write(tmp_path, "a.py", "x = 1\n")
    (found,) = after(tmp_path, cited(tmp_path, "a.py", 1), "a.py", "y\nx = 1\nz\nx = 1\n")
    assert found.verdict == "ambiguous" and found.path == ""
    assert found.stated()["today"] == [{"path": "a.py", "line": 2}, {"path": "a.py", "line": 4}]


@pytest.mark.parametrize(
    ("old", "new", "beside"),
    [
        ("COLUMNS = {", "COLUMNS: dict[str, int] = load(", "COLUMNS.update("),
        ("if done == 1 and not upsert:", "if done == 1 and not upsert and force:", "done,"),
        ("return price(order)", "return price(order, currency)", "return"),
    ],
)
def test_likest_line_is_the_one_that_a_reader_would_pick(
    tmp_path: Path, old: str, new: str, beside: str
) -> None:
    """Not the one with most letters alike."""
    write(tmp_path, "a.py", f"first()\n{old}\nlast()\n")
    kept = cited(tmp_path, "a.py", 2)
    (found,) = after(tmp_path, kept, "a.py", f"1\n{beside}\n2\n3\n{new}\n4\n{beside}\n")
    assert found.note.startswith("the likest line is 5:")


# --- where a file may be ---


@pytest.mark.parametrize(
    ("ignored", "place"),
    [
        (("web/.gitignore", "dist/\n"), "web/dist/upload.py"),
        ((".gitignore", "out/*\n"), "out/upload.py"),
        ((".git/info/exclude", "copies\n"), "copies/upload.py"),
        ((".gitignore", "*.bak.py\n/sub/**/made\n"), "sub/a/made/upload.py"),
        ((".gitignore", ""), "build/lib/upload.py"),
    ],
)
@pytest.mark.parametrize("has_git", [True, False])
def test_copy_that_git_does_not_keep_is_no_new_place(
    tmp_path: Path, ignored: tuple[str, str], place: str, has_git: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Neither an ignored one nor one that nobody has added."""
    git(tmp_path, "init", "--quiet")
    write(tmp_path, "pkg/upload.py", "def upload(file, name, size):\n    send(file)\n")
    write(tmp_path, *ignored)
    kept = cited(tmp_path, "pkg/upload.py", 1)
    git(tmp_path, "add", "--all")
    as_person(tmp_path, "commit", "--quiet", "--message", "first")
    write(tmp_path, place, (tmp_path / "pkg/upload.py").read_text("utf-8"))
    (tmp_path / "pkg/upload.py").unlink()
    if not has_git:
        monkeypatch.setenv("PATH", "")
    (found,) = check_all(kept, Sources(tmp_path))
    is_kept = place.startswith("build") and not has_git
    assert found.verdict == ("renamed" if is_kept else "missing")


def test_what_is_not_checked_out_is_unseen(tmp_path: Path) -> None:
    """A sparse checkout, an absent submodule: neither stale nor valid."""
    inner, outer, clone = tmp_path / "inner", tmp_path / "outer", tmp_path / "clone"
    for place in (inner, outer):
        write(place, "lib/a.py", FILE)
        write(place, "doc/b.txt", "text\n")
        git(place, "init", "--quiet")
        git(place, "add", "--all")
        as_person(place, "commit", "--quiet", "--message", "first")
    allow = ("-c", "protocol.file.allow=always")
    as_person(outer, *allow, "submodule", "add", "--quiet", str(inner), "vendored")
    as_person(outer, "commit", "--quiet", "--message", "second")
    kept = [*cited(outer, "vendored/lib/a.py", 3), *cited(outer, "lib/a.py", 3)]
    git(tmp_path, "clone", "--quiet", str(outer), str(clone))
    git(clone, "sparse-checkout", "set", "doc")
    found = check_all(kept, Sources(clone))
    assert [each.verdict for each in found] == ["unseen", "unseen"]
    assert "submodule vendored" in found[0].note and "sparse" in found[1].note
    assert not any(each.valid or each.stale for each in found)
