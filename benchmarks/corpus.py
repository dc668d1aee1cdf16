"""Memories to measure with: python benchmarks/corpus.py DIR COUNT [--seed N].

Fills DIR/files/, so that AIAML_MEMORY_DIR=DIR serves them. The same seed gives the same bytes.
The frequency of words follows Zipf's law, as in any language. Frequent words are English, rare ones
are invented. There are also names, numbers, addresses, code, emoji, Chinese and Japanese, because
these are hard for an index.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from functools import cache
from itertools import accumulate
from pathlib import Path
from random import Random

from aiaml_server.format.memory import Memory, format  # noqa: A004

# By falling frequency, roughly.
ENGLISH = """
the of and to a in is it that for on with as was are be this have from or had by not but what all
were when we there can an your which their if do will each about how up out them then she many some
so these would other into has more her two like him see time could no make than first been its who
now people my made over did down only way find use may water long little very after words called
just where most know get through back much before also around another came come work three word must
because does part even place well such here take why things help put years different away again off
went old number great tell men say small every found still between name should home big give air
line set own under read last never us left end along while might next sound below saw something
thought both few those always looked show large often together asked house world going want school
important until form food keep children feet land side without boy once animals life enough took
sometimes four head above kind began almost live page got earth need far hand high year mother light
parts country father let night following picture being study second eyes soon times story boys since
white days ever paper hard near sentence better best across during today others however sure means
knew try told young miles sun ways thing whole hear example heard several change answer room sea
against top turned learn point city play toward five using himself usually money project user
prefers meeting team code data file server test version build release deadline budget plan review
design feature issue bug fix error deploy database query index cache memory agent model prompt token
context search result customer client invoice contract price order product market report draft
document note reminder decision reason option question task list step goal progress status blocked
done weekly monthly morning evening birthday family friend partner sister brother daughter dog cat
allergy diet vegetarian coffee tea dinner lunch breakfast recipe restaurant kitchen garden bathroom
renovation apartment rent mortgage insurance doctor appointment dentist exercise running cycling
swimming hiking travel flight hotel train ticket passport visa vacation summer winter spring autumn
weather language spanish german french japanese english course lesson exam university degree thesis
book chapter author music guitar piano concert film series photo camera painting museum
architecture backend frontend framework library package dependency function module interface
python rust javascript typescript docker kubernetes linux laptop keyboard monitor phone email
password account backup branch commit merge pipeline schema migration table column latency
throughput benchmark security privacy permission policy approach alternative instead recommended
""".split()  # noqa: SIM905 (five hundred words in quotes would be unreadable)

NAMES = """
Marco Anna Priya Kenji Fatima Lukas Sofia Omar Chloe Mateo Ingrid Yusuf Olga Hassan Zoë Renée José
Müller Nguyen Kowalski Okafor Tanaka Rossi Berlin Lisbon Toronto Kyoto Zürich GitHub PostgreSQL
Slack Figma Notion Stripe FastAPI SQLAlchemy
""".split()  # noqa: SIM905
NAMES += ["San Francisco", "New York", "Home Depot", "Visual Studio Code"]
TECHNICAL = """
node.js c++ ci/cd e-mail C# .NET don't it's can't follow-up well-known user_id snake_case `main.py`
src/app.py https://example.org/docs v2.1.0 $15,000 50% i18n a/b utf-8 TODO: (optional) a@example.org
priya.k@example.com next.js pre-commit --verbose x86_64 key=value O(n) R&D 9:30 AT&T f(x) [x](#a)
""".split()  # noqa: SIM905
EMOJI = ["🙂", "🎉", "👍", "🚀", "✅", "❤️", "👩‍💻", "⚠️"]
CHINESE = ["東京", "記憶", "你好", "会議", "プロジェクト", "ありがとう", "咖啡", "数据库"]

ONSETS = "b c d f g h j k l m n p r s t v w br ch dr fl gr pl qu sh sp st th tr".split()  # noqa: SIM905
CODAS = ["", "", "", "n", "r", "s", "l", "t", "m", "nd", "st", "ck", "x"]
AGENTS = ("claude", "gemini", "chatgpt", "cursor", "copilot", "codex", "tutor", "coding_assistant")
USERS = ("marco", "sarah_m", "john_doe", "dev_mike", "unknown")
SHARES = ((NAMES, 0.015), (TECHNICAL, 0.012), (EMOJI, 0.002), (CHINESE, 0.003), ([""], 0.02))
"""The shares of special words in the text. The empty word stands for a number or a hash."""

VOCABULARY = 20_000
BEGIN = datetime(2024, 1, 1, tzinfo=timezone.utc)
SPAN = timedelta(days=730)


@cache
def vocabulary() -> list[str]:
    """Return the words by falling frequency; the same for every seed."""
    rng = Random(0)
    derived = [word + end for word in ENGLISH[60:] for end in ("s", "ing", "ed", "er")]
    words = dict.fromkeys(derived)
    while len(words) < VOCABULARY - len(set(ENGLISH)):
        words[_invented(rng)] = None
    rest = [word for word in words if word not in ENGLISH]
    rest.sort(key=lambda word: len(word) + 5 * rng.random())  # frequent words are short
    return [*dict.fromkeys(ENGLISH), *rest]


def _invented(rng: Random) -> str:
    syllables = rng.choices((1, 2, 3, 4), (1, 8, 8, 3))[0]
    return "".join(
        rng.choice(ONSETS) + rng.choice(("a", "e", "i", "o", "u", "ai", "ea", "ou"))
        for _ in range(syllables)
    ) + rng.choice(CODAS)


@cache
def _running_text() -> tuple[list[str], list[float]]:
    """Return the words to draw from, and their cumulative weights."""
    words = list(vocabulary())
    weights = [1 / (rank + 2.7) for rank in range(1, len(words) + 1)]
    total = sum(weights)
    for special, share in SHARES:
        words += special
        weights += [total * share / len(special)] * len(special)
    return words, list(accumulate(weights))


def memories(count: int, seed: int = 0) -> Iterator[Memory]:
    """Yield `count` memories, oldest first, spread over two years."""
    rng = Random(seed)
    topics = vocabulary()[60:1500]
    heights = list(accumulate(1 / rank for rank in range(20, 20 + len(topics))))
    ids: set[str] = set()
    for number in range(count):
        made = BEGIN + SPAN * ((number + rng.random()) / count)
        drawn = rng.choices(topics, cum_weights=heights, k=rng.randint(3, 6))
        yield Memory(
            id=_fresh_id(rng, ids),
            timestamp=made.isoformat(timespec="microseconds"),
            agent=rng.choices(AGENTS, (40, 20, 15, 10, 6, 5, 3, 1))[0],
            user=rng.choices(USERS, (60, 15, 12, 8, 5))[0],
            topics=tuple(dict.fromkeys(drawn)),
            content=_content(rng),
        )


def _fresh_id(rng: Random, taken: set[str]) -> str:
    while True:
        drawn = f"{rng.choice('abcdf')}{rng.getrandbits(28):07x}"  # a letter first: no number
        if drawn not in taken:
            taken.add(drawn)
            return drawn


def _content(rng: Random) -> str:
    population, weights = _running_text()
    drawn = rng.choices(population, cum_weights=weights, k=rng.randint(40, 400))
    words = [word or _number(rng) for word in drawn]
    blocks = []
    while words:
        size = rng.randint(20, 110)
        blocks.append(_block(rng, words[:size]))
        del words[:size]
    return "\n\n".join(blocks)


def _number(rng: Random) -> str:
    kind = rng.randrange(6)
    if kind == 0:
        return f"{rng.getrandbits(28):07x}"
    if kind == 1:
        return f"202{rng.randint(3, 6)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    return f"{'#' * (kind == 2)}{int(rng.paretovariate(0.5)) % 100_000}"


def _block(rng: Random, words: list[str]) -> str:
    kind = rng.random()
    if kind < 0.12:
        return "\n".join(f"- {' '.join(words[at : at + 7])}" for at in range(0, len(words), 7))
    if kind < 0.20:
        return f"## {' '.join(words[:4])}\n\n{_sentences(rng, words[4:]) or 'None.'}"
    if kind < 0.23:
        return (
            f"```python\n{'_'.join(words[:3])} = {words[3:9]}\n```\n{_sentences(rng, words[9:])}."
        )
    return _sentences(rng, words)


def _sentences(rng: Random, words: list[str]) -> str:
    sentences = []
    begin = 0
    while begin < len(words):
        size = rng.randint(4, 18)
        text = " ".join(words[begin : begin + size])
        if size > 9:
            text = text.replace(" ", ", ", 1) if size % 2 else text.replace(" and ", ", and ")
        sentences.append(f"{text[0].upper()}{text[1:]}{rng.choice('.......?!:')}")
        begin += size
    return " ".join(sentences)


def generate(directory: Path, count: int, seed: int = 0) -> int:
    """Write `count` memories into `directory/files/`, not synced; return their bytes."""
    return write(directory, memories(count, seed))


def write(directory: Path, some: Iterable[Memory]) -> int:
    """Write memories into `directory/files/`, not synced; return their bytes."""
    files = directory / "files"
    files.mkdir(mode=0o700, parents=True, exist_ok=True)
    total = 0
    for memory in some:
        total += (files / memory.file_name).write_bytes(format(memory).encode())
    return total


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("count", type=int, metavar="COUNT")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    size = generate(given.directory, given.count, given.seed)
    print(f"{given.count:,} memories, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
