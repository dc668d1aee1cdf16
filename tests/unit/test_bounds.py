"""What is read from outside has a largest size, and takes a time that grows as the size does.

Each row of `ROWS` is a reader: what it reads, the largest size, the texts that are hardest for it,
and how it is called. A test finds every call in the package that reads, and asks for its row.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

import aiaml_server
from aiaml_server.cli import main
from aiaml_server.errors import AiamlError
from aiaml_server.exchange import archives, jsonl, records, walk
from aiaml_server.format.memory import MAX_CONTENT
from aiaml_server.frontmatter import MAX_HEAD
from aiaml_server.rendering import MAX_RENDERED
from aiaml_server.rendering.commonmark import is_shown_by_others
from aiaml_server.rendering.html import safe_html
from aiaml_server.rendering.terminal import rendered
from aiaml_server.storage import store as files_of_memories
from aiaml_server.storage.store import Store
from aiaml_server.toolsets.semantic import importing
from clock import TooSlow, quick
from growth import FLOOR, STEEP, seconds
from paths import ROOT

KIB, MIB = 1024, 1024 * 1024
LONGEST = 1.0  # seconds of processor, at the limit of any reader
AT_ONCE = 0.2  # seconds in which what is too large is refused

Call = Callable[[], object]
Hard = Callable[[int], bytes]


class Row(NamedTuple):
    """A reader.

    Attributes:
        what: it reads, and from where.
        limit: the largest size, in bytes.
        texts: for each size a text that is hard.
        put: has such a text where it is read from, and returns the call that reads it.
        refused: an expression for what is said of a larger one; empty where that is not there.
        readers: the functions that read, as `module.function`.
    """

    what: str
    limit: int
    texts: Mapping[str, Hard]
    put: Callable[[Path, bytes], Call]
    refused: str
    readers: tuple[str, ...]


OURS = "what this program or its installer has written, and nobody else can"
GIT = "what git itself reads whole before, at each step"
OURS_TO_WRITE = "only a file that was just written here, or compared with what is known"
OTHERS = {
    "cli.demo.demo": OURS,
    "cli.remember.Draft._text": "what the person has just saved in the editor",
    "clients.__init__._read": "the limits are those of the forms, which have a row each",
    "doctor.conversation.Conversation._ask": OURS,
    "doctor.conversation.Conversation.call": OURS,
    "doctor.conversation.begun": OURS,
    "doctor.place._try_writing": OURS_TO_WRITE,
    "doctor.program._editable": OURS,
    "doctor.program._installed": OURS,
    "exchange.page._part": OURS,
    "exchange.archives._check_list": "test_import_sources: a zip with too long a list is refused",
    "exchange.archives.piped": "test_import_sources: a pipe that brings too much is refused",
    "exchange.archives.unpacked": "test_import_sources: a zip has at most so many bytes and files",
    "exchange.okf._conforms": "a memory that is exported, whose frontmatter has a row",
    "exchange.plan._place": "one line of a memory's frontmatter, which has a row",
    "exchange.shapes._packed": "it writes",
    "exchange.shapes.archive": "the person's own memories, each with the limit of its row",
    "exchange.walk.beginning": "256 KiB of a file, to tell what it is",
    "files.Lock._marked": "as many bytes as the mark has",
    "clients.launch._source": OURS,
    "storage.chosen.chosen_remote": OURS,
    "clients.packages._switched_on": "read as clients' files are, by the same two functions",
    "server.protocol._result": OURS,
    "storage.sqlite.boot": "what the system tells of itself",
    "sync.address.clear": "1 MiB, of which a line is taken",
    "sync.address.remember": "1 MiB, compared with what is known",
    "sync.address.remembered": "1 MiB, of which a line is taken",
    "storage.derived._read": "32 bytes",
    "format.secrets._rules": OURS,
    "sync.convert._bring_over": "1 MiB each of what earlier versions noted",
    "sync.convert.finish": GIT,
    "sync.history.History._arrived": GIT,
    "sync.problem.causes": OURS,
    "sync.theirs.Theirs._noted": "a name, which this program has written",
    "testing.Contract.judge": "only tests import it",
    "testing.Contract.test_an_argument_that_a_tool_has_not_is_refused": "only tests import it",
    "testing.Contract.test_two_processes_serve_it_at_once.play": "only tests import it",
    "testing.tree": "only tests import it",
    "compartments.langgraph._item": "one entry, of at most the limits that the file has",
    "compartments.langgraph._namespace": "the same",
    "compartments.openai_agents._tool.invoke": "what the model gave for one call",
    "toolsets.compartments.verbs._rows_of": "5 MiB of lines, as the file that has a row",
    "toolsets.compartments.verbs._secrets": "the file that was just read, which has a row",
    "sync.mend._is_damaged": GIT,
    "sync.mend._restore": GIT,
    "sync.mend.mend": GIT,
    "sync.forgetting.purge._clean_refs": "1 KiB, of which a name is taken",
    "sync.forgetting.purge._remove_from_pack": GIT,
    "sync.reading._is_absent": GIT,
    "sync.remote._have": OURS_TO_WRITE,
    "sync.remote._helper_waits": "what git notes of the call that goes on",
    "sync.repository.Repository._create": "it writes",
    "sync.seen._mark": "it writes",
    "sync.seen._place": "1 KiB, of which a name is taken",
    "sync.worktree.read": "a memory's file, as `storage.store.Store.text`, which has a row",
    "toolsets.citations.bare._Screen.confirm": "what a person types",
    "toolsets.citations.command.Screen.read": "1 MiB of what is typed or piped",
    "toolsets.citations.demo.demo": OURS,
    "toolsets.git._directory": "4 KiB, of which a name is taken",
    "toolsets.citations.repository._is_blob": "8 MiB, of which a digest is made",
    "toolsets.citations.skill.text": OURS,
    "toolsets.citations.forgetful.ForgetfulIndex._asked": "64 MiB of JSON from a server on this "
    "machine that the repository's settings name",
    "toolsets.citations.skill.install": OURS_TO_WRITE,
    "toolsets.semantic.logs.last": OURS,
    "toolsets.semantic.model._digest": "a model's file, in pieces",
    "toolsets.semantic.model._is_first": OURS,
    "toolsets.semantic.model._is_whole": OURS,
    "toolsets.semantic.verbs._piped": "4 MiB of what is piped",
    "toolsets.semantic.verbs._said_in": "a model that the person names",
    "toolsets.sessions.demo.demo": OURS,
    "toolsets.sessions.place.git_directory": "4 KiB, of which a line is taken",
    "toolsets.sessions.merging.bring_together": "1 MiB each, as a log, which has a row",
    "toolsets.sessions.driver._read": "1 MiB, in which some words are looked for",
    "toolsets.sessions.setup._read": "1 MiB, in which some words are looked for",
}
"""Readers without a row, and why: each reads a few bytes, or what nobody else can have made."""

OF_THE_PAGE = {
    "web.asked.body": "test_web",
    "web.asked.json_in": "test_web",
    "web.pages.routes": OURS,
}
"""What the page is asked: put rows for it here, or name the test that has them."""

ELSEWHERE = {
    **OF_THE_PAGE,
    "server.greeting.Greeting._read": "test_greeting",
    "server.greeting._message": "test_greeting",
    "server.hooks.hosts.Said.parsed": "test_hooks",
    "server.hooks.__main__._stored": "test_hooks",
    "exchange.databases._rows": "test_semantic_planted",
    "toolsets.semantic.filters.behind": "test_semantic_database",
    "toolsets.semantic.journal._change": "test_semantic_planted",
    "toolsets.semantic.memory.texts": "test_semantic_database",
}
"""Functions that read and have their bound in another test: `module.function` and that test."""


def said(*words: str | Path) -> Call:
    """Return the call of a verb, which returns what it prints."""

    def call() -> str:
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(printed):
            main([*map(str, words)])
        return printed.getvalue()

    return call


def _in(module: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{module}.{name}" for name in names)


def told(call: Callable[[], object]) -> Call:
    """Return a call that returns what a refusal says."""

    def tried() -> object:
        try:
            return call()
        except (AiamlError, ValueError) as error:
            return error

    return tried


def again(piece: str, before: str = "", behind: str = "") -> Hard:
    """Return texts of a size that have a piece again and again."""

    def made(size: int) -> bytes:
        room = size - len((before + behind).encode())
        some = piece.encode()
        body = some * (room // len(some))
        whole = before.encode() + body + behind.encode()
        return whole.ljust(size)  # before `behind`, spaces could make of it what is no end

    return made


def numbered(piece: str, before: str = "", behind: str = "") -> Hard:
    """Return texts of a size that have a piece with another number each time."""

    def made(size: int) -> bytes:
        room = size - len((before + behind).encode())
        parts: list[str] = []
        while room > 0:
            parts.append(piece.format(len(parts)))
            room -= len(parts[-1])
        return (before + "".join(parts[:-1]) + behind).encode().ljust(size)

    return made


# --- where a text is put, and how it is read ------------------------------------------------------


def a_memory(place: Path, data: bytes) -> Call:
    """A file in the memory directory, which a server reads and indexes."""
    base = Store(place / "bank")
    (base.base / "files").mkdir(parents=True, exist_ok=True)
    (base.base / "files" / "a.md").write_bytes(data)
    return told(lambda: base.read("a.md"))


def a_source(name: str, kind: str = "") -> Callable[[Path, bytes], Call]:
    """A file that is imported, as a preview."""
    words = ("--from", kind) if kind else ()

    def put(place: Path, data: bytes) -> Call:
        (place / name).write_bytes(data)
        return said("import", place / name, "--dry-run", *words)

    return put


def of_sessions(name: str) -> Callable[[Path, bytes], Call]:
    """A file of an agent in a repository."""

    def put(place: Path, data: bytes) -> Call:
        from aiaml_server.toolsets.sessions.memory import AgentMemory

        git_directory(place)
        memory = AgentMemory(str(place), "ada")
        for each in ("logs/2025-01-20.md", "_summary.md", "_schema.md"):
            (memory.place.directory / each).unlink(missing_ok=True)
        memory.start("2025-01-20")
        (memory.place.directory / name).write_bytes(data)
        if name == "_summary.md":
            return told(lambda: memory.update("Decisions", "x", "append"))
        return told(lambda: memory.start("2025-01-20"))

    return put


def git_directory(place: Path) -> None:
    """Make what counts as the top of a work tree."""
    (place / ".git").mkdir(exist_ok=True)
    (place / ".git" / "HEAD").write_text("ref: refs/heads/main\n")


def of_compartments(place: Path, data: bytes) -> Call:
    """The file of the entries."""
    from aiaml_server.toolsets.compartments.file import load

    (place / "entries.json").write_bytes(data)
    return told(lambda: load(place / "entries.json"))


def of_citations(name: str) -> Callable[[Path, bytes], Call]:
    """A file in a repository whose memories are listed."""

    def put(place: Path, data: bytes) -> Call:
        from aiaml_server.toolsets.citations.memories import Memories

        git_directory(place)
        (place / "memories").mkdir(exist_ok=True)
        (place / name).write_bytes(data)

        def call() -> object:
            found = Memories(place).list()
            return str(found)

        return told(call)

    return put


def of_semantic(place: Path, data: bytes) -> Call:
    """The settings."""
    from aiaml_server.toolsets.semantic import config

    home = place / ".memory"
    home.mkdir(exist_ok=True)
    (home / "config.json").write_bytes(data)
    return told(lambda: config.load(home))


def a_note_for_semantic(place: Path, data: bytes) -> Call:
    """A file of a project that could be imported."""
    from aiaml_server.toolsets.semantic.config import Config
    from aiaml_server.toolsets.semantic.memories import Memories

    project = place / "project"
    project.mkdir(exist_ok=True)
    (project / "MEMORY.md").write_bytes(data)
    memories = Memories(place / "home" / ".memory", project, None, Config())
    return lambda: str(importing.preview(memories).skipped)


def of_client(client: str, name: str) -> Callable[[Path, bytes], Call]:
    """The configuration of an AI client."""

    def put(place: Path, data: bytes) -> Call:
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if client == "goose":  # whose file is read, and not edited
            return said("install", "--list")
        return said("install", client, "--dry-run")

    return put


def a_conversation(event: str) -> Callable[[Path, bytes], Call]:
    """The transcript that a hook is told of."""

    def put(place: Path, data: bytes) -> Call:
        (place / "project" / ".memory").mkdir(parents=True, exist_ok=True)
        (place / "talk.jsonl").write_bytes(data)
        given = {"cwd": str(place / "project"), "transcript_path": str(place / "talk.jsonl")}
        given |= {"prompt": "yes, it works now, thank you", "session_id": os.urandom(4).hex()}
        return typed("semantic", "hook", event)(place, json.dumps(given).encode())

    return put


def of_sync(name: str, read: Callable[[Path], object]) -> Callable[[Path, bytes], Call]:
    """A file in the memory directory, or in its git directory, that sync reads."""

    def put(place: Path, data: bytes) -> Call:
        path = place / "bank" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return told(lambda: read(place / "bank"))

    return put


def of_derived(name: str, read: Callable[[Path], object]) -> Callable[[Path, bytes], Call]:
    """A file in the folder of what is derived from the memories."""
    from aiaml_server.storage.derived import folder

    def put(place: Path, data: bytes) -> Call:
        base = place / "bank"
        base.mkdir(parents=True, exist_ok=True)
        (folder(base, make=True) / name).write_bytes(data)
        return told(lambda: read(base))

    return put


def a_status(base: Path) -> object:
    """Read how sync stands."""
    from aiaml_server.sync.status import Status

    return Status.read(base)


def asked_to_forget(base: Path) -> object:
    """Read what a person asked to forget."""
    from aiaml_server.sync.asked import recorded

    return len(recorded(base))


def rules(base: Path) -> object:
    """Read which files are kept here."""
    from aiaml_server.sync import guard

    try:
        return guard._may_name_memories(guard._rules(base / ".keep-local"))
    except guard.Untold as error:
        return error


def marks(base: Path) -> object:
    """Read what is forgotten."""
    from aiaml_server.sync.forgetting.erasure import erased

    return len(erased(base / ".git"))


def a_cited_file(place: Path, data: bytes) -> Call:
    """A source."""
    from aiaml_server.toolsets.citations.sources import Sources, Unreadable

    (place / "a.py").write_bytes(data)

    def call() -> object:
        try:
            return len(Sources(place).get("a.py").lines)
        except Unreadable as error:
            return error

    return call


def a_file_beside(place: Path, data: bytes) -> Call:
    """Sources among which a line is looked for, and what git ignores."""
    from aiaml_server.toolsets.citations.sources import Sources

    for name in ("b.py", ".gitignore"):
        (place / name).write_bytes(data)
    return lambda: Sources(place).others("a.py", "no such line")


def a_note_of_serena(place: Path, data: bytes) -> Call:
    """A note that could be taken over."""
    from aiaml_server.toolsets.citations.serena import _notes

    git_directory(place)

    (place / ".serena" / "memories").mkdir(parents=True, exist_ok=True)
    (place / ".serena" / "memories" / "a.md").write_bytes(data)
    return lambda: len(list(_notes(place, place / ".serena" / "memories", [])))


def shown(by: Callable[[str], object]) -> Callable[[Path, bytes], Call]:
    """A text on a terminal, on the page, or as others show what is exported."""

    def put(place: Path, data: bytes) -> Call:
        del place
        return lambda: by(data.decode())

    return put


def a_line(place: Path, data: bytes) -> Call:
    """A message."""
    from aiaml_server.server.stdio import _loads

    del place
    return told(lambda: len(str(_loads(data.decode()))))


def typed(*words: str) -> Callable[[Path, bytes], Call]:
    """What is piped into a verb."""

    def put(place: Path, data: bytes) -> Call:
        del place

        def call() -> object:
            before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(data))
            try:
                return said(*words)()
            finally:
                sys.stdin = before

        return call

    return put


LINES = {
    "text": "A line as it is usual in notes.\n",
    "items": "- x\n",
    "marks": "#\n",
    "empty": "\n",
}
MARKDOWN = {name: again(piece) for name, piece in LINES.items()} | {
    "headings": again("## a\n\nb\n"),
    "nested": again("- a\n\n  b\n\nc\n"),
    "one line": again("a"),
    "tags": numbered("#tag{} "),
    "fences": again("```\n`` ` #a\n"),
    "links": again("[a](b.md) "),
}
DENSE = {"pictures": "![", "tables": "a|b\n-|-\n", "lists": "+\n", "headings": "#\n"}
LINES_AGAIN = MARKDOWN["text"]
HEADS = {
    "topics": numbered("- t{}\n", "---\ntags:\n", "---\nx\n"),
    "properties": numbered("p{}: x\n", "---\n", "---\nx\n"),
    "flow": again("a,", "---\ntags: [", "]\n---\nx\n"),
    "nested": again("[", "---\ntags: ", "\n---\nx\n"),
}
OBJECTS = {
    "numbers": again("1,", '{"a":[', "1]}"),
    "objects": again("{},", '{"a":[', "1]}"),
    "names": numbered('"n{}":1,', "{", '"z":1}'),
    "names again": again('"n":1,', "{", '"z":1}'),
    "one twice": numbered('"n{}":1,', "{", '"z":1,"z":1}'),
    "text": again("x", '{"a":"', '"}'),
    "nested": again("[", '{"a":'),
    "space": again(" ", "{", "}"),
}

STATED = "---\nid: x\ntimestamp: 2025-01-20T10:00:00Z\nagent: a\nuser: u\ntopics: [t]\n---\n\n"
SAID = '{"type":"user","message":{"content":"Error: we decided to use x. It is so."}}\n'
USED = '{"at":"2025-01-20T10:00:00Z","client":"c","tool":"think","keywords":["a"],"ids":["b"]}\n'
CITING = (
    "---\nid: mem-a-12345678\nsubject: s\ncreated: 2025-01-20T10:00:00Z\nverified: null\n"
    "confidence: null\ncitations: []\nlinks: []\ntags:\n"
)

ROWS = (
    Row(
        "a memory's file",
        files_of_memories.MAX_FILE,
        {name: again(piece, STATED) for name, piece in LINES.items()},
        a_memory,
        "larger than 4 MiB",
        ("storage.store.Store.text",),
    ),
    Row(
        "a memory's frontmatter",
        MAX_HEAD,
        {
            "topics": numbered("  - t{}\n", STATED.partition(" [t]")[0] + "\n", "\n---\nx\n"),
            "entries": numbered("p{}: x\n", STATED[:-5], "\n---\nx\n"),
        },
        a_memory,
        "",
        ("frontmatter._unquoted", "frontmatter._yaml", "frontmatter.load_yaml"),
    ),
    Row(
        "frontmatter of a note that is imported",
        16 * KIB,
        HEADS,
        a_source("a.md"),
        "",
        ("exchange.notes._fields",),
    ),
    Row(
        "frontmatter of a concept that is imported",
        16 * KIB,
        HEADS,
        a_source("a.md", "okf"),
        "",
        ("exchange.okf._faithful",),
    ),
    Row(
        "a note that `semantic` imports",
        64 * KIB,
        {**MARKDOWN, **HEADS},
        a_note_for_semantic,
        "larger than 64 KiB",
        (
            "toolsets.semantic.importing._read",
            *_in("toolsets.semantic.markdown", "_fields", "_blocks"),
        ),
    ),
    Row(
        "the settings of `semantic`",
        64 * KIB,
        OBJECTS,
        of_semantic,
        "",
        ("toolsets.semantic.config._read",),
    ),
    Row(
        "what a hook is told",
        4 * MIB,
        {
            "decisions": again("I decided that x. ", '{"prompt":"', '"}'),
            "errors": again("Error: x\\n", '{"prompt":"', '"}'),
            "names": OBJECTS["names"],
        },
        typed("semantic", "hook", "UserPromptSubmit"),
        "",
        ("toolsets.semantic.verbs.hook",),
    ),
    Row(
        "the end of a conversation, by a hook",
        512 * KIB,
        {"lines": again(SAID), "empty lines": again("{}\n")},
        a_conversation("SessionEnd"),
        "",
        ("toolsets.semantic.hooks._transcript",),
    ),
    *(
        Row(
            f"the {name} of `sessions`",
            MIB,
            MARKDOWN,
            of_sessions(path),
            "larger than 1 MiB",
            ("toolsets.sessions.place.Place.read", "toolsets.sessions.document._heading_in_html"),
        )
        for name, path in (("log", "logs/2025-01-20.md"), ("schema", "_schema.md"))
    ),
    Row(
        "the file of `compartments`",
        5 * MIB,
        {
            "names": OBJECTS["names"],
            "entries": again(
                '{"id":"i","content":"x","created_at":"2025-01-20T10:00:00Z"},\n',
                '{"format":1,"sessions":{"s":{"session":[',
                '{"id":"z","content":"x"}]}}}',
            ),
        },
        of_compartments,
        "larger than 5 MiB",
        ("toolsets.compartments.file.load",),
    ),
    Row(
        "the settings of `citations`",
        64 * KIB,
        {
            "keys": numbered("k{}: x\n"),
            "flow": again("a,", "a: [", "]"),
            "items": again("- x\n", "a:\n"),
        },
        of_citations(".memory-config.yaml"),
        "larger than 64 KiB",
        ("toolsets.citations.config.load", "toolsets.citations.foreign._Foreign.root"),
    ),
    Row(
        "the head of a memory of `citations`",
        MAX_HEAD,
        {
            "tags": numbered("  - t{}\n", CITING, "\n---\nx\n"),
            "quoted": numbered('  - "t\\u0041{}"\n', CITING, "\n---\nx\n"),
            "flow": again("a,", CITING[:-1] + " [", "a]\n---\nx\n"),
        },
        of_citations("memories/mem-a-12345678.md"),
        "longer than 64 KiB",
        ("toolsets.citations.store.Store.text", "toolsets.citations.usual._said"),
    ),
    Row(
        "the configuration of a client in JSON",
        16 * MIB,
        {
            **{name: OBJECTS[name] for name in ("text", "space", "names")},
            "lines": again("\n", "{", "}"),
            "line comments": again("//\n", "{", "}"),
            "long comments": again("// " + "x" * 60 + "\n", "{", "}"),
        },
        of_client("cursor", ".cursor/mcp.json"),
        "larger than 16 MiB",
        ("clients.file.read",),
    ),
    Row(
        "a part of the configuration of a client in JSON, which has at most 50,000 values",
        128 * KIB,
        {**OBJECTS, "comments": again("/**/", "{", "}")},
        of_client("cursor", ".cursor/mcp.json"),
        "",
        ("clients.file.read",),
    ),
    Row(
        "the configuration of a client in TOML",
        128 * KIB,
        {
            "tables": numbered("[a{}]\n"),
            "array": again("1,", "a=[", "]"),
            "comments": again("#\n"),
            "text": again("x\n", 'a="""', '"""'),
            "parts": again("a.", "", "a = 1"),
            "spaced parts": again("a . ", "  ", "a = 1"),
            "few parts": again("a . a . a\n", "a='''", "'''"),
        },
        of_client("codex", ".codex/config.toml"),
        "larger than 128 KiB",
        ("clients.toml._load",),
    ),
    Row(
        "the configuration of a client in YAML",
        24 * KIB,
        {"keys": numbered("a{}: 1\n"), "array": again("1,", "a: [", "]"), "comments": again("#\n")},
        of_client("goose", ".config/goose/config.yaml"),
        "larger than 24 KiB",
        ("clients.yaml._load",),
    ),
    Row(
        "how sync stands",
        4 * MIB,
        {
            "names": OBJECTS["names"],
            "held back": again('"f":["a","b","c"],', '{"held_back":{', '"z":["a","b","c"]}}'),
        },
        of_sync(".sync-status.json", a_status),
        "",
        ("sync.status.Status.read",),
    ),
    Row(
        "what sync was asked to forget",
        8 * MIB,
        {"names": again("a.md\0")},
        of_sync(".sync-forget", asked_to_forget),
        "",
        ("sync.asked.recorded",),
    ),
    Row(
        "a part of a note that is imported; a note may have 16 MiB",
        MIB,
        MARKDOWN,
        a_source("a.md"),
        "",
        ("exchange.walk.read_text",),
    ),
    Row(
        "a part of a JSON document that is imported; it may have 512 MiB",
        MIB,
        {name: OBJECTS[name] for name in ("numbers", "names", "nested")},
        a_source("a.json"),
        "",
        ("exchange.records.document",),
    ),
    Row(
        "a part of JSON Lines that are imported; a line may have 32 MiB",
        MIB,
        {"names": OBJECTS["names"], "lines": again(f'{{"content":"{"x y " * 50}"}}\n')},
        a_source("a.jsonl"),
        "",
        ("exchange.jsonl._lines", "exchange.jsonl.parsed"),
    ),
    Row(
        "what is kept on this machine",
        4 * MIB,
        {"names": again("/files/a.md\n"), "comments": again("#\n"), "empty": again("\n")},
        of_sync(".keep-local", rules),
        "larger than 4 MiB",
        ("sync.guard._rules",),
    ),
    Row(
        "what is forgotten everywhere",
        16 * MIB,
        {"marks": again(f"{'0' * 64}\n"), "short": again("a\n")},
        of_sync(".git/aiaml/erased", marks),
        "",
        ("sync.place.bytes_of",),
    ),
    Row(
        "a file that a memory of `citations` cites",
        8 * MIB,
        {"lines": again("x = 1\n"), "empty": again("\n"), "no text": again("\\xff\n")},
        a_cited_file,
        "larger than 8 MiB",
        ("toolsets.citations.sources.Sources._text",),
    ),
    Row(
        "what `citations` looks for elsewhere, in a file",
        MIB,
        {"lines": again("a b\n")},
        a_file_beside,
        "",
        (
            "toolsets.citations.sources.Sources._of_kind",
            "toolsets.citations.repository._rules",
        ),
    ),
    Row(
        "a note of Serena, beside `citations`",
        960 * KIB,
        {"lines": LINES_AGAIN},
        a_note_of_serena,
        "",
        ("toolsets.citations.serena._notes",),
    ),
    *(
        Row(
            "markdown that is shown",
            MAX_RENDERED,
            {name: MARKDOWN[name] for name in ("text", "items", "one line", "fences")}
            | {name: again(name) for name in ("![", "[![", "*_")}
            | {name: again(some + "a" * 9) for name, some in DENSE.items()},
            shown(by),
            "",
            ("rendering.commonmark.parsed", "rendering.commonmark.is_shown_by_others"),
        )
        for by in (safe_html, rendered, is_shown_by_others)
    ),
    Row(
        "a part of what a client sends in a line",
        4 * MIB,
        {name: OBJECTS[name] for name in ("objects", "names", "nested")},
        a_line,
        "",
        ("server.stdio._loads",),
    ),
    Row(
        "a memory that is typed or piped",
        MAX_CONTENT,
        {"words": again("x "), "lines": again("ab\n")},
        typed("remember", "-", "-t", "x"),
        "content",
        ("cli.remember.remember",),
    ),
)


# --- the promises ---------------------------------------------------------------------------------

CASES = [(row, name) for row in ROWS for name in row.texts]


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home, a memory directory and a working directory of its own."""
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("AIAML_MEMORY_DIR", str(tmp_path / "bank"))
    monkeypatch.setenv("AIAML_ENABLE_SYNC", "false")
    monkeypatch.chdir(tmp_path)


