"""`aiaml semantic …` as a person uses it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from aiaml_server.toolsets.semantic.failures import Busy
from aiaml_server.toolsets.semantic.memories import Memories
from client import PYTHON, SERVER
from model_hub import Hub, refusing, serving
from printed import inherited
from semantic_model import NAME, Ready, Real, model_folder, needs_fastembed

PROGRAM = str(Path(PYTHON).with_name("aiaml.exe" if sys.platform == "win32" else "aiaml"))
BGE = "BAAI/bge-small-en-v1.5"


class Person:
    """Somebody with a home, a project in it, and no network."""

    def __init__(self, home: Path, hub: str) -> None:
        """Make both."""
        self.home, self.project, self.hub = home, home / "shop", hub
        (self.project / ".memory").mkdir(parents=True)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a verb."""
        more = {"HOME": str(self.home), "USERPROFILE": str(self.home), "HF_ENDPOINT": self.hub,
                "LC_ALL": "C.UTF-8", "COLUMNS": "80"}  # fmt: skip
        return subprocess.Popen(
            [PROGRAM, "semantic", *words], cwd=self.project, env={**inherited("HF_"), **more},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, encoding="utf-8",
        )  # fmt: skip

    def runs(self, *words: str, code: int = 0) -> str:
        """Run a verb; return what it prints and says."""
        with self.start(*words) as process:
            said, noted = process.communicate(timeout=120)
        assert process.returncode == code, (said, noted)
        return said + noted

    def asks(self, *words: str, code: int = 0) -> Any:
        """Run a verb; return its JSON."""
        with self.start(*words, "--json") as process:
            said, noted = process.communicate(timeout=120)
        assert process.returncode == code, (said, noted)
        return json.loads(said)

    def memories(self, model: Any = None) -> Memories:
        """Return the memories of the project and of the home."""
        return Memories(self.home / ".memory", self.project, model)

    def stores(self, *contents: str, model: Any = None) -> None:
        """Store memories."""
        memories = self.memories(model)
        for content in contents:
            memories.store(content)
        memories.close()


@pytest.fixture
def hub() -> Any:
    """Serve the tests' model as the one of the default settings."""
    files = {path.name: path.read_bytes() for path in model_folder().iterdir()}
    files["model_optimized.onnx"] = files.pop("model.onnx")
    with serving(files) as hub:
        yield hub


@pytest.fixture
def person(tmp_path: Path) -> Any:
    """Return somebody whom no hub answers."""
    with refusing() as address:
        yield Person(tmp_path, address)


# --- the model ------------------------------------------------------------------------------------


@pytest.mark.network
@needs_fastembed
def test_status_makes_and_fetches_nothing(person: Person) -> None:
    """It says what there is, and what would bring the rest."""
    said = person.runs("status")
    assert "0 memories" in said and f"the model {BGE} (67 MB) is not on this machine" in said
    assert "`aiaml semantic fetch`" in said
    state = person.asks("status")
    assert state["model"]["state"] == "missing" and state["model"]["bytes_of"] == 67_000_000
    assert [each["scope"] for each in state["databases"]] == ["project", "global"]
    assert not (person.home / ".memory").exists()
    assert not (person.project / ".memory" / "db").exists()


@pytest.mark.network
@pytest.mark.slow
def test_a_model_is_fetched_used_and_memories_get_vectors(person: Person, hub: Hub) -> None:
    """Afterwards no hub is asked any more."""
    person.stores("Prices are kept in cents.", "The dog is called Rex.")
    nobody, person.hub = person.hub, hub.address
    assert "is ready" in person.runs("fetch")
    person.hub = nobody
    assert person.asks("fetch")["state"] == "ready"
    assert person.asks("status")["model"]["state"] == "here"
    assert "2 memories without a vector yet" in person.runs("status")
    assert person.asks("migrate") == {"embedded": 2, "left": 0, "model": BGE}
    assert person.asks("migrate")["embedded"] == 0
    found = person.asks("search", "what is the puppy's name", "--limit", "1")
    assert found["meaning"] and found["memories"][0]["content"] == "The dog is called Rex."


