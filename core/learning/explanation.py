"""Explanation of a pattern's state, rule by rule; docs/scoring.md#states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.formatting import format_percent
from core.base.text import plural, visible_line
from core.config.settings import MaturitySettings, Settings
from core.learning.assessment import HELD, INVERSION, QUARANTINE, Assessment
from core.learning.calendar import state_calendar
from core.learning.states import STATES, decayed_counts, fewest_results, state_of
from core.records.events import Observation
from core.records.patterns import Maturity
from core.records.times import day_of

_HOURS_UNTIL_DAYS: Final = 48
_NEAR: Final = 0.01
"""Smaller distances are shown with their first significant digit."""
_MAX_NAMED: Final = 3
"""Maximum number of loops that a line names."""
_LABELS: Final = {"rests on": "supported by", "one failure": "one more failure"}
_KEPT_OUT: Final = {
    QUARANTINE: "in quarantine: a candidate, and not injected until released",
    HELD: "held: a candidate, and not injected, until a person approves this text, which gives orders",
}


class RuleLine(Struct, frozen=True, kw_only=True):
    """One line of an explanation.

    Attributes:
        rule: Identifier: a state whose rule is tested, `inversion`, or the topic of the line.
        text: Displayable text.
        holds: Whether the condition holds; None if the line has no condition.
        fired: Whether it determined the state: a condition of the rule that did, or a decision of a person.
        state: The state that the line is about; None for the pattern as a whole.
        value, threshold: Both sides of a condition: ratios 0..1, decayed totals, or counts.
        distance: `value - threshold`.
    """

    rule: str
    text: str
    holds: bool | None = None
    fired: bool = False
    state: Maturity | None = None
    value: float | None = None
    threshold: float | None = None
    distance: float | None = None

    @property
    def label(self) -> str:
        return _LABELS.get(self.rule, self.rule)


class WeightedUse(Struct, frozen=True, kw_only=True):
    """One observation with a result, and its value without decay and today."""

    observation: Observation
    raw: float
    today: float


class StepToState(Struct, frozen=True, kw_only=True):
    """The smallest number of new results of one kind that leads to another state."""

    state: Maturity
    helpful: bool
    count: int


class LoopShare(Struct, frozen=True, kw_only=True):
    """Decayed sums of one loop's results, and the computed state without them."""

    loop_id: str
    helpful: float
    harmful: float
    state_without: Maturity


class Explanation(Struct, frozen=True, kw_only=True):
    """Why a pattern is in its state.

    Attributes:
        lines: What decides, all rules in order, the results needed for other states, supporting loops, the
            interval, and coming changes.
        events: Observations with a result, newest first.
        steps: Results needed for each other state; states that one kind of result never leads to are left out.
        loops: The loops with a result, those without which the state would differ first.
        calendar: All coming changes of the state by decay alone.
    """

    lines: tuple[RuleLine, ...]
    events: tuple[WeightedUse, ...]
    steps: tuple[StepToState, ...]
    loops: tuple[LoopShare, ...]
    calendar: tuple[tuple[datetime, Maturity], ...]


def explain_state(
    assessment: Assessment,
    observations: Sequence[Observation],
    now: datetime,
    settings: Settings,
    *,
    invertible: bool = True,
) -> Explanation:
    """Explain the state of a pattern.

    Args:
        invertible: Whether inversion applies; it does not to anti-patterns.
    """
    limits = settings.maturity
    steps = _steps(assessment, limits)
    loops = _shares(assessment, observations, now, limits)
    calendar = state_calendar(observations, now, limits)
    lines = (
        _counts(assessment),
        *_claim(assessment, limits),
        _decision(assessment),
        *_rules(assessment, limits),
        *(_inversion(assessment, settings) if invertible else ()),
        *_step_lines(assessment, steps),
        _one_more_failure(assessment, limits),
        _loops(assessment, loops),
        _interval(assessment, settings),
        *_calendar(assessment, calendar, now),
    )
    weighted = (
        WeightedUse(observation=use, raw=raw, today=today)
        for use in reversed(observations)
        if use.success is not None
        for raw, today in (decayed_weight(use, now, limits),)
    )
    return Explanation(lines=lines, events=tuple(weighted), steps=steps, loops=loops, calendar=calendar)


