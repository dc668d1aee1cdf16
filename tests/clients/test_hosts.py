"""What `aiaml install` writes, read by the programs that it is written for."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from html import unescape
from pathlib import Path
from typing import NamedTuple

import pytest

from aiaml_server.toolsets.citations import Citation, Memories
from hosts import CLAUDE, CODEX, COPILOT, GEMINI, OPENCODE, Person, host
from machine import git
from models import model, using
from waiting import wait_until

AIAML = (sys.executable, "-m", "aiaml_server")


class Listing(NamedTuple):
    """How a program lists its servers.

    Attributes:
        package: the program, in its registry.
        words: what to type behind its name.
        starts: whether listing starts the servers; if not, it shows their variables.
    """

    package: str
    words: tuple[str, ...] = ("mcp", "list")
    starts: bool = True

    def of(self, person: Person) -> str:
        """Return what it lists, a line of words without the signs of JSON."""
        for _ in range(3):  # Gemini CLI gives a server five seconds, also on a busy machine
            said = person.run(host(self.package), *self.words)
            if "Disconnected" not in said:
                break
        return " ".join(re.sub(r'"args":|["\[\],]', " ", said).split())


LISTINGS = {
    "claude-code": Listing(CLAUDE),
    "codex": Listing(CODEX, ("mcp", "list", "--json"), starts=False),
    "gemini": Listing(GEMINI),
    "copilot": Listing(COPILOT, ("mcp", "list", "--json"), starts=False),
    "opencode": Listing(OPENCODE),
}
OURS = str(Path(sys.executable).with_name("aiaml-server"))


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """Return somebody who trusts the directory and keeps memories in one with a name of theirs."""
    person = Person(tmp_path / "home")
    person.environ |= {
        "AIAML_MEMORY_DIR": str(tmp_path / "für später"),
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }
    return person


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("name", LISTINGS)
def test_a_program_reads_its_entry(name: str, person: Person) -> None:
    """It lists the very command, which it starts or shows with its variables, until it is out."""
    listing = LISTINGS[name]
    person.run(*AIAML, "install", name)
    listed = listing.of(person)
    assert re.search(r"\baiaml\b", listed) and OURS in listed, listed
    assert ("onnected" if listing.starts else person.environ["AIAML_MEMORY_DIR"]) in listed
    assert "Disconnected" not in listed
    person.run(*AIAML, "uninstall", name)
    assert OURS not in listing.of(person)


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("name", ["claude-code", "gemini", "opencode"])
def test_a_program_reads_the_entry_of_its_project(name: str, person: Person) -> None:
    """It lists the command in the project, where it may still ask the person, until it is out."""
    listing = LISTINGS[name]
    person.run(*AIAML, "install", name, "--project")
    listed = listing.of(person)
    assert re.search(r"\baiaml\b", listed) and "uvx aiaml-server" in listed, listed
    person.run(*AIAML, "uninstall", name, "--project")
    assert "uvx aiaml-server" not in listing.of(person)


@pytest.mark.network
@pytest.mark.slow
def test_codex_reads_the_entry_of_a_project_that_is_trusted(person: Person) -> None:
    """Its own file stays as it is; without trust it reads nothing of the project."""
    project, own = person.home / "project", person.home / ".codex" / "config.toml"
    project.mkdir()
    own.parent.mkdir()
    listing = LISTINGS["codex"]
    person.run(*AIAML, "install", "codex", "--project", str(project))
    person.home = project  # where programs are started
    assert "aiaml-server" not in listing.of(person)
    trusted = f'[projects."{project}"]\ntrust_level = "trusted"\n'
    own.write_text(trusted, encoding="utf-8")
    listed = listing.of(person)
    assert re.search(r"\baiaml\b", listed) and "uvx aiaml-server" in listed, listed
    person.run(*AIAML, "uninstall", "codex", "--project")
    assert "aiaml-server" not in listing.of(person)
    assert own.read_text(encoding="utf-8") == trusted


# --- the first session ----------------------------------------------------------------------------

ASKED = {
    "codex": (CODEX, "exec", "--skip-git-repo-check", "hi"),
    "claude-code": (CLAUDE, "-p", "hi"),
    "gemini": (
        GEMINI,
        "-p",
        "hi",
        "-m",
        "gemini-2.5-pro",
        "--yolo",
    ),  # else it has no tools that ask
}


def prepared(name: str, person: Person, address: str) -> None:
    """Have a program ask the model at an address."""
    if name == "codex":
        (person.home / ".codex").mkdir()
        (person.home / ".codex" / "config.toml").write_text(
            f'model = "m"\nmodel_provider = "local"\n[model_providers.local]\nname = "local"\n'
            f'base_url = "{address}/v1"\nwire_api = "responses"\n'
        )
    elif name == "copilot":
        kind = {"TYPE": "openai", "WIRE_API": "responses", "BASE_URL": f"{address}/v1"}
        person.environ |= {f"COPILOT_PROVIDER_{key}": value for key, value in kind.items()}
        person.environ |= {"COPILOT_PROVIDER_API_KEY": "x", "COPILOT_MODEL": "m"}
        person.environ |= {"COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"}
    elif name == "opencode":
        place = person.home / ".config" / "opencode"
        place.mkdir(parents=True)
        options = {"baseURL": f"{address}/v1", "apiKey": "x"}
        local = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"m": {}}}
        config = {"provider": {"local": local}, "model": "local/m", "small_model": "local/m"}
        (place / "opencode.json").write_text(json.dumps(config))
    elif name == "claude-code":
        person.environ |= {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "x"}
    else:
        (person.home / ".gemini").mkdir()
        auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
        (person.home / ".gemini" / "settings.json").write_text(json.dumps(auth))
        person.environ |= {"GOOGLE_GEMINI_BASE_URL": address, "GEMINI_API_KEY": "x"}


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
def test_first_request_to_a_model_has_the_tools(name: str, person: Person) -> None:
    """In the first session after `aiaml install`, and in four more; Codex is not told to wait."""
    package, *words = ASKED[name]
    program = host(package)
    cache = person.home / ".cache" / "aiaml"
    with model() as (address, sent):
        prepared(name, person, address)
        person.run(*AIAML, "install", name)
        wait_until(lambda: [each.suffix for each in cache.glob("*")] == [""])
        for _ in range(5):
            sent.clear()
            person.run(program, *words)
            first = json.dumps(sent[0])
            named = re.findall(r"aiaml_+(remember|think|recall)\b", first)
            in_space = '"mcp__aiaml"' in first and re.findall(r'"(remember|think|recall)"', first)
            assert {*named, *(in_space or ())} == {"remember", "think", "recall"}, first[:3000]


# --- hooks ----------------------------------------------------------------------------------------

REHEARSAL = "The choir rehearses on Thursdays at seven in the old school."
PROMPT = "when does the choir rehearse on thursdays?"
TOLD = {
    "claude-code": (CLAUDE, "-p", PROMPT),
    "codex": (CODEX, "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", PROMPT),
    "gemini": (GEMINI, "-p", PROMPT, "-m", "gemini-2.5-pro"),
    "copilot": (COPILOT, "-p", PROMPT, "--allow-all-tools"),
    "opencode": (OPENCODE, "run", PROMPT),
}


def unhurried(place: Path, files: Iterable[Path]) -> None:
    """Give hooks half a minute: what they have is for a machine with nothing else to do."""
    script = place / "hook.py"
    begin = "import aiaml_server.server.hooks.__main__ as hook\n"
    script.write_text(f"{begin}hook.SECONDS = hook.MORE_SECONDS = 30\nhook.main()\n", "utf-8")
    for path in files:
        if path.suffix in (".json", ".js") and "hooks" in (text := path.read_text("utf-8")):
            for before in (" -m aiaml_server.server.hooks", '"-m", "aiaml_server.server.hooks"'):
                now = f" {script}" if before.startswith(" ") else json.dumps(str(script))
                text = text.replace(before, now)
            path.write_text(text, encoding="utf-8")


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("name", TOLD)
def test_model_is_shown_memories_by_hooks(name: str, person: Person) -> None:
    """At a start how many there are, at a prompt what it is about; without hooks neither."""
    package, *words = TOLD[name]
    program = host(package)
    person.run(*AIAML, "remember", REHEARSAL, "-t", "choir")
    person.run(*AIAML, "search", "choir")  # which makes the index
    with model() as (address, sent):
        prepared(name, person, address)
        person.run(program, *words)
        assert sent and REHEARSAL not in json.dumps(sent)
        person.run(*AIAML, "install", name, "--hooks")
        unhurried(person.home, person.home.rglob(".*/**/*"))
        sent.clear()
        person.run(program, *words)
    said = unescape(json.dumps(sent, ensure_ascii=False))  # Gemini puts them into a tag of its own
    assert "<memories>" in said and REHEARSAL in said and "AIAML remembers" in said, said[-3000:]


@pytest.mark.network
@pytest.mark.slow
def test_model_is_shown_citations_around_an_edit(person: Person) -> None:
    """Claude Code shows which memories cite the file, and behind the edit which hold no more."""
    program = host(CLAUDE)
    shop = person.home / "shop"
    shop.mkdir()
    git(shop, "init", "--quiet")
    prices = shop / "prices.py"
    prices.write_text("import money\n\nPRICES = money.in_cents(catalogue)\n", encoding="utf-8")
    saved = Memories(shop).save("Prices", "**Fact**: cents", [Citation("prices.py", 3)])
    edit = {"file_path": str(prices), "old_string": "in_cents", "new_string": "in_euros"}
    uses = [using("Read", {"file_path": str(prices)}), using("Edit", edit)]
    person.run(*AIAML, "install", "claude-code", "--hooks", "--toolset", "citations")
    unhurried(person.home, person.home.rglob(".*/**/*"))
    with model(uses) as (address, sent):
        prepared("claude-code", person, address)
        person.home = shop  # where it is started
        person.run(program, "-p", "hi", "--permission-mode", "acceptEdits")
    said = json.dumps(sent[-1])
    assert "in_euros" in prices.read_text("utf-8")
    assert f'\\"id\\": \\"{saved.id}' in said and f'\\"stale\\": \\"{saved.id}' in said


@pytest.mark.network
@pytest.mark.slow
def test_model_is_shown_memories_of_semantic(person: Person) -> None:
    """Claude Code shows what is known at a start, and takes the hooks out again."""
    program = host(CLAUDE)
    person.run(*AIAML, "semantic", "add", REHEARSAL)
    person.run(*AIAML, "semantic", "install-hooks")
    with model() as (address, sent):
        prepared("claude-code", person, address)
        person.run(program, "-p", PROMPT)
        assert REHEARSAL in json.dumps(sent), json.dumps(sent)[:3000]
        person.run(*AIAML, "semantic", "uninstall-hooks")
        sent.clear()
        person.run(program, "-p", PROMPT)
    assert sent and REHEARSAL not in json.dumps(sent)
