"""What `citations` is asked by file, and how places are named."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from test_citations import bare, full

from aiaml_server.errors import InvalidArguments
from aiaml_server.server.arguments import Arguments
from aiaml_server.toolsets.citations import (
    FORGETFUL,
    REPOSITORY,
    TOOLS,
    Citation,
    Memories,
    ToolError,
)
from aiaml_server.toolsets.citations.definitions import enclosing, named
from aiaml_server.toolsets.citations.effort import Effort
from aiaml_server.toolsets.citations.notation import Place, read_place
from aiaml_server.toolsets.citations.repository import walked
from aiaml_server.toolsets.citations.settings import AGENTS, OTHERS
from aiaml_server.toolsets.citations.tools import CitationTools, build
from aiaml_server.toolsets.citations.verify import UNSEEN, check
from machine import as_person, git

SHOP = '''\
"""The shop."""

RATE = 7


class Shop:
    """Sells."""

    @property
    def price(self):
        """What it costs."""
        return self.cost * RATE


def price(order):
    total = sum(order)
    return total
'''
FACT = "**Fact**: Prices are in cents.\n\n**Reasoning**: r.\n\n**Action**: a."


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with two files of code, of which a memory cites one, committed."""
    path = tmp_path / "shop"
    (path / "pkg").mkdir(parents=True)
    git(path, "init", "--quiet", "--initial-branch=main")
    (path / "pkg" / "shop.py").write_text(SHOP, "utf-8")
    (path / "other.py").write_text("OTHER = 1\n", "utf-8")
    memories = Memories(path)
    memories.save("Prices", FACT, [Citation("pkg/shop.py:15"), Citation("pkg/shop.py:3")])
    memories.save(
        "Others", FACT.replace("Prices are in cents", "Others"), [Citation("other.py", 1)]
    )
    git(path, "add", "--all")
    as_person(path, "commit", "--quiet", "--message", "first")
    return path


def cited(repo: Path, text: str) -> Citation:
    """Return a citation as it is taken down of a place."""
    memories = Memories(repo)
    saved = memories.save("One", FACT, [Citation(text)], id="mem-one")
    return memories.get(saved.id).citations[0]


# --- notations ---


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a.py", Place("a.py")),
        ("a.py:20", Place("a.py", 20, 20)),
        ("a.py:20-24", Place("a.py", 20, 24)),
        ("a.py#L20", Place("a.py", 20, 20)),
        ("a.py#L20-L24", Place("a.py", 20, 24)),
        ("a.py#L20-24", Place("a.py", 20, 24)),
        ("a.py::Shop.price", Place("a.py", name="Shop.price")),
        ("C:\\a.py", Place("C:\\a.py")),
        ("a.py:x", Place("a.py:x")),
        ("a:1/b.py", Place("a:1/b.py")),
        (":20", Place(":20")),
    ],
)
def test_place_is_read_as_people_write_it(text: str, place: Place) -> None:
    """What is no notation is a path."""
    assert read_place(text) == place


def test_citation_takes_each_notation(repo: Path) -> None:
    """Lines are one snippet, without what all of them are indented by."""
    assert cited(repo, "pkg/shop.py:3").snippet == "RATE = 7"
    several = cited(repo, "pkg/shop.py:9-12")
    assert several.line == 9 and several.within == "Shop.price"
    assert str(several.snippet).split("\n")[2] == '    """What it costs."""'
    assert cited(repo, "pkg/shop.py#L15-L16").line == 15
    assert cited(repo, "pkg/shop.py::Shop.price").line == 10
    assert cited(repo, "pkg/shop.py::RATE").snippet == "RATE = 7"
    assert cited(repo, str(repo / "pkg" / "shop.py") + ":3").path == "pkg/shop.py"
    assert all(each.valid for each in Memories(repo).verify_all()[0])


