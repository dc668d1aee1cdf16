"""What a toolset states: a memory system's contribution to the server and to the command line.

A `Manifest` is what is known of a toolset without building it: cheap to import, with no SDK and
nothing that its tools need. `Toolset` is what the server serves of it. A toolset is never given the
server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

from aiaml_server.errors import AiamlError, MalformedFile, NotOurs, Refused, StoreError
from aiaml_server.settings import Variable, as_given, directory, switch

__all__ = [
    "CRASHED",
    "INSTRUCTIONS_LIMIT",
    "Answer",
    "Argument",
    "Changed",
    "Embedder",
    "Finding",
    "Fix",
    "Level",
    "Manifest",
    "Note",
    "Prompt",
    "Resource",
    "Tool",
    "Toolset",
    "Variable",
    "as_given",
    "client",
    "directory",
    "failure",
    "lazily",
    "repair_surrogates",
    "switch",
]

INSTRUCTIONS_LIMIT = 2048
"""Characters after which hosts cut a server's instructions, and a tool's description."""


CRASHED = "an internal error; the details are in the server's log (stderr)"
"""What a tool says when it fails with an exception that is no `AiamlError`."""


client: ContextVar[str] = ContextVar("client", default="")
"""The name that the client gave itself which calls a tool now; empty where it gave none."""


class Answer(NamedTuple):
    """What a tool answers, where there is more to say than the value.

    Attributes:
        value: the JSON value.
        notes: sentences for the agent, each in a text block of its own behind the value.
    """

    value: Any
    notes: Sequence[str] = ()


class Tool(NamedTuple):
    """One tool.

    Attributes:
        name: what agents call it by; unique in a server.
        title: what people see.
        description: what agents read; at most 2,048 characters.
        call: a plain function whose annotations are the input schema. It returns a JSON value or an
            `Answer`; the server runs it in a thread.
        shape: the `TypedDict` of what it answers, failures included. A list is answered as
            `{"result": [...]}`, since the protocol wants an object.
        rules: for each parameter, what it must be, such as "a text": a wrong type is answered with
            a sentence that has "must be" before it.
        failure: turns an error into the value that this tool answers when it fails, as the function
            `failure` does; None stands for a crash, whose details are in the log alone.
        reads: whether it changes nothing.
        destroys: whether it can take something away.
        repeatable: whether a second call with the same arguments changes nothing more.
        outside: whether it reaches beyond this computer.
        lenient: whether arguments that it does not have are ignored. Otherwise they are refused: a
            filter that is dropped would make a call mean more than was asked for.
        empties: the parameters for which empty text says something. For others that may be left
            out, clients send it for what they leave out, and it counts as that.
    """

    name: str
    title: str
    description: str
    call: Callable[..., Any]
    shape: type
    rules: Mapping[str, str]
    failure: Callable[[AiamlError | None], Any]
    reads: bool = False
    destroys: bool = False
    repeatable: bool = False
    outside: bool = False
    lenient: bool = False
    empties: Sequence[str] = ()


def failure(error: AiamlError | None) -> dict[str, str]:
    """Return what a tool answers when it fails: a code as `error`, and a sentence as `message`.

    The code is the name of a `Refused`'s class; `DiskError` for what else files and the disk raise;
    `InternalError` for a crash, which is None; `InvalidInput` for all other errors.
    """
    if error is None:
        return {"error": "InternalError", "message": CRASHED}
    code = "InvalidInput"
    if isinstance(error, Refused):
        code = type(error).__name__
    elif isinstance(error, StoreError | NotOurs | MalformedFile):
        code = "DiskError"
    return {"error": code, "message": str(error)}


class Resource(NamedTuple):
    """Something that a client can read by its address.

    Attributes:
        uri: the address; each `{name}` in it stands for one part of a path, given to `read`.
        name: what clients list it by.
        description: what it holds.
        read: returns the text; runs in a thread. It raises `LookupError` where there is nothing
            under these names.
        mime_type: the kind of text.
        watched: whether its changes are announced to clients that ask for it.
        listed: for an address with names, returns those under which there is something now, in the
            order in which they are listed; runs in a thread.
    """

    uri: str
    name: str
    description: str
    read: Callable[..., str]
    mime_type: str = "text/plain"
    watched: bool = False
    listed: Callable[[], Sequence[Mapping[str, str]]] = tuple


class Argument(NamedTuple):
    """One argument of a prompt."""

    name: str
    description: str
    required: bool = False


class Prompt(NamedTuple):
    """A text that a person can have put before the model.

    Attributes:
        name: what clients list it by; unique in a server.
        title: what people see.
        description: what it is for.
        text: returns the text, given the arguments; runs in a thread.
        arguments: what it takes.
    """

    name: str
    title: str
    description: str
    text: Callable[..., str]
    arguments: Sequence[Argument] = ()


Changed = Callable[[str], None]
"""Told the address of a watched resource that has changed; may be called from any thread."""


class Toolset(NamedTuple):
    """What the server serves of one memory system.

    Attributes:
        instructions: what agents read where it is served alone.
        brief: the short form, for a server that serves others as well. All short forms together
            stay below what hosts show.
        tools: in the order in which they are listed.
        resources: what can be read by address.
        prompts: texts for the person's use.
        opened: what is open from before the first call until after the last answer.
    """

    instructions: str
    brief: str
    tools: Sequence[Tool]
    resources: Sequence[Resource] = ()
    prompts: Sequence[Prompt] = ()
    opened: Callable[[Changed], AbstractContextManager[Any]] = nullcontext


Level = Literal["ok", "warning", "error"]
"""How what was examined is."""


class Fix(NamedTuple):
    """Something safe that mends what was found.

    Attributes:
        what: what it will do, as a person would be asked: "make … private".
        do: does it; raises OSError where the system refuses.
    """

    what: str
    do: Callable[[], object]


@dataclass(frozen=True)
class Finding:
    """One line of doctor's report.

    Attributes:
        check: the check's name.
        level: how it is.
        found: what was found, in words.
        remedy: what to do about it; empty when all is well.
        fix: what `--fix` may do about it.
    """

    check: str
    level: Level
    found: str
    remedy: str = ""
    fix: Fix | None = field(default=None, compare=False)

    def fields(self) -> dict[str, str]:
        """Return it as JSON has it."""
        return {name: getattr(self, name) for name in ("check", "level", "found", "remedy")}


class Note(NamedTuple):
    """Something that a toolset keeps, as a person reads it on the page.

    Attributes:
        id: what tells it from the toolset's others.
        text: markdown.
        made: when, in ISO 8601; empty where that is not known.
        facts: what else is known of it, such as ("Verdict", "stale"); the first stands in lists.
        topics: words to find it by.
    """

    id: str
    text: str
    made: str = ""
    facts: Sequence[tuple[str, str]] = ()
    topics: Sequence[str] = ()


class Embedder(Protocol):
    """A model that turns texts into vectors, which any toolset may use.

    A package offers a person's by an entry point in the group `aiaml.embedders`: a function that
    returns it, or None where it is not on this machine.

    Attributes:
        name: such as "BAAI/bge-small-en-v1.5".
        version: what tells two builds of it apart.
    """

    name: str
    version: str

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector for each text; it may raise anything where the model fails."""


