"""Times, rates and bars as short text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from math import ceil, floor
from typing import TYPE_CHECKING

from core.base.formatting import format_decimal, format_percent

if TYPE_CHECKING:
    from tui.kit.glyphs import Glyphs


def moment_text(moment: datetime | None, now: datetime) -> str:
    """Return a local timestamp: `today 14:05`, `3 May 14:05`, `3 May 2025`."""
    if moment is None:
        return "—"
    local = to_local(moment)
    if now - timedelta(days=1) < moment <= now and local.date() == now.astimezone().date():
        return f"today {local:%H:%M}"
    return f"{local.day} {local:%b %H:%M}" if abs((now - moment).days) < 300 else f"{local.day} {local:%b %Y}"


def to_local(moment: datetime) -> datetime:
    """Convert to local time; a time that would overflow stays unchanged."""
    try:
        return moment.astimezone()
    except (OverflowError, ValueError, OSError):
        return moment


def percent(rate: float | None) -> str:
    """Return a rate 0..1 as whole percent; `—` for None."""
    return "—" if rate is None else format_percent(rate)


def number_text(value: float) -> str:
    """Return a number for an input field, without rounding errors."""
    return f"{round(value, 9):.15g}"


def stepped(value: float, step: float, steps: int, least: float, most: float) -> float:
    """Move a value by `steps`, round it to a multiple of `step`, and clamp it."""
    at = round(value / step, 6)
    return min(max(((floor(at) if steps > 0 else ceil(at)) + steps) * step, least), most)


def bar(done: float, total: float | None, width: int, glyphs: Glyphs) -> str:
    """Return a progress bar of `width` cells; it is empty without a total."""
    filled = min(width, max(0, round(width * done / total))) if total and total > 0 else 0
    return glyphs.full * filled + glyphs.empty * (width - filled)


def sparkline(values: Sequence[float], width: int, glyphs: Glyphs) -> str:
    """Return the last `width` values 0..1 as one character each."""
    top = len(glyphs.sparks) - 1
    return "".join(glyphs.sparks[min(top, max(0, round(value * top)))] for value in values[-width:])


def interval_bar(low: float, high: float, rate: float | None, width: int, glyphs: Glyphs) -> str:
    """Return an interval 0..1 with a cross at the rate: `0.78 ┄┄━╋━ 0.99`."""
    cells = [glyphs.line] * width
    for n in range(int(low * (width - 1) + 0.5), int(high * (width - 1) + 0.5) + 1):
        cells[n] = glyphs.range
    if rate is not None:
        cells[min(width - 1, int(rate * (width - 1) + 0.5))] = glyphs.point
    return f"{format_decimal(low)} {''.join(cells)} {format_decimal(high)}"
