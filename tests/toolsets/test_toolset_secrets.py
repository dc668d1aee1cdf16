"""What toolsets put into repositories: a secret is told by its kind, and never its value."""

from __future__ import annotations

import json
import random
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

from aiaml_server import toolsets
from aiaml_server.toolsets.citations import Citation, MemoryService
from aiaml_server.toolsets.compartments import Compartments
from aiaml_server.toolsets.sessions.service import AgentMemory
from aiaml_server.toolsets.warning import secret_warning
from command_line import run
from machine import git
from secrets_corpus import ALNUM, of

TOKEN = f"ghp_{of(ALNUM, 36)(random.Random(27))}"
VALUE = of(ALNUM, 32)(random.Random(28))
KINDS = {
    f"the token is {TOKEN}": "a GitHub token",
    f"**Fact**: x\n\nMYAPP_SECRET={VALUE}": "a password or key",
}
DAY = "2026-11-24"

pytestmark = pytest.mark.usefixtures("nobodys_configuration")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A git repository with a file of code."""
    path = tmp_path / "shop"
    path.mkdir()
    git(path, "init", "--quiet", "--initial-branch=main")
    (path / "prices.py").write_text("def price(order):\n    return sum(order)  # in cents\n")
    return path


def built(name: str, **values: str) -> dict[str, Any]:
    """Return a toolset's tools by their names, as an environment sets it up."""
    manifest = toolsets.manifest(name)
    return {
        each.name: each
        for each in resolve_name(manifest.build)(manifest.read_settings(values)).tools
    }


