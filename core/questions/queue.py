"""Queue of pending questions, and those that fit a time; docs/curation.md#review."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final

from core.base.steps import Steps, run_all
from core.base.text import plural
from core.questions.asking import Asker, Questions, QueueRecords
from core.questions.impact import net
from core.questions.kinds import TABLE
from core.records.decisions import TURNS, CurationState, Decision

if TYPE_CHECKING:
    from core.base.settings import Settings
    from core.index.review_items import ReviewItem


def review_queue(records: QueueRecords, known: Questions | None = None) -> tuple[ReviewItem, ...]:
    """Return pending questions, highest priority first; see `review_queue_in_steps`."""
    return run_all(review_queue_in_steps(records, known))


def review_queue_in_steps(records: QueueRecords, known: Questions | None = None) -> Steps[tuple[ReviewItem, ...]]:
    """Do `review_queue` step by step.

    `known` is a cache: it has the questions of an earlier queue with the same settings, of which those of unchanged
    patterns are used again. Questions of this queue are added as they are made, and at the end all others are removed.

    Blocked agents always come first. The others are sorted by `core.questions.impact.net`, then by kind and subject;
    the held texts among them take their places in the order of their risk. Of several questions with the same key, only
    the first is asked.
    """
    asker = Asker(records, known)
    items = []
    for row in TABLE:
        for item in row.ask(asker):
            items.append(item)
            asker.asked_about.add(item.subject)
            yield
    others = [item for item in items if not item.is_urgent]
    others.sort(key=lambda item: (-net(item.impact, item.seconds, records.settings), item.kind, item.subject))
    items = [*(item for item in items if item.is_urgent), *_with_risks_first(others)]
    if known is not None:
        known.clear()
        known.update(asker.asked)
    first = {item.question_key: item for item in reversed(items)}
    return tuple(item for item in _pending(items, records.curation, records.now) if first[item.question_key] is item)


def _with_risks_first(items: list[ReviewItem]) -> list[ReviewItem]:
    """Sort held texts in their places: blocked first, then by marks and impact."""
    risky = (item for item in items if item.risk)
    by_risk = iter(sorted(risky, key=lambda item: (item.risk, item.impact), reverse=True))
    return [next(by_risk) if item.risk else item for item in items]


def _pending(items: Iterable[ReviewItem], curation: CurationState, now: datetime) -> Iterator[ReviewItem]:
    """Yield questions that are neither dismissed nor snoozed."""
    for item in items:
        verdict = curation.inversions.get(item.question_key)
        snoozed = verdict is not None and verdict.is_snoozed(now, item.evidence)
        if not snoozed and item.question_key not in curation.dismissed:
            yield item


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
    """Return the time that questions take at this pace: `about 2 min`; "" for none."""
    seconds = [pace.correct(item.seconds) for item in items]
    return _about(sum(seconds)) if seconds else ""


def _about(seconds: float) -> str:
    return f"about {max(round(seconds / SECONDS_PER_MINUTE), 1):,} min"


def plan(queue: Sequence[ReviewItem], minutes: float, settings: Settings, pace: Pace | None = None) -> Plan:
    """Select questions for a time: blocked agents, then most impact per second.

    A question whose impact is below `review.worthwhile_per_hour`, the cost of reading, is not worth the time. A
    question that does not fit is skipped for the next one. The reviewer's own `pace` corrects the estimated times;
    None leaves them unchanged.
    """
    estimated = sum(item.seconds for item in queue)
    scale = 1.0 if pace is None or not estimated else pace.correct(estimated / len(queue)) * len(queue) / estimated
    urgent = [item for item in queue if item.is_urgent]
    others = [item for item in queue if not item.is_urgent]
    others.sort(key=lambda item: (-item.impact / (item.seconds or 1.0), item.kind, item.subject))
    worthwhile = [*urgent, *(item for item in others if _is_worthwhile(item, scale, settings))]
    seconds_left = minutes * SECONDS_PER_MINUTE
    chosen = []
    for item in worthwhile:
        if item.seconds * scale <= seconds_left:
            chosen.append(item)
            seconds_left -= item.seconds * scale
    total = sum(item.impact for item in queue)
    return Plan(
        items=tuple(chosen),
        minutes=minutes,
        seconds=minutes * SECONDS_PER_MINUTE - seconds_left,
        share=sum(item.impact for item in chosen) / total if total else 1.0,
        later=len(worthwhile) - len(chosen),
        left=len(queue) - len(worthwhile),
    )


def _is_worthwhile(item: ReviewItem, scale: float, settings: Settings) -> bool:
    """Whether a question must be read, or its impact is worth the reviewer's time."""
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
