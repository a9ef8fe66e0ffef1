"""Sections of the metrics: rows of each figure, and its takeaway in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from core.base.formatting import format_decimal, format_percent
from core.base.text import plural, visible_line
from core.metrics.causes import ERROR, FAILURE_MODE, ROOT_CAUSE, Cause
from core.metrics.dashboard import RANGES, Dashboard
from core.metrics.effectiveness import Group
from core.metrics.figures import MAX_NAMED, Figure, Goal, Row
from core.metrics.review_coverage import OpenKind
from core.metrics.reviewer_accuracy import MIN_FOLLOWED, Share
from core.metrics.weekly import Change, Week, WeekAhead, count_changes
from core.queries.pattern_filter import build_id_query
from core.records.patterns import Maturity, PatternType

TYPE_NAMES: Final = {
    PatternType.ERROR: "error",
    PatternType.SUCCESS: "success",
    PatternType.ANTI: "anti",
    PatternType.TEMPLATE: "template",
}
STATES: Final = (Maturity.PROVEN, Maturity.ESTABLISHED, Maturity.CANDIDATE, Maturity.DEPRECATED)  # from best to worst
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
    sections = (*(_patterns, _evidence, _success, _iterations, _upcoming, _coverage, _questions, _causes), _accuracy)
    return tuple(section(found) for section in sections)


@cache
def _templates() -> dict[str, Figure]:
    """The sections as shown without data, by ID."""
    data = Path(__file__).with_name("sections.yaml").read_bytes()
    return {figure.id: figure for figure in msgspec.yaml.decode(data, type=tuple[Figure, ...])}


def _empty(id: str, found: Dashboard, **words: Any) -> Figure:
    """A section as shown without data, with `words` inserted in its texts."""
    longer = " A longer time range may have some." if found.weeks < RANGES[-1] else ""
    words |= {"weeks": found.weeks, "level": f"{found.level * 100:g} %", "longer": longer}
    figure = _templates()[id]
    texts = {name: getattr(figure, name) for name in ("takeaway", "about", "reach", "note", "missing")}
    return replace(figure, **{name: text.format(**words) for name, text in texts.items()})


def _filled(figure: Figure, takeaway: str, rows: Sequence[Row]) -> Figure:
    return replace(figure, takeaway=takeaway, rows=tuple(rows), missing="")


def _patterns(found: Dashboard) -> Figure:
    counts, empty = found.patterns, _empty("patterns", found)
    total = sum(counts.values())
    if not total:
        return empty
    by_state = {state: sum(counts[kind, state] for kind in PatternType) for state in STATES}
    states = ", ".join(f"{by_state[state]:,} {state.value}" for state in STATES if by_state[state])
    rows = [
        Row(
            label=TYPE_NAMES[kind],
            values=(values := tuple(counts[kind, state] for state in STATES)),
            count=sum(values),
            goal=Goal("patterns", f"type:{kind.value} -is:mirror"),
        )
        for kind in PatternType
    ]
    return _filled(empty, f"{plural(total, 'pattern')}: {states}", rows)


def _evidence(found: Dashboard) -> Figure:
    weeks = found.evidence
    undated = (
        f" {plural(found.undated, 'further use')} known only from totals, without a date." if found.undated else ""
    )
    empty = _empty("evidence", found, undated=undated)
    good, bad = sum(week.good for week in weeks), sum(week.bad for week in weeks)
    uses, shown = sum(week.uses for week in weeks), sum(week.shown for week in weeks)
    if not uses and not shown:
        return empty
    unknown = uses - good - bad
    rest = f", {unknown:,} without a result" if unknown else ""
    takeaway = f"{plural(uses, 'use')} in {plural(found.weeks, 'week')}: {good:,} worked, {bad:,} failed{rest}"
    cells = [((week.good, week.bad, week.open, week.shown), week.uses) for week in weeks]
    return _filled(empty, f"{takeaway}; {shown:,} injected, no result", _week_rows(found, cells))


def _success(found: Dashboard) -> Figure:
    weeks, empty = found.evidence, _empty("success", found)
    if not any(week.results for week in weeks):
        return empty
    cells = [(_values(week.rate), week.results) for week in weeks]
    return _filled(empty, _describe_trend(found), _week_rows(found, cells, weeks))


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
    rows = [row for group in comparison.groups for row in _group_rows(group)]
    empty = _empty("iterations", found)
    return _filled(empty, takeaway, rows) if rows else replace(empty, takeaway=takeaway)


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
    changes, empty = count_changes(found.ahead), _empty("coming", found)
    if not changes:
        return empty
    named = "; ".join(f"{count:,} {_describe_change(change)}" for change, count in list(changes.items())[:MAX_NAMED])
    first = next((week for week in found.ahead if week.count), None)
    begins = f", first in the week of {_format_day(first.start, found.now)}" if first else ""
    total = plural(sum(changes.values()), "change")
    takeaway = f"{total} by decay alone in {plural(found.weeks, 'week')}{begins}: {named}"
    rows = [_upcoming_row(week, list(changes), found.now) for week in found.ahead]
    return replace(_filled(empty, takeaway, rows), parts=tuple(map(_describe_change, changes)))


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
    weeks, empty = found.coverage, _empty("judged", found)
    injected, reviewed = sum(week.injected for week in weeks), sum(week.reviewed for week in weeks)
    if not injected:
        return empty
    decisions = plural(sum(week.decisions for week in weeks), "decision")
    takeaway = (
        f"A person had reviewed {format_percent(reviewed / injected)} of {plural(injected, 'injected pattern')}; "
    )
    takeaway += f"{decisions} in {plural(found.weeks, 'week')}"
    return _filled(empty, takeaway, _week_rows(found, [(_values(week.share), week.injected) for week in weeks]))


def _questions(found: Dashboard) -> Figure:
    kinds, empty = found.open, _empty("questions", found)
    if not kinds:
        return empty
    first = "the first one has" if found.first_half == 1 else f"the first {found.first_half:,} have"
    takeaway = f"{plural(sum(kind.count for kind in kinds), 'open question')}; "
    takeaway += f"{first} half of the expected impact; most of it is in {_question_name(kinds[0])}"
    rows = [
        Row(label=_question_name(kind), values=(kind.share,), count=kind.count, goal=Goal("review", key=kind.first))
        for kind in kinds
    ]
    return _filled(empty, takeaway, rows)


def _question_name(kind: OpenKind) -> str:
    return _QUESTION_NAMES.get(kind.kind, kind.kind)


def _causes(found: Dashboard) -> Figure:
    top, empty = found.causes, _empty("causes", found)
    if not top:
        return empty
    names = ", ".join(f"{visible_line(cause.name, 40)} ({cause.count:,})" for cause in top[:MAX_NAMED])
    rows = [
        Row(
            label=f"{visible_line(cause.name, _LABEL_CHARS)}, {cause.kind}",
            values=(cause.count,),
            count=cause.count,
            goal=_cause_goal(cause),
        )
        for cause in top
    ]
    return _filled(empty, f"Most often: {names}", rows)


def _cause_goal(cause: Cause) -> Goal | None:
    name = visible_line(cause.name, _LABEL_CHARS).replace('"', "")
    if cause.kind in (ROOT_CAUSE, ERROR):
        return Goal("memory", f'{"cause" if cause.kind == ROOT_CAUSE else "error"}:"{name}"')
    return Goal("loops", key=cause.loop_id) if cause.kind == FAILURE_MODE and cause.loop_id else None


def _accuracy(found: Dashboard) -> Figure:
    accuracy = found.accuracy
    by = visible_line(accuracy.by, _LABEL_CHARS).replace('"', "")
    empty = _empty("mirror", found, by=by, results=plural(accuracy.follow_up, "result"))
    if not accuracy.promotions.made + accuracy.deprecations.made:
        return empty
    kinds = (("promotions", "promote", accuracy.promotions), ("deprecations", "deprecate", accuracy.deprecations))
    rows = [
        Row(
            label=name,
            values=_values(share.rate),
            low=share.low,
            high=share.high,
            count=share.followed,
            goal=Goal("log", f'verb:{verb} by:"{by}"'),
        )
        for name, verb, share in kinds
    ]
    return _filled(empty, "; ".join(_describe_share(name, share) for name, _verb, share in kinds), rows)


def _describe_share(name: str, share: Share) -> str:
    if share.rate is None:
        return f"{share.followed:,} of {share.made:,} {name} followed by results; a rate needs {MIN_FOLLOWED}"
    return f"{share.held:,} of {share.followed:,} {name} confirmed by results"


def _format_day(day: datetime, now: datetime) -> str:
    """`2 Nov`, with the year if it is not this year."""
    return f"{day.day} {day:%b}" if day.year == now.year else f"{day.day} {day:%b %Y}"
