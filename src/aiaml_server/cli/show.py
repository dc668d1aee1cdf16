"""The commands list, show and search."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from aiaml_server.cli.context import fields, found_by, opened, quoted, why_nothing
from aiaml_server.cli.filtering import MemoryId, filtered, limited, notify_limit
from aiaml_server.errors import InvalidInput
from aiaml_server.format.filters import Filter, of_shell
from aiaml_server.format.invisible import marked_line
from aiaml_server.format.memory import Memory
from aiaml_server.format.scorer import clean
from aiaml_server.index import Answer, Question
from aiaml_server.rendering import title, visible
from aiaml_server.terminal import (
    EXIT_USAGE,
    Exit,
    bold,
    dim,
    echo_json,
    echo_paged,
    is_terminal,
    json_option,
    notify,
    styled,
    terminal_width,
    truncate,
    wrap,
)
from aiaml_server.timestamps import format_minute

if TYPE_CHECKING:
    from aiaml_server.bank import MemoryBank

_NO_MATCH = re.compile("(?!)")
_MATCHING_LINES = 2  # that a search shows of each memory

# --- list -----------------------------------------------------------------------------------------


@click.command("list")
@click.argument("words", nargs=-1, metavar="[FIELD:VALUE]...")
@filtered
@limited
@json_option
def list_(words: Sequence[str], limit: int, json: bool, **options: Any) -> None:
    """List memories, newest first.

    Filters can also be written as in a search: agent:claude topic:food since:7d. In a pipe each
    memory is one line, with tabs between id, time, agent, user, topics and text.

    \b
    Examples:
      aiaml list
      aiaml list --agent claude --topic food --since 7d
      aiaml list --all | grep allergic
      aiaml list --all --json
    """
    wanted, rest = Filter.of(**options).with_fields(words)
    if rest:
        raise Exit(f"{rest[0]} is not a filter; `aiaml search` looks for words", EXIT_USAGE)
    with opened() as bank:
        names = [name for _, name in bank.index.dated(wanted)]
        memories = list(bank.scan(names[:limit]))
        if not memories:
            notify(why_nothing(bank, wanted))
    if json:
        echo_json([fields(memory, name) for name, memory in memories])
    else:
        echo_paged(line for _, memory in memories for line in memory_lines(memory))
    notify_limit(len(memories), len(names))


def memory_lines(
    memory: Memory, pattern: re.Pattern[str] = _NO_MATCH, matching: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the lines of a memory in a list: one with its fields, then some of its text.

    In a pipe it is one line with tabs.

    Args:
        memory: the memory.
        pattern: what to highlight.
        matching: the lines of its text to show; its title if there are none.
    """
    shown = visible(memory)
    topics = ", ".join(shown.topics)
    if not is_terminal():
        cells = (shown.id, shown.timestamp, shown.agent, shown.user, topics, shown.content)
        yield "\t".join(" ".join(cell.split()) for cell in cells)
        return
    people = truncate(f"{shown.agent} about {shown.user} [{topics}]", terminal_width() - 28)
    time = format_minute(shown.timestamp)
    yield f"{bold(shown.id)}  {dim(time)}  {dim(_highlight(people, pattern))}"
    for line in matching or [title(memory.content)]:
        text = _excerpt(line, pattern, terminal_width() - 2)
        yield f"  {_highlight(text, pattern)}".rstrip()


# --- show -----------------------------------------------------------------------------------------


@click.command("show")
@click.argument("ids", nargs=-1, required=True, metavar="ID...", type=MemoryId())
@json_option
def show(ids: Sequence[str], json: bool) -> None:
    """Show memories in full.

    The first four characters of an id are enough if no other id begins so. Invisible characters are
    shown as code points such as ‹U+200B›, in a pipe too; --json and the file have the text itself.
    On a terminal the most similar memories follow.

    \b
    Examples:
      aiaml show 1b2c3d4e 4e5f
      aiaml show 1b2c --json
    """
    with opened() as bank:
        found = found_by(bank, ids)
        if json:
            echo_json([fields(memory, name) for name, memory in found])
        else:
            echo_paged(line for name, memory in found for line in _whole(bank, name, memory))


