"""One decision about many patterns: what it would change, and how far it is, as text."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from core.base.text import plural, visible_line
from core.forecast.bulk import BulkForecast
from tui.present.glyphs import Glyphs, draw_state
from tui.present.numbers import bar

_REASONS: Final = 3
"""Reasons shown why patterns are skipped; the rest is a number."""
_BAR: Final = 40
"""Cells of the bar."""


def preview(forecast: BulkForecast | None, glyphs: Glyphs) -> Content:
    """What would change, line by line."""
    if forecast is None:
        return Content.styled("working out what it would change…", "$quiet")
    lines = [_turned(forecast, glyphs), *_refused(forecast)]
    if forecast.decided:
        lines.append(_contexts(forecast, glyphs))
    return Content("\n").join(lines)


def _turned(forecast: BulkForecast, glyphs: Glyphs) -> Content:
    turning = sum(count for _, _, count in forecast.turned)
    parts = [f"{turning:,} of {plural(forecast.asked, 'pattern')} {'changes' if turning == 1 else 'change'} state"]
    parts += [f"{forecast.gone:,} {'leaves' if forecast.gone == 1 else 'leave'} the registry"] * bool(forecast.gone)
    stay = forecast.decided - turning - forecast.gone
    parts += [f"{stay:,} {'keeps' if stay == 1 else 'keep'} the state"] * (stay > 0)
    turns = [
        Content.assemble(
            f"\n  {count:>6,}  ",
            draw_state(before, glyphs),
            (f" {glyphs.arrow} ", "$quiet"),
            draw_state(after, glyphs),
        )
        for before, after, count in forecast.turned
    ]
    return Content.assemble((", ".join(parts), "bold"), *turns)


def _refused(forecast: BulkForecast) -> list[Content]:
    if not forecast.refused:
        return []
    count = sum(number for _, number in forecast.refused)
    told = [f"\n  {number:>6,}  {visible_line(why, 120)}" for why, number in forecast.refused[:_REASONS]]
    more = sum(number for _, number in forecast.refused[_REASONS:])
    told += [f"\n  {more:>6,}  for other reasons"] * bool(more)
    return [Content.styled(f"{count:,} skipped{''.join(told)}", "$warning")]


def _contexts(forecast: BulkForecast, glyphs: Glyphs) -> Content:
    if not (forecast.loops or forecast.paused or forecast.tasks):
        return Content.styled("No loop runs and no task is known: no context to compare.", "$quiet")
    loops = f"{forecast.changed_loops} of {plural(forecast.loops, 'running loop')}"
    paused = ""
    if forecast.paused:
        paused = f"\n  {forecast.changed_paused} of {plural(forecast.paused, 'paused loop')} when it resumes"
    tasks = f"{forecast.changed_tasks} of the last {plural(forecast.tasks, 'task')}"
    before, after = forecast.tokens
    words = f"\n  {forecast.by_words.text}" if forecast.by_words is not None else ""
    return Content.assemble(
        (f"{loops} and {tasks} get another context", "bold" if forecast.changed_loops else ""),
        (paused, "bold" if forecast.changed_paused else ""),
        (words, "$warning"),
        (f"\n  tokens of all of them: {before:,} {glyphs.arrow} {after:,}", "$quiet"),
    )


def progress(done: int, total: int, glyphs: Glyphs) -> Content:
    """How many patterns are worked out; before the first one files are read, at the end all is written in one go."""
    told = "reading…" if not done else f"{done:,} of {total:,}" if done < total else "writing…"
    return Content.assemble((bar(done, total, _BAR, glyphs), "$accent"), f"  {told}")
