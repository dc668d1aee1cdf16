"""The file format: `parse` undoes `format`, other readers see the same, foreign files are read."""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from datetime import datetime
from typing import Any

import frontmatter
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from aiaml_server.errors import MalformedFile
from aiaml_server.format.memory import MAX_ID, MAX_TIMESTAMP, Memory, draw_id, format, parse  # noqa: A004
from aiaml_server.timestamps import parse_timestamp

MOMENT = "2026-11-21T10:30:00.123456+00:00"

# Characters with a meaning to YAML, to readers of lines or to Unicode: far oftener than by chance.
nasty = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from(
            "---::##\"\"''\\\\[]{},&*!|>%@`?~ \t\n\r\x00\x0b\x1c\x1f\x7f\x85\u2028\u2029\ufeff"
        ),
    )
)
look_alikes = st.sampled_from(
    [
        *("yes", "No", "TRUE", "off", "null", "~", "1.0", "1e5", "0x1f", "012", "0b11", "1_000"),
        *(".inf", ".nan", "12:30:45", "2026-11-21", "=", "<<", "-", "?", ":", "#", "|", ">", "@x"),
        *("%x", "&a", "*a", "!x", "!!str", "[a]", "{a: b}", "'x", "'x'", '"x', '"x"', "\\x", "x:"),
        *("x:y", "x#y", "a---", "a: b", "a #b", "---", "--- ", "- x", "? x", "<<: *a", " a", "a "),
        *("id: 00000000", "é", "中文", "🙂"),
    ]
)
texts = st.one_of(nasty, look_alikes, st.tuples(look_alikes, nasty).map("".join))
contents = st.one_of(
    texts,
    st.lists(st.sampled_from(["---", "id: x", "", " ", "a", "\r", "\t#"])).map("\n".join),
    st.lists(st.sampled_from(["---", "verbatim: true", "", "a"])).map("\r\n".join),
)
ids = st.builds(draw_id) | texts.filter(lambda text: 0 < len(text) <= MAX_ID)
timestamps = st.datetimes(timezones=st.timezones()).map(datetime.isoformat) | texts.filter(
    lambda text: 0 < len(text) <= MAX_TIMESTAMP
)
extras = st.sampled_from(
    [
        (),
        ("note: x",),
        ("# a remark: x", "nested:", "  a: 1", "", "  b: [2]"),
        ("list:", "- x: y", "-"),
    ]
)
memories = st.builds(
    Memory, ids, timestamps, texts, texts, st.lists(texts.filter(bool)).map(tuple), contents, extras
)

# What `remember` accepts: no control characters in names, topics are single words.
names = texts.filter(
    lambda text: text.strip() and not re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029]", text)
)
given_memories = st.builds(
    Memory.new,
    names.filter(lambda text: len(text) <= 200),
    names.filter(lambda text: len(text) <= 200),
    st.lists(
        names.filter(lambda text: re.sub(r"[\s,\[\]]", "", text) and len(text) <= 64),
        min_size=1,
        max_size=5,
    ),
    contents.filter(str.strip),
)


def specified_reader(text: str) -> dict[str, Any]:
    """Read as specified: split on the delimiters, then each line at its first colon."""
    before, head, _ = text.split("---\n", 2)
    assert not before
    fields: dict[str, Any] = {}
    for line in head.split("\n"):
        if ":" in line:
            key, value = line.split(":", 1)
            fields[key.strip()] = value.strip()
    items = fields["topics"].strip("[]").split(",")
    fields = {key: unquoted(value) for key, value in fields.items()}
    return {**fields, "topics": [unquoted(item.strip()) for item in items if item.strip()]}


def unquoted(value: str) -> str:
    """Take a double-quoted scalar for the JSON string that it is."""
    return str(json.loads(value)) if value.startswith('"') else value


@given(memories)
def test_parse_gives_back_what_format_was_given(memory: Memory) -> None:
    """No field, and no byte of the content, is changed by writing and reading a memory."""
    assert parse(format(memory)) == memory


plain_words = st.sampled_from(
    ["a", " ", "b,", "[", "]", "#", ": ", "'", '"', "\r", "\x1c", "\u2028", "é"]
)
lines = st.lists(plain_words, max_size=6).map("".join)