@pytest.mark.network
@needs_fastembed
def test_a_fetch_that_fails_is_said_in_a_sentence(person: Person) -> None:
    """With the reason, and the exit code of what another has refused."""
    said = person.runs("fetch", code=1)
    assert said.startswith(f"aiaml: the model {BGE} cannot be fetched: connection refused; ")
    assert "HF_ENDPOINT" in said and "`aiaml semantic use DIRECTORY`" in said
    assert "the last try failed: " in person.runs("status") and "ConnectError" in person.runs(
        "status"
    )


@pytest.mark.network
@pytest.mark.slow
@needs_fastembed
@pytest.mark.parametrize("section", ["embedding", "retrieval"])
def test_a_name_that_no_model_has_is_never_fetched(person: Person, section: str) -> None:
    """`status`, `doctor` and a search say what is wrong with it, and what would be right."""
    person.stores("A fact.")
    wrong = {"embedding": {"model": "BAAI/bge-smal-en-v1.5"},
             "retrieval": {"reranker": "Xenova/ms-marco-MiniLM-L-6"}}  # fmt: skip
    right = {"embedding": BGE, "retrieval": "Xenova/ms-marco-MiniLM-L-6-v2"}
    (person.home / ".memory").mkdir()
    settings = json.dumps({section: wrong[section]})
    (person.home / ".memory" / "config.json").write_text(settings, encoding="utf-8")
    for words, code in ((("status",), 0), (("doctor",), 1), (("search", "fact"), 0)):
        said = " ".join(person.runs(*words, code=code).split())
        (name,) = wrong[section].values()
        assert f"is {name}, which fastembed does not know" in said, words
        assert f"did you mean {right[section]}?" in said
        assert f"{name} is being" not in said and f"{name} is not on this machine" not in said


