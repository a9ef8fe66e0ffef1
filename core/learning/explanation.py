"""Explanation of a pattern's state, rule by rule; docs/scoring.md#states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.base.formatting import format_percent
from core.base.text import plural, visible_line
from core.learning.assessment import HELD, INVERSION, QUARANTINE, Assessment
from core.learning.states import STATES, decayed_counts, fewest_results, state_calendar, state_of
from core.learning.team_sums import TEAM
from core.records.authors import Author
from core.records.events import Observation
from core.records.patterns import Maturity
from core.records.times import day_of

if TYPE_CHECKING:
    from core.config.settings import MaturitySettings, Settings
    from core.records.team import TeamSums

_HOURS_UNTIL_DAYS: Final = 48
_NEAR: Final = 0.01  # smaller distances are shown with their first significant digit
_MAX_NAMED: Final = 3  # maximum number of loops that a line names
_LABELS: Final = {"rests on": "supported by", "one failure": "one more failure", "once reset": "after a reset"}
_AUTHORS: Final = {Author.PERSON: "a person", Author.SCRIPT: "a script", Author.AGENT: "an agent"}
_KEPT_OUT: Final = {
    QUARANTINE: "in quarantine: a candidate, and not injected until released",
    HELD: "held: a candidate, and not injected, until a person approves this text, which gives orders",
}


class RuleLine(Struct, frozen=True, kw_only=True):
    """One line of an explanation.

    `value` and `threshold` are the two sides of a condition: ratios 0..1, decayed sums, or counts.
    """

    rule: str  # identifier: a state whose rule is tested, `inversion`, or the topic of the line
    text: str
    holds: bool | None = None  # whether the condition holds; None if the line has no condition
    fired: bool = False  # whether this condition or decision determined the state
    state: Maturity | None = None  # the state that the line is about; None for the pattern as a whole
    value: float | None = None
    threshold: float | None = None
    distance: float | None = None  # value - threshold

    @property
    def label(self) -> str:
        return _LABELS.get(self.rule, self.rule)


class WeightedUse(Struct, frozen=True):
    """An observation with a result, and its value before and after decay."""

    observation: Observation
    raw: float
    today: float


class StepToState(Struct, frozen=True, kw_only=True):
    """The smallest number of equal results that leads to another state."""

    state: Maturity
    helpful: bool
    count: int


class LoopShare(Struct, frozen=True, kw_only=True):
    """Decayed sums of the results of one loop, and the state without them."""

    loop_id: str
    helpful: float
    harmful: float
    state_without: Maturity


class Explanation(Struct, frozen=True, kw_only=True):
    """The reasons for a pattern's state."""

    lines: tuple[RuleLine, ...]
    events: tuple[WeightedUse, ...]  # newest first
    steps: tuple[StepToState, ...]  # only states that one kind of result alone can lead to
    loops: tuple[LoopShare, ...]  # loops with a result; decisive ones are first
    calendar: tuple[tuple[datetime, Maturity], ...]  # all future changes of state if no evidence is added


def explain_state(
    assessment: Assessment,
    observations: Sequence[Observation],
    now: datetime,
    settings: Settings,
    *,
    invertible: bool = True,
    team: TeamSums | None = None,
) -> Explanation:
    """Explain the state of a pattern; `invertible` is False for anti-patterns.

    `observations` include the results in the team's other projects, whose sums are `team`.
    """
    limits = settings.maturity
    steps = _find_steps(assessment, limits)
    loops = _compute_shares(assessment, observations, now, limits)
    calendar = state_calendar(observations, now, limits)
    low, high = assessment.interval
    level = format_percent(settings.interval_level)
    interval = f"the rate is between {low:.2f} and {high:.2f} with a probability of {level}"
    lines = (
        *_explain_evidence(assessment, limits),
        *(_explain_team(team, now) if team is not None else ()),
        _explain_decision(assessment),
        *_explain_rules(assessment, limits),
        *(_explain_inversion(assessment, settings) if invertible else ()),
        *_explain_steps(assessment, steps),
        _explain_next_failure(assessment, limits),
        _explain_loops(assessment, loops),
        RuleLine(rule="interval", text=interval),
        *_explain_calendar(assessment, calendar, now),
    )
    with_result = (use for use in reversed(observations) if use.success is not None and use.source != TEAM)
    events = tuple(WeightedUse(use, *decayed_weight(use, now, limits)) for use in with_result)
    return Explanation(lines=lines, events=events, steps=steps, loops=loops, calendar=calendar)


def decayed_weight(use: Observation, now: datetime, limits: MaturitySettings) -> tuple[float, float]:
    """Return the value of an observation before and after decay."""
    return use.weight * use.count, sum(decayed_counts((use,), now, limits))


