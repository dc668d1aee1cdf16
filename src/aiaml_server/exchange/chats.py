"""What ChatGPT and Claude.ai give out on request: conversations, projects, what they remember.

A conversation becomes a note, or several where it is long. ChatGPT's is a tree, of which the branch
that was last shown is read. docs/import.md says which state of the formats was looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from aiaml_server.exchange.found import Note, Skip, printable
from aiaml_server.exchange.jsonl import list_of, text_of
from aiaml_server.exchange.notes import kept_lines, one_line, words
from aiaml_server.exchange.records import document
from aiaml_server.exchange.walk import first_time, place

_MOST = 800_000  # bytes of a note; a memory may have a mebibyte
_SHOWN = ("text", "multimodal_text")
_CONTEXT = ("user_profile", "user_instructions", "model_set_context")


class Turn(NamedTuple):
    """What one side said."""

    who: str
    text: str


class _Source(NamedTuple):
    """Where notes are from: their kind and agent, a file and what it is called."""

    kind: str
    path: Path
    place: str

    def notes(
        self,
        key: str,
        title: str,
        texts: Sequence[str],
        about: Mapping[str, Any],
        lost: Sequence[str] = (),
    ) -> Iterator[Note]:
        """Make notes of texts under a title: one, or several that are not too long."""
        extra, more = kept_lines(about)
        parts = list(_parts(texts))
        for number, text in enumerate(parts, 1):
            part = f" ({number} of {len(parts)})" if len(parts) > 1 else ""
            yield Note(
                kind=self.kind,
                agent=self.kind,
                place=printable(f"{self.place}#{key}{part}"),
                content=f"# {title}{part}\n\n{text}",
                topics=tuple(words(title)),
                timestamp=first_time(
                    [str(about.get("created") or ""), str(about.get("updated") or "")], self.path
                ),
                extra=extra,
                said=text,
                lost=(*lost, *more),
            )


def _parts(texts: Iterable[str]) -> Iterator[str]:
    part: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode("utf-8", "replace"))
        if part and size + length > _MOST:
            yield "\n\n".join(part)
            part, size = [], 0
        part.append(text)
        size += length
    if part:
        yield "\n\n".join(part)


def _conversation(
    source: _Source,
    title: str,
    turns: Sequence[Turn],
    about: Mapping[str, Any],
    lost: Sequence[str],
) -> Iterator[Note | Skip]:
    key = str(about["id"])[:100]
    if not turns:
        yield Skip(printable(f"{source.place}#{key}"), "nothing is said in it")
        return
    title = title or one_line(turns[0].text)[:60]
    said = [f"**{turn.who}:**\n\n{turn.text}" for turn in turns]
    yield from source.notes(key, title, said, about, lost)


_CONVERSATIONS = ("conversations.json", "conversations-*.json")
_PROJECTS = ("projects.json", "projects/*.json", "memories.json", "memories/*.json")


def chatgpt_files(top: Path) -> list[Path]:
    """Return what is read of ChatGPT's export."""
    return _files(top, *_CONVERSATIONS)


def claude_ai_files(top: Path) -> list[Path]:
    """Return what is read of Claude.ai's export, the projects that memories belong to first."""
    return _files(top, *_PROJECTS, *_CONVERSATIONS)


def _files(top: Path, *names: str) -> list[Path]:
    """Return the files of a source: those of a folder that have such names, or the one it is."""
    if not top.is_dir():
        return [top]
    return [path for name in names for path in sorted(top.glob(name)) if path.is_file()]


def _objects(path: Path, where: str) -> Iterator[Mapping[str, Any] | Skip]:
    try:
        value = document(path)
    except ValueError as error:
        yield Skip(where, str(error))
        return
    for each in value if isinstance(value, list) else [value]:
        yield each if isinstance(each, dict) else Skip(where, "it holds what is no JSON object")


def _counted(**counts: int) -> list[str]:
    """Say what is not taken, where there is any: "3 pictures_and_files"."""
    return [f"{name.replace('_', ' ')}: {count:,}" for name, count in counts.items() if count]


# --- ChatGPT ----------------------------------------------------------------------------------


def chatgpt(top: Path) -> Iterator[Note | Skip]:
    """Read ChatGPT's export, or its file of conversations."""
    contexts: set[str] = set()
    for path in chatgpt_files(top):
        source = _Source("chatgpt", path, place(top if top.is_dir() else path, path))
        for each in _objects(path, source.place):
            if isinstance(each, Skip):
                yield each
            elif isinstance(each.get("mapping"), dict):
                yield from _chatgpt_one(source, each, contexts)
            else:
                yield Skip(source.place, "it holds what is no conversation")


def _chatgpt_one(
    source: _Source, value: Mapping[str, Any], contexts: set[str]
) -> Iterator[Note | Skip]:
    nodes = {key: node for key, node in value["mapping"].items() if isinstance(node, dict)}
    last = value.get("current_node")
    branch = dict.fromkeys(_branch(nodes, last if isinstance(last, str) else None))
    turns: list[Turn] = []
    pictures = steps = 0
    about = {"id": value.get("conversation_id") or value.get("id") or value.get("title")}
    about |= {"created": value.get("create_time"), "updated": value.get("update_time")}
    for key in branch:
        message = nodes[key].get("message")
        if not isinstance(message, dict) or not isinstance(content := message.get("content"), dict):
            continue
        for name in _CONTEXT:
            if (text := text_of(content.get(name))) and text not in contexts:
                contexts.add(text)
                title = f"ChatGPT's {name.replace('_', ' ')}"
                yield from source.notes(name, title, [text], {"created": about["created"]})
        who = _role(message)
        if not who or content.get("content_type") not in _SHOWN:
            steps += _is_step(message, content)
            continue
        parts = content.get("parts")
        texts = [each for each in parts if isinstance(each, str)] if isinstance(parts, list) else []
        pictures += len(parts) - len(texts) if isinstance(parts, list) else 0
        if text := "\n\n".join(texts).strip():
            turns.append(Turn(who, text))
    others = sum(
        bool(_role(node.get("message"))) for key, node in nodes.items() if key not in branch
    )
    lost = _counted(
        messages_of_other_branches=others, pictures_and_files=pictures, steps_of_tools=steps
    )
    yield from _conversation(source, one_line(value.get("title")), turns, about, lost)


