"""`semantic`: the model, its settings, and what is said where it cannot be used."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aiaml_server.toolsets.semantic import errors
from aiaml_server.toolsets.semantic.config import Config, Embedding, load_config
from aiaml_server.toolsets.semantic.embedding import ModelLoader, prefixes
from aiaml_server.toolsets.semantic.store import MemoryStore
from semantic_model import NAME, model_folder, needs_fastembed

HERE = Embedding(model=NAME, download=False)
SPECIFIED: dict[str, Any] = {
    "embedding": {"model": "BAAI/bge-small-en-v1.5", "dimension": 384, "device": "cpu"},
    "retrieval": {
        "default_limit": 10,
        "session_start_limit": 8,
        "similarity_threshold": 0.7,
        "scoring_weights": {"similarity": 0.4, "recency": 0.2, "priority": 0.2, "usage": 0.2},
    },
    "auto_triggers": {"session_end": True, "decision_detection": True, "error_resolution": True},
    "deduplication": {"auto_check": True, "similarity_threshold": 0.9},
}


# --- settings -------------------------------------------------------------------------------------


def test_specified_configuration_is_the_default(tmp_path: Path) -> None:
    """And may be written out."""
    assert load_config(tmp_path) == Config()
    (tmp_path / "config.json").write_text(json.dumps(SPECIFIED), encoding="utf-8")
    assert load_config(tmp_path) == Config()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"embeding": {}}, "embeding is unknown"),
        ({"embedding": {"dimension": "384"}}, "embedding.dimension: .* integer; it is '384'"),
        ({"embedding": {"download": 1}}, "embedding.download: .* boolean; it is 1"),
        ({"embedding": []}, "embedding: .* object"),
        ({"embedding": {"model": "x" * 300}}, "embedding.model"),
        ({"retrieval": {"default_limit": 51}}, "default_limit: .* equal to 50; it is 51"),
        ({"retrieval": {"half_life_days": 0}}, "half_life_days: .* equal to 1; it is 0"),
        ({"retrieval": {"scoring_weights": {"usage": 2}}}, "scoring_weights.usage: "),
        ([], "should be an object"),
        ("{", "Invalid JSON"),
    ],
)
def test_wrong_setting_is_named(tmp_path: Path, given: Any, message: str) -> None:
    """With what it must be."""
    text = given if isinstance(given, str) else json.dumps(given)
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(errors.InvalidConfig, match=message):
        load_config(tmp_path)


def test_threshold_is_the_models(tmp_path: Path) -> None:
    """Unless another one is set."""
    (tmp_path / "config.json").write_text(
        json.dumps({"embedding": {"model": NAME}}), encoding="utf-8"
    )
    assert load_config(tmp_path).weak_below == 0.3 and Config().weak_below == 0.7


@pytest.mark.parametrize(
    ("name", "question", "document"),
    [
        ("BAAI/bge-small-en-v1.5", "", ""),
        ("intfloat/multilingual-e5-large", "query: ", "passage: "),
        ("nomic-ai/nomic-embed-text-v1.5", "search_query: ", "search_document: "),
        ("BAAI/bge-small-en", "Represent this sentence", ""),
        ("e5-but-set", "Q: ", "D: "),
    ],
)
def test_prefixes(name: str, question: str, document: str) -> None:
    """Of the model's family, unless the settings name others."""
    settings = Embedding(model=name)
    if "set" in name:
        settings = replace(settings, query_prefix="Q: ", document_prefix="D: ")
    found = prefixes(settings)
    assert found[0].startswith(question) and found[1] == document
    assert bool(found[0]) == bool(question)


# --- loading --------------------------------------------------------------------------------------


@needs_fastembed
@pytest.mark.network
def test_model_in_a_folder_is_loaded_without_a_socket(tmp_path: Path) -> None:
    """Nothing is imported before it is asked for, nothing is reported, no token is sent.

    A process that ends meanwhile waits until it is loaded, because onnxruntime would abort it.
    """
    folder = str(model_folder())
    script = f"""
import atexit, os, socket, sys
def refuse(*_): raise AssertionError("a socket was opened")
socket.socket.connect = refuse
from pathlib import Path
from aiaml_server.toolsets.semantic.config import Embedding
from aiaml_server.toolsets.semantic.embedding import ModelLoader
loader = ModelLoader(Embedding(model={NAME!r}, path={folder!r}), Path({str(tmp_path)!r}))
assert loader.state().status == "loading"
assert not {{"fastembed", "onnxruntime", "huggingface_hub"}} & set(sys.modules)
atexit.register(lambda: print(loader.state().status))
assert loader.ready() is None
if sys.argv[1:] == ["wait"]:
    model = loader.ready(120)
    assert loader.state().status == "ready" and len(model.embed(["tea"])[0]) == 384
    print(model.name, len(model.version))
    print(*(os.environ[f"HF_HUB_DISABLE_{{name}}"] for name in ("TELEMETRY", "IMPLICIT_TOKEN")))
    print(os.environ["ORT_DISABLE_TELEMETRY"])
"""
    for words, printed in (["wait"], f"{NAME} 16\n1 1\n1\nready\n"), ([], "ready\n"):
        done = subprocess.run(
            [sys.executable, "-c", script, *words],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, printed), done.stderr


@needs_fastembed
def test_model_that_cannot_be_used_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what to do about it; search goes on by words."""
    noted: list[Exception] = []
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "model.onnx").write_bytes(b"no model")
    for settings, status, reason in (
        (HERE, "missing", "is not on this machine"),
        (replace(HERE, path=str(tmp_path / "empty")), "missing", "is not on this machine"),
        (replace(HERE, path=str(tmp_path / "broken")), "failed", "cannot be loaded"),
        (replace(HERE, model="x/unknown", download=True), "failed", "does not know"),
    ):
        loader = ModelLoader(settings, tmp_path / "models", noted.append)
        assert loader.ready(120) is None
        state = loader.state()
        assert state.status == status and reason in state.reason and state.remedy
        store = MemoryStore(tmp_path / "home", None, loader, Config(settings))
        assert any("words only" in each for each in store.store("tea").warnings)
        assert len(store.search("tea").hits) == 1
        store.close()
    assert len(noted) == 2
    monkeypatch.setattr("aiaml_server.toolsets.semantic.embedding.find_spec", lambda _name: None)
    state = ModelLoader(HERE, tmp_path).state()
    assert state.status == "off" and "pip install" in state.remedy


@needs_fastembed
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_hub_that_refuses_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first search answers by words and says that the model is being downloaded."""
    with socket.socket() as bound:  # an address where nobody listens
        bound.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{bound.getsockname()[1]}")
        loader = ModelLoader(Embedding(), tmp_path / "models")
        store = MemoryStore(tmp_path / "home", None, loader, Config(), background=True)
        store.store("tea")
        result = store.search("tea")
        assert len(result.hits) == 1 and "is being downloaded" in result.warnings[0]
        assert loader.ready(200) is None
        state = loader.state()
        assert state.status == "failed" and "model download" in state.remedy
        assert "check the network" in state.remedy
        assert loader.ready() is None  # no other attempt for some minutes
        store.close()
