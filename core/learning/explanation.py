"""Why a pattern is in its state, rule by rule, and what would change it (2) Debugging Pattern Issues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.text import plural, visible_line
from core.config.settings import MaturitySettings, Settings
from core.learning.assessment import HELD, INVERSION, QUARANTINE, Assessment
from core.learning.calendar import state_calendar
from core.learning.states import STATES, decayed_counts, fewest_results, state_of
from core.records.events import Observation
from core.records.patterns import Maturity
from core.records.times import day_of

_SECONDS_PER_HOUR: Final = 3600
_HOURS_UNTIL_DAYS: Final = 48
_NEAR: Final = 0.01
"""Distances below this are written with the digit that tells them from none."""
_NAMED: Final = 3
"""Loops that a line names."""
_HELD: Final = "a decision holds"
"""Why neither age nor a result changes a state."""
_MORE: Final = {True: "more successes", False: "more failures"}


class RuleLine(Struct, frozen=True, kw_only=True):
    """One line of the answer to "why?".

    Attributes:
        rule: Short label: a state whose rule is tested, `inversion`, or what the line is about.
        text: The line in words; displayable.
        holds: Whether the test is passed; None where nothing is tested.
        fired: Whether it gave the pattern its state: a test of the rule that did, or the human decision.
        state: The state that the line is about, None for those about the pattern as a whole.
        value, threshold: The two sides of a test: ratios 0..1, totals in decayed events, counts.
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


class Weighed(Struct, frozen=True, kw_only=True):
    """One piece of evidence with a result: what it counted when it was new, and what it counts today."""

    observation: Observation
    raw: float
    today: float


class Step(Struct, frozen=True, kw_only=True):
    """The fewest further results of one kind, all new, that lead to another state."""

    state: Maturity
    helpful: bool
    count: int


class LoopShare(Struct, frozen=True, kw_only=True):
    """What one loop's results count today, and the state that the rules would give without them."""

    loop_id: str
    helpful: float
    harmful: float
    state_without: Maturity


class Explanation(Struct, frozen=True, kw_only=True):
    """Why a pattern is in its state.

    Attributes:
        lines: For a person to read from top to bottom: what decides, every rule in the order in which they are
            tried, the way to each other state, what rests on a single loop, the interval, the calendar.
        events: The evidence with a result, newest first.
        steps: How near each other state is; a state that one kind of result alone never leads to is left out.
        loops: Leave one loop out: the loops with a result, those without which the state differs first.
        calendar: Every coming change of the state by decay alone.
    """

    lines: tuple[RuleLine, ...]
    events: tuple[Weighed, ...]
    steps: tuple[Step, ...]
    loops: tuple[LoopShare, ...]
    calendar: tuple[tuple[datetime, Maturity], ...]