def decayed_weight(use: Observation, now: datetime, limits: MaturitySettings) -> tuple[float, float]:
    """Return the value of an observation without decay, and now."""
    return use.weight * use.count, sum(decayed_counts((use,), now, limits))


def _counts(assessment: Assessment) -> RuleLine:
    good = plural(assessment.successes, "success", "successes")
    bad = plural(assessment.failures, "failure")
    return RuleLine(
        rule="evidence", text=f"{good} and {bad} count as {assessment.helpful:.2f} and {assessment.harmful:.2f} today"
    )


def _claim(assessment: Assessment, limits: MaturitySettings) -> Iterator[RuleLine]:
    if assessment.claimed_rate is not None:
        total = assessment.successes + assessment.failures
        if total < limits.min_feedback:
            use = f"it is ranked by the claim until {limits.min_feedback:g} results are recorded"
        else:
            use = "it is ranked by the recorded results"
        yield RuleLine(rule="claimed", text=f"{assessment.claim_text}; the claim counts no use, {use}")


def _decision(assessment: Assessment) -> RuleLine:
    pin = assessment.pin
    if pin is not None:
        who = f"{pin.verb} by {visible_line(pin.by, 40)} on {day_of(pin.at)}"
        if assessment.pin_stale:
            text = f"the text changed since it was {who}: a candidate until a person reviews it"
        else:
            reason = f": {visible_line(pin.reason, 200)}" if pin.reason else ""
            text = f"decided by a person: {who}{reason}"
            text += "; later evidence contradicts it" if assessment.contradicted else ""
        return RuleLine(rule="decided", text=text, state=assessment.state, fired=True)
    if text := _KEPT_OUT.get(assessment.decided_by, ""):
        return RuleLine(rule="decided", text=text, state=assessment.state, fired=True)
    if assessment.decided_by == INVERSION:
        text = f"{assessment.state} by rule, but not injected: its inversion is pending"
    else:
        text = f"{assessment.state} by rule"
        text += ", by age alone" if assessment.faded else ""
    return RuleLine(rule="decided", text=text, state=assessment.state)


def _rules(assessment: Assessment, limits: MaturitySettings) -> Iterator[RuleLine]:
    """Yield the conditions of all rules; those of the first that holds have fired."""
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
        line = _test(state, state, f"{name} {value:.2f}, {sign} {threshold:.2f}", value, threshold, holds)
        yield replace(line, fired=True) if state is assessment.computed and assessment.pin is None else line


def _test(rule: str, state: Maturity | None, words: str, value: float, threshold: float, holds: bool) -> RuleLine:
    distance = value - threshold
    near = f"{abs(distance):.2f}" if abs(distance) >= _NEAR else f"{abs(distance):.1g}"
    text = f"{words}: {'holds' if holds else f'does not hold, {near} away'}"
    return RuleLine(rule=rule, text=text, holds=holds, state=state, value=value, threshold=threshold, distance=distance)


def _inversion(assessment: Assessment, settings: Settings) -> Iterator[RuleLine]:
    limits = settings.anti_pattern
    total = assessment.successes + assessment.failures
    ratio = assessment.failures / total if total else 0.0
    least, worst = limits.min_observations, limits.failure_ratio_threshold
    words = f"raw uses {total:,}, at least {least}"
    yield _test(INVERSION, None, words, total, least, total >= least)
    words = f"raw failure ratio {ratio:.2f}, at least {worst:.2f}"
    yield _test(INVERSION, None, words, ratio, worst, bool(total) and ratio >= worst)


def _steps(assessment: Assessment, limits: MaturitySettings) -> tuple[StepToState, ...]:
    sums = assessment.helpful, assessment.harmful
    return tuple(
        StepToState(state=state, helpful=helpful, count=count)
        for state in STATES
        for helpful in (True, False)
        if state is not assessment.computed
        and (count := fewest_results(state, *sums, int(helpful), int(not helpful), limits)) is not None
    )


