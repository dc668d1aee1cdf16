"""Where `semantic` keeps memories, and its settings."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name

import pytest

from aiaml_server.toolsets.semantic import MANIFEST, Memories, config, failures, place
from aiaml_server.toolsets.semantic.checking import checks

SPECIFIED = {
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


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's home directory."""
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path / "ada"))
    (tmp_path / "ada" / "work" / "shop" / "src").mkdir(parents=True)
    return tmp_path / "ada"


# --- places ---------------------------------------------------------------------------------------


def test_a_project_is_found_upwards_by_its_marker(person: Path) -> None:
    """The nearest one; git's directory is none."""
    shop = person / "work" / "shop"
    (shop / ".git").mkdir()
    assert place.find_project(shop / "src") is None
    (shop / ".memory").mkdir()
    assert place.find_project(shop / "src") == shop.resolve()
    (person / "work" / ".memory").mkdir()
    assert place.find_project(shop / "src") == shop.resolve()
    assert place.find_project(person / "work") == (person / "work").resolve()


@pytest.mark.skipif(sys.platform != "linux", reason="only there a name need be no text")
def test_a_directory_whose_name_is_no_text_is_refused(tmp_path: Path) -> None:
    """SQLite opens none; the sentence says so."""
    project = tmp_path / os.fsdecode(b"n\xff")
    project.mkdir()
    with pytest.raises(failures.InvalidProject, match="UTF-8"):
        Memories(tmp_path / ".memory", project)


def test_the_home_directory_is_never_a_project(person: Path) -> None:
    """Though the person's own memories lie in it, and not when it is named either."""
    (person / ".memory").mkdir()
    assert place.find_project(person / "work" / "shop") is None
    assert place.find_project(person) is None
    with pytest.raises(failures.InvalidProject, match="home"):
        place.find_project(person, str(person))
    with pytest.raises(failures.InvalidProject):
        Memories(person / ".memory", person)


def test_a_named_project_need_have_no_marker(person: Path) -> None:
    """It must be a directory, and its path absolute or from the home directory on."""
    assert place.find_project(person, "~/work") == (person / "work").resolve()
    (person / "file").touch()
    for wrong in ("work", "~/nothing", str(person / "file"), "/a\0b"):
        with pytest.raises(failures.InvalidProject, match="AIAML"):
            place.find_project(person, wrong, by="AIAML_SEMANTIC_PROJECT")


def test_what_is_no_project_is_said(person: Path) -> None:
    """The root directory, and the directory with the memories itself; nothing is made in them."""
    shop = person / "work" / "shop"
    (shop / ".memory").mkdir()
    for wrong, said in (
        (Path(shop.anchor), "the root directory"),
        (shop / ".memory", f"the project is {str(shop.resolve())!r}"),
    ):
        with pytest.raises(failures.InvalidProject) as error:
            place.find_project(person, str(wrong), "AIAML_SEMANTIC_PROJECT")
        assert said in str(error.value)
    assert place.find_project(shop / ".memory") == shop.resolve()


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
def test_a_persons_directory_may_be_a_link(person: Path) -> None:
    """As a program for settings has made it; one that leads nowhere is named, and so is a file."""
    memory, behind = person / ".memory", person / "settings" / "memory"
    assert place.home() == memory
    memory.symlink_to(behind)
    with pytest.raises(failures.InvalidProject, match="memory, which is not there"):
        place.home()
    behind.mkdir(parents=True)
    memories = Memories.at(person)
    assert memories.store("tea").memory.id == "global:1"
    memories.close()
    assert (behind / "db").is_file() and place.find_project(person) is None
    with pytest.raises(failures.InvalidProject, match="home"):
        Memories(place.home(), person)
    memory.unlink()
    memory.write_text("notes")
    with pytest.raises(failures.InvalidProject, match=r"\.memory is no directory") as error:
        Memories.at(person)
    assert "Move it away" in error.value.suggestion and memory.read_text() == "notes"


def test_a_project_keeps_its_id_when_it_is_renamed(person: Path) -> None:
    """So that its memories stay together."""
    shop = person / "work" / "shop"
    memories = Memories(person / ".memory", shop, None, config.Config())
    assert memories.store("tea").memory.project_id == "shop"
    memories.close()
    shop.rename(person / "work" / "store")
    memories = Memories(person / ".memory", person / "work" / "store", None, config.Config())
    assert memories.store("coffee").memory.project_id == "shop"
    memories.close()


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
def test_a_marker_that_is_a_link_is_refused(person: Path) -> None:
    """A project may come from anybody; nothing is written behind it."""
    elsewhere = person / "elsewhere"
    elsewhere.mkdir()
    (person / "work" / ".memory").symlink_to(elsewhere)
    memories = Memories(person / ".memory", person / "work", None, config.Config())
    with pytest.raises(failures.InvalidProject, match="link"):
        memories.store("tea")
    assert list(elsewhere.iterdir()) == []


# --- settings -------------------------------------------------------------------------------------


