"""`aiaml import` from zips, pipes, JSON, chats and this package's other toolsets."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aiaml_server.cli import main
from aiaml_server.exchange import archives, jsonl
from aiaml_server.exchange.chats import chatgpt, claude_ai
from aiaml_server.exchange.found import Note, Skip
from aiaml_server.exchange.plan import Planner
from aiaml_server.format.memory import Memory
from aiaml_server.storage.store import Store
from aiaml_server.toolsets.citations import Citation, Memories
from aiaml_server.toolsets.compartments import Compartments
from aiaml_server.toolsets.semantic.store import MemoryStore
from aiaml_server.toolsets.sessions.service import AgentMemory

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def bring(bank: Store, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `aiaml import --json --yes` and return what it says; a second run adds nothing."""

    def run(*words: str | Path, code: int = 0) -> dict[str, Any]:
        assert bank
        assert main(["import", *map(str, words), "--json", "--yes"]) == code
        said: dict[str, Any] = json.loads(capsys.readouterr().out)
        if said["new"]:
            assert main(["import", *map(str, words), "--json", "--yes"]) == 0
            again = json.loads(capsys.readouterr().out)
            assert (again["new"], len(again["there"])) == ([], len(said["new"] + said["there"]))
        return said

    return run


def written(path: Path, value: object) -> Path:
    """Write a JSON document."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")
    return path


def contents(said: Mapping[str, Any]) -> list[str]:
    """Return what the new memories say."""
    return [each["content"] for each in said["new"]]


def reasons(said: Mapping[str, Any], sort: str = "skipped") -> list[str]:
    """Return why something was skipped, or taken in part."""
    return [each["reason"] for each in said[sort]]


@pytest.mark.parametrize(
    ("head", "number", "why"),
    [
        ("", 3_000, "more than 2,500 sections"),
        ("".join(f"p{n}: some value {n}\n" for n in range(500)), 2_000, "its properties in each"),
    ],
)
def test_import_of_a_note_with_too_many_sections_is_refused(
    head: str, number: int, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each would be a memory, with all of the note's properties."""
    sections = "".join(f"## a{n}\n\nb\n" for n in range(number))
    (tmp_path / "a.md").write_text(f"---\n{head}---\n{sections}")
    words = ["import", str(tmp_path / "a.md"), "--split", "heading", "--dry-run"]
    main(words)
    assert why in " ".join(capsys.readouterr().out.split())


# --- zips -------------------------------------------------------------------------------------


def zipped(path: Path, files: Mapping[str, str]) -> Path:
    """Write a zip."""
    with zipfile.ZipFile(path, "w") as target:
        for name, text in files.items():
            target.writestr(name, text)
    return path


