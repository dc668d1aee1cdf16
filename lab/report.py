"""Two pages of the documentation and a picture, from results alone: no figure is put in by hand.

In each table the best stands first; among equals, others stand before ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from . import plot
from .adapter import known
from .results import Round, read
from .rounds import modules

DOCS = Path(__file__).parent.parent / "docs"
OURS = "aiaml"
CAUSES = ("not measured", "broke")
RUN = "rounds; version; date; load"
NOT_SUMMED = ("of", "servers", "machines")


@dataclass(frozen=True)
class Row:
    """All rounds of one server under one measure.

    Attributes:
        server: the adapter's name.
        rounds: those in which something was measured.
        causes: why others were not, each once.
        sums: figures of all rounds together.
        wrong: how much of what ought to be 0 is not.
    """

    server: str
    rounds: list[Round]
    causes: list[str]
    sums: Counter[str]
    wrong: Counter[str]

    @property
    def rank(self) -> tuple[Any, ...]:
        """Return what the table is sorted by."""
        share = sum(self.wrong.values()) / max(1, self.sums["acknowledged"] or len(self.rounds))
        return not self.rounds, share, self.server.startswith(OURS), self.server


def row(server: str, measure: str, rounds: Sequence[Round]) -> Row:
    """Sum up rounds."""
    sums: Counter[str] = Counter()
    measured = [each for each in rounds if not any(cause in each.figures for cause in CAUSES)]
    for each in measured:
        for name, value in each.figures.items():
            if isinstance(value, int) and name not in NOT_SUMMED:
                sums[name] += value
    wrong = Counter({name: sums[name] for name in modules()[measure].ZERO if sums[name]})
    told = [
        str(each.figures[cause]) for each in rounds for cause in CAUSES if cause in each.figures
    ]
    return Row(server, measured, sorted(told), sums, wrong)


def safe(measure: str, rows: list[Row]) -> list[str]:
    """Return the table of a measure whose figures ought to be 0."""
    zero = modules()[measure].ZERO
    lines = [
        f"| server | what ought to be 0 | what was done | {RUN} | to be fair |",
        "|---|---|---|---|---|",
    ]
    for each in sorted(rows, key=lambda each: each.rank):
        done = {n: v for n, v in each.sums.items() if n not in zero and v and n in PLAIN}
        which = sorted({name for one in each.rounds for name in one.figures.get("which", [])})
        wrong = _names(each.wrong) + (f" ({', '.join(which)})" if which else "")
        cells = [
            wrong or ("**0**" if each.rounds else "not measured"),
            _names(Counter(done)) + _reach(each.rounds),
            _when(each.rounds),
            _fair(each, measure),
        ]
        lines.append(f"| {_title(each.server)} | {' | '.join(cells)} |")
    return lines


PLAIN = (
    "acknowledged", "kills", "disks", "calls", "killed", "errors", "limits on a file's size",
    "refused", "died", "power cuts", "sent", "turns", "checks", "outages", "clocks moved",
    "by hand", "requests",
)  # fmt: skip
"""Figures that say what was done, and how much of it."""

COSTS: dict[str, Sequence[tuple[str, str, int]]] = {
    "start": (
        ("warm search", "first search, s", 1),
        ("cold search", "the same, cold", 1),
        ("warm", "first answer, s", 1),
        ("cold", "the same, cold", 1),
        ("characters of tools and instructions", "characters of tools and instructions", 1),
        ("megabytes installed", "MB installed", 1),
    ),
    "search": (
        ("hit@5", "a right one among the first five", -1),
        ("recall@5", "share of the right ones there", -1),
        ("characters", "characters read for an answer", 1),
    ),
    "soak": (
        ("store at last", "store, ms", 1),
        ("search at last", "search, ms", 1),
        ("memory at first", "MB at first", 1),
        ("memory at last", "MB at last", 1),
    ),
}
"""Figures that are compared: name, heading, and whether the least (1) or the most (-1) is best."""


def dear(measure: str, rows: list[Row]) -> list[str]:
    """Return the table of a measure whose figures are compared, by the first of them."""
    columns = COSTS[measure]
    if measure == "search":
        rows = _same_questions(rows)
    heads = [heading for _, heading, _ in columns]
    lines = [f"| server | {' | '.join(heads)} | {RUN} | to be fair |"]
    lines.append(f"|---|{'--:|' * len(columns)}---|---|")
    first, _, sign = columns[0]
    values = {each.server: {name: _middle(each, name) for name, _, _ in columns} for each in rows}

    def rank(each: Row) -> tuple[Any, ...]:
        value = values[each.server][first]
        return value is None, sign * (value or 0), each.server.startswith(OURS)

    best = {
        name: min(
            (s * v for each in rows if (v := values[each.server][name]) is not None), default=0
        )
        for name, _, s in columns
    }
    for each in sorted(rows, key=rank):
        cells = []
        for name, _, s in columns:
            value = values[each.server][name]
            text = "-" if value is None else f"{value:,g}"
            cells.append(f"**{text}**" if value is not None and s * value == best[name] else text)
        cells += [_when(each.rounds), _fair(each, measure)]
        lines.append(f"| {_title(each.server)} | {' | '.join(cells)} |")
    return lines


def _same_questions(rows: list[Row]) -> list[Row]:
    """Return the rows with those rounds alone that each server that searches has had."""
    numbers = [{one.number for one in each.rounds} for each in rows if each.rounds]
    common = set.intersection(*numbers) if numbers else set()
    return [
        replace(each, rounds=[one for one in each.rounds if one.number in common]) for each in rows
    ]


def _middle(each: Row, name: str) -> float | None:
    numbers: list[float] = []
    for one in each.rounds:
        value = one.figures.get(name)
        some = value if isinstance(value, list) else [value]
        numbers += [number for number in some if number is not None]
    return round(median(numbers), 3) if numbers else None


def _names(figures: Counter[str]) -> str:
    return ", ".join(f"{name} {value:,}" for name, value in figures.items())


def _reach(rounds: Sequence[Round]) -> str:
    """Return how far rounds went that do more each time."""
    calls = max((each.figures.get("of", 0) for each in rounds), default=0)
    servers = max((each.figures.get("servers", 0) for each in rounds), default=0)
    machines = max((each.figures.get("machines", 0) for each in rounds), default=0)
    told = f"; there are {calls} such calls" if calls else ""
    told += f"; up to {machines} machines" if machines else ""
    return told + (f"; up to {servers} servers" if servers else "")


def _title(server: str) -> str:
    return known()[server].title if server in known() else server


def _when(rounds: Sequence[Round]) -> str:
    if not rounds:
        return ""
    loads = [each.load for each in rounds]
    load = f"{min(loads):g} to {max(loads):g}" if len(loads) > 1 else f"{loads[0]:g}"
    searched = [each.figures for each in rounds if "set" in each.figures]
    sets = sorted({f"{each['set']}, {each['memories']} texts" for each in searched})
    sets += sorted({f"seed {each.seed}" for each in rounds if each.seed != 1})
    lasted = [each.figures["samples"][-1]["after"] for each in rounds if "samples" in each.figures]
    sets += [f"{max(lasted):,.0f} s"] if lasted else []
    count = f"{len(rounds)} ({', '.join(sets)})" if sets else f"{len(rounds)}"
    return f"{count}; {rounds[-1].version}; {rounds[-1].date[:10]}; {load}"


def _fair(each: Row, measure: str) -> str:
    notes = known()[each.server].notes if each.server in known() else {}
    said = [notes[name] for name in ("", measure) if name in notes]
    said += [f"rounds that measured nothing: {cause}" for cause in each.causes]
    return "; ".join(said).replace("|", "/").replace("\n", " ")


def page(title: str, before: str, names: Sequence[str], rounds: list[Round], make: Table) -> str:
    """Return a page with a section for each measure."""
    lines = [f"# {title}", "", *before.strip().splitlines()]
    for name in names:
        of = [each for each in rounds if each.measure == name]
        servers = sorted({each.server for each in of})
        rows = [row(s, name, [each for each in of if each.server == s]) for s in servers]
        if not rows:
            continue
        command = f"python -m lab run --servers NAME --measures {name} --seed {of[0].seed}"
        command += " --rounds ROUNDS"
        about = modules()[name].ABOUT
        lines += ["", f"## {name.capitalize()}", "", f"{about[0].upper()}{about[1:]}.", ""]
        lines += [f"`{command}`, on {_machine(of)}.", "", *make(name, rows)]
    return "\n".join(lines) + "\n"


Table = Callable[[str, list[Row]], list[str]]


def _machine(rounds: Sequence[Round]) -> str:
    return " and ".join(sorted({each.machine for each in rounds}))


RELIABILITY = """
What memory servers acknowledge and lose, ours among them, as `python -m lab run` found it; anybody
can run [the laboratory](https://github.com/aiaml/aiaml/tree/main/lab) on any server, and this page
is written by `python -m lab report` from the
[results](https://github.com/aiaml/aiaml/tree/main/lab/results) alone. In each table the best stands
first, and among equals the others stand before ours. What else other servers do better than ours:
[comparison](comparison.md) and [others](others.md). The load is that of the machine's last minute:
where it is high, times are longer than yours, and so are the gaps into which a kill may fall. A
server that has no row in a table was not reached in the time that there was.

*No answer* is none within 10 seconds, which a slow server may miss under a high load. What was
measured [at full length](https://github.com/aiaml/aiaml/tree/main/lab#at-full-length), and what was
not yet, is said there: few rounds find what happens often, not what happens seldom.

*Acknowledged* is a text whose storing was answered without an error; it has to be readable by the
server's own tools after a new start, whole. *Lost* was not; *torn* is a text that can be found and
is not whole.

Not measured: upgrades, since nothing has been released yet; disks that lie; writes into mapped
memory, which no system call shows. Only ours and the baseline of files exchange
with other machines by themselves.

That the laboratory can find faults is tested: `python -m lab mutations` puts twelve into its own
server, one at a time, and each is caught by name.
"""

COMPARISON = """
What memory servers take and find, side by side, as `python -m lab run` measured it, written by
`python -m lab report` from the
[results](https://github.com/aiaml/aiaml/tree/main/lab/results) alone. In each table the best stands
first; the best figure of each column is bold. What is unfair to a server stands beside its figures.
Why to take another, in words: [others](others.md); whether memories are safe:
[reliability](reliability.md).

Times are medians, and depend on the load of the machine, which is named: compare them within one
table, and with the load beside them. Servers searched the same stores, by the same questions and
words (LoCoMo's, CC BY-NC 4.0, which is not in this repository); more rounds than all of them had
are left out. A server without a row was not reached in the time that there was.
"""


def pages(folder: Path) -> dict[str, str]:
    """Return the pages by their names."""
    rounds = _newest(read(folder))
    checked = [name for name, module in modules().items() if module.ZERO]
    made = {
        "reliability.md": page("Reliability", RELIABILITY, checked, rounds, safe),
        "comparison.md": page("Comparison", COMPARISON, list(COSTS), rounds, dear),
    }
    soaks = [each for each in rounds if "samples" in each.figures]
    if soaks:
        made["soak.svg"] = plot.soak(soaks)
        picture = "\n![The memory of each server over its longest soak](soak.svg)\n"
        made["comparison.md"] += picture
    return made


def _newest(rounds: list[Round]) -> list[Round]:
    """Return the rounds of the version that each server had when a measure was taken last."""
    last = {(each.server, each.measure): each.version for each in rounds}
    return [each for each in rounds if last[each.server, each.measure] == each.version]


def main(folder: Path, docs: Path = DOCS, *, check: bool) -> int:
    """Write the pages, or say which are not as they would be written; return the exit code."""
    stale = []
    for name, text in pages(folder).items():
        path = docs / name
        if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            stale.append(name)
        elif not check:
            path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"{name} is not what the results say: python -m lab report")
    return int(bool(stale))