def _explain_evidence(assessment: Assessment, limits: MaturitySettings) -> Iterator[RuleLine]:
    good = plural(assessment.successes, "success", "successes")
    bad = plural(assessment.failures, "failure")
    text = f"{good} and {bad}, decayed to {assessment.helpful:.2f} and {assessment.harmful:.2f} today"
    yield RuleLine(rule="evidence", text=text)
    if assessment.claimed_rate is not None:
        ranked_by = "recorded results"
        if assessment.successes + assessment.failures < limits.min_feedback:
            ranked_by = f"claim until {limits.min_feedback:g} results are recorded"
        text = f"{assessment.claim_text}; the claim is not evidence; ranked by the {ranked_by}"
        yield RuleLine(rule="claimed", text=text)


def _explain_team(team: TeamSums, now: datetime) -> Iterator[RuleLine]:
    yield RuleLine(rule="team", text=describe_team_sums(team, now))


def describe_team_sums(team: TeamSums, now: datetime) -> str:
    """Describe raw counts, such as `other projects of the team: 12 helpful, 3 harmful, newest 3 days ago`."""
    newest = ""
    if team.last_used is not None:
        days = max((now - team.last_used).days, 0)
        newest = f", newest {plural(days, 'day')} ago" if days else ", newest today"
    return f"other projects of the team: {team.successes:,} helpful, {team.failures:,} harmful{newest}"


def _explain_decision(assessment: Assessment) -> RuleLine:
    pin, by_rule = assessment.pin, False
    if pin is not None:
        who = f"{pin.verb} by {visible_line(pin.by, 40)} on {day_of(pin.at)}"
        reason = f": {visible_line(pin.reason, 200)}" if pin.reason else ""
        text = f"decided by {_AUTHORS[pin.decided_by]}: {who}{reason}"
        text += "; later evidence contradicts it" if assessment.contradicted else ""
        if assessment.pin_stale:
            text = f"the text changed since it was {who}: a candidate until a person reviews it"
    elif assessment.decided_by in _KEPT_OUT:
        text = _KEPT_OUT[assessment.decided_by]
    else:
        by_rule, text = True, f"{assessment.state} by rule"
        if assessment.is_capped:
            by_rule, text = False, "established: proven by its results, but no person approved its text"
        if assessment.decided_by == INVERSION:
            text += ", but not injected: its inversion is pending"
        elif assessment.warning_id:
            text += f", but not injected: {visible_line(assessment.warning_id, 120)} warns of the same fix"
        elif assessment.faded:
            text += ", only because its evidence is old"
    return RuleLine(rule="decided", text=text, state=assessment.state, fired=not by_rule)


def _explain_rules(assessment: Assessment, limits: MaturitySettings) -> Iterator[RuleLine]:
    """Yield the conditions of all rules; `fired` if they determined the state."""
    helpful, total = assessment.helpful, assessment.helpful + assessment.harmful
    ratio = assessment.harmful / total if total > 0 else 0.0
    enough = total >= limits.min_feedback - limits.total_tolerance
    over = ratio > limits.deprecation_threshold + limits.ratio_margin
    clean = ratio < limits.max_harmful - limits.ratio_margin
    helped = helpful >= limits.min_helpful - limits.total_tolerance
    tests = (
        (Maturity.DEPRECATED, "harmful ratio", "above", ratio, limits.deprecation_threshold, over),
        (Maturity.DEPRECATED, "total", "at least", total, limits.min_feedback, enough),
        (Maturity.CANDIDATE, "total", "below", total, limits.min_feedback, not enough),
        (Maturity.PROVEN, "helpful", "at least", helpful, limits.min_helpful, helped),
        (Maturity.PROVEN, "harmful ratio", "below", ratio, limits.max_harmful, clean),
        (Maturity.ESTABLISHED, "total", "at least", total, limits.min_feedback, enough),
    )
    for state, name, sign, value, threshold, holds in tests:
        fired = state is assessment.computed is assessment.state and assessment.pin is None
        yield _check(state, f"{name} {value:.2f}, {sign} {threshold:.2f}", value, threshold, holds, state, fired)


def _explain_inversion(assessment: Assessment, settings: Settings) -> Iterator[RuleLine]:
    limits = settings.anti_pattern
    total = assessment.successes + assessment.failures
    ratio = assessment.failures / total if total else 0.0
    least, worst = limits.min_observations, limits.failure_ratio_threshold
    yield _check(INVERSION, f"raw uses {total:,}, at least {least}", total, least, total >= least)
    words = f"raw failure ratio {ratio:.2f}, at least {worst:.2f}"
    yield _check(INVERSION, words, ratio, worst, bool(total) and ratio >= worst)


