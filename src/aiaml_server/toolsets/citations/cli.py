"""The command line, on the standard library: `aiaml citations …` and `python -m …citations`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from aiaml_server.format.invisible import inert, inert_json, marked, marked_line
from aiaml_server.toolsets.citations import MANIFEST, answers
from aiaml_server.toolsets.citations.citing import relative_path
from aiaml_server.toolsets.citations.errors import InvalidInput, NotFound, ToolError
from aiaml_server.toolsets.citations.graph import ORDERS
from aiaml_server.toolsets.citations.models import LINK_TYPES, Citation, Link, is_memory_id
from aiaml_server.toolsets.citations.report import ci_annotations, count_results, report_lines
from aiaml_server.toolsets.citations.service import MemoryService, find_repository
from aiaml_server.toolsets.citations.store import MAX_BYTES

DONE, NEGATIVE, FAILED = 0, 1, 2
"""Exit codes: done or valid; stale or nothing found; something could not be done or read."""
INTERRUPTED, PIPE_CLOSED = 130, 141
_VERIFY_SECONDS = 600.0

_Arguments = argparse.Namespace


def main(words: Sequence[str] | None = None, prog: str = "citations") -> int:
    """Run a command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        given = build_parser(prog).parse_args(words)
        code = int(globals()[f"run_{given.command.replace('-', '_')}"](given))
        sys.stdout.flush()
    except SystemExit as exit_:  # argparse has printed help or a usage error
        return int(exit_.code or DONE)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except (ToolError, OSError) as error:
        _notify(f"{prog}: {error}")
        return NEGATIVE if isinstance(error, NotFound) else FAILED
    except Exception:  # noqa: BLE001 (a fault of this program must not look like exit code 1)
        traceback.print_exc()
        return FAILED
    return code


# --- output: nothing in it can command a terminal or CI -------------------------------------------


def _print(given: _Arguments, value: Any, lines: Iterable[str]) -> None:
    """Print a value as JSON if that was asked for, else lines."""
    if given.json:
        sys.stdout.write(f"{inert_json(json.dumps(value, indent=2))}\n")
        return
    for line in lines:
        sys.stdout.write(f"{inert(marked_line(line))}\n")


def _notify(line: str) -> None:
    sys.stderr.write(f"{inert(marked_line(line))}\n")


# --- the commands ---------------------------------------------------------------------------------


def _open(given: _Arguments) -> MemoryService:
    settings = MANIFEST.read_settings(os.environ)
    return MemoryService(
        find_repository(given.repo or settings["AIAML_CITATIONS_REPO"]),
        forgetful=settings["AIAML_CITATIONS_FORGETFUL"],
        check_secrets=settings["AIAML_CHECK_SECRETS"],
    )


def run_search(given: _Arguments) -> int:
    """Find memories by words or a question, best first. Exit codes: 0 found, 1 nothing."""
    memories = _open(given)
    paths = [relative_path(path, memories.root, os.curdir) for path in given.path or ()]
    result = memories.search(
        " ".join(given.words), given.limit, given.verify, given.tag, paths or None
    )
    lines = []
    for hit in result.hits:
        newer = f", superseded by {', '.join(hit.superseded_by)}" if hit.superseded_by else ""
        lines.append(f"{hit.memory.id}  {hit.memory.subject}  ({hit.score:.2f}{newer})")
    _print(given, answers.hits_to_list(memories, result), lines)
    for note in answers.search_notes(result):
        _notify(note)
    if not result.hits:
        _notify("no memory was found")
    return DONE if result.hits else NEGATIVE


def run_save(given: _Arguments) -> int:
    """Save a memory, or update the one with --id, which keeps what is not given."""
    content = given.content
    if content == "-" or (content is None and given.id is None):
        content = sys.stdin.read(MAX_BYTES + 1)
    citations = [Citation(place) for place in given.cite] if given.cite else None
    links = [Link(*text.partition(":")[::2]) for text in given.link] if given.link else None
    saved = _open(given).save(
        given.subject, content, citations, links, given.tag, given.id, cwd=os.curdir
    )
    _print(given, saved._asdict(), [f"{'saved' if saved.created else 'updated'} {saved.path}"])
    for warning in saved.warnings:
        _notify(f"warning: {warning}")
    return DONE


