"""The command line, on the standard library: `aiaml citations …` and `python -m …citations`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from aiaml_server.format.invisible import inert, inert_json, marked, marked_line
from aiaml_server.toolsets.citations import MANIFEST, answers, graph
from aiaml_server.toolsets.citations.citing import relative_path
from aiaml_server.toolsets.citations.errors import InvalidInput, NotFound, ToolError
from aiaml_server.toolsets.citations.import_serena import import_serena
from aiaml_server.toolsets.citations.models import Citation, Link, is_memory_id
from aiaml_server.toolsets.citations.report import count_results, report_rows
from aiaml_server.toolsets.citations.service import MemoryService, find_repository
from aiaml_server.toolsets.citations.store import MAX_BYTES
from aiaml_server.toolsets.failures import annotation

DONE, NEGATIVE, FAILED, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: done or valid; stale or nothing found; something could not be done or read."""
_VERIFY_SECONDS = 600.0


class Output(NamedTuple):
    """What a command prints, and its exit code.

    Attributes:
        value: the answer as JSON.
        lines: the answer as text.
        notes: what is printed on standard error.
        code: the exit code.
        annotations: lines that GitHub is to obey.
    """

    value: Any
    lines: Sequence[str]
    notes: Sequence[str] = ()
    code: int = DONE
    annotations: Sequence[str] = ()


def main(words: Sequence[str] | None = None, prog: str = "citations") -> int:
    """Run a command and return its exit code. Its output commands neither a terminal nor CI."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        given = _build_parser(prog).parse_args(words)
        output: Output = given.run(given, _open(given))
        _print(output, as_json=given.json)
    except SystemExit as exit_:  # argparse has printed help or a usage error
        return int(exit_.code or DONE)
    except (KeyboardInterrupt, BrokenPipeError):
        return INTERRUPTED
    except (ToolError, OSError) as error:
        sys.stderr.write(f"{inert(marked_line(f'{prog}: {error}'))}\n")
        return NEGATIVE if isinstance(error, NotFound) else FAILED
    except Exception:  # noqa: BLE001 (a fault of this program must not look like exit code 1)
        traceback.print_exc()
        return FAILED
    return output.code


def _print(output: Output, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(f"{inert_json(json.dumps(output.value, indent=2))}\n")
    for line in [] if as_json else output.lines:
        sys.stdout.write(f"{inert(marked(line))}\n")
    for command in output.annotations:
        sys.stdout.write(f"::{inert(marked_line(command))}\n")
    for note in output.notes:
        sys.stderr.write(f"{inert(marked_line(note))}\n")
    sys.stdout.flush()


def _open(given: argparse.Namespace) -> MemoryService:
    settings = MANIFEST.read_settings(os.environ)
    return MemoryService(
        find_repository(given.repo or settings["AIAML_CITATIONS_REPO"]),
        forgetful=settings["AIAML_CITATIONS_FORGETFUL"],
        check_secrets=settings["AIAML_CHECK_SECRETS"],
    )


def search(given: argparse.Namespace, memories: MemoryService) -> Output:
    """Find memories by words or a question, best first. Exit codes: 0 found, 1 nothing."""
    paths = [relative_path(path, memories.root, os.curdir) for path in given.path or ()]
    result = memories.search(" ".join(given.words), given.limit, given.verify, given.tag, paths)
    found = answers.hits_to_list(memories, result)
    lines = [marked_line("{id}  {subject}  ({score:.2f})".format(**memory)) for memory in found]
    notes = answers.search_notes(result)
    if not found:
        return Output(found, lines, [*notes, "no memory was found"], NEGATIVE)
    return Output(found, lines, notes)


def save(given: argparse.Namespace, memories: MemoryService) -> Output:
    """Save a memory, or update the one with --id, which keeps what is not given."""
    content = given.content
    if content == "-" or (content is None and given.id is None):
        content = sys.stdin.read(MAX_BYTES + 1)
    citations = given.cite and [Citation(place) for place in given.cite]
    links = given.link and [Link(*text.partition(":")[::2]) for text in given.link]
    saved = memories.save(
        given.subject, content, citations, links, given.tag, given.id, cwd=os.curdir
    )
    return Output(saved._asdict(), [f"saved {saved.path}"], saved.warnings)


def get(given: argparse.Namespace, memories: MemoryService) -> Output:
    """Show a memory."""
    value = answers.memory_to_dict(memories, memories.store.get(given.id))
    return Output(value, [memories.store.read_text(given.id).rstrip()])


def list_memories(given: argparse.Namespace, memories: MemoryService) -> Output:
    """List the memories. Files that cannot be read are named."""
    scan = memories.list_memories(given.tag)
    found = [answers.summary_to_dict(memories, memory) for memory in scan.memories.values()]
    lines = [marked_line("{id}  {subject}".format(**memory)) for memory in found]
    return Output(found, lines, answers.unread_notes(scan.unread))


def verify(given: argparse.Namespace, memories: MemoryService) -> Output:
    """Check that the cited lines are still there. Exit codes: 0 valid, 1 stale, 2 not all read.

    With FILE, only memories that cite these files, or are these files or ids.
    """
    paths = []
    for name in given.files:
        is_id = is_memory_id(name) and not Path(name).exists()
        path = relative_path(name, memories.root, os.curdir)
        paths.append(memories.store.path(name) if is_id else path)
    results, scan = memories.verify_all(None, given.update, paths, _VERIFY_SECONDS)
    unread = scan.unread
    if paths:  # a broken memory of somebody else must not block this change
        relevant = {*paths, *scan.needs_pyyaml}
        unread = {path: sentence for path, sentence in unread.items() if path in relevant}
    rows = list(report_rows(results, unread))
    code = NEGATIVE if any(result.stale or result.problem for result in results) else DONE
    if unread or any(result.is_unseen for result in results):
        code = FAILED
    value = [answers.verified_to_dict(memories, result) for result in results]
    report = {"memories": value, "unreadable": list(unread.values())}
    lines = [marked_line(f"{row.path}: {row.text}") for row in rows]
    commands = [annotation(row.level, row.text, file=row.path) for row in rows]
    notes = [count_results(results, unread)]
    if given.github:
        return Output(report, [], notes, code, commands)
    return Output(report, lines, notes, code)


def show_graph(given: argparse.Namespace, memories: MemoryService) -> Output:
    """Show what a memory's links lead to. Without ID, list where to begin."""
    if not given.id:
        roots = graph.find_roots(memories.store.scan().memories)
        return Output(roots, roots)
    walk = memories.traverse(given.id, given.depth, order=given.order)
    lines = [f"{edge.source} -> {edge.type} {marked_line(edge.target)}" for edge in walk.edges]
    lines += [f"{marked_line(target)} is missing" for target in walk.missing]
    return Output(answers.walk_to_dict(memories, given.id, walk), lines)


