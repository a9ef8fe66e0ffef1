"""What each section of the metrics tells: its rows, and its takeaway in words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from core.base.formatting import decimal_text, percent_text
from core.base.text import plural, visible_line
from core.metrics.causes import ERROR, FAILURE_MODE, ROOT_CAUSE, Cause
from core.metrics.dashboard import RANGES, Dashboard
from core.metrics.effectiveness import Group
from core.metrics.figures import MOST_NAMED, Figure, Goal, Kind, Row
from core.metrics.review_coverage import Open
from core.metrics.reviewer_accuracy import NEEDED, Share
from core.metrics.upcoming import Change, WeekAhead, changes_of
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
_KIND_NAMES: Final = {
    "inversion": "inversions",
    "contradicted": "contradicted pins",
    "stale-pin": "stale pins",
    "burst": "bursts of blame",
    "quarantine": "quarantined texts",
    "held": "held texts",
    "extracted": "unread extractions",
    "duplicate": "near-duplicates",
    "offer": "loops to extract",
    "escalation": "stuck agents",
    "borderline": "borderline states",
    "recurring": "recurring learnings",
    "broad": "broad triggers",
    "unreconciled": "counts that differ",
}
"""Of the kinds of questions; another one goes by its own name."""


def figures_of(found: Dashboard) -> tuple[Figure, ...]:
    """All sections, in their order."""
    return (
        patterns(found),
        evidence(found),
        success(found),
        iterations(found),
        coming(found),
        judged(found),
        questions(found),
        causes(found),
        mirrored(found),
    )


def patterns(found: Dashboard) -> Figure:
    """Patterns by type and state."""
    counts = found.patterns
    total = sum(counts.values())
    by_state = {state: sum(counts[kind, state] for kind in PatternType) for state in STATES}
    said = ", ".join(f"{by_state[state]:,} {state.value}" for state in STATES if by_state[state])
    rows = (
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
        takeaway=f"{plural(total, 'pattern')}: {said}" if total else "No patterns yet.",
        kind=Kind.BARS,
        about="type",
        parts=tuple(state.value for state in STATES),
        rows=tuple(rows) if total else (),
        note="Patterns of the registry by type; pins count.",
        missing="" if total else "Patterns come from loops that end: ralphdeck extract LOOP.",
    )


def evidence(found: Dashboard) -> Figure:
    """Uses by result, and exposures, week by week."""
    weeks = found.evidence
    good, bad = sum(week.good for week in weeks), sum(week.bad for week in weeks)
    uses, shown = sum(week.uses for week in weeks), sum(week.shown for week in weeks)
    unknown = uses - good - bad
    rest = f", {unknown:,} without a result" if unknown else ""
    said = f"{plural(uses, 'use')} in {plural(found.weeks, 'week')}: {good:,} worked, {bad:,} failed{rest}; "
    rows = tuple(
        Row(
            label=_day(week.start, found.now),
            values=(week.good, week.bad, week.open, week.shown),
            count=week.uses,
            week=back,
        )
        for week, back in zip(weeks, range(len(weeks) - 1, -1, -1), strict=True)
    )
    sums = f" {plural(found.undated, 'further use')} known only as sums, of no week." if found.undated else ""
    return Figure(
        id="evidence",
        title="Evidence",
        takeaway=f"{said}{shown:,} only shown" if uses or shown else f"No use in the last {found.weeks} weeks.",
        kind=Kind.COLUMNS,
        about="week from",
        parts=("worked", "failed", "no result", "only shown"),
        rows=rows if uses or shown else (),
        note=f"By weeks from Monday on, UTC; the last one still runs.{sums}",
        missing="" if uses or shown else _wider(found, f"A use is known when a loop tells of it.{sums}"),
    )


def success(found: Dashboard) -> Figure:
    """Success of uses, week by week, with its interval."""
    weeks = found.evidence
    results = sum(week.results for week in weeks)
    rows = tuple(
        Row(
            label=_day(week.start, found.now),
            values=() if week.rate is None else (week.rate,),
            low=week.low,
            high=week.high,
            count=week.results,
            week=back,
        )
        for week, back in zip(weeks, range(len(weeks) - 1, -1, -1), strict=True)
    )
    return Figure(
        id="success",
        title="Success",
        takeaway=_trend_text(found) if results else f"No results in the last {found.weeks} weeks.",
        kind=Kind.CURVE,
        about="week from",
        parts=("success",),
        rows=rows if results else (),
        reach=f"{found.level * 100:g} % interval",
        note=f"Share of uses that worked, with its {found.level * 100:g} % interval; "
        "weeks without a result are gaps. Of an anti-pattern, success means that what it warns of failed.",
        percent=True,
        missing="" if results else _wider(found, "A result is told by a loop, or: ralphdeck record."),
    )


def _trend_text(found: Dashboard) -> str:
    weeks, trend = found.evidence, found.trend
    if trend is None:
        good, results = sum(week.good for week in weeks), sum(week.results for week in weeks)
        return f"{decimal_text(good / results)} of {plural(results, 'use')} worked; too short to say where it goes"
    before, after = trend.before, trend.after
    one, other = decimal_text(before.rate), decimal_text(after.rate)
    way = "stayed at" if one == other else "rose" if after.rate > before.rate else "fell"
    moved = f"stayed at {other}" if one == other else f"{way} from {one} to {other}"
    proof = "the intervals lie apart" if trend.tells else "the intervals overlap, no proof"
    counts = f"n = {before.results:,} and {after.results:,}"
    return f"Success {moved} since {_day(trend.since, found.now)}, {counts}: {proof}"


def iterations(found: Dashboard) -> Figure:
    """Iterations of completed loops with injected patterns and without, like tasks compared."""
    told = found.iterations
    level = f"{found.level * 100:g} %"
    moved = (
        f"{told.difference or 0.0:+.1f} iterations"
        if abs(told.difference or 0.0) >= 0.05
        else "No difference in iterations"
    )
    if told.difference is None:
        said = f"Like tasks with and without patterns: {told.verdict}"
    elif told.low is None or told.high is None:
        said = f"{moved} with patterns, but {told.verdict}"
    else:
        ends = f"{level} interval {told.low:+.1f} to {told.high:+.1f}"
        said = f"{moved} with patterns ({ends})"
        said += ": that is more than chance" if told.tells else f": {told.verdict}"
    rows = tuple(row for group in told.groups for row in _group_rows(group))
    return Figure(
        id="iterations",
        title="Iterations",
        takeaway=said,
        kind=Kind.SPANS,
        about="tasks",
        parts=("average",),
        rows=rows,
        reach="fewest – most",
        note="Iterations of loops that completed, of all times, each kind of task by itself: fewest, average, most.",
        missing=""
        if rows
        else "It takes completed loops of one kind of task with injected patterns, and others without.",
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


def coming(found: Dashboard) -> Figure:
    """Which patterns turn in the weeks to come, by decay alone."""
    changes = changes_of(found.ahead)
    total = sum(changes.values())
    said = "; ".join(f"{count:,} {_change_text(change)}" for change, count in list(changes.items())[:MOST_NAMED])
    first = next((week for week in found.ahead if week.count), None)
    begins = f", the first in the week of {_day(first.start, found.now)}" if first else ""
    return Figure(
        id="coming",
        title="Coming",
        takeaway=f"{plural(total, 'change')} in {plural(found.weeks, 'week')} by age alone{begins}: {said}"
        if total
        else f"No pattern turns in the next {found.weeks} weeks by age alone.",
        kind=Kind.COLUMNS,
        about="week from",
        parts=tuple(map(_change_text, changes)),
        rows=tuple(_week_row(week, list(changes), found.now) for week in found.ahead) if total else (),
        note="If nothing more happens; evidence decays, pins hold.",
        missing="" if total else "Proven and established patterns fade when they are not used.",
    )


def _week_row(week: WeekAhead, changes: Sequence[Change], now: datetime) -> Row:
    ids = [id for change in changes for id in week.turns.get(change, ())]
    return Row(
        label=_day(week.start, now),
        values=tuple(len(week.turns.get(change, ())) for change in changes),
        count=week.count,
        goal=Goal("patterns", build_id_query(ids)[0], ids[0]) if ids else None,
    )


def _change_text(change: Change) -> str:
    return f"{change[0].value} to {change[1].value}"


def judged(found: Dashboard) -> Figure:
    """How much of what loops get a person has judged."""
    weeks = found.judged
    given, seen = sum(week.given for week in weeks), sum(week.judged for week in weeks)
    decisions = sum(week.decisions for week in weeks)
    rows = tuple(
        Row(
            label=_day(week.start, found.now),
            values=() if week.share is None else (week.share,),
            count=week.given,
            week=back,
        )
        for week, back in zip(weeks, range(len(weeks) - 1, -1, -1), strict=True)
    )
    said = f"Of {given:,} times that loops got a pattern, {percent_text(seen / given)} were judged" if given else ""
    return Figure(
        id="judged",
        title="Judged",
        takeaway=f"{said}; {plural(decisions, 'decision')} in {plural(found.weeks, 'week')}"
        if given
        else f"No loop got a pattern in the last {found.weeks} weeks.",
        kind=Kind.CURVE,
        about="week from",
        parts=("judged",),
        rows=rows if given else (),
        note="Share of what loops got, by use or exposure, of which a person had judged the pattern by then.",
        percent=True,
        missing="" if given else _wider(found, "What loops get is known when they tell of it."),
    )


def questions(found: Dashboard) -> Figure:
    """The open questions by kind."""
    kinds = found.open
    count = sum(kind.count for kind in kinds)
    said = f"{plural(count, 'open question')}"
    if kinds:
        first = "the first one holds" if found.first_half == 1 else f"the first {found.first_half:,} hold"
        said += f"; {first} half of what is at stake; most of it is in {_kind_name(kinds[0])}"
    return Figure(
        id="questions",
        title="Questions",
        takeaway=said if kinds else "No open question: everything is decided.",
        kind=Kind.BARS,
        about="questions",
        parts=("of the stake",),
        rows=tuple(
            Row(
                label=_kind_name(kind),
                values=(kind.share,),
                count=kind.count,
                goal=Goal("review", key=kind.first),
            )
            for kind in kinds
        ),
        note="By kind: their share of the failures that good answers are expected to spare loops; n is how many.",
        percent=True,
        missing="" if kinds else "New ones come with evidence, imports and extractions.",
    )


def _kind_name(open: Open) -> str:
    return _KIND_NAMES.get(open.kind, open.kind)


def causes(found: Dashboard) -> Figure:
    """What things fail of most."""
    top = found.causes
    said = ", ".join(f"{visible_line(cause.name, 40)} ({cause.count:,})" for cause in top[:MOST_NAMED])
    return Figure(
        id="causes",
        title="Causes",
        takeaway=f"Most often: {said}" if top else f"No failure told in the last {found.weeks} weeks.",
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
        note="Root causes and errors once a debug session, failure modes once an outcome.",
        missing=""
        if top
        else _wider(found, "Debug sessions tell root causes, outcomes failure modes: ralphdeck outcome."),
    )


def _cause_goal(cause: Cause) -> Goal | None:
    name = visible_line(cause.name, _LABEL_CHARS).replace('"', "")
    if cause.kind in (ROOT_CAUSE, ERROR):
        return Goal("memory", f'{"cause" if cause.kind == ROOT_CAUSE else "error"}:"{name}"')
    return Goal("loops", key=cause.loop_id) if cause.kind == FAILURE_MODE and cause.loop_id else None


def mirrored(found: Dashboard) -> Figure:
    """How the verdicts of the one who looks have held: told from a full sample on, not before."""
    seen = found.mirror
    kinds = (("promotions", "promote", seen.promotions), ("deprecations", "deprecate", seen.deprecations))
    by = visible_line(seen.by, _LABEL_CHARS).replace('"', "")
    made = seen.promotions.made + seen.deprecations.made
    rows = tuple(
        Row(
            label=name,
            values=() if share.rate is None else (share.rate,),
            low=share.low,
            high=share.high,
            count=share.followed,
            goal=Goal("log", f'verb:{verb} by:"{by}"'),
        )
        for name, verb, share in kinds
    )
    return Figure(
        id="mirror",
        title="Mirror",
        takeaway="; ".join(_held_text(name, share) for name, _verb, share in kinds)
        if made
        else "You have promoted and deprecated nothing yet.",
        kind=Kind.SPANS,
        about=f"verdicts of {by}",
        parts=("held",),
        rows=rows if made else (),
        reach=f"{found.level * 100:g} % interval",
        note=f"Of your verdicts after which at least {plural(seen.follow_up, 'result')} came: how many these bear out.",
        percent=True,
        missing="" if made else "Verdicts are given in Review and Patterns.",
    )


def _held_text(name: str, share: Share) -> str:
    if share.rate is None:
        return f"{share.followed:,} of {share.made:,} {name} with follow-up, told from {NEEDED} on"
    return f"{share.held:,} of {share.followed:,} {name} with follow-up held"


def _wider(found: Dashboard, text: str) -> str:
    return f"{text} A longer time may hold more." if found.weeks < RANGES[-1] else text


def _day(day: datetime, now: datetime) -> str:
    """`2 Nov`; with its year where that is another one."""
    return f"{day.day} {day:%b}" if day.year == now.year else f"{day.day} {day:%b %Y}"
