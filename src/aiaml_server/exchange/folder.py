"""Import a folder of markdown: Obsidian, Logseq, Basic Memory, Serena, Claude's files, our own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from aiaml_server.errors import InvalidInput, MalformedFile
from aiaml_server.exchange.dates import first_date
from aiaml_server.exchange.items import (
    Item,
    Skipped,
    checked,
    extra_lines,
    is_own_id,
    topics_of,
    without,
    words_of,
)
from aiaml_server.exchange.walk import find_notes, place
from aiaml_server.files import read_regular
from aiaml_server.format.frontmatter import load_yaml
from aiaml_server.format.memory import Memory, parsed

MAX_BYTES = 4 << 20
_TAGS = ("tags", "tag", "topics", "keywords")
_DATES = ("created", "created_at", "createdAt", "date", "timestamp", "updated", "modified")
_SIGNS = {
    ".obsidian": "obsidian",
    "logseq/config.edn": "logseq",
    ".serena": "serena",
    ".claude": "claude-code",
    "CLAUDE.md": "claude-code",
    "MEMORY.md": "claude-code",
}
_HEAD = re.compile(r"---[ \t]*\n(.*?\n)??(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_HASH_VALUE = re.compile(r"^(\w+:[ \t]+)(#.*)$", re.MULTILINE)  # to YAML, a comment
_LOGSEQ_HEAD = re.compile(r"(?:[\w-]+::.*\n)+")
_LOGSEQ_PROPERTY = re.compile(r"([\w-]+):: *(.*)\n")
_TEMPLATE = re.compile(r"\{\{ ?(?:date|time|title)\b[^{}\n]*\}\}|<%[-_*+~]? ?tp\.")
_CODE = re.compile(r"(?ms)^(```|~~~).*?^\1|`[^`\n]*`")
_INLINE_TAG = re.compile(r"(?<!\S)#(?=[\w/-]*[^\W\d])[\w/-]{1,64}")
_PLUGIN_DATA = re.compile(r"(?ms)^%%.*?^%%$\n?")


def import_folder(source: Path, user: str, own: Path) -> Iterator[Item | Skipped]:
    """Yield a memory for each note in a folder, or for one markdown file.

    Args:
        source: the folder or file; it is only read.
        user: the person whom the notes are about.
        own: the person's own memory directory, which is never read.
    """
    is_folder = source.is_dir()
    top = source if is_folder else source.parent
    kind = _kind_of(source)
    for found in find_notes(source, own) if is_folder else [source]:
        yield found if isinstance(found, Skipped) else _read_note(top, found, kind, user)


def _kind_of(source: Path) -> str:
    """Return the program that wrote these notes, which becomes the agent of the memories."""
    for sign, kind in _SIGNS.items():
        if sign in source.parts or (source / sign).exists():
            return kind
    return "markdown"


def _read_note(top: Path, path: Path, kind: str, user: str) -> Item | Skipped:
    where = place(top, path)
    try:
        text = read_regular(str(path), MAX_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        return Skipped(where, "it is not UTF-8")
    except (MalformedFile, OSError) as error:
        return Skipped(where, getattr(error, "strerror", "") or str(error))
    if "\0" in text:
        return Skipped(where, "it holds NUL bytes; if it is only in the cloud, download it first")
    memory = parsed(text)
    if memory is None:
        return _make_note(where, path, kind, user, text.replace("\r\n", "\n"))
    memory = without(memory, ["tags"])  # which `export_folder` wrote beside the topics
    if is_own_id(memory.id):
        return Item(where, memory, has_id=True)
    return Item(f"{kind}:{where}", memory.with_new_id())


def _make_note(where: str, path: Path, kind: str, user: str, text: str) -> Item | Skipped:
    fields, body, remark = _split(text, kind)
    if kind == "obsidian" and _TEMPLATE.search(_CODE.sub("", text)):
        return Skipped(where, "it is a template")
    if "-plugin" in " ".join(fields):
        body = _PLUGIN_DATA.sub("", body)
    content = body.strip()
    if not content:
        return Skipped(where, "it is empty")
    title = str(fields.get("title") or path.stem.replace("___", "/"))
    if not content.startswith("# "):
        content = f"# {' '.join(title.split())}\n\n{content}"
    tags = [str(fields.get(name, "")) for name in _TAGS] + _INLINE_TAG.findall(_CODE.sub("", body))
    folders = words_of(" ".join(where.split("/")[1:-1]))
    topics = topics_of([*(tags if any(tags) else words_of(title)), *folders], kind)
    agent = "basic-memory" if "permalink" in fields else kind
    try:
        memory = Memory.new(agent, user, topics, content)._replace(
            timestamp=first_date([fields.get(name) for name in _DATES], path),
            extra=extra_lines(fields, _TAGS),
        )
        return checked(Item(f"{kind}:{where}", memory, remark=remark))
    except (InvalidInput, MalformedFile, OSError) as error:
        return Skipped(where, str(error))


def _split(text: str, kind: str) -> tuple[Mapping[str, object], str, str]:
    """Return the properties of a note, its text, and a remark about them."""
    page = _LOGSEQ_HEAD.match(text)
    if kind == "logseq" and page:
        return dict(_LOGSEQ_PROPERTY.findall(page[0])), text[page.end() :], ""
    head = _HEAD.match(text)
    if not head:
        return {}, text, ""
    lines = (head[1] or "").expandtabs(2)
    fields = load_yaml(_HASH_VALUE.sub(r'\1"\2"', lines)) if lines.strip() else {}
    if isinstance(fields, dict):
        return fields, text[head.end() :], ""
    is_text = isinstance(fields, str)  # between two rulers
    return {}, text, "" if is_text else "its properties cannot be parsed, and stay in the text"
