"""What `aiaml install` writes, read by the programs that it is written for. Runs at night."""

from __future__ import annotations

import json
import re
import sys
from html import unescape
from pathlib import Path

import pytest

from aiaml_server.clients import HOSTS, Machine
from hosts import CLAUDE, CODEX, GEMINI, Person, host
from models import model
from waiting import wait_until

pytestmark = [pytest.mark.network, pytest.mark.slow]

AIAML = (sys.executable, "-m", "aiaml_server")
OURS = str(Path(sys.executable).with_name("aiaml-server"))
LISTINGS = {
    "claude-code": (CLAUDE, "mcp", "list"),
    "codex": (CODEX, "mcp", "list", "--json"),
    "gemini": (GEMINI, "mcp", "list"),
}
PROMPT = "when does the choir rehearse on thursdays?"
REHEARSAL = "The choir rehearses on Thursdays at seven in the old school."
ASKED = {
    "claude-code": (CLAUDE, "-p", PROMPT),
    "codex": (
        *(CODEX, "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"),
        PROMPT,
    ),
    "gemini": (GEMINI, "-p", PROMPT, "-m", "gemini-2.5-pro", "--yolo"),
}


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """Return somebody who trusts the directory and keeps memories in one with a name of theirs."""
    person = Person(tmp_path / "home")
    person.environ |= {
        "AIAML_MEMORY_DIR": str(tmp_path / "für später"),
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }
    return person


def listed(person: Person, name: str) -> str:
    """Return the servers that a program lists, as words without the signs of JSON."""
    package, *words = LISTINGS[name]
    output = ""
    for _ in range(3):  # Gemini CLI gives a server five seconds, also on a busy machine
        output = person.run(host(package), *words)
        if "Disconnected" not in output:
            break
    return " ".join(re.sub(r'"args":|["\[\],]', " ", output).split())


@pytest.mark.parametrize("name", LISTINGS)
def test_a_program_reads_its_entry(name: str, person: Person) -> None:
    """It lists the very command, until it is out again."""
    person.run(*AIAML, "install", name)
    there = listed(person, name)
    assert re.search(r"\baiaml\b", there) and OURS in there and "Disconnected" not in there
    person.run(*AIAML, "uninstall", name)
    assert OURS not in listed(person, name)


@pytest.mark.parametrize("name", ["claude-code", "gemini"])
def test_a_program_reads_the_entry_of_its_project(name: str, person: Person) -> None:
    """It lists the command in the project, where it may still ask the person."""
    person.run(*AIAML, "install", name, "--project")
    there = listed(person, name)
    assert re.search(r"\baiaml\b", there) and "uvx aiaml-server" in there, there
    person.run(*AIAML, "uninstall", name, "--project")
    assert "uvx aiaml-server" not in listed(person, name)


def prepare(name: str, person: Person, address: str) -> None:
    """Have a program ask the model at an address."""
    if name == "codex":
        (person.home / ".codex").mkdir()
        (person.home / ".codex" / "config.toml").write_text(
            f'model = "m"\nmodel_provider = "local"\n[model_providers.local]\nname = "local"\n'
            f'base_url = "{address}/v1"\nwire_api = "responses"\n'
        )
    elif name == "claude-code":
        person.environ |= {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "x"}
    else:
        (person.home / ".gemini").mkdir()
        auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
        (person.home / ".gemini" / "settings.json").write_text(json.dumps(auth))
        person.environ |= {"GOOGLE_GEMINI_BASE_URL": address, "GEMINI_API_KEY": "x"}


@pytest.mark.parametrize("name", ASKED)
def test_the_first_request_to_a_model_has_the_tools(name: str, person: Person) -> None:
    """In the first session after `aiaml install`, once the cached answers are there."""
    package, *words = ASKED[name]
    program = host(package)
    cache = person.home / ".cache" / "aiaml"
    with model() as (address, sent):
        prepare(name, person, address)
        person.run(*AIAML, "install", name)
        wait_until(lambda: list(cache.glob("handshake-*.json")))
        person.run(program, *words)
    first = json.dumps(sent[0])
    tools = set(re.findall(r"aiaml_+(remember|think|recall)\b", first))
    if '"mcp__aiaml"' in first:
        tools |= set(re.findall(r'"(remember|think|recall)"', first))
    assert tools == {"remember", "think", "recall"}, first[:3000]


def make_patient(name: str, home: Path) -> None:
    """Give hooks a minute: their time is for a machine with nothing else to do."""
    script = home / "hook.py"
    begin = "import aiaml_server.server.hooks.__main__ as hook\n"
    script.write_text(f"{begin}hook.SECONDS = hook.MORE_SECONDS = 60\nhook.main()\n", "utf-8")
    path = Path(Machine("linux", home, {}).expand(HOSTS[name].pattern))
    text = path.read_text("utf-8").replace("-I -m aiaml_server.server.hooks", str(script))
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", ASKED)
def test_a_model_is_shown_memories_by_hooks(name: str, person: Person) -> None:
    """What the prompt is about; without hooks nothing."""
    package, *words = ASKED[name]
    program = host(package)
    person.run(*AIAML, "remember", REHEARSAL, "-t", "choir")
    person.run(*AIAML, "search", "choir")  # which makes the index
    with model() as (address, sent):
        prepare(name, person, address)
        person.run(program, *words)
        assert sent and REHEARSAL not in json.dumps(sent)
        person.run(*AIAML, "install", name, "--hooks")
        make_patient(name, person.home)
        sent.clear()
        person.run(program, *words)
    shown = unescape(json.dumps(sent, ensure_ascii=False))  # Gemini escapes it, in a tag of its own
    assert "<memories>" in shown and REHEARSAL in shown, shown[-3000:]
