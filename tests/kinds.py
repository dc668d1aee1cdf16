"""What kind of test each is: told from what it calls, and by the tables here for the rest.

A test that reaches `subprocess` starts programs, one that reaches `machine.git` runs git, and so
on: `SIGNS`. What the product starts by itself cannot be told from a test's code: `KINDS`. What
neither says is pure. A test that starts a program and is not of the kind `process` fails
(`conftest.py`).

    quick     pure, or in `LIGHT`: `tests/run.sh --quick` runs these
    slow      builds or installs packages, measures, plays for long: `tests/run.sh --full` alone
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

HERE = Path(__file__).parent

SIGNS = {
    "subprocess": "process",
    "multiprocessing": "process",
    "pty": "process",
    "mcp.client.stdio.StdioServerParameters": "process",
    "machine.git": "git",
    "machine.Machine": "git",
    "git_server.git_server": "git",
    "browser.chromium": "browser",
    "environments.environment": "network slow",
    "environments.UV": "network slow",
    "hosts.host": "network slow",
    "semantic_model.model_folder": "network",
}
"""The kinds of a test that reaches a module, or a name of a helper."""

KINDS: dict[str, str] = {
    "test_benchmarks.py": "slow",
    "test_bounds.py::test_what_is_larger_is_refused_at_once": "git",
    "test_bounds.py::test_time_grows_with_the_size_and_ends_within_a_second": "git",
    "test_citations.py": "git",
    "test_citations_core.py": "git",
    "test_citations_places.py": "process git",
    "test_citations_repair.py": "process git",
    "test_citations_times.py": "slow",
    "test_citations_verdicts.py": "git",
    "test_completion.py::test_forgotten_ids_and_revisions": "git",
    "test_docs.py::test_the_picture_shows_what_is_printed": "process",
    "test_docs.py::test_the_recording_shows_what_the_demonstration_prints": "process",
    "test_hosts.py": "process network slow",
    "test_node_client.py": "network slow",
    "test_patterns.py::test_the_time_of_an_expression_grows_with_its_text": "slow",
    "test_import_sources.py::test_memories_of_a_code_base_arrive": "git",
    "test_sessions.py": "git",
    "test_sessions_merges.py": "git",
    "test_sync_conversion.py": "git",
    "test_sync_git.py": "git",
    "test_toolset_pages.py::test_the_story_is_what_the_demo_prints": "git",
}
"""File, or file and test: what its code does not show, as where the product starts programs."""

LIGHT: tuple[str, ...] = (
    "test_citations_core.py",
    "test_stories.py::test_one_agent_uses_what_another_stored",
)
"""Files that --quick runs although they start programs: one real server, and git now and then."""

HEAVY: tuple[str, ...] = (
    "test_behind.py",
    "test_faults.py",
    "test_index.py::runTest",
    "test_index.py::test_a_process_that_holds_the_index_forever_is_not_waited_for",
    "test_index.py::test_hundreds_of_keywords_and_files_give_the_same",
    "test_leaks.py::test_a_megabyte_takes_a_second_and_four_take_four",
    "test_leaks.py::test_what_begins_like_a_secret_costs_no_more_than_its_length",
    "test_patterns.py",
    "test_safe_html.py::test_text_made_to_be_slow_is_shown_in_time",
    "test_sync_words.py::test_the_time_to_read_a_servers_words_grows_with_their_length",
)
"""Files and tests that --quick leaves out although they are pure: they take long."""

CASES = {
    "test_sync_convergence.py::test_machines_that_do_anything_end_with_the_same_memories": 4,
}
"""Tests of which the usual run has only the first cases; the others are slow."""


TOGETHER = {
    path.name
    for path in HERE.glob("test_*.py")
    if re.search(r'scope="(module|session)"', path.read_text(encoding="utf-8"))
} | {"test_hosts.py", "test_node_client.py"}
"""Files with a fixture, or a program in `.cache`, that is made once for all of their tests."""


def together(nodeid: str) -> str:
    """Return what of a test runs in one process: its file, if its tests share a dear fixture."""
    file = nodeid.partition("::")[0]
    return file if Path(file).name in TOGETHER else nodeid


def kinds(name: str, reached: Iterable[str], case: int = 0) -> set[str]:
    """Return the kinds of a test.

    Args:
        name: `test_file.py::test_function`.
        reached: what `reach` returns for it and for its fixtures.
        case: which of its cases it is, from 0 up.
    """
    names = {name, name.partition("::")[0]}
    found: set[str] = set()
    for each in reached:
        found |= set(SIGNS.get(each, "").split())
    for each in names & KINDS.keys():
        found |= set(KINDS[each].split())
    if found & {"git", "browser"}:
        found.add("process")
    if case >= CASES.get(name, case + 1):
        found.add("slow")
    light = not found or names & set(LIGHT)
    if light and not names & set(HEAVY) and "slow" not in found:
        found.add("quick")
    return found


@functools.cache  # a test of a hundred cases is looked into once
def reach(function: Callable[..., Any], owner: type | None = None) -> frozenset[str]:
    """Return what a test's code names, directly or through functions and classes of the tests.

    Modules come with their name, functions and classes with their module's before it.

    Args:
        function: a test or a fixture.
        owner: the class that the test is a method of; what it calls of that is looked into, too.
    """
    found: set[str] = set()
    seen: set[int] = set()
    waiting: list[Any] = [function]
    while waiting:
        each = _plain(waiting.pop())
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, ModuleType):
            found.add(each.__name__)
        if not isinstance(each, type | FunctionType):
            continue
        found.add(f"{each.__module__}.{each.__name__}")
        if not _is_of_the_tests(each.__module__):
            continue
        if isinstance(each, type):
            waiting += _methods(each)
        else:
            names = {name for code in _codes(each.__code__) for name in code.co_names}
            waiting += [each.__globals__.get(name, getattr(owner, name, None)) for name in names]
            if "UV" in names:
                found.add("environments.UV")
    return frozenset(found)


def _plain(value: Any) -> Any:
    """Return the function that was decorated, by hypothesis too."""
    value = inspect.unwrap(value) if hasattr(value, "__wrapped__") else value
    return getattr(getattr(value, "hypothesis", None), "inner_test", value)


@functools.cache
def _is_of_the_tests(module: str) -> bool:
    if module == "aiaml_server.testing":
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and Path(file).is_relative_to(HERE)


def _methods(owner: type) -> list[FunctionType]:
    """Return the functions of a class and of those that it inherits from."""
    values = [value for each in owner.__mro__ for value in vars(each).values()]
    plain = [getattr(value, "fget", None) or getattr(value, "__func__", value) for value in values]
    return [value for value in plain if isinstance(value, FunctionType)]


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)
