"""The seam: what is served, what is refused, and the contract that every toolset inherits."""

from __future__ import annotations

import ast
import errno
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client as SdkClient
from mcp.shared.exceptions import MCPError
from typing_extensions import TypedDict

import toy_toolset
from aiaml_server import toolsets
from aiaml_server.errors import (
    AiamlError,
    Busy,
    InvalidArguments,
    InvalidInput,
    InvalidSetting,
    MalformedFile,
    StoreError,
    ToolError,
    UnsafePath,
)
from aiaml_server.server.protocol import Server
from aiaml_server.settings import Setting, parse_bool, parse_directory
from aiaml_server.toolset import (
    INTERNAL_ERROR,
    Manifest,
    Tool,
    Toolset,
    error_answer,
)
from client import SECONDS, Client
from paths import TESTS
from printed import completed, inherited
from toolset_contract import INSTRUCTIONS_LIMIT, Call, Contract

TOY = (sys.executable, str(TESTS / "toy_toolset.py"))


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the toy among the toolsets."""
    monkeypatch.setitem(toolsets.OWN, "toy", "toy_toolset:MANIFEST")


class TestDefault(Contract):
    """The default toolset has a manifest as any other."""

    name = "aiaml"

    def environ(self, place: Path) -> dict[str, str]:
        """Keep memories in the test's directory."""
        return {"AIAML_MEMORY_DIR": str(place / "base"), "AIAML_ENABLE_SYNC": "false"}

    def story(self, call: Call) -> None:
        """Remember, think, recall."""
        given = {"agent": "claude", "user": "marco", "topics": ["tea"], "content": "Green."}
        stored = call("remember", **given)["memory_id"]
        assert stored in [each["id"] for each in call("think", keywords=["green"])]
        assert call("recall", memory_ids=[stored])[0]["content"] == "Green."


class TestToy(Contract):
    """A toolset that uses every part of the seam."""

    name = "toy"
    command = TOY

    def test_its_manifest_is_light(self) -> None:
        """It is not: it stands in one module with its tools."""

    def environ(self, place: Path) -> dict[str, str]:
        """Keep notes in the test's directory."""
        return {"AIAML_TOY_FILE": str(place / "notes" / "notes.json")}

    def story(self, call: Call) -> None:
        """Note, then read."""
        call("note", text="tea")
        assert "tea" in call("notes")["notes"]

    @pytest.mark.anyio
    async def test_resources_are_listed_read_and_missed(self, client: SdkClient) -> None:
        """One by its address, one by a part of it; what is not there is an error that says so."""
        await client.call_tool("note", {"text": "tea"})
        (listed,) = (await client.list_resources()).resources
        (template,) = (await client.list_resource_templates()).resource_templates
        assert (str(listed.uri), template.uri_template) == ("toy://notes", "toy://notes/{number}")
        for uri in ("toy://notes", "toy://notes/0"):
            (content,) = (await client.read_resource(uri)).contents
            assert content.text == "tea"  # type: ignore[union-attr]
        for uri in ("toy://notes/7", "toy://other", "toy://notes/0/1"):
            with pytest.raises(MCPError, match=r"(?i)no such resource (?!.*\{)|unknown resource"):
                await client.read_resource(uri)

    @pytest.mark.anyio
    async def test_prompts_are_listed_and_filled_in(self, client: SdkClient) -> None:
        """A missing argument and a missing prompt are named."""
        (listed,) = (await client.list_prompts()).prompts
        assert listed.arguments and listed.arguments[0].required
        (message,) = (await client.get_prompt("about", {"topic": "tea"})).messages
        assert message.content.text == "What of tea?"  # type: ignore[union-attr]
        with pytest.raises(MCPError):
            await client.get_prompt("about", {})
        with pytest.raises(MCPError):
            await client.get_prompt("other", {})

    @pytest.mark.anyio
    async def test_a_note_of_the_tool_comes_in_a_block_of_its_own(self, client: SdkClient) -> None:
        """Behind the value, which stays what it was."""
        result = await client.call_tool("note", {"text": "tea"})
        assert [each.text for each in result.content] == ['{"notes":["tea"]}', "It is noted."]  # type: ignore[union-attr]
        assert result.structured_content == {"notes": ["tea"]}

    @pytest.mark.anyio
    async def test_a_failure_reaches_the_toolset_as_the_error(self, client: SdkClient) -> None:
        """So that it answers with its own code; a crash tells nothing."""
        codes = {}
        for text in (" ", 5, "crash"):
            result = await client.call_tool("note", {"text": text})
            assert result.is_error and result.structured_content
            codes[text] = result.structured_content
        assert codes[" "]["error"] == "InvalidInput"
        assert codes[5] == {
            "error": "InvalidArguments",
            "message": "text: must be what to note, as text",
        }
        assert codes["crash"]["error"] == "InternalError"
        assert "private" not in str(codes)

    @pytest.mark.anyio
    async def test_what_it_opens_is_closed_again(self, tmp_path: Path) -> None:
        """Before the first call, after the last answer."""
        with self.toolset(tmp_path) as built:
            notes = built.tools[0].call.__self__  # type: ignore[attr-defined]
            async with SdkClient(Server([built])):
                assert notes.events == ["opened"]
            assert notes.events == ["opened", "closed"]

    @pytest.mark.anyio
    async def test_changes_are_announced_since_2026(self, tmp_path: Path) -> None:
        """The same, as the later protocol has it."""
        with self.toolset(tmp_path) as built:
            async with SdkClient(Server([built])) as client:
                with anyio.fail_after(20):
                    async with client.listen(resource_subscriptions=["toy://notes"]) as stream:
                        await client.call_tool("note", {"text": "tea"})
                        event = await anext(aiter(stream))
                assert "toy://notes" in str(event)