PLACES = ("build", "verbs", "checks", "notes", "demo")
"""What of a manifest is the place of something, or empty."""


class Manifest(NamedTuple):
    """What is known of a toolset without importing it. Places are `module:name`.

    Attributes:
        name: what `--toolset` takes.
        summary: one line.
        tools: the names of its tools.
        variables: its settings.
        build: the place of a function from the settings' values, by variable, to a `Toolset`.
        verbs: the place of its click group, `aiaml NAME …`; empty for none.
        checks: the place of a function from the environment's variables to doctor's findings;
            empty for none.
        notes: the place of a function from the environment's variables to its `Note`s,
            the newest first; empty for none.
        demo: the place of a function that shows it at work and returns an exit code; empty for
            none.
        needs: the modules that it needs and that are not installed with its package.
        install: what pip is given to install them, such as "aiaml-server[semantic]".
        hooks: what agents are told by themselves, at the `start` of a session, `before` and `after`
            an edit: for each the place of a function from the directory that is worked in and the
            file that is edited (empty for none) to lines, each a mapping from words to texts. It
            imports no SDK, takes less than a second, and may raise anything.
    """

    name: str
    summary: str
    tools: tuple[str, ...]
    variables: tuple[Variable, ...]
    build: str
    verbs: str = ""
    checks: str = ""
    notes: str = ""
    demo: str = ""
    needs: tuple[str, ...] = ()
    install: str = ""
    hooks: Mapping[str, str] = MappingProxyType({})

    def values(self, environ: Mapping[str, str]) -> dict[str, Any]:
        """Return the settings as an environment has them, by variable.

        Raises:
            InvalidSetting: one cannot be used.
        """
        return {each.name: each.value(environ) for each in self.variables}


def lazily(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a package's `__getattr__`, which imports a public name when it is first used.

    Args:
        package: the package's name.
        places: the module in it of each public name.
    """

    def attribute(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f".{places[name]}", package), name)

    return attribute


def at(place: str) -> Any:
    """Import what a place names."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def repair_surrogates(text: str) -> str:
    """Replace each half surrogate pair, which UTF-8 cannot carry, by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
