"""What becomes of notes: each row is a file of a source, and the memory that it becomes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from aiaml_server.errors import TooLarge
from aiaml_server.exchange import Item, export_jsonl, read_source
from aiaml_server.exchange.folder import import_folder
from aiaml_server.exchange.items import Skipped
from aiaml_server.exchange.jsonl import import_jsonl, import_mcp_memory
from aiaml_server.format.memory import Memory
from aiaml_server.timestamps import parse_timestamp

NOWHERE = Path("/nowhere")


def written(top: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below a folder."""
    for name, content in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return top


def found(top: Path) -> tuple[dict[str, Item], dict[str, str]]:
    """Import a folder; return its items by their file, and what is skipped with the reasons."""
    items: dict[str, Item] = {}
    skipped: dict[str, str] = {}
    for each in import_folder(top, "ann", NOWHERE):
        if isinstance(each, Skipped):
            skipped[each.place.removeprefix(f"{top.name}/")] = each.reason
        else:
            items[each.place.partition(f"{top.name}/")[2]] = each
    return items, skipped


HEADS = {
    "plain": ("---\ntags: [tea]\n---\nBody.", ["tea"], ""),
    "comments": ("---\n# mine\ntags: [tea] # best\n---\nBody.", ["tea"], ""),
    "bom": ("\ufeff---\ntags: [bom]\n---\nBody.", ["bom"], ""),
    "crlf": ("---\r\ntags:\r\n- tea\r\n---\r\nBody.\r\n", ["tea"], ""),
    "dots": ("---\ntags: [dots]\n...\nBody.", ["dots"], ""),
    "tabs": ("---\ntags:\n\t- x1\n\t- y1\n---\nBody.", ["x1", "y1"], ""),
    "hash": ("---\ntags: #tea #coffee\n---\nBody.", ["tea", "coffee"], ""),
    "twice": ("---\ntags: [a1]\ncolour: red\ntags: [b1]\n---\nBody.", ["b1"], 'colour: "red"'),
    "words": ("---\nzip: 01234\nversion: 1.10\ntags: NO, 2024\n---\nBody.", ["NO", "2024"], "zip"),
    "many": ("---\nnote: |\n  one\n  --- \n  two\ntags: [m1]\n---\nBody.", ["m1"], "one\\n--- "),
    "ours": ("---\nid: 7\ntags: [t1]\n---\nBody.", ["t1"], 'source-id: "7"'),
    "inline": ("Body #garden/beds #日本, #1984 `#code` #y2k", ["garden/beds", "日本", "y2k"], ""),
    "no tags": ("Body.", ["no", "tags"], ""),
}


@pytest.mark.parametrize("name", HEADS)
def test_a_head_gives_topics_and_properties(name: str, tmp_path: Path) -> None:
    """The rest of the properties stays in the frontmatter; the text is below the title."""
    text, topics, extra = HEADS[name]
    items, skipped = found(written(tmp_path, {f"{name}.md": text}))
    (item,) = items.values()
    assert list(item.memory.topics) == topics and not skipped and not item.remark
    assert item.memory.content.startswith(f"# {name}\n\nBody")
    assert extra in "\n".join(item.memory.extra)


@pytest.mark.parametrize(
    "head", ["title: Meeting: with Ada\n", "a: [\n", "- a\n- b\n", "{{x}}: 1\n"]
)
def test_a_head_that_cannot_be_parsed_is_kept_with_fields(head: str, tmp_path: Path) -> None:
    """Nothing of a note is lost."""
    items, _ = found(written(tmp_path, {"note.md": f"---\n{head}---\nBody.\n"}))
    (item,) = items.values()
    assert head.strip() in item.memory.content and "Body." in item.memory.content
    assert item.remark == "its properties cannot be parsed, and stay in the text"