@pytest.mark.slow
def test_a_call_that_never_returns_does_not_keep_the_process(tmp_path: Path) -> None:
    """As on a network file system that hangs: neither after the end of input nor after a signal."""
    environ = {"AIAML_TOY_FILE": str(tmp_path / "notes" / "notes.json")}
    command = (*TOY, "--toolset", "toy")
    with (
        Client(tmp_path, command=command, environ=environ) as left,
        Client(tmp_path, command=command, environ=environ) as ended,
    ):
        for client in (left, ended):
            client.start("note", text="hang")
            client.call("notes")
        ended.process.terminate()
        assert left.close() == 1
        ended.process.wait(SECONDS)
    logs = [left.log()] if sys.platform == "win32" else [left.log(), ended.log()]
    assert all("A call has not returned; the process ends without it" in log for log in logs)


# --- what is served -------------------------------------------------------------------------------


def serve(*words: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the program with the toy in it, with nothing to read."""
    return completed([*TOY, *words], env={**inherited(), **(environ or {})})


def names(client: Client) -> list[str]:
    """Return the tools that a server lists."""
    listed = client.answer(client.request("tools/list"))["result"]["tools"]
    return [each["name"] for each in listed]


@pytest.mark.gate_cases(3)
@pytest.mark.parametrize(
    ("words", "environ", "served"),
    [
        ((), {}, ["remember", "think", "recall"]),
        (("--toolset", "toy"), {}, ["note", "notes"]),
        (("--toolset=toy",), {}, ["note", "notes"]),
        ((), {"AIAML_TOOLSETS": " Toy "}, ["note", "notes"]),
        (
            (),
            {"AIAML_TOOLSETS": "toy,aiaml,toy"},
            ["remember", "think", "recall", "note", "notes"],
        ),
        (("--toolset", "toy"), {"AIAML_TOOLSETS": "aiaml"}, ["note", "notes"]),
        (("--toolset", "toy"), {"AIAML_TOOLSETS": "nonsense"}, ["note", "notes"]),
        (
            ("--toolset", "toy", "--toolset", "aiaml"),
            {},
            ["remember", "think", "recall", "note", "notes"],
        ),
    ],
)
def test_exactly_the_named_toolsets_are_served(
    words: tuple[str, ...], environ: dict[str, str], served: list[str], tmp_path: Path
) -> None:
    """With nothing named, exactly the three tools; the option wins over the variable."""
    environ = {"AIAML_TOY_FILE": str(tmp_path / "notes.json"), **environ}
    with Client(tmp_path / "base", command=(*TOY, *words), environ=environ) as client:
        assert names(client) == served


@pytest.mark.gate_cases(2)
@pytest.mark.parametrize(
    ("words", "environ", "sentence"),
    [
        (("--toolset", "tpy"), {}, "--toolset names 'tpy', and there is no such toolset; did you"),
        (("--toolset", "toy", "list"), {}, "chooses what is served; run `aiaml toy list`"),
        (("serve",), {}, "No such command 'serve'."),
        (("--toolset", "x1"), {}, "there are aiaml, "),
        (("--toolset",), {}, "--toolset must name a toolset; there are aiaml, "),
        (("--toolset=toy", "list"), {}, "run `aiaml toy list`"),
        ((), {"AIAML_TOOLSETS": "tpy"}, "AIAML_TOOLSETS names 'tpy'"),
        ((), {"AIAML_TOOLSETS": "aiaml", "AIAML_HOOKS": "maybe"}, "AIAML_HOOKS"),
    ],
)
def test_what_cannot_be_served_is_one_sentence(
    words: tuple[str, ...], environ: dict[str, str], sentence: str
) -> None:
    """On standard error, with exit code 2; never a server that half works."""
    done = serve(*words, environ=environ)
    assert done.returncode == 2 and done.stdout == ""
    assert sentence in done.stderr and done.stderr.count("\n") == 1


def test_chosen_names_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the line that installs it."""
    manifest = toy_toolset.MANIFEST._replace(
        install="aiaml-server[toy]", needs=("there_is_no_such_module",)
    )
    monkeypatch.setattr(toy_toolset, "MANIFEST", manifest)
    with pytest.raises(InvalidSetting, match=r"pip install 'aiaml-server\[toy\]'"):
        toolsets.chosen(["toy"], {})


OF_THE_DEFAULT = {
    "bank", "database", "index", "labels", "memory", "postings", "scorer", "selection",
    "sqlite", "store", "sync", "tokens", "tools",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in toolsets.OWN if name != "toy"])
