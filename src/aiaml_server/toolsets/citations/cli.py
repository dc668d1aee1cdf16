"""The command line, on the standard library: `aiaml citations …` and `python -m …citations`."""

from __future__ import annotations

import json
import os
import sys
import traceback
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from aiaml_server.errors import NotFound, ToolError
from aiaml_server.format.invisible import inert, inert_json, marked, marked_line
from aiaml_server.toolsets.citations import MANIFEST, graph
from aiaml_server.toolsets.citations.citing import relative_path
from aiaml_server.toolsets.citations.import_serena import import_serena
from aiaml_server.toolsets.citations.models import Citation, Link
from aiaml_server.toolsets.citations.service import MemoryService, Verification
from aiaml_server.toolsets.citations.sources import UNSEEN
from aiaml_server.toolsets.citations.store import MAX_BYTES
from aiaml_server.toolsets.citations.verify import AMBIGUOUS, OK, CheckedCitation
from aiaml_server.toolsets.failures import annotation

DONE, NEGATIVE, FAILED = 0, 1, 2
"""Exit codes: done or valid; stale or nothing found; something could not be done or read."""


class Output(NamedTuple):
    """What a command prints, and its exit code.

    Attributes:
        value: the answer as JSON.
        lines: the answer as text; None to print it as JSON in any case.
        notes: what is printed on standard error.
        code: the exit code.
        prefix: written before each line, so that GitHub reads it as a command.
    """

    value: Any
    lines: Sequence[str] | None = None
    notes: Sequence[str] = ()
    code: int = DONE
    prefix: str = ""


def main(words: Sequence[str] | None = None, prog: str = "citations") -> int:
    """Run a command and return its exit code. Its output commands neither a terminal nor CI."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        given = _build_parser(prog).parse_args(words)
        settings = MANIFEST.read_settings(os.environ)
        output: Output = given.run(given, MemoryService.from_settings(settings, given.repo))
        _print(output, as_json=given.json)
    except BrokenPipeError:  # as in `list | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what Python flushes at its end
        return FAILED
    except (ToolError, OSError) as error:
        sys.stderr.write(f"{inert(marked_line(f'{prog}: {error}'))}\n")
        return NEGATIVE if isinstance(error, NotFound) else FAILED
    except Exception:  # noqa: BLE001 (a fault of this program must not look like exit code 1)
        traceback.print_exc()
        return FAILED
    return output.code


def _print(output: Output, *, as_json: bool) -> None:
    if as_json or output.lines is None:
        lines = [inert_json(json.dumps(output.value, indent=2))]
    else:
        lines = [f"{output.prefix}{inert(marked(line))}" for line in output.lines]
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()
    sys.stderr.writelines(f"{inert(marked_line(note))}\n" for note in output.notes)


def search(given: Namespace, memories: MemoryService) -> Output:
    """Find memories by words or a question, best first. Exit codes: 0 found, 1 nothing."""
    paths = [relative_path(path, memories.root, os.curdir) for path in given.path or ()]
    hits, notes = memories.search(
        " ".join(given.words), given.limit, given.verify, given.tag, paths
    )
    lines = [marked_line("{id}  {subject}  ({score:.2f})".format(**hit)) for hit in hits]
    return Output(hits, lines, notes, DONE if hits else NEGATIVE)


def save(given: Namespace, memories: MemoryService) -> Output:
    """Save a memory, or update the one with --id, which keeps what is not given."""
    content = given.content
    if content == "-" or (content is None and given.id is None):
        content = sys.stdin.read(MAX_BYTES + 1)
    citations = given.cite and [Citation(place) for place in given.cite]
    links = given.link and [Link(*text.partition(":")[::2]) for text in given.link]
    saved = memories.save(
        given.subject, content, citations, links, given.tag, given.id, cwd=os.curdir
    )
    return Output(saved, [f"saved {saved['path']}"], saved["warnings"])


def get(given: Namespace, memories: MemoryService) -> Output:
    """Show a memory."""
    return Output(memories.get(given.id), [memories.store.read_text(given.id).rstrip()])


def list_memories(given: Namespace, memories: MemoryService) -> Output:
    """List the memories. Files that cannot be read are named."""
    found, notes = memories.list_memories(given.tag)
    return Output(found, [marked_line("{id}  {subject}".format(**each)) for each in found], notes)


def verify(given: Namespace, memories: MemoryService) -> Output:
    """Check that the cited lines are still there. Exit codes: 0 valid, 1 stale, 2 not all read.

    With FILE, only memories that cite these files, or are these files.
    """
    paths = [relative_path(name, memories.root, os.curdir) for name in given.files]
    results, unread = memories.verify_all(given.update, paths)
    code = NEGATIVE if any(result.stale or result.problem for result in results) else DONE
    unseen = sum(result.has(UNSEEN) for result in results)
    ambiguous = sum(result.has(AMBIGUOUS) for result in results)
    if unread or unseen:
        code = FAILED
    checked = [result.to_dict() for result in results]
    value = {"memories": checked, "unreadable": list(unread.values())}
    rows = list(report(results, unread))
    stale = sum(bool(result.stale) for result in results)
    note = f"{len(results)} checked, {stale} stale, {unseen} unseen, {ambiguous} ambiguous"
    note += f", {len(unread)} not read"
    if stale:
        note += "; if a memory still holds, `save --id ID --cite FILE:LINE` cites the new lines"
    if given.github:
        commands = [annotation(level, text, file=path) for level, path, text in rows]
        return Output(value, commands, [note], code, "::")
    return Output(value, [marked_line(f"{path}: {text}") for _, path, text in rows], [note], code)


def report(
    results: Sequence[Verification], unread: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    """Yield what was found about each citation that is not ok, and each file that is not read.

    Each row has the level (`error`, `warning` or `notice`, as GitHub calls them), the path of the
    memory's file and a text.
    """
    for result in results:
        for entry in result.checked:
            if entry.verdict != OK:
                level = "error" if entry.is_stale else "notice" if entry.is_valid else "warning"
                yield level, result.path, _describe(entry, result.memory.fact)
        if result.problem:
            yield "error", result.path, result.problem
    for path, sentence in unread.items():
        reason = sentence.removeprefix(f"{path}: ")
        yield "error", path, f"not read: {reason}"


def _describe(entry: CheckedCitation, fact: str) -> str:
    parts = [f"{entry.citation} {entry.verdict}"]
    parts += [f"today {path}:{line}" for path, line in entry.places[:5]]
    if entry.note:
        parts.append(entry.note)
    if entry.is_stale:
        parts += [f"was: {entry.citation.snippet}", f"the memory says: {fact}"]
    return ", ".join(parts)


def show_graph(given: Namespace, memories: MemoryService) -> Output:
    """Show what a memory's links lead to. Without ID, list where to begin."""
    if not given.id:
        return Output(graph.find_roots(memories.store.scan().memories))
    return Output(memories.traverse(given.id, given.depth))


