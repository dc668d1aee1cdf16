"""The command's verbs: what each takes and does. Two command lines are made of this table."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from aiaml_server.toolsets.citations import FORGETFUL, REPOSITORY, answers, graph
from aiaml_server.toolsets.citations.failures import (
    InvalidInput,
    MalformedMemory,
    NotFound,
    ToolError,
)
from aiaml_server.toolsets.citations.memories import (
    BY_A_PERSON,
    MOST,
    Memories,
    Saved,
    Verified,
    find_root,
)
from aiaml_server.toolsets.citations.model import LINK_TYPES, Citation, Link, cites, fact, place
from aiaml_server.toolsets.citations.notation import relative
from aiaml_server.toolsets.citations.sources import Sources
from aiaml_server.toolsets.citations.store import MAX_FILE
from aiaml_server.toolsets.citations.verify import OK, UNSEEN, Checked, check
from aiaml_server.toolsets.failures import annotation
from aiaml_server.toolsets.warning import CHECK_SECRETS

VALID, STALE, COULD_NOT = 0, 1, 2
"""Exit codes: all well, or done; something is stale or was not found; it could not be done."""


class Screen(Protocol):
    """Where the verbs show things; what is shown is made safe there.

    A line stays one, whatever is in it, and CI obeys none but `out_command`'s.
    """

    def out(self, line: str) -> None:
        """Show a line of an answer."""

    def out_command(self, text: str) -> None:
        """Show a line that GitHub obeys, by what stands behind its `::`."""

    def out_text(self, text: str) -> None:
        """Show an answer of several lines."""

    def out_source(self, text: str) -> None:
        """Show several lines that programs take, as they are."""

    def note(self, line: str) -> None:
        """Show a line that is not the answer."""

    def fail(self, line: str) -> None:
        """Say why there is no answer."""

    def out_json(self, value: Any) -> None:
        """Show an answer for programs."""

    def read(self) -> str:
        """Return what is typed or piped in."""
        return sys.stdin.read(MAX_FILE + 1)

    def confirm(self, question: str) -> None:
        """Ask; whoever says no, or is not there, ends the verb."""


class Kept(ToolError):
    """A person was asked, and said no."""


class Option(NamedTuple):
    """One option, or an argument where its name has no dashes.

    Attributes:
        name: such as `--limit`.
        help: what it means.
        metavar: what stands for its value; empty for a flag.
        many: whether there can be several.
        choices: the values that it may have; empty for any.
        number: whether it is a whole number.
        needed: whether it must be there.
        unsaid: what it means where it is given without a value; empty where it needs one.
    """

    name: str
    help: str
    metavar: str = ""
    many: bool = False
    choices: tuple[str, ...] = ()
    number: bool = False
    needed: bool = False
    unsaid: str = ""

    @property
    def key(self) -> str:
        """The key of its value."""
        return self.name.lstrip("-").replace("-", "_")

    @property
    def default(self) -> Any:
        """Its value where it is not given; of several choices the first."""
        if self.many:
            return ()
        return (self.choices[0] if self.choices else None) if self.metavar else False


class Verb(NamedTuple):
    """One verb.

    Attributes:
        name: what is typed.
        does: what it does; the first line is the summary.
        examples: how it is used.
        options: what it takes.
        run: does it; returns the exit code.
    """

    name: str
    does: str
    examples: tuple[str, ...]
    options: tuple[Option, ...]
    run: Callable[[Screen, Mapping[str, Any]], int]


def run(verb: Verb, screen: Screen, given: Mapping[str, Any]) -> int:
    """Run a verb; return the exit code. What it refuses is a sentence."""
    try:
        return verb.run(screen, given)
    except ToolError as error:
        screen.fail(str(error))
        return STALE if isinstance(error, (NotFound, Kept)) else COULD_NOT


def _memories(given: Mapping[str, Any]) -> Memories:
    root = find_root(given["repo"] or os.environ.get(REPOSITORY))
    return Memories(
        root,
        forgetful=os.environ.get(FORGETFUL, ""),
        check_secrets=CHECK_SECRETS.value(os.environ),
    )


def _as_data(screen: Screen, given: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> bool:
    """Show rows for programs, where that was asked for; say whether it was."""
    if given["json"]:
        screen.out_json(rows)
    return bool(given["json"])


# --- the verbs ------------------------------------------------------------------------------------


def _search(screen: Screen, given: Mapping[str, Any]) -> int:
    memories = _memories(given)
    query = " ".join(given["query"])
    found = memories.search(query, given["limit"], given["verify"], given["tag"])
    is_data = _as_data(screen, given, answers.found(memories, found))
    for hit in () if is_data else found.hits:
        screen.out(f"{hit.memory.id}  {hit.memory.subject}  ({hit.score:.2f})")
        for by in hit.superseded_by:
            screen.out(f"    superseded by {by}")
        if (checked := found.checked.get(hit.memory.id)) and checked.stale:
            screen.out(f"    stale: {answers.places(checked)}")
    for remark in answers.remarks(found):
        screen.note(remark)
    if not found.hits:
        screen.note("no memory was found")
    return VALID if found.hits else STALE


def _save(screen: Screen, given: Mapping[str, Any]) -> int:
    memories = _memories(given)
    content = given["content"]
    is_new = given["id"] is None
    if content == "-" or (content is None and is_new and given["subject"] is not None):
        content = screen.read()
    cited = [Citation(each) for each in given["cite"]] if given["cite"] else None
    links = [_linked(each) for each in given["link"]] if given["link"] else None
    saved = memories.save(
        given["subject"],
        content,
        cited,
        links,
        given["tag"] or None,
        given["id"],
        others="keep",
        start=os.curdir,
    )
    return _saved(screen, saved, as_json=given["json"])


def _saved(screen: Screen, saved: Saved, *, as_json: bool) -> int:
    if as_json:
        screen.out_json(saved._asdict())
        return VALID
    screen.out(f"{'saved' if saved.created else 'updated'} {saved.path}")
    for warning in saved.warnings:
        screen.note(f"warning: {warning}")
    return VALID


def _recite(screen: Screen, given: Mapping[str, Any]) -> int:
    memories = _memories(given)
    if (given["new"] is None) is not given["drop"]:
        raise InvalidInput("recite: give the place to cite instead, or --drop")
    new = None if given["drop"] else Citation(given["new"])
    saved = memories.recite(given["id"], given["old"], new, start=os.curdir)
    if not given["json"]:
        memory = memories.get(saved.id)
        screen.note(f"the memory says: {fact(memory)}")
        for each in memory.citations:
            screen.note(f"    {place(each)}: {_first_line(each)}")
    return _saved(screen, saved, as_json=given["json"])


def _first_line(citation: Citation) -> str:
    return (citation.snippet or "").partition("\n")[0].strip() or "no text is kept"


def _linked(text: str) -> Link:
    kind, colon, target = text.partition(":")
    if not colon:
        raise InvalidInput(f"--link: {text!r} must be TYPE:ID, such as related:mem-topic-1a2b3c4d")
    return Link(kind, target)


def _get(screen: Screen, given: Mapping[str, Any]) -> int:
    memories = _memories(given)
    memory = memories.get(given["id"])
    checked = memories.verify(memory.id, False) if memories.config.on_retrieval else None
    if given["json"]:
        screen.out_json(answers.whole(memories, memory, checked))
        return VALID
    screen.out_text(memories.store.document(memory.id).text.removesuffix("\n"))
    if checked and checked.stale:
        screen.note(f"stale: {answers.places(checked)}")
    return VALID


def _list(screen: Screen, given: Mapping[str, Any]) -> int:
    memories = _memories(given)
    scan = memories.list(given["tag"])
    rows = [answers.summary(memories, each) for each in scan.memories.values()]
    for memory in () if _as_data(screen, given, rows) else scan.memories.values():
        late = "  (not verified lately)" if memories.is_overdue(memory) else ""
        screen.out(f"{memory.id}  {memory.subject}{late}")
    for sentence in scan.broken.values():
        screen.note(f"cannot be read: {sentence}")
    if not scan.memories:
        screen.note("there are no memories")
    return VALID


def _about(screen: Screen, given: Mapping[str, Any]) -> int:
    memories = _memories(given)
    paths = [relative(each, memories.root, os.curdir) for each in given["file"]]
    found = memories.search(paths=paths, limit=MOST)
    results, left = memories.verify_all([each.memory.id for each in found.hits])
    checked = {each.memory.id: each for each in results}
    found = found._replace(checked=checked, broken={**found.broken, **left})
    is_data = _as_data(screen, given, answers.found(memories, found))
    for hit in () if is_data else found.hits:
        screen.out(f"{hit.memory.id}  {hit.memory.subject}")
        screen.out(f"    {fact(hit.memory)}")
        for each in checked[hit.memory.id].checked if hit.memory.id in checked else ():
            if cites(replace(hit.memory, citations=(each.citation,)), paths):
                screen.out(f"    {place(each.citation)} {each.verdict}")
    for remark in answers.remarks(found):
        screen.note(remark)
    if not found.hits:
        screen.note("no memory cites it")
    return VALID if found.hits else STALE


def _verify(screen: Screen, given: Mapping[str, Any]) -> int:
    memories = _memories(given)
    ids = [_id_of(each) for each in given["id"]] or None
    if given["changed"] is not None:
        return _verify_changed(screen, given, memories)
    try:
        results, broken = memories.verify_all(
            ids, given["update"], given["update"], times=BY_A_PERSON
        )
    except NotFound as error:
        screen.fail(str(error))
        return COULD_NOT
    if given["format"] == "github":
        for line in _annotations(results, broken):
            screen.out_command(line)
    elif given["json"] or given["format"] == "json":
        stated = [answers.verified(memories, each) for each in results]
        stale = sum(bool(each.stale) for each in results)
        report = {"checked": len(results), "stale": stale, "memories": stated}
        screen.out_json(
            {"valid": not (stale or broken), **report, "unreadable": list(broken.values())}
        )
    else:
        _report(screen, results, broken)
    if broken or any(each.unseen for each in results):
        return COULD_NOT
    return STALE if any(each.stale or each.leak for each in results) else VALID


def _verify_changed(screen: Screen, given: Mapping[str, Any], memories: Memories) -> int:
    """Verify what a change touches; stale counts what the change has made so."""
    paths, past = memories.changed(given["changed"])
    unread = memories.unread(past)
    scan = memories.list()
    touched = [each.id for each in scan.memories.values() if cites(each, set(paths))]
    results, broken = memories.verify_all(
        touched, given["update"], given["update"], times=BY_A_PERSON
    )
    broken = {**scan.broken, **broken, **unread}
    made, unknown = _made_stale(results, past)
    if given["json"] or given["format"] == "json":
        stated = [answers.verified(memories, each) for each in results]
        ids = [each.memory.id for each, _ in unknown]
        stated_all = {"changed": list(paths), "made_stale": made, "unseen_then": ids}
        screen.out_json({**stated_all, "memories": stated})
    elif given["format"] == "github":
        for line in _annotations(results, broken):
            screen.out_command(line)
        for result, each in unknown:
            text = f"{place(each.citation)} {_NO_PAST}: {each.note}"
            screen.out_command(annotation("warning", text, file=result.path, title=UNSEEN))
    else:
        _report(screen, results, broken)
    counts = f"{len(results)} touched by what changed since {given['changed']}"
    screen.note(f"{counts}, {len(made)} made stale by it{': ' if made else ''}{', '.join(made)}")
    for result, each in unknown:
        screen.note(f"{result.path}: {place(each.citation)} {_NO_PAST}: {each.note}")
    if unknown:
        screen.note(f"{len(unknown)} stale, and nothing tells whether the change made them so")
    if broken or unknown or any(each.unseen for each in results):
        return COULD_NOT
    return STALE if made else VALID


_NO_PAST = "could not be looked at as it was then"


def _made_stale(
    results: Sequence[Verified], past: Sources
) -> tuple[list[str], list[tuple[Verified, Checked]]]:
    """Return what was valid then and is stale now; and what could not be looked at as it was."""
    made: list[str] = []
    unknown: list[tuple[Verified, Checked]] = []
    for result in results:
        then = [check(each.citation, past) for each in result.stale]
        if any(each.valid for each in then):
            made.append(result.memory.id)
        elif unseen := [each for each in then if each.verdict == UNSEEN]:
            unknown.append((result, unseen[0]))
    return made, unknown


def _id_of(text: str) -> str:
    """Return the id that a person or pre-commit means: it, or the path of its file."""
    name = text.replace("\\", "/").rpartition("/")[2]
    return Path(name).stem if ("." in name and text != name) or name.endswith(".md") else text


def _report(screen: Screen, results: Sequence[Verified], broken: Mapping[str, str]) -> None:
    for result in results:
        _report_one(screen, result)
    for sentence in broken.values():
        screen.out(f"{sentence} (cannot be read)")
    stale = sum(bool(each.stale) for each in results)
    unseen = sum(each.unseen for each in results)
    unsure = sum(not (each.valid or each.stale or each.unseen) for each in results)
    parts = [f"{len(results)} verified", f"{stale} stale"]
    for count, what in (
        (unsure, "ambiguous"),
        (unseen, "could not be looked at"),
        (sum(each.updated for each in results), "updated"),
        (len(broken), "unreadable"),
    ):
        parts += [f"{count} {what}"] if count else []
    screen.note(", ".join(parts))
    if stale:
        screen.note(
            "where a memory still holds, `recite ID OLD NEW` cites another line; where it does not,"
            " save what is true with --link supersedes:ID"
        )


def _report_one(screen: Screen, result: Verified) -> None:
    for each in result.checked:
        if each.verdict == OK:
            continue
        today = f", today {each.path}:{each.line}" if each.path else ""
        if each.places:
            today = ", today " + " or ".join(f"{path}:{line}" for path, line in each.places[:5])
        note = f" ({each.note})" if each.note else ""
        screen.out(f"{result.path}: {place(each.citation)} {each.verdict}{today}{note}")
    if result.stale:
        screen.out(f"    says: {fact(result.memory)}")
    for each in result.stale:
        screen.out(f"    {place(each.citation)} was: {_first_line(each.citation)}")
    if result.leak:
        screen.out(f"{result.path}:{result.leak.line}: seems to hold {result.leak.kind}")
    if result.unwritten:
        screen.note(f"{result.path} was verified and not written: {result.unwritten}")


def _annotations(results: Sequence[Verified], broken: Mapping[str, str]) -> list[str]:
    """Return, without their `::`, the lines that GitHub shows beside the memories' files."""
    lines = []
    for result in results:
        for each in result.checked:
            if each.valid:
                continue
            level = "error" if each.stale else "warning"
            text = f"{place(each.citation)} is {each.verdict}"
            text += f": {each.note}" if each.note else ""
            lines.append(annotation(level, text, file=result.path, title=each.verdict))
        if result.leak:
            text = f"line {result.leak.line} seems to hold {result.leak.kind}"
            lines.append(annotation("error", text, file=result.path, title="secret"))
    return lines + [
        annotation("error", text, file=path, title="unreadable") for path, text in broken.items()
    ]


