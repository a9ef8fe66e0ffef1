"""Pattern counts by state at two moments, or under two sets of thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from textual.content import Content

from core.records.patterns import Maturity
from tui.present.glyphs import STATE_STYLES, Glyphs, draw_state

Counts = Mapping[Maturity, int]
_MAX_BAR: Final = 60


def count_lines(before: Counts, after: Counts, width: int, glyphs: Glyphs, *, short: bool) -> Content:
    """Return the number of patterns in each state, before and after; `short` puts two on a line, without bars."""
    counts = [_count(state, before, after, glyphs) for state in Maturity]
    if short:
        half = width // 2
        rows = [Content.assemble(counts[n].pad_right(max(half - counts[n].cell_length, 2)), counts[n + 1])
                for n in range(0, len(counts), 2)]  # fmt: skip
        return Content("\n").join(rows)
    most = max(1, *before.values(), *after.values())
    room = max(min(width - counts[0].cell_length - 2, _MAX_BAR), 0)
    return Content("\n").join(
        Content.assemble(count, "  ", _bar(state, before, after, room / most, glyphs))
        for state, count in zip(Maturity, counts, strict=True)
    )


def _count(state: Maturity, before: Counts, after: Counts, glyphs: Glyphs) -> Content:
    then, now = before[state], after[state]
    digits = max(len(f"{count:,}") for count in (*before.values(), *after.values()))
    change = f"{now - then:+,}" if now != then else ""
    name = draw_state(state, glyphs)
    return Content.assemble(
        name.pad_right(14 - name.cell_length),
        (f"{then:>{digits},} ", "$quiet"),
        (f"{glyphs.arrow} ", "$quiet"),
        (f"{now:>{digits},}", "bold" if change else "$quiet"),
        (f" {change:<{digits + 1}}", "$accent bold"),
    )


def _bar(state: Maturity, before: Counts, after: Counts, scale: float, glyphs: Glyphs) -> Content:
    then, now = before[state] * scale, after[state] * scale
    stay, gained, lost = min(then, now), max(now - then, 0), max(then - now, 0)
    return Content.assemble(
        (glyphs.full * round(stay), STATE_STYLES[state]),
        (glyphs.full * (round(stay + gained) - round(stay)), "$accent bold"),
        (glyphs.empty * (round(stay + lost) - round(stay)), "$quiet"),
    )