def test_a_toolset_served_alone_loads_nothing_of_the_default(name: str, tmp_path: Path) -> None:
    """Neither its bank, store, index and sync nor a module beneath them."""
    script = (
        "import sys; from aiaml_server.cli import main; main(sys.argv[1:]); "
        "print(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    command = (sys.executable, "-c", script, "--toolset", name)
    environ = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    with Client(tmp_path / "base", command=command, environ=environ, cwd=tmp_path) as client:
        assert names(client) == list(toolsets.manifest(name).tools)
        client.answer(client.start("no such tool"))  # what the copy of the first answers lacks
    ours = re.findall(r"^aiaml_server\.(\w+)$", client.log(), re.MULTILINE)
    assert "server" in ours
    assert bool(OF_THE_DEFAULT.intersection(ours)) == (name == toolsets.DEFAULT)


def test_no_two_toolsets_have_a_tool_of_the_same_name() -> None:
    """They can all be served together."""
    tools = [tool for name in toolsets.OWN for tool in toolsets.manifest(name).tools]
    assert len(set(tools)) == len(tools)


@pytest.mark.anyio
async def test_served_together_each_is_brief(tmp_path: Path) -> None:
    """The short forms of all toolsets stay below what hosts show."""
    built = toy_toolset.build({"AIAML_TOY_FILE": tmp_path / "notes.json"})
    values = {"AIAML_MEMORY_DIR": str(tmp_path / "base"), "AIAML_ENABLE_SYNC": "false"}
    manifest = toolsets.manifest("aiaml")
    default = resolve_name(manifest.build)(manifest.read_settings(values))
    async with SdkClient(Server([default, built])) as client:
        assert client.instructions == f"{default.brief}\n\n{built.brief}"
        assert len(client.instructions) < INSTRUCTIONS_LIMIT


def test_all_short_forms_together_fit_where_hosts_cut_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever serves every toolset has all of their instructions."""
    monkeypatch.chdir(tmp_path)
    values = {"AIAML_MEMORY_DIR": str(tmp_path / "base"), "AIAML_ENABLE_SYNC": "false"}
    manifests = [toolsets.manifest(name) for name in toolsets.OWN]
    briefs = [resolve_name(each.build)(each.read_settings(values)).brief for each in manifests]
    assert len("\n\n".join(briefs)) < INSTRUCTIONS_LIMIT


@pytest.mark.parametrize("name", [name for name in toolsets.OWN if name != "toy"])
def test_one_of_ours_is_chosen_without_a_look_at_the_others(name: str) -> None:
    """Neither are their manifests imported, nor is any package's metadata read."""
    script = (
        f"import sys; from aiaml_server import toolsets; toolsets.chosen([{name!r}], {{}})\n"
        "print(*(each.rpartition('.')[2] for each in sys.modules"
        " if each.startswith('aiaml_server.toolsets.') and each.count('.') == 2"
        " or each == 'importlib.metadata'))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    shared = {"owners", "warning"}
    assert {*done.stdout.decode().split()} - shared == {name}


# --- on the command line --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (None, "InternalError"),
        (InvalidInput("text", "must be shorter"), "InvalidInput"),
        (InvalidArguments({"text": "must be a text"}), "InvalidInput"),
        (Busy("try again"), "Busy"),
        (type("Full", (ToolError,), {})("move it away"), "Full"),
        (StoreError("write", "/x", OSError(errno.ENOSPC, "no")), "DiskError"),
        (UnsafePath("/x", "a directory"), "DiskError"),
        (MalformedFile(["line 1 is no number"]), "DiskError"),
    ],
)
def test_a_failure_has_a_code_and_a_sentence(error: AiamlError | None, code: str) -> None:
    """A full disk is not called a wrong value."""
    assert error_answer(error) == {"error": code, "message": str(error or INTERNAL_ERROR)}


