"""Sections of the metrics: rows of numbers, with a one-line takeaway.

The screen, the command line, CSV and Markdown all render these figures.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.base.formatting import format_cost, format_count, format_decimal, format_percent
from core.base.pattern_titles import name_apart
from core.base.text import capitalized, continued, plural, visible_line
from core.index.experiment import describe_success
from core.index.review_items import KINDS
from core.learning.experiments import Cell, Tally, Verdict, compare_arms, describe_verdict
from core.learning.experiments import Comparison as ArmComparison
from core.records.loops import Usage
from core.records.patterns import Maturity
from core.show.filter_parser import build_id_query
from core.show.metrics.dashboard import RANGES, Dashboard, StateChange, Trend, Week, count_changes
from core.show.metrics.effectiveness import MIN_FOLLOWED, Share
from core.show.metrics.sessions import ERROR, FAILURE_MODE, ROOT_CAUSE, Cause

if TYPE_CHECKING:
    from core.records.team import PooledTrials, TeamStatus
    from core.show.metrics.effectiveness import Comparison
    from core.show.metrics.sessions import UsageGroup


STATES: Final = (Maturity.PROVEN, Maturity.ESTABLISHED, Maturity.CANDIDATE, Maturity.DEPRECATED)  # from best to worst
MAX_NAMED: Final = 3  # maximum number of items that a takeaway names
_LABEL_CHARS: Final = 60
_LESSON_CHARS: Final = 100
_MAX_TRIED_LESSONS: Final = 20
_VERDICTS: Final = {
    Verdict.HELPS: "helps",
    Verdict.HURTS: "hurts",
    Verdict.NO_DIFFERENCE: "no difference",
    Verdict.UNDECIDED: "can't tell yet",
}
_Data: TypeAlias = dict[str, Any]  # takeaway and rows of a figure; empty without data


class Kind(Enum):
    BARS = "bars"  # one bar per row, its values side by side
    COLUMNS = "columns"  # one column per week, its values stacked; a week without a value is a gap
    SPANS = "spans"  # one value per row with its interval; all rows share a scale


class Goal(Struct, frozen=True):
    """Target of a row's link: a screen, with a filter of its list or a record's key."""

    place: str
    filter: str = ""
    key: str = ""


class Row(Struct, frozen=True, kw_only=True):
    """One row of a figure."""

    label: str  # may be untrusted text
    values: tuple[float, ...]  # one value for each part of the figure; empty if unknown
    low: float | None = None  # ends of the interval; its heading is `Figure.reach`
    high: float | None = None
    count: int = 0
    goal: Goal | None = None
    extra: str = ""  # a further value; its heading is `Figure.extra`
    group: str = ""  # what the row is among; its heading is `Figure.group`
    score: str = ""  # what is shown for the value, such as `9 of 12`; "" for the value itself
    week: int | None = None  # number of weeks ago if the row links to the patterns used in that week


class Figure(Struct, frozen=True, kw_only=True):
    """One section of the metrics."""

    id: str  # name in JSON and CSV
    title: str
    takeaway: str  # result in one line
    kind: Kind
    about: str  # heading of the labels
    parts: tuple[str, ...]  # headings of the values
    rows: tuple[Row, ...] = ()  # rows in order; weeks oldest first
    reach: str = ""  # heading of the interval; "" without one
    extra: str = ""  # heading of the further value; "" without one
    group: str = ""  # heading of the groups of rows; "" without groups
    has_count: bool = True  # whether the number of cases is shown
    note: str = ""  # how to read the figure
    percent: bool = False  # whether values are rates, 0..1
    missing: str = ""  # if there are no rows: how to get data

    @property
    def total(self) -> float:
        return sum(sum(row.values) for row in self.rows)


def value_text(figure: Figure, value: float) -> str:
    if figure.percent:
        return format_percent(value)
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def part_text(figure: Figure, row: Row, part: int) -> str:
    """Format one value of a row; "—" if it is unknown."""
    return row.score or (value_text(figure, row.values[part]) if row.values else "—")


def reach_text(figure: Figure, row: Row) -> str:
    """Format the interval of a row as `0.23 – 0.91`; "" without one."""
    if row.low is None or row.high is None:
        return ""
    if figure.percent or figure.kind is not Kind.SPANS:  # an interval of a rate
        return f"{format_decimal(row.low)} – {format_decimal(row.high)}"
    return f"{value_text(figure, row.low)} – {value_text(figure, row.high)}"


class _Texts(Struct, frozen=True):
    """The texts in `sections.yaml`."""

    sections: tuple[Figure, ...]  # displayed without data, in order


@cache
def _load_texts() -> _Texts:
    return msgspec.yaml.decode(Path(__file__).with_name("sections.yaml").read_bytes(), type=_Texts)


def build_figures(found: Dashboard) -> tuple[Figure, ...]:
    """Build the figures of all sections, in order."""
    words = {
        "weeks": found.weeks,
        "level": f"{found.level * 100:g} %",
        "longer": " A longer time range may have some." if found.weeks < RANGES[-1] else "",
        "undated": "",
        "chance": "",
        "by": _format_reviewer(found),
        "results": plural(found.accuracy.follow_up, "result"),
        "least": found.lessons.least,
        "undecided": plural(found.lessons.undecided, "lesson"),
        "matched": continued(found.lessons.sentence),
        "success": f" Success of tasks, over all lessons: {success}." if (success := _success(found)) else "",
    }
    if not found.lessons.experiment.patterns:
        words["chance"] = " To let chance decide which task gets a lesson, and compare: ralphdeck experiment"
    if found.undated:
        words["undated"] = f" {plural(found.undated, 'further use')} recorded only as totals, without a date."
    figures = []
    for section in _load_texts().sections:
        if section.id == "team" and (found.team is None or found.team.uses_at is None):
            continue
        if section.id == "experiment" and not found.lessons.experiment.patterns and not _pools(found):
            continue
        texts = ("takeaway", "about", "reach", "note", "missing")
        changes = {name: getattr(section, name).format(**words) for name in texts} | _SECTIONS[section.id](found)
        if changes.get("rows"):
            changes["missing"] = ""
        figures.append(replace(section, **changes))
    return tuple(figures)


def _lessons(found: Dashboard) -> _Data:
    effect = found.lessons
    names = name_apart((one.pattern_id, one.name) for one in (*effect.best, *effect.worst))
    groups = [*(("best", one) for one in effect.best), *(("worst", one) for one in effect.worst)]
    rows = tuple(
        Row(
            label=visible_line(names[one.pattern_id], _LESSON_CHARS),
            group=group if one.is_given else "stopped",
            values=(one.worked / one.results,),
            score=one.score,
            low=one.low,
            high=one.high,
            count=one.results,
            goal=Goal("patterns", key=one.pattern_id),
        )
        for group, one in groups
    )
    return {"takeaway": effect.sentence, "rows": rows}


def _experiment(found: Dashboard) -> _Data:
    report = found.lessons.experiment
    names = name_apart((one.pattern_id, one.name) for one in report.patterns)
    rows = [
        _experiment_row(names[one.pattern_id], one.pattern_id, arms, is_running=report.is_running)
        for one in report.patterns[:_MAX_TRIED_LESSONS]
        if (arms := one.errors) is not None
    ]
    for pool in _pools(found)[:_MAX_TRIED_LESSONS]:
        name = f"Team: {names.get(pool.pattern_id, pool.pattern_id)}, {plural(pool.projects, 'project')}"
        rows.append(_experiment_row(name, pool.pattern_id, compare_pooled(pool), is_running=True))
    return {"takeaway": capitalized(report.sentence), "rows": tuple(rows)}


def _pools(found: Dashboard) -> list[PooledTrials]:
    """Return the trials of the whole team whether errors returned."""
    return [pool for pool in (found.team.trials if found.team is not None else ()) if pool.kind == "returned"]


def _experiment_row(name: str, pattern_id: str, arms: ArmComparison, *, is_running: bool) -> Row:
    needed = f"{arms.needed:,} more" if arms.needed and is_running else ""
    is_stopped = arms.verdict is Verdict.UNDECIDED and not is_running
    return Row(
        label=visible_line(name, _LESSON_CHARS),
        group="no verdict" if is_stopped else _VERDICTS[arms.verdict],
        extra=", ".join(filter(None, (_rate_without(arms), needed))),
        values=() if arms.given.rate is None else (arms.given.rate,),
        low=arms.low,
        high=arms.high,
        count=arms.given.trials + arms.held_out.trials,
        goal=Goal("patterns", key=pattern_id),
    )


def _rate_without(arms: ArmComparison) -> str:
    """Return how often an error recurred in tasks without its lesson; "" if unknown."""
    return "" if arms.held_out.rate is None else format_percent(arms.held_out.rate)


def _success(found: Dashboard) -> str:
    """Describe the success of tasks of the experiment; "" if no result is known."""
    report = found.lessons.experiment
    return describe_success(report.success, is_running=report.is_running) if report.success is not None else ""


def _patterns(found: Dashboard) -> _Data:
    counts = [tuple(week[state] for state in STATES) for week in found.states]
    before, now = counts[0], counts[-1]
    if not sum(now):
        return {}
    states = ", ".join(
        f"{count:,} {state.value}" + f" ({earlier:,} before)" * (count != earlier)
        for state, earlier, count in zip(STATES, before, now, strict=True)
        if count or earlier
    )
    rows = _week_rows(found, [(values, sum(values)) for values in counts])
    return {"takeaway": f"{plural(sum(now), 'lesson')}: {states}", "rows": rows}


def _evidence(found: Dashboard) -> _Data:
    weeks = found.evidence
    good, bad = sum(week.good for week in weeks), sum(week.bad for week in weeks)
    uses, shown = sum(week.uses for week in weeks), sum(week.shown for week in weeks)
    if not uses and not shown:
        return {}
    unknown = uses - good - bad
    rest = f", {unknown:,} unclear" if unknown else ""
    takeaway = f"{plural(uses, 'use')} in {plural(found.weeks, 'week')}: {good:,} worked, {bad:,} failed{rest}"
    cells = [((week.good, week.bad, week.open, week.shown), week.uses) for week in weeks]
    trend = f". {_describe_trend(found, found.trend)}" if found.trend is not None else ""
    rows = _week_rows(found, cells, weeks)
    return {"takeaway": f"{takeaway}; {shown:,} given with no recorded use{trend}", "rows": rows}


def _as_values(value: float | None) -> tuple[float, ...]:
    return () if value is None else (value,)


def _week_rows(
    found: Dashboard, cells: Sequence[tuple[tuple[float, ...], int]], intervals: Sequence[Week] = ()
) -> tuple[Row, ...]:
    """Build a row per past week, oldest first, from (values, count) of each week."""
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


def _describe_trend(found: Dashboard, trend: Trend) -> str:
    before, after = trend.before, trend.after
    one, other = format_decimal(before.rate), format_decimal(after.rate)
    verb = "rose" if after.rate > before.rate else "fell"
    moved = f"stayed at {other}" if one == other else f"{verb} from {one} to {other}"
    proof = "significant, the intervals do not" if trend.is_significant else "not significant, the intervals"
    counts = f"{before.results:,} and {after.results:,} results"
    return f"Success {moved} since {_format_day(trend.since, found.now)}, {counts}: {proof} overlap"


def _iterations(found: Dashboard) -> _Data:
    loops = found.benefit
    with_lessons = plural(loops.loops_with_pattern_injection, "session")
    having = _describe_loops(with_lessons, loops.completed_loops_with, loops.failed_loops_with)
    lacking = _describe_loops(
        f"{loops.loops_without_pattern_injection:,}", loops.completed_loops_without, loops.failed_loops_without
    )
    if not (loops.loops_with_pattern_injection or loops.loops_without_pattern_injection):
        return {"takeaway": "No sessions yet."}
    data = _compare(found, found.iterations, "lessons")
    return data | {"takeaway": f"{data['takeaway']}. With lessons {having}; without {lacking}"}


def _describe_loops(count: str, completed: int, failed: int) -> str:
    """Describe the results of loops, such as `14 sessions, 5 completed, 2 failed`."""
    parts = [count, f"{completed:,} completed" * bool(completed), f"{failed:,} failed" * bool(failed)]
    return ", ".join(filter(None, parts))


def _reflections(found: Dashboard) -> _Data:
    return _compare(found, found.reflections, "reflections")


def _compare(found: Dashboard, comparison: Comparison, given: str) -> _Data:
    """Compare iterations in words; no number before the interval excludes 0."""
    low, high = comparison.low, comparison.high
    takeaway = capitalized(comparison.verdict)
    if comparison.is_conclusive and low is not None and high is not None:
        takeaway = f"{takeaway} with {given} ({found.level * 100:g} % interval {low:+.1f} to {high:+.1f})"
    rows = tuple(
        Row(
            label=f"{group.category or 'other tasks'}, {word}",
            values=(sum(counts) / len(counts),),
            low=min(counts),
            high=max(counts),
            count=len(counts),
            goal=Goal("loops", "status:completed"),
        )
        for group in comparison.groups
        for word, counts in (("with", group.having), ("without", group.lacking))
    )
    return {"takeaway": takeaway, "rows": rows}


def _upcoming(found: Dashboard) -> _Data:
    changes = count_changes(found.ahead)
    if not changes:
        return {}
    named = "; ".join(f"{count:,} {_describe_change(change)}" for change, count in list(changes.items())[:MAX_NAMED])
    first = next((week for week in found.ahead if week.count), None)
    begins = f", first in the week of {_format_day(first.start, found.now)}" if first else ""
    total = plural(sum(changes.values()), "change")
    takeaway = f"{total} by decay alone in {plural(found.weeks, 'week')}{begins}: {named}"
    rows = []
    for week in found.ahead:
        by_change = [week.changes.get(change, ()) for change in changes]
        ids = [id for found_ids in by_change for id in found_ids]
        goal = Goal("patterns", build_id_query(ids)[0], ids[0]) if ids else None
        label, values = _format_day(week.start, found.now), tuple(map(len, by_change))
        rows.append(Row(label=label, values=values, count=week.count, goal=goal))
    return {"takeaway": takeaway, "rows": tuple(rows), "parts": tuple(map(_describe_change, changes))}


def _describe_change(change: StateChange) -> str:
    return f"{change[0].value} to {change[1].value}"


def _coverage(found: Dashboard) -> _Data:
    weeks = found.coverage
    injected, reviewed = sum(week.injected for week in weeks), sum(week.reviewed for week in weeks)
    if not injected:
        return {}
    share = format_percent(reviewed / injected)
    decisions = f"{plural(sum(week.decisions for week in weeks), 'decision')} in {plural(found.weeks, 'week')}"
    rows = _week_rows(found, [(_as_values(week.share), week.injected) for week in weeks])
    return {
        "takeaway": f"Reviewed before it was given: {share} of {plural(injected, 'time')}; {decisions}",
        "rows": rows,
    }


def _questions(found: Dashboard) -> _Data:
    if not found.open:
        return {}
    names = [KINDS[kind.kind].name for kind in found.open]
    total = plural(sum(kind.count for kind in found.open), "open question")
    first = "the first one has" if found.first_half == 1 else f"the first {found.first_half:,} have"
    rows = [
        Row(label=name, values=(kind.share,), count=kind.count, goal=Goal("review", key=kind.first))
        for name, kind in zip(names, found.open, strict=True)
    ]
    takeaway = f"{total}; {first} half of the expected impact; most of it is in {names[0]}"
    return {"takeaway": takeaway, "rows": tuple(rows)}


def _causes(found: Dashboard) -> _Data:
    failed_uses = sum(week.bad for week in found.evidence)
    failed = f"{plural(found.failed_loops, 'session')} and {plural(failed_uses, 'use')} failed"
    if not found.causes:
        if not (found.failed_loops or failed_uses):
            return {}
        return {"takeaway": f"{failed} in the last {plural(found.weeks, 'week')}, none with a recorded cause."}
    top = found.causes[:MAX_NAMED]
    named = ", ".join(f"{visible_line(cause.name, 40)} ({cause.count:,})" for cause in top)
    rows = []
    for cause in found.causes:
        label = f"{visible_line(cause.name, _LABEL_CHARS)}, {cause.kind}"
        rows.append(Row(label=label, values=(cause.count,), count=cause.count, goal=_cause_goal(cause)))
    return {"takeaway": f"{failed}. Most often: {named}", "rows": tuple(rows)}


def _cause_goal(cause: Cause) -> Goal | None:
    name = visible_line(cause.name, _LABEL_CHARS).replace('"', "")
    if cause.kind in (ROOT_CAUSE, ERROR):
        return Goal("loops", f'{"cause" if cause.kind == ROOT_CAUSE else "error"}:"{name}"')
    return Goal("loops", key=cause.loop_id) if cause.kind == FAILURE_MODE and cause.loop_id else None


def _accuracy(found: Dashboard) -> _Data:
    accuracy = found.accuracy
    kinds = (("promotions", "promote", accuracy.promotions), ("deprecations", "deprecate", accuracy.deprecations))
    if not any(share.made for *_, share in kinds):
        return {}
    rows = [
        Row(
            label=name,
            values=_as_values(share.rate),
            low=share.low,
            high=share.high,
            count=share.followed,
            goal=Goal("log", f'verb:{verb} by:"{_format_reviewer(found)}"'),
        )
        for name, verb, share in kinds
    ]
    return {"takeaway": "; ".join(_describe_share(name, share) for name, _, share in kinds), "rows": tuple(rows)}


def _usage(found: Dashboard) -> _Data:
    days = found.usage
    if not days:
        return {}
    total = sum((day.usage for day in days), Usage())
    loops = plural(sum(day.loops for day in days), "session")
    cost = f" and {format_cost(total.cost_usd)} of reported cost" if total.cost_usd is not None else ""
    rows = []
    for day in days:
        used = day.usage
        values = (used.input or 0, used.cache_read or 0, used.cache_write or 0, used.output or 0)
        label = _format_day(datetime.fromisoformat(day.name), found.now)
        rows.append(Row(label=label, values=values, count=day.loops, extra=_describe_cost(used)))
    takeaway = f"{format_count(total.total or 0)} tokens{cost} in {plural(len(days), 'day')}, by {loops}"
    if len(found.usage_sources) > 1:
        takeaway += f": {', '.join(map(_describe_source, found.usage_sources[:MAX_NAMED]))}"
        takeaway += f" and {len(found.usage_sources) - MAX_NAMED} more" * (len(found.usage_sources) > MAX_NAMED)
    return {"takeaway": takeaway, "rows": tuple(rows)}


def _context(found: Dashboard) -> _Data:
    costs = found.costs
    if not costs.given:
        return {}
    total = f"About {format_count(costs.tokens)} tokens in {plural(found.weeks, 'week')}"
    rows = _week_rows(found, [((week.tokens,), week.given) for week in costs.by_week])
    each = plural(round(costs.tokens / costs.given), "token")
    return {"takeaway": f"{total}: {plural(costs.given, 'given lesson')} of about {each}", "rows": rows}


def _costs(found: Dashboard) -> _Data:
    lessons = found.costs.lessons
    if not lessons:
        return {}
    names = name_apart((one.pattern_id, one.name) for one in lessons)
    rows = tuple(
        Row(
            label=visible_line(names[one.pattern_id], _LESSON_CHARS),
            values=(one.tokens,),
            count=one.given,
            extra=f"{one.counts.followed:,} of {one.counts.judged:,}" if one.counts.judged else "can't tell",
            goal=Goal("patterns", key=one.pattern_id),
        )
        for one in lessons
    )
    first = lessons[0]
    name = visible_line(names[first.pattern_id], _LABEL_CHARS)
    share = f"{name} costs most: about {format_count(first.tokens)} tokens"
    return {"takeaway": share, "rows": rows}


def _team(found: Dashboard) -> _Data:
    data = describe_team_uses(found.team, found.weeks) if found.team is not None else {}
    rows = tuple(Row(label=label, values=values, count=count) for label, values, count in data.get("rows", ()))
    return data | {"rows": rows}


def _describe_cost(usage: Usage) -> str:
    return format_cost(usage.cost_usd) if usage.cost_usd is not None else ""


def _describe_source(source: UsageGroup) -> str:
    parts = (format_count(source.usage.total or 0), _describe_cost(source.usage))
    return f"{visible_line(source.name, _LABEL_CHARS)} {' · '.join(filter(None, parts))}"


def _format_reviewer(found: Dashboard) -> str:
    return visible_line(found.accuracy.by, _LABEL_CHARS).replace('"', "")


def _describe_share(name: str, share: Share) -> str:
    if share.rate is None:
        return f"{share.followed:,} of {share.made:,} {name} followed by results; a rate needs {MIN_FOLLOWED}"
    return f"{share.held:,} of {share.followed:,} {name} confirmed by results"


def _format_day(day: datetime, now: datetime) -> str:
    """Format a date as `2 Nov`, with the year if it is not the current one."""
    return f"{day.day} {day:%b}" if day.year == now.year else f"{day.day} {day:%b %Y}"


_SECTIONS: Final[dict[str, Callable[[Dashboard], _Data]]] = {
    "lessons": _lessons,
    "experiment": _experiment,
    "patterns": _patterns,
    "evidence": _evidence,
    "iterations": _iterations,
    "reflections": _reflections,
    "coming": _upcoming,
    "judged": _coverage,
    "questions": _questions,
    "causes": _causes,
    "mirror": _accuracy,
    "usage": _usage,
    "context": _context,
    "costs": _costs,
    "team": _team,
}


# Uses and trials of patterns in all projects of the team


_NAME_CHARS: Final = 24
Counts = tuple[int, int, int]
"""Successes, failures and uses."""


def count_team_uses(status: TeamStatus, weeks: int) -> tuple[int, list[tuple[str, Counts]]]:
    """Return each project's uses, most first, in a range of at least `weeks` weeks.

    Also returns the length of that range: the shortest known one, else the longest. Names of projects are untrusted.
    """
    known = sorted({length for one in status.uses for length in one.weeks})
    length = next((length for length in known if length >= weeks), known[-1] if known else weeks)
    counted = [(one.project, one.weeks.get(length, (0, 0, 0))) for one in status.uses]
    return length, sorted(counted, key=lambda project: (-project[1][2], project[0]))


def describe_team_uses(status: TeamStatus, weeks: int) -> dict[str, Any]:
    """Return the takeaway and rows (label, values, count); no rows without a use."""
    length, counted = count_team_uses(status, weeks)
    used = [(name, counts) for name, counts in counted if counts[2]]
    at = f"; as of {status.uses_at:%Y-%m-%d %H:%M} UTC" if status.uses_at is not None else ""
    if not used:
        return {"takeaway": f"No use in {plural(len(counted), 'project')} of the team in {plural(length, 'week')}{at}"}
    good, bad, uses = (sum(counts[n] for _, counts in used) for n in range(3))
    among = f"{len(used):,} of {plural(len(counted), 'project')}"
    takeaway = f"{plural(uses, 'use')} in {among} in {plural(length, 'week')}: {good:,} worked, {bad:,} failed{at}"
    named = [("all projects", (good, bad, uses))] * (len(used) > 1)
    named += [(visible_line(name, _NAME_CHARS), counts) for name, counts in used]
    rows = [(name, (worked, failed), total) for name, (worked, failed, total) in named]
    return {"takeaway": takeaway, "rows": rows}


def compare_pooled(pool: PooledTrials) -> ArmComparison:
    """Compare the arms of one pattern in all projects of the team."""
    tally = Tally()
    for share, rate, is_held_out, outcome, trials in pool.cells:
        tally[(Cell(pool.pattern_id, share, rate, is_held_out, float(outcome)),)] += trials
    return compare_arms(tally, is_higher_better=pool.kind == "succeeded")


def describe_pool(pool: PooledTrials) -> str:
    """Describe a pattern's trials: `3 projects, given: error in 2 of 40 tasks; ...`."""
    found = compare_pooled(pool)
    what = "success" if pool.kind == "succeeded" else "error"
    given, held_out = (f"{what} in {arm.total:,.0f} of {arm.trials:,}" for arm in (found.given, found.held_out))
    projects, verdict = plural(pool.projects, "project"), describe_verdict(found)
    return f"{projects}, given: {given} tasks; held out: {held_out}; {verdict}"


