"""A toolset that uses every part of the seam: a list of notes in one file.

`python tests/toy_toolset.py [words]` is the command line with this toolset in it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

import aiaml_server
from aiaml_server import toolsets
from aiaml_server.errors import AiamlError, InvalidInput
from aiaml_server.files import hold_lock, replace_atomic
from aiaml_server.settings import Setting
from aiaml_server.toolset import (
    INTERNAL_ERROR,
    Answer,
    Argument,
    Finding,
    Manifest,
    OnChange,
    Prompt,
    Resource,
    Tool,
    Toolset,
)


class Noted(TypedDict, total=False):
    """What both tools answer."""

    notes: list[str]
    error: str
    message: str


class Notes:
    """The notes in one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.changed: OnChange = lambda _uri: None
        self.events: list[str] = []

    @contextmanager
    def opened(self, changed: OnChange) -> Iterator[None]:
        """Open and close them with the server."""
        self.changed = changed
        self.events.append("opened")
        yield
        self.events.append("closed")

    def read(self) -> list[str]:
        """Return all notes."""
        return list(json.loads(self.path.read_text("utf-8"))) if self.path.exists() else []

    def note(
        self, text: Annotated[str, Field(description="What to note.", examples=["tea"])]
    ) -> Answer:
        """Add a note."""
        if not text.strip():
            raise InvalidInput("text", "must not be empty")
        if text == "crash":
            raise RuntimeError("a crash with a private detail")
        if text == "hang":
            threading.Event().wait()
        self.path.parent.mkdir(exist_ok=True)
        with hold_lock(self.path.with_suffix(".lock"), 10):
            notes = [*self.read(), text]
            replace_atomic(self.path, json.dumps(notes).encode(), 0o600)
        self.changed("toy://notes")
        return Answer({"notes": notes}, ["It is noted."])

    def notes(self) -> Noted:
        """Return the notes."""
        return {"notes": self.read()}

    def one(self, number: str) -> str:
        """Return one note, by its number from 0; LookupError where there is none."""
        return {str(at): each for at, each in enumerate(self.read())}[number]


def failure(error: AiamlError | None) -> Noted:
    """Return the shape of every failure: the error's kind and a sentence."""
    kind = type(error).__name__ if error else "InternalError"
    return {"error": kind, "message": str(error or INTERNAL_ERROR)}


def build(values: Mapping[str, Any]) -> Toolset:
    """Build the toolset."""
    notes = Notes(values["AIAML_TOY_FILE"])
    rules = {"text": "what to note, as text"}
    return Toolset(
        instructions="Notes: `note` adds one, `notes` returns all. Nothing else is here to do.",
        brief="`note` and `notes` keep short notes.",
        tools=(
            Tool("note", "Note", "Adds a note.", notes.note, Noted, rules, failure),
            Tool(
                "notes", "Notes", "Returns all.", notes.notes, Noted, {}, failure,
                read_only=True, idempotent=True,
            ),
        ),
        resources=(
            Resource(
                "toy://notes",
                "notes",
                "All notes.",
                lambda: "\n".join(notes.read()),
                subscribable=True,
            ),
            Resource("toy://notes/{number}", "note", "One note, by its number.", notes.one),
        ),
        prompts=(
            Prompt(
                "about", "About", "Asks about the notes.", lambda topic: f"What of {topic}?",
                (Argument("topic", "what it is about", required=True),),
            ),
        ),
        lifespan=notes.opened,
    )  # fmt: skip


def checks(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Say where the notes are."""
    yield Finding("toy", "ok", f"notes in {environ.get('AIAML_TOY_FILE')}")


def demo() -> int:
    """Show it."""
    sys.stdout.write("a note is a note\n")
    return 0


def path(_variable: str, value: str) -> Path:
    """Read the file's path."""
    return Path(value)


MANIFEST = Manifest(
    name="toy",
    summary="short notes",
    tools=("note", "notes"),
    settings=(Setting("AIAML_TOY_FILE", "notes.json", path, "where notes are"),),
    build="toy_toolset:build",
    commands="toy_verbs:toy",
    checks="toy_toolset:checks",
)


if __name__ == "__main__":
    sys.modules["toy_toolset"] = sys.modules["__main__"]
    toolsets.OWN[MANIFEST.name] = "toy_toolset:MANIFEST"
    from aiaml_server.cli import main

    sys.argv[0] = os.environ.get("TOY_PROGRAM", "aiaml-server")
    assert aiaml_server.__version__
    sys.exit(main())
