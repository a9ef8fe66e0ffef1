"""Decisions confirmed by later results; docs/metrics.md#reviewer-accuracy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.base.grouping import group_pairs
from core.learning.evidence import LOOP
from core.learning.statistics import jeffreys_interval
from core.records.decisions import Decision, Verb
from core.records.events import EVENT_LOG

if TYPE_CHECKING:
    from core.index.project_state import ProjectState

MIN_FOLLOWED: Final = 30  # minimum number of followed decisions for a rate; fewer are not meaningful
_JUDGED: Final = (Verb.PROMOTE, Verb.DEPRECATE)
_VERDICTS: Final = frozenset({*_JUDGED, Verb.RESET, Verb.ACCEPT_INVERSION})
"""Decisions after which an earlier decision about the same pattern is no longer judged."""
_END: Final = datetime.max.replace(tzinfo=UTC)


class Share(Struct, frozen=True, kw_only=True):
    """Number of decisions of one kind that later results confirm."""

    made: int  # decisions, without undone ones
    followed: int  # decisions followed by enough results, see `ReviewerAccuracy.follow_up`
    held: int  # number of followed decisions that the results confirm
    low: float | None = None  # ends of the interval of `held / followed`, 0..1; None while `missing`
    high: float | None = None

    @property
    def missing(self) -> int:
        """Number of followed decisions that are missing for a rate."""
        return max(MIN_FOLLOWED - self.followed, 0)

    @property
    def rate(self) -> float | None:
        """Share of confirmed decisions, 0..1; None if too few are followed by results."""
        return None if self.missing else self.held / self.followed


class ReviewerAccuracy(Struct, frozen=True, kw_only=True):
    """Share of one person's decisions that later results confirm."""

    by: str  # name of the person in the decision log
    promotions: Share  # confirmed unless later results require deprecation
    deprecations: Share  # confirmed if later results require it
    follow_up: int  # results needed between a decision and the next one about the same pattern
    level: float  # level of the intervals, 0..1


def measure_accuracy(view: ProjectState, by: str) -> ReviewerAccuracy:
    """Compare a person's decisions with later results of the patterns.

    Only decisions in effect, and results in the event log or in loops, count: recorded counts have no time. A decision
    is refuted by the rule for contradicted pins (docs/scoring.md#thresholds).
    """
    limits = view.settings.maturity
    follow_up = math.ceil(limits.min_feedback)
    made = dict.fromkeys(_JUDGED, 0)
    outcomes: dict[Verb, list[bool]] = {verb: [] for verb in _JUDGED}
    for decision, until in _list_judged(view.snapshot.decisions, view.snapshot.curation.undone, by):
        made[decision.verb] += 1
        if decision.subject in view.board:
            results = [
                one.success
                for one in view.board.observations(decision.subject)
                if one.is_use
                and one.source in (EVENT_LOG, LOOP)
                and one.at is not None
                and decision.at < one.at <= until
            ]
            good, bad = results.count(True), results.count(False)
            if good + bad >= follow_up:
                is_bad = bad > (limits.deprecation_threshold + limits.ratio_tolerance) * (good + bad)
                outcomes[decision.verb].append(is_bad is (decision.verb is Verb.DEPRECATE))
    level = view.settings.interval_level
    promotions, deprecations = (_share(made[verb], outcomes[verb], level) for verb in _JUDGED)
    return ReviewerAccuracy(by=by, promotions=promotions, deprecations=deprecations, follow_up=follow_up, level=level)


def _list_judged(decisions: Iterable[Decision], undone: frozenset[str], by: str) -> Iterator[tuple[Decision, datetime]]:
    """Yield a person's decisions, each with the time of the next one on its pattern."""
    in_effect = (one for one in decisions if one.verb in _VERDICTS and one.id not in undone)
    verdicts = group_pairs((decision.subject, decision) for decision in in_effect)
    for own in verdicts.values():
        for decision, following in zip(own, (*own[1:], None), strict=True):
            if decision.by == by and decision.verb in _JUDGED:
                yield decision, following.at if following is not None else _END


def _share(made: int, outcomes: Sequence[bool], level: float) -> Share:
    followed, held = len(outcomes), sum(outcomes)
    ends = (None, None) if followed < MIN_FOLLOWED else jeffreys_interval(held, followed - held, level)
    return Share(made=made, followed=followed, held=held, low=ends[0], high=ends[1])
