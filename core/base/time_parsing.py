"""Parsing of past times: a date, a time, or an age such as `7d`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from core.base.errors import BadInput
from core.base.regexes import lazy_regex
from core.base.text import visible_line
from core.records.times import MAX_TIME_LENGTH, parse_time

LAST_VISIT: Final = "last_visit"
"""Key of the time at which the dashboard was closed, in the user state of each project."""
LAST_SEEN: Final = "last_seen"
"""Key of the last time at which the dashboard was open, for one that is open or was not closed properly."""
_DAY: Final = lazy_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_AGO: Final = lazy_regex(r"([1-9][0-9]{0,3})([hdw])")
_UNITS: Final = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_LAST: Final = timedelta(days=1) - timedelta(microseconds=1)


def parse_past_time(text: str, now: datetime, *, end_of_day: bool) -> datetime:
    """Parse a past time in UTC: `2026-11-15`, ISO 8601 or an age (`36h`, `7d`, `2w`).

    A date means the beginning of that day or, with `end_of_day`, its end; the end of today is `now`. Raises BadInput if
    the text is invalid or the time is in the future.
    """
    text = text.strip()
    ago = _AGO.fullmatch(text)
    moment = now - int(ago[1]) * _UNITS[ago[2]] if ago else parse_time(text) if len(text) <= MAX_TIME_LENGTH else None
    if moment is None:
        raise BadInput(f"Invalid time {visible_line(text, 40)!r}. Use 2026-11-15, 2026-11-15T09:00 or 7d")
    if _DAY.fullmatch(text):
        if moment > now:
            raise BadInput(f"{text} is in the future")
        return min(moment + _LAST, now) if end_of_day else moment
    if moment > now:
        raise BadInput(f"{visible_line(text, 40)} is in the future")
    return moment.astimezone(UTC)