# CSV, and a report in Markdown


_COLUMNS: Final = ("section", "row", "part", "value", "low", "high", "n")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")  # first characters of a formula in a spreadsheet
_MARKDOWN: Final = str.maketrans({char: f"\\{char}" for char in "\\`*_{}[]<>|#~&$"})
_TITLE_CHARS: Final = 80


def export_metrics(found: Dashboard, suffix: str, project: str) -> bytes:
    """Render the metrics of a project; `suffix` is a key of `FORMATS`."""
    return FORMATS[suffix](found, build_figures(found), visible_line(project, _TITLE_CHARS)).encode()


def to_csv(found: Dashboard, figures: Sequence[Figure], project: str) -> str:
    """Render one line per value; rates are 0..1. No text cell starts like a formula."""
    file = io.StringIO()
    out = csv.writer(file, lineterminator="\n")
    out.writerow(_COLUMNS)
    for figure in figures:
        for row in figure.rows:
            ends = ["" if end is None else f"{end:.6g}" for end in (row.low, row.high)]
            values = [f"{value:.10g}" for value in row.values] or [""]
            for part, value in zip(figure.parts, values, strict=False):
                out.writerow([_cell(figure.id), _cell(row.label), _cell(part), value, *ends, row.count])
    return file.getvalue()


