"""Explanation of a pattern: its state by rule, history, and count mismatches.

See docs/scoring.md#states, #lineage and #reconciliation.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.formatting import format_age, format_percent
from core.base.text import plural, visible_line
from core.learning.evidence import AGGREGATE, TREND, UseCounts, claimed_rate, is_later, round_half_up, usable_trend
from core.learning.evidence_inputs import TEAM
from core.learning.maturity import (
    HELD,
    INVERSION,
    QUARANTINE,
    STATES,
    Assessment,
    decayed_counts,
    fewest_results,
    state_calendar,
    state_of,
)
from core.records.decisions import TURNS, Author, Decision, Verb
from core.records.events import Observation
from core.records.findings import Finding, Severity
from core.records.patterns import Maturity, Pattern, PatternType, SourceLoop
from core.records.times import day_of, minute_of

if TYPE_CHECKING:
    from core.base.settings import MaturitySettings, Settings
    from core.records.loops import Loop
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
        RuleLine(rule="verdict", text=_describe_verdict(assessment, limits, steps), state=assessment.state),
        *_explain_evidence(assessment, limits),
        *([RuleLine(rule="team", text=describe_team_sums(team, now))] if team is not None else ()),
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


def _describe_verdict(assessment: Assessment, limits: MaturitySettings, steps: Sequence[StepToState]) -> str:
    """Explain in one or two sentences the state, and what one more failure does."""
    pin, helpful, total = assessment.pin, assessment.helpful, assessment.helpful + assessment.harmful
    failed = format_percent(assessment.harmful / total if total > 0 else 0.0)
    if pin is not None and not assessment.pin_stale:
        by_results = f"; by its results it would be {assessment.computed}"
        return (
            f"{assessment.state.capitalize()}, because {visible_line(pin.by, 40)} {pin.verb} it on {day_of(pin.at)}"
            f"{by_results if assessment.computed is not assessment.state else ''}."
        )
    if pin is not None:
        return f"Not {pin.state} any more: its text changed since {visible_line(pin.by, 40)} {pin.verb} it."
    if assessment.decided_by in _KEPT_OUT:
        return f"{_KEPT_OUT[assessment.decided_by].capitalize()}."
    if assessment.is_capped:
        return "Not proven yet: its results are enough, but no person has approved its text."
    match assessment.computed:
        case Maturity.DEPRECATED:
            text = (
                f"Deprecated: {failed} of its results failed, more than {format_percent(limits.deprecation_threshold)}"
            )
            if more := _successes_to(Maturity.ESTABLISHED, steps):
                text += f"; {more} would make it established"
        case Maturity.CANDIDATE:
            needed = _successes_to(Maturity.ESTABLISHED, steps) or "more results"
            text = f"Not established yet: {needed} needed ({total:.2f} of {limits.min_feedback:g}, weighed by age)"
        case Maturity.PROVEN:
            counts = f"{helpful:.2f} successes of at least {limits.min_helpful:g}, weighed by age"
            text = f"Proven: {counts}, and {failed} failures"
        case _:
            needed = _successes_to(Maturity.PROVEN, steps) or "more results"
            text = f"Not proven yet: {needed} needed ({helpful:.2f} of {limits.min_helpful:g}, weighed by age"
            text += f"; {failed} failed, at most {format_percent(limits.max_harmful)} may)"
    after = state_of(assessment.helpful, assessment.harmful + 1, limits)
    return f"{text}.{'' if after is assessment.computed else f' One more failure makes it {after}.'}"


def _successes_to(state: Maturity, steps: Sequence[StepToState]) -> str:
    """Return how many more successes lead to a state; "" if they alone do not."""
    count = next((step.count for step in steps if step.helpful and step.state is state), None)
    return "" if count is None else plural(count, "more success", "more successes")


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


def describe_team_sums(team: TeamSums, now: datetime) -> str:
    """Describe raw counts, such as `...: 12 helpful, 3 harmful, newest 3 d ago`."""
    newest = ""
    if team.last_used is not None:
        newest = f", newest {format_age(team.last_used, now)}"
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
        (Maturity.DEPRECATED, "share of failures", "above", ratio, limits.deprecation_threshold, over),
        (Maturity.DEPRECATED, "results", "at least", total, limits.min_feedback, enough),
        (Maturity.CANDIDATE, "results", "below", total, limits.min_feedback, not enough),
        (Maturity.PROVEN, "successes", "at least", helpful, limits.min_helpful, helped),
        (Maturity.PROVEN, "share of failures", "below", ratio, limits.max_harmful, clean),
        (Maturity.ESTABLISHED, "results", "at least", total, limits.min_feedback, enough),
    )
    for state, name, sign, value, threshold, holds in tests:
        fired = state is assessment.computed is assessment.state and assessment.pin is None
        yield _check(state, f"{name} {value:.2f}, needs {sign} {threshold:.2f}", value, threshold, holds, state, fired)


def _explain_inversion(assessment: Assessment, settings: Settings) -> Iterator[RuleLine]:
    limits = settings.anti_pattern
    total = assessment.successes + assessment.failures
    ratio = assessment.failures / total if total else 0.0
    least, worst = limits.min_observations, limits.failure_ratio_threshold
    yield _check(INVERSION, f"uses with a result {total:,}, needs at least {least}", total, least, total >= least)
    words = f"share of failures at any age {ratio:.2f}, needs at least {worst:.2f}"
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
    text = f"{words}: {'yes' if holds else f'no, {near} away'}"
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
            text = f"takes {' or '.join(ways)}" if ways else "not by successes alone or failures alone"
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


_RESULTS: Final = {True: "used, worked", False: "used, failed", None: "used, no result"}
_FAILURES: Final = {True: "the approach failed", False: "the approach did not fail", None: "result unknown"}
"""Results of an anti-pattern: True means that the approach it warns of failed."""
_SOURCE_FAILURES: Final = {True: "failed", False: "did not fail", None: "result unknown"}
_SOURCE_KINDS: Final = {"discovered": "found", "merged": "found again"}
_USE_LABELS: Final = {True: "Failed:", False: "Worked:", None: "Seen:"}  # labels for uses of an anti-pattern
_UNDATED: Final = datetime.min.replace(tzinfo=UTC)
_WIDTH: Final = len("Discovered: ")


class LineageEvent(Struct, frozen=True):
    """One event in the history of a pattern.

    `at` is UTC, None if unknown. `kind` is discovered, merged (found again by another loop, or combined with another
    pattern), applied, injected (not applied), unrecorded (uses known only as a count), inverted or decided. `loop_id`
    is "" if unknown. `success` is the result of an applied use; None if unknown. `text` is untrusted, since it may
    quote IDs, tasks and reasons. `count` is the number of uses, 1 except for unrecorded ones.
    """

    at: datetime | None
    kind: str
    loop_id: str = ""
    success: bool | None = None
    text: str = ""
    count: int = 1


class LoopResult(Struct, frozen=True):
    """A loop that discovered or applied a pattern, with the results of its uses."""

    loop_id: str
    result: str
    iterations: str = ""


def build_lineage(
    pattern: Pattern, observations: Sequence[Observation], decisions: Iterable[Decision], loops: Mapping[str, Loop]
) -> tuple[LineageEvent, ...]:
    """Return all events, oldest first; undated events except a discovery are last.

    A source loop without a recorded use is one of the uses that only the record counts; it gets a result if all of
    those have the same one. Any further source loop is shown without a use.
    """
    words = _FAILURES if pattern.type is PatternType.ANTI else _RESULTS
    iterations = {source.loop_id: format_iterations(pattern, source) for source in pattern.source_loops}
    events = [_observed(use, loops, words, iterations) for use in observations if use.source not in (TREND, AGGREGATE)]
    events += _unrecorded(pattern, observations, loops)
    events += _decision_events(pattern, decisions)
    if pattern.inverted_from:
        at = pattern.first_discovered or min((source.at for source in pattern.source_loops if source.at), default=None)
        events.append(LineageEvent(at, "inverted", text=f"made from {pattern.inverted_from}"))
    is_known = bool(pattern.inverted_from) or any(event.kind == "discovered" for event in events)
    if events and not is_known and pattern.first_discovered:
        events.append(LineageEvent(pattern.first_discovered, "discovered", text="by an unknown loop"))
    ordered = sorted(events, key=_order)
    discoveries = [place for place, event in enumerate(ordered) if event.kind == "discovered"]
    for place in discoveries[1:]:
        ordered[place] = replace(ordered[place], kind="merged", text="found again")
    return tuple(ordered)


def _order(event: LineageEvent) -> tuple[bool, datetime, bool, str]:
    undated_last = event.at is None and event.kind != "discovered"
    return undated_last, event.at or _UNDATED, event.kind != "discovered", event.loop_id


def format_iterations(pattern: Pattern, source: SourceLoop) -> str:
    """Describe the iterations of a source loop, e.g. `took 3 iterations`, or ""."""
    if source.iteration is None:
        return ""
    if pattern.type is PatternType.ANTI:
        return f"failed in iteration {source.iteration}"
    return f"took {plural(source.iteration, 'iteration')}" if pattern.type is PatternType.SUCCESS else ""


def loop_results(pattern: Pattern, lineage: Sequence[LineageEvent]) -> list[LoopResult]:
    """Return the results of loops that did more than get the pattern, by time."""
    words = _SOURCE_FAILURES if pattern.type is PatternType.ANTI else _RESULTS
    iterations = {source.loop_id: format_iterations(pattern, source) for source in pattern.source_loops}
    results: dict[str, list[str]] = {}
    for event in lineage:
        if event.loop_id and event.kind in ("discovered", "merged", "applied"):
            result = words[event.success] if event.kind == "applied" else _SOURCE_KINDS[event.kind]
            results.setdefault(event.loop_id, []).append(result)
    return [
        LoopResult(loop_id, "; ".join(dict.fromkeys(texts)), iterations.get(loop_id, ""))
        for loop_id, texts in results.items()
    ]


def _join(what: str, iterations: str) -> str:
    """Join phrases, and drop a repeated word: `used, worked, took 3 iterations`."""
    last = what.rpartition(" ")[2]
    if iterations.startswith(f"{last} "):
        return f"{what}{iterations.removeprefix(last)}"
    return f"{what}, {iterations}" if iterations else what


def _observed(
    use: Observation, loops: Mapping[str, Loop], results: Mapping[bool | None, str], iterations: Mapping[str, str]
) -> LineageEvent:
    if use.is_sighting and not use.seen:
        return LineageEvent(use.at, "merged", use.loop_id, use.success, "found again, when given")
    kind = "applied" if use.kind == "feedback" else use.kind
    words = {"discovered": "found", "injected": "given, no recorded use"}.get(kind) or results[use.success]
    if use.iteration is not None:
        words += f" in iteration {use.iteration}"
    elif more := iterations.get(use.loop_id):
        words = _join(words, more)
    loop = loops.get(use.loop_id)
    if loop is not None and loop.task:
        words += f": {loop.task}"
    return LineageEvent(use.at, kind, use.loop_id, use.success, words)


def _unrecorded(pattern: Pattern, observations: Sequence[Observation], loops: Mapping[str, Loop]) -> list[LineageEvent]:
    """Return events for uses without a record, and for further source loops."""
    recorded = {use.loop_id for use in observations}
    recorded |= {alias for id in recorded if id in loops for alias in loops[id].aliases}
    summed = [use for use in observations if use.source in (TREND, AGGREGATE)]
    left = sum(use.count for use in summed)
    results = {use.success for use in summed}
    success = results.pop() if len(results) == 1 else None
    anti = pattern.type is PatternType.ANTI
    events: list[LineageEvent] = []
    for source in pattern.source_loops:
        if source.loop_id in recorded:
            continue
        recorded.add(source.loop_id)
        if left:
            left -= 1
            result = {"success": True, "failure": False}.get(source.outcome, success)
            what = "used"
            if anti:
                result = True if source.iteration is not None else success
                what = _FAILURES[result]
            text = f"{_join(what, format_iterations(pattern, source))}, recorded only as a count"
            events.append(LineageEvent(source.at, "applied", source.loop_id, result, text))
        else:
            events.append(LineageEvent(source.at, "merged", source.loop_id, text="found again"))
    if left:
        text = f"+{plural(left, 'occurrence' if anti else 'use')} without a record"
        newest = max((use.at for use in summed if use.at), default=None)
        events.append(LineageEvent(newest, "unrecorded", text=text, count=left))
    return events


def _decision_events(pattern: Pattern, decisions: Iterable[Decision]) -> list[LineageEvent]:
    own: dict[str, Decision] = {}
    events: list[LineageEvent] = []
    for decision in decisions:
        subjects = (decision.subject, decision.after.get("anti_id"), decision.after.get("merged"))
        if pattern.id in subjects or any(_lists(decision, key, pattern.id) for key in ("patterns", "joined")):
            own[decision.id] = decision
        elif decision.verb not in TURNS or decision.subject not in own:
            continue
        by = f" by {decision.by}" if decision.by else ""
        reason = f": {decision.reason}" if decision.reason else ""
        kind, what = _describe_decision(decision, pattern.id)
        if decision.subject in own and decision.verb in TURNS:
            what += f" {own[decision.subject].verb.value.replace('_', ' ')}"
        events.append(LineageEvent(decision.at, kind, text=f"{what}{by}{reason}"))
    return events


def _lists(decision: Decision, key: str, pattern_id: str) -> bool:
    listed = decision.after.get(key)
    return isinstance(listed, list | tuple) and pattern_id in listed


def _describe_decision(decision: Decision, pattern_id: str) -> tuple[str, str]:
    """Return kind and text of the event for a decision about a pattern."""
    subject, its_own = decision.subject, decision.subject == pattern_id
    verb = decision.verb.value.replace("_", " ")
    if decision.verb is Verb.ACCEPT_INVERSION:
        return "inverted", f"inverted to {decision.after.get('anti_id', '')}" if its_own else f"inverted from {subject}"
    if decision.verb is Verb.MERGE:
        return "merged", f"{decision.after.get('merged', '')} into it" if its_own else f"into {subject}"
    if decision.verb in (Verb.EXTRACT, Verb.IMPORT):
        joined = ", joined to it" if _lists(decision, "joined", pattern_id) else ""
        return "decided", f"{verb} from {subject}{joined}"
    if its_own or decision.verb in TURNS:
        return "decided", verb
    return "decided", f"{verb} ({subject})"


def format_lineage(pattern: Pattern, events: Sequence[LineageEvent], assessment: Assessment) -> str:
    """Format the lineage as printable plain text that ends with a newline."""
    anti = pattern.type is PatternType.ANTI
    lines = [f"Pattern: {visible_line(pattern.id, 200)}", ""]
    for event in events:
        when = f" ({event.at:%Y-%m-%dT%H:%M:%SZ})" if event.at else ""
        label, mark = f"{event.kind.capitalize()}:", ""
        if event.kind == "applied" and anti:
            label = _USE_LABELS[event.success]
        elif event.kind == "applied":
            mark = {True: " ✓", False: " ✗", None: " ?"}[event.success]
        what = event.loop_id if event.kind in ("discovered", "applied", "injected", "merged") else event.text
        lines.append(f"{label.ljust(_WIDTH)}{visible_line(what or event.text, 200)}{when}{mark}")
    if assessment.rate is not None:
        counted = f"({assessment.successes:,}/{assessment.successes + assessment.failures:,})"
        rate = assessment.claim_text or f"{round_half_up(assessment.rate * 100)}% {counted}"
        lines += ["", f"{'Failure' if anti else 'Success'} rate: {rate}"]
    return "\n".join(lines) + "\n"


def reconcile_record(
    pattern: Pattern, observations: Sequence[Observation], now: datetime, *known: Container[str]
) -> tuple[Finding, ...]:
    """Return a finding for each difference between a record and the evidence.

    `known` are the IDs that source loops may have, e.g. of loops and of tasks; without any, they are not checked.
    Lessons and loops of other runners, whose IDs have a `:`, are not checked: their files can be outside the project.
    """
    noted: list[Finding] = []

    def note(pointer: str, severity: Severity, code: str, message: str) -> None:
        noted.append(Finding(pattern.file, pattern.pointer + pointer, severity, code, message))

    counter = "/occurrence_count" if pattern.type is PatternType.ANTI else "/usage_count"
    for code, severity, message in _count_notes(pattern, observations):
        note(counter, severity, code, message)
    if future := [use.at for use in observations if use.at is not None and use.at > now]:
        when = f"{minute_of(max(future))} UTC"
        note("", Severity.WARNING, "future-time", f"evidence is dated in the future ({when}); it counts as of now")
    if len(usable_trend(pattern)) < len(pattern.trend):
        message = "a snapshot is incomplete or its sample does not grow; it is ignored"
        note("/effectiveness_trend", Severity.WARNING, "bad-trend", message)
    listed: set[str] = set()
    for place, source in enumerate(pattern.source_loops):
        shown = visible_line(source.loop_id, 80)
        if source.loop_id in listed:
            note(f"/source_loops/{place}", Severity.INFO, "duplicate-loop", f"loop {shown} is listed twice")
        elif known and ":" not in source.loop_id and not any(source.loop_id in ids for ids in known):
            message = f"loop {shown} is not in this project"
            note(f"/source_loops/{place}", Severity.INFO, "orphan-loop", message)
        listed.add(source.loop_id)
    return tuple(noted)


def _count_notes(pattern: Pattern, observations: Sequence[Observation]) -> Iterable[tuple[str, Severity, str]]:
    recorded_counts = UseCounts.of_record(pattern.recorded_counts)
    known = [use for use in observations if use.kind != "injected"]
    uses = [use for use in known if not is_later(use, pattern)]
    if later := sum(use.count for use in known) - sum(use.count for use in uses):
        yield "later-uses", Severity.INFO, f"{plural(later, 'use')} since the last one that the registry counts"
    recorded = [use for use in uses if use.source not in (TREND, AGGREGATE)]
    shown, total = sum(use.count for use in recorded), sum(use.count for use in uses)
    if (claimed := claimed_rate(pattern.recorded_counts)) is not None:
        message = f"the recorded rate of {format_percent(claimed)} differs from that of the counts; it is not evidence"
        yield "claimed-rate", Severity.INFO, message
    if recorded_counts is None:
        if shown:
            yield "no-count", Severity.INFO, f"the record has no use count, loops show {plural(shown, 'use')}"
        return
    recorded_text = f"registry records {plural(recorded_counts.uses, 'use')}"
    if recorded_counts.uses < total:
        message = f"{recorded_text}, the evidence shows {total}; the evidence is used"
        yield "claim-below-evidence", Severity.WARNING, message
    elif recorded_counts.uses > shown:
        counted = f"its file counts {plural(recorded_counts.uses, 'use')}"
        message = f"{counted}: {shown:,} of recorded sessions, {recorded_counts.uses - shown:,} without one"
        yield "unrecorded-uses", Severity.INFO, message
    if not recorded_counts.has_results:
        return
    counts = ("successes", recorded_counts.successes, True), ("failures", recorded_counts.failures, False)
    for word, value, result in counts:
        evident = sum(use.count for use in recorded if use.success is result)
        if evident > value and recorded_counts.uses >= total:
            message = f"registry records {value} {word}, loops show {evident}; the results of the loops are used"
            yield "claim-disagrees", Severity.WARNING, message