@given(st.lists(lines, min_size=5, max_size=5), contents)
def test_the_quick_way_to_read_is_the_long_one(values: list[str], content: str) -> None:
    """A space behind the opening line means nothing, and makes the usual pattern fail."""
    fields = ("id", "timestamp", "agent", "user")
    head = [f"{field}: {value}" for field, value in zip(fields, values[:4], strict=True)]
    text = "\n".join([*head, f"topics: [{values[4]}]", "---", content])
    read: list[Memory | str] = []
    for opening in ("---\n", "--- \n"):
        try:
            read.append(parse(opening + text))
        except MalformedFile as error:
            read.append(str(error))
    assert read[0] == read[1]


@pytest.mark.slow
@given(given_memories)
def test_every_reader_sees_the_same_fields(memory: Memory) -> None:
    """The specification's reader, PyYAML and python-frontmatter agree with ours on all fields."""
    text = format(memory)
    ours = {field: getattr(memory, field) for field in ("id", "timestamp", "agent", "user")}
    ours["topics"] = list(memory.topics)

    specified = specified_reader(text)
    specified.pop("verbatim", None)
    assert specified == ours

    head: dict[str, Any] = yaml.safe_load(text.split("---\n", 2)[1])
    front: dict[str, Any] = dict(frontmatter.loads(text).metadata)
    for loaded in (head, front):
        verbatim = loaded.pop("verbatim", False)
        assert verbatim is (memory.content != memory.content.strip())
        assert loaded.pop("timestamp").isoformat(timespec="microseconds") == memory.timestamp
        assert loaded == {field: ours[field] for field in loaded}
        assert set(loaded) == {"id", "agent", "user", "topics"}


@given(contents)
@example("\nx\n")
@example("x\r")
def test_outer_white_space_of_the_content_survives(content: str) -> None:
    """Content that begins or ends with white space comes back exactly."""
    memory = Memory("a1b2c3d4", MOMENT, "claude", "marco", ("x",), content)
    assert parse(format(memory)).content == content


def test_a_plain_memory_is_written_exactly_as_specified() -> None:
    """An ordinary memory's file is the specification's example, byte for byte."""
    memory = Memory("a1b2c3d4", MOMENT, "claude", "john_doe", ("work", "style"), "Likes *lists*.")
    assert format(memory) == (
        "---\n"
        "id: a1b2c3d4\n"
        "timestamp: 2026-11-21T10:30:00.123456+00:00\n"
        "agent: claude\n"
        "user: john_doe\n"
        "topics: [work, style]\n"
        "---\n"
        "\n"
        "Likes *lists*.\n"
    )
    assert specified_reader(format(memory))["topics"] == ["work", "style"]


def test_characters_that_yaml_refuses_or_folds_are_escaped() -> None:
    """Any YAML parser reads them back."""
    for character in "\x7f\x80\x85\u2028\u2029\ufeff\ufffe\uffff":
        text = format(Memory("a1b2c3d4", MOMENT, f"a{character}b", "c", ("d",), "e"))
        assert yaml.safe_load(text.split("---\n", 2)[1])["agent"] == f"a{character}b"


def test_ids_are_text_to_yaml_of_both_versions() -> None:
    """An id never looks like a number: not to YAML 1.1, not to YAML 1.2."""
    number_1_2 = re.compile(
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+"
    )
    for _ in range(20_000):
        drawn = draw_id()
        assert re.fullmatch("[0-9a-f]{8}", drawn)
        assert not number_1_2.fullmatch(drawn)
    for number in ("12345678", "123e4567", "0b101010", "00000000"):
        assert f'id: "{number}"' in format(Memory(number, MOMENT, "a", "b", (), "c"))
    assert yaml.safe_load("0b101010") == 42  # why that one is on the list


HEAD = f"id: a1b2c3d4\ntimestamp: {MOMENT}\nagent: claude\nuser: marco\ntopics: [p, q]\n"


def test_unknown_keys_survive() -> None:
    """What this program does not know stays in the file as it stands."""
    text = f"---\n{HEAD}source: notes.txt\naliases:\n  - one\n  - two\n# remark\n---\n\nBody\n"
    memory = parse(text)
    assert memory.extra == ("source: notes.txt", "aliases:", "  - one", "  - two", "# remark")
    assert format(memory) == text