def _cell(text: str) -> str:
    text = visible_line(text)
    return f"'{text}" if text.startswith(_FORMULA) else text


def to_markdown(found: Dashboard, figures: Sequence[Figure], project: str) -> str:
    """Render a report: for each section, the takeaway and a table."""
    weeks = f"As of {found.now:%Y-%m-%d %H:%M} UTC, {plural(found.weeks, 'week')} back and ahead"
    head = f"# Metrics of {_escape(project)}\n\n{weeks}; {found.level * 100:g} % intervals.\n"
    return "\n".join([head, *map(section_markdown, figures)])


def section_markdown(figure: Figure) -> str:
    groups = [figure.group] * bool(figure.group)
    count = ["n"] * figure.has_count
    titles = [*groups, figure.about, *figure.parts, *filter(None, (figure.reach, figure.extra)), *count]
    table = [titles, [*["---"] * (len(groups) + 1), *["---:"] * (len(titles) - len(groups) - 1)]]
    for row in figure.rows:
        values = [part_text(figure, row, part) for part in range(len(figure.parts))]
        reach = [reach_text(figure, row) or "—"] if figure.reach else []
        extra = [_escape(row.extra) or "—"] if figure.extra else []
        group, count = [row.group] * bool(figure.group), [f"{row.count:,}"] * figure.has_count
        table.append([*group, _escape(row.label), *values, *reach, *extra, *count])
    lines = [f"| {' | '.join(cells)} |" for cells in table] + [""] if figure.rows else []
    end = _escape(figure.missing or figure.note)
    return "\n".join([f"## {figure.title}", "", _escape(figure.takeaway), "", *lines, end, ""])


def _escape(text: str) -> str:
    return visible_line(text).translate(_MARKDOWN)


FORMATS: Final[Mapping[str, Callable[[Dashboard, Sequence[Figure], str], str]]] = {".md": to_markdown, ".csv": to_csv}
"""Renderer by file suffix."""
