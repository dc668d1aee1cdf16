"""What a toolset consists of: a manifest, and the tools that the server registers.

A `Manifest` is cheap to import: it names the places of functions, which are imported when they are
needed. `Toolset` holds the tools. Neither knows the server or the MCP SDK.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from importlib import import_module
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from aiaml_server.errors import AiamlError, MalformedFile, StoreError, ToolError, UnsafePath
from aiaml_server.settings import Setting

INTERNAL_ERROR = "an internal error; the details are in the server's log (stderr)"
"""The message of a tool that raised something else than an `AiamlError`."""

current_client: ContextVar[str] = ContextVar("current_client", default="")
"""The name of the client that calls a tool now; empty if it gave none."""


# --- what the server serves -----------------------------------------------------------------------


class Answer(NamedTuple):
    """A tool's answer with remarks for the agent.

    Attributes:
        value: the JSON value.
        notes: sentences, each in a text block after the value.
    """

    value: Any
    notes: Sequence[str] = ()


class Tool(NamedTuple):
    """One tool.

    Attributes:
        name: what agents call it by; unique in a server.
        title: what people see.
        description: what agents read; at most 2,048 characters, where hosts cut it.
        call: a function whose annotations are the input schema. It returns a JSON value or an
            `Answer`, and runs in a thread.
        answer_type: the `TypedDict` of what it returns, errors included. A list is answered as
            `{"result": [...]}`, since the protocol wants an object.
        rules: what each parameter must be, such as "a text"; used in the error for a wrong type.
        error_answer: turns an error into an answer; None stands for a crash.
        read_only: whether it changes nothing.
        destructive: whether it can delete something.
        idempotent: whether a second call with the same arguments changes nothing more.
        open_world: whether it reaches beyond this computer.
        ignores_unknown: whether unknown arguments are ignored. Otherwise they are refused, because
            without a dropped filter a call would mean more than its caller wanted.
        allow_empty: the optional parameters for which an empty text has a meaning. For others,
            clients send it for what they leave out.
    """

    name: str
    title: str
    description: str
    call: Callable[..., Any]
    answer_type: type
    rules: Mapping[str, str]
    error_answer: Callable[[AiamlError | None], Any]
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False
    ignores_unknown: bool = False
    allow_empty: Sequence[str] = ()


def error_answer(error: AiamlError | None) -> dict[str, str]:
    """Return a tool's answer for an error: a code as `error` and a sentence as `message`.

    The code is the class's name for a `ToolError`, `DiskError` for other errors of files and the
    disk, `InternalError` for a crash (None), and `InvalidInput` for all others.
    """
    if error is None:
        return {"error": "InternalError", "message": INTERNAL_ERROR}
    code = "InvalidInput"
    if isinstance(error, ToolError):
        code = type(error).__name__
    elif isinstance(error, StoreError | UnsafePath | MalformedFile):
        code = "DiskError"
    return {"error": code, "message": str(error)}


class Resource(NamedTuple):
    """Something that a client can read by its address.

    Attributes:
        uri: the address. Each `{name}` in it stands for one part of a path, given to `read`.
        name: what clients list it by.
        description: what it holds.
        read: returns the text, in a thread; raises `LookupError` where nothing has these names.
        mime_type: the type of the text.
        subscribable: whether clients can ask to be notified of changes.
    """

    uri: str
    name: str
    description: str
    read: Callable[..., str]
    mime_type: str = "text/plain"
    subscribable: bool = False


class Argument(NamedTuple):
    """One argument of a prompt."""

    name: str
    description: str
    required: bool = False


class Prompt(NamedTuple):
    """A text that a person can put before the model.

    Attributes:
        name: what clients list it by; unique in a server.
        title: what people see.
        description: what it is for.
        text: returns the text for the arguments, in a thread.
        arguments: the arguments.
    """

    name: str
    title: str
    description: str
    text: Callable[..., str]
    arguments: Sequence[Argument] = ()


OnChange = Callable[[str], None]
"""Called with the address of a resource that changed, from any thread."""


class Toolset(NamedTuple):
    """The tools, resources and prompts of one toolset.

    Attributes:
        instructions: what agents read if it is served alone.
        brief: the short form, for a server that serves several toolsets.
        tools: the tools, in the order in which they are listed.
        resources: the resources.
        prompts: the prompts.
        lifespan: what is open from before the first call until after the last answer.
    """

    instructions: str
    brief: str
    tools: Sequence[Tool]
    resources: Sequence[Resource] = ()
    prompts: Sequence[Prompt] = ()
    lifespan: Callable[[OnChange], AbstractContextManager[Any]] = nullcontext


# --- what doctor reports --------------------------------------------------------------------------

Level = Literal["ok", "warning", "error"]


class Fix(NamedTuple):
    """A safe repair.

    Attributes:
        what: what it will do, such as "make … private".
        do: does it; raises OSError where the system refuses.
    """

    what: str
    do: Callable[[], object]


class Finding(NamedTuple):
    """One line of doctor's report.

    Attributes:
        check: the check's name.
        level: how serious it is.
        found: what was found.
        remedy: what to do about it; empty if all is well.
        fix: what `--fix` may do about it.
    """

    check: str
    level: Level
    found: str
    remedy: str = ""
    fix: Fix | None = None

    def fields(self) -> dict[str, str]:
        """Return it as a JSON object."""
        return {name: getattr(self, name) for name in ("check", "level", "found", "remedy")}


# --- hooks ----------------------------------------------------------------------------------------


class HookInput(NamedTuple):
    """What a host passes to a hook. Fields that it does not give are empty.

    Attributes:
        event: `session_start`, `session_end`, `prompt`, `before_edit`, `after_edit`,
            `tool_succeeded` or `tool_failed`.
        directory: the working directory of the session.
        session_id: the session.
        prompt: what the person typed.
        path: the file that is edited.
        tool_name: the tool that the agent used.
        tool_input: the tool's arguments, as JSON.
        tool_output: the tool's answer or error.
        transcript_path: the file that holds the conversation.
    """

    event: str
    directory: str = ""
    session_id: str = ""
    prompt: str = ""
    path: str = ""
    tool_name: str = ""
    tool_input: str = ""
    tool_output: str = ""
    transcript_path: str = ""


# --- the manifest ---------------------------------------------------------------------------------


class Manifest(NamedTuple):
    """The description of a toolset, which is read without importing it. Places are `module:name`.

    Attributes:
        name: what `--toolset` takes.
        summary: one line.
        tools: the names of its tools.
        settings: its settings.
        build: the place of a function from the settings' values, by name, to a `Toolset`.
        commands: the place of its click group, `aiaml NAME …`; empty for none.
        checks: the place of a function from the environment to doctor's findings; empty for none.
        needs: modules that it needs and that are not installed with this package.
        install: what to give pip to install them, such as "aiaml-server[semantic]".
        hooks: for an event, the place of a function from a `HookInput` to a list of texts for the
            agent, data but for each `toolsets.requests.Request`. It must not import the SDK and has
            a second. It may raise anything.
    """

    name: str
    summary: str
    tools: tuple[str, ...]
    settings: tuple[Setting, ...]
    build: str
    commands: str = ""
    checks: str = ""
    needs: tuple[str, ...] = ()
    install: str = ""
    hooks: Mapping[str, str] = MappingProxyType({})

    def read_settings(self, environ: Mapping[str, str]) -> dict[str, Any]:
        """Return the settings' values in an environment, by name.

        Raises:
            InvalidSetting: one cannot be used.
        """
        return {setting.name: setting.value(environ) for setting in self.settings}


# --- helpers --------------------------------------------------------------------------------------


def lazy_attributes(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a package's `__getattr__`, which imports a public name when it is first used.

    Args:
        package: the package's name.
        modules: the module in it of each public name.
    """

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f".{modules[name]}", package), name)

    return get


def replace_surrogates(text: str) -> str:
    """Replace each half of a surrogate pair, which UTF-8 cannot encode, by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