def explain(
    assessment: Assessment,
    observations: Sequence[Observation],
    now: datetime,
    settings: Settings,
    *,
    invertible: bool = True,
) -> Explanation:
    """Everything that the state of a pattern rests on.

    Args:
        invertible: Whether the rule of inversion applies; it does not to anti-patterns.
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
    return Explanation(
        lines=lines,
        events=_weighed(observations, now, limits),
        steps=steps,
        loops=loops,
        calendar=calendar,
    )


def _worth(seen: Observation, now: datetime, limits: MaturitySettings) -> float:
    return sum(decayed_counts((seen,), now, limits))


def decayed_weight(seen: Observation, now: datetime, limits: MaturitySettings) -> tuple[float, float]:
    """What one piece of evidence counted when it was new, and what it counts now."""
    return seen.weight * seen.count, _worth(seen, now, limits)


def _weighed(observations: Sequence[Observation], now: datetime, limits: MaturitySettings) -> tuple[Weighed, ...]:
    found = ((seen, *decayed_weight(seen, now, limits)) for seen in reversed(observations) if seen.success is not None)
    return tuple(Weighed(observation=seen, raw=raw, today=today) for seen, raw, today in found)


def _counts(assessment: Assessment) -> RuleLine:
    good = plural(assessment.successes, "success", "successes")
    bad = plural(assessment.failures, "failure")
    return RuleLine(
        rule="evidence",
        text=f"{good} and {bad} count as {assessment.helpful:.2f} and {assessment.harmful:.2f} today",
    )


def _claim(assessment: Assessment, limits: MaturitySettings) -> Iterator[RuleLine]:
    """What a rate without counts is used for (docs/scoring.md#claimed-rates)."""
    if assessment.claimed_rate is not None:
        total = assessment.successes + assessment.failures
        if total < limits.min_feedback:
            use = f"it ranks by the claim until {limits.min_feedback:g} results are recorded"
        else:
            use = "it ranks by the recorded results"
        yield RuleLine(rule="claimed", text=f"{assessment.claim_text}; the claim counts no use, {use}")


def _decision(assessment: Assessment) -> RuleLine:
    pin = assessment.pin
    if pin is not None:
        who = f"{pin.verb} by {visible_line(pin.by, 40)} on {day_of(pin.at)}"
        if assessment.pin_stale:
            text = f"the text changed since it was {who}: a candidate until somebody looks again"
        else:
            reason = f": {visible_line(pin.reason, 200)}" if pin.reason else ""
            text = f"a human decision: {who}{reason}"
            text += "; evidence since then says the opposite" if assessment.contradicted else ""
        return RuleLine(rule="decided", text=text, state=assessment.state, fired=True)
    if assessment.decided_by == QUARANTINE:
        text = "in quarantine: a candidate, and not injected until released"
        return RuleLine(rule="decided", text=text, state=assessment.state, fired=True)
    if assessment.decided_by == HELD:
        text = "held: a candidate, and not injected, until a person approves this text, which gives orders"
        return RuleLine(rule="decided", text=text, state=assessment.state, fired=True)
    if assessment.decided_by == INVERSION:
        text = f"{assessment.state} by rule, but not injected: its inversion waits for a verdict"
    else:
        text = f"{assessment.state} by rule"
        text += ", by age alone" if assessment.faded else ""
    return RuleLine(rule="decided", text=text, state=assessment.state)


def _rules(assessment: Assessment, limits: MaturitySettings) -> Iterator[RuleLine]:
    """The tests of (2) State Transitions in their order; those of the first rule that holds have fired."""
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
    return RuleLine(
        rule=rule,
        text=text,
        holds=holds,
        state=state,
        value=value,
        threshold=threshold,
        distance=distance,
    )


def _inversion(assessment: Assessment, settings: Settings) -> Iterator[RuleLine]:
    limits = settings.anti_pattern
    total = assessment.successes + assessment.failures
    ratio = assessment.failures / total if total else 0.0
    least, worst = limits.min_observations, limits.failure_ratio_threshold
    words = f"raw uses {total:,}, at least {least}"
    yield _test(INVERSION, None, words, total, least, total >= least)
    words = f"raw failure ratio {ratio:.2f}, at least {worst:.2f}"
    yield _test(INVERSION, None, words, ratio, worst, bool(total) and ratio >= worst)


def _steps(assessment: Assessment, limits: MaturitySettings) -> tuple[Step, ...]:
    found = []
    for state in STATES:
        if state is assessment.computed:
            continue
        for helpful in (True, False):
            sums = assessment.helpful, assessment.harmful
            count = fewest_results(state, *sums, int(helpful), int(not helpful), limits)
            if count is not None:
                found.append(Step(state=state, helpful=helpful, count=count))
    return tuple(found)


def _step_lines(assessment: Assessment, steps: Sequence[Step]) -> Iterator[RuleLine]:
    """What each other state would take, in further results that are all of one kind and new."""
    if assessment.pin is not None:
        text = f"no result changes a state that a person decided: once it is reset it is {assessment.computed}, and"
        yield RuleLine(rule="once reset", text=text, state=assessment.computed)
    for state in STATES:
        if state is assessment.computed:
            continue
        ways = [
            plural(step.count, "more success" if step.helpful else "more failure", _MORE[step.helpful])
            for step in steps
            if step.state is state
        ]
        text = f"takes {' or '.join(ways)}" if ways else "out of reach of one kind of result alone"
        yield RuleLine(rule=f"to {state}", text=text, state=state)


def _one_more_failure(assessment: Assessment, limits: MaturitySettings) -> RuleLine:
    if assessment.is_settled:
        return RuleLine(rule="one failure", text=f"stays {assessment.state}: {_HELD}", state=assessment.state)
    after = state_of(assessment.helpful, assessment.harmful + 1, limits)
    text = f"stays {after}" if after is assessment.computed else f"makes it {after}"
    return RuleLine(rule="one failure", text=text, state=after)


def _shares(
    assessment: Assessment, observations: Sequence[Observation], now: datetime, limits: MaturitySettings
) -> tuple[LoopShare, ...]:
    sums: dict[str, list[float]] = {}
    for seen in observations:
        if seen.loop_id and seen.success is not None:
            sums.setdefault(seen.loop_id, [0.0, 0.0])[0 if seen.success else 1] += _worth(seen, now, limits)
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
    """On how many loops the state rests, and which of them alone would flip it."""
    if not loops:
        return RuleLine(rule="rests on", text="counts alone; no loop is known")
    flipping = [loop for loop in loops if loop.state_without is not assessment.computed]
    text = f"{plural(len(loops), 'loop')}; "
    if flipping:
        named = (f"{visible_line(loop.loop_id, 80)} it would be {loop.state_without}" for loop in flipping[:_NAMED])
        text += f"without {', without '.join(named)}"
        text += f" (and {len(flipping) - _NAMED} more such)" if len(flipping) > _NAMED else ""
    else:
        text += "none alone flips it"
    return RuleLine(rule="rests on", text=text, holds=not flipping)


def _interval(assessment: Assessment, settings: Settings) -> RuleLine:
    low, high = assessment.interval
    text = f"{settings.interval_level:.0%} sure that the rate lies between {low:.2f} and {high:.2f}"
    return RuleLine(rule="interval", text=text)


def _calendar(
    assessment: Assessment, calendar: Sequence[tuple[datetime, Maturity]], now: datetime
) -> Iterator[RuleLine]:
    if assessment.is_settled:
        yield RuleLine(rule="calendar", text=f"stays {assessment.state} at any age: {_HELD}", state=assessment.state)
        return
    if not calendar:
        yield RuleLine(rule="calendar", text=f"stays {assessment.computed} by rule if nothing more happens")
    for at, state in calendar:
        text = f"{state} by rule in {_until(at, now)} ({day_of(at)}) if nothing more happens"
        yield RuleLine(rule="calendar", text=text, state=state)


def _until(at: datetime, now: datetime) -> str:
    hours = (at - now).total_seconds() / _SECONDS_PER_HOUR
    return f"{hours:.0f} h" if hours < _HOURS_UNTIL_DAYS else f"{hours / 24:.0f} d"
