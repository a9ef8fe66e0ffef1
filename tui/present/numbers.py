"""Times, rates and bars as short text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from math import ceil, floor
from typing import Final

from core.base.formatting import decimal_text, percent_text
from tui.present.glyphs import Glyphs

CLOCK_SKEW: Final = timedelta(minutes=1)
"""So far ahead another machine's clock may be; what it says then has just happened."""


def duration(seconds: float) -> str:
    """A length of time in its largest unit: `0.4 s`, `12 m`, `5 h`, `3 d`, `2 y`."""
    if seconds < 0:
        seconds = 0.0
    if seconds < 10:
        return f"{seconds:.1f} s"
    for limit, size, unit in (
        (60, 1, "s"),
        (3600, 60, "m"),
        (48 * 3600, 3600, "h"),
        (365 * 86400, 86400, "d"),
    ):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    years = seconds / (365.25 * 86400)
    return f"{years:.1f} y" if years < 1000 else "ages"


def ago(moment: datetime | None, now: datetime) -> str:
    """How long ago: `5 h ago`, `in 3 d` for the future, `—` for unknown; `now` where clocks differ a little."""
    if moment is None:
        return "—"
    seconds = (now - moment).total_seconds()
    if seconds < 0:
        return "now" if seconds > -CLOCK_SKEW.total_seconds() else f"in {duration(-seconds)}"
    return f"{duration(seconds)} ago"


def until(moment: datetime, now: datetime) -> str:
    """How long until: `24 d`."""
    return duration(max(0.0, (moment - now).total_seconds()))


def moment_text(moment: datetime | None, now: datetime) -> str:
    """A moment for people, in their own zone: `14:05:09` today, `3 May 14:05`, `3 May 2025`."""
    if moment is None:
        return "—"
    local = _in_own_zone(moment)
    if now - timedelta(days=1) < moment <= now and local.date() == now.astimezone().date():
        return f"{local:%H:%M:%S}"
    if abs((now - moment).days) < 300:
        return f"{local.day} {local:%b %H:%M}"
    return f"{local.day} {local:%b %Y}"


def day_text(moment: datetime, now: datetime) -> str:
    """A day for people, in their own zone: `3 May`; `May 2025` where that is far from now."""
    local = _in_own_zone(moment)
    return f"{local.day} {local:%b}" if abs((now - moment).days) < 300 else f"{local:%b %Y}"


def _in_own_zone(moment: datetime) -> datetime:
    """The moment in the machine's zone; a file may name one that has no date there, which stays in UTC."""
    try:
        return moment.astimezone()
    except (OverflowError, ValueError, OSError):
        return moment


def percent(rate: float | None) -> str:
    """A rate 0..1 as whole percent; `—` for none."""
    return "—" if rate is None else percent_text(rate)


def written(value: float) -> str:
    """A number in a field that is typed, without digits that only come of dividing."""
    return f"{round(value, 9):.15g}"


def stepped(value: float, step: float, steps: int, least: float, most: float) -> float:
    """The value so many steps above or below, on whole steps."""
    at = round(value / step, 6)
    return min(max(((floor(at) if steps > 0 else ceil(at)) + steps) * step, least), most)


def bar(done: float, total: float | None, width: int, glyphs: Glyphs) -> str:
    """Progress as a bar of `width` cells; empty where there is nothing to divide by."""
    if not total or total <= 0:
        return glyphs.empty * width
    filled = min(width, max(0, round(width * done / total)))
    return glyphs.full * filled + glyphs.empty * (width - filled)


def sparkline(values: Sequence[float], width: int, glyphs: Glyphs) -> str:
    """The last `width` values 0..1 as one character each."""
    top = len(glyphs.sparks) - 1
    return "".join(glyphs.sparks[min(top, max(0, round(value * top)))] for value in values[-width:])


def interval_bar(low: float, high: float, rate: float | None, width: int, glyphs: Glyphs) -> str:
    """An interval of a rate on a scale 0..1: `0.78 ┄┄┄━╋━ 0.99`, a cross at the rate."""
    cells = [glyphs.line] * width
    first, last = int(low * (width - 1) + 0.5), int(high * (width - 1) + 0.5)
    for n in range(first, last + 1):
        cells[n] = glyphs.range
    if rate is not None:
        cells[min(width - 1, int(rate * (width - 1) + 0.5))] = glyphs.point
    return f"{decimal_text(low)} {''.join(cells)} {decimal_text(high)}"


def interval_text(low: float, high: float) -> str:
    """An interval of a rate in digits alone: `0.78–0.99`."""
    return f"{decimal_text(low)}–{decimal_text(high)}"
