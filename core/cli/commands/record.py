"""`ralphdeck loop record`: record the use of a pattern, or feedback on a criterion."""

from __future__ import annotations

from datetime import datetime

import click

from core.base.formatting import shorten_id
from core.cli.json.loops import criterion as criterion_json
from core.cli.json.loops import effect, record_update
from core.cli.render.output import line, respond, warn
from core.cli.support.id_completion import complete_pattern
from core.cli.support.options import COUNT, FRACTION, DecidingCommand
from core.cli.support.project import open_project
from core.cli.support.work_options import (
    at_option,
    find_work,
    parse_result,
    print_effects,
    print_recorded_counts,
    require_past,
    result_options,
    work_argument,
)
from core.curation.reference_storage import LoggedFeedback
from core.curation.use_counts import CountResult
from core.learning.bursts import format_burst, source_of
from core.learning.criteria import criterion_weight, should_deprecate_criterion
from core.learning.outcomes import Verdict
from core.project.project import Project
from core.records.events import Event, event_id
from core.state.project_state import ProjectState

_VERDICTS = {True: Verdict.HELPFUL, False: Verdict.HARMFUL, None: Verdict.NEUTRAL}
_RESULTS = {True: "succeeded", False: "failed"}


@click.command(cls=DecidingCommand)
@work_argument
@click.argument("pattern_id", metavar="[PATTERN]", required=False, shell_complete=complete_pattern)
@click.option("--criterion", metavar="NAME", help="Feedback on an evaluation criterion, instead of a pattern.")
@result_options
@click.option("--neutral", is_flag=True, help="Record neutral feedback (only with --criterion).")
@click.option("--value", type=FRACTION, help="Weight of the feedback on a criterion. Default: 1.")
@click.option("--context", metavar="TEXT", help="Comment on the feedback on a criterion.")
@click.option("--iteration", type=COUNT, metavar="N", help="Iteration of the loop that applied the pattern.")
@at_option
def record(
    work: str,
    pattern_id: str | None,
    criterion: str | None,
    success: bool,
    failure: bool,
    neutral: bool,
    value: float | None,
    context: str | None,
    iteration: int | None,
    at: datetime | None,
) -> None:
    """Record that WORK, a loop or an attempt at a task, applied PATTERN; or feedback on a criterion.

    Without --success or --failure the result is the outcome of the loop or attempt, once it has one. A use that is
    recorded again, with the same iteration or none, is the same use, and the newest result counts. The record of the
    pattern is updated: counts, rate, trend, source loop and last use. IDs of other tools are accepted.

    \b
    Examples:
      ralphdeck loop record ralph-fix-auth-a1b2c3d4 pat-error-null-check-015 --success
      ralphdeck loop record task-001.2 pat-success-types-first-006
      ralphdeck loop record bd-123.1 --criterion type_safe --failure --value 0.5
    """
    result = parse_result(success, failure)
    if (pattern_id is None) == (criterion is None):
        raise click.UsageError("give either a PATTERN or --criterion NAME")
    if criterion is None and (neutral or value is not None or context is not None):
        raise click.UsageError("--neutral, --value and --context are for feedback on a --criterion")
    if criterion is not None:
        _check_feedback(criterion, result, neutral, iteration)
    moment = require_past(at)
    project = open_project(records=True)
    warnings: list[str] = []
    event = Event(
        id=event_id(moment),
        at=moment,
        kind="applied" if pattern_id is not None else "feedback",
        pattern_id=project.view.find_pattern(pattern_id).id if pattern_id is not None else "",
        loop_id=find_work(project.view, work, warnings),
        success=result,
        weight=1.0 if value is None else value,
        iteration=iteration,
        by=project.by,
        agent=project.agent,
        criterion=criterion or "",
        text=context or "",
    )
    if criterion is None:
        _record_use(project, event, warnings)
    else:
        _record_feedback(project, event, warnings)


def _check_feedback(criterion: str, result: bool | None, neutral: bool, iteration: int | None) -> None:
    if not criterion.strip():
        raise click.UsageError("--criterion is empty")
    if iteration is not None:
        raise click.UsageError("--iteration is for a PATTERN")
    if neutral is (result is not None):
        raise click.UsageError("give one of --success, --failure and --neutral")


def _record_use(project: Project, event: Event, warnings: list[str]) -> None:
    before = project.view.assessment(event.pattern_id)
    records: list[CountResult] = []
    state = project.record(event, counted=records, warnings=warnings)
    after = state.assessment(event.pattern_id)
    ignored = [
        one
        for one in state.board.ignored_reports(event.pattern_id)
        if one.source == source_of(event) and one.report.at == event.at
    ]
    is_held = any(not one.revoked for one in ignored)
    if ignored and not is_held:
        warnings.append(
            f"the reports of {shorten_id(event.loop_id)} at this time were discarded; this one does not count"
        )
    for warning in warnings:
        warn(warning)

    def show() -> None:
        line(f"recorded: {shorten_id(event.loop_id)} applied {shorten_id(event.pattern_id)}, {_result(state, event)}")
        print_effects([(before, after)])
        print_recorded_counts(records)
        for burst in state.board.bursts if is_held else ():
            if burst.source == source_of(event):
                line((f"held: {format_burst(burst)}; see: ralphdeck review suspicious", "yellow"))

    respond(
        "RecordDocument",
        show,
        event=event,
        pattern=lambda: effect(before, after),
        criterion=None,
        held=is_held,
        records=map(record_update, records),
        warnings=warnings,
    )


def _result(state: ProjectState, event: Event) -> str:
    if event.success is not None:
        return f"which {_RESULTS[event.success]}"
    known = _known_result(state, event)
    if known is not None:
        return f"whose result is already recorded: it {_RESULTS[known]}"
    found = state.board.outcome(event.loop_id)
    return "with the outcome of the work as result" + (f", {found[1].verdict}" if found else ", once it has one")


def _known_result(state: ProjectState, event: Event) -> bool | None:
    """The recorded result of the use that an event without a result is about; None if there is none."""
    uses = [
        use
        for use in state.board.observations(event.pattern_id)
        if use.loop_id == event.loop_id and use.kind != "discovered" and event.iteration in (None, use.iteration)
    ]
    if not uses or any(use.success is None or use.inferred for use in uses):
        return None
    return uses[-1].success


def _record_feedback(project: Project, event: Event, warnings: list[str]) -> None:
    settings, state = project.settings.learning, project.record(event)
    weight = criterion_weight(LoggedFeedback(project.project).get_by_criterion(event.criterion), state.now, settings)
    for warning in warnings:
        warn(warning)

    def show() -> None:
        line(f"recorded: {shorten_id(event.criterion)} {_VERDICTS[event.success]} in {shorten_id(event.loop_id)}")
        deprecated = ", deprecated: its weight is 0" if should_deprecate_criterion(weight, settings) else ""
        sums = f"weight {weight.weight:.2f}, helpful {weight.helpful:.2f}, harmful {weight.harmful:.2f}"
        line((shorten_id(event.criterion), "bold"), f": {sums}{deprecated}")

    respond(
        "RecordDocument",
        show,
        event=event,
        pattern=None,
        criterion=lambda: criterion_json(weight, settings),
        held=False,
        records=(),
        warnings=warnings,
    )
