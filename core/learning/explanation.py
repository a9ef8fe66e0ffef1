"""Why a pattern is in its state, rule by rule, and what would change it (2) Debugging Pattern Issues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from core.learning.assessment import INVERSION, Assessment
from core.learning.decay import SECONDS_PER_DAY
from core.learning.maturity import STATES, decayed_counts, state_of
from core.records.events import Observation
from core.records.patterns import Maturity
from core.settings import MaturitySettings, Settings
from core.text import plural, visible_line

_MAX_EVENTS: Final = 200
"""Further events looked ahead for; a state that takes more is as good as out of reach."""


class RuleLine(Struct, frozen=True, kw_only=True):
    """One line of the answer to "why?".

    Attributes:
        rule: Short label: a state whose rule is tested, `inversion`, or what the line is about.
        text: The line in words; displayable.
        holds: Whether the test is passed; None where nothing is tested.
        state: The state that the line is about, None for those about the pattern as a whole.
        value, threshold: The two sides of a test: ratios 0..1, totals in decayed events, counts.
        distance: `value - threshold`.
    """

    rule: str
    text: str
    holds: bool | None = None
    state: Maturity | None = None
    value: float | None = None
    threshold: float | None = None
    distance: float | None = None


def explain(
    assessment: Assessment,
    observations: Sequence[Observation],
    now: datetime,
    settings: Settings,
    *,
    invertible: bool = True,
) -> tuple[RuleLine, ...]:
    """Why a pattern is in its state, for a person to read from top to bottom.

    First what decides, then every rule in the order in which they are tried, then for each other state the
    smallest number of further results that leads there, what one more failure does, what rests on a single
    loop, and when decay alone will change the state.

    Args:
        invertible: Whether the rule of inversion applies; it does not to anti-patterns.
    """
    return (
        _counts(assessment),
        _decision(assessment),
        *_rules(assessment, settings.maturity),
        *(_inversion(assessment, settings) if invertible else ()),
        *_steps(assessment, settings.maturity),
        _one_more_failure(assessment, settings.maturity),
        _loops(assessment, observations, now, settings.maturity),
        _calendar(assessment, now),
    )


def _counts(assessment: Assessment) -> RuleLine:
    good = plural(assessment.successes, "success", "successes")
    bad = plural(assessment.failures, "failure")
    return RuleLine(
        rule="evidence",
        text=f"{good} and {bad} count as {assessment.helpful:.2f} and {assessment.harmful:.2f} today",
    )


def _decision(assessment: Assessment) -> RuleLine:
    pin = assessment.pin
    if pin is not None:
        who = f"{pin.verb} by {visible_line(pin.by, 40)} on {pin.at:%Y-%m-%d}"
        if assessment.pin_stale:
            text = f"the text changed since it was {who}: a candidate until somebody looks again"
        else:
            reason = f": {visible_line(pin.reason, 200)}" if pin.reason else ""
            text = f"a human decision: {who}{reason}"
            text += "; evidence since then says the opposite" if assessment.contradicted else ""
    elif assessment.decided_by == INVERSION:
        text = f"{assessment.state} by rule, but not injected: its inversion waits for a verdict"
    else:
        text = f"{assessment.state} by rule"
        text += ", by age alone" if assessment.faded else ""
    return RuleLine(rule="decided", text=text, state=assessment.state)


def _rules(assessment: Assessment, limits: MaturitySettings) -> Iterator[RuleLine]:
    """The tests of (2) State Transitions in their order."""
    helpful, total = assessment.helpful, assessment.helpful + assessment.harmful
    ratio = assessment.harmful / total if total > 0 else 0.0
    enough = total >= limits.min_feedback - limits.total_tolerance
    over = ratio > limits.deprecation_threshold + limits.ratio_tolerance
    clean = ratio < limits.max_harmful - limits.ratio_tolerance
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
        yield _test(state, state, f"{name} {value:.2f}, {sign} {threshold:.2f}", value, threshold, holds)


def _test(rule: str, state: Maturity | None, words: str, value: float, threshold: float, holds: bool) -> RuleLine:
    distance = value - threshold
    text = f"{words}: {'holds' if holds else f'does not hold, {abs(distance):.2f} away'}"
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


def _steps(assessment: Assessment, limits: MaturitySettings) -> Iterator[RuleLine]:
    """What each other state would take, in further results that are all of one kind and new."""
    for state in STATES:
        if state is assessment.computed:
            continue
        ways = []
        for word, good, bad in (("success", 1, 0), ("failure", 0, 1)):
            count = fewest(state, assessment.helpful, assessment.harmful, good, bad, limits)
            if count is not None:
                ways.append(plural(count, f"more {word}", f"more {word}{'es' if good else 's'}"))
        text = f"takes {' or '.join(ways)}" if ways else "out of reach of one kind of result alone"
        yield RuleLine(rule=f"to {state}", text=text, state=state)


def fewest(
    state: Maturity, helpful: float, harmful: float, good: int, bad: int, limits: MaturitySettings
) -> int | None:
    """The smallest number of new results, each adding (good, bad), after which the state is `state`.

    None if no number up to 200 is enough.
    """
    for count in range(1, _MAX_EVENTS + 1):
        if state_of(helpful + good * count, harmful + bad * count, limits) is state:
            return count
    return None


def _one_more_failure(assessment: Assessment, limits: MaturitySettings) -> RuleLine:
    after = state_of(assessment.helpful, assessment.harmful + 1, limits)
    text = f"stays {after}" if after is assessment.computed else f"makes it {after}"
    return RuleLine(rule="one failure", text=text, state=after)


def _loops(
    assessment: Assessment, observations: Sequence[Observation], now: datetime, limits: MaturitySettings
) -> RuleLine:
    """Leave one loop out: on how many the state rests, and which of them alone would flip it."""
    loops = dict.fromkeys(seen.loop_id for seen in observations if seen.loop_id and seen.success is not None)
    if not loops:
        return RuleLine(rule="rests on", text="counts alone; no loop is known")
    flipping = []
    for loop in loops:
        rest = [seen for seen in observations if seen.loop_id != loop]
        if state_of(*decayed_counts(rest, now, limits), limits) is not assessment.computed:
            flipping.append(visible_line(loop, 80))
    text = f"{plural(len(loops), 'loop')}; "
    if flipping:
        text += f"without {' or '.join(flipping[:3])} it would be another state"
        text += f" (and {len(flipping) - 3} more such)" if len(flipping) > 3 else ""
    else:
        text += "none alone flips it"
    return RuleLine(rule="rests on", text=text, holds=not flipping)


def _calendar(assessment: Assessment, now: datetime) -> RuleLine:
    if assessment.next_change is None:
        return RuleLine(rule="calendar", text=f"stays {assessment.computed} by rule if nothing more happens")
    at, state = assessment.next_change
    days = (at - now).total_seconds() / SECONDS_PER_DAY
    text = f"{state} by rule in {days:.0f} d ({at:%Y-%m-%d}) if nothing more happens"
    return RuleLine(rule="calendar", text=text, state=state)
