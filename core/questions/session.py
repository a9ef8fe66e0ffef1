"""Plan a review session of a given length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final

from core.base.text import plural
from core.questions.impact import net
from core.records.decisions import TURNS, Decision

if TYPE_CHECKING:
    from core.base.settings import Settings
    from core.index.review_items import ReviewItem

SECONDS_PER_MINUTE: Final = 60.0
SESSION_PAUSE: Final = timedelta(minutes=5)
"""Maximum pause between two decisions of one session; longer ones do not count for the pace."""
ENOUGH_PAUSES: Final = 5  # Minimum number of pauses for a pace.
PRIOR_PAUSES: Final = 20  # Number of pauses that the estimated times count as, so that a few answers change little.
_RECENT_PAUSES: Final = 200  # Number of newest pauses that count.


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Median seconds between decisions; None if there are too few `pauses`."""

    seconds: float | None = None
    pauses: int = 0

    def correct(self, seconds: float) -> float:
        """Return the time of a question, in seconds, from its estimate and this pace."""
        if self.seconds is None:
            return seconds
        return (seconds * PRIOR_PAUSES + self.seconds * self.pauses) / (PRIOR_PAUSES + self.pauses)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The questions to answer in a review session of a number of `minutes`.

    `items` are in the order of answering; blocked agents come first, although they have no impact. All take an
    estimated number of `seconds` and cover the `share` of the impact of the whole queue, 0..1. `later` is the number of
    other questions that are worth the time, `left` of those that are not.
    """

    items: tuple[ReviewItem, ...]
    minutes: float
    seconds: float
    share: float
    later: int
    left: int

    @property
    def text(self) -> str:
        """One line: `12 questions, about 4 min; 3 more for later`."""
        if not self.items:
            return f"{self.minutes:g} min: {'too short for the next question' if self.later else 'no open questions'}"
        agents = sum(item.is_urgent for item in self.items)
        parts = [f"{plural(len(self.items), 'question')}, {_about(self.seconds)}"]
        parts += [f"{plural(agents, 'waiting agent')} first"] if agents else []
        parts += [f"{self.later:,} more for later"] if self.later else []
        return "; ".join(parts)


def time_text(items: Iterable[ReviewItem], pace: Pace) -> str:
    """Return how long the questions take, corrected by the reviewer's pace: `about 2 min`; "" for none."""
    seconds = [pace.correct(item.seconds) for item in items]
    return _about(sum(seconds)) if seconds else ""


def _about(seconds: float) -> str:
    return f"about {max(round(seconds / SECONDS_PER_MINUTE), 1):,} min"


def plan(queue: Sequence[ReviewItem], minutes: float, settings: Settings, pace: Pace | None = None) -> Plan:
    """Select questions for a time: blocked agents, then most impact per second.

    A question whose impact is below `review.worthwhile_per_hour`, the cost of reading, is not worth the time. A
    question that does not fit is skipped for the next one. The reviewer's own `pace` scales the estimated times; None
    leaves them.
    """
    estimated = sum(item.seconds for item in queue)
    scale = 1.0 if pace is None or not estimated else pace.correct(estimated / len(queue)) * len(queue) / estimated
    urgent = [item for item in queue if item.is_urgent]
    others = [item for item in queue if not item.is_urgent]
    others.sort(key=lambda item: (-item.impact / (item.seconds or 1.0), item.kind, item.subject))
    worthwhile = [*urgent, *(item for item in others if _is_worthwhile(item, scale, settings))]
    left = minutes * SECONDS_PER_MINUTE
    chosen = []
    for item in worthwhile:
        if item.seconds * scale <= left:
            chosen.append(item)
            left -= item.seconds * scale
    total = sum(item.impact for item in queue)
    return Plan(
        items=tuple(chosen),
        minutes=minutes,
        seconds=minutes * SECONDS_PER_MINUTE - left,
        share=sum(item.impact for item in chosen) / total if total else 1.0,
        later=len(worthwhile) - len(chosen),
        left=len(queue) - len(worthwhile),
    )


def _is_worthwhile(item: ReviewItem, scale: float, settings: Settings) -> bool:
    """Whether a question must be read, or its impact is worth the time at the reviewer's own pace."""
    return net(item.impact, item.seconds * scale, settings) > 0 or (item.is_worth_reading and not item.priority)


def measure_pace(decisions: Iterable[Decision], by: str) -> Pace:
    """Measure how fast a reviewer decides, from the newest decisions.

    Bulk decisions and undo do not count, since nothing is read for them.
    """
    own = [one for one in decisions if one.by == by]
    pauses = [
        (later.at - earlier.at).total_seconds()
        for earlier, later in pairwise(own)
        if later.verb not in TURNS
        and timedelta() < later.at - earlier.at <= SESSION_PAUSE
        and not (later.group and later.group == earlier.group)
    ][-_RECENT_PAUSES:]
    return Pace(seconds=median(pauses) if len(pauses) >= ENOUGH_PAUSES else None, pauses=len(pauses))
