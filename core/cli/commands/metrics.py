"""`ralphdeck metrics`, also of task memory, and `experiment`: effects of lessons."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import click

from core.base.errors import BadInput, ReadOnly, Refused, UnknownRecord
from core.base.formatting import format_percent
from core.base.pattern_titles import name_apart
from core.base.text import continued, plural, visible_line
from core.cli.json import analysis as analysis_json
from core.cli.json import tasks as tasks_json
from core.cli.support.options import FRACTION, OneOf, ReadingCommand, WholeNumber, choose_mode
from core.cli.support.output import Column, end, line, percent, print_json, print_object, print_table, wants_json
from core.cli.support.project import (
    chosen_project,
    is_readonly,
    now,
    open_project,
    open_reader,
    read_configuration,
    read_snapshot,
)
from core.cli.support.signature import find_user_name
from core.cli.support.team import last_team_status
from core.files.atomic_write import export_file, file_exists, write_file
from core.show.metrics import DEFAULT_WEEKS
from core.show.metrics.effectiveness import (
    MIN_FOLLOWED,
    LoopCounts,
    ReviewerAccuracy,
    Share,
    compute_effectiveness,
    count_states,
    measure_accuracy,
)
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
    from collections.abc import Sequence

    from core.base.paths import ProjectPaths
    from core.cli.json.wire import Wire
    from core.index.experiment import ExperimentReport, PatternTrials
    from core.learning.experiments import Comparison as TrialComparison
    from core.records.snapshot import Snapshot
    from core.records.team import PooledTrials
    from core.show.metrics.dashboard import Dashboard
    from core.show.metrics.effectiveness import Comparison
    from core.show.metrics.lesson_effect import LessonEffect
    from core.show.metrics.sections import Figure, Row


_MAX_CHARS: Final = 60
MAX_WEEKS: Final = 520  # Ten years.


@click.command(cls=ReadingCommand)
@click.option(
    "--weeks",
    type=WholeNumber(1, MAX_WEEKS),
    default=DEFAULT_WEEKS,
    show_default=True,
    help="Number of weeks to look back and ahead.",
)
@click.option("--export", metavar="FILE", help="Write all sections to a file: a report (.md) or numbers (.csv).")
@click.option("--force", is_flag=True, help="Let --export overwrite a file.")
@click.option(
    "--reviewer",
    metavar="[NAME]",
    is_flag=False,
    flag_value="",
    help="Show how many promotions and deprecations later evidence confirmed. Default: yours.",
)
@click.option("--tasks", is_flag=True, help="Compare retries of tasks with and without reflections instead.")
def metrics(weeks: int, export: str | None, force: bool, reviewer: str | None, tasks: bool) -> None:
    """Print whether lessons help, which ones most and least, and how learning works.

    Sections about the work follow: patterns and their states, uses, loops with and without patterns, tokens, failure
    causes. The last ones are about ralphdeck itself: upcoming changes by decay, open questions, review coverage and the
    accuracy of your decisions.

    All numbers come from the evidence. Completed loops with injected patterns are compared with those without, within
    the same category of task, because easy tasks may get more patterns than hard ones. If the interval of the
    difference contains 0 or there are too few loops, the result is "not enough data", with the number needed.

    --reviewer: a decision counts if there are enough results between it and the next decision on the same pattern.
    Enough is the number that a pattern needs to leave the state candidate (min_feedback). A rate needs at least 30 such
    decisions.

    --tasks also prints the success metrics of the task memory. A retry has reflections if a reflection on an earlier
    attempt at its task was written before the retry began; drafts without a learning do not count. The target for
    retries with reflections is 20 percentage points above those without. The read latency is measured now, on the tasks
    with most actions. --json lists all IDs.

    \b
    Examples:
      ralphdeck metrics
      ralphdeck metrics --json | jq .comparison
      ralphdeck metrics --weeks 52 --export report.md
      ralphdeck metrics --reviewer ana
      ralphdeck metrics --tasks --json | jq .metrics.tracking_coverage.missing
    """
    mode = choose_mode({"--reviewer": "", "--tasks": "", "": "weeks export force"})
    if mode == "--reviewer":
        _print_accuracy(reviewer or None)
        return
    if mode == "--tasks":
        print_report()
        return
    from core.index.project_state import all_findings
    from core.show.metrics.dashboard import build_dashboard
    from core.show.metrics.effectiveness import compare_metrics, read_recorded_metrics
    from core.show.metrics.sections import build_figures

    project = open_project()
    state, settings = project.search_all(), project.settings
    loops = LoopCounts.of(state.snapshot)
    found = compute_effectiveness(state.snapshot, state.board, state.now, loops)
    by_state = count_states(state.snapshot, state.board)
    differences = compare_metrics(read_recorded_metrics(project.project), found)
    board = build_dashboard(state, project.by, weeks, last_team_status(), loops)
    target = _export(board, export, project.project, force=force) if export is not None else None

    if wants_json():
        print_object(
            analysis_json.MetricsDocument,
            findings=all_findings(state),
            lessons=_lessons_json(board.lessons),
            effectiveness_metrics=found,
            states=by_state,
            comparison=_comparison_json(board.iterations, settings.interval_level),
            reflections=_comparison_json(board.reflections, settings.interval_level),
            differences=differences,
            weeks=weeks,
            sections=build_figures(board),
            exported=None if target is None else str(target),
        )
    elif target is not None:
        line(f"wrote {target}")
    else:
        for number, figure in enumerate(build_figures(board)):
            if number and figure.rows:
                line("")
            _print_section(figure)
        if differences:
            first, count = differences[0], plural(len(differences), "recorded number")
            line(
                f"! {visible_line(first.file, 80)}: {count} unlike the evidence, such as {first.key}"
                f" {_shown(first.claimed)}, evidence {_shown(first.evident)}"
            )
    end(all_findings(state))


def _print_accuracy(by: str | None) -> None:
    """Print how many decisions of a reviewer later evidence confirmed."""
    from core.index.project_state import all_findings

    state = open_project().view
    found = measure_accuracy(state, by or find_user_name(None, state.settings).by)

    if wants_json():
        print_object(
            analysis_json.AccuracyDocument,
            found,
            findings=all_findings(state),
            needed=MIN_FOLLOWED,
            promotions=_share_json(found.promotions),
            deprecations=_share_json(found.deprecations),
        )
    else:
        line(f"accuracy of {found.by}'s decisions, by later results")
        for word, share in (("promotion", found.promotions), ("deprecation", found.deprecations)):
            line(f"{plural(share.made, word)}: {_share_text(share, found)}")
    end(all_findings(state))


def _share_json(share: Share) -> Wire:
    return analysis_json.DecisionShare.of(share, held=share.held if share.rate is not None else None)


def _share_text(share: Share, found: ReviewerAccuracy) -> str:
    """Return how many decisions were confirmed, or how many are missing for a rate."""
    if share.rate is None:
        return f"{share.followed} of {MIN_FOLLOWED} needed, each with {plural(found.follow_up, 'later result')} or more"
    interval = f"{percent(found.level)} interval {percent(share.low)} to {percent(share.high)}"
    return f"{share.held} of {share.followed} with later results confirmed, {percent(share.rate)} ({interval})"


def _comparison_json(found: Comparison, level: float) -> Wire:
    having, lacking = found.loops
    categories = [
        analysis_json.CategoryComparison.of(
            group,
            loops_with=len(group.having),
            loops_without=len(group.lacking),
            average_with=sum(group.having) / len(group.having),
            average_without=sum(group.lacking) / len(group.lacking),
        )
        for group in found.groups
    ]
    return analysis_json.Comparison.of(
        found, level=level, loops_with=having, loops_without=lacking, categories=categories
    )


def _lessons_json(found: LessonEffect) -> Wire:
    comparison = found.comparison
    having, lacking = comparison.loops
    is_known = comparison.is_conclusive
    return analysis_json.LessonEffect.of(
        found,
        known=is_known,
        unit=found.measure.unit,
        cases_with=having,
        cases_without=lacking,
        average_with=comparison.having if is_known else None,
        average_without=comparison.lacking if is_known else None,
        interval=[comparison.low, comparison.high] if is_known else None,
    )


def _export(board: Dashboard, name: str, project: ProjectPaths, *, force: bool) -> Path:
    from core.show.metrics.sections import FORMATS, export_metrics

    file = export_file(name, project, FORMATS)
    if file_exists(file) and not force:
        raise BadInput(f"{visible_line(str(file), 300)} already exists; use --force to overwrite it")
    write_file(file, export_metrics(board, file.suffix.lower(), project.project.name))
    return file


def _print_section(figure: Figure) -> None:
    """Print the summary and the rows of a section, without weeks that have no data."""
    from core.show.metrics.sections import reach_text

    title = figure.title if figure.title.endswith("?") else f"{figure.title}:"
    if not figure.rows:
        line((title, "bold"), f" {figure.takeaway.removesuffix('.')}. {figure.missing}")
        return
    line((title, "bold"), f" {figure.takeaway}")
    columns = [Column(f"  {figure.about}", lambda row: f"  {row.label}", free=True)]
    if figure.group:
        columns.append(Column(figure.group, lambda row: row.group))
    columns += (Column(part, partial(_part, figure, number), right=True) for number, part in enumerate(figure.parts))
    if figure.reach:
        columns.append(
            Column(figure.reach, lambda row: reach_text(figure, row), right=True, expendable=int(not figure.group))
        )
    if figure.extra:
        columns.append(Column(figure.extra, lambda row: row.extra, right=True, expendable=1))
    if figure.has_count:
        columns.append(Column("n", lambda row: f"{row.count:,}", right=True))
    print_table(columns, [row for row in figure.rows if any(row.values) or row.count or row.low is not None])


def _part(figure: Figure, number: int, row: Row) -> str:
    from core.show.metrics.sections import part_text

    return part_text(figure, row, number)


def _shown(value: Any) -> str:
    """Format a value of a metrics file, which may have any type."""
    return "nothing" if value is None else visible_line(str(value), _MAX_CHARS)


MAX_MEASURED: Final = 200  # Most histories that are read for the read latency: those of the tasks with most actions.
_MAX_NAMED: Final = 10  # Most IDs of one line.
_MET: Final = {True: ("met", "green"), False: ("not met", "red"), None: ("not enough data", "yellow")}


def print_report() -> None:
    """Print retries with and without reflections, and metrics of the task memory."""
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
    """Seconds to read each history: the faster of two reads, as the first loads code."""
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


_MOST_POOLS: Final = 20
_START: Final = "to start one: ralphdeck experiment start --share 0.2"


@click.command(cls=ReadingCommand)
@click.argument("action", type=OneOf(("start", "stop")), required=False, metavar="[start|stop]")
@click.option(
    "--share",
    type=FRACTION,
    help="With start: share of the tasks that do not get a lesson that they would get, for each lesson: 0.1 to 0.5.",
)
def experiment(action: str | None, share: float | None) -> None:
    """Show whether lessons are held out by chance, and the results for each lesson.

    Off until you start it. The error of a lesson returns more or less often in the tasks that got the lesson than in
    those in which a coin held it out. The interval of the difference may be looked at every day; a verdict is right
    with a probability of 95 %. The comparison without an experiment is that of sessions that happened to have a lesson
    with those that did not.

    `start` begins to hold lessons out, in all your projects on this machine: the share is written to your own settings;
    a project can forbid it (injection.allow_experiment). Each project has results of its own. A coin decides for each
    task and each lesson that it would get. What a person promoted, what is about safety, and lessons with the tag
    `always` are always given. Half shows most in the same time; a tenth costs least. `stop` ends it in all your
    projects: all lessons are given again. What was recorded stays, and is shown.

    \b
    Examples:
      ralphdeck experiment start --share 0.2
      ralphdeck experiment
      ralphdeck experiment --json | jq '.patterns[] | {id, verdict}'
      ralphdeck experiment stop
    """
    if (action == "start") is (share is None):
        raise click.UsageError("start needs a --share" if share is None else "--share needs start")
    if action == "start" and share is not None:
        _start(share)
    elif action == "stop":
        _stop()
    else:
        _show_status()


def _show_status() -> None:
    """Show what is held out, and what that shows about each lesson."""
    from core.index.experiment import explain_not_running, is_forbidden
    from core.show.metrics.lesson_effect import measure_lesson_effect

    project = open_reader(reads_agents=False)
    state = project.view
    is_running = state.experiment is not None
    matched = measure_lesson_effect(state.snapshot, state.board, state.settings, is_running=is_running)
    report, share = matched.experiment, state.experiment.share if state.experiment is not None else None
    forbidden, problem = is_forbidden(state.settings), explain_not_running(state.settings)
    team = last_team_status()
    pools = team.trials if team is not None else ()

    if wants_json():
        print_object(
            analysis_json.ExperimentDocument,
            findings=state.snapshot.findings,
            share=share,
            forbidden=forbidden,
            problem=problem,
            summary=report.sentence,
            not_counted=report.not_counted,
            patterns=[_pattern_json(one) for one in report.patterns],
            success=_arms_json(report.success),
            not_by_chance=matched.sentence,
            team=pools_json(pools),
        )
    else:
        _print_status(report, share, problem, forbidden=forbidden)
        if report.not_counted:
            line(_describe_not_counted(report.not_counted))
        print_pools(pools)
        line(f"Comparison without an experiment: {continued(matched.sentence)}")
    end(state.snapshot.findings)


def _describe_share(share: float) -> str:
    return f"each lesson is held out of {format_percent(share)} of the tasks that would get it"


def _print_status(report: ExperimentReport, share: float | None, problem: str, *, forbidden: bool) -> None:
    if forbidden:
        line("The settings of this project forbid the experiment (injection.allow_experiment): nothing is held out.")
    elif problem:
        line((f"The experiment holds nothing out: {visible_line(problem, 500)}", "yellow"))
    elif share is None:
        line(f"No experiment is running; {_START}")
    else:
        line(f"Running in all your projects: {_describe_share(share)}.")
    if not report.patterns:
        return
    line(f"Experiment: {report.sentence}")
    names = name_apart((one.pattern_id, one.name) for one in report.patterns)
    columns = [
        Column("LESSON", lambda one: visible_line(names[one.pattern_id], 200), free=True),
        Column("VERDICT", lambda one: one.verdict),
        Column("GIVEN", lambda one: one.arms[0], right=True),
        Column("HELD OUT", lambda one: one.arms[1], right=True),
        Column("EFFECT", lambda one: one.interval, right=True, expendable=1),
        Column("OPEN", lambda one: f"{one.open:,}", right=True, expendable=2),
    ]
    print_table(columns, report.patterns)
    crossed = sum(one.crossed for one in report.patterns)
    if crossed:
        tasks = plural(crossed, "task")
        line(f"{tasks} had a lesson that was held out, or missed one that was not; counted as the coin decided.")
    if report.success is not None:
        from core.index.experiment import describe_success

        line(f"Success of tasks, over all lessons: {describe_success(report.success, is_running=report.is_running)}")


def _describe_not_counted(count: int) -> str:
    trials = plural(count, "trial was", "trials were")
    where = "by another person, on another machine, in another folder or with another secret (experiment.key)"
    return f"{trials} recorded {where}: not counted."


def print_pools(pools: Sequence[PooledTrials]) -> None:
    """Print a line for each pattern with trials in the projects of the team."""
    from core.show.metrics.sections import describe_pool

    for pool in pools[:_MOST_POOLS]:
        line(f"In the team: {visible_line(pool.pattern_id, 80)} in {describe_pool(pool)}")


def pools_json(pools: Sequence[PooledTrials]) -> list[Wire]:
    from core.show.metrics.sections import compare_pooled

    return [analysis_json.TeamTrials.of(one, comparison=_arms_json(compare_pooled(one))) for one in pools]


def _pattern_json(found: PatternTrials) -> Wire:
    ratio = found.steps_ratio
    return analysis_json.PatternTrials.of(
        found,
        id=found.pattern_id,
        verdict=found.verdict,
        errors=_arms_json(found.errors),
        steps_ratio=None if ratio is None else ratio[0],
        steps_interval=None if ratio is None else list(ratio[1:]),
    )


def _arms_json(comparison: TrialComparison | None) -> Wire | None:
    if comparison is None:
        return None
    return analysis_json.ArmComparison.of(
        comparison,
        verdict=comparison.verdict.value,
        trials_with=comparison.given.trials,
        trials_without=comparison.held_out.trials,
        rate_with=comparison.given.rate,
        rate_without=comparison.held_out.rate,
        interval=[comparison.low, comparison.high],
    )


def _require_user() -> None:
    """Raise Refused if an agent runs the command, ReadOnly with `--readonly`."""
    from core.agents.agent_table import find_acting_agent

    if agent := find_acting_agent(os.environ):
        raise Refused(f"{agent} cannot decide about experiments; run this command in a terminal of your own")
    if is_readonly():
        raise ReadOnly("read-only: nothing is written; start without --readonly and RALPHDECK_READONLY")


def _start(share: float) -> None:
    """Start to hold lessons out by chance."""
    from core.index.experiment import set_share
    from core.learning.experiments import COST_OF_LOOKING, EXPECTED_RATES, required_trials
    from core.trust.experiment_secret import read_or_make_secret

    _require_user()
    read_or_make_secret()  # without it, nothing could be held out
    file = set_share(share)
    needed = math.ceil(COST_OF_LOOKING * required_trials(*EXPECTED_RATES, share))

    if wants_json():
        print_object(analysis_json.ExperimentSetting, share=share, file=str(file))
    else:
        line(f"started in all your projects: {_describe_share(share)} ({file})")
        line(
            f"A clear effect on one lesson's error needs about {plural(needed, 'task')} in which the lesson is chosen."
        )


def _stop() -> None:
    """Stop the experiment."""
    from core.index.experiment import set_share

    _require_user()
    file = set_share(None)
    stopped = f"stopped in all your projects: all lessons are given again ({file})"
    if wants_json():
        print_object(analysis_json.ExperimentSetting, share=None, file=str(file))
    else:
        line(stopped)
