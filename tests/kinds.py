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
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

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
    "test_citations_accuracy.py": "slow",
    "test_citations_core.py": "git",
    "test_citations_places.py": "process git",
    "test_citations_repair.py": "process git",
    "test_citations_times.py": "slow",
    "test_citations_verdicts.py": "git",
    "test_completion.py::test_forgotten_ids_and_revisions": "git",
    "test_docs.py::test_the_picture_shows_what_is_printed": "process",
    "test_docs.py::test_the_recording_shows_what_the_demonstration_prints": "process",
    "test_hosts.py": "process network slow",
    "test_lab.py::test_lab_catches_each_fault_by_name": "slow",
    "test_lab.py::test_lab_syncs_five_machines_in_every_other_round": "slow",
    "test_lab.py::test_lab_ends_what_is_not_over_in_time": "process",
    "test_node_client.py": "network slow",
    "test_patterns.py::test_the_time_of_an_expression_grows_with_its_text": "slow",
    "test_import_sources.py::test_memories_of_a_code_base_arrive": "git",
    "test_sessions.py": "git",
    "test_sessions_merges.py": "git",
    "test_sync_conversion.py": "git",
    "test_sync_git.py": "git",
    "test_sync_versions.py::test_a_fleet_of_both_versions_ends_with_the_same_memories": "slow",
    "test_toolset_pages.py::test_the_story_is_what_the_demo_prints": "git",
    "test_web.py::test_ten_thousand_memories_are_no_burden": "slow",
    "test_web_browser.py": "slow",
}
"""File, or file and test: what its code does not show, as where the product starts programs."""

LIGHT: tuple[str, ...] = (
    "test_citations_core.py",
    "test_stories.py::test_one_agent_uses_what_another_stored",
)
"""Files that --quick runs although they start programs: one real server, and git now and then."""

HEAVY: tuple[str, ...] = (
    "test_arguments.py::test_arguments_text_is_given_as_it_was_sent",
    "test_behind.py",
    "test_clients.py::test_a_client_s_file_becomes_what_was_written_down",
    "test_compartments.py::test_too_many_values_are_refused_unseen",
    "test_compartments.py::test_whatever_a_parameter_holds_the_answer_has_its_shape",
    "test_faults.py",
    "test_files.py::test_files_below_a_base_are_opened_by_one_door",
    "test_import_sources.py::test_import_of_one_text_under_many_names_takes_no_square_of_time",
    "test_import_sources.py::test_import_of_sections_with_many_names_is_quick",
    "test_index.py",
    "test_kinds.py::test_kinds_name_tests_that_exist",
    "test_layers.py::test_a_module_imports_only_what_the_table_allows",
    "test_layers.py::test_inside_a_package_modules_load_only_what_stands_before_them",
    "test_layers.py::test_sync_shows_ten_names",
    "test_leaks.py",
    "test_packaging.py::test_what_is_imported_is_declared_and_the_reverse",
    "test_patterns.py",
    "test_programs.py::test_programs_are_started_in_known_places_only",
    "test_safe_html.py::test_text_made_to_be_slow_is_shown_in_time",
    "test_security_promises.py::test_every_promise_can_fail",
    "test_semantic_database.py::test_a_thousand_memories_take_less_than_four_megabytes",
    "test_semantic_database.py::test_what_was_forgotten_is_in_no_byte",
    "test_semantic_detection.py::test_the_time_grows_with_the_text",
    "test_semantic_import.py::test_export_and_import_lose_nothing",
    "test_semantic_planted.py",
    "test_semantic_ranking.py",
    "test_sync_words.py::test_the_time_to_read_a_servers_words_grows_with_their_length",
)
"""Files and tests that --quick leaves out although they are pure: they take long."""

USUAL: tuple[str, ...] = (
    "test_web_browser.py::test_a_hostile_memory_is_text",
    "test_web_browser.py::test_a_page_from_elsewhere_learns_and_changes_nothing",
    "test_web_browser.py::test_an_edit_is_saved",
    "test_web_browser.py::test_forgetting_asks_first",
)
"""Tests that the usual run has although their file is slow."""

LONG = frozenset((HERE / "long.txt").read_text(encoding="utf-8").split())
"""Tests that take more than two seconds a case, on two quiet cores: slow, but for a few."""