def _graph(screen: Screen, given: Mapping[str, Any]) -> int:
    memories = _memories(given)
    root = given["id"]
    drawn = given["format"] != "text"
    if given["roots"] or (not root and (given["json"] or not drawn)):
        found = list(memories.find_roots())
        if given["json"]:
            screen.out_json(found)
        for each in () if given["json"] else found:
            screen.out(f"{each}  {memories.get(each).subject}")
        return VALID
    types = given["type"] or None
    if root:
        depth = 3 if given["depth"] is None else given["depth"]
        walk = memories.traverse(root, depth, types, given["order"])
    else:
        walk = memories.whole_graph(types)
    if given["json"]:
        screen.out_json(answers.walked(memories, root, walk))
        return VALID
    subjects = {each: memories.get(each).subject for each in walk.nodes}
    if not drawn:
        for each, depth in walk.nodes.items():
            screen.out(f"{'  ' * depth}{each}  {subjects[each]}")
            for edge in walk.edges:
                if edge.source == each:
                    gone = " (missing)" if edge.target in walk.missing else ""
                    screen.out(f"{'  ' * depth}  -> {edge.type} {edge.target}{gone}")
    else:
        draw = graph.mermaid if given["format"] == "mermaid" else graph.dot
        screen.out_source(draw(walk, subjects))
    return VALID