def test_the_specified_file_is_the_default(tmp_path: Path) -> None:
    """Every key of it is known, and no file means the same."""
    (tmp_path / config.NAME).write_text(json.dumps(SPECIFIED), encoding="utf-8")
    given = config.load(tmp_path)
    assert replace(given, weak=None, same=None) == config.Config() == config.load(tmp_path / "no")
    assert given.thresholds() == config.Config().thresholds() == (0.7, 0.9)


def test_thresholds_belong_to_the_model() -> None:
    """Unless they are set."""
    small = config.Config(model="sentence-transformers/all-MiniLM-L6-v2")
    assert small.thresholds().weak < 0.7
    assert replace(small, weak=0.5).thresholds().weak == 0.5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"embedding": {"download": true, "download": false}}', "config.json: download is there"),
        ('{"retrieval": {}, "retrieval": {}}', "retrieval is there twice"),
        ('{"embedding": {"dimension": %s}}' % ("9" * 5000), "a number of 5,000 digits"),
        ("{", "not JSON"), ("[]", "object"), ("[" * 60_000, "not JSON"),
        ('{"retrieval": {"limit": 3}}', "retrieval.limit is no known key; did you mean"),
        ('{"embeding": {}}', "did you mean embedding?"), ('{"retrieval": 3}', "must be an object"),
        ('{"retrieval": {"default_limit": true}}', "default_limit is True; it must be a whole"),
        ('{"retrieval": {"default_limit": 0}}', "from 1 to 50"),
        ('{"retrieval": {"scoring_weights": {"usage": NaN}}}', "usage is nan"),
        ('{"retrieval": {"scoring_weights": {"usage": -1}}}', "from 0 to 1"),
        ('{"embedding": {"device": "tpu"}}', "cpu or cuda"),
        ('{"embedding": {"path": "model"}}', "absolute"),
        ('{"auto_triggers": {"session_end": "yes"}}', "true or false"),
    ],
)  # fmt: skip
def test_wrong_settings_are_named(tmp_path: Path, text: str, said: str) -> None:
    """Each with the key, and what would be right."""
    (tmp_path / config.NAME).write_text(text, encoding="utf-8")
    with pytest.raises(failures.InvalidConfig, match=said.replace(".", r"\.").replace("?", r"\?")):
        config.load(tmp_path)


def test_a_key_is_changed_and_the_others_stay(tmp_path: Path) -> None:
    """Nothing is written that could not be read again."""
    config.change(tmp_path / "new", download=False)
    path = tmp_path / "new" / config.NAME
    path.write_text(json.dumps({"retrieval": {"default_limit": 5}}), encoding="utf-8")
    changed = config.change(tmp_path / "new", dimension=512, similarity=0.5)
    assert (changed.limit, changed.dimension, changed.similarity) == (5, 512, 0.5)
    assert config.load(tmp_path / "new") == changed
    before = path.read_bytes()
    with pytest.raises(failures.InvalidConfig):
        config.change(tmp_path / "new", dimension=0)
    assert path.read_bytes() == before


# --- what doctor finds ----------------------------------------------------------------------------


def test_doctor_examines_both_databases(person: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many there are, and what is wrong with them."""
    shop = person / "work" / "shop"
    monkeypatch.chdir(shop)
    environ = {"AIAML_SEMANTIC_PROJECT": str(shop)}
    assert {each.level for each in checks(environ)} == {"ok"}
    memories = Memories(person / ".memory", shop, None, config.Config())
    memories.store("tea")
    memories.close()
    found = list(checks(environ))
    assert [each.level for each in found] == ["ok", "warning", "warning"]
    assert "1 without a vector" in found[1].found and "migrate" in found[1].remedy
    assert "by words only" in found[2].found
    (shop / ".memory" / "db").write_bytes(b"x" * 4096)
    assert [each.level for each in checks(environ)] == ["ok", "error", "warning"]
    (person / ".memory").mkdir(exist_ok=True)
    (person / ".memory" / "config.json").write_text("{")
    (only,) = checks(environ)
    assert only.level == "error" and "config.json" in only.found
    assert resolve_name(MANIFEST.checks) is checks


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_doctor_names_what_others_can_get_at(person: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was made by hand; and makes it private, when asked to."""
    shop = person / "work" / "shop"
    monkeypatch.chdir(shop)
    open_to_all = [person / ".memory", person / ".memory" / "config.json", shop / ".memory"]
    for path in open_to_all:
        if path.suffix:
            path.write_text("{}")
        else:
            path.mkdir()
        path.chmod(0o755 if path.is_dir() else 0o644)
    found = [each for each in checks({}) if "others on this computer" in each.found]
    assert [each.level for each in found] == ["warning"] * 3
    for each, path, mode in zip(found, open_to_all, (700, 600, 700), strict=True):
        assert str(path) in each.found and f"`chmod {mode} {path}`" in each.remedy
        assert each.fix
        each.fix.do()
        assert path.stat().st_mode & 0o777 == int(str(mode), 8)
    assert {each.level for each in checks({})} == {"ok"}