CASES = {
    "test_bounds.py::test_time_grows_with_the_size_and_ends_within_a_second": 40,
    "test_citations_ignored.py::test_citation_of_an_ignored_file_keeps_no_text": 1,
    "test_citations_index.py::test_a_server_that_fails_is_a_sentence": 2,
    "test_citations_places.py::test_files_that_ignores_leave_are_those_of_git": 4,
    "test_cli.py::test_a_bad_setting_is_a_sentence": 2,
    "test_cli.py::test_closed_and_full_outputs_end_in_a_sentence": 2,
    "test_cli_output.py::test_no_verb_sends_what_a_memory_holds": 4,
    "test_cli_past.py::test_a_revision_that_is_none_is_refused": 2,
    "test_cli_terminal.py::test_a_terminal_is_sent_nothing_but_our_own_sequences": 4,
    "test_cli_terminal.py::test_help_breaks_between_words": 2,
    "test_cli_terminal.py::test_lines_break_between_words": 1,
    "test_cli_terminal.py::test_what_is_tidied_away_is_what_was_shown": 2,
    "test_cli_terminal.py::test_what_the_editor_leaves_is_checked": 2,
    "test_doctor.py::test_each_way_to_install_it_is_well": 3,
    "test_extending.py::test_a_broken_toolset_of_another_package_is_one_sentence": 3,
    "test_faults.py::test_an_index_that_makes_no_sense_is_made_anew": 4,
    "test_files.py::test_a_repository_is_made_here_and_not_elsewhere": 1,
    "test_files.py::test_memory_works_whatever_has_our_names": 1,
    "test_files.py::test_sync_reaches_nothing_through_what_is_beside_git": 1,
    "test_files.py::test_sync_waits_for_no_pipe_in_the_place_of_gits_own_file": 4,
    "test_files.py::test_the_log_says_once_why_the_index_is_in_memory": 2,
    "test_hooks.py::test_install_hooks_byte_exact": 1,
    "test_hooks.py::test_install_hooks_of_a_directory": 2,
    "test_hooks.py::test_install_hooks_of_toolset_beside_default": 2,
    "test_layers.py::test_a_verb_imports_only_what_it_uses": 4,
    "test_layers.py::test_no_verb_but_those_that_speak_mcp_imports_the_sdk": 4,
    "test_layers.py::test_the_light_modules_import_nothing_heavy": 6,
    "test_leaks.py::test_a_megabyte_takes_a_second_and_four_take_four": 2,
    "test_leaks.py::test_what_begins_like_a_secret_costs_no_more_than_its_length": 20,
    "test_owners.py::test_owner_is_another": 1,
    "test_planted.py::test_planted_index_is_not_opened_by_a_verb": 2,
    "test_programs.py::test_no_verb_runs_a_program_of_the_current_directory": 2,
    "test_rendering.py::test_a_memory_of_a_mebibyte_is_shown_at_once": 2,
    "test_safe_html.py::test_text_made_to_be_slow_is_shown_in_time": 3,
    "test_semantic.py::test_what_contradicts_is_never_merged_unasked": 3,
    "test_semantic_hooks.py::test_settings_that_cannot_be_read_are_left_alone": 2,
    "test_semantic_hooks.py::test_uninstalling_gives_the_same_bytes_back": 3,
    "test_semantic_hooks.py::test_what_fails_is_silent": 2,
    "test_semantic_hooks.py::test_what_is_no_event_is_answered_by_nothing": 3,
    "test_semantic_model.py::test_what_is_no_model_is_said_in_a_sentence": 2,
    "test_semantic_planted.py::test_damaged_project_takes_nothing_of_the_person": 4,
    "test_semantic_planted.py::test_journal_deletes_nothing_by_verbs": 3,
    "test_semantic_verbs.py::test_wrong_settings_are_named": 2,
    "test_sessions.py::test_append_of_200_kb_takes_half_a_second": 1,
    "test_sessions.py::test_start_session_beside_any_log_takes_a_second": 4,
    "test_sessions_merges.py::test_merge_in_a_clone_without_setup_loses_nothing": 3,
    "test_sessions_merges.py::test_setup_merge_keeps_both_sides": 1,
    "test_sessions_merges.py::test_setup_tells_no_other_repository": 2,
    "test_setup.py::test_setup_of_what_could_be_no_copy_is_refused": 3,
    "test_stdio.py::test_a_line_that_is_no_message_is_answered": 3,
    "test_stdio.py::test_asking_what_there_is_does_not_decide_the_era": 3,
    "test_sync_convergence.py::test_machines_that_do_anything_end_with_the_same_memories": 1,
    "test_sync_conversion.py::test_conversion_leaves_a_repository_with_the_persons_own_to_them": 4,
    "test_sync_disk.py::test_a_disaster_in_the_middle_of_a_round_is_none_either": 1,
    "test_sync_disk.py::test_a_first_join_that_was_killed_brings_nothing_back": 2,
    "test_sync_disk.py::test_a_name_of_any_length_stops_nothing": 2,
    "test_sync_disk.py::test_after_a_disaster_a_deletion_is_one_again": 3,
    "test_sync_disk.py::test_an_incomplete_disk_is_no_wish_to_forget": 1,
    "test_sync_held.py::test_nothing_is_committed_while_nobody_can_tell_what_is_to_stay_here": 1,
    "test_sync_hostile.py::test_a_commit_with_an_odd_date_does_not_refuse_a_whole_remote": 2,
    "test_sync_hostile.py::test_a_remote_that_cannot_be_reached_is_named_in_plain_words": 2,
    "test_sync_hostile.py::test_a_slip_in_the_address_shows_no_password_either": 2,
    "test_sync_hostile.py::test_commits_go_on_in_a_damaged_repository": 1,
    "test_sync_hostile.py::test_malformed_listing_is_refused": 3,
    "test_sync_hostile.py::test_planted_git_directory_is_refused": 2,
    "test_sync_person.py::test_memories_come_and_go_wherever_the_repository_lies": 3,
    "test_sync_person.py::test_repository_refuses_what_needs_a_work_tree": 4,
    "test_sync_person.py::test_what_git_takes_off_the_disk_is_brought_back": 3,
    "test_sync_play.py::test_what_git_does_is_no_wish_to_forget": 1,
    "test_sync_web.py::test_what_a_web_server_answers_is_told_by_its_cause": 3,
    "test_sync_words.py::test_the_time_to_read_a_servers_words_grows_with_their_length": 1,
    "test_toolset.py::test_exactly_the_named_toolsets_are_served": 3,
    "test_toolset.py::test_what_cannot_be_served_is_one_sentence": 2,
    "test_toolset_secrets.py::test_toolset_secret_warns": 1,
    "test_transcripts.py::test_a_transcript_is_what_happens": 10,
    "test_wire.py::test_wire_ends_the_process_when_its_thread_dies": 2,
}
"""Tests of which the usual run has only the first cases; the others are slow.

Of a matrix, the number is that of its diagonals: in the first, each value of each parameter occurs.
"""


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