def run_get(given: _Arguments) -> int:
    """Show a memory."""
    memories = _open(given)
    if given.json:
        _print(given, answers.memory_to_dict(memories, memories.get(given.id)), ())
    else:
        sys.stdout.write(inert(marked(memories.store.read_text(given.id))))
    return DONE


def run_list(given: _Arguments) -> int:
    """List the memories. Files that cannot be read are named."""
    memories = _open(given)
    scan = memories.list_memories(given.tag)
    found = scan.memories.values()
    lines = [f"{memory.id}  {memory.subject}" for memory in found]
    _print(given, [answers.summary_to_dict(memories, memory) for memory in found], lines)
    for sentence in scan.unread.values():
        _notify(f"not read: {sentence}")
    return DONE


def run_verify(given: _Arguments) -> int:
    """Check that the cited lines are still there. Exit codes: 0 valid, 1 stale, 2 not all read.

    With FILE, only memories that cite these files, or are these files or ids.
    """
    memories = _open(given)
    files = []
    for name in given.files:
        is_id = is_memory_id(name) and not Path(name).exists()
        path = memories.store.path(name) if is_id else name
        files.append(path if is_id else relative_path(name, memories.root, os.curdir))
    results, scan = memories.verify_all(None, given.update, files, _VERIFY_SECONDS)
    unread = scan.unread
    if files:  # a broken memory of somebody else must not block this change
        relevant = {*files, *scan.needs_pyyaml}
        unread = {path: sentence for path, sentence in unread.items() if path in relevant}
    entries = [answers.verified_to_dict(memories, result) for result in results]
    report = {"memories": entries, "unreadable": list(unread.values())}
    if given.format == "github":
        for line in ci_annotations(results, unread):
            sys.stdout.write(f"::{inert(marked_line(line))}\n")
    else:
        _print(given, report, report_lines(results, unread))
    for line in count_results(results, unread):
        _notify(line)
    if unread or any(result.is_unseen for result in results):
        return FAILED
    return NEGATIVE if any(result.stale or result.problem for result in results) else DONE


def run_graph(given: _Arguments) -> int:
    """Show what a memory's links lead to. Without ID, list where to begin."""
    memories = _open(given)
    if not given.id:
        roots = memories.find_roots()
        _print(given, roots, [f"{root}  {memories.get(root).subject}" for root in roots])
        return DONE
    walk = memories.traverse(given.id, given.depth, given.type, given.order)
    lines = [f"{edge.source} -> {edge.type} {edge.target}" for edge in walk.edges]
    lines += [f"{target} is missing" for target in walk.missing]
    _print(given, answers.walk_to_dict(memories, given.id, walk), lines)
    return DONE


def run_delete(given: _Arguments) -> int:
    """Delete a memory's file. Links that lead nowhere then are named."""
    memories = _open(given)
    path = memories.store.path(given.id)
    if not given.yes:
        raise InvalidInput(f"--yes deletes {path}; git keeps what was committed")
    edges = memories.delete(given.id)
    lines = [f"deleted {path}", *(f"{edge.source} links to it" for edge in edges)]
    _print(given, {"path": path, "referenced_by": [edge.source for edge in edges]}, lines)
    return DONE


def run_sync_index(given: _Arguments) -> int:
    """Bring the index for search by meaning up to date."""
    done = _open(given).sync_index()
    line = f"{done.index}: {done.memories} memories, {done.added} added, {done.removed} removed"
    _print(given, vars(done), [line])
    return DONE