def _delete(screen: Screen, given: Mapping[str, Any]) -> int:
    memories = _memories(given)
    path = memories.store.path(given["id"])
    if not given["yes"]:
        with suppress(MalformedMemory):  # it can be deleted all the same
            screen.note(f"{given['id']}  {memories.get(given['id']).subject}")
        screen.confirm(f"Delete {path}?")
    edges = memories.delete(given["id"])
    if given["json"]:
        names = sorted({each.source for each in edges})
        screen.out_json({"id": given["id"], "path": path, "deleted": True, "referenced_by": names})
        return VALID
    screen.out(f"deleted {path}")
    for edge in edges:
        screen.note(f"{edge.source} links to it ({edge.type})")
    words = shlex.join(["git", "-C", str(memories.root), "restore", path])
    screen.note(f"where git has it, this brings it back: {words}")
    return VALID


def _sync_index(screen: Screen, given: Mapping[str, Any]) -> int:
    done = _memories(given).sync_index()
    if given["json"]:
        screen.out_json(vars(done))
    elif done.index == "none":
        screen.out("search is by words alone: `index.type` in .memory-config.yaml names no index")
    else:
        counts = f"{done.added} added, {done.removed} removed"
        screen.out(f"{done.index}: {done.memories} memories, {counts}")
    return VALID


