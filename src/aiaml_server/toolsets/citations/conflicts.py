"""A conflict that git left in a memory's file because two branches have verified it."""

from __future__ import annotations

from collections.abc import Sequence

_KEYS = ("verified:", "confidence:")


def settled(text: str) -> str:
    """Return a text in which the later date stands where two are in conflict.

    So it is read where nothing but `verified` and `confidence` differ; any other conflict stays,
    and is no memory.
    """
    if "<<<<<<< " not in text:
        return text
    kept: list[str] = []
    sides: dict[str, list[str]] = {}
    side = ""
    for line in text.splitlines(keepends=True):
        mark = line.rstrip()[:7]
        if mark == "<<<<<<<" and not side:
            sides, side = {"ours": [], "base": [], "theirs": []}, "ours"
        elif mark == "|||||||" and side == "ours":
            side = "base"
        elif mark == "=======" and side in ("ours", "base"):
            side = "theirs"
        elif mark == ">>>>>>>" and side == "theirs":
            later = _later(sides["ours"], sides["theirs"])
            if not later:
                return text
            kept += later
            side = ""
        else:
            (sides[side] if side else kept).append(line)
    return text if side else "".join(kept)


def _later(ours: Sequence[str], theirs: Sequence[str]) -> Sequence[str]:
    """Return the side that was verified later; nothing where they differ in more."""
    if not all(line.startswith(_KEYS) for line in [*ours, *theirs]):
        return ()
    dated = [
        (line.partition(":")[2].strip(), side)
        for side in (ours, theirs)
        for line in side
        if line.startswith("verified:")
    ]
    if len(dated) != len((ours, theirs)):
        return ()
    return max(dated, key=lambda each: "" if each[0] == "null" else each[0])[1]
