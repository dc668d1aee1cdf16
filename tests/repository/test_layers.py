"""Imports go one way: what docs/architecture.md allows is all that the modules do."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from aiaml_server import sync
from aiaml_server.cli import app
from paths import ROOT, TESTS

PACKAGE = ROOT / "src" / "aiaml_server"


def allowed() -> dict[str, set[str]]:
    """Read the table: module -> the modules of this package that it may import."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w/]+)(?:\.py)?/?` \|.*\| ([^|]*) \|$", text, re.MULTILINE)
    return {name.rstrip("/"): set(re.findall(r"`(\w+)`", imports)) for name, imports in rows}


def order() -> dict[str, list[set[str]]]:
    """Read the other table: package -> its modules, from the ground up."""
    text = (ROOT / "docs" / "floors.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w/]+)/` \| ([^|]*) \|$", text, re.MULTILINE)
    return {
        name: [set(re.findall(r"`(\w+)`", level)) for level in modules.split("<")]
        for name, modules in rows
    }


def loads(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield what runs when a module is loaded: nothing in functions, nothing for mypy alone."""
    for node in nodes:
        yield node
        typed = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if not typed and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from loads(ast.iter_child_nodes(node))


def imported(path: Path, nodes: Iterable[ast.AST] | None = None) -> set[tuple[str, ...]]:
    """Return the modules of this package that a file imports: `("sync", "rounds")`.

    Args:
        path: the file.
        nodes: where to look in it; everywhere if not said, also inside functions.
    """
    within = path.relative_to(PACKAGE).parts[:-1]
    names: set[tuple[str, ...]] = set()
    for node in nodes or ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            module = tuple((node.module or "").split(".")) if node.module else ()
            if node.level:
                module = (PACKAGE.name, *within[: len(within) - node.level + 1], *module)
            names |= {_module((*module, alias.name)) for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {_module(tuple(alias.name.split("."))) for alias in node.names}
    return {each[1:] for each in names if each[:1] == (PACKAGE.name,) and len(each) > 1}


def _module(name: tuple[str, ...]) -> tuple[str, ...]:
    """Return the module that holds a name, which may be one itself."""
    path = PACKAGE.parent.joinpath(*name)
    return name if path.is_dir() or path.with_suffix(".py").is_file() else name[:-1]


def modules() -> dict[str, list[Path]]:
    """Return each module of the package, or subpackage, and its files.

    A `__main__.py` is a program, which may start with any word that the command line has.
    """
    found: dict[str, list[Path]] = {}
    for path in PACKAGE.rglob("*.py"):
        if path.name == "__main__.py":
            continue
        found.setdefault(path.relative_to(PACKAGE).parts[0].removesuffix(".py"), []).append(path)
    found.pop("__init__")
    return found


def test_the_table_lists_every_module() -> None:
    """No module without a row, no row without a module."""
    assert set(allowed()) == set(modules())


@pytest.mark.parametrize("module", sorted(modules()))
def test_a_module_imports_only_what_the_table_allows(module: str) -> None:
    """An arrow that the house does not have fails here."""
    names = {each[0] for path in modules()[module] for each in imported(path)}
    assert names - {module} <= allowed()[module]


@pytest.mark.parametrize("package", sorted(order()))
def test_inside_a_package_modules_load_only_what_stands_before_them(package: str) -> None:
    """A package has floors, too; and each of its modules is on one."""
    floors = order()[package]
    level = {name: number for number, names in enumerate(floors) for name in names}
    there = {path.stem for path in (PACKAGE / package).glob("*.py")}
    inner = {path.parent.name for path in (PACKAGE / package).glob("*/__init__.py")} & set(level)
    assert (there | inner) - {"__init__"} == set(level) - {"__init__"}
    inside = tuple(package.split("/"))
    of_inner = (path for name in inner for path in (PACKAGE / package / name).glob("*.py"))
    for path in (*(PACKAGE / package).glob("*.py"), *of_inner):
        own = path.relative_to(PACKAGE / package).parts[0].removesuffix(".py")
        found = imported(path, loads(ast.parse(path.read_text(encoding="utf-8")).body))
        below = {
            each[len(inside)]
            for each in found
            if each[: len(inside)] == inside and len(each) > len(inside)
        }
        for name in below - {own}:
            assert level[name] < level.get(own, len(floors)), f"{path.stem} loads {name}"


def test_sync_shows_ten_names() -> None:
    """Nobody outside imports anything of sync but what it says that it shows."""
    assert len(sync.__all__) <= 10
    for path in PACKAGE.rglob("*.py"):
        if path.is_relative_to(PACKAGE / "sync"):
            continue
        for module, name in named(path):
            if module == "aiaml_server.sync":
                assert name in sync.__all__, f"{path} imports {name}"
            elif module.startswith("aiaml_server.sync."):
                assert module.split(".")[2] in sync.__all__, f"{path} imports {module}"


def named(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each name that a file imports from a module of this package, with that."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            package = (PACKAGE.name, *path.relative_to(PACKAGE).parts[:-1])
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*above, *([node.module] if node.module else [])))
            yield from ((module, alias.name) for alias in node.names)


def test_no_toolset_imports_another() -> None:
    """Each could be taken out; what several use lies beside them, in `toolsets/`."""
    toolsets = {path.parent.name for path in (PACKAGE / "toolsets").glob("*/__init__.py")}
    assert len(toolsets) > 3
    for own in toolsets:
        for path in (PACKAGE / "toolsets" / own).rglob("*.py"):
            others = {each[1] for each in imported(path) if each[0] == "toolsets" and each[1:]}
            assert not others & toolsets - {own}, path


def test_every_package_has_floors() -> None:
    """No package is left out but those that hold packages alone."""
    packages = {path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("[!_]*.py")}
    assert set(order()) == {path.as_posix() for path in packages} - {"."}


def test_the_root_is_a_table_of_contents() -> None:
    """A stranger reads the names in it at once, and goes down few floors."""
    below: dict[str, int] = {}

    def floor(module: str) -> int:
        """Count the modules on the longest way down."""
        if module not in below:
            below[module] = 1 + max(map(floor, allowed()[module]), default=0)
        return below[module]

    assert len(allowed()) <= 22
    assert max(map(floor, allowed())) <= 10


def test_architecture_is_read_at_one_sitting() -> None:
    """What takes longer is a decision of its own."""
    assert len((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split()) <= 1800
    for page in (ROOT / "docs" / "decisions").glob("*.md"):
        assert len(page.read_text(encoding="utf-8").split()) <= 800, page


def test_the_arrows_have_no_cycle() -> None:
    """The table itself can be walked from the leaves up."""
    table = allowed()
    while table:
        leaves = {name for name, imports in table.items() if not imports & set(table)}
        assert leaves, f"a cycle among {sorted(table)}"
        table = {name: imports for name, imports in table.items() if name not in leaves}


HEAVY = ("mcp", "pydantic", "anyio", "git", "yaml", "portalocker", "rich", "typer", "starlette",
         "uvicorn", "markdown_it")  # fmt: skip
VERBS = [f"aiaml_server.cli.{where.split(':')[0]}" for where, _ in app.VERBS.values()]


@pytest.mark.gate_cases(6)
@pytest.mark.parametrize("module", ["aiaml_server", "aiaml_server.cli.app", *sorted(set(VERBS))])
def test_the_light_modules_import_nothing_heavy(module: str) -> None:
    """The bank and the command line start without the SDK, and without what few paths need."""
    script = f"import sys, {module}; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_serving_imports_nothing_that_only_a_few_paths_need() -> None:
    """Git, YAML and locks are paid for by those who use them."""
    script = (
        "import sys, aiaml_server.server.protocol; "
        "print([m for m in ('git', 'yaml', 'portalocker') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.gate_cases(4)
@pytest.mark.parametrize(
    "line",
    [
        "list", "show 1b2c", "search dog", "topics", "stats", "remember x -t y", "history 1b2c",
        "log", "status", "where", "install --list", "export --to -", "doctor files",
    ],
)  # fmt: skip
def test_no_verb_but_those_that_speak_mcp_imports_the_sdk(line: str, tmp_path: Path) -> None:
    """A person does not wait for what only agents need."""
    shutil.copytree((TESTS / "transcripts") / "store", tmp_path / "store")
    code, imported = run_in_python("aiaml_server.cli.app", "run", line, tmp_path)
    assert code in {"0", "1"}
    assert not imported & {"mcp", "pydantic", "starlette"}


def run_in_python(module: str, function: str, line: str, place: Path) -> tuple[str, set[str]]:
    """Run a verb in a new Python; return its exit code, and the modules that it imported."""
    script = (
        f"import sys; from {module} import {function} as run; code = run(sys.argv[1:]); "
        "print(code, *sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *line.split()],
        env={**os.environ, "AIAML_MEMORY_DIR": str(place / "store"), "HOME": str(place)},
        capture_output=True,
        text=True,
        check=True,
    )
    code, *modules = done.stderr.splitlines()[-1].split()
    return code, {*modules}


@pytest.mark.gate_cases(4)
@pytest.mark.parametrize(
    ("line", "needless"),
    [
        ("--help", "bank index memory sync exchange clients web rendering cli.show"),
        ("--version", "bank index memory sync exchange clients doctor web rendering"),
        ("where", "bank index store"),
        ("list --help", "bank index sync.repository rendering.terminal"),
        ("import --help", "bank index sync.repository rendering.html"),
        ("remember --help", "bank index sync.repository"),
        ("status", "bank index cli.show cli.keep_local"),
        ("log", "bank index cli.show sync.repository sync.convert sync.forgetting"),
        ("history 1b2c", "sync.repository sync.convert sync.forgetting leaks"),
        ("list", "cli.history sync.repository rendering.terminal toolsets.sessions leaks"),
        ("show 0a1b", "rendering.commonmark exchange sync.repository"),
        ("doctor files", "doctor.program doctor.place doctor.answers doctor.trial sync.repository"),
        ("export --to -", "exchange.notes exchange.page exchange.jsonl rendering.html"),
    ],
)  # fmt: skip
def test_a_verb_imports_only_what_it_uses(line: str, needless: str, tmp_path: Path) -> None:
    """Half of a start is importing; nor is OpenSSL light, or the metadata of packages."""
    shutil.copytree((TESTS / "transcripts") / "store", tmp_path / "store")
    _, found = run_in_python("aiaml_server.cli", "main", line, tmp_path)
    heavy = {"importlib.metadata", "email", "difflib", "tempfile", "zipfile", "markdown_it"}
    heavy |= set() if line == "doctor files" else {"random"}  # it asks the index some questions
    heavy |= {"html", "importlib.resources"} | (set() if line in GIT else {"_hashlib", "shutil"})
    if line == "--help":  # it lists what other packages offer
        heavy = set()
    if line == "status":  # GitPython imports these
        heavy -= {"random", "tempfile"}
    if line in DERIVED:
        heavy -= {"_hashlib", "random", "shutil", "tempfile"}
    assert found & {*(f"aiaml_server.{each}" for each in needless.split()), *heavy} == set()


GIT = ("status", "log", "history 1b2c")
DERIVED = (
    "status",
    "log",
    "where",
    "history 1b2c",
    "list",
    "show 0a1b",
    "doctor files",
    "export --to -",
)
"""What looks for the index or tells of it: platformdirs imports tempfile, and the folder's name is
a keyed digest; 5 to 10 ms of a processor together, of 200 (measured in turns)."""


def test_no_private_name_of_the_sdk_is_used() -> None:
    """Not of the objects that `protocol.py` and `stdio.py` handle, nor of its modules."""
    for name in ("server/protocol.py", "server/stdio.py", "server/tools.py", "toolset.py"):
        for node in ast.walk(ast.parse((PACKAGE / name).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and re.match(r"_[^_]", node.attr):
                own = ast.unparse(node.value) in {"self", "cls"} or node.attr == "_asdict"
                assert own, f"{name}: {ast.unparse(node)}"
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [*(node.module or "").split("."), *(each.name for each in node.names)]
                assert not [each for each in names if re.match(r"_[^_]", each)], name
