"""The conformance set: what any reader, writer and search of this format must give, as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aiaml_server.bank import MemoryBank
from aiaml_server.errors import MalformedFile
from aiaml_server.format.memory import Memory, format, parse  # noqa: A004
from aiaml_server.settings import Settings
from aiaml_server.storage.store import Store
from aiaml_server.timestamps import parse_timestamp
from paths import ROOT

SET = ROOT / "conformance"
READ = json.loads((SET / "read.json").read_text("utf-8"))


def memory(stated: dict[str, Any]) -> Memory:
    """Return the memory that a JSON object states."""
    return Memory(
        **{**stated, **{each: tuple(stated.get(each, ())) for each in ("topics", "extra")}}
    )


def test_each_file_has_its_line() -> None:
    """None is left out."""
    assert sorted(READ) == sorted(path.name for path in (SET / "files").iterdir())


@pytest.mark.parametrize("name", READ)
def test_each_file_is_read_as_stated(name: str, tmp_path: Path) -> None:
    """From the bytes, as the store reads them."""
    path = tmp_path / "files" / name
    path.parent.mkdir()
    path.write_bytes((SET / "files" / name).read_bytes())
    wanted = READ[name]
    if "malformed" in wanted:
        with pytest.raises(MalformedFile) as error:
            Store(tmp_path).read(name)
        assert wanted["malformed"].replace("'", "") in str(error.value).replace("'", "")
    else:
        assert Store(tmp_path).read(name) == memory(wanted)


@pytest.mark.parametrize("case", json.loads((SET / "write.json").read_text("utf-8")))
def test_each_memory_is_written_as_stated(case: dict[str, Any]) -> None:
    """Byte for byte, under that name; and read back as the same."""
    written = memory(case["memory"])
    assert (written.file_name, format(written)) == (case["name"], case["text"])
    assert parse(case["text"]) == written


@pytest.mark.parametrize("case", json.loads((SET / "timestamps.json").read_text("utf-8")))
def test_each_timestamp_names_its_instant(case: dict[str, Any]) -> None:
    """Where it names one."""
    assert parse_timestamp(case["timestamp"]) == case["microseconds"]


def test_each_question_has_its_answer(tmp_path: Path) -> None:
    """Ids, order, scores and keywords."""
    stated = json.loads((SET / "think.json").read_text("utf-8"))
    store = Store(tmp_path)
    for each in stated["memories"]:
        store.add(memory(each))
    bank = MemoryBank(Settings(tmp_path, sync=False))
    for question in stated["questions"]:
        hits = [
            {"id": hit.id, "relevance_score": hit.relevance_score,
             "matching_keywords": list(hit.matching_keywords)}
            for hit in bank.think(question["keywords"])
        ]  # fmt: skip
        assert hits == question["hits"], question["why"]
    bank.close()
