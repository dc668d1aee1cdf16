"""Hooks: what a host's events show to the agent, and what they store.

Each function takes a `HookInput` and returns plain lines, which the caller marks as data, and
requests. No model is loaded. A hook stores memories only in a project that has a `.memory`, and
never a text in which a secret is found. It tags them `unreviewed`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from aiaml_server.format.secrets import find_secret
from aiaml_server.toolset import HookInput
from aiaml_server.toolsets.failures import shorten
from aiaml_server.toolsets.requests import Request
from aiaml_server.toolsets.semantic import PROJECT
from aiaml_server.toolsets.semantic.models import MAX_HITS, UNREVIEWED, Filters, Memory
from aiaml_server.toolsets.semantic.rules import (
    error_signature,
    find_decision,
    find_decisions,
    find_error,
    is_confirmation,
    keyword_stems,
)
from aiaml_server.toolsets.semantic.store import MemoryStore

MAX_TRANSCRIPT = 512 * 1024  # bytes, from the end
MAX_SHOWN = 600  # characters of a memory
MAX_SOLUTION = 800  # characters
MAX_RELATED = 4  # memories that are shown with a decision or an error
MAX_SUMMARY = 5  # memories that the end of a session stores
STORED = Request(
    "An error and its solution were stored as a memory, because the user says that it works now."
    " Correct it with update_memory, or delete it, if it is wrong."
)
ASK = Request(
    "A decision was detected in the message. Should this be stored as a memory? If later sessions"
    ' need it and no memory says it yet, call store_memory with source "auto_decision", in words'
    " that can be understood alone."
)
_ERROR_NAME = re.compile(
    r"\b[A-Z]\w{2,60}(?:Error|Exception|Warning)\b|\b[A-Z]{1,3}\d{3,5}\b|\bE[A-Z]{4,}\b"
)


Message = tuple[str, str]
"""A part of a conversation: `user`, `assistant` or `tool` and the text, or `edit` and a path."""


def session_start(event: HookInput) -> list[str]:
    """Return the memories that a session should begin with."""
    with closing(_open(event)) as store:
        if not store.config.auto_triggers.session_start:
            return []
        return [_line(memory) for memory in store.session_start()]


def prompt(event: HookInput) -> list[str]:
    """Return memories of an error in a message, and a question about a decision in it.

    A message that confirms a solution has the error and the solution stored.
    """
    with closing(_open(event)) as store:
        triggers = store.config.auto_triggers
        lines = []
        if triggers.error_resolution:
            lines += _related_errors(store, find_error(event.prompt))
            if is_confirmation(event.prompt):
                lines += _store_resolution(store, event)
        if triggers.decision_detection:
            lines += _ask_about_decision(store, find_decision(event.prompt))
        return lines


def tool_succeeded(event: HookInput) -> list[str]:
    """Return memories of an error that a command printed."""
    return tool_failed(event) if event.tool_name in ("Bash", "shell") else []


def tool_failed(event: HookInput) -> list[str]:
    """Return memories of the error that a tool failed with."""
    with closing(_open(event)) as store:
        if not store.config.auto_triggers.error_resolution:
            return []
        return _related_errors(store, find_error(event.tool_output))


def session_end(event: HookInput) -> list[str]:
    """Store the decisions of a session, with priority LOW; nothing is shown."""
    with closing(_open(event)) as store:
        if store.config.auto_triggers.session_end and store.project is not None:
            for sentence in generate_session_summary(_messages(event)):
                if not find_secret(sentence):
                    tags = [UNREVIEWED, "session"]
                    store.store(sentence, tags=tags, priority="LOW", source="session_end")
    return []


def generate_session_summary(messages: Sequence[Message]) -> list[str]:
    """Return what was decided in a session, the last sentences if there are many.

    No language model is available when a session ends, so these are quoted sentences.
    """
    found: list[str] = []
    for role, text in messages:
        if role in ("assistant", "user"):
            found += find_decisions(text)
    return list(dict.fromkeys(found))[-MAX_SUMMARY:]


def _open(event: HookInput) -> MemoryStore:
    return MemoryStore.at(event.directory, os.environ.get(PROJECT, ""))


# --- what is shown --------------------------------------------------------------------------------


def _line(memory: Memory) -> str:
    content = shorten(" ".join(memory.content.split()), MAX_SHOWN)
    about = f"{memory.id}, {memory.date}, {memory.priority}, source {memory.source}"
    return f"[{about}] {content}"


def _ask_about_decision(store: MemoryStore, sentence: str | None) -> list[str]:
    if sentence is None or find_secret(sentence):
        return []
    related = _related(store, sentence, lambda memory: _is_like(sentence, memory))
    return [ASK, f"[the message] {sentence}", *related]


def _related_errors(store: MemoryStore, message: str | None) -> list[str]:
    """Return the memories that name the same error, or else have half of its words."""
    if message is None:
        return []
    names = _ERROR_NAME.findall(message)

    def is_same(memory: Memory) -> bool:
        if names:
            return any(name in memory.content for name in names)
        return memory.source == "auto_error" and _is_like(message, memory)

    return _related(store, message, is_same)


def _related(store: MemoryStore, text: str, accept: Callable[[Memory], bool]) -> list[str]:
    memories = [hit.memory for hit in store.search(text, 3 * MAX_RELATED).hits]
    return [_line(memory) for memory in memories if accept(memory)][:MAX_RELATED]


def _is_like(text: str, memory: Memory) -> bool:
    """Return whether a memory has half of a text's keywords, and two if there are two."""
    words = keyword_stems(text)
    shared = len(words & keyword_stems(memory.content))
    return shared >= max(1, min(2, len(words)), len(words) / 2)