def test_citation_of_a_definition_follows_it(repo: Path) -> None:
    """Also where another of the same line stands beside it; its change is told."""
    text = (
        "class A:\n    def run(self):\n        pass\n\nclass B:\n    def run(self):\n        pass\n"
    )
    (repo / "ab.py").write_text(text)
    assert cited(repo, "ab.py::B.run").line == 6
    (repo / "ab.py").write_text(text.partition("\n\n")[2] + "\n" + text.partition("\n\n")[0])
    memories = Memories(repo)
    assert memories.verify("mem-one").checked[0].line == 2
    (repo / "ab.py").write_text(text.replace("B:\n    def run(self)", "B:\n    def run(self, x)"))
    assert memories.verify("mem-one").checked[0].verdict == "changed"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("shop.py:3", "there is no such file; did you mean pkg/shop.py?"),
        ("pkg/shpo.py:3", "there is no such file; did you mean pkg/shop.py?"),
        ("pkg/shop.py:99", "has 17 lines, no 99"),
        ("pkg/shop.py:15-99", "has 17 lines, no 99"),
        ("pkg/shop.py:15-3", "no 15"),
        ("pkg/shop.py::cost", "has no definition cost"),
        ("pkg/shop.py::price", "has several price, on lines 10, 15"),
        ("/etc/passwd:1", "is not in the repository"),
        ("bin.dat:1", "is no text"),
    ],
)
def test_citation_of_what_is_not_there_is_refused(repo: Path, text: str, said: str) -> None:
    """With what was likely meant; nothing is saved."""
    (repo / "bin.dat").write_bytes(b"\x7fELF\0\0\1\2\n")
    with pytest.raises(ToolError) as refused:
        cited(repo, text)
    assert said in str(refused.value)
    assert "mem-one" not in Memories(repo).list().memories


def test_memory_of_a_file_that_is_gone_can_be_saved_again(repo: Path) -> None:
    """With the citation that it has."""
    memories = Memories(repo)
    name = next(iter(memories.list().memories))
    kept = memories.get(name).citations
    (repo / kept[0].path).unlink()
    memories.save(id=name, citations=kept)
    assert memories.get(name).citations == kept


@pytest.mark.parametrize("command", [bare, full])
def test_cited_path_may_be_relative_to_the_working_directory(
    command: Callable[..., Any], repo: Path
) -> None:
    """Of the command; one from the top is taken as well."""
    for number, text in enumerate(("shop.py:3", "pkg/shop.py:3", "../other.py:1")):
        words = ("save", f"One {number}", "--content", FACT, "--cite", text, "--json")
        done = command(*words, cwd=repo / "pkg")
        assert done.returncode == 0, done.stderr
        path = Memories(repo).get(json.loads(done.stdout)["id"]).citations[0].path
        assert path == text.partition(":")[0].replace("../", "") or path == "pkg/shop.py"


GO = """\
package a

type Server struct {
}

func (s *Server) Serve(port int) error {
\treturn nil
}
"""
TS = """\
export class Shop<T> {
  async price(order: T): Promise<number> {
    if (order) {
      return 1;
    }
  }
}

export const rate = (order: number) => {
  return order;
};
"""
LONG = """\
class Shop {
  total = async (order: Order): Promise<number> => {
    return 1;
  }
  fetch = (
    args?: string[],
  ) => {
    ask(
      args,
    )
    return 2;
  }
  route<
    Path extends string,
  >(
    path: Path,
  ): Shop<Path> {
    return this;
  }
  mount(
    path: string,
  ): void {
  }
}
"""


@pytest.mark.parametrize(
    ("kind", "text", "name", "lines"),
    [
        (".py", SHOP, "Shop.price", [10]),
        (".py", SHOP, "price", [10, 15]),
        (".py", "def (", "price", []),
        (".go", GO, "Server", [3]),
        (".go", GO, "Server.Serve", [6]),
        (".ts", TS, "Shop.price", [2]),
        (".ts", TS, "rate", [9]),
        (".ts", LONG, "Shop.total", [2]),
        (".ts", LONG, "Shop.fetch", [5]),
        (".ts", LONG, "Shop.route", [13]),
        (".ts", LONG, "mount", [20]),
        (".ts", LONG, "ask", []),
        (".rs", "impl<T> Run for Shop<T> {\n    pub fn price() {\n    }\n}\n", "Shop.price", [2]),
    ],
)
def test_definition_is_found_by_its_name(kind: str, text: str, name: str, lines: list[int]) -> None:
    """By Python itself in a file of Python, by words and indentation elsewhere."""
    assert named(text, kind, name) == lines


@pytest.mark.parametrize(
    ("text", "line", "name"),
    [(SHOP, 12, "Shop.price"), (SHOP, 9, "Shop.price"), (SHOP, 3, ""), (SHOP, 16, "price"),
     (TS, 4, "Shop.price"), (TS, 10, "rate"), (GO, 7, "Server.Serve"), (LONG, 9, "Shop.fetch"),
     (LONG, 18, "Shop.route"), (LONG, 3, "Shop.total")],
)  # fmt: skip
def test_line_belongs_to_a_definition(text: str, line: int, name: str) -> None:
    """What decorates it as well."""
    assert enclosing(text.split("\n"), line) == name