def _import_serena(screen: Screen, given: Mapping[str, Any]) -> int:
    from aiaml_server.toolsets.citations import serena  # noqa: PLC0415 (few need it)

    memories = _memories(given)
    directory = Path(given["directory"]) if given["directory"] else None
    planned = serena.plan(memories, directory)
    if given["apply"]:
        serena.apply(memories, planned)
    new = [each for each in planned.taken if each.text]
    if given["json"]:
        screen.out_json(
            {
                "applied": given["apply"],
                "new": [
                    {"id": each.id, "source": each.note.source, "links": each.links,
                     "citations": each.citations}
                    for each in new
                ],
                "there": [each.id for each in planned.taken if not each.text],
                "differ": [each.id for each in planned.taken if each.differs],
                "dead": [
                    {"source": each.note.source, "line": line, "target": target}
                    for each in planned.taken
                    for line, target in each.dead
                ],
                "skipped": [{"path": path, "why": why} for path, why in planned.skipped],
            }
        )  # fmt: skip
        return VALID
    for each in new:
        screen.out(f"{each.note.source} -> {memories.store.path(each.id)}")
    for each in planned.taken:
        for line, target in each.dead:
            screen.out(f"{each.note.source}:{line}: {target} is not there")
        if each.differs:
            screen.out(f"{each.note.source}: {each.id} is there with another text; it stays")
    for path, why in planned.skipped:
        screen.out(f"{path}: skipped: {why}")
    links, cited = sum(each.links for each in new), sum(each.citations for each in new)
    verb = "imported" if given["apply"] else "to import"
    screen.note(
        f"{len(new)} {verb} ({links} links, {cited} citations), "
        f"{len(planned.taken) - len(new)} already there"
    )
    if new and not given["apply"]:
        screen.note("Nothing was written; --apply does.")
    return VALID