def delete(given: Namespace, memories: MemoryService) -> Output:
    """Delete a memory's file. Git keeps what was committed."""
    deleted = memories.delete(given.id)
    hint = "if it was committed, `git restore` with this path brings it back"
    return Output(deleted, notes=[f"{deleted['path']}: {hint}"])


def sync_index(given: Namespace, memories: MemoryService) -> Output:  # noqa: ARG001
    """Bring the index for search by meaning up to date."""
    return Output(memories.sync_index())


def serena(given: Namespace, memories: MemoryService) -> Output:
    """Import Serena's memories. The originals stay; a second run changes nothing."""
    return Output(import_serena(memories, given.directory))


def skill(given: Namespace, memories: MemoryService) -> Output:  # noqa: ARG001
    """Print a skill for Claude Code: when to search, save, cite and verify."""
    text = files(__package__).joinpath("SKILL.md").read_text("utf-8")
    return Output(text, [text])


# --- the parser -----------------------------------------------------------------------------------

_FLAG = {"action": "store_true"}
_MANY = {"action": "append"}
_MAYBE = {"nargs": "?"}
_ANY = {"nargs": "*"}
# Each command, and its arguments: name, help, and what else argparse needs.
COMMANDS: Any = {
    "search": (
        search,
        [
            ("words", "the question, and words that the memory may hold", _ANY),
            ("--limit", "the largest number of results", {"type": int}),
            ("--verify", "leave out stale memories", _FLAG),
            ("--path", "only memories that cite this file or directory; can be repeated", _MANY),
            ("--tag", "only memories with this tag; can be repeated", _MANY),
        ],
    ),
    "save": (
        save,
        [
            ("subject", "what it is about, in one line", _MAYBE),
            ("--content", "the markdown; - or nothing reads standard input", {}),
            ("--cite", "a line, as a.py:20 or a.py:20-24; replaces all; can be repeated", _MANY),
            ("--link", "TYPE:ID, such as related:mem-prices-1a2b3c4d; can be repeated", _MANY),
            ("--id", "the memory to update, or the id of a new one", {}),
            ("--tag", "a word to classify it; can be repeated", _MANY),
        ],
    ),
    "get": (get, [("id", "the memory's id", {})]),
    "list": (list_memories, [("--tag", "only memories with this tag; can be repeated", _MANY)]),
    "verify": (
        verify,
        [
            ("files", "cited files or memory files", _ANY),
            ("--update", "write today's lines and the time into the valid memories", _FLAG),
            ("--github", "print annotations for GitHub", _FLAG),
        ],
    ),
    "graph": (
        show_graph,
        [
            ("id", "where to begin", _MAYBE),
            ("--depth", "the largest distance", {"type": int, "default": 3}),
        ],
    ),
    "delete": (delete, [("id", "the memory's id", {})]),
    "sync-index": (sync_index, []),
    "import-serena": (serena, [("directory", "where they are; else .serena/memories", _MAYBE)]),
    "skill": (skill, []),
}


def _build_parser(prog: str) -> ArgumentParser:
    text = "Memories of a code base that cite its lines, and know when they are stale."
    parser = ArgumentParser(prog, description=text)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (run, arguments) in COMMANDS.items():
        command = commands.add_parser(name, help=run.__doc__, description=run.__doc__)
        command.set_defaults(run=run)
        for argument, help_text, options in arguments:
            command.add_argument(argument, help=help_text, **options)
        command.add_argument("--json", help="print JSON", action="store_true")
        command.add_argument("--repo", help="the repository; else the one around this directory")
    return parser
