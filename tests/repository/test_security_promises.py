"""Each sentence that `.github/SECURITY.md` promises, and the tests that fail where it is not kept."""

# ruff: noqa: E501 (a row is a line)

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_specified import names_in, rows

from paths import ROOT
from steps import steps

PAGE = ROOT / ".github" / "SECURITY.md"

# A row for each sentence, in the page's order: `sentence | file::name, file::name`, without `test_`
# and `.py`. Whoever changes a sentence says here which test can fail for it.
PROMISES = """
Memories stay yours. | durability::memories_are_for_their_owner_alone
In a memory directory, files and directories are made for their owner alone (modes 0600 and 0700, where the system has them). | privacy::nothing_made_in_an_open_directory_is_open, privacy::all_that_git_makes_for_us_is_private_under_any_umask, index::the_index_is_for_its_owner_alone
This program sends no memory anywhere but to the git remote, or to the index server of `citations`, that you name. | security_promises::nothing_is_sent_and_no_program_runs_without_a_remote, citations_index::a_server_that_the_person_did_not_name_is_not_asked, sync_hostile::variables_of_git_lead_into_no_other_repository
What is stored, planted or pulled is data. | sync_hostile::what_arrives_is_data
Nothing that an agent says, a file holds or is called, or a remote sends is taken for a pattern, a command or an option, or leads out of the directory or repository that is worked in. | scorer::hostile_keywords_are_only_text, programs::a_name_from_another_machine_is_no_word_of_a_command, sync_hostile::what_a_repository_has_configured_does_not_run, web::a_path_leads_to_a_memory_or_nowhere, citations_core::nothing_outside_is_read_and_nothing_hangs, sessions::no_directory_is_reached_through_a_link
No shell is started. | programs::no_program_is_started_by_a_shell
Programs (git, your editor) are found in the absolute directories of PATH, never in the current directory. | programs::no_verb_runs_a_program_of_the_current_directory, programs::no_server_runs_a_program_of_the_directory_it_is_started_in
Of a repository that came with a directory, git runs nothing for us: no hook, no filter, nothing that verifies or fetches. | sync_hostile::missing_object_is_fetched_by_no_program, sync_hostile::what_a_repository_has_configured_does_not_run, sync_hostile::planted_git_directory_runs_no_program, citations_planted::git_fetches_nothing_by_a_planted_program, citations_planted::changed_runs_no_filter
Where the memories' own has links, pipes or another repository in it, belongs to another user or is configured to do more than ours is, it is refused by name, and so is one that came along where `files` is a link. | sync_hostile::planted_git_directory_is_refused, sync_hostile::configuration_of_ours_holds_nothing_that_ours_has_not, sync_hostile::configuration_of_ours_leads_git_to_no_pipe, sync_hostile::git_directory_of_another_user_is_refused, sync_hostile::planted_history_is_not_written_through_a_link
What is no memory is left alone. | files::memory_works_whatever_has_our_names
Where a file of ours should be, links, pipes, devices and files of other users are neither followed nor waited for nor changed. | files::memory_works_whatever_has_our_names, files::no_verb_waits_or_reaches_out, files::files_below_a_base_are_opened_by_one_door, sessions::a_lock_is_made_behind_no_link
What is cleared away has a name that no person chooses. | files::only_names_of_our_own_are_deleted, files::remove_left_takes_old_files_of_this_user_alone, import::import_ended_by_a_signal_clears_up
A bad file, a damaged index or a bad remote ends neither storing nor finding. | faults::no_damage_gives_a_wrong_answer, faults::a_file_that_could_not_be_read_once_is_read_again, sync_hostile::malformed_listing_is_refused
What is found is yours. | owners::owner_of_what_a_hook_finds_is_another
What the toolsets find upwards from the working directory, and belongs to another user, is not taken without your word (whose it is). | owners::owner_is_another, owners::owner_of_what_lies_in_it_is_another
On Windows the owner is not looked at. | owners::owner_is_oneself
A database that came with a project harms nothing. | semantic_planted::journal_deletes_nothing_by_hooks
Of `.memory/db`, and of one that is imported, nothing is computed or run, whatever its schema says; no journal beside it has SQLite delete another file; SQLite takes at most 128 MB, and a time that grows with the file's size. | semantic_planted::schema_of_another_is_refused, semantic_planted::journal_deletes_nothing_by_tools, semantic_planted::planted_database_costs_little, semantic_planted::import_computes_nothing
A damaged memory is left out by name. | semantic_planted::damaged_row_is_named_and_left_out, semantic_planted::damaged_tables_of_an_index_are_named, semantic_planted::planted_change_is_never_written
(An import on Python 3.10 takes as much as its largest value, of at most 256 MiB.) | semantic_planted::import_of_a_large_row_costs_little
What is made from the memories is opened only where nobody else can have put it: in a folder of the directory's `.index` whose name a key of yours makes; what else came there with a clone or archive is not. | planted::planted_index_is_not_opened_by_a_server, planted::planted_ledger_of_sync_is_not_opened, derived::folder_is_named_by_the_base_and_the_user
Nothing waits or grows without limit because of what somebody else wrote: files, keywords, answers and the log have bounds (a table), and time grows with the size of the input. | bounds::time_grows_with_the_size_and_ends_within_a_second, bounds::what_is_larger_is_refused_at_once, bounds::every_reader_has_a_row, citations_planted::planted_repository_costs_little, semantic_planted::planted_changes_cost_little, semantic_planted::planted_memories_cost_doctor_little, import_sources::import_json_of_too_many_parts_is_refused, files::more_than_is_ever_written_is_not_read, patterns::the_time_of_an_expression_grows_with_its_text, patterns::a_question_has_bounds_that_are_named, safe_html::text_made_to_be_slow_is_shown_in_time, leaks::what_begins_like_a_secret_costs_no_more_than_its_length, uses::the_log_is_bounded, sync_hostile::a_call_that_takes_too_long_is_ended
Nothing reaches your terminal or the page unseen. | cli_output::there_is_one_way_to_the_terminal, safe_html::any_text_is_safe
Control, direction and invisible characters are shown as what they are, and so is what CI would take for a command (`::set-output …`, `##[…]`). | cli_output::what_ci_obeys_is_marked, citations_ci::a_memory_gives_ci_no_command, cli_output::what_is_invisible_is_marked, cli_output::no_verb_sends_what_a_memory_holds, web_browser::what_is_invisible_is_shown
The page (`aiaml web`) answers this computer only, and only who has its address, which is on no command line. | web::the_address_is_on_loopback_and_holds_a_long_secret, web::nothing_else_is_answered_without_the_token, web::another_page_is_refused, web::another_host_name_is_refused, web::the_browser_is_led_by_a_file_of_ours_alone
Others can neither fill its memory nor use up its connections. | web_limits::connections_leave_descriptors_for_the_person, web_limits::connections_without_the_token_are_closed_after_some_seconds, web_limits::a_body_without_the_token_is_not_kept
Secrets are kept out of git where their form or a name beside them tells them (`AIAML_CHECK_SECRETS`), and a password in the remote's address out of command lines, logs and status. | leaks::each_form_is_found_by_a_secret_of_the_corpus, secrets::a_commit_with_a_secret_is_not_pushed_and_all_else_is, sync_hostile::a_password_in_the_address_is_shown_nowhere
The toolsets, which write into your repositories and databases, warn of them; `citations` copies and shows no line of a file that git ignores. | toolset_secrets::toolset_secret_warns, toolset_secrets::toolset_doctor_reports_a_secret, citations_ignored::citation_of_an_ignored_file_keeps_no_text, citations_ignored::ignored_file_is_shown_by_nothing
"""


