"""`ralphdeck record`: what a loop or attempt used, and how that went (2) Pattern Maturity, Criterion Weights."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import click

from core.base.formatting import short_id
from core.cli.json.learning import criterion_json, effect_json, event_json
from core.cli.json.shapes import Shape, json_help
from core.cli.render.output import line, print_json, warn
from core.cli.render.recorded_counts import counted_json, print_counted
from core.cli.support.id_completion import complete_pattern, complete_work
from core.cli.support.options import Count, Fraction, deciding_options
from core.cli.support.project import open_deck
from core.cli.support.work_options import (
    Effect,
    at_option,
    find_work,
    print_effects,
    result_of,
    result_options,
    time_of,
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
_ENDED = {True: "succeeded", False: "failed"}


@click.command(epilog=json_help("loop record"))
@click.argument("work", shell_complete=complete_work)
@click.argument("pattern_id", metavar="[PATTERN]", required=False, shell_complete=complete_pattern)
@click.option("--criterion", metavar="NAME", help="Feedback on a criterion of evaluation, in place of a pattern.")
@result_options
@click.option("--neutral", is_flag=True, help="It says nothing either way; of a criterion only.")
@click.option("--value", type=Fraction(), help="What the feedback on a criterion is worth. Default: 1.")
@click.option("--context", metavar="TEXT", help="What is said with the feedback on a criterion.")
@click.option("--iteration", type=Count(), metavar="N", help="Of the loop, in which it used the pattern.")
@at_option
@deciding_options
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
    by: str | None,
    as_json: bool,
) -> None:
    """Record that WORK, a loop or an attempt at a task, applied PATTERN; or feedback on a criterion.

    Without --success or --failure the result of the use is the outcome of the loop or attempt, once it has one.
    A use that is recorded again, with the same iteration or none, is the same use: the newest result stands.
    The record of the pattern follows: counts, rate, trend, source loop and last use.
    Work of other tools is accepted too.

    \b
    Examples:
      ralphdeck record ralph-fix-auth-a1b2c3d4 pat-error-null-check-015 --success
      ralphdeck record task-001.2 pat-success-types-first-006
      ralphdeck record bd-123.1 --criterion type_safe --failure --value 0.5
    """
    result = result_of(success, failure)
    if (pattern_id is None) == (criterion is None):
        raise click.UsageError("give either a PATTERN or --criterion NAME")
    if criterion is None and (neutral or value is not None or context is not None):
        raise click.UsageError("--neutral, --value and --context are for feedback on a --criterion")
    if criterion is not None:
        _check_feedback(criterion, result, neutral, iteration)
    moment = time_of(at)
    deck = open_deck(by, records=True)
    warnings: list[str] = []
    event = Event(
        id=event_id(moment),
        at=moment,
        kind="applied" if pattern_id is not None else "feedback",
        pattern_id=deck.view.pattern(pattern_id).id if pattern_id is not None else "",
        loop_id=find_work(deck.view, work, warnings),
        success=result,
        weight=1.0 if value is None else value,
        iteration=iteration,
        by=deck.by,
        agent=deck.agent,
        criterion=criterion or "",
        text=context or "",
    )
    if criterion is None:
        _use(deck, event, warnings, as_json)
    else:
        _feedback(deck, event, warnings, as_json)


def _check_feedback(criterion: str, result: bool | None, neutral: bool, iteration: int | None) -> None:
    if not criterion.strip():
        raise click.UsageError("--criterion is empty")
    if iteration is not None:
        raise click.UsageError("--iteration is for a PATTERN")
    if neutral is (result is not None):
        raise click.UsageError("give one of --success, --failure and --neutral")


def _use(deck: Project, event: Event, warnings: list[str], as_json: bool) -> None:
    before = deck.view.assessment(event.pattern_id)
    records: list[CountResult] = []
    view = deck.record(event, counted=records, warnings=warnings)
    effect = before, view.assessment(event.pattern_id)
    asides = [
        aside
        for aside in view.board.ignored_reports(event.pattern_id)
        if aside.source == source_of(event) and aside.report.at == event.at
    ]
    held = any(not aside.revoked for aside in asides)
    if asides and not held:
        warnings.append(f"the marks of {short_id(event.loop_id)} at this time were revoked; this one does not count")
    for warning in warnings:
        warn(warning)
    if as_json:
        _print(event, warnings, effect=effect, held=held, records=records)
        return
    line(f"recorded: {short_id(event.loop_id)} applied {short_id(event.pattern_id)}, {_result(view, event)}")
    print_effects([effect])
    print_counted(records)
    for burst in view.board.bursts if held else ():
        if burst.source == source_of(event):
            line((f"held: {format_burst(burst)}; see: ralphdeck bursts", "yellow"))


def _result(view: ProjectState, event: Event) -> str:
    if event.success is not None:
        return f"which {_ENDED[event.success]}"
    known = _known(view, event)
    if known is not None:
        return f"whose result is known already: it {_ENDED[known]}"
    found = view.outcome(event.loop_id)
    return "with its outcome as result" + (f", {found[1].verdict}" if found else ", once it has one")


def _known(view: ProjectState, event: Event) -> bool | None:
    """The result that was recorded for the use that an event without one is about; None if there is none."""
    uses = [
        seen
        for seen in view.observations(event.pattern_id)
        if seen.loop_id == event.loop_id and seen.kind != "discovered" and event.iteration in (None, seen.iteration)
    ]
    if not uses or any(use.success is None or use.inferred for use in uses):
        return None
    return uses[-1].success


def _feedback(deck: Project, event: Event, warnings: list[str], as_json: bool) -> None:
    settings, view = deck.settings.learning, deck.record(event)
    weight = criterion_weight(LoggedFeedback(deck.project).get_by_criterion(event.criterion), view.now, settings)
    for warning in warnings:
        warn(warning)
    if as_json:
        _print(event, warnings, criterion=criterion_json(weight, settings))
        return
    line(f"recorded: {short_id(event.criterion)} {_VERDICTS[event.success]} in {short_id(event.loop_id)}")
    state = ", deprecated: it weighs nothing" if should_deprecate_criterion(weight, settings) else ""
    line(
        (short_id(event.criterion), "bold"),
        f": weight {weight.weight:.2f}, helpful {weight.helpful:.2f}, harmful {weight.harmful:.2f}{state}",
    )


def _print(
    event: Event,
    warnings: list[str],
    *,
    effect: Effect | None = None,
    criterion: Shape | None = None,
    held: bool = False,
    records: Sequence[CountResult] = (),
) -> None:
    print_json(
        {
            "event": event_json(event),
            "pattern": effect_json(effect) if effect else None,
            "criterion": criterion,
            "held": held,
            "records": [counted_json(counted) for counted in records],
            "warnings": warnings,
        }
    )
