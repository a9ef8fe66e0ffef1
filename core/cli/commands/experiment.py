"""`ralphdeck experiment`: hold lessons out by chance, and show what that proves."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Final

import click

from core.base.errors import ReadOnly, Refused
from core.base.formatting import format_percent
from core.base.pattern_titles import name_apart
from core.base.text import continued, plural, visible_line
from core.cli.json import analysis as analysis_json
from core.cli.render.output import Column, end, line, print_object, print_table, wants_json
from core.cli.support.options import FRACTION, OneOf, ReadingCommand
from core.cli.support.project import is_readonly, open_reader
from core.cli.support.team import last_team_status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.cli.json.wire import Wire
    from core.index.experiment import ExperimentReport, PatternTrials
    from core.learning.experiments import Comparison
    from core.records.team import PooledTrials

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
    """Show whether lessons are held out by chance, and what that shows about each lesson. Off until you start it.

    The error of a lesson returns more or less often in the tasks that got the lesson than in those in which a coin held
    it out. The interval of the difference may be looked at every day; a verdict is right with a probability of 95 %.
    The comparison without an experiment is that of sessions that happened to have a lesson with those that did not.

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


def _arms_json(comparison: Comparison | None) -> Wire | None:
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