def test_our_own_zip_comes_back(
    tmp_path: Path, bank: Store, bring: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte for byte, under the same names."""
    first = bank.add(Memory.new("claude", "marco", ["tea"], "Green."))
    bank.add(Memory.new("claude", "marco", ["dog"], "\r\nBrown.\n"))
    before = {name: bank.text(name) for name in bank.names()}
    assert main(["export", "--to", str(tmp_path / "all.zip")]) == 0
    monkeypatch.setenv("AIAML_MEMORY_DIR", str(tmp_path / "other"))
    capsys_free = bring(tmp_path / "all.zip")
    assert {each["id"] for each in capsys_free["new"]} >= {first.id}
    other = Store(tmp_path / "other")
    assert {name: other.text(name) for name in other.names()} == before


def test_a_vault_as_a_zip_is_a_vault(tmp_path: Path, bring: Run) -> None:
    """With the times of its files; what else is in it is counted."""
    archive = zipped(
        tmp_path / "v.zip",
        {
            "vault/.obsidian/app.json": "{}",
            "vault/Tea.md": "Green.",
            "vault/cat.png": "x",
            "__MACOSX/vault/._Tea.md": "x",
        },
    )
    said = bring(archive)
    assert [(each["place"], each["agent"]) for each in said["new"]] == [
        ("vault/Tea.md", "obsidian")
    ]
    assert "other files, which are not read: 1 .png" in reasons(said)


def test_a_zip_writes_nowhere_else(tmp_path: Path, bring: Run) -> None:
    """Names that lead elsewhere lead nowhere, and two of one name are not one."""
    archive = tmp_path / "z.zip"
    with zipfile.ZipFile(archive, "w") as target:
        for name in ("../../evil.md", "/evil.md", "a/b.md"):
            target.writestr(name, name)
    said = bring(archive, "--from", "markdown")
    assert len(said["new"]) == 2
    assert reasons(said) == ["another file there has its name"]
    assert not list(tmp_path.rglob("evil.md")) and not Path("/evil.md").exists()


@pytest.mark.parametrize(
    ("limit", "most", "why"),
    [
        ("MAX_TOTAL", 3000, "unpacked it is larger than"),
        ("MAX_ENTRIES", 3, "it has more than 3 files and folders"),
    ],
)
def test_import_too_large_a_zip_is_refused(
    limit: str,
    most: int,
    why: str,
    tmp_path: Path,
    bank: Store,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By what it unpacks to and by how many files it has, before anything becomes a memory."""
    monkeypatch.setattr(archives, limit, most)
    archive = zipped(tmp_path / "m.zip", {f"{n}.md": "x" * 1000 for n in range(4)})
    assert main(["import", str(archive), "--yes"]) == 1
    assert why in " ".join(capsys.readouterr().err.split())
    assert bank.names() == []


@pytest.mark.parametrize(
    ("name", "number", "why"),
    [("n" * 900, 40_000, "longer than 32 MiB"), ("n", 200_000, "more than 100,000 files")],
)
def test_import_zip_with_too_long_a_list_is_refused_unread(
    name: str, number: int, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever number it tells; Python would make an object of each entry first."""
    head = struct.pack("<4s4B4HL2L5H2L", b"PK\x01\x02", *[0] * 11, len(name), *[0] * 6)
    entries = (head + name.encode()) * number
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, len(entries), 0, 4) + b"note"
    (tmp_path / "m.zip").write_bytes(entries + end)
    main(["import", str(tmp_path / "m.zip"), "--yes"])
    assert why in " ".join(capsys.readouterr().err.split())


def test_import_zip_leaves_a_note_that_is_too_large_packed(
    tmp_path: Path, bring: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its size stands in the list: 900 MB of one letter are a MB there."""
    source = tmp_path / "v.zip"
    with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as written:
        written.writestr("v/a.md", b"x" * (17 << 20))
        written.writestr("v/b.md", "good")
    unpacked: list[str] = []
    extract = zipfile.ZipFile.extract

    def noted(self: zipfile.ZipFile, member: Any, *rest: Any) -> str:
        unpacked.append(member.filename)
        return extract(self, member, *rest)

    monkeypatch.setattr(zipfile.ZipFile, "extract", noted)
    said = bring(source)
    assert reasons(said) == ["it is larger than 16 MiB: 17,825,792 bytes"]
    assert set(unpacked) == {"v/b.md"}
    assert len(said["new"]) == 1


def test_import_a_zip_gives_no_more_than_it_says(tmp_path: Path, bank: Store) -> None:
    """An entry that unpacks to more than its head says is cut there, and the zip is refused."""
    archive = zipped(tmp_path / "m.zip", {"a.md": "x" * 100_000})
    data = archive.read_bytes()
    size = (100_000).to_bytes(4, "little")
    archive.write_bytes(data.replace(size, (10).to_bytes(4, "little")))
    assert main(["import", str(archive), "--yes"]) == 1
    assert bank.names() == []


def test_import_too_much_of_a_pipe_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more than a zip may hold is kept on the disk."""
    monkeypatch.setattr(archives, "MAX_TOTAL", 1000)
    with pytest.raises(ValueError, match="came through the pipe"):
        archives.piped(io.BytesIO(b"x" * 1001), tmp_path)


def test_import_json_of_too_many_parts_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before they fill the memory, with what helps; as a document and as a line."""
    many = b"[" + b"{}," * jsonl.MAX_PARTS + b"{}]"
    numbers = b'{"a":[' + b"1," * (jsonl.MAX_COMMAS + 1) + b"1]}"
    (tmp_path / "a.json").write_bytes(many)
    (tmp_path / "b.jsonl").write_bytes(b'{"content":"tea"}\n' + numbers + b"\n")
    for name, what in (("a.json", "import:"), ("b.jsonl", "the line:")):
        main(["import", str(tmp_path / name), "--dry-run"])
        said = " ".join("".join(capsys.readouterr()).split())
        assert f"{what} has more than 2,000,000 objects and lists" in said
        assert "put each record on a line of its own" in said


def of_version(number: int) -> bytes:
    """Return a zip whose list says that it needs a version of the format."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as target:
        target.writestr("a.md", "a thing")
    data = bytearray(packed.getvalue())
    data[data.index(b"PK\x01\x02") + 6] = number
    return bytes(data)


@pytest.mark.parametrize("data", [b"", b"PK", b"PK\x03\x04" + b"x" * 100, of_version(99)])
def test_a_broken_zip_is_refused(
    data: bytes, tmp_path: Path, bank: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a sentence."""
    (tmp_path / "m.zip").write_bytes(data)
    assert main(["import", str(tmp_path / "m.zip"), "--yes"]) == 1
    assert "m.zip: it is no zip that can be read" in capsys.readouterr().err
    assert bank.names() == []


@pytest.mark.parametrize("kind", ["stored", "deflated", "bzip2", "lzma", "long"])
def test_import_zip_with_a_damaged_file_brings_the_others(
    kind: str, tmp_path: Path, bring: Run
) -> None:
    """It is named, and nothing of it is taken."""
    method = {"deflated": 8, "bzip2": 12, "lzma": 14}.get(kind, 0)
    name = f"{'n' * 300 if kind == 'long' else 'bad'}.md"
    with zipfile.ZipFile(tmp_path / "m.zip", "w", method) as target:
        target.writestr(name, "alpha beta " * 50)
        target.writestr("good.md", "a good thing")
    data = bytearray((tmp_path / "m.zip").read_bytes())
    if kind != "long":
        start = 30 + len(name) + (4 if kind == "lzma" else 0)
        data[start + 5 : start + 12] = b"\xff" * 7
    (tmp_path / "m.zip").write_bytes(data)
    said = bring(tmp_path / "m.zip")
    assert contents(said) == ["# good\n\na good thing"]
    assert "it cannot be unpacked" in str(said["skipped"])


# --- a pipe -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["jsonl", "zip", "text", "list"])
def test_the_standard_input_is_a_source(kind: str, bank: Store) -> None:
    """Of any kind; nobody can be asked then."""
    own = {"id": "a1b2c3d4", "timestamp": "2025-01-02", "agent": "a", "user": "u", "topics": []}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as target:
        target.writestr("n/a.md", "a thing")
    data = {
        "jsonl": json.dumps({**own, "content": "a thing"}).encode() + b"\n",
        "zip": packed.getvalue(),
        "text": b"a thing\n",
        "list": json.dumps([{"text": "a thing"}], indent=1).encode(),
    }[kind]

    def run(*words: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "aiaml_server", "import", "-", *words]
        return subprocess.run(command, input=data, capture_output=True, check=False)

    asked = run()
    assert asked.returncode == 1 and b"`--yes` says yes" in asked.stderr
    assert run("--yes").returncode == 0
    assert b"1 already there" in run("--yes").stdout
    [(_, memory)] = bank.scan()
    assert memory.content == ("# a\n\na thing" if kind == "zip" else "a thing")


# --- JSON -------------------------------------------------------------------------------------


def test_a_folder_with_the_memory_servers_file_is_one(tmp_path: Path, bring: Run) -> None:
    """Whoever has set MEMORY_FILE_PATH knows the folder."""
    (tmp_path / "m").mkdir()
    entity = {"type": "entity", "name": "Anna", "entityType": "person", "observations": ["Cello"]}
    (tmp_path / "m" / "memory.jsonl").write_text(json.dumps(entity))
    assert contents(bring(tmp_path / "m")) == ["# Anna (person)\n\n- Cello"]


LINES = [
    {"uid": 7, "text": "Green tea.", "tags": ["tea", "hot"], "when": 1710428400, "score": 0},
    {"uid": 8, "text": "", "tags": "dog", "meta": {"area": "home"}},
]


def lines(path: Path) -> Path:
    """Write records of a program that nobody knows."""
    path.write_text("".join(json.dumps(each) + "\n" for each in LINES))
    return path


def test_other_records_are_mapped_as_is_usual(
    tmp_path: Path, bring: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """The mapping is shown before anything is added; what it leaves is kept as properties."""
    source = lines(tmp_path / "facts.jsonl")
    assert main(["import", str(source), "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "  content=text,topics=tags; other fields are kept as properties" in shown
    said = bring(source)
    [new] = said["new"]
    assert (new["content"], new["topics"], new["agent"]) == ("Green tea.", ["tea", "hot"], "json")
    assert reasons(said) == ["its 'text' is missing, or no text"]


def test_a_mapping_can_be_given(tmp_path: Path, bring: Run, bank: Store) -> None:
    """Ways into objects, several fields together, times in seconds."""
    LINES[1]["text"] = "Brown dog."
    mapping = "content=text,topics=tags+meta.area,timestamp=when,title=uid"
    said = bring(lines(tmp_path / "facts.jsonl"), "--map", mapping)
    assert contents(said) == ["# 7\n\nGreen tea.", "# 8\n\nBrown dog."]
    assert [each["topics"] for each in said["new"]] == [["tea", "hot"], ["dog", "home"]]
    assert said["new"][0]["timestamp"] == "2024-03-14T15:00:00.000000+00:00"
    extras = sorted(memory.extra[2:] for _, memory in bank.scan())
    assert extras == [('meta: {"area": "home"}',), ("score: 0",)]


@pytest.mark.parametrize(
    ("mapping", "why"),
    [
        ("content=nope", "no record has a field 'nope'; there are: uid, text, tags, when, score"),
        ("content=text,mood=x", "'mood=x' must be NAME=FIELD; the names are content, title"),
        ("topics=tags", "must say which field is the content: content=FIELD"),
        ("content", "'content' must be NAME=FIELD"),
    ],
)
def test_a_mapping_that_fits_nothing_is_refused(
    mapping: str, why: str, tmp_path: Path, bank: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what there is."""
    assert main(["import", str(lines(tmp_path / "f.jsonl")), "--map", mapping, "--yes"]) == 2
    assert why in capsys.readouterr().err
    assert bank.names() == []


def test_records_without_a_known_field_say_what_to_do(
    tmp_path: Path, bank: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """The fields are named."""
    source = written(tmp_path / "f.json", [{"inhalt": "Tee", "art": 1}])
    assert main(["import", str(source), "--yes"]) == 2
    assert "`--map content=FIELD` says it, of: inhalt, art" in capsys.readouterr().err
    assert bank.names() == []


def test_lines_of_ours_without_our_five_fields_are_records(tmp_path: Path, bring: Run) -> None:
    """They get what a memory must have."""
    (tmp_path / "f.jsonl").write_text('{"id": "x1", "topics": ["tea"], "content": "Green."}\n')
    [new] = bring(tmp_path / "f.jsonl")["new"]
    assert (new["content"], new["topics"]) == ("Green.", ["tea"])


# --- mem0 and OpenMemory ----------------------------------------------------------------------


def test_memories_of_mem0_arrive(tmp_path: Path, bring: Run, bank: Store) -> None:
    """As `get_all()` gives them."""
    one = {
        "id": "892db2ae-06d9-49e5-8b3e-585ef9b85b8e",
        "memory": "Likes to play cricket on weekends",
        "hash": "285d07801ae42054732314853e9eadd7",
        "metadata": {"category": "hobbies"},
        "created_at": "2024-07-26T10:29:36.630547-07:00",
        "updated_at": None,
        "user_id": "alex",
        "categories": ["sports"],
    }
    [new] = bring(written(tmp_path / "all.json", {"results": [one]}))["new"]
    assert (new["content"], new["topics"]) == ("Likes to play cricket on weekends", ["sports"])
    assert (new["agent"], new["timestamp"][:19]) == ("mem0", "2024-07-26T17:29:36")
    [(_, memory)] = bank.scan()
    assert 'metadata: {"category": "hobbies"}' in memory.extra
    assert 'user_id: "alex"' in memory.extra


def test_an_export_of_openmemory_arrives(tmp_path: Path, bring: Run) -> None:
    """Ids of apps and categories get their names; what was deleted there is not brought back."""
    value = {
        "user": {"id": "u1", "user_id": "alex"},
        "apps": [{"id": "a1", "name": "cursor"}],
        "categories": [{"id": "c1", "name": "travel"}],
        "memories": [
            {
                "id": f"m{number}",
                "user_id": "u1",
                "app_id": "a1",
                "content": text,
                "metadata": {},
                "state": state,
                "created_at": "2025-05-06T07:08:09+00:00",
                "category_ids": ["c1"],
            }
            for number, (text, state) in enumerate(
                [("Flies to Rome", "active"), ("Old", "archived"), ("Gone", "deleted")]
            )
        ],
        "memory_categories": [],
        "export_meta": {"version": "1"},
    }
    archive = zipped(
        tmp_path / "memories_export_alex.zip",
        {"memories.json": json.dumps(value), "memories.jsonl.gz": "x"},
    )
    said = bring(archive)
    assert contents(said) == ["Flies to Rome", "Old"]
    assert said["new"][0]["topics"] == ["travel"]
    assert sorted(reasons(said)) == [
        "it was deleted there",
        "other files, which are not read: 1 .gz",
    ]


# --- ChatGPT ----------------------------------------------------------------------------------


def message(role: str, *parts: object, kind: str = "text", **more: Any) -> dict[str, Any]:
    """Return a message as ChatGPT's export has it."""
    content = {"content_type": kind, "parts": list(parts), **more.pop("content", {})}
    return {"author": {"role": role}, "create_time": 1.7e9, "content": content, **more}


def conversation(title: str | None, *messages: dict[str, Any] | None) -> dict[str, Any]:
    """Return a conversation without branches."""
    nodes = {
        f"n{number}": {
            "id": f"n{number}",
            "message": each,
            "parent": f"n{number - 1}" if number else None,
            "children": [f"n{number + 1}"] if number < len(messages) - 1 else [],
        }
        for number, each in enumerate(messages)
    }
    last = f"n{len(messages) - 1}"
    base = {"title": title, "create_time": 1710428400.25, "update_time": 1710428500.0}
    return {**base, "mapping": nodes, "current_node": last, "conversation_id": f"c-{title}"}


def a_chat() -> dict[str, Any]:
    """Return a conversation with all that occurs in one."""
    hidden = {"is_visually_hidden_from_conversation": True}
    context = {"user_profile": "I live in Turin.", "user_instructions": "Be brief."}
    value = conversation(
        "Bread at home",
        None,
        message("system", ""),
        message("user", kind="user_editable_context", content=context, metadata=hidden),
        message("user", "How do I bake?"),
        message("assistant", kind="thoughts", content={"thoughts": []}),
        message("tool", "a result"),
        message("assistant", "With flour.", {"asset_pointer": "x"}, kind="multimodal_text"),
    )
    value["mapping"]["other"] = {
        "id": "other",
        "parent": "n3",
        "children": [],
        "message": message("assistant", "With love."),
    }
    return value


@pytest.mark.parametrize("shape", ["file", "folder", "zip", "parts"])
def test_an_export_of_chatgpt_arrives(shape: str, tmp_path: Path, bring: Run) -> None:
    """The branch that was shown, the instructions once; what is not taken is named."""
    chats = [a_chat(), {**a_chat(), "title": "Again", "conversation_id": "c2"}]
    folder = tmp_path / "export"
    source = written(folder / "conversations.json", chats)
    written(folder / "user.json", {"id": "x"})
    if shape == "parts":  # as large exports are since 2026
        source.unlink()
        for number, each in enumerate(chats):
            written(folder / f"conversations-{number:03}.json", [each])
    if shape == "zip":
        source = zipped(tmp_path / "x.zip", {p.name: p.read_text() for p in folder.iterdir()})
    said = bring(source if shape in ("file", "zip") else folder)
    chat = "# Bread at home\n\n**You:**\n\nHow do I bake?\n\n**ChatGPT:**\n\nWith flour."
    assert contents(said) == [
        "# ChatGPT's user profile\n\nI live in Turin.",
        "# ChatGPT's user instructions\n\nBe brief.",
        chat,
        chat.replace("Bread at home", "Again"),
    ]
    assert {each["agent"] for each in said["new"]} == {"chatgpt"}
    assert said["new"][2]["timestamp"] == "2024-03-14T15:00:00.250000+00:00"
    assert reasons(said, "partly")[:3] == [
        "messages of other branches: 1",
        "pictures and files: 1",
        "steps of tools: 2",
    ]


def test_a_long_conversation_becomes_several_memories(tmp_path: Path, bring: Run) -> None:
    """Cut between messages, so that each fits; one that says nothing is named."""
    turns = [message("user", f"{number} " + "x" * 300_000) for number in range(5)]
    source = written(
        tmp_path / "conversations.json", [conversation("Long", *turns), conversation("None", None)]
    )
    said = bring(source)
    assert [each["content"].split("\n")[0] for each in said["new"]] == [
        f"# Long ({number} of 3)" for number in (1, 2, 3)
    ]
    assert reasons(said) == ["nothing is said in it"]


def test_a_conversation_that_grew_has_changed(tmp_path: Path, bring: Run) -> None:
    """It is listed, and added when asked for; a new title alone changes nothing."""
    source = tmp_path / "conversations.json"
    one = message("user", "One")
    bring(written(source, [conversation("T", one)]))
    renamed = {**conversation("T", one), "title": "Other"}
    assert bring(written(source, [renamed]), code=0)["new"] == []
    said = bring(written(source, [conversation("T", one, message("assistant", "Two"))]), code=1)
    assert len(said["changed"]) == 1


# --- Claude.ai --------------------------------------------------------------------------------


def claude_export() -> dict[str, Any]:
    """Return the files of an export of Claude.ai."""
    return {
        "conversations.json": [
            {
                "uuid": "k1",
                "name": "Trip",
                "summary": "About Rome.",
                "created_at": "2025-03-04T05:06:07.000008Z",
                "updated_at": "2025-03-05T05:06:07Z",
                "account": {"uuid": "a"},
                "chat_messages": [
                    {
                        "uuid": "m1",
                        "sender": "human",
                        "text": "Where to?",
                        "content": [{"type": "text", "text": "Where to?"}],
                        "attachments": [{"file_name": "list.txt", "extracted_content": "Rome"}],
                        "files": [{"file_name": "map.png"}],
                    },
                    {
                        "uuid": "m2",
                        "sender": "assistant",
                        "text": "",
                        "content": [
                            {"type": "thinking", "thinking": "…"},
                            {"type": "text", "text": "To Rome."},
                            {"type": "tool_use", "name": "x"},
                        ],
                        "attachments": [],
                        "files": [],
                    },
                ],
            }
        ],
        "projects.json": [
            {
                "uuid": "p1",
                "name": "House",
                "description": "We build.",
                "is_private": True,
                "prompt_template": "Answer in metres.",
                "created_at": "2025-01-01T00:00:00Z",
                "docs": [{"uuid": "d1", "filename": "plan.md", "content": "Two floors."}],
            }
        ],
        "memories.json": [
            {
                "conversations_memory": "Works on boats.",
                "project_memories": {"p1": "The roof is red."},
                "account_uuid": "a",
            }
        ],
        "users.json": [{"uuid": "a"}],
    }


TRIP = """# Trip

**You:**

Where to?

**You:**

list.txt:

Rome

**Claude:**

To Rome."""


@pytest.mark.parametrize("is_zip", [True, False])
def test_an_export_of_claude_ai_arrives(is_zip: bool, tmp_path: Path, bring: Run) -> None:
    """Conversations, projects with their documents, and what Claude remembers."""
    folder = tmp_path / "data"
    for name, value in claude_export().items():
        written(folder / name, value)
    source = folder
    if is_zip:
        source = zipped(tmp_path / "x.zip", {p.name: p.read_text() for p in folder.iterdir()})
    said = bring(source)
    assert contents(said) == [
        "# House\n\nWe build.\n\nAnswer in metres.",
        "# House › plan.md\n\nTwo floors.",
        "# What Claude remembers\n\nWorks on boats.",
        "# What Claude remembers of House\n\nThe roof is red.",
        TRIP,
    ]
    assert said["new"][4]["timestamp"] == "2025-03-04T05:06:07.000008+00:00"
    assert reasons(said, "partly") == ["pictures and files: 1", "steps of thought and tools: 2"]


def test_the_newer_export_of_claude_ai_arrives(tmp_path: Path, bring: Run) -> None:
    """With a file for each project and account."""
    value = claude_export()
    written(tmp_path / "e" / "projects" / "p1.json", value["projects.json"][0])
    written(tmp_path / "e" / "memories" / "a.json", value["memories.json"][0])
    assert len(bring(tmp_path / "e")["new"]) == 4


KEYS = [
    *("mapping", "message", "author", "role", "content", "parts", "content_type", "parent"),
    *("children", "current_node", "title", "chat_messages", "sender", "text", "attachments"),
    *("name", "docs", "project_memories", "uuid"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS) | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=25,
)


@example(value={"mapping": {}, "current_node": []}, reads=chatgpt)
@given(value=JSON, reads=st.sampled_from([chatgpt, claude_ai]))
def test_no_shape_of_an_export_hurts(
    tmp_path_factory: pytest.TempPathFactory, value: object, reads: Callable[[Path], Any]
) -> None:
    """Whatever stands there: memories, or reasons."""
    chats = [{"mapping": value, "chat_messages": value, "current_node": "n", "docs": value}, value]
    path = written(tmp_path_factory.getbasetemp() / "conversations.json", chats)
    planner = Planner([], "u")
    found = list(reads(path))
    assert all(isinstance(each, (Note, Skip)) for each in found)
    planner.consider(found)


# --- the other toolsets -----------------------------------------------------------------------


NOTE = "---\nid: abcd1234\ntimestamp: 2026-01-02\nagent: a\nuser: u\ntopics: [t]\n---\n\nHello\n"
CONTENT = {
    "aiaml": {"files/a.md": NOTE},
    "chatgpt": {"conversations.json": '[{"title": "T", "mapping": {}}]'},
    "claude-ai": {"conversations.json": '[{"uuid": "1", "chat_messages": []}]'},
    "mem0": {"memories.json": '[{"id": "1", "memory": "likes tea", "user_id": "ada"}]'},
    "sessions": {".github/agent-memory/ada/logs/2026-01-01.md": "# Log\n\nDone.\n"},
    "serena": {".serena/memories/style.md": "# Style\n"},
    "claude": {"projects/-home-ada-shop/memory/a.md": "# A\n"},
    "citations": {"memories/mem-a.md": "---\nid: mem-a\n---\nCites.\n"},
    "mcp-memory": {"memory.jsonl": '{"type": "entity", "name": "Max", "observations": ["dog"]}'},
}


@pytest.mark.parametrize("kind", CONTENT)
def test_what_a_folder_has_besides_is_named(kind: str, tmp_path: Path, bring: Run) -> None:
    """Notes, with what takes them, and how many other files; and that does take them."""
    source = tmp_path / "shop"
    besides = {"docs/one.md": "One", "two.md": "Two", "a.py": "", "b.py": ""}
    for name, text in {**CONTENT[kind], **besides}.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text, encoding="utf-8")
    said = bring(source, code=1 if kind in ("chatgpt", "claude-ai") else 0)
    skipped = [each["reason"] for each in said["skipped"]]
    assert "other markdown files, which `--from markdown` takes: 2" in skipped
    assert "other files, which are no markdown: 2 .py" in skipped
    assert not any("One" in each["content"] for each in said["new"])
    more = [each["content"] for each in bring(source, "--from", "markdown")["new"]]
    assert {"# one\n\nOne", "# two\n\nTwo"} <= {*more}


def test_a_vault_says_what_else_it_has(tmp_path: Path, bring: Run) -> None:
    """Its notes are all read; what is hidden in it, or is no markdown, is not."""
    for name in (".obsidian/app.json", ".serena/memories/style.md", "a.md", "CLAUDE.md"):
        (tmp_path / "vault" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "vault" / name).write_text("text")
    said = bring(tmp_path / "vault")
    assert len(said["new"]) == 2
    [skip] = said["skipped"]
    assert skip["reason"] == "it also has what `--from serena` takes"


def test_session_logs_arrive(tmp_path: Path, bring: Run) -> None:
    """As the toolset writes them, each by its agent; what has no entry is no memory."""
    repository = tmp_path / "shop"
    (repository / ".git").mkdir(parents=True)
    (repository / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    sessions = AgentMemory(str(repository), "aristotle")
    sessions.start_session("2025-01-20")
    sessions.append_entry("Decisions", "- Prices are in cents.", "2025-01-20")
    sessions.start_session("2025-01-21")
    (repository / "CLAUDE.md").write_text("Be brief.")
    said = bring(repository)
    [new] = said["new"]
    assert new["agent"] == "aristotle" and "Prices are in cents." in new["content"]
    assert {"aristotle", "shop"} <= set(new["topics"])
    assert sorted(set(reasons(said))) == [
        "it also has what `--from claude` takes",
        "it has no entry",
        "it says how the others are written, and is no memory",
    ]


def test_entries_of_compartments_arrive(tmp_path: Path, bring: Run, bank: Store) -> None:
    """With tags, category and where they were."""
    path = tmp_path / ".aiaml-compartments.json"
    with Compartments(path, session="crm") as memory:
        memory.save("session", "Invoices in euros.", tags=["invoice"], category="fact", priority=7)
    said = bring(path)
    [new] = said["new"]
    assert (new["content"], new["topics"]) == ("Invoices in euros.", ["invoice", "fact"])
    extra = next(memory for _, memory in bank.scan()).extra
    assert {"priority: 7", 'compartment: "session"', 'session: "crm"'} <= set(extra)


def test_memories_of_a_code_base_arrive(tmp_path: Path, bring: Run, bank: Store) -> None:
    """With what they cite."""
    repository = tmp_path / "shop"
    (repository / ".git").mkdir(parents=True)
    (repository / "prices.py").write_text("def price():\n    return 5\n")
    Memories(repository).save(
        "Prices are in cents", "**Fact**: cents.", [Citation("prices.py", line=2)], tags=["money"]
    )
    [new] = bring(repository)["new"]
    assert new["content"] == "# Prices are in cents\n\n**Fact**: cents."
    assert new["topics"][0] == "money"
    extra = "\n".join(next(memory for _, memory in bank.scan()).extra)
    assert '"path": "prices.py"' in extra and "return 5" in extra


@pytest.mark.parametrize("given", ["shop", "shop/.memory", "shop/.memory/db"])
def test_memories_of_the_toolset_semantic_arrive(
    given: str, tmp_path: Path, bring: Run, bank: Store
) -> None:
    """Their texts, tags and times; what is derived from them is not."""
    (tmp_path / "shop").mkdir()
    opened = MemoryStore(tmp_path / "h" / ".memory", tmp_path / "shop")
    opened.store("Prices are in cents.", tags=["money"], category="decision")
    opened.close()
    [new] = bring(tmp_path / given)["new"]
    assert (new["content"], new["topics"]) == ("Prices are in cents.", ["money", "decision"])
    [(_, memory)] = bank.scan()
    assert 'priority: "NORMAL"' in memory.extra
    assert not any("embedding" in line or "hash" in line for line in memory.extra)


def test_another_database_is_no_source_of_memories(tmp_path: Path, bring: Run) -> None:
    """It is named."""
    with closing(sqlite3.connect(tmp_path / "db")) as database:
        database.execute("CREATE TABLE x (y)")
        database.commit()
    why = reasons(bring(tmp_path / "db", code=1))
    assert why == ["it is no database of the toolset semantic: no such table: memories"]


def test_a_pipe_is_read_from_a_real_shell(tmp_path: Path, bank: Store) -> None:
    """An export goes straight into an import elsewhere."""
    bank.add(Memory.new("claude", "marco", ["tea"], "Green."))
    aiaml = [sys.executable, "-m", "aiaml_server"]
    given_out = subprocess.run([*aiaml, "export", "--to", "-"], capture_output=True, check=True)
    other = {**os.environ, "AIAML_MEMORY_DIR": str(tmp_path / "other")}
    taken = subprocess.run(
        [*aiaml, "import", "-", "--yes"], input=given_out.stdout, env=other, check=True
    )
    assert taken.returncode == 0
    assert Store(tmp_path / "other").names() == bank.names()
