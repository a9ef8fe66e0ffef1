"""`ralphdeck experiment`: hold lessons out by chance, and show what that proves."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import click

from core.base.formatting import format_percent
from core.base.text import plural, visible_line
from core.cli.json import objects
from core.cli.render.output import Column, line, print_table, respond
from core.cli.support.options import FRACTION, Command, ReadingCommand
from core.cli.support.project import open_reader

if TYPE_CHECKING:
    from core.learning.experiments import Comparison
    from core.metrics.experiment import ExperimentReport, PatternTrials

_START: Final = "to start one: ralphdeck experiment start --share 0.2"


@click.command(cls=ReadingCommand)
def status() -> None:
    """Show whether lessons are held out by chance, and what that shows about each lesson.

    The error of a lesson returns more or less often in the tasks that got the lesson than in those in which a coin held
    it out. The interval of the difference may be looked at every day; a verdict is right with a probability of 95 %.
    "Not by chance" is the comparison of sessions that happened to have a lesson with those that did not.

    \b
    Examples:
      ralphdeck experiment
      ralphdeck experiment status --json | jq '.patterns[] | {id, verdict}'
    """
    from core.metrics.experiment import measure_experiment
    from core.metrics.lesson_effect import measure_lesson_effect
    from core.state.experiment import is_forbidden

    project = open_reader(reads_agents=False)
    state = project.view
    report = measure_experiment(state)
    matched = measure_lesson_effect(state.snapshot, state.board, state.settings)
    forbidden = is_forbidden(state.settings)

    def show() -> None:
        _print_status(report, forbidden=forbidden)
        line(f"Not by chance: {matched.sentence}")

    respond(
        "ExperimentDocument",
        show,
        state.snapshot.findings,
        share=report.share,
        forbidden=forbidden,
        summary=report.sentence,
        patterns=lambda: [_pattern_json(one) for one in report.patterns],
        success=lambda: arms_json(report.success),
        not_by_chance=matched.sentence,
    )


def _print_status(report: ExperimentReport, *, forbidden: bool) -> None:
    if forbidden:
        line("The settings of this project forbid the experiment (injection.allow_experiment): nothing is held out.")
    elif report.share is None:
        line(f"No experiment is running; {_START}")
    else:
        line(f"Running: each lesson is held out of {format_percent(report.share)} of the tasks that would get it.")
    if not report.patterns:
        return
    line(f"By chance: {report.sentence}")
    columns = [
        Column("lesson", lambda one: visible_line(one.name, 200), free=True),
        Column("verdict", lambda one: one.verdict),
        Column("with", partial(_rate, is_held_out=False), right=True),
        Column("without", partial(_rate, is_held_out=True), right=True),
        Column("difference", _interval, right=True, expendable=1),
        Column("open", lambda one: f"{one.open:,}", right=True, expendable=2),
    ]
    print_table(columns, report.patterns)
    crossed = sum(one.crossed for one in report.patterns)
    if crossed:
        line(f"{plural(crossed, 'task')} had a lesson that was held out, or missed one that was not; counted as drawn.")
    if report.success is not None:
        line(f"Task success, over all lessons: {_describe(report.success)}")


def _rate(found: PatternTrials, *, is_held_out: bool) -> str:
    """Format how often the error returned in one arm: `3 of 12`, or only the number of tasks."""
    if found.comparison is None:
        return f"{found.held_out if is_held_out else found.given:,}"
    arm = found.comparison.held_out if is_held_out else found.comparison.given
    return f"{arm.total:,.0f} of {arm.trials:,}"


def _interval(found: PatternTrials) -> str:
    comparison = found.comparison
    if comparison is None or comparison.difference is None:
        return ""
    return f"{comparison.difference:+.2f} ({comparison.low:+.2f} to {comparison.high:+.2f})"


def _describe(comparison: Comparison) -> str:
    from core.learning.experiments import describe_verdict

    arms = [
        format_percent(arm.rate) if arm.rate is not None else "—" for arm in (comparison.given, comparison.held_out)
    ]
    return f"{arms[0]} with, {arms[1]} without; {describe_verdict(comparison)}"


def _pattern_json(found: PatternTrials) -> objects.Wire:
    return objects.PatternTrials.of(
        found, id=found.pattern_id, verdict=found.verdict, errors=arms_json(found.comparison)
    )


def arms_json(comparison: Comparison | None) -> objects.Wire | None:
    if comparison is None:
        return None
    return objects.ArmComparison.of(
        comparison,
        verdict=comparison.verdict.value,
        trials_with=comparison.given.trials,
        trials_without=comparison.held_out.trials,
        rate_with=comparison.given.rate,
        rate_without=comparison.held_out.rate,
        interval=[comparison.low, comparison.high],
    )


@click.command(cls=Command)
@click.option(
    "--share",
    type=FRACTION,
    required=True,
    help="Share of the tasks that do not get a lesson that they would get, for each lesson: 0.1 to 0.5.",
)
def start(share: float) -> None:
    """Start to hold lessons out by chance, in all your projects; it is written to your own settings.

    A coin decides for each task and each lesson that it would get. What a person promoted, what is about safety, and
    lessons with the tag `always` are always given. Half shows most in the same time; a tenth costs least.

    \b
    Examples:
      ralphdeck experiment start --share 0.2
      ralphdeck experiment start --share 0.5
    """
    from core.learning.experiments import EXPECTED_RATES, required_trials
    from core.state.experiment import set_share

    file = set_share(share)
    needed = required_trials(*EXPECTED_RATES, share)

    def show() -> None:
        line(f"wrote {file}: each lesson is held out of {format_percent(share)} of the tasks that would get it")
        line(
            f"A clear effect on one lesson's error needs about {plural(needed, 'task')} in which the lesson is chosen."
        )

    respond("ExperimentSetting", show, share=share, file=str(file))


@click.command(cls=Command)
def stop() -> None:
    """Stop the experiment: all lessons are given again. What was recorded stays, and is still shown.

    \b
    Example:
      ralphdeck experiment stop
    """
    from core.state.experiment import set_share

    file = set_share(None)
    respond("ExperimentSetting", lambda: line("stopped: all lessons are given again"), share=None, file=str(file))
