"""Measure the server beside a bare one: python benchmarks/run.py [--sizes 0,1000,10000] [--write].

Every figure stands beside a yardstick that was measured in alternation with it, in the same run on
the same machine, so that noise hits both and the ratio means something elsewhere. The client is a
few lines of JSON-RPC over the server's pipes: nothing of an SDK is measured but the server's.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import math
import os
import platform
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import count, cycle, permutations
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

from typing_extensions import Self

import corpus
from aiaml_server import __version__
from aiaml_server.format.memory import Memory, format  # noqa: A004
from aiaml_server.format.scorer import rank
from aiaml_server.index import delete_index, index_file
from aiaml_server.storage.store import Store

HERE = Path(__file__).parent
OURS = (sys.executable, "-m", "aiaml_server")
EMPTY = (
    sys.executable,
    "-c",
    "import asyncio, time; asyncio.run(asyncio.sleep(0)); print(time.process_time(), flush=True)",
)
BARE = (sys.executable, str(HERE / "bare_server.py"))

WORDS = corpus.vocabulary()
MIX = {  # kind of question: several of the kind, asked in turn
    "rare word": [[WORDS[12_000]], [WORDS[15_000]], [WORDS[18_000]]],
    "common word": [["project"], ["people"], ["budget"]],
    "three words": [["kitchen", "budget", WORDS[900]], ["python", "test", "friday"]],
    "word fragment": [["plan"], ["ect"], [WORDS[3_000][1:4]]],
    "phrase": [["san francisco"], ["of the"], ["home depot"]],
    "punctuation": [["node.js"], ["c++"], ["e-mail"]],
    "no match": [["xylqzv"], ["qqqq"], ["not there at all"]],
}
LETTER = "single letter"
AGENTS = [  # as an agent asks: what the memory may say, from broad to narrow, and a name
    ["dinner", "restaurant", "food", "vegetarian", "diet", "kitchen", WORDS[2_000], "marco"],
    ["python", "test", "build", "release", "error", "plan", WORDS[5_000], "node.js"],
    ["budget", "project", "friday", "meeting", "people", "team", WORDS[9_000], "san francisco"],
]
PAUSES = {"paused": 0.5, "long paused": 4.5}  # seconds between questions; an agent thinks, too
KINDS = {**MIX, LETTER: [["e"], ["a"], ["t"]]}

ROWS = {  # key: what it is, its limit
    "start": ("from spawn to `initialize` answered : bare", "1.15 x"),
    "greeted": ("from spawn to `tools/list` answered : an empty asyncio process", "3 x"),
    "greeted cpu": ("the same, processor time", "3 x"),
    "exit": ("from end of input to the process gone : bare", ""),
    "no-op": ("no-op call on the bare server, the unit", ""),
    "remember": ("`remember` : bare write", "2 x, or + 1.5 ms"),
    "floor": ("`remember` : the bare server's and a bare write", ""),
    "growth": ("`remember` : the same with 0 memories", "100,000: 1.3 x"),
    **{kind: (f"`think`, {kind}", "") for kind in KINDS},
    "mix": ("`think`, median of all but the letter", "10,000: 5 no-ops + 5 ms; 100,000: 40 ms"),
    "worst": ("`think`, the slowest kind but the letter", "10,000: 40 ms; 100,000: 250 ms"),
    "paused": ("`think`, eight words, 0.5 s before each, p95 : median", "2.5 x"),
    "long paused": ("the same, 4.5 s before each", "2.5 x"),
    "pauses": ("median after 4.5 s : after 0.5 s", "1.5 x"),
    "bytes": ("text of one answer of `think`, median of the same : with blanks", ""),
    "after": ("`think`, rare word, right after `remember`", ""),
    "literal": (
        "the formula word for word : `think`, the same median",
        "10,000: at least 100 x; 100,000: 300 x",
    ),
    "scan": ("our own scan of all files : the same", ""),
    "fresh": ("from spawn to the first `think` : bare no-op", "10,000: 1.15 x; 100,000: 1.3 x"),
    "following": (
        "the same, after another process remembered and ended",
        "10,000: 1.15 x; 100,000: 1.3 x",
    ),
    "indexing": (
        "the first `think` when the index is missing",
        "10,000 and more: at least 8,000 memories/s",
    ),
    "tokenizing": ("from that answer until all files are recorded behind it", ""),
    "recall 1": ("`recall` of 1 id", ""),
    "recall 25": ("`recall` of 25 ids", ""),
    "list": ("from spawn of `aiaml list` to its first line : an empty Python", "10,000: 300 ms"),
    "memory": ("memory above the bare process's", "10,000: 20 MB; 100,000: 40 MB"),
    "size": ("index : text on disk", "2 x"),
}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}
SMALL, LARGE = 10_000, 100_000  # the sizes that limits are given for

Answer = list[dict[str, Any]]
Cells = dict[str, str]


@dataclass(frozen=True)
class Effort:
    """How often: processes started, calls at most, and seconds after which a series ends."""

    starts: int = 15
    calls: int = 300
    seconds: float = 10.0

    def goes_on(self, done: int, samples: list[float], least: int = 1) -> bool:
        """Say whether a series wants another round."""
        return done < least or (done < self.calls and sum(samples) < self.seconds)


def settled(base: Path) -> None:
    """Wait until all files are recorded in the index."""
    files = len(list((base / "files").iterdir()))
    deadline = perf_counter() + 600
    while (file := index_file(base)).exists():
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=60)) as index:
            ((recorded,),) = index.execute("SELECT count(*) FROM files")
        if recorded == files:
            return
        if perf_counter() > deadline:
            raise RuntimeError(f"{recorded} of {files} files are recorded after ten minutes")
        sleep(0.1)


# --- a client ---------------------------------------------------------------------------------


class Server:
    """A server process and its only client."""

    def __init__(
        self, command: tuple[str, ...], base: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        environ = {key: value for key, value in os.environ.items() if key[:6] != "AIAML_"}
        environ |= {"AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "false"}
        environ |= settings or {}
        self._ids = count()
        self.read = 0  # bytes of the last answer's text, which an agent reads
        self.spawned = perf_counter()
        self._process = subprocess.Popen(
            command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdin
        assert self._process.stdout
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        try:
            self._ask("initialize", HELLO)
            self.start = perf_counter() - self.spawned
            self._send({"method": "notifications/initialized"})
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._stdout.close()
        with suppress(OSError):  # it ended with a request unread
            self._stdin.close()

    def call(self, tool: str, **arguments: Any) -> tuple[float, Any]:
        """Call a tool; return the seconds that it took, and its value."""
        begun = perf_counter()
        result = self._ask("tools/call", {"name": tool, "arguments": arguments})
        seconds = perf_counter() - begun
        if result.get("isError"):
            raise RuntimeError(f"{tool} failed: {result['content']}")
        self.read = sum(len(block["text"].encode()) for block in result["content"])
        value = result["structuredContent"]
        return seconds, value.get("result", value)

    def think(self, keywords: list[str]) -> tuple[float, Answer]:
        """Ask one question; return the seconds and the hits."""
        return self.call("think", keywords=keywords)

    def close(self) -> float:
        """End the input; return the seconds until the process is gone."""
        begun = perf_counter()
        self._stdin.close()
        self._process.wait(timeout=60)
        return perf_counter() - begun

    def tools(self) -> float:
        """Ask for the list of tools; return the seconds since the process was started."""
        self._ask("tools/list", {})
        return perf_counter() - self.spawned

    def processor_seconds(self) -> float:
        """Return the processor time of the process, ended threads included; 0 if unknown."""
        if sys.platform != "linux":
            return 0.0
        return time.clock_gettime(~self._process.pid << 3 | 2)  # see clock_getcpuclockid(3)

    def megabytes(self) -> float | None:
        """Return the memory that the process takes, shared pages in part; None if unknown."""
        try:
            text = Path(f"/proc/{self._process.pid}/smaps_rollup").read_text(encoding="ascii")
        except OSError:
            return None
        found = re.search(r"^Pss: +(\d+) kB", text, re.MULTILINE)
        return int(found[1]) / 1000 if found else None

    def _send(self, message: dict[str, Any]) -> None:
        self._stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._stdin.flush()

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        request = next(self._ids)
        self._send({"id": request, "method": method, "params": params})
        while line := self._stdout.readline():
            message = json.loads(line)
            if message.get("id") == request:
                result: dict[str, Any] = message["result"]
                return result
        raise RuntimeError(f"the server ended instead of answering {method}")


# --- figures ----------------------------------------------------------------------------------


def ms(seconds: float) -> str:
    """Write a duration."""
    return f"{seconds * 1000:,.{0 if seconds >= 1 else 1 if seconds >= 0.1 else 2}f} ms"


def beside(ours: float, bare: float) -> str:
    """Write a duration, its yardstick and the ratio."""
    return f"{ms(ours)} : {ms(bare)} = {ours / bare:.2f} x"


def judged(text: str, lower: float | None, higher: float | None) -> str:
    """Set a figure in bold when `lower` is the higher one; None is a limit that is not given."""
    beyond = lower is not None and higher is not None and lower > higher
    return f"**{text}**" if beyond else text


def spread(samples: list[float]) -> tuple[float, float]:
    """Return the median, and how many times as much the 95th percentile is."""
    middle = median(samples)
    return middle, sorted(samples)[len(samples) * 19 // 20] / middle if middle else 1.0


def limit(size: int, small: float, large: float) -> float | None:
    """Return the limit that is given for `size`, if any."""
    return {SMALL: small, LARGE: large}.get(size)


# --- one size ---------------------------------------------------------------------------------


@dataclass
class Bench:
    """The measurements on one directory with `size` memories; `place` is for what they need."""

    base: Path
    place: Path
    size: int
    effort: Effort

    def cells(self) -> Iterator[Cells]:
        """Measure everything, the writing last."""
        yield self.thinking()
        yield self.pausing()
        yield self.processes()
        yield self.following()
        if self.size:
            yield self.greeting()
            yield self.recalling()
            yield self.listing()
            yield self.indexing()
            yield self.index_size()
        yield self.remembering()

    def thinking(self) -> Cells:
        """Ask questions of a running server, and of the literal scan."""
        times: dict[str, list[float]] = {kind: [] for kind in KINDS}
        spent: list[float] = []
        noops: list[float] = []
        scans: list[float] = []
        literals: list[float] = []
        answers: dict[tuple[str, int], Answer] = {}
        sizes: dict[tuple[str, int], int] = {}
        with Server(OURS, self.base) as ours, Server(BARE, self.base) as bare:
            ours.think(["warm"])
            settled(self.base)
            done = 0
            while self.effort.goes_on(done, spent):
                for kind, questions in KINDS.items():
                    question = questions[done % len(questions)]
                    seconds, answer = ours.think(question)
                    times[kind].append(seconds)
                    spent.append(seconds if kind in MIX else 0.0)
                    bare.think(question)  # wakes the process; the second call is the unit
                    noops.append(bare.think(question)[0])
                    answers[kind, done % len(questions)] = answer
                    sizes[kind, done % len(questions)] = ours.read
                done += 1
            while len(noops) < self.effort.calls:
                noops.append(bare.think(question)[0])
            used, idle = ours.megabytes(), bare.megabytes()
        # Only now: a scan puts every file through the caches that the server's answers live in.
        for (kind, number), answer in answers.items():
            if kind in MIX and (not scans or sum(scans) < self.effort.seconds):
                scans.append(self.scan(KINDS[kind][number], answer))
            if kind in MIX and (not literals or sum(literals) < self.effort.seconds):
                literals.append(self.literal(KINDS[kind][number], answer))
        scanning = median(scans), median(literals)
        read = median(size for (kind, _), size in sizes.items() if kind in MIX)
        blanks = [len(json.dumps(answer)) for (kind, _), answer in answers.items() if kind in MIX]
        cells = {"bytes": f"{read:,.0f} : {median(blanks):,.0f} bytes"} | self.memory(used, idle)
        return self.think_cells(times, median(noops), *scanning) | cells

    def pausing(self) -> Cells:
        """Ask as agents do, with pauses, in which a server may do what it has put off.

        The bare server is asked right beside: its spread is the machine's.
        """
        times: dict[tuple[str, str], list[float]] = {}
        spent: dict[str, list[float]] = {}
        with Server(OURS, self.base) as ours, Server(BARE, self.base) as bare:
            for question in AGENTS:
                ours.think(question)
                bare.think(question)
            for number in range(max(1, min(self.effort.calls, 60) // 2)):
                question = AGENTS[number % len(AGENTS)]
                for key, pause in PAUSES.items():
                    sleep(pause)
                    before = ours.processor_seconds()
                    times.setdefault((key, "ours"), []).append(ours.think(question)[0])
                    spent.setdefault(key, []).append(ours.processor_seconds() - before)
                    times.setdefault((key, "bare"), []).append(bare.think(question)[0])
        cells = {}
        for key in PAUSES:
            (middle, high), (_, machine) = (spread(times[key, each]) for each in ("ours", "bare"))
            _, cpu = spread(spent[key])
            figures = f"{high:.2f} x {ms(middle)} (processor {cpu:.2f} x, bare {machine:.1f} x)"
            cells[key] = judged(figures, high, 2.5)
        one, other = (median(times[key, "ours"]) for key in PAUSES)
        cells["pauses"] = judged(beside(other, one), max(one, other), 1.5 * min(one, other))
        return cells

    def scan(self, question: list[str], answer: Answer) -> float:
        """Answer as the definition does; a fast answer that is another one is worth nothing."""
        begun = perf_counter()
        hits = rank(Store(self.base).scan(), question)
        seconds = perf_counter() - begun
        expected = [(hit.id, hit.relevance_score) for hit in hits]
        if [(each["id"], each["relevance_score"]) for each in answer] != expected:
            raise RuntimeError(f"the server's answer to {question} is not the definition's")
        return seconds

    def literal(self, question: list[str], answer: Answer) -> float:
        """Answer as the specification writes it, without any of this package's code."""
        begun = perf_counter()
        scores: dict[str, int] = {}
        for path in (self.base / "files").glob("*.md"):
            memory_id, score = literal_score(path.read_text(encoding="utf-8"), question)
            if score:
                scores[memory_id] = score
        best = sorted(scores.values(), reverse=True)[:25]
        seconds = perf_counter() - begun
        if [each["relevance_score"] for each in answer] != best:
            raise RuntimeError(f"the server's answer to {question} is not the specification's")
        if any(scores[each["id"]] != each["relevance_score"] for each in answer):
            raise RuntimeError(f"the server's scores for {question} are not the specification's")
        return seconds

    def think_cells(
        self, times: dict[str, list[float]], noop: float, scan: float, literal: float
    ) -> Cells:
        """Judge the answering times."""
        medians = {kind: median(samples) for kind, samples in times.items()}
        mix = median(each for kind in MIX for each in times[kind])
        worst = max(MIX, key=medians.__getitem__)
        slowest = f"{ms(medians[worst])} ({worst})"
        most = limit(self.size, 5 * noop + 0.005, 0.040)
        return {
            **{kind: ms(value) for kind, value in medians.items()},
            "no-op": ms(noop),
            "mix": judged(f"{ms(mix)} = {mix / noop:.1f} no-ops", mix, most),
            "worst": judged(slowest, medians[worst], limit(self.size, 0.040, 0.250)),
            "literal": judged(beside(literal, mix), limit(self.size, 100, 300), literal / mix),
            "scan": beside(scan, mix),
        }

    def memory(self, used: float | None, idle: float | None) -> Cells:
        """Judge the memory after the questions."""
        if used is None or idle is None:
            return {"memory": "not measured on this system"}
        text = f"{used - idle:.1f} MB ({used:.1f} - {idle:.1f})"
        return {"memory": judged(text, used - idle, limit(self.size, 20, 40))}

    def processes(self) -> Cells:
        """Start a process, ask it one question, end it: ours and a bare one in turn."""
        times: dict[str, list[float]] = {}
        questions = [each[0] for each in MIX.values()]
        for done in range(self.effort.starts):
            for name, command in (("ours", OURS), ("bare", BARE)):
                with Server(command, self.base) as server:
                    server.think(questions[done % len(questions)])
                    first = perf_counter() - server.spawned
                    taken = {"start": server.start, "fresh": first, "exit": server.close()}
                for key, seconds in taken.items():
                    times.setdefault(f"{name} {key}", []).append(seconds)
        limits = {"start": 1.15, "fresh": limit(self.size, 1.15, 1.3), "exit": None}
        cells = {}
        for key, most in limits.items():
            ours, bare = median(times[f"ours {key}"]), median(times[f"bare {key}"])
            cells[key] = judged(beside(ours, bare), ours / bare, most)
        return cells

    def following(self) -> Cells:
        """Start a process behind one that has changed the memories, as sessions do."""
        times: dict[str, list[float]] = {"ours": [], "bare": []}
        question = MIX["rare word"][0]
        for memory in corpus.memories(self.effort.starts, seed=3):
            with Server(OURS, self.base) as server:
                remember(server, memory)
                sleep(0.6)  # between the last memory and the end of a session
                server.close()
            for name, command in (("ours", OURS), ("bare", BARE)):
                with Server(command, self.base) as server:
                    server.think(question)
                    times[name].append(perf_counter() - server.spawned)
        ours, bare = median(times["ours"]), median(times["bare"])
        return {"following": judged(beside(ours, bare), ours / bare, limit(self.size, 1.15, 1.3))}

    def recalling(self) -> Cells:
        """Recall ids from all over the directory."""
        names = sorted(Store(self.base).names())
        ids = [name[:-3].rpartition("_")[2] for name in names]
        times: dict[int, list[float]] = {1: [], 25: []}
        with Server(OURS, self.base) as server:
            server.think(["warm"])
            done = 0
            while self.effort.goes_on(done, times[1] + times[25]):
                for number, samples in times.items():
                    wanted = [ids[(done + 1) * 7919 * (k + 1) % len(ids)] for k in range(number)]
                    seconds, answer = server.call("recall", memory_ids=wanted)
                    samples.append(seconds)
                    if any("error" in each for each in answer):
                        raise RuntimeError("a memory in the directory was not recalled")
                done += 1
        return {f"recall {number}": ms(median(samples)) for number, samples in times.items()}

    def greeting(self) -> Cells:
        """Start a process that was asked the same before, and an empty one, in turn."""
        times: dict[str, list[float]] = {"ours": [], "empty": [], "our cpu": [], "empty cpu": []}
        for _ in range(self.effort.starts + 1):
            with Server(OURS, self.base) as server:
                times["ours"].append(server.tools())
                times["our cpu"].append(server.processor_seconds())
                server.close()
            begun = perf_counter()
            done = subprocess.run(EMPTY, check=True, capture_output=True)
            times["empty"].append(perf_counter() - begun)
            times["empty cpu"].append(float(done.stdout))
        ours, empty, our_cpu, empty_cpu = (median(samples[1:]) for samples in times.values())
        return {
            "greeted": judged(beside(ours, empty), ours, 3 * empty),
            "greeted cpu": judged(beside(our_cpu, empty_cpu), our_cpu, 3 * empty_cpu)
            if our_cpu
            else "not measured on this system",
        }

    def listing(self) -> Cells:
        """Wait for the first line of `aiaml list`, and for a Python that prints one."""
        times: dict[str, list[float]] = {"list": [], "print": []}
        for _ in range(self.effort.starts):
            for name, words in (
                ("list", (*OURS, "list")),
                ("print", (sys.executable, "-c", "print()")),
            ):
                times[name].append(first_line(words, self.base))
        ours, bare = median(times["list"]), median(times["print"])
        return {"list": judged(beside(ours, bare), ours, limit(self.size, 0.3, math.inf))}

    def indexing(self) -> Cells:
        """Ask a fresh process, as soon as it has shaken hands, without an index.

        Then wait until all that it has put off is done behind that answer. Each file is read
        before: a system may have dropped what was written long ago, and no disk is measured here.
        """
        index = index_file(self.base)
        question = MIX["common word"][0]
        samples: list[float] = []
        behind: list[float] = []
        least = min(3, self.effort.calls)
        while len(samples) < 5 and self.effort.goes_on(len(samples), samples, least):
            delete_index(self.base)
            for path in (self.base / "files").iterdir():
                path.read_bytes()
            with Server(OURS, self.base) as server:
                seconds, answer = server.think(question)
                samples.append(seconds)
                begun = perf_counter()
                settled(self.base)
                behind.append(perf_counter() - begun)
                server.close()
            if len(samples) == 1:
                self.scan(question, answer)
        if not index.exists():
            return {"indexing": "no index"}
        speed = self.size / median(samples)
        text = f"{ms(median(samples))} = {speed:,.0f} memories/s"
        return {
            "indexing": judged(text, 8000 if self.size >= SMALL else None, speed),
            "tokenizing": ms(median(behind)),
        }

    def index_size(self) -> Cells:
        """Weigh the index against the files."""
        index, text = (
            sum(path.stat().st_size for path in place.iterdir())
            for place in (index_file(self.base).parent, self.base / "files")
        )
        if not index:
            return {"size": "no index"}
        written = f"{index / 1e6:.1f} : {text / 1e6:.1f} MB = {index / text:.2f} x"
        return {"size": judged(written, index, 2 * text)}

    def remembering(self) -> Cells:
        """Write the same memories: by the server here, by one in an empty directory, and bare."""
        empty = self.place / "empty"
        times: dict[str, list[float]] = {"bare": [], "idle": [], "empty": [], "full": []}
        with (
            Server(OURS, self.base) as full,
            Server(OURS, empty) as fresh,
            Server(BARE, self.base) as idle,
        ):
            writers: dict[str, Callable[[Memory], float]] = {
                "bare": BareWriter(self.place / "bare"),
                "idle": lambda memory: remember(idle, memory),
                "empty": lambda memory: remember(fresh, memory),
                "full": lambda memory: remember(full, memory),
            }
            orders = cycle(permutations(writers))  # what came just before makes a difference
            for memory in corpus.memories(self.effort.calls, seed=1):
                for name in next(orders):
                    times[name].append(writers[name](memory))
            after = []
            for memory in corpus.memories(min(self.effort.calls, 50), seed=2):
                remember(full, memory)
                after.append(full.think(MIX["rare word"][0])[0])
        bare, noop, none, ours = (median(samples[1:] or samples) for samples in times.values())
        return {
            "remember": judged(beside(ours, bare), ours, max(2 * bare, bare + 0.0015)),
            "floor": beside(ours, noop + bare),
            "after": ms(median(after)),
            "growth": judged(beside(ours, none), ours / none, limit(self.size, math.inf, 1.3)),
        }


