"""python -m lab run | mutations | report | list."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from . import mutations, report, results
from .adapter import known
from .rounds import modules
from .run import QUICK, Plan, run, show


def main() -> int:
    """Do what the command line says."""
    words = _parser().parse_args()
    if words.what == "list":
        for name, kind in known().items():
            print(f"{name:20} {kind.title} ({kind.package or 'part of the lab'})")
        for name, module in modules().items():
            print(f"{name:20} {module.ABOUT}")
        return 0
    if words.what == "report":
        return report.main(words.results, check=words.check)
    if words.what == "round":
        show(words.server, words.measure, words.number, words.seed)
        return 0
    begun = time.monotonic()

    def say(line: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - begun), 60)
        print(f"{minutes:3}:{seconds:02} {line}", flush=True)

    if words.what == "mutations":
        return not mutations.play(words.names, say)
    rounds = words.rounds or (20 if words.quick else 1)
    plan = Plan(
        servers=_some(words.servers, list(known())),
        measures=_some(words.measures, list(modules())),
        seed=words.seed,
        rounds=rounds,
        seconds=QUICK if words.quick else words.seconds,
        lanes=2 if words.quick else 1,
        folder=words.results,
        say=say,
    )
    return 0 if run(plan) else 130


def _some(named: str, all_of_them: list[str]) -> list[str]:
    """Return the names in a list with commas; all where there are none."""
    names = named.split(",") if named else all_of_them
    unknown = set(names) - set(all_of_them)
    if unknown:
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; there are: {', '.join(all_of_them)}")
    return names


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    verbs = parser.add_subparsers(dest="what", required=True)
    each = verbs.add_parser("run", help="measure servers")
    each.add_argument("--quick", action="store_true", help="all in less than 15 minutes")
    each.add_argument("--servers", default="", help="names, with commas; all without")
    each.add_argument("--measures", default="", help="the same")
    each.add_argument("--rounds", type=int, default=0, help="of each measure, at most")
    each.add_argument("--seconds", type=float, default=0, help="for all together")
    each.add_argument("--seed", type=int, default=1)
    each.add_argument("--results", type=Path, default=results.USUAL, help="a folder")
    each = verbs.add_parser("round", help="do one, and print what a line of results has")
    each.add_argument("server", choices=known())
    each.add_argument("measure", choices=modules())
    each.add_argument("number", type=int)
    each.add_argument("seed", type=int)
    each = verbs.add_parser("mutations", help="put faults into a server, and catch them")
    each.add_argument("names", nargs="*", help="which; all without")
    each = verbs.add_parser("report", help="write docs/reliability.md and docs/comparison.md")
    each.add_argument("--results", type=Path, default=results.USUAL, help="a folder")
    each.add_argument("--check", action="store_true", help="only say whether they are as written")
    verbs.add_parser("list", help="name servers and measures")
    return parser


if __name__ == "__main__":
    sys.exit(main())