def case_of(places: Sequence[tuple[int, int]]) -> int:
    """Return which case of a test it is, from 0 up; of a matrix, on which diagonal.

    Of 3 x 2 cases, (0, 0), (1, 1) and (2, 0) are on the first diagonal: each value is on it.

    Args:
        places: for each direction of the matrix, which value it is, and of how many.
    """
    if len(places) == 1:
        return places[0][0]
    along, _ = max(places, key=lambda place: place[1])
    return sum((place - along) % count for place, count in places)


def places(item: pytest.Function) -> list[tuple[int, int]]:
    """Return of each of its parameters which value a test has, and of how many."""
    found = []
    for mark in item.iter_markers("parametrize"):
        names, values = mark.args[:2]
        names = re.findall(r"\w+", names) if isinstance(names, str) else names
        mine = [item.callspec.params[name] for name in names]
        rows = [_row(each, len(names)) for each in values]
        found.append((rows.index(mine), len(rows)))
    return found


def _row(values: Any, count: int) -> list[Any]:
    if isinstance(values, type(pytest.param())):
        return list(values.values)
    return list(values) if count > 1 else [values]


def kinds(name: str, reached: Iterable[str], case: int = 0) -> set[str]:
    """Return the kinds of a test.

    Args:
        name: `test_file.py::test_function`.
        reached: what `reach` returns for it and for its fixtures.
        case: what `case_of` returns for it.
    """
    names = {name, name.partition("::")[0]}
    found: set[str] = set()
    for each in reached:
        found |= set(SIGNS.get(each, "").split())
    for each in names & KINDS.keys():
        found |= set(KINDS[each].split())
    if name in USUAL:
        found.remove("slow")
    if found & {"git", "browser"}:
        found.add("process")
    if name in LONG or case >= CASES.get(name, case + 1):
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