@pytest.mark.parametrize(
    ("read", "given", "found"),
    [
        (parse_directory, "~/x", Path("~/x").expanduser()),
        (parse_directory, "x", "is 'x'; it must be an absolute path or begin with ~"),
        (parse_directory, "~nobody-of-that-name/x", "but there is no such home directory"),
        (parse_bool, "Yes", True),
        (parse_bool, "0", False),
        (parse_bool, "maybe", "is 'maybe'; it must be true or false"),
    ],
)
def test_a_setting_is_read_or_refused_by_name(
    read: Callable[[str, str], object], given: str, found: object
) -> None:
    """What cannot be used is no other exception."""
    variable = Setting("AIAML_X", "", read, "something")
    if isinstance(found, str):
        with pytest.raises(InvalidSetting, match=f"^AIAML_X .*{re.escape(found)}"):
            variable.value({"AIAML_X": given})
    else:
        assert variable.value({"AIAML_X": given}) == found


def test_a_toolset_has_its_commands_and_checks(tmp_path: Path) -> None:
    """`aiaml NAME …`, and a line of doctor's where it is served."""
    home = {"HOME": str(tmp_path), "AIAML_MEMORY_DIR": str(tmp_path / "base")}
    assert serve("toy", "say", environ=home).stdout == "said\n"
    assert "toy" in serve("--help", environ=home).stdout
    assert "--toolset" in serve("--toolset", "toy", "list", environ=home).stderr
    lines = serve(
        "doctor", "toolsets", environ={**home, "AIAML_TOOLSETS": "toy", "AIAML_TOY_FILE": "x"}
    )
    assert "notes in x" in lines.stdout and "note, notes" in lines.stdout
    wrong = serve("doctor", "settings", environ={**home, "AIAML_TOOLSETS": "toy"})
    assert "no such setting" not in wrong.stdout


@pytest.mark.parametrize("name", [name for name in toolsets.OWN if name != "toy"])
def test_every_toolset_states_all_that_people_need(name: str) -> None:
    """Commands and checks of its own, for all but the default, each where it says."""
    manifest: Manifest = toolsets.manifest(name)
    for place in (manifest.build, manifest.commands, manifest.checks):
        assert not place or callable(resolve_name(place)), place
    assert name == toolsets.DEFAULT or manifest.commands


@pytest.mark.parametrize("name", toolsets.OWN)
def test_a_manifest_s_module_holds_it_alone(name: str) -> None:
    """How its settings are read stands beside it."""
    source = Path(toolsets.__file__).with_name(name) / "__init__.py"
    for each in ast.walk(ast.parse(source.read_text("utf-8"))):
        assert not isinstance(each, ast.FunctionDef | ast.ClassDef | ast.Lambda), ast.unparse(each)


ECHOED: list[Any] = []


class Echoed(TypedDict, total=False):
    """What `echo` answers."""

    error: str
    message: str


def echo(needed: str, text: str | None = None, words: list[str] | None = None) -> Echoed:
    """Note what it is given."""
    ECHOED.append((needed, text, words))
    return {}


JSON_TEXTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
).map(json.dumps)


@given(st.lists(JSON_TEXTS, max_size=5))
def test_call_text_like_json(texts: list[str]) -> None:
    """What is sent for a text is what the tool gets, also where the text could be nothing."""
    rules = dict.fromkeys(("needed", "text", "words"), "so")
    made = Tool("echo", "Echo", "Notes.", echo, Echoed, rules, lambda error: {"error": str(error)})

    async def story() -> None:
        async with SdkClient(Server([Toolset("", "", [made])])) as client:
            for text in ("null", '{"a": 1}', *texts):
                await client.call_tool("echo", {"needed": text, "text": text})
                assert ECHOED[-1] == (text, text, None)
            await client.call_tool("echo", {"needed": "", "text": None, "words": ["a"]})
            assert ECHOED[-1] == ("", None, ["a"])

    anyio.run(story)
