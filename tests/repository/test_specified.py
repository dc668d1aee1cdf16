"""Each sentence of the two specifications, and the test or the words that hold it.

A row's second part is a test (`file::name`, without `test_` and `.py`) or words of the toolset's
page (in quotes). What is only a title, or speaks of another language's tools, is not in the tables.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from aiaml_server import testing
from paths import TESTS

HERE = TESTS
PAGES = HERE.parent / "docs" / "toolsets"

SESSIONS = """
Persistent agent context across sessions | sessions::answers_are_those_of_the_specification
Deterministic writes and reads | sessions::the_same_calls_give_the_same_bytes
Schema enforcement | sessions::the_repository_s_own_schema_counts
Reuse across multiple repositories and projects | sessions::only_the_repositories_allowed_are_touched
Separates reasoning, persistence and judgment | sessions::the_instructions_carry_the_usage_pattern
No probabilistic behavior | sessions::the_same_calls_give_the_same_bytes
No implicit writes | sessions::nothing_is_written_but_what_the_call_names
No auto-summarization | sessions::nothing_is_written_but_what_the_call_names
All memory follows a declared structure | sessions::after_any_calls_git_shows_the_contract_s_files_only
Invalid writes are rejected | sessions::every_refusal_has_its_code
Memory lives inside the consuming repository | sessions::no_network_no_program_and_nothing_is_deleted
Git is the system of record | sessions::git_status_shows_the_contract_s_files_only
Agents may read memory freely | contract::what_only_reads_writes_nothing
Agents may only write via explicit tool calls | sessions::reading_never_writes
Humans decide what becomes durable knowledge | "a person decides on it"
.github/agent-memory/<agent-name>/ with logs, _summary.md, _schema.md | sessions::a_session_is_started_as_specified
If files or folders are missing, the tool MAY create them | sessions::a_session_is_started_as_specified
The schema defines the structure of all session logs | sessions::the_repository_s_own_schema_counts
Default schema version: v1 | sessions::a_session_is_started_as_specified
MUST validate all writes against this schema | sessions::a_log_that_a_person_broke_says_where
start_session: agent_name, repo_root, date | contract::every_parameter_is_explained
repo_root: absolute path to repository root | sessions::only_the_top_of_a_work_tree_is_a_repository
date defaults to current date | sessions::without_a_date_it_is_today
Ensures .github/agent-memory/<agent_name>/logs/ exists | sessions::a_session_is_started_as_specified
Creates YYYY-MM-DD.md if missing | sessions::a_session_is_started_as_specified
Inserts schema-compliant header for new files | sessions::a_session_is_started_as_specified
Does NOT overwrite existing content | sessions::a_session_is_started_as_specified
Returns session_file, created | sessions::answers_are_those_of_the_specification
append_entry: section is one of five | sessions::every_refusal_has_its_code
Validates section against schema | sessions::the_repository_s_own_schema_counts
Appends content under the correct heading | sessions::every_byte_stays_in_its_order
Never rewrites or deletes existing content | sessions::every_byte_stays_in_its_order
Preserves chronological order | sessions::eight_processes_lose_nothing
Fails on an invalid section name | sessions::every_refusal_has_its_code
Fails on a missing schema | sessions::a_missing_schema_or_log_is_named
Fails on an invalid schema | sessions::what_is_no_schema_is_refused
Fails on a malformed log file | sessions::a_malformed_log_is_refused_and_left_alone
read_summary reads _summary.md | sessions::reading_never_writes
If missing, MAY initialize from a template | sessions::reading_never_writes
Returns summary | sessions::answers_are_those_of_the_specification
update_summary: section, content, mode | contract::every_parameter_is_explained
Allowed mode values: append, replace | sessions::every_refusal_has_its_code
Updates only the targeted section | sessions::only_the_section_named_is_changed
Does not modify other sections | sessions::only_the_section_named_is_changed
Summary updates are explicit and intentional | sessions::nothing_is_written_but_what_the_call_names
list_sessions: limit | sessions::answers_are_those_of_the_specification
Ordered newest to oldest | sessions::sessions_are_listed_newest_first
Errors MUST be explicit | sessions::every_refusal_has_its_code
Errors MUST be non-destructive | sessions::whatever_a_parameter_holds_the_answer_has_its_shape
error: InvalidSection, message: Section 'Thoughts' is not defined in schema | sessions::answers_are_those_of_the_specification
No silent failures | contract::every_failure_has_its_shape
Tool versioning: Semantic Versioning | packaging::the_changelog_has_the_current_version
Schema version declared in _schema.md | sessions::the_repository_s_own_schema_counts
Schema version mismatches SHOULD emit warnings | sessions::answers_are_those_of_the_specification
Backward compatibility is preferred | "A log that was made under another version is taken as it is"
No network access required | sessions::no_network_no_program_and_nothing_is_deleted
No execution of repository code | sessions::no_hook_of_the_repository_runs
File access limited to repo_root | sessions::no_file_is_reached_through_a_link
No delete operations supported | sessions::no_network_no_program_and_nothing_is_deleted
Does not generate summaries, decide or store elsewhere | "It does not summarise, decide what matters, search, or store"
Does not replace human judgment | "a person decides on it"
Intended usage pattern | sessions::the_instructions_carry_the_usage_pattern
"""

COMPARTMENTS = """
Distinct memory sections for different purposes | compartments::an_entry_is_saved_found_changed_and_cleared
CRUD operations for each memory section | compartments::an_entry_is_saved_found_changed_and_cleared
Persist across agent runs and sessions | frameworks::the_next_run_finds_session_and_plan
Categories, tags, and metadata | compartments::filters_join_and_pages_have_totals
Search and retrieval of relevant memory | compartments::filters_join_and_pages_have_totals
Tools for cleanup, archiving, and lifecycle management | "all of it as lines of JSON, to archive"
Efficient storage and retrieval | benchmarks::every_row_of_the_toolsets_is_measured
Structure and content validation | compartments::wrong_values_change_nothing
Usage tracking and effectiveness metrics | "what was never read"
Sharing between agents and sessions | compartments::a_sub_agent_sees_session_and_plan_but_not_the_run
Keep the API simple and intuitive | toolset_pages::the_story_is_what_the_demo_prints
Run memory: available in every LLM call | frameworks::the_run_memory_is_in_each_call
Run memory: not shared with sub-agents | frameworks::a_sub_agent_sees_session_and_plan_but_not_the_run
Run memory: cleared at the end of each agent run | compartments::a_run_s_memory_ends_with_it
Session memory: entire session, shared with sub-agents | frameworks::a_sub_agent_sees_session_and_plan_but_not_the_run
Session memory: persists across agent runs | frameworks::the_next_run_finds_session_and_plan
Plan memory: run-level or session-level | compartments::a_plan_may_be_the_run_s
Plan memory: progress tracking, modifications | compartments::an_update_may_take_things_away
MemoryEntry: its nine fields, empty ones left out | compartments::answers_are_those_of_the_specification
Priority 1-10 | compartments::wrong_values_change_nothing
All reads are memory reads | compartments::reading_costs_one_look_at_the_file
Writing to disk when updates occur | compartments::another_process_s_change_is_seen_at_once
JSON-based file storage | compartments::it_is_private_and_keeps_what_it_does_not_know
One file containing all memory | compartments::what_a_killed_run_left_is_cleared_and_a_living_one_s_is_not
Atomic writes, the whole file every time | compartments::a_kill_at_any_step_leaves_the_file_before_or_after
File locking for concurrent access safety | compartments::eight_processes_lose_nothing
Configurable file location | compartments::the_file_is_in_the_working_directory_where_none_is_named
Only 3 tools | compartments::a_change_of_the_run_memory_is_announced
save_memory: compartment, content, category, tags, metadata | contract::every_parameter_is_explained
get_memory: compartment, id, category, tags | compartments::filters_join_and_pages_have_totals
clear_memory: compartment, category, tags | compartments::an_empty_filter_clears_nothing
Create, read, update, delete, clear | compartments::an_entry_is_saved_found_changed_and_cleared
Search by text, tags, or metadata | compartments::filters_join_and_pages_have_totals
List with filtering and pagination | compartments::filters_join_and_pages_have_totals
Track creation and modification times | compartments::an_entry_is_saved_found_changed_and_cleared
Monitor how often entries are accessed | compartments::reading_costs_one_look_at_the_file
Configurable limits on memory storage size per compartment | compartments::limits_are_settings
Report error in tool call if size exceeded; inform to delete | frameworks::a_full_compartment_is_told_to_the_model
Context manager | compartments::a_run_s_memory_ends_with_it
Search within 100ms | benchmarks::every_row_of_the_toolsets_is_measured
File I/O minimised for read operations | compartments::reading_costs_one_look_at_the_file
Default size per compartment is 10k characters | compartments::limits_may_differ
Concurrent access handled safely | compartments::eight_processes_lose_nothing
Error handling comprehensive | compartments::what_the_disk_refuses_is_told
Tools automatically inserted into agent context | compartments::the_tools_are_plain_functions
Seamless integration with agent workflows | frameworks::the_run_memory_is_in_each_call
Test serialization | compartments::what_was_saved_comes_back
Test persistence across runs using a dummy model | frameworks::the_next_run_finds_session_and_plan
Tool definitions clear, with good description | contract::its_words_fit_where_hosts_cut_them
Goals and current design described | "It is a small Python API for agents of your own"
Only the run memory in every LLM call | compartments::only_the_run_memory_goes_into_every_call
Tools that depend on no framework's type | compartments::the_tools_are_plain_functions
The package does not depend on the framework | compartments::the_api_needs_no_sdk
"""


def rows(table: str) -> list[tuple[str, str]]:
    """Return each sentence with what holds it."""
    pairs = [line.rpartition(" | ") for line in table.strip().splitlines()]
    return [(sentence, held) for sentence, _, held in pairs]


def names_in(name: str) -> set[str]:
    """Return the names of the tests in a file."""
    path = HERE / f"test_{name}.py" if name != "contract" else Path(testing.__file__)
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {each.name for each in nodes if isinstance(each, functions)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "table"), [("sessions", SESSIONS), ("compartments", COMPARTMENTS)]
)
def test_every_sentence_is_held_by_a_test_or_a_word(name: str, table: str) -> None:
    """The test is there, the words are on the page."""
    page = " ".join((PAGES / f"{name}.md").read_text("utf-8").split())
    found = rows(table)
    assert len(found) > 40
    assert len({sentence for sentence, _ in found}) == len(found)
    for sentence, held in found:
        if words := re.fullmatch('"(.+)"', held):
            assert words[1] in page, sentence
        else:
            file, _, test = held.partition("::")
            assert f"test_{test}" in names_in(file), f"{sentence}: {held}"