def _whole(bank: MemoryBank, name: str, memory: Memory) -> Iterator[str]:
    """Yield the lines that show one memory in full."""
    shown = visible(memory)
    time = format_minute(shown.timestamp)
    yield wrap(f"{bold(shown.id)}  {time}  {shown.agent} about {shown.user}")
    yield dim(wrap(f"{', '.join(shown.topics)}  {marked_line(f'files/{name}')}"))
    yield ""
    yield wrap(shown.content.rstrip("\n"))
    yield ""
    for _, other in bank.similar(memory) if is_terminal() else []:
        yield dim("Similar: ") + truncate(title(other.content), terminal_width() - 9)
        yield dim(f"  aiaml forget {quoted([other.id])}")


# --- search ---------------------------------------------------------------------------------------


@click.command("search")
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@filtered
@limited
@click.option("--as-agent", is_flag=True, help="Match keywords exactly as the tool `think` does.")
@json_option
def search(words: Sequence[str], limit: int, as_agent: bool, json: bool, **options: Any) -> None:
    """Find memories by words, best match first.

    Ask in your own words: rare words count more, and a word is found in its other forms. For an
    exact phrase, quote twice: '"san francisco"'. A word such as agent:claude, user:ann, topic:food,
    since:7d or before:2026-01-01 is a filter.

    \b
    Examples:
      aiaml search when is the choir rehearsal
      aiaml search what did we decide about caching since:30d
      aiaml search '"san francisco"' agent:claude
      aiaml search dinner restaurant --as-agent
    """
    wanted, rest = Filter.of(**options).with_fields(words if as_agent else of_shell(words))
    keywords = clean(rest)
    if not keywords:
        raise InvalidInput("WORD", "must be a word to look for; `aiaml list` needs none")
    part = slice(limit)
    answer: Answer | None = None
    with opened() as bank:
        if as_agent:
            found = bank.index.search_keywords(keywords, wanted, part)
        else:
            answer = bank.index.search(Question.parse(rest), wanted, part)
            found = answer.found
        memories = dict(bank.scan(hit.file_name for hit in found.hits))
    hits = [(hit, memories[hit.file_name]) for hit in found.hits if hit.file_name in memories]
    if json:
        echo_json(
            [
                {
                    **fields(memory, hit.file_name),
                    "relevance_score": hit.relevance_score,
                    "matching_keywords": list(hit.matching_keywords),
                }
                for hit, memory in hits
            ]
        )
    else:
        pattern = _pattern(answer, keywords)
        echo_paged(line for _, memory in hits for line in _hit_lines(memory, pattern))
    if not hits:
        notify(_why_no_hits(answer))
    notify_limit(len(hits), found.total)


def _hit_lines(memory: Memory, pattern: re.Pattern[str]) -> Iterator[str]:
    lines = visible(memory).content.splitlines()
    matching = [line for line in lines if pattern.search(line)]
    return memory_lines(memory, pattern, matching[:_MATCHING_LINES])


def _why_no_hits(answer: Answer | None) -> str:
    if answer and answer.without_phrase:
        return (
            f"No memories contain the phrase; {answer.without_phrase:,} contain its words."
            " Omit the quotes."
        )
    return "No memories match."


def _pattern(answer: Answer | None, keywords: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for the matches of a question, or of keywords, in a text."""
    words = set(keywords)
    if answer:
        words = {form for word in answer.words for form in word.forms}
        words.update(answer.question.phrases)
    longest_first = sorted(words, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or "(?!)", re.IGNORECASE)


def _highlight(text: str, pattern: re.Pattern[str]) -> str:
    return pattern.sub(lambda found: styled(found[0], "yellow"), text)


def _excerpt(line: str, pattern: re.Pattern[str], columns: int) -> str:
    """Return the part of a line that fits, with the first match in it."""
    found = pattern.search(line) if len(line) > columns else None
    start = max(0, found.end() - columns // 2) if found else 0
    return truncate(f"…{line[start:]}" if start else line, columns)
