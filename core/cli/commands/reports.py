"""`ralphdeck loop record`, `loop score`, and options and lookups of work items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from core.base.errors import BadInput, UnknownRecord
from core.base.formatting import shorten_id
from core.base.text import plural
from core.base.validation import suggest_id
from core.cli.commands import reports as work_items
from core.cli.json import loops as loops_json
from core.cli.json.loops import criterion, effect, outcome_values, record_update
from core.cli.json.loops import criterion as criterion_json
from core.cli.support.options import (
    COUNT,
    DURATION,
    FRACTION,
    MOMENT,
    DecidingCommand,
    Decorated,
    OneOf,
    ReadingCommand,
    choose_mode,
)
from core.cli.support.output import (
    Column,
    day,
    end,
    id_column,
    line,
    percent,
    print_bytes,
    print_object,
    print_table,
    remark,
    wants_json,
    warn,
)
from core.cli.support.project import chosen_project, complete_pattern, complete_work, now, open_project, reporter
from core.decisions.case import change
from core.learning.bursts import format_burst, source_of
from core.learning.maturity import Assessment, parse_moment
from core.learning.outcomes import (
    CriterionWeight,
    Verdict,
    WeightedScores,
    apply_weights,
    criterion_weight,
    criterion_weights,
    effective_weight,
    should_deprecate_criterion,
)
from core.learning.storage import ErrorAccumulator, ErrorEntry, classify_error
from core.records.events import ErrorType, Event, EventView, Signals, event_id
from core.records.snapshot import Delta
from core.records.times import iso
from core.trust.projects import require_trust

if TYPE_CHECKING:
    from core.cli.json.wire import Wire
    from core.decisions.use_counts import CountResult
    from core.index.project_state import ProjectState
    from core.project.project import Project


Effect = tuple[Assessment, Assessment]  # The assessments of one pattern before a report and after it.

work_argument = click.argument("work", metavar="WORK", shell_complete=complete_work)
success_option = click.option("--success", is_flag=True, help="It succeeded.")
failure_option = click.option("--failure", is_flag=True, help="It failed.")


at_option = click.option("--at", type=MOMENT, metavar="TIME", help="Time in ISO-8601. Default: now.")


def result_options(command: Decorated) -> Decorated:
    """Add `--success` and `--failure`; see `parse_result`."""
    return success_option(failure_option(command))


def parse_result(success: bool, failure: bool) -> bool | None:
    """Return the result given by the two flags; None if neither is set."""
    if success and failure:
        raise click.UsageError("give either --success or --failure")
    return success if success or failure else None


def require_past(at: datetime | None) -> datetime:
    """Return the time of a recorded event; raises UsageError for a future time."""
    present = now()
    if at is not None and at > present:
        raise click.UsageError(f"--at is in the future: {iso(at)}")
    return at or present


def find_work(state: ProjectState, name: str, warnings: list[str]) -> str:
    """Find the ID of a work item; warn about an unknown ID, and accept it.

    Raises UnknownRecord if the name matches several loops or is empty, BadInput if it has control characters.
    """
    loops = state.snapshot.loops.values()
    # A mere part of an ID is not enough here: another tool may use it as an ID.
    if (
        not name.strip()
        or name in state.snapshot.attempts
        or any(name in loop.aliases or loop.id.startswith(name) for loop in loops)
    ):
        return state.work_id(name)
    if not name.isprintable():
        raise BadInput(f"ID {shorten_id(name)} has control characters")
    known = [*state.snapshot.loops, *state.snapshot.attempts]
    warnings.append(
        f"no loop or attempt {shorten_id(name)}; treated as a work item of another tool{suggest_id(name, known)}"
    )
    return name


def print_effects(effects: Sequence[Effect]) -> None:
    """Print the change of state of each pattern, one per line."""
    for before, after in effects:
        pinned = f" (pinned; by rule {change(before.computed, after.computed)})" if after.pin is not None else ""
        sums = f"helpful {after.helpful:.2f}, harmful {after.harmful:.2f}"
        line((after.pattern_id, "bold"), f": {change(before.state, after.state)}{pinned}, {sums}")
        if after.inversion_due and not before.inversion_due:
            line(f"  its inversion is proposed now; see: ralphdeck pattern invert {after.pattern_id}")


def print_recorded_counts(records: Sequence[CountResult]) -> None:
    """Print a line for each updated record, and a warning for each failed one."""
    for counted in records:
        if counted.problem:
            warn(f"the record of {counted.pattern_id} is not up to date: {counted.problem}")
            continue
        results = counted.successes + counted.failures
        rate = f"{percent(counted.successes / results)} ({counted.successes:,}/{results:,}), " if results else ""
        if not counted.is_changed:
            line(f"  its record: nothing changed, {rate}{plural(counted.uses, 'use')}")
            continue
        line(f"  updated its record: {rate}{plural(counted.uses, 'use')}, in {counted.file}")


_VERDICTS: Final = {True: Verdict.HELPFUL, False: Verdict.HARMFUL, None: Verdict.NEUTRAL}
_TYPES: Final = [kind.value for kind in ErrorType]
_RESULTS: Final = {True: "worked", False: "failed"}


_MODES: Final = {
    "PATTERN": "work success failure iteration at",
    "--criterion": "work success failure neutral value context at",
    "--outcome": "work success failure at duration_ms error_count retry_count files_touched strategy failure_mode"
    " failure_details dry_run",
    "--error": "work error_type tool_name context stack_trace",
    "--resolve": "work",
    "": "work success failure at",
}


@click.command(cls=DecidingCommand, modes=_MODES)
@work_items.work_argument
@click.argument("pattern_id", metavar="[PATTERN]", required=False, shell_complete=complete_pattern)
@click.option("--criterion", metavar="NAME", help="Feedback on an evaluation criterion.")
@click.option("--outcome", is_flag=True, help="The outcome of WORK; it counts for the patterns that it followed.")
@click.option("--error", "message", metavar="MESSAGE", help="An error of WORK; prints its ID.")
@click.option("--resolve", "error_id", metavar="ID", help="Mark an error as fixed.")
@work_items.result_options
@work_items.at_option
@click.option("--iteration", type=COUNT, metavar="N", help="Iteration of the loop that followed PATTERN.")
@click.option("--neutral", is_flag=True, help="Record neutral feedback.")
@click.option("--value", type=FRACTION, help="Weight of the feedback on a criterion. Default: 1.")
@click.option(
    "--context", default="", metavar="TEXT", help="Comment on the feedback, or what the agent was doing at the error."
)
@click.option("--duration", "duration_ms", type=DURATION, help="Total duration; a plain number is milliseconds.")
@click.option("--errors", "error_count", type=COUNT, metavar="N", help="Number of errors, resolved or not.")
@click.option("--retries", "retry_count", type=COUNT, metavar="N", help="Attempts before the last one.")
@click.option("--file", "files_touched", multiple=True, metavar="PATH", help="A changed file; may be repeated.")
@click.option("--strategy", default="", metavar="TEXT", help="How the work was divided.")
@click.option("--failure-mode", default="", metavar="TEXT", help="Kind of the failure.")
@click.option("--failure-details", default="", metavar="TEXT", help="What happened.")
@click.option("--dry-run", is_flag=True, help="Score it and write nothing.")
@click.option("--type", "error_type", type=OneOf(_TYPES), help="Type of the error. Default: from its words.")
@click.option("--tool", "tool_name", default="", metavar="NAME", help="The tool that reported the error.")
@click.option("--stack-trace", default="", metavar="TEXT", help="Stack trace of the error.")
def record(
    work: str,
    pattern_id: str | None,
    criterion: str | None,
    outcome: bool,
    message: str | None,
    error_id: str | None,
    success: bool,
    failure: bool,
    at: datetime | None,
    iteration: int | None,
    neutral: bool,
    value: float | None,
    context: str,
    dry_run: bool,
    error_type: str | None,
    tool_name: str,
    stack_trace: str,
    **signals: Any,
) -> None:
    """Record that WORK followed PATTERN, or its outcome, an error, or feedback.

    WORK is a loop, an attempt at a task, or the ID that another tool uses.

    With PATTERN: without --success or --failure the result is the outcome of the loop or attempt, once it has one.
    Recording a use again, with the same iteration or none, adds no further use; the newest result counts. The record of
    the pattern is updated: counts, rate, trend, source loop and last use.

    With --outcome: missing values are read from the files of the loop or attempt; work of another tool needs --success
    or --failure. If the outcome is recorded several times, the newest value of each option counts.

    With --error: the error is part of the outcome's score; `ralphdeck loop score WORK --errors` prints it for a retry.

    \b
    Examples:
      ralphdeck loop record ralph-fix-auth-a1b2c3d4 pat-error-null-check-015 --success
      ralphdeck loop record bd-123.1 --criterion type_safe --failure --value 0.5
      ralphdeck loop record ralph-fix-auth-a1b2c3d4 --outcome --retries 1
      ralphdeck loop record bd-123.1 --outcome --success --duration 3m --errors 0 --file src/auth.ts
      ralphdeck loop record task-001.2 --error "Type error in src/auth.ts" --tool typecheck
      ralphdeck loop record task-001.2 --resolve 20261121T113600000000-0123456789abcdef
    """
    mode = choose_mode(_MODES)
    if not mode:
        raise click.UsageError("give a PATTERN, --criterion, --outcome, --error or --resolve")
    if mode == "--outcome":
        _record_outcome(work, success, failure, at, dry_run, **signals)
    elif mode in {"--error", "--resolve"}:
        if message is not None and not message.strip():
            raise click.UsageError("--error is empty")
        details = {"tool_name": tool_name, "context": context, "stack_trace": stack_trace}
        list_errors(work, include_resolved=False, message=message, error_type=error_type, error_id=error_id, **details)
    else:
        _record_use_or_feedback(work, pattern_id, criterion, success, failure, neutral, value, context, iteration, at)


def _record_use_or_feedback(
    work: str,
    pattern_id: str | None,
    criterion: str | None,
    success: bool,
    failure: bool,
    neutral: bool,
    value: float | None,
    context: str,
    iteration: int | None,
    at: datetime | None,
) -> None:
    result = work_items.parse_result(success, failure)
    if criterion is not None:
        if not criterion.strip():
            raise click.UsageError("--criterion is empty")
        if neutral is (result is not None):
            raise click.UsageError("give one of --success, --failure and --neutral")
    moment = work_items.require_past(at)
    project = open_project(records=True)
    warnings: list[str] = []
    event = Event(
        id=event_id(moment),
        at=moment,
        kind="applied" if pattern_id is not None else "feedback",
        pattern_id=project.view.find_pattern(pattern_id).id if pattern_id is not None else "",
        loop_id=work_items.find_work(project.view, work, warnings),
        success=result,
        weight=1.0 if value is None else value,
        iteration=iteration,
        by=reporter(project.settings),
        agent=project.agent,
        criterion=criterion or "",
        text=context,
    )
    if criterion is None:
        _record_use(project, event, warnings)
    else:
        _record_feedback(project, event, warnings)


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
    warn(*warnings)

    if wants_json():
        print_object(
            loops_json.RecordDocument,
            event=event,
            pattern=effect(before, after),
            criterion=None,
            held=is_held,
            records=map(record_update, records),
            warnings=warnings,
        )
    else:
        line(f"recorded: {shorten_id(event.loop_id)} followed {shorten_id(event.pattern_id)}, {_result(state, event)}")
        work_items.print_effects([(before, after)])
        work_items.print_recorded_counts(records)
        for burst in state.board.bursts if is_held else ():
            if burst.source == source_of(event):
                line((f"held: {format_burst(burst)}; see: ralphdeck review --suspicious", "yellow"))


def _result(state: ProjectState, event: Event) -> str:
    if event.success is not None:
        return f"which {_RESULTS[event.success]}"
    known = _known_result(state, event)
    if known is not None:
        return f"whose result is already recorded: it {_RESULTS[known]}"
    found = state.board.outcome(event.loop_id)
    return "with the outcome of the work as result" + (f", {found[1].verdict}" if found else ", once it has one")


def _known_result(state: ProjectState, event: Event) -> bool | None:
    """The recorded result of the use in an event without a result, or None."""
    uses = [
        use
        for use in state.board.observations(event.pattern_id)
        if use.loop_id == event.loop_id and use.kind != "discovered" and event.iteration in (None, use.iteration)
    ]
    if not uses or any(use.success is None or use.inferred for use in uses):
        return None
    return uses[-1].success


def _record_feedback(project: Project, event: Event, warnings: list[str]) -> None:
    from core.decisions.reference_storage import LoggedFeedback

    settings, state = project.settings.learning, project.record(event)
    weight = criterion_weight(LoggedFeedback(project.project).get_by_criterion(event.criterion), state.now, settings)
    warn(*warnings)

    if wants_json():
        print_object(
            loops_json.RecordDocument,
            event=event,
            pattern=None,
            criterion=criterion_json(weight, settings),
            held=False,
            records=(),
            warnings=warnings,
        )
    else:
        line(f"recorded: {shorten_id(event.criterion)} {_VERDICTS[event.success]} in {shorten_id(event.loop_id)}")
        deprecated = ", deprecated: its effective weight is 0" if should_deprecate_criterion(weight, settings) else ""
        sums = f"weight {weight.weight:.2f}, helpful {weight.helpful:.2f}, harmful {weight.harmful:.2f}"
        line((shorten_id(event.criterion), "bold"), f": {sums}{deprecated}")


def _record_outcome(
    work: str, success: bool, failure: bool, at: datetime | None, dry_run: bool, **signals: Any
) -> None:
    result = work_items.parse_result(success, failure)
    moment = work_items.require_past(at)
    project = open_project(records=True)
    before = project.view
    warnings: list[str] = []
    event = Event(
        id=event_id(moment),
        at=moment,
        kind="outcome",
        loop_id=work_items.find_work(before, work, warnings),
        success=result,
        by=reporter(project.settings),
        agent=project.agent,
        signals=Signals(**signals),
    )
    snapshot = before.snapshot.with_changes(events=EventView.of(before.snapshot.events).extended((event,)))
    board = before.board.updated(snapshot, Delta(events=True), before.now)
    after = replace(before, snapshot=snapshot, board=board)
    if after.board.outcome(event.loop_id) is None:
        loop = before.snapshot.loops.get(event.loop_id)
        reason = f"is {loop.status}" if loop else "has no recorded result"
        raise BadInput(f"{shorten_id(event.loop_id)} {reason}; give --success or --failure")
    if any(
        other.at > event.at
        for other in before.snapshot.events
        if other.kind == "outcome" and other.loop_id == event.loop_id and not other.pattern_id
    ):
        warnings.append("a newer report on its outcome takes precedence; only values missing there are used")
    records: list[CountResult] = []
    if not dry_run:
        project.record(event, counted=records, warnings=warnings)
        project.learn_strategies(event.loop_id, counted=records, warnings=warnings)
        after = project.view
    _print_outcome(before, after, event.loop_id, warnings, records, is_recorded=not dry_run)


def _print_outcome(
    before: ProjectState,
    after: ProjectState,
    work_id: str,
    warnings: list[str],
    records: list[CountResult],
    *,
    is_recorded: bool,
) -> None:
    from core.project.finished_work import classify_work, find_pattern_uses
    from core.questions.extraction.recorded_work import find_used_strategies

    found = after.board.outcome(work_id)
    assert found is not None
    signals, scored = found
    strategies = find_used_strategies(work_id, after.snapshot, after.board)
    uses = dict.fromkeys(use.pattern_id for use in find_pattern_uses(after, [work_id])[work_id])
    effects = [(before.assessment(id), after.assessment(id)) for id in uses if id in before.board]
    warn(*warnings)

    if wants_json():
        print_object(
            loops_json.OutcomeDocument,
            outcome=loops_json.Outcome.of(scored, **outcome_values(classify_work(after, work_id), signals)),
            patterns=(effect(*one) for one in effects),
            strategies=strategies,
            recorded=is_recorded,
            records=map(record_update, records),
            warnings=warnings,
        )
    else:
        line((work_id, "bold"), f": {scored.reasoning}")
        if strategies:
            line(f"strategies: {', '.join(strategies)}")
        changed = [effect for effect in effects if effect[0].state is not effect[1].state]
        work_items.print_effects(changed)
        if len(effects) > len(changed):
            line(f"state unchanged: {plural(len(effects) - len(changed), 'followed pattern')}")
        work_items.print_recorded_counts([counted for counted in records if counted.problem])
        if written := sum(counted.is_changed for counted in records):
            line(f"updated the {'record' if written == 1 else 'records'} of {plural(written, 'pattern')}")
        if not is_recorded:
            remark("nothing was written")


def list_errors(
    work: str,
    *,
    include_resolved: bool,
    message: str | None = None,
    error_type: str | None = None,
    error_id: str | None = None,
    **details: str,
) -> None:
    """Print the errors of a loop or attempt, or first add or resolve one."""
    from core.decisions.reference_storage import LoggedErrors

    if message is None and error_id is None:
        require_trust(chosen_project())
    project = open_project(records=message is not None)
    warnings: list[str] = []
    work_id = work_items.find_work(project.view, work, warnings)
    accumulator = ErrorAccumulator(LoggedErrors(project.project, clock=now, by=project.by, agent=project.agent))
    answer = ""
    warn(*warnings)
    if message is not None:
        kind = error_type or classify_error(message)
        answer = accumulator.record_error(work_id, kind, message, now=now(), **details).id
    elif error_id is not None:
        if error_id not in {entry.id for entry in accumulator.get_errors(work_id)}:
            hint = "ralphdeck loop score WORK --errors --json"
            raise UnknownRecord(f"{shorten_id(work_id)} has no error {shorten_id(error_id)}; see: {hint}")
        accumulator.resolve_error(error_id)
        answer = f"resolved {error_id}"

    shown = (one for one in accumulator.get_errors(work_id) if include_resolved or not one.resolved)
    if wants_json():
        print_object(loops_json.ErrorList, errors=map(_error_json, shown), stats=accumulator.get_error_stats(work_id))
    else:
        if answer:
            line(answer)
        elif text := accumulator.get_error_context(work_id, include_resolved=include_resolved):
            print_bytes(f"{text}\n".encode("utf-8", "replace"))
        else:
            remark(f"no {'' if include_resolved else 'unresolved '}errors of {shorten_id(work_id)}")


def _error_json(entry: ErrorEntry) -> Wire:
    at = parse_moment(entry.timestamp, "timestamp")
    return loops_json.LoggedError.of(entry, at=at)


_SCORE_RESULTS: Final = {"helpful": "worked", "neutral": "unclear", "harmful": "failed"}
"""Words for the verdicts of docs/scoring.md#outcomes, which --json uses."""
SCORE_COLUMNS: Final = (
    id_column("ID", lambda one: one.work_id),
    Column("RESULT", lambda one: _SCORE_RESULTS[one.outcome.verdict], colours={"worked": "green", "failed": "red"}),
    Column("RAW", lambda one: f"{one.outcome.raw:.2f}", right=True),
    Column("TODAY", lambda one: f"{one.outcome.decayed:.2f}", right=True),
    # Verdict and score have their own columns.
    Column("REASONING", lambda one: one.outcome.reasoning.partition(": ")[2], free=True),
)


