"""`ralphdeck task report`: how retries with reflections do, and the success metrics of (1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Final

import click

from core.base.errors import UnknownRecord
from core.base.text import plural
from core.cli.json.shapes import json_help
from core.cli.json.tasks import report_json
from core.cli.render.output import end, findings_json, line, percent, print_json
from core.cli.support.options import reading_options
from core.cli.support.project import chosen_project, now, read_configuration, read_snapshot
from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.episodes.history import read_history
from core.episodes.improvement import TARGET_IMPROVEMENT, AttemptGroup, GroupComparison, Improvement, format_points
from core.episodes.loop_links import LoopLink, link_tasks
from core.episodes.success_metrics import READ_LATENCY_SECONDS, Latency, SuccessMetrics, success_metrics
from core.records.snapshot import Snapshot

MAX_MEASURED: Final = 200
"""Most histories that are read to measure how long that takes: those of the tasks with most actions."""
_MAX_NAMED: Final = 10
"""Most ids of one line."""
_MET: Final = {True: ("met", "green"), False: ("not met", "red"), None: ("cannot tell", "yellow")}


@click.command(epilog=json_help("task report"))
@reading_options
def report(as_json: bool, strict: bool) -> None:
    """Print whether retries with reflections succeed more often, and how the memory does by its own measures (1).

    An attempt counts as a retry with reflections if a reflection on an earlier attempt at its task was written before
    it began; a draft that found nothing to learn is none. Rates come with their intervals; where the interval of a
    difference holds 0, or attempts are too few, it says "not enough data" and how many more it needs. The 20 % of
    REF-021 are percentage points, and retries with reflections are held against retries without. Read latency is
    measured now, on the tasks with most actions. Of long lists of ids --json has all.

    \b
    Examples:
      ralphdeck task report
      ralphdeck task report --json | jq .metrics.tracking_coverage.missing
    """
    configuration = read_configuration()
    snapshot, settings = read_snapshot(configuration), configuration.settings
    found = success_metrics(snapshot, _measured(chosen_project(), snapshot), now(), settings)
    links = sorted(link_tasks(snapshot.tasks, snapshot.loops).values())
    if as_json:
        told = report_json(found, links, settings.interval_level)
        print_json({"tasks": len(snapshot.tasks), **told, "findings": findings_json(snapshot.findings)})
    else:
        _print_improvement(found, settings)
        _print_metrics(found, links, len(snapshot.tasks))
    end(snapshot.findings, strict=strict)


def _measured(project: ProjectPaths, snapshot: Snapshot) -> dict[str, float]:
    """Seconds that it takes to read the history of each task, the better of two: the first may load code, or wait."""
    actions: Counter[str] = Counter(dict.fromkeys(snapshot.tasks, 0))
    for attempt in snapshot.attempts.values():
        actions[attempt.task_id] += attempt.actions or 0
    seconds = {}
    for task_id, _ in actions.most_common(MAX_MEASURED):
        try:
            seconds[task_id] = min(_read(project, task_id), _read(project, task_id))
        except UnknownRecord:  # gone since the lists were read
            continue
    return seconds


def _read(project: ProjectPaths, task_id: str) -> float:
    begun = perf_counter()
    read_history(project, task_id)
    return perf_counter() - begun


def _print_improvement(found: SuccessMetrics, settings: Settings) -> None:
    told = found.improvement
    came_out = told.first.attempts + told.reflected.attempts + told.unreflected.attempts
    left_out = ", ".join(_left_out(found, told))
    timeouts = " (a timeout is a failure)" if came_out else ""
    line(f"Attempts that came out{timeouts}: {came_out:,}{left_out and f'; left out: {left_out}'}")
    for name, group in (
        ("first attempts", told.first),
        ("retries with reflections", told.reflected),
        ("retries without", told.unreflected),
    ):
        line(f"  {name}: {_rate(group, settings)}")
    line("Retries with reflections:")
    line(f"  against first attempts: {_difference(told.against_first, settings)}")
    line(f"  against retries without: {_difference(told.against_unreflected, settings)}")
    if told.reflected.attempts:
        line("  (Whoever tries again has a harder task: against first attempts reflections look worse than they are.)")


def _left_out(found: SuccessMetrics, told: Improvement) -> Iterator[str]:
    """What does not count, as far as there is any."""
    for ids, word in (
        (found.running, "running"),
        (found.paused, "paused"),
        (found.left, "left unfinished"),
        (told.unclear, "neither success nor failure"),
    ):
        if ids:
            yield f"{len(ids):,} {word}"


def _print_metrics(found: SuccessMetrics, links: Sequence[LoopLink], tasks: int) -> None:
    line("Success metrics:")
    covered = found.coverage
    missing = f", missing: {_ids(covered.missing)}" if covered.missing else ""
    count = f"{len(covered.tracked):,} of {covered.loops:,}{missing}" if covered.loops else "there is none"
    _print_metric("tracking coverage", found.covers, f"all loops have a task record: {count}")
    if covered.remembered:
        line(f"    only in the cross-task memory: {_ids(covered.remembered)}")
    for how, times in sorted(Counter(link.how for link in links).items()):
        line(f"    {plural(times, 'task')} matched with a loop: {how}")
    if loose := tasks - len(links):
        line(f"    {plural(loose, 'task')} of no known loop")
    _print_metric("read latency", found.latency.met, _latency(found.latency, tasks))
    _print_metric("retry improvement", found.improves, _improvement(found.improvement))
    audit = found.audit
    count = f"{audit.complete:,} of {audit.ended:,}" if audit.ended else "none has ended"
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


def _latency(told: Latency, tasks: int) -> str:
    limit = f"a history is read in less than {_ms(READ_LATENCY_SECONDS)}"
    if told.slowest is None or told.median is None:
        return f"{limit}: there is none"
    which = plural(told.tasks, "task") if told.tasks == tasks else f"the {told.tasks:,} tasks with most actions"
    return f"{limit}: slowest {_ms(told.slowest)} ({told.slowest_task}), median {_ms(told.median)} of {which}"


def _improvement(told: Improvement) -> str:
    seen = told.against_unreflected.difference
    so_far = "" if seen is None else f": {format_points(seen)}"
    return f"at least {format_points(TARGET_IMPROVEMENT)} percentage points against retries without{so_far}"


def _rate(group: AttemptGroup, settings: Settings) -> str:
    if group.rate is None:
        return "none"
    interval = f"{_level(settings)} {percent(group.low)} to {percent(group.high)}"
    return f"{group.successes:,} of {group.attempts:,} succeeded, {percent(group.rate)} ({interval})"


def _difference(told: GroupComparison, settings: Settings) -> str:
    if told.having.rate is None or told.lacking.rate is None:
        return f"cannot tell: there are none {'to hold them against' if told.having.attempts else 'yet'}"
    rates = f"{percent(told.having.rate)} against {percent(told.lacking.rate)}"
    seen = f"{format_points(told.difference or 0.0)} percentage points ({rates})"
    if told.low is not None and told.high is not None:
        seen += f", {_level(settings)} {format_points(told.low)} to {format_points(told.high)}"
    return seen if told.is_conclusive else f"{told.verdict}; so far {seen}"


def _level(settings: Settings) -> str:
    return f"{settings.interval_level * 100:g} % interval"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms"


def _ids(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _MAX_NAMED:,} more" if len(ids) > _MAX_NAMED else ""
    return f"{', '.join(ids[:_MAX_NAMED])}{more}"