READ: dict[str, tuple[str, dict[str, Any]]] = {
    "CRLF line ends": (
        f"---\n{HEAD}---\n\nBody\nmore\n".replace("\n", "\r\n"),
        {"content": "Body\r\nmore"},
    ),
    "BOM": (f"\ufeff---\n{HEAD}---\n\nBody\n", {}),
    "white space behind the delimiters": (f"--- \n{HEAD}---\t\n\nBody\n", {}),
    "no blank line, no final newline": (f"---\n{HEAD}---\nBody", {}),
    "no content": (f"---\n{HEAD}---", {"content": ""}),
    "a delimiter in the content": (
        f"---\n{HEAD}---\n\nBody\n---\nmore",
        {"content": "Body\n---\nmore"},
    ),
    "block list": (f"---\n{HEAD}---\n\nBody".replace("[p, q]", "\n  - p\n  - 'q'"), {}),
    "block list of what YAML takes for others": (
        f"---\n{HEAD}---\n\nBody".replace("[p, q]", "\n  - 1\n  - yes"),
        {"topics": ("1", "yes")},
    ),
    "block list, not indented": (f"---\n{HEAD}---\n\nBody".replace("[p, q]", "\n- p\n- q"), {}),
    "list over several lines": (f"---\n{HEAD}---\n\nBody".replace("[p, q]", "[p,\n  q]"), {}),
    "list without brackets": (f"---\n{HEAD}---\n\nBody".replace("[p, q]", "p, q"), {}),
    "quoted values": (
        f"---\n{HEAD}---\n\nBody".replace("claude", "'it''s'").replace("marco", '"a\\x41\\tb"'),
        {"agent": "it's", "user": "aA\tb"},
    ),
    "quoted topics": (
        f"---\n{HEAD}---\n\nBody".replace("[p, q]", """["a,b", 'c]', it's, ]"""),
        {"topics": ("a,b", "c]", "it's")},
    ),
    "empty topics": (f"---\n{HEAD}---\n\nBody".replace("[p, q]", "[]"), {"topics": ()}),
    "folded text": (
        f"---\n{HEAD}---\n\nBody".replace("marco", ">-\n  ma\n  rco"),
        {"user": "ma rco"},
    ),
    "numbers and words of YAML": (
        f"---\n{HEAD}---\n\nBody".replace("a1b2c3d4", "12345678").replace("marco", "yes"),
        {"id": "12345678", "user": "yes"},
    ),
    "a colon in a value": (
        f"---\n{HEAD}---\n\nBody".replace("marco", "a: b: c"),
        {"user": "a: b: c"},
    ),
    "a remark is part of the value": (
        f"---\n{HEAD}---\n\nBody".replace("marco", "marco # me"),
        {"user": "marco # me"},
    ),
    "an unfinished quote stands for itself": (
        f"---\n{HEAD}---\n\nBody".replace("marco", '"marco'),
        {"user": '"marco'},
    ),
    "YAML that would run code is text": (
        f"---\n{HEAD}---\n\nBody".replace("marco", "!!python/object/apply:os.system [x]"),
        {"user": "!!python/object/apply:os.system [x]"},
    ),
    "a repeated key: the last one": (f"---\nuser: other\n{HEAD}---\n\nBody", {}),
    "naive timestamp": (
        f"---\n{HEAD}---\n\nBody".replace(MOMENT, "2024-01-15T10:30:00.123456"),
        {"timestamp": "2024-01-15T10:30:00.123456"},
    ),
    "a timestamp that is none": (
        f"---\n{HEAD}---\n\nBody".replace(MOMENT, "soon"),
        {"timestamp": "soon"},
    ),
    "verbatim": (f"---\n{HEAD}verbatim: true\n---\n\n\n Body \n\n", {"content": "\n Body \n"}),
}


@pytest.mark.parametrize("case", READ)
def test_files_by_other_hands_are_read(case: str) -> None:
    """What people and other programs write is understood, as docs/format.md lists it."""
    text, different = READ[case]
    expected = Memory("a1b2c3d4", MOMENT, "claude", "marco", ("p", "q"), "Body")
    assert parse(text) == expected._replace(**different)
    assert parse(format(parse(text))) == parse(text)