def run_import_serena(given: _Arguments) -> int:
    """Import Serena's memories. The originals stay; a second run changes nothing."""
    from aiaml_server.toolsets.citations.import_serena import import_serena  # noqa: PLC0415

    memories = _open(given)
    directory = Path(given.directory) if given.directory else None
    files = import_serena(memories, directory, dry_run=not given.apply)
    new = [file for file in files if file.is_new]
    lines = [f"{file.source} -> {memories.store.path(file.id)}" for file in new]
    lines += [f"{file.source}: {file.problem}" for file in files if file.problem]
    _print(given, [file._asdict() for file in files], lines)
    _notify(f"{len(new)} {'imported' if given.apply else 'to import; --apply writes them'}")
    return DONE


def run_install_skill(given: _Arguments) -> int:
    """Give Claude Code a skill that says when to search, save, cite and verify."""
    from aiaml_server.toolsets.citations.skill import install_skill  # noqa: PLC0415

    path = install_skill(None if given.user else _open(given).root, force=given.force)
    _print(given, {"path": str(path)}, [f"wrote {path}"])
    return DONE


# --- the parser -----------------------------------------------------------------------------------

_FLAG: dict[str, Any] = {"action": "store_true"}
_MANY: dict[str, Any] = {"action": "append"}
_Argument = tuple[str, str, dict[str, Any]]
_TAG: _Argument = ("--tag", "a tag; can be repeated", _MANY)
_ID: _Argument = ("id", "the memory's id", {})
_ARGUMENTS: dict[str, tuple[_Argument, ...]] = {
    "search": (
        ("words", "the question, and words that the memory may hold", {"nargs": "*"}),
        ("--limit", "the largest number of results", {"type": int}),
        ("--verify", "leave out stale memories", _FLAG),
        ("--path", "only memories that cite this file or directory; can be repeated", _MANY),
        _TAG,
    ),
    "save": (
        ("subject", "what it is about, in one line", {"nargs": "?"}),
        ("--content", "the markdown; - or nothing reads standard input", {}),
        ("--cite", "a line, as a.py:20 or a.py:20-24; replaces all; can be repeated", _MANY),
        ("--link", f"TYPE:ID, with {', '.join(LINK_TYPES)}; can be repeated", _MANY),
        ("--id", "the memory to update, or the id of a new one", {}),
        _TAG,
    ),
    "get": (_ID,),
    "list": (_TAG,),
    "verify": (
        ("files", "cited files, memory files or ids", {"nargs": "*", "metavar": "FILE"}),
        ("--update", "write today's lines and the time into the files", _FLAG),
        ("--format", "text, or annotations for GitHub", {"choices": ("text", "github")}),
    ),
    "graph": (
        ("id", "where to begin", {"nargs": "?"}),
        ("--depth", "the largest distance", {"type": int, "default": 3}),
        ("--type", "only this type of link; can be repeated", {**_MANY, "choices": LINK_TYPES}),
        ("--order", "the order of the visit", {"choices": ORDERS, "default": "bfs"}),
    ),
    "delete": (_ID, ("--yes", "delete it, instead of saying what would be deleted", _FLAG)),
    "sync-index": (),
    "import-serena": (
        ("directory", "where they are; else .serena/memories", {"nargs": "?"}),
        ("--apply", "write the memories", _FLAG),
    ),
    "install-skill": (
        ("--user", "for you in all repositories", _FLAG),
        ("--force", "overwrite another text", _FLAG),
    ),
}


def build_parser(prog: str) -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog, description="Memories that cite the lines of a code base."
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, arguments in _ARGUMENTS.items():
        text = globals()[f"run_{name.replace('-', '_')}"].__doc__
        command = commands.add_parser(name, help=text.partition("\n")[0], description=text)
        for argument, help_text, options in arguments:
            command.add_argument(argument, help=help_text, **options)
        command.add_argument("--json", help="print JSON", **_FLAG)
        command.add_argument("--repo", help="the repository; else the one around this directory")
    return parser
