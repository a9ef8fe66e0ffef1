"""Past moments as people write them: a day, a time, or how long ago."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from core.base.errors import BadInput
from core.base.text import visible_line
from core.records.times import MAX_TIME_LENGTH, parse_time

LAST_VISIT: Final = "last_visit"
"""The name under which the dashboard keeps, project by project, when it was closed."""
LAST_SEEN: Final = "last_seen"
"""The same for when it was open still, kept now and then: of one that is open, or was never closed in order."""
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_AGO: Final = re.compile(r"([1-9][0-9]{0,3})([hdw])")
_UNITS: Final = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_LAST: Final = timedelta(days=1) - timedelta(microseconds=1)


def parse_past_time(text: str, now: datetime, *, end_of_day: bool) -> datetime:
    """The moment that is meant, aware UTC.

    Args:
        text: `2026-11-15`, an ISO-8601 time, or a length of time before `now`: `36h`, `7d`, `2w`.
        now: The present moment.
        end_of_day: Whether a day without a time means its end; else it means its beginning.

    Raises:
        BadInput: It is none of these, or lies in the future; the end of today is the present.
    """
    text = text.strip()
    ago = _AGO.fullmatch(text)
    moment = now - int(ago[1]) * _UNITS[ago[2]] if ago else parse_time(text) if len(text) <= MAX_TIME_LENGTH else None
    if moment is None:
        raise BadInput(f"{visible_line(text, 40)!r} is no time such as 2026-11-15, 2026-11-15T09:00 or 7d")
    if _DAY.fullmatch(text):
        if moment > now:
            raise BadInput(f"{text} lies in the future")
        return min(moment + _LAST, now) if end_of_day else moment
    if moment > now:
        raise BadInput(f"{visible_line(text, 40)} lies in the future")
    return moment.astimezone(UTC)
