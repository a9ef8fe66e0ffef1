"""How far a sitting of so many minutes gets: which decisions, and what share of all that is at stake they cover."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Final

from core.base.text import plural
from core.config.settings import Settings
from core.records.decisions import TURNS, Decision
from core.review.impact import net
from core.state.review_items import ReviewItem

SECONDS_PER_MINUTE: Final = 60.0
SITTING: Final = timedelta(minutes=5)
"""Who decides nothing for so long has got up: the pause tells nothing of the pace."""
ENOUGH_PAUSES: Final = 5
"""Fewer pauses between decisions tell no pace."""
_RECENT_PAUSES: Final = 200
"""Of so many pauses, the newest: people become practised."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How fast a reviewer decides.

    Attributes:
        seconds: Median of the seconds between two decisions of a sitting; None where too few are known.
        pauses: How many pauses that is the median of.
    """

    seconds: float | None = None
    pauses: int = 0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to decide in a sitting.

    Attributes:
        items: In the order in which to decide them: first where an agent waits, of which nothing is at stake.
        minutes: How long the sitting is.
        seconds: What they take.
        share: How much of what is at stake in the whole queue they cover, 0..1.
        later: How many questions are worth the time, but not in this sitting.
        left: How many are not worth the time at all.
    """

    items: tuple[ReviewItem, ...]
    minutes: float
    seconds: float
    share: float
    later: int
    left: int

    @property
    def weighed(self) -> int:
        """How many of the decisions are those that cover the share."""
        return sum(not item.is_urgent for item in self.items)

    @property
    def text(self) -> str:
        """It in one line: `You have 12 minutes: these 22 decisions cover 61% of what is at stake`."""
        return self.told("these ")

    def told(self, which: str = "") -> str:
        """The same; `which` stands before the number of decisions, "" where they are not the ones listed."""
        minutes = "1 minute" if self.minutes == 1 else f"{self.minutes:g} minutes"
        if not self.items:
            unworthy = "no question is worth the time" if self.left else "nothing waits for a decision"
            return f"You have {minutes}: {'too short for the next decision' if self.later else unworthy}"
        count, waiting = self.weighed, len(self.items) - self.weighed
        this = "this" if which else "1"
        covers = f"{this} decision covers" if count == 1 else f"{which}{count:,} decisions cover"
        parts = [f"{plural(waiting, 'agent')} {'waits' if waiting == 1 else 'wait'} for you"] * bool(waiting)
        parts += [f"{covers} {self.share:.0%} of what is at stake"] * bool(count)
        told = [f"You have {minutes}: {', then '.join(parts)}"]
        told += [f"{plural(self.later, 'more question')} for another time"] if self.later else []
        told += [f"{plural(self.left, 'question')} not worth the time"] if self.left else []
        return "; ".join(told)


def plan(queue: Sequence[ReviewItem], minutes: float, settings: Settings, pace: Pace | None = None) -> Plan:
    """What to decide in so many minutes: first where an agent waits, then most stake per second.

    A question is not worth the time where its stake brings less than `review.worthwhile_per_hour`, the price of
    reading: there a sitting stops, however much time is left. One that no longer fits in is passed over for the next.

    Args:
        queue: Everything that waits.
        minutes: How long the sitting is.
        settings: The price.
        pace: The reviewer's own, which scales what the questions are estimated to take; None for none known.
    """
    scale = _scale(queue, pace)
    urgent = [item for item in queue if item.is_urgent]
    others = [item for item in queue if not item.is_urgent]
    others.sort(key=lambda item: (-_rate(item), item.kind, item.subject))
    worthwhile = [*urgent, *(item for item in others if net(item.impact, item.seconds * scale, settings) > 0)]
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


def measure_pace(decisions: Iterable[Decision], by: str) -> Pace:
    """How fast a person decides, from the newest decisions of the ledger.

    Decisions that one act made at once, many patterns or an undo, are no reading, and tell nothing.

    Args:
        decisions: Of everybody, oldest first.
        by: Whose pace.
    """
    own = [one for one in decisions if one.by == by]
    pauses = [
        (later.at - earlier.at).total_seconds()
        for earlier, later in pairwise(own)
        if later.verb not in TURNS and _is_one_sitting(earlier.at, later.at) and not _is_one_act(earlier, later)
    ][-_RECENT_PAUSES:]
    return Pace(seconds=median(pauses) if len(pauses) >= ENOUGH_PAUSES else None, pauses=len(pauses))


def _scale(queue: Sequence[ReviewItem], pace: Pace | None) -> float:
    """What an estimated second takes this reviewer: the questions of the queue take the pace on average."""
    estimated = sum(item.seconds for item in queue)
    if pace is None or pace.seconds is None or not estimated:
        return 1.0
    return pace.seconds * len(queue) / estimated


def _rate(item: ReviewItem) -> float:
    return item.impact / item.seconds if item.seconds else item.impact


def _is_one_sitting(earlier: datetime, later: datetime) -> bool:
    return timedelta() < later - earlier <= SITTING


def _is_one_act(earlier: Decision, later: Decision) -> bool:
    return bool(later.group) and later.group == earlier.group
