"""`ralphdeck metrics --tasks`: the effect of reflections, and success metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Final

from core.base.errors import UnknownRecord
from core.base.text import plural
from core.cli.json import tasks as tasks_json
from core.cli.render.output import end, line, percent, print_json, wants_json
from core.cli.support.project import chosen_project, now, read_configuration, read_snapshot
from core.tasks.success_metrics import (
    READ_LATENCY_SECONDS,
    TARGET_IMPROVEMENT,
    AttemptGroup,
    GroupComparison,
    Latency,
    SuccessMetrics,
    format_points,
    measure_success,
)
from core.tasks.task_links import LoopLink, link_tasks

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.cli.json.wire import Wire
    from core.records.snapshot import Snapshot

MAX_MEASURED: Final = 200  # Most histories that are read for the read latency: those of the tasks with most actions.
_MAX_NAMED: Final = 10  # Most IDs of one line.
_MET: Final = {True: ("met", "green"), False: ("not met", "red"), None: ("not enough data", "yellow")}


def print_report() -> None:
    """Compare retries with and without reflections, and print the success metrics of the task memory."""
    configuration = read_configuration()
    snapshot, settings = read_snapshot(configuration), configuration.settings
    found = measure_success(snapshot, _measured(chosen_project(), snapshot), now(), settings)
    links = sorted(link_tasks(snapshot.tasks, snapshot.loops).values())

    if wants_json():
        print_json(_report_json(found, links, settings.interval_level, snapshot))
    else:
        _print_improvement(found, f"{settings.interval_level * 100:g} % interval")
        _print_metrics(found, links, len(snapshot.tasks))
    end(snapshot.findings)


def _report_json(found: SuccessMetrics, links: Sequence[LoopLink], level: float, snapshot: Snapshot) -> Wire:
    improvement, latency = found.improvement, found.latency
    return tasks_json.TaskReport.of(
        tasks=len(snapshot.tasks),
        improvement=tasks_json.RetryImprovement.of(improvement, level=level),
        left_out=tasks_json.OmittedAttempts.of(found, improvement),
        metrics=tasks_json.TaskMetrics.of(
            tracking_coverage=tasks_json.TrackingCoverage.of(found.coverage, met=found.covers, links=links),
            read_latency=tasks_json.ReadLatency.of(
                latency,
                limit_ms=READ_LATENCY_SECONDS * 1000,
                median_ms=None if latency.median is None else latency.median * 1000,
                slowest_ms=None if latency.slowest is None else latency.slowest * 1000,
            ),
            retry_improvement=tasks_json.RetryTarget.of(
                improvement.against_unreflected, met=found.improves, target=TARGET_IMPROVEMENT
            ),
            audit_trail=found.audit,
        ),
        findings=snapshot.findings,
    )


def _measured(project: ProjectPaths, snapshot: Snapshot) -> dict[str, float]:
    """Measure the seconds to read each history: the second of two, as the first loads code."""
    actions: Counter[str] = Counter(dict.fromkeys(snapshot.tasks, 0))
    for attempt in snapshot.attempts.values():
        actions[attempt.task_id] += attempt.actions or 0
    seconds = {}
    for task_id, _ in actions.most_common(MAX_MEASURED):
        try:
            seconds[task_id] = min(_read(project, task_id), _read(project, task_id))
        except UnknownRecord:  # deleted since the lists were read
            continue
    return seconds


def _read(project: ProjectPaths, task_id: str) -> float:
    from core.tasks.history import read_history

    begun = perf_counter()
    read_history(project, task_id)
    return perf_counter() - begun


def _print_improvement(found: SuccessMetrics, interval: str) -> None:
    improvement = found.improvement
    first, reflected, unreflected = improvement.first, improvement.reflected, improvement.unreflected
    closed = first.attempts + reflected.attempts + unreflected.attempts
    open_or_unclear = (
        (found.running, "running"),
        (found.paused, "paused"),
        (found.left, "unfinished"),
        (improvement.unclear, "neither success nor failure"),
    )
    left_out = ", ".join(f"{len(ids):,} {word}" for ids, word in open_or_unclear if ids)
    timeouts = " (a timeout is a failure)" if closed else ""
    line(f"Attempts with an outcome{timeouts}: {closed:,}{left_out and f'; left out: {left_out}'}")
    for name, group in (
        ("first attempts", first),
        ("retries with reflections", reflected),
        ("retries without", unreflected),
    ):
        line(f"  {name}: {_rate(group, interval)}")
    line("Retries with reflections:")
    line(f"  against first attempts: {_difference(improvement.against_first, interval)}")
    line(f"  against retries without: {_difference(improvement.against_unreflected, interval)}")
    if reflected.attempts:
        line("  (Tasks that need a retry are harder, so the comparison with first attempts understates reflections.)")


def _print_metrics(found: SuccessMetrics, links: Sequence[LoopLink], tasks: int) -> None:
    line("Success metrics:")
    covered = found.coverage
    missing = f", missing: {_ids(covered.missing)}" if covered.missing else ""
    count = f"{len(covered.tracked):,} of {covered.loops:,}{missing}" if covered.loops else "no loops"
    _print_metric("tracking coverage", found.covers, f"all loops have a task record: {count}")
    if covered.remembered:
        line(f"    only in the cross-task memory: {_ids(covered.remembered)}")
    for how, times in sorted(Counter(link.how for link in links).items()):
        line(f"    {plural(times, 'task')} matched with a loop: {how}")
    if loose := tasks - len(links):
        line(f"    {plural(loose, 'task')} without a known loop")
    _print_metric("read latency", found.latency.met, _latency(found.latency, tasks))
    difference = found.improvement.against_unreflected.difference
    so_far = "" if difference is None else f": {format_points(difference)}"
    target = f"at least {format_points(TARGET_IMPROVEMENT)} percentage points more than retries without{so_far}"
    _print_metric("retry improvement", found.improves, target)
    audit = found.audit
    count = f"{audit.complete:,} of {audit.ended:,}" if audit.ended else "none ended"
    _print_metric("audit trail", audit.met, f"ended attempts with actions, outcome and reflection: {count}")
    for what, ids in (
        ("actions", audit.without_actions),
        ("outcome", audit.without_outcome),
        ("reflection", audit.without_reflection),
    ):
        if ids:
            line(f"    without {what}: {_ids(ids)}")


def _print_metric(name: str, met: bool | None, text: str) -> None:
    word, colour = _MET[met]
    line(f"  {name}: ", (word, colour), f"; {text}")


def _latency(latency: Latency, tasks: int) -> str:
    limit = f"a history is read in less than {_ms(READ_LATENCY_SECONDS)}"
    if latency.slowest is None or latency.median is None:
        return f"{limit}: no tasks"
    which = f"the {latency.tasks:,} tasks with most actions"
    if latency.tasks == tasks:
        which = plural(tasks, "task")
    return f"{limit}: slowest {_ms(latency.slowest)} ({latency.slowest_task}), median {_ms(latency.median)} of {which}"


def _rate(group: AttemptGroup, interval: str) -> str:
    if group.rate is None:
        return "none"
    ends = f"{interval} {percent(group.low)} to {percent(group.high)}"
    return f"{group.successes:,} of {group.attempts:,} succeeded, {percent(group.rate)} ({ends})"


def _difference(found: GroupComparison, interval: str) -> str:
    if found.having.rate is None or found.lacking.rate is None:
        return f"not enough data: no attempts{' to compare with' if found.having.attempts else ' yet'}"
    rates = f"{percent(found.having.rate)} against {percent(found.lacking.rate)}"
    text = f"{format_points(found.difference or 0.0)} percentage points ({rates})"
    if found.low is not None and found.high is not None:
        text += f", {interval} {format_points(found.low)} to {format_points(found.high)}"
    return text if found.is_conclusive else f"{found.verdict}; so far {text}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms"


def _ids(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _MAX_NAMED:,} more" if len(ids) > _MAX_NAMED else ""
    return f"{', '.join(ids[:_MAX_NAMED])}{more}"