def test_a_note_between_two_rulers_has_no_head(tmp_path: Path) -> None:
    """It is kept, and there is nothing to say."""
    text = "---\n\nA note that begins with a ruler.\n\n---\n\nSecond half.\n"
    items, _ = found(written(tmp_path, {"note.md": text}))
    assert items["note.md"].memory.content == f"# note\n\n{text.strip()}"
    assert not items["note.md"].remark


DATES = {
    "a.md": ("---\ncreated: 2024-07-08\n---\nx", "2024-07-08"),
    "b.md": ('---\ncreated: "[[2024-09-10]]"\ndate: 2024-01-01\n---\nx', "2024-09-10"),
    "c.md": ("---\ndate: 2024-05-06T10:11:00Z\n---\nx", "2024-05-06T10:11:00Z"),
    "d.md": ("---\ncreated: 2024/02/03\n---\nx", "2024-02-03"),
    "2024-01-02 Meeting.md": ("x", "2024-01-02"),
    "20240103.md": ("x", "2024-01-03"),
    "2024_01_04.md": ("x", "2024-01-04"),
    "20240230.md": ("x", "2020-01-01"),
    "e.md": ("---\ncreated: soon\n---\nx", "2020-01-01"),
}


def test_a_date_is_found_in_properties_names_and_files(tmp_path: Path) -> None:
    """The first that is a date; without any, when the file was changed."""
    written(tmp_path, {name: text for name, (text, _) in DATES.items()})
    changed = (parse_timestamp("2020-01-01") or 0) / 1e6
    for path in tmp_path.iterdir():
        os.utime(path, (changed, changed))
    items, _ = found(tmp_path)
    for name, (_, date) in DATES.items():
        assert parse_timestamp(items[name].memory.timestamp) == parse_timestamp(date), name


def test_an_obsidian_vault(tmp_path: Path) -> None:
    """Templates, settings, data of plugins and what is too large are no notes.

    All that is left out is named, but for links.
    """
    drawing = "---\nexcalidraw-plugin: parsed\n---\n# Text\nHello\n\n%%\n# Drawing\nN4KAkAR\n%%\n"
    vault = written(
        tmp_path / "vault",
        {
            ".obsidian/templates.json": '{"folder": "Templates/"}',
            "Templates/Daily.md": "Plain words of a template.",
            "Weekly.md": "<% tp.date.now() %> More of them.",
            "Template.md": "---\ncreated: {{date}}\n---\nBody.",
            "Drawing.excalidraw.md": drawing,
            "Recipes/Bread.md": "---\ncreated: 2025-02-03\ntags: [baking]\n---\nFlour, water.",
            "Empty.md": " \n",
            ".Evicted.md.icloud": "bplist00",
            "Late.md.nextcloud": " ",
            "Nul.md": b"\0" * 20,
            "Latin.md": b"\xe9",
            "cat.png": b"x",
        },
    )
    with (vault / "Large.md").open("wb") as file:
        file.truncate((4 << 20) + 1)
    if os.name == "posix":
        (vault / "Link.md").symlink_to(vault / "Recipes" / "Bread.md")
        (vault / "Linked").symlink_to(written(tmp_path / "other", {"a.md": "Not of this vault."}))
    items, skipped = found(vault)
    assert set(items) == {"Recipes/Bread.md", "Drawing.excalidraw.md"}
    bread = items["Recipes/Bread.md"]
    assert bread.place == "obsidian:vault/Recipes/Bread.md"
    assert bread.memory.agent == "obsidian" and bread.memory.user == "ann"
    assert bread.memory.topics == ("baking", "recipes")
    assert bread.memory.content == "# Bread\n\nFlour, water."
    assert bread.memory.extra == ('created: "2025-02-03"',)
    assert "N4KAkAR" not in items["Drawing.excalidraw.md"].memory.content
    assert "Hello" in items["Drawing.excalidraw.md"].memory.content
    assert "link" in skipped.pop("Link.md", "link") and "UTF-8" in skipped.pop("Latin.md")
    assert "larger than 4,194,304 bytes" in skipped.pop("Large.md")
    assert skipped == {
        "Templates": "it holds templates",
        "Weekly.md": "it is a template",
        "Template.md": "it is a template",
        "Empty.md": "it is empty",
        ".Evicted.md.icloud": "it is only in the cloud; download it first",
        "Late.md.nextcloud": "it is only in the cloud; download it first",
        "Nul.md": "it holds NUL bytes; if it is only in the cloud, download it first",
    }