# --- what is stored -------------------------------------------------------------------------------


def _store_resolution(store: MemoryStore, event: HookInput) -> list[str]:
    """Store the last error of a session with its solution, once; say so."""
    resolution = find_resolution(_messages(event))
    if store.project is None or resolution is None:
        return []
    message, content = resolution
    hits = store.search(message, MAX_HITS, Filters(source="auto_error")).hits
    known = {error_signature(hit.memory.content.partition("\n")[0]) for hit in hits}
    if error_signature(f"Error: {message}") in known:
        return []
    stored = store.store(content, tags=[UNREVIEWED, "error"], source="auto_error")
    return [STORED, _line(stored.memory)]


def find_resolution(messages: Sequence[Message]) -> tuple[str, str] | None:
    """Return the last error of a conversation, and a memory of it with its solution."""
    answers: list[str] = []
    files: list[str] = []
    for role, text in reversed(messages):
        if role == "assistant" and text.strip():
            answers.append(text)
        elif role == "edit":
            files.insert(0, Path(text).name)
        elif error := find_error(text):
            if not answers:
                return None
            solution = shorten(" ".join(answers[0].split()), MAX_SOLUTION)
            context = f"\nContext: changed {', '.join(dict.fromkeys(files))}" if files else ""
            content = f"Error: {error}\nSolution: {solution}{context}"
            has_secret = find_secret(f"{content}\n{text}\n{answers[0]}")  # also where it is cut
            return None if has_secret else (error, content)
    return None


# --- the transcript -------------------------------------------------------------------------------


def _messages(event: HookInput) -> list[Message]:
    """Return the end of a conversation from the host's transcript of JSON lines."""
    messages: list[Message] = []
    path = Path(event.transcript_path)
    if not path.is_file():
        return messages
    for line in path.read_bytes()[-MAX_TRANSCRIPT:].decode("utf-8", "replace").split("\n"):
        with suppress(
            ValueError, RecursionError, AttributeError, LookupError, TypeError
        ):  # the first line may be cut
            value = json.loads(line)
            if not (value.get("isMeta") or value.get("isSidechain")):
                messages += _parts(str(value.get("type")), value["message"]["content"])
    return messages


def _parts(role: str, content: Any) -> Iterator[Message]:
    """Yield the parts of a message, whose content is text or a list of blocks."""
    if isinstance(content, str):
        yield role, content
        return
    for block in content:
        if block.get("type") == "text":
            yield role, block["text"]
        elif block.get("type") == "tool_result":
            yield from _parts("tool", block.get("content") or "")
        elif block.get("name") in ("Write", "Edit", "MultiEdit"):
            yield "edit", block["input"]["file_path"]
