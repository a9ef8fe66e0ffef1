"""The reviewer's mirror: how many of one's own verdicts held against what loops told afterwards."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from core.config.settings import MaturitySettings
from core.learning.recorded_uses import EVENT_LOG, LOOP
from core.learning.statistics import jeffreys_interval
from core.records.decisions import Decision, Verb
from core.records.events import Observation
from core.state.project_state import ProjectState

NEEDED: Final = 30
"""Verdicts with follow-up from which on a share is told: fewer say nothing of a person."""
_JUDGED: Final = (Verb.PROMOTE, Verb.DEPRECATE)
_VERDICTS: Final = frozenset({*_JUDGED, Verb.RESET, Verb.ACCEPT_INVERSION})
"""What ends the time in which an earlier verdict on the same pattern is judged."""
_END: Final = datetime.max.replace(tzinfo=UTC)


class Share(Struct, frozen=True, kw_only=True):
    """How many verdicts of one kind held.

    Attributes:
        made: All of them, those that were taken back left out.
        followed: Those with follow-up: enough later results, see `Mirror.follow_up`.
        held: Of these, those that the later results bear out.
        low, high: Ends of the interval of `held / followed`, 0..1; None while `missing`.
    """

    made: int
    followed: int
    held: int
    low: float | None = None
    high: float | None = None

    @property
    def missing(self) -> int:
        """How many more verdicts with follow-up it takes until the share is told; 0 if it is."""
        return max(NEEDED - self.followed, 0)

    @property
    def rate(self) -> float | None:
        """`held / followed`, 0..1; None while `missing`."""
        return None if self.missing else self.held / self.followed


class Mirror(Struct, frozen=True, kw_only=True):
    """What became of one person's verdicts.

    Attributes:
        by: The person, as the ledger names them.
        promotions: Held where the later results are not bad by the rule that deprecates.
        deprecations: Held where they are: whoever used the pattern all the same came to harm.
        follow_up: Results that must have come after a verdict, and before the next one on the same pattern.
        level: Probability mass of the intervals, 0..1.
    """

    by: str
    promotions: Share
    deprecations: Share
    follow_up: int
    level: float


def mirror(view: ProjectState, by: str) -> Mirror:
    """Judge the standing verdicts of one person by what loops told of the patterns afterwards.

    Only uses that the event log or a loop tells of count, dated after the verdict; what a record sums up has no time
    of its own. A full sample, and what is bad in it, are as where evidence contradicts a pin (semantics 4).
    """
    limits = view.settings.maturity
    follow_up = math.ceil(limits.min_feedback)
    made = dict.fromkeys(_JUDGED, 0)
    outcomes: dict[Verb, list[bool]] = {verb: [] for verb in _JUDGED}
    for decision, until in _judged(view.snapshot.decisions, view.snapshot.curation.undone, by):
        made[decision.verb] += 1
        if decision.subject in view.board:
            good, bad = _later(view.observations(decision.subject), decision.at, until)
            if good + bad >= follow_up:
                outcomes[decision.verb].append(_is_bad(good, bad, limits) is (decision.verb is Verb.DEPRECATE))
    level = view.settings.interval_level
    promotions, deprecations = (_share(made[verb], outcomes[verb], level) for verb in _JUDGED)
    return Mirror(by=by, promotions=promotions, deprecations=deprecations, follow_up=follow_up, level=level)


def _judged(decisions: Iterable[Decision], undone: frozenset[str], by: str) -> Iterator[tuple[Decision, datetime]]:
    """The verdicts of a person that stand, each with the time of the next one on its pattern."""
    verdicts: dict[str, list[Decision]] = {}
    for decision in decisions:
        if decision.verb in _VERDICTS and decision.id not in undone:
            verdicts.setdefault(decision.subject, []).append(decision)
    for own in verdicts.values():
        for decision, following in zip(own, (*own[1:], None), strict=True):
            if decision.by == by and decision.verb in _JUDGED:
                yield decision, following.at if following is not None else _END


def _later(observations: Iterable[Observation], after: datetime, until: datetime) -> tuple[int, int]:
    """(successes, failures) that were told of a time."""
    results = [
        seen.success
        for seen in observations
        if seen.source in (EVENT_LOG, LOOP) and seen.at is not None and after < seen.at <= until
    ]
    return results.count(True), results.count(False)


def _is_bad(good: int, bad: int, limits: MaturitySettings) -> bool:
    return bad > (limits.deprecation_threshold + limits.ratio_tolerance) * (good + bad)


def _share(made: int, outcomes: Sequence[bool], level: float) -> Share:
    followed, held = len(outcomes), sum(outcomes)
    if followed < NEEDED:
        return Share(made=made, followed=followed, held=held)
    low, high = jeffreys_interval(held, followed - held, level)
    return Share(made=made, followed=followed, held=held, low=low, high=high)