def sizes(row: Row) -> tuple[int, int, int]:
    """Return the sizes at which a reader is measured."""
    return (row.limit // 4, row.limit // 2, row.limit)


def taken(row: Row, name: str, place: Path, size: int) -> float:
    """Return the processor time that a reader takes for a text of a size."""
    text = row.texts[name](size)
    assert len(text) == size
    return seconds(row.put(place, text))


@pytest.mark.gate_cases(40)
@pytest.mark.parametrize(("row", "name"), CASES, ids=lambda each: getattr(each, "what", each))
def test_time_grows_with_the_size_and_ends_within_a_second(
    row: Row, name: str, tmp_path: Path
) -> None:
    """At a quarter of the limit, at half of it, and at the limit, whatever the text is."""
    times = [taken(row, name, tmp_path, size) for size in sizes(row)]
    for size, before, now in zip(sizes(row)[1:], times, times[1:], strict=False):
        if now >= 5 * FLOOR and now >= STEEP * max(before, FLOOR):  # or the machine was busy
            again_now = min(taken(row, name, tmp_path, size) for _ in range(2))
            if again_now >= STEEP * max(before, FLOOR):
                raise TooSlow(f"{before:.3f} s, then {again_now:.3f} s at {size:,}")
    quick(max(times), LONGEST)


@pytest.mark.parametrize("row", [row for row in ROWS if row.refused], ids=lambda row: row.what)
def test_what_is_larger_is_refused_at_once(row: Row, tmp_path: Path) -> None:
    """With the limit in the sentence."""
    text = next(iter(row.texts.values()))(row.limit + KIB)
    call = row.put(tmp_path, text)
    said: list[object] = []
    took = seconds(lambda: said.append(call()))
    assert re.search(row.refused, " ".join(str(said[0]).split()))
    quick(took, AT_ONCE)


def test_compartments_write_no_more_than_they_read(tmp_path: Path) -> None:
    """The change that would make the file too large is refused, and the file stays as it was."""
    from aiaml_server.toolsets.compartments import file
    from aiaml_server.toolsets.compartments.failures import DiskError

    held = file.File(tmp_path / "entries.json")
    with held.changing() as content:
        content.value["note"] = "x"
    before = held.path.read_bytes()
    with (
        pytest.raises(DiskError, match=r"would have .* and at most 5,242,880 are read"),
        held.changing() as content,
    ):
        content.value["note"] = "x" * file.MAX_FILE
    assert held.path.read_bytes() == before
    assert held.read().value["note"] == "x"


def test_citations_write_no_longer_head_than_they_read(tmp_path: Path) -> None:
    """Tags that would make a memory unreadable are refused, and nothing is written."""
    from aiaml_server.toolsets.citations.failures import InvalidInput
    from aiaml_server.toolsets.citations.memories import Memories

    git_directory(tmp_path)
    with pytest.raises(InvalidInput, match="the frontmatter is longer than 64 KiB"):
        Memories(tmp_path).save("s", "Fact: x.", [], [], [f"tag{n:090}" for n in range(1000)])
    assert not list(tmp_path.rglob("mem-*"))


IN_PARTS = {
    "a note that is imported": walk.MAX_TEXT,
    "a memory's file that `semantic` imports": importing.MOST_FILE,
    "a JSON document that is imported": records.MAX_DOCUMENT,
    "a line of JSON Lines that is imported": jsonl.MAX_LINE,
    "a zip that is imported, unpacked": archives.MAX_TOTAL,
}
"""What a person imports may be larger than a second's worth; a part of it is measured."""


def test_docs_name_every_limit() -> None:
    """The table in docs/format.md has each reader with its largest size, and no other."""
    docs = ROOT / "docs" / "format.md"
    _, _, section = docs.read_text(encoding="utf-8").partition("\n## What is read at most\n")
    limits = {row.what: row.limit for row in ROWS if not row.what.startswith("a part of")}
    lines = re.findall(r"^\| (.+) \| (\d+ [KMG]iB) \|$", section, re.MULTILINE)
    assert dict(lines) == {what: human(most) for what, most in (limits | IN_PARTS).items()}


def human(size: int) -> str:
    """Return a size as a person reads it."""
    for name, unit in (("GiB", 1024 * MIB), ("MiB", MIB)):
        if size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size // KIB} KiB"


READS = re.compile(
    r"read_regular|read_own|read_beginning|load_yaml|json_?\.loads?|tomllib\.loads?|zipfile\.ZipFile"
    r"|yaml\.(?:safe_load|load|compose|parse)|.*\.(?:read_bytes|read_text|get_single_node)"
    r"|(?:sys\.stdin|sys\.stdin\.buffer|stream|response|process\.stdout|index|file|self\._from)"
    r"\.read\w*|(?:parser\(\)|_usual\(\)|parser|MarkdownIt\('commonmark'\))\.parse"
    r"|request\.stream"
)
OPENS = re.compile(r"open\(|.*\.open\('r")


def readers() -> set[str]:
    """Return every function of the package that reads, as `module.function`."""
    top = Path(aiaml_server.__file__).parent
    found = set()
    for path in top.rglob("*.py"):
        module = ".".join(path.relative_to(top).with_suffix("").parts)
        for name, call in _calls(ast.parse(path.read_text(encoding="utf-8")), module):
            opens = OPENS.match(ast.unparse(call))
            if opens or READS.fullmatch(ast.unparse(call.func)):
                found.add(name)
    return found


def _calls(node: ast.AST, name: str) -> Iterator[tuple[str, ast.Call]]:
    """Yield every call, with the function that it stands in."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        name = f"{name}.{node.name}"
    if isinstance(node, ast.Call):
        yield name, node
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, name)


@pytest.mark.slow
def test_every_reader_has_a_row() -> None:
    """Whoever adds one says how large what it reads may be, and what is hardest for it."""
    rows = {name for row in ROWS for name in row.readers}
    assert readers() - rows - OTHERS.keys() - ELSEWHERE.keys() == set()
    assert (rows | OTHERS.keys() | ELSEWHERE.keys()) - readers() == set(), "they read no more"
    assert not rows & (OTHERS.keys() | ELSEWHERE.keys())