@pytest.mark.network
@pytest.mark.slow
@needs_fastembed
def test_a_model_that_could_not_be_loaded_is_no_model(person: Person) -> None:
    """Its files are there: once a search has met that, `status` and `doctor` try it, too."""
    person.stores("A fact.")
    folder = person.home / "damaged"
    shutil.copytree(model_folder(), folder)
    whole = (folder / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(whole[:1000])
    (person.home / ".memory").mkdir()
    named = {"embedding": {"model": NAME, "path": str(folder)}}
    (person.home / ".memory" / "config.json").write_text(json.dumps(named), encoding="utf-8")
    for verb, code in (("search", 0), ("status", 0), ("doctor", 1)):
        said = person.runs(verb, *(["fact"] if verb == "search" else []), code=code)
        assert "cannot be loaded" in said, verb
    (folder / "model.onnx").write_bytes(whole)
    assert person.asks("status")["model"]["state"] == "here"


@pytest.mark.network
@pytest.mark.slow
@needs_fastembed
def test_a_search_fetches_no_reranker(person: Person) -> None:
    """It would end with the process; `fetch` does, and `status` and `doctor` say how that ended."""
    person.stores("A fact.")
    (person.home / ".memory").mkdir()
    named = {"retrieval": {"reranker": "Xenova/ms-marco-MiniLM-L-6-v2"}}
    (person.home / ".memory" / "config.json").write_text(json.dumps(named), encoding="utf-8")
    said = person.runs("search", "fact")
    assert "not reranked: the model Xenova/ms-marco-MiniLM-L-6-v2 is not on this machine" in said
    assert not (person.home / ".memory" / "logs").exists()
    person.runs("fetch", code=1)
    for verb, code in (("status", 0), ("doctor", 1)):
        assert person.runs(verb, code=code).count("the last try failed: ") == 2


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no Ctrl-C for a process there")
def test_ctrl_c_loses_nothing_of_what_has_come(person: Person, hub: Hub) -> None:
    """The next try asks for the rest."""
    person.hub = hub.address
    hub.go_on.clear()
    with person.start("fetch") as process:
        assert hub.half.wait(60)
        while person.asks("status")["model"]["bytes"] < 10_000_000:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    hub.go_on.set()
    person.runs("fetch")
    assert hub.sent < 1.6 * sum(map(len, hub.files.values()))


@pytest.mark.network
@pytest.mark.slow
@needs_fastembed
def test_a_directory_is_used_once_it_was_tried(person: Person) -> None:
    """What is no model changes no setting."""
    empty = person.home / "empty"
    empty.mkdir()
    said = person.runs("use", str(empty), code=1)
    assert f"the folder {empty} has no tokenizer.json" in said
    assert not (person.home / ".memory").exists()
    assert "did you mean" in person.runs("use", "BAAI/bge-smal-en-v1.5", code=2)
    values = person.asks("use", str(model_folder()), "--name", NAME)
    assert values == {"model": NAME, "path": str(model_folder()), "dimension": 384}
    config = json.loads((person.home / ".memory" / "config.json").read_text(encoding="utf-8"))
    assert config == {"embedding": values}
    assert person.asks("status")["model"]["state"] == "here"
    (person.home / "mini").mkdir()
    shutil.copytree(model_folder(), person.home / "mini" / "model")
    assert person.asks("use", str(person.home / "mini" / "model"))["model"] == "mini/model"
    assert person.asks("use", BGE) == {"model": BGE, "path": "", "dimension": 384}
    assert person.asks("status")["model"]["state"] == "missing"


@pytest.mark.network
@pytest.mark.slow
@needs_fastembed
def test_a_migration_goes_from_one_model_to_the_next(person: Person) -> None:
    """All memories get new vectors, and those that have them already do not."""

    class Older(Real):
        version = "older"

    person.stores(*(f"Fact {number}." for number in range(5)), model=Ready(Older()))
    person.runs("use", str(model_folder()), "--name", NAME)
    assert person.asks("migrate")["embedded"] == 5
    assert person.asks("migrate")["embedded"] == 0


@pytest.mark.network
@needs_fastembed
def test_without_a_model_nothing_is_migrated(person: Person) -> None:
    """The sentence says why."""
    person.stores("A fact.")
    assert "connection refused" in person.runs("migrate", code=1)


# --- memories -------------------------------------------------------------------------------------


@pytest.mark.network
@pytest.mark.slow
@needs_fastembed
def test_memories_are_found_listed_shown_and_forgotten(person: Person) -> None:
    """By words while there is no model, which is said."""
    person.stores("Prices are kept in cents.", "The dog is called \x1b[31mRex.")
    said = person.runs("search", "prices")
    assert "Prices are kept in cents." in said and "is not on this machine" in said
    assert person.asks("search", "prices")["meaning"] is False
    assert person.runs("search", "unheard", code=1).startswith("words only")
    assert person.runs("search", "unheard", code=1).endswith("Nothing was found.\n")
    assert person.runs("list", "--tag", "unheard", code=1) == "Nothing was found.\n"
    listed = person.runs("list")
    assert "‹U+001B›[31mRex" in listed and "\x1b" not in listed
    assert [each["id"] for each in person.asks("list")["memories"]] == ["project:2", "project:1"]
    assert "Prices are kept in cents." in person.runs("show", "project:1")
    assert person.asks("show", "project:1")["priority"] == "NORMAL"
    assert "there is no terminal to ask on" in person.runs("forget", "project:1", code=2)
    assert person.asks("forget", "project:1", "--yes") == {"forgotten": ["project:1"]}
    person.runs("show", "project:1", code=1)
    person.runs("show", "nonsense", code=2)
    assert person.asks("list")["total"] == 1


@pytest.mark.network
def test_a_merge_is_undone(person: Person) -> None:
    """And one that was not made is said not to be there."""
    person.stores("Prices are in cents.", "Amounts are in cents.")
    assert "is left to be undone" in person.runs("undo", code=1)
    memories = person.memories()
    memories.merge(["project:1", "project:2"])
    memories.close()
    assert person.asks("list")["total"] == 1
    assert "2 memories as before" in person.runs("undo")
    assert person.asks("list")["total"] == 2


@pytest.mark.network
@pytest.mark.slow
def test_changes_are_listed_undone_and_forgotten(person: Person) -> None:
    """What a person adds and edits, too; a damaged or deleted one can be forgotten."""
    added = person.asks("add", "Prices are in cents.", "--tag", "billing", "--priority", "HIGH")
    name = added["memory"]["id"]
    assert (added["memory"]["tags"], added["memory"]["priority"]) == (["billing"], "HIGH")
    again = person.asks("add", "prices are in CENTS.")
    assert any(f"there already, as {name}" in each for each in again["warnings"])
    edited = person.asks("edit", name, "--content", "Prices are in euros.")
    assert person.asks("history", name)[0]["was"]["content"] == "prices are in CENTS."
    redo = person.asks("undo", edited["undo"])["undo"]
    assert f"`aiaml semantic undo {redo}` brings" not in person.runs("undo", redo)
    assert person.runs("undo").count("brings back what that took away") == 1
    assert person.asks("show", name)["content"] == "prices are in CENTS."
    assert "must be an id such as project#5" in person.runs("undo", "5", code=2)
    person.asks("edit", name, "--content", "Prices are in dollars.")
    other = person.asks("add", "Tabs, never blanks.")["memory"]["id"]
    person.asks("edit", other, "--priority", "HIGH")
    assert f"{name}" in person.runs("undo", name)
    assert person.asks("show", name)["content"] == "prices are in CENTS."
    memories = person.memories()
    memories.delete(name)
    memories.close()
    assert "delete" in person.runs("history")
    assert f"forgotten: {name}" in person.runs("forget", name, "--yes")
    assert "no memory" in person.runs("forget", name, "--yes", code=1)
    person.runs("forget", other, "--yes")
    assert "Nothing was changed" in person.runs("history", code=1)


@pytest.mark.network
@pytest.mark.slow
def test_markdown_is_shown_then_imported_once(person: Person) -> None:
    """Any file that a person names, too."""
    (person.project / "NOTES.md").write_text("# Shop\n\n- VAT is 20 %\n- Tabs\n", encoding="utf-8")
    shown = person.runs("import", "--dry-run")
    assert "NOTES.md:3" in shown and "Shop: VAT is 20 %" in shown
    assert "2 memories would be imported" in shown
    assert len(person.asks("import", "--dry-run")["candidates"]) == 2
    assert "there is no terminal to ask on" in person.runs("import", code=2)
    assert person.asks("list")["total"] == 0
    assert "2 memories imported" in person.runs("import", "--yes")
    assert "0 memories imported, 2 were there already" in person.runs("import", "--yes", code=1)
    (person.project / "NOTES.md").unlink()
    assert "There is no file to import" in person.runs("import", "--yes", code=1)
    other = person.home / "other.md"
    other.write_text("Elsewhere.\n", encoding="utf-8")
    assert person.asks("import", str(other))["imported"] == ["project:3"]
    assert person.asks("show", "project:3")["path"] == str(other)
    assert "none.md is not there" in person.runs("import", str(person.home / "none.md"), code=2)


@pytest.mark.network
@pytest.mark.gate_cases(2)
@pytest.mark.parametrize("verb", ["status", "list", "migrate", "search x", "undo", "fetch"])
def test_wrong_settings_are_named(person: Person, verb: str) -> None:
    """By every verb, in one sentence."""
    (person.home / ".memory").mkdir()
    path = person.home / ".memory" / "config.json"
    path.write_text('{"embedding": {"modell": "x"}}', encoding="utf-8")
    said = person.runs(*verb.split(), code=2)
    assert "embedding.modell is no known key; did you mean embedding.model?" in said
    assert len(said.splitlines()) == 1


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("merged", [True, False])
def test_the_demo_follows_the_settings(person: Person, merged: bool) -> None:
    """With the model that they name; a wrong one is named."""
    (person.home / ".memory").mkdir()
    path = person.home / ".memory" / "config.json"
    embedding = {"model": NAME, "path": str(model_folder())}
    settings = {"embedding": embedding, "deduplication": {"auto_check": merged}}
    for text, code, said in (
        (json.dumps(settings), 0, f"Found by meaning ({NAME}) and words."),
        ('{"embeding": {}}', 3, "embeding is no known key; did you mean embedding?"),
    ):
        path.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [*SERVER, "--toolset", "semantic", "demo"], text=True, encoding="utf-8",
            env={**os.environ, **dict.fromkeys(("HOME", "USERPROFILE"), str(person.home))},
            capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == code and said in done.stdout + done.stderr, done
        assert code or ("nothing was added" if merged else "it was added") in done.stdout


@pytest.mark.network
@pytest.mark.slow
def test_one_that_is_damaged_does_not_keep_the_other_from_its_vectors(person: Person) -> None:
    """It is named, and the exit code says that something was refused."""
    memories = person.memories()
    memories.store("Of the person.", scope="global")
    memories.close()
    (person.project / ".memory" / "db").write_bytes(b"no database " * 1000)
    person.runs("use", str(model_folder()), "--name", NAME)
    said = person.runs("migrate", code=1)
    assert f"1 memory got a vector of {NAME}" in said and "without the project memories" in said


@pytest.mark.network
@pytest.mark.skipif(sys.platform == "win32", reason="there is no Ctrl-C for a process there")
def test_a_long_import_shows_what_comes_first(person: Person) -> None:
    """And how much more there is, and is passed over; as JSON, all is there."""
    notes = "\n".join(f"- no {number}" for number in range(1_050))
    (person.project / "NOTES.md").write_text(notes, encoding="utf-8")
    for number in range(25):
        (person.project / f"ADR-{number}.md").write_text("", encoding="utf-8")
    shown = person.runs("import", "--dry-run")
    assert "no 19\n" in shown and "no 20\n" not in shown
    assert "and 1,030 more" in shown and "and 5 more are passed over" in shown
    assert "1,050 memories would be imported" in shown
    assert len(person.asks("import", "--dry-run")["candidates"]) == 1_050


@pytest.mark.network
def test_an_import_that_is_broken_off_says_what_stays(person: Person) -> None:
    """And the next run imports the rest."""
    notes = "\n".join(f"- no {number}" for number in range(5_500))
    (person.project / "NOTES.md").write_text(notes, encoding="utf-8")
    memories = person.memories()
    with person.start("import", "--yes") as process:
        stored = 0
        while process.poll() is None and not stored:
            time.sleep(0.01)
            with suppress(Busy):  # that is said, and no more
                stored = memories.list().total
        process.send_signal(signal.SIGINT)
        _, noted = process.communicate(timeout=60)
    assert process.returncode == 130 and "what was imported stays" in noted
    assert 0 < memories.list().total < 5_500
    (person.project / "NOTES.md").write_text("- no 0\n- one more", encoding="utf-8")
    assert "1 memory imported, 1 were there already" in person.runs("import", "--yes")
    memories.close()


@pytest.mark.network
@pytest.mark.slow
def test_who_stores_during_an_import_has_a_turn(person: Person) -> None:
    """Between its transactions, of which one follows the other; not after the last."""
    notes = "\n".join(f"- no {number}" for number in range(5_500))
    (person.project / "NOTES.md").write_text(notes, encoding="utf-8")
    memories = person.memories()
    memories.store("A fact of an agent.")
    stored = 0
    with person.start("import", "--yes") as process:
        while process.poll() is None:
            memories.store(f"A fact of an agent, number {stored}.")
            stored += 1
            time.sleep(0.01)
    assert process.returncode == 0 and stored > 20
    assert memories.list().total == 5_501 + stored
    memories.close()


@pytest.mark.network
def test_without_the_extra_a_sentence_names_it(person: Person, tmp_path: Path) -> None:
    """No verb ends in a traceback."""
    person.stores("A fact.")
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "apsw.py").write_text("raise ImportError", encoding="utf-8")
    os.environ["PYTHONPATH"] = str(tmp_path / "without")
    try:
        said = person.runs("list", code=1)
    finally:
        del os.environ["PYTHONPATH"]
    assert said.startswith("aiaml: apsw, which keeps the memories, is not installed")
    assert "pip install 'aiaml-server[semantic]'" in said and len(said.splitlines()) == 1


@pytest.mark.network
def test_doctor_examines_what_there_is(person: Person) -> None:
    """A database that is none is an error."""
    person.stores("A fact.")
    found = person.asks("doctor", code=1)  # the model is not here, which is a warning
    assert all(each["level"] in ("ok", "warning") for each in found), found
    person.memories().store("Of the person.", scope="global")
    (person.project / ".memory" / "db").write_bytes(b"no database " * 1000)
    assert "without the project memories" in person.runs("list")
    assert "without the project memories" in person.asks("list")["warnings"][0]
    said = person.runs("status", code=1)
    assert "project   " in said and "no database: file is not a database" in said
    assert "global    1 memory " in said and "model     " in said
    status = person.asks("status", code=1)
    assert [each["memories"] for each in status["databases"]] == [None, 1]
    assert "no database" in status["databases"][0]["error"]
    found = person.asks("doctor", code=1)
    assert "error" in {each["level"] for each in found}