def test_a_folder_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are imported, and the reason is a sentence."""
    vault = written(tmp_path / "vault", {"locked/a.md": "a", "z/b.md": "b"})
    scan = os.scandir

    def refuse(path: str) -> object:
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr("os.scandir", refuse)
    items, skipped = found(vault)
    assert list(items) == ["z/b.md"] and skipped == {"locked": "permission denied"}


def test_a_logseq_graph(tmp_path: Path) -> None:
    """Its folders of older versions are left out; properties of a page and journals are known."""
    graph = written(
        tmp_path / "graph",
        {
            "logseq/config.edn": "{:meta/version 1}",
            "logseq/bak/pages/Ada/2026-03-13.md": "- Ada is allergic to cats.",
            "logseq/version-files/local/pages/Ada/2026.md": "- an older version",
            "pages/Ada.md": "type:: person\ntags:: friend, gardener\n\n- Ada is allergic to bees.",
            "pages/Projects___Garden.md": "- Plan of the beds",
            "journals/2026_03_14.md": "- Met [[Ada]] about the garden #work",
        },
    )
    items, skipped = found(graph)
    assert set(items) == {"pages/Ada.md", "pages/Projects___Garden.md", "journals/2026_03_14.md"}
    ada = items["pages/Ada.md"].memory
    assert ada.topics == ("friend", "gardener", "pages") and ada.extra == ('type: "person"',)
    assert ada.content == "# Ada\n\n- Ada is allergic to bees."
    assert items["pages/Projects___Garden.md"].memory.content.startswith("# Projects/Garden\n")
    journal = items["journals/2026_03_14.md"].memory
    assert parse_timestamp(journal.timestamp) == parse_timestamp("2026-03-14")
    assert set(skipped) == {"logseq"}


def test_files_of_claude_serena_and_basic_memory(tmp_path: Path) -> None:
    """Of `~/.claude` only what is memory; who wrote a note is known by its place or head."""
    home = written(
        tmp_path / ".claude",
        {
            "CLAUDE.md": "# Mine\n\nUse tabs.",
            "rules/style.md": "Short names.",
            "projects/-home-me-shop/memory/MEMORY.md": "Prices are in cents.",
            "commands/review.md": "Review this.",
            "todos/x.json": "{}",
        },
    )
    notes = [each for each in import_folder(home, "ann", NOWHERE) if isinstance(each, Item)]
    assert {note.memory.agent for note in notes} == {"claude-code"}
    assert len(notes) == 3 and notes[0].memory.content == "# Mine\n\nUse tabs."
    serena = written(tmp_path / "shop" / ".serena" / "memories", {"style.md": "Short."})
    (note,) = import_folder(serena, "ann", NOWHERE)
    assert isinstance(note, Item) and note.place == "serena:shop/.serena/memories/style.md"
    one = written(tmp_path, {"coffee.md": "---\npermalink: coffee\n---\nPour slowly."})
    (note,) = read_source(one / "coffee.md", "ann", NOWHERE)
    assert isinstance(note, Item) and note.memory.agent == "basic-memory"


def test_the_official_memory_server_s_file(tmp_path: Path) -> None:
    """An entity becomes a memory, with its observations and the relations that begin at it."""
    lines = [
        {"type": "entity", "name": "Anna", "entityType": "person", "observations": ["Cello\nsolo"]},
        {"type": "relation", "from": "Anna", "relationType": "lives in", "to": "Lisbon"},
        {"type": "relation", "from": "Bob", "relationType": "knows", "to": "Anna"},
        {"type": "entity"},
    ]
    data = "\n".join([*map(json.dumps, lines), "oops", ""]).encode()
    path = written(tmp_path, {"memory.json": data}) / "memory.json"
    anna, bob = (each for each in read_source(path, "ann", NOWHERE) if isinstance(each, Item))
    assert anna.memory.content == "# Anna\n\n- person\n- Cello\n  solo\n- lives in Lisbon"
    assert anna.memory.topics == ("anna", "person") and anna.memory.agent == "mcp-memory"
    assert bob.memory.content == "# Bob\n\n- knows Anna"
    skipped = [each for each in import_mcp_memory(data, "m", "ann") if isinstance(each, Skipped)]
    assert [each.place for each in skipped] == ["m:4", "m:5"]


def test_json_lines_come_back_exactly() -> None:
    """Also content with blanks around it, and lines of the frontmatter that others wrote."""
    stored = Memory(
        "a1b2c3d4", "2026-01-02T03:04:05Z", "c", "u", ("t",), " x\n", ("priority: HIGH",)
    )
    (item,) = import_jsonl(export_jsonl([stored]), "m", "ann")
    assert isinstance(item, Item) and item.has_id and item.memory == stored


def test_other_lines_of_the_frontmatter_are_members_of_the_line() -> None:
    """If their values are JSON; the toolset `semantic` has the same shape."""
    for extra, members in (
        (('priority: "HIGH"', "count: 3"), {"priority": "HIGH", "count": 3}),
        (("priority: HIGH", "count: 3"), {"extra": ["priority: HIGH", "count: 3"]}),
        (('imported-from: "x"', "count: 3"), {"extra": ['imported-from: "x"'], "count": 3}),
        (('user: "x"',), {"extra": ['user: "x"']}),
        ((), {}),
    ):
        stored = Memory("a1b2c3d4", "2026-01-02T03:04:05Z", "c", "u", ("t",), "x", extra)
        line = export_jsonl([stored])
        assert json.loads(line) == {**stored.fields(), **members}
        if extra != ('user: "x"',):
            (item,) = import_jsonl(line, "m", "ann")
            assert isinstance(item, Item) and item.memory == stored


def test_members_that_a_memory_does_not_have_are_kept() -> None:
    """Another program's record needs only a content."""
    record = {
        "content": "Prices are in cents.",
        "tags": ["billing"],
        "priority": "HIGH",
        "id": "p:3",
    }
    (item,) = import_jsonl(json.dumps(record).encode(), "m", "ann")
    assert isinstance(item, Item) and not item.has_id and item.place == "jsonl:p:3"
    assert item.memory.extra == ('priority: "HIGH"',) and item.memory.topics == ("billing",)
    assert item.memory.user == "ann"


def test_a_file_of_lines_that_is_too_large_is_refused(tmp_path: Path) -> None:
    """It is not read."""
    with (tmp_path / "m.jsonl").open("wb") as file:
        file.truncate((256 << 20) + 1)
    with pytest.raises(TooLarge):
        list(read_source(tmp_path / "m.jsonl", "ann", NOWHERE))


@pytest.mark.parametrize(
    "line",
    [
        "[]", "x", '{"id": "a1b2c3d4"}', '{"content": 7}', '{"content": "\\ud800"}',
        '{"content": "x", "extra": ["a\\nid: 1"]}', "[" * 100_000,
        '{"content": "x", "more": "%s"}' % ("y" * 70_000),
    ],
)  # fmt: skip
def test_a_line_that_is_no_memory_is_named(line: str) -> None:
    """The others go on."""
    good = '{"content": "x"}'
    first, second = import_jsonl(f"{line}\n{good}\n".encode(), "m", "ann")
    assert isinstance(first, Skipped) and first.place == "m:1"
    is_object = line.startswith("{")
    assert first.reason.startswith(
        "it is not a memory: " if is_object else "it is not a JSON object"
    )
    assert isinstance(second, Item)