def promised() -> list[str]:
    """Return the sentences of the page's list of promises."""
    text = PAGE.read_text(encoding="utf-8")
    part = text.partition("## What is promised")[2].partition("\n## ")[0]
    bullets = re.split(r"^- ", part, flags=re.MULTILINE)[1:]
    unlinked = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", each) for each in bullets]
    plain = [" ".join(each.replace("**", "").split()) for each in unlinked]
    return [sentence for each in plain for sentence in re.split(r"(?<=\.) (?=[A-Z(])", each)]


def test_every_promise_has_a_row() -> None:
    """And every row is a sentence of the page: who changes one looks at its tests."""
    assert [sentence for sentence, _ in rows(PROMISES)] == promised()


@pytest.mark.parametrize(("sentence", "held"), rows(PROMISES))
def test_every_promise_can_fail(sentence: str, held: str) -> None:
    """The tests that hold it are there."""
    for each in held.split(", "):
        file, _, name = each.partition("::")
        assert f"test_{name}" in names_in(file), f"{sentence}: {each}"


USE = """
import sys
from pathlib import Path
from aiaml_server import MemoryBank, Settings
bank = MemoryBank(Settings(Path(sys.argv[1]), sync=False))
memory = bank.remember("claude", "marco", ["food"], "Marco is a vegetarian")
assert bank.think(["vegetarian"]) and bank.recall([memory.id])
bank.close()
"""


def test_nothing_is_sent_and_no_program_runs_without_a_remote(tmp_path: Path) -> None:
    """Remember, think and recall open no connection and start nothing."""
    done = {event for event, _ in steps(USE, tmp_path, [str(tmp_path)])}
    assert "open" in done
    outside = done - {"open", "os.mkdir", "os.rename", "os.remove", "os.truncate", "fsync"}
    assert outside == set()