def _install_skill(screen: Screen, given: Mapping[str, Any]) -> int:
    from aiaml_server.toolsets.citations import skill  # noqa: PLC0415 (few need it)

    root = None if given["user"] else find_root(given["repo"] or os.environ.get(REPOSITORY))
    path, written = skill.install(root, force=given["force"])
    screen.out(f"{'wrote' if written else 'is there already:'} {path}")
    screen.note("The tools come with: aiaml install claude-code --toolset citations")
    return VALID


# --- the table ------------------------------------------------------------------------------------

REPO = Option("--repo", "The repository; else the one around the working directory.", "PATH")
JSON = Option("--json", "Print JSON, for programs.")
TAG = Option("--tag", "Only memories with this tag; can be given several times.", "TAG", many=True)
ID = Option("id", "The memory's id.", "ID", needed=True)

VERBS = (
    Verb(
        "search",
        "Find memories by words or a question, best first.\n\nExit codes: 0 found, 1 nothing.",
        ("search api versioning", "search --verify how are prices rounded"),
        (
            Option("query", "Words.", "WORD", many=True, needed=True),
            Option("--limit", "At most so many.", "N", number=True),
            Option("--verify", "Leave out memories with stale citations."),
            *(TAG, JSON, REPO),
        ),
        _search,
    ),
    Verb(
        "save",
        "Save a memory, or update the one with --id.\n\nThe text of a new one is --content, or"
        " standard input. An update keeps what is not given; --content - reads standard input.",
        (
            'save "Prices are in cents" --cite shop/prices.py:12 --content "**Fact**: …"',
            "save --id mem-prices-1a2b3c4d --content - < text.md",
            "save --id mem-prices-1a2b3c4d --tag billing",
        ),
        (
            Option("subject", "What it is about, in one line.", "SUBJECT"),
            Option("--content", "The markdown; - for standard input.", "TEXT"),
            Option(
                "--cite",
                "What it rests on: a.py:20, a.py:20-24, a.py::Shop.price; can be given several"
                " times. An update keeps the others.",
                "PLACE",
                many=True,
            ),
            Option(
                "--link",
                f"A link: {', '.join(LINK_TYPES)}; can be given several times.",
                "TYPE:ID",
                many=True,
            ),
            Option("--tag", "A word to find it by; can be given several times.", "TAG", many=True),
            Option("--id", "The memory to update.", "ID"),
            *(JSON, REPO),
        ),
        _save,
    ),
    Verb(
        "recite",
        "Cite another line instead of one.\n\nThe other citations stay; the memory's fact is shown"
        " beside the lines that it rests on, to be read once more.",
        (
            "recite mem-prices-1a2b3c4d shop/prices.py:12 shop/prices.py:15",
            "recite mem-prices-1a2b3c4d shop/prices.py:12 --drop",
        ),
        (
            ID,
            Option("old", "The citation, as the memory has it.", "OLD", needed=True),
            Option("new", "What to cite instead.", "NEW"),
            Option("--drop", "Cite nothing instead."),
            *(JSON, REPO),
        ),
        _recite,
    ),
    Verb(
        "about",
        "Show what is known about files.\n\nThe memories that cite them, with their facts and"
        " verdicts. Exit codes: 0 found, 1 nothing.",
        ("about shop/prices.py", "about shop"),
        (Option("file", "A file or a directory.", "FILE", many=True, needed=True), JSON, REPO),
        _about,
    ),
    Verb("get", "Show a memory.", ("get mem-prices-1a2b3c4d",), (ID, JSON, REPO), _get),
    Verb(
        "list",
        "List the memories.\n\nThose that cannot be read are named.",
        ("list", "list --tag billing --json"),
        (TAG, JSON, REPO),
        _list,
    ),
    Verb(
        "verify",
        "See whether the cited lines are still there.\n\nID is a memory's id or file; without one,"
        " all are verified. Exit codes: 0 valid, 1 stale, 2 could not look at all or some.",
        (
            "verify",
            "verify --update",
            "verify --changed",
            "verify --changed main",
            "verify --format github",
            "verify memories/mem-prices-1a2b3c4d.md",
        ),
        (
            Option("id", "Only these.", "ID", many=True),
            Option("--update", "Write today's lines and the day into the files."),
            Option(
                "--changed",
                "Only memories that cite what differs from a commit, the last one if none is"
                " named; 1 is then for what became stale since.",
                "REV",
                unsaid="HEAD",
            ),
            Option("--format", "How to print.", "FORMAT", choices=("text", "json", "github")),
            *(JSON, REPO),
        ),
        _verify,
    ),
    Verb(
        "graph",
        "Show what a memory's links lead to.\n\nWithout ID: where to begin, or a picture of all.",
        (
            "graph",
            "graph mem-prices-1a2b3c4d --depth 2",
            "graph mem-prices-1a2b3c4d --format mermaid",
            "graph --format dot",
        ),
        (
            Option("id", "Where to begin.", "ID"),
            Option("--depth", "How many links to follow one after another.", "N", number=True),
            Option(
                "--type",
                "Only this type of link; can be given several times.",
                "TYPE",
                many=True,
                choices=LINK_TYPES,
            ),
            Option(
                "--order", "Level by level, or each branch first.", "ORDER", choices=graph.ORDERS
            ),
            Option("--format", "How to print.", "FORMAT", choices=("text", "mermaid", "dot")),
            Option("--roots", "List the memories that no other one links to."),
            *(JSON, REPO),
        ),
        _graph,
    ),
    Verb(
        "delete",
        "Delete a memory's file, after asking.\n\nThe links that lead nowhere then are named, and"
        " how git brings the file back where it was committed.",
        ("delete mem-prices-1a2b3c4d", "delete mem-prices-1a2b3c4d --yes"),
        (ID, Option("--yes", "Do not ask."), JSON, REPO),
        _delete,
    ),
    Verb(
        "import-serena",
        "Take over Serena's memories.\n\nWithout --apply, show what would be done. The texts"
        " stay byte for byte, the originals stay, and a second run changes nothing.",
        ("import-serena", "import-serena --apply", "import-serena ~/.serena/memories/global"),
        (
            Option("directory", "Where they are; .serena/memories if not said.", "DIRECTORY"),
            Option("--apply", "Write the memories."),
            *(JSON, REPO),
        ),
        _import_serena,
    ),
    Verb(
        "install-skill",
        "Give Claude Code a skill.\n\nIt says when to search, save, cite and verify.",
        ("install-skill", "install-skill --user"),
        (
            Option("--user", "For you in all repositories, instead of this one."),
            Option("--force", "Also over a file that is another one."),
            REPO,
        ),
        _install_skill,
    ),
    Verb(
        "sync-index",
        "Bring the index for search by meaning up to date.",
        ("sync-index",),
        (JSON, REPO),
        _sync_index,
    ),
)