def literal_score(text: str, keywords: list[str]) -> tuple[str, int]:
    r"""Read a file as key-value lines and score it by the formula as it is written.

    Twice the occurrences in the topics, once those in content, user and agent, and one for each
    match of `\b` + keyword + `\b` in any of them.
    """
    _, head, content = text.split("---\n", 2)
    values = dict(line.split(": ", 1) for line in head.splitlines())
    topics = " ".join(values["topics"].strip("[]").split(", "))
    weighted = ((2, topics), (1, content), (1, values["user"]), (1, values["agent"]))
    fields = [(weight, text.lower()) for weight, text in weighted]
    total = 0
    for keyword in keywords:
        for weight, field in fields:
            total += weight * field.count(keyword)
            total += len(re.findall(rf"\b{re.escape(keyword)}\b", field))
    return values["id"], total


def remember(server: Server, memory: Memory) -> float:
    """Have a memory remembered; return the seconds."""
    return server.call(
        "remember",
        agent=memory.agent,
        user=memory.user,
        topics=list(memory.topics),
        content=memory.content,
    )[0]


def first_line(words: tuple[str, ...], base: Path) -> float:
    """Start a command; return the seconds until its first line has come."""
    environ = {**os.environ, "AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "false"}
    begun = perf_counter()
    with subprocess.Popen(
        words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout
        process.stdout.readline()
        seconds = perf_counter() - begun
        process.stdout.read()
    return seconds


class BareWriter:
    """The least that a durable new file takes: write, fsync, rename, fsync of the directory."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        self._directory = directory

    def __call__(self, memory: Memory) -> float:
        """Write one file; return the seconds."""
        data = format(memory).encode()
        path = self._directory / memory.file_name
        begun = perf_counter()
        current = path.with_suffix(".tmp")
        with current.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        current.rename(path)
        if sys.platform != "win32":
            descriptor = os.open(self._directory, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
        return perf_counter() - begun


# --- the report -------------------------------------------------------------------------------


def measure(sizes: list[int], root: Path, effort: Effort) -> dict[int, Cells]:
    """Measure every size in a directory of its own under `root`."""
    found: dict[int, Cells] = {}
    for size in sizes:
        place = root / str(size)
        say(f"{size:,} memories: writing")
        corpus.generate(place / "base", size)
        found[size] = {}
        for cells in Bench(place / "base", place, size, effort).cells():
            found[size] |= cells
            say(f"{size:,} memories: {', '.join(cells)}")
        shutil.rmtree(place)
    return found


def say(sentence: str) -> None:
    """Show progress."""
    print(sentence, file=sys.stderr, flush=True)


def report(found: dict[int, Cells], root: Path) -> str:
    """Return the table, and what it was measured on."""
    now = datetime.now(timezone.utc)
    mcp = importlib.metadata.version("mcp")
    lines = [
        f"Measured on {now:%Y-%m-%d} with aiaml-server {__version__}, mcp {mcp},",
        f"Python {platform.python_version()}, {os.cpu_count()} CPUs,",
        f"{platform.system()} {platform.release()}, file system {file_system(root)}.",
        "",
        "| | limit | " + " | ".join(f"{size:,} memories" for size in found) + " |",
        "|---|---" + "|--:" * len(found) + "|",
    ]
    for key, (what, most) in ROWS.items():
        row = (what, most, *(cells.get(key) or "-" for cells in found.values()))
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def file_system(path: Path) -> str:
    """Return the type of the file system that `path` is on, where the system tells."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "unknown"
    types = {Path(mount.split()[1]): mount.split()[2] for mount in mounts}
    return next((types[each] for each in (path, *path.parents) if each in types), "unknown")


def put_into(path: Path, table: str) -> None:
    """Replace what stands between the two marks in a document."""
    head, begin, rest = path.read_text(encoding="utf-8").partition("<!-- measured -->\n")
    _, end, tail = rest.partition("<!-- end -->")
    if not (begin and end):
        raise SystemExit(f"{path} has no marks to write between")
    path.write_text(f"{head}{begin}\n{table}\n{end}{tail}", encoding="utf-8", newline="\n")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    add = parser.add_argument
    add("--sizes", default="0,1000,10000", help="numbers of memories (default: %(default)s)")
    add("--write", nargs="?", const=HERE / "RESULTS.md", type=Path, metavar="FILE")
    add("--place", type=Path, help="a directory on the disk to measure; default: the temporary one")
    add("--quick", action="store_true", help="one of each, to see that it works")
    return parser.parse_args()


def main() -> int:
    """Run the command line; return the exit code."""
    given = arguments()
    sizes = [int(size) for size in given.sizes.split(",")]
    effort = Effort(starts=1, calls=2, seconds=0.0) if given.quick else Effort()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with tempfile.TemporaryDirectory(prefix="aiaml-bench-", dir=given.place) as root:
            table = report(measure(sizes, Path(root).resolve(), effort), Path(root).resolve())
    except KeyboardInterrupt:
        return 130
    print(table, end="")
    if given.write:
        put_into(given.write, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