def _check(
    rule: str,
    words: str,
    value: float,
    threshold: float,
    holds: bool,
    state: Maturity | None = None,
    fired: bool = False,
) -> RuleLine:
    far = value - threshold
    near = f"{abs(far):.2f}" if abs(far) >= _NEAR else f"{abs(far):.1g}"
    text = f"{words}: {'holds' if holds else f'does not hold, {near} away'}"
    return RuleLine(
        rule=rule, text=text, holds=holds, fired=fired, state=state, value=value, threshold=threshold, distance=far
    )


def _find_steps(assessment: Assessment, limits: MaturitySettings) -> tuple[StepToState, ...]:
    sums = assessment.helpful, assessment.harmful
    return tuple(
        StepToState(state=state, helpful=helpful, count=count)
        for state in STATES
        for helpful in (True, False)
        if state is not assessment.computed
        and (count := fewest_results(state, *sums, int(helpful), int(not helpful), limits)) is not None
    )


def _explain_steps(assessment: Assessment, steps: Sequence[StepToState]) -> Iterator[RuleLine]:
    if assessment.pin is not None:
        text = f"results do not change a pinned state; after a reset it is {assessment.computed}"
        yield RuleLine(rule="once reset", text=text, state=assessment.computed)
    for state in STATES:
        if state is not assessment.computed:
            ways = [
                plural(step.count, "more success", "more successes")
                if step.helpful
                else plural(step.count, "more failure")
                for step in steps
                if step.state is state
            ]
            text = f"takes {' or '.join(ways)}" if ways else "not reachable by one kind of result alone"
            yield RuleLine(rule=f"to {state}", text=text, state=state)


def _explain_next_failure(assessment: Assessment, limits: MaturitySettings) -> RuleLine:
    if assessment.is_settled:
        return RuleLine(rule="one failure", text=f"stays {assessment.state} (pinned)", state=assessment.state)
    after = state_of(assessment.helpful, assessment.harmful + 1, limits)
    text = f"stays {after}" if after is assessment.computed else f"makes it {after}"
    return RuleLine(rule="one failure", text=text, state=after)


def _compute_shares(
    assessment: Assessment, observations: Sequence[Observation], now: datetime, limits: MaturitySettings
) -> tuple[LoopShare, ...]:
    sums: dict[str, list[float]] = {}
    for use in observations:
        if use.loop_id and use.success is not None:
            sums.setdefault(use.loop_id, [0.0, 0.0])[0 if use.success else 1] += decayed_weight(use, now, limits)[1]
    shares = []
    for loop_id, (helpful, harmful) in sums.items():
        left = max(assessment.helpful - helpful, 0.0), max(assessment.harmful - harmful, 0.0)
        without = state_of(*left, limits)
        shares.append(LoopShare(loop_id=loop_id, helpful=helpful, harmful=harmful, state_without=without))
    return tuple(sorted(shares, key=lambda share: share.state_without is assessment.computed))


def _explain_loops(assessment: Assessment, loops: Sequence[LoopShare]) -> RuleLine:
    if not loops:
        has_results = assessment.successes or assessment.failures
        return RuleLine(rule="rests on", text="counts only; no loop is known" if has_results else "no result yet")
    text = "no single one is decisive"
    decisive = [loop for loop in loops if loop.state_without is not assessment.computed]
    if decisive:
        named = (f"{visible_line(loop.loop_id, 80)} it would be {loop.state_without}" for loop in decisive[:_MAX_NAMED])
        more = f" (and {len(decisive) - _MAX_NAMED} more)" if len(decisive) > _MAX_NAMED else ""
        text = f"without {', without '.join(named)}{more}"
    return RuleLine(rule="rests on", text=f"{plural(len(loops), 'loop')}; {text}", holds=not decisive)


def _explain_calendar(
    assessment: Assessment, calendar: Sequence[tuple[datetime, Maturity]], now: datetime
) -> Iterator[RuleLine]:
    if assessment.is_settled:
        yield RuleLine(rule="calendar", text=f"stays {assessment.state} at any age (pinned)", state=assessment.state)
        return
    if not calendar:
        yield RuleLine(rule="calendar", text=f"stays {assessment.computed} if unused")
    for at, state in calendar:
        hours = (at - now) / timedelta(hours=1)
        until = plural(round(hours), "hour") if hours < _HOURS_UNTIL_DAYS else plural(round(hours / 24), "day")
        yield RuleLine(rule="calendar", text=f"changes to {state} in {until} ({day_of(at)}) if unused", state=state)