# --- asked by file ---


def test_search_by_paths_gives_what_cites_them(repo: Path) -> None:
    """Without a question, and with one; a directory stands for all in it."""
    tools = CitationTools(str(repo))
    for paths in (["pkg/shop.py"], ["pkg"], [str(repo / "pkg" / "shop.py")], ["./pkg/shop.py"]):
        (found,) = tools.memory_search(paths=paths).value
        assert found["subject"] == "Prices", paths
    assert tools.memory_search(paths=["nothing.py"]).value == []
    assert tools.memory_search("prices", paths=["other.py"]).value == []
    assert len(tools.memory_search("others", paths=["other.py"]).value) == 1
    with pytest.raises(ToolError, match="unless paths are given"):
        tools.memory_search()


def test_search_looks_at_cited_paths_and_lines(repo: Path) -> None:
    """Which the text of a memory need not repeat."""
    memories = Memories(repo)
    for question in ("shop.py", "def price order", "rate"):
        assert memories.search(question).hits[0].memory.subject == "Prices", question


@pytest.mark.parametrize("command", [bare, full])
def test_about_shows_what_is_known_of_a_file(command: Callable[..., Any], repo: Path) -> None:
    """The facts, and what became of the lines in it; from a directory below as well."""
    (repo / "pkg" / "shop.py").write_text(SHOP.replace("RATE = 7", "RATE = 8"))
    done = command("about", "shop.py", cwd=repo / "pkg")
    assert done.returncode == 0, done.stderr
    for part in ("  Prices\n", "    Prices are in cents.\n", "pkg/shop.py:3 changed\n", ":15 ok\n"):
        assert part in done.stdout
    assert "Others" not in done.stdout
    assert command("about", "nothing.py", cwd=repo).returncode == 1
    found = json.loads(command("about", "other.py", "--json", cwd=repo).stdout)
    assert [each["subject"] for each in found] == ["Others"]


@pytest.mark.parametrize("command", [bare, full])
def test_verify_changed_says_what_a_change_makes_stale(
    command: Callable[..., Any], repo: Path
) -> None:
    """And not what was stale before; only memories that it touches are verified."""
    done = command("verify", "--changed", cwd=repo)
    assert (done.returncode, done.stdout) == (0, "")
    (repo / "pkg" / "shop.py").write_text(SHOP.replace("RATE = 7", "RATE = 8"))
    done = command("verify", "--changed", cwd=repo)
    assert done.returncode == 1 and "pkg/shop.py:3 changed" in done.stdout
    assert "1 touched by what changed since HEAD, 1 made stale by it: mem-prices-" in done.stderr
    as_person(repo, "commit", "--quiet", "--all", "--message", "second")
    (repo / "pkg" / "shop.py").write_text("\n" + SHOP.replace("RATE = 7", "RATE = 8"))
    done = command("verify", "--changed", cwd=repo)
    assert done.returncode == 0 and "1 touched" in done.stderr and "0 made stale" in done.stderr
    done = command("verify", "--json", "--changed", "HEAD~1", cwd=repo)
    assert done.returncode == 1 and len(json.loads(done.stdout)["made_stale"]) == 1
    done = command("verify", "--changed", "nowhere", cwd=repo)
    assert done.returncode == 2 and "no commit 'nowhere'" in done.stderr


@pytest.fixture
def changed(repo: Path) -> Path:
    """The same, with a second commit that changes a cited line."""
    (repo / "pkg" / "shop.py").write_text(SHOP.replace("RATE = 7", "RATE = 8"))
    as_person(repo, "commit", "--quiet", "--all", "--message", "second")
    return repo


def test_verify_changed_in_a_partial_clone_is_not_green(changed: Path, tmp_path: Path) -> None:
    """What git has not fetched is named, with what fetches it; then the answer is that of all."""
    git(changed, "config", "uploadpack.allowFilter", "true")
    clone, there = tmp_path / "clone", changed.as_uri()
    git(tmp_path, "clone", "--quiet", "--filter=blob:none", there, str(clone))
    done = bare("verify", "--changed", "HEAD~1", cwd=clone)
    assert done.returncode == 2
    assert "pkg/shop.py:3 could not be looked at as it was then: git does not" in done.stderr
    assert "1 stale, and nothing tells whether the change made them so" in done.stderr
    found = json.loads(bare("verify", "--json", "--changed", "HEAD~1", cwd=clone).stdout)
    assert len(found["unseen_then"]) == 1 and not found["made_stale"]
    shown = bare("verify", "--format", "github", "--changed", "HEAD~1", cwd=clone).stdout
    assert "title=unseen::pkg/shop.py:3 could not be looked at as it was then" in shown
    assert "`git fetch --refetch --no-filter`" in done.stderr
    git(clone, "fetch", "--quiet", "--refetch", "--no-filter")
    assert bare("verify", "--changed", "HEAD~1", cwd=clone).returncode == 1