def _branch(nodes: Mapping[str, Mapping[str, Any]], last: object) -> list[str]:
    """Return the nodes from the root to the last one, or to the last leaf where none is named."""
    if last not in nodes:
        leaves = [key for key, node in nodes.items() if not node.get("children")]
        last = leaves[-1] if leaves else None
    branch: dict[str, None] = {}
    while isinstance(last, str) and last in nodes and last not in branch:
        branch[last] = None
        last = nodes[last].get("parent")
    return [*reversed(branch)]


def _role(message: object) -> str:
    """Return who says a message that is shown; empty for others."""
    if not isinstance(message, dict) or _is_hidden(message):
        return ""
    author = message.get("author")
    role = author.get("role") if isinstance(author, dict) else message.get("role")
    return {"user": "You", "assistant": "ChatGPT"}.get(role, "") if isinstance(role, str) else ""


def _is_step(message: Mapping[str, Any], content: Mapping[str, Any]) -> bool:
    author = message.get("author")
    role = author.get("role") if isinstance(author, dict) else ""
    shown = content.get("content_type")
    is_context = isinstance(shown, str) and shown.endswith("_editable_context")
    return role in ("assistant", "tool") and not _is_hidden(message) and not is_context


def _is_hidden(message: Mapping[str, Any]) -> bool:
    metadata = message.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("is_visually_hidden_from_conversation"))


# --- Claude.ai --------------------------------------------------------------------------------


def claude_ai(top: Path) -> Iterator[Note | Skip]:
    """Read Claude.ai's export, or one of its files."""
    projects: dict[str, str] = {}
    for path in claude_ai_files(top):
        source = _Source("claude-ai", path, place(top if top.is_dir() else path, path))
        for each in _objects(path, source.place):
            if isinstance(each, Skip):
                yield each
            elif isinstance(each.get("chat_messages"), list):
                yield from _claude_one(source, each)
            elif "conversations_memory" in each or "project_memories" in each:
                yield from _claude_memory(source, each, projects)
            elif "name" in each and ("docs" in each or "prompt_template" in each):
                projects[str(each.get("uuid"))] = one_line(each.get("name"))
                yield from _claude_project(source, each)
            else:
                yield Skip(source.place, "it holds no conversation, project or memory")


def _claude_one(source: _Source, value: Mapping[str, Any]) -> Iterator[Note | Skip]:
    turns: list[Turn] = []
    files = steps = 0
    for message in value["chat_messages"]:
        if not isinstance(message, dict):
            continue
        blocks = [each for each in list_of(message.get("content")) if isinstance(each, dict)]
        texts = [text_of(each.get("text")) for each in blocks if each.get("type") == "text"]
        texts = [*filter(None, texts)] or [text_of(message.get("text"))]
        steps += sum(each.get("type") != "text" for each in blocks)
        for each in list_of(message.get("attachments")):
            if isinstance(each, dict) and (inside := text_of(each.get("extracted_content"))):
                texts.append(f"{one_line(each.get('file_name')) or 'Attachment'}:\n\n{inside}")
            else:
                files += 1
        files += len(list_of(message.get("files")))
        who = "You" if message.get("sender") == "human" else "Claude"
        turns += [Turn(who, text) for text in texts if text]
    about = {"id": value.get("uuid"), "created": value.get("created_at")}
    about |= {"updated": value.get("updated_at"), "summary": value.get("summary")}
    lost = _counted(pictures_and_files=files, steps_of_thought_and_tools=steps)
    yield from _conversation(source, one_line(value.get("name")), turns, about, lost)


def _claude_project(source: _Source, value: Mapping[str, Any]) -> Iterator[Note]:
    name, key = one_line(value.get("name")) or "A project", str(value.get("uuid"))[:100]
    about = {"id": value.get("uuid"), "created": value.get("created_at")}
    texts = [text_of(value.get("description")), text_of(value.get("prompt_template"))]
    if texts := [*filter(None, texts)]:
        yield from source.notes(key, name, texts, {**about, "updated": value.get("updated_at")})
    for each in list_of(value.get("docs")):
        if isinstance(each, dict) and (text := text_of(each.get("content"))):
            title = one_line(each.get("filename")) or "document"
            said = {"id": each.get("uuid"), "created": each.get("created_at") or about["created"]}
            yield from source.notes(f"{key}/{title}", f"{name} › {title}", [text], said)


def _claude_memory(
    source: _Source, value: Mapping[str, Any], projects: Mapping[str, str]
) -> Iterator[Note | Skip]:
    if text := text_of(value.get("conversations_memory")):
        yield from source.notes("memory", "What Claude remembers", [text], {})
    memories = value.get("project_memories")
    for key, held in memories.items() if isinstance(memories, dict) else ():
        if text := text_of(held):
            title = f"What Claude remembers of {projects.get(key) or key}"
            yield from source.notes(f"memory/{key}", title, [text], {})
    if value.get("memory_files"):
        yield Skip(source.place, "memory_files: it is not known what they hold")
