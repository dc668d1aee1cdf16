"""One picture: the memory of each server over the longest soak that it was given."""

from __future__ import annotations

from collections.abc import Sequence

from .results import Round

WIDTH, HEIGHT, LEFT, BELOW = 720, 300, 44, 30
COLOURS = ("#4269d0", "#b5651d", "#2e8b57", "#c0392b", "#8e44ad", "#666666", "#0e7c86", "#9a7d0a")


def soak(rounds: Sequence[Round]) -> str:
    """Return the picture as SVG; the times of each are stretched to the width."""
    longest: dict[str, Round] = {}
    for each in sorted(rounds, key=lambda each: each.figures["samples"][-1]["after"]):
        longest[each.server] = each
    top = max(s["memory"] for each in longest.values() for s in each.figures["samples"]) * 1.1
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for part in range(5):
        value = top * part / 4
        y = _y(value, top)
        lines.append(f'<path d="M{LEFT} {y:.0f}H{WIDTH - 200}" stroke="#ddd"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{value:.0f}</text>')
    lines.append(f'<text x="4" y="12">MB</text><text x="{LEFT}" y="{HEIGHT - 8}">begin</text>')
    lines.append(f'<text x="{WIDTH - 200}" y="{HEIGHT - 8}" text-anchor="end">end</text>')
    spread = sorted(longest.values(), key=lambda each: each.figures["samples"][-1]["memory"])
    below = float(HEIGHT)
    for colour, each in zip(COLOURS * 2, spread, strict=False):
        samples = each.figures["samples"]
        ends = samples[-1]["after"]
        points = " ".join(
            f"{LEFT + (WIDTH - 200 - LEFT) * s['after'] / ends:.0f},{_y(s['memory'], top):.0f}"
            for s in samples
        )
        below = min(below - 14, _y(samples[-1]["memory"], top))  # no name on another
        text = f"{each.server}, {ends:,.0f} s, {samples[-1]['texts']:,} texts"
        lines.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        lines.append(f'<text x="{WIDTH - 194}" y="{below:.0f}" fill="{colour}">{text}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def _y(value: float, top: float) -> float:
    return HEIGHT - BELOW - (HEIGHT - BELOW - 16) * value / top