def test_verify_changed_names_a_file_that_was_too_large(repo: Path) -> None:
    """One that has more than 8 MiB in the past is not taken for one that was not there."""
    (repo / "pkg" / "shop.py").write_text(SHOP + "# more\n" * 1_300_000)
    as_person(repo, "commit", "--quiet", "--all", "--message", "second")
    (repo / "pkg" / "shop.py").write_text(SHOP.replace("RATE = 7", "RATE = 8"))
    done = bare("verify", "--changed", cwd=repo)
    assert done.returncode == 2 and "it had more than 8,388,608 bytes then" in done.stderr


def test_verify_changed_is_not_green_where_the_past_takes_too_much(changed: Path) -> None:
    """Names that never were cost no question; what is left then is not taken for what was not."""
    file = next((changed / "memories").glob("mem-prices-*"))
    gone = "".join(f'  - path: gone{number}.py\n    snippet: "x"\n' for number in range(1300))
    file.write_text(file.read_text("utf-8").replace("citations:\n", f"citations:\n{gone}"), "utf-8")
    assert bare("verify", "--changed", "HEAD~1", cwd=changed).returncode == 1
    _, past = Memories(changed).changed("HEAD~1")
    past.spend = Effort(10_000).spend
    assert check(Citation("pkg/shop.py", 3, "RATE = 7"), past).verdict == UNSEEN


def test_verify_changed_names_a_memory_that_cannot_be_read(changed: Path) -> None:
    """Nothing tells whether it cites what differs."""
    next((changed / "memories").glob("mem-prices-*")).write_text("---\nid: [\n---\n")
    done = bare("verify", "--changed", "HEAD~1", cwd=changed)
    assert done.returncode == 2 and "(cannot be read)" in done.stdout


def test_verify_changed_sees_a_file_that_became_a_link(repo: Path, tmp_path: Path) -> None:
    """To where nothing is read: what it was then is in the commit."""
    (repo / "pkg" / "shop.py").unlink()
    (repo / "pkg" / "shop.py").symlink_to(tmp_path)
    done = bare("verify", "--changed", cwd=repo)
    assert done.returncode == 1 and "shop.py:3 outside" in done.stdout


@pytest.mark.parametrize(("line", "kept"), [(3, 3), ("3", 3), (3.0, 3), ("", None)])
def test_line_is_taken_as_clients_send_it(repo: Path, line: object, kept: int | None) -> None:
    """As a number, as text, or as 3.0; empty text is none."""
    from pydantic import TypeAdapter

    from aiaml_server.toolsets.citations.tools import Cited

    given = TypeAdapter(Cited).validate_python({"path": "pkg/shop.py", "line": line})
    saved = CitationTools(str(repo)).memory_save("s", FACT, citations=[given])
    assert Memories(repo).get(saved["id"]).citations[0].line == kept


# --- where git says nothing ---


@pytest.mark.parametrize(
    ("rules", "path"),
    [
        ("x\n" * 32_000, "f"),
        ("".join(f"**/a{at}*/**/b*/**/c*\n" for at in range(3_000)), "a/f"),
        (f"{'**/*a*/' * 9_000}x\n", f"{'a/' * 300}f"),
        (f"{'*a' * 30_000}\n", "a" * 200),
        ("".join(f"*a*{'a' * 50}{at}b\n" for at in range(1_000)), "a" * 200),
    ],
    ids=["many", "deep", "long", "wide", "slow"],
)
def test_rules_of_ignores_take_their_time_from_the_call(
    tmp_path: Path, rules: str, path: str
) -> None:
    """What somebody has written as `.gitignore` does not stop a repository that git knows not."""
    for at in range(200):
        place = tmp_path / f"{path}{at}.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("OTHER = 1\n")
    (tmp_path / ".gitignore").write_text(rules)
    (tmp_path / "gone.py").write_text("FIRST_OF_ALL_THE_LINES = [1, 2, 3]\n")
    memories = Memories(tmp_path)
    saved = memories.save("One", FACT, [Citation("gone.py", 1)])
    (tmp_path / "gone.py").unlink()
    (checked,) = memories.verify(saved.id).checked
    assert checked.verdict in {"missing", "unseen"}


