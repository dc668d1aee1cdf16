"""Each test is of the kinds that it says, and CONTRIBUTING says what to run after which change."""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from client import Client
from environments import ROOT
from kinds import (
    CASES,
    HEAVY,
    HERE,
    KINDS,
    LIGHT,
    LONG,
    SIGNS,
    USUAL,
    case_of,
    kinds,
    places,
    reach,
    together,
)
from machine import Machine, bare
from printed import completed, inherited

FILES = {path.name for path in HERE.glob("test_*.py")}
GUIDE = (ROOT / ".github/CONTRIBUTING.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "src/aiaml_server"


def table(title: str) -> dict[str, str]:
    """Read a table of two columns under a heading of CONTRIBUTING."""
    section = GUIDE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.*?) \| (.*?) \|$", section, re.MULTILINE)
    return {row[0]: row[1] for row in rows if "---" not in row[0]}


def quoted(text: str) -> set[str]:
    """Return what stands in backticks."""
    return set(re.findall(r"`([^`]+)`", text))


@functools.cache
def functions_of(file: str) -> set[str]:
    """Return the names of all functions of a file of tests."""
    tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {each.name for each in ast.walk(tree) if isinstance(each, functions)}


@pytest.mark.parametrize("name", sorted({*KINDS, *LIGHT, *HEAVY, *USUAL, *CASES, *LONG}))
def test_kinds_name_tests_that_exist(name: str) -> None:
    """A test that is renamed or taken out leaves the tables, too."""
    file, _, function = name.partition("::")
    assert file in FILES
    named = functions_of(file) | {""}
    assert function in named | {"runTest"}  # of a machine of states


def serving(place: Path) -> None:
    """Start a server, as tests do."""
    with Client(place):
        pass


def synced(place: Path) -> None:
    """Sync, as tests do; by a function inside another."""

    def ada() -> Machine:
        return Machine(place, bare(place))

    ada()


@pytest.mark.parametrize(
    ("test", "expected"),
    [(quoted, {"quick"}), (serving, {"process"}), (synced, {"process", "git"})],
)
def test_kinds_are_told_from_what_a_test_calls(
    test: Callable[..., object], expected: set[str]
) -> None:
    """Also from what its helpers call."""
    assert kinds("test_x.py::test_y", reach(test)) == expected