REFUSED = {
    "empty": ("", ["the first line is not ---"]),
    "no frontmatter": ("# Note\n", ["the first line is not ---"]),
    "something before it": (f"\n---\n{HEAD}---\n", ["the first line is not ---"]),
    "never closed": (f"---\n{HEAD}", ["no second line --- closes the frontmatter"]),
    "missing fields": (
        "---\nid: x\nuser:\n---\n",
        ["no field 'timestamp'", "no field 'agent'", "no field 'topics'"],
    ),
    "empty id": (f"---\n{HEAD}---\n".replace("a1b2c3d4", ""), ["id is empty"]),
    "empty timestamp": (f"---\n{HEAD}---\n".replace(MOMENT, '""'), ["timestamp is empty"]),
    "a mapping for a name": (
        f"---\n{HEAD}---\n".replace("marco", "\n  a: b"),
        ["user is not text"],
    ),
    "topics of topics": (
        f"---\n{HEAD}---\n".replace("[p, q]", "\n- a\n- [b]"),
        ["topics is not a list of words"],
    ),
    "topics that would run code": (
        f"---\n{HEAD}---\n".replace("[p, q]", "\n- !!python/object/apply:os.getcwd []"),
        ["topics is not a list of words"],
    ),
    "topics with an alias": (
        f"---\n{HEAD}---\n".replace("[p, q]", "\n- &a p\n- *a"),
        ["topics is not a list of words"],
    ),
    "broken YAML": (
        f"---\n{HEAD}---\n".replace("[p, q]", "[\n  a"),
        ["topics is not a list of words"],
    ),
    "half a surrogate pair": (
        f"---\n{HEAD}---\n".replace("marco", '"\\ud800"'),
        ["user holds half of a surrogate pair"],
    ),
    "half a surrogate pair without quotes": (
        f"---\n{HEAD}---\n".replace("marco", "\udc80"),
        ["user holds half of a surrogate pair"],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_malformed_file_is_refused_with_all_its_problems(case: str) -> None:
    """A file that is no memory says everything that is wrong with it, not only the first."""
    text, problems = REFUSED[case]
    with pytest.raises(MalformedFile) as caught:
        parse(text)
    assert list(caught.value.problems) == problems


def test_a_yaml_bomb_is_refused_at_once() -> None:
    """Nested aliases are neither expanded nor taken for topics."""
    lines = ["- &a0 [x]", *(f"- &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 60))]
    text = f"---\n{HEAD}---\n".replace("[p, q]", "\n" + "\n".join(lines))
    with pytest.raises(MalformedFile, match="topics is not a list of words"):
        parse(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text makes the reader fail in any other way."""
    for candidate in (
        text,
        f"---\n{text}",
        f"---\n{HEAD}{text}\n---\n",
        f"---\n{text}\n{HEAD}---\n{text}",
    ):
        with suppress(MalformedFile):
            assert isinstance(parse(candidate), Memory)


INSTANTS = {
    "1970-01-01T00:00:00Z": 0,
    "1970-01-01T00:00:00.000001+00:00": 1,
    "1970-01-01 01:00:00+01:00": 0,
    "1970-01-01T01:00+0100": 0,
    "1970-01-01T02:00:00,5+02": 500_000,
    "1969-12-31T23:59:59.123456789Z": -876_544,
    "0001-01-01T00:00:00+14:00": -62_135_647_200_000_000,
    "9999-12-31T23:59:59Z": 253_402_300_799_000_000,
    "2026-02-30T00:00:00Z": None,
    "soon": None,
    "": None,
}


@pytest.mark.parametrize("text", INSTANTS)
def test_timestamps_name_the_same_instant_on_every_python(text: str) -> None:
    """The order of answers does not depend on what this Python's ISO 8601 reader knows."""
    assert parse_timestamp(text) == INSTANTS[text]


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="only POSIX can change its time zone")
def test_a_timestamp_without_an_offset_is_local_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of the first implementation hold naive local times, notes often only a date."""
    monkeypatch.setenv("TZ", "XXX-5")
    time.tzset()
    try:
        assert parse_timestamp("1970-01-01T06:00:00") == 3_600_000_000
        assert parse_timestamp("1970-01-02") == 19 * 3_600_000_000
    finally:
        monkeypatch.undo()
        time.tzset()