@click.command(cls=ReadingCommand)
@click.argument("works", metavar="[WORK]...", nargs=-1, shell_complete=complete_work)
@click.option(
    "--criteria", is_flag=True, help="Show the weights of the criteria instead; CRITERION=SCORE weights a score."
)
@click.option("--errors", is_flag=True, help="Print the earlier errors of WORK instead, for the prompt of its retry.")
@click.option("--all", "include_resolved", is_flag=True, help="With --errors: print resolved errors as well.")
def score(works: tuple[str, ...], criteria: bool, errors: bool, include_resolved: bool) -> None:
    """Score how loops and attempts worked, newest first, with the parts of a score.

    In --json, worked is helpful, failed is harmful, and unclear is neutral. WORK is a loop or an attempt. A running,
    aborted or crashed loop has no outcome until one is recorded. With --errors, only the errors are printed, or nothing
    if there are none.

    \b
    Examples:
      ralphdeck loop score
      ralphdeck loop score task-001.2 --json | jq .outcomes[0].parts
      ralphdeck loop score --criteria
      ralphdeck loop score --criteria type_safe=0.9 fast=40%
      ralphdeck loop score task-001.2 --errors >> prompt.md
    """
    if choose_mode({"--errors": "works include_resolved", "--criteria": "works", "": "works"}) == "--errors":
        if len(works) != 1:
            raise click.UsageError("--errors needs one WORK")
        list_errors(works[0], include_resolved=include_resolved)
        return
    from core.index.project_state import all_findings
    from core.project.finished_work import find_scored_work

    project = open_project()
    state, settings = project.view, project.settings.learning
    weighted = _weighted(project, works if criteria else ()) if wants_json() or criteria else None
    chosen = _chosen(state, works) if works and not criteria else None
    outcomes = () if criteria and not wants_json() else find_scored_work(state, chosen)

    if wants_json():
        print_object(
            loops_json.ScoreDocument,
            findings=all_findings(state),
            outcomes=(
                loops_json.ScoredOutcome.of(one.outcome, patterns=one.applied, **outcome_values(one.kind, one.signals))
                for one in outcomes
            ),
            criteria=(criterion(one, settings) for one in weighted[0].values()) if weighted else (),
            weighted=_weighted_json(weighted[1]) if criteria and works and weighted else None,
            inversions=sorted(state.board.ids[row] for row in state.board.inversion_due.nonzero()[0].tolist()),
        )
    else:
        if criteria and works and weighted:
            _print_weighted(weighted[1])
        elif criteria and weighted:
            columns = (
                Column("CRITERION", lambda one: one.criterion, free=True),
                Column("WEIGHT", lambda one: f"{one.weight:.2f}", right=True),
                Column("EFFECTIVE", lambda one: f"{effective_weight(one, settings):.2f}", right=True),
                Column("HELPFUL", lambda one: f"{one.helpful:.2f} of {one.helpful_count}", right=True),
                Column("HARMFUL", lambda one: f"{one.harmful:.2f} of {one.harmful_count}", right=True),
                Column("LAST VALIDATED (UTC)", lambda one: day(one.last_validated), expendable=1),
                Column(
                    "",
                    lambda one: "deprecated" if should_deprecate_criterion(one, settings) else "no data" * one.no_data,
                    colours={"deprecated": "red"},
                ),
            )
            print_table(columns, weighted[0].values(), "no feedback on any criterion")
        else:
            print_table(SCORE_COLUMNS, outcomes, "no loop or attempt has ended yet")
    end(all_findings(state))