@pytest.fixture
def stores(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what stores a text with a toolset, and answers what its tool does."""
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(tmp_path))
    (repo / ".memory").mkdir()

    def store(toolset: str, text: str, check: str = "") -> dict[str, Any]:
        values = {"AIAML_CHECK_SECRETS": check}
        if toolset == "sessions":
            AgentMemory(str(repo), "ada").start_session(DAY)
            tool = built(toolset, **values)["append_entry"].call
            who = {"agent_name": "ada", "repo_root": str(repo), "date": DAY}
            return dict(tool(**who, section="Decisions", content=text))
        if toolset == "citations":
            tool = built(toolset, AIAML_CITATIONS_REPO=str(repo), **values)["memory_save"].call
            return dict(tool(subject=f"About {len(text)} characters", content=text))
        if toolset == "compartments":
            file = str(tmp_path / "compartments.json")
            manifest = toolsets.manifest(toolset)
            made = resolve_name(manifest.build)(
                manifest.read_settings({"AIAML_COMPARTMENTS_FILE": file, **values})
            )
            with made.lifespan(lambda _: None):
                (tool,) = (each.call for each in made.tools if each.name == "save_memory")
                return dict(tool(compartment="session", content=text).value)
        manifest = toolsets.manifest(toolset)
        made = resolve_name(manifest.build)(
            manifest.read_settings({"AIAML_SEMANTIC_PROJECT": str(repo), **values})
        )
        with made.lifespan(lambda _: None):
            (tool,) = (each.call for each in made.tools if each.name == "store_memory")
            return dict(tool(content=text))

    return store


ADVICE = {
    "sessions": "others can read what is stored here, and git keeps it for good",
    "citations": "others can read what is stored here, and git keeps it for good",
    "compartments": "the file keeps it until it is cleared",
    "semantic": "`aiaml semantic forget ID` deletes it for good",
}
"""What is true of the place where each toolset stores."""
OURS = tuple(ADVICE)


@pytest.mark.gate_cases(4)
@pytest.mark.parametrize("toolset", OURS)
@pytest.mark.parametrize("text", KINDS, ids=KINDS.values())
def test_toolset_secret_warns(stores: Any, toolset: str, text: str) -> None:
    """With its kind, and never the value; it is stored all the same."""
    answer = stores(toolset, text)
    (said,) = (each for each in answer["warnings"] if "this seems to hold" in each)
    assert KINDS[text] in said
    assert [ADVICE[toolset]] == [each for each in set(ADVICE.values()) if each in said]
    assert TOKEN not in json.dumps(answer["warnings"])
    assert VALUE not in json.dumps(answer["warnings"])
    assert "error" not in answer


@pytest.mark.parametrize("toolset", OURS)
def test_toolset_secret_unasked(stores: Any, toolset: str) -> None:
    """Nothing is said of a text without one, nor where the check is switched off."""
    plain = stores(toolset, "The token is in the safe; the API key is rotated in May.")
    off = stores(toolset, f"the token is {TOKEN}", "false")
    for answer in (plain, off):
        assert "seems to hold" not in json.dumps(answer)


@pytest.mark.parametrize("confirm", [False, True])
def test_semantic_import_warns(repo: Path, monkeypatch: pytest.MonkeyPatch, confirm: bool) -> None:
    """Before a file's text is stored, and then; switched off, it does not."""
    monkeypatch.setenv("HOME", str(repo.parent))
    (repo / "NOTES.md").write_text(f"# Router\n\nMot de passe : {VALUE}\n", "utf-8")
    for check in ("true", "false"):
        manifest = toolsets.manifest("semantic")
        values = {"AIAML_SEMANTIC_PROJECT": str(repo), "AIAML_CHECK_SECRETS": check}
        made = resolve_name(manifest.build)(manifest.read_settings(values))
        with made.lifespan(lambda _: None):
            (tool,) = (each.call for each in made.tools if each.name == "import_markdown_memories")
            answer = tool(file_paths=["NOTES.md"], confirm_import=confirm)
        told = json.dumps(answer.get("warnings", []))
        assert ("seems to hold a password" in told) is (check == "true")
        assert VALUE not in told


def test_compartments_function_warns(tmp_path: Path) -> None:
    """Also in a framework of one's own; of what stands beside the content, too."""
    with Compartments(tmp_path / "m.json") as memory:
        save = memory.functions()[0].call
        saved = save(compartment="run", content="the key", metadata={"api_key": VALUE})
        assert "a password or key" in saved["warnings"][0]
        assert "it is gone when the run ends" in saved["warnings"][0]
        assert "warnings" not in save(compartment="run", content="the key", metadata={"a": "safe"})
    with Compartments(tmp_path / "m.json", check_secrets=False) as memory:
        assert "warnings" not in memory.functions()[0].call(compartment="run", content=TOKEN)


# --- check, verify, doctor ------------------------------------------------------------------------


def test_sessions_check_reports_a_secret(stores: Any, repo: Path) -> None:
    """File, line and kind, as a problem; unless it is switched off."""
    stores("sessions", f"the token is {TOKEN}")
    log = repo / ".github" / "agent-memory" / "ada" / "logs" / f"{DAY}.md"
    lines = log.read_text("utf-8").splitlines()
    (line,) = (number for number, each in enumerate(lines, 1) if TOKEN in each)
    done = run("sessions", "check", str(repo))
    assert done.returncode == 1
    assert f"{DAY}.md:{line}: this seems to hold a GitHub token" in done.stdout
    assert TOKEN not in done.stdout + done.stderr
    assert run("sessions", "check", str(repo), AIAML_CHECK_SECRETS="false").returncode == 0


def test_citations_verify_reports_a_secret(stores: Any, repo: Path) -> None:
    """In words, in JSON and as GitHub shows it; a memory without one is in order."""
    stores("citations", f"the token is {TOKEN}")
    MemoryService(repo).save("Prices", "**Fact**: x", [Citation("prices.py", 2)])
    where = ("citations", "verify", "--repo", str(repo))
    plain, as_json = run(*where), run(*where, "--json")
    on_github = run(*where, "--github")
    assert {each.returncode for each in (plain, as_json, on_github)} == {1}
    assert plain.stdout.count("seems to hold a GitHub token") == 1
    (found,) = (each for each in json.loads(as_json.stdout)["memories"] if each["problem"])
    assert f"file={found['path']}::seems to hold" in on_github.stdout
    assert TOKEN not in plain.stdout + on_github.stdout
    assert run(*where, AIAML_CHECK_SECRETS="false").returncode == 0


def test_a_secret_in_copied_code_is_reported(repo: Path) -> None:
    """When a memory is saved and when it is verified, whatever quotes the code and YAML have."""
    lines = (f"a = '{TOKEN}'", f'password = "{VALUE}"', f"API_SECRET={VALUE}")
    (repo / "keys.py").write_text("\n\n1\n".join(("", *lines, "")), "utf-8")
    for number in (3, 4, 6, 7, 9, 10):  # the line itself, and the lines around it
        memories = MemoryService(repo)
        saved = memories.save("Keys", "**Fact**: x", [Citation("keys.py", number)], id="mem-keys")
        assert "seems to hold a" in "".join(saved["warnings"]), number
        assert "seems to hold a" in memories.verify("mem-keys")["problem"], number


def test_semantic_doctor_reports_a_secret(stores: Any, repo: Path) -> None:
    """Which kind, and where."""
    stores("semantic", f"the token is {TOKEN}")
    environ = {"AIAML_SEMANTIC_PROJECT": str(repo)}
    checks = resolve_name(toolsets.manifest("semantic").checks)

    def said(**more: str) -> str:
        return "\n".join(each.found for each in checks({**environ, **more}))

    assert "seems to hold a GitHub token" in said()
    assert TOKEN not in said()
    assert "a GitHub token" not in said(AIAML_CHECK_SECRETS="false")
    assert "problem" not in said(AIAML_CHECK_SECRETS="false")


# --- every text that is stored --------------------------------------------------------------------


def test_secret_in_texts_beside_each_other() -> None:
    """A single word behind a name is looked at as its value; a sentence is not, nor a word."""
    for name in ("password", "API key", "the password of the NAS", "GitHub token"):
        assert secret_warning(name, VALUE, check=True), name
        assert not secret_warning(name, f"is kept under {VALUE}", check=True), name
    for texts in (("password", "correcthorse"), ("prices", VALUE), (VALUE, "password")):
        assert not secret_warning(*texts, check=True), texts


@pytest.mark.parametrize(
    ("toolset", "name", "given"),
    [
        ("sessions", "start_session", {"agent_name": TOKEN}),
        ("sessions", "append_entry", {"agent_name": TOKEN, "section": "Decisions", "content": "x"}),
        ("citations", "memory_save", {"subject": TOKEN, "content": "x"}),
        ("citations", "memory_save", {"subject": "x", "content": "y", "tags": [TOKEN]}),
        ("citations", "memory_save", {"subject": "router password", "content": VALUE}),
        ("semantic", "store_memory", {"content": "x", "tags": [TOKEN.lower(), TOKEN]}),
        ("semantic", "store_memory", {"content": "x", "category": TOKEN}),
        ("compartments", "save_memory", {"compartment": "run", "content": "x", "tags": [TOKEN]}),
        ("compartments", "save_memory", {"compartment": "run", "content": "x", "category": TOKEN}),
        ("compartments", "save_memory",
         {"compartment": "run", "content": "x", "metadata": {TOKEN: "x"}}),
    ],
)  # fmt: skip
def test_toolset_secret_in_any_text(
    repo: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    toolset: str,
    name: str,
    given: dict[str, Any],
) -> None:
    """Whichever text that is stored it stands in; a name and its value may be apart."""
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(tmp_path))
    (repo / ".memory").mkdir()
    values = {
        "AIAML_CITATIONS_REPO": str(repo),
        "AIAML_COMPARTMENTS_FILE": str(tmp_path / "compartments.json"),
        "AIAML_SEMANTIC_PROJECT": str(repo),
    }
    if toolset == "sessions":
        given = {**given, "repo_root": str(repo), "date": DAY}
        AgentMemory(str(repo), given["agent_name"]).start_session(DAY)
    manifest = toolsets.manifest(toolset)
    made = resolve_name(manifest.build)(manifest.read_settings(values))
    with made.lifespan(lambda _: None):
        (tool,) = (each.call for each in made.tools if each.name == name)
        answer = tool(**given)
    warnings = dict(getattr(answer, "value", answer)).get("warnings", [])
    assert any("this seems to hold" in each for each in warnings)
    assert TOKEN not in json.dumps(warnings)
    assert VALUE not in json.dumps(warnings)


@pytest.mark.parametrize("check", ["true", "false"])
def test_secret_verbs_follow_the_setting(repo: Path, tmp_path: Path, check: str) -> None:
    """`AIAML_CHECK_SECRETS` means the same to the verbs that store as to the tools."""
    text = f"the token is {TOKEN}"
    files = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    added = run("semantic", "add", text, AIAML_CHECK_SECRETS=check, **files)
    saved = run("citations", "save", "--repo", str(repo), "Token", "--content", text,
                AIAML_CHECK_SECRETS=check, **files)  # fmt: skip
    for done in (added, saved):
        assert done.returncode == 0, done.stderr
        assert ("seems to hold a GitHub token" in done.stdout + done.stderr) is (check == "true")