PATTERNS = (
    "*.log", "/top", "a/b", "a/**", "**/b", "a/**/c", "**/a/**/c", "b/", "!b/c", "?", "[ab]",
    "\\!x", "**", "a/*/c", "**/**/c", "*", "!a", "/a/**/b/**/c",
)  # fmt: skip


@pytest.mark.gate_cases(4)
@pytest.mark.parametrize("seed", range(20))
def test_files_that_ignores_leave_are_those_of_git(tmp_path: Path, seed: int) -> None:
    """Of rules drawn at random, at the top and below; git itself is the judge."""
    draw = random.Random(seed)
    git(tmp_path, "init", "--quiet")
    for _ in range(60):
        place = tmp_path.joinpath(*draw.choices("abc!", k=draw.randint(1, 5)), draw.choice("abcx"))
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.with_name(place.name + draw.choice(["", ".log", ".py"])).write_text("")
    for place in (tmp_path, tmp_path / "a", tmp_path / "a" / "b"):
        if place.is_dir():
            (place / ".gitignore").write_text("\n".join(draw.choices(PATTERNS, k=4)) + "\n")
    known = git(tmp_path, "ls-files", "--others", "--exclude-standard", "-z").split("\0")
    assert sorted(walked(str(tmp_path), lambda _: None)) == sorted(filter(None, known))


# --- lists without an end ---


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("memory_search", {"query": "a", "paths": ["a"] * 750_000}),
        ("memory_search", {"query": "a", "tags": ["a"] * 750_000}),
        ("memory_search", {"query": "a", "tags": [1] * 750_000}),
        ("memory_save", {"citations": [{"path": "other.py", "line": 1}] * 100_000}),
        ("memory_save", {"links": [{"type": "related", "target": "mem-a"}] * 70_000}),
        ("memory_save", {"tags": ["a"] * 750_000}),
        ("memory_list", {"tags": ["a"] * 750_000}),
        ("memory_graph_traverse", {"root_id": "mem-a", "link_types": ["related"] * 300_000}),
        ("memory_batch_verify", {"memory_ids": ["mem-a"] * 400_000}),
    ],
    ids=lambda given: given if isinstance(given, str) else list(given)[-1],
)
def test_list_that_is_too_long_is_not_looked_at(
    repo: Path, tool: str, given: dict[str, Any]
) -> None:
    """By no tool, and not by the Python API; the field is named."""
    field = list(given)[-1]
    if tool == "memory_save":
        given = {"subject": "s", "content": FACT, **given}
    every = build(SETTINGS | {REPOSITORY: str(repo)}).tools
    (arguments,) = [Arguments(each) for each in every if each.name == tool]
    with pytest.raises(InvalidArguments) as refused:
        arguments.read(given)
    assert f"{field}: must be a list of" in str(refused.value).replace("'", "")
    with pytest.raises(ToolError, match=f"^{field}: must be at most 1,000$"):
        ASKED[tool](Memories(repo), given)


SETTINGS = {FORGETFUL: "", TOOLS: [*AGENTS, *OTHERS], "AIAML_CHECK_SECRETS": True}
ASKED: dict[str, Callable[[Memories, dict[str, Any]], object]] = {
    "memory_search": lambda memories, given: memories.search(**given),
    "memory_save": lambda memories, given: memories.save(**given),
    "memory_list": lambda memories, given: memories.list(**given),
    "memory_graph_traverse": lambda memories, given: memories.traverse(**given),
    "memory_batch_verify": lambda memories, given: memories.verify_all(given["memory_ids"]),
}


def test_names_of_keys_without_an_end_are_not_all_looked_at(repo: Path) -> None:
    """The first memory is; those that were not are named, and can be verified alone."""
    for at in range(5):
        head = f"---\nid: mem-{at}\nsubject: x\n---\n\n"
        (repo / "memories" / f"mem-{at}.md").write_text(head + "A_KEY=" * 160_000)
    memories = Memories(repo)
    results, broken = memories.verify_all([f"mem-{at}" for at in range(5)])
    assert len(results) == 5 and len(broken) == 4
    assert "verify it alone" in broken["memories/mem-4.md"]
    assert memories.verify("mem-4").valid
