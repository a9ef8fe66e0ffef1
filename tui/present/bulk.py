"""Preview and progress of a decision about many patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.content import Content

from core.base.text import plural, visible_line
from tui.present.glyphs import Glyphs, draw_state
from tui.present.numbers import bar

if TYPE_CHECKING:
    from core.forecast.forecast import BulkForecast, Forecast

_MAX_REASONS: Final = 3
_BAR_CELLS: Final = 40


def preview(forecast: BulkForecast | None, glyphs: Glyphs) -> Content:
    """Return the changes: pattern states, skipped patterns and injected contexts."""
    if forecast is None:
        return Content.styled("Computing the forecast…", "$quiet")
    lines = [_turned(forecast, glyphs), *_refused(forecast)]
    if forecast.decided:
        lines.append(_contexts(forecast.effect, glyphs))
    return Content("\n").join(lines)


def _turned(forecast: BulkForecast, glyphs: Glyphs) -> Content:
    turning = sum(count for _, _, count in forecast.turned)
    parts = [f"{turning:,} of {plural(forecast.asked, 'pattern')} {'changes' if turning == 1 else 'change'} state"]
    removed = len(forecast.effect.removed)
    parts += [f"{removed:,} {'leaves' if removed == 1 else 'leave'} the registry"] * bool(removed)
    stay = forecast.decided - turning - removed
    parts += [f"{stay:,} {'keeps' if stay == 1 else 'keep'} the state"] * (stay > 0)
    turns: list[Content] = []
    for before, after, count in forecast.turned:
        states = draw_state(before, glyphs), (f" {glyphs.arrow} ", "$quiet"), draw_state(after, glyphs)
        turns.append(Content.assemble(f"\n  {count:>6,}  ", *states))
    return Content.assemble((", ".join(parts), "bold"), *turns)


def _refused(forecast: BulkForecast) -> list[Content]:
    if not forecast.refused:
        return []
    count = sum(number for _, number in forecast.refused)
    lines = [f"\n  {number:>6,}  {visible_line(why, 120)}" for why, number in forecast.refused[:_MAX_REASONS]]
    more = sum(number for _, number in forecast.refused[_MAX_REASONS:])
    lines += [f"\n  {more:>6,}  for other reasons"] * bool(more)
    return [Content.styled(f"{count:,} skipped{''.join(lines)}", "$warning")]


def _contexts(forecast: Forecast, glyphs: Glyphs) -> Content:
    if not (forecast.loops or forecast.paused or forecast.tasks):
        return Content.styled("No running loop and no task: no injected text to compare.", "$quiet")
    changed_loops, changed_paused = forecast.changed_of("loop"), forecast.changed_of("paused")
    loops = f"{changed_loops} of {plural(forecast.loops, 'running loop')}"
    paused = ""
    if forecast.paused:
        paused = f"\n  {changed_paused} of {plural(forecast.paused, 'paused loop')} on resume"
    tasks = f"{forecast.changed_of('task')} of the last {plural(forecast.tasks, 'task')}"
    before, after = forecast.tokens
    words = f"\n  {forecast.by_words.text}" if forecast.by_words is not None else ""
    return Content.assemble(
        (f"injected text changes for {loops} and {tasks}", "bold" if changed_loops else ""),
        (paused, "bold" if changed_paused else ""),
        (words, "$warning"),
        (f"\n  tokens in total: {before:,} {glyphs.arrow} {after:,}", "$quiet"),
    )


def progress(done: int, total: int, glyphs: Glyphs) -> Content:
    """Return a progress bar with the phase: reading, patterns done, or writing."""
    text = "reading…" if not done else f"{done:,} of {total:,}" if done < total else "writing…"
    return Content.assemble((bar(done, total, _BAR_CELLS, glyphs), "$accent"), f"  {text}")