def delete(given: argparse.Namespace, memories: MemoryService) -> Output:
    """Delete a memory's file. Links that lead nowhere then are named."""
    path = memories.store.path(given.id)
    if not given.yes:
        raise InvalidInput(f"--yes deletes {path}; git keeps what was committed")
    sources = [edge.source for edge in memories.delete(given.id)]
    lines = [f"deleted {path}", *(f"{source} links to it" for source in sources)]
    return Output({"path": path, "referenced_by": sources}, lines)


def sync_index(given: argparse.Namespace, memories: MemoryService) -> Output:  # noqa: ARG001
    """Bring the index for search by meaning up to date."""
    done = memories.index.sync(memories.store.scan().memories.values())
    line = f"{done.index}: {done.memories} memories, {done.added} added, {done.removed} removed"
    return Output(vars(done), [line])


def serena(given: argparse.Namespace, memories: MemoryService) -> Output:
    """Import Serena's memories. The originals stay; a second run changes nothing."""
    results = import_serena(memories, Path(given.directory) if given.directory else None)
    return Output(results, [marked_line(f"{path}: {said}") for path, said in results.items()])


def skill(given: argparse.Namespace, memories: MemoryService) -> Output:  # noqa: ARG001
    """Print a skill for Claude Code: when to search, save, cite and verify."""
    text = files(__package__).joinpath("SKILL.md").read_text("utf-8")
    return Output(text, [text])


# --- the parser -----------------------------------------------------------------------------------

_Command = Callable[[argparse.Namespace, MemoryService], Output]
_FLAG: dict[str, Any] = {"action": "store_true"}
_MANY: dict[str, Any] = {"action": "append"}
_MAYBE: dict[str, Any] = {"nargs": "?"}
_ANY: dict[str, Any] = {"nargs": "*"}
# Each command, and its arguments: name, help, and what else argparse needs.
_COMMANDS: dict[str, tuple[_Command, list[tuple[str, str, dict[str, Any]]]]] = {
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
            ("files", "cited files, memory files or ids", _ANY),
            ("--update", "write today's lines and the time into the valid memories", _FLAG),
            ("--github", "print annotations for GitHub", _FLAG),
        ],
    ),
    "graph": (
        show_graph,
        [
            ("id", "where to begin", _MAYBE),
            ("--depth", "the largest distance", {"type": int, "default": 3}),
            ("--order", "bfs or dfs", {"choices": graph.ORDERS, "default": "bfs"}),
        ],
    ),
    "delete": (delete, [("id", "the memory's id", {}), ("--yes", "do it", _FLAG)]),
    "sync-index": (sync_index, []),
    "import-serena": (serena, [("directory", "where they are; else .serena/memories", _MAYBE)]),
    "skill": (skill, []),
}


def _build_parser(prog: str) -> argparse.ArgumentParser:
    text = "Memories of a code base that cite its lines, and know when they are stale."
    parser = argparse.ArgumentParser(prog, description=text)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (run, arguments) in _COMMANDS.items():
        command = commands.add_parser(name, help=run.__doc__, description=run.__doc__)
        command.set_defaults(run=run)
        for argument, help_text, options in arguments:
            command.add_argument(argument, help=help_text, **options)
        command.add_argument("--json", help="print JSON", **_FLAG)
        command.add_argument("--repo", help="the repository; else the one around this directory")
    return parser