def _step_lines(assessment: Assessment, steps: Sequence[StepToState]) -> Iterator[RuleLine]:
    if assessment.pin is not None:
        text = f"no result changes a pinned state; after a reset it is {assessment.computed}, and then"
        yield RuleLine(rule="once reset", text=text, state=assessment.computed)
    for state in STATES:
        if state is assessment.computed:
            continue
        ways = [
            plural(step.count, *(("more success", "more successes") if step.helpful else ("more failure",)))
            for step in steps
            if step.state is state
        ]
        text = f"takes {' or '.join(ways)}" if ways else "not reachable by one kind of result alone"
        yield RuleLine(rule=f"to {state}", text=text, state=state)


def _one_more_failure(assessment: Assessment, limits: MaturitySettings) -> RuleLine:
    if assessment.is_settled:
        return RuleLine(rule="one failure", text=f"stays {assessment.state} (pinned)", state=assessment.state)
    after = state_of(assessment.helpful, assessment.harmful + 1, limits)
    text = f"stays {after}" if after is assessment.computed else f"makes it {after}"
    return RuleLine(rule="one failure", text=text, state=after)


def _shares(
    assessment: Assessment, observations: Sequence[Observation], now: datetime, limits: MaturitySettings
) -> tuple[LoopShare, ...]:
    sums: dict[str, list[float]] = {}
    for use in observations:
        if use.loop_id and use.success is not None:
            sums.setdefault(use.loop_id, [0.0, 0.0])[0 if use.success else 1] += decayed_weight(use, now, limits)[1]
    shares = [
        LoopShare(
            loop_id=loop_id,
            helpful=helpful,
            harmful=harmful,
            state_without=state_of(
                max(assessment.helpful - helpful, 0.0), max(assessment.harmful - harmful, 0.0), limits
            ),
        )
        for loop_id, (helpful, harmful) in sums.items()
    ]
    return tuple(sorted(shares, key=lambda share: share.state_without is assessment.computed))


def _loops(assessment: Assessment, loops: Sequence[LoopShare]) -> RuleLine:
    if not loops:
        return RuleLine(rule="rests on", text="counts only; no loop is known")
    decisive = [loop for loop in loops if loop.state_without is not assessment.computed]
    text = f"{plural(len(loops), 'loop')}; "
    if decisive:
        named = (f"{visible_line(loop.loop_id, 80)} it would be {loop.state_without}" for loop in decisive[:_MAX_NAMED])
        text += f"without {', without '.join(named)}"
        text += f" (and {len(decisive) - _MAX_NAMED} more)" if len(decisive) > _MAX_NAMED else ""
    else:
        text += "no single one decisive"
    return RuleLine(rule="rests on", text=text, holds=not decisive)


def _interval(assessment: Assessment, settings: Settings) -> RuleLine:
    low, high = assessment.interval
    text = (
        f"the rate is between {low:.2f} and {high:.2f} with a probability of {format_percent(settings.interval_level)}"
    )
    return RuleLine(rule="interval", text=text)


def _calendar(
    assessment: Assessment, calendar: Sequence[tuple[datetime, Maturity]], now: datetime
) -> Iterator[RuleLine]:
    if assessment.is_settled:
        yield RuleLine(rule="calendar", text=f"stays {assessment.state} at any age (pinned)", state=assessment.state)
        return
    if not calendar:
        yield RuleLine(rule="calendar", text=f"stays {assessment.computed} if unused")
    for at, state in calendar:
        text = f"changes to {state} in {_until(at, now)} ({day_of(at)}) if unused"
        yield RuleLine(rule="calendar", text=text, state=state)


def _until(at: datetime, now: datetime) -> str:
    hours = (at - now) / timedelta(hours=1)
    return plural(round(hours), "hour") if hours < _HOURS_UNTIL_DAYS else plural(round(hours / 24), "day")