@pytest.mark.parametrize("key", ["test_x.py", "test_x.py::test_y"])
@pytest.mark.parametrize(
    ("table", "value", "pure", "serves"),
    [
        ("KINDS", "git", {"process", "git"}, {"process", "git"}),
        ("KINDS", "slow", {"slow"}, {"process", "slow"}),
        ("LIGHT", "", {"quick"}, {"process", "quick"}),
        ("HEAVY", "", set(), {"process"}),
    ],
)
def test_kinds_are_told_by_the_tables(
    key: str,
    table: str,
    value: str,
    pure: set[str],
    serves: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the file, or by the test in it."""
    monkeypatch.setattr(f"kinds.{table}", {key: value})
    assert kinds("test_x.py::test_y", ()) == pure
    assert kinds("test_x.py::test_y", {"subprocess"}) == serves


def test_kinds_of_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first cases of a long test are usual, the others slow."""
    monkeypatch.setattr("kinds.CASES", {"test_x.py::test_y": 2})
    found = [kinds("test_x.py::test_y", (), case) for case in range(4)]
    assert found == [{"quick"}, {"quick"}, {"slow"}, {"slow"}]


def test_kinds_of_a_long_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of its cases are slow, also where its file is in the quick run."""
    monkeypatch.setattr("kinds.LONG", {"test_x.py::test_y"})
    monkeypatch.setattr("kinds.LIGHT", ("test_x.py",))
    assert kinds("test_x.py::test_y", ()) == {"slow"}
    assert kinds("test_x.py::test_z", ()) == {"quick"}


def test_kinds_of_a_slow_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of its tests may be usual all the same."""
    monkeypatch.setattr("kinds.KINDS", {"test_x.py": "browser slow"})
    monkeypatch.setattr("kinds.USUAL", ("test_x.py::test_y",))
    assert kinds("test_x.py::test_y", ()) == {"process", "browser"}
    assert kinds("test_x.py::test_z", ()) == {"process", "browser", "slow"}


def test_case_of_a_matrix_is_its_diagonal() -> None:
    """The first diagonal has each value of each parameter."""
    assert [case_of([(place, 4)]) for place in range(4)] == [0, 1, 2, 3]
    matrix = [(one, other) for one in range(3) for other in range(2)]
    first = [(one, other) for one, other in matrix if not case_of([(one, 3), (other, 2)])]
    assert first == [(0, 0), (1, 1), (2, 0)]
    assert case_of([(1, 2), (2, 3)]) == case_of([(2, 3), (1, 2)]) == 1


@pytest.mark.parametrize("second", ["x", pytest.param("y", id="other")])
@pytest.mark.parametrize(("one", "two"), [(1, "a"), pytest.param(2, "a", id="b"), (1, "c")])
def test_places_of_a_test(one: int, two: str, second: str, request: pytest.FixtureRequest) -> None:
    """Which of its values each parameter has, and of how many, however the values are written."""
    found = places(request.node)
    expected = [[(1, "a"), (2, "a"), (1, "c")].index((one, two)), ["x", "y"].index(second)]
    assert found == [(expected[0], 3), (expected[1], 2)]


def test_what_shares_a_dear_fixture_stays_together() -> None:
    """A wheel is built by one process; tests that share nothing go where there is room."""
    assert together("tests/test_packaging.py::test_x") == "tests/test_packaging.py"
    assert together("tests/test_scorer.py::test_x[1]") == "tests/test_scorer.py::test_x[1]"


def test_kinds_are_registered() -> None:
    """Each is known to pytest, and each that is known is used."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    markers = project.partition("\nmarkers = [\n")[2].partition("]\n")[0]
    registered = set(re.findall(r'^    "(\w+):', markers, re.MULTILINE))
    assert registered == {*" ".join([*SIGNS.values(), *KINDS.values()]).split(), "quick"}


def test_a_program_that_nobody_foresaw_fails_its_test(tmp_path: Path) -> None:
    """So that `-m "not process"` and --quick stay what they say."""
    (tmp_path / "test_new.py").write_text(
        "import importlib, sys\n"
        "def test_unseen():\n"
        "    hidden = importlib.import_module('subprocess')\n"
        "    hidden.run([sys.executable, '-c', ''])\n"
        "def test_pure():\n"
        "    pass\n"
    )
    environ = {**inherited("PYTEST"), "PYTHONPATH": str(HERE)}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider"]
    done = completed([*words, tmp_path], cwd=tmp_path, env=environ)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "say `process` for it in tests/kinds.py" in done.stdout


WITHOUT_PYPDF = """
import importlib.util, sys
import pytest
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "pypdf" else real(name, *rest)
sys.exit(pytest.main(["-q", "-p", "conftest", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""


@pytest.mark.parametrize(("group", "code"), [("all", 4), ("dev", 0)])
def test_no_missing_package_leaves_tests_out_in_silence(
    group: str, code: int, tmp_path: Path
) -> None:
    """Whoever asked for all packages, as CI does, is told which is not there."""
    (tmp_path / "test_new.py").write_text("def test_pure():\n    pass\n")
    environ = {**inherited("PYTEST"), "PYTHONPATH": str(HERE), "TEST_GROUP": group}
    words = [sys.executable, "-c", WITHOUT_PYPDF, str(tmp_path)]
    done = completed(words, cwd=tmp_path, env=environ)
    assert done.returncode == code, done.stdout + done.stderr
    told = "the group `all` is not installed: there is no pypdf" in done.stderr
    assert told == (group == "all")


def test_the_large_group_has_what_is_asked_for() -> None:
    """What conftest.py looks for is what pyproject.toml has in `all` and not in `dev`."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    group = project.partition("\nall = [\n")[2].partition("\n]\n")[0]
    names = {name.replace("-", "_") for name in re.findall(r'^    "([\w-]+)', group, re.MULTILINE)}
    source = ast.parse((HERE / "conftest.py").read_text(encoding="utf-8"))
    values = {
        ast.unparse(each.targets[0]): each.value
        for each in source.body
        if isinstance(each, ast.Assign)
    }
    assert set(ast.literal_eval(values["BESIDE_DEV"])) == names


def test_the_map_has_every_module_and_every_test() -> None:
    """Whoever changes a module knows what to run; a new module or test file gets its row."""
    rows = table("You change, you run")
    modules = {path.name.removesuffix(".py") for path in PACKAGE.glob("[!_]*")} - {"py.typed"}
    modules |= {f"toolsets/{path.parent.name}" for path in PACKAGE.glob("toolsets/*/__init__.py")}
    named = {name for key in rows for name in quoted(key)}
    assert modules - named == set()
    gone = {name for name in named - modules if not (ROOT / name).exists()}
    assert gone == set()
    tests = {f"test_{name}.py" for row in rows.values() for name in quoted(row)}
    assert tests == FILES


def test_what_only_full_runs_is_listed() -> None:
    """File by file, with the reason, so that nothing is left out unseen."""
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = completed([*words, "-m", "slow", "-n0"], cwd=ROOT, env=inherited("PYTEST"))
    slow = set(re.findall(r"^tests/test_(\w+)\.py::", done.stdout, re.MULTILINE))
    rows = table("What only --full runs")
    assert {name for key in rows for name in quoted(key)} == slow
