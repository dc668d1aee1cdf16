"""`list`, `show`, `search`: memories, as a person reads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from aiaml_server.cli.context import opened
from aiaml_server.cli.filtering import filtered, limited, tell_limit
from aiaml_server.cli.rows import NARROW, Layout, print_lines
from aiaml_server.errors import InvalidInput
from aiaml_server.format.filters import Filter, of_shell
from aiaml_server.format.invisible import marked_line
from aiaml_server.format.memory import SHORTEST_ID, Memory
from aiaml_server.format.scorer import Hit, clean
from aiaml_server.format.scorer import fields as searched
from aiaml_server.index import Answer, Question
from aiaml_server.rendering import visible
from aiaml_server.terminal import (
    Exit,
    bold,
    dim,
    echo,
    echo_bytes,
    echo_json,
    is_terminal,
    json_option,
    styled,
    terminal_width,
    truncate,
    wrap,
)
from aiaml_server.timestamps import format_minute

if TYPE_CHECKING:
    from aiaml_server.bank import MemoryBank


@click.command("list")
@click.argument("said", nargs=-1, metavar="[FIELD:VALUE]...")
@filtered
@limited
@json_option
def list_(
    said: Sequence[str],
    limit: int,
    everything: bool,
    json: bool,
    **options: Any,
) -> None:
    """List memories, newest first.

    What the options say can also be written as in a search: agent:claude topic:food since:7d.
    A pipe gets a line for each memory, with tabs between its fields and the whole text.

    \b
    Examples:
      aiaml list
      aiaml list --agent claude --topic food --since 7d
      aiaml list agent:claude topic:food since:7d
      aiaml list --all | grep allergic
      aiaml list --all --json
    """
    wanted, words = Filter.of(**options).and_said(said)
    if words:
        raise InvalidInput(words[0], "is no field; `aiaml search` looks for words")
    with opened() as bank:
        names = [name for _, name in bank.dated(wanted)]
        shown = bank.read(names if everything else names[:limit])
        if json:
            rows = [fields(memory, name) for name, memory in shown]
            echo_json(rows)
            count = len(rows)
        else:
            count = print_lines(memory for _, memory in shown)
        if not count:
            raise Exit(nothing(bank, wanted))
    tell_limit(count, len(names))


def fields(memory: Memory, name: str) -> dict[str, Any]:
    """Return a memory as `recall` has it, and the file that it stands in."""
    return {**memory.fields(), "file": name}


def nothing(bank: MemoryBank, wanted: Filter) -> str:
    """Say why there is nothing to show."""
    if wanted:
        return "no memory is like that"
    if bank.names():
        return "no file there can be read as a memory; `aiaml doctor` says why"
    return "there are no memories yet: an agent stores them, or you with `aiaml remember`"


# --- show -----------------------------------------------------------------------------------------


@click.command("show")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--raw", is_flag=True, help="Print the file exactly as it stands.")
@json_option
def show(ids: Sequence[str], raw: bool, json: bool) -> None:
    """Show memories whole, their markdown rendered.

    The first four characters of an id do, where no other begins so. Every word of a memory is
    shown: links with their addresses, invisible characters as code points (U+202E), and as it
    stands what would be hidden by rendering or is longer than 32 KiB.

    \b
    Examples:
      aiaml show 1b2c3d4e 4e5f
      aiaml show 1b2c --raw > memory.md
    """
    with opened() as bank:
        found = [each for memory_id in ids for each in found_by(bank, memory_id)]
        if json:
            echo_json([fields(memory, name) for name, memory in found])
        elif raw:
            echo_bytes(bank.text(name).encode() for name, _ in found)
        else:
            for number, (name, memory) in enumerate(found):
                _render(name, memory, rule=number > 0)


def found_by(bank: MemoryBank, memory_id: str) -> list[tuple[str, Memory]]:
    """Return every memory that a person's (shortened) id names, with its file's name.

    Raises:
        Ended: there is none.
    """
    if found := bank.find(memory_id):
        return found
    raise Exit(_unknown(memory_id))


def _unknown(memory_id: str) -> str:
    more = ""
    if set(memory_id.lower()) - {*"0123456789abcdef"}:
        more = "; `aiaml search` finds one by its words"
    elif len(memory_id) < SHORTEST_ID:
        more = f"; an id is shortened to {SHORTEST_ID} characters at least"
    return f"no memory has the id {memory_id}{more}"


def _render(name: str, memory: Memory, *, rule: bool) -> None:
    from aiaml_server.rendering.terminal import rendered  # noqa: PLC0415 (for this alone)

    content, memory = memory.content, visible(memory)
    if rule:
        echo(dim("─" * terminal_width()))
    time = format_minute(memory.timestamp)
    echo(wrap(f"{bold(memory.id)}  {time}  {memory.agent}, about {memory.user}"))
    file = marked_line(f"files/{name}")
    echo(dim(wrap(f"{', '.join(memory.topics)}  ·  {file}")))
    echo()
    echo(rendered(content))


# --- search ---------------------------------------------------------------------------------------


@click.command("search")
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@filtered
@limited
@click.option("--lines", "-l", metavar="N", default=2, type=click.IntRange(0),
              help="Matching lines to show of each memory; 2 if not said.")  # fmt: skip
@click.option("--as-agent", is_flag=True,
              help="The very answer of `think`: words as they are written.")  # fmt: skip
@json_option
def search(
    words: Sequence[str],
    limit: int,
    everything: bool,
    lines: int,
    as_agent: bool,
    json: bool,
    **options: Any,
) -> None:
    """Find what answers a question in your own words, the best first.

    Rare words count more than frequent ones, several of the question more than one said often, and
    a word is found in its forms. What stands in quotes inside of the shell's must stand so; the
    shell's own make no difference. A word such as agent:claude, user:ann, topic:food, since:7d
    or until:2026-01-01 says which memories are meant, as the options do.

    \b
    Examples:
      aiaml search when is the choir rehearsal
      aiaml search "what did we decide about caching?" since:30d
      aiaml search '"san francisco"' agent:claude
      aiaml search dinner restaurant --as-agent
    """
    said = words if as_agent else of_shell(words)
    wanted, rest = Filter.of(**options).and_said(said)
    if not clean(rest):
        hint = "; `aiaml list` lists without one" if wanted else ""
        raise InvalidInput("WORD", f"must be a word to look for{hint}")
    some = slice(None if everything else limit)
    answer: Answer | None = None
    with opened() as bank:
        if as_agent:
            found = bank.search(clean(rest), wanted, some)
        else:
            answer = bank.ask(Question.parse(rest), wanted, some)
            found = answer.found
        hits = [
            Shown(hit, memory, answer)
            for hit in found.hits
            for _, memory in bank.read([hit.file_name])
        ]
    if json:
        echo_json([each.fields() for each in hits])
    else:
        _print_hits(hits, lines)
    if not hits:
        raise Exit(_nothing(answer, wanted))
    tell_limit(len(hits), found.total)


def _nothing(answer: Answer | None, wanted: Filter) -> str:
    """Say why nothing is shown."""
    like = "memory that is like that" if wanted else "memory"
    if answer and answer.question.phrases:
        said = ", ".join(f'"{marked_line(each)}"' for each in answer.question.phrases)
        hold = "1 holds" if answer.apart == 1 else f"{answer.apart:,} hold"
        apart = f"; {hold} all of its words, apart: leave the quotes out" if answer.apart else ""
        return f"no {like} says {said}{apart}"
    return f"no {like} holds any of these words"


class Shown(NamedTuple):
    """A hit that is shown: of an answer to a question, or of `think`, where that is None."""

    hit: Hit
    memory: Memory
    answer: Answer | None

    def fields(self) -> dict[str, Any]:
        """Return what `--json` tells of it."""
        return {
            **fields(self.memory, self.hit.file_name),
            "relevance_score": self.hit.relevance_score,
            "matching_keywords": list(self.hit.matching_keywords),
        }

    def marked(self) -> re.Pattern[str]:
        """Return a pattern of what is marked in its text."""
        if self.answer is None:
            return pattern(self.hit.matching_keywords)
        forms = self._forms()
        words = rf"(?<!\w)(?:{pattern(forms).pattern})(?!\w)" if forms else ""
        phrases = pattern(self.answer.question.phrases).pattern
        either = "|".join(filter(None, (phrases, words)))
        return re.compile(either, re.IGNORECASE)

    def _forms(self) -> list[str]:
        """Return the forms of the words of the question that the memory has."""
        assert self.answer  # noqa: S101 (only asked where there is one)
        text = "\n".join(each for _, each in searched(self.memory))
        return [form for word in self.answer.words for form in word.forms if form in text]


def _print_hits(hits: Sequence[Shown], lines: int) -> None:
    layout = Layout.of([each.memory for each in hits])
    indent = " " * (10 if terminal_width() >= NARROW else 2)
    for each in hits:
        score = str(each.hit.relevance_score)
        if not is_terminal():
            echo("\t".join(layout.lines(each.memory, score=score)))
            continue
        marks = each.marked()
        mark = marker(marks)
        text = visible(each.memory).content.splitlines() if lines else []
        matching = [line for line in text if mark(line) != line][:lines]
        for line in layout.lines(each.memory, mark, f"{score:>4}  ", titled=not matching):
            echo(line)
        for line in matching:
            echo(f"{indent}{mark(_around(line, marks, terminal_width() - len(indent)))}")


def pattern(keywords: Iterable[str]) -> re.Pattern[str]:
    """Return what finds keywords in a text, the longest first."""
    longest = sorted(keywords, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest)), re.IGNORECASE)


def marker(marked: re.Pattern[str]) -> Callable[[str], str]:
    """Return what makes all that a pattern finds in a text stand out."""
    if not marked.pattern:
        return lambda text: text
    return lambda text: marked.sub(lambda found: styled(found[0], "yellow"), text)


def _around(line: str, marked: re.Pattern[str], most: int) -> str:
    """Return the part of a line in which something marked first stands."""
    line = " ".join(line.split())
    if len(line) <= most:
        return line
    found = marked.search(line)
    first = found.start() if found else 0
    start = max(0, min(first - most // 3, len(line) - most + 1))
    return ("…" if start else "") + truncate(line[start:], most - bool(start))
