"""Sections of the metrics: the rows of each figure, and its takeaway in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from core.base.formatting import format_decimal, format_percent
from core.base.text import plural, visible_line
from core.metrics.causes import ERROR, FAILURE_MODE, ROOT_CAUSE, Cause
from core.metrics.dashboard import RANGES, Dashboard
from core.metrics.effectiveness import Group
from core.metrics.figures import MAX_NAMED, Figure, Goal, Kind, Row
from core.metrics.review_coverage import CoverageWeek, OpenKind
from core.metrics.reviewer_accuracy import MIN_FOLLOWED, Share
from core.metrics.upcoming import Change, WeekAhead, count_changes
from core.metrics.weekly import Week
from core.queries.pattern_filter import build_id_query
from core.records.patterns import Maturity, PatternType

TYPE_NAMES: Final = {
    PatternType.ERROR: "error",
    PatternType.SUCCESS: "success",
    PatternType.ANTI: "anti",
    PatternType.TEMPLATE: "template",
}
STATES: Final = (Maturity.PROVEN, Maturity.ESTABLISHED, Maturity.CANDIDATE, Maturity.DEPRECATED)
"""From best to worst."""
_LABEL_CHARS: Final = 60
_QUESTION_NAMES: Final = {
    "inversion": "inversions",
    "contradicted": "contradicted pins",
    "stale-pin": "stale pins",
    "burst": "suspicious reports",
    "quarantine": "quarantined texts",
    "held": "held texts",
    "extracted": "unreviewed extractions",
    "duplicate": "near-duplicates",
    "offer": "loops to extract",
    "escalation": "escalations",
    "borderline": "borderline states",
    "recurring": "recurring learnings",
    "broad": "broad triggers",
    "unreconciled": "disagreeing counts",
}
"""Plural names of the kinds of questions."""


def build_figures(found: Dashboard) -> tuple[Figure, ...]:
    """All sections in order."""
    return (
        _patterns(found),
        _evidence(found),
        _success(found),
        _iterations(found),
        _upcoming(found),
        _coverage(found),
        _questions(found),
        _causes(found),
        _accuracy(found),
    )


def _patterns(found: Dashboard) -> Figure:
    counts = found.patterns
    total = sum(counts.values())
    by_state = {state: sum(counts[kind, state] for kind in PatternType) for state in STATES}
    states = ", ".join(f"{by_state[state]:,} {state.value}" for state in STATES if by_state[state])
    rows = tuple(
        Row(
            label=TYPE_NAMES[kind],
            values=tuple(counts[kind, state] for state in STATES),
            count=sum(counts[kind, state] for state in STATES),
            goal=Goal("patterns", f"type:{kind.value} -is:mirror"),
        )
        for kind in PatternType
    )
    return Figure(
        id="patterns",
        title="Patterns",
        takeaway=f"{plural(total, 'pattern')}: {states}" if total else "No patterns yet.",
        kind=Kind.BARS,
        about="type",
        parts=tuple(state.value for state in STATES),
        rows=rows if total else (),
        note="Patterns by type; a pinned state is counted.",
        missing="" if total else "Patterns are extracted from finished loops: ralphdeck extract LOOP.",
    )


def _evidence(found: Dashboard) -> Figure:
    weeks = found.evidence
    good, bad = sum(week.good for week in weeks), sum(week.bad for week in weeks)
    uses, shown = sum(week.uses for week in weeks), sum(week.shown for week in weeks)
    unknown = uses - good - bad
    rest = f", {unknown:,} without a result" if unknown else ""
    takeaway = f"{plural(uses, 'use')} in {plural(found.weeks, 'week')}: {good:,} worked, {bad:,} failed{rest}"
    sums = f" {plural(found.undated, 'further use')} known only from totals, without a date." if found.undated else ""
    return Figure(
        id="evidence",
        title="Evidence",
        takeaway=f"{takeaway}; {shown:,} injected, no result"
        if uses or shown
        else f"No use in the last {found.weeks} weeks.",
        kind=Kind.COLUMNS,
        about="week from",
        parts=("worked", "failed", "no result", "injected, no result"),
        rows=_week_rows(found, [((week.good, week.bad, week.open, week.shown), week.uses) for week in weeks])
        if uses or shown
        else (),
        note=f"Weeks begin on Monday, UTC; the last one is not over.{sums}",
        missing="" if uses or shown else _suggest_longer(found, f"A use is known when a loop reports it.{sums}"),
    )


def _success(found: Dashboard) -> Figure:
    weeks = found.evidence
    results = sum(week.results for week in weeks)
    level = f"{found.level * 100:g} % interval"
    return Figure(
        id="success",
        title="Success",
        takeaway=_describe_trend(found) if results else f"No results in the last {found.weeks} weeks.",
        kind=Kind.CURVE,
        about="week from",
        parts=("success",),
        rows=_week_rows(found, [(_values(week.rate), week.results) for week in weeks], weeks) if results else (),
        reach=level,
        note=f"Share of uses that worked, with its {level}; weeks without a result are gaps. "
        "An anti-pattern succeeds when the approach it warns of failed.",
        percent=True,
        missing="" if results else _suggest_longer(found, "Loops report results, or: ralphdeck record."),
    )


def _values(value: float | None) -> tuple[float, ...]:
    return () if value is None else (value,)


def _week_rows(
    found: Dashboard, cells: Sequence[tuple[tuple[float, ...], int]], intervals: Sequence[Week] = ()
) -> tuple[Row, ...]:
    """Rows of past weeks, oldest first, from (values, count) of each week."""
    return tuple(
        Row(
            label=_format_day(week.start, found.now),
            values=values,
            low=intervals[place].low if intervals else None,
            high=intervals[place].high if intervals else None,
            count=count,
            week=len(cells) - 1 - place,
        )
        for place, (week, (values, count)) in enumerate(zip(found.evidence, cells, strict=True))
    )


def _describe_trend(found: Dashboard) -> str:
    weeks, trend = found.evidence, found.trend
    if trend is None:
        good, results = sum(week.good for week in weeks), sum(week.results for week in weeks)
        return f"{format_decimal(good / results)} of {plural(results, 'use')} worked; not enough data for a trend"
    before, after = trend.before, trend.after
    one, other = format_decimal(before.rate), format_decimal(after.rate)
    verb = "rose" if after.rate > before.rate else "fell"
    moved = f"stayed at {other}" if one == other else f"{verb} from {one} to {other}"
    proof = (
        "significant, the intervals do not overlap"
        if trend.is_significant
        else "not significant, the intervals overlap"
    )
    counts = f"n = {before.results:,} and {after.results:,}"
    return f"Success {moved} since {_format_day(trend.since, found.now)}, {counts}: {proof}"


def _iterations(found: Dashboard) -> Figure:
    comparison = found.iterations
    difference, low, high = comparison.difference, comparison.low, comparison.high
    if difference is None or low is None or high is None:
        takeaway = comparison.verdict[:1].upper() + comparison.verdict[1:]
    else:
        moved = f"{difference:+.1f} iterations" if abs(difference) >= 0.05 else "No difference in iterations"
        takeaway = f"{moved} with patterns ({found.level * 100:g} % interval {low:+.1f} to {high:+.1f}): "
        takeaway += "significant" if comparison.is_conclusive else comparison.verdict
    rows = tuple(row for group in comparison.groups for row in _group_rows(group))
    return Figure(
        id="iterations",
        title="Iterations",
        takeaway=takeaway,
        kind=Kind.SPANS,
        about="tasks",
        parts=("average",),
        rows=rows,
        reach="fewest – most",
        note="Iterations of completed loops of all times, by category of task, with and without injected patterns.",
        missing="" if rows else "Needs completed loops of one category of task, with and without injected patterns.",
    )


def _group_rows(group: Group) -> tuple[Row, ...]:
    name = group.category or "other tasks"
    return tuple(
        Row(
            label=f"{name}, {word}",
            values=(sum(counts) / len(counts),),
            low=min(counts),
            high=max(counts),
            count=len(counts),
            goal=Goal("loops", "status:completed"),
        )
        for word, counts in (("with", group.having), ("without", group.lacking))
    )


def _upcoming(found: Dashboard) -> Figure:
    changes = count_changes(found.ahead)
    total = sum(changes.values())
    named = "; ".join(f"{count:,} {_describe_change(change)}" for change, count in list(changes.items())[:MAX_NAMED])
    first = next((week for week in found.ahead if week.count), None)
    begins = f", first in the week of {_format_day(first.start, found.now)}" if first else ""
    return Figure(
        id="coming",
        title="Upcoming changes",
        takeaway=f"{plural(total, 'change')} by decay alone in {plural(found.weeks, 'week')}{begins}: {named}"
        if total
        else f"No pattern changes its state by decay alone in the next {found.weeks} weeks.",
        kind=Kind.COLUMNS,
        about="week from",
        parts=tuple(map(_describe_change, changes)),
        rows=tuple(_upcoming_row(week, list(changes), found.now) for week in found.ahead) if total else (),
        note="Assuming no new evidence. Evidence decays, pinned states stay.",
        missing="" if total else "Proven and established patterns decay when they are not used.",
    )


def _upcoming_row(week: WeekAhead, changes: Sequence[Change], now: datetime) -> Row:
    ids = [id for change in changes for id in week.changes.get(change, ())]
    return Row(
        label=_format_day(week.start, now),
        values=tuple(len(week.changes.get(change, ())) for change in changes),
        count=week.count,
        goal=Goal("patterns", build_id_query(ids)[0], ids[0]) if ids else None,
    )


def _describe_change(change: Change) -> str:
    return f"{change[0].value} to {change[1].value}"


def _coverage(found: Dashboard) -> Figure:
    weeks: Sequence[CoverageWeek] = found.coverage
    injected, reviewed = sum(week.injected for week in weeks), sum(week.reviewed for week in weeks)
    decisions = sum(week.decisions for week in weeks)
    takeaway = f"No pattern was injected in the last {found.weeks} weeks."
    if injected:
        share = format_percent(reviewed / injected)
        takeaway = f"A person had reviewed {share} of {plural(injected, 'injected pattern')}; "
        takeaway += f"{plural(decisions, 'decision')} in {plural(found.weeks, 'week')}"
    return Figure(
        id="judged",
        title="Review coverage",
        takeaway=takeaway,
        kind=Kind.CURVE,
        about="week from",
        parts=("reviewed",),
        rows=_week_rows(found, [(_values(week.share), week.injected) for week in weeks]) if injected else (),
        note="Share of injected patterns, used or not, that a person had reviewed by the end of the week.",
        percent=True,
        missing="" if injected else _suggest_longer(found, "Injections are known when loops report them."),
    )


def _questions(found: Dashboard) -> Figure:
    kinds = found.open
    takeaway = "No open questions."
    if kinds:
        first = "the first one has" if found.first_half == 1 else f"the first {found.first_half:,} have"
        takeaway = f"{plural(sum(kind.count for kind in kinds), 'open question')}; "
        takeaway += f"{first} half of the expected impact; most of it is in {_question_name(kinds[0])}"
    return Figure(
        id="questions",
        title="Questions",
        takeaway=takeaway,
        kind=Kind.BARS,
        about="questions",
        parts=("of the impact",),
        rows=tuple(
            Row(label=_question_name(kind), values=(kind.share,), count=kind.count, goal=Goal("review", key=kind.first))
            for kind in kinds
        ),
        note="By kind: share of the failures that good answers are expected to prevent; n is the number of questions.",
        percent=True,
        missing="" if kinds else "New questions come with evidence, imports and extractions.",
    )


def _question_name(kind: OpenKind) -> str:
    return _QUESTION_NAMES.get(kind.kind, kind.kind)


def _causes(found: Dashboard) -> Figure:
    top = found.causes
    names = ", ".join(f"{visible_line(cause.name, 40)} ({cause.count:,})" for cause in top[:MAX_NAMED])
    return Figure(
        id="causes",
        title="Failure causes",
        takeaway=f"Most often: {names}" if top else f"No failure reported in the last {found.weeks} weeks.",
        kind=Kind.BARS,
        about="cause",
        parts=("times",),
        rows=tuple(
            Row(
                label=f"{visible_line(cause.name, _LABEL_CHARS)}, {cause.kind}",
                values=(cause.count,),
                count=cause.count,
                goal=_cause_goal(cause),
            )
            for cause in top
        ),
        note="Root causes and errors count once per debug session, failure modes once per outcome.",
        missing=""
        if top
        else _suggest_longer(found, "Debug sessions report root causes, outcomes failure modes: ralphdeck outcome."),
    )


def _cause_goal(cause: Cause) -> Goal | None:
    name = visible_line(cause.name, _LABEL_CHARS).replace('"', "")
    if cause.kind in (ROOT_CAUSE, ERROR):
        return Goal("memory", f'{"cause" if cause.kind == ROOT_CAUSE else "error"}:"{name}"')
    return Goal("loops", key=cause.loop_id) if cause.kind == FAILURE_MODE and cause.loop_id else None


def _accuracy(found: Dashboard) -> Figure:
    accuracy = found.accuracy
    kinds = (("promotions", "promote", accuracy.promotions), ("deprecations", "deprecate", accuracy.deprecations))
    by = visible_line(accuracy.by, _LABEL_CHARS).replace('"', "")
    made = accuracy.promotions.made + accuracy.deprecations.made
    rows = tuple(
        Row(
            label=name,
            values=_values(share.rate),
            low=share.low,
            high=share.high,
            count=share.followed,
            goal=Goal("log", f'verb:{verb} by:"{by}"'),
        )
        for name, verb, share in kinds
    )
    results = plural(accuracy.follow_up, "result")
    return Figure(
        id="mirror",
        title="Decision accuracy",
        takeaway="; ".join(_describe_share(name, share) for name, _verb, share in kinds)
        if made
        else "You have not promoted or deprecated a pattern yet.",
        kind=Kind.SPANS,
        about=f"decisions by {by}",
        parts=("confirmed",),
        rows=rows if made else (),
        reach=f"{found.level * 100:g} % interval",
        note=f"Share of your decisions that later results confirm; only those followed by at least {results} count.",
        percent=True,
        missing="" if made else "Promote or deprecate patterns in Review or Patterns.",
    )


def _describe_share(name: str, share: Share) -> str:
    if share.rate is None:
        return f"{share.followed:,} of {share.made:,} {name} followed by results; a rate needs {MIN_FOLLOWED}"
    return f"{share.held:,} of {share.followed:,} {name} confirmed by results"


def _suggest_longer(found: Dashboard, text: str) -> str:
    return f"{text} A longer time range may have some." if found.weeks < RANGES[-1] else text


def _format_day(day: datetime, now: datetime) -> str:
    """`2 Nov`, with the year if it is not this year."""
    return f"{day.day} {day:%b}" if day.year == now.year else f"{day.day} {day:%b %Y}"