def _chosen(state: ProjectState, works: Iterable[str]) -> list[str]:
    found = []
    for name in works:
        work_id = find_work(state, name, [])
        if state.board.outcome(work_id) is None:
            loop = state.snapshot.loops.get(work_id)
            if loop is None and work_id not in state.snapshot.attempts:
                raise UnknownRecord(
                    f"no loop, attempt or recorded outcome {shorten_id(name)}; see: ralphdeck loop list"
                )
            reason = f"is {loop.status}" if loop else "has no recorded result"
            hint = f"record its outcome with: ralphdeck loop record {shorten_id(work_id)} --outcome"
            raise UnknownRecord(f"{shorten_id(work_id)} {reason}; {hint}")
        found.append(work_id)
    return found


def _weighted(project: Project, words: Iterable[str]) -> tuple[dict[str, CriterionWeight], WeightedScores]:
    """Return the weight of each criterion, and the given scores weighted by them."""
    from core.decisions.reference_storage import LoggedFeedback

    scores: dict[str, float] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.strip():
            raise click.UsageError(f"{word!r} is not CRITERION=SCORE; to score WORK leave out --criteria")
        scores[name.strip()] = FRACTION.convert(text, None, None)
    settings = project.settings.learning
    weights = criterion_weights(LoggedFeedback(project.project).get_all(), project.view.now, settings)
    return weights, apply_weights(scores, weights, settings)


def _weighted_json(weighted: WeightedScores) -> Wire:
    scores = [(name, weighted.weights[name], value) for name, value in weighted.scores.items()]
    return loops_json.WeightedScores.of(weighted, scores=scores)


def _print_weighted(weighted: WeightedScores) -> None:
    """Print weighted scores; a criterion without feedback has weight 1."""
    columns = (
        Column("CRITERION", lambda name: name, free=True),
        Column("WEIGHT", lambda name: f"{weighted.weights[name]:.2f}", right=True),
        Column("WEIGHTED SCORE", lambda name: f"{weighted.scores[name]:.2f}", right=True),
    )
    print_table(columns, weighted.scores)
    line(f"total: {'unknown, all weights are 0' if weighted.total is None else f'{weighted.total:.2f}'}")
