"""Whether the right memories are found, and what an agent reads until it has the answer.

LAB_DATA is a file of stores, [{name, memories: [{id, content}], questions: [{id, text,
relevant}]}], in which a `user` of a memory is put before it, as who said it. LAB_WORDS is one of
{question's id: [word, ...]}, by somebody who saw the questions alone. README.md says where to get
such: the data does not come with this.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

from ..adapter import Adapter
from ..client import Client, RefusedError
from ..environments import MissingError

ABOUT = (
    "a store of public conversations and its questions, asked by the server's own tools with "
    "words that were written beforehand; what is read is the answers to the search, and the first "
    "five memories where these do not show them whole"
)
ZERO = ()
QUESTIONS = 100
DEPTH = 5


def measure(server: Adapter, place: Path, random: Random, number: int) -> dict[str, Any]:
    """Fill one store, and ask some of its questions."""
    data, words = _data()
    store = data[number % len(data)]
    asked = [each for each in store["questions"] if each["id"] in words]
    asked = random.sample(asked, k=min(QUESTIONS, len(asked)))
    shares, hits, read = [], [], []
    marks: dict[str, str] = {}
    texts = {each["id"]: _said(each) for each in store["memories"]}
    with server.start(place) as client:
        handles: dict[str, str] = {}
        for each in store["memories"]:
            name = f"m{len(handles):05d}"
            handles[each["id"]] = server.keep(client, name, texts[each["id"]])
            marks[each["id"]] = server.mark(handles[each["id"]])
        for question in asked:
            try:
                answers = server.search(client, question["text"], words[question["id"]])
            except RefusedError:
                answers = []
            found = _ranked(answers, marks)[:DEPTH]
            right = set(question["relevant"])
            shares.append(len(right & set(found)) / min(len(right), DEPTH))
            hits.append(bool(right & set(found)))
            read.append(_characters(server, client, answers, found, texts, handles))
    return {
        "set": store["name"],
        "memories": len(texts),
        "questions": len(asked),
        "hit@5": round(fmean(hits), 3),
        "recall@5": round(fmean(shares), 3),
        "characters": round(fmean(read)),
    }


def _said(memory: dict[str, Any]) -> str:
    return f"{memory['user']}: {memory['content']}" if "user" in memory else memory["content"]


def _ranked(answers: list[str], marks: dict[str, str]) -> list[str]:
    """Return the memories in the answers: those in most of them first, then as they stand."""
    places: dict[str, list[int]] = {}
    for answer in answers:
        for name, mark in marks.items():
            if (at := answer.find(mark)) >= 0:
                places.setdefault(name, []).append(at)
    return sorted(places, key=lambda name: (-len(places[name]), places[name][0]))


def _characters(
    server: Adapter,
    client: Client,
    answers: list[str],
    found: list[str],
    texts: dict[str, str],
    handles: dict[str, str],
) -> int:
    """Count what is read: the answers, and what of the first memories they do not show."""
    shown = "".join(answers)
    size = len(shown)
    for name in found:
        if json.dumps(texts[name])[1:-1] not in shown and texts[name] not in shown:
            size += len(server.read(client, handles[name]))
    return size


def _data() -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """Read the questions and the words.

    Raises:
        MissingError: they are not named.
    """
    names = [os.environ.get("LAB_DATA"), os.environ.get("LAB_WORDS")]
    if not all(names):
        raise MissingError("LAB_DATA and LAB_WORDS name no files: see lab/README.md")
    data, words = (json.loads(Path(str(name)).read_text(encoding="utf-8")) for name in names)
    return [each for each in data if any(q["id"] in words for q in each["questions"])], words
